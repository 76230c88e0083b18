//! Known-bad builds: one row for each bug, with the builds that have it and the source.
//!
//! A row is typed by what a configuration must use to meet the bug. Rules, the planner and `vmdisk facts qemu` ask
//! this table; what O_DIRECT does on btrfs by kernel is a table of its own ([`crate::btrfs_regime`]).

use std::ops::Range;

use crate::capability::{Answer, Basis};
use crate::target::Target;
use crate::version::Version;

/// The program with the bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Program {
    /// QEMU.
    Qemu,
    /// libvirt.
    Libvirt,
    /// The host's kernel.
    Kernel,
    /// OpenZFS on the host.
    Zfs,
    /// The drivers that Windows guests get from the virtio-win image.
    VirtioWin,
}

impl Program {
    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Program::Qemu => "QEMU",
            Program::Libvirt => "libvirt",
            Program::Kernel => "Linux",
            Program::Zfs => "OpenZFS",
            Program::VirtioWin => "virtio-win",
        }
    }

    /// The word in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Program::Qemu => "qemu",
            Program::Libvirt => "libvirt",
            Program::Kernel => "kernel",
            Program::Zfs => "zfs",
            Program::VirtioWin => "virtio-win",
        }
    }
}

/// One bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownBadRow {
    /// The bug.
    pub bug: Bug,
    /// Its name, never changed once released.
    pub name: &'static str,
    /// The configuration that meets it and the consequence, in Markdown.
    pub about: &'static str,
    /// The program with the bug.
    pub program: Program,
    /// The affected builds, each range up to but not including the build with the fix, the oldest first. A range that
    /// ends at [`NEVER`] has no known fix.
    pub affected: &'static [Range<Version>],
    /// Builds about which nothing is known, between the affected ones and the first that was tried without the bug.
    pub untried: Option<Range<Version>>,
    /// Where the row comes from.
    pub source: &'static str,
}

/// The end of a range without a known fix.
pub const NEVER: Version = Version(u32::MAX, 0, 0);

impl KnownBadRow {
    /// True if a build has the bug; unknown for builds that were not tried.
    pub fn answer(&self, build: Version) -> Answer {
        let is_in = |range: &Range<Version>| range.contains(&build);
        if self.affected.iter().any(is_in) {
            Answer::Yes(Basis::Assumed(build))
        } else if self.untried.iter().any(is_in) {
            Answer::Unknown
        } else {
            Answer::No(Basis::Assumed(build))
        }
    }

    /// The builds that are known to have the fix, one for each stable series; empty if there is none.
    pub fn fixed_in(&self) -> Vec<Version> {
        let ends = self.affected.iter().map(|range| range.end);
        let tried = self.untried.as_ref().map(|range| range.end);
        let last = self.affected.last().map(|range| range.end);
        // The end of the last range is not a fix if untried builds follow.
        ends.filter(|end| *end != NEVER && !(self.untried_follows() && Some(*end) == last))
            .chain(tried.filter(|end| *end != NEVER && self.untried_follows()))
            .collect()
    }

    /// True if the builds right after the affected ones were not tried.
    fn untried_follows(&self) -> bool {
        match (&self.untried, self.affected.last()) {
            (Some(untried), Some(last)) => untried.start == last.end,
            (_, _) => false,
        }
    }

    /// The builds with the fix for a sentence: `10.0.11 and 11.0.2`; `None` without a known fix.
    pub fn fix(&self) -> Option<String> {
        let fixed = self.fixed_in();
        let (last, others) = fixed.split_last()?;
        let others: Vec<String> = others.iter().map(Version::to_string).collect();
        Some(match others.as_slice() {
            [] => last.to_string(),
            _ => format!("{} and {last}", others.join(", ")),
        })
    }

    /// The affected builds for a list: `before 10.0.11, 10.1 to before 11.0.2`.
    pub fn builds(&self) -> String {
        let range = |Range { start, end }: &Range<Version>| match (*start, *end) {
            (start, NEVER) => format!("{start} and later"),
            (Version(0, 0, 0), end) => format!("before {end}"),
            (start, end) => format!("{start} to before {end}"),
        };
        let ranges: Vec<String> = self.affected.iter().map(range).collect();
        ranges.join(", ")
    }
}

impl Bug {
    /// Its row in the table.
    pub fn row(self) -> &'static KnownBadRow {
        // The table is in the order of the enum; a test checks it.
        &TABLE[self as usize]
    }
}

