//! `block-size-refused`

use vmdisk_fields as fields;
use vmdisk_fields::{phrase, setting};
use vmdisk_model::{Change, Device, Disk, DiskField, FieldPath, FrontendKind, TargetBus};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity};

use super::line::{Line, base_of, line_rule};
use crate::members::Members;
use crate::syntax::value::size_of;

line_rule! {
    /// A disk has a sector size that QEMU refuses.
    ///
    /// ## What it reports
    /// Reports logical and physical block sizes that are not a power of two from 512 bytes to 2 MiB, a logical size
    /// above the physical size, a logical size other than 512 on IDE and SATA, and a discard granularity that is not a
    /// multiple of the sector. A size of 0 means that none is set, and is not reported. On command lines it also checks
    /// `min_io_size` and `opt_io_size`.
    ///
    /// ## Why it matters
    /// libvirt defines the guest, but QEMU exits at start, for example with
    /// `logical_block_size > physical_block_size not supported`. QEMU uses 512 for a physical size that is not set and
    /// does not raise it, so a logical size of 4096 needs both. IDE and SATA disks discard in steps of 512 bytes, so
    /// they support no other sector size; the message then is `discard_granularity must be 512 for ide`.
    ///
    /// ## Use instead
    /// Set both sizes: `<blockio logical_block_size='4096' physical_block_size='4096'/>`, on virtio or SCSI. Change the
    /// logical size only on an empty disk: partition tables and file systems written with another sector size become
    /// unreadable.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <blockio logical_block_size='4096'/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <blockio logical_block_size='4096' physical_block_size='4096'/>
    /// </disk>
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,logical_block_size=4096,physical_block_size=4096,min_io_size=1024
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <blockio logical_block_size='512' physical_block_size='4096'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <blockio logical_block_size='0' physical_block_size='4096'/>
    /// </disk>
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,logical_block_size=4096,physical_block_size=4096,min_io_size=4096
    /// ```
    name: "block-size-refused",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_qemu("logical_block_size > physical_block_size not supported", "hw/block/block.c, blkconf_blocksizes"),
        Evidence::refused_by_qemu("discard_granularity must be 512 for ide", "hw/ide/qdev.c, ide_dev_initfn"),
    ],
    check: Model(check), Text(check_line),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let is_ide = match context.domain.frontend_kind(disk) {
            FrontendKind::Sata | FrontendKind::Ide => true,
            FrontendKind::VirtioBlk
            | FrontendKind::VirtioScsi
            | FrontendKind::Scsi
            | FrontendKind::Usb
            | FrontendKind::Nvme => false,
            // Buses with a fixed sector size.
            _ => continue,
        };
        let frontend = &disk.frontend;
        // The device of the host has its own sectors, and QEMU has no property for others.
        if frontend.effective_device() == Device::Lun {
            continue;
        }
        let at = |field| FieldPath::Disk(index, field);
        if has_odd_size(report, index, disk) {
            continue;
        }
        let logical = set(frontend.logical_block_size).unwrap_or(512);
        let physical = set(frontend.physical_block_size).unwrap_or(512);
        if is_ide && logical != 512 {
            report
                .finding(
                    at(DiskField::LogicalBlockSize),
                    phrase!("{disk} is an IDE or SATA disk with sectors of {logical} bytes, which QEMU does not support", logical),
                )
                .label("only 512 is supported here")
                .help(phrase!(
                    "remove {size}, or use {virtio} or {scsi} for such sectors",
                    size = at(DiskField::LogicalBlockSize),
                    virtio = setting(at(DiskField::TargetBus), TargetBus::Virtio),
                    scsi = setting(at(DiskField::TargetBus), TargetBus::Scsi),
                ));
            continue;
        }
        if logical > physical {
            let field = match frontend.physical_block_size {
                Some(_) => DiskField::PhysicalBlockSize,
                None => DiskField::LogicalBlockSize,
            };
            report
                .finding(
                    at(field),
                    phrase!("{disk} has logical sectors of {logical} bytes and physical ones of {physical}, which QEMU refuses", logical, physical),
                )
                .label("QEMU uses 512 for a physical size that is not set, and does not raise it")
                .remedy(Fix::safe([Change::set(at(DiskField::PhysicalBlockSize), logical)]));
        }
        let granularity = frontend.discard_granularity.filter(|size| *size != 0);
        if let Some(granularity) =
            granularity.filter(|size| size % logical != 0 || (is_ide && *size != 512))
        {
            let multiple = if is_ide {
                "only 512 bytes".to_owned()
            } else {
                format!("a multiple of {logical}")
            };
            report
                .finding(
                    at(DiskField::DiscardGranularity),
                    phrase!(
                        "{disk} discards in steps of {granularity} bytes, which QEMU refuses",
                        granularity
                    ),
                )
                .label(format!("QEMU accepts {multiple}"))
                .help(phrase!(
                    "remove {field}, or use {multiple}",
                    field = at(DiskField::DiscardGranularity),
                    multiple,
                ));
        }
    }
}

