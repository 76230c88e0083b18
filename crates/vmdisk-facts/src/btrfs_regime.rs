//! What O_DIRECT writes do on btrfs, by kernel version: a table, because no single "since" describes it.
//!
//! The answer changed in 6.15 and 7.0 and was carried back into two long-term lines, so that a plain comparison
//! misjudges both of them. Sources: btrfs commits 968f19c5b1b7 (fall back to buffered writes when the inode has
//! checksums, 6.15) and 7c2830f00c3e (the same when the data profile duplicates, 7.0); the announcement of Linux
//! 6.6.130; the Debian changelog of 6.12.75 and 6.12.77. Booted and measured: 6.1.192, 6.12.117 and 6.18.44.

use crate::fact::{Fact, Reason};
use crate::version::Version;

use self::Write::{Bounced, Buffered, Direct, NotVerified, Refused};

/// The effect of one O_DIRECT write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// open(2) refuses O_DIRECT.
    Refused,
    /// The device receives the guest's buffer; if the guest changes it meanwhile, checksum or mirror do not match.
    Direct,
    /// The write uses the page cache and waits for the writeback.
    Buffered,
    /// The guest's buffer is copied first, and the copy is written to the device without the page cache.
    Bounced,
    /// Not tested yet.
    NotVerified,
}

/// One range of upstream kernels that behave alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BtrfsRow {
    /// The first kernel of the range.
    pub from: Version,
    /// The first kernel after the range.
    pub until: Version,
    /// Files with data checksums: all but NOCOW and nodatasum.
    pub checksummed: Write,
    /// Files without data checksums, on data profiles with one copy (single, raid0).
    pub plain: Write,
    /// Files without data checksums, on data profiles with redundancy (dup, raid1, raid10, raid5, raid6).
    pub plain_redundant: Write,
    /// Where the row comes from.
    pub source: &'static str,
}

const NONE: &str = "btrfs commit 4b46fce23349 added direct I/O in 2.6.35";
const DIRECT: &str =
    "true direct I/O; btrfs commit 4b46fce23349 (2.6.35), checksum errors measured on 6.1.192";
const CHECKSUMS: &str =
    "btrfs commit 968f19c5b1b7, in the 6.15 pull request and the announcement of 6.6.130";
const COPIES: &str = "the changelog of Debian's 6.12 names 7c2830f00c3e under 6.12.75 and 968f19c5b1b7 under 6.12.77";
const BOTH: &str = "btrfs commits 968f19c5b1b7 and 7c2830f00c3e; measured on 6.12.117 and 6.18.44";
const IN_6_18: &str = "6.18.44 has 7c2830f00c3e, which was proposed for 6.19 to 6.12 in February 2026; the first 6.18 release with it is unknown";
const IN_6_19: &str = "7c2830f00c3e was proposed for 6.19 to 6.12 in February 2026; the first 6.19 release with it is unknown";
const COPIED: &str = "btrfs commit e9b7b9d9e78e uses IOMAP_DIO_BOUNCE since 7.3; not booted here";

/// The ranges, in order and without gaps, each up to but not including the next.
pub const TABLE: &[BtrfsRow] = &[
    BtrfsRow {
        plain: Refused,
        ..row((0, 0, 0), (2, 6, 35), Refused, Refused, NONE)
    },
    // Every long-term line up to 6.1 stays here for good.
    row((2, 6, 35), (6, 6, 130), Direct, Direct, DIRECT),
    row((6, 6, 130), (6, 7, 0), Buffered, Direct, CHECKSUMS),
    row((6, 7, 0), (6, 12, 75), Direct, Direct, DIRECT),
    row((6, 12, 75), (6, 12, 77), Direct, Buffered, COPIES),
    row((6, 12, 77), (6, 13, 0), Buffered, Buffered, BOTH),
    row((6, 13, 0), (6, 15, 0), Direct, Direct, DIRECT),
    row((6, 15, 0), (6, 18, 0), Buffered, Direct, CHECKSUMS),
    row((6, 18, 0), (6, 18, 44), Buffered, NotVerified, IN_6_18),
    row((6, 18, 44), (6, 19, 0), Buffered, Buffered, BOTH),
    row((6, 19, 0), (7, 0, 0), Buffered, NotVerified, IN_6_19),
    row((7, 0, 0), (7, 3, 0), Buffered, Buffered, BOTH),
    row((7, 3, 0), (u32::MAX, 0, 0), Bounced, NotVerified, COPIED),
];

/// A version, by its three numbers.
type Numbers = (u32, u32, u32);

const fn row(
    from: Numbers,
    until: Numbers,
    checksummed: Write,
    plain_redundant: Write,
    source: &'static str,
) -> BtrfsRow {
    BtrfsRow {
        from: Version(from.0, from.1, from.2),
        until: Version(until.0, until.1, until.2),
        checksummed,
        plain: Direct,
        plain_redundant,
        source,
    }
}

/// Kernels of vendors who carry patches back without the version number showing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BtrfsVendorRow {
    /// The vendors, as `ID` in os-release spells them.
    pub vendors: &'static [&'static str],
    /// The first kernel of the range.
    pub from: Version,
    /// The first kernel after the range.
    pub until: Version,
    /// Why the table above does not hold for them.
    pub why: &'static str,
}

