//! `nvme-transfer-size-refused`

use vmdisk_facts::Version;
use vmdisk_source::ProblemKind;

use super::{is_behind_change, report_problems_if};
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// The largest transfer of an NVMe controller is more than QEMU 10.0 and later take.
    ///
    /// ## What it does
    /// Reports `mdts` above 9, which stands for 2^mdts pages of 4 KiB, for QEMU 10.0 and later.
    ///
    /// ## Why it matters
    /// One request to the host has 1024 pieces at most (`IOV_MAX`), and a larger one could not be passed on. QEMU up
    /// to 7.2 starts all the same.
    ///
    /// ## Reported
    /// ```args,reported,qemu-10.0
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device nvme,drive=f0,serial=a,mdts=12
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported,qemu-10.0
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device nvme,drive=f0,serial=a,mdts=9
    /// ```
    /// ```args,not-reported,qemu-7.2
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device nvme,drive=f0,serial=a,mdts=12
    /// ```
    /// Without a version of QEMU there is no telling.
    /// ```args,not-checked
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device nvme,drive=f0,serial=a,mdts=12
    /// ```
    pub(super) static RULE = {
        name: "nvme-transfer-size-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Refused {
                by: "QEMU 10.0 and 11.1",
                text: "mdts exceeds IOV_MAX",
                source: "hw/nvme/ctrl.c, nvme_check_params",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let what = "whether this QEMU takes so large a transfer";
    let is_refused = is_behind_change(context, Version(7, 2, 0), Version(10, 0, 0), what);
    report_problems_if(context, report, ProblemKind::NvmeTransferSize, &is_refused);
}
