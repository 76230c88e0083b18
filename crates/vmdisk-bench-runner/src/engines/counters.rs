//! The requests of one sample that reach the devices of the host, as counted by its kernel.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::report::bytes;
use crate::{
    BlockLoad, CellView, DeviceUse, EngineKind, Load, Measurement, Phase, Semantics, WriteCache,
};

/// The devices below the storage of a sample, with their counters at its start.
#[derive(Debug)]
pub(crate) struct Counters(Vec<(Below, Counts)>);

/// A device below the storage of a sample.
#[derive(Clone, Debug)]
struct Below {
    sysfs: PathBuf,
    /// True for the device that the storage or its file system is on; of a btrfs, for each member.
    is_uppermost: bool,
}

/// The numbers of a `stat` file in sysfs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    reads: u64,
    read_sectors: u64,
    writes: u64,
    written_sectors: u64,
    busy_ms: u64,
    /// Counted since Linux 5.5.
    flushes: Option<u64>,
}

impl Counts {
    fn parse(stat: &str) -> Option<Self> {
        let numbers: Vec<u64> = stat
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        let &[
            reads,
            _,
            read_sectors,
            _,
            writes,
            _,
            written_sectors,
            _,
            _,
            busy_ms,
            ..,
        ] = &numbers[..]
        else {
            return None;
        };
        Some(Self {
            reads,
            read_sectors,
            writes,
            written_sectors,
            busy_ms,
            flushes: numbers.get(15).copied(),
        })
    }

    fn of(sysfs: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(sysfs.join("stat")).ok()?)
    }

    fn since(self, before: Self, device: &Path) -> DeviceUse {
        let difference = |now: u64, before: u64| now.saturating_sub(before);
        DeviceUse {
            name: name(device),
            reads: difference(self.reads, before.reads),
            read_bytes: 512 * difference(self.read_sectors, before.read_sectors),
            writes: difference(self.writes, before.writes),
            written_bytes: 512 * difference(self.written_sectors, before.written_sectors),
            flushes: self
                .flushes
                .zip(before.flushes)
                .map(|(now, before)| difference(now, before)),
            busy_seconds: difference(self.busy_ms, before.busy_ms) as f64 / 1000.0,
        }
    }
}

