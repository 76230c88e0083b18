//! The devices related to a device: its partitions and everything built on them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use vmdisk_facts::DeviceNumber;

use super::node::Node;
use super::refusal::{Check, Refusal, Refusals, plain};

/// A device and everything stacked on it, by number, with the kernel's names.
#[derive(Debug, Default)]
pub(crate) struct Family {
    pub(crate) members: BTreeMap<DeviceNumber, String>,
}

impl Family {
    /// Collects the family, and refuses partitions, holders, and read-only devices.
    pub(crate) fn of(node: &Node, refusals: &mut Vec<Refusal>) -> Self {
        let mut family = Self::default();
        family.members.insert(node.number, node.kernel_name());
        match fs::read_to_string(node.sysfs.join("ro")) {
            Ok(text) if text.trim() == "0" => {}
            Ok(_) => refusals.refuse(Check::Writable, "the device is read-only"),
            Err(error) => {
                refusals.refuse(Check::Writable, format!("not checked: {}", plain(&error)))
            }
        }
        let mut partitions = Vec::new();
        let mut holders = Vec::new();
        family.add_above(&node.sysfs, &mut partitions, &mut holders, refusals);
        if !partitions.is_empty() {
            refusals.refuse(
                Check::Partitions,
                format!("it has partitions: {}", partitions.join(", ")),
            );
        }
        if !holders.is_empty() {
            refusals.refuse(
                Check::Holders,
                format!("{} is built on it", holders.join(", ")),
            );
        }
        family
    }

    fn add_above(
        &mut self,
        sysfs: &Path,
        partitions: &mut Vec<String>,
        holders: &mut Vec<String>,
        refusals: &mut Vec<Refusal>,
    ) {
        let mut above = Vec::new();
        match fs::read_dir(sysfs) {
            Ok(entries) => {
                for entry in entries.flatten() {
                    if entry.path().join("partition").exists() {
                        partitions.push(entry.file_name().to_string_lossy().into_owned());
                        above.push(entry.path());
                    }
                }
            }
            Err(error) => {
                refusals.refuse(Check::Partitions, format!("not checked: {}", plain(&error)))
            }
        }
        match fs::read_dir(sysfs.join("holders")) {
            Ok(entries) => {
                for entry in entries.flatten() {
                    holders.push(entry.file_name().to_string_lossy().into_owned());
                    above.push(entry.path());
                }
            }
            Err(error) => {
                refusals.refuse(Check::Holders, format!("not checked: {}", plain(&error)))
            }
        }
        for path in above {
            let Some(number) = fs::read_to_string(path.join("dev"))
                .ok()
                .and_then(|text| DeviceNumber::parse(&text))
            else {
                // It was removed meanwhile; its presence has been noted.
                continue;
            };
            let name = fs::canonicalize(&path)
                .ok()
                .and_then(|real| Some(real.file_name()?.to_string_lossy().into_owned()))
                .unwrap_or_default();
            if self.members.insert(number, name).is_none()
                && let Ok(real) = fs::canonicalize(&path)
            {
                self.add_above(&real, partitions, holders, refusals);
            }
        }
    }
}
