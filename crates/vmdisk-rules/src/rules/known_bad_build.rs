//! `known-bad-build`

use vmdisk_facts::known_bad::{KnownBadRow, Program, virtio_win_version};
use vmdisk_facts::{Answer, BlockKind, Bug, FsKind, Version};
use vmdisk_fields::{Phrase, phrase, setting};
use vmdisk_model::{
    AioMode, CacheMode, DetectZeroes, Device, Discard, Disk, DiskField, FieldPath, Firmware,
    Format, FrontendKind, Image, ImageField, Protocol, Snapshot, Switch, TargetBus,
};
use vmdisk_rule::{Confidence, Context, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::chain::{Chain, chain_of};
use crate::{host, iothreads};

declare_rule! {
    /// A disk uses a feature with a known bug in this version of QEMU, libvirt, Linux or virtio-win.
    ///
    /// ## What it reports
    /// Compares the configuration with a table of known-bad builds, which `vmdisk facts qemu` prints. A row is
    /// reported only for a disk that uses the feature with the bug:
    ///
    /// - `io='io_uring'` in an iothread, QEMU 7.1.0;
    /// - `cache='none'` on bcachefs, QEMU up to 10.0;
    /// - internal snapshots, libvirt 11.2 and 11.3;
    /// - an overlay on an image with internal snapshots, libvirt 9.0 to 10.10;
    /// - `snapshot='external'`, libvirt before 11.10;
    /// - `io='io_uring'` above a logical volume, a ZFS volume, LUKS or a loop device, Linux 5.1 to 5.12;
    /// - `cache='none'` above a logical volume or LUKS, Linux 6.0.0 to 6.0.9 with QEMU before 7.2;
    /// - a read-only device of the host for a drive that only reads, QEMU 4.2 and 5.0 with libvirt;
    /// - limits of a disk (`<iotune>`, `throttling.`), QEMU 9.1 and 10.0;
    /// - `io='io_uring'` on CIFS, Linux 5.15 and later;
    /// - a virtio disk in a guest with the driver image virtio-win 0.1.285 to 0.1.294;
    /// - `discard='unmap'` of a virtio disk in a guest with the driver image virtio-win up to 0.1.171, which has no TRIM;
    /// - IDE and SATA disks, QEMU before 7.2.7, and 8.0 to 8.1.2;
    /// - `io='io_uring'` on btrfs, QEMU before 7.1;
    /// - `detect_zeroes` of a virtio disk, QEMU 7.2.0;
    /// - a vmdk image that the guest writes, QEMU before 8.2;
    /// - a virtio disk in an iothread, QEMU 8.1.0 to 8.2.1;
    /// - `discard_no_unref`, QEMU 8.1.0 to 8.1.2;
    /// - a USB CD-ROM drive, libvirt before 11.5;
    /// - an NVMe drive that QEMU drives itself (`<disk type='nvme'>`), libvirt before 9.3;
    /// - `snapshot='internal'` of a UEFI guest, libvirt 10.9;
    /// - `detect_zeroes`, libvirt before 11.10;
    /// - an image on NFS, libvirt 10.1 to 10.3;
    /// - `cache='none'` with threads on a block device, Linux 4.10 to 4.17;
    /// - an image on XFS, Linux 6.3.0 to 6.3.4;
    /// - a ZFS volume, OpenZFS 2.2.7, 2.3.0 and 2.3.1;
    /// - an image on ZFS, OpenZFS before 2.1.14, and 2.2.0 and 2.2.1;
    /// - a disk of virtio-scsi in a guest with the driver image virtio-win 0.1.215 to 0.1.248.
    ///
    /// `qcow2-discard-corruption`, `image-size-unaligned` and `chain-too-long` report the other rows of the table.
    ///
    /// ## Why it matters
    /// The configuration is valid, and nothing reports the bug before it loses data, hangs the guest or fails. Few
    /// people read the release notes that describe it. A distribution can have backported a fix; the version number
    /// does not show that. The finding says so, is an assumption, and is a warning or advice where distributions are known
    /// to carry the fix; it is pedantic where most guests have the feature.
    ///
    /// ## Use instead
    /// Update the program to the version in the finding. If that is not possible, use what the finding suggests.
    ///
    /// ## Reported
    /// ```xml,reported,libvirt-11.3
    /// <disk type='file' device='disk' snapshot='internal'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,libvirt-11.9
    /// <disk type='file' device='disk' snapshot='external'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,qemu-7.1
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <iothreads>1</iothreads>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='io_uring' iothread='1'/>
    ///       <source dev='/dev/vg0/web1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,qemu-10.0
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <iotune>
    ///     <total_iops_sec>1000</total_iops_sec>
    ///   </iotune>
    /// </disk>
    /// ```
    /// The name of the driver image contains the version:
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>win1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source dev='/dev/vg0/win1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='cdrom'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/iso/virtio-win-0.1.285.iso'/>
    ///       <target dev='sda' bus='sata'/>
    ///       <readonly/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>win1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' discard='unmap'/>
    ///       <source dev='/dev/vg0/win1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='cdrom'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/iso/virtio-win-0.1.164.iso'/>
    ///       <target dev='sda' bus='sata'/>
    ///       <readonly/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,hidden
    /// <domain type='kvm'>
    ///   <name>win1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source dev='/dev/vg0/win1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='cdrom'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/iso/virtio-win-0.1.164.iso'/>
    ///       <target dev='sda' bus='sata'/>
    ///       <readonly/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported,libvirt-11.4
    /// <disk type='file' device='disk' snapshot='internal'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,libvirt-11.3,qemu-7.1,facts-xfs-nvme
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' io='io_uring'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>win1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source dev='/dev/vg0/win1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='cdrom'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/iso/virtio-win-0.1.271.iso'/>
    ///       <target dev='sda' bus='sata'/>
    ///       <readonly/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden,kernel-6.0.2,qemu-6.2,facts-lvm-thin-64k
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,kernel-6.0.2,qemu-7.2,facts-lvm-thin-64k
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,kernel-6.0.2,qemu-6.2,facts-lvm-thin-64k
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writeback'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,qemu-5.0,facts-layers
    /// <disk type='block' device='cdrom'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/loop5'/>
    ///   <target dev='sda' bus='sata'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,qemu-5.0,facts-layers
    /// <disk type='block' device='cdrom'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/loop4'/>
    ///   <target dev='sda' bus='sata'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    /// ```xml,not-checked,hidden
    /// <disk type='file' device='cdrom'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/a.iso'/>
    ///   <target dev='sda' bus='usb'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    /// Not checked without a target, because the version of libvirt is unknown:
    /// ```xml,not-checked
    /// <disk type='file' device='disk' snapshot='external'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "known-bad-build",
    group: Group::DataSafety,
    severity: Severity::Warning,
    is_about_host: true,
    evidence: &[
        Evidence::Source("openSUSE obs-build pull request 893 and QEMU issue 1193: iothreads with aio=io_uring hang in 7.1.0"),
        Evidence::Source("bcachefs issues 791 and 1095, bcachefs-tools pull request 653: writes with O_DIRECT below the block size fail with EINVAL"),
        Evidence::Source("libvirt NEWS 11.4.0: Fix failure when reverting to internal snapshots; a regression in 11.2 and 11.3"),
        Evidence::Source("libvirt NEWS 11.0.0: Fix snapshot to not delete disk image with internal snapshot"),
        Evidence::Source("libvirt NEWS 11.10.0: Incorrect permissions on images after external snapshot of an inactive VM"),
        Evidence::Cve("CVE-2025-13193"),
        Evidence::Source("Proxmox qemu-server Drive.pm, storage_allows_io_uring_default: problems with CIFS since kernel 5.15"),
        Evidence::Source("canonical/lxd issue 10061 and pull requests 9979 and 10064: guests on LVM, and on ZFS above LVM, hang with io_uring on Linux 5.4, not on 5.13"),
        Evidence::Source("pop-os/pop issue 2670, pve-edge-kernel issue 341: direct I/O on LUKS and LVM fails on Linux 6.0 with QEMU before 7.2"),
        Evidence::Source("QEMU 5.1, file-posix: Fix check_hdev_writable() with auto-read-only; OpenNebula addon-storpool issue 101"),
        Evidence::Source("QEMU issue 3144: throttled disks stop to answer on 9.1 and 10.0"),
        Evidence::Source("kvm-guest-drivers-windows issue 392 and pull request 399: viostor has no TRIM in 0.1.164"),
        Evidence::Source("kvm-guest-drivers-windows issue 1614: viostor corrupts the page file in 0.1.285, not in 0.1.271; fixed in build 295"),
        Evidence::Cve("CVE-2023-5088"),
        Evidence::Source("QEMU's stable releases 7.2.7, 7.2.8, 8.1.3 and 8.2.2, and libvirt NEWS 9.3.0 to 11.10.0: the source of each row is in `vmdisk facts qemu --format json`"),
        Evidence::Source("OpenZFS pull request 17131 and issue 15526; kernel bug 217496; StorPool on Linux 4.10 to 4.17; kvm-guest-drivers-windows issue 756"),
    ],
    check: Model(check),
}

/// A way to meet a bug: a disk for which all conditions hold.
struct Use {
    bug: Bug,
    severity: Severity,
    /// The field with the feature that has the bug.
    field: DiskField,
    when: &'static [When],
    /// The advice for hosts that cannot be updated, about the field.
    instead: fn(FieldPath) -> Phrase,
    /// True if nothing is said without the version of the program: many disks use the feature, and few builds have
    /// the bug.
    needs_version: bool,
}

/// A condition of a [`Use`].
enum When {
    /// About the configuration.
    Disk(fn(&Context<'_>, &Disk) -> bool),
    /// A file on one of these file systems.
    On(&'static [FsKind]),
    /// A device of this kind under the image, at any depth.
    Above(fn(&BlockKind) -> bool),
}

use When::{Above, On};

const DIRECT: When = When::Disk(|_, disk| disk.backend.is_direct());
const WRITABLE: When = When::Disk(|_, disk| disk.is_writable());
const IO_URING: When = When::Disk(|_, disk| disk.backend.aio == Some(AioMode::IoUring));
const INTERNAL: When = When::Disk(|_, disk| disk.backend.snapshot == Some(Snapshot::Internal));
const VIRTIO_BLK: When =
    When::Disk(|context, disk| is_a(context, disk, &[FrontendKind::VirtioBlk]));
const IN_IOTHREAD: When = When::Disk(|context, disk| {
    let controller = iothreads::virtio_scsi_of(context.domain, disk);
    iothreads::of_disk(disk).next().is_some()
        || controller.is_some_and(|(_, it)| iothreads::of_controller(it).next().is_some())
});
const DETECTS_ZEROES: When = When::Disk(|_, disk| {
    let detects = disk.backend.detect_zeroes;
    detects.is_some_and(|detects| detects != DetectZeroes::Off)
});

fn is_a(context: &Context<'_>, disk: &Disk, kinds: &[FrontendKind]) -> bool {
    kinds.contains(&context.domain.frontend_kind(disk))
}

fn is_mapped(kind: &BlockKind) -> bool {
    kind.is_lvm() || kind.is_crypt()
}

fn threads(at: FieldPath) -> Phrase {
    phrase!("use {threads}", threads = setting(at, AioMode::Threads))
}

fn writeback(at: FieldPath) -> Phrase {
    phrase!(
        "use {writeback}",
        writeback = setting(at, CacheMode::Writeback)
    )
}

fn external(at: FieldPath) -> Phrase {
    phrase!("use {external}", external = setting(at, Snapshot::External))
}

/// One row for each bug that a single disk can meet. The rules `qcow2-discard-corruption`, `image-size-unaligned` and
/// `chain-too-long` report the others, and [`overlay_on_snapshot`] the one that a chain meets.
static USES: &[Use] = &[
    Use {
        bug: Bug::IoUringInIothread,
        severity: Severity::Error,
        field: DiskField::Aio,
        when: &[IO_URING, IN_IOTHREAD],
        instead: threads,
        needs_version: false,
    },
    Use {
        bug: Bug::BcachefsWriteAlignment,
        severity: Severity::Error,
        field: DiskField::Cache,
        when: &[DIRECT, WRITABLE, On(&[FsKind::Bcachefs])],
        instead: writeback,
        needs_version: false,
    },
    Use {
        bug: Bug::ReadOnlyDevice,
        severity: Severity::Warning,
        field: DiskField::Source,
        when: &[When::Disk(|context, disk| {
            let image = disk.backend.image().filter(|_| !disk.is_writable());
            let path = image.and_then(Image::host_path);
            let device = path.map(|path| host::block_device(context, path));
            let device = device.and_then(Result::ok).flatten();
            device.is_some_and(|(_, it)| it.read_only.is_true()) && context.is_for_libvirt()
        })],
        instead: |_| "use a device that can be written, or a file with the same data".into(),
        needs_version: true,
    },
    Use {
        bug: Bug::ThrottleStall,
        severity: Severity::Warning,
        field: DiskField::Iotune,
        when: &[When::Disk(|_, disk| {
            disk.backend.iotune.is_some() || !disk.backend.throttle_filters.is_empty()
        })],
        instead: |_| {
            "watch the guest for I/O that does not return, and remove the limits if it happens"
                .into()
        },
        needs_version: true,
    },
    Use {
        bug: Bug::IdeResetOverwrites,
        severity: Severity::Pedantic,
        field: DiskField::TargetBus,
        when: &[
            WRITABLE,
            When::Disk(|context, disk| {
                is_a(context, disk, &[FrontendKind::Ide, FrontendKind::Sata])
            }),
        ],
        // An address on the old bus goes with the bus.
        instead: |_| "put the disk on virtio, without its present address".into(),
        needs_version: true,
    },
    Use {
        bug: Bug::IoUringShortRead,
        severity: Severity::Warning,
        field: DiskField::Aio,
        when: &[IO_URING, On(&[FsKind::Btrfs])],
        instead: threads,
        needs_version: true,
    },
    Use {
        bug: Bug::VmdkDescriptor,
        severity: Severity::Warning,
        field: DiskField::Source,
        when: &[
            WRITABLE,
            When::Disk(|_, disk| {
                let image = disk.backend.image();
                image.is_some_and(|image| image.format == Some(Format::Vmdk))
            }),
        ],
        instead: |_| {
            "run `qemu-img convert -f vmdk -O qcow2 IMAGE NEW`, and use the new image".into()
        },
        needs_version: true,
    },
    Use {
        bug: Bug::IoThreadDrain,
        severity: Severity::Warning,
        field: DiskField::IoThread,
        when: &[
            IN_IOTHREAD,
            When::Disk(|context, disk| {
                is_a(
                    context,
                    disk,
                    &[FrontendKind::VirtioBlk, FrontendKind::VirtioScsi],
                )
            }),
        ],
        instead: |_| "remove the iothread of the disk".into(),
        needs_version: true,
    },
    Use {
        bug: Bug::DiscardNoUnrefZeroes,
        severity: Severity::Advice,
        field: DiskField::DiscardNoUnref,
        when: &[When::Disk(|_, disk| {
            disk.backend.discard_no_unref == Some(Switch::On)
        })],
        instead: |_| "copy the image from time to time".into(),
        needs_version: true,
    },
    Use {
        bug: Bug::InternalSnapshotRevert,
        severity: Severity::Warning,
        field: DiskField::Snapshot,
        when: &[INTERNAL],
        instead: external,
        needs_version: false,
    },
    Use {
        bug: Bug::InternalSnapshotUefi,
        severity: Severity::Warning,
        field: DiskField::Snapshot,
        when: &[
            INTERNAL,
            When::Disk(|context, _| context.domain.firmware == Some(Firmware::Efi)),
        ],
        instead: external,
        needs_version: true,
    },
    Use {
        bug: Bug::WorldReadableOverlay,
        severity: Severity::Warning,
        field: DiskField::Snapshot,
        when: &[When::Disk(|_, disk| {
            disk.backend.snapshot == Some(Snapshot::External)
        })],
        instead: |_| {
            "run `chmod 600` on the overlay after each snapshot of the inactive guest".into()
        },
        needs_version: false,
    },
    Use {
        bug: Bug::UsbCdrom,
        severity: Severity::Warning,
        field: DiskField::TargetBus,
        when: &[When::Disk(|context, disk| {
            let is_cdrom = disk.frontend.effective_device() == Device::Cdrom;
            is_cdrom && is_a(context, disk, &[FrontendKind::Usb])
        })],
        instead: |at| phrase!("use {sata}", sata = setting(at, TargetBus::Sata)),
        needs_version: false,
    },
    Use {
        bug: Bug::NvmeMemoryLock,
        severity: Severity::Warning,
        field: DiskField::Source,
        when: &[When::Disk(|_, disk| {
            let image = disk.backend.image();
            image.is_some_and(|image| matches!(image.protocol, Protocol::Nvme(_)))
        })],
        instead: |_| "set a hard limit of the guest's memory that is 2 GiB above its size".into(),
        needs_version: true,
    },
    Use {
        bug: Bug::DetectZeroesInChain,
        severity: Severity::Pedantic,
        field: DiskField::DetectZeroes,
        when: &[
            DETECTS_ZEROES,
            When::Disk(|_, disk| {
                let image = disk.backend.image();
                image.is_some_and(|image| image.format == Some(Format::Qcow2))
            }),
        ],
        instead: |_| "stop and start the guest after a snapshot or a block commit".into(),
        needs_version: true,
    },
    Use {
        bug: Bug::RootSquashSave,
        severity: Severity::Pedantic,
        field: DiskField::Source,
        when: &[On(&[FsKind::Nfs, FsKind::Nfs4])],
        instead: |_| "export the directory with `no_root_squash`".into(),
        needs_version: true,
    },
    Use {
        bug: Bug::IoUringOnLvm,
        severity: Severity::Error,
        field: DiskField::Aio,
        when: &[
            IO_URING,
            Above(|kind| is_mapped(kind) || matches!(kind, BlockKind::Zvol | BlockKind::Loop)),
        ],
        instead: threads,
        needs_version: false,
    },
    Use {
        bug: Bug::DirectIoMemoryAlignment,
        severity: Severity::Error,
        field: DiskField::Cache,
        when: &[
            When::Disk(|context, _| context.target.qemu.is_none_or(|it| it < Version(7, 2, 0))),
            DIRECT,
            Above(is_mapped),
        ],
        instead: writeback,
        needs_version: true,
    },
    Use {
        bug: Bug::IoUringOnCifs,
        severity: Severity::Warning,
        field: DiskField::Aio,
        when: &[IO_URING, On(&[FsKind::Cifs])],
        instead: threads,
        needs_version: false,
    },
    Use {
        bug: Bug::DirectThreads,
        severity: Severity::Warning,
        field: DiskField::Aio,
        when: &[
            DIRECT,
            WRITABLE,
            When::Disk(|_, disk| {
                let image = disk.backend.image();
                let is_device =
                    |image: &Image| matches!(image.protocol, Protocol::HostDevice { .. });
                let is_by_threads = matches!(disk.backend.aio, None | Some(AioMode::Threads));
                is_by_threads && image.is_some_and(is_device)
            }),
        ],
        instead: |at| phrase!("use {native}", native = setting(at, AioMode::Native)),
        needs_version: true,
    },
    Use {
        bug: Bug::XfsMetadata,
        severity: Severity::Warning,
        field: DiskField::Source,
        when: &[WRITABLE, On(&[FsKind::Xfs])],
        instead: |_| "run `xfs_repair -n` on the unmounted file system".into(),
        needs_version: true,
    },
    Use {
        bug: Bug::ZvolFlush,
        severity: Severity::Warning,
        field: DiskField::Source,
        when: &[WRITABLE, Above(|kind| *kind == BlockKind::Zvol)],
        instead: |_| "run `zfs set sync=always VOLUME`".into(),
        needs_version: true,
    },
    Use {
        bug: Bug::ZfsHoles,
        severity: Severity::Warning,
        field: DiskField::Source,
        when: &[WRITABLE, On(&[FsKind::Zfs])],
        instead: |_| "run `echo 0 > /sys/module/zfs/parameters/zfs_dmu_offset_next_sync`".into(),
        needs_version: true,
    },
    Use {
        bug: Bug::ViostorPagefile,
        severity: Severity::Warning,
        field: DiskField::TargetBus,
        when: &[VIRTIO_BLK],
        instead: |_| "install the drivers of 0.1.271 in the guest".into(),
        needs_version: true,
    },
    Use {
        bug: Bug::ViostorNoTrim,
        severity: Severity::Warning,
        field: DiskField::Discard,
        when: &[
            VIRTIO_BLK,
            When::Disk(|_, disk| disk.backend.discard == Some(Discard::Unmap)),
        ],
        instead: |_| "use bus `scsi` with a virtio-scsi controller, whose driver has TRIM".into(),
        needs_version: true,
    },
    Use {
        bug: Bug::VioscsiReset,
        severity: Severity::Warning,
        field: DiskField::TargetBus,
        when: &[When::Disk(|context, disk| {
            is_a(context, disk, &[FrontendKind::VirtioScsi])
        })],
        instead: |_| {
            "install the drivers of 0.1.208 in the guest, or use one queue for the controller"
                .into()
        },
        needs_version: true,
    },
];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut open: Vec<&Use> = USES.iter().filter(|it| is_open(context, it)).collect();
    let snapshots = Bug::SnapshotDeletesImage.row();
    let deletes =
        !context.target.has_bug(snapshots.bug).is_no() && runs(context, snapshots.program);
    // Disk by disk, so that facts that several bugs need are missing once for each disk.
    for (index, disk, image) in context.images() {
        open.retain(|meets| {
            let row = meets.bug.row();
            let at = FieldPath::Disk(index, meets.field);
            let mut conditions = meets.when.iter();
            let is_met = conditions.all(|when| when.holds(context, report, at, disk, image));
            if is_met {
                let instead = (meets.instead)(at);
                report_use(context, report, row, meets.severity, at, instead);
            }
            // The drivers are the same for all disks: one finding is enough.
            !is_met || row.program != Program::VirtioWin
        });
        if deletes && let Some(chain) = chain_of(context, index, disk, image) {
            overlay_on_snapshot(context, report, snapshots, &chain);
        }
    }
}

/// True if the program of a guest may have the bug.
fn is_open(context: &Context<'_>, meets: &Use) -> bool {
    let row = meets.bug.row();
    let may_have = match version_of(context, row.program).map(|it| row.answer(it)) {
        None => !meets.needs_version,
        // The image of the drivers says what can be installed, not what is.
        Some(answer) if row.program == Program::VirtioWin => answer.is_yes(),
        Some(answer) => !answer.is_no(),
    };
    may_have && runs(context, row.program)
}

impl When {
    /// True if the condition holds for a disk; what the facts do not show is reported as not checked.
    fn holds(
        &self,
        context: &Context<'_>,
        report: &mut Report,
        at: FieldPath,
        disk: &Disk,
        image: &Image,
    ) -> bool {
        match self {
            When::Disk(is_met) => is_met(context, disk),
            When::On(kinds) => is_on(context, report, at, image, kinds),
            When::Above(is_of_kind) => {
                let path = image.host_path();
                path.is_some_and(|path| is_above(context, report, at, path, is_of_kind))
            }
        }
    }
}

/// False for libvirt if QEMU runs without it.
fn runs(context: &Context<'_>, program: Program) -> bool {
    program != Program::Libvirt || context.is_for_libvirt()
}

/// The version of a program for this guest.
fn version_of(context: &Context<'_>, program: Program) -> Option<Version> {
    match program {
        Program::Qemu | Program::Libvirt | Program::Kernel => context.target.version_of(program),
        Program::Zfs => {
            let mut filesystems = context.host?.facts().filesystems.iter();
            filesystems.find_map(|it| it.zfs.value()?.version.value().copied())
        }
        Program::VirtioWin => {
            let is_cdrom = |disk: &Disk| disk.frontend.effective_device() == Device::Cdrom;
            let mut drives = context.images().filter(|(_, disk, _)| is_cdrom(disk));
            drives.find_map(|(_, _, image)| {
                virtio_win_version(image.host_path()?.rsplit('/').next()?)
            })
        }
    }
}

/// Reports that a guest uses a feature if its program has the bug, with the advice for hosts that cannot be updated; if
/// that is not known, reports that.
fn report_use(
    context: &Context<'_>,
    report: &mut Report,
    row: &KnownBadRow,
    severity: Severity,
    at: FieldPath,
    instead: Phrase,
) {
    let program = row.program.name();
    let Some(version) = version_of(context, row.program) else {
        let what = format!("the version of {program}");
        report.not_checked(at, Missing::new(what, "the target does not set it"));
        return;
    };
    match row.answer(version) {
        Answer::No(_) => {}
        Answer::Yes(_) => report_bug(report, row, severity, version, at, instead),
        Answer::Unknown => {
            let why = format!("{program} {version} was not tried");
            let what = format!("the bug `{}`", row.name);
            report.not_checked(at, Missing::new(what, why));
        }
    }
}

fn report_bug(
    report: &mut Report,
    row: &KnownBadRow,
    severity: Severity,
    version: Version,
    at: FieldPath,
    instead: Phrase,
) {
    let program = row.program.name();
    let fix = row.fix();
    let finding = report.finding(
        at,
        phrase!(
            "{disk} is affected by a bug of {program} {version}: {bug}",
            program,
            version = version.to_string(),
            bug = in_sentence(row.about),
        ),
    );
    finding
        .label("uses the feature with the bug")
        .confidence(Confidence::Assumed)
        .severity(severity);
    match fix {
        Some(fix) => finding
            .note(format!(
                "fixed in {program} {fix}; distributions may have backported the fix"
            ))
            .help(phrase!(
                "update {program}, or {instead}",
                program,
                instead = instead
            )),
        None => finding
            .note(format!("no {program} with a fix is known"))
            .help(instead),
    };
}

/// Turns a sentence into the end of another sentence.
fn in_sentence(about: &str) -> String {
    let mut letters = about.trim_end_matches('.').chars();
    let first = letters.next().into_iter().flat_map(char::to_lowercase);
    first.chain(letters).collect()
}

/// True if a device of a kind is under a path, at any depth; unknown devices are reported as not checked.
fn is_above(
    context: &Context<'_>,
    report: &mut Report,
    at: FieldPath,
    path: &str,
    is_of_kind: impl Fn(&BlockKind) -> bool,
) -> bool {
    let devices = context
        .host(|| format!("the devices under {path}"))
        .and_then(|facts| host::devices_under(facts, path));
    let devices = report.require(at, devices);
    devices.is_some_and(|all| all.iter().any(|device| is_of_kind(&device.kind)))
}

/// True if an image is a file on one of these file systems; an unknown file system is reported as not checked.
fn is_on(
    context: &Context<'_>,
    report: &mut Report,
    at: FieldPath,
    image: &Image,
    kinds: &[FsKind],
) -> bool {
    let Protocol::File { path, .. } = &image.protocol else {
        return false;
    };
    let what = || format!("the file system of {path}");
    let filesystem = context
        .host(what)
        .and_then(|host| Context::known(host.filesystem_of(path), what));
    let filesystem = report.require(at, filesystem).flatten();
    filesystem.is_some_and(|filesystem| kinds.contains(&filesystem.kind))
}

/// An overlay above an image that has internal snapshots.
fn overlay_on_snapshot(
    context: &Context<'_>,
    report: &mut Report,
    row: &KnownBadRow,
    chain: &Chain<'_>,
) {
    if let Some(missing) = chain.unknown() {
        report.not_checked(chain.at(), missing.clone());
    }
    let has_snapshots = chain
        .layers
        .iter()
        .skip(usize::from(chain.written_above == 0))
        .filter_map(|layer| layer.header)
        .any(|header| header.snapshots.value().is_some_and(|count| *count > 0));
    if has_snapshots {
        let instead = "copy the image before you delete a snapshot".into();
        let at = FieldPath::Image(chain.index, 0, ImageField::Path);
        report_use(context, report, row, Severity::Error, at, instead);
    }
}
