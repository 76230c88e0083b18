//! The texts of findings: those of shown examples are on the pages, and those of hidden examples in a golden file.

use std::path::Path;

use vmdisk::rules::{Example, Finding, FindingText, RULES, Rule};
use vmdisk_fields::{OpenVersions, Speller};
use vmdisk_libvirt::XmlSpeller;
use vmdisk_qemu::CommandLineSpeller;

use super::{Document, REPORTED_BY_THE_FACADE, fixtures, run, target_of};

/// The finding of a reported example, in the words that `vmdisk lint` prints.
fn finding_of(rule: &Rule, example: &Example) -> (Finding, FindingText) {
    let (document, mut outcome) = run(rule, example, &example.text);
    outcome.findings.retain(|finding| finding.rule == rule);
    let finding = outcome.findings.pop().expect("the example is reported");
    let target = target_of(example);
    let has_hosts = example.value_of("facts-").is_some();
    let open = OpenVersions {
        libvirt: !has_hosts && target.libvirt.is_none(),
        qemu: !has_hosts && target.qemu.is_none(),
    };
    let render = |speller: &dyn Speller| {
        let mut text = finding.render(speller);
        text.help = finding
            .details()
            .help
            .as_ref()
            .map(|help| help.render_for(speller, open));
        text
    };
    let text = match &document {
        Document::Xml(document) => render(&XmlSpeller(&document.domain)),
        Document::CommandLine(document) => {
            let text = &example.text;
            render(&CommandLineSpeller { document, text })
        }
    };
    (finding, text)
}

/// All texts in the order of a report.
fn lines(finding: &Finding, text: FindingText) -> Vec<String> {
    let mut lines = vec![format!("[{}]: {}", finding.rule.name, text.title)];
    lines.extend(text.label);
    lines.extend(text.related);
    lines.extend(text.notes);
    lines.extend(text.help);
    lines
}

/// The examples that a rule about disks reports.
fn reported(is_hidden: bool) -> impl Iterator<Item = (&'static Rule, Example)> {
    let rules = RULES.iter().copied();
    let of_disks = rules.filter(|rule| !REPORTED_BY_THE_FACADE.contains(&rule.name));
    of_disks
        .flat_map(|rule| {
            rule.examples()
                .into_iter()
                .map(move |example| (rule, example))
        })
        .filter(|(_, example)| example.says("reported"))
        .filter(move |(_, example)| example.says("hidden") == is_hidden)
}

/// The words of a page, so that it does not matter where its lines end.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_page_has_the_texts_of_its_findings() {
    let mut missing = Vec::new();
    // A page compares hosts by their files' names.
    for (rule, example) in reported(false).filter(|(rule, _)| !rule.compares_hosts()) {
        let path = fixtures().join(format!("../docs/rules/{}.md", rule.name));
        let page = flat(&std::fs::read_to_string(path).expect("each rule has a page"));
        let (finding, text) = finding_of(rule, &example);
        for line in lines(&finding, text) {
            if !page.contains(&flat(&line)) {
                missing.push((rule.name, line));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "run `cargo xtask codegen`: {missing:#?}"
    );
}

#[test]
fn hidden_examples_have_their_recorded_texts() {
    let mut found = String::new();
    for (rule, example) in reported(true) {
        let (finding, text) = finding_of(rule, &example);
        let lines = lines(&finding, text).join("\n  ");
        let fix = if finding.fix.is_some() {
            "\n  (has a fix)"
        } else {
            ""
        };
        found.push_str(&format!("{}{lines}{fix}\n", finding.severity));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages/hidden.txt");
    if std::env::var_os("VMDISK_BLESS").is_some_and(|value| value == "yes") {
        std::fs::write(&path, &found).expect("the golden file is written");
    }
    let expected = std::fs::read_to_string(&path).expect("the golden file is there");
    assert_eq!(found, expected, "VMDISK_BLESS=yes writes the file");
}
