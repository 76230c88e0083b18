//! The places of a host where a disk can live, and the forms that a disk has there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use vmdisk_facts::blockdev::{BlockDevice, BlockKind, Lvm};
use vmdisk_facts::path::{Directory, FileKind};
use vmdisk_facts::verdict::attachment::Attachment;
use vmdisk_facts::verdict::file_system::FsAbilities;
use vmdisk_facts::verdict::media::SlowestDrive;
use vmdisk_facts::verdict::redundancy::RedundancyVerdict;
use vmdisk_facts::{Fact, Filesystem, FsKind, HostIndex, Mount};
use vmdisk_model::{Preallocation, Qcow2Preallocation};
use vmdisk_plan::{BackendSpec, DeviceSpec, LvmSpec, LvmThinSpec, Qcow2Spec, RawSpec, ZvolSpec};

use super::intent::{DiskLoad, StorageForm, StorageIntent, Want};

/// Places that are planned; the rest is named with the reason.
const MAX_PLACES: usize = 12;

/// A place, or forms of a place, that are not advised.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExcludedStorage {
    /// The place.
    pub place: String,
    /// The excluded forms; empty if the place itself is excluded.
    pub forms: Vec<StorageForm>,
    /// The deciding fact.
    pub why: String,
}

/// A place where a disk can live.
#[derive(Debug)]
pub(super) struct StoragePlace<'a> {
    pub(super) name: String,
    pub(super) kind: String,
    storage: StorageOfPlace,
    pub(super) filesystem: Option<&'a Filesystem>,
    /// What files there can do.
    pub(super) abilities: Option<&'static FsAbilities>,
    /// Free bytes.
    pub(super) free: Option<u64>,
    /// The most bytes that can be free, where they are not known.
    pub(super) most_free: Option<u64>,
    /// The drives below it, as they are attached.
    pub(super) drives: Vec<&'a BlockDevice>,
    pub(super) redundancy: RedundancyVerdict,
    pub(super) is_removable: Option<bool>,
    /// What of the free bytes should stay free: the file system has other users.
    pub(super) reserve: u64,
    /// True for the directory at which a file system is mounted.
    pub(super) is_mount_point: bool,
    /// True for a directory that QEMU's user may not enter.
    pub(super) is_closed: bool,
    pub(super) is_nvme: bool,
    pub(super) is_fast: Option<bool>,
}

#[derive(Debug)]
enum StorageOfPlace {
    Directory,
    Group,
    ThinPool { group: String, pool: String },
    Dataset,
    WholeDisk,
}

/// A form with its backend.
#[derive(Debug)]
pub(super) struct FormOfPlace {
    pub(super) form: StorageForm,
    pub(super) backend: BackendSpec,
}

/// The places that the intent or the facts name, and the excluded ones.
pub(super) fn of<'a>(
    intent: &StorageIntent,
    host: &HostIndex<'a>,
) -> (Vec<StoragePlace<'a>>, Vec<ExcludedStorage>) {
    let mut search = Search::new(intent, host, true);
    search.directories();
    search.volumes();
    search.datasets();
    search.disks();
    search.unknown_names();
    let Search {
        mut places,
        mut excluded,
        ..
    } = search;
    // The others differ from these in nothing that the facts show but their space.
    places.sort_by(|one, other| one.order(intent).cmp(&other.order(intent)));
    for place in places.split_off(places.len().min(MAX_PLACES)) {
        let why = format!("{MAX_PLACES} safer, faster or larger places are compared");
        excluded.push(excluded_place(place.name, why));
    }
    (places, excluded)
}

/// True for a directory of programs, their data and their settings, of which no disk is a part.
fn is_of_system(path: &str) -> bool {
    const SYSTEM: [&str; 7] = ["bin", "boot", "etc", "lib", "lib64", "sbin", "usr"];
    let mut parts = path.split('/').skip(1);
    parts.next().is_some_and(|first| SYSTEM.contains(&first))
}

