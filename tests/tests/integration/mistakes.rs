//! Twelve mistakes that schema validation passes, each found with its line and column.

use vmdisk_tests::{assert_golden, fixtures, run};

#[test]
fn all_twelve_common_mistakes_are_found_at_their_places() {
    let folder = fixtures().join("mistakes");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".xml"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 12, "{names:?}");
    let mut found = String::new();
    for name in names {
        let path = format!("fixtures/mistakes/{name}");
        let facts = path.replace(".xml", ".facts.json");
        let mut arguments = vec!["lint", &path, "--format", "concise"];
        if vmdisk_tests::repository().join(&facts).exists() {
            arguments.extend(["--facts", &facts]);
        }
        let result = run(crate::VMDISK, &arguments, "");
        assert!(result.code < 2, "{name}: {result:?}");
        assert!(!result.stdout.is_empty(), "{name}: nothing was found");
        found.push_str(&result.stdout);
    }
    assert_golden(&folder.join("findings.txt"), &found);
}
