//! `iothread-without-ioeventfd`

use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A device has an iothread, and its requests never reach it.
    ///
    /// ## What it does
    /// Reports `ioeventfd=off` on a virtio disk or virtio-scsi controller with an iothread.
    ///
    /// ## Why it matters
    /// The iothread waits for an event that only ioeventfd sends; with it off the vCPU handles requests by itself.
    /// QEMU refuses the pair.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -object iothread,id=iothread1 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,iothread=iothread1,ioeventfd=off
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -object iothread,id=iothread1 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,iothread=iothread1
    /// ```
    pub(super) static RULE = {
        name: "iothread-without-ioeventfd",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "ioeventfd is required for iothread",
                source: "hw/block/dataplane/virtio-blk.c, virtio_blk_data_plane_create",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::IoeventfdOff);
}
