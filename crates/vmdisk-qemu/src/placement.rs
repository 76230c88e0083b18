//! The controller and unit of each disk: as configured, otherwise as libvirt assigns them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};

use vmdisk_model::{
    Address, Controller, ControllerField, ControllerType, Disk, DiskField, DriveAddress, FieldPath,
    MachineType, ScsiControllerModel, TargetBus, target_number,
};

use crate::board::Machine;
use crate::guest::Guest;
use crate::problem::WriteProblem;

/// A controller that is configured, or that a disk needs.
#[derive(Clone, Debug)]
pub(crate) struct PlannedController {
    /// Its index among the guest's controllers, if it is configured.
    pub(crate) written: Option<usize>,
    /// The field that needs it.
    pub(crate) origin: FieldPath,
    /// Its model, if it is a SCSI controller.
    pub(crate) scsi_model: ScsiControllerModel,
}

/// The controllers of a guest and the address of each disk on them.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// By kind and index.
    pub(crate) controllers: BTreeMap<(ControllerType, u32), PlannedController>,
    /// Address of each disk; `None` for disks without a controller.
    pub(crate) places: Vec<Option<DriveAddress>>,
    /// The UHCI companions of each USB controller, by their indexes among the guest's controllers.
    pub(crate) companions: BTreeMap<u32, Vec<usize>>,
    /// The disks of each NVMe controller, which share its serial number.
    pub(crate) namespaces: BTreeMap<u32, Vec<usize>>,
    /// Problems of disks and controllers without an address.
    pub(crate) problems: Vec<WriteProblem>,
    /// Addresses that are not written.
    pub(crate) left_out: Vec<WriteProblem>,
}

/// The kind of controller for disks of a bus.
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

/// The model of a SCSI controller: as configured, otherwise libvirt's default.
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

/// The number of disks that libvirt puts on a SCSI controller, the maximum of a narrow bus.
const PLACES_OF_A_SCSI_CONTROLLER: u32 = 7;

/// The nth address on a SCSI controller; `None` if it has fewer.
///
/// libvirt counts logical units, 7 per controller. Models that support one or few logical units are filled by target
/// instead, because QEMU refuses libvirt's addresses on them.
fn scsi_place(model: ScsiControllerModel, controller: u32, nth: u32) -> Option<DriveAddress> {
    let is_unit = match model {
        ScsiControllerModel::VirtioScsi
        | ScsiControllerModel::VirtioTransitional
        | ScsiControllerModel::VirtioNonTransitional
        | ScsiControllerModel::Lsisas1078
        | ScsiControllerModel::Ibmvscsi
        | ScsiControllerModel::Auto
        | ScsiControllerModel::Buslogic
        // The unit of the address is the target of this model.
        | ScsiControllerModel::Lsilogic => true,
        _ => false,
    };
    (nth < PLACES_OF_A_SCSI_CONTROLLER).then_some(DriveAddress {
        controller,
        bus: 0,
        target: if is_unit { 0 } else { nth },
        unit: if is_unit { nth } else { 0 },
    })
}

/// Controller and namespace of a name such as `nvme0n1`, the namespace from 0.
fn nvme_index(target: &str) -> Option<(u32, u32)> {
    let (controller, namespace) = target.strip_prefix("nvme")?.split_once('n')?;
    let namespace: u32 = namespace.parse().ok()?;
    Some((controller.parse().ok()?, namespace.checked_sub(1)?))
}

