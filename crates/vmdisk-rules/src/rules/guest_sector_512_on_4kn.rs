//! `guest-sector-512-on-4kn`

use vmdisk_facts::Fact;
use vmdisk_fields::phrase;
use vmdisk_model::{Change, Device, Disk, DiskField, Domain, FieldPath, FrontendKind};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::boot;

declare_rule! {
    /// The guest sees 512-byte sectors on storage with 4096-byte sectors.
    ///
    /// ## What it reports
    /// Reports a writable disk on a device with logical sectors of 4096 bytes, or in a file on ext2, ext3, ext4 or XFS
    /// on such a device, that keeps the guest's default sector size of 512. It is a warning if the image is opened with
    /// `O_DIRECT`, and advice if the page cache is used. The rule does not report disks with a configured sector size,
    /// IDE, SATA and floppy disks, which support no other size, or `device='lun'`, which shows the sectors of the
    /// device.
    ///
    /// ## Why it matters
    /// QEMU never passes the host's sector size on. Each write of less than 4096 bytes becomes a read and a write of
    /// 4096. Journals and database logs that write single sectors are slower, and a power failure in between can
    /// corrupt neighbouring sectors.
    ///
    /// ## Use instead
    /// For a new data disk, use `<blockio logical_block_size='4096' physical_block_size='4096'/>`. For a disk with
    /// data, or one that SeaBIOS boots, use only `physical_block_size='4096'`: it changes no address and makes the
    /// guest write whole 4096-byte units where it can. With other logical sectors, the guest would not find the
    /// partitions of a disk with data, and SeaBIOS does not boot from it.
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
    /// ```xml,fixed,consent,facts-disk-4kn
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
    /// A new data disk can have the sectors of its storage:
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
    /// ```xml,fixed,consent,facts-disk-4kn
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
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/web2.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "guest-sector-512-on-4kn",
    group: Group::Performance,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("on a device with 4096-byte sectors the guest sees 512/512; 20 000 writes of 512 bytes take 0.68 s, of 4096 bytes 0.27 s; strace shows pread 4096 and pwrite 4096 for each of the former", "measured for this project on Linux 6.18 with a 4Kn loop device, cache.direct=on, QEMU 5.2, 7.2, 10.0 and 11.1 alike"),
        Evidence::measured("`block size 4096 is unsupported`, then `No bootable device`", "SeaBIOS 1.16.2 with virtio-blk and virtio-scsi, logical_block_size=4096"),
        Evidence::Source("QEMU block/file-posix.c, hdev_probe_blocksizes: only DASD and zoned devices pass their sizes on"),
    ],
    check: Model(check),
}

/// The sector size that this rule checks, in bytes.
const LARGE_SECTOR: u32 = 4096;

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let Some(path) = image.host_path() else {
            continue;
        };
        if !has_default_sectors(context.domain, disk) {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::BlockIo);
        let what = || format!("the sector size under {path}");
        let sector = context
            .host(what)
            .and_then(|host| Context::known(host.sector_under(path), what));
        if report
            .require(at, sector)
            .flatten()
            .is_none_or(|sector| sector < u64::from(LARGE_SECTOR))
        {
            continue;
        }
        report_small_sectors(context, report, index, disk, path);
    }
}

/// True if the guest can write in units of 512 bytes because no sector size is set.
fn has_default_sectors(domain: &Domain, disk: &Disk) -> bool {
    let frontend = &disk.frontend;
    let is_written = frontend.logical_block_size.is_some()
        || frontend
            .physical_block_size
            .is_some_and(|size| size >= LARGE_SECTOR);
    !is_written
        && disk.is_writable()
        && frontend.effective_device() == Device::Disk
        && matches!(
            domain.frontend_kind(disk),
            FrontendKind::VirtioBlk
                | FrontendKind::VirtioScsi
                | FrontendKind::Scsi
                | FrontendKind::Usb
                | FrontendKind::Nvme
        )
}

/// The alignment in bytes that requests on this path need; 0 if there is none.
fn report_small_sectors(
    context: &Context<'_>,
    report: &mut Report,
    index: usize,
    disk: &Disk,
    path: &str,
) {
    let finding = report.finding(
        FieldPath::Disk(index, DiskField::BlockIo),
        phrase!("{disk} shows the guest 512-byte sectors, but its storage has 4096-byte sectors"),
    );
    finding
        .label("no sector size is set, so QEMU uses 512")
        .note(format!(
            "{path} is on a device with logical sectors of 4096 bytes"
        ));
    if disk.backend.is_direct() {
        finding.note(
            "with O_DIRECT, QEMU turns each smaller write into a read and a write of 4096 bytes",
        );
    } else {
        finding
            .severity(Severity::Advice)
            .note("only advice: the image is opened through the page cache, which collects smaller writes");
    }
    let physical = Change::set(
        FieldPath::Disk(index, DiskField::PhysicalBlockSize),
        LARGE_SECTOR,
    );
    if is_new(context, path) && !boot::may_be_seabios(context.domain, index) {
        let logical = Change::set(
            FieldPath::Disk(index, DiskField::LogicalBlockSize),
            LARGE_SECTOR,
        );
        finding
            .note("the image does not exist yet, so its sector size can still be chosen")
            .remedy(Fix::needs_consent([logical, physical]));
    } else {
        finding
            .note("existing partitions stay readable; 4096-byte logical sectors need a new disk, and UEFI to boot")
            .remedy(Fix::needs_consent([physical]));
    }
}

/// True if the facts show that the image does not exist yet.
fn is_new(context: &Context<'_>, path: &str) -> bool {
    let file = context.host.and_then(|host| host.file(path));
    file.is_some_and(|file| matches!(file.present, Fact::Known(false)))
}
