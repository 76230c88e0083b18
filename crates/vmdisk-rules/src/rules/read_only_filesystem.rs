//! `read-only-filesystem`

use vmdisk_facts::{BlockKind, Fact, File, HostIndex};
use vmdisk_fields::{Phrase, command, phrase, quoted, setting};
use vmdisk_model::{DiskField, FieldPath, FieldValue, ImageField, Protocol};
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

declare_rule! {
    /// A writable disk is on a read-only file system or device, or its file is immutable.
    ///
    /// ## What it reports
    /// Reports writable disks in files whose file system is mounted read-only, in files with the attribute `i` (immutable) or
    /// `a` (append-only), and on block devices that the host does not write, such as a loop device of `losetup -r`.
    ///
    /// ## Why it matters
    /// QEMU opens the image for writing and does not start: `Read-only file system`, `Operation not permitted`, or
    /// `The device is not writable: Permission denied`.
    ///
    /// ## Use instead
    /// Remount the file system (`mount -o remount,rw DIRECTORY`), or remove the attribute (`chattr -i IMAGE`). If the guest
    /// only reads the disk, use `<readonly/>`.
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
    /// ```xml,reported,hidden,facts-layers
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/loop5'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,facts-layers
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/immutable.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,facts-layers
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/append-only.img'/>
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
    is_about_host: true,
    evidence: &[
        Evidence::refused_by_qemu("Could not open '/srv/ro/a.img': Read-only file system", "util/osdep.c, qemu_open_internal"),
        Evidence::measured("`The device is not writable: Permission denied` on a loop device of losetup -r; `Operation not permitted` after chattr +i and +a", "QEMU 7.2 with -blockdev, ext4, Linux 6.18"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let Some(path) = image.host_path() else {
            continue;
        };
        // A transient disk is written to an overlay, which may be elsewhere.
        if !disk.is_writable() || disk.backend.is_transient {
            continue;
        }
        let at = FieldPath::Image(index, 0, ImageField::Path);
        let is_file = matches!(image.protocol, Protocol::File { .. });
        let refused = context
            .host(|| format!("whether {path} can be written"))
            .and_then(|host| refused(host, path, is_file));
        let Some(Some((reason, label, help))) = report.require(at, refused) else {
            continue;
        };
        report
            .finding(at, phrase!("{disk} is writable, but {reason}", reason))
            .label(label)
            .help(phrase!(
                "{help}, or use {read_only}",
                help,
                read_only = setting(FieldPath::Disk(index, DiskField::ReadOnly), FieldValue::Set),
            ));
    }
}

/// The reason why the host refuses writes to a path, with its label and remedy; `None` if it takes them.
fn refused(
    host: &HostIndex<'_>,
    path: &str,
    is_file: bool,
) -> Result<Option<(Phrase, &'static str, Phrase)>, Missing> {
    let device = host.block_device(path);
    if let Fact::Known(device) = device {
        return Ok(device.read_only.is_true().then(|| {
            let name = device.name().into_owned();
            let help = match &device.kind {
                BlockKind::Loop => {
                    phrase!(
                        "detach {name} and attach its file without `losetup -r`",
                        name = name.clone()
                    )
                }
                _ => phrase!(
                    "run {command}",
                    command = command("blockdev --setrw", &[&name])
                ),
            };
            let reason = phrase!("{name} is read-only", name = quoted(name));
            (
                reason,
                "QEMU says `The device is not writable: Permission denied`",
                help,
            )
        }));
    }
    if !is_file {
        return Ok(None);
    }
    let file = host.file(path);
    let flag = |flag: fn(&File) -> &Fact<bool>| file.is_some_and(|file| flag(file).is_true());
    for (is_set, word, letter) in [
        (flag(|file| &file.immutable), "immutable", 'i'),
        (flag(|file| &file.append_only), "append-only", 'a'),
    ] {
        if is_set {
            let reason = phrase!("{path} is {word}", path = quoted(path.to_owned()), word);
            let help = phrase!(
                "run {command}",
                command = command(&format!("chattr -{letter}"), &[path])
            );
            return Ok(Some((reason, "QEMU says `Operation not permitted`", help)));
        }
    }
    let what = || format!("mount options of {path}");
    let Some(mount) = Context::known(host.mount_of(path), what)? else {
        return Ok(None);
    };
    let read_only = Context::known(mount.read_only(), what)?;
    Ok((read_only == Some(true)).then(|| {
        let reason = phrase!(
            "{point} is mounted read-only",
            point = quoted(mount.point.clone())
        );
        (
            reason,
            "on a read-only file system",
            phrase!(
                "remount it read-write: {command}",
                command = command("mount -o remount,rw", &[&mount.point]),
            ),
        )
    }))
}
