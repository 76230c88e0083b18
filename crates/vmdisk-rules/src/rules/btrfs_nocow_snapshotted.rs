//! `btrfs-nocow-snapshotted`

use vmdisk_facts::FsKind;
use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{FieldPath, ImageField, Protocol};
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

declare_rule! {
    /// A NOCOW image on btrfs shares blocks with a snapshot and fragments.
    ///
    /// ## What it reports
    /// Reports an image that the guest writes, on btrfs with NOCOW on, if some of its blocks are shared: with a
    /// snapshot of the subvolume, or with a copy made by `cp --reflink`.
    ///
    /// ## Why it matters
    /// NOCOW applies only to blocks that belong to one file. The first write to a shared block is redirected to new
    /// space, so the image fragments as if NOCOW were off. After one snapshot and 6000 random writes of 4 KiB, a NOCOW
    /// file of 64 MiB had 8541 extents; without the snapshot it had 2. Every new snapshot repeats this, and the image
    /// has no checksums either way.
    ///
    /// ## Use instead
    /// Keep images in a subvolume that is not snapshotted: `btrfs subvolume create DIR && chattr +C DIR`. To defragment
    /// an image, shut the guest down, delete the snapshots and copy the image: `cp --reflink=never IMAGE DIR/`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-btrfs-nocow-snapshotted
    /// <domain type='kvm'>
    ///   <name>db1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/nocow/db1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-btrfs-nocow-6.18
    /// <domain type='kvm'>
    ///   <name>db1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/nocow/db1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/nocow/db1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "btrfs-nocow-snapshotted",
    group: Group::Performance,
    severity: Severity::Advice,
    evidence: &[
        Evidence::measured("pieces of a 64 MiB NOCOW file before and after 6000 random 4 KiB writes: 2 and 2, with one snapshot 1 and 8541", "measured for this project on Linux 6.18.44 with fio 3.33 and filefrag"),
        Evidence::Source("Linux fs/btrfs/inode.c, can_nocow_extent: an extent that a snapshot or another file refers to is not overwritten"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let Protocol::File { path } = &image.protocol else {
            continue;
        };
        if !disk.is_writable() || image.creation.is_some() {
            continue;
        }
        let at = FieldPath::Image(index, 0, ImageField::Path);
        if report.require(at, is_shared(context, path)) != Some(true) {
            continue;
        }
        report
            .finding(
                at,
                phrase!("the image of {disk} has NOCOW but shares blocks, so it is copy-on-write on btrfs"),
            )
            .label("each shared block is written to a new place")
            .note(phrase!(
                "NOCOW is on for {path}, but some of its blocks also belong to a snapshot or another file",
                path = quoted(path.clone()),
            ))
            .note("6000 random writes after one snapshot left a NOCOW file of 64 MiB in 8541 pieces instead of 1")
            .help(
                "keep images in a subvolume that is not snapshotted, or delete the snapshots; to defragment it, \
                 shut the guest down and copy it with `cp --reflink=never` into a directory with `chattr +C`",
            );
    }
}

/// True if an image is a NOCOW file on btrfs that shares blocks.
fn is_shared(context: &Context<'_>, path: &str) -> Result<bool, Missing> {
    let what = || format!("file system of {path}");
    let facts = context.host(what)?;
    let filesystem = Context::known(facts.filesystem_of(path), what)?;
    if filesystem.is_none_or(|filesystem| filesystem.kind != FsKind::Btrfs) {
        return Ok(false);
    }
    let Some(file) = facts.file(path).filter(|file| !file.is_missing()) else {
        return Ok(false);
    };
    let what = || format!("whether copy-on-write is off for {path}");
    if Context::known(facts.nocow(path), what)? != Some(true) {
        return Ok(false);
    }
    let what = || format!("whether {path} shares blocks");
    let is_shared = Context::known(file.shared_extents.clone(), what)?.unwrap_or(false);
    // Of a file with very many extents only the first were collected.
    if !is_shared && file.extents_capped.is_true() {
        return Err(Missing::new(
            what(),
            "only its first extents were collected",
        ));
    }
    Ok(is_shared)
}
