//! Questions about paths and devices, answered over the facts without searching them each time.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::blockdev::{BlockDevice, BlockKind, DeviceNumber};
use crate::direct_io::{self, DirectIo, DirectIoInputs};
use crate::fact::{Fact, Reason};
use crate::facts::Facts;
use crate::filesystem::{Filesystem, FsKind};
use crate::measured::{MeasuredEffect, MeasuredStorage};
use crate::memo::Memo;
use crate::mount::Mount;
use crate::path::{Dio, Directory, File, FileKind, Inode};
use crate::path_text::{ancestors, tidy, without_slash};

/// Maximum number of levels of devices that are followed. No host has as many, and each disk of a guest asks again.
pub const MAX_LEVELS: usize = 64;

/// The facts, with everything a rule looks up prepared: built once for a run, then every question is cheap.
#[derive(Debug)]
pub struct HostIndex<'a> {
    facts: &'a Facts,
    files: HashMap<&'a str, &'a File>,
    directories: HashMap<&'a str, &'a Directory>,
    /// The indexes of mounts, by id.
    mounts: HashMap<&'a str, usize>,
    /// The same by mount point; of several on one point, the topmost.
    points: HashMap<&'a str, usize>,
    filesystems: HashMap<&'a str, &'a Filesystem>,
    devices: HashMap<&'a str, &'a BlockDevice>,
    devices_by_path: HashMap<&'a str, &'a BlockDevice>,
    devices_by_number: HashMap<DeviceNumber, &'a BlockDevice>,
    /// Loop devices, by the file that they use.
    loops: HashMap<&'a str, Vec<&'a BlockDevice>>,
    /// The mount point of the filesystem that a device is part of: mountinfo names one of several devices.
    member_points: HashMap<&'a str, &'a str>,
    /// Answers of [`HostIndex::mount_of`], as indexes: with references, the memo would make the type
    /// invariant in `'a`.
    mounts_of: Memo<Fact<usize>>,
    /// Answers of [`HostIndex::direct_io`].
    direct_ios: Memo<Fact<DirectIo>>,
}

/// Which file or device a path leads to: two paths with equal identities share their data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// A block device.
    Device(DeviceNumber),
    /// A file on this host.
    Inode(Inode),
    /// A path with every symbolic link followed, where nothing better is known.
    RealPath(String),
}

impl<'a> HostIndex<'a> {
    /// Prepares the facts. Of two entries with one id or path, the first is found.
    pub fn new(facts: &'a Facts) -> Self {
        let mut index = Self {
            facts,
            files: HashMap::with_capacity(facts.files.len()),
            directories: HashMap::with_capacity(facts.dirs.len()),
            mounts: HashMap::with_capacity(facts.mounts.len()),
            points: HashMap::with_capacity(facts.mounts.len()),
            filesystems: HashMap::with_capacity(facts.filesystems.len()),
            devices: HashMap::with_capacity(facts.blockdevs.len()),
            devices_by_path: HashMap::new(),
            devices_by_number: HashMap::with_capacity(facts.blockdevs.len()),
            loops: HashMap::new(),
            member_points: HashMap::new(),
            mounts_of: Memo::default(),
            direct_ios: Memo::default(),
        };
        for file in &facts.files {
            index.files.entry(without_slash(&file.path)).or_insert(file);
        }
        for directory in &facts.dirs {
            index
                .directories
                .entry(without_slash(&directory.path))
                .or_insert(directory);
        }
        // A file is also found by its real name; requested names take precedence.
        for file in &facts.files {
            if let Fact::Known(real) = &file.real_path {
                index.files.entry(without_slash(real)).or_insert(file);
            }
        }
        for directory in &facts.dirs {
            if let Fact::Known(real) = &directory.real_path {
                index
                    .directories
                    .entry(without_slash(real))
                    .or_insert(directory);
            }
        }
        for (nth, mount) in facts.mounts.iter().enumerate() {
            index.mounts.entry(&mount.id).or_insert(nth);
            // In mountinfo a later line covers an earlier one on the same point.
            index.points.insert(without_slash(&mount.point), nth);
        }
        for filesystem in &facts.filesystems {
            index
                .filesystems
                .entry(&filesystem.id)
                .or_insert(filesystem);
        }
        for device in &facts.blockdevs {
            index.devices.entry(&device.id).or_insert(device);
            if let Fact::Known(number) = device.dev {
                index.devices_by_number.entry(number).or_insert(device);
            }
            for path in &device.paths {
                index.devices_by_path.entry(path).or_insert(device);
            }
            if let Fact::Known(file) = &device.loop_file
                && let Fact::Known(path) = &file.backing_file
            {
                index.loops.entry(path).or_default().push(device);
            }
        }
        for mount in &facts.mounts {
            let filesystem = mount.fs.value().and_then(|id| index.filesystem(id));
            let members = filesystem.and_then(|filesystem| filesystem.devices.value());
            for member in members.into_iter().flatten() {
                index.member_points.entry(member).or_insert(&mount.point);
            }
        }
        index
    }

