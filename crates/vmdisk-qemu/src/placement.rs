//! Which controller and unit each disk gets: as addressed, else as libvirt would have it.

use std::collections::{BTreeMap, HashSet};

use vmdisk_model::{
    Address, ControllerField, ControllerType, Disk, DiskField, DomainField, DriveAddress,
    FieldPath, MachineType, Scope, ScsiControllerModel, TargetBus, target_number,
};

use crate::board::{Board, Machine};
use crate::writer::Writer;

/// A controller that is written down, or that a disk needs.
#[derive(Clone, Debug)]
pub(crate) struct PlannedController {
    /// Its number among the guest's controllers, if it is written down.
    pub(crate) written: Option<usize>,
    /// The field that it is there for.
    pub(crate) origin: FieldPath,
    /// Its model, if it is a SCSI controller.
    pub(crate) scsi_model: ScsiControllerModel,
    /// Its id, once it has one.
    pub(crate) id: String,
}

/// The controllers of a guest and the place of each disk on them.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// By kind and index.
    pub(crate) controllers: BTreeMap<(ControllerType, u32), PlannedController>,
    /// Place of each disk; `None` for those that are a device of their own.
    pub(crate) places: Vec<Option<DriveAddress>>,
    /// The UHCI halves of each USB controller, by their numbers among the guest's controllers.
    pub(crate) companions: BTreeMap<u32, Vec<usize>>,
    /// The disks of each NVMe controller, which share its serial number.
    pub(crate) namespaces: BTreeMap<u32, Vec<usize>>,
}

/// The kind of controller that disks of a bus hang on.
pub(crate) const fn controller_type(bus: TargetBus) -> Option<ControllerType> {
    match bus {
        TargetBus::Scsi => Some(ControllerType::Scsi),
        TargetBus::Sata => Some(ControllerType::Sata),
        TargetBus::Ide => Some(ControllerType::Ide),
        TargetBus::Fdc => Some(ControllerType::Fdc),
        TargetBus::Usb => Some(ControllerType::Usb),
        TargetBus::Nvme => Some(ControllerType::Nvme),
        TargetBus::Virtio | TargetBus::Sd | TargetBus::Xen | TargetBus::Uml => None,
    }
}

/// The model of a SCSI controller: as written, else libvirt's choice.
pub(crate) fn scsi_model(
    written: Option<ScsiControllerModel>,
    machine: &Machine,
) -> ScsiControllerModel {
    match written {
        Some(ScsiControllerModel::Auto) | None => {
            let name = machine.name.as_deref().map(MachineType::new);
            ScsiControllerModel::libvirts_choice(machine.architecture, name.as_ref())
        }
        Some(model) => model,
    }
}

/// Controllers that are added below one with a number.
const MOST_GAPS: u32 = 1024;

/// Disks that libvirt puts on a SCSI controller, as many as a narrow bus takes.
const PLACES_OF_A_SCSI_CONTROLLER: u32 = 7;

/// The nth place that is handed out on a SCSI controller, if it has so many.
///
/// libvirt counts logical units, 7 to a controller. Models that know one logical unit, or few, are filled by target instead: on them QEMU
/// refuses what libvirt would write.
fn scsi_place(model: ScsiControllerModel, controller: u32, nth: u32) -> Option<DriveAddress> {
    let is_unit = match model {
        ScsiControllerModel::VirtioScsi
        | ScsiControllerModel::VirtioTransitional
        | ScsiControllerModel::VirtioNonTransitional
        | ScsiControllerModel::Lsisas1078
        | ScsiControllerModel::Ibmvscsi
        | ScsiControllerModel::Auto
        | ScsiControllerModel::Buslogic
        // The address's unit is this model's target.
        | ScsiControllerModel::Lsilogic => true,
        ScsiControllerModel::Vmpvscsi
        | ScsiControllerModel::Lsisas1068
        | ScsiControllerModel::Ncr53c90
        | ScsiControllerModel::Dc390
        | ScsiControllerModel::Am53c974 => false,
    };
    (nth < PLACES_OF_A_SCSI_CONTROLLER).then_some(DriveAddress {
        controller,
        bus: 0,
        target: if is_unit { 0 } else { nth },
        unit: if is_unit { nth } else { 0 },
    })
}

/// Controller and namespace that a name such as `nvme0n1` stands for, the namespace from 0.
fn nvme_index(target: &str) -> Option<(u32, u32)> {
    let (controller, namespace) = target.strip_prefix("nvme")?.split_once('n')?;
    let namespace: u32 = namespace.parse().ok()?;
    Some((controller.parse().ok()?, namespace.checked_sub(1)?))
}

