//! Slots of the root bus, and the additional buses that addresses use.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_model::{Address, ControllerField, DiskField, Domain, FieldPath};

use vmdisk_model::Board;

/// Slots of the root bus and the additional buses that addresses use.
#[derive(Debug)]
pub(crate) struct PciSlots {
    /// Number of devices without an address that fit on the root bus, if that is known.
    room: Option<usize>,
    /// The slots to assign; used only if some device has an address: QEMU gives a device without one the first free
    /// slot at that moment, which may be the configured slot of a later device.
    free: Option<std::vec::IntoIter<u32>>,
    /// Number of devices without an assigned address.
    unaddressed: usize,
    /// Additional buses, each with the field that uses it and whether it has more than one slot.
    buses: BTreeMap<u32, (FieldPath, bool)>,
}

impl PciSlots {
    /// Collects the addresses of a guest's disks and controllers.
    pub(crate) fn new(domain: &Domain, board: Board) -> Self {
        let disks = domain.disks.iter().enumerate().map(|(nth, disk)| {
            (
                FieldPath::Disk(nth, DiskField::Address),
                &disk.frontend.address,
            )
        });
        let controllers = domain
            .controllers
            .iter()
            .enumerate()
            .map(|(nth, controller)| {
                (
                    FieldPath::Controller(nth, ControllerField::Address),
                    &controller.address,
                )
            });
        let mut addressed = BTreeSet::new();
        let mut buses: BTreeMap<u32, (FieldPath, bool)> = BTreeMap::new();
        for (at, address) in controllers.chain(disks) {
            match address {
                Some(Address::Pci(address)) if address.bus == 0 => {
                    addressed.insert(address.slot);
                }
                Some(Address::Pci(address)) => {
                    let bus = buses.entry(address.bus).or_insert((at, false));
                    bus.1 |= address.slot != 0;
                }
                _ => {}
            }
        }
        let free = (!addressed.is_empty()).then(|| {
            let is_free =
                |slot: &u32| !addressed.contains(slot) && !board.taken_slots().contains(slot);
            (0..32).filter(is_free).collect::<Vec<_>>().into_iter()
        });
        addressed.extend(board.taken_slots());
        PciSlots {
            room: board
                .root_bus()
                .map(|_| 32_usize.saturating_sub(addressed.len())),
            free,
            unaddressed: 0,
            buses,
        }
    }

    /// The additional buses that addresses use, each with the field and whether it has more than one slot.
    pub(crate) fn take_buses(&mut self) -> BTreeMap<u32, (FieldPath, bool)> {
        std::mem::take(&mut self.buses)
    }

    /// True if slots are assigned here, and not by QEMU.
    pub(crate) const fn are_handed_out(&self) -> bool {
        self.free.is_some()
    }

    /// Counts a device without an address; returns its number, from 1.
    pub(crate) const fn count(&mut self) -> usize {
        self.unaddressed += 1;
        self.unaddressed
    }

    /// The slot of the next device without an address.
    pub(crate) fn next(&mut self) -> NextSlot {
        let number = self.count();
        match self.room {
            Some(room) if number > room => NextSlot::Full {
                room,
                is_first: number == room + 1,
            },
            Some(_) | None => match self.free.as_mut().and_then(Iterator::next) {
                Some(slot) => NextSlot::Slot(slot),
                None => NextSlot::Qemus,
            },
        }
    }
}

/// The slot of a device without an address.
pub(crate) enum NextSlot {
    /// QEMU chooses it.
    Qemus,
    /// This one.
    Slot(u32),
    /// None: the bus has room for this many devices.
    Full { room: usize, is_first: bool },
}
