//! Whether data survives the failure of one drive.

use crate::blockdev::{BlockDevice, BlockKind};
use crate::filesystem::{Filesystem, FsKind};
use crate::index::{HostIndex, MAX_LEVELS};
use crate::missing::Missing;

use super::attachment::{Attachment, is_on_network};

/// How many drives have each block, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Redundancy {
    /// Data survives the failure of a drive.
    Kept,
    /// The facts do not decide it.
    Unknown,
    /// The failure of one drive loses the data.
    Single,
    /// A drive is missing already.
    Degraded,
}

/// The verdict, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedundancyVerdict {
    /// The verdict.
    pub redundancy: Redundancy,
    /// The deciding fact, in words.
    pub reason: String,
}

/// The fault of a device that has lost its redundancy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrayFault {
    /// Members of an array are missing.
    Degraded {
        /// The number of missing members.
        missing: u32,
        /// The number of members that it should have.
        members: Option<u32>,
        /// True if it was rebuilding when the facts were collected.
        is_rebuilding: bool,
    },
    /// The health that LVM reports.
    Unhealthy(String),
}

impl ArrayFault {
    /// The fault of a device, if it has one.
    ///
    /// # Errors
    /// Fails if the facts do not show the state of an array.
    pub fn of(device: &BlockDevice) -> Result<Option<Self>, Missing> {
        if let Some(md) = device.md.value() {
            let what = || format!("missing members of {}", device.name());
            // Levels without redundancy do not have this number.
            let missing = md.degraded.clone().needed(what)?.unwrap_or(0);
            if missing > 0 {
                let sync = md.sync.as_str().known();
                return Ok(Some(ArrayFault::Degraded {
                    missing,
                    members: md.raid_disks.clone().known(),
                    is_rebuilding: matches!(sync, Some("recover" | "resync" | "reshape")),
                }));
            }
        }
        let Some(lvm) = device.lvm.value() else {
            return Ok(None);
        };
        let what = || format!("the health of {}", device.name());
        let health = match lvm.health.as_str().needed(what) {
            Ok(health) => health,
            // Other volumes have no redundancy to lose.
            Err(_) if !is_raid_volume(device) => None,
            Err(missing) => return Err(missing),
        };
        let health = health.filter(|health| !health.is_empty());
        Ok(health.map(|health| ArrayFault::Unhealthy(health.to_owned())))
    }
}

fn is_raid_volume(device: &BlockDevice) -> bool {
    let segtype = device.lvm.as_ref().and_then(|lvm| lvm.segtype.as_str());
    let segtype = segtype.known();
    segtype.is_some_and(|it| it.starts_with("raid") || it == "mirror")
}

fn verdict(redundancy: Redundancy, reason: impl Into<String>) -> RedundancyVerdict {
    RedundancyVerdict {
        redundancy,
        reason: reason.into(),
    }
}

fn unknown(reason: impl Into<String>) -> RedundancyVerdict {
    verdict(Redundancy::Unknown, reason)
}

/// The verdict about a level of RAID; `None` if the devices below decide.
fn of_level(level: &str, name: &str) -> Option<RedundancyVerdict> {
    match level {
        "raid0" | "linear" | "striped" | "faulty" | "single" => None,
        _ => Some(verdict(Redundancy::Kept, format!("{name} is {level}"))),
    }
}

/// The number of members that an array can lose.
fn spare(level: &str, members: Option<u32>) -> Option<u32> {
    match level {
        "raid6" => Some(2),
        "raid1" => Some(members?.saturating_sub(1)),
        _ => None,
    }
}

