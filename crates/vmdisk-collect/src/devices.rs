//! Block devices in sysfs, from the requested ones down to the drives.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::Path;

use vmdisk_facts::blockdev::{Dm, Lvm, Partition, Queue};
use vmdisk_facts::{BlockDevice, BlockKind, DeviceNumber, Fact, Reason};

use crate::aliases::Aliases;
use crate::btrfs::Registry;
use crate::device_kind::{self, LayerBelow};
use crate::drivers;
use crate::mountinfo::MountTable;
use crate::obstacle::{fact_of, missing, obstacle};
use crate::root::Root;
use crate::sysfs::{
    directory, flag, loop_file, md, model, names_in, partitions, queue, running, sectors,
};

/// Maximum number of devices above or below one device.
const MAX_DEVICES: usize = 4096;

/// The devices found so far, by kernel name.
pub(crate) struct Devices<'a> {
    root: &'a Root,
    found: BTreeMap<String, BlockDevice>,
    mounted: HashMap<String, Vec<String>>,
    mounted_numbers: HashMap<DeviceNumber, Vec<String>>,
    swaps: Result<HashSet<String>, vmdisk_facts::Unknown>,
    aliases: Option<Aliases>,
}

impl<'a> Devices<'a> {
    pub(crate) fn new(root: &'a Root, mounts: &MountTable, registry: &Registry) -> Self {
        let mut devices = Self {
            root,
            found: BTreeMap::new(),
            mounted: HashMap::new(),
            mounted_numbers: HashMap::new(),
            swaps: swaps(root),
            aliases: None,
        };
        for line in &mounts.lines {
            if line.device.major != 0 {
                devices
                    .mounted_numbers
                    .entry(line.device)
                    .or_default()
                    .push(line.point.clone());
            } else if line.fstype == "btrfs"
                && let Some(members) = registry.devices_of_source(root, &line.source)
            {
                for member in members {
                    devices
                        .mounted
                        .entry(member.clone())
                        .or_default()
                        .push(line.point.clone());
                }
            }
        }
        devices
    }

    /// Returns the kernel's name of the device with a number.
    pub(crate) fn name_of(&self, number: DeviceNumber) -> io::Result<String> {
        let real = self
            .root
            .resolve(Path::new(&format!("/sys/dev/block/{number}")))?;
        match real.file_name().and_then(|name| name.to_str()) {
            Some(name) => Ok(name.to_owned()),
            None => Err(io::Error::from(io::ErrorKind::InvalidData)),
        }
    }

    /// Adds a requested device with everything below it, its partitions, and their holders.
    pub(crate) fn add_requested(&mut self, name: &str) {
        self.add(name);
        let mut above = self.set_above(name);
        if let Some(BlockDevice {
            partitions: Fact::Known(partitions),
            ..
        }) = self.found.get(name)
        {
            for partition in partitions.clone() {
                self.add(&partition);
                above.extend(self.set_above(&partition));
            }
        }
        for holder in above {
            self.add(&holder);
        }
    }

    /// Adds a device and everything below it.
    pub(crate) fn add(&mut self, name: &str) {
        let mut todo = vec![name.to_owned()];
        while let Some(name) = todo.pop() {
            if self.found.contains_key(&name) || self.found.len() >= MAX_DEVICES {
                continue;
            }
            let Some(device) = self.read(&name) else {
                continue;
            };
            todo.extend(device.slaves.iter().cloned());
            if let Fact::Known(Partition {
                parent: Fact::Known(parent),
                ..
            }) = &device.partition
            {
                todo.push(parent.clone());
            }
            self.found.insert(name, device);
        }
    }

    /// Returns the files of the loop devices found so far, to be inspected too.
    pub(crate) fn backing_files(&self) -> Vec<String> {
        let files = self
            .found
            .values()
            .filter_map(|device| device.loop_file.value())
            .filter(|file| file.deleted.is(&false))
            .filter_map(|file| file.backing_file.value().cloned());
        files.collect()
    }

