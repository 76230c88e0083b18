//! `guest-sector-512-on-4kn`

use vmdisk_facts::{Fact, FsKind, HostIndex};
use vmdisk_model::{Change, Device, Disk, DiskField, Domain, FieldPath, FrontendKind};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Fix, Group, Missing, Report, Severity, boot};

declare_rule! {
    /// The guest sees sectors of 512 bytes on storage whose sectors have 4096.
    ///
    /// ## What it does
    /// Reports a writable disk on a device with logical sectors of 4096 bytes, or in a file on ext4 or XFS on such a
    /// device, that leaves the guest's sector size at its default of 512. It is a warning where the image is opened
    /// with `O_DIRECT`, and advice where the page cache is between. Whoever writes a sector size has decided, and is
    /// left alone; so are IDE, SATA and floppies, which can have no other size, and `device='lun'`, which shows
    /// the device's own.
    ///
    /// ## Why it matters
    /// QEMU never passes the host's sector size on. Each write of less than 4096 bytes then becomes a read of
    /// 4096 and a write of 4096: journals and database logs that write single sectors pay for it, and a power cut
    /// in between can tear neighbours that the guest believes to be separate. A new disk can have sectors of
    /// 4096 bytes. A disk that has data cannot: its partition table would be read at the wrong places, and the
    /// guest would see no partitions; nor can a disk that SeaBIOS boots from. Both can still say `physical_block_size='4096'`, which changes no address and
    /// makes the guest write whole units where it can.
    ///
    /// ## Reported
    /// ```xml,reported,facts-disk-4kn
    /// <domain type='kvm'>
    ///   <name>db1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source dev='/dev/vg4k/db1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed,facts-disk-4kn
    /// <domain type='kvm'>
    ///   <name>db1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source dev='/dev/vg4k/db1'/>
    ///       <blockio physical_block_size='4096'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// A data disk that does not exist yet can have the sectors of its storage:
    /// ```xml,reported,facts-disk-4kn
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/img/old.img'/>
    ///       <blockio physical_block_size='4096'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/img/new.img'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed,facts-disk-4kn
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/img/old.img'/>
    ///       <blockio physical_block_size='4096'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/img/new.img'/>
    ///       <blockio logical_block_size='4096' physical_block_size='4096'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/web2.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Without facts, nobody knows the sectors:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/web2.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "guest-sector-512-on-4kn",
        group: Group::Performance,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "on a device with 4096-byte sectors the guest sees 512/512; 20 000 writes of 512 bytes take 0.68 s, of 4096 bytes 0.27 s; strace shows pread 4096 and pwrite 4096 for each of the former",
                how: "measured for this project on Linux 6.18 with a 4Kn loop device, cache.direct=on, QEMU 5.2, 7.2, 10.0 and 11.1 alike",
            },
            Evidence::Measured {
                figures: "`block size 4096 is unsupported`, then `No bootable device`",
                how: "SeaBIOS 1.16.2 with virtio-blk and virtio-scsi, logical_block_size=4096",
            },
            Evidence::Source("QEMU block/file-posix.c, hdev_probe_blocksizes: sizes are taken over for DASD and zoned devices only"),
        ],
        supersedes: &[],
        check: check,
    }
}

/// The sector size that this rule is about, in bytes.
const LARGE_SECTOR: u32 = 4096;

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let Some(path) = image.host_path() else {
            continue;
        };
        if !leaves_the_default(context.domain, disk) {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::BlockIo);
        let sector = context
            .host(|| format!("the sector size under {path}"))
            .and_then(|host| sector_size(host, path));
        let Some(sector) = report.require(at, sector) else {
            continue;
        };
        if sector < u64::from(LARGE_SECTOR) {
            continue;
        }
        report_small_sectors(context, report, index, disk, path);
    }
}

