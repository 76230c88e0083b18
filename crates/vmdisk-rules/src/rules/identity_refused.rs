//! `identity-refused`

use vmdisk_facts::Capability;
use vmdisk_fields::{self as fields, ValueLimits, phrase};
use vmdisk_model::{Disk, DiskField, FieldPath, Fields, TargetBus};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A serial number, WWN, vendor or product has characters or a length that libvirt refuses.
    ///
    /// ## What it reports
    /// Reports a serial number with characters other than letters, digits, space and `-_.+`, a WWN that is not 16
    /// hexadecimal digits, a vendor of more than 8 characters, a product of more than 16 (40 on other buses than SCSI
    /// since libvirt 11.0), and unprintable characters in vendor or product.
    ///
    /// ## Why it matters
    /// libvirt refuses the guest, because these values are written to a command line and to fields of fixed length.
    ///
    /// ## Use instead
    /// Use the allowed characters and lengths. A changed serial number or WWN changes the names in the guest's
    /// `/dev/disk/by-id`.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <serial>disk;1</serial>
    /// </disk>
    /// ```
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='scsi'/>
    ///   <wwn>5000c50015ea71a</wwn>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <serial>WD-1234 ab</serial>
    /// </disk>
    /// ```
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='scsi'/>
    ///   <wwn>5000c50015ea71ac</wwn>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='scsi'/>
    ///   <vendor>ACMÉ</vendor>
    /// </disk>
    /// ```
    name: "identity-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("driver serial '…' contains unsafe characters", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskSerial"),
        Evidence::refused_by_libvirt("Malformed wwn: ", "src/util/virutil.c, virValidateWWN"),
        Evidence::refused_by_libvirt("disk vendor is more than 8 characters", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("disk product is more than … characters", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("disk vendor is not printable string", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("disk product is not printable string", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let wrong = [
            (DiskField::Serial, "serial number"),
            (DiskField::Wwn, "WWN"),
            (DiskField::Vendor, "vendor"),
            (DiskField::Product, "product"),
        ];
        for (field, word) in wrong {
            let value = disk.get(field);
            let values = values_of(context, disk, field);
            let Some(what) = value.and_then(|value| values.refusal(&value)) else {
                continue;
            };
            let at = FieldPath::Disk(index, field);
            report
                .finding(at, phrase!("libvirt refuses the {word} of {disk}", word))
                .label(what)
                .help(phrase!(
                    "use another {word}, or remove {field}",
                    word,
                    field = at
                ));
        }
    }
}

fn values_of(context: &Context<'_>, disk: &Disk, field: DiskField) -> ValueLimits {
    let is_scsi = disk.frontend.effective_bus() == TargetBus::Scsi;
    let is_old = || context.can(Capability::LibvirtLongProduct).is_no();
    let is_short = field == DiskField::Product && (is_scsi || is_old());
    match fields::disk(field).values {
        ValueLimits::Text { letters, .. } if is_short => ValueLimits::Text { most: 16, letters },
        values => values,
    }
}
