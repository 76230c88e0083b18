//! `image-empty`

use vmdisk_facts::FileKind;
use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{Device, FieldPath, Format, ImageField, Protocol};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The image file of a disk is empty (0 bytes).
    ///
    /// ## What it reports
    /// Reports raw disks whose file has 0 bytes. CD and floppy drives are not reported.
    ///
    /// ## Why it matters
    /// QEMU starts, and the guest sees a disk without sectors. A file created with `touch`, or a failed copy, is empty.
    ///
    /// ## Use instead
    /// Copy the image again, or give the file a size: `truncate -s SIZE FILE` or `qemu-img create -f raw FILE SIZE`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/empty.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/plain.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/empty.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/web1-link'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "image-empty",
    group: Group::Clarity,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("the guest has a disk of 0 sectors, without a message", "QEMU 5.2, 7.2, 10.0 and 11.1"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let (Protocol::File { .. }, Some(path)) = (&image.protocol, image.host_path()) else {
            continue;
        };
        if disk.frontend.effective_device() != Device::Disk
            || host::format_in_use(context, image) != Ok(Format::Raw)
        {
            continue;
        }
        let at = FieldPath::Image(index, 0, ImageField::Path);
        let what = || format!("the size of {path}");
        let Some(file) = report.require(at, host::file(context, path, what)) else {
            continue;
        };
        let is_other = matches!(file.kind.value(), Some(kind) if *kind != FileKind::Regular);
        if file.is_missing() || is_other {
            continue;
        }
        let size = Context::known(file.size.as_ref(), what);
        if report.require(at, size).flatten() == Some(&0) {
            report
                .finding(
                    at,
                    phrase!(
                        "the image of {disk} is empty: {path}",
                        path = quoted(path.to_owned()),
                    ),
                )
                .label("0 bytes")
                .note("the guest sees a disk without sectors")
                .help("give the file a size with `truncate -s SIZE` or `qemu-img create -f raw`");
        }
    }
}
