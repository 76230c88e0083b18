//! Marking a device as one that may be overwritten.

use std::path::Path;

use super::claim::{checked, exclusive};
use super::marker::Marker;
use super::node::{Identity, Node};
use super::refusal::{Check, Refusal, Refused};
use super::signature::{blank_ends, new_if_thin};

/// A device that has passed every check and is held, before anything was written on it.
#[derive(Debug)]
pub struct Preparation {
    node: Node,
    identity: Identity,
    held: std::fs::File,
}

/// Checks a device before it is marked, and claims it; nothing is written.
///
/// # Errors
/// Every check that did not pass.
pub fn prepare(path: &Path) -> Result<Preparation, Refused> {
    let node = Node::open(path)?;
    let mut refusals = checked(&node);
    let blank_from = refusals.len();
    blank_ends(&node, &mut refusals);
    if refusals.len() > blank_from && Marker::of(&node, &mut Vec::new()).is_some() {
        refusals.truncate(blank_from);
        refusals.push(Refusal::new(Check::Marker, "it is marked already"));
    }
    new_if_thin(&node, &mut refusals);
    let identity = node.identity();
    if identity.is_none() {
        refusals.push(Refusal::new(
            Check::Serial,
            "it has no serial number that could be confirmed",
        ));
    }
    let held = if refusals.is_empty() {
        exclusive(&node, &mut refusals)
    } else {
        // It may not even be opened for writing; whether the kernel would give it away is still worth knowing.
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
    /// What has to be typed in.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Size of the device in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.node.size_bytes
    }

    /// Writes the marker, if what was typed is the serial number; everything is checked once more before.
    ///
    /// # Errors
    /// Every check that did not pass, or that the marker could not be written.
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
                format!("'{}' is not its {}", typed.trim(), identity.kind),
            ));
        }
        // A person may have taken an hour to type, and a QEMU may have opened it meanwhile.
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
