//! `discard-crypt-blocked`

use vmdisk_facts::{BlockDevice, Fact, HostIndex};
use vmdisk_model::{Discard, DiskField, FieldPath, Protocol};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Missing, Report, Severity, host};

declare_rule! {
    /// A disk passes discards on to an encrypted device that drops them.
    ///
    /// ## What it does
    /// Reports `discard='unmap'` on a device that takes no discards because dm-crypt, there or below, was opened
    /// without `allow_discards`. A thin volume above an encrypted device is left alone: its pool takes the discards
    /// for itself.
    ///
    /// ## Why it matters
    /// The guest's TRIM comes to nothing: QEMU is told that the device cannot, and tells the guest that all is well. The
    /// drive below is never told which blocks are free. This is the default of cryptsetup and crypttab, and is often
    /// wanted: discarded blocks show to whoever gets hold of the drive which parts of it are in use.
    ///
    /// ## Reported
    /// ```xml,reported,facts-luks-without-discards
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native' discard='unmap'/>
    ///       <source dev='/dev/mapper/without-discards'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-luks-without-discards
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native' discard='unmap'/>
    ///       <source dev='/dev/mapper/with-discards'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Without facts, nobody knows what is below.
    /// ```xml,not-checked
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///   <source dev='/dev/mapper/without-discards'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "discard-crypt-blocked",
        group: Group::Space,
        severity: Severity::Advice,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "LUKS 2 on a disk with discard_max_bytes 2147483136: 0 as cryptsetup opens it, 2147483136 with --allow-discards",
                how: "cargo xtask hostlab, stack luks, on Linux 6.1 and 6.12",
            },
            Evidence::Source("Linux Documentation/admin-guide/device-mapper/dm-crypt, allow_discards: block discard requests are passed through, by default they are ignored"),
            Evidence::Source("QEMU block/file-posix.c, handle_aiocb_discard: a device that cannot is no error"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let Protocol::HostDevice { path } = &image.protocol else {
            continue;
        };
        if disk.backend.discard != Some(Discard::Unmap) || !disk.is_writable() {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Discard);
        let path = path.0.as_str();
        let blocked = host::block_device(context, path)
            .and_then(|found| found.map_or(Ok(None), |(host, device)| blocked(host, device)));
        let Some(Some(crypt)) = report.require(at, blocked) else {
            continue;
        };
        let name = crypt.name();
        report
            .finding(
                at,
                format!(
                    "`{}` passes discards on, and the encryption below drops them",
                    disk.name()
                ),
            )
            .label("the guest's TRIM comes to nothing")
            .note(format!("{name} was opened without allow_discards, and {path} takes no discards"))
            .note(
                "the other side: with discards, whoever gets hold of the drive sees which parts of it are in use",
            )
            .help(
                "to let them through, write discard into the options of crypttab, or open it with --allow-discards; \
                 else write discard='ignore' and know that nothing is given back",
            );
    }
}

/// The encrypted device that drops the discards of a device.
fn blocked<'a>(
    host: &'a HostIndex<'a>,
    device: &'a BlockDevice,
) -> Result<Option<&'a BlockDevice>, Missing> {
    let below = host.walk_down(device);
    let mut encrypted = below
        .iter()
        .filter(|device| device.kind.is_crypt())
        .peekable();
    if encrypted.peek().is_none() {
        return Ok(None);
    }
    let what = || format!("whether {} takes discards", device.name());
    // What takes some has them go somewhere, be it only into a pool.
    let takes = Context::known(device.queue.discard_max.clone(), what)?;
    if takes.is_none_or(|bytes| bytes > 0) {
        return Ok(None);
    }
    let drops = |crypt: &&&BlockDevice| {
        let allowed = crypt
            .crypt
            .as_ref()
            .and_then(|crypt| crypt.allow_discards.clone());
        matches!(allowed, Fact::Known(false))
    };
    Ok(encrypted.find(drops).copied())
}
