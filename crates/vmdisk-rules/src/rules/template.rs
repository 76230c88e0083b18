//! `template`

use vmdisk_fields::phrase;
use vmdisk_model::{DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
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
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "template",
    group: Group::Clarity,
    severity: Severity::Warning,
    since: "0.1.0",
    evidence: &[
        Evidence::Source("REPLACE: file and function in the source of QEMU or libvirt, or a document"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        if disk.name() != "REPLACE: the condition" {
            continue;
        }
        report
            .finding(
                FieldPath::Disk(index, DiskField::Disk),
                phrase!("{disk} REPLACE: the mistake"),
            )
            .help("REPLACE: the remedy");
    }
}
