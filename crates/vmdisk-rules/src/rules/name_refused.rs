//! `name-refused`

use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// The name of a node, or the id of a device, is one that QEMU does not take.
    ///
    /// ## What it does
    /// Reports names of nodes with more than 31 characters, names and ids that do not begin with a letter or have
    /// other characters than letters, digits, `-`, `.` and `_`, and names and ids that are given twice.
    ///
    /// ## Why it matters
    /// QEMU does not start. Names that programs make of a disk's path or of a guest's name grow past 31 characters
    /// on some hosts and not on others. libvirt makes its own names, so only command lines can have this.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=customer-database-primary-volume,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=customer-database-primary-volume,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=customer-database-primary-disk1,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=customer-database-primary-disk1,id=vda
    /// ```
    pub(super) static RULE = {
        name: "name-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "Node name too long",
                source: "block.c, bdrv_assign_node_name",
            },
            Evidence::Refused {
                by: "QEMU",
                text: "Parameter 'id' expects an identifier",
                source: "util/qemu-option.c, qemu_opts_create",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::NameRefused);
}
