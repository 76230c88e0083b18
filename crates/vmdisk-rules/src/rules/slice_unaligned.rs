//! `slice-unaligned`

use vmdisk_model::{FieldPath, ImageField, Slice};
use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity, TakenBy};

declare_rule! {
    /// The part of a file that is the disk begins or ends inside a sector.
    ///
    /// ## What it does
    /// Reports `offset` and `size` of a raw node, and of a slice in libvirt's XML, that are no multiples of 512 bytes.
    ///
    /// ## Why it matters
    /// A `size` inside a sector is refused. An `offset` inside a sector is taken: every request of the guest then
    /// lies across two sectors of the host, and with direct I/O none of them is aligned.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/all.img \
    ///   -blockdev driver=raw,node-name=r0,file=f0,offset=1048576,size=1000000 \
    ///   -device virtio-blk-pci,drive=r0,id=vda
    /// ```
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/all.img'>
    ///     <slices>
    ///       <slice type='storage' offset='1048576' size='1000000'/>
    ///     </slices>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/all.img \
    ///   -blockdev driver=raw,node-name=r0,file=f0,offset=1048576,size=1048576 \
    ///   -device virtio-blk-pci,drive=r0,id=vda
    /// ```
    pub(super) static RULE = {
        name: "slice-unaligned",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "Specified size is not multiple of 512",
                source: "block/raw-format.c, raw_apply_options",
            },
            Evidence::Measured {
                figures: "offset=100 is accepted without a word",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::WindowUnaligned);
    // On a command line the reader has looked at the node itself.
    if context.taken_by == TakenBy::Qemu {
        return;
    }
    for (index, disk, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let Some(Slice { offset, size }) = image.slice else {
                continue;
            };
            let (severity, what, label) = if size % SECTOR != 0 {
                (
                    Severity::Error,
                    "ends",
                    "QEMU refuses a size that is no multiple of 512",
                )
            } else if offset % SECTOR != 0 {
                let label = "QEMU takes it, and no request is aligned";
                (Severity::Warning, "begins", label)
            } else {
                continue;
            };
            report
                .finding(
                    FieldPath::Image(index, depth, ImageField::Slice),
                    format!("the slice of `{}` {what} inside a sector", disk.name()),
                )
                .severity(severity)
                .label(label)
                .help("write multiples of 512, better of 1048576");
        }
    }
}

const SECTOR: u64 = 512;