/// Where the upstream table must not be used: no claim is better than a wrong one.
///
/// Below 6.4 nobody is known to have carried the fallback back, and from 6.15 on every kernel has it.
pub const VENDORS: &[BtrfsVendorRow] = &[
    BtrfsVendorRow {
        vendors: &["ubuntu", "proxmox"],
        from: Version(6, 6, 0),
        until: Version(6, 15, 0),
        why: "Ubuntu's kernels, and Proxmox's kernels derived from them, contain patches from other stable series",
    },
    BtrfsVendorRow {
        vendors: &["sles", "opensuse-leap"],
        from: Version(6, 4, 0),
        until: Version(6, 15, 0),
        why: "SUSE backports btrfs patches without changing the kernel's version",
    },
    BtrfsVendorRow {
        vendors: &["rhel", "centos", "almalinux", "rocky", "ol"],
        from: Version(6, 4, 0),
        until: Version(6, 15, 0),
        why: "RHEL and its rebuilds backport patches without changing the kernel's version",
    },
];

/// Returns the row of a kernel, or the reason why it is unknown.
pub fn regime(kernel: Version, vendor: Option<&str>) -> Fact<&'static BtrfsRow> {
    let theirs = VENDORS.iter().find(|row| {
        vendor.is_some_and(|vendor| row.vendors.contains(&vendor))
            && (row.from..row.until).contains(&kernel)
    });
    if let Some(BtrfsVendorRow { why, .. }) = theirs {
        return Fact::unknown(
            Reason::Undecided,
            format!(
                "{why}, so the version {kernel} does not determine the effect of O_DIRECT on btrfs"
            ),
        );
    }
    // The last row whose range has begun: the table is sorted and has no gaps.
    let begun = TABLE.partition_point(|row| row.from <= kernel);
    match begun.checked_sub(1).and_then(|index| TABLE.get(index)) {
        Some(row) => Fact::Known(row),
        None => Fact::unknown(Reason::Parse, format!("{kernel} is not a kernel version")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> &'static BtrfsRow {
        regime(text.parse().unwrap(), None).known().unwrap()
    }

    #[test]
    fn the_ranges_are_sorted_without_gap_or_overlap() {
        assert_eq!(TABLE[0].from, Version(0, 0, 0));
        for pair in TABLE.windows(2) {
            assert!(pair[0].from < pair[0].until, "{:?}", pair[0]);
            assert_eq!(pair[0].until, pair[1].from);
            assert_ne!(
                (pair[0].checksummed, pair[0].plain, pair[0].plain_redundant),
                (pair[1].checksummed, pair[1].plain, pair[1].plain_redundant),
                "two rows that say the same are one row"
            );
        }
        assert!(TABLE.iter().all(|row| !row.source.is_empty()));
        assert!(
            VENDORS
                .iter()
                .all(|row| row.from < row.until && !row.why.is_empty())
        );
    }

    #[test]
    fn each_boundary_is_where_the_kernels_changed() {
        let expected = [
            ("2.6.34", Refused, Refused, Refused),
            ("2.6.35", Direct, Direct, Direct),
            ("5.15", Direct, Direct, Direct),
            ("6.1.192", Direct, Direct, Direct),
            ("6.5", Direct, Direct, Direct),
            ("6.6.129", Direct, Direct, Direct),
            ("6.6.130", Buffered, Direct, Direct),
            ("6.7", Direct, Direct, Direct),
            ("6.11", Direct, Direct, Direct),
            ("6.12.74", Direct, Direct, Direct),
            ("6.12.75", Direct, Direct, Buffered),
            ("6.12.76", Direct, Direct, Buffered),
            ("6.12.77", Buffered, Direct, Buffered),
            ("6.12.117", Buffered, Direct, Buffered),
            ("6.13", Direct, Direct, Direct),
            ("6.14", Direct, Direct, Direct),
            ("6.15", Buffered, Direct, Direct),
            ("6.17.99", Buffered, Direct, Direct),
            ("6.18.43", Buffered, Direct, NotVerified),
            ("6.18.44", Buffered, Direct, Buffered),
            ("6.19", Buffered, Direct, NotVerified),
            ("7.0", Buffered, Direct, Buffered),
            ("7.2.99", Buffered, Direct, Buffered),
            ("7.3", Bounced, Direct, NotVerified),
            ("8.0", Bounced, Direct, NotVerified),
        ];
        for (kernel, checksummed, plain, plain_redundant) in expected {
            let row = at(kernel);
            assert_eq!(
                (row.checksummed, row.plain, row.plain_redundant),
                (checksummed, plain, plain_redundant),
                "{kernel}"
            );
        }
    }

    #[test]
    fn a_vendor_who_hides_backports_makes_the_answer_unknown() {
        assert!(regime(Version(6, 8, 0), Some("ubuntu")).is_unknown());
        assert!(regime(Version(6, 4, 0), Some("sles")).is_unknown());
        assert!(regime(Version(6, 12, 0), Some("almalinux")).is_unknown());
        assert!(regime(Version(6, 8, 12), Some("proxmox")).is_unknown());
        // Without backports, the table applies to them too.
        assert!(regime(Version(5, 15, 0), Some("ubuntu")).is_known());
        assert!(regime(Version(6, 17, 0), Some("ubuntu")).is_known());
        assert!(regime(Version(6, 12, 77), Some("debian")).is_known());
    }
}
