//! `node-on-two-iothreads`

use vmdisk_facts::Version;
use vmdisk_source::ProblemKind;

use super::{is_behind_change, report_problems_if};
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// Devices in different iothreads use one node, which QEMU before 10.0 refuses.
    ///
    /// ## What it does
    /// Reports two devices that share a node (`share-rw=on`, or read-only) and run in different iothreads, or one of
    /// them in none. For a SCSI disk the thread is its controller's.
    ///
    /// ## Why it matters
    /// Up to QEMU 7.2 a node belongs to one event loop: QEMU does not start. 10.0 lets several threads work on one
    /// node; the versions between were not tried.
    ///
    /// ## Reported
    /// ```args,reported,qemu-7.2
    /// qemu-system-x86_64 -nodefaults -machine q35 -object iothread,id=io0 -object iothread,id=io1 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-scsi-pci,id=s0,iothread=io0 -device virtio-scsi-pci,id=s1,iothread=io1 \
    ///   -device scsi-hd,drive=f0,bus=s0.0,share-rw=on -device scsi-hd,drive=f0,bus=s1.0,share-rw=on
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported,qemu-7.2
    /// qemu-system-x86_64 -nodefaults -machine q35 -object iothread,id=io0 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-scsi-pci,id=s0,iothread=io0 -device virtio-scsi-pci,id=s1,iothread=io0 \
    ///   -device scsi-hd,drive=f0,bus=s0.0,share-rw=on -device scsi-hd,drive=f0,bus=s1.0,share-rw=on
    /// ```
    /// ```args,not-reported,qemu-10.0
    /// qemu-system-x86_64 -nodefaults -machine q35 -object iothread,id=io0 -object iothread,id=io1 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-scsi-pci,id=s0,iothread=io0 -device virtio-scsi-pci,id=s1,iothread=io1 \
    ///   -device scsi-hd,drive=f0,bus=s0.0,share-rw=on -device scsi-hd,drive=f0,bus=s1.0,share-rw=on
    /// ```
    /// Without a version of QEMU there is no telling.
    /// ```args,not-checked
    /// qemu-system-x86_64 -nodefaults -machine q35 -object iothread,id=io0 -object iothread,id=io1 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-scsi-pci,id=s0,iothread=io0 -device virtio-scsi-pci,id=s1,iothread=io1 \
    ///   -device scsi-hd,drive=f0,bus=s0.0,share-rw=on -device scsi-hd,drive=f0,bus=s1.0,share-rw=on
    /// ```
    pub(super) static RULE = {
        name: "node-on-two-iothreads",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Refused {
                by: "QEMU 5.2 and 7.2",
                text: "Cannot change iothread of active block backend",
                source: "block/block-backend.c",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let what = "whether this QEMU takes one node in two iothreads";
    let is_taken = is_behind_change(context, Version(7, 2, 0), Version(10, 0, 0), what);
    let is_wrong = is_taken.map(|is_taken| !is_taken);
    report_problems_if(context, report, ProblemKind::NodeOnTwoIothreads, &is_wrong);
}
