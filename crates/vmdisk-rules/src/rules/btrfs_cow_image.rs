//! `btrfs-cow-image`

use vmdisk_facts::{Btrfs, Fact, FsKind, HostIndex};
use vmdisk_fields::phrase;
use vmdisk_model::{Bytes, Disk, FieldPath, Format, HostStorage, Image, ImageField};
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

declare_rule! {
    /// A disk image is copy-on-write on btrfs and fragments.
    ///
    /// ## What it reports
    /// Reports raw and qcow2 images of at least 1 GiB that the guest writes, on btrfs with NOCOW off for the file, or
    /// for its directory if the file does not exist yet. It is a warning if btrfs is known to keep one copy of the data
    /// (profile single or raid0), otherwise advice.
    ///
    /// ## Why it matters
    /// btrfs writes every changed block to a new place, so random writes split the image: after 6000 writes of 4 KiB, a
    /// file of 64 MiB had 8541 extents instead of 2. A NOCOW file still had 2. Later sequential reads become random
    /// reads, and each write updates more metadata. qcow2 already does its own copy-on-write, so btrfs repeats the
    /// work.
    ///
    /// NOCOW has a price: the image has no checksums, no compression and no repair from a second copy. With one copy of
    /// the data, a checksum can detect damage but not repair it, so little is lost. With several copies it is a real
    /// choice, and the finding is only advice. A snapshot of the subvolume enables copy-on-write again for every block
    /// that it holds.
    ///
    /// ## Use instead
    /// Shut the guest down, create an empty NOCOW directory (`mkdir DIR && chattr +C DIR`) and copy the image into it:
    /// `cp --reflink=never IMAGE DIR/`. NOCOW must be set before data is written. `chattr +C` on a file with data exits
    /// with 0 and does nothing, and `mv` does not change the file either. libvirt (6.6 and later) sets NOCOW on the
    /// directories of storage pools that it creates.
    ///
    /// ## Reported
    /// ```xml,reported,facts-btrfs-checksums-6.18
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
    /// A small image:
    /// ```xml,not-reported,facts-btrfs-checksums-6.18
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='writeback'/>
    ///       <source file='/srv/img/seed.img'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
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
    name: "btrfs-cow-image",
    group: Group::Performance,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("pieces of a 64 MiB file before and after 6000 random 4 KiB writes: btrfs 2 and 8541, NOCOW 2 and 2, \
                      NOCOW with one snapshot 1 and 8541, XFS and ext4 1 and 1", "measured for this project on Linux 6.18.44 with fio 3.33 and filefrag"),
        Evidence::measured("chattr +C on a file with data: exit code 0, flag not set; after mv into a +C directory not set, after cp set", "btrfs-progs 6.2 on Linux 6.1.192, 6.12.117 and 6.18.44"),
        Evidence::Source("libvirt NEWS 6.6.0: NOCOW on directories of new storage pools"),
    ],
    check: Model(check),
}

/// Smaller images are not reported.
const SMALLEST: Bytes = Bytes::gib(1);

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let Some(path) = grows_apart(disk, image) else {
            continue;
        };
        let at = FieldPath::Image(index, 0, ImageField::Path);
        let Some(found) = report.require(at, copied_on_write(context, path)) else {
            continue;
        };
        let Some(found) = found else { continue };
        let finding = report.finding(
            at,
            phrase!("the image of {disk} is copy-on-write on btrfs and fragments"),
        );
        if found.may_mend {
            finding.severity(Severity::Advice);
        }
        finding
            .label("on btrfs, NOCOW is off")
            .note(match found.pieces {
                Some(Pieces { count, are_all: true }) => {
                    format!("`{path}` has {count} extents now")
                }
                Some(Pieces { count, are_all: false }) => {
                    format!("`{path}` has more than {count} extents now")
                }
                None => "after 6000 random writes, a file of 64 MiB had 8541 extents instead of 2".to_owned(),
            })
            .note(
                "the trade-off: with NOCOW the image has no checksums, no compression and no repair from a mirror, \
                 and a snapshot enables copy-on-write again",
            )
            .help(if found.exists {
                "shut the guest down and copy the image with `cp` (not `mv`) into an empty directory with `chattr +C`; \
                 on the image itself `chattr +C` has no effect"
            } else {
                "run `chattr +C` on the directory before the image is created in it"
            });
    }
}

/// The path of an image that the guest fills gradually.
fn grows_apart<'a>(disk: &Disk, image: &'a Image) -> Option<&'a str> {
    let is_meant = matches!(image.format, None | Some(Format::Raw | Format::Qcow2));
    match image.protocol.on_host() {
        Some(HostStorage::File(path)) if is_meant && disk.is_writable() => Some(path),
        Some(HostStorage::File(_) | HostStorage::Device(_)) | None => None,
    }
}

/// A copy-on-write image.
struct Copied {
    exists: bool,
    /// True unless btrfs is known to keep one copy, for which a checksum repairs nothing.
    may_mend: bool,
    pieces: Option<Pieces>,
}

/// The number of extents of a file, or a lower bound.
struct Pieces {
    count: u64,
    are_all: bool,
}

fn copied_on_write(context: &Context<'_>, path: &str) -> Result<Option<Copied>, Missing> {
    let facts = context.host(|| format!("file system of {path}"))?;
    let filesystem = Context::known(facts.filesystem_of(path), || {
        format!("file system of {path}")
    })?;
    let Some(filesystem) = filesystem.filter(|filesystem| filesystem.kind == FsKind::Btrfs) else {
        return Ok(None);
    };
    let copies = filesystem
        .btrfs
        .as_ref()
        .and_then(Btrfs::keeps_several_copies);
    let may_mend = !copies.is_false();
    let what = || format!("whether copy-on-write is off for {path}");
    let Some(nocow) = Context::known(facts.nocow(path), what)? else {
        return Err(Missing::new(
            what(),
            "the facts say that btrfs has no such flag",
        ));
    };
    if nocow {
        return Ok(None);
    }
    let exists = !facts.file(path).is_none_or(|file| file.is_missing());
    if !exists {
        // A file that does not exist yet is judged by the mount alone.
        let mounted_nocow = facts
            .mount_of(path)
            .and_then(|mount| mount.has_option("nodatacow"));
        return Ok((!mounted_nocow.is_true()).then_some(Copied {
            exists,
            may_mend,
            pieces: None,
        }));
    }
    let Some(size) = Context::known(size(facts, path), || format!("size of {path}"))? else {
        return Ok(None);
    };
    let pieces = facts.file(path).and_then(|file| {
        Some(Pieces {
            count: file.extents.clone().known()?,
            are_all: !file.extents_capped.is_true(),
        })
    });
    Ok((size >= SMALLEST).then_some(Copied {
        exists,
        may_mend,
        pieces,
    }))
}

/// The virtual size; if it is not known, the size of the file.
fn size(facts: &HostIndex<'_>, path: &str) -> Fact<Bytes> {
    let Some(file) = facts.file(path) else {
        return Fact::NotCollected;
    };
    let virtual_size = file
        .image
        .as_ref()
        .and_then(|header| header.virtual_size.clone());
    let size = match virtual_size {
        Fact::Known(size) => Fact::Known(size),
        Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => file.size.clone(),
    };
    size.map(Bytes)
}
