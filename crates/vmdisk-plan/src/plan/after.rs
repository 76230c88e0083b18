//! The facts of a host after the steps of a plan: what is planned is checked as if it existed.

use std::collections::{HashMap, HashSet};

use vmdisk_facts::drivers::Zvol;
use vmdisk_facts::path::{BackingFact, Mode};
use vmdisk_facts::{BlockDevice, BlockKind, Fact, Facts, File, FileKind, HostIndex, ImageHeader};
use vmdisk_model::{Creation, Format, Image, LogicalVolumeName, Preallocation, Qcow2Preallocation};

use super::choice::Plan;
use super::host::kindred;
use crate::steps::{Condition, Named, StepKind};

/// The facts of a host after the steps of a plan, as far as the rules about a guest need them.
pub fn facts_after(facts: &Facts, plan: &Plan) -> Facts {
    facts_after_on(&HostIndex::new(facts), plan, None)
}

/// As [`facts_after`], with facts that are indexed already. `other` has the facts after another plan for the same host:
/// most facts are equal, and to copy them again takes time.
pub fn facts_after_on(host: &HostIndex<'_>, plan: &Plan, other: Option<Facts>) -> Facts {
    let facts = host.facts();
    let mut after = match other {
        None => facts.clone(),
        Some(mut other) => {
            other.files.clone_from(&facts.files);
            other.blockdevs.truncate(facts.blockdevs.len());
            for (it, before) in other.filesystems.iter_mut().zip(&facts.filesystems) {
                it.free_bytes.clone_from(&before.free_bytes);
            }
            other
        }
    };
    let thin = ThinVolumes::of(plan);
    let mut made: HashSet<String> = HashSet::new();
    let is_there = |path: &str| host.block_device(path).is_known();
    for condition in plan.steps.iter().flat_map(|step| &step.conditions) {
        match condition {
            Condition::Missing(Named::Volume(name)) if is_there(&name.device_path()) => continue,
            Condition::Missing(Named::Dataset(name)) if is_there(&format!("/dev/zvol/{name}")) => {
                continue;
            }
            Condition::NothingAt(path) => made.insert(path.clone()),
            Condition::Missing(Named::Volume(name)) => {
                after.blockdevs.extend(volume(facts, &thin, name));
                made.insert(name.device_path())
            }
            Condition::Missing(Named::Dataset(name)) => {
                let volume = zvol(facts, name);
                let path = volume.id.clone();
                after.blockdevs.push(volume);
                made.insert(path)
            }
            _ => continue,
        };
    }
    // They are no longer missing, and their facts are not collected yet.
    after
        .files
        .retain(|file| !file.is_missing() || !made.contains(&file.path));
    let sizes = sizes_of_devices(plan);
    for device in &mut after.blockdevs[facts.blockdevs.len()..] {
        device.size = match sizes.get(device.id.as_str()) {
            Some(size) => Fact::Known(*size),
            None => Fact::NotCollected,
        };
    }
    let NewFiles { files, taken, .. } = NewFiles::of(plan, host);
    for filesystem in &mut after.filesystems {
        if let Fact::Known(free) = &mut filesystem.free_bytes {
            let taken = taken.get(&filesystem.id).copied();
            *free = free.saturating_sub(taken.unwrap_or_default());
        }
    }
    let new: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    after.files.retain(|file| !new.contains(file.path.as_str()));
    after.files.extend(files);
    after
}

/// The thin volumes that a plan makes.
struct ThinVolumes<'p> {
    pools: HashMap<&'p LogicalVolumeName, &'p str>,
    /// Bytes that each pool, named by its group and its name, promises to them.
    promised: HashMap<(&'p str, &'p str), u64>,
}

impl<'p> ThinVolumes<'p> {
    fn of(plan: &'p Plan) -> Self {
        let mut found = ThinVolumes {
            pools: HashMap::new(),
            promised: HashMap::new(),
        };
        for image in plan.domain.disks.iter().filter_map(|it| it.backend.image()) {
            if let Some(Creation::ThinVolume(thin)) = &image.creation {
                found.pools.insert(&thin.name, &thin.pool);
                let pool = (thin.name.group.as_str(), thin.pool.as_str());
                let promised = found.promised.entry(pool).or_default();
                *promised = promised.saturating_add(thin.size.map_or(0, |size| size.0));
            }
        }
        found
    }
}