impl Plan {
    /// The place that libvirt gives a disk by its name, or the nth place of its kind.
    fn place(&self, machine: &Machine, kind: ControllerType, nth: u32) -> Option<DriveAddress> {
        let spread = |per_controller: u32| (nth / per_controller, nth % per_controller);
        match kind {
            ControllerType::Scsi => {
                // On virtio-scsi too, where there would be room for many more.
                let (controller, nth) = spread(PLACES_OF_A_SCSI_CONTROLLER);
                let model = self
                    .controllers
                    .get(&(kind, controller))
                    .map_or_else(|| scsi_model(None, machine), |planned| planned.scsi_model);
                scsi_place(model, controller, nth)
            }
            ControllerType::Sata => {
                let (controller, unit) = spread(6);
                Some(DriveAddress {
                    controller,
                    unit,
                    ..DriveAddress::default()
                })
            }
            ControllerType::Ide => {
                let (controller, nth) = spread(4);
                Some(DriveAddress {
                    controller,
                    bus: nth / 2,
                    unit: nth % 2,
                    target: 0,
                })
            }
            ControllerType::Fdc => {
                let (controller, unit) = spread(2);
                Some(DriveAddress {
                    controller,
                    unit,
                    ..DriveAddress::default()
                })
            }
            // Namespaces of one controller.
            ControllerType::Nvme => Some(DriveAddress {
                unit: nth,
                ..DriveAddress::default()
            }),
            // QEMU picks the port.
            ControllerType::Usb => Some(DriveAddress::default()),
        }
    }

    /// The place that a disk's name asks for.
    fn place_by_name(
        &self,
        machine: &Machine,
        kind: ControllerType,
        target: &str,
    ) -> Option<DriveAddress> {
        if kind == ControllerType::Nvme {
            return nvme_index(target).map(|(controller, unit)| DriveAddress {
                controller,
                unit,
                ..DriveAddress::default()
            });
        }
        self.place(machine, kind, target_number(target)?)
    }
}

