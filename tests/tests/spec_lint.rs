//! Specs are linted: findings have places in the spec, fixes and allowances work, and the findings are those of the
//! configuration that is generated.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use vmdisk::model::Domain;
use vmdisk::plan::{SpecDocument, SpecMistake, SpecSpeller};
use vmdisk::rules::{Consumer, Context, Text, check};
use vmdisk::source::apply_edits;
use vmdisk::{
    AllowedBy, Diagnostic, Document, Facts, FixScope, Host, LintOptions, LintReport,
    PlannedDocument, Source, Target, fix, lint, read, write,
};
use vmdisk_fields::{Setting, Settings, Speller};
use vmdisk_model::{DiskField, FieldPath, FieldValue, Fields as _};
use vmdisk_tests::fix_cases::{Syntax, fix_cases};
use vmdisk_tests::fixtures;

/// Rules that report on one of spec and XML only, and the reason.
const DIFFERENCES: &[(&str, &str)] = &[
    (
        "image-denied-by-apparmor",
        "the rule reads the names in XML, and a spec has none",
    ),
    (
        "source-missing",
        "an image with a `size` in the spec is created first; XML says nothing about that",
    ),
    (
        "spec-refused",
        "nothing is generated for a host on which the spec cannot be planned",
    ),
    (
        "vhost-user-flushes-lost",
        "libvirt cannot express `config-wce=off`, which is planned and written for QEMU only",
    ),
];

fn texts(folder: &str, extension: &str) -> Vec<(String, String)> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(fixtures().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    paths.into_iter().map(read).collect()
}

fn specs() -> Vec<(String, String)> {
    let mut specs = texts("specs", "yaml");
    specs.extend(texts("specs/accepted", "yaml"));
    assert!(specs.len() > 40, "{}", specs.len());
    specs
}

/// No facts, and the facts of each host in the fixtures.
fn hosts() -> Vec<(String, Facts)> {
    let mut hosts = vec![("no facts".to_owned(), Facts::default())];
    for (name, text) in texts("facts", "json") {
        hosts.push((name, Facts::parse(&text).unwrap().facts));
    }
    assert!(hosts.len() > 20, "{}", hosts.len());
    hosts
}

/// Runs something with the options for each host.
fn on_each_host(mut run: impl FnMut(&str, &LintOptions)) {
    for (name, facts) in &hosts() {
        let options = LintOptions::default()
            .host((name != "no facts").then(|| Host::new(facts.clone())))
            .target(Target::from_facts(facts));
        run(name, &options);
    }
}

/// The lines of a text, and the disk that each belongs to.
fn disk_at(document: &Document, offset: usize) -> usize {
    let before = &document.text[..offset];
    before.matches("\n  - ").count() + before.matches("\n- ").count()
}

#[test]
fn findings_of_every_spec_have_places_in_it() {
    let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
    let mut count = 0;
    on_each_host(|host, options| {
        for (name, text) in specs() {
            let document = read(&text).unwrap_or_else(|failure| panic!("{name}: {failure}"));
            let report = lint(&document, options);
            for found in &report.diagnostics {
                let span = found.place.span;
                assert!(span.slice(&text).is_some(), "{name} on {host}: {found:?}");
                if let Some(disk) = &found.disk {
                    assert!(!span.is_empty(), "{name} on {host}: {found:?}");
                    // Lists of servers have dashes too.
                    if !text.contains("    - ") && !text.contains("disks: [") {
                        assert_eq!(
                            disk_at(&document, span.start),
                            disk.index + 1,
                            "{name} on {host}: {found:?}"
                        );
                    }
                }
                *rules.entry(found.rule.name).or_default() += 1;
                count += 1;
            }
        }
    });
    println!("{count} findings of {} rules: {rules:?}", rules.len());
    assert!(count > 500, "{count}");
}

/// Rules with the settings that they name.
fn named(report: &LintReport) -> BTreeSet<(&'static str, String)> {
    let found = report.diagnostics.iter();
    found
        .map(|found| (found.rule.name, format!("{:?}", found.at)))
        .collect()
}

