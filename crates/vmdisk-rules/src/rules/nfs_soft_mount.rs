//! `nfs-soft-mount`

use vmdisk_facts::{Fact, Mount};
use vmdisk_fields::{phrase, quoted};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The image of a disk is on an NFS mount with the option `soft`, so a slow server becomes lost writes.
    ///
    /// ## What it reports
    /// Reports a disk that the guest can write, whose image is on an NFS mount with `soft` or `softerr`.
    ///
    /// ## Why it matters
    /// With `soft`, the client gives up after `retrans` timeouts and fails the request. Data that was already in the
    /// page cache is lost, and a request of the guest becomes an I/O error that its file system may not survive. The
    /// manual of NFS warns of silent data corruption. With `hard`, which is the default, requests wait until the server
    /// answers again.
    ///
    /// ## Use instead
    /// Mount with `hard`: correct the options in `/etc/fstab` or of the storage pool, stop the guests, unmount and mount
    /// again. `soft` cannot be changed by a remount.
    ///
    /// ## Reported
    /// ```xml,reported,facts-unsafe-mounts
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/soft/web1.img'/>
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
    ///   <source file='/srv/soft/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "nfs-soft-mount",
    group: Group::DataSafety,
    severity: Severity::Error,
    is_about_host: true,
    evidence: &[
        Evidence::Source("nfs(5), soft / hard: a so-called \"soft\" timeout can cause silent data corruption in certain cases"),
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
        if !mount
            .fstype
            .value()
            .is_some_and(|kind| matches!(kind.as_str(), "nfs" | "nfs4"))
        {
            continue;
        }
        let gives_up = Context::known(gives_up(mount), what);
        if report.require(at, gives_up).flatten() != Some(true) {
            continue;
        }
        report
            .finding(
                at,
                phrase!(
                    "{disk} loses writes when the server of {point} does not answer in time",
                    point = quoted(mount.point.clone()),
                ),
            )
            .label("on an NFS mount with `soft`")
            .note("after the timeouts, the client drops the data of its page cache and returns an I/O error")
            .help("mount it with `hard`, which waits for the server; a remount cannot change this");
    }
}

/// True if requests fail after a timeout.
fn gives_up(mount: &Mount) -> Fact<bool> {
    match mount.has_option("softerr") {
        Fact::Known(true) => Fact::Known(true),
        _ => mount.has_option("soft"),
    }
}
