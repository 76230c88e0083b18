//! What O_DIRECT does on one path: the conclusion from what was probed, observed, or is known of the kernel.
//!
//! Three layers of evidence, the strongest first: a trial write into a nameless file, what statx(2) and the
//! mount say, and a table of kernels. What stays open stays unknown with its reason. [`trials`] has what the tables
//! were held to.

mod btrfs;
mod effect;
pub mod trials;

use crate::fact::{Fact, Reason};
use crate::filesystem::{Filesystem, FsKind};
use crate::host::Kernel;
use crate::path::{DeclaredVerdict, Dio, DioAlign};
use crate::version::Version;

pub use effect::{Alignment, Buffered, DirectIo, DirectIoBasis, DirectIoEffect, DirectIoInputs};
use effect::{concluded, undecided};

/// Concludes for a path on a filesystem.
pub fn on_filesystem(evidence: DirectIoInputs<'_>) -> Fact<DirectIo> {
    let concluded = seen(evidence.dio, Some(evidence)).unwrap_or_else(|| by_kind(evidence));
    with_declared(concluded, evidence.dio)
}

/// Concludes for a block device, which does direct I/O unless it was seen not to.
pub fn on_block_device(dio: &Dio) -> Fact<DirectIo> {
    let concluded = seen(dio, None)
        .unwrap_or_else(|| DirectIoEffect::Direct.by_table("block devices do direct I/O"));
    with_declared(concluded, dio)
}

/// The conclusion from trial and statx(2) alone, whatever the filesystem.
fn seen(dio: &Dio, evidence: Option<DirectIoInputs<'_>>) -> Option<Fact<DirectIo>> {
    if let Fact::Known(outcome) = &dio.open
        && outcome.failed_with("EINVAL")
    {
        return Some(DirectIoEffect::Unsupported.probed("open with O_DIRECT gave EINVAL there"));
    }
    match (&dio.dioalign, &dio.mem, &dio.off) {
        (Fact::Known(DioAlign::Set), Fact::Known(0), Fact::Known(0)) => {
            let journal = evidence.is_some_and(|evidence| data_journal(evidence).is_true());
            let (why, because) = if journal {
                (
                    Buffered::Ext4DataJournal,
                    "statx gives direct I/O alignment 0, and the mount has data=journal",
                )
            } else {
                (Buffered::SaysNo, "statx gives direct I/O alignment 0")
            };
            Some(DirectIoEffect::AcceptedButBuffered(why).observed(because.to_owned()))
        }
        (Fact::Known(DioAlign::Set), Fact::Known(memory), Fact::Known(offset)) => {
            Some(Fact::Known(DirectIo {
                verdict: DirectIoEffect::Direct,
                confidence: DirectIoBasis::Observed,
                alignment: Some(Alignment {
                    memory: *memory,
                    offset: *offset,
                }),
                because: format!(
                    "statx gives direct I/O alignment {memory} for memory and {offset} for offsets"
                ),
            }))
        }
        _ => None,
    }
}

fn by_kind(evidence: DirectIoInputs<'_>) -> Fact<DirectIo> {
    let Filesystem { kind, .. } = evidence.filesystem;
    let direct = || DirectIoEffect::Direct.by_table(format!("{kind} does direct I/O"));
    let refused = || DirectIoEffect::Unsupported.by_table(format!("{kind} has no direct I/O"));
    match kind {
        FsKind::Btrfs => btrfs::conclude(evidence),
        FsKind::Ext2 | FsKind::Ext3 | FsKind::Ext4 => on_ext(evidence),
        FsKind::Tmpfs => on_tmpfs(evidence.kernel),
        FsKind::Zfs => on_zfs(evidence.filesystem),
        FsKind::Xfs
        | FsKind::Bcachefs
        | FsKind::F2fs
        | FsKind::Vfat
        | FsKind::Nfs
        | FsKind::Nfs4
        | FsKind::Ceph
        | FsKind::Gfs2
        | FsKind::Ocfs2 => direct(),
        FsKind::Ramfs
        | FsKind::Hugetlbfs
        | FsKind::Squashfs
        | FsKind::Ecryptfs
        | FsKind::Devtmpfs => refused(),
        FsKind::Overlay => {
            undecided("an overlay does what its upper directory does, and that was not collected")
        }
        FsKind::Cifs | FsKind::Plan9 => {
            undecided(format!("on {kind} it depends on the mount's cache option"))
        }
        FsKind::Virtiofs | FsKind::Fuse(_) => undecided(format!(
            "on {kind} it depends on the program that serves the files"
        )),
        FsKind::Erofs => undecided("on erofs it depends on whether the file is compressed"),
        FsKind::Iso9660 | FsKind::Other(_) => {
            undecided(format!("whether {kind} supports direct I/O is not known"))
        }
    }
}

