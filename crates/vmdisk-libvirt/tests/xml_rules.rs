//! Rules about XML report with the exact place, and reading goes on.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use vmdisk_libvirt::{check, read};
use vmdisk_model::*;
use vmdisk_rule::{Context, Finding, Outcome};
use vmdisk_source::{Edit, apply_edits};

/// The findings of the rules about XML.
pub(crate) fn findings(text: &str) -> Vec<Finding> {
    let document = read(text).unwrap();
    let mut outcome = Outcome::default();
    let target = Default::default();
    let context = Context::new(&document.domain, &target);
    check(&document, text, &context, &mut outcome);
    outcome.findings
}

/// The edits of the fix of a finding.
pub(crate) fn edits_of(finding: &Finding) -> &[Edit] {
    &finding.fix.as_ref().unwrap().edits
}

#[test]
fn an_undeclared_prefix_is_reported_once_and_the_rest_is_read() {
    let text = "<domain type='kvm'><qemu:commandline><qemu:arg value='a'/></qemu:commandline>
        <devices><disk><source file='/a'/><target dev='vda' q:x='1'/><q:y/></disk></devices></domain>";
    let document = read(text).unwrap();
    let findings = findings(text);
    let found: Vec<_> = findings
        .iter()
        .map(|finding| {
            let span = finding.span.unwrap();
            (finding.rule.name, finding.at, span.slice(text).unwrap())
        })
        .collect();
    let (guest, disk) = (
        FieldPath::Domain(DomainField::Domain),
        FieldPath::Disk(0, DiskField::Disk),
    );
    let kind = "undeclared-prefix";
    assert_eq!(
        found,
        [
            (kind, guest, "qemu:commandline"),
            (kind, disk, "q:x"),
            (kind, disk, "q:y")
        ]
    );
    assert_eq!(document.domain.disks.len(), 1);
    let written = document.write().unwrap();
    for kept in [
        "<qemu:commandline><qemu:arg value='a'/></qemu:commandline>",
        "q:x='1'",
        "<q:y/>",
    ] {
        assert!(written.contains(kept), "{written}");
    }
    let fixed = apply_edits(text, edits_of(&findings[0])).unwrap();
    assert!(fixed.starts_with(
        "<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>"
    ));
    // Declared, it is other people's.
    assert_eq!(crate::xml_rules::findings(&fixed).len(), 2);
}

#[test]
fn a_guest_of_another_hypervisor_is_checked_by_the_rules_that_apply_to_it() {
    let of = |domain_type: &str| {
        let text = format!(
            "<domain type='{domain_type}'><q:a/><devices><interface><boot order='1'/></interface>\
             <disk><source file='/a'/><target dev='vda' bus='virtio'/><boot order='1'/></disk></devices></domain>"
        );
        let names = findings(&text).into_iter().map(|finding| finding.rule.name);
        names.collect::<Vec<_>>()
    };
    assert_eq!(of("kvm"), ["taken-by-other-device", "undeclared-prefix"]);
    assert_eq!(of("xen"), ["undeclared-prefix"]);
}

#[test]
fn a_document_that_forgot_its_text_has_no_findings_about_it() {
    let text = "<domain type='kvm'><q:a/></domain>";
    let mut document = read(text).unwrap();
    document.forget_text();
    let mut outcome = Outcome::default();
    let target = Default::default();
    let context = Context::new(&document.domain, &target);
    check(&document, text, &context, &mut outcome);
    assert_eq!(outcome.findings, []);
}
