//! Controllers: their indexes and models, and the controllers that libvirt adds.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use vmdisk_model::{
    Address, Architecture, Controller, ControllerField, ControllerType, Domain, FieldPath, Scope,
    ScsiControllerModel,
};

use super::address::controller_of;
use super::{Conflict, ConflictKind, Resolved};

/// The maximum number of controllers that are added below one that a disk uses; a larger index is a typing error.
const MAX_ADDED: u32 = 4096;

/// Assigns indexes and models to controllers, and adds missing ones.
pub(super) fn resolve(resolved: &mut Resolved) {
    number(resolved);
    add_for_disks(resolved);
    if resolved.domain.scope == Scope::WholeGuest {
        add_for_machine(resolved);
    }
    choose_models(resolved);
    find_twins(resolved);
}

/// Gives each controller without an index the smallest free one of its type (`virDomainControllerFindUnusedIndex`).
fn number(resolved: &mut Resolved) {
    let mut taken: HashMap<ControllerType, BTreeSet<u32>> = HashMap::new();
    for controller in &resolved.domain.controllers {
        if let Some(index) = controller.index {
            taken
                .entry(controller.controller_type)
                .or_default()
                .insert(index);
        }
    }
    let mut next: HashMap<ControllerType, u32> = HashMap::new();
    for nth in 0..resolved.domain.controllers.len() {
        let companion = index_of_companion(&resolved.domain.controllers, nth);
        let controller = &mut resolved.domain.controllers[nth];
        if controller.index.is_some() {
            continue;
        }
        if let Some(index) = companion {
            controller.index = Some(index);
            let at = FieldPath::Controller(nth, ControllerField::Index);
            resolved.decide(
                at,
                index,
                "it is a companion of the USB controller before it",
            );
            continue;
        }
        let taken = taken.entry(controller.controller_type).or_default();
        let free = next.entry(controller.controller_type).or_default();
        while taken.contains(free) {
            *free += 1;
        }
        let index = *free;
        taken.insert(index);
        controller.index = Some(index);
        let at = FieldPath::Controller(nth, ControllerField::Index);
        resolved.decide(at, index, "the smallest number that is free");
    }
}

/// The index that a part of an ICH9 USB 2 controller shares with the part before it, if that has no such part of its
/// model yet (`virDomainDefAssignControllerIndexes`).
fn index_of_companion(controllers: &[Controller], nth: usize) -> Option<u32> {
    let is_part = |controller: &Controller| {
        let model = controller.other_model.as_deref().unwrap_or_default();
        controller.controller_type == ControllerType::Usb && model.starts_with("ich9-")
    };
    let before = controllers
        .get(nth.checked_sub(1)?)
        .filter(|it| is_part(it))?;
    let own = &controllers[nth];
    let is_twin = |other: &Controller| {
        other.controller_type == ControllerType::Usb
            && other.index == before.index
            && other.other_model == own.other_model
    };
    let is_free = is_part(own) && !controllers.iter().any(is_twin);
    before.index.filter(|_| is_free)
}

fn add(
    resolved: &mut Resolved,
    controller_type: ControllerType,
    index: u32,
    reason: &'static str,
) -> usize {
    let nth = resolved.domain.controllers.len();
    resolved
        .domain
        .controllers
        .push(Controller::new(controller_type, index));
    let at = FieldPath::Controller(nth, ControllerField::Controller);
    resolved.decide(
        at,
        format!("type='{controller_type}' index='{index}'"),
        reason,
    );
    nth
}

