//! From what was found to facts: ids for what refers to each other, each filesystem once.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use vmdisk_facts::path::Lock;
use vmdisk_facts::{DeviceNumber, Fact, Facts, File, Filesystem, FsKind, Mount, Unknown};

use crate::collect::{Paths, is_device};
use crate::devices::Devices;
use crate::drivers;
use crate::filesystems::{self, Under};
use crate::locks::Locks;
use crate::lvm;
use crate::lvm_config;
use crate::mapper;
use crate::mountinfo::MountLine;
use crate::paths::{Place, Space};
use crate::request::Group;
use crate::root::Root;
use crate::zfs;

impl Paths<'_> {
    /// Writes everything that was found into the facts.
    pub(crate) fn write(self, facts: &mut Facts, used: &BTreeSet<usize>, devices: Devices<'_>) {
        let root: &Root = self.root;
        let (mut blockdevs, device_ids) = devices.finish();
        let mut errors = Vec::new();
        let asked = |group: Group| self.request.groups.contains(&group);
        let limit = self.request.patience.max(Duration::from_secs(10));
        if asked(Group::Lvm) {
            facts.lvm_config = lvm_config::ask(root, limit);
            let threshold = &facts.lvm_config.thin_pool_autoextend_threshold;
            lvm::complete(root, &mut blockdevs, threshold, limit, &mut errors);
        }
        if asked(Group::Dm) {
            mapper::complete(root, &mut blockdevs, limit, &mut errors);
        }
        if asked(Group::Nvme) {
            drivers::complete_nvme(root, &mut blockdevs, limit, &mut errors);
        }
        // Every mount that may hold a disk is listed, so that a path nobody asked about is not taken to be on another.
        let listed: Vec<usize> = (0..self.mounts.lines.len())
            .filter(|place| {
                used.contains(place) || filesystems::is_of_interest(&self.mounts.lines[*place])
            })
            .collect();
        let mount_ids: HashMap<usize, String> = listed
            .iter()
            .enumerate()
            .map(|(number, place)| (*place, format!("m{}", number + 1)))
            .collect();
        let mut spaces: HashMap<usize, &Result<Space, Unknown>> = HashMap::new();
        for place in self
            .files
            .values()
            .filter_map(|(_, place)| place.as_ref())
            .chain(
                self.directories
                    .values()
                    .filter_map(|(_, place)| place.as_ref()),
            )
        {
            if let (Some(mount), Some(space)) = (self.mount_of(place), &place.space) {
                spaces.entry(mount).or_insert(space);
            }
        }
        let mut written = Written {
            filesystems: Vec::new(),
            mounts: Vec::new(),
            by_device: HashMap::new(),
        };
        for place in &listed {
            let line = &self.mounts.lines[*place];
            let mut mount = filesystems::mount(line);
            mount.id = mount_ids[place].clone();
            if used.contains(place) {
                let id = written.filesystem(line, || {
                    let mut filesystem = filesystems::filesystem(
                        root,
                        &self.registry,
                        line,
                        spaces.get(place).copied(),
                    );
                    filesystem.devices = match filesystems::under(root, &self.registry, line) {
                        Under::Devices(names) => Fact::Known(
                            names
                                .iter()
                                .filter_map(|name| device_ids.get(name).cloned())
                                .collect(),
                        ),
                        Under::Nothing => Fact::Absent,
                        Under::Unknown(unknown) => Fact::Unknown(unknown),
                    };
                    filesystem
                });
                mount.fs = Fact::Known(id);
            }
            written.mounts.push(mount);
        }
        let locks = Locks::read(root);
        let kind_at = |place: &Option<Place>| {
            let line = place
                .as_ref()
                .and_then(|place| self.mount_of(place))
                .map(|place| &self.mounts.lines[place]);
            line.map(|line| FsKind::from(line.fstype.as_str()))
        };
        let id_at =
            |place: &Option<Place>| match place.as_ref().and_then(|place| self.mount_of(place)) {
                Some(mount) => mount_ids
                    .get(&mount)
                    .cloned()
                    .map_or(Fact::NotCollected, Fact::Known),
                None => Fact::NotCollected,
            };
        for (file, place) in self.files.values() {
            let mut file = file.clone();
            if is_device(&file) {
                // A device is on itself, not on the filesystem its node is in.
                file.mount = Fact::Absent;
            } else {
                file.mount = id_at(place);
                file.lock = self.lock_of(&locks, &file, place.as_ref());
                (file.nocow, file.compressed) =
                    meaningful(kind_at(place).as_ref(), file.nocow, file.compressed);
            }
            facts.files.push(file);
        }
        for (directory, place) in self.directories.values() {
            let mut directory = directory.clone();
            directory.mount = id_at(place);
            (directory.nocow, directory.compressed) = meaningful(
                kind_at(place).as_ref(),
                directory.nocow,
                directory.compressed,
            );
            facts.dirs.push(directory);
        }
        if asked(Group::Zfs) {
            let filesystems = &mut written.filesystems;
            zfs::complete(root, filesystems, &mut blockdevs, limit, &mut errors);
        }
        facts.mounts = written.mounts;
        facts.filesystems = written.filesystems;
        facts.blockdevs = blockdevs;
        facts.errors = self.errors;
        facts.errors.extend(errors);
    }

    fn lock_of(&self, locks: &Locks, file: &File, place: Option<&Place>) -> Fact<Lock> {
        let device = place
            .and_then(|place| self.mount_of(place))
            .map(|mount| self.mounts.lines[mount].device);
        match (device, file.inode.value()) {
            (Some(device), Some(inode)) => locks.of(device, inode.number),
            (Some(_) | None, Some(_) | None) => Fact::NotCollected,
        }
    }
}

/// Keeps the two flags only where they mean something: ext4 takes them and does nothing.
fn meaningful(
    kind: Option<&FsKind>,
    nocow: Fact<bool>,
    compressed: Fact<bool>,
) -> (Fact<bool>, Fact<bool>) {
    let gone = |fact: Fact<bool>| {
        if fact.is_not_collected() {
            fact
        } else {
            Fact::Absent
        }
    };
    match kind {
        Some(FsKind::Btrfs | FsKind::Bcachefs) | None => (nocow, compressed),
        Some(FsKind::F2fs) => (gone(nocow), compressed),
        Some(_) => (gone(nocow), gone(compressed)),
    }
}

/// Mounts and filesystems as they are written, each filesystem once.
struct Written {
    filesystems: Vec<Filesystem>,
    mounts: Vec<Mount>,
    by_device: HashMap<DeviceNumber, String>,
}

impl Written {
    fn filesystem(&mut self, line: &MountLine, read: impl FnOnce() -> Filesystem) -> String {
        if let Some(id) = self.by_device.get(&line.device) {
            return id.clone();
        }
        let id = format!("f{}", self.filesystems.len() + 1);
        let mut filesystem = read();
        filesystem.id.clone_from(&id);
        self.filesystems.push(filesystem);
        self.by_device.insert(line.device, id.clone());
        id
    }
}
