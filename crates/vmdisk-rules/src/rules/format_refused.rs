//! `format-refused`

use vmdisk_model::{DiskField, FieldPath, Format, Image, ImageField, Protocol};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// The format is a word that libvirt knows and QEMU has no driver for, or does not fit the source.
    ///
    /// ## What it does
    /// Reports the formats cow, dir, iso and luks anywhere in a chain, fat on anything but a directory, a directory
    /// with any other format, a directory that the guest may write, and shareable disks in a format that cannot be
    /// shared.
    ///
    /// ## Why it matters
    /// libvirt refuses the guest. An ISO image is raw: the bytes are the disk.
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
    pub(super) static RULE = {
        name: "format-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
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
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, top) in context.images() {
        let name = disk.name();
        for (depth, image) in top.chain().enumerate() {
            let is_writable = depth == 0 && disk.is_writable();
            let Some((what, help)) = wrong(image, is_writable) else {
                continue;
            };
            report
                .finding(
                    FieldPath::Image(index, depth, ImageField::Format),
                    format!("`{name}`: {what}"),
                )
                .label("QEMU has no driver that does this")
                .note("libvirt refuses the guest for it")
                .help(help);
        }
        let is_shareable_format = matches!(top.format, Some(Format::Raw) | None);
        if disk.backend.is_shareable && disk.is_writable() && !is_shareable_format {
            let format = top.format.map_or("raw", Format::as_wire);
            report
                .finding(
                    FieldPath::Disk(index, DiskField::Shareable),
                    format!("several guests are to write `{name}`, and its format is {format}"),
                )
                .label("only raw images can be shared")
                .related(
                    FieldPath::Image(index, 0, ImageField::Format),
                    "each guest keeps its own idea of the metadata",
                )
                .note("libvirt refuses the guest for it; two writers would destroy the image")
                .help("use a raw image or a block device, or leave <shareable/> out");
        }
    }
}

/// What is wrong with the format of an image, and what to write instead.
fn wrong(image: &Image, is_writable: bool) -> Option<(&'static str, &'static str)> {
    let is_directory = matches!(image.protocol, Protocol::Directory { .. });
    // What a volume is libvirt finds out when the guest starts.
    let may_be_directory = is_directory || matches!(image.protocol, Protocol::Volume(_));
    match image.format {
        Some(Format::Luks) => Some((
            "libvirt has no format luks: it is encryption of a raw image",
            "write type='raw', and <encryption format='luks'> in the source",
        )),
        Some(Format::Cow) => Some((
            "QEMU dropped the format cow long ago",
            "convert the image to qcow2",
        )),
        Some(Format::Dir) => Some((
            "a directory is a source, not a format",
            "write type='fat' beside <disk type='dir'>",
        )),
        Some(Format::Iso) => Some(("an ISO image has no format of its own", "write type='raw'")),
        Some(Format::Fat) if !may_be_directory => Some((
            "fat is made from a directory, and the source is none",
            "write <disk type='dir'> with <source dir='…'/>, or type='raw' for a FAT image",
        )),
        Some(Format::Fat) if is_writable && is_directory => Some((
            "the guest may not write to a directory that is shown as FAT",
            "add <readonly/>",
        )),
        Some(Format::Fat) => None,
        Some(_) | None if is_directory => Some((
            "a directory can only be shown as fat",
            "write <driver name='qemu' type='fat'/>",
        )),
        Some(_) | None => None,
    }
}
