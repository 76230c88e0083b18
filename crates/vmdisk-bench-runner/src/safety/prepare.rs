//! Marking a device that may be overwritten.

use std::path::Path;

use super::claim::{checked, exclusive};
use super::marker::Marker;
use super::node::{Identity, Node};
use super::refusal::{Check, Refusals, Refused};
use super::signature::{blank_ends, new_if_thin};

/// A claimed device that passed every check; not written yet.
#[derive(Debug)]
pub struct Preparation {
    node: Node,
    identity: Identity,
    held: std::fs::File,
}

/// Checks a device before it is marked, and claims it without writing.
///
/// # Errors
/// Every failed check.
pub fn prepare(path: &Path) -> Result<Preparation, Refused> {
    let node = Node::open(path)?;
    let mut refusals = checked(&node);
    let blank_from = refusals.len();
    blank_ends(&node, &mut refusals);
    if refusals.len() > blank_from && Marker::of(&node, &mut Vec::new()).is_some() {
        refusals.truncate(blank_from);
        refusals.refuse(Check::Marker, "it is already marked");
    }
    new_if_thin(&node, &mut refusals);
    let identity = node.identity();
    if identity.is_none() {
        refusals.refuse(Check::Serial, "it has no serial number to confirm");
    }
    let held = if refusals.is_empty() {
        exclusive(&node, &mut refusals)
    } else {
        // The device may not even be writable; still check whether the kernel would grant it exclusively.
        drop(exclusive(&node, &mut refusals));
        None
    };
    match (identity, held) {
        (Some(identity), Some(held)) => Ok(Preparation {
            node,
            identity,
            held,
        }),
        _ => Err(Refused {
            device: path.display().to_string(),
            refusals,
        }),
    }
}

impl Preparation {
    /// Returns the identity that the user has to type.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the size of the device in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.node.size_bytes
    }

    /// Repeats every check, and writes the marker if the typed text is the serial number.
    ///
    /// # Errors
    /// Every failed check, or that the marker could not be written.
    pub fn confirm(self, typed: &str, now: &str) -> Result<Marker, Refused> {
        let Self {
            node,
            identity,
            held,
        } = self;
        let device = node.given.display();
        if typed.trim() != identity.value {
            return Err(Refused::one(
                device,
                Check::Serial,
                format!("`{}` is not its {}", typed.trim(), identity.kind),
            ));
        }
        // Typing may have taken an hour, and a QEMU may have opened the device meanwhile.
        let mut refusals = checked(&node);
        blank_ends(&node, &mut refusals);
        new_if_thin(&node, &mut refusals);
        if !refusals.is_empty() {
            return Err(Refused {
                device: device.to_string(),
                refusals,
            });
        }
        let uuid = std::fs::read_to_string("/proc/sys/kernel/random/uuid")
            .map_err(|error| Refused::one(&device, Check::Marker, error.to_string()))?;
        let marker = Marker {
            uuid: uuid.trim().to_owned(),
            identity_kind: identity.kind,
            identity: identity.value,
            size_bytes: node.size_bytes,
            prepared_at: now.to_owned(),
        };
        marker
            .write(&held)
            .map_err(|error| Refused::one(&device, Check::Marker, error.to_string()))?;
        Ok(marker)
    }
}
