//! `read-only-filesystem`

use vmdisk_model::{FieldPath, ImageField, Protocol};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A disk that the guest writes lies on a file system that is mounted read-only.
    ///
    /// ## What it does
    /// Reports writable disks in files whose mount is read-only.
    ///
    /// ## Why it matters
    /// QEMU opens the file for writing and does not start.
    ///
    /// ## Reported
    /// ```xml,reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/ro/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/ro/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    /// Without facts there is no telling.
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/ro/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "read-only-filesystem",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "Could not open '/srv/ro/a.img': Read-only file system",
                source: "block/file-posix.c, raw_open_common",
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
        // What is not kept may be written elsewhere.
        if !disk.is_writable() || disk.backend.is_transient {
            continue;
        }
        let at = FieldPath::Image(index, 0, ImageField::Path);
        let what = || format!("how {path} is mounted");
        let mount = context
            .host(what)
            .and_then(|host| Context::known(host.mount_of(path), what));
        let Some(mount) = report.require(at, mount).flatten() else {
            continue;
        };
        let read_only = Context::known(mount.read_only(), what);
        if report.require(at, read_only).flatten() == Some(true) {
            report
                .finding(
                    at,
                    format!(
                        "`{}` is to be written, and {} is mounted read-only",
                        disk.name(),
                        mount.point
                    ),
                )
                .label("on a read-only file system")
                .help("mount it for writing, or write <readonly/>");
        }
    }
}
