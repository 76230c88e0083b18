//! Findings that a plan may have: what the spec asks for, and what the host is like.

use vmdisk::Diagnostic;
use vmdisk::model::{AioMode, CacheMode, DetectZeroes, Discard};
use vmdisk::plan::{BackendSpec, BusSpec, DeviceAccess, DiskSpec, GuestSpec, Spec};

/// A finding, and what was asked for where it was found.
pub(crate) struct Case<'a> {
    guest: Option<&'a GuestSpec>,
    disk: Option<&'a DiskSpec>,
    rule: &'static str,
}

impl<'a> Case<'a> {
    pub(crate) fn new(spec: &'a Spec, diagnostic: &Diagnostic) -> Self {
        let index = diagnostic.disk.as_ref().map(|disk| disk.index);
        Case {
            guest: spec.guest.as_ref(),
            disk: index.and_then(|index| spec.disks.get(index)),
            rule: diagnostic.rule.name,
        }
    }

    fn disk_asks(&self, what: impl FnOnce(&DiskSpec) -> bool) -> bool {
        self.disk.is_some_and(what)
    }
}

/// A rule that may find something in a plan.
pub(crate) struct Allowed {
    pub(crate) rule: &'static str,
    /// Why no choice avoids it.
    pub(crate) reason: &'static str,
    /// Where that holds.
    holds: fn(&Case<'_>) -> bool,
}

/// Direct I/O is asked for by cache mode, by native AIO, or by sharing between hosts.
fn asks_for_direct_io(case: &Case<'_>) -> bool {
    case.disk_asks(|disk| {
        let is_direct = matches!(disk.cache, Some(CacheMode::None | CacheMode::Directsync));
        is_direct || disk.io == Some(AioMode::Native) || disk.shareable == Some(true)
    })
}

/// The storage exists, and is as it is.
fn exists(case: &Case<'_>) -> bool {
    case.disk_asks(|disk| !disk.backend.is_made())
}

/// Something that exists lies below the image.
fn has_backing_image(case: &Case<'_>) -> bool {
    case.disk_asks(|disk| match &disk.backend {
        BackendSpec::Qcow2(qcow2) => qcow2.backing.is_some(),
        BackendSpec::Raw(_)
        | BackendSpec::Lvm(_)
        | BackendSpec::LvmThin(_)
        | BackendSpec::Device(_)
        | BackendSpec::VhostUserBlk(_)
        | BackendSpec::Network(_)
        | BackendSpec::Zvol(_)
        | BackendSpec::Seed(_)
        | BackendSpec::Nvme(_)
        | BackendSpec::VhostVdpa(_)
        | BackendSpec::Directory(_)
        | BackendSpec::Volume(_)
        | BackendSpec::Empty(_) => false,
    })
}

/// The image exists with what it stands on, or stands on images that exist.
fn chain_exists(case: &Case<'_>) -> bool {
    exists(case) || has_backing_image(case)
}

/// The storage is a volume in a pool that exists, or whose chunks and zeroing were asked for.
fn pool_is_given(case: &Case<'_>) -> bool {
    case.disk_asks(|disk| match &disk.backend {
        BackendSpec::LvmThin(thin) => {
            thin.pool_size.is_none() || thin.chunk_size.is_some() || thin.zero == Some(false)
        }
        BackendSpec::Device(_) | BackendSpec::Lvm(_) => true,
        BackendSpec::Raw(_)
        | BackendSpec::Qcow2(_)
        | BackendSpec::VhostUserBlk(_)
        | BackendSpec::Network(_)
        | BackendSpec::Zvol(_)
        | BackendSpec::Seed(_)
        | BackendSpec::Nvme(_)
        | BackendSpec::VhostVdpa(_)
        | BackendSpec::Directory(_)
        | BackendSpec::Volume(_)
        | BackendSpec::Empty(_) => false,
    })
}

pub(crate) const TABLE: &[Allowed] = &[
    Allowed {
        rule: "backing-format-missing",
        reason: "the images exist",
        holds: chain_exists,
    },
    Allowed {
        rule: "backing-image-written",
        reason: "the image exists, and its base is in use",
        holds: chain_exists,
    },
    Allowed {
        rule: "backing-missing",
        reason: "the images exist",
        holds: chain_exists,
    },
    Allowed {
        rule: "backing-protocol-url",
        reason: "the images exist",
        holds: chain_exists,
    },
    Allowed {
        rule: "btrfs-cow-image",
        reason: "the image exists, or was asked for with copy-on-write",
        holds: |case| {
            let keeps_it = case.disk_asks(|disk| match &disk.backend {
                BackendSpec::Raw(raw) => raw.nocow == Some(false),
                BackendSpec::Qcow2(qcow2) => qcow2.nocow == Some(false),
                BackendSpec::Lvm(_)
                | BackendSpec::LvmThin(_)
                | BackendSpec::Device(_)
                | BackendSpec::VhostUserBlk(_)
                | BackendSpec::Network(_)
                | BackendSpec::Zvol(_)
                | BackendSpec::Seed(_)
                | BackendSpec::Nvme(_)
                | BackendSpec::VhostVdpa(_)
                | BackendSpec::Directory(_)
                | BackendSpec::Volume(_)
                | BackendSpec::Empty(_) => false,
            });
            keeps_it || exists(case)
        },
    },
    Allowed {
        rule: "btrfs-dio-buffered",
        reason: "direct I/O was asked for",
        holds: asks_for_direct_io,
    },
    Allowed {
        rule: "btrfs-dio-csum-corruption",
        reason: "direct I/O was asked for",
        holds: asks_for_direct_io,
    },
    Allowed {
        rule: "btrfs-dio-raid-mirror-divergence",
        reason: "direct I/O was asked for",
        holds: asks_for_direct_io,
    },
    Allowed {
        rule: "btrfs-nocow-mirrored",
        reason: "NOCOW is set on the directory, or was asked for with direct I/O",
        holds: |_| true,
    },
    Allowed {
        rule: "btrfs-raid56",
        reason: "where the disk lies was asked for",
        holds: |_| true,
    },
    Allowed {
        rule: "bus-emulated",
        reason: "the bus was asked for",
        holds: |case| case.disk_asks(|disk| disk.bus.is_some()),
    },
    Allowed {
        rule: "cache-unsafe",
        reason: "it was asked for",
        holds: |case| case.disk_asks(|disk| disk.cache == Some(CacheMode::Unsafe)),
    },
    Allowed {
        rule: "cache-writethrough",
        reason: "it was asked for",
        holds: |case| {
            case.disk_asks(|disk| {
                matches!(
                    disk.cache,
                    Some(CacheMode::Writethrough | CacheMode::Directsync)
                )
            })
        },
    },
    Allowed {
        rule: "chain-too-long",
        reason: "the images exist",
        holds: chain_exists,
    },
    Allowed {
        rule: "data-file-missing",
        reason: "the images exist",
        holds: chain_exists,
    },
    Allowed {
        rule: "detect-zeroes-unmap-no-discard",
        reason: "both were asked for",
        holds: |case| {
            case.disk_asks(|disk| {
                disk.detect_zeroes == Some(DetectZeroes::Unmap)
                    && disk.discard == Some(Discard::Ignore)
            })
        },
    },
    Allowed {
        rule: "discard-missing-thin",
        reason: "discards were to be ignored",
        holds: |case| case.disk_asks(|disk| disk.discard == Some(Discard::Ignore)),
    },
    Allowed {
        rule: "duplicate-disk-source",
        reason: "the spec gives one device under two names that only facts see through, or one image to write and to stand on",
        holds: chain_exists,
    },
    Allowed {
        rule: "encryption-mismatch",
        reason: "the images exist, and a spec has no secrets",
        holds: chain_exists,
    },
    Allowed {
        rule: "format-mismatch",
        reason: "the spec says what the image that exists is",
        holds: |case| exists(case) || has_backing_image(case),
    },
    Allowed {
        rule: "image-denied-by-apparmor",
        reason: "where the disk lies was asked for",
        holds: |_| true,
    },
    Allowed {
        rule: "image-empty",
        reason: "the image exists",
        holds: exists,
    },
    Allowed {
        rule: "image-larger-than-free-space",
        reason: "its size and where it lies were asked for",
        holds: |_| true,
    },
    Allowed {
        rule: "image-newer-than-qemu",
        reason: "the images exist",
        holds: chain_exists,
    },
    Allowed {
        rule: "image-on-volatile-filesystem",
        reason: "where the disk lies was asked for",
        holds: |_| true,
    },
    Allowed {
        rule: "image-size-unaligned",
        reason: "the image exists, and direct I/O was asked for",
        holds: |case| exists(case) && asks_for_direct_io(case),
    },
    Allowed {
        rule: "image-denied-by-selinux",
        reason: "where the disk lies was asked for",
        holds: |_| true,
    },
    Allowed {
        rule: "image-permission-denied",
        reason: "the image exists, and who owns it is not the plan's to change",
        holds: chain_exists,
    },
    Allowed {
        rule: "image-unreachable",
        reason: "where the disk lies was asked for",
        holds: |_| true,
    },
    Allowed {
        rule: "image-world-readable",
        reason: "the image exists",
        holds: exists,
    },
    Allowed {
        rule: "io-native-on-buffered-dio",
        reason: "it was asked for",
        holds: |case| case.disk_asks(|disk| disk.io == Some(AioMode::Native)),
    },
    Allowed {
        rule: "io-uring-disabled",
        reason: "it was asked for",
        holds: |case| case.disk_asks(|disk| disk.io == Some(AioMode::IoUring)),
    },
    Allowed {
        rule: "iso-writable",
        reason: "the image exists, and is to be a disk",
        holds: exists,
    },
    Allowed {
        rule: "known-bad-build",
        reason: "the spec sets what the bug is about, or the storage exists",
        holds: |case| {
            case.disk_asks(|disk| {
                let is_named =
                    matches!(&disk.backend, BackendSpec::Network(it) if it.format.is_some());
                let is_asked = disk.detect_zeroes.is_some() || disk.iotune.is_some();
                let is_of_bus =
                    matches!(disk.bus, Some(BusSpec::Usb | BusSpec::Ide | BusSpec::Sata));
                disk.io == Some(AioMode::IoUring) || is_asked || is_of_bus || is_named
            }) || exists(case)
        },
    },
    Allowed {
        rule: "lun-refused",
        reason: "the spec asks for the SCSI device itself",
        holds: |case| {
            let lun = Some(DeviceAccess::Lun);
            case.disk_asks(
                |disk| matches!(&disk.backend, BackendSpec::Device(it) if it.access == lun),
            )
        },
    },
    Allowed {
        rule: "lvm-scans-guest-volumes",
        reason: "LVM of the host is configured so",
        holds: |_| true,
    },
    Allowed {
        rule: "lvm-snapshot-fills-up",
        reason: "the device was named so",
        holds: exists,
    },
    Allowed {
        rule: "machine-missing-in-qemu",
        reason: "the machine type was asked for",
        holds: |case| case.guest.is_some_and(|guest| guest.machine.is_some()),
    },
    Allowed {
        rule: "md-degraded",
        reason: "the array lacks a member, whatever lies on it",
        holds: |_| true,
    },
    Allowed {
        rule: "mount-nobarrier",
        reason: "where the disk lies was asked for",
        holds: |_| true,
    },
    Allowed {
        rule: "multipath-single-path",
        reason: "the paths of the device are as they are",
        holds: |_| true,
    },
    Allowed {
        rule: "nfs-soft-mount",
        reason: "where the disk lies was asked for",
        holds: |_| true,
    },
    Allowed {
        rule: "odirect-silently-buffered",
        reason: "direct I/O was asked for",
        holds: asks_for_direct_io,
    },
    Allowed {
        rule: "odirect-unsupported",
        reason: "direct I/O was asked for",
        holds: asks_for_direct_io,
    },
    Allowed {
        rule: "overlay-smaller-than-backing",
        reason: "the images exist",
        holds: chain_exists,
    },
    Allowed {
        rule: "overlay-volatile",
        reason: "where the disk lies was asked for",
        holds: |_| true,
    },
    Allowed {
        rule: "partition-misaligned",
        reason: "where the disk lies was asked for",
        holds: |_| true,
    },
    Allowed {
        rule: "qcow2-aes-encryption",
        reason: "the images exist",
        holds: chain_exists,
    },
    Allowed {
        rule: "qcow2-corrupt-bit",
        reason: "the images exist",
        holds: chain_exists,
    },
    Allowed {
        rule: "qcow2-dirty-bit",
        reason: "the images exist",
        holds: chain_exists,
    },
    Allowed {
        rule: "qcow2-discard-corruption",
        reason: "discards, or zeroes that become discards, were asked for",
        holds: |case| {
            case.disk_asks(|disk| {
                disk.discard == Some(Discard::Unmap)
                    || disk.detect_zeroes == Some(DetectZeroes::Unmap)
            })
        },
    },
    Allowed {
        rule: "qcow2-l2-cache-small",
        reason: "the image exists, and a spec has no option for its cache",
        holds: exists,
    },
    Allowed {
        rule: "read-only-filesystem",
        reason: "where the disk lies was asked for",
        holds: |_| true,
    },
    Allowed {
        rule: "serial-twice",
        reason: "both serial numbers were asked for",
        holds: |case| case.disk_asks(|disk| disk.serial.is_some()),
    },
    Allowed {
        rule: "shareable-cached",
        reason: "sharing and a page cache were both asked for",
        holds: |case| case.disk_asks(|disk| disk.shareable == Some(true) && disk.cache.is_some()),
    },
    Allowed {
        rule: "source-is-mounted",
        reason: "the device was named",
        holds: exists,
    },
    Allowed {
        rule: "source-kind-mismatch",
        reason: "what lies at the path was asked for",
        holds: |_| true,
    },
    Allowed {
        rule: "tcg-instead-of-kvm",
        reason: "the way CPUs run was asked for",
        holds: |case| case.guest.is_some_and(|guest| guest.guest_type.is_some()),
    },
    Allowed {
        rule: "thin-chunk-large-with-snapshots",
        reason: "the pool exists, or its chunks were asked for",
        holds: pool_is_given,
    },
    Allowed {
        rule: "thin-discards-ignored",
        reason: "the pool exists",
        holds: pool_is_given,
    },
    Allowed {
        rule: "thin-pool-nearly-full",
        reason: "the pool exists",
        holds: pool_is_given,
    },
    Allowed {
        rule: "thin-pool-overcommitted",
        reason: "the pool exists",
        holds: pool_is_given,
    },
    Allowed {
        rule: "thin-zeroing-off",
        reason: "the pool exists, or was asked for so",
        holds: pool_is_given,
    },
    Allowed {
        rule: "unstable-device-path",
        reason: "the device was named so",
        holds: |case| {
            let is_device = case.disk_asks(|disk| matches!(disk.backend, BackendSpec::Device(_)));
            is_device || has_backing_image(case)
        },
    },
    Allowed {
        rule: "unsupported-by-target",
        reason: "what the target lacks was asked for",
        holds: |case| {
            let machine = case.guest.is_some_and(|guest| guest.machine.is_some());
            (case.disk.is_none() && machine)
                || case.disk_asks(|disk| {
                    disk.io == Some(AioMode::IoUring)
                        || disk.bus == Some(BusSpec::Nvme)
                        || disk.transient == Some(true)
                        || disk.queue_size.is_some()
                        || matches!(
                            disk.backend,
                            BackendSpec::VhostUserBlk(_) | BackendSpec::Network(_)
                        )
                })
        },
    },
    Allowed {
        rule: "zfs-sync-disabled",
        reason: "where the disk lies was asked for",
        holds: |_| true,
    },
];

/// The reason why a finding may be there, if it may.
pub(crate) fn reason(case: &Case<'_>) -> Option<&'static str> {
    let row = TABLE.iter().find(|allowed| allowed.rule == case.rule)?;
    (row.holds)(case).then_some(row.reason)
}
