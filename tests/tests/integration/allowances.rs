//! Allowances in a file: what they cover, and what is said about those that are wrong.

use vmdisk::rules::{Example, RULES};
use vmdisk::{LintOptions, LintReport, lint, read};

fn lint_text(text: &str) -> LintReport {
    lint(&read(text).unwrap(), &LintOptions::default())
}

fn names(report: &LintReport) -> Vec<&str> {
    report
        .diagnostics
        .iter()
        .map(|diagnostic| diagnostic.rule.name)
        .collect()
}

const DISK: &str = "<disk type='file' device='disk'>\n  <driver name='qemu' type='raw' cache='unsafe'/>\n  <source file='/srv/a.img'/>\n  <target dev='vda' bus='virtio'/>\n</disk>\n";

#[test]
fn the_pages_of_the_rules_about_allowances_say_what_happens() {
    let mut executed = 0;
    for rule in RULES
        .iter()
        .filter(|rule| rule.name.starts_with("allowance-"))
    {
        for example in rule.examples() {
            let found = names(&lint_text(&example.text))
                .iter()
                .filter(|name| **name == rule.name)
                .count();
            assert_eq!(
                found,
                usize::from(Example::says(&example, "reported")),
                "{}: {}",
                rule.name,
                example.text
            );
            executed += 1;
        }
    }
    assert_eq!(executed, 7, "the examples of three rules");
}

#[test]
fn an_allowed_finding_does_not_count_and_is_not_lost() {
    let report = lint_text(&format!(
        "<!-- vmdisk: allow(cache-unsafe) rebuilt each night -->\n{DISK}"
    ));
    assert_eq!(names(&report), Vec::<&str>::new());
    assert_eq!(report.allowed.len(), 1);
}

#[test]
fn an_allowance_covers_the_next_element_and_nothing_else() {
    let second = DISK.replace("vda", "vdb").replace("a.img", "b.img");
    let text = format!(
        "<devices>\n<!-- vmdisk: allow(cache-unsafe) rebuilt -->\n{DISK}{second}</devices>\n"
    );
    let report = lint_text(&text);
    assert_eq!(names(&report), ["cache-unsafe"]);
    assert!(report.diagnostics[0].title.contains("vdb"));
}

#[test]
fn removing_an_unused_allowance_is_a_fix() {
    let clean = DISK.replace("unsafe", "none");
    let text = format!("<!-- vmdisk: allow(cache-unsafe) rebuilt -->\n{clean}");
    let fixed = vmdisk::fix(&text, &LintOptions::default(), vmdisk::FixScope::Safe).unwrap();
    assert!(!fixed.document.text.contains("allow("));
    assert!(fixed.document.text.ends_with(&clean));
}
