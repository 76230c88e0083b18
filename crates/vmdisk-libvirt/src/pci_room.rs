//! The room on the PCI buses of a guest whose devices have addresses.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_model::Board;

use crate::device_address::pci_address;
use crate::element::Element;
use crate::value::any_base;

/// A guest with fewer devices has room for more.
const MANY: usize = 20;

/// The number of devices for which libvirt finds a place at most, beside those with an address: in slots and ports that
/// are free, and in ports and bridges that it can add. `None` if it is not known or without a limit here.
pub(crate) fn pci_room(devices: &Element<'_>, board: Board) -> Option<usize> {
    if devices.children.len() < MANY || !matches!(board, Board::Q35 | Board::I440fx) {
        return None;
    }
    let mut taken: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    // Slots of the root bus with ports, buses of ports, and buses with 31 slots.
    let mut slots_of_ports = BTreeSet::new();
    let (mut ports, mut bridges) = (Vec::new(), Vec::new());
    for device in &devices.children {
        let address = pci_address(device.node);
        if let Some((_, (_, bus, slot, _))) = address {
            *taken.entry((bus, slot)).or_default() += 1;
        }
        if !device.is_named("controller") || device.attribute("type") != Some("pci") {
            continue;
        }
        let index = device.attribute("index").and_then(any_base)?;
        match (device.attribute("model")?, address) {
            ("pci-root" | "pcie-root", _) => {}
            ("pcie-root-port", Some((_, (_, 0, slot, _)))) => {
                slots_of_ports.insert(slot);
                ports.push(index);
            }
            ("pci-bridge", Some(_)) => bridges.push(index),
            // Without an address it takes a place itself; others have rules of their own.
            _ => return None,
        }
    }
    if taken.is_empty() {
        return None; // as generated: libvirt assigns every address
    }
    let used = |bus: u32, slot: u32| taken.get(&(bus, slot)).copied().unwrap_or_default();
    let reserved = board.taken_slots();
    let of_root = (0..32).filter(|slot| !reserved.contains(slot) && used(0, *slot) == 0);
    let of_root = of_root.count();
    if board == Board::Q35 {
        let free_ports = ports.iter().filter(|bus| used(**bus, 0) == 0).count();
        let functions = slots_of_ports.iter().map(|slot| 8 - used(0, *slot).min(8));
        return Some(8 * of_root + free_ports + functions.sum::<usize>());
    }
    // The last free slot takes another bridge.
    let is_full = |bus: &u32| (1..32).all(|slot| used(*bus, slot) > 0);
    (of_root == 0 && bridges.iter().all(is_full)).then_some(0)
}
