//! `format-refused`

use vmdisk_fields::{Phrase, phrase, setting};
use vmdisk_model::{DiskField, FieldPath, FieldValue, Format, Image, ImageField, Protocol};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// The image format is not supported by QEMU, or does not fit the source.
    ///
    /// ## What it reports
    /// Reports the formats cow, dir, iso and luks anywhere in a chain; fat on a source that is not a directory; a
    /// directory with another format; a directory that the guest can write; and shareable disks in a format that cannot
    /// be shared.
    ///
    /// ## Why it matters
    /// libvirt refuses the guest. An ISO image is raw: its bytes are the disk.
    ///
    /// ## Use instead
    /// Use `raw` for ISO images and for LUKS containers (with `<encryption format='luks'>`), and `fat` for a read-only
    /// directory. Convert cow images with an old QEMU that still reads them. Shareable disks need a raw image or a
    /// block device; a raw image has no internal snapshots.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='cdrom'>
    ///   <driver name='qemu' type='iso'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='sata'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <shareable/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='cdrom'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='sata'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    /// ```xml,not-reported
    /// <disk type='dir' device='disk'>
    ///   <driver name='qemu' type='fat'/>
    ///   <source dir='/srv/a'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    /// ```xml,not-checked,hidden
    /// <disk type='volume' device='disk'>
    ///   <driver name='qemu' type='fat'/>
    ///   <source pool='dirs' volume='a'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "format-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("unknown driver format value '…'", "src/conf/domain_conf.c, virDomainDiskDefDriverSourceParseXML"),
        Evidence::refused_by_libvirt("unknown storage source format '…'", "src/conf/domain_conf.c, virDomainStorageSourceParseBase"),
        Evidence::refused_by_libvirt("'cow' storage format is not supported", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        Evidence::refused_by_libvirt("'directory' storage format is not directly supported by QEMU, use 'dir' disk type instead", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        Evidence::refused_by_libvirt("storage format 'iso' is not directly supported by QEMU, use 'raw' instead", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        Evidence::refused_by_libvirt("storage format 'fat' is supported only with 'dir' storage type", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        Evidence::refused_by_libvirt("storage type 'dir' requires use of storage format 'fat'", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        Evidence::refused_by_libvirt("virtual FAT storage can't be accessed in read-write mode", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        Evidence::refused_by_libvirt("shared access for disk '…' requires use of supported storage format", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDisk"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let is_writable = depth == 0 && disk.is_writable();
            let at = FieldPath::Image(index, depth, ImageField::Format);
            let Some((what, help)) = report_refused(image, is_writable, at, index) else {
                continue;
            };
            report
                .finding(at, phrase!("{disk} {what}", what))
                .label("not supported")
                .help(help);
        }
        let is_shareable_format = matches!(top.format, Some(Format::Raw) | None);
        if disk.backend.is_shareable && disk.is_writable() && !is_shareable_format {
            let at = FieldPath::Disk(index, DiskField::Shareable);
            report
                .finding(
                    at,
                    phrase!(
                        "{disk} is shareable, but its format {format} cannot be shared",
                        format = top.format.map_or("raw", Format::as_str),
                    ),
                )
                .label("only raw images can be shared")
                .related(
                    FieldPath::Image(index, 0, ImageField::Format),
                    "each guest caches the metadata of this format",
                )
                .note("libvirt refuses the guest; two writers would destroy the image")
                .help(phrase!(
                    "use a raw image or a block device, or remove {shareable}",
                    shareable = at
                ));
        }
    }
}

/// The mistake in the format of an image, and the remedy.
fn report_refused(
    image: &Image,
    is_writable: bool,
    at: FieldPath,
    index: usize,
) -> Option<(&'static str, Phrase)> {
    let is_directory = matches!(image.protocol, Protocol::Directory { .. });
    // libvirt looks up volumes only when the guest starts.
    let may_be_directory = is_directory || matches!(image.protocol, Protocol::Volume(_));
    let raw = setting(at, Format::Raw);
    let fat = setting(at, Format::Fat);
    let read_only = setting(FieldPath::Disk(index, DiskField::ReadOnly), FieldValue::Set);
    Some(match image.format {
        Some(Format::Luks) => (
            "has format luks, which libvirt does not have: LUKS is encryption of a raw image",
            phrase!("use {raw} and encryption with the format luks", raw),
        ),
        Some(Format::Cow) => (
            "has format cow, which QEMU no longer supports",
            "convert the image to qcow2".into(),
        ),
        Some(Format::Dir) => (
            "has format dir, but a directory is a source and not a format",
            phrase!("use {fat} with a directory as the source", fat),
        ),
        Some(Format::Iso) => (
            "has format iso, but an ISO image is raw",
            phrase!("use {raw}", raw),
        ),
        Some(Format::Fat) if !may_be_directory => (
            "has format fat, but its source is not a directory",
            phrase!(
                "use a directory as the source, or {raw} for a FAT image",
                raw
            ),
        ),
        Some(Format::Fat) if is_writable && is_directory => (
            "shows a directory as FAT, which must be read-only",
            phrase!("use {read_only}", read_only),
        ),
        Some(Format::Fat) => return None,
        _ if is_directory => (
            "has a directory as its source, which needs format fat",
            if is_writable {
                phrase!(
                    "use {fat}, and {read_only}: QEMU does not write to it",
                    fat,
                    read_only
                )
            } else {
                phrase!("use {fat}", fat)
            },
        ),
        _ => return None,
    })
}
