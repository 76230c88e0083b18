//! `vectors-too-few`

use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::line::{Line, base_of, line_rule};
use crate::members::Members;
use crate::syntax::value::number_of;

line_rule! {
    /// A device has fewer interrupt vectors than queues.
    ///
    /// ## What it reports
    /// Reports `vectors` of virtio disks and virtio-scsi controllers below one per request queue plus one for
    /// configuration changes (virtio-scsi: plus three). This includes 0.
    ///
    /// ## Why it matters
    /// With its own vector, each queue interrupts the vCPU that waits for it. With fewer vectors all queues share one,
    /// and with 0 the device uses a level-triggered interrupt. QEMU prints no message. Without `vectors`, it uses the
    /// number that is needed.
    ///
    /// ## Use instead
    /// Remove `vectors`. In the guest, `/proc/interrupts` shows one line per queue (`virtio0-req.0`, `virtio0-req.1`,
    /// …).
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -smp 4 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,num-queues=4,vectors=2
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -smp 4 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,num-queues=4,vectors=5
    /// ```
    name: "vectors-too-few",
    group: Group::Performance,
    severity: Severity::Warning,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::measured("vectors=0 and vectors=2 with 4 queues are accepted silently", "QEMU 5.2, 7.2, 10.0 and 11.1"),
        Evidence::NotMeasuredHere("Linux drivers/virtio/virtio_pci_common.c, vp_find_vqs: one vector per queue, else one for all, else INTx"),
    ],
    check: Text(check),
}

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    for (option, driver, device) in line.index.devices() {
        let (queues, others) = match base_of(driver) {
            "virtio-scsi" => ("num_queues", 3),
            "virtio-blk" | "vhost-user-blk" => ("num-queues", 1),
            _ => continue,
        };
        check_vectors(line, report, option, device, queues, others);
    }
}

/// `others` is the number of vectors that are not for request queues.
fn check_vectors(
    line: &Line<'_>,
    report: &mut Report,
    option: usize,
    device: Members<'_>,
    queues: &str,
    others: u64,
) {
    let Some(property) = device.get("vectors") else {
        return;
    };
    let Some(vectors) = number_of(property.value.as_str()) else {
        return;
    };
    let count = match device.get(queues) {
        Some(written) => number_of(written.value.as_str()),
        None => {
            let vcpus = report.require(line.owner(option), line.context.vcpus());
            vcpus.map(|_| u64::from(line.domain().queues_by_default()))
        }
    };
    let Some(count) = count else {
        return;
    };
    let needed = count.saturating_add(others);
    if vectors < needed {
        let s = if count == 1 { "" } else { "s" };
        let message = match vectors {
            0 => format!("vectors=0: {count} queue{s} share one interrupt line"),
            _ => format!("{vectors} interrupt vectors for {count} queue{s}, which then share them"),
        };
        let help = format!("remove vectors: QEMU then uses {needed}");
        line.refuse(report, option, property.span, message, help);
    }
}
