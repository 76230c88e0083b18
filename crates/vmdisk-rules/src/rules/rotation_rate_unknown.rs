//! `rotation-rate-unknown`

use vmdisk_fields::phrase;
use vmdisk_model::{DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// The rotation rate is a reserved or invalid number.
    ///
    /// ## What it reports
    /// Reports a rotation rate from 2 to 1024, or above 65534; above 65535 it is an error.
    ///
    /// ## Why it matters
    /// The field has two bytes: 1 is a non-rotating disk, 1025 to 65534 are revolutions per minute, and all other
    /// values are reserved, so guests may interpret them in any way. libvirt does not check the number. QEMU refuses
    /// one that does not fit in two bytes.
    ///
    /// ## Use instead
    /// Use 1 for an SSD, or the revolutions per minute of a rotating disk. Without the setting the guest gets no
    /// rotation rate.
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
    name: "rotation-rate-unknown",
    group: Group::Clarity,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("500 starts without a warning; 70000 ends QEMU with `expects uint16_t`", "virsh create of libvirt 9.0 with QEMU 7.2"),
        Evidence::Source("libvirt docs/formatdomain.rst: 1 or 1025 to 65534; ACS-4, word 217 of IDENTIFY DEVICE"),
    ],
    check: Model(check),
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
                "does not fit in two bytes; QEMU refuses it",
            ),
        };
        report
            .finding(
                FieldPath::Disk(index, DiskField::RotationRate),
                phrase!("{disk} has the invalid rotation rate {rate}", rate,),
            )
            .severity(severity)
            .label(label)
            .help("use 1 for an SSD or 1025 to 65534 revolutions per minute, or remove it");
    }
}