    /// The facts themselves, for what belongs to no path.
    pub const fn facts(&self) -> &'a Facts {
        self.facts
    }

    /// Facts of a path itself, which may be missing on the host; `None` when it was not collected.
    pub fn file(&self, path: &str) -> Option<&'a File> {
        self.files.get(&*tidy(path)).copied()
    }

    /// The nearest collected directory above a path, which is on the same filesystem.
    ///
    /// `None` when none was collected, or when a mount lies between, so that the directory says nothing. Its flags
    /// say nothing about the directories in it, which [`HostIndex::nocow`] heeds.
    pub fn directory(&self, path: &str) -> Option<&'a Directory> {
        let path = tidy(path);
        for ancestor in ancestors(&path) {
            if let Some(directory) = self
                .directories
                .get(ancestor)
                .filter(|directory| !directory.present.is_false())
            {
                return Some(directory);
            }
            // Above a mount point is another filesystem.
            if self.points.contains_key(ancestor) {
                return None;
            }
        }
        None
    }

    /// The collected directories above a path, the nearest first.
    pub fn directories_above(&self, path: &str) -> impl Iterator<Item = &'a Directory> {
        let real = self.real_path(&tidy(path)).into_owned();
        let above: Vec<&Directory> = ancestors(&real)
            .filter_map(|ancestor| self.directories.get(ancestor).copied())
            .collect();
        above.into_iter()
    }

    /// The directory whose flags a new file at this path inherits: its own, or the one in which the missing
    /// directories would be created. `None` where the facts do not say which that is.
    fn parent(&self, path: &str) -> Option<&'a Directory> {
        let path = tidy(path);
        for (height, ancestor) in ancestors(&path).enumerate() {
            let directory = self.directories.get(ancestor);
            if let Some(directory) = directory.filter(|it| !it.present.is_false()) {
                return Some(directory);
            }
            let is_missing =
                directory.is_some() || self.files.get(ancestor).is_some_and(|it| it.is_missing());
            if height > 0 && !is_missing {
                return None;
            }
        }
        None
    }

    /// A flag of each directory. A parent directory only shows that its filesystem supports it.
    fn inherited(&self, path: &str, flag: fn(&Directory) -> &Fact<bool>) -> Fact<bool> {
        match (self.parent(path), self.directory(path).map(flag)) {
            (Some(parent), _) => flag(parent).clone(),
            (None, Some(Fact::Absent)) => Fact::Absent,
            (None, Some(_) | None) => Fact::NotCollected,
        }
    }

    /// A mount by its id.
    pub fn mount(&self, id: &str) -> Option<&'a Mount> {
        self.mounts.get(id).map(|nth| &self.facts.mounts[*nth])
    }

    /// A filesystem by its id.
    pub fn filesystem(&self, id: &str) -> Option<&'a Filesystem> {
        self.filesystems.get(id).copied()
    }

    /// A block device by its id.
    pub fn device(&self, id: &str) -> Option<&'a BlockDevice> {
        self.devices.get(id).copied()
    }

    /// The facts about a path as a directory, whether it is there or not; not about one above it.
    pub fn own_directory(&self, path: &str) -> Option<&'a Directory> {
        self.directories.get(&*tidy(path)).copied()
    }

    /// The mount a path is on: the one the file or its directory names, else the nearest mount point above it.
    pub fn mount_of(&self, path: &str) -> Fact<&'a Mount> {
        let nth = self.mounts_of.get(path, || self.find_mount(path));
        nth.map(|nth| &self.facts.mounts[nth])
    }

    /// The index of the mount a path is on.
    fn find_mount(&self, path: &str) -> Fact<usize> {
        let path = tidy(path);
        let named = match self.files.get(&*path).filter(|file| !file.is_missing()) {
            Some(file) => file.mount.as_str(),
            None => Fact::NotCollected,
        };
        let named = match named {
            Fact::NotCollected => self
                .directory(&path)
                .map_or(Fact::NotCollected, |directory| directory.mount.as_str()),
            settled @ (Fact::Known(_) | Fact::Absent | Fact::Unknown(_)) => settled,
        };
        match named {
            Fact::Known(id) => match self.mounts.get(id) {
                Some(nth) => Fact::Known(*nth),
                None => Fact::unknown(
                    Reason::Parse,
                    format!("the facts name a mount '{id}' and do not describe it"),
                ),
            },
            Fact::Absent | Fact::NotCollected => {
                let real = self.real_path(&path);
                match ancestors(&real).find_map(|ancestor| self.points.get(ancestor)) {
                    Some(nth) => Fact::Known(*nth),
                    None => Fact::NotCollected,
                }
            }
            Fact::Unknown(unknown) => Fact::Unknown(unknown),
        }
    }

    /// The filesystem a path is on.
    pub fn filesystem_of(&self, path: &str) -> Fact<&'a Filesystem> {
        self.mount_of(path)
            .and_then(|mount| self.filesystem_on(mount))
    }

    fn filesystem_on(&self, mount: &Mount) -> Fact<&'a Filesystem> {
        mount
            .fs
            .as_str()
            .and_then(|id| match self.filesystems.get(id) {
                Some(filesystem) => Fact::Known(*filesystem),
                None => Fact::unknown(
                    Reason::Parse,
                    format!("the facts name a filesystem '{id}' and do not describe it"),
                ),
            })
    }

    /// The loop devices that use the file with this path.
    pub fn loop_devices_over(&self, path: &str) -> &[&'a BlockDevice] {
        let real = self.real_path(&tidy(path)).into_owned();
        self.loops.get(real.as_str()).map_or(&[], Vec::as_slice)
    }

    /// A mount point of the filesystem that the device with this id is part of.
    pub fn mount_point_over(&self, device: &str) -> Option<&'a str> {
        self.member_points.get(device).copied()
    }

    /// The block device at a path, under any of its names or as `253:5`; absent when the path is something else.
    pub fn block_device(&self, path: &str) -> Fact<&'a BlockDevice> {
        let path = tidy(path);
        if let Some(device) = self.devices_by_path.get(&*path) {
            return Fact::Known(device);
        }
        if let Some(device) =
            DeviceNumber::parse(&path).and_then(|number| self.devices_by_number.get(&number))
        {
            return Fact::Known(device);
        }
        match self.files.get(&*path) {
            Some(file) if file.is_missing() => Fact::Absent,
            Some(file) => match (&file.device, file.real_path.value()) {
                (Fact::Known(number), _) if self.devices_by_number.contains_key(number) => {
                    Fact::Known(self.devices_by_number[number])
                }
                (_, Some(real)) if self.devices_by_path.contains_key(real.as_str()) => {
                    Fact::Known(self.devices_by_path[real.as_str()])
                }
                (Fact::Absent, _) => Fact::Absent,
                (Fact::Unknown(unknown), _) => Fact::Unknown(unknown.clone()),
                (Fact::Known(_) | Fact::NotCollected, _) => match &file.kind {
                    Fact::Known(FileKind::Block) => Fact::NotCollected,
                    Fact::Known(_) | Fact::Absent => Fact::Absent,
                    Fact::Unknown(unknown) => Fact::Unknown(unknown.clone()),
                    Fact::NotCollected => Fact::NotCollected,
                },
            },
            None => Fact::NotCollected,
        }
    }

    /// The device and everything below it, nearest first, each once: a cycle in the facts ends the walk, and no more
    /// than 64 levels are followed.
    ///
    /// Below are the devices it is made of, the disk a partition is on, and the devices under a loop device's file.
    pub fn walk_down(&self, device: &'a BlockDevice) -> Vec<&'a BlockDevice> {
        self.walk_down_unseen(device, &mut HashSet::new())
    }

    /// [`HostIndex::walk_down`] without the devices that `seen` contains, and without those below them; adds the others
    /// to `seen`.
    pub fn walk_down_unseen(
        &self,
        device: &'a BlockDevice,
        seen: &mut HashSet<&'a str>,
    ) -> Vec<&'a BlockDevice> {
        let mut found = Vec::from_iter(seen.insert(&device.id).then_some(device));
        let (mut next, mut levels, mut end_of_level) = (0, 0, found.len());
        while let Some(device) = found.get(next).copied() {
            if next == end_of_level {
                levels += 1;
                end_of_level = found.len();
            }
            if levels == MAX_LEVELS {
                break;
            }
            let below = self.below(device).into_iter();
            found.extend(below.filter(|below| seen.insert(&below.id)));
            next += 1;
        }
        found
    }

    /// The devices at the bottom, which have no other devices below them.
    pub fn leaves(&self, device: &'a BlockDevice) -> Vec<&'a BlockDevice> {
        self.walk_down(device)
            .into_iter()
            .filter(|device| self.below(device).is_empty())
            .collect()
    }

    /// The devices directly below: those it is made of, the disk a partition is on, and the devices under a loop
    /// device's file.
    pub fn below(&self, device: &'a BlockDevice) -> Vec<&'a BlockDevice> {
        if let Fact::Known(file) = &device.loop_file
            && let Fact::Known(path) = &file.backing_file
        {
            let filesystem = self.filesystem_of(path);
            let devices = filesystem.and_then(|it| self.devices_of(it));
            return devices.known().unwrap_or_default();
        }
        let ids = ids_below(device).into_iter();
        ids.filter_map(|id| self.device(id)).collect()
    }

    /// The filesystem that stores the writes to a filesystem: for an overlay, the filesystem of its upper directory.
    pub(crate) fn written_filesystem(&self, filesystem: &'a Filesystem) -> Fact<&'a Filesystem> {
        let mut written = filesystem;
        // An overlay on an overlay is possible, a chain of facts without end is not.
        for _ in 0..4 {
            if written.kind != FsKind::Overlay {
                return Fact::Known(written);
            }
            let overlay = written.overlay.as_ref();
            let upper = overlay.and_then(|overlay| overlay.upper.as_str());
            match upper.and_then(|upper| self.filesystem_of(upper)) {
                Fact::Known(upper) => written = upper,
                missing => return missing,
            }
        }
        Fact::NotCollected
    }

    /// The devices of a filesystem: for an overlay, the devices under its upper directory.
    pub fn devices_of(&self, filesystem: &'a Filesystem) -> Fact<Vec<&'a BlockDevice>> {
        let written = self.written_filesystem(filesystem);
        written.and_then(|it| it.devices.as_ref().map(|_| self.own_devices(it)))
    }

    pub(crate) fn own_devices(&self, filesystem: &'a Filesystem) -> Vec<&'a BlockDevice> {
        let devices = filesystem.devices.value().into_iter().flatten();
        let is_here = match &filesystem.kind {
            // NTFS-3G and others are programs on a device.
            FsKind::Fuse(_) => true,
            // Memory and the other side of a network have no devices of this host.
            kind => !kind.is_volatile() && !kind.is_elsewhere(),
        };
        devices
            .filter(|_| is_here)
            .filter_map(|id| self.device(id))
            .collect()
    }

    /// The devices at the bottom under a path: of the device it is, or of the filesystem it is on.
    pub fn leaves_of(&self, path: &str) -> Fact<Vec<&'a BlockDevice>> {
        self.devices_under(path).map(|devices| {
            let mut seen = HashSet::new();
            let leaves = devices.into_iter().flat_map(|it| self.leaves(it));
            leaves.filter(|leaf| seen.insert(&leaf.id)).collect()
        })
    }

    /// The uppermost loop device under a path, if there is one. Its name leads to another file tomorrow, and its figures
    /// are not those of the drives below.
    pub fn loop_device_under(&self, path: &str) -> Option<&'a BlockDevice> {
        let mut all = self.all_under(path).into_iter();
        all.find(|device| device.kind == BlockKind::Loop)
    }

    /// All known devices under a path, the uppermost of each first.
    pub fn all_under(&self, path: &str) -> Vec<&'a BlockDevice> {
        let devices = self.devices_under(path).known().unwrap_or_default();
        let all = devices.into_iter().flat_map(|it| self.walk_down(it));
        all.collect()
    }

    /// The device that a path is, or those of the filesystem it is on.
    fn devices_under(&self, path: &str) -> Fact<Vec<&'a BlockDevice>> {
        match self.block_device(path) {
            Fact::Known(device) => Fact::Known(vec![device]),
            Fact::Absent | Fact::NotCollected => {
                let filesystem = self.filesystem_of(path);
                filesystem.and_then(|it| self.devices_of(it))
            }
            Fact::Unknown(unknown) => Fact::Unknown(unknown),
        }
    }

    /// The storage of a path, by which what was measured there is found again: everything else of it is not collected.
    /// `None` where the facts do not describe the path, and on a loop device ([`HostIndex::loop_device_under`]).
    pub fn storage_of(&self, path: &str) -> Option<MeasuredStorage> {
        if self.loop_device_under(path).is_some() {
            return None;
        }
        let mut storage = MeasuredStorage {
            fstype: Fact::Absent,
            ..MeasuredStorage::default()
        };
        if !self.block_device(path).is_known() {
            let filesystem = self.filesystem_of(path).known()?;
            storage.fstype = Fact::Known(filesystem.kind.clone());
            if filesystem.kind == FsKind::Btrfs {
                storage.nocow = self.nocow(path);
            }
        }
        let drives = self.leaves_of(path).known().unwrap_or_default();
        let name = |drive: &BlockDevice| {
            let by_id = drive.by_id.value().and_then(|names| names.first());
            by_id.or(drive.paths.first()).cloned()
        };
        storage.devices = drives.into_iter().filter_map(name).collect();
        if storage.devices.is_empty() {
            storage
                .devices
                .push(self.mount_of(path).known()?.point.clone());
        }
        Some(storage)
    }

    /// The measurements on the storage of a path, in the order of the facts.
    pub fn measured_on(&self, path: &str) -> Vec<&'a MeasuredStorage> {
        let measured = &self.facts.measured;
        let here = match measured.is_empty() {
            true => None,
            false => self.storage_of(path),
        };
        let is_here = |it: &&MeasuredStorage| {
            here.as_ref().is_some_and(|here| {
                (&here.fstype, &here.nocow, &here.devices) == (&it.fstype, &it.nocow, &it.devices)
            })
        };
        measured.iter().filter(is_here).collect()
    }

    /// The measurements on the storage of a path with settings like these: the newest figures of each engine.
    pub fn measured_like(
        &self,
        path: &str,
        format: Option<&str>,
        cache: Option<&str>,
        io: Option<&str>,
    ) -> Vec<&'a MeasuredStorage> {
        let mut newest: Vec<&MeasuredStorage> = Vec::new();
        let is_like =
            |it: &&MeasuredStorage| !it.figures.is_empty() && it.is_like(format, cache, io);
        for it in self.measured_on(path).into_iter().filter(is_like) {
            match newest.iter_mut().find(|other| other.engine == it.engine) {
                Some(other) if other.measured_at.value() > it.measured_at.value() => {}
                Some(other) => *other = it,
                None => newest.push(it),
            }
        }
        newest
    }

    /// The measured effects of the fix of a rule on the storage of a path.
    pub fn effects_on(
        &self,
        path: &str,
        rule: &str,
    ) -> Vec<(&'a MeasuredStorage, &'a MeasuredEffect)> {
        let storage = self.measured_on(path).into_iter();
        let effects = storage.flat_map(|it| it.effects.iter().map(move |effect| (it, effect)));
        effects.filter(|(_, effect)| effect.rule == rule).collect()
    }

    /// Whether copy-on-write is off at a path: for the file, or for its directory when the file does not exist yet.
    pub fn nocow(&self, path: &str) -> Fact<bool> {
        match self.file(path).filter(|file| !file.is_missing()) {
            // A file whose own flag was never looked at says nothing; the directory only speaks for new files.
            Some(file) => file.nocow.clone(),
            None => self.inherited(path, |directory| &directory.nocow),
        }
    }

    /// Whether the compression flag is on at a path: for the file, or for its directory when it does not exist yet.
    pub fn compressed(&self, path: &str) -> Fact<bool> {
        match self.file(path).filter(|file| !file.is_missing()) {
            Some(file) => file.compressed.clone(),
            None => self.inherited(path, |directory| &directory.compressed),
        }
    }

    /// What O_DIRECT does at a path: on the file, or on a new one in its directory when it does not exist yet.
    pub fn direct_io(&self, path: &str) -> Fact<DirectIo> {
        self.direct_ios.get(path, || self.direct_io_within(path, 0))
    }

    fn direct_io_within(&self, path: &str, depth: usize) -> Fact<DirectIo> {
        let file = self.file(path).filter(|file| !file.is_missing());
        let directory = self.directory(path);
        let nothing = Dio::default();
        let own = file.map(|file| &file.dio);
        let around = directory.map(|directory| &directory.dio);
        match self.block_device(path) {
            Fact::Known(_) => return direct_io::on_block_device(own.unwrap_or(&nothing)),
            Fact::Unknown(unknown) => return Fact::Unknown(unknown),
            Fact::NotCollected if file.is_some_and(|file| file.kind.is(&FileKind::Block)) => {
                // A device of which only the node is known; the directory of the node does not matter.
                return direct_io::on_block_device(own.unwrap_or(&nothing));
            }
            Fact::Absent | Fact::NotCollected => {}
        }
        // A trial was made in the directory and speaks for a file only if both share the NOCOW flag.
        let nocow = self.nocow(path);
        let alike = file.is_none() || directory.is_some_and(|directory| directory.nocow == nocow);
        let is_parent = self.parent(path).is_some();
        let below = self.mount_of(path).and_then(|mount| {
            let filesystem = self.filesystem_on(mount);
            filesystem.map(|filesystem| (mount, filesystem))
        });
        below.and_then(|(mount, filesystem)| {
            let dio = match (own, around) {
                (Some(own), Some(around)) => Cow::Owned(merged(own, around, alike)),
                (Some(own), None) => Cow::Borrowed(own),
                // On btrfs a flag decides that each directory has for itself; all of them can be opened or none.
                (None, Some(around)) if !is_parent && filesystem.kind == FsKind::Btrfs => {
                    Cow::Owned(Dio {
                        open: around.open.clone(),
                        ..Dio::default()
                    })
                }
                (None, Some(around)) => Cow::Borrowed(around),
                (None, None) => Cow::Borrowed(&nothing),
            };
            let concluded = direct_io::on_filesystem(DirectIoInputs {
                dio: &dio,
                mount: Some(mount),
                filesystem,
                nocow: &nocow,
                exists: file.is_some(),
                kernel: &self.facts.kernel,
            });
            // An overlay on an overlay is possible, a chain of facts without end is not.
            match (&concluded, &filesystem.kind, upper(filesystem)) {
                (Fact::Unknown(_), FsKind::Overlay, Some(upper)) if depth < 4 => {
                    match self.direct_io_within(upper, depth + 1) {
                        Fact::Known(mut below) => {
                            below.because =
                                format!("the overlay's upper directory decides: {}", below.because);
                            Fact::Known(below)
                        }
                        Fact::Unknown(unknown) => Fact::Unknown(unknown),
                        Fact::Absent | Fact::NotCollected => concluded,
                    }
                }
                _ => concluded,
            }
        })
    }

    /// Which file or device a path leads to, to notice one disk under two names.
    pub fn identity(&self, path: &str) -> Fact<Identity> {
        if let Fact::Known(device) = self.block_device(path) {
            // A loop device over a whole file is that file.
            if let Fact::Known(file) = &device.loop_file
                && let Fact::Known(backing) = &file.backing_file
                && file.deleted.is_false()
                && file.offset.value().is_none_or(|offset| *offset == 0)
            {
                let named = self.identity_of_file(backing).known();
                return Fact::Known(named.unwrap_or_else(|| Identity::RealPath(backing.clone())));
            }
            if let Fact::Known(number) = device.dev {
                return Fact::Known(Identity::Device(number));
            }
        }
        self.identity_of_file(path)
    }

    fn identity_of_file(&self, path: &str) -> Fact<Identity> {
        match self.file(path) {
            Some(file) if file.is_missing() => Fact::Absent,
            Some(File {
                device: Fact::Known(number),
                ..
            }) => Fact::Known(Identity::Device(*number)),
            Some(File {
                inode: Fact::Known(inode),
                ..
            }) => {
                let upper = self.in_upper_directory(path, *inode);
                Fact::Known(Identity::Inode(upper.unwrap_or(*inode)))
            }
            Some(File {
                real_path: Fact::Known(real),
                ..
            }) => Fact::Known(Identity::RealPath(real.clone())),
            Some(File {
                inode: Fact::Unknown(unknown),
                ..
            }) => Fact::Unknown(unknown.clone()),
            Some(_) | None => Fact::NotCollected,
        }
    }

    /// The inode in the upper directory that a file of an overlay is, if that file is among the facts: an overlay shows it
    /// with its number.
    fn in_upper_directory(&self, path: &str, inode: Inode) -> Option<Inode> {
        let real = self.real_path(path);
        let mount = self.mount_of(&real).known()?;
        let upper = upper(self.filesystem_on(mount).known()?)?;
        let rest = real.strip_prefix(without_slash(&mount.point))?;
        let file = self.file(&format!("{}{rest}", without_slash(upper)))?;
        let shown = file.inode.value().filter(|it| it.number == inode.number);
        shown.copied()
    }

    /// The path with the symbolic links of its nearest collected directory followed.
    fn real_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        if let Some(File {
            real_path: Fact::Known(real),
            ..
        }) = self.files.get(path)
        {
            return real.clone().into();
        }
        for ancestor in ancestors(path) {
            if let Some(Directory {
                real_path: Fact::Known(real),
                ..
            }) = self.directories.get(ancestor)
            {
                return format!("{}{}", without_slash(real), &path[ancestor.len()..]).into();
            }
        }
        path.into()
    }
}

