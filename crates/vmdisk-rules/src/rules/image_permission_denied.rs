//! `image-permission-denied`

use vmdisk_facts::filesystem::FsKind;
use vmdisk_facts::{Fact, HostIndex};
use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{FieldPath, ImageField};
use vmdisk_rule::{Confidence, Context, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// QEMU's user may not open the image of a disk, and libvirt does not change the owner.
    ///
    /// ## What it reports
    /// Reports an image or a configured backing image that QEMU's user may not read, or that it may not write although the
    /// guest writes the disk, by owner, permission bits and access lists, if `dynamic_ownership = 0` is set in `qemu.conf`, or
    /// if the image is on NFS and belongs to `nobody` (65534): such a server does not let root change owners.
    /// `image-unreachable` reports directories. Labels of SELinux and profiles of AppArmor are not checked.
    ///
    /// ## Why it matters
    /// By default libvirt gives an image to QEMU's user before the guest starts. With `dynamic_ownership = 0`, which OpenNebula
    /// sets, it does not, and the guest does not start: `Could not open '/srv/img/web1.img': Permission denied`. The same
    /// happens on NFS that is exported with `root_squash`, the default of servers: `chown` fails, and libvirt goes on.
    ///
    /// ## Use instead
    /// Give the image to QEMU's user with `chown` (for NFS, on the server), let its group write it, or remove
    /// `dynamic_ownership = 0`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-dynamic-ownership-off
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,facts-dynamic-ownership-off
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/read-only.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// An image on NFS that root does not own:
    /// ```xml,reported,facts-nfs-root-squash
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/nfs/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-dynamic-ownership-off
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/web2.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// A disk that the guest only reads:
    /// ```xml,not-reported,facts-dynamic-ownership-off
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/read-only.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    /// libvirt changes the owner of this one:
    /// ```xml,not-reported,hidden,facts-image-permissions
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Files of a local file system are given to QEMU's user, and the server's mode may let it in:
    /// ```xml,not-reported,hidden,facts-nfs-root-squash
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,facts-nfs-root-squash
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/nfs/web2.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked, because the server may let root change the owner of a file that another user has:
    /// ```xml,not-checked,facts-nfs-root-squash
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/nfs/web3.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "image-permission-denied",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::measured("`Could not open '/tmp/perm/a.img': Permission denied` with mode 0600 and another owner", "QEMU 7.2 started as uid 65534"),
        Evidence::Source("libvirt src/security/security_dac.c: with `dynamic_ownership = 0` no owner is changed; OpenNebula issue 6408"),
        Evidence::Source("libvirt src/security/security_dac.c, virSecurityDACSetOwnershipInternal: `chown` that is not permitted is logged, and the guest goes on; exports(5): root_squash is the default, and root becomes 65534"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        for (depth, image) in image.chain().enumerate() {
            let Some(path) = image.host_path() else {
                continue;
            };
            let at = FieldPath::Image(index, depth, ImageField::Path);
            let Some(facts) = host::facts(context, report, at, "whom QEMU runs as") else {
                return;
            };
            let keeps = keeps_owner(facts, path);
            if let Ok(None) = keeps {
                continue;
            }
            let writes = depth == 0 && disk.is_writable();
            let Some(Some(denied)) = report.require(at, denied(facts, path, writes)) else {
                continue;
            };
            let Some(Some((note, help))) = report.require(at, keeps) else {
                continue;
            };
            let title = phrase!(
                "QEMU's user may not {denied} an image of {disk}: {path}",
                denied,
                path = quoted(path.to_owned()),
            );
            report
                .finding(at, title)
                .label("permission denied")
                .confidence(Confidence::Assumed)
                .note(note)
                .help(help);
        }
    }
}

/// The user that NFS servers make of root and of those they do not know.
const NOBODY: u32 = 65534;

/// The reason for which libvirt does not give an image to QEMU's user, with the remedy; `None` if it does.
fn keeps_owner(
    facts: &HostIndex<'_>,
    path: &str,
) -> Result<Option<(&'static str, &'static str)>, Missing> {
    if !changes_owners(facts) {
        return Ok(Some((
            "`dynamic_ownership = 0` in qemu.conf: libvirt does not give the image to QEMU's user",
            "give the image to QEMU's user with `chown`, or remove `dynamic_ownership = 0`",
        )));
    }
    let filesystem = facts.filesystem_of(path);
    let kind = filesystem.value().map(|it| &it.kind);
    if !matches!(kind, Some(FsKind::Nfs | FsKind::Nfs4)) {
        return Ok(None);
    }
    match facts.file(path).and_then(|file| file.uid.value()) {
        Some(&NOBODY) => Ok(Some((
            "it is on NFS and belongs to `nobody`: the server does not let root change the owner (`root_squash`)",
            "on the server, give the image to the number of QEMU's user with `chown`, or export it with `no_root_squash`",
        ))),
        _ => Err(Missing::new(
            format!("whether libvirt may give {path} to QEMU's user"),
            "the server of NFS decides it",
        )),
    }
}

/// False if the settings say that libvirt leaves the owner of images alone.
fn changes_owners(facts: &HostIndex<'_>) -> bool {
    let libvirt = facts.facts().libvirt.value();
    let settings = libvirt.and_then(|it| it.qemu_conf.value());
    // Unset, it is on.
    settings.is_none_or(|it| it.dynamic_ownership != Fact::Known(false))
}

/// What QEMU's user may not do; `None` if it may do all that the guest needs.
fn denied(
    facts: &HostIndex<'_>,
    path: &str,
    writes: bool,
) -> Result<Option<&'static str>, Missing> {
    let what = || format!("whether QEMU's user may open {path}");
    let Some(access) = host::qemu_access(facts, path, what)? else {
        return Ok(None);
    };
    if Context::known(access.read.clone(), what)? == Some(false) {
        return Ok(Some("read"));
    }
    let may_write = Context::known(access.write.clone(), what)?;
    Ok((writes && may_write == Some(false)).then_some("write"))
}
