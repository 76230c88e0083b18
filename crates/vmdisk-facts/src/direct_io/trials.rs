//! The observed effects of O_DIRECT by filesystem and kernel, which the tables must match.
//!
//! `cargo xtask hostlab` writes with O_DIRECT under Debian's kernels and counts the pages that go through the page cache; on
//! some filesystems the memory that is written from changes meanwhile, and what was written is read back. Linux 6.18.44 was the
//! machine this project was made on, where the pages of a single write were counted. Everything else that the tables say is
//! read from sources.

use crate::version::Version;

/// What O_DIRECT was seen to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// open(2) refused it.
    Refused,
    /// Writes went through the page cache.
    Buffered,
    /// Writes did not.
    Direct,
}

/// One filesystem under one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectIoTrial {
    /// The filesystem, by the kernel's name.
    pub filesystem: &'static str,
    /// Its condition: a mount option, a flag of the directory, the profile of the data.
    pub with: &'static str,
    /// The kernel.
    pub kernel: Version,
    /// The method.
    pub how: &'static str,
    /// The observation.
    pub seen: Seen,
    /// Writes that could not be read back, of all writes during which their memory changed; `None` without such a
    /// test.
    pub unreadable: Option<(u32, u32)>,
}

const BOOKWORM: Version = Version(6, 1, 176);
const BACKPORTS: Version = Version(6, 12, 95);
const HERE: Version = Version(6, 18, 44);

/// Every trial on which the tables are based; trials of the lab as `cargo xtask hostlab` printed them on 20 November 2026.
pub const TRIALS: &[DirectIoTrial] = &[
    trial("ext4", "", BOOKWORM, Seen::Direct, Some(0)),
    trial("ext4", "", BACKPORTS, Seen::Direct, Some(0)),
    trial("ext4", "data=journal", BOOKWORM, Seen::Buffered, None),
    trial("ext4", "data=journal", BACKPORTS, Seen::Buffered, None),
    trial(
        "xfs",
        "sectors of 4096 bytes",
        BOOKWORM,
        Seen::Direct,
        Some(0),
    ),
    trial(
        "xfs",
        "sectors of 4096 bytes",
        BACKPORTS,
        Seen::Direct,
        Some(0),
    ),
    trial("btrfs", "checksums", BOOKWORM, Seen::Direct, Some(175)),
    trial("btrfs", "checksums", BACKPORTS, Seen::Buffered, Some(0)),
    trial("btrfs", "NOCOW", BOOKWORM, Seen::Direct, Some(0)),
    trial("btrfs", "NOCOW", BACKPORTS, Seen::Direct, Some(0)),
    trial("btrfs", "checksums, raid1", BOOKWORM, Seen::Direct, None),
    trial("btrfs", "checksums, raid1", BACKPORTS, Seen::Buffered, None),
    trial("btrfs", "NOCOW, raid1", BOOKWORM, Seen::Direct, None),
    trial("btrfs", "NOCOW, raid1", BACKPORTS, Seen::Buffered, None),
    trial("tmpfs", "", BOOKWORM, Seen::Refused, None),
    trial("tmpfs", "", BACKPORTS, Seen::Buffered, None),
    trial("overlay", "on ext4", BOOKWORM, Seen::Direct, None),
    trial("overlay", "on ext4", BACKPORTS, Seen::Direct, None),
    counted("ext4", "", Seen::Direct),
    counted("ext4", "data=journal", Seen::Buffered),
    counted("xfs", "", Seen::Direct),
    counted("xfs", "sectors of 4096 bytes", Seen::Direct),
    counted("btrfs", "checksums", Seen::Buffered),
    counted("btrfs", "NOCOW", Seen::Direct),
    counted("btrfs", "NOCOW, raid1", Seen::Buffered),
    counted("tmpfs", "", Seen::Buffered),
    counted("ramfs", "", Seen::Refused),
    counted("hugetlbfs", "", Seen::Refused),
    counted("squashfs", "", Seen::Refused),
    counted("erofs", "not compressed, read only", Seen::Direct),
    counted("overlay", "on ext4", Seen::Direct),
];

/// A single write of 64 KiB, whose pages were counted.
const fn counted(filesystem: &'static str, with: &'static str, seen: Seen) -> DirectIoTrial {
    DirectIoTrial {
        filesystem,
        with,
        kernel: HERE,
        how: match seen {
            Seen::Refused => "open(2)",
            Seen::Buffered | Seen::Direct => "cachestat(2) and ftrace",
        },
        seen,
        unreadable: None,
    }
}

const fn trial(
    filesystem: &'static str,
    with: &'static str,
    kernel: Version,
    seen: Seen,
    unreadable: Option<u32>,
) -> DirectIoTrial {
    /// How many writes each race has.
    const WRITES: u32 = 300;
    DirectIoTrial {
        filesystem,
        with,
        kernel,
        how: "cargo xtask hostlab",
        seen,
        unreadable: match unreadable {
            Some(failed) => Some((failed, WRITES)),
            None => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btrfs_regime::{self, Write};

    #[test]
    fn the_table_of_btrfs_agrees_with_the_trials() {
        let mut held = 0;
        for trial in TRIALS.iter().filter(|trial| trial.filesystem == "btrfs") {
            let row = btrfs_regime::regime(trial.kernel, Some("debian"))
                .known()
                .unwrap();
            let write = match trial.with {
                "checksums" | "checksums, raid1" => row.checksummed,
                "NOCOW" => row.plain,
                "NOCOW, raid1" => row.plain_redundant,
                other => panic!("{other}"),
            };
            let expected = match trial.seen {
                Seen::Refused => Write::Refused,
                Seen::Buffered => Write::Buffered,
                Seen::Direct => Write::Direct,
            };
            assert_eq!(write, expected, "{trial:?}");
            // Only a buffer that is written to the device uncopied causes wrong checksums.
            if let Some((failed, _)) = trial.unreadable {
                let is_at_risk = trial.with.starts_with("checksums") && write == Write::Direct;
                assert_eq!(failed > 0, is_at_risk, "{trial:?}");
            }
            held += 1;
        }
        assert_eq!(held, 11);
    }
}
