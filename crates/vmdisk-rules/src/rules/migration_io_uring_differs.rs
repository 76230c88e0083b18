//! `migration-io-uring-differs`

use vmdisk_facts::{Answer, Capability};
use vmdisk_model::{AioMode, Change, DiskField, FieldPath};

use crate::comparison::Comparison;
use crate::io_uring::{better, denied, is_opened_by_path};
use crate::rule::declare_rule;
use crate::rules::compares_hosts;
use crate::{Evidence, Fix, Group, Report, Severity};

declare_rule! {
    /// A disk asks for io_uring, which only some of the hosts give.
    ///
    /// ## What it does
    /// Compares the hosts that a guest may run on. Reports `io='io_uring'` where some of them let QEMU have io_uring and
    /// others deny it. Where all deny it, `io-uring-disabled` says so. It is a warning where QEMU starts all the same on
    /// every host that denies it.
    ///
    /// ## Why it matters
    /// The guest runs where it was made, and cannot land where it migrates to: the QEMU that is started there for it exits.
    /// That is found out at the first maintenance, or when a host has failed and its guests are started elsewhere.
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
    /// With one host there is nothing to compare, and `io-uring-disabled` speaks.
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
    pub(super) static RULE = {
        name: "migration-io-uring-differs",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "QEMU 5.2 and 7.2 exit with `Unable to use io_uring: failed to init linux io_uring ring`, 11.1 with \
                          `aio=io_uring was specified, but is not available`",
                how: "each started where the kernel denies io_uring_setup; the QEMU that a guest migrates to is started alike",
            },
            Evidence::Source("Linux Documentation/admin-guide/sysctl/kernel.rst, io_uring_disabled (6.6)"),
        ],
        supersedes: &["io-uring-disabled"],
        check: compares_hosts,
        compare: compare,
    }
}

fn compare(comparison: &Comparison<'_>, report: &mut Report) {
    for (index, disk, image, _) in comparison.images_with_paths() {
        if disk.backend.aio != Some(AioMode::IoUring) || !is_opened_by_path(image) {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Aio);
        let mut answers = comparison.answers(report, at, |host| denied(host.host));
        let Some(given) = answers.remove(&None) else {
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
            format!(
                "`{}` has io='io_uring', which {} has and {} denies",
                disk.name(),
                comparison.names(&given),
                comparison.names(&affected),
            ),
        );
        finding
            .label("not to be had on every host")
            .on_hosts(affected);
        for (why, hosts) in &answers {
            if let Some(why) = why {
                finding.note(format!("{}: {why}", comparison.names(hosts)));
            }
        }
        if all_start {
            finding
                .severity(Severity::Warning)
                .note("a warning and no error: QEMU starts there all the same, and uses threads");
        } else {
            finding.note("the guest neither starts there nor migrates there");
        }
        finding
            .help(format!(
                "write io='{better}', which the guest does not see, or set kernel.io_uring_disabled to 0 on all hosts"
            ))
            .fix(Fix::safe([Change::set(at, better.as_wire())]));
    }
}