impl Target {
    /// The version of a program; `None` if unknown. The drivers in a guest and a file system have no place in a target.
    pub const fn version_of(&self, program: Program) -> Option<Version> {
        match program {
            Program::Qemu => self.qemu,
            Program::Libvirt => self.libvirt,
            Program::Kernel => self.kernel,
            Program::Zfs | Program::VirtioWin => None,
        }
    }

    /// True if this target has a bug; unknown without the version of the program, and for builds that were not tried.
    ///
    /// ```
    /// use vmdisk_facts::{Target, known_bad::Bug};
    /// let target: Target = "qemu=10.1,libvirt=12.0".parse()?;
    /// assert!(target.has_bug(Bug::Qcow2DiscardDuringCow).is_yes());
    /// assert!(target.has_bug(Bug::DeepChain).is_no());
    /// # Ok::<(), vmdisk_facts::TargetError>(())
    /// ```
    pub fn has_bug(&self, bug: Bug) -> Answer {
        let row = bug.row();
        match self.version_of(row.program) {
            Some(version) => row.answer(version),
            None => Answer::Unknown,
        }
    }
}

/// The version in the published file name of a virtio-win driver image.
///
/// ```
/// use vmdisk_facts::{Version, known_bad::virtio_win_version};
/// assert_eq!(virtio_win_version("virtio-win-0.1.285.iso"), Some(Version(0, 1, 285)));
/// assert_eq!(virtio_win_version("virtio-win-0.1.285-1.iso"), Some(Version(0, 1, 285)));
/// assert_eq!(virtio_win_version("virtio-win-of-alice.iso"), None);
/// ```
pub fn virtio_win_version(file_name: &str) -> Option<Version> {
    let version = file_name
        .strip_prefix("virtio-win-")?
        .strip_suffix(".iso")?;
    let is_published = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
    Version::leading(version).filter(|_| version.bytes().all(is_published))
}

macro_rules! known_bad {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident = $name:literal, $program:ident $($from:tt .. $to:tt)|+ $(, untried $tried:tt .. $first:tt)?, $source:literal;
    )*) => {
        /// A bug that a disk configuration can meet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Bug {
            $($(#[doc = $doc])+ $variant,)*
        }

        /// One row for each bug, in the order of [`Bug`].
        pub static TABLE: &[KnownBadRow] = &[
            $(KnownBadRow {
                bug: Bug::$variant,
                name: $name,
                about: concat!($($doc),+).trim_ascii_start(),
                program: Program::$program,
                affected: &[$(version!($from)..version!($to)),+],
                untried: range!($($tried .. $first)?),
                source: $source,
            },)*
        ];
    };
}

macro_rules! version {
    (first) => {
        Version(0, 0, 0)
    };
    (never) => {
        NEVER
    };
    ($version:tt) => {
        Version $version
    };
}

macro_rules! range {
    () => {
        None
    };
    ($from:tt .. $to:tt) => {
        Some(version!($from)..version!($to))
    };
}

