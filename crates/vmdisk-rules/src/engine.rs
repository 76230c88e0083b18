//! Runs all rules over one configuration.

use std::collections::BTreeSet;

use vmdisk_model::{DomainField, DomainType, FieldPath};

use crate::{Comparison, Context, Finding, Missing, NotChecked, RULES, Report};

/// What came of running all rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What they found, in the order of places and then of rules.
    pub findings: Vec<Finding>,
    /// What they could not look at.
    pub not_checked: Vec<NotChecked>,
}

/// Runs all rules over one configuration.
pub fn check(context: &Context<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    let domain_type = context.domain.domain_type.as_ref();
    let foreign = domain_type.filter(|domain_type| !domain_type.is_run_by_qemu());
    for rule in RULES {
        if rule.is_about_libvirt && !context.is_taken_by_libvirt() {
            continue;
        }
        let mut report = Report::new(rule);
        match foreign.filter(|_| !rule.is_about_text) {
            Some(domain_type) => is_about_qemu(domain_type, &mut report),
            None => (rule.check)(context, &mut report),
        }
        outcome.findings.append(&mut report.findings);
        outcome.not_checked.append(&mut report.not_checked);
    }
    drop_superseded(&mut outcome);
    outcome
        .findings
        .sort_by(|a, b| (a.at, a.rule.name).cmp(&(b.at, b.rule.name)));
    outcome
}

/// Compares the hosts that one configuration may run on; with fewer than two there is nothing to compare.
pub fn compare(comparison: &Comparison<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    let domain_type = comparison.domain.domain_type.as_ref();
    let is_foreign = domain_type.is_some_and(|domain_type| !domain_type.is_run_by_qemu());
    // That rules about QEMU have nothing to say about this guest is told for each host already.
    if comparison.hosts.len() < 2 || is_foreign {
        return outcome;
    }
    for rule in RULES {
        let Some(compare) = rule.compare else {
            continue;
        };
        let mut report = Report::new(rule);
        compare(comparison, &mut report);
        outcome.findings.append(&mut report.findings);
        outcome.not_checked.append(&mut report.not_checked);
    }
    outcome
}

/// What a rule about QEMU has to say about the guest of another hypervisor.
fn is_about_qemu(domain_type: &DomainType, report: &mut Report) {
    let what = format!("a guest of type '{}'", domain_type.as_wire());
    report.not_checked(
        FieldPath::Domain(DomainField::DomainType),
        Missing::new(what, Missing::NOT_QEMU),
    );
}

/// One cause gives one finding: where a rule speaks about a disk, those it supersedes are silent.
fn drop_superseded(outcome: &mut Outcome) {
    let silenced: BTreeSet<(&str, Option<usize>)> = outcome
        .findings
        .iter()
        .flat_map(|finding| {
            let disk = finding.at.disk();
            finding
                .rule
                .supersedes
                .iter()
                .map(move |name| (*name, disk))
        })
        .collect();
    if silenced.is_empty() {
        return;
    }
    outcome
        .findings
        .retain(|finding| !silenced.contains(&(finding.rule.name, finding.at.disk())));
    outcome
        .not_checked
        .retain(|missed| !silenced.contains(&(missed.rule.name, missed.at.disk())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmdisk_facts::Target;
    use vmdisk_model::{CacheMode, Disk, Domain, Format, Frontend, Image, TargetBus};
    use vmdisk_source::{Problem, ProblemKind, Span};

    fn said_of_a_guest_of(word: &str) -> (Vec<&'static str>, Vec<NotChecked>) {
        let image = Image::file("/a.img", Format::Raw);
        let mut disk = Disk::new(Frontend::new("vda", TargetBus::Virtio), image);
        disk.backend.cache = Some(CacheMode::Unsafe);
        let domain = Domain {
            domain_type: Some(DomainType::from_wire(word)),
            disks: vec![disk],
            ..Domain::default()
        };
        let problems = [Problem {
            at: FieldPath::Disk(0, vmdisk_model::DiskField::Disk),
            kind: ProblemKind::UnknownElement,
            span: Span::new(0, 1),
            message: "unknown element".to_owned(),
            help: None,
            fix: Vec::new(),
        }];
        let target = Target::default();
        let outcome = check(&Context {
            problems: &problems,
            ..Context::new(&domain, &target)
        });
        let names = outcome.findings.iter().map(|finding| finding.rule.name);
        (names.collect(), outcome.not_checked)
    }

    #[test]
    fn rules_about_qemu_say_nothing_about_other_hypervisors_and_tell_so() {
        let (found, not_checked) = said_of_a_guest_of("xen");
        assert_eq!(found, ["unknown-element"]);
        assert!(
            not_checked
                .iter()
                .all(|missed| missed.missing.why == Missing::NOT_QEMU)
        );
        let about_qemu = RULES.iter().filter(|rule| !rule.is_about_text).count();
        assert_eq!(not_checked.len(), about_qemu);
    }

    #[test]
    fn accelerators_of_qemu_are_qemu() {
        for word in ["kvm", "qemu", "hvf"] {
            let (found, not_checked) = said_of_a_guest_of(word);
            assert!(found.contains(&"cache-unsafe"), "{word}: {found:?}");
            assert!(found.contains(&"unknown-element"), "{word}: {found:?}");
            assert!(
                not_checked
                    .iter()
                    .all(|missed| missed.missing.why != Missing::NOT_QEMU)
            );
        }
    }
}
