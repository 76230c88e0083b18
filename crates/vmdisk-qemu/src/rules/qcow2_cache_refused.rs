//! `qcow2-cache-refused`

use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::line::{Line, line_rule};
use super::nodes::{Node, drives, nodes};

line_rule! {
    /// The qcow2 cache sizes contradict each other.
    ///
    /// ## What it reports
    /// Reports `l2-cache-size` or `refcount-cache-size` above `cache-size`, all three of them together, and an
    /// `l2-cache-entry-size` that is not a power of two of at least 512.
    ///
    /// ## Why it matters
    /// `cache-size` is the sum of the other two, so at most two of the three can be set. QEMU exits at start with
    /// `l2-cache-size may not exceed cache-size`.
    ///
    /// ## Use instead
    /// Set only `l2-cache-size`, on which the performance depends: 8 MiB cover 64 GiB of an image with clusters of 64
    /// KiB.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.qcow2 \
    ///   -blockdev driver=qcow2,node-name=q0,file=f0,cache-size=1048576,l2-cache-size=33554432 \
    ///   -device virtio-blk-pci,drive=q0,id=vda
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=/srv/a.qcow2,format=qcow2,if=virtio,cache-size=1048576,l2-cache-size=33554432
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.qcow2 \
    ///   -blockdev driver=qcow2,node-name=q0,file=f0,cache-size=34603008,l2-cache-size=33554432 \
    ///   -device virtio-blk-pci,drive=q0,id=vda
    /// ```
    name: "qcow2-cache-refused",
    group: Group::Startup,
    severity: Severity::Error,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::refused_by_qemu("l2-cache-size may not exceed cache-size", "block/qcow2.c, read_cache_sizes"),
    ],
    check: Text(check),
}

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    let all = nodes(line).chain(drives(line));
    for node in all.filter(|node| node.driver() == "qcow2") {
        check_qcow2_caches(line, report, &node);
    }
}

fn check_qcow2_caches(line: &Line<'_>, report: &mut Report, node: &Node<'_>) {
    let all = node.size("cache-size");
    let l2 = node.size("l2-cache-size");
    let refcounts = node.size("refcount-cache-size");
    let (message, span) = match (all, l2, refcounts) {
        (Some(_), Some(_), Some((_, last))) => (
            "cache-size, l2-cache-size and refcount-cache-size are all set, but one follows from the others"
                .to_owned(),
            last.span,
        ),
        (Some((all, _)), Some((part, written)), None) if part > all => (
            format!("l2-cache-size of {part} bytes is more than the cache-size of {all}"),
            written.span,
        ),
        (Some((all, _)), None, Some((part, written))) if part > all => (
            format!("refcount-cache-size of {part} bytes is more than the cache-size of {all}"),
            written.span,
        ),
        _ => {
            if let Some((size, written)) = node.size("l2-cache-entry-size")
                && !(size.is_power_of_two() && (512..=2 << 20).contains(&size))
            {
                let message = format!("l2-cache-entry-size of {size} bytes is not a power of two from 512 to the cluster size");
                let help = "use 4096, or remove it for the default";
                line.refuse(report, node.option, written.span, message, help);
            }
            return;
        }
    };
    let help = "set only cache-size; QEMU divides it";
    line.refuse(report, node.option, span, message, help);
}
