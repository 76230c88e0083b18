//! `format-mismatch`

use vmdisk_model::{FieldPath, Format, ImageField};

use crate::format_words::{Contradiction, contradiction};
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity, host};

declare_rule! {
    /// A disk names another format than its image has.
    ///
    /// ## What it does
    /// Compares the written format of a disk's image, and of the images below it that are written, with what
    /// the image's header says. LUKS in a raw disk is no contradiction: the guest or QEMU encrypts it.
    ///
    /// ## Why it matters
    /// A format that the image does not have is refused by QEMU, and the guest does not start. The other way
    /// around is worse: `raw` on a qcow2 image starts, the guest sees the container's bytes as its disk, and
    /// the first thing it writes may destroy the image. If it was the guest that wrote the header into its raw
    /// disk, then `qcow2` would let it read any file of the host that QEMU may open. The tool cannot know which
    /// of the two is right, so there is no fix.
    ///
    /// ## Reported
    /// ```xml,reported,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/img/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web2</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/web2.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Without facts there is no telling.
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "format-mismatch",
        group: Group::DataSafety,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU 7.2",
                text: "Image is not in qcow2 format",
                source: "block/qcow2.c, qcow2_do_open; virsh create with libvirt 9.0",
            },
            Evidence::Measured {
                figures: "raw on a qcow2 image is defined and starts, and the guest sees the container",
                how: "virsh of libvirt 9.0 with QEMU 7.2; QEMU 5.2, 10.0 and 11.1",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        for (depth, image) in image.chain().enumerate() {
            let (Some(written), Some(path)) = (image.format, image.host_path()) else {
                continue;
            };
            if !image.is_headed_by_its_format() {
                continue;
            }
            let at = FieldPath::Image(index, depth, ImageField::Format);
            let Some(header) = report.require(at, host::header_format(context, path)) else {
                // One missing fact is enough to say about one disk.
                break;
            };
            let Some(header) = header else { continue };
            let Some(contradiction) = contradiction(written, header) else {
                continue;
            };
            let of = if depth == 0 { "" } else { "an image below " };
            let finding = report.finding(
                at,
                format!(
                    "{of}`{}` is written as {written}, and the image is {header}",
                    disk.name()
                ),
            );
            finding
                .label(format!("not what the header of {path} says"))
                .related(
                    FieldPath::Image(index, depth, ImageField::Path),
                    match header {
                        "raw" => "has no header of an image format".to_owned(),
                        header => format!("begins with a {header} header"),
                    },
                );
            match contradiction {
                Contradiction::Container => finding
                    .note("the guest gets the bytes of the container instead of the disk in it, and can write over them")
                    .help(format!(
                        "write type='{}' if the image was made as {header}; if a guest wrote that header into its raw disk, keep raw: \
                         as {header} it could name any file of the host as its backing file",
                        Format::of_qemu_driver(header).map_or(header, |format| format.as_wire()),
                    )),
                Contradiction::Refused => finding
                    .note(format!("QEMU says `Image is not in {written} format` or the like, and the guest does not start"))
                    .help(format!("write the format the image has, or give the path of the {written} image")),
            };
        }
    }
}
