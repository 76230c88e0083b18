//! `nvme-transfer-size-refused`

use vmdisk_facts::Version;
use vmdisk_rule::{Evidence, Group, Report, Severity, declare_rule};

use super::line::{Line, base_of, is_behind_change};
use crate::syntax::value::number_of;

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
    pub(crate) static RULE = {
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
        check: Text,
    }
}

/// The most pages in a transfer, as a power of two: the host takes 1024 pieces in a request (`IOV_MAX`).
const MOST_MDTS: u64 = 9;

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    let what = "whether this QEMU takes so large a transfer";
    let is_refused = is_behind_change(line.context, Version(7, 2, 0), Version(10, 0, 0), what);
    for (option, driver, device) in line.index.devices() {
        let Some(property) = device.peek("mdts").filter(|_| base_of(driver) == "nvme") else {
            continue;
        };
        let Some(number) = number_of(property.value.as_str()).filter(|it| *it > MOST_MDTS) else {
            continue;
        };
        match &is_refused {
            Ok(true) => {}
            Ok(false) => continue,
            Err(missing) => {
                report.not_checked(line.owner(option), missing.clone());
                continue;
            }
        }
        let message = format!(
            "mdts={number} lets one transfer have more pages than QEMU 10.0 and later pass on"
        );
        let help = format!("write at most {MOST_MDTS}, or take mdts away for 7");
        line.refuse(report, option, property.span, message, help);
    }
}
