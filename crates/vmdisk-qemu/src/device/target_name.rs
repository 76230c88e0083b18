//! Names of disks: the configured one, or the next free one.

use std::collections::{HashMap, HashSet};

use vmdisk_model::{Address, DiskField, FieldPath, Frontend, TargetBus, target_number};

use crate::members::Members;
use crate::notes::Notes;
use crate::syntax::properties::Property;

/// The names of disks that are in use.
#[derive(Default)]
pub(crate) struct TargetNames {
    taken: HashSet<String>,
    /// The start of the search for the next free name, by prefix.
    next: HashMap<&'static str, usize>,
}

impl TargetNames {
    /// Assigns a disk its configured name, or the next free one.
    pub(crate) fn assign_target(
        &mut self,
        nth: usize,
        properties: Members<'_>,
        frontend: &mut Frontend,
        notes: &mut Notes<'_>,
    ) {
        let bus = frontend.effective_bus();
        let id = properties.take("id");
        let node = properties.get("drive").or(properties.get("chardev"));
        let own = |property: Option<&Property>| {
            let text = property?.value.as_str();
            let text = text.strip_prefix("socket-").unwrap_or(text);
            let stem = ["-format", "-file", "-throttle", "-copy-on-read"]
                .iter()
                .find_map(|end| text.strip_suffix(end))
                .unwrap_or(text);
            is_target(bus, stem).then(|| stem.to_owned())
        };
        if let Some(property) = id.or(node) {
            notes.record(FieldPath::Disk(nth, DiskField::TargetDev), property);
        }
        let written = own(id).or_else(|| own(node));
        let free = written.filter(|name| !self.taken.contains(name));
        let address = frontend.address.as_ref();
        let number = id
            .and_then(|id| libvirt_number(bus, id.value.as_str(), address))
            .or_else(|| place_number(bus, address));
        let name = free.unwrap_or_else(|| self.free(bus, number));
        if let Some(id) = id {
            let text = id.value.as_str();
            if text != name && !is_libvirt_alias(text) {
                notes.record(FieldPath::Disk(nth, DiskField::Alias), id);
                frontend.alias = Some(text.to_owned());
            }
        }
        self.taken.insert(name.clone());
        frontend.target = Some(name);
    }

    /// A free name on a bus: the name with this number, or the next.
    fn free(&mut self, bus: TargetBus, number: Option<usize>) -> String {
        let name = |number: usize| match bus {
            TargetBus::Nvme => format!("nvme{number}n1"),
            _ => format!("{}{}", bus.target_prefix(), letters(number)),
        };
        let meant = number.map(name).filter(|name| !self.taken.contains(name));
        meant.unwrap_or_else(|| {
            let next = self.next.entry(bus.target_prefix()).or_default();
            while self.taken.contains(&name(*next)) {
                *next += 1;
            }
            name(*next)
        })
    }
}

/// The number in libvirt's name for a disk with this id: from the id, or from the address.
fn libvirt_number(bus: TargetBus, id: &str, address: Option<&Address>) -> Option<usize> {
    const MOST: u32 = 20_000;
    let rest = id.strip_prefix(bus.as_str())?;
    if let Some(number) = rest.strip_prefix("-disk") {
        let number = number.parse::<u32>().ok().filter(|number| *number < MOST)?;
        return usize::try_from(number).ok();
    }
    let Some(Address::Drive(place)) = address else {
        return None;
    };
    let number = match bus {
        TargetBus::Scsi => {
            let unit = if place.target > 0 {
                place.target
            } else {
                place.unit
            };
            // An address without a matching name has no number.
            (unit < 7).then_some(())?;
            place.controller.checked_mul(7)? + unit
        }
        _ => return place_number(bus, address),
    };
    usize::try_from(number).ok()
}

/// The number of a place on a bus with few places: the second channel of IDE begins with `hdc`.
fn place_number(bus: TargetBus, address: Option<&Address>) -> Option<usize> {
    let Some(Address::Drive(place)) = address else {
        return None;
    };
    let units = match bus {
        TargetBus::Sata => 6,
        TargetBus::Ide => 4,
        TargetBus::Fdc => 2,
        _ => return None,
    };
    let unit = place.bus.checked_mul(2)?.checked_add(place.unit)?;
    let before = place.controller.checked_mul(units)?;
    // A place that the controller does not have has no number.
    let number = (unit < units).then(|| before.checked_add(unit))??;
    usize::try_from(number).ok()
}

/// True for a name that libvirt could have given a disk on this bus.
fn is_target(bus: TargetBus, text: &str) -> bool {
    let Some(rest) = text.strip_prefix(bus.target_prefix()) else {
        return false;
    };
    match bus {
        TargetBus::Nvme => rest.split_once('n').is_some_and(|(controller, namespace)| {
            controller.parse::<u32>().is_ok() && namespace.parse::<u32>().is_ok()
        }),
        _ => target_number(text).is_some(),
    }
}

/// True for an id that libvirt generates from a disk's address.
fn is_libvirt_alias(id: &str) -> bool {
    let Some(rest) = TargetBus::WORDS.iter().find_map(|bus| id.strip_prefix(bus)) else {
        return false;
    };
    let rest = rest.strip_prefix("-disk").unwrap_or(rest);
    !rest.is_empty()
        && rest
            .split('-')
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `a` to `z`, then `aa` and on.
fn letters(number: usize) -> String {
    let mut letters = Vec::new();
    let mut rest = number + 1;
    while rest > 0 {
        let digit = (rest - 1) % 26;
        letters.push(b'a' + u8::try_from(digit).unwrap_or_default());
        rest = (rest - 1) / 26;
    }
    letters.reverse();
    letters.into_iter().map(char::from).collect()
}
