//! `-set` and `-global`: properties for other options.

use std::collections::{HashMap, HashSet};

use crate::limits::MAX_PROPERTIES;
use crate::syntax::option::WrittenOption;
use crate::syntax::properties::Property;

/// Applies the properties of `-set` and `-global` to their options; returns the indexes of the applied options.
///
/// `-set` overrides the option, and the option overrides `-global`. A `-global` is applied to each `-device` of its driver.
/// It does not count as applied if QEMU itself creates further devices of the driver, for `-drive if=virtio` and the like.
pub(crate) fn apply_overrides(options: &mut [WrittenOption]) -> HashSet<usize> {
    let mut applied = HashSet::new();
    let mut budget = MAX_PROPERTIES;
    let mut globals: HashMap<String, Vec<Property>> = HashMap::new();
    let by_id = numbers_by_id(options);
    let drivers: HashSet<String> = options.iter().filter_map(driver_of).collect();
    for nth in 0..options.len() {
        match options[nth].name.as_str() {
            "set" => {
                let Some((target, property)) = setting(&options[nth], &by_id) else {
                    continue;
                };
                if let Some(properties) = &mut options[target].properties {
                    properties.set(property);
                    applied.insert(nth);
                }
            }
            "global" => {
                let default = default_of_driver(&options[nth]);
                if let Some((driver, property)) =
                    default.filter(|(driver, _)| drivers.contains(driver))
                {
                    if !options.iter().any(|option| may_create(option, &driver)) {
                        applied.insert(nth);
                    }
                    globals.entry(driver).or_default().push(property);
                }
            }
            _ => {}
        }
        if applied.len() > MAX_OVERRIDES {
            break;
        }
    }
    if globals.is_empty() {
        return applied;
    }
    for option in options.iter_mut().filter(|option| option.name == "device") {
        let Some(properties) = &mut option.properties else {
            continue;
        };
        let own = properties.value("driver").and_then(|it| globals.get(it));
        // The last of several counts.
        let mut seen = HashSet::new();
        for property in own.into_iter().flatten().rev() {
            let is_written = properties.get(&property.key).is_some();
            if seen.insert(property.key.as_str()) && !is_written && budget > 0 {
                budget -= 1;
                properties.set(property.clone());
            }
        }
    }
    applied
}

/// The limit on applied options keeps reading linear; real command lines have few.
const MAX_OVERRIDES: usize = 256;

/// The options with an id, by name and id. Of two the first counts.
fn numbers_by_id(options: &[WrittenOption]) -> HashMap<(String, String), usize> {
    let mut numbers = HashMap::new();
    for (nth, option) in options.iter().enumerate() {
        let properties = option.properties.as_ref();
        if let Some(id) = properties.and_then(|properties| properties.value("id")) {
            numbers
                .entry((option.name.clone(), id.to_owned()))
                .or_insert(nth);
        }
    }
    numbers
}

/// The option and the key of `-set GROUP.ID.KEY=VALUE`. Ids may contain dots.
fn setting(
    option: &WrittenOption,
    by_id: &HashMap<(String, String), usize>,
) -> Option<(usize, Property)> {
    let written = option.properties.as_ref()?.iter().next()?;
    let (group, rest) = written.key.split_once('.')?;
    let mut splits = rest.match_indices('.');
    let (target, key) = splits.find_map(|(dot, _)| {
        let id = (group.to_owned(), rest[..dot].to_owned());
        Some((*by_id.get(&id)?, &rest[dot + 1..]))
    })?;
    Some((target, moved(option, written, key)))
}

/// The driver and the property of `-global DRIVER.KEY=VALUE`, or of its long form.
fn default_of_driver(option: &WrittenOption) -> Option<(String, Property)> {
    let properties = option.properties.as_ref()?;
    if let (Some(driver), Some(key), Some(value)) = (
        properties.value("driver"),
        properties.value("property"),
        properties.get("value"),
    ) {
        return Some((driver.to_owned(), moved(option, value, key)));
    }
    let written = properties.iter().next()?;
    let (driver, key) = written.key.split_once('.')?;
    Some((driver.to_owned(), moved(option, written, key)))
}

/// A property as part of another option; deleting it deletes the option that sets it.
fn moved(option: &WrittenOption, written: &Property, key: &str) -> Property {
    Property {
        key: key.to_owned(),
        whole: option.span,
        ..written.clone()
    }
}

/// True if QEMU may create a device of this driver for an option that describes the storage of a disk.
fn may_create(option: &WrittenOption, driver: &str) -> bool {
    let is_one_of = |drivers: &[&str]| drivers.iter().any(|prefix| driver.starts_with(prefix));
    let interface = match option.name.as_str() {
        "drive" => {
            let properties = option.properties.as_ref();
            properties.and_then(|properties| properties.value("if"))
        }
        "hda" | "hdb" | "hdc" | "hdd" | "cdrom" => None,
        "fda" | "fdb" => Some("floppy"),
        "sd" => Some("sd"),
        _ => return false,
    };
    match interface {
        // The machine decides.
        None => is_one_of(&["virtio-blk", "ide-", "scsi-"]),
        Some("virtio") => is_one_of(&["virtio-blk"]),
        Some("ide") => is_one_of(&["ide-"]),
        Some("scsi") => is_one_of(&["scsi-"]),
        Some("floppy") => is_one_of(&["floppy", "isa-fdc"]),
        Some("sd") => is_one_of(&["sd-card"]),
        Some(_) => false,
    }
}

/// The driver of a `-device`.
fn driver_of(option: &WrittenOption) -> Option<String> {
    let device = option
        .properties
        .as_ref()
        .filter(|_| option.name == "device")?;
    device.value("driver").map(str::to_owned)
}
