//! `format-mismatch`

use vmdisk_fields::{Phrase, phrase, quoted, setting};
use vmdisk_model::{FieldPath, Format, FormatConflict, ImageField, MadeAs};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The configured image format is not the format of the image.
    ///
    /// ## What it reports
    /// Compares the configured format of a disk's image, and of its configured backing images, with the image header, and
    /// in a script with the format that `qemu-img create` or `qemu-img convert` gives the image there.
    /// LUKS in a raw disk is not reported: the guest or QEMU encrypts it.
    ///
    /// ## Why it matters
    /// QEMU refuses a format that the image does not have, and the guest does not start. The reverse is worse: with
    /// `raw` on a qcow2 image the guest starts, sees the bytes of the container as its disk, and can destroy the image
    /// with its first write. If a guest wrote the header into its raw disk, `qcow2` would let it read any host file
    /// that QEMU can open. The tool cannot know which of the two is right, so it offers no fix.
    ///
    /// ## Use instead
    /// If you created the image, use its real format; `qemu-img info IMAGE` shows it. If a guest could have written the
    /// header, keep `raw`: probing or `qcow2` would open the host file that the guest chose.
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
    /// ```args,reported
    /// qemu-img create -f qcow2 web3.img 10G
    /// qemu-system-x86_64 -drive file=web3.img,if=virtio,cache=none,format=raw
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
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "format-mismatch",
    group: Group::DataSafety,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by("QEMU 7.2", "Image is not in qcow2 format", "block/qcow2.c, qcow2_do_open; virsh create with libvirt 9.0"),
        Evidence::measured("raw on a qcow2 image is accepted and starts, and the guest sees the container", "virsh of libvirt 9.0 with QEMU 7.2; QEMU 5.2, 10.0 and 11.1"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, _, image) in context.images() {
        for (depth, image) in image.chain().enumerate() {
            let (Some(written), Some(path)) = (image.format, image.host_path()) else {
                continue;
            };
            if !image.is_headed_by_its_format() {
                continue;
            }
            let at = FieldPath::Image(index, depth, ImageField::Format);
            let header = report.require_once(at, host::header_format(context, path));
            let header = header
                .flatten()
                .filter(|it| written.conflict_with(it).is_some());
            let made_as = match image.made_as {
                Some(MadeAs::Format(format)) => format.qemu_driver(),
                _ => None,
            };
            let Some(other) = header.or(made_as) else {
                continue;
            };
            let Some(conflict) = written.conflict_with(other) else {
                continue;
            };
            let of = if depth == 0 {
                ""
            } else {
                "a backing image of "
            };
            let finding = report.finding(
                at,
                phrase!(
                    "{of}{disk} is configured as {written}, but the image is {other}",
                    of,
                    written = written.as_str(),
                    other = other.to_owned(),
                ),
            );
            match header {
                Some(header) => finding
                    .label(phrase!(
                        "does not match the header of {path}",
                        path = quoted(path.to_owned())
                    ))
                    .related(
                        FieldPath::Image(index, depth, ImageField::Path),
                        match header {
                            "raw" => Phrase::from("has no image header"),
                            header => format!("begins with a {header} header").into(),
                        },
                    ),
                None => finding
                    .label("does not match the command that makes the image")
                    .note(format!(
                        "the same text makes the image as {other}, with `qemu-img`"
                    )),
            };
            match conflict {
                FormatConflict::Container => finding
                    .note("the guest sees the bytes of the container as its disk, and can overwrite them")
                    .help(phrase!(
                        "use {format} if the image was created as {header}; if a guest wrote that header into its raw disk, \
                         keep {current}: as {header} it could name any host file as its backing file",
                        format = as_setting(at, other),
                        header = other.to_owned(),
                        current = setting(at, written),
                    )),
                FormatConflict::Refused => finding
                    .note(format!("QEMU: `Image is not in {written} format` or similar; the guest does not start"))
                    .help(phrase!(
                        "use {format}, or the path of the {written} image",
                        format = as_setting(at, other),
                        written = written.as_str(),
                    )),
            };
        }
    }
}

/// The setting for the format of a header.
fn as_setting(at: FieldPath, header: &str) -> Phrase {
    match Format::of_qemu_driver(header) {
        Some(format) => phrase!("{format}", format = setting(at, format)),
        None => format!("the format {header}").into(),
    }
}
