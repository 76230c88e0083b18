//! No rule is an unfinished copy of the template of its crate.

use std::path::{Path, PathBuf};

use vmdisk::rules::RULES;

/// The word of the templates for what the author of a rule must write.
const PLACEHOLDER: &str = "REPLACE";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The lines of a file that the author has not written yet.
fn unfinished(file: &str) -> Vec<String> {
    let path = repository().join(file);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text.lines().zip(1..);
    lines
        .filter(|(line, _)| line.contains(PLACEHOLDER))
        .map(|(line, number)| format!("{file}:{number}: {}", line.trim()))
        .collect()
}

#[test]
fn no_rule_has_a_placeholder_of_its_template() {
    let left: Vec<String> = RULES
        .iter()
        .flat_map(|rule| unfinished(rule.file))
        .collect();
    assert!(left.is_empty(), "still to be written:\n{}", left.join("\n"));
}

#[test]
fn each_template_has_a_placeholder_in_every_part_of_its_rule() {
    for home in ["vmdisk-rules", "vmdisk-qemu", "vmdisk-libvirt"] {
        let found = unfinished(&format!("crates/{home}/src/rules/template.rs"));
        for part in [
            "the mistake in one sentence",
            "the settings that are reported",
            "how libvirt, QEMU or the host reacts",
            "the setting to use, or the command",
            "Evidence::Source",
            "the condition",
            "REPLACE: the mistake",
            "the remedy",
        ] {
            let has = found.iter().any(|line| line.contains(part));
            assert!(has, "{home} has no placeholder for {part}: {found:#?}");
        }
    }
}
