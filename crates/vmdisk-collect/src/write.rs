//! Conversion of findings to facts: ids for references, and each filesystem once.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use vmdisk_facts::path::Lock;
use vmdisk_facts::{
    BlockDevice, CollectError, DeviceNumber, Fact, Facts, File, Filesystem, FsKind, Mount, Reason,
};

use crate::devices::Devices;
use crate::drivers;
use crate::filesystems::{self, Under};
use crate::inspection::{Paths, is_device, normalize};
use crate::locks::Locks;
use crate::lvm;
use crate::lvm_config;
use crate::mapper;
use crate::mountinfo::MountLine;
use crate::record::{RealPath, Space};
use crate::request::FactGroup;
use crate::root::Root;
use crate::zfs;

impl Paths<'_> {
    /// Writes all findings into the facts.
    pub(crate) fn write(self, facts: &mut Facts, used: &BTreeSet<usize>, devices: Devices<'_>) {
        let (mut blockdevs, device_ids) = devices.finish();
        let mut errors = Vec::new();
        let limit = self.request.timeout.max(Duration::from_secs(10));
        self.run_device_tools(facts, &mut blockdevs, limit, &mut errors);
        // Every mount that may hold a disk is listed, so that the mount of any other path can be found.
        let listed: Vec<usize> = (0..self.mounts.lines.len())
            .filter(|index| {
                used.contains(index) || filesystems::is_of_interest(&self.mounts.lines[*index])
            })
            .collect();
        let mount_ids: HashMap<usize, String> = listed
            .iter()
            .enumerate()
            .map(|(number, index)| (*index, format!("m{}", number + 1)))
            .collect();
        let mut written = self.written_mounts(&listed, used, &mount_ids, &device_ids);
        self.write_paths(facts, &mount_ids);
        if self.request.groups.contains(&FactGroup::Zfs) {
            let filesystems = &mut written.filesystems;
            zfs::complete(self.root, filesystems, &mut blockdevs, limit, &mut errors);
        }
        facts.mounts = written.mounts;
        facts.filesystems = written.filesystems;
        facts.blockdevs = blockdevs;
        facts.errors = self.errors;
        facts.errors.extend(errors);
    }

    /// Runs the tools of the requested groups that complete devices.
    fn run_device_tools(
        &self,
        facts: &mut Facts,
        blockdevs: &mut [BlockDevice],
        limit: Duration,
        errors: &mut Vec<CollectError>,
    ) {
        let root: &Root = self.root;
        let is_requested = |group: FactGroup| self.request.groups.contains(&group);
        if is_requested(FactGroup::Lvm) {
            facts.lvm_config = lvm_config::ask(root, limit);
            let threshold = &facts.lvm_config.thin_pool_autoextend_threshold;
            lvm::complete(root, blockdevs, threshold, limit, errors);
        }
        if is_requested(FactGroup::Dm) {
            mapper::complete(root, blockdevs, limit, errors);
        }
        if is_requested(FactGroup::Nvme) {
            drivers::complete_nvme(root, blockdevs, limit, errors);
        }
    }

    /// Converts the listed mounts, and the filesystems of those in use.
    fn written_mounts(
        &self,
        listed: &[usize],
        used: &BTreeSet<usize>,
        mount_ids: &HashMap<usize, String>,
        device_ids: &HashMap<String, String>,
    ) -> WrittenMounts {
        let files = self.files.values().filter_map(|(_, place)| place.as_ref());
        let directories = self.directories.values();
        let directories = directories.filter_map(|(_, place)| place.as_ref());
        let mut spaces: HashMap<usize, &Fact<Space>> = HashMap::new();
        for place in files.chain(directories) {
            if let Some(mount) = self
                .mount_of(place)
                .filter(|_| !place.space.is_not_collected())
            {
                spaces.entry(mount).or_insert(&place.space);
            }
        }
        let mut written = WrittenMounts {
            filesystems: Vec::new(),
            mounts: Vec::new(),
            by_device: HashMap::new(),
        };
        for index in listed {
            let line = &self.mounts.lines[*index];
            let mut mount = filesystems::mount(line);
            mount.id = mount_ids[index].clone();
            if used.contains(index) {
                let space = spaces.get(index).copied().unwrap_or(&Fact::NotCollected);
                let id = written.filesystem(line, || self.filesystem(line, space, device_ids));
                mount.fs = Fact::Known(id);
            }
            written.mounts.push(mount);
        }
        written
    }

    /// Converts one filesystem, with the ids of its devices.
    fn filesystem(
        &self,
        line: &MountLine,
        space: &Fact<Space>,
        device_ids: &HashMap<String, String>,
    ) -> Filesystem {
        let mut filesystem = filesystems::filesystem(self.root, &self.registry, line, space);
        if let Fact::Known(overlay) = &mut filesystem.overlay
            && let Fact::Known(upper) = &overlay.upper
            && !self.may_be_directory(upper)
        {
            let why = format!("{upper} is not a directory in this mount namespace");
            overlay.upper = Fact::unknown(Reason::Namespace, why);
        }
        filesystem.devices = match filesystems::under(self.root, &self.registry, line) {
            Under::Devices(names) => {
                let ids = names
                    .iter()
                    .filter_map(|name| device_ids.get(name).cloned());
                Fact::Known(ids.collect())
            }
            Under::Nothing => Fact::Absent,
            Under::Unknown(unknown) => Fact::Unknown(unknown),
        };
        filesystem
    }

    /// Returns false if an inspected path is something else; a relative path is not inspected.
    fn may_be_directory(&self, path: &str) -> bool {
        let path = normalize(path);
        match self.files.get(&path) {
            Some((file, _)) => matches!(file.kind, Fact::Unknown(_)),
            None => self.directories.contains_key(&path),
        }
    }

    /// Writes files and directories, with the ids of their mounts.
    fn write_paths(&self, facts: &mut Facts, mount_ids: &HashMap<usize, String>) {
        let locks = Locks::read(self.root);
        let mount_at =
            |place: &Option<RealPath>| place.as_ref().and_then(|place| self.mount_of(place));
        let kind_at = |place: &Option<RealPath>| {
            mount_at(place).map(|mount| FsKind::from(self.mounts.lines[mount].fstype.as_str()))
        };
        let id_at = |place: &Option<RealPath>| {
            let id = mount_at(place).and_then(|mount| mount_ids.get(&mount).cloned());
            id.map_or(Fact::NotCollected, Fact::Known)
        };
        for (file, place) in self.files.values() {
            let mut file = file.clone();
            if is_device(&file) {
                // A device is not on the filesystem of its node.
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
    }

    fn lock_of(&self, locks: &Locks, file: &File, place: Option<&RealPath>) -> Fact<Lock> {
        let device = place
            .and_then(|place| self.mount_of(place))
            .map(|mount| self.mounts.lines[mount].device);
        match (device, file.inode.value()) {
            (Some(device), Some(inode)) => locks.of(device, inode.number),
            (Some(_) | None, Some(_) | None) => Fact::NotCollected,
        }
    }
}

/// Keeps the two flags only on filesystems that implement them: ext4 accepts them without effect.
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

/// The written mounts and filesystems, each filesystem once.
struct WrittenMounts {
    filesystems: Vec<Filesystem>,
    mounts: Vec<Mount>,
    by_device: HashMap<DeviceNumber, String>,
}

impl WrittenMounts {
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