/// The places that keep more than one disk, good or bad, and those that cannot be looked at.
pub(super) fn of_host<'a>(
    intent: &StorageIntent,
    host: &HostIndex<'a>,
) -> (Vec<StoragePlace<'a>>, Vec<ExcludedStorage>) {
    let mut search = Search::new(intent, host, false);
    search.directories();
    search.volumes();
    search.datasets();
    let Search {
        mut places,
        excluded,
        ..
    } = search;
    places.sort_by(|one, other| one.name.cmp(&other.name));
    (places, excluded)
}

pub(super) fn excluded_place(place: impl Into<String>, why: impl Into<String>) -> ExcludedStorage {
    ExcludedStorage {
        place: place.into(),
        forms: Vec::new(),
        why: why.into(),
    }
}

struct Search<'i, 'h, 'a> {
    intent: &'i StorageIntent,
    host: &'h HostIndex<'a>,
    /// True if only good places are wanted, and one of those that are alike.
    chooses: bool,
    places: Vec<StoragePlace<'a>>,
    excluded: Vec<ExcludedStorage>,
}

impl<'i, 'h, 'a> Search<'i, 'h, 'a> {
    const fn new(intent: &'i StorageIntent, host: &'h HostIndex<'a>, chooses: bool) -> Self {
        Search {
            intent,
            host,
            chooses,
            places: Vec::new(),
            excluded: Vec::new(),
        }
    }

    fn exclude(&mut self, place: impl Into<String>, why: impl Into<String>) {
        self.excluded.push(excluded_place(place, why));
    }

    /// True for a place that the intent names, or if it names none.
    fn is_asked(&self, name: &str) -> bool {
        let places = &self.intent.places;
        places.is_empty() || places.iter().any(|place| place == name)
    }

    /// The directories that a pool, an image or the intent names, one of those that are alike.
    fn directories(&mut self) {
        let facts = self.host.facts();
        let is_image = |file: &&vmdisk_facts::File| file.kind.is(&FileKind::Regular);
        let parent = |file: &'a vmdisk_facts::File| file.path.rsplit_once('/').map(|(it, _)| it);
        let mut named: Vec<String> = match self.intent.places.is_empty() {
            true => {
                let directories = facts.dirs.iter().map(|directory| directory.path.as_str());
                let parents = facts.files.iter().filter(is_image).filter_map(parent);
                let all = directories.chain(parents);
                // An emulator or a firmware is a file, too.
                all.filter(|path| !is_of_system(path))
                    .map(str::to_owned)
                    .collect()
            }
            false => {
                let is_path = |place: &&String| place.starts_with('/');
                let places = self.intent.places.iter().filter(is_path);
                let is_device = |place: &&String| self.host.block_device(place).is_known();
                places.filter(|place| !is_device(place)).cloned().collect()
            }
        };
        named.retain(|path| !path.is_empty() && !path.starts_with("/dev/"));
        // What a pool or the user names, before what only an image names.
        let is_mount_point = |path: &str| facts.mounts.iter().any(|mount| mount.point == *path);
        named.sort_by_cached_key(|path| {
            let is_unnamed = self.host.directory(path).is_none();
            let is_closed = self.host.own_directory(path).is_some_and(is_closed);
            (is_unnamed, is_closed, is_mount_point(path), path.clone())
        });
        named.dedup();
        let mut seen = BTreeMap::new();
        for path in named {
            if let Err(why) = self.directory(&path, &mut seen) {
                self.exclude(path, why);
            }
        }
    }

