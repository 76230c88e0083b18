//! A help names only what its syntax has.

use std::collections::BTreeSet;

use vmdisk::plan::SpecSpeller;
use vmdisk::rules::{Consumer, Context, Finding, RULES, Text, check};
use vmdisk::{LintOptions, Source, lint, read};
use vmdisk_fields::Speller;
use vmdisk_libvirt::XmlSpeller;
use vmdisk_model::Domain;
use vmdisk_qemu::CommandLineSpeller;
use vmdisk_tests::fix_cases::{by_syntax, fix_cases};

/// The findings, and the helps among them that name a field or setting for which the syntax has no word.
fn unspelled(
    text: Text<'_>,
    context: &Context<'_>,
    speller: &dyn Speller,
) -> (usize, Vec<(&'static str, String)>) {
    let findings = check(text, context).findings;
    let told = |finding: &Finding| {
        let help = finding.details().help.as_ref()?;
        let is_spelled = help.spell(speller).is_some();
        (!is_spelled).then(|| (finding.rule.name, help.render(speller)))
    };
    (findings.len(), findings.iter().filter_map(told).collect())
}

fn context<'a>(domain: &'a Domain, options: &'a LintOptions, consumer: Consumer) -> Context<'a> {
    Context {
        domain,
        target: &options.target,
        host: options.host.as_ref().map(vmdisk::Host::index),
        policy: options.policy,
        versioned_syntax: &[],
        names_missing: true,
        open_fields: None,
        consumer,
    }
}

#[test]
fn a_help_names_only_what_its_syntax_has() {
    let mut tried = Vec::new();
    let mut count = 0;
    let mut wrong = BTreeSet::new();
    for case in fix_cases().iter().filter(|case| case.facts.len() < 2) {
        let read = read(&case.text).expect("cases are read");
        let (found, unspelled) = case.with_options(|options| match &read.source {
            Source::LibvirtXml(document) => unspelled(
                Text::Xml(document, &case.text),
                &Context {
                    versioned_syntax: &document.versioned_syntax,
                    ..context(&document.domain, options, Consumer::Libvirt)
                },
                &XmlSpeller(&document.domain),
            ),
            Source::QemuCommandLine(document) => unspelled(
                Text::CommandLine(document),
                &context(&document.domain, options, Consumer::Qemu),
                &CommandLineSpeller {
                    document,
                    text: &case.text,
                },
            ),
            Source::Spec(_) => {
                let planned = options.planned(&read).expect("the text is a spec");
                let domain = planned.domain();
                let context = context(domain, options, Consumer::Libvirt);
                unspelled(Text::Spec, &context, &SpecSpeller(domain))
            }
        });
        tried.push(case.syntax);
        count += found;
        for (rule, help) in unspelled {
            let name = case.syntax.name();
            wrong.insert(format!("{rule} in {} ({name}): {help}", case.origin));
        }
    }
    println!(
        "{} texts ({}), {count} findings",
        tried.len(),
        by_syntax(&tried)
    );
    let wrong: Vec<_> = wrong.into_iter().collect();
    assert!(
        wrong.is_empty(),
        "{} helps:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count > 2000, "{count}");
}

#[test]
fn the_pages_show_each_kind_of_fix_that_a_rule_offers() {
    let mut offered = BTreeSet::new();
    for case in fix_cases() {
        let report = case.with_options(|options| lint(&read(&case.text).unwrap(), options));
        for finding in report.diagnostics {
            if let Some(fix) = finding.fix {
                offered.insert((finding.rule.name, fix.applicability.as_str()));
            }
        }
    }
    let shown = RULES.iter().flat_map(|rule| {
        let kinds = rule.fixes().into_iter();
        kinds.map(|kind| (rule.name, kind.as_str()))
    });
    let shown: BTreeSet<_> = shown.collect();
    let idle: Vec<_> = shown.difference(&offered).collect();
    assert!(idle.is_empty(), "no case has the fix: {idle:?}");
    // Facts that speak against a safe fix make it one that needs consent.
    let is_shown = |(rule, kind): &(&'static str, &'static str)| {
        shown.contains(&(*rule, *kind)) || shown.contains(&(*rule, "safe"))
    };
    let new: Vec<_> = offered.iter().filter(|it| !is_shown(it)).collect();
    assert!(new.is_empty(), "no page shows the fix: {new:?}");
}