    /// Returns the devices with their ids, and the id of each by kernel name.
    pub(crate) fn finish(self) -> (Vec<BlockDevice>, HashMap<String, String>) {
        let mut names: Vec<&String> = self.found.keys().collect();
        names.sort_by_cached_key(|name| natural(name));
        let ids: HashMap<String, String> = names
            .iter()
            .enumerate()
            .map(|(place, name)| ((*name).clone(), format!("b{}", place + 1)))
            .collect();
        // Every slave and parent was added; a holder that vanished meanwhile has no id.
        let translate = |names: &mut Vec<String>| {
            let translated: Vec<String> = names
                .iter()
                .filter_map(|name| ids.get(name).cloned())
                .collect();
            *names = translated;
        };
        let mut devices: Vec<(Vec<Chunk>, BlockDevice)> = Vec::with_capacity(self.found.len());
        for (name, mut device) in self.found {
            translate(&mut device.slaves);
            if let Fact::Known(names) = &mut device.holders {
                translate(names);
            }
            if let Fact::Known(names) = &mut device.partitions {
                translate(names);
            }
            if let Fact::Known(partition) = &mut device.partition {
                let parent = std::mem::take(&mut partition.parent);
                partition.parent = parent
                    .and_then(|name| ids.get(&name).cloned().map_or(Fact::Absent, Fact::Known));
            }
            device.id = ids.get(&name).cloned().unwrap_or_default();
            devices.push((natural(&name), device));
        }
        devices.sort_by(|(a, _), (b, _)| a.cmp(b));
        (devices.into_iter().map(|(_, device)| device).collect(), ids)
    }

    /// Finds the holders of a device, and returns them to be added.
    fn set_above(&mut self, name: &str) -> Vec<String> {
        let holders = names_in(self.root, &format!("{}/holders", directory(name)));
        let partitions = partitions(self.root, name);
        let Some(device) = self.found.get_mut(name) else {
            return Vec::new();
        };
        device.holders = holders;
        device.partitions = partitions;
        device.holders.value().cloned().unwrap_or_default()
    }

    fn read(&mut self, name: &str) -> Option<BlockDevice> {
        let root = self.root;
        let at = directory(name);
        let file = |file: &str| root.text(format!("{at}/{file}"));
        let what = |file: &str| format!("{at}/{file}");
        let dev = fact_of(&what("dev"), file("dev"), DeviceNumber::parse);
        if dev.is_absent() {
            // The device vanished, or never existed.
            return None;
        }
        let partition = self.partition(name);
        // A partition has no queue directory.
        let parent = partition
            .value()
            .and_then(|partition| partition.parent.value());
        let whole = parent.map_or(name, String::as_str).to_owned();
        let slaves = root.names(what("slaves")).unwrap_or_default();
        let (kind, dm, lvm) = self.mapper(name, &slaves, partition.is_known());
        let queue = queue(root, &whole);
        let lvm = lvm.map(|lvm| with_chunk(lvm, &kind, &queue));
        let below = slaves.first().filter(|_| kind.is_crypt());
        let crypt = drivers::crypt(
            &kind,
            &queue,
            below.map(|below| self.queue_of(below)).as_ref(),
        );
        let links = self
            .aliases
            .get_or_insert_with(|| Aliases::scan(root))
            .of(name);
        let by_id: Vec<String> = links
            .iter()
            .filter(|path| path.starts_with("/dev/disk/by-id/"))
            .cloned()
            .collect();
        Some(BlockDevice {
            id: String::new(),
            mounted_at: Fact::Known(self.mounts_of(name, &dev)),
            swap: match &self.swaps {
                Ok(swaps) => Fact::Known(swaps.contains(name)),
                Err(unknown) => Fact::Unknown(unknown.clone()),
            },
            dev,
            paths: links,
            by_id: Fact::or_absent((!by_id.is_empty()).then_some(by_id)),
            // sysfs counts in sectors of 512 bytes on every device.
            size: sectors(root, &what("size")),
            read_only: flag(root, &what("ro")),
            removable: flag(root, &format!("{}/removable", directory(&whole))),
            holders: Fact::NotCollected,
            partitions: Fact::NotCollected,
            partition,
            queue,
            md: md(root, name),
            loop_file: loop_file(root, name, &kind),
            crypt,
            nvme: drivers::nvme(root, name, &kind),
            scsi: drivers::scsi(root, name),
            bcache: drivers::bcache(root, name, &kind),
            zvol: if kind == BlockKind::Zvol {
                Fact::NotCollected
            } else {
                Fact::Absent
            },
            model: model(root, &whole),
            paths_up: if kind == BlockKind::Multipath {
                Fact::Known(running(root, &slaves))
            } else {
                Fact::Absent
            },
            kind,
            dm,
            lvm,
            slaves,
        })
    }