impl Writer<'_> {
    /// Finds a place for every disk, and the controllers that it takes.
    pub(crate) fn plan(&mut self) -> Plan {
        let mut plan = Plan::default();
        self.plan_written_controllers(&mut plan);
        let mut places = vec![None; self.domain.disks.len()];
        let mut taken: HashSet<(ControllerType, DriveAddress)> = HashSet::new();
        // Addresses first: a disk without one takes what is left.
        for (nth, disk) in self.domain.disks.iter().enumerate() {
            let Some(kind) = controller_type(disk.frontend.effective_bus()) else {
                continue;
            };
            if let Some(place) = self.addressed_place(nth, disk, kind) {
                if !taken.insert((kind, place)) {
                    self.problem(
                        FieldPath::Disk(nth, DiskField::Address),
                        "another disk has the same address",
                    );
                }
                places[nth] = Some(place);
            }
        }
        let mut next: BTreeMap<ControllerType, u32> = BTreeMap::new();
        for (nth, disk) in self.domain.disks.iter().enumerate() {
            let Some(kind) = controller_type(disk.frontend.effective_bus()) else {
                continue;
            };
            if kind == ControllerType::Usb {
                let controller = match &disk.frontend.address {
                    Some(Address::Usb(address)) => address.bus,
                    Some(
                        Address::Pci(_)
                        | Address::Drive(_)
                        | Address::Ccw(_)
                        | Address::VirtioMmio
                        | Address::SpaprVio(_)
                        | Address::Unassigned
                        | Address::Other(_),
                    )
                    | None => self.usb_controller(&plan),
                };
                places[nth] = Some(DriveAddress {
                    controller,
                    ..DriveAddress::default()
                });
            } else if places[nth].is_none() {
                let target = disk.frontend.target.as_deref().unwrap_or_default();
                let by_name = plan
                    .place_by_name(&self.machine, kind, target)
                    .filter(|place| !taken.contains(&(kind, *place)));
                let cursor = next.entry(kind).or_default();
                let place = by_name.or_else(|| {
                    std::iter::from_fn(|| {
                        let at = *cursor;
                        *cursor += 1;
                        Some(at)
                    })
                    // Each disk takes one place, and no controller has fewer than one in three.
                    .take(4 * self.domain.disks.len() + 64)
                    .filter_map(|at| plan.place(&self.machine, kind, at))
                    .find(|place| !taken.contains(&(kind, *place)))
                });
                if let Some(place) = place {
                    taken.insert((kind, place));
                }
                places[nth] = place;
            }
            if let Some(place) = places[nth] {
                if kind == ControllerType::Nvme {
                    plan.namespaces
                        .entry(place.controller)
                        .or_default()
                        .push(nth);
                }
                let scsi_model = scsi_model(None, &self.machine);
                plan.controllers
                    .entry((kind, place.controller))
                    .or_insert_with(|| PlannedController {
                        written: None,
                        origin: FieldPath::Disk(nth, DiskField::TargetBus),
                        scsi_model,
                        id: String::new(),
                    });
            }
        }
        plan.places = places;
        self.plan_libvirts_gaps(&mut plan);
        self.plan_libvirts_usb(&mut plan);
        plan
    }

    fn plan_written_controllers(&mut self, plan: &mut Plan) {
        let mut counts: BTreeMap<ControllerType, u32> = BTreeMap::new();
        for (nth, controller) in self.domain.controllers.iter().enumerate() {
            let count = counts.entry(controller.controller_type).or_default();
            let index = controller.index.unwrap_or(*count);
            *count += 1;
            let planned = PlannedController {
                written: Some(nth),
                origin: FieldPath::Controller(nth, ControllerField::Controller),
                scsi_model: scsi_model(controller.scsi_model, &self.machine),
                id: String::new(),
            };
            if self.is_usb_companion(nth) {
                plan.companions.entry(index).or_default().push(nth);
                continue;
            }
            let key = (controller.controller_type, index);
            if let std::collections::btree_map::Entry::Vacant(entry) = plan.controllers.entry(key) {
                entry.insert(planned);
            } else {
                self.problem(
                    FieldPath::Controller(nth, ControllerField::Index),
                    format!(
                        "there are two {} controllers with index {index}",
                        controller.controller_type
                    ),
                );
            }
        }
    }

    /// Adds the USB controller that libvirt gives every PC that has none
    /// (`qemuDomainDefAddDefaultDevices`).
    fn plan_libvirts_usb(&self, plan: &mut Plan) {
        let is_whole_pc = self.domain.scope == Scope::WholeGuest
            && matches!(self.machine.board, Board::Q35 | Board::I440fx);
        let has_usb = self
            .domain
            .controllers
            .iter()
            .any(|controller| controller.controller_type == ControllerType::Usb);
        if self.is_libvirt_style() && is_whole_pc && !has_usb {
            plan.controllers
                .entry((ControllerType::Usb, 0))
                .or_insert_with(|| PlannedController {
                    written: None,
                    origin: FieldPath::Domain(DomainField::Devices),
                    scsi_model: scsi_model(None, &self.machine),
                    id: String::new(),
                });
        }
    }

    /// The place that a disk's address names, if it has an address on a controller.
    fn addressed_place(
        &mut self,
        nth: usize,
        disk: &Disk,
        kind: ControllerType,
    ) -> Option<DriveAddress> {
        let at = FieldPath::Disk(nth, DiskField::Address);
        match &disk.frontend.address {
            Some(Address::Drive(place)) if kind != ControllerType::Usb => Some(*place),
            Some(Address::Drive(_)) => {
                self.problem(
                    at,
                    "a USB disk has a port, not a place on a disk controller",
                );
                None
            }
            Some(Address::Pci(_)) => {
                self.problem(
                    at,
                    format!("the disk hangs on a {kind} controller, not on PCI"),
                );
                None
            }
            Some(Address::Other(word)) => {
                self.leave_out(
                    at,
                    format!("an address of type '{word}' is not written: QEMU chooses the place"),
                );
                None
            }
            Some(Address::Usb(_)) if kind == ControllerType::Usb => None,
            Some(
                Address::Usb(_)
                | Address::Ccw(_)
                | Address::VirtioMmio
                | Address::SpaprVio(_)
                | Address::Unassigned,
            ) => {
                self.problem(
                    at,
                    format!(
                        "the disk hangs on a {kind} controller, and its address is of another type"
                    ),
                );
                None
            }
            None => None,
        }
    }

    /// Adds the controllers with smaller numbers than one that a disk needs, which libvirt adds too
    /// (`virDomainDefAddDiskControllersForType`).
    fn plan_libvirts_gaps(&self, plan: &mut Plan) {
        if !self.is_libvirt_style() {
            return;
        }
        for kind in [
            ControllerType::Scsi,
            ControllerType::Sata,
            ControllerType::Ide,
            ControllerType::Fdc,
        ] {
            let needed = self.domain.disks.iter().zip(&plan.places).enumerate();
            let last = needed
                .filter(|(_, (disk, _))| {
                    controller_type(disk.frontend.effective_bus()) == Some(kind)
                })
                .filter_map(|(nth, (_, place))| Some((place.as_ref()?.controller, nth)))
                .max();
            let Some((last, nth)) = last else { continue };
            // One that nobody asked for is one of many thousand that nobody wants.
            for index in 0..last.min(MOST_GAPS) {
                plan.controllers
                    .entry((kind, index))
                    .or_insert_with(|| PlannedController {
                        written: None,
                        origin: FieldPath::Disk(nth, DiskField::TargetBus),
                        scsi_model: scsi_model(None, &self.machine),
                        id: String::new(),
                    });
            }
        }
    }

    /// The USB controller that disks go to: the first one.
    fn usb_controller(&self, plan: &Plan) -> u32 {
        plan.controllers
            .range((ControllerType::Usb, 0)..=(ControllerType::Usb, u32::MAX))
            .next()
            .map_or(0, |((_, index), _)| *index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_an_nvme_disk_tells_its_controller_and_namespace() {
        assert_eq!(nvme_index("nvme1n3"), Some((1, 2)));
        assert_eq!(nvme_index("nvme1n0"), None);
    }

    #[test]
    fn every_model_is_filled_only_as_far_as_qemu_takes_it() {
        for model in ScsiControllerModel::ALL {
            let places: Vec<DriveAddress> = (0..20)
                .filter_map(|nth| scsi_place(*model, 0, nth))
                .collect();
            let distinct: HashSet<&DriveAddress> = places.iter().collect();
            assert_eq!(distinct.len(), places.len(), "{model}");
            assert!(places.len() >= 7, "{model}");
            assert!(
                places
                    .iter()
                    .all(|place| place.target != 7 && place.unit != 7)
            );
        }
    }
}