    fn directory(
        &mut self,
        path: &str,
        seen: &mut BTreeMap<DirectoryClass<'a>, String>,
    ) -> Result<(), String> {
        let directory = self.host.own_directory(path);
        let file = self.host.file(path);
        let is_missing = directory.is_some_and(|it| it.present.is_false());
        if is_missing || file.is_some_and(|it| it.present.is_false()) {
            return Err("the directory does not exist".to_owned());
        }
        let kind = file.and_then(|it| it.kind.value());
        if kind.is_some_and(|kind| *kind != FileKind::Directory) {
            return Err("it is not a directory".to_owned());
        }
        let Some(filesystem) = self.host.filesystem_of(path).known() else {
            return Err("the facts do not show its file system".to_owned());
        };
        let mount = self.host.mount_of(path).known();
        let class = (
            filesystem.id.as_str(),
            self.host.nocow(path).known(),
            self.host.compressed(path).known(),
        );
        let is_asked = self.intent.places.iter().any(|place| place == path);
        if self.chooses
            && !is_asked
            && let Some(compared) = seen.get(&class)
        {
            // A directory of an image alone was not named.
            return match directory {
                Some(_) => Err(format!("it is as {compared}, which is compared")),
                None => Ok(()),
            };
        }
        seen.insert(class, path.to_owned());
        if self.chooses
            && let Some(why) = self.unsuitable(filesystem, mount)
        {
            return Err(why);
        }
        let kind = &filesystem.kind;
        let devices = self.host.devices_of(filesystem).known().unwrap_or_default();
        let on = devices
            .first()
            .map(|device| format!(" on {}", device.name()));
        let existence = match directory {
            None if self.intent.places.iter().any(|place| place == path) => {
                "; whether the directory exists is not known"
            }
            _ => "",
        };
        let free = filesystem.free_bytes.value().copied();
        // What is written to memory takes it from the guests.
        let memory = self.host.facts().memory.available_bytes.value();
        let free = match memory.filter(|_| kind.is_volatile()) {
            Some(memory) => free.map(|free| free.min(*memory)),
            None => free,
        };
        let is_elsewhere = kind.is_elsewhere() && !matches!(kind, FsKind::Fuse(_));
        let place = StoragePlace {
            kind: format!("{kind}{}{existence}", on.unwrap_or_default()),
            filesystem: Some(filesystem),
            abilities: Some(self.host.abilities_of(filesystem)),
            free,
            redundancy: self.host.redundancy_on(filesystem),
            reserve: match kind.is_volatile() {
                true => 0,
                false => filesystem.total_bytes.value().map_or(0, |total| total / 10),
            },
            is_mount_point: mount.is_some_and(|mount| mount.point == path.trim_end_matches('/')),
            is_closed: directory.is_some_and(is_closed),
            ..self.place(path, StorageOfPlace::Directory, &devices)
        };
        self.places.push(StoragePlace {
            is_removable: match kind.is_volatile() || is_elsewhere {
                true => Some(false),
                false => place.is_removable,
            },
            ..place
        });
        Ok(())
    }

    /// Why no image can be on a file system.
    fn unsuitable(&self, filesystem: &Filesystem, mount: Option<&Mount>) -> Option<String> {
        let kind = &filesystem.kind;
        if matches!(kind, FsKind::Other(_)) && filesystem.total_bytes.is(&0) {
            return Some(format!("files on {kind} have no space"));
        }
        if mount.is_some_and(|mount| mount.read_only().is_true())
            || matches!(kind, FsKind::Squashfs | FsKind::Erofs | FsKind::Iso9660)
        {
            return Some(format!("the {kind} is mounted read-only"));
        }
        if kind.is_volatile() && !self.intent.is_scratch {
            return Some(format!("files on {kind} are gone when the host stops"));
        }
        if *kind == FsKind::Vfat && self.intent.size.0 >= 4 << 30 {
            return Some("a file on vfat has less than 4 GiB".to_owned());
        }
        None
    }

