//! What a finding's help tells people to write, QEMU accepts.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk::rules::{Consumer, Context, Text, check};
use vmdisk::source::apply_edits;
use vmdisk::{LintOptions, Source};
use vmdisk_fields::{Setting, Speller};
use vmdisk_model::Change;
use vmdisk_qemu::CommandLineSpeller;
use vmdisk_tests::fix_cases::{FixCase, by_syntax, fix_cases};
use vmdisk_tests::qemus;

use crate::fixes::{is_tried, ready, stand_ins, starts};

/// What the help of one finding names: the rule, settings that stand together, and how they are spelled.
struct Advice {
    rule: &'static str,
    settings: Vec<Setting>,
    spelled: Option<String>,
}

/// What the findings on a command line tell people to write.
fn advice_of(
    document: &vmdisk_qemu::Document,
    text: &str,
    options: &LintOptions<'_>,
) -> Vec<Advice> {
    let context = Context {
        domain: &document.domain,
        target: &options.target,
        host: options.host,
        policy: options.policy,
        versioned_syntax: &[],
        names_missing: true,
        consumer: Consumer::Qemu,
    };
    let outcome = check(Text::CommandLine(document), &context);
    let speller = CommandLineSpeller { document, text };
    let mut advice = Vec::new();
    for finding in &outcome.findings {
        let mut groups = Vec::new();
        if let Some(help) = &finding.help {
            help.settings(&speller, &mut groups);
        }
        for settings in groups {
            advice.push(Advice {
                rule: finding.rule.name,
                settings: settings.to_vec(),
                spelled: speller.settings(settings),
            });
        }
    }
    advice
}

/// The text with some settings; `None` if that takes more than values of options.
fn applied(document: &vmdisk_qemu::Document, text: &str, settings: &[Setting]) -> Option<String> {
    let set = |setting: &Setting| Change::set(setting.at, setting.value.clone());
    let changes: Vec<Change> = settings.iter().map(set).collect();
    let edits = vmdisk_qemu::edits_of_all(document, &changes).ok()?;
    Some(apply_edits(text, &edits).expect("the edits of one help do not overlap"))
}

/// Every `key=value` and JSON member of a spelled setting stands in the text.
fn says(text: &str, spelled: &str) -> bool {
    let dense = |text: &str| text.replace([' ', '\\'], "");
    let text = dense(text);
    let quoted = spelled
        .split('`')
        .enumerate()
        .filter(|(nth, _)| nth % 2 == 1);
    let mut settings = quoted
        .map(|(_, part)| part)
        .filter(|part| part.contains(['=', ':']));
    settings.all(|part| {
        let is_json = part.starts_with('"');
        let separator = if is_json { ", " } else { "," };
        // A member of an object that is there already stands inside it.
        part.split(separator).all(|pair| {
            let pair = dense(pair);
            let inner = pair
                .rsplit('{')
                .next()
                .unwrap_or_default()
                .trim_end_matches('}');
            text.contains(&pair) || text.contains(inner)
        })
    })
}

fn is_judged(case: &FixCase) -> bool {
    is_tried(case) && case.facts.len() < 2
}

#[test]
fn what_a_help_names_is_what_the_edits_write_and_qemu_accepts_it() {
    let builds = qemus("settings that helps name");
    let mut tried = Vec::new();
    let mut wrong = Vec::new();
    let mut elsewhere: BTreeMap<String, usize> = BTreeMap::new();
    let (mut named, mut started) = (0, 0);
    let mut seen = BTreeSet::new();
    for case in fix_cases().iter().filter(|case| is_judged(case)) {
        let read = vmdisk::read(&case.text).expect("cases are read");
        let Source::QemuCommandLine(document) = &read.source else {
            continue;
        };
        let advice = case.with_options(|options| advice_of(document, &case.text, options));
        for Advice {
            rule,
            settings,
            spelled,
        } in advice
        {
            named += 1;
            let Some(after) = applied(document, &case.text, &settings) else {
                *elsewhere.entry(format!("{rule}: {spelled:?}")).or_default() += 1;
                continue;
            };
            let told = format!(
                "{rule} in {} ({}): {spelled:?}\n{}---\n{after}",
                case.origin,
                case.syntax.name(),
                case.text
            );
            let Some(spelled) = spelled else {
                wrong.push(format!("can be written and not spelled: {told}"));
                continue;
            };
            if !says(&after, &spelled) {
                wrong.push(format!("the edits write something else: {told}"));
            }
            if !seen.insert((rule, case.syntax, spelled)) {
                continue;
            }
            tried.push(case.syntax);
            // Each text gets images of the formats that it names: a help about a format follows the facts of the image.
            let run = |text: &str| {
                let read = vmdisk::read(text).expect("a text with a setting is read");
                let folder = tempfile::tempdir().expect("a folder can be made");
                let files = stand_ins(read.domain(), folder.path())?;
                let text = ready(text, &files);
                let mut builds = builds.iter();
                let does_start =
                    |build| starts(build, case.syntax, &text, folder.path()) == Some(true);
                Some(builds.any(does_start))
            };
            let Some(is_started) = run(&after) else {
                continue;
            };
            if is_started {
                started += 1;
            } else if run(&case.text) == Some(true) {
                wrong.push(format!("no QEMU starts with it: {told}"));
            }
        }
    }
    println!(
        "{named} settings named, {} kinds tried ({}), {started} of them started",
        tried.len(),
        by_syntax(&tried)
    );
    for (what, count) in &elsewhere {
        println!("more than a value: {what} ({count} times)");
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(
        tried.len() > 50 && (builds.is_empty() || started > 30),
        "{} {started}",
        tried.len()
    );
}