/// Whether ext3 or ext4 journals data.
fn data_journal(evidence: DirectIoInputs<'_>) -> Fact<bool> {
    let from_fs = evidence
        .filesystem
        .ext4
        .as_ref()
        .and_then(|ext4| ext4.data_mode.as_str().map(|mode| mode == "journal"));
    let from_mount = match evidence
        .mount
        .map_or(Fact::NotCollected, |mount| mount.option("data"))
    {
        Fact::Known(value) => Fact::Known(value.is_text("journal")),
        Fact::Absent => Fact::Known(false),
        Fact::Unknown(unknown) => Fact::Unknown(unknown),
        Fact::NotCollected => Fact::NotCollected,
    };
    match from_fs {
        Fact::Known(journal) => Fact::Known(journal),
        // Without a journal nothing is journaled; without facts about ext4 itself the mount may decide.
        Fact::Absent if evidence.filesystem.ext4.is_known() => Fact::Known(false),
        Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => from_mount,
    }
}

fn on_ext(evidence: DirectIoInputs<'_>) -> Fact<DirectIo> {
    let kind = &evidence.filesystem.kind;
    match data_journal(evidence) {
        Fact::Known(true) => DirectIoEffect::AcceptedButBuffered(Buffered::Ext4DataJournal)
            .observed(format!("{kind} is mounted with data=journal")),
        Fact::Known(false) | Fact::Absent => DirectIoEffect::Direct.by_table(format!(
            "{kind} does direct I/O unless it is mounted with data=journal"
        )),
        Fact::Unknown(unknown) => Fact::Unknown(unknown),
        Fact::NotCollected => Fact::NotCollected,
    }
}

fn on_tmpfs(kernel: &Kernel) -> Fact<DirectIo> {
    kernel.version.clone().and_then(|version| {
        if version >= Version(6, 6, 0) {
            DirectIoEffect::AcceptedButBuffered(Buffered::Tmpfs).by_table(format!("tmpfs accepts O_DIRECT since Linux 6.6 and is itself the page cache (Linux {version})"),
            )
        } else {
            DirectIoEffect::Unsupported.by_table(format!("tmpfs refuses O_DIRECT before Linux 6.6 (Linux {version})"),
            )
        }
    })
}

fn on_zfs(filesystem: &Filesystem) -> Fact<DirectIo> {
    let zfs = filesystem.zfs.as_ref();
    let version = zfs.clone().and_then(|zfs| zfs.version.clone());
    let direct = zfs.and_then(|zfs| zfs.direct.clone());
    match (version, direct) {
        (_, Fact::Known(direct)) if direct == "disabled" => DirectIoEffect::AcceptedButBuffered(Buffered::ZfsDisabled).observed("the ZFS dataset has direct=disabled",
        ),
        // zfs-0.8.0 is the first to accept the flag (openzfs/zfs pull request 7823).
        (Fact::Known(version), _) if version < Version(0, 8, 0) => DirectIoEffect::Unsupported.by_table(format!("ZFS before 0.8 refuses O_DIRECT (ZFS {version})"),
        ),
        (Fact::Known(version), _) if version < Version(2, 3, 0) => DirectIoEffect::AcceptedButBuffered(Buffered::ZfsIgnored).by_table(format!("ZFS before 2.3 ignores O_DIRECT (ZFS {version})"),
        ),
        (Fact::Known(_), Fact::Known(direct)) => DirectIoEffect::Direct.by_table(format!(
                "ZFS does direct I/O for aligned requests since 2.3, and the dataset has direct={direct}"
            ),
        ),
        (Fact::Unknown(unknown), _) | (_, Fact::Unknown(unknown)) => Fact::Unknown(unknown),
        (
            Fact::Known(_) | Fact::Absent | Fact::NotCollected,
            Fact::Known(_) | Fact::Absent | Fact::NotCollected,
        ) => undecided("on ZFS it depends on its version and on the dataset's direct property"),
    }
}

/// Uses the declared verdict only if nothing was observed or concluded.
fn with_declared(concluded_fact: Fact<DirectIo>, dio: &Dio) -> Fact<DirectIo> {
    let Fact::Known(declared) = &dio.verdict else {
        return concluded_fact;
    };
    let declared = match declared {
        DeclaredVerdict::Unsupported => DirectIoEffect::Unsupported,
        DeclaredVerdict::AcceptedButBuffered => {
            DirectIoEffect::AcceptedButBuffered(Buffered::Declared)
        }
        DeclaredVerdict::Direct => DirectIoEffect::Direct,
        DeclaredVerdict::DirectUnstableChecksums => DirectIoEffect::DirectUnstableChecksums,
        DeclaredVerdict::DirectUnstableMirrors => DirectIoEffect::DirectUnstableMirrors,
        DeclaredVerdict::DirectCowOrBuffered => return concluded_fact,
    };
    let agrees = |found: DirectIoEffect| match (found, declared) {
        (DirectIoEffect::AcceptedButBuffered(_), DirectIoEffect::AcceptedButBuffered(_)) => true,
        _ => found == declared,
    };
    match concluded_fact {
        Fact::Known(found) if agrees(found.verdict) => Fact::Known(found),
        Fact::Known(found) if found.confidence <= DirectIoBasis::Observed => Fact::unknown(
            Reason::Conflict,
            format!("the facts declare another verdict, but {}", found.because),
        ),
        Fact::Known(_) | Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => concluded(
            declared,
            DirectIoBasis::Declared,
            "the facts declare it".to_owned(),
        ),
    }
}