    /// Volume groups, and thin pools.
    fn volumes(&mut self) {
        let mut seen = BTreeSet::new();
        let mut devices: Vec<_> = self.host.facts().blockdevs.iter().collect();
        // The pool itself shows more than a volume in it.
        devices.sort_by_key(|it| (it.kind != BlockKind::LvmThinPool, &it.paths));
        let lvm = devices.iter().filter_map(|it| it.lvm.value());
        let of_ceph: BTreeSet<&String> = lvm.filter_map(group_of_ceph).collect();
        for device in devices {
            let Some(lvm) = device.lvm.value() else {
                continue;
            };
            let (Some(group), Some(volume)) = (lvm.vg.value(), lvm.lv.value()) else {
                continue;
            };
            let pool = match device.kind {
                BlockKind::LvmThinPool => Some(volume),
                BlockKind::LvmThin => lvm.pool.value(),
                BlockKind::Lvm => None,
                _ => continue,
            };
            let name = match pool {
                Some(pool) => format!("{group}/{pool}"),
                None => group.clone(),
            };
            if !self.is_asked(&name) || !seen.insert(name.clone()) {
                continue;
            }
            if let Some(health) = lvm.health.value() {
                self.exclude(name, format!("LVM reports it as {health}"));
                continue;
            }
            if self.chooses && of_ceph.contains(group) {
                self.exclude(name, "Ceph keeps its data in this group");
                continue;
            }
            let found = self.host.volume_group(group);
            let (storage, kind, free) = match pool {
                Some(pool) => {
                    let size = match device.kind {
                        BlockKind::LvmThinPool => device.size.value(),
                        _ => None,
                    };
                    let free = size.zip(lvm.data_percent.value()).map(|(size, used)| {
                        let rest = u128::from(10_000_u32.saturating_sub(used.0));
                        u64::try_from(u128::from(*size) * rest / 10_000).unwrap_or(u64::MAX)
                    });
                    let (group, pool) = (group.clone(), pool.clone());
                    let storage = StorageOfPlace::ThinPool { group, pool };
                    (storage, "thin pool", free)
                }
                None => (StorageOfPlace::Group, "volume group", found.free),
            };
            let most_free = match storage {
                StorageOfPlace::Group => found.left,
                _ => None,
            };
            // A new volume can be on any of the group's drives, a thin one is on those of its pool.
            let below = match &storage {
                StorageOfPlace::Group if !found.drives.is_empty() => found.drives,
                _ => vec![device],
            };
            let place = self.place(&name, storage, &below);
            self.places.push(StoragePlace {
                kind: kind.to_owned(),
                free,
                most_free,
                ..place
            });
        }
    }

    /// Datasets of ZFS, for volumes in them.
    fn datasets(&mut self) {
        let mut seen = BTreeSet::new();
        for filesystem in &self.host.facts().filesystems {
            let dataset = filesystem.zfs.as_ref().and_then(|zfs| zfs.dataset.as_str());
            let Some(dataset) = dataset.known() else {
                continue;
            };
            if !self.is_asked(dataset) || !seen.insert(dataset) {
                continue;
            }
            let sync = filesystem.zfs.as_ref().and_then(|zfs| zfs.sync.as_str());
            if self.chooses && sync.is(&"disabled") && !self.intent.is_scratch {
                self.exclude(
                    dataset,
                    "it drops flushes (sync=disabled), and its volumes have this from it",
                );
                continue;
            }
            let place = self.place(dataset, StorageOfPlace::Dataset, &[]);
            self.places.push(StoragePlace {
                kind: "ZFS dataset".to_owned(),
                free: filesystem.free_bytes.value().copied(),
                redundancy: self.host.redundancy_on(filesystem),
                ..place
            });
        }
    }

