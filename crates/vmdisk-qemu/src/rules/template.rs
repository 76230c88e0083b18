//! `template`

use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::line::{Line, line_rule};

line_rule! {
    /// REPLACE: the mistake in one sentence, as a user would search for it.
    ///
    /// ## What it reports
    /// REPLACE: the settings that are reported, and the similar ones that are not.
    ///
    /// ## Why it matters
    /// REPLACE: how libvirt, QEMU or the host reacts, and since which version.
    ///
    /// ## Use instead
    /// REPLACE: the setting to use, or the command to run.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    name: "template",
    group: Group::Clarity,
    severity: Severity::Warning,
    since: "0.1.0",
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::Source("REPLACE: file and function in the source of QEMU or libvirt, or a document"),
    ],
    check: Text(check),
}

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    for (option, driver, _properties) in line.index.devices() {
        if driver != "REPLACE: the condition" {
            continue;
        }
        let message = "REPLACE: the mistake";
        let help = "REPLACE: the remedy";
        line.refuse(report, option, line.index.span(option), message, help);
    }
}
