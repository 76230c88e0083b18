//! `thin-zeroing-off`

use vmdisk_facts::Fact;
use vmdisk_model::{Bytes, FieldPath, ImageField};
use vmdisk_rule::{Context, Evidence, Group, Policy, Report, Severity, declare_rule};

use crate::thin::{self, ThinVolume};

declare_rule! {
    /// A disk lies in a thin pool that hands out blocks with somebody else's old data in them.
    ///
    /// ## What it does
    /// Reports a disk on a thin logical volume whose pool does not zero new chunks (`lvcreate -Zn`,
    /// `thin_pool_zero = n`, `skip_block_zeroing`). It is an error if several owners share the host, a warning
    /// with `--policy single-tenant`, advice with `--policy lab`.
    ///
    /// ## Why it matters
    /// A thin volume gets its blocks a chunk at a time, at the first write into the chunk. Without zeroing the
    /// rest of the chunk holds what the volume that had it before left there, and the guest can read it. A new
    /// volume read 234,651,648 of 251,658,240 bytes (93 %) of a deleted one, by writing 4 KiB into each chunk of
    /// 4 MiB. With zeroing: none. A pool with many blocks that were never used hides it for a while.
    ///
    /// The other side of the bargain: zeroing a large chunk makes the first write into it slow, and LVM itself
    /// warns from 512 KiB on and names `-Zn` as one way out. The other way out has neither cost: a
    /// chunk of 64 to 256 KiB with zeroing. The chunk size is set when a pool is made; zeroing can be turned on
    /// at any time, and counts for chunks handed out from then on.
    ///
    /// ## Reported
    /// ```xml,reported,facts-lvm-thin-4m-nozero
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native' discard='unmap'/>
    ///       <source dev='/dev/vg0/web1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// One owner has less to lose, and the finding is a warning.
    /// ```xml,reported,facts-lvm-thin-4m-nozero,single-tenant
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native' discard='unmap'/>
    ///       <source dev='/dev/vg0/web1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-lvm-thin-64k
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native' discard='unmap'/>
    ///       <source dev='/dev/vg0/web1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Without facts there is no telling.
    /// ```xml,not-checked
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "thin-zeroing-off",
        group: Group::Security,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "bytes of a deleted volume readable in a new one: 234,651,648 of 251,658,240 with lvcreate -c 4m -Zn, 0 of 62,914,560 with zeroing",
                how: "measured for this project on Linux 6.12.117 with LVM 2.03.16, 4 KiB written into each chunk",
            },
            Evidence::Measured {
                figures: "lvcreate with zeroing and -c 1m: `WARNING: Pool zeroing and 1.00 MiB large chunk size slows down thin provisioning. \
                          WARNING: Consider disabling zeroing (-Zn) or using smaller chunk size (<512.00 KiB).`",
                how: "LVM 2.03.16",
            },
            Evidence::Source("lvmthin(7), zeroing: reading data of other volumes is possible without it"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

/// From here on LVM warns that zeroing is slow.
const LARGE_CHUNK: Bytes = Bytes(512 * Bytes::KIB);

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let at = FieldPath::Image(index, 0, ImageField::Path);
        let volume = thin::volume_of(context, disk, image);
        let Some(Some(volume)) = report.require(at, volume) else {
            continue;
        };
        let what = || format!("whether the pool of {} zeroes new chunks", volume.path);
        let zeroes = Context::known(volume.lvm.zero.clone(), what);
        match report.require(at, zeroes) {
            Some(Some(false)) => {}
            Some(Some(true) | None) | None => continue,
        }
        let (severity, who) = match context.policy {
            Policy::MultiTenant => (Severity::Error, "another owner's"),
            Policy::SingleTenant => (Severity::Warning, "another guest's"),
            Policy::Lab => (Severity::Advice, "another guest's"),
        };
        let pool = volume.pool();
        let finding = report.finding(
            at,
            format!(
                "`{}` can read what {who} deleted volumes left in the thin pool {pool}",
                disk.name()
            ),
        );
        finding
            .severity(severity)
            .label("its pool does not zero new chunks")
            .note(chunk_note(&volume))
            .note("measured: a new volume could read 93 % of a deleted one, and nothing of it with zeroing on");
        let turn_on =
            format!("turn zeroing on for chunks handed out from now on: lvchange --zero y {pool}");
        if volume
            .chunk()
            .known()
            .is_some_and(|chunk| Bytes(chunk) >= LARGE_CHUNK)
        {
            finding
                .note("the trade-off: LVM warns that zeroing chunks of 512 KiB and more slows down provisioning, and -Zn is the worse of its two ways out")
                .help(format!("{turn_on}; a new pool with chunks of 64 to 256 KiB has neither the leak nor the delay"));
        } else {
            finding.help(turn_on);
        }
    }
}

fn chunk_note(volume: &ThinVolume<'_>) -> String {
    let ThinVolume {
        path,
        device: _,
        lvm: _,
    } = volume;
    match volume.chunk() {
        Fact::Known(chunk) => format!(
            "{path}: the pool has zeroing off, and the first write into a chunk of {} shows the guest the rest of it",
            Bytes(chunk)
        ),
        Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => format!(
            "{path}: the pool has zeroing off, and the first write into a chunk shows the guest the rest of it"
        ),
    }
}
