//! Block devices that a new guest is given: what something else uses would be written by both.

use std::path::Path;

use vmdisk::model::{Disk, Domain, Image};
use vmdisk_collect::{DeviceCheck, HeldDevice};

/// What uses the devices of a guest that is to be defined. They may hold data, and partitions of the guest.
pub(super) fn in_use(guest: &Domain) -> Vec<String> {
    let written = guest
        .disks
        .iter()
        .filter(|disk| disk.is_writable() && !disk.backend.is_shareable);
    let path = |disk: &'_ Disk| {
        disk.backend
            .image()
            .and_then(Image::host_path)
            .map(str::to_owned)
    };
    // Steps make the others, or they are files.
    let devices = written.filter_map(|disk| HeldDevice::open(Path::new(&path(disk)?)).ok());
    devices.flat_map(|device| used(&device)).collect()
}

fn used(device: &HeldDevice) -> Vec<String> {
    let is_use =
        |check: DeviceCheck| !matches!(check, DeviceCheck::Partitions | DeviceCheck::Writable);
    let users = device.users().into_iter();
    let users = users.filter(|user| user.is_known && is_use(user.check));
    let given = device.given().display();
    users
        .map(|user| format!("{given} is in use: {}", user.found))
        .collect()
}
