//! `qcow2-option-refused`

use vmdisk_facts::Version;
use vmdisk_model::{DiskField, FieldPath, Format, Switch};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// An option of qcow2 is set on another format.
    ///
    /// ## What it does
    /// Reports `discard_no_unref` and `metadata_cache` on formats other than qcow2, and `discard_no_unref` on a
    /// read-only disk.
    ///
    /// ## Why it matters
    /// The other formats have no such thing. libvirt refuses the guest.
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
    pub(super) static RULE = {
        name: "qcow2-option-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::refused_by_libvirt("metadata cache max size control is supported only with qcow2 images", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("'discard_no_unref' only works with qcow2 disk format", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
            Evidence::refused_by_libvirt("'discard_no_unref' is not compatible with read-only disk", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let name = disk.name();
        let image = disk.backend.image();
        let is_qcow2 = image.is_some_and(|image| image.format == Some(Format::Qcow2));
        if disk.backend.metadata_cache_size.is_some() && image.is_some() && !is_qcow2 {
            report
                .finding(
                    FieldPath::Disk(index, DiskField::MetadataCacheSize),
                    format!("`{name}` has a metadata cache, and its format is not qcow2"),
                )
                .label("only qcow2 has metadata to cache")
                .note("libvirt refuses the guest for it")
                .help("leave metadata_cache out");
        }
        // libvirt 9.0 does not know the attribute, and drops it.
        if disk.backend.discard_no_unref != Some(Switch::On)
            || context.libvirt_is_before(Version(9, 5, 0)) == Some(true)
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
        report
            .finding(
                FieldPath::Disk(index, DiskField::DiscardNoUnref),
                format!("`{name}` is to keep discarded clusters, and {what}"),
            )
            .label("only for qcow2 images that are written")
            .note("libvirt refuses the guest for it")
            .help("leave discard_no_unref out");
    }
}
