//! The linter's proposals for a guest, as pairs to measure.

use vmdisk::rules::{Group, Rule};
use vmdisk::source::apply_edits;
use vmdisk::{Document, FixScope, Host, LintOptions, Policy, Target, fix, lint, read};
use vmdisk_bench_runner::{LeftOut, Proposal};

use crate::stop::Stop;

/// The linter's proposals about speed, and the ones that cannot be measured.
#[derive(Debug, Default)]
pub(super) struct Proposals {
    pub(super) pairs: Vec<Proposal>,
    pub(super) left_out: Vec<LeftOut>,
}

/// Returns the guest before and after each fix of a finding about speed.
pub(super) fn of_guest(document: &Document, host: Option<Host>, target: &Target) -> Proposals {
    let options = LintOptions::default().host(host).target(target.clone());
    let report = lint(document, &options);
    let mut found = Proposals::default();
    for missed in report
        .not_checked
        .iter()
        .filter(|it| it.rule.group == Group::Performance)
    {
        let left_out = LeftOut {
            what: missed.rule.name.to_owned(),
            why: format!(
                "not checked: {}: {}",
                missed.missing.what, missed.missing.why
            ),
        };
        if !found.left_out.contains(&left_out) {
            found.left_out.push(left_out);
        }
    }
    for diagnostic in &report.diagnostics {
        if diagnostic.rule.group != Group::Performance {
            continue;
        }
        let mut leave_out = |why: &str| {
            found.left_out.push(LeftOut {
                what: format!("{}: {}", diagnostic.rule.name, diagnostic.title),
                why: why.to_owned(),
            });
        };
        let Some(disk) = &diagnostic.disk else {
            leave_out("the finding does not concern a single disk");
            continue;
        };
        let Some(fix) = &diagnostic.fix else {
            leave_out("the linter has no fix for it");
            continue;
        };
        let after = apply_edits(&document.text, &fix.edits)
            .ok()
            .and_then(|text| read(&text).ok());
        let Some(after) = after else {
            leave_out("the fix could not be applied");
            continue;
        };
        found.pairs.push(Proposal {
            rule: diagnostic.rule.name.to_owned(),
            disk: disk.index,
            before: document.domain().clone(),
            after: after.domain().clone(),
        });
    }
    found
}

/// Returns the example on a rule's page, before and after: the page's improved version if it has one,
/// otherwise the fixed example.
pub(super) fn of_rule(rule: &Rule) -> Result<Proposals, Stop> {
    if rule.group != Group::Performance {
        return Err(Stop::new(format!("{} is not about speed", rule.name))
            .help("`vmdisk explain --list` lists the subject of each rule"));
    }
    let examples = rule.examples();
    let of = |word: &str| examples.iter().find(|example| example.says(word));
    let nothing = || {
        Stop::new(format!(
            "the page of {} has no measurable example",
            rule.name
        ))
        .help(format!(
            "write the two disks as a plan; `vmdisk explain {}` shows the page",
            rule.name
        ))
    };
    let before = of("reported").ok_or_else(nothing)?;
    let before_document = read(&before.text).map_err(|_| nothing())?;
    let after = match of("fixed").or_else(|| of("not-reported")) {
        Some(after) => read(&after.text).map_err(|_| nothing())?,
        None => {
            let options = LintOptions::default().policy(Policy::Lab);
            fix(&before.text, &options, FixScope::SafeAndUnsafe)
                .map_err(|_| nothing())?
                .document
        }
    };
    let (one, other) = (before_document.domain(), after.domain());
    if one.disks.is_empty() || one.disks.len() != other.disks.len() {
        return Err(nothing());
    }
    let disk = (0..one.disks.len())
        .find(|index| one.disks[*index] != other.disks[*index])
        .unwrap_or(0);
    Ok(Proposals {
        pairs: vec![Proposal {
            rule: rule.name.to_owned(),
            disk,
            before: one.clone(),
            after: other.clone(),
        }],
        left_out: Vec::new(),
    })
}
