//! Where a device sits in the machine.

use std::fmt;

use crate::TargetBus;

/// Address on a PCI bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PciAddress {
    /// Domain (segment).
    pub domain: u32,
    /// Bus.
    pub bus: u32,
    /// Slot.
    pub slot: u32,
    /// Function.
    pub function: u32,
    /// True if the slot carries several functions.
    pub multifunction: Option<crate::Switch>,
}

impl fmt::Display for PciAddress {
    /// Writes the address as Linux and QEMU name a device of the host: `0000:01:00.0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            domain,
            bus,
            slot,
            function,
            multifunction: _, // of a device of the guest
        } = self;
        write!(f, "{domain:04x}:{bus:02x}:{slot:02x}.{function:x}")
    }
}

/// Address on a disk controller; libvirt `<address type='drive'>`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriveAddress {
    /// Index of the controller.
    pub controller: u32,
    /// Bus (channel) of the controller.
    pub bus: u32,
    /// SCSI target.
    pub target: u32,
    /// Unit (SCSI LUN).
    pub unit: u32,
}

impl DriveAddress {
    /// A unit of a controller, on its first bus and target.
    pub const fn of_unit(controller: u32, unit: u32) -> Self {
        Self {
            controller,
            bus: 0,
            target: 0,
            unit,
        }
    }

    /// The place that libvirt gives a disk without an address, by the number in its target's name: 7 to
    /// a SCSI controller, 6 to a SATA one, 4 to an IDE one, 2 to a floppy controller; `None` for a name
    /// that has no number, or a bus without such places (`virDomainDiskDefAssignAddress`).
    ///
    /// ```
    /// use vmdisk_model::{DriveAddress, TargetBus};
    /// let place = DriveAddress::of_target(TargetBus::Scsi, "sdi").expect("it has a number");
    /// assert_eq!((place.controller, place.unit), (1, 1));
    /// let place = DriveAddress::of_target(TargetBus::Ide, "hdd").expect("it has a number");
    /// assert_eq!((place.controller, place.bus, place.unit), (0, 1, 1));
    /// ```
    pub fn of_target(bus: TargetBus, target: &str) -> Option<Self> {
        let number = target_number(target)?;
        let (controller, bus, unit) = match bus {
            TargetBus::Scsi => (number / 7, 0, number % 7),
            TargetBus::Sata => (number / 6, 0, number % 6),
            TargetBus::Ide => (number / 4, number % 4 / 2, number % 2),
            TargetBus::Fdc => (number / 2, 0, number % 2),
            _ => return None,
        };
        let place = DriveAddress::of_unit(controller, unit);
        Some(DriveAddress { bus, ..place })
    }
}

/// Number encoded in a target name: `sda` 0, `sdz` 25, `sdaa` 26, `sda1` 0; libvirt's
/// `virDiskNameToIndex`.
pub fn target_number(target: &str) -> Option<u32> {
    const PREFIXES: [&str; 6] = ["xvd", "ubd", "hd", "sd", "vd", "fd"];
    let name = PREFIXES
        .iter()
        .find_map(|prefix| target.strip_prefix(prefix))?;
    let letters = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
    if letters.is_empty() || letters.len() > 5 || !letters.bytes().all(|b| b.is_ascii_lowercase()) {
        return None;
    }
    let number = letters.bytes().fold(0, |number, letter| {
        number * 26 + u32::from(letter - b'a') + 1
    });
    Some(number - 1)
}

/// Port of a USB bus; libvirt `<address type='usb'>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct UsbAddress {
    /// Index of the controller.
    pub bus: u32,
    /// Port, with dots where hubs are between: `1`, `1.2`.
    pub port: String,
}

/// Address on an IBM Z channel; libvirt `<address type='ccw'>`, QEMU `devno=fe.0.0001`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CcwAddress {
    /// Channel subsystem; 254 for virtio.
    pub cssid: u32,
    /// Subchannel set.
    pub ssid: u32,
    /// Device number.
    pub devno: u32,
}

/// Where a device sits in the machine; libvirt `<address>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// On a PCI bus.
    Pci(PciAddress),
    /// On a disk controller.
    Drive(DriveAddress),
    /// On a USB bus.
    Usb(UsbAddress),
    /// On a channel of an IBM Z.
    Ccw(CcwAddress),
    /// On a virtio-mmio transport of the board, whichever is free.
    VirtioMmio,
    /// On the virtual bus of a POWER machine, at this register.
    SpaprVio(u32),
    /// No address yet; libvirt attaches the device once an address is given.
    Unassigned,
    /// An address of a type that no disk has, or one with parts missing, by its libvirt word; its text is
    /// kept by the reader.
    Other(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_in_a_target_name_is_that_of_its_letters() {
        for (target, number) in [
            ("sda", 0),
            ("sdz", 25),
            ("sdaa", 26),
            ("sda1", 0),
            ("vdzz", 701),
            ("xvdb", 1),
            ("hdzzzzz", 12_356_629),
        ] {
            assert_eq!(target_number(target), Some(number), "{target}");
        }
        for none in [
            "", "sd", "sd1", "a", "sdaaaaaa", "sdA", "sda-", "sdé", "nvme0n1",
        ] {
            assert_eq!(target_number(none), None, "{none}");
        }
    }
}
