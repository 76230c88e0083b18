//! `passthrough-option-refused`

use vmdisk_model::{Device, DiskField, FieldPath, ImageField, Sgio};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// An option for SCSI units of the host is set on another disk, or to what no kernel does.
    ///
    /// ## What it does
    /// Reports `rawio`, `sgio` and `<reservations>` without `device='lun'`, and `sgio='unfiltered'`.
    ///
    /// ## Why it matters
    /// The options say which SCSI commands reach the host; other disks pass none on. Linux dropped the unfiltered
    /// mode. libvirt refuses the guest.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk' rawio='yes'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='block' device='lun' rawio='yes'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/sdb'/>
    ///   <target dev='sda' bus='scsi'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "passthrough-option-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::refused_by_libvirt("unfiltered sgio is no longer supported", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
            Evidence::refused_by_libvirt("rawio can be used only with device='lun'", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
            Evidence::refused_by_libvirt("sgio can be used only with device='lun'", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
            Evidence::refused_by_libvirt("<reservations/> allowed only for lun devices", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let name = disk.name();
        let is_lun = disk.frontend.effective_device() == Device::Lun;
        if disk.frontend.sgio == Some(Sgio::Unfiltered) {
            report
                .finding(
                    FieldPath::Disk(index, DiskField::Sgio),
                    format!("`{name}` asks for a mode that no kernel has any more"),
                )
                .label("Linux filters the commands, always")
                .note("libvirt refuses the guest for it")
                .help("leave sgio out");
        }
        let has_reservations = disk
            .backend
            .image()
            .is_some_and(|image| image.reservations.is_some());
        for (is_set, field, word) in [
            (
                disk.frontend.rawio.is_some(),
                FieldPath::Disk(index, DiskField::RawIo),
                "rawio",
            ),
            (
                disk.frontend
                    .sgio
                    .is_some_and(|sgio| sgio != Sgio::Unfiltered),
                FieldPath::Disk(index, DiskField::Sgio),
                "sgio",
            ),
            (
                has_reservations,
                FieldPath::Image(index, 0, ImageField::Reservations),
                "<reservations>",
            ),
        ] {
            if is_set && !is_lun {
                report
                    .finding(
                        field,
                        format!("`{name}` has {word}, and is no SCSI unit of the host"),
                    )
                    .label("only for device='lun'")
                    .note("libvirt refuses the guest for it")
                    .help(format!("leave {word} out, or write device='lun'"));
            }
        }
    }
}