/// Adds every controller up to the last one that a disk of the bus uses (`virDomainDefAddDiskControllersForType`).
fn add_for_disks(resolved: &mut Resolved) {
    let mut last: BTreeMap<ControllerType, u32> = BTreeMap::new();
    for disk in &resolved.domain.disks {
        let Some(kind) = controller_of(disk.frontend.effective_bus()) else {
            continue;
        };
        if let Some(Address::Drive(place)) = disk.frontend.address {
            let last = last.entry(kind).or_default();
            *last = place.controller.max(*last);
        }
    }
    // Host devices need controllers too (`virDomainDefMaybeAddHostdevSCSIcontroller`).
    for place in &resolved.domain.scsi_host_devices {
        let last = last.entry(ControllerType::Scsi).or_default();
        *last = place.controller.max(*last);
    }
    let there: BTreeSet<(ControllerType, Option<u32>)> = resolved
        .domain
        .controllers
        .iter()
        .map(|controller| (controller.controller_type, controller.index))
        .collect();
    // libvirt's order of types.
    for kind in [
        ControllerType::Scsi,
        ControllerType::Fdc,
        ControllerType::Ide,
        ControllerType::Sata,
        ControllerType::Nvme,
    ] {
        let Some(last) = last.get(&kind) else {
            continue;
        };
        for index in 0..=(*last).min(MAX_ADDED) {
            if !there.contains(&(kind, Some(index))) {
                let reason = "a disk uses it, or one with a larger index";
                add(resolved, kind, index, reason);
            }
        }
    }
}

/// Adds the default devices of a machine type (`qemuDomainDefAddDefaultDevices`). Only the defaults of PCs are
/// implemented; other machines do not change.
fn add_for_machine(resolved: &mut Resolved) {
    let Some(pc) = Pc::of(&resolved.domain) else {
        return;
    };
    let has = |resolved: &Resolved, kind| {
        let mut controllers = resolved.domain.controllers.iter();
        controllers.any(|controller| controller.controller_type == kind)
    };
    if !has(resolved, ControllerType::Usb) {
        let nth = add(
            resolved,
            ControllerType::Usb,
            0,
            "every PC gets a USB controller unless one of model 'none' is configured",
        );
        if pc == Pc::Q35 {
            let model = "qemu-xhci";
            resolved.domain.controllers[nth].other_model = Some(model.to_owned());
            let at = FieldPath::Controller(nth, ControllerField::Model);
            resolved.decide(at, model, "libvirt's default for q35 is xHCI");
        }
    }
    let has_first = resolved.domain.controllers.iter().any(|controller| {
        controller.controller_type == ControllerType::Sata && controller.index == Some(0)
    });
    if pc == Pc::Q35 && !has_first {
        let reason = "the chipset of a q35 has an AHCI controller";
        add(resolved, ControllerType::Sata, 0, reason);
    }
}

/// Kinds of PC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pc {
    I440fx,
    Q35,
}

impl Pc {
    fn of(domain: &Domain) -> Option<Self> {
        let is_x86 = matches!(
            domain.architecture,
            Some(Architecture::X86_64 | Architecture::I686) | None
        );
        match &domain.machine {
            Some(machine) if machine.is_q35() => Some(Pc::Q35),
            Some(machine) if machine.is_i440fx() => Some(Pc::I440fx),
            // libvirt's default on a PC host.
            None if is_x86 => Some(Pc::I440fx),
            Some(_) | None => None,
        }
    }
}

/// Sets libvirt's default model of controllers without one.
fn choose_models(resolved: &mut Resolved) {
    let architecture = resolved.domain.architecture;
    let scsi = ScsiControllerModel::libvirts_choice(
        architecture.unwrap_or(Architecture::X86_64),
        resolved.domain.machine.as_ref(),
    );
    let is_pc = Pc::of(&resolved.domain).is_some();
    for nth in 0..resolved.domain.controllers.len() {
        let at = FieldPath::Controller(nth, ControllerField::Model);
        let controller = &mut resolved.domain.controllers[nth];
        match controller.controller_type {
            ControllerType::Scsi => {
                let is_open = matches!(
                    controller.scsi_model,
                    None | Some(ScsiControllerModel::Auto)
                );
                // Under the rules of another type, an unknown word may have been kept.
                let is_kept = resolved
                    .kept
                    .controller(nth)
                    .names()
                    .any(|name| name == "@model");
                if is_open && !is_kept {
                    controller.scsi_model = Some(scsi);
                    let reason = if scsi == ScsiControllerModel::Lsilogic {
                        "no model is set, and every PC supports it"
                    } else {
                        "no model is set, and this machine supports no older one"
                    };
                    resolved.decide(at, scsi, reason);
                }
            }
            ControllerType::Usb => {
                let half = controller.other_model.as_deref().and_then(first_port);
                if let (Some(port), None) = (half, controller.start_port) {
                    controller.start_port = Some(port);
                    let at = FieldPath::Controller(nth, ControllerField::StartPort);
                    let reason = "each companion of an EHCI controller has two ports";
                    resolved.decide(at, port, reason);
                } else if is_pc && controller.other_model.is_none() {
                    let model = "piix3-uhci";
                    controller.other_model = Some(model.to_owned());
                    resolved.decide(
                        at,
                        model,
                        "no model is set, and it is the oldest model of PCs",
                    );
                }
            }
            _ => {}
        }
    }
}

