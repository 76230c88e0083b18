//! `migration-io-uring-differs`

use vmdisk_facts::io_uring::IoUring;
use vmdisk_facts::{Answer, Capability};
use vmdisk_fields::{phrase, setting};
use vmdisk_model::{AioMode, Change, DiskField, FieldPath};
use vmdisk_rule::{Comparison, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::io_uring::{better, is_opened_by_path};

declare_rule! {
    /// A disk uses io_uring, which only some of the hosts allow.
    ///
    /// ## What it reports
    /// Compares the hosts that a guest may run on. Reports `io='io_uring'` if some hosts allow QEMU to use io_uring and
    /// others deny it. `io-uring-disabled` reports a disk that all hosts deny it to. It is a warning if QEMU starts
    /// anyway on every host that denies it.
    ///
    /// ## Why it matters
    /// The guest runs on one host and cannot migrate to another, because QEMU exits there. This shows at the first
    /// maintenance, or when a host has failed and its guests must start elsewhere.
    ///
    /// ## Use instead
    /// Use `io='threads'`, which works everywhere; for a block device with `cache='none'`, `native` works too. The
    /// guest sees no difference. Alternatively allow io_uring on all hosts: `sysctl kernel.io_uring_disabled=0`, which
    /// opens that kernel interface to all processes.
    ///
    /// ## Reported
    /// ```xml,reported,facts-xfs-nvme,facts-io-uring-disabled
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
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme,facts-btrfs-checksums-6.1
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
    /// With one host, `io-uring-disabled` reports it:
    /// ```xml,not-reported,facts-io-uring-disabled
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
    name: "migration-io-uring-differs",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::measured("QEMU 5.2 and 7.2 exit with `Unable to use io_uring: failed to init linux io_uring ring`, 11.1 with \
                      `aio=io_uring was specified, but is not available`", "each started where the kernel denies io_uring_setup; the destination of a migration starts QEMU in the same way"),
        Evidence::Source("Linux Documentation/admin-guide/sysctl/kernel.rst, io_uring_disabled (6.6)"),
    ],
    supersedes: &["io-uring-disabled"],
    check: Hosts(compare),
}

fn compare(comparison: &Comparison<'_>, report: &mut Report) {
    for (index, disk, image, _) in comparison.images_with_paths() {
        if disk.backend.aio != Some(AioMode::IoUring) || !is_opened_by_path(image) {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Aio);
        let mut answers = report.answers(comparison, at, |host| {
            IoUring::of(Ok(host.host), host.target).map(IoUring::denied)
        });
        let Some(allowing) = answers.remove(&None) else {
            continue;
        };
        if answers.is_empty() {
            continue;
        }
        let mut affected: Vec<usize> = answers.values().flatten().copied().collect();
        affected.sort_unstable();
        let starts_anyway = |number: &usize| {
            let target = comparison.hosts[*number].target;
            matches!(target.can(Capability::IoUringFallsBack), Answer::Yes(_))
        };
        let all_start = affected.iter().all(starts_anyway);
        let better = better(disk, image);
        let finding = report.finding(
            at,
            phrase!(
                "{disk} sets {io_uring}, which {allowing} allows and {denying} denies",
                io_uring = setting(at, AioMode::IoUring),
                allowing = comparison.names(&allowing),
                denying = comparison.names(&affected),
            ),
        );
        finding
            .label("not available on every host")
            .on_hosts(affected);
        for (why, hosts) in &answers {
            if let Some(why) = why {
                finding.note(format!("{}: {why}", comparison.names(hosts)));
            }
        }
        if all_start {
            finding
                .severity(Severity::Warning)
                .note("only a warning: QEMU starts there anyway, and uses threads");
        } else {
            finding.note("the guest neither starts there nor migrates there");
        }
        finding
            .help(phrase!(
                "use {better}; the guest sees no difference. Alternatively set kernel.io_uring_disabled to 0 on all hosts",
                better = setting(at, better),
            ))
            .fix(Fix::safe([Change::set(at, better)]));
    }
}
