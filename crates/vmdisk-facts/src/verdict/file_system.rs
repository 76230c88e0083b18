//! What files of each kind of file system can do. A kind without a row is not known.

use crate::filesystem::{Filesystem, FsKind};
use crate::index::HostIndex;

/// What the files of a kind of file system can do; `None` where that is not known, or where it depends on the file
/// system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FsAbilities {
    /// A file can have holes, which take no space.
    pub has_holes: Option<bool>,
    /// Holes can be punched, so that discards free space.
    pub punches_holes: Option<bool>,
    /// fallocate(2) reserves space without writing it.
    pub reserves: Option<bool>,
    /// Files can share blocks (`cp --reflink`).
    pub shares_blocks: Option<bool>,
    /// Data has checksums, unless a file is written in place.
    pub has_checksums: Option<bool>,
    /// An overwrite goes to new blocks, unless a file is written in place.
    pub copies_on_write: Option<bool>,
    /// Where the row comes from.
    pub source: &'static str,
}

const UNKNOWN: FsAbilities = FsAbilities {
    has_holes: None,
    punches_holes: None,
    reserves: None,
    shares_blocks: None,
    has_checksums: None,
    copies_on_write: None,
    source: "",
};

/// A row whose cells are `y` for yes, `n` for no and `?`, in the order of the fields.
const fn row(cells: &[u8; 6], source: &'static str) -> FsAbilities {
    const fn cell(cell: u8) -> Option<bool> {
        match cell {
            b'y' => Some(true),
            b'n' => Some(false),
            _ => None,
        }
    }
    FsAbilities {
        has_holes: cell(cells[0]),
        punches_holes: cell(cells[1]),
        reserves: cell(cells[2]),
        shares_blocks: cell(cells[3]),
        has_checksums: cell(cells[4]),
        copies_on_write: cell(cells[5]),
        source,
    }
}

const READ_ONLY: &str = "Linux has no write operations for it";

/// The kinds, by the kernel's names: holes, punching, reserving, sharing, checksums, copy-on-write.
const ROWS: &[(&str, FsAbilities)] = &[
    ("ext2", row(b"yynnnn", EXTENTS)),
    ("ext3", row(b"yynnnn", EXTENTS)),
    (
        "ext4",
        row(b"yyynnn", "fallocate(2); fixtures/measurements"),
    ),
    ("xfs", row(b"yyy?nn", "fallocate(2); mkfs.xfs(8), reflink")),
    ("btrfs", row(b"yyyyyy", "fallocate(2); btrfs(5)")),
    ("bcachefs", row(b"yyyyyy", "Linux fs/bcachefs/fs-io.c")),
    (
        "f2fs",
        row(
            b"yyynny",
            "Linux fs/f2fs/file.c, f2fs_fallocate; Documentation/filesystems/f2fs.rst",
        ),
    ),
    (
        "zfs",
        row(
            b"yyn?yy",
            "OpenZFS zpl_file.c, zpl_fallocate_common: mode 0 reserves nothing",
        ),
    ),
    ("tmpfs", row(b"yyynnn", "fallocate(2)")),
    (
        "ramfs",
        row(b"ynnnnn", "Linux fs/ramfs/file-mmu.c has no fallocate"),
    ),
    ("gfs2", row(b"yyynnn", "fallocate(2)")),
    (
        "ocfs2",
        row(b"yyy?nn", "Linux fs/ocfs2/file.c, ocfs2_fallocate"),
    ),
    (
        "vfat",
        row(
            b"nnynnn",
            "Linux fs/fat/file.c, fat_cont_expand, fat_fallocate",
        ),
    ),
    (
        "exfat",
        row(
            b"nnnnnn",
            "Linux fs/exfat/file.c: exfat_cont_expand allocates, and there is no fallocate",
        ),
    ),
    (
        "ecryptfs",
        row(
            b"nnnnnn",
            "Linux fs/ecryptfs/inode.c, truncate_upper writes zeros",
        ),
    ),
    ("squashfs", row(b"?nn???", READ_ONLY)),
    ("erofs", row(b"?nn???", READ_ONLY)),
    ("iso9660", row(b"?nn???", READ_ONLY)),
];

const EXTENTS: &str = "Linux fs/ext4/extents.c, ext4_do_fallocate refuses files without extents, ext4_punch_hole does not";

impl FsKind {
    /// What its files can do.
    pub fn abilities(&self) -> &'static FsAbilities {
        let name = self.name();
        let row = ROWS.iter().find(|(kind, _)| *kind == name);
        row.map_or(&UNKNOWN, |(_, abilities)| abilities)
    }
}

impl HostIndex<'_> {
    /// What the files of a file system can do: of an overlay, those of its upper directory.
    pub fn abilities_of(&self, filesystem: &Filesystem) -> &'static FsAbilities {
        let written = self.written_filesystem(filesystem);
        written
            .known()
            .map_or(&UNKNOWN, |written| written.kind.abilities())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_without_a_row_is_not_known() {
        for kind in ["ntfs3", "jfs", "made-up", "fuse.sshfs", "nfs4", "overlay"] {
            assert_eq!(*FsKind::from(kind).abilities(), UNKNOWN, "{kind}");
        }
        for (kind, abilities) in ROWS {
            assert!(!abilities.source.is_empty(), "{kind}");
            assert_eq!(FsKind::from(*kind).abilities(), abilities, "{kind}");
        }
        let zfs = FsKind::Zfs.abilities();
        assert_eq!(
            (zfs.has_holes, zfs.reserves, zfs.shares_blocks),
            (Some(true), Some(false), None)
        );
    }
}
