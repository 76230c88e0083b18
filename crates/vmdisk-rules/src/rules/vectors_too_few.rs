//! `vectors-too-few`

use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A device has fewer interrupt vectors than queues.
    ///
    /// ## What it does
    /// Reports `vectors` of virtio disks and virtio-scsi controllers below one per request queue and one for
    /// changes of the configuration (virtio-scsi: three), 0 among them.
    ///
    /// ## Why it matters
    /// With a vector of its own each queue interrupts the vCPU that waits for it. With fewer all queues share one,
    /// and with none the device falls back to a level interrupt that every request pays for. QEMU says nothing, and
    /// by itself takes what is needed.
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
    pub(super) static RULE = {
        name: "vectors-too-few",
        group: Group::Performance,
        severity: Severity::Warning,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Measured {
                figures: "vectors=0 and vectors=2 with 4 queues are accepted without a word",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1",
            },
            Evidence::NotMeasuredHere("Linux drivers/virtio/virtio_pci_common.c, vp_find_vqs: one vector per queue, else one for all, else INTx"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::TooFewVectors);
}