fn name(sysfs: &Path) -> String {
    let name = sysfs.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

impl Counters {
    /// Reads the counters of all devices below a file or device; those of another program's disk are unknown.
    pub(crate) fn begin(path: Option<&Path>) -> Self {
        let devices = path.map_or_else(Vec::new, devices_below);
        let counted = devices.into_iter().filter_map(|device| {
            let counts = Counts::of(&device.sysfs)?;
            Some((device, counts))
        });
        Self(counted.collect())
    }

    /// Returns the write cache that the uppermost device reports.
    pub(crate) fn write_cache(&self) -> Option<WriteCache> {
        let (device, _) = self.0.first()?;
        write_cache(&fs::read_to_string(device.sysfs.join("queue/write_cache")).ok()?)
    }

    /// Adds what arrived at the devices to a measurement, and complains if it contradicts the cell.
    pub(crate) fn end(&self, cell: &CellView<'_>, length: u64, measured: &mut Measurement) {
        let counted = self.0.iter().filter_map(|(device, before)| {
            let counts = Counts::of(&device.sysfs)?;
            Some((device.is_uppermost, counts.since(*before, &device.sysfs)))
        });
        let counted: Vec<(bool, DeviceUse)> = counted.collect();
        if let Load::Blocks(load) = &cell.workload.load {
            let uppermost = counted.iter().filter(|(is_uppermost, _)| *is_uppermost);
            let uppermost: Vec<&DeviceUse> = uppermost.map(|(_, device)| device).collect();
            complain(cell, load, length, &uppermost, measured);
        }
        measured.devices = counted.into_iter().map(|(_, device)| device).collect();
    }

    /// Records the flushes that the uppermost device saw, and adds a complaint if some requested flushes did not arrive.
    ///
    /// Other programs use the device too, so only too few flushes prove anything.
    pub(crate) fn note_flushes(
        &self,
        cell: &CellView<'_>,
        measured: &mut Measurement,
        reaches_device: bool,
    ) {
        let Some(device) = measured.devices.first() else {
            return;
        };
        let semantics = &mut measured.semantics;
        semantics.flushes_seen = device.flushes;
        let (Some(asked), Some(seen)) = (semantics.flushes_asked, semantics.flushes_seen) else {
            return;
        };
        let is_volatile = self.write_cache() == Some(WriteCache::WriteBack);
        if reaches_device && is_volatile && seen < cell.workload.load.least_flushes(asked) {
            semantics.complaints.push(format!(
                "{asked} flushes were requested, but only {seen} reached {}",
                device.name
            ));
        }
    }
}

/// Complains about a first touch that touches twice, and about requests that a cache answered against the label.
///
/// Other programs use the devices too, so only too few bytes prove anything.
fn complain(
    cell: &CellView<'_>,
    load: &BlockLoad,
    length: u64,
    uppermost: &[&DeviceUse],
    measured: &mut Measurement,
) {
    let moved = |direction: &Option<crate::Direction>| direction.as_ref().map_or(0, |it| it.bytes);
    let (read, written) = (moved(&measured.read), moved(&measured.write));
    let Semantics { complaints, .. } = &mut measured.semantics;
    if cell.phase == Phase::FirstTouch {
        let covered = (read + written) as f64 / length.max(1) as f64;
        measured.covered = Some(covered);
        if read + written > load.bytes_of_pass(length) {
            complaints.push(format!(
                "requests went {covered:.1} times over the disk, and only the first time is a first touch"
            ));
        }
    }
    let configuration = cell.configuration;
    let is_direct = match cell.engine {
        EngineKind::HostFio => !configuration.is_buffered,
        EngineKind::StorageDaemon | EngineKind::Guest | EngineKind::Mock => {
            configuration.disk().backend.is_direct()
        }
    };
    // Unwritten storage is read without a device.
    let read = if cell.phase == Phase::FirstTouch {
        0
    } else {
        read
    };
    let cold = if is_direct { read } else { read.min(length) };
    let direct = if is_direct { written } else { 0 };
    let label = match is_direct {
        true => "bypass the page cache",
        false => "begin with an empty page cache",
    };
    complaints.extend(too_few(label, [cold, direct], uppermost));
}

/// Complaints about fewer read or written bytes than expected. Each member of a mirror may answer.
fn too_few(label: &str, expected: [u64; 2], uppermost: &[&DeviceUse]) -> Vec<String> {
    let names: Vec<&str> = uppermost.iter().map(|it| it.name.as_str()).collect();
    let sum = |count: fn(&DeviceUse) -> u64| -> u64 { uppermost.iter().map(|it| count(it)).sum() };
    let arrived = [sum(|it| it.read_bytes), sum(|it| it.written_bytes)];
    let verbs = ["read from", "written to"];
    let compared = expected.into_iter().zip(arrived).zip(verbs);
    compared
        .filter(|((expected, arrived), _)| !names.is_empty() && *arrived < expected - expected / 10)
        .map(|((expected, arrived), verb)| {
            format!(
                "requests {label}, but only {} of {} were {verb} {}",
                bytes(arrived),
                bytes(expected),
                names.join(" and ")
            )
        })
        .collect()
}

/// The devices that hold a file or device, the uppermost first.
fn devices_below(path: &Path) -> Vec<Below> {
    let mut devices = Vec::new();
    below(path, true, &mut devices);
    devices
}

fn below(path: &Path, is_uppermost: bool, devices: &mut Vec<Below>) {
    let Ok(metadata) = fs::metadata(path) else {
        return;
    };
    if metadata.file_type().is_block_device() {
        return add(&of_number(metadata.rdev()), is_uppermost, devices);
    }
    let own = of_number(metadata.dev());
    if own.exists() {
        return add(&own, is_uppermost, devices);
    }
    // btrfs has anonymous device numbers; its mount names one of its devices.
    let Some(source) = mount_source(path) else {
        return;
    };
    let Ok(source) = fs::metadata(source) else {
        return;
    };
    if !source.file_type().is_block_device() {
        return;
    }
    let first = fs::canonicalize(of_number(source.rdev())).unwrap_or_default();
    let file_systems = fs::read_dir("/sys/fs/btrfs")
        .into_iter()
        .flatten()
        .flatten();
    let mut members: Vec<PathBuf> = file_systems
        .map(|file_system| file_system.path().join("devices"))
        .filter(|members| members.join(first.file_name().unwrap_or_default()).exists())
        .flat_map(fs::read_dir)
        .flatten()
        .flatten()
        .map(|member| member.path())
        .collect();
    members.sort();
    members.push(first);
    for member in members {
        add(&member, is_uppermost, devices);
    }
}

fn of_number(number: u64) -> PathBuf {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    PathBuf::from(format!("/sys/dev/block/{major}:{minor}"))
}

/// Adds a device and the devices below it.
fn add(sysfs: &Path, is_uppermost: bool, devices: &mut Vec<Below>) {
    let Ok(mut sysfs) = fs::canonicalize(sysfs) else {
        return;
    };
    if sysfs.join("partition").exists() {
        sysfs.pop();
    }
    if devices.iter().any(|it| it.sysfs == sysfs) {
        return;
    }
    devices.push(Below {
        sysfs: sysfs.clone(),
        is_uppermost,
    });
    let slaves = fs::read_dir(sysfs.join("slaves")).into_iter().flatten();
    let mut slaves: Vec<PathBuf> = slaves.flatten().map(|slave| slave.path()).collect();
    slaves.sort();
    for slave in slaves {
        add(&slave, false, devices);
    }
    if let Ok(file) = fs::read_to_string(sysfs.join("loop/backing_file")) {
        below(Path::new(file.trim_end_matches('\n')), false, devices);
    }
}

/// Returns the source of the mount that holds a file.
fn mount_source(path: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(path).ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let source = mounts.lines().filter_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let place = Path::new(mount.split(' ').nth(4)?);
        let source = file_system.split(' ').nth(1)?;
        path.starts_with(place)
            .then_some((place.as_os_str().len(), source))
    });
    // A later mount at the same place hides the earlier one.
    let (_, source) = source.max_by_key(|(length, _)| *length)?;
    Some(PathBuf::from(source))
}

