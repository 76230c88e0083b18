//! Findings are spelled in the words of their text.

use std::collections::BTreeSet;

use vmdisk::rules::{Consumer, Context, FindingText, Text, check};
use vmdisk::{LintOptions, Source, lint, read};
use vmdisk_qemu::CommandLineSpeller;
use vmdisk_tests::fix_cases::{Syntax, by_syntax, fix_cases};

/// A text without what is quoted from a program: between backticks, of several words, and no element.
fn without_quotes(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let kept = parts.filter(|(nth, part)| {
        let is_quoted = nth % 2 == 1;
        !is_quoted || !part.contains(' ') || part.starts_with('<')
    });
    kept.map(|(_, part)| part).collect::<Vec<_>>().join(" ")
}

/// True if a text holds an element or an attribute of XML.
fn is_xml(text: &str) -> bool {
    let text = without_quotes(text);
    let has_element = text
        .match_indices('<')
        .any(|(at, _)| text[at + 1..].starts_with(|letter: char| letter.is_ascii_lowercase()));
    let has_attribute = text
        .match_indices("='")
        .any(|(at, _)| text[..at].ends_with(|letter: char| letter.is_ascii_alphanumeric()));
    has_element || has_attribute
}

/// The findings on a command line, in its words.
fn findings(
    document: &vmdisk_qemu::Document,
    text: &str,
    options: &LintOptions,
) -> Vec<(&'static str, FindingText)> {
    let context = Context {
        domain: &document.domain,
        target: &options.target,
        host: options.host.as_ref().map(vmdisk::Host::index),
        policy: options.policy,
        versioned_syntax: &[],
        names_missing: true,
        open_fields: None,
        consumer: Consumer::Qemu,
    };
    let outcome = check(Text::CommandLine(document), &context);
    let speller = CommandLineSpeller { document, text };
    let findings = outcome.findings.iter();
    findings
        .map(|finding| (finding.rule.name, finding.render(&speller)))
        .collect()
}

fn texts(found: &FindingText) -> impl Iterator<Item = &String> {
    let FindingText {
        title,
        label,
        related,
        notes,
        help,
    } = found;
    std::iter::once(title)
        .chain(label)
        .chain(related)
        .chain(notes)
        .chain(help)
}

#[test]
fn xml_is_recognized_and_program_output_is_not() {
    for text in [
        "use cache='none'",
        "use `cache='none'`",
        "add <readonly/>",
        "`<blockio a='1' b='2'/>`",
    ] {
        assert!(is_xml(text), "{text}");
    }
    for text in [
        "`io='native' needs either no disk cache`",
        "use `cache=none`",
        "a < b",
        "'x'",
    ] {
        assert!(!is_xml(text), "{text}");
    }
}

#[test]
fn findings_on_command_lines_hold_no_xml() {
    let mut tried = Vec::new();
    let mut count = 0;
    let mut wrong = BTreeSet::new();
    let mut examples = Vec::new();
    let cases = fix_cases();
    for case in cases.iter().filter(|case| case.facts.len() < 2) {
        let read = read(&case.text).expect("cases are read");
        let Source::QemuCommandLine(document) = &read.source else {
            continue;
        };
        tried.push(case.syntax);
        for (rule, found) in case.with_options(|options| findings(document, &case.text, options)) {
            count += 1;
            for text in texts(&found).filter(|text| is_xml(text)) {
                if wrong.insert(rule) {
                    examples.push(format!("{rule}: {text}"));
                }
            }
        }
    }
    println!(
        "{} command lines ({}), {count} findings",
        tried.len(),
        by_syntax(&tried)
    );
    assert!(examples.is_empty(), "{}", examples.join("\n"));
    assert!(count > 1000, "{count}");
}

#[test]
fn findings_on_specs_hold_no_xml_and_no_option_of_qemu() {
    let mut texts_read = 0;
    let mut count = 0;
    let mut wrong = BTreeSet::new();
    let cases = fix_cases();
    for case in cases.iter().filter(|case| case.syntax == Syntax::Spec) {
        texts_read += 1;
        let document = read(&case.text).expect("cases are read");
        for found in case.with_options(|options| lint(&document, options).diagnostics) {
            count += 1;
            let labels = found.related.iter().map(|related| &related.label);
            let texts = std::iter::once(&found.title)
                .chain(&found.label)
                .chain(labels)
                .chain(&found.notes)
                .chain(&found.help);
            for text in texts {
                if is_xml(text) || is_qemu_option(text) {
                    wrong.insert(format!("{}: {text}", found.rule.name));
                }
            }
        }
    }
    println!("{texts_read} specs, {count} findings");
    let wrong: Vec<_> = wrong.into_iter().collect();
    assert!(
        wrong.is_empty(),
        "{} texts:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count > 300, "{count}");
}

/// True if a text tells people to write an option of a command line.
fn is_qemu_option(text: &str) -> bool {
    let text = without_quotes(text);
    ["-device ", "-drive ", "-blockdev ", "-object "]
        .iter()
        .any(|option| text.contains(option))
}