    /// Returns the queue of a device, or of the disk of a partition.
    fn queue_of(&self, name: &str) -> Queue {
        let partition = self.partition(name);
        let parent = partition
            .value()
            .and_then(|partition| partition.parent.value());
        queue(self.root, parent.map_or(name, String::as_str))
    }

    fn mounts_of(&self, name: &str, dev: &Fact<DeviceNumber>) -> Vec<String> {
        let by_number = dev
            .value()
            .and_then(|number| self.mounted_numbers.get(number));
        let mut points: Vec<String> = by_number
            .into_iter()
            .chain(self.mounted.get(name))
            .flatten()
            .cloned()
            .collect();
        points.sort_unstable();
        points.dedup();
        points
    }

    fn partition(&self, name: &str) -> Fact<Partition> {
        let at = directory(name);
        let number = self.root.number(&format!("{at}/partition"));
        if number.is_absent() {
            return Fact::Absent;
        }
        let parent = match self.root.resolve(Path::new(&at)) {
            Ok(real) => match real
                .parent()
                .and_then(Path::file_name)
                .and_then(|name| name.to_str())
            {
                Some(parent) => Fact::Known(parent.to_owned()),
                None => Fact::unknown(Reason::Parse, format!("{at}: no disk above the partition")),
            },
            Err(error) => Fact::Unknown(obstacle(&at, &error)),
        };
        Fact::Known(Partition {
            number,
            parent,
            start: sectors(self.root, &format!("{at}/start")),
            alignment_offset: self.root.number(&format!("{at}/alignment_offset")),
        })
    }

    fn mapper(
        &self,
        name: &str,
        slaves: &[String],
        is_partition: bool,
    ) -> (BlockKind, Fact<Dm>, Fact<Lvm>) {
        let at = directory(name);
        if is_partition {
            return (BlockKind::Partition, Fact::Absent, Fact::Absent);
        }
        if self.root.exists(format!("{at}/md")) {
            return (BlockKind::Md, Fact::Absent, Fact::Absent);
        }
        if !self.root.exists(format!("{at}/dm")) {
            return (device_kind::of_name(name), Fact::Absent, Fact::Absent);
        }
        let text = |file: &str| self.root.text(format!("{at}/dm/{file}"));
        let mapped = fact_of(&format!("{at}/dm/name"), text("name"), |name| {
            Some(name.to_owned())
        });
        let uuid = text("uuid").unwrap_or_default();
        let below: Vec<LayerBelow> = slaves
            .iter()
            .map(|slave| {
                let uuid = self
                    .root
                    .text(format!("{}/dm/uuid", directory(slave)))
                    .unwrap_or_default();
                LayerBelow::of_uuid(&uuid)
            })
            .collect();
        let kind = device_kind::of_mapper(&uuid, mapped.value().map_or("", String::as_str), &below);
        let lvm = if kind.is_lvm() {
            Fact::Known(self.lvm(&mapped, &kind, slaves))
        } else {
            Fact::Absent
        };
        (kind, Fact::Known(Dm { name: mapped }), lvm)
    }

