//! `source-kind-mismatch`

use vmdisk_facts::{Capability, FileKind, HostIndex};
use vmdisk_fields::{phrase, quoted, setting};
use vmdisk_model::{DevicePath, DevicePathKind, DiskField, FieldPath, HostStorage, ImageField};
use vmdisk_rule::{Confidence, Context, Evidence, Group, Missing, Report, Severity, declare_rule};

declare_rule! {
    /// A disk is configured as a file, but its path is a device, or the reverse.
    ///
    /// ## What it reports
    /// Reports `type='file'` with a path that is a block device, character device or directory, and `type='block'`
    /// with a path that is a regular file or directory; on command lines, the drivers `file` and `host_device` where they
    /// are written: QEMU chooses the right one otherwise. Without host facts, it reports `type='file'` with the name of a
    /// block device, such as `/dev/sda`, `/dev/VG/LV` or a link under `/dev/disk`.
    ///
    /// ## Why it matters
    /// QEMU 6.0 and later check the kind of the path, and do not start; for earlier ones it is advice. A symbolic link
    /// counts as its destination, so a link from an image directory to a logical volume needs `type='block'`.
    ///
    /// ## Use instead
    /// Use `type='block'` with `<source dev='…'/>` for a device, and `type='file'` with `<source file='…'/>` for a
    /// file; on command lines, `driver=host_device` and `driver=file`. `stat --dereference --format=%F PATH` prints
    /// the kind.
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
    /// The name of a logical volume needs no facts:
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-checked,hidden
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-checked,hidden
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/dev/shm/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-checked,hidden
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/dev/hugepages/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ```xml,reported,hidden,facts-layers
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/pipe'/>
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
    /// Without a driver, QEMU opens the device:
    /// ```args,not-reported,facts-refused-images
    /// qemu-system-x86_64 -machine q35 -drive file=/srv/img/web1-link,format=raw,if=virtio
    /// ```
    /// ```args,reported,hidden,facts-refused-images
    /// qemu-system-x86_64 -machine q35 -drive file.driver=file,file.filename=/srv/img/web1-link,format=raw,if=virtio
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/web1-link'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "source-kind-mismatch",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_qemu("requires '/srv/img/web1-link' to be a regular file", "block/file-posix.c, raw_open_common (6.0)"),
        Evidence::refused_by_qemu("'host_device' driver requires '/srv/a.img' to be either a character or block device", "block/file-posix.c, raw_open_common"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, _, image) in context.images() {
        // The kind of a passed file descriptor does not matter.
        let Some(storage) = image
            .protocol
            .on_host()
            .filter(|_| image.host_path().is_some())
        else {
            continue;
        };
        let path = storage.path();
        let is_file = matches!(storage, HostStorage::File(_));
        let at = FieldPath::Image(index, 0, ImageField::Path);
        let what = || format!("what {path} is");
        let found = context
            .host(what)
            .and_then(|host| kind_of(host, path, what));
        let is_named = found.is_err() && is_file && is_name_of_device(path);
        let kind = match found {
            Err(_) if is_named => Some(FileKind::Block),
            found => report.require(at, found).flatten(),
        };
        let Some(kind) = kind else {
            continue;
        };
        let kind_at = FieldPath::Disk(index, DiskField::SourceType);
        // Where no driver is written, QEMU chooses the one that fits.
        let is_chosen = context.open_fields.is_some_and(|it| it.contains(&kind_at));
        if is_chosen && !matches!(kind, FileKind::Directory | FileKind::Fifo) {
            continue;
        }
        let is_device = matches!(kind, FileKind::Block | FileKind::Character);
        let refuses = context.target.can(Capability::FileDriverRefusesDevices);
        let block = || phrase!("use {block}", block = setting(kind_at, "block"));
        let (word, help) = match (kind, is_file) {
            (FileKind::Block, true) => ("a block device", block()),
            (FileKind::Character, true) => ("a character device", block()),
            (FileKind::Directory, _) => ("a directory", "use the path of the image in it".into()),
            (FileKind::Fifo, _) => ("a named pipe", "use the path of an image".into()),
            (FileKind::Regular, false) => (
                "a regular file",
                phrase!("use {file}", file = setting(kind_at, "file")),
            ),
            _ => continue,
        };
        let configured = if is_file { "a file" } else { "a device" };
        let finding = report.finding(
            at,
            phrase!(
                "{disk} is configured as {configured}, but {path} is {word}",
                configured,
                path = quoted(path.to_owned()),
                word,
            ),
        );
        finding.label(word).help(help);
        if is_device && refuses.is_no() {
            finding
                .severity(Severity::Advice)
                .note("QEMU before 6.0 opens it; later releases refuse it");
        }
        if is_named {
            finding
                .confidence(Confidence::Assumed)
                .note("its name says so: the path was not looked at");
        }
    }
}

/// The kind of a path; `None` if it does not exist.
fn kind_of(
    host: &HostIndex<'_>,
    path: &str,
    what: impl Fn() -> String,
) -> Result<Option<FileKind>, Missing> {
    match host.file(path) {
        Some(file) if file.is_missing() => Ok(None),
        Some(file) => Context::known(file.kind.as_ref(), what).map(|kind| kind.copied()),
        None if host.block_device(path).is_known() => Ok(Some(FileKind::Block)),
        None if host
            .directory(path)
            .is_some_and(|it| it.path == path && it.present.is_true()) =>
        {
            Ok(Some(FileKind::Directory))
        }
        None => Err(Missing::new(what(), Missing::NOT_COLLECTED)),
    }
}

/// True for a name that only block devices have.
fn is_name_of_device(path: &str) -> bool {
    !matches!(DevicePath::new(path).kind(), DevicePathKind::Other)
}