/// A size that is set: 0 is the default of libvirt and QEMU.
fn set(size: Option<u32>) -> Option<u32> {
    size.filter(|size| *size != 0)
}

/// Reports sizes that no disk supports; true if there are any.
fn has_odd_size(report: &mut Report, index: usize, disk: &Disk) -> bool {
    let frontend = &disk.frontend;
    let at = |field| FieldPath::Disk(index, field);
    let sizes = [
        (
            DiskField::LogicalBlockSize,
            "logical",
            frontend.logical_block_size,
        ),
        (
            DiskField::PhysicalBlockSize,
            "physical",
            frontend.physical_block_size,
        ),
    ];
    let mut is_odd = false;
    for (field, word, size) in sizes {
        let values = fields::disk(field).values;
        let Some(size) = set(size).filter(|size| !values.has(u64::from(*size))) else {
            continue;
        };
        is_odd = true;
        report
            .finding(
                at(field),
                phrase!(
                    "{disk} has a {word} block size of {size} bytes, which QEMU refuses",
                    word,
                    size
                ),
            )
            .label(format!("not {}", values.expected()))
            .help(phrase!(
                "use {small}, or {large} for a disk of the host with such sectors",
                small = setting(at(field), 512_u32),
                large = setting(at(field), 4096_u32),
            ));
    }
    is_odd
}

pub(super) fn check_line(line: &Line<'_>, report: &mut Report) {
    for (option, driver, device) in line.index.devices() {
        check_io_sizes(line, report, option, base_of(driver), device);
    }
}

/// The sizes that must be multiples of the sector size; the sector sizes themselves are in the model.
fn check_io_sizes(
    line: &Line<'_>,
    report: &mut Report,
    option: usize,
    base: &str,
    device: Members<'_>,
) {
    let size = |key: &str| {
        let property = device.get(key)?;
        Some((size_of(property.value.as_str(), 1)?.0, property.span))
    };
    let default = if base == "scsi-cd" { 2048 } else { 512 };
    let sector = size("logical_block_size").map_or(default, |(size, _)| size);
    let sector = if sector == 0 { default } else { sector };
    if !sector.is_power_of_two() {
        return;
    }
    for key in ["min_io_size", "opt_io_size"] {
        let Some((bytes, span)) = size(key) else {
            continue;
        };
        if bytes % sector != 0 {
            let message =
                format!("{key} of {bytes} bytes is not a multiple of the sector of {sector}");
            let help = format!("use a multiple of {sector}");
            line.refuse(report, option, span, message, help);
        } else if key == "min_io_size" && bytes / sector > 65_535 {
            let message = format!("{key} of {bytes} bytes is more than 65535 sectors");
            let help = format!("write at most {}", 65_535 * sector);
            line.refuse(report, option, span, message, help);
        }
    }
}