#[test]
fn a_spec_has_the_findings_of_the_xml_that_is_generated_from_it() {
    let mut cases = 0;
    let hosts: BTreeMap<String, Facts> = hosts().into_iter().collect();
    let mut differences: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    on_each_host(|host, options| {
        for (name, text) in specs() {
            let document = read(&text).unwrap();
            let planned = options.planned(&document).expect("the text is a spec");
            let xml = write::libvirt_xml(planned.domain()).unwrap();
            let of_spec = named(&lint(&document, options));
            // The XML runs on the host with what the spec creates.
            let after = hosts.get(host).and_then(|facts| {
                let spec = SpecDocument::read(&text).unwrap();
                spec.plan(&text, facts, &Target::from_facts(facts)).after
            });
            let after = match after {
                Some(after) => options.clone().host(Host::new(after)),
                None => options.clone(),
            };
            let of_xml = named(&lint(&read(&xml).unwrap(), &after));
            for (rule, at) in of_spec.symmetric_difference(&of_xml) {
                let side = if of_spec.contains(&(rule, at.clone())) {
                    "spec"
                } else {
                    "XML"
                };
                differences
                    .entry(rule)
                    .or_default()
                    .insert(format!("{side} of {name} on {host}: {at}"));
            }
            cases += 1;
        }
    });
    println!("{cases} cases");
    differences.retain(|rule, _| DIFFERENCES.iter().all(|(listed, _)| listed != rule));
    let shown: Vec<_> = differences
        .iter()
        .map(|(rule, cases)| {
            format!(
                "{rule}: {} cases, such as {:?}",
                cases.len(),
                cases.iter().take(3).collect::<Vec<_>>()
            )
        })
        .collect();
    assert!(differences.is_empty(), "{}", shown.join("\n"));
}

#[test]
fn what_a_help_names_is_a_key_of_the_spec_and_the_planner_follows_it() {
    let (mut named, mut unspelled, mut applied) = (0, 0, 0);
    let mut wrong = BTreeSet::new();
    for case in fix_cases() {
        if case.syntax != Syntax::Spec || case.facts.len() > 1 {
            continue;
        }
        case.with_options(|options| {
            let document = options.planned(&read(&case.text).unwrap()).expect("a spec");
            let Source::Spec(source) = &document.source else {
                unreachable!("the text is a spec")
            };
            let PlannedDocument { spec, planned, .. } = &**source;
            let speller = SpecSpeller(&planned.domain);
            for Advice {
                rule,
                help,
                settings,
            } in advice(&planned.domain, options)
            {
                let Some(spelled) = speller.settings(&settings.set) else {
                    unspelled += 1;
                    continue;
                };
                named += 1;
                let changes = settings.changes();
                let Ok(edits) = spec.edits_of_all(&case.text, planned, &changes) else {
                    continue;
                };
                let text = apply_edits(&case.text, &edits).unwrap();
                let after = options
                    .planned(&read(&text).unwrap())
                    .expect("still a spec");
                let Source::Spec(after) = &after.source else {
                    unreachable!("still a spec")
                };
                let told = format!("{rule} in {}: {spelled}\n{text}", case.origin);
                // A key that the help removes is refused until it is gone.
                let is_told = |mistake: &&SpecMistake| {
                    let key = mistake.path.rsplit('.').next().unwrap_or_default();
                    help.contains(&format!("remove `{key}`"))
                };
                // The edit moves the places of the others.
                let is_same = |one: &SpecMistake, other: &SpecMistake| {
                    (&one.path, &one.message) == (&other.path, &other.message)
                };
                let is_new = |mistake: &&SpecMistake| {
                    !planned
                        .mistakes
                        .iter()
                        .any(|before| is_same(before, mistake))
                };
                let mut mistakes = after.planned.mistakes.iter();
                if let Some(mistake) = mistakes.find(|it| is_new(it) && !is_told(it)) {
                    wrong.insert(format!("{}: {told}", mistake.message));
                    continue;
                }
                if !after.planned.mistakes.is_empty() {
                    continue;
                }
                for Setting { at, value } in &settings.set {
                    let FieldPath::Disk(nth, field) = *at else {
                        continue;
                    };
                    let disk = &after.planned.domain.disks[nth];
                    // In the model it is a setting of the socket.
                    let is = match (field, disk.backend.socket()) {
                        (DiskField::Reconnect, Some(socket)) => {
                            socket.reconnect.map(FieldValue::from)
                        }
                        _ => disk.get(field),
                    };
                    if is.as_ref() != Some(value) {
                        wrong.insert(format!("planned as {is:?}: {told}"));
                    }
                }
                applied += 1;
            }
        });
    }
    println!("{named} settings named, {applied} applied, {unspelled} that a spec cannot express");
    let wrong: Vec<_> = wrong.into_iter().collect();
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(applied > 50, "{applied}");
}

