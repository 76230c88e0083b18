//! `image-size-unaligned`

use vmdisk_model::{FieldPath, Format, ImageField, Protocol};

use crate::host;
use crate::rule::declare_rule;
use crate::{Confidence, Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// The size of an image is no multiple of what direct I/O moves.
    ///
    /// ## What it does
    /// Reports raw files opened with `cache='none'` or `directsync` whose size, rounded up to 512 bytes, is no
    /// multiple of the alignment that QEMU works with: 4096 bytes where the file system wants that, and where nothing
    /// is allocated yet.
    ///
    /// ## Why it matters
    /// The last bytes cannot be written past the page cache, and QEMU up to 10.0 does not start; 11.1 does. QEMU finds
    /// the alignment by reading the beginning of the file. In a hole every read succeeds, so it takes 4096 to be safe:
    /// a new sparse image is refused, and the same image is taken once its first block is written.
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
    /// Without facts there is no telling.
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/odd.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "image-size-unaligned",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "Image size is not a multiple of request alignment",
                source: "block/io.c, bdrv_co_write_req_prepare; up to 10.0",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

/// What QEMU takes for the alignment where it cannot find it out.
const SAFE: u64 = 4096;

/// The first version that takes such an image; 10.1 to 11.0 were not tried.
const MENDED: vmdisk_facts::Version = vmdisk_facts::Version(11, 1, 0);

fn check(context: &Context<'_>, report: &mut Report) {
    if context.target.qemu.is_some_and(|qemu| qemu >= MENDED) {
        return;
    }
    for (index, disk, image) in context.images() {
        let (Protocol::File { .. }, Some(path)) = (&image.protocol, image.host_path()) else {
            continue;
        };
        if image.format != Some(Format::Raw) || !disk.is_writable() || !disk.backend.is_direct() {
            continue;
        }
        let at = FieldPath::Image(index, 0, ImageField::Path);
        let what = || format!("the size of {path}");
        let Some(file) = report.require(at, host::file(context, path, what)) else {
            continue;
        };
        if file.is_missing() {
            continue;
        }
        let size = Context::known(file.size.as_ref(), what);
        let Some(size) = report.require(at, size).flatten().copied() else {
            continue;
        };
        let sectors = size.next_multiple_of(512);
        if sectors % SAFE == 0 {
            continue;
        }
        let is_hole = file.alloc.value() == Some(&0);
        let needs = if is_hole {
            SAFE
        } else {
            let what = || format!("the alignment of direct I/O on {path}");
            let known = Context::known(file.dio.off.as_ref(), what);
            let Some(needs) = report.require(at, known).flatten() else {
                continue;
            };
            *needs
        };
        if needs == 0 || sectors % needs == 0 {
            continue;
        }
        let why = if is_hole {
            "nothing is allocated, so QEMU cannot find the alignment out and takes 4096 bytes"
                .to_owned()
        } else {
            format!("direct I/O on {path} needs an alignment of {needs} bytes")
        };
        report
            .finding(
                at,
                format!(
                    "the image of `{}` has {size} bytes, which direct I/O cannot write to the end",
                    disk.name()
                ),
            )
            .note(why)
            .label(format!("no multiple of {needs}"))
            .confidence(if context.target.qemu.is_some() {
                Confidence::Certain
            } else {
                Confidence::Assumed
            })
            .note("QEMU up to 10.0 refuses it")
            .help(format!(
                "grow the file to {} bytes with the guest off: truncate -s {0} {path}",
                size.next_multiple_of(SAFE)
            ));
    }
}
