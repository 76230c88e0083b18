//! `thin-pool-overcommitted`

use std::collections::BTreeMap;

use vmdisk_facts::{BlockKind, HostIndex};
use vmdisk_fields::{phrase, quoted};
use vmdisk_model::Bytes;
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::host;
use crate::thin::{self, ThinVolume};

declare_rule! {
    /// The volumes of a thin pool are larger than the pool, and LVM does not extend it automatically.
    ///
    /// ## What it reports
    /// Reports a disk on a thin logical volume if the sizes of all volumes in its pool are together larger than the
    /// pool, and `thin_pool_autoextend_threshold` is 100. A pool is reported once, with all disks of the guest in it.
    ///
    /// ## Why it matters
    /// Thin volumes may promise more space than the pool has. By default LVM never extends a pool, so the pool fills up
    /// without a message to the guests, and then all its volumes stop at once. With `when_full=queue`, which is the
    /// default, writes hang for 60 seconds first: the guest is not paused, and its watchdogs can fire.
    ///
    /// ## Use instead
    /// Set `thin_pool_autoextend_threshold = 70` and `thin_pool_autoextend_percent = 20` in `/etc/lvm/lvm.conf`, keep
    /// `lvm2-monitor` running, and leave free space in the volume group. With `lvchange --errorwhenfull y VG/POOL`
    /// a full pool fails writes at once, and `error_policy='enospace'` or `stop` pauses the guest.
    ///
    /// ## Reported
    /// ```xml,reported,facts-lvm-thin-nearly-full
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-lvm-thin-64k
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "thin-pool-overcommitted",
    group: Group::DataSafety,
    severity: Severity::Warning,
    is_about_host: true,
    evidence: &[
        Evidence::measured("thin_pool_autoextend_threshold=100 in a new installation", "lvmconfig --type full, LVM 2.03.16"),
        Evidence::Source("lvmthin(7), Automatically extend thin pool LV: 100 disables automatic extension"),
        Evidence::Source("lvmthin(7), Data space exhaustion: with when-full queue, writes are held for 60 seconds (no_space_timeout) and then fail"),
    ],
    check: Model(check),
}

/// An overcommitted pool, and the disks in it.
struct Pool<'a> {
    volume: ThinVolume<'a>,
    size: Bytes,
    promised: Bytes,
    disks: Vec<usize>,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut pools: BTreeMap<String, Pool<'_>> = BTreeMap::new();
    for (index, volume) in thin::volumes(context, report, |_| true) {
        let at = host::image_of(index);
        let Some(facts) = context.host else { return };
        if let Some(pool) = pools.get_mut(&volume.pool()) {
            pool.disks.push(index);
            continue;
        }
        let Some(Some((size, promised))) = report.require(at, overcommitted(facts, &volume)) else {
            continue;
        };
        let disks = vec![index];
        pools.insert(
            volume.pool(),
            Pool {
                volume,
                size,
                promised,
                disks,
            },
        );
    }
    for (name, pool) in &pools {
        report_pool(report, name, pool);
    }
}

/// The size of a pool and the sizes of its volumes, if they are larger and LVM never extends the pool.
fn overcommitted(
    facts: &HostIndex<'_>,
    volume: &ThinVolume<'_>,
) -> Result<Option<(Bytes, Bytes)>, Missing> {
    let what = |of: &str| format!("{of} of the pool of {}", volume.path);
    let threshold = volume.lvm.autoextend_threshold.clone();
    let threshold = Context::known(threshold, || what("the threshold of extension"))?;
    if threshold.is_none_or(|threshold| threshold < 100) {
        return Ok(None);
    }
    let promised = Context::known(volume.lvm.virtual_bytes.clone(), || what("the volumes"))?;
    let below = facts.walk_down(volume.device);
    let pool = below.iter().find(|it| it.kind == BlockKind::LvmThinPool);
    let Some(pool) = pool else {
        return Err(Missing::new(what("the size"), Missing::NOT_COLLECTED));
    };
    let size = Context::known(pool.size.clone(), || what("the size"))?;
    Ok(match (size, promised) {
        (Some(size), Some(promised)) if promised > size => Some((Bytes(size), Bytes(promised))),
        _ => None,
    })
}

fn report_pool(report: &mut Report, name: &str, pool: &Pool<'_>) {
    let Some((first, others)) = pool.disks.split_first() else {
        return;
    };
    let finding = report.finding(
        host::image_of(*first),
        phrase!(
            "the volumes in the thin pool {pool} of {disk} are larger than the pool, which is never extended",
            pool = quoted(name.to_owned()),
        ),
    );
    finding
        .label("its space is promised and not reserved")
        .note(format!(
            "the volumes have {} together, the pool {}; thin_pool_autoextend_threshold is 100",
            pool.promised, pool.size
        ));
    if pool.volume.lvm.when_full.as_str().known() == Some("queue") {
        finding.note("when the pool is full, writes hang for 60 seconds before they fail");
    }
    for index in others {
        finding.related(host::image_of(*index), phrase!("{disk} is in it too"));
    }
    finding.help("set thin_pool_autoextend_threshold below 100 in /etc/lvm/lvm.conf, and leave free space in the volume group");
}