/// Returns the devices below a path that are loop devices without direct I/O.
pub(crate) fn buffered_loops(path: &Path) -> Vec<String> {
    let devices = devices_below(path).into_iter().map(|it| it.sysfs);
    let buffered = devices.filter(|device| is_buffered(device));
    buffered.map(|device| name(&device)).collect()
}

/// Returns true if a loop device uses the page cache of the host, so that measurements show memory.
fn is_buffered(sysfs: &Path) -> bool {
    fs::read_to_string(sysfs.join("loop/dio")).is_ok_and(|text| text.trim() == "0")
}

/// Parses `queue/write_cache`.
pub(crate) fn write_cache(text: &str) -> Option<WriteCache> {
    match text.trim() {
        "write back" => Some(WriteCache::WriteBack),
        "write through" => Some(WriteCache::WriteThrough),
        _ => None,
    }
}

/// Returns the flushes in a `stat` file.
pub(crate) fn flushes_of(stat: &str) -> Option<u64> {
    Counts::parse(stat)?.flushes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffered_loop_device_is_recognized_by_its_setting() {
        let root = tempfile::tempdir().unwrap();
        assert!(!is_buffered(root.path()));
        fs::create_dir(root.path().join("loop")).unwrap();
        for (text, buffered) in [("0\n", true), ("1\n", false)] {
            fs::write(root.path().join("loop/dio"), text).unwrap();
            assert_eq!(is_buffered(root.path()), buffered);
        }
    }

    #[test]
    fn counters_are_numbers_of_a_stat_file() {
        let new = Counts::parse("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 1999 17\n").unwrap();
        let old = Counts::parse("0 0 1 0 3 0 3 0 0 4 0\n").unwrap();
        assert_eq!((new.flushes, old.flushes), (Some(1999), None));
        assert_eq!(
            new.since(old, Path::new("/sys/block/vda")),
            DeviceUse {
                name: "vda".to_owned(),
                reads: 1,
                read_bytes: 1024,
                writes: 2,
                written_bytes: 2048,
                flushes: None,
                busy_seconds: 0.006,
            }
        );
        assert_eq!(Counts::parse("1 2 3"), None);
    }

    #[test]
    fn a_mirror_may_read_from_either_member() {
        let device = |name: &str, read_bytes| DeviceUse {
            name: name.to_owned(),
            reads: 0,
            read_bytes,
            writes: 0,
            written_bytes: 0,
            flushes: None,
            busy_seconds: 0.0,
        };
        const MIB: u64 = 1 << 20;
        let found = |expected, read: [u64; 2]| {
            let [vdc, vdd] = [device("vdc", read[0]), device("vdd", read[1])];
            too_few("are direct", [expected, 0], &[&vdc, &vdd])
        };
        assert!(found(36 * MIB, [0, 36 * MIB]).is_empty());
        assert_eq!(
            found(36 * MIB, [0, MIB]),
            ["requests are direct, but only 1 MiB of 36 MiB were read from vdc and vdd"]
        );
        assert!(
            too_few("are direct", [MIB, MIB], &[]).is_empty(),
            "no device is known"
        );
    }
}
