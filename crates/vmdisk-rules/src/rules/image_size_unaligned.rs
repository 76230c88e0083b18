//! `image-size-unaligned`

use vmdisk_facts::verdict::raw_end::{SAFE_ALIGNMENT, UnreachableEnd};
use vmdisk_fields::{command, phrase};
use vmdisk_model::{FieldPath, Format, ImageField, Protocol};
use vmdisk_rule::{Confidence, Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The size of a raw image is not a multiple of the direct I/O alignment.
    ///
    /// ## What it reports
    /// Reports raw files opened with `cache='none'` or `directsync` whose size, rounded up to 512 bytes, is not a
    /// multiple of the alignment that QEMU uses: the alignment of the file system, or 4096 bytes if no block of the
    /// file is allocated.
    ///
    /// ## Why it matters
    /// QEMU up to 10.0 cannot write the last bytes with direct I/O and does not start; 11.1 starts. QEMU detects the
    /// alignment by reading the beginning of the file. In a hole every read succeeds, so QEMU uses 4096 to be safe: it
    /// refuses a new sparse image and accepts the same image after its first block is written.
    ///
    /// ## Use instead
    /// Grow the file to a multiple of 4096 bytes while the guest is off: `truncate -s SIZE FILE`. The guest sees a
    /// slightly larger disk.
    ///
    /// ## Reported
    /// ```xml,reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/odd.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writeback'/>
    ///   <source file='/srv/img/odd.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/odd.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,facts-conditions
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/nearly-aligned.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,facts-conditions
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/unaligned.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,facts-conditions
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/sector-aligned.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "image-size-unaligned",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_qemu("Image size is not a multiple of request alignment", "block.c, bdrv_node_refresh_perm (7.2 and later), bdrv_check_perm (5.2)"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    if !UnreachableEnd::is_refused_by(context.target) {
        return;
    }
    for (index, disk, image) in context.images() {
        let (Protocol::File { .. }, Some(path)) = (&image.protocol, image.host_path()) else {
            continue;
        };
        let is_raw = host::format_in_use(context, image) == Ok(Format::Raw);
        if !is_raw || !disk.is_writable() || !disk.backend.is_direct() {
            continue;
        }
        let at = FieldPath::Image(index, 0, ImageField::Path);
        let file = host::file(context, path, || format!("the size of {path}"));
        let end = file.and_then(|file| UnreachableEnd::of(file, path, context.target));
        let Some(Some(end)) = report.require(at, end) else {
            continue;
        };
        let (size, needs) = (end.size, end.alignment);
        report
            .finding(
                at,
                phrase!(
                    "the image of {disk} has {size} bytes, not a multiple of {needs}, which direct I/O needs",
                    size,
                    needs,
                ),
            )
            .note(end.reason(path))
            .label(format!("not a multiple of {needs} bytes"))
            .confidence(if context.target.qemu.is_some() {
                Confidence::Certain
            } else {
                Confidence::Assumed
            })
            .note("QEMU up to 10.0 refuses it")
            .help(phrase!(
                "grow the file while the guest is off: {truncate}",
                truncate = command("truncate -s", &[&size.next_multiple_of(SAFE_ALIGNMENT).to_string(), path]),
            ));
    }
}
