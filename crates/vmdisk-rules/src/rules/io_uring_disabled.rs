//! `io-uring-disabled`

use vmdisk_facts::{Answer, Basis, Capability};
use vmdisk_model::{AioMode, Change, DiskField, FieldPath};

use crate::io_uring::{better, denied, is_opened_by_path};
use crate::rule::declare_rule;
use crate::{Confidence, Context, Evidence, Fix, Group, Report, Severity};

declare_rule! {
    /// A disk asks for io_uring on a host that denies it.
    ///
    /// ## What it does
    /// Reports `io='io_uring'` where `kernel.io_uring_disabled` is 2, or is 1 and `kernel.io_uring_group` names
    /// no group, or one that libvirt's QEMU user is not in. For QEMU 10.0 it is a warning: that one starts.
    ///
    /// ## Why it matters
    /// RHEL 10 ships with 2, and many hardening guides set it. QEMU gets no ring from the kernel and exits; the
    /// text it leaves says `Inappropriate ioctl for device` in 7.2, which leads nobody to the sysctl. QEMU 10.0
    /// starts, and uses threads from the first request on, with one line in the log. `threads` always works
    /// and the guest does not see the difference; on a block device with `cache='none'`, `native` does as
    /// well.
    ///
    /// ## Reported
    /// ```xml,reported,facts-io-uring-disabled
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='io_uring'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='threads'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// A warning, because this QEMU starts all the same.
    /// ```xml,reported,facts-io-uring-disabled,qemu-10.0
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='io_uring'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// One group gets io_uring, and QEMU's user is not in it.
    /// ```xml,reported,facts-io-uring-one-group
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='io_uring'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web2</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='io_uring'/>
    ///       <source file='/srv/img/web2.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Linux before 6.6 has no such setting.
    /// ```xml,not-reported,facts-btrfs-checksums-6.1
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='writeback' io='io_uring'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Without facts there is no telling.
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' io='io_uring'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "io-uring-disabled",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "QEMU 5.2 and 7.2 exit with `Unable to use io_uring: failed to init linux io_uring ring`, 11.1 with \
                          `aio=io_uring was specified, but is not available`; 10.0 starts and says \
                          `Unable to use linux io_uring, falling back to thread pool` at the first request",
                how: "each started where the kernel denies io_uring_setup",
            },
            Evidence::Source("QEMU 10.2.2 block/file-posix.c: refuses as 11.1 does"),
            Evidence::Source("Linux Documentation/admin-guide/sysctl/kernel.rst, io_uring_disabled (6.6)"),
            Evidence::Source("kata-containers pull request 13803: RHEL 10 has kernel.io_uring_disabled=2"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        if disk.backend.aio != Some(AioMode::IoUring) || !is_opened_by_path(image) {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Aio);
        let denied = context
            .host(|| "kernel.io_uring_disabled".to_owned())
            .and_then(denied);
        let Some(Some(why)) = report.require(at, denied) else {
            continue;
        };
        let (severity, confidence, what_happens) = what_happens(context);
        let better = better(disk, image);
        report
            .finding(
                at,
                format!("`{}` has io='io_uring', which this host denies", disk.name()),
            )
            .label("not to be had here")
            .severity(severity)
            .confidence(confidence)
            .note(why)
            .note(what_happens)
            .help(format!(
                "write io='{better}', which the guest does not see, or set kernel.io_uring_disabled to 0 on the host"
            ))
            .fix(Fix::safe([Change::set(at, better.as_wire())]));
    }
}

/// What the QEMU of the target does about it.
fn what_happens(context: &Context<'_>) -> (Severity, Confidence, String) {
    match context.target.can(Capability::IoUringFallsBack) {
        Answer::Yes(Basis::Probed) => (
            Severity::Warning,
            Confidence::Certain,
            "this QEMU starts, and uses threads from the first request on".to_owned(),
        ),
        Answer::Yes(Basis::Assumed(version)) => (
            Severity::Warning,
            Confidence::Assumed,
            format!("QEMU {version} starts, and uses threads from the first request on"),
        ),
        Answer::No(Basis::Probed) => (
            Severity::Error,
            Confidence::Certain,
            "this QEMU exits, and the guest does not start".to_owned(),
        ),
        Answer::No(Basis::Assumed(version)) => (
            Severity::Error,
            Confidence::Assumed,
            format!("QEMU {version} exits, and the guest does not start"),
        ),
        Answer::Unknown => (
            Severity::Error,
            Confidence::Certain,
            "QEMU exits, and the guest does not start; only 10.0 starts and uses threads"
                .to_owned(),
        ),
    }
}
