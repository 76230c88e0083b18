//! Machine types that QEMU removed, and machine types of vendors.

use crate::capability::{Answer, Basis};
use crate::version::Version;

/// Machine types that one release removed.
#[derive(Debug)]
pub struct RemovedMachines {
    /// The name before the version.
    pub prefix: &'static str,
    /// The newest of them.
    pub newest: Version,
    /// The last release that is known to have the newest.
    pub last_with: Version,
    /// The first release that is known to have none of them.
    pub first_without: Version,
    /// The source of the row.
    pub source: &'static str,
}

const fn row(
    prefix: &'static str,
    newest: (u32, u32),
    last_with: (u32, u32),
    first_without: (u32, u32),
    source: &'static str,
) -> RemovedMachines {
    RemovedMachines {
        prefix,
        newest: Version(newest.0, newest.1, 0),
        last_with: Version(last_with.0, last_with.1, 0),
        first_without: Version(first_without.0, first_without.1, 0),
        source,
    }
}

/// Removals before QEMU 10.1, by prefix and the oldest first. Later releases follow `KEPT_YEARS`.
pub const REMOVED: &[RemovedMachines] = &[
    row("pc-", (0, 11), (3, 1), (4, 0), "QEMU commit cc425b5ddf"),
    row(
        "pc-",
        (0, 15),
        (4, 2),
        (5, 2),
        "deprecated by QEMU commit cc425b5ddf (4.0); tried: 5.2 has none",
    ),
    row(
        "pc-",
        (1, 3),
        (5, 2),
        (6, 0),
        "QEMU docs/about/removed-features; tried: 5.2 has them, 7.2 has none",
    ),
    row(
        "pc-q35-",
        (2, 3),
        (2, 6),
        (5, 2),
        "QEMU commit 86165b499e (2.7); tried: 5.2 has none",
    ),
    row(
        "pc-i440fx-",
        (1, 7),
        (8, 1),
        (8, 2),
        "libvirt's recorded replies: 8.1 has them, 8.2 has none",
    ),
    row(
        "pc-i440fx-",
        (2, 3),
        (8, 2),
        (9, 1),
        "libvirt's recorded replies: 8.2 has them, 9.1 has none",
    ),
];

/// From QEMU 10.1 on, a machine type is removed as many major versions after its own (`MACHINE_VER_DELETION` in
/// QEMU's `include/hw/boards.h`; tried: 10.0 has 2.4, 11.1 has 5.2 and not 5.1; libvirt's recorded reply of 10.1).
const KEPT_YEARS: u32 = 6;

/// The families of machine types with versions.
const FAMILIES: [&str; 6] = [
    "pc-i440fx-",
    "pc-q35-",
    "virt-",
    "s390-ccw-virtio-",
    "pseries-",
    "pc-",
];

/// True if a release of QEMU no longer has a machine type; unknown between the releases that are known.
///
/// ```
/// use vmdisk_facts::{Version, machines::is_removed};
/// assert!(is_removed("pc-1.0", Version(7, 2, 0)).is_yes());
/// assert!(is_removed("pc-q35-5.1", Version(11, 1, 0)).is_yes());
/// assert!(is_removed("pc-q35-5.2", Version(11, 1, 0)).is_no());
/// ```
pub fn is_removed(machine: &str, qemu: Version) -> Answer {
    let named = FAMILIES.iter().find_map(|prefix| {
        let version = machine.strip_prefix(prefix)?.parse::<Version>().ok()?;
        Some((*prefix, version))
    });
    let Some((prefix, version)) = named else {
        return Answer::No(Basis::Assumed(qemu));
    };
    let end = Version(version.0 + KEPT_YEARS, version.1, 0).max(Version(10, 1, 0));
    let removed = REMOVED
        .iter()
        .find(|row| row.prefix == prefix && version.release() <= row.newest.release());
    let (last_with, first_without) = match removed {
        Some(row) => (row.last_with, row.first_without),
        None => (qemu.min(end), end),
    };
    if qemu >= first_without {
        Answer::Yes(Basis::Assumed(qemu))
    } else if removed.is_some() && qemu.release() > last_with.release() {
        Answer::Unknown
    } else {
        Answer::No(Basis::Assumed(qemu))
    }
}

/// Distributions with machine types of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineVendor {
    /// RHEL and its rebuilds.
    RedHat,
    /// Ubuntu and the distributions with its packages.
    Ubuntu,
    /// Proxmox VE.
    Proxmox,
}

