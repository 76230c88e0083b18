//! `rotation-rate-unknown`

use vmdisk_model::{DiskField, FieldPath};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// The rotation rate is a number that stands for none.
    ///
    /// ## What it does
    /// Reports a rotation rate from 2 to 1024, and one above 65534; above 65535 as an error.
    ///
    /// ## Why it matters
    /// The field has two bytes: 1 is a disk without rotation, 1025 to 65534 are revolutions per minute, and the
    /// rest is reserved, so that the guest makes of it what it likes. libvirt checks none of it. QEMU refuses what
    /// does not fit.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='sata' rotation_rate='500'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='sata' rotation_rate='1'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "rotation-rate-unknown",
        group: Group::Clarity,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "500 starts without a word; 70000 ends QEMU with `expects uint16_t`",
                how: "virsh create of libvirt 9.0 with QEMU 7.2",
            },
            Evidence::Source("libvirt docs/formatdomain.rst: 1 or 1025 to 65534; ACS-4, word 217 of IDENTIFY DEVICE"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let Some(rate) = disk.frontend.rotation_rate else {
            continue;
        };
        let (severity, label) = match rate {
            0..=1 | 1025..=65534 => continue,
            2..=1024 | 65535 => (Severity::Warning, "a reserved number"),
            65536.. => (
                Severity::Error,
                "does not fit into two bytes, and QEMU refuses it",
            ),
        };
        report
            .finding(
                FieldPath::Disk(index, DiskField::RotationRate),
                format!("`{}` has the rotation rate {rate}", disk.name()),
            )
            .severity(severity)
            .label(label)
            .help("write 1 for an SSD, revolutions per minute from 1025 to 65534, or leave it out");
    }
}