impl Plan {
    /// The address that libvirt derives from a disk's name, or the nth address of its kind.
    fn place(&self, machine: &Machine, kind: ControllerType, nth: u32) -> Option<DriveAddress> {
        let spread = |per_controller: u32| (nth / per_controller, nth % per_controller);
        match kind {
            ControllerType::Scsi => {
                // On virtio-scsi too, which would have room for more.
                let (controller, nth) = spread(PLACES_OF_A_SCSI_CONTROLLER);
                let model = self
                    .controllers
                    .get(&(kind, controller))
                    .map_or_else(|| scsi_model(None, machine), |planned| planned.scsi_model);
                scsi_place(model, controller, nth)
            }
            ControllerType::Sata => {
                let (controller, unit) = spread(6);
                Some(DriveAddress::of_unit(controller, unit))
            }
            ControllerType::Ide => {
                let (controller, nth) = spread(4);
                Some(DriveAddress {
                    bus: nth / 2,
                    ..DriveAddress::of_unit(controller, nth % 2)
                })
            }
            ControllerType::Fdc => {
                let (controller, unit) = spread(2);
                Some(DriveAddress::of_unit(controller, unit))
            }
            // Namespaces of one controller.
            ControllerType::Nvme => Some(DriveAddress::of_unit(0, nth)),
            // QEMU picks the port.
            ControllerType::Usb => Some(DriveAddress::default()),
        }
    }

    /// The address for a disk's name.
    fn place_by_name(
        &self,
        machine: &Machine,
        kind: ControllerType,
        target: &str,
    ) -> Option<DriveAddress> {
        if kind == ControllerType::Nvme {
            return nvme_index(target)
                .map(|(controller, unit)| DriveAddress::of_unit(controller, unit));
        }
        self.place(machine, kind, target_number(target)?)
    }
}

impl Plan {
    /// Finds an address for every disk, and the required controllers.
    pub(crate) fn new(guest: &Guest<'_>) -> Self {
        let mut planner = Planner {
            guest,
            disks: &guest.domain().disks,
            plan: Plan::default(),
            taken: HashSet::new(),
        };
        planner.plan.places = vec![None; planner.disks.len()];
        planner.add_written_controllers();
        // Configured addresses first; disks without one get the remaining ones.
        planner.place_addressed();
        planner.place_others();
        planner.plan
    }
}

/// True for the UHCI companions of an EHCI controller, which share its index.
fn is_usb_companion(controller: &Controller) -> bool {
    controller.controller_type == ControllerType::Usb
        && matches!(
            controller.other_model.as_deref(),
            Some("ich9-uhci1" | "ich9-uhci2" | "ich9-uhci3")
        )
}

/// A plan under construction.
struct Planner<'a> {
    guest: &'a Guest<'a>,
    disks: &'a [Disk],
    plan: Plan,
    taken: HashSet<(ControllerType, DriveAddress)>,
}

