//! `discard-crypt-blocked`

use vmdisk_facts::{BlockDevice, Fact, HostIndex};
use vmdisk_fields::{phrase, setting};
use vmdisk_model::{Discard, DiskField, FieldPath, Protocol};
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// Discards are enabled, but an encrypted device below the disk drops them.
    ///
    /// ## What it reports
    /// Reports `discard='unmap'` on a device that accepts no discards because a dm-crypt device, the device itself or
    /// one below it, was opened without `allow_discards`. A thin volume above an encrypted device is not reported: its
    /// pool uses the discards itself.
    ///
    /// ## Why it matters
    /// The guest's TRIM has no effect, and the guest sees no error. The drive never learns which blocks are free.
    /// Dropping discards is the default of cryptsetup and crypttab and often intended: discards reveal which parts of
    /// the drive are in use to anyone who gets hold of it.
    ///
    /// ## Use instead
    /// To pass discards on, add `discard` to the options of the device in crypttab, or open it with
    /// `cryptsetup open --allow-discards`. This reveals which blocks are in use. To keep them hidden, use
    /// `discard='ignore'`; no space is freed then.
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
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///   <source dev='/dev/mapper/without-discards'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "discard-crypt-blocked",
    group: Group::Space,
    severity: Severity::Advice,
    evidence: &[
        Evidence::measured("LUKS 2 on a disk with discard_max_bytes 2147483136: 0 by default, 2147483136 with --allow-discards", "cargo xtask hostlab, stack luks, on Linux 6.1 and 6.12"),
        Evidence::Source("Linux Documentation/admin-guide/device-mapper/dm-crypt, allow_discards: block discard requests are passed through, by default they are ignored"),
        Evidence::Source("QEMU block/file-posix.c, handle_aiocb_discard: a device without discards is not an error"),
    ],
    check: Model(check),
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
                phrase!("{disk} enables discards, but the encryption below drops them"),
            )
            .label("the guest's TRIM has no effect")
            .note(format!(
                "{name} was opened without allow_discards, so {path} accepts no discards"
            ))
            .note("discards reveal which parts of an encrypted drive are in use")
            .help(phrase!(
                "add `discard` to the options in crypttab, or open the device with `--allow-discards`; \
                 use {ignore} to keep the blocks in use hidden, without freeing space",
                ignore = setting(at, Discard::Ignore),
            ));
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
    let what = || format!("whether {} accepts discards", device.name());
    // A device above the encryption can use discards itself, as a thin pool does.
    let accepted = Context::known(device.queue.discard_max.clone(), what)?;
    if accepted.is_none_or(|bytes| bytes > 0) {
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
