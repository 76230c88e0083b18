//! `io-uring-disabled`

use vmdisk_facts::io_uring::IoUring;
use vmdisk_facts::{Answer, Basis, Capability};
use vmdisk_fields::{phrase, setting};
use vmdisk_model::{AioMode, Change, DiskField, FieldPath};
use vmdisk_rule::{Confidence, Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::io_uring::{better, is_opened_by_path};

declare_rule! {
    /// A disk uses io_uring, which the host denies or does not have.
    ///
    /// ## What it reports
    /// Reports `io='io_uring'` if `kernel.io_uring_disabled` is 2, or is 1 and `kernel.io_uring_group` is unset or a
    /// group without libvirt's QEMU user. Reports it too if the kernel has no io_uring: Linux before 5.1, and the
    /// kernels of RHEL 9.0 to 9.2 and its rebuilds. For QEMU 10.0 it is a warning, because that version starts.
    ///
    /// ## Why it matters
    /// RHEL 10 sets the sysctl to 2, RHEL 9.3 denies io_uring by default too, and many hardening guides recommend
    /// that. QEMU gets no ring from the kernel and exits; QEMU 7.2 then reports `Inappropriate ioctl for device`, which
    /// does not point to the sysctl. QEMU 10.0 starts, and uses threads from the first request on, with one line in
    /// the log.
    ///
    /// ## Use instead
    /// Use `io='threads'`, which always works; for a block device with `cache='none'`, `native` works too. The guest
    /// sees no difference. Alternatively allow io_uring on the host: `sysctl kernel.io_uring_disabled=0`, which opens
    /// that kernel interface to all processes.
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
    /// A warning, because this QEMU starts anyway:
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
    /// Only one group can use io_uring, and QEMU's user is not in it:
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
    /// The kernel is too old:
    /// ```xml,reported,kernel-4.18
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' io='io_uring'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
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
    /// A kernel without this setting allows io_uring; upstream, Linux has the setting since 6.6:
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
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' io='io_uring'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "io-uring-disabled",
    group: Group::Startup,
    severity: Severity::Error,
    is_about_host: true,
    evidence: &[
        Evidence::measured("QEMU 5.2 and 7.2 exit with `Unable to use io_uring: failed to init linux io_uring ring`, 11.1 with \
                      `aio=io_uring was specified, but is not available`; 10.0 starts and says \
                      `Unable to use linux io_uring, falling back to thread pool` at the first request", "each started where the kernel denies io_uring_setup"),
        Evidence::Source("QEMU 10.2.2 block/file-posix.c: refuses as 11.1 does"),
        Evidence::Source("Linux Documentation/admin-guide/sysctl/kernel.rst, io_uring_disabled (6.6)"),
        Evidence::Source("liburing issue 611: io_uring_setup fails with ENOSYS on RHEL 9.0 to 9.2"),
        Evidence::Source("liburing issue 989 and the release notes of RHEL 9.3: 5.14.0-362 has the setting, and denies io_uring by default"),
        Evidence::Source("kata-containers pull request 13803: RHEL 10 has kernel.io_uring_disabled=2"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        if disk.backend.aio != Some(AioMode::IoUring) || !is_opened_by_path(image) {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Aio);
        let host = context.host(|| "kernel.io_uring_disabled".to_owned());
        let verdict = IoUring::of(host, context.target);
        let Some(why) = report.require(at, verdict).and_then(IoUring::denied) else {
            continue;
        };
        let (severity, confidence, what_happens) = what_happens(context);
        let better = better(disk, image);
        report
            .finding(
                at,
                phrase!(
                    "{disk} sets {io_uring}, which is not available on this host",
                    io_uring = setting(at, AioMode::IoUring),
                ),
            )
            .label("QEMU gets no ring")
            .severity(severity)
            .confidence(confidence)
            .note(why)
            .note(what_happens)
            .help(phrase!(
                "use {better}; the guest sees no difference. Alternatively use a kernel with io_uring, and set kernel.io_uring_disabled to 0",
                better = setting(at, better),
            ))
            .fix(Fix::safe([Change::set(at, better)]));
    }
}

/// How the target's QEMU reacts.
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
