//! `passthrough-option-refused`

use vmdisk_fields::{phrase, setting};
use vmdisk_model::{Device, Disk, DiskField, FieldPath, HostStorage, ImageField, Sgio, TargetBus};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// An option for passed-through SCSI devices (`rawio`, `sgio`, `<reservations>`) is set on an emulated disk.
    ///
    /// ## What it reports
    /// Reports `rawio`, `sgio` and `<reservations>` without `device='lun'`, and `sgio='unfiltered'` on every disk.
    ///
    /// ## Why it matters
    /// The options control which SCSI commands of the guest reach the host's device; an emulated disk passes none on.
    /// No current Linux has the unfiltered mode. libvirt refuses the guest.
    ///
    /// ## Use instead
    /// Remove the option. If the guest needs SCSI commands of the host's device, pass the device through: use
    /// `type='block'` with `device='lun'` on bus scsi.
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
    name: "passthrough-option-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("unfiltered sgio is no longer supported", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("rawio can be used only with device='lun'", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("sgio can be used only with device='lun'", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("<reservations/> allowed only for lun devices", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let device = FieldPath::Disk(index, DiskField::Device);
        let sgio = FieldPath::Disk(index, DiskField::Sgio);
        let is_lun = disk.frontend.effective_device() == Device::Lun;
        if disk.frontend.sgio == Some(Sgio::Unfiltered) {
            report
                .finding(
                    sgio,
                    phrase!(
                        "{disk} disables the filter for SCSI commands, which Linux no longer supports"
                    ),
                )
                .label("Linux always filters the commands")
                .help(phrase!("remove {sgio}", sgio));
        }
        let has_filter = disk
            .frontend
            .sgio
            .is_some_and(|sgio| sgio != Sgio::Unfiltered);
        let has_reservations = disk
            .backend
            .image()
            .is_some_and(|image| image.reservations.is_some());
        for (is_set, at) in [
            (
                disk.frontend.rawio.is_some(),
                FieldPath::Disk(index, DiskField::RawIo),
            ),
            (has_filter, sgio),
            (
                has_reservations,
                FieldPath::Image(index, 0, ImageField::Reservations),
            ),
        ] {
            if !is_set || is_lun {
                continue;
            }
            let lun = setting(device, Device::Lun);
            report
                .finding(
                    at,
                    phrase!(
                        "{disk} has {option}, but is not a passed-through SCSI device",
                        option = at
                    ),
                )
                .label(phrase!("only with {lun}", lun = lun.clone()))
                .help(match can_be_lun(disk) {
                    true => phrase!("remove {option}, or use {lun}", option = at, lun),
                    false => phrase!("remove {option}", option = at),
                });
        }
    }
}

/// True for a SCSI disk on a device of the host.
fn can_be_lun(disk: &Disk) -> bool {
    let image = disk.backend.image();
    let is_on_device = image.is_some_and(|image| {
        image
            .protocol
            .on_host()
            .is_some_and(|storage| matches!(storage, HostStorage::Device(_)))
    });
    is_on_device && disk.frontend.effective_bus() == TargetBus::Scsi
}