impl Planner<'_> {
    fn problem(&mut self, at: FieldPath, message: impl Into<String>) {
        let problem = self.guest.note(at, message.into(), None);
        self.plan.problems.push(problem);
    }

    /// Adds a controller that is not configured.
    fn add_controller(&mut self, kind: ControllerType, index: u32, origin: FieldPath) {
        let scsi_model = scsi_model(None, self.guest.machine());
        let entry = self.plan.controllers.entry((kind, index));
        entry.or_insert(PlannedController {
            written: None,
            origin,
            scsi_model,
        });
    }

    fn place_addressed(&mut self) {
        for (nth, disk) in self.disks.iter().enumerate() {
            let Some(kind) = controller_type(disk.frontend.effective_bus()) else {
                continue;
            };
            if let Some(place) = self.addressed_place(nth, disk, kind) {
                if !self.taken.insert((kind, place)) {
                    self.problem(
                        FieldPath::Disk(nth, DiskField::Address),
                        "another disk has the same address",
                    );
                }
                self.plan.places[nth] = Some(place);
            }
        }
    }

    fn place_others(&mut self) {
        let mut next: BTreeMap<ControllerType, u32> = BTreeMap::new();
        for (nth, disk) in self.disks.iter().enumerate() {
            let Some(kind) = controller_type(disk.frontend.effective_bus()) else {
                continue;
            };
            if kind == ControllerType::Usb {
                let controller = match &disk.frontend.address {
                    Some(Address::Usb(address)) => address.bus,
                    Some(_) | None => self.usb_controller(),
                };
                self.plan.places[nth] = Some(DriveAddress::of_unit(controller, 0));
            } else if self.plan.places[nth].is_none() {
                let place = self.free_place(kind, disk, next.entry(kind).or_default());
                self.taken.extend(place.map(|place| (kind, place)));
                self.plan.places[nth] = place;
            }
            if let Some(place) = self.plan.places[nth] {
                if kind == ControllerType::Nvme {
                    let disks = self.plan.namespaces.entry(place.controller).or_default();
                    disks.push(nth);
                }
                let origin = FieldPath::Disk(nth, DiskField::TargetBus);
                self.add_controller(kind, place.controller, origin);
            }
        }
    }

    /// The address implied by a disk's name, otherwise the next free one.
    fn free_place(
        &self,
        kind: ControllerType,
        disk: &Disk,
        cursor: &mut u32,
    ) -> Option<DriveAddress> {
        let machine = self.guest.machine();
        let is_free = |place: &DriveAddress| !self.taken.contains(&(kind, *place));
        let target = disk.frontend.target.as_deref().unwrap_or_default();
        let by_name = self.plan.place_by_name(machine, kind, target);
        by_name.filter(is_free).or_else(|| {
            std::iter::from_fn(|| {
                let at = *cursor;
                *cursor += 1;
                Some(at)
            })
            // Each disk uses one address, and controllers hold at least a third of that many.
            .take(4 * self.disks.len() + 64)
            .filter_map(|at| self.plan.place(machine, kind, at))
            .find(is_free)
        })
    }

    fn add_written_controllers(&mut self) {
        let mut counts: BTreeMap<ControllerType, u32> = BTreeMap::new();
        for (nth, controller) in self.guest.domain().controllers.iter().enumerate() {
            let count = counts.entry(controller.controller_type).or_default();
            let index = controller.index.unwrap_or(*count);
            *count += 1;
            if is_usb_companion(controller) {
                self.plan.companions.entry(index).or_default().push(nth);
                continue;
            }
            let scsi_model = scsi_model(controller.scsi_model, self.guest.machine());
            let key = (controller.controller_type, index);
            if let Entry::Vacant(entry) = self.plan.controllers.entry(key) {
                entry.insert(PlannedController {
                    written: Some(nth),
                    origin: FieldPath::Controller(nth, ControllerField::Controller),
                    scsi_model,
                });
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

    /// The configured address of a disk, if it is on a controller.
    fn addressed_place(
        &mut self,
        nth: usize,
        disk: &Disk,
        kind: ControllerType,
    ) -> Option<DriveAddress> {
        let at = FieldPath::Disk(nth, DiskField::Address);
        match &disk.frontend.address {
            Some(Address::Drive(place)) if kind != ControllerType::Usb => return Some(*place),
            Some(Address::Drive(_)) => {
                self.problem(
                    at,
                    "a USB disk has a port, not a place on a disk controller",
                );
            }
            Some(Address::Pci(_)) => {
                self.problem(
                    at,
                    format!("the disk is on a {kind} controller, not on PCI"),
                );
            }
            Some(Address::Other(word)) => {
                let message =
                    format!("an address of type '{word}' is not written: QEMU chooses one");
                self.plan.left_out.push(self.guest.note(at, message, None));
            }
            Some(Address::Usb(_)) if kind == ControllerType::Usb => {}
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
                        "the disk is on a {kind} controller, but its address is of another type"
                    ),
                );
            }
            None => {}
        }
        None
    }

    /// The USB controller for disks: the first one.
    fn usb_controller(&self) -> u32 {
        let usb = (ControllerType::Usb, 0)..=(ControllerType::Usb, u32::MAX);
        let mut controllers = self.plan.controllers.range(usb);
        controllers.next().map_or(0, |((_, index), _)| *index)
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
