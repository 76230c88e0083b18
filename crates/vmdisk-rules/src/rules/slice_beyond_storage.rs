//! `slice-beyond-storage`

use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{Bytes, FieldPath, HostStorage, Image, ImageField, Slice};
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The slice of a file or device that a disk uses ends after the end of that file or device.
    ///
    /// ## What it reports
    /// Compares the offset and size of a slice (`<slice type='storage'>`, or a raw node with `offset` and `size`) with
    /// the size of the file or block device.
    ///
    /// ## Why it matters
    /// QEMU does not start. Typical causes are offsets of another image, and a file that has become smaller. If the
    /// offset is also wrong, and only the end fits, the guest gets other data.
    ///
    /// ## Use instead
    /// Use the offset and size that the slice was created with. To use the whole file, remove the slice. To make the
    /// file large enough again, run `truncate --size=SIZE FILE`: the new end reads as zeros.
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
    /// Not checked without host facts:
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
    name: "slice-beyond-storage",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_qemu("has to be smaller or equal to the  actual size of the containing file", "block/raw-format.c, raw_apply_options"),
        Evidence::refused_by_qemu("cannot be greater than size of the containing file", "block/raw-format.c, raw_apply_options"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, _, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let Some(slice) = image.slice else { continue };
            let at = FieldPath::Image(index, depth, ImageField::Slice);
            let Some(size) = report.require(at, size_of(context, image)).flatten() else {
                continue;
            };
            // QEMU rounds the size of a file up to a whole sector.
            let size = size.next_multiple_of(512);
            let Slice {
                offset,
                size: length,
            } = slice;
            if offset.checked_add(length).is_some_and(|end| end <= size) {
                continue;
            }
            let of = if depth == 0 {
                ""
            } else {
                "a backing image of "
            };
            let path = quoted(image.host_path().unwrap_or_default().to_owned());
            report
                .finding(
                    at,
                    phrase!(
                        "the slice of {of}{disk} ends after the end of {path}",
                        of,
                        path = path.clone(),
                    ),
                )
                .label(format!("{length} bytes from offset {offset}"))
                .note(phrase!("{path} has {size} bytes ({readable})", path, size, readable = Bytes(size)))
                .help("correct the offset and size of the slice, or remove it to use the whole storage");
        }
    }
}

/// The size of the storage; `None` if it does not exist, or is not on this host.
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