    /// Whole disks, arrays, encrypted devices and partitions that nothing uses.
    fn disks(&mut self) {
        // A member of a pool has no holder, and is not mounted.
        let facts = self.host.facts();
        let hides_drives = |it: &Filesystem| {
            it.kind == FsKind::Zfs && it.devices.value().is_none_or(Vec::is_empty)
        };
        let is_of_zfs = facts.filesystems.iter().any(hides_drives)
            || facts.blockdevs.iter().any(|it| it.kind == BlockKind::Zvol);
        for device in &facts.blockdevs {
            let what = match device.kind {
                BlockKind::Disk | BlockKind::Nvme | BlockKind::Multipath => "disk",
                BlockKind::Md => "array",
                BlockKind::CryptLuks1 | BlockKind::CryptLuks2 | BlockKind::Crypt => {
                    "encrypted device"
                }
                BlockKind::Partition => "partition",
                BlockKind::Drbd => "DRBD device",
                _ => continue,
            };
            // The name of a multipath device can change, its UUID does not. That of an encrypted device is in a table.
            let names = device.by_id.value().into_iter().flatten();
            let is_of_table = |path: &&String| match device.kind {
                BlockKind::Drbd => path.starts_with("/dev/drbd"),
                _ => device.kind.is_crypt() && path.starts_with("/dev/mapper/"),
            };
            let names = names.chain(device.paths.iter().filter(is_of_table));
            let stable = names.min_by_key(|name| (name.contains("/dm-name-"), *name));
            let name = stable
                .cloned()
                .unwrap_or_else(|| device.name().into_owned());
            let mut paths = device.paths.iter();
            let is_named = paths.any(|path| self.intent.places.contains(path));
            let is_asked = self.is_asked(&name) || is_named;
            // Each host has partitions and arrays that are in use, and nobody asks for them.
            let is_listed = what == "disk" || is_named || self.in_use(device).is_none();
            if !is_asked || !is_listed {
                continue;
            }
            let looked_at = self.intent.looked_at.get(&name);
            let found = looked_at.cloned().flatten();
            let may_be_of_zfs = is_of_zfs && looked_at.is_none() && !is_named;
            let of_zfs = || "ZFS is in use, and the facts do not show its drives".to_owned();
            let obstacle = self.in_use(device).or_else(|| self.unfit(device));
            match obstacle.or_else(|| may_be_of_zfs.then(of_zfs)).or(found) {
                Some(why) => self.exclude(name, why),
                None if stable.is_none() => {
                    self.exclude(name, "it has no stable name in /dev/disk/by-id")
                }
                None => {
                    let data = match looked_at {
                        Some(_) => ", on which no data was found",
                        None => "; whether it holds data is not known",
                    };
                    let place = self.place(&name, StorageOfPlace::WholeDisk, &[device]);
                    self.places.push(StoragePlace {
                        kind: format!("unused {what}{data}"),
                        free: device.size.value().copied(),
                        ..place
                    });
                }
            }
        }
    }

    /// What uses a disk, or whether that is not known.
    fn in_use(&self, device: &BlockDevice) -> Option<String> {
        let is_empty = |list: &Fact<Vec<String>>| list.value().map(Vec::is_empty);
        let is_held = self
            .host
            .facts()
            .blockdevs
            .iter()
            .any(|above| above.slaves.contains(&device.id));
        let files = device.paths.iter().filter_map(|path| self.host.file(path));
        let is_open = files.into_iter().any(|file| {
            let writer = file.lock.value().map(|lock| lock.writer.is_true());
            writer == Some(true)
        });
        // A member of a file system of several devices.
        let mut mounted = self.host.facts().filesystems.iter();
        let is_of_file_system = mounted.any(|it| {
            let devices = it.devices.value();
            devices.is_some_and(|devices| devices.contains(&device.id))
        });
        Some(match () {
            () if is_empty(&device.partitions) == Some(false) => "it has partitions".to_owned(),
            () if is_empty(&device.holders) == Some(false) || is_held => {
                "another device is on it".to_owned()
            }
            () if is_empty(&device.mounted_at) == Some(false) || is_of_file_system => {
                "it is mounted".to_owned()
            }
            () if device.swap.is_true() => "the host swaps to it".to_owned(),
            () if is_open => "a running QEMU has it open".to_owned(),
            () if device.read_only.is_true() => "the host refuses writes to it".to_owned(),
            () if device.removable.is_true() => "its medium is removable".to_owned(),
            () if device.queue.zoned.is(&"host-managed".to_owned()) => {
                "its zones take sequential writes only".to_owned()
            }
            () if [&device.partitions, &device.holders, &device.mounted_at]
                .iter()
                .any(|it| !it.is_known()) =>
            {
                "the facts do not show whether it is in use".to_owned()
            }
            () => return None,
        })
    }

