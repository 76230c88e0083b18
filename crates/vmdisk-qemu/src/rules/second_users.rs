//! Devices whose drive is already in use by another device.

use std::collections::HashMap;

use super::line::{Line, has_own_device};
use crate::members::Members;
use crate::syntax::properties::Property;
use crate::syntax::value::is_on;

/// A device whose drive is already in use by another device.
pub(super) struct SecondUse<'a> {
    pub(super) option: usize,
    pub(super) device: Members<'a>,
    pub(super) drive: &'a Property,
    /// True if the drive is a `-drive`.
    pub(super) legacy: bool,
    /// The other device; `None` if the `-drive` itself creates it.
    pub(super) first: Option<Members<'a>>,
    /// True if QEMU lets both use it.
    pub(super) is_shared: bool,
}

/// The devices whose drive is already in use by another device, in order.
pub(super) fn second_users<'a>(line: &Line<'a>) -> Vec<SecondUse<'a>> {
    let mut found = Vec::new();
    let mut users: HashMap<&'a str, Members<'a>> = HashMap::new();
    for (option, _, device) in line.index.devices() {
        let Some(drive) = device.get("drive") else {
            continue;
        };
        let name = drive.value.as_str();
        if drive.is_open() {
            continue;
        }
        let legacy = line.index.drive(name);
        let legacy = legacy.and_then(|drive| line.index.properties(drive));
        let has_device = legacy.is_some_and(|drive| has_own_device(line, drive));
        let first = if has_device {
            None
        } else {
            let Some(first) = users.insert(name, device) else {
                continue;
            };
            Some(first)
        };
        let node = line.index.node(name);
        let is_read_only = node.is_some_and(|node| is_on(node.view.members.get("read-only")));
        let shares = |device: Members<'_>| is_on(device.get("share-rw"));
        let both_share = shares(device) && first.is_some_and(shares);
        found.push(SecondUse {
            option,
            device,
            drive,
            legacy: legacy.is_some(),
            first,
            is_shared: legacy.is_none() && (is_read_only || both_share),
        });
    }
    found
}