    /// Returns what names and layers show of a logical volume without LVM's tools, which need root.
    fn lvm(&self, mapped: &Fact<String>, kind: &BlockKind, slaves: &[String]) -> Lvm {
        let names = mapped
            .value()
            .and_then(|name| device_kind::group_and_volume(name));
        let (vg, lv) = match names {
            Some((group, volume)) => (Fact::Known(group), Fact::Known(volume)),
            None => (Fact::NotCollected, Fact::NotCollected),
        };
        let segtype = if *kind == BlockKind::LvmThin {
            Fact::Known("thin".to_owned())
        } else if *kind == BlockKind::LvmThinPool {
            Fact::Known("thin-pool".to_owned())
        } else if *kind == BlockKind::LvmSnapshot {
            Fact::Known("snapshot".to_owned())
        } else {
            Fact::NotCollected
        };
        let pool = if *kind == BlockKind::LvmThin {
            slaves
                .iter()
                .find_map(|slave| {
                    let name = self
                        .root
                        .text(format!("{}/dm/name", directory(slave)))
                        .ok()?;
                    device_kind::group_and_volume(&name).map(|(_, pool)| Fact::Known(pool))
                })
                .unwrap_or_default()
        } else {
            Fact::Absent
        };
        Lvm {
            vg,
            lv,
            segtype,
            pool,
            ..Lvm::default()
        }
    }
}

/// Sets the chunk size from the optimal request size of a thin volume or pool, which needs no tool or root privileges.
fn with_chunk(mut lvm: Lvm, kind: &BlockKind, queue: &Queue) -> Lvm {
    if matches!(kind, BlockKind::LvmThin | BlockKind::LvmThinPool) {
        lvm.chunk = queue.io_opt.clone().and_then(|bytes| {
            // Without an optimal request size the chunk size is unknown.
            if bytes == 0 {
                Fact::NotCollected
            } else {
                Fact::Known(bytes)
            }
        });
    }
    lvm
}

/// Returns the kernel's names of the swap devices.
fn swaps(root: &Root) -> Result<HashSet<String>, vmdisk_facts::Unknown> {
    match root.text("/proc/swaps") {
        Ok(text) => Ok(text
            .lines()
            .skip(1)
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let path = words.next()?;
                // A swap file may be on a hung mount, and is not a device.
                (words.next() == Some("partition")).then_some(path)
            })
            .filter_map(|path| {
                root.resolve(Path::new(path))
                    .ok()?
                    .file_name()?
                    .to_str()
                    .map(str::to_owned)
            })
            .collect()),
        // A kernel without swap has no such file.
        Err(error) if missing(&error) => Ok(HashSet::new()),
        Err(error) => Err(obstacle("/proc/swaps", &error)),
    }
}

/// Splits a name into pieces for natural sorting: sda2 before sda10.
fn natural(name: &str) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let digits = first.is_ascii_digit();
        let end = rest
            .find(|c: char| c.is_ascii_digit() != digits)
            .unwrap_or(rest.len());
        let (chunk, after) = rest.split_at(end);
        chunks.push(match chunk.parse() {
            Ok(number) => Chunk::Number(number),
            Err(_) => Chunk::Text(chunk.to_owned()),
        });
        rest = after;
    }
    chunks
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Chunk {
    Number(u64),
    Text(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_naturally() {
        let mut names = [
            "sda10",
            "sda2",
            "dm-11",
            "dm-2",
            "sda",
            "nvme0n1p10",
            "nvme0n1p9",
        ];
        names.sort_by_key(|name| natural(name));
        assert_eq!(
            names,
            [
                "dm-2",
                "dm-11",
                "nvme0n1p9",
                "nvme0n1p10",
                "sda",
                "sda2",
                "sda10"
            ]
        );
    }
}
