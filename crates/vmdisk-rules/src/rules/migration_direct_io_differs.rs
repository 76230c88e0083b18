//! `migration-direct-io-differs`

use vmdisk_facts::Verdict;
use vmdisk_model::{DiskField, FieldPath};

use crate::comparison::Comparison;
use crate::rule::declare_rule;
use crate::rules::compares_hosts;
use crate::{Evidence, Group, Missing, Report, Severity, host, remedy};

declare_rule! {
    /// What `O_DIRECT` does for a disk differs from host to host.
    ///
    /// ## What it does
    /// Compares the hosts that a guest may run on. Reports a disk that asks for `O_DIRECT` and that the guest writes, where the
    /// same path gives it on one host and buffers, refuses or endangers the writes on another. What is wrong on one host is
    /// said by the rule about it.
    ///
    /// ## Why it matters
    /// A guest that was measured on one host is several times as slow on the next, or takes the memory of that host for a
    /// second copy of its cache, or loses checksums there. Nothing in its configuration has changed, so that nobody looks at
    /// its disk.
    ///
    /// ## Reported
    /// ```xml,reported,facts-btrfs-checksums-6.1,facts-btrfs-checksums-6.18
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-btrfs-checksums-6.18,facts-btrfs-checksums-6.18
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Where the page cache is between anyway, there is no difference.
    /// ```xml,not-reported,facts-btrfs-checksums-6.1,facts-btrfs-checksums-6.18
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='writeback'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Where the facts of a host do not tell, nobody knows:
    /// ```xml,not-checked,facts-btrfs-checksums-6.1,facts-no-kvm
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    pub(super) static RULE = {
        name: "migration-direct-io-differs",
        group: Group::Performance,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "4 KiB random writes with libaio, IOPS: XFS 191565, btrfs NOCOW 59147, btrfs 13346, tmpfs and ext4 with data=journal buffered; \
                          on btrfs of Linux 6.1.192, 151 of 400 direct writes could not be read back, of 6.12.117 none",
                how: "measured for this project with fio 3.33 on loop files on Linux 6.18.44, 5 s each; and with a buffer changed during its write on booted kernels",
            },
        ],
        supersedes: &[],
        check: compares_hosts,
        compare: compare,
    }
}

fn compare(comparison: &Comparison<'_>, report: &mut Report) {
    for (index, disk, image, path) in comparison.images_with_paths() {
        if !disk.backend.is_direct() || !disk.is_writable() {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Cache);
        let mut because = vec![None; comparison.hosts.len()];
        let mut number = 0..;
        let answers = comparison.answers(report, at, |host| {
            let place = number.next();
            let context = host.alone(comparison.domain);
            let direct = host::direct_io(&context, image).unwrap_or_else(|| {
                let what = format!("what O_DIRECT does on {path}");
                Err(Missing::new(what, "it has no path on the host"))
            })?;
            if let Some(slot) = place.and_then(|place: usize| because.get_mut(place)) {
                *slot = Some(direct.because);
            }
            Ok(kind(direct.verdict))
        });
        if answers.len() < 2 {
            continue;
        }
        let affected = answers
            .iter()
            .filter(|(kind, _)| **kind != Kind::Direct)
            .flat_map(|(_, hosts)| hosts.iter().copied());
        let title = format!(
            "`{}` asks for O_DIRECT ({}), which does different things on its hosts",
            disk.name(),
            remedy::how_direct_is_asked(disk),
        );
        let finding = report.finding(at, title);
        finding
            .label("not the same on every host")
            .on_hosts(affected);
        for (kind, hosts) in &answers {
            let because = hosts.first().and_then(|first| because[*first].as_deref());
            finding.note(format!(
                "{}: {}{}",
                comparison.names(hosts),
                kind.words(),
                because.map_or_else(String::new, |because| format!(" ({because})")),
            ));
        }
        finding.help(format!(
            "keep {path} on the same kind of file system and kernel on all hosts, or choose a cache mode that does the same on all of them"
        ));
    }
}

/// What a guest notices of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Direct,
    Buffered,
    Unstable,
    Refused,
}

const fn kind(verdict: Verdict) -> Kind {
    match verdict {
        Verdict::Direct => Kind::Direct,
        Verdict::AcceptedButBuffered(_) => Kind::Buffered,
        Verdict::DirectUnstableChecksums | Verdict::DirectUnstableMirrors => Kind::Unstable,
        Verdict::Unsupported => Kind::Refused,
    }
}

impl Kind {
    const fn words(self) -> &'static str {
        match self {
            Kind::Direct => "writes bypass the page cache",
            Kind::Buffered => "writes go through the page cache all the same",
            Kind::Unstable => {
                "writes bypass the page cache, and what the guest changes meanwhile endangers them"
            }
            Kind::Refused => "it is refused, and the guest does not start",
        }
    }
}
