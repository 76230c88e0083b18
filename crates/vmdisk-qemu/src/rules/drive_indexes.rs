//! The places on the board that QEMU gives to `-drive`, `-hda` and similar options.

use std::collections::{HashMap, HashSet};

use vmdisk_source::Span;

use super::line::Line;
use crate::interface::DefaultInterface;
use crate::members::Members;
use crate::syntax::value::number_of;
use vmdisk_model::Board;

/// A drive with a place on the board.
pub(super) struct PlacedDrive<'a> {
    pub(super) option: usize,
    pub(super) span: Span,
    /// The word of `if=`.
    pub(super) interface: &'a str,
    pub(super) index: u64,
    /// True if an earlier drive has the place.
    pub(super) is_taken: bool,
}

/// The options that define drives of the board: name, interface and index; `None` leaves them to the value.
const SHORT: [(&str, Option<&str>, u64); 9] = [
    ("", None, 0),
    ("hda", None, 0),
    ("hdb", None, 1),
    ("hdc", None, 2),
    ("hdd", None, 3),
    ("cdrom", None, 2),
    ("fda", Some("floppy"), 0),
    ("fdb", Some("floppy"), 1),
    ("sd", Some("sd"), 0),
];

/// The drives of the command line with their places, in order, without those of a machine whose default interface is not
/// known. The list ends before a place that is not known.
pub(super) fn placed_drives<'a>(line: &Line<'a>) -> Vec<PlacedDrive<'a>> {
    let default = match line.document.defaults.interface {
        DefaultInterface::Unknown => None,
        DefaultInterface::None => Some("none"),
        known => Some(known.word()),
    };
    let mut drives: Vec<(usize, &'a str, Place)> = Vec::new();
    for (name, interface, index) in SHORT {
        let place = Place::Index(index, None);
        let options = line.index.of_name(name);
        let interface = interface.or(default);
        drives.extend(options.filter_map(|(option, _)| Some((option, interface?, place))));
    }
    for (option, drive) in line.index.of_name("drive") {
        if let Some(interface) = drive.value("if").or(default) {
            let place = Place::of(drive, units(line.board(), interface));
            drives.push((option, interface, place));
        }
    }
    drives.sort_by_key(|(option, ..)| *option);
    let mut taken: HashSet<(&str, u64)> = HashSet::new();
    let mut next: HashMap<&str, u64> = HashMap::new();
    let mut placed = Vec::new();
    for (option, interface, place) in drives {
        let (index, span) = match place {
            Place::Index(index, span) => (index, span),
            Place::First => {
                let next = next.entry(interface).or_default();
                while taken.contains(&(interface, *next)) {
                    *next += 1;
                }
                (*next, None)
            }
            Place::Unknown => break,
        };
        placed.push(PlacedDrive {
            option,
            span: span.unwrap_or_else(|| line.index.span(option)),
            interface,
            index,
            is_taken: !taken.insert((interface, index)),
        });
    }
    placed
}

/// The units of a bus; `None` for interfaces without buses.
pub(super) fn units(board: Board, interface: &str) -> Option<u64> {
    match interface {
        "ide" if board == Board::Q35 => Some(1),
        "ide" => Some(2),
        "scsi" => Some(7),
        _ => None,
    }
}

/// The place that an option asks for.
#[derive(Clone, Copy)]
enum Place {
    /// This one, with its position if it is written as a number.
    Index(u64, Option<Span>),
    /// The first free one.
    First,
    /// Not a number, or only a bus.
    Unknown,
}

impl Place {
    fn of(drive: Members<'_>, units: Option<u64>) -> Self {
        let number = |key: &str| {
            let property = drive.get(key)?;
            Some((number_of(property.value.as_str()), property.span))
        };
        let place = match (number("index"), number("bus"), number("unit")) {
            (None, None, None) => return Place::First,
            (Some((index, span)), None, None) => index.map(|index| (index, span)),
            (None, bus, Some((unit, span))) => {
                let bus = bus.map_or(Some(0), |(bus, _)| bus);
                let first = match (units, bus) {
                    (_, Some(0)) => Some(0),
                    (Some(units), Some(bus)) => bus.checked_mul(units),
                    _ => None,
                };
                first
                    .and_then(|first| first.checked_add(unit?))
                    .map(|index| (index, span))
            }
            _ => None,
        };
        place.map_or(Place::Unknown, |(index, span)| {
            Place::Index(index, Some(span))
        })
    }
}