    /// Why the size of a disk does not fit. What several hosts see may be larger.
    fn unfit(&self, device: &BlockDevice) -> Option<String> {
        let (size, asked) = (*device.size.value()?, self.intent.size.0);
        let has = vmdisk_model::Bytes(size).rounded();
        let is_large = size / 2 > asked && !self.intent.wants.contains(&Want::Migration);
        match self.intent.places.is_empty() {
            _ if self.intent.guests > 1 => Some("it is the disk of one guest".to_owned()),
            _ if size < asked => Some(format!("it has {has}")),
            true if is_large => Some(format!("it has {has}, more than twice as much as asked")),
            _ => None,
        }
    }

    /// Names of the intent that are no place.
    fn unknown_names(&mut self) {
        for name in &self.intent.places {
            let is_named = |other: &String| other == name;
            let is_path = |path: &str| {
                self.host
                    .block_device(name)
                    .known()
                    .is_some_and(|device| device.paths.iter().any(|it| it == path))
            };
            let is_known = self
                .places
                .iter()
                .any(|place| is_named(&place.name) || is_path(&place.name))
                || self
                    .excluded
                    .iter()
                    .any(|it| is_named(&it.place) || is_path(&it.place));
            if !is_known {
                let why = "the facts show no directory, volume group, thin pool, dataset or disk with this name";
                self.excluded.push(excluded_place(name, why));
            }
        }
    }

    /// A place on some devices; any of them can have a block of the disk.
    fn place(
        &self,
        name: &str,
        storage: StorageOfPlace,
        devices: &[&'a BlockDevice],
    ) -> StoragePlace<'a> {
        let leaves = devices.iter().flat_map(|it| self.host.leaves(it));
        let slowest = SlowestDrive::of(&leaves.collect::<Vec<_>>(), String::new).ok();
        let drives = devices.iter().flat_map(|it| self.host.attached_under(it));
        let drives: Vec<_> = drives.collect();
        let mut removable = drives.iter().map(|drive| Attachment::is_removable(drive));
        let is_removable = match () {
            () if drives.is_empty() => None,
            () if removable.clone().any(|it| it == Some(true)) => Some(true),
            () => removable.all(|it| it == Some(false)).then_some(false),
        };
        StoragePlace {
            name: name.to_owned(),
            kind: String::new(),
            storage,
            filesystem: None,
            abilities: None,
            free: None,
            most_free: None,
            redundancy: self.host.redundancy_of(devices),
            is_removable,
            reserve: 0,
            is_mount_point: false,
            is_closed: false,
            is_nvme: !drives.is_empty() && drives.iter().all(|it| it.kind == BlockKind::Nvme),
            is_fast: slowest.and_then(|slowest| slowest.media.is_fast()),
            drives,
        }
    }
}

/// True for a directory that QEMU's user may not enter, whose own directory of images it is not.
fn is_closed(directory: &Directory) -> bool {
    let access = directory.qemu_access.value();
    access.is_some_and(|access| access.search.is_false())
        || directory
            .mode
            .value()
            .is_some_and(|mode| mode.0 & 0o001 == 0)
}

/// The volume group of a volume that `ceph-volume` made.
fn group_of_ceph(lvm: &Lvm) -> Option<&String> {
    let volume = lvm.lv.value()?;
    let of_ceph = ["osd-block-", "osd-db-", "osd-wal-"];
    lvm.vg
        .value()
        .filter(|_| of_ceph.iter().any(|it| volume.starts_with(it)))
}

/// File system, copy-on-write and compression: files in directories that have the same are alike.
type DirectoryClass<'a> = (&'a str, Option<bool>, Option<bool>);

/// Unknown is worse than good, and better than bad.
pub(super) const fn unknown_between(is_good: Option<bool>) -> u64 {
    match is_good {
        Some(true) => 0,
        None => 1,
        Some(false) => 2,
    }
}

