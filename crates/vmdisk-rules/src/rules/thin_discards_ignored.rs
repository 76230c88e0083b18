//! `thin-discards-ignored`

use vmdisk_fields::{command, phrase, quoted};
use vmdisk_model::{Discard, Disk};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::{host, thin};

declare_rule! {
    /// The thin pool under a disk ignores discards, so `discard='unmap'` frees nothing.
    ///
    /// ## What it reports
    /// Reports a disk with `discard='unmap'` on a thin logical volume whose pool has `discards=ignore`.
    ///
    /// ## Why it matters
    /// QEMU passes the guest's discards on, and the pool drops them: space that the guest deletes stays allocated, and
    /// the pool fills up although the guests have free space.
    ///
    /// ## Use instead
    /// Run `lvchange --discards passdown VG/POOL`, or `nopassdown` to free space in the pool without discards on the
    /// drive. LVM allows a change from or to `ignore` only while the pool is not active. Then run `fstrim -a` in the
    /// guests.
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
    name: "thin-discards-ignored",
    group: Group::Space,
    severity: Severity::Warning,
    evidence: &[
        Evidence::Source("lvmthin(7), Discard: with `ignore`, discards that are received are ignored"),
        Evidence::Source("lvchange(8), --discards: passdown, nopassdown, ignore"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let asks = |disk: &Disk| disk.backend.discard == Some(Discard::Unmap);
    for (index, volume) in thin::volumes(context, report, asks) {
        let at = host::image_of(index);
        let what = || format!("the treatment of discards by the pool of {}", volume.path);
        let discards = Context::known(volume.lvm.discards.as_str(), what);
        if report.require(at, discards).flatten() != Some("ignore") {
            continue;
        }
        let pool = volume.pool();
        report
            .finding(
                at,
                phrase!(
                    "the thin pool {pool} ignores discards of {disk}",
                    pool = quoted(pool.clone()),
                ),
            )
            .label("space that the guest deletes stays allocated")
            .help(phrase!(
                "with the pool inactive, run {command}; then run `fstrim -a` in the guest",
                command = command("lvchange --discards passdown", &[&pool]),
            ));
    }
}
