//! `nfs-locks-stay`

use vmdisk_facts::{Fact, Mount};
use vmdisk_fields::{phrase, quoted};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The image of a disk is on NFS version 3, where its lock outlives a host that fails.
    ///
    /// ## What it reports
    /// Reports a disk that the guest can write, whose image is on an NFS mount of version 3 that locks on the server.
    ///
    /// ## Why it matters
    /// QEMU locks each image that it opens. Version 3 has no leases: when a host fails, the server keeps its locks until
    /// that host starts again and says so. Until then no other host starts the guest, with `Failed to get shared "write" lock`.
    /// In version 4 the server drops the locks of a client that is silent for the time of its lease, 90 seconds by default.
    ///
    /// ## Use instead
    /// Mount with `vers=4.2`, or have whatever starts the guest on another host release the locks on the server first. A mount
    /// with `nolock` has no such lock, and two hosts can write the image at once.
    ///
    /// ## Reported
    /// ```xml,reported,facts-unsafe-mounts
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/nfs3/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-unsafe-mounts
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/hard/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/nfs3/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "nfs-locks-stay",
    group: Group::Startup,
    severity: Severity::Advice,
    is_about_host: true,
    evidence: &[
        Evidence::Source("nfs(5), nolock and local_lock: version 3 locks by the NLM protocol; RFC 8881, 8.4: leases and the recovery of locks in version 4"),
        Evidence::Source("cloudstack issue 4024: after a host died, its guests could not start elsewhere until the locks were released on the server"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, .., path, facts) in host::kept_on(context, report, "mount options", host::is_file) {
        let at = host::image_of(index);
        let what = || format!("mount options of {path}");
        let mount = Context::known(facts.mount_of(path), what);
        let Some(Some(mount)) = report.require(at, mount) else {
            continue;
        };
        // Its own type, which version 4 mounts do not have.
        if mount.fstype.value().is_none_or(|kind| kind != "nfs") {
            continue;
        }
        let stay = Context::known(locks_stay(mount), what);
        if report.require(at, stay).flatten() != Some(true) {
            continue;
        }
        report
            .finding(
                at,
                phrase!(
                    "{disk} stays locked when its host fails: {point} is NFS version 3",
                    point = quoted(mount.point.clone()),
                ),
            )
            .label("on an NFS mount of version 3")
            .help("mount it with `vers=4.2`, where a lock ends with the lease of its host");
    }
}

/// True if the server keeps locks without a lease.
fn locks_stay(mount: &Mount) -> Fact<bool> {
    let version = match mount.option("vers") {
        Fact::Known(version) => Fact::Known(version.is_text("3")),
        fact => fact.and_then(|_| Fact::NotCollected),
    };
    let is_local = mount.option("local_lock");
    let is_local = is_local.value().is_some_and(|it| !it.is_text("none"));
    match mount.has_option("nolock") {
        Fact::Known(true) => Fact::Known(false),
        _ if is_local => Fact::Known(false),
        _ => version,
    }
}