/// A volume that the plan makes, as far as its pool or another volume of its group shows it.
fn volume(facts: &Facts, thin: &ThinVolumes<'_>, name: &LogicalVolumeName) -> Option<BlockDevice> {
    let pool = thin.pools.get(name).copied();
    let kindred = kindred(facts, &name.group, pool)?;
    let mut volume = unused(name.device_path(), kindred);
    if volume.kind == BlockKind::LvmThinPool {
        volume.kind = BlockKind::LvmThin;
        volume.slaves = vec![kindred.id.clone()];
    }
    if let Fact::Known(lvm) = &mut volume.lvm {
        lvm.lv = Fact::Known(name.volume.clone());
        lvm.pool = pool.map_or(Fact::Absent, |pool| Fact::Known(pool.to_owned()));
        lvm.origin = Fact::Absent;
        if let Some(pool) = pool {
            lvm.segtype = Fact::Known("thin".to_owned());
            if let Fact::Known(bytes) = &mut lvm.virtual_bytes {
                let promised = thin.promised.get(&(name.group.as_str(), pool)).copied();
                *bytes = bytes.saturating_add(promised.unwrap_or_default());
            }
        }
    }
    Some(volume)
}

/// A ZFS volume that the plan makes, as far as another one of its pool shows it.
fn zvol(facts: &Facts, dataset: &str) -> BlockDevice {
    let pool = |dataset: &str| dataset.split('/').next().map(str::to_owned);
    let is_kindred = |device: &&BlockDevice| {
        let of_device = device.zvol.value().and_then(|zvol| zvol.dataset.value());
        of_device.is_some_and(|other| pool(other) == pool(dataset))
    };
    let kindred = facts.blockdevs.iter().find(is_kindred);
    let new = BlockDevice {
        kind: BlockKind::Zvol,
        zvol: Fact::Known(Zvol::default()),
        ..BlockDevice::default()
    };
    let mut volume = unused(format!("/dev/zvol/{dataset}"), kindred.unwrap_or(&new));
    if let Fact::Known(zvol) = &mut volume.zvol {
        zvol.dataset = Fact::Known(dataset.to_owned());
    }
    volume
}

/// A new device at a path that is like another one.
fn unused(path: String, kindred: &BlockDevice) -> BlockDevice {
    BlockDevice {
        paths: vec![path.clone()],
        id: path,
        dev: Fact::NotCollected,
        dm: Fact::NotCollected,
        by_id: Fact::Absent,
        mounted_at: Fact::Known(Vec::new()),
        holders: Fact::Known(Vec::new()),
        partitions: Fact::Known(Vec::new()),
        swap: Fact::Known(false),
        ..kindred.clone()
    }
}

/// The sizes of the volumes that a plan makes, by their paths.
fn sizes_of_devices(plan: &Plan) -> HashMap<&str, u64> {
    let images = plan.domain.disks.iter().filter_map(|it| it.backend.image());
    let sizes = images.filter_map(|image| {
        let size = match image.creation.as_ref()? {
            Creation::LogicalVolume { size, .. } | Creation::Other { size } => *size,
            Creation::ThinVolume(thin) => thin.size,
            Creation::RawFile { .. } | Creation::Qcow2(_) => None,
        };
        Some((image.host_path()?, size?.0))
    });
    sizes.collect()
}

/// The size that a guest sees of an image in this format.
pub(super) fn virtual_size(index: &HostIndex<'_>, path: &str, format: Format) -> Option<u64> {
    let file = index.file(path)?;
    match format {
        Format::Raw => file.size.value(),
        _ => file.image.value()?.virtual_size.value(),
    }
    .copied()
}

/// The files that `qemu-img create` has just made.
#[derive(Default)]
struct NewFiles<'p> {
    /// In the order of the plan.
    files: Vec<File>,
    paths: HashSet<&'p str>,
    /// Allocated bytes on each file system, by its id.
    taken: HashMap<String, u64>,
}

