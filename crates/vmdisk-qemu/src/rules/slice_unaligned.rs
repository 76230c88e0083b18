//! `slice-unaligned`

use vmdisk_model::{FieldPath, ImageField};
use vmdisk_rule::{Consumer, Context, Evidence, Group, Report, Severity};

use super::line::{Line, line_rule};
use super::nodes::{Node, drives, nodes};

line_rule! {
    /// A slice of an image is not aligned to 512 bytes.
    ///
    /// ## What it reports
    /// Reports `offset` and `size` of a `<slice>` or a raw node that are not multiples of 512 bytes.
    ///
    /// ## Why it matters
    /// For a `size`, libvirt defines the guest, and QEMU exits at start with `Specified size is not multiple of 512`.
    /// An `offset` is accepted without a message. Every request of the guest then crosses two sectors of the host, and
    /// no request is aligned for direct I/O.
    ///
    /// ## Use instead
    /// Use multiples of 512, or better of 1 MiB (1048576) as partitioning tools do. `fdisk -l IMAGE` lists where
    /// partitions begin, in sectors of 512 bytes.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/all.img'>
    ///     <slices>
    ///       <slice type='storage' offset='1048576' size='1000000'/>
    ///     </slices>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/all.img \
    ///   -blockdev driver=raw,node-name=r0,file=f0,offset=1048576,size=1000000 \
    ///   -device virtio-blk-pci,drive=r0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/all.img'>
    ///     <slices>
    ///       <slice type='storage' offset='1048576' size='1048576'/>
    ///     </slices>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/all.img \
    ///   -blockdev driver=raw,node-name=r0,file=f0,offset=1048576,size=1048576 \
    ///   -device virtio-blk-pci,drive=r0,id=vda
    /// ```
    name: "slice-unaligned",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_qemu("Specified size is not multiple of 512", "block/raw-format.c, raw_apply_options"),
        Evidence::measured("offset=100 is accepted silently", "QEMU 5.2, 7.2, 10.0 and 11.1"),
    ],
    check: Model(check), Text(check_line),
}

fn check(context: &Context<'_>, report: &mut Report) {
    if context.consumer == Consumer::Qemu {
        return;
    }
    for (index, disk, image) in context.images() {
        for (depth, layer) in image.chain().enumerate() {
            let Some(slice) = layer.slice else {
                continue;
            };
            let numbers = [("size", slice.size), ("offset", slice.offset)];
            let Some((what, number)) = numbers
                .into_iter()
                .find(|(_, number)| !number.is_multiple_of(512))
            else {
                continue;
            };
            let at = FieldPath::Image(index, depth, ImageField::Slice);
            let title = format!(
                "the slice of `{}` has {what} {number}, which is not a multiple of the sector size",
                disk.name()
            );
            let finding = report.finding(at, title);
            finding.label("not a multiple of 512");
            let below = number - number % 512;
            finding.help(format!(
                "use a multiple of 512, such as {}",
                if below == 0 { 512 } else { below }
            ));
            if what == "offset" {
                finding
                    .severity(Severity::Warning)
                    .note("QEMU accepts it, but each request crosses sectors of the host");
            } else {
                finding.note("libvirt accepts it, but QEMU does not start");
            }
        }
    }
}

pub(super) fn check_line(line: &Line<'_>, report: &mut Report) {
    let all = nodes(line).chain(drives(line));
    for node in all.filter(|node| node.driver() == "raw") {
        check_window(line, report, &node);
    }
}

fn check_window(line: &Line<'_>, report: &mut Report, node: &Node<'_>) {
    for key in ["offset", "size"] {
        if let Some((number, written)) = node.number(key)
            && number % 512 != 0
        {
            let message = format!("`{key}` of {number} bytes ends inside a sector");
            let help = format!("use a multiple of 512, such as {}", number / 512 * 512);
            let finding = line.refuse(report, node.option, written.span, message, help);
            if key == "offset" {
                finding
                    .severity(Severity::Warning)
                    .note("QEMU accepts it, but each request crosses sectors of the host");
            }
        }
    }
}
