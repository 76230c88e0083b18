//! `source-kind-mismatch`

use vmdisk_facts::FileKind;
use vmdisk_fields::{phrase, setting};
use vmdisk_model::{DiskField, FieldPath, HostStorage, ImageField};
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

declare_rule! {
    /// A disk is told to be a file and is a device, or the other way round.
    ///
    /// ## What it does
    /// Reports `type='file'` with a path that is a block device or a directory, and `type='block'` with one that is
    /// a regular file or a directory; `driver=file` and `driver=host_device` on command lines.
    ///
    /// ## Why it matters
    /// QEMU looks, since 6.0, and does not start. Links count as what they lead to, so a link from an image
    /// directory to a volume needs `type='block'`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/web1-link'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-refused-images
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/srv/img/web1-link'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Without facts there is no telling.
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/web1-link'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "source-kind-mismatch",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "requires '/srv/img/web1-link' to be a regular file",
                source: "block/file-posix.c, raw_open_common (6.0)",
            },
            Evidence::Refused {
                by: "QEMU",
                text: "'host_device' driver requires '/srv/a.img' to be either a character or block device",
                source: "block/file-posix.c, raw_open_common",
            },
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        // A descriptor that is passed in is what it is.
        let Some(storage) = image
            .protocol
            .on_host()
            .filter(|_| image.host_path().is_some())
        else {
            continue;
        };
        let path = storage.path();
        let is_file = match storage {
            HostStorage::File(_) => true,
            HostStorage::Device(_) => false,
        };
        let at = FieldPath::Image(index, 0, ImageField::Path);
        let what = || format!("what {path} is");
        let host = context.host(what);
        let Some(host) = report.require(at, host) else {
            continue;
        };
        let kind = match host.file(path) {
            Some(file) if file.is_missing() => continue,
            Some(file) => Context::known(file.kind.as_ref(), what).map(|kind| kind.copied()),
            None if host.block_device(path).is_known() => Ok(Some(FileKind::Block)),
            None if host
                .directory(path)
                .is_some_and(|it| it.path == path && it.present.is_true()) =>
            {
                Ok(Some(FileKind::Directory))
            }
            None => Err(Missing::new(what(), "not collected")),
        };
        let Some(kind) = report.require(at, kind).flatten() else {
            continue;
        };
        let kind_at = FieldPath::Disk(index, DiskField::SourceType);
        let (word, help) = match (kind, is_file) {
            (FileKind::Block, true) => (
                "a block device",
                phrase!("use {block}", block = setting(kind_at, "block")),
            ),
            (FileKind::Character, true) => (
                "a character device",
                phrase!("use {block}", block = setting(kind_at, "block")),
            ),
            (FileKind::Directory, _) => ("a directory", "name the image in it".into()),
            (FileKind::Regular, false) => (
                "a regular file",
                phrase!("use {file}", file = setting(kind_at, "file")),
            ),
            _ => continue,
        };
        let said = if is_file { "a file" } else { "a device" };
        report
            .finding(
                at,
                format!(
                    "`{}` is told to be on {said}, and {path} is {word}",
                    disk.name()
                ),
            )
            .label(word)
            .help(help);
    }
}
