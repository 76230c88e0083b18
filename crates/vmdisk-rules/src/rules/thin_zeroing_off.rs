//! `thin-zeroing-off`

use vmdisk_facts::Fact;
use vmdisk_fields::{command, phrase, quoted};
use vmdisk_model::{Bytes, FieldPath, ImageField};
use vmdisk_rule::{Context, Evidence, Group, Policy, Report, Severity, declare_rule};

use crate::thin::{self, ThinVolume};

declare_rule! {
    /// The thin pool under a disk does not zero new blocks, so the guest can read data of deleted volumes.
    ///
    /// ## What it reports
    /// Reports a disk on a thin logical volume whose pool does not zero new chunks (`lvcreate -Zn`,
    /// `thin_pool_zero = n`, `skip_block_zeroing`). It is an error by default, because several owners can share the
    /// host; a warning with `--policy single-tenant`, and advice with `--policy lab`.
    ///
    /// ## Why it matters
    /// A thin volume allocates its blocks in chunks, at the first write into each. Without zeroing, the rest of the
    /// chunk still has the data of the volume that used it before, and the guest can read it. A new volume could read
    /// 234,651,648 of 251,658,240 bytes (93 %) of a deleted one, by writing 4 KiB into each chunk of 4 MiB. With
    /// zeroing, it could read nothing. In a pool with many blocks that were never used, the problem shows only later.
    ///
    /// ## Use instead
    /// Enable zeroing for chunks that are allocated from now on: `lvchange -Zy VG/POOL`. Zeroing makes the first write
    /// into a large chunk slow, and LVM warns about chunks of 512 KiB and more. A new pool with chunks of 64 to 256
    /// KiB has neither problem: `lvcreate --type thin-pool --chunksize 64k --size SIZE VG/POOL`. The chunk size of an
    /// existing pool cannot be changed.
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
    /// With one owner, it is a warning:
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
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "thin-zeroing-off",
    group: Group::Security,
    severity: Severity::Error,
    evidence: &[
        Evidence::measured("bytes of a deleted volume readable in a new one: 234,651,648 of 251,658,240 with lvcreate -c 4m -Zn, 0 of 62,914,560 with zeroing", "measured for this project on Linux 6.12.117 with LVM 2.03.16, 4 KiB written into each chunk"),
        Evidence::measured("lvcreate with zeroing and -c 1m: `WARNING: Pool zeroing and 1.00 MiB large chunk size slows down thin provisioning. \
                      WARNING: Consider disabling zeroing (-Zn) or using smaller chunk size (<512.00 KiB).`", "LVM 2.03.16"),
        Evidence::Source("lvmthin(7), zeroing: a new block is first overwritten with zeros"),
        Evidence::Source("lvchange(8): -Z|--zero y|n sets the zeroing mode of a thin pool"),
    ],
    check: Model(check),
}

/// LVM warns that zeroing is slow for chunks of at least this size.
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
            Policy::MultiTenant => (Severity::Error, "other owners"),
            Policy::SingleTenant => (Severity::Warning, "other guests"),
            Policy::Lab => (Severity::Advice, "other guests"),
        };
        let pool = volume.pool();
        let finding = report.finding(
            at,
            phrase!(
                "{disk} can read old data of {who} in the thin pool {pool}",
                who,
                pool = quoted(pool.clone()),
            ),
        );
        finding
            .severity(severity)
            .label("its pool does not zero new chunks")
            .note(chunk_note(&volume))
            .note("measured: without zeroing, a new volume could read 93 % of a deleted one; with zeroing, nothing");
        let command = command("lvchange -Zy", &[&pool]);
        let is_large = volume
            .chunk()
            .known()
            .is_some_and(|chunk| Bytes(chunk) >= LARGE_CHUNK);
        if is_large {
            finding
                .note("the trade-off: LVM warns that zeroing chunks of 512 KiB and more is slow")
                .help(phrase!(
                    "run {command}, which affects new chunks, or create a pool with chunks of 64 to 256 KiB, which is also fast",
                    command,
                ));
        } else {
            finding.help(phrase!("run {command}, which affects new chunks", command));
        }
    }
}

fn chunk_note(volume: &ThinVolume<'_>) -> String {
    let ThinVolume {
        path,
        device: _,
        lvm: _,
    } = volume;
    let size = match volume.chunk() {
        Fact::Known(chunk) => format!(" of {}", Bytes(chunk)),
        Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => String::new(),
    };
    format!(
        "{path}: after the first write into a chunk{size}, the guest can read what was in the rest of it"
    )
}
