//! `migration-direct-io-differs`

use vmdisk_facts::DirectIoEffect;
use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{DiskField, FieldPath};
use vmdisk_rule::{Comparison, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::{host, remedy};

declare_rule! {
    /// Direct I/O (`O_DIRECT`) on a disk behaves differently from host to host.
    ///
    /// ## What it reports
    /// Compares the hosts that a guest may run on. Reports a disk with `O_DIRECT` that the guest writes, if writes to
    /// the same path bypass the page cache on one host, and are buffered, refused or endangered on another. Other rules
    /// report the problem on each host.
    ///
    /// ## Why it matters
    /// A guest that was measured on one host can be several times slower on the next, or fill that host's memory with a
    /// second copy of its cache, or lose checksums there. Its configuration has not changed, so the cause is hard to
    /// find.
    ///
    /// ## Use instead
    /// Keep the image on the same kind of file system and kernel on all hosts. Alternatively use a cached mode such as
    /// `cache='writeback'`, which behaves the same everywhere but uses the hosts' memory.
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
    /// With a cached mode the hosts behave the same:
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
    /// Not checked if the facts of a host do not show it:
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
    name: "migration-direct-io-differs",
    group: Group::Performance,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("4 KiB random writes with libaio, IOPS: XFS 191565, btrfs NOCOW 59147, btrfs 13346, tmpfs and ext4 with data=journal buffered; \
                      on btrfs of Linux 6.1.192, 151 of 400 direct writes could not be read back, of 6.12.117 none", "measured for this project with fio 3.33 on loop files on Linux 6.18.44, 5 s each; and with a buffer changed during its write on booted kernels"),
    ],
    check: Hosts(compare),
}

fn compare(comparison: &Comparison<'_>, report: &mut Report) {
    for (index, disk, image, path) in comparison.images_with_paths() {
        if !disk.backend.is_direct() || !disk.is_writable() {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Cache);
        let mut because = vec![None; comparison.hosts.len()];
        let mut number = 0..;
        let answers = report.answers(comparison, at, |host| {
            let place = number.next();
            let context = host.alone(comparison.domain);
            let direct = host::direct_io(&context, image).unwrap_or_else(|| {
                let what = format!("the effect of O_DIRECT on {path}");
                Err(Missing::new(what, "the image has no path on the host"))
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
        let finding = report.finding(
            at,
            phrase!(
                "{disk} uses O_DIRECT ({asked}), which behaves differently on its hosts",
                asked = remedy::how_direct_is_asked(index, disk),
            ),
        );
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
        finding.help(phrase!(
            "keep {path} on the same kind of file system and kernel on all hosts, or use a cache mode without O_DIRECT",
            path = quoted(path.to_owned()),
        ));
    }
}

/// The effect of a verdict on the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Direct,
    Buffered,
    Unstable,
    Refused,
}

const fn kind(verdict: DirectIoEffect) -> Kind {
    match verdict {
        DirectIoEffect::Direct => Kind::Direct,
        DirectIoEffect::AcceptedButBuffered(_) => Kind::Buffered,
        DirectIoEffect::DirectUnstableChecksums | DirectIoEffect::DirectUnstableMirrors => {
            Kind::Unstable
        }
        DirectIoEffect::Unsupported => Kind::Refused,
    }
}

impl Kind {
    const fn words(self) -> &'static str {
        match self {
            Kind::Direct => "writes bypass the page cache",
            Kind::Buffered => "writes use the page cache anyway",
            Kind::Unstable => {
                "writes bypass the page cache, and buffers that change during a write corrupt data"
            }
            Kind::Refused => "refused; the guest does not start",
        }
    }
}