impl<'a> HostIndex<'a> {
    /// Whether data on some devices survives the failure of a drive; a block may be on any of them.
    pub fn redundancy_of(&self, devices: &[&'a BlockDevice]) -> RedundancyVerdict {
        self.worst(devices, 0)
    }

    /// Whether data on a file system survives the failure of a drive.
    pub fn redundancy_on(&self, filesystem: &'a Filesystem) -> RedundancyVerdict {
        self.on(filesystem, 0)
    }

    fn worst(&self, devices: &[&'a BlockDevice], level: usize) -> RedundancyVerdict {
        let verdicts = devices.iter().map(|device| self.one(device, level));
        // Of equals, the same one in any order of the facts.
        let worst = verdicts.min_by(|one, other| {
            let is_worse = other.redundancy.cmp(&one.redundancy);
            is_worse.then_with(|| one.reason.cmp(&other.reason))
        });
        worst.unwrap_or_else(|| unknown("the facts do not show the drives"))
    }

    fn one(&self, device: &'a BlockDevice, level: usize) -> RedundancyVerdict {
        let name = device.name();
        let level_of_md = device.md.value().and_then(|md| md.level.value());
        let has_no_copy = level_of_md.is_some_and(|it| of_level(it, &name).is_none());
        match ArrayFault::of(device) {
            Ok(Some(ArrayFault::Degraded {
                missing, members, ..
            })) => {
                let copies = level_of_md.and_then(|it| spare(it, members));
                if copies.is_some_and(|copies| missing < copies) {
                    let reason = format!("{name} is degraded, and survives another failure");
                    return verdict(Redundancy::Kept, reason);
                }
                return verdict(Redundancy::Degraded, format!("{name} is degraded"));
            }
            Ok(Some(ArrayFault::Unhealthy(health))) => {
                let reason = format!("LVM reports {name} as {health}");
                return verdict(Redundancy::Degraded, reason);
            }
            Err(missing) if !has_no_copy => return unknown(missing.what),
            Err(_) | Ok(None) => {}
        }
        if device.md.is_known() {
            match level_of_md {
                Some(md_level) => {
                    if let Some(kept) = of_level(md_level, &name) {
                        return kept;
                    }
                }
                None => return unknown(format!("the level of {name} is not known")),
            }
        }
        if is_raid_volume(device)
            && let Some(segtype) = device.lvm.value().and_then(|lvm| lvm.segtype.value())
            && let Some(kept) = of_level(segtype.split('_').next().unwrap_or_default(), &name)
        {
            return kept;
        }
        // The redundancy of a ZFS pool is not collected, and parts are legs of a volume whose type is not known.
        let is_hidden = matches!(device.kind, BlockKind::Zvol | BlockKind::LvmPart);
        if is_on_network(&device.kind) || is_hidden || level == MAX_LEVELS {
            return unknown(format!("the facts do not show the drives of {name}"));
        }
        if let Some(file) = device.loop_file.value() {
            let path = file.backing_file.as_str().known();
            let on = path.and_then(|path| self.filesystem_of(path).known());
            return match on {
                Some(filesystem) => self.on(filesystem, level + 1),
                None => unknown(format!("the facts do not show the drives of {name}")),
            };
        }
        match self.below(device) {
            below if !below.is_empty() => {
                let worst = self.worst(&below, level + 1);
                let is_spread = device.md.is_known() && below.len() > 1;
                match worst.redundancy {
                    Redundancy::Single if is_spread => RedundancyVerdict {
                        reason: format!(
                            "{name} spreads data over {} devices without a copy",
                            below.len()
                        ),
                        ..worst
                    },
                    _ => worst,
                }
            }
            _ => of_drive(device),
        }
    }

    fn on(&self, filesystem: &'a Filesystem, level: usize) -> RedundancyVerdict {
        let Some(written) = self.written_filesystem(filesystem).known() else {
            return unknown("the facts do not show the upper directory of the overlay");
        };
        let kind = &written.kind;
        let devices = self.own_devices(written);
        match kind {
            FsKind::Btrfs => {
                let profiles = written.btrfs.as_ref().map(|btrfs| &btrfs.data_profile);
                let profiles = profiles.known().and_then(|it| it.value());
                // `dup` keeps both copies on one drive.
                let is_on_several = |it: &&String| it.starts_with("raid") && *it != "raid0";
                match profiles {
                    Some(profiles) => {
                        let has_hole = |it: &&String| matches!(it.as_str(), "raid5" | "raid6");
                        if let Some(profile) = profiles.iter().find(has_hole) {
                            let why = "can lose data if a drive fails after a power failure";
                            return verdict(
                                Redundancy::Single,
                                format!("btrfs has {profile}, which {why}"),
                            );
                        }
                        if let Some(profile) = profiles.iter().find(is_on_several) {
                            return verdict(Redundancy::Kept, format!("btrfs has {profile}"));
                        }
                    }
                    None if devices.len() != 1 => {
                        return unknown("the data profile of btrfs is not known");
                    }
                    None => {}
                }
            }
            FsKind::Bcachefs if devices.len() == 1 => {}
            FsKind::Zfs | FsKind::Bcachefs => {
                return unknown(format!("the facts do not show how {kind} uses its drives"));
            }
            _ if kind.is_volatile() => {
                return verdict(Redundancy::Single, format!("{kind} is memory"));
            }
            _ if kind.is_elsewhere() && devices.is_empty() => {
                return unknown(format!("the facts do not show the drives behind {kind}"));
            }
            _ => {}
        }
        self.worst(&devices, level)
    }
}

fn of_drive(drive: &BlockDevice) -> RedundancyVerdict {
    let name = drive.name();
    match Attachment::of(drive) {
        Ok(Attachment::Network | Attachment::Controller | Attachment::Hypervisor) => {
            unknown(format!("the facts do not show the drives behind {name}"))
        }
        // What is not known to be more than a drive is counted as one.
        Ok(Attachment::Inside | Attachment::Removable) | Err(_) => {
            verdict(Redundancy::Single, format!("{name} has the only copy"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Facts;

    const HOST: &str = "
schema_version: '1.0'
mounts:
- {id: m1, point: /mirror, fs: f1}
- {id: m2, point: /dup, fs: f2}
- {id: m3, point: /nfs, fs: f3}
- {id: m4, point: /both, fs: f4}
- {id: m5, point: /over, fs: f5}
filesystems:
- {id: f1, kind: btrfs, devices: [a, b], btrfs: {data_profile: [raid1c3]}}
- {id: f2, kind: btrfs, devices: [a], btrfs: {data_profile: [dup]}}
- {id: f3, kind: nfs4}
- {id: f4, kind: xfs, devices: [striped]}
- {id: f5, kind: overlay, overlay: {upper: /mirror/upper}}
- {id: f6, kind: btrfs, devices: [a, b]}
- {id: f7, kind: btrfs, devices: [a]}
- {id: f8, kind: tmpfs}
- {id: f9, kind: zfs, devices: [a]}
- {id: f10, kind: ext4, devices: []}
- {id: f11, kind: fuse, devices: [a]}
- {id: f12, kind: fuse.sshfs}
- {id: f13, kind: btrfs, devices: [a, b], btrfs: {data_profile: [raid5]}}
- {id: f14, kind: bcachefs, devices: [a]}
- {id: f15, kind: bcachefs, devices: [a, b]}
blockdevs:
- {id: a, kind: disk, paths: [/dev/sda], scsi: {host: ahci}}
- {id: b, kind: disk, paths: [/dev/sdb]}
- {id: raid, kind: disk, paths: [/dev/sdc], scsi: {host: megaraid_sas}}
- {id: vda, kind: disk, paths: [/dev/vda]}
- {id: mpath, kind: multipath, slaves: [a, b]}
- {id: md, kind: md, paths: [/dev/md0], slaves: [a, b], md: {level: raid10, degraded: 0}}
- {id: broken, kind: md, paths: [/dev/md1], slaves: [a], md: {level: raid1, degraded: 1}}
- {id: two-left, kind: md, paths: [/dev/md3], slaves: [a, b], md: {level: raid1, raid_disks: 3, degraded: 1}}
- {id: one-left, kind: md, paths: [/dev/md4], slaves: [a, b], md: {level: raid1, raid_disks: 3, degraded: 2}}
- {id: raid6, kind: md, paths: [/dev/md5], slaves: [a, b], md: {level: raid6, raid_disks: 4, degraded: 1}}
- {id: raid5, kind: md, paths: [/dev/md6], slaves: [a, b], md: {level: raid5, raid_disks: 3, degraded: 1}}
- {id: unasked, kind: md, paths: [/dev/md7], slaves: [a, b], md: {level: raid0}}
- {id: striped, kind: md, paths: [/dev/md2], slaves: [md, b], md: {level: raid0, degraded: null}}
- {id: level, kind: md, slaves: [a, b], md: {degraded: 0}}
- {id: state, kind: md, slaves: [a, b], md: {level: raid1}}
- {id: on-md, kind: lvm, slaves: [md], lvm: {vg: g, lv: v, segtype: linear}}
- {id: lv, kind: lvm, slaves: [leg], lvm: {vg: g, lv: r, segtype: raid1, health: null}}
- {id: sick, kind: lvm, paths: [/dev/g/s], slaves: [leg], lvm: {vg: g, lv: s, segtype: raid1, health: partial}}
- {id: legs, kind: lvm, slaves: [leg], lvm: {vg: g, lv: l}}
- {id: leg, kind: lvm-part, slaves: [a]}
- {id: zvol, kind: zvol}
- {id: loop, kind: loop, loop: {backing_file: /mirror/a.img}}
- {id: no-file, kind: loop, loop: {deleted: true}}
";

    #[test]
    fn raid5_of_btrfs_is_no_redundancy() {
        let facts = Facts::parse(HOST).unwrap().facts;
        let index = HostIndex::new(&facts);
        let found = index.redundancy_on(index.filesystem("f13").unwrap());
        assert_eq!(found.redundancy, Redundancy::Single, "{}", found.reason);
    }

    use Redundancy::{Degraded, Kept, Single, Unknown};

    const STRIPED: &str = "/dev/md2 spreads data over 2 devices without a copy";

    /// Devices, each with its verdict.
    const OF_DEVICES: &[(&str, Redundancy, &str)] = &[
        ("a", Single, "/dev/sda has the only copy"),
        ("b", Single, "/dev/sdb has the only copy"),
        (
            "raid",
            Unknown,
            "the facts do not show the drives behind /dev/sdc",
        ),
        (
            "vda",
            Unknown,
            "the facts do not show the drives behind /dev/vda",
        ),
        (
            "mpath",
            Unknown,
            "the facts do not show the drives of mpath",
        ),
        ("md", Kept, "/dev/md0 is raid10"),
        ("broken", Degraded, "/dev/md1 is degraded"),
        (
            "two-left",
            Kept,
            "/dev/md3 is degraded, and survives another failure",
        ),
        ("one-left", Degraded, "/dev/md4 is degraded"),
        (
            "raid6",
            Kept,
            "/dev/md5 is degraded, and survives another failure",
        ),
        ("raid5", Degraded, "/dev/md6 is degraded"),
        (
            "unasked",
            Single,
            "/dev/md7 spreads data over 2 devices without a copy",
        ),
        ("striped", Single, STRIPED),
        ("level", Unknown, "the level of level is not known"),
        ("state", Unknown, "missing members of state"),
        ("on-md", Kept, "/dev/md0 is raid10"),
        ("lv", Kept, "lv is raid1"),
        ("sick", Degraded, "LVM reports /dev/g/s as partial"),
        ("legs", Unknown, "the facts do not show the drives of leg"),
        ("zvol", Unknown, "the facts do not show the drives of zvol"),
        ("loop", Kept, "btrfs has raid1c3"),
        (
            "no-file",
            Unknown,
            "the facts do not show the drives of no-file",
        ),
    ];

    /// File systems, each with its verdict.
    const OF_FILE_SYSTEMS: &[(&str, Redundancy, &str)] = &[
        ("f1", Kept, "btrfs has raid1c3"),
        ("f2", Single, "/dev/sda has the only copy"),
        (
            "f3",
            Unknown,
            "the facts do not show the drives behind nfs4",
        ),
        ("f4", Single, STRIPED),
        ("f5", Kept, "btrfs has raid1c3"),
        ("f6", Unknown, "the data profile of btrfs is not known"),
        ("f7", Single, "/dev/sda has the only copy"),
        ("f8", Single, "tmpfs is memory"),
        (
            "f9",
            Unknown,
            "the facts do not show how zfs uses its drives",
        ),
        ("f10", Unknown, "the facts do not show the drives"),
        ("f14", Single, "/dev/sda has the only copy"),
        (
            "f15",
            Unknown,
            "the facts do not show how bcachefs uses its drives",
        ),
        ("f11", Single, "/dev/sda has the only copy"),
        (
            "f12",
            Unknown,
            "the facts do not show the drives behind fuse.sshfs",
        ),
    ];

    #[test]
    fn the_weakest_of_what_a_block_can_be_on_decides() {
        let facts = Facts::parse(HOST).unwrap().facts;
        let index = HostIndex::new(&facts);
        for (id, expected, reason) in OF_DEVICES {
            let found = index.redundancy_of(&[index.device(id).unwrap()]);
            assert_eq!(found, verdict(*expected, *reason), "{id}");
        }
        for (id, expected, reason) in OF_FILE_SYSTEMS {
            let found = index.redundancy_on(index.filesystem(id).unwrap());
            assert_eq!(found, verdict(*expected, *reason), "{id}");
        }
        let both = ["md", "a", "b"].map(|id| index.device(id).unwrap());
        let found = index.redundancy_of(&both);
        assert_eq!(
            found,
            verdict(Redundancy::Single, "/dev/sda has the only copy")
        );
    }
}
