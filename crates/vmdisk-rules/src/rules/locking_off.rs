//! `locking-off`

use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// The locks that keep a second writer off the image are turned off.
    ///
    /// ## What it does
    /// Reports `locking=off` on a node that opens a file or device for writing.
    ///
    /// ## Why it matters
    /// With its locks QEMU refuses an image that another QEMU, or `qemu-img`, has open for writing. Off on either
    /// side, both write, and two writers that do not know of each other destroy a file system within seconds. It is
    /// meant for file systems that cannot lock, where something else must make sure.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img,locking=off \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img,locking=auto \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img,locking=off,read-only=on \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    pub(super) static RULE = {
        name: "locking-off",
        group: Group::DataSafety,
        severity: Severity::Warning,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Measured {
                figures: "two guests start on one image when either says locking=off, and the second is refused otherwise",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::LockingOff);
}
