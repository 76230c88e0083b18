//! Findings about the files of UEFI, for XML and for command lines.

use vmdisk_facts::verdict::flash::{
    FirmwareRole, FlashBoard, FlashFault, FlashFaultKind, FlashFiles, flash_faults,
};
use vmdisk_model::{Architecture, Board, Domain, DomainField, FieldPath};
use vmdisk_source::Span;

use crate::{Confidence, Context, Missing, Report, Severity};

/// Reports the faults of the files that a guest names, each at its place in the text.
pub fn report_flash(
    context: &Context<'_>,
    report: &mut Report,
    domain: &Domain,
    files: FlashFiles<'_>,
    place: impl Fn(FirmwareRole) -> Option<Span>,
) {
    let at = FieldPath::Domain(DomainField::Firmware);
    let what = || "the files of UEFI".to_owned();
    let Some(host) = report.require(at, context.host(what)) else {
        return;
    };
    let board = board_of(domain);
    if files.is_flash && domain.architecture.is_none() {
        let what = "the sizes that the machine takes";
        report.not_checked(at, Missing::new(what, "the architecture is not set"));
    }
    let (faults, missing) = flash_faults(host, files, board);
    for missing in missing {
        report.not_checked(at, missing);
    }
    let machine = domain.architecture.zip(domain.machine.as_ref());
    let pair = machine.and_then(|(arch, machine)| {
        let uefi = host.facts().uefi_of(arch.qemu_name(), &machine.0)?;
        Some((uefi.code.value()?, uefi.variables.value()?))
    });
    for fault in faults {
        let (title, label, help) = words(&fault);
        let finding = report.finding(at, title);
        if let Some(span) = place(fault.file) {
            finding.span(span);
        }
        finding.label(label).severity(severity(&fault.kind));
        if let FlashFaultKind::OtherTemplate { .. } = fault.kind {
            finding.confidence(Confidence::Assumed);
        }
        match pair {
            Some((code, variables)) if fault.kind == FlashFaultKind::Missing => finding.help(format!(
                "for this machine the host has {code} with variables from {variables}; copy variables of another build \
                 by UEFI's own menu, not by file"
            )),
            _ => finding.help(help),
        };
    }
}

/// The board of a guest, as far as it limits flash.
fn board_of(domain: &Domain) -> FlashBoard {
    use Architecture::{Aarch64, Armv7l};
    if domain.is_pc() {
        return FlashBoard::Pc;
    }
    match (domain.architecture, &domain.machine) {
        (Some(arch @ (Aarch64 | Armv7l)), Some(machine))
            if Board::of(arch, &machine.0) == Board::PcieVirt =>
        {
            FlashBoard::ArmVirt
        }
        _ => FlashBoard::Other,
    }
}

const fn severity(kind: &FlashFaultKind) -> Severity {
    match kind {
        FlashFaultKind::Missing | FlashFaultKind::Size { .. } | FlashFaultKind::OtherBuild => {
            Severity::Error
        }
        FlashFaultKind::OtherTemplate { .. } => Severity::Warning,
    }
}

/// Title, label and remedy.
fn words(fault: &FlashFault) -> (String, String, String) {
    let FlashFault { file, path, kind } = fault;
    let what = match file {
        FirmwareRole::Code => "the UEFI code",
        FirmwareRole::Variables => "the file of the UEFI variables",
        FirmwareRole::Template => "the template of the UEFI variables",
    };
    match kind {
        FlashFaultKind::Missing => (
            format!("{what} does not exist: {path}"),
            "no such file".to_owned(),
            "install the firmware (the packages `ovmf`, `edk2-ovmf`, `qemu-efi-aarch64`), or name a file that exists".to_owned(),
        ),
        FlashFaultKind::Size { size, expected } => (
            format!("{what} has {size} bytes, but the machine takes {expected}"),
            "QEMU refuses this size".to_owned(),
            format!("use a file of the right size; `truncate -s` fills one up with zeroes ({path})"),
        ),
        FlashFaultKind::OtherBuild => (
            format!("{what} belongs to code of another size: {path}"),
            "the flash of the code and of the variables have different layouts".to_owned(),
            "use code and variables of one build: 2 MiB (`OVMF_CODE.fd`, `OVMF_VARS.fd`) or 4 MiB (`…_4M.fd`)".to_owned(),
        ),
        FlashFaultKind::OtherTemplate { expected } => (
            format!("{what} is not that of its code: {path}"),
            "the host has other variables for this code".to_owned(),
            format!("use {expected}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use vmdisk_model::MachineType;

    use super::*;

    #[test]
    fn only_known_boards_limit_flash() {
        use Architecture::{Aarch64, I686, Riscv64, X86_64};
        for (architecture, machine, expected) in [
            (Some(X86_64), Some("q35"), FlashBoard::Pc),
            (Some(I686), Some("pc-i440fx-9.0"), FlashBoard::Pc),
            (Some(X86_64), None, FlashBoard::Pc),
            (Some(X86_64), Some("microvm"), FlashBoard::Other),
            (Some(Aarch64), Some("virt"), FlashBoard::ArmVirt),
            (Some(Aarch64), Some("virt-9.0"), FlashBoard::ArmVirt),
            (Some(Aarch64), Some("sbsa-ref"), FlashBoard::Other),
            (Some(Aarch64), None, FlashBoard::Other),
            (Some(Riscv64), Some("virt"), FlashBoard::Other),
            (None, Some("q35"), FlashBoard::Other),
            (None, None, FlashBoard::Other),
        ] {
            let domain = Domain {
                architecture,
                machine: machine.map(MachineType::new),
                ..Domain::default()
            };
            assert_eq!(board_of(&domain), expected, "{architecture:?} {machine:?}");
        }
    }
}