/// The ids of the devices below a device, also of devices that are not among the facts.
pub(crate) fn ids_below(device: &BlockDevice) -> Vec<&str> {
    let mut ids: Vec<&str> = device.slaves.iter().map(String::as_str).collect();
    if let Fact::Known(partition) = &device.partition
        && let Fact::Known(parent) = &partition.parent
        && !ids.contains(&parent.as_str())
    {
        ids.push(parent);
    }
    ids
}

fn upper(filesystem: &Filesystem) -> Option<&str> {
    match &filesystem.overlay {
        Fact::Known(overlay) => overlay.upper.as_str().known(),
        Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => None,
    }
}

/// Observations of the file itself, and of its directory where the file was not observed.
fn merged(own: &Dio, around: &Dio, alike: bool) -> Dio {
    let Dio {
        dioalign,
        mem,
        off,
        open,
        nowait_overwrite,
        w512,
        verdict,
    } = own;
    let trial = |own: &Fact<crate::path::TrialOutcome>,
                 around: &Fact<crate::path::TrialOutcome>| {
        if alike {
            own.clone().or(around.clone())
        } else {
            own.clone()
        }
    };
    Dio {
        // Alignment can differ from file to file, so that only the file's own counts.
        dioalign: dioalign.clone(),
        mem: mem.clone(),
        off: off.clone(),
        open: trial(open, &around.open),
        nowait_overwrite: trial(nowait_overwrite, &around.nowait_overwrite),
        w512: trial(w512, &around.w512),
        verdict: verdict.clone().or(around.verdict.clone()),
    }
}
