//! btrfs in sysfs: the devices of a filesystem, its profiles and checksum.
//!
//! The device numbers of mounts and files do not help here: every subvolume has an anonymous one.

use std::collections::HashMap;
use std::path::Path;

use vmdisk_facts::Fact;
use vmdisk_facts::filesystem::Btrfs;

use crate::obstacle::{missing, obstacle};
use crate::root::Root;

/// The mounted btrfs filesystems, by UUID.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    members: HashMap<String, Vec<String>>,
    by_member: HashMap<String, String>,
}

impl Registry {
    pub(crate) fn scan(root: &Root) -> Self {
        let mut registry = Self::default();
        for uuid in root.names("/sys/fs/btrfs").unwrap_or_default() {
            // The directory `features` is next to the filesystems.
            let Ok(members) = root.names(format!("/sys/fs/btrfs/{uuid}/devices")) else {
                continue;
            };
            for member in &members {
                registry.by_member.insert(member.clone(), uuid.clone());
            }
            registry.members.insert(uuid, members);
        }
        registry
    }

    /// Returns the UUID of the filesystem with the given device, as named in mountinfo.
    pub(crate) fn uuid_of_source(&self, root: &Root, source: &str) -> Option<&str> {
        let name = |path: &Path| {
            path.file_name()
                .and_then(|name| name.to_str())
                .map(str::to_owned)
        };
        let real = root
            .resolve(Path::new(source))
            .ok()
            .and_then(|real| name(&real));
        // The device node may be gone, or in another namespace; its name is still usable.
        let name = real.or_else(|| name(Path::new(source)))?;
        self.by_member.get(&name).map(String::as_str)
    }

    /// Returns the kernel's names of all devices of the filesystem with the given device.
    pub(crate) fn devices_of_source(&self, root: &Root, source: &str) -> Option<&[String]> {
        self.members
            .get(self.uuid_of_source(root, source)?)
            .map(Vec::as_slice)
    }

    /// Returns the facts about a filesystem in sysfs.
    pub(crate) fn facts(&self, root: &Root, uuid: &str) -> Btrfs {
        let at = format!("/sys/fs/btrfs/{uuid}");
        let number = |file: &str| {
            let path = format!("{at}/{file}");
            root.number(&path)
        };
        let checksum = format!("{at}/checksum");
        Btrfs {
            data_profile: data_profiles(root, &at),
            // `crc32c (crc32c-x86)`: the driver in parentheses does not matter.
            checksum: root.fact(&checksum, |text| {
                text.split_whitespace().next().map(str::to_owned)
            }),
            sectorsize: number("sectorsize"),
        }
    }
}

/// Returns the profiles in use, each of which has a directory; during a balance there are two.
fn data_profiles(root: &Root, at: &str) -> Fact<Vec<String>> {
    let at = format!("{at}/allocation");
    let mixed = format!("{at}/mixed");
    // Small filesystems may store data and metadata together.
    let directory = if root.exists(&mixed) {
        mixed
    } else {
        format!("{at}/data")
    };
    match root.names(&directory) {
        Ok(names) => Fact::Known(names.into_iter().filter(|name| is_profile(name)).collect()),
        Err(error) if missing(&error) => Fact::Absent,
        Err(error) => Fact::Unknown(obstacle(&directory, &error)),
    }
}

/// Returns true for a profile of btrfs (fs/btrfs/volumes.c, btrfs_raid_array); other entries are numbers.
fn is_profile(name: &str) -> bool {
    matches!(
        name,
        "single" | "dup" | "raid0" | "raid1" | "raid1c3" | "raid1c4" | "raid10" | "raid5" | "raid6"
    )
}