impl StoragePlace<'_> {
    /// The order in which places are planned, as far as it is known without a plan.
    fn order(&self, intent: &StorageIntent) -> impl Ord + use<'_> {
        let has_room = self.free.or(self.most_free);
        let has_room = has_room.is_none_or(|free| free >= intent.of_all(intent.size).0);
        let is_waited_for = intent.load != DiskLoad::Backup;
        (
            !has_room,
            (!intent.is_scratch).then_some((
                self.redundancy.redundancy,
                unknown_between(self.is_removable.map(|it| !it)),
            )),
            is_waited_for.then(|| unknown_between(self.is_fast)),
            self.is_mount_point,
            Reverse(self.free),
            self.name.as_str(),
        )
    }

    /// What it is, in a word.
    pub(super) const fn noun(&self) -> &'static str {
        match self.storage {
            StorageOfPlace::Directory => "directory",
            StorageOfPlace::Group => "volume group",
            StorageOfPlace::ThinPool { .. } => "thin pool",
            StorageOfPlace::Dataset => "ZFS dataset",
            StorageOfPlace::WholeDisk => "disk",
        }
    }

    /// The forms that a disk can have there.
    pub(super) fn forms(&self, intent: &StorageIntent) -> Vec<FormOfPlace> {
        let size = Some(intent.size);
        let one = |form, backend: BackendSpec| vec![FormOfPlace { form, backend }];
        let volume = intent.name.clone();
        match &self.storage {
            StorageOfPlace::Directory => self.files(intent),
            StorageOfPlace::Group => {
                let group = self.name.clone();
                one(
                    StorageForm::Volume,
                    LvmSpec {
                        group,
                        volume,
                        size,
                    }
                    .into(),
                )
            }
            StorageOfPlace::ThinPool { group, pool } => one(
                StorageForm::ThinVolume,
                LvmThinSpec {
                    group: group.clone(),
                    volume,
                    size,
                    pool: Some(pool.clone()),
                    ..LvmThinSpec::default()
                }
                .into(),
            ),
            StorageOfPlace::Dataset => {
                let dataset = format!("{}/{volume}", self.name);
                one(StorageForm::ZfsVolume, ZvolSpec { dataset, size }.into())
            }
            StorageOfPlace::WholeDisk => {
                let device = DeviceSpec {
                    path: self.name.clone(),
                    ..DeviceSpec::default()
                };
                one(StorageForm::WholeDisk, device.into())
            }
        }
    }

    fn files(&self, intent: &StorageIntent) -> Vec<FormOfPlace> {
        let size = Some(intent.size);
        let path = |ending: &str| {
            format!(
                "{}/{}.{ending}",
                self.name.trim_end_matches('/'),
                intent.name
            )
        };
        let raw = |form, preallocation, nocow| FormOfPlace {
            form,
            backend: RawSpec {
                path: path("raw"),
                size,
                preallocation: Some(preallocation),
                nocow,
                ..RawSpec::default()
            }
            .into(),
        };
        let qcow2 = |form, preallocation, nocow| FormOfPlace {
            form,
            backend: Qcow2Spec {
                path: path("qcow2"),
                size,
                preallocation: Some(preallocation),
                nocow,
                ..Qcow2Spec::default()
            }
            .into(),
        };
        let mut forms = vec![
            raw(StorageForm::Raw, Preallocation::Off, None),
            raw(StorageForm::RawFalloc, Preallocation::Falloc, None),
            raw(StorageForm::RawFull, Preallocation::Full, None),
            qcow2(StorageForm::Qcow2, Qcow2Preallocation::Off, None),
            qcow2(
                StorageForm::Qcow2Metadata,
                Qcow2Preallocation::Metadata,
                None,
            ),
            qcow2(StorageForm::Qcow2Falloc, Qcow2Preallocation::Falloc, None),
            qcow2(StorageForm::Qcow2Full, Qcow2Preallocation::Full, None),
        ];
        if self
            .filesystem
            .is_some_and(|filesystem| filesystem.kind == FsKind::Btrfs)
        {
            forms.push(raw(StorageForm::RawCopied, Preallocation::Off, Some(false)));
            forms.push(qcow2(
                StorageForm::Qcow2Copied,
                Qcow2Preallocation::Off,
                Some(false),
            ));
        }
        forms
    }
}