impl<'p> NewFiles<'p> {
    fn of(plan: &'p Plan, index: &HostIndex<'_>) -> Self {
        let steps = plan.steps.iter().filter(|step| step.sets_nocow());
        let nocow: HashSet<usize> = steps.map(|step| step.disk).collect();
        let modes = plan.steps.iter().filter(|it| it.kind == StepKind::Mode);
        let modes: HashMap<usize, Option<u32>> = modes
            .map(|step| (step.disk, u32::from_str_radix(&step.argv[2], 8).ok()))
            .collect();
        let mut new = NewFiles::default();
        for (nth, disk) in plan.domain.disks.iter().enumerate() {
            if let Some(image) = disk.backend.image()
                && let Some(path) = image.host_path()
                && !new.paths.contains(path)
                && !index.file(path).is_some_and(|file| file.present.is_true())
            {
                new.add(index, path, image, nocow.contains(&nth));
                if let (Some(file), Some(Some(mode))) = (new.files.last_mut(), modes.get(&nth)) {
                    file.mode = Fact::Known(Mode(*mode));
                }
            }
        }
        new
    }

    fn add(&mut self, index: &HostIndex<'_>, path: &'p str, image: &Image, is_nocow: bool) {
        /// What qcow2 allocates for its header and first tables.
        const TABLES: u64 = 196_608;
        let mut header = ImageHeader::default();
        let (size, alloc) = match &image.creation {
            Some(Creation::RawFile {
                size,
                preallocation,
            }) => {
                let size = size.map_or(0, |size| size.0);
                let is_sparse = matches!(preallocation, None | Some(Preallocation::Off));
                let format = match &image.encryption {
                    Some(_) => "luks",
                    None => "raw",
                };
                header.format = Fact::Known(format.to_owned());
                header.virtual_size = Fact::Known(size);
                (size, if is_sparse { 0 } else { size })
            }
            Some(Creation::Qcow2(qcow2)) => {
                let below = qcow2.backing.as_ref();
                let below_size =
                    || below.and_then(|(path, format)| virtual_size(index, path, *format));
                let Some(size) = qcow2.size.map(|size| size.0).or_else(below_size) else {
                    return;
                };
                let is_allocated = matches!(
                    qcow2.preallocation,
                    Some(Qcow2Preallocation::Falloc | Qcow2Preallocation::Full)
                );
                header.format = Fact::Known("qcow2".to_owned());
                header.version = Fact::Known(3);
                header.virtual_size = Fact::Known(size);
                header.cluster = Fact::Known(qcow2.cluster_size.map_or(64 << 10, |it| it.0));
                header.ext_l2 = Fact::Known(qcow2.extended_l2 == Some(true));
                header.lazy = Fact::Known(qcow2.lazy_refcounts == Some(true));
                (header.dirty, header.corrupt) = (Fact::Known(false), Fact::Known(false));
                header.encryption = match &image.encryption {
                    Some(_) => Fact::Known("luks".to_owned()),
                    None => Fact::Absent,
                };
                header.data_file = Fact::Absent;
                header.backing = below.map_or(Fact::Absent, |(path, format)| {
                    let format = format.qemu_driver().unwrap_or(format.as_str());
                    Fact::Known(BackingFact {
                        path: path.clone(),
                        format: Fact::Known(format.to_owned()),
                    })
                });
                let size_of_file = if is_allocated { size + TABLES } else { TABLES };
                (size_of_file, size_of_file)
            }
            _ => return,
        };
        // What a preallocated file takes is free no more.
        if let Fact::Known(filesystem) = index.filesystem_of(path) {
            let taken = self.taken.entry(filesystem.id.clone()).or_default();
            *taken = taken.saturating_add(alloc);
        }
        self.paths.insert(path);
        self.files.push(File {
            path: path.to_owned(),
            present: Fact::Known(true),
            kind: Fact::Known(FileKind::Regular),
            mode: Fact::Known(Mode(0o600)),
            mount: index.mount_of(path).map(|mount| mount.id.clone()),
            nocow: match is_nocow {
                true => Fact::Known(true),
                false => index.nocow(path),
            },
            size: Fact::Known(size),
            alloc: Fact::Known(alloc),
            image: Fact::Known(header),
            ..File::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use vmdisk_facts::Target;

    use super::*;
    use crate::spec::Spec;

    const FACTS: &str = "schema_version: '1.0'
mounts: [{id: m1, point: /srv, fs: f1}]
filesystems: [{id: f1, kind: xfs, free_bytes: 10737418240}]
files: [{path: /srv/a.img, present: false}]
blockdevs:
- {id: b1, kind: nvme, paths: [/dev/nvme0n1]}
- {id: b2, kind: lvm-thin-pool, paths: [/dev/dm-2], slaves: [b1], lvm: {vg: vg0, lv: pool, segtype: thin-pool, chunk: 65536}}
- {id: b3, kind: lvm-thin, paths: [/dev/vg1/a], slaves: [b9], holders: [b8], lvm: {vg: vg1, lv: a, pool: other, segtype: thin}}
- {id: b4, kind: lvm, paths: [/dev/vg0/web], slaves: [b1], lvm: {vg: vg0, lv: web, segtype: linear}}
- {id: b5, kind: zvol, paths: [/dev/zvol/tank/a], zvol: {dataset: tank/a, sync: disabled}}";

    #[test]
    fn a_new_volume_is_described_by_its_pool_or_its_group() {
        let facts = Facts::from_yaml(FACTS).unwrap().facts;
        let host = HostIndex::new(&facts);
        let other = Cell::new(None);
        let after = |disk: &str| {
            let spec = Spec::from_yaml(&format!("version: 1\ndisks: [{{{disk}}}]")).unwrap();
            let plan = crate::plan(&spec, &facts, &Target::default()).unwrap();
            let after = facts_after_on(&host, &plan, other.take());
            assert_eq!(after, facts_after(&facts, &plan), "{disk}");
            let new = after.blockdevs[facts.blockdevs.len()..].to_vec();
            other.set(Some(after));
            new
        };
        // A file, whose facts are replaced and whose file system has less space.
        for size in ["1G", "2G"] {
            let file = format!("raw: {{path: /srv/a.img, size: {size}, preallocation: full}}");
            assert!(after(&file).is_empty());
        }
        let thin = "lvm-thin: {group: vg0, volume: new, size: 1G, pool: pool}";
        let [thin] = &after(thin)[..] else { panic!() };
        assert_eq!(
            (&thin.kind, &thin.slaves),
            (&BlockKind::LvmThin, &vec!["b2".to_owned()])
        );
        let lvm = thin.lvm.value().unwrap();
        assert_eq!(lvm.pool.as_str(), Fact::Known("pool"));
        assert_eq!(
            (lvm.lv.as_str(), lvm.segtype.as_str()),
            (Fact::Known("new"), Fact::Known("thin"))
        );
        let other = "lvm-thin: {group: vg1, volume: new, size: 1G, pool: other}";
        let [other] = &after(other)[..] else { panic!() };
        assert_eq!(
            (&other.slaves, &other.holders),
            (&vec!["b9".to_owned()], &Fact::Known(Vec::new()))
        );
        assert_eq!(thin.size, Fact::Known(1 << 30));
        let [zvol] = &after("zvol: {dataset: tank/vm/b, size: 2G}")[..] else {
            panic!()
        };
        assert_eq!(
            (&zvol.kind, &zvol.paths, &zvol.size),
            (
                &BlockKind::Zvol,
                &vec!["/dev/zvol/tank/vm/b".to_owned()],
                &Fact::Known(2 << 30)
            )
        );
        let of_zfs = zvol.zvol.value().unwrap();
        assert_eq!(of_zfs.sync.as_str(), Fact::Known("disabled"));
        assert_eq!(of_zfs.dataset.as_str(), Fact::Known("tank/vm/b"));
        let [alone] = &after("zvol: {dataset: other/b, size: 2G}")[..] else {
            panic!()
        };
        assert_eq!(alone.zvol.value().unwrap().sync, Fact::NotCollected);
        let [thick] = &after("lvm: {group: vg0, volume: new, size: 1G}")[..] else {
            panic!()
        };
        assert_eq!(
            (&thick.kind, &thick.paths),
            (&BlockKind::Lvm, &vec!["/dev/vg0/new".to_owned()])
        );
        let lvm = thick.lvm.value().unwrap();
        assert_eq!(
            (&lvm.pool, lvm.segtype.as_str()),
            (&Fact::Absent, Fact::Known("linear"))
        );
        let unknown = [
            "lvm: {group: vg1, volume: new, size: 1G}",
            "lvm-thin: {group: vg0, volume: new, size: 1G, pool: x}",
        ];
        assert!(unknown.iter().all(|disk| after(disk).is_empty()));
    }
}