/// Whether the guest may write in units of 512 bytes because nobody wrote anything else.
fn leaves_the_default(domain: &Domain, disk: &Disk) -> bool {
    let frontend = &disk.frontend;
    let is_written = frontend.logical_block_size.is_some()
        || frontend
            .physical_block_size
            .is_some_and(|size| size >= LARGE_SECTOR);
    if is_written || !disk.is_writable() {
        return false;
    }
    match frontend.effective_device() {
        Device::Disk => {}
        Device::Cdrom | Device::Floppy | Device::Lun => return false,
    }
    match domain.frontend_kind(disk) {
        FrontendKind::VirtioBlk
        | FrontendKind::VirtioScsi
        | FrontendKind::Scsi
        | FrontendKind::Usb
        | FrontendKind::Nvme => true,
        FrontendKind::VhostUserBlk
        | FrontendKind::Sata
        | FrontendKind::Ide
        | FrontendKind::Fdc
        | FrontendKind::Sd
        | FrontendKind::Foreign => false,
    }
}

/// Size of the sectors that requests on this path have to fit, in bytes; 0 where nothing depends on it.
fn sector_size(host: &HostIndex<'_>, path: &str) -> Result<u64, Missing> {
    let what = || format!("the sector size under {path}");
    let device = Context::known(host.block_device(path), what);
    if let Ok(Some(device)) = device {
        let logical = Context::known(device.queue.logical.clone(), what)?;
        return Ok(logical.unwrap_or(0));
    }
    let Some(filesystem) = Context::known(host.filesystem_of(path), what)? else {
        return Ok(0);
    };
    // These pass a request on as it is, so that the device's sectors are theirs; others cut requests
    // into blocks of their own.
    let passes_on = matches!(
        filesystem.kind,
        FsKind::Xfs | FsKind::Ext2 | FsKind::Ext3 | FsKind::Ext4
    );
    if !passes_on {
        return Ok(0);
    }
    Context::known(filesystem.devices.as_ref(), what)?;
    let mut largest = 0;
    for device in host.devices_of(filesystem) {
        let logical = Context::known(device.queue.logical.clone(), what)?;
        largest = largest.max(logical.unwrap_or(0));
    }
    Ok(largest)
}

fn report_small_sectors(
    context: &Context<'_>,
    report: &mut Report,
    index: usize,
    disk: &Disk,
    path: &str,
) {
    let finding = report.finding(
        FieldPath::Disk(index, DiskField::BlockIo),
        format!(
            "`{}` shows the guest sectors of 512 bytes, and its storage has sectors of 4096",
            disk.name()
        ),
    );
    finding
        .label("no sector size is written, so it is 512")
        .note(format!(
            "{path} is on a device with logical sectors of 4096 bytes"
        ));
    if disk.backend.is_direct() {
        finding.note(
            "with O_DIRECT QEMU turns each smaller write into a read and a write of 4096 bytes",
        );
    } else {
        finding
            .severity(Severity::Advice)
            .note("advice only: the image is opened through the page cache, which collects smaller writes");
    }
    let physical = Change::set(
        FieldPath::Disk(index, DiskField::PhysicalBlockSize),
        LARGE_SECTOR.to_string(),
    );
    if is_new(context, path) && !boot::may_be_seabios(context.domain, index) {
        let logical = Change::set(
            FieldPath::Disk(index, DiskField::LogicalBlockSize),
            LARGE_SECTOR.to_string(),
        );
        finding
            .note("the image does not exist yet, so that its sectors can still be chosen")
            .help("write <blockio logical_block_size='4096' physical_block_size='4096'/>")
            .fix(Fix::needs_consent([logical, physical]));
    } else {
        finding
            .help("write <blockio physical_block_size='4096'/>, which keeps the partitions of a disk that has data readable; only a new disk can have logical_block_size='4096' too, and only UEFI boots from it")
            .fix(Fix::needs_consent([physical]));
    }
}

/// Whether the image is known not to exist yet.
fn is_new(context: &Context<'_>, path: &str) -> bool {
    let file = context.host.and_then(|host| host.file(path));
    file.is_some_and(|file| matches!(file.present, Fact::Known(false)))
}
