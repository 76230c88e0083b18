//! `nvme-transfer-size-refused`

use vmdisk_facts::Version;
use vmdisk_rule::{Evidence, Group, Report, Severity, declare_rule};

use super::line::{Line, base_of, is_behind_change};
use crate::syntax::value::number_of;

declare_rule! {
    /// The `mdts` of an NVMe controller is larger than 9, which QEMU refuses.
    ///
    /// ## What it reports
    /// Reports `mdts` above 9 (2^mdts pages of 4 KiB) for QEMU 10.1 and later, and for stable releases of 10.0 from
    /// 10.0.13.
    ///
    /// ## Why it matters
    /// A request to the host can have at most 1024 segments (`IOV_MAX`), and a larger transfer does not fit. QEMU exits
    /// at start with `mdts exceeds IOV_MAX`. QEMU 5.2 and 7.2 start with such a value, so an update of QEMU can stop
    /// the guest. The check came with 10.1.0 and a stable release of 10.0. The other releases before 10.0.13 were not
    /// tried and are not checked.
    ///
    /// ## Use instead
    /// Use `mdts=9` or less (2 MiB), or remove `mdts` for the default of 7 (512 KiB).
    ///
    /// ## Reported
    /// ```args,reported,qemu-10.1
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device nvme,drive=f0,serial=a,mdts=12
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported,qemu-10.1
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device nvme,drive=f0,serial=a,mdts=9
    /// ```
    /// ```args,not-reported,qemu-7.2
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device nvme,drive=f0,serial=a,mdts=12
    /// ```
    /// Not checked without a version of QEMU:
    /// ```args,not-checked
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device nvme,drive=f0,serial=a,mdts=12
    /// ```
    /// Not checked for early releases of QEMU 10.0, which may lack the check:
    /// ```args,not-checked,qemu-10.0.0
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
                by: "QEMU 10.0.13 and 11.1",
                text: "mdts exceeds IOV_MAX",
                source: "hw/nvme/ctrl.c, nvme_check_params",
            },
            Evidence::Source("QEMU commit 53493c1f (August 2025): in 10.1.0 and picked for stable 10.0"),
        ],
        supersedes: &[],
        check: Text,
    }
}

/// The most pages in a transfer, as a power of two: the host takes 1024 pieces in a request (`IOV_MAX`).
const MOST_MDTS: u64 = 9;

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    let what = "whether this QEMU takes so large a transfer";
    let is_refused = is_behind_change(line.context, Version(7, 2, 0), Version(10, 0, 13), what);
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
        let message =
            format!("mdts={number} allows larger transfers than QEMU can pass to the host");
        let help = format!("write at most {MOST_MDTS}, or remove mdts for the default of 7");
        line.refuse(report, option, property.span, message, help);
    }
}
