//! `slice-beyond-storage`

use vmdisk_model::{Bytes, FieldPath, HostStorage, Image, ImageField, Slice};
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The part of a file or device that is the disk ends behind its end.
    ///
    /// ## What it does
    /// Holds `offset` and `size` of a slice (`<slice type='storage'>`, a raw node with both) to the size of the file or
    /// block device it is cut from.
    ///
    /// ## Why it matters
    /// QEMU does not start. Offsets that were written for another image, and files that have shrunk since, look like
    /// this; where the end is right by luck, the guest has somebody else's bytes.
    ///
    /// ## Reported
    /// ```xml,reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/plain.img'>
    ///     <slices>
    ///       <slice type='storage' offset='1048576' size='1073741824'/>
    ///     </slices>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```args,reported,facts-refused-images
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/img/plain.img \
    ///   -blockdev driver=raw,node-name=r0,file=f0,offset=2147483648,size=1048576 \
    ///   -device virtio-blk-pci,drive=r0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/plain.img'>
    ///     <slices>
    ///       <slice type='storage' offset='1048576' size='1072693248'/>
    ///     </slices>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Without facts there is no telling.
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/plain.img'>
    ///     <slices>
    ///       <slice type='storage' offset='1048576' size='1073741824'/>
    ///     </slices>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "slice-beyond-storage",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "has to be smaller or equal to the  actual size of the containing file",
                source: "block/raw-format.c, raw_apply_options",
            },
            Evidence::Refused {
                by: "QEMU",
                text: "cannot be greater than size of the containing file",
                source: "block/raw-format.c, raw_apply_options",
            },
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let Some(slice) = image.slice else { continue };
            let at = FieldPath::Image(index, depth, ImageField::Slice);
            let Some(size) = report.require(at, size_of(context, image)).flatten() else {
                continue;
            };
            // QEMU rounds a file up to a whole sector.
            let size = size.next_multiple_of(512);
            let Slice {
                offset,
                size: length,
            } = slice;
            if offset.checked_add(length).is_some_and(|end| end <= size) {
                continue;
            }
            let of = if depth == 0 { "" } else { "an image below " };
            let storage = image.host_path().unwrap_or_default();
            report
                .finding(
                    at,
                    format!(
                        "the part of {storage} that {of}`{}` is ends behind its end",
                        disk.name()
                    ),
                )
                .label(format!("{length} bytes from {offset} on"))
                .note(format!("{storage} has {size} bytes ({})", Bytes(size)))
                .help(
                    "write the offset and the size that the part really has, or none for the whole",
                );
        }
    }
}

/// How large the storage is; `None` if there is none, or it is not on this host.
fn size_of(context: &Context<'_>, image: &Image) -> Result<Option<u64>, Missing> {
    let Some(path) = image.host_path() else {
        return Ok(None);
    };
    let what = || format!("the size of {path}");
    match image.protocol.on_host() {
        Some(HostStorage::Device(_)) => match host::block_device(context, path)? {
            Some((_, device)) => Ok(Context::known(device.size.as_ref(), what)?.copied()),
            None => Ok(None),
        },
        Some(HostStorage::File(_)) => {
            let file = host::file(context, path, what)?;
            if file.is_missing() {
                return Ok(None);
            }
            Ok(Context::known(file.size.as_ref(), what)?.copied())
        }
        None => Ok(None),
    }
}
