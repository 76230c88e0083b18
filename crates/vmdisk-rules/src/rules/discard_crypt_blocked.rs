//! `discard-crypt-blocked`

use vmdisk_facts::stack::{DiscardLoss, StackLayer};
use vmdisk_fields::{phrase, setting};
use vmdisk_model::{Discard, DiskField, FieldPath, Format, HostStorage};
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

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
    for (index, path, (crypt, loss)) in dropped(context, report) {
        if loss != DiscardLoss::Crypt {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Discard);
        report
            .finding(
                at,
                phrase!("{disk} enables discards, but the encryption below drops them"),
            )
            .label("the guest's TRIM has no effect")
            .note(format!(
                "{} was opened without allow_discards, so {path} accepts no discards",
                crypt.name()
            ))
            .note("discards reveal which parts of an encrypted drive are in use")
            .help(phrase!(
                "add `discard` to the options in crypttab, or open the device with `--allow-discards`; \
                 use {ignore} to keep the blocks in use hidden, without freeing space",
                ignore = setting(at, Discard::Ignore),
            ));
    }
}

/// A disk that enables discards on storage that drops them: number, path, layer and reason.
type Dropped<'a> = (usize, &'a str, (StackLayer<'a>, DiscardLoss));

/// The disks that enable discards on storage that drops them; a missing fact is not checked. The header of a file with a
/// format says which of its blocks are free, so its discards have an effect in any case.
pub(super) fn dropped<'a>(context: &Context<'a>, report: &mut Report) -> Vec<Dropped<'a>> {
    let mut found = Vec::new();
    for (index, disk, image) in context.images() {
        let is_device = matches!(image.protocol.on_host(), Some(HostStorage::Device(_)));
        let is_meant = is_device || image.format == Some(Format::Raw);
        let Some(path) = image.host_path().filter(|_| is_meant) else {
            continue;
        };
        if disk.backend.discard != Some(Discard::Unmap) || !disk.is_writable() {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Discard);
        let what = || format!("whether the storage of {path} accepts discards");
        let lost = context.host(what).and_then(|host| {
            let lost = host.lost_discard(path, is_device);
            lost.map_err(|missing| {
                let missing = Context::known(missing, what).err();
                missing.unwrap_or_else(|| Missing::new(what(), "absent"))
            })
        });
        let lost = report.require(at, lost).flatten();
        found.extend(lost.map(|lost| (index, path, lost)));
    }
    found
}
