//! `block-size-refused`

use vmdisk_model::{Change, DiskField, FieldPath, FrontendKind};
use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Fix, Group, Report, Severity};

declare_rule! {
    /// A disk has a sector size that QEMU refuses.
    ///
    /// ## What it does
    /// Reports logical and physical block sizes that are no power of two from 512 bytes to 2 MiB, a logical size
    /// above the physical one, a logical size other than 512 on IDE and SATA, and a discard granularity that is no
    /// multiple of the sector. On command lines also `min_io_size` and `opt_io_size`.
    ///
    /// ## Why it matters
    /// QEMU does not start. It takes 512 for a physical size that is not written and does not raise it, so a
    /// logical size of 4096 needs both. IDE disks discard in steps of 512 bytes, which leaves no other sector.
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
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,logical_block_size=4096,physical_block_size=4096,min_io_size=4096
    /// ```
    pub(super) static RULE = {
        name: "block-size-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "logical_block_size > physical_block_size not supported",
                source: "hw/block/block.c, blkconf_blocksizes",
            },
            Evidence::Refused {
                by: "QEMU",
                text: "discard_granularity must be 512 for ide",
                source: "hw/ide/qdev.c, ide_dev_initfn",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

/// Largest size that QEMU takes.
const MOST: u32 = 2 << 20;

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::BlockSizeRefused);
    for (index, disk) in context.disks() {
        let is_ide = match context.domain.frontend_kind(disk) {
            FrontendKind::Sata | FrontendKind::Ide => true,
            FrontendKind::VirtioBlk
            | FrontendKind::VirtioScsi
            | FrontendKind::Scsi
            | FrontendKind::Usb
            | FrontendKind::Nvme => false,
            // Their sectors cannot be chosen.
            FrontendKind::VhostUserBlk
            | FrontendKind::Fdc
            | FrontendKind::Sd
            | FrontendKind::Foreign => continue,
        };
        let frontend = &disk.frontend;
        let name = disk.name();
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
            let Some(size) =
                size.filter(|size| !size.is_power_of_two() || !(512..=MOST).contains(size))
            else {
                continue;
            };
            is_odd = true;
            report
                .finding(
                    at(field),
                    format!("`{name}` has a {word} block size of {size} bytes, which QEMU refuses"),
                )
                .label("no power of two from 512 to 2097152")
                .help("write 512, or 4096 for a disk of the host with such sectors");
        }
        if is_odd {
            continue;
        }
        let logical = frontend.logical_block_size.unwrap_or(512);
        let physical = frontend.physical_block_size.unwrap_or(512);
        if is_ide && logical != 512 {
            report
                .finding(
                    at(DiskField::LogicalBlockSize),
                    format!("`{name}` is an IDE or SATA disk with sectors of {logical} bytes, which there is none of in QEMU"),
                )
                .label("QEMU takes 512 there")
                .help("use bus='virtio', 'scsi' or 'nvme' for such sectors, or leave the size away");
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
                    format!("`{name}` has logical sectors of {logical} bytes and physical ones of {physical}, which QEMU refuses"),
                )
                .label("QEMU takes 512 for a physical size that is not written, and does not raise it")
                .help(format!("write physical_block_size='{logical}' beside it"))
                .fix(Fix::safe([Change::set(at(DiskField::PhysicalBlockSize), logical.to_string())]));
        }
        let granularity = frontend.discard_granularity.filter(|size| *size != 0);
        if let Some(granularity) =
            granularity.filter(|size| size % logical != 0 || (is_ide && *size != 512))
        {
            let multiple = if is_ide {
                "512 bytes and nothing else".to_owned()
            } else {
                format!("a multiple of {logical}")
            };
            report
                .finding(
                    at(DiskField::DiscardGranularity),
                    format!(
                        "`{name}` discards in steps of {granularity} bytes, which QEMU refuses"
                    ),
                )
                .label(format!("QEMU takes {multiple}"))
                .help(format!("write {multiple}, or leave it away"));
        }
    }
}