/// Vendors by the `ID` in os-release, with the machine types of their QEMU.
const VENDORS: &[(&str, Option<MachineVendor>)] = &[
    ("rhel", Some(MachineVendor::RedHat)),
    ("centos", Some(MachineVendor::RedHat)),
    ("almalinux", Some(MachineVendor::RedHat)),
    ("rocky", Some(MachineVendor::RedHat)),
    ("ol", Some(MachineVendor::RedHat)),
    ("ubuntu", Some(MachineVendor::Ubuntu)),
    ("linuxmint", Some(MachineVendor::Ubuntu)),
    ("pop", Some(MachineVendor::Ubuntu)),
    ("proxmox", Some(MachineVendor::Proxmox)),
    ("alpine", None),
    ("arch", None),
    ("debian", None),
    ("fedora", None),
    ("gentoo", None),
    ("nixos", None),
    ("opensuse-leap", None),
    ("opensuse-tumbleweed", None),
    ("sles", None),
    ("void", None),
];

/// Names of Ubuntu's releases in machine types.
const UBUNTU: &[&str] = &[
    "artful", "bionic", "cosmic", "disco", "eoan", "focal", "groovy", "hirsute", "impish", "jammy",
    "kinetic", "lunar", "mantic", "noble", "oracular", "plucky", "precise", "questing", "saucy",
    "trusty", "utopic", "vivid", "wily", "xenial", "yakkety", "zesty",
];

impl MachineVendor {
    /// The vendor of a machine type; `None` for QEMU's own.
    ///
    /// ```
    /// use vmdisk_facts::machines::MachineVendor;
    /// assert_eq!(MachineVendor::of_machine("pc-q35-jammy-hpb"), Some(MachineVendor::Ubuntu));
    /// assert_eq!(MachineVendor::of_machine("pc-q35-9.2+pve1"), Some(MachineVendor::Proxmox));
    /// assert_eq!(MachineVendor::of_machine("pc-q35-9.2"), None);
    /// ```
    pub fn of_machine(machine: &str) -> Option<Self> {
        let has = |test: fn(&str) -> bool| machine.split('-').any(test);
        if has(|part| part.starts_with("rhel")) {
            Some(MachineVendor::RedHat)
        } else if has(|part| UBUNTU.contains(&part)) {
            Some(MachineVendor::Ubuntu)
        } else {
            machine.contains("+pve").then_some(MachineVendor::Proxmox)
        }
    }

    /// The vendor whose machine types the QEMU of a distribution has; `None` inside for QEMU's own only, and `None` for a
    /// distribution that is not known.
    pub fn of_distribution(id: &str) -> Option<Option<Self>> {
        let row = VENDORS.iter().find(|(name, _)| *name == id);
        row.map(|(_, vendor)| *vendor)
    }

    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            MachineVendor::RedHat => "RHEL",
            MachineVendor::Ubuntu => "Ubuntu",
            MachineVendor::Proxmox => "Proxmox VE",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_removed_from_its_release_on() {
        for row in REMOVED {
            let Version(major, minor, _) = row.newest;
            let name = format!("{}{major}.{minor}", row.prefix);
            assert!(is_removed(&name, row.last_with).is_no(), "{name}");
            assert!(is_removed(&name, row.first_without).is_yes(), "{name}");
            assert!(row.last_with < row.first_without && !row.source.is_empty());
        }
    }

    #[test]
    fn versions_decide_about_a_machine_type() {
        let answers = |machine: &str, releases: &[(u32, u32)]| -> String {
            let answer =
                |(major, minor): &(u32, u32)| match is_removed(machine, Version(*major, *minor, 3))
                {
                    Answer::Yes(_) => 'x',
                    Answer::No(_) => '-',
                    Answer::Unknown => '?',
                };
            releases.iter().map(answer).collect()
        };
        let releases = [
            (5, 2),
            (7, 2),
            (8, 2),
            (9, 0),
            (9, 1),
            (10, 0),
            (10, 1),
            (10, 2),
            (11, 0),
            (11, 1),
        ];
        for (machine, expected) in [
            ("pc-0.11", "xxxxxxxxxx"),
            ("pc-1.0", "-xxxxxxxxx"),
            ("pc-q35-2.1", "xxxxxxxxxx"),
            ("pc-q35-2.4", "------xxxx"),
            ("pc-i440fx-1.7", "--xxxxxxxx"),
            ("pc-i440fx-2.3", "---?xxxxxx"),
            ("pc-i440fx-2.12", "------xxxx"),
            ("pc-q35-4.0.1", "------xxxx"),
            ("pc-q35-4.2", "-------xxx"),
            ("virt-5.0", "--------xx"),
            ("s390-ccw-virtio-5.1", "---------x"),
            ("pc-q35-5.2", "----------"),
            ("q35", "----------"),
            ("pc-q35-rhel7.6.0", "----------"),
        ] {
            assert_eq!(answers(machine, &releases), expected, "{machine}");
        }
    }
}
