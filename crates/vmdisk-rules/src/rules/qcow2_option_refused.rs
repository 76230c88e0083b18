//! `qcow2-option-refused`

use vmdisk_facts::Capability;
use vmdisk_fields::phrase;
use vmdisk_model::{DiskField, FieldPath, Format, Switch};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A qcow2 option (`discard_no_unref`, `metadata_cache`) is set on an image of another format.
    ///
    /// ## What it reports
    /// Reports `discard_no_unref` and `metadata_cache` on formats other than qcow2, and `discard_no_unref` on a
    /// read-only disk. libvirt before 9.5 drops `discard_no_unref`; `unsupported-by-target` reports that.
    ///
    /// ## Why it matters
    /// Only qcow2 has clusters and metadata to cache. libvirt refuses the guest.
    ///
    /// ## Use instead
    /// Remove the option. If the image is qcow2, correct the format: `qemu-img info IMAGE` shows it.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'>
    ///     <metadata_cache>
    ///       <max_size unit='bytes'>1048576</max_size>
    ///     </metadata_cache>
    ///   </driver>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'>
    ///     <metadata_cache>
    ///       <max_size unit='bytes'>1048576</max_size>
    ///     </metadata_cache>
    ///   </driver>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' discard='unmap' discard_no_unref='on'/>
    ///   <source file='/srv/a.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    name: "qcow2-option-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("metadata cache max size control is supported only with qcow2 images", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        Evidence::refused_by_libvirt("'discard_no_unref' only works with qcow2 disk format", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("'discard_no_unref' is not compatible with read-only disk", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let image = disk.backend.image();
        let is_qcow2 = image.is_some_and(|image| image.format == Some(Format::Qcow2));
        if disk.backend.metadata_cache_size.is_some() && image.is_some() && !is_qcow2 {
            let at = FieldPath::Disk(index, DiskField::MetadataCacheSize);
            report
                .finding(
                    at,
                    phrase!(
                        "{disk} has {option}, but its format is not qcow2",
                        option = at
                    ),
                )
                .label("other formats have no metadata cache")
                .help(phrase!("remove {option}", option = at));
        }
        // libvirt 9.0 does not know the attribute, and ignores it.
        if disk.backend.discard_no_unref != Some(Switch::On)
            || context.can(Capability::LibvirtDiscardNoUnref).is_no()
        {
            continue;
        }
        let what = if !is_qcow2 {
            "its format is not qcow2"
        } else if disk.backend.is_read_only {
            "it is read-only"
        } else {
            continue;
        };
        let at = FieldPath::Disk(index, DiskField::DiscardNoUnref);
        report
            .finding(
                at,
                phrase!("{disk} has {option}, but {what}", option = at, what),
            )
            .label("only for writable qcow2 images")
            .help(phrase!("remove {option}", option = at));
    }
}