/// Settings that stand together in the help of a finding.
struct Advice {
    rule: &'static str,
    help: String,
    settings: Settings,
}

/// What the findings about a guest tell people to write.
fn advice(domain: &Domain, options: &LintOptions) -> Vec<Advice> {
    let context = Context {
        domain,
        target: &options.target,
        host: options.host.as_ref().map(Host::index),
        policy: options.policy,
        versioned_syntax: &[],
        names_missing: true,
        open_fields: None,
        consumer: Consumer::Libvirt,
    };
    let speller = SpecSpeller(domain);
    let mut advice = Vec::new();
    for finding in check(Text::Spec, &context).findings {
        let Some(help) = &finding.details().help else {
            continue;
        };
        let mut groups = Vec::new();
        help.settings(&speller, &mut groups);
        advice.extend(groups.into_iter().map(|settings| Advice {
            rule: finding.rule.name,
            help: help.render(&speller),
            settings: settings.clone(),
        }));
    }
    advice
}

fn rules(found: &[Diagnostic]) -> Vec<&'static str> {
    found.iter().map(|found| found.rule.name).collect()
}

fn report(text: &str) -> LintReport {
    lint(&read(text).unwrap(), &LintOptions::default())
}

#[test]
fn mistakes_are_findings_and_the_other_disks_are_checked() {
    let text = "\
version: 1
disks:
- raw: {path: relative.img}
- qcow2: {path: /srv/b.qcow2}
  cache: nnone
- raw: {path: /srv/c.img}
  cache: unsafe
";
    let report = report(text);
    let refused: Vec<_> = report
        .diagnostics
        .iter()
        .filter(|found| found.rule.name == "spec-refused")
        .map(|found| {
            (
                found.place.span.slice(text).unwrap(),
                found.label.as_deref().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        refused,
        [
            ("relative.img", "disks[0].raw.path"),
            ("nnone", "disks[1].cache")
        ]
    );
    let unsafe_cache: Vec<_> = report
        .diagnostics
        .iter()
        .filter(|found| found.rule.name == "cache-unsafe")
        .collect();
    assert_eq!(unsafe_cache.len(), 1);
    assert_eq!(unsafe_cache[0].place.span.slice(text), Some("unsafe"));
    assert_eq!(unsafe_cache[0].place.start.line, 7);
    assert!(unsafe_cache[0].place.is_exact);
}

#[test]
fn the_examples_of_spec_refused_do_what_their_headings_say() {
    let rule = vmdisk::rules::find("spec-refused").unwrap();
    let counts: Vec<usize> = rule
        .examples()
        .iter()
        .map(|example| {
            let found = report(&example.text).diagnostics;
            rules(&found)
                .iter()
                .filter(|name| **name == rule.name)
                .count()
        })
        .collect();
    assert_eq!(counts, [2, 0]);
}

#[test]
fn a_text_that_is_not_yaml_cannot_be_read() {
    let failure = read("version: 1\ndisks: [\n").unwrap_err();
    assert!(failure.message.contains("unclosed bracket"), "{failure}");
    assert_eq!(failure.span.start, 18);
}

#[test]
fn a_fix_is_an_edit_of_one_key_in_block_and_in_flow_style() {
    for (before, after) in [
        (
            "version: 1\ndisks:\n- raw: {path: /a} # first\n  cache: unsafe # fast\n",
            "version: 1\ndisks:\n- raw: {path: /a} # first\n  cache: writeback # fast\n",
        ),
        (
            "{version: 1, disks: [{raw: {path: /a}, cache: unsafe}]}\n",
            "{version: 1, disks: [{raw: {path: /a}, cache: writeback}]}\n",
        ),
        (
            "{\"version\": 1, \"disks\": [{\"raw\": {\"path\": \"/a\"}, \"cache\": \"unsafe\"}]}\n",
            "{\"version\": 1, \"disks\": [{\"raw\": {\"path\": \"/a\"}, \"cache\": \"writeback\"}]}\n",
        ),
    ] {
        let fixed = fix(before, &LintOptions::default(), FixScope::Safe).unwrap();
        assert_eq!(*fixed.document.text, *after);
        assert!(!rules(&fixed.report.diagnostics).contains(&"cache-unsafe"));
    }
    // What an anchor names may be used by several disks.
    let shared = "version: 1\ndisks:\n- raw: {path: /a}\n  cache: &c unsafe\n- raw: {path: /b}\n  cache: *c\n";
    let fixed = fix(shared, &LintOptions::default(), FixScope::SafeAndUnsafe).unwrap();
    assert_eq!(*fixed.document.text, *shared);
}

#[test]
fn a_fixed_spec_in_json_is_json() {
    let options = LintOptions::default();
    let mut changed = 0;
    for (name, text) in specs() {
        let Ok(spec) = vmdisk::plan::Spec::from_yaml(&text) else {
            continue;
        };
        let mut json = serde_json::to_value(&spec).unwrap();
        for disk in json["disks"].as_array_mut().unwrap() {
            disk["cache"] = "unsafe".into();
            disk["detect-zeroes"] = "unmap".into();
            disk.as_object_mut().unwrap().remove("discard");
        }
        for json in [json.to_string(), format!("{json:#}")] {
            let fixed = fix(&json, &options, FixScope::SafeAndUnsafe);
            let fixed = fixed.unwrap_or_else(|failure| panic!("{name}: {failure}"));
            let after = fixed.document.text;
            if let Err(error) = serde_json::from_str::<serde_json::Value>(&after) {
                panic!("{name}: {error}\n{after}");
            }
            changed += usize::from(*after != json);
        }
    }
    assert!(changed > 20, "{changed}");
}

#[test]
fn an_allowance_covers_the_key_or_the_disk_or_the_spec_that_it_stands_at() {
    const ALLOWED: &str = "vmdisk: allow(cache-unsafe) scratch data";
    let disks = |top: &str, above: &str, behind_disk: &str, above_key: &str, behind_key: &str| {
        format!(
            "{top}version: 1\ndisks:\n{above}- raw: {{path: /a}}{behind_disk}\n{above_key}  cache: unsafe{behind_key}\n\
             - raw: {{path: /b}}\n  cache: unsafe\n"
        )
    };
    let (line, behind) = (format!("# {ALLOWED}\n"), format!(" # {ALLOWED}"));
    for (text, allowed) in [
        (disks("", "", "", "", ""), 0),
        (disks(&line, "", "", "", ""), 2),
        (disks("", &line, "", "", ""), 1),
        (disks("", "", &behind, "", ""), 1),
        (disks("", "", "", &format!("  {line}"), ""), 1),
        (disks("", "", "", "", &behind), 1),
    ] {
        let report = report(&text);
        let unsafe_caches = |found: &[Diagnostic]| {
            rules(found)
                .iter()
                .filter(|rule| **rule == "cache-unsafe")
                .count()
        };
        assert_eq!(unsafe_caches(&report.allowed), allowed, "{text}");
        assert_eq!(unsafe_caches(&report.diagnostics), 2 - allowed, "{text}");
        assert!(
            !rules(&report.diagnostics).contains(&"allowance-unused"),
            "{text}"
        );
        for found in report.allowed {
            let Some(AllowedBy::InFile { reason, .. }) = found.allowed_by else {
                panic!("{text}")
            };
            assert_eq!(reason.as_deref(), Some("scratch data"));
        }
    }
    let report = report(&disks("", "# vmdisk: allow(cache-unsaf)\n", "", "", ""));
    let found = rules(&report.diagnostics);
    assert!(
        found.contains(&"allowance-unknown-rule") && found.contains(&"allowance-without-reason"),
        "{found:?}"
    );
}

#[test]
fn the_guest_of_a_spec_depends_on_the_host() {
    let text = "version: 1\ndisks:\n- raw: {path: /srv/a.img}\n";
    let document = read(text).unwrap();
    let facts = |kind: &str| {
        let text = format!(
            "mounts: [{{id: m, point: /srv, fs: f}}]\nfilesystems: [{{id: f, kind: {kind}}}]\n"
        );
        Facts::parse(&text).unwrap().facts
    };
    let cache = |facts: &Facts| {
        let planned = document.planned_for(facts, &Target::default()).unwrap();
        planned.domain().disks[0].backend.cache
    };
    assert_ne!(cache(&facts("xfs")), cache(&facts("tmpfs")));
}
