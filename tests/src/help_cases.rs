//! The settings that the helps of findings name, applied to the texts of [`fix_cases`](crate::fix_cases).

use vmdisk::facts::Version;
use vmdisk::rules::{Consumer, Context, Finding, Text, check};
use vmdisk::source::apply_edits;
use vmdisk::{LintOptions, Source};
use vmdisk_fields::{OpenVersions, Speller};
use vmdisk_libvirt::XmlSpeller;
use vmdisk_model::Change;
use vmdisk_qemu::CommandLineSpeller;

use crate::fix_cases::FixCase;

/// Settings that the help of one finding names together.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The rule.
    pub rule: &'static str,
    /// The help as users see it.
    pub help: String,
    /// The spelling of the settings; `None` if the syntax cannot express them.
    pub spelled: Option<String>,
    /// The text with the settings; `None` if that takes more than values of existing elements and options.
    pub after: Option<String>,
}

/// The advice in the findings on a text.
///
/// # Panics
/// If the text cannot be read.
pub fn advice_of(case: &FixCase) -> Vec<Advice> {
    let read = vmdisk::read(&case.text).expect("cases are read");
    let text = case.text.as_str();
    case.with_options(|options| match &read.source {
        Source::LibvirtXml(document) => {
            let context = Context {
                versioned_syntax: &document.versioned_syntax,
                ..context(&document.domain, options, Consumer::Libvirt)
            };
            let findings = check(Text::Xml(document, text), &context).findings;
            let speller = XmlSpeller(&document.domain);
            let apply =
                |changes: &[Change]| vmdisk_libvirt::edits_of_all(text, document, changes).ok();
            of_findings(&findings, text, options, &speller, &apply)
        }
        Source::QemuCommandLine(document) => {
            let context = context(&document.domain, options, Consumer::Qemu);
            let findings = check(Text::CommandLine(document), &context).findings;
            let speller = CommandLineSpeller { document, text };
            let apply = |changes: &[Change]| vmdisk_qemu::edits_of_all(document, changes).ok();
            of_findings(&findings, text, options, &speller, &apply)
        }
        Source::Spec(_) => Vec::new(),
    })
}

fn context<'a>(
    domain: &'a vmdisk_model::Domain,
    options: &'a LintOptions,
    consumer: Consumer,
) -> Context<'a> {
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

fn of_findings(
    findings: &[Finding],
    text: &str,
    options: &LintOptions,
    speller: &dyn Speller,
    edits: &dyn Fn(&[Change]) -> Option<Vec<vmdisk::source::Edit>>,
) -> Vec<Advice> {
    let open = OpenVersions {
        libvirt: options.target.libvirt.is_none(),
        qemu: options.target.qemu.is_none(),
    };
    let mut advice = Vec::new();
    for finding in findings {
        let Some(help) = &finding.details().help else {
            continue;
        };
        let mut groups = Vec::new();
        help.settings(speller, &mut groups);
        for settings in groups {
            let after = edits(&settings.changes()).map(|edits| {
                apply_edits(text, &edits).expect("the edits of one help do not overlap")
            });
            advice.push(Advice {
                rule: finding.rule.name,
                help: help.render_for(speller, open),
                spelled: speller.settings(&settings.set),
                after,
            });
        }
    }
    advice
}

/// The first release of a program that a help names: `QEMU 8.1` in `(libvirt 9.5 and QEMU 8.1 or later)`.
pub fn named_release(help: &str, program: &str) -> Option<Version> {
    let (before, _) = help.split_once(" or later)")?;
    let (_, inside) = before.rsplit_once('(')?;
    let (_, release) = inside.split_once(program)?;
    release.split_whitespace().next()?.parse().ok()
}