known_bad! {
    /// A discard, or a write of zeroes that becomes one, loses data if it meets a copy-on-write in a qcow2 image.
    Qcow2DiscardDuringCow = "qcow2-discard-during-cow", Qemu first..(10, 0, 11) | (10, 1, 0)..(11, 0, 2), "Debian changelogs of QEMU 10.0.11 and 11.0.2: qcow2: Fix corruption on discard during write with COW; Fix data loss on zero write with detect-zeroes=unmap; reproduced on 5.2 and 7.2.22, not on 10.0.13 and 11.1.3";
    /// io_uring in an iothread hangs.
    IoUringInIothread = "io-uring-in-iothread", Qemu (7, 1, 0)..(7, 1, 1), "QEMU issue 1193; openSUSE obs-build pull request 893: works on 7.0, hangs on 7.1.0";
    /// Direct I/O on bcachefs fails: QEMU derives the alignment from reads, and bcachefs requires a larger one for writes.
    BcachefsWriteAlignment = "bcachefs-write-alignment", Qemu first..(10, 1, 0), untried (10, 1, 0)..(11, 1, 0), "bcachefs issues 791 and 1095, bcachefs-tools pull request 653; block/file-posix.c asks statx(2) in 11.1 and not in 10.0.13; the releases in between were not checked";
    /// A read-only device cannot be opened for a drive that only reads: `The device is not writable`.
    ReadOnlyDevice = "read-only-device", Qemu (4, 2, 0)..(5, 1, 0), "QEMU 5.1, file-posix: Fix check_hdev_writable() with auto-read-only; libvirt uses it with QEMU 4.2 and later";
    /// A throttled disk stops to answer under load.
    ThrottleStall = "throttle-stall", Qemu (9, 1, 0)..(10, 1, 0), untried (10, 1, 0)..never, "QEMU issue 3144: reported for 9.1 and 10.0 on several hosts; no fix is known";
    /// Direct I/O does not write the last sectors of a raw file whose size is not a multiple of the alignment.
    RawEndUnaligned = "raw-end-unaligned", Qemu first..(10, 1, 0), untried (10, 1, 0)..(11, 1, 0), "tried: 5.2, 7.2 and 10.0 refuse it, 11.1 does not; the releases in between were not tried";
    /// A guest that resets a controller of IDE or SATA disks while it writes overwrites the first sectors of the disk (CVE-2023-5088).
    IdeResetOverwrites = "ide-reset-overwrites", Qemu first..(7, 2, 7) | (8, 0, 0)..(8, 1, 3), "hw/ide: reset: cancel async DMA operation before resetting state, queued for the stable releases 7.2.7 and 8.1.3; CVE-2023-5088";
    /// io_uring on btrfs returns wrong data after a short read.
    IoUringShortRead = "io-uring-short-read", Qemu (5, 0, 0)..(7, 1, 0), "block/io_uring.c, luring_resubmit_short_read: fix short read slow path, July 2022, which fixes the first version of the file; seen on btrfs";
    /// Writing to a vmdk image corrupts its descriptor, if that is a text file of more than 10 KiB.
    VmdkDescriptor = "vmdk-descriptor", Qemu first..(7, 2, 8) | (8, 0, 0)..(8, 1, 4), untried (8, 1, 4)..(8, 2, 0), "vmdk: Don't corrupt desc file in vmdk_write_cid, queued for 7.2.8, new in 8.2.0-rc2; 8.1.4 and 8.1.5 were not checked";
    /// A disk in an iothread stops to answer after a snapshot, a backup or another job that drains it.
    IoThreadDrain = "iothread-drain", Qemu (8, 1, 0)..(8, 2, 2), "virtio: Re-enable notifications after drain, queued for 8.2.2; it fixes a change of 8.1, virtio-scsi: implement BlockDevOps->drained_begin()";
    /// Writes of zeroes free clusters of a qcow2 image in spite of `discard-no-unref`, so that it fragments.
    DiscardNoUnrefZeroes = "discard-no-unref-zeroes", Qemu (8, 1, 0)..(8, 1, 3), "qcow2: keep reference on zeroize with discard-no-unref enabled, queued for 8.1.3; the option is new in 8.1";

    /// Guests with chains of more than 25 images do not start.
    DeepChain = "deep-chain", Libvirt (10, 8, 0)..(12, 0, 0), "libvirt NEWS 12.0.0: Fix startup of VMs with more than ~25 external snapshots; NEWS 10.8.0: Switch from YAJL to json-c; tried on 11.3";
    /// Reverting to an internal snapshot fails.
    InternalSnapshotRevert = "internal-snapshot-revert", Libvirt (11, 2, 0)..(11, 4, 0), "libvirt NEWS 11.4.0: Fix failure when reverting to internal snapshots";
    /// Deleting an external snapshot after a revert to an internal one below it deletes the image with the internal one.
    SnapshotDeletesImage = "snapshot-deletes-image", Libvirt (9, 0, 0)..(11, 0, 0), "libvirt NEWS 11.0.0: Fix snapshot to not delete disk image with internal snapshot; NEWS 9.0.0: external snapshots can be deleted";
    /// The overlay of an external snapshot of an inactive guest is readable by all users (CVE-2025-13193).
    WorldReadableOverlay = "world-readable-overlay", Libvirt first..(11, 10, 0), "libvirt NEWS 11.10.0: CVE-2025-13193";
    /// A USB CD-ROM drive is a hard disk for the guest.
    UsbCdrom = "usb-cdrom", Libvirt (6, 0, 0)..(11, 5, 0), "libvirt NEWS 11.5.0: Properly emulate USB cdrom device, not the case since libvirt uses -blockdev";
    /// A guest with an NVMe drive that QEMU drives itself does not start, because it may not lock enough memory.
    NvmeMemoryLock = "nvme-memory-lock", Libvirt (6, 0, 0)..(9, 3, 0), "libvirt NEWS 9.3.0: Properly configure locked memory limit for VMs with <disk type='nvme'>; the type is new in 6.0";
    /// Reverting to an internal snapshot of a UEFI guest, and deleting one of an inactive guest, forget the variables.
    InternalSnapshotUefi = "internal-snapshot-uefi", Libvirt (10, 9, 0)..(10, 10, 0), "libvirt NEWS 10.10.0: Fix reversion and inactive deletion of internal snapshots with UEFI NVRAM";
    /// Zero detection ends with the first snapshot or block commit.
    DetectZeroesInChain = "detect-zeroes-in-chain", Libvirt (6, 0, 0)..(11, 10, 0), "libvirt NEWS 11.10.0: set detect_zeroes for all backing chain layers";
    /// Saving or migrating a guest on NFS that maps root to nobody ends with `Unknown error 255`.
    RootSquashSave = "root-squash-save", Libvirt (10, 1, 0)..(10, 4, 0), "libvirt NEWS 10.4.0: Fix virsh save and migration when storage in question is root_squashed NFS; introduced in 10.1.0";

    /// io_uring above a logical volume, a ZFS volume, LUKS or a loop device hangs.
    IoUringOnLvm = "io-uring-on-lvm", Kernel (5, 1, 0)..(5, 13, 0), "canonical/lxd issue 10061 and pull requests 9979 and 10064: guests on LVM, and on ZFS above LVM, hang on Linux 5.4 and not on 5.13; Proxmox qemu-server Drive.pm: LVM hangs with its Linux 5.11; io_uring is new in 5.1";
    /// Direct I/O above a device mapper fails with QEMU before 7.2, which detects too small an alignment of memory.
    DirectIoMemoryAlignment = "direct-io-memory-alignment", Kernel (6, 0, 0)..(6, 0, 10), "pop-os/pop issue 2670 and pve-edge-kernel issue 341: `Could not read L1 table: Invalid argument` on LUKS and LVM with Linux 6.0, gone with 6.0.10 and with QEMU 7.2";
    /// io_uring on CIFS fails or hangs.
    IoUringOnCifs = "io-uring-on-cifs", Kernel (5, 15, 0)..never, "Proxmox qemu-server Drive.pm, storage_allows_io_uring_default: problems with CIFS since kernel 5.15; no fix is known";
    /// Direct I/O of threads on a block device silently corrupts data.
    DirectThreads = "direct-threads", Kernel (4, 10, 0)..(4, 18, 0), "StorPool: Beware: Silent data corruption discovered in Linux kernels 4.10-4.17, with cache=none and io=threads; io=native is not affected";
    /// XFS corrupts its metadata.
    XfsMetadata = "xfs-metadata", Kernel (6, 3, 0)..(6, 3, 5), "kernel bug 217496: XFS metadata corruption in 6.3 - 6.3.4 when using stripes; fixed by: xfs: fix livelock in delayed allocation at ENOSPC";

    /// The flushes of a guest on a ZFS volume are dropped: a power failure loses data that the guest has synced.
    ZvolFlush = "zvol-flush", Zfs (2, 2, 7)..(2, 2, 8) | (2, 3, 0)..(2, 3, 2), "OpenZFS pull request 17131, linux: zvols: correctly detect flush requests; blkdev_compat.h of 2.2.6, 2.2.7, 2.3.0 and 2.3.2";
    /// Copies of a file that is being written have holes instead of data.
    ZfsHoles = "zfs-holes", Zfs first..(2, 1, 14) | (2, 2, 0)..(2, 2, 2), "OpenZFS issue 15526, dnode_is_dirty: check dnode and its data for dirtiness, in 2.1.14 and 2.2.2";

    /// The virtio-blk driver of Windows has no TRIM.
    ViostorNoTrim = "viostor-no-trim", VirtioWin first..(0, 1, 172), untried (0, 1, 172)..(0, 1, 185), "kvm-guest-drivers-windows issue 392: Optimize-Volume -ReTrim is not supported with 0.1.164; pull request 399 of September 2019 adds it; 0.1.172 to 0.1.184 were not tried";
    /// The virtio-blk driver of Windows corrupts the page file.
    ViostorPagefile = "viostor-pagefile", VirtioWin (0, 1, 285)..(0, 1, 295), "kvm-guest-drivers-windows issue 1614: 0.1.271 does not fail, 0.1.285 does, fixed in build 295; 0.1.272 to 0.1.284 were not tried";
    /// The virtio-scsi driver of Windows resets the disk under load, and the guest hangs.
    VioscsiReset = "vioscsi-reset", VirtioWin (0, 1, 215)..(0, 1, 249), untried (0, 1, 249)..never, "kvm-guest-drivers-windows issue 756: `Reset to device, \\Device\\RaidPort` with 0.1.215, 0.1.225 and 0.1.248, not with 0.1.204 and 0.1.208; pull request 1150 of October 2024 fixes it, the first build with it was not checked";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_for_each_bug_in_order_with_ranges_that_do_not_meet() {
        let mut names = std::collections::HashSet::new();
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.bug as usize, index);
            assert_eq!(row.bug.row(), row);
            assert!(names.insert(row.name), "{}", row.name);
            assert!(!row.source.is_empty() && !row.about.is_empty());
            assert!(row.affected.iter().all(|range| range.start < range.end));
            assert!(
                row.affected
                    .windows(2)
                    .all(|pair| pair[0].end < pair[1].start),
                "{}",
                row.name
            );
            if let Some(untried) = &row.untried {
                let meets =
                    |range: &Range<Version>| range.start < untried.end && untried.start < range.end;
                assert!(!row.affected.iter().any(meets), "{}", row.name);
            }
        }
    }

    #[test]
    fn each_series_is_fixed_where_its_source_says() {
        let answers = |bug: Bug, versions: &[(u32, u32, u32)]| -> String {
            let answer = |(major, minor, micro): &(u32, u32, u32)| match bug
                .row()
                .answer(Version(*major, *minor, *micro))
            {
                Answer::Yes(_) => 'x',
                Answer::No(_) => '-',
                Answer::Unknown => '?',
            };
            versions.iter().map(answer).collect()
        };
        let discard = [
            (5, 2, 0),
            (7, 2, 22),
            (10, 0, 10),
            (10, 0, 11),
            (10, 0, 13),
            (10, 1, 0),
            (11, 0, 1),
            (11, 0, 2),
            (11, 1, 3),
        ];
        assert_eq!(answers(Bug::Qcow2DiscardDuringCow, &discard), "xxx--xx--");
        let chain = [(9, 0, 0), (10, 7, 0), (10, 8, 0), (11, 10, 0), (12, 0, 0)];
        assert_eq!(answers(Bug::DeepChain, &chain), "--xx-");
        let bcachefs = [(10, 0, 13), (10, 1, 0), (11, 0, 9), (11, 1, 0)];
        assert_eq!(answers(Bug::BcachefsWriteAlignment, &bcachefs), "x??-");
        assert_eq!(
            answers(
                Bug::InternalSnapshotRevert,
                &[(11, 1, 0), (11, 3, 0), (11, 4, 0)]
            ),
            "-x-"
        );
        assert_eq!(
            answers(Bug::IoUringOnLvm, &[(5, 4, 200), (5, 10, 0), (5, 13, 0)]),
            "xx-"
        );
        let throttle = [(9, 0, 4), (9, 1, 0), (10, 0, 13), (10, 1, 0), (11, 1, 0)];
        assert_eq!(answers(Bug::ThrottleStall, &throttle), "-xx??");
        let trim = [(0, 1, 164), (0, 1, 172), (0, 1, 185)];
        assert_eq!(answers(Bug::ViostorNoTrim, &trim), "x?-");
        assert_eq!(
            answers(Bug::IoUringOnCifs, &[(5, 14, 21), (5, 15, 0), (7, 3, 0)]),
            "-xx"
        );
    }

    #[test]
    fn the_fix_is_named_for_each_series() {
        let fix = |bug: Bug| bug.row().fix();
        assert_eq!(
            fix(Bug::Qcow2DiscardDuringCow).as_deref(),
            Some("10.0.11 and 11.0.2")
        );
        assert_eq!(fix(Bug::RawEndUnaligned).as_deref(), Some("11.1"));
        assert_eq!(fix(Bug::IoUringOnCifs), None);
        assert_eq!(fix(Bug::ThrottleStall), None);
        assert_eq!(
            Bug::Qcow2DiscardDuringCow.row().builds(),
            "before 10.0.11, 10.1 to before 11.0.2"
        );
        assert_eq!(Bug::IoUringOnCifs.row().builds(), "5.15 and later");
    }
}
