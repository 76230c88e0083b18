//! `thin-pool-nearly-full`

use std::collections::BTreeMap;

use vmdisk_facts::blockdev::{Lvm, Percent};
use vmdisk_fields::{command, phrase, quoted};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::{host, thin};

declare_rule! {
    /// The thin pool under a disk is nearly full.
    ///
    /// ## What it reports
    /// Reports a thin pool with at least 90 % of its data or 80 % of its metadata in use, once with all disks of the
    /// guest in it. A pool that LVM extends automatically is reported only if it is fuller than
    /// `thin_pool_autoextend_threshold`: then the extension has failed or `dmeventd` does not run.
    ///
    /// ## Why it matters
    /// All volumes of a full pool stop at once. A pool with `when_full=queue`, which is the default, holds writes back
    /// for 60 seconds and then fails them; with `when_full=error` it fails them immediately. A guest that does not
    /// pause then sees I/O errors and mounts its file systems read-only. A pool whose metadata is full must be repaired
    /// offline before it can be used again.
    ///
    /// ## Use instead
    /// Extend the pool: `lvextend -L+SIZE VG/POOL`, and `lvextend --poolmetadatasize +SIZE VG/POOL` for its metadata.
    /// Discards of the guests free space if the pool does not ignore them. Set `thin_pool_autoextend_threshold` below
    /// 100 in `/etc/lvm/lvm.conf`, and keep `lvm2-monitor` running.
    ///
    /// ## Reported
    /// ```xml,reported,facts-lvm-thin-nearly-full
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///       <source dev='/dev/vg0/web1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///       <source dev='/dev/vg0/web2'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
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
    name: "thin-pool-nearly-full",
    group: Group::DataSafety,
    severity: Severity::Error,
    is_about_host: true,
    evidence: &[
        Evidence::Source("lvmthin(7), Data space exhaustion: with when-full queue, writes are held for 60 seconds (no_space_timeout) and then fail"),
        Evidence::Source("lvmthin(7), Metadata space exhaustion: inconsistent metadata needs `lvconvert --repair`"),
        Evidence::Source("lvmconfig --type full of LVM 2.03.16: thin_pool_autoextend_threshold is 100, which means never"),
    ],
    check: Model(check),
}

/// The use of data, in hundredths of a percent, from which a pool is nearly full.
const FULL_DATA: Percent = Percent(9000);

/// The same of metadata, of which the kernel needs some to commit changes.
const FULL_METADATA: Percent = Percent(8000);

fn check(context: &Context<'_>, report: &mut Report) {
    let mut pools: BTreeMap<String, (&Lvm, Vec<usize>)> = BTreeMap::new();
    for (index, volume) in thin::volumes(context, report, |_| true) {
        let at = host::image_of(index);
        let what = || format!("how full the pool of {} is", volume.path);
        let used = Context::known(volume.lvm.data_percent.clone(), what);
        if report.require(at, used).flatten().is_some() && is_nearly_full(volume.lvm) {
            let pool = pools
                .entry(volume.pool())
                .or_insert((volume.lvm, Vec::new()));
            pool.1.push(index);
        }
    }
    for (name, (lvm, disks)) in &pools {
        report_pool(report, name, lvm, disks);
    }
}

/// True if the data or the metadata of a pool is nearly used up, and LVM has not extended it.
fn is_nearly_full(lvm: &Lvm) -> bool {
    let threshold = lvm.autoextend_threshold.value().copied().unwrap_or(100);
    let is_over = |used: Option<&Percent>, limit: Percent| {
        used.is_some_and(|used| *used >= limit && (threshold >= 100 || used.0 > threshold * 100))
    };
    is_over(lvm.data_percent.value(), FULL_DATA)
        || is_over(lvm.metadata_percent.value(), FULL_METADATA)
}

fn report_pool(report: &mut Report, name: &str, lvm: &Lvm, disks: &[usize]) {
    let Some((first, others)) = disks.split_first() else {
        return;
    };
    let used = |used: Option<&Percent>| used.map_or("unknown".to_owned(), ToString::to_string);
    let finding = report.finding(
        host::image_of(*first),
        phrase!(
            "the thin pool {pool} of {disk} is nearly full",
            pool = quoted(name.to_owned()),
        ),
    );
    finding
        .label("all volumes of the pool stop when it is full")
        .note(format!(
            "data: {}, metadata: {}, when the facts were collected",
            used(lvm.data_percent.value()),
            used(lvm.metadata_percent.value()),
        ));
    for index in others {
        finding.related(host::image_of(*index), phrase!("{disk} is in it too"));
    }
    match lvm.autoextend_threshold.value() {
        Some(threshold) if *threshold < 100 => finding.note(format!(
            "LVM should have extended it at {threshold} %: check the free space of the volume group, and `systemctl status lvm2-monitor`"
        )),
        Some(_) => finding.note("LVM does not extend it automatically: thin_pool_autoextend_threshold is 100"),
        None => finding,
    };
    finding.help(phrase!(
        "extend the pool: {command}",
        command = command("lvextend -L+SIZE", &[name]),
    ));
}
