//! `read-only-filesystem`

use vmdisk_fields::{phrase, quoted, setting};
use vmdisk_model::{DiskField, FieldPath, FieldValue, ImageField, Protocol};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A writable disk is on a read-only file system.
    ///
    /// ## What it reports
    /// Reports writable disks in files whose file system is mounted read-only.
    ///
    /// ## Why it matters
    /// QEMU opens the file for writing and does not start.
    ///
    /// ## Use instead
    /// Remount the file system: `mount -o remount,rw DIRECTORY`. If the guest only reads the disk, use `<readonly/>`.
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
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/ro/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "read-only-filesystem",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::Refused {
            by: "QEMU",
            text: "Could not open '/srv/ro/a.img': Read-only file system",
            source: "util/osdep.c, qemu_open_internal",
        },
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let (Protocol::File { .. }, Some(path)) = (&image.protocol, image.host_path()) else {
            continue;
        };
        // A transient disk is written to an overlay, which may be elsewhere.
        if !disk.is_writable() || disk.backend.is_transient {
            continue;
        }
        let at = FieldPath::Image(index, 0, ImageField::Path);
        let what = || format!("mount options of {path}");
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
                    phrase!(
                        "{disk} is writable, but {point} is mounted read-only",
                        point = quoted(mount.point.to_string()),
                    ),
                )
                .label("on a read-only file system")
                .help(phrase!(
                    "remount it read-write, or use {read_only}",
                    read_only =
                        setting(FieldPath::Disk(index, DiskField::ReadOnly), FieldValue::Set),
                ));
        }
    }
}
