//! The five articles the project began from: their configurations, their hosts, and what is found.

use vmdisk_tests::{assert_golden, fixtures, run};

#[test]
fn each_article_is_linted_as_its_golden_file_says() {
    let mut folders: Vec<_> = std::fs::read_dir(fixtures().join("articles"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    assert_eq!(folders.len(), 5, "there are five articles");
    for folder in folders {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let file = |file: &str| format!("fixtures/articles/{name}/{file}");
        let found = run(
            crate::VMDISK,
            &["lint", &file("domain.xml"), "--facts", &file("facts.json")],
            "",
        );
        assert!(
            found.stdout.contains(" = "),
            "{name} has findings: {found:?}"
        );
        assert_golden(
            &folder.join("findings.txt"),
            &format!("{}{}", found.stdout, found.stderr),
        );
    }
}