/// The first port of a UHCI companion of an EHCI controller.
fn first_port(model: &str) -> Option<u32> {
    match model {
        "ich9-uhci1" => Some(0),
        "ich9-uhci2" => Some(2),
        "ich9-uhci3" => Some(4),
        _ => None,
    }
}

/// Finds controllers of a type with the same index; the UHCI companions of an EHCI controller share its index.
fn find_twins(resolved: &mut Resolved) {
    let mut first: HashMap<(ControllerType, u32), usize> = HashMap::new();
    for (nth, controller) in resolved.domain.controllers.iter().enumerate() {
        let is_half = controller
            .other_model
            .as_deref()
            .is_some_and(|model| model.starts_with("ich9-uhci"));
        let Some(index) = controller.index.filter(|_| !is_half) else {
            continue;
        };
        let controller_type = controller.controller_type;
        if let Some(other) = first.get(&(controller_type, index)) {
            resolved.conflicts.push(Conflict {
                at: FieldPath::Controller(nth, ControllerField::Index),
                with: Some(FieldPath::Controller(*other, ControllerField::Index)),
                kind: ConflictKind::SameController {
                    controller_type,
                    index,
                },
            });
        } else {
            first.insert((controller_type, index), nth);
        }
    }
}

#[cfg(test)]
mod tests {
    use vmdisk_model::MachineType;

    use super::*;
    use crate::Unmodeled;

    fn resolved(machine: &str, controllers: Vec<Controller>) -> Resolved {
        let domain = Domain {
            architecture: Some(Architecture::X86_64),
            machine: Some(MachineType::new(machine)),
            controllers,
            ..Domain::default()
        };
        super::super::resolve(&domain, &Unmodeled::default())
    }

    fn summary(resolved: &Resolved) -> Vec<String> {
        let one = |controller: &Controller| {
            let model = controller.scsi_model.map(|model| model.as_str().to_owned());
            let model = model.or_else(|| controller.other_model.clone());
            format!(
                "{} {} {}",
                controller.controller_type,
                controller.index.unwrap(),
                model.unwrap_or_default()
            )
        };
        resolved.domain.controllers.iter().map(one).collect()
    }

    #[test]
    fn every_pc_gets_what_libvirt_gives_it() {
        assert_eq!(summary(&resolved("pc", Vec::new())), ["usb 0 piix3-uhci"]);
        assert_eq!(
            summary(&resolved("q35", Vec::new())),
            ["usb 0 qemu-xhci", "sata 0 "]
        );
        assert_eq!(summary(&resolved("isapc", Vec::new())), [""; 0]);
    }

    #[test]
    fn numbers_and_models_are_filled_in_and_twins_found() {
        let mut open = Controller::new(ControllerType::Scsi, 0);
        open.index = None;
        let found = resolved(
            "pc",
            vec![
                open,
                Controller::virtio_scsi(0),
                Controller::new(ControllerType::Usb, 0),
                Controller::new(ControllerType::Usb, 0),
            ],
        );
        assert_eq!(
            summary(&found),
            [
                "scsi 1 lsilogic",
                "scsi 0 virtio-scsi",
                "usb 0 piix3-uhci",
                "usb 0 piix3-uhci"
            ]
        );
        assert_eq!(found.conflicts.len(), 1);
        let again = super::super::resolve(&found.domain, &found.kept);
        assert_eq!(again.domain, found.domain);
        assert_eq!(again.decisions, []);
    }
}
