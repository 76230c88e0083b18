//! Every configuration below `fixtures/`, for tests that compare the reports of two interfaces.

use std::path::{Path, PathBuf};

/// A configuration, and the facts to check it with.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name of the file.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The text of the facts.
    pub facts: Option<String>,
}

fn configurations(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).expect("the fixtures are in the repository") {
        let path = entry.expect("a directory can be read to its end").path();
        let is_one =
            |it: &std::ffi::OsStr| ["xml", "args", "yaml", "sh"].iter().any(|one| it == *one);
        if path.is_dir() && !path.ends_with("sysroots") {
            files.extend(configurations(&path));
        } else if path.extension().is_some_and(is_one) {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Each configuration without facts and with some: those beside it, or those of the fixtures in turn.
pub fn cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let read = |path: &Path| {
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let hosts = std::fs::read_dir(root.join("facts")).expect("the fixtures are in the repository");
    let mut hosts: Vec<PathBuf> = hosts.filter_map(|it| Some(it.ok()?.path())).collect();
    hosts.sort();
    let mut cases = Vec::new();
    for (nth, path) in configurations(&root).into_iter().enumerate() {
        let beside = path.with_extension("facts.json");
        let facts = match beside.exists() {
            true => &beside,
            false => &hosts[nth % hosts.len()],
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        for facts in [None, Some(read(facts))] {
            cases.push(Case {
                name: name.clone().into_owned(),
                text: read(&path),
                facts,
            });
        }
    }
    assert!(cases.len() > 100, "{}", cases.len());
    cases
}

/// The cases as a file: the name, the text and the facts of each, and a zero byte after each of them.
pub fn cases_file(cases: &[Case]) -> String {
    let mut out = String::new();
    for case in cases {
        let facts = case.facts.as_deref().unwrap_or_default();
        for part in [case.name.as_str(), &case.text, facts] {
            assert!(!part.contains('\0'), "{}", case.name);
            out.push_str(part);
            out.push('\0');
        }
    }
    out
}

/// Checks that a program printed the report of each case, byte for byte, and a zero byte after each.
///
/// # Panics
/// If one differs.
pub fn check_reports(cases: &[Case], printed: &[u8], expected: impl Fn(&Case) -> String) {
    let printed = String::from_utf8_lossy(printed);
    let reports: Vec<&str> = printed.split('\0').collect();
    assert_eq!(reports.len(), cases.len() + 1, "{printed:.300}");
    for (case, report) in cases.iter().zip(reports) {
        assert_eq!(report, expected(case), "{}", case.name);
    }
}
