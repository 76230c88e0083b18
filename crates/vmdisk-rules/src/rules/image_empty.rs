//! `image-empty`

use vmdisk_facts::FileKind;
use vmdisk_model::{Device, FieldPath, Format, ImageField, Protocol};

use crate::host;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A disk lies in a file of 0 bytes.
    ///
    /// ## What it does
    /// Reports raw disks whose file is empty. CD and floppy drives are left alone.
    ///
    /// ## Why it matters
    /// QEMU starts, and the guest sees a disk without a single sector. A file that `touch` made, or a copy that
    /// failed, looks like that.
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
    /// Without facts there is no telling.
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/empty.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "image-empty",
        group: Group::Clarity,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "the guest has a disk of 0 sectors and nothing is said",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let (Protocol::File { .. }, Some(path)) = (&image.protocol, image.host_path()) else {
            continue;
        };
        if disk.frontend.effective_device() != Device::Disk || image.format != Some(Format::Raw) {
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
                    format!(
                        "`{}` is a disk without a single sector: {path} is empty",
                        disk.name()
                    ),
                )
                .label("0 bytes")
                .help("give it a size: truncate -s SIZE, or qemu-img create -f raw");
        }
    }
}
