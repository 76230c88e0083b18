//! `nvme-transfer-size-refused`

use vmdisk_facts::{Answer, Capability};
use vmdisk_rule::{Evidence, Group, Missing, Report, Severity};

use super::line::{Line, base_of, line_rule};
use crate::syntax::value::number_of;

line_rule! {
    /// The `mdts` of an NVMe controller is larger than 9, which QEMU refuses.
    ///
    /// ## What it reports
    /// Reports `mdts` above 9 (2^mdts pages of 4 KiB) for QEMU 10.0.4 and later.
    ///
    /// ## Why it matters
    /// A request to the host can have at most 1024 segments (`IOV_MAX`), and a larger transfer does not fit. QEMU exits
    /// at start with `mdts exceeds IOV_MAX`. QEMU 5.2 and 7.2 start with such a value, so an update of QEMU can stop
    /// the guest. The check came with 10.1.0 and the stable release 10.0.4.
    ///
    /// ## Use instead
    /// Use `mdts=9` or less (2 MiB), or remove `mdts` for the default of 7 (512 KiB).
    ///
    /// ## Reported
    /// ```args,reported,qemu-10.0.4
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device nvme,drive=f0,serial=a,mdts=12
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported,qemu-10.0.4
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device nvme,drive=f0,serial=a,mdts=9
    /// ```
    /// ```args,not-reported,qemu-10.0.3
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
    name: "nvme-transfer-size-refused",
    group: Group::Startup,
    severity: Severity::Error,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::refused_by("QEMU 10.0.13 and 11.1", "mdts exceeds IOV_MAX", "hw/nvme/ctrl.c, nvme_check_params"),
        Evidence::Source("QEMU commit 53493c1f836f: in 10.1.0, and in the announcement of 10.0.4"),
    ],
    check: Text(check),
}

/// The maximum number of pages in a transfer, as a power of two: the host accepts 1024 segments per request
/// (`IOV_MAX`).
const MAX_MDTS: u64 = 9;

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    let is_refused = line.context.can(Capability::NvmeTransferSizeChecked);
    for (option, driver, device) in line.index.devices() {
        let Some(property) = device.get("mdts").filter(|_| base_of(driver) == "nvme") else {
            continue;
        };
        let Some(number) = number_of(property.value.as_str()).filter(|it| *it > MAX_MDTS) else {
            continue;
        };
        match is_refused {
            Answer::Yes(_) => {}
            Answer::No(_) => continue,
            Answer::Unknown => {
                let missing = Missing::new("the version of QEMU", Missing::NO_QEMU);
                report.not_checked(line.owner(option), missing);
                continue;
            }
        }
        let message =
            format!("mdts={number} allows larger transfers than QEMU can pass to the host");
        let help = format!("use at most {MAX_MDTS}, or remove mdts to use the default of 7");
        line.refuse(report, option, property.span, message, help);
    }
}
