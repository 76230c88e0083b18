//! The library makes the report that the command prints.

use std::path::{Path, PathBuf};

use vmdisk::report::{DocumentReport, Run};
use vmdisk::{Host, LintOptions, calls, lint, read_to_lint};

use crate::Place;

/// Every configuration below a directory of fixtures.
fn configurations(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let extension = path.extension().unwrap_or_default();
        if path.is_dir() && !path.ends_with("sysroots") {
            files.extend(configurations(&path));
        } else if ["xml", "args", "yaml", "sh"]
            .iter()
            .any(|it| extension == *it)
        {
            files.push(path);
        }
    }
    files
}

#[test]
fn every_fixture_has_the_same_report_as_with_the_command() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let fixtures = configurations(&root);
    assert!(fixtures.len() > 45, "{fixtures:?}");
    let broken = (
        "broken.xml".to_owned(),
        b"<domain>\n <os>\n</domain>".to_vec(),
        None,
    );
    let read = fixtures.iter().map(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let facts = path.with_extension("facts.json");
        (
            name,
            std::fs::read(path).unwrap(),
            facts.exists().then_some(facts),
        )
    });
    let (mut findings, mut with_facts) = (0, 0);
    for (name, bytes, facts_file) in read.chain([broken]) {
        let place = Place::with(&[]);
        place.write(&name, &bytes);
        let mut arguments = vec!["lint", &name, "--format", "json"];
        let facts_path = facts_file.as_ref().map(|it| it.to_str().unwrap());
        if let Some(path) = facts_path {
            arguments.extend(["--facts", path]);
            with_facts += 1;
        }
        let command = place.run(&arguments).stdout;
        let facts = facts_file.map(|it| {
            let text = std::fs::read_to_string(it).unwrap();
            Host::parse(&text).unwrap()
        });
        let host = facts.as_ref();
        let options = host.map_or_else(LintOptions::default, Host::options);
        let mut run = Run::default();
        match read_to_lint(&bytes, &Default::default()) {
            Ok(mut document) => {
                document = options.planned(&document).unwrap_or(document);
                let found = lint(&document, &options);
                findings += found.diagnostics.len();
                run.add(&name, DocumentReport::new(document, found));
            }
            Err(failure) => run.add_unreadable(&name, String::from_utf8_lossy(&bytes), failure),
        }
        assert_eq!(run.to_json(), command, "{name}");
        let text = String::from_utf8(bytes).unwrap();
        let mut options = calls::CallOptions::default();
        options.name = name;
        match calls::lint(&text, host, &options) {
            Ok(report) => assert_eq!(report, command),
            Err(error) => assert!(
                error.place.is_some() && options.name == "broken.xml",
                "{error:?}"
            ),
        }
    }
    assert!(findings > 50 && with_facts >= 5, "{findings} {with_facts}");
}
