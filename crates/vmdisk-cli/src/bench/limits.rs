//! Limits of control groups that touch what a run measures: its figures would be those of the limit.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use vmdisk::Facts;
use vmdisk::facts::HostIndex;
use vmdisk::facts::cgroup::{Cgroup, IoMax};
use vmdisk_bench_runner::report::bytes;
use vmdisk_bench_runner::{EngineKind, LIMIT, Plan};

use crate::input::bounded;

/// What a run takes beside its disks and the memory of its guest: its programs, and pages in flight.
const PROGRAMS: u64 = 256 << 20;

/// Returns the limits of the group of the run and, if guests are meant, of `machine.slice`, as words of the environment.
pub(super) fn limits(facts: &Facts, plan: &Plan, places: &[PathBuf]) -> Vec<(String, String)> {
    limits_below(Path::new("/"), facts, plan, places)
}

fn limits_below(
    root: &Path,
    facts: &Facts,
    plan: &Plan,
    places: &[PathBuf],
) -> Vec<(String, String)> {
    let is_of_guests = plan.cells.iter().any(|it| it.engine != EngineKind::HostFio);
    let machine = facts.cgroups.machine.value().filter(|_| is_of_guests);
    let groups = [
        ("the cgroup of the run", facts.cgroups.own.value()),
        ("machine.slice, in which libvirt starts guests", machine),
    ];
    let mut found = Vec::new();
    for (name, group) in groups.iter().filter_map(|(name, it)| Some((*name, (*it)?))) {
        let path = group.path.as_str().known();
        let processors = path.and_then(|path| processor_limit(root, path));
        let limits = [
            ("I/O", io_limit(group, facts, places)),
            ("processors", processors),
            (
                "memory",
                path.and_then(|path| memory_limit(root, path, plan)),
            ),
        ];
        let known = limits.into_iter().filter_map(|(of, limit)| {
            // A group below machine.slice has its limits already.
            let is_new = |it: &&(String, String)| limit.as_ref() == Some(&it.1);
            let is_known = found.iter().any(|it| is_new(&it));
            Some((format!("{LIMIT}{of} of {name}"), limit.clone()?)).filter(|_| !is_known)
        });
        let known: Vec<(String, String)> = known.collect();
        found.extend(known);
    }
    found
}

/// Returns the limits on the devices below some paths.
fn io_limit(group: &Cgroup, facts: &Facts, places: &[PathBuf]) -> Option<String> {
    let index = HostIndex::new(facts);
    let mut texts = BTreeSet::new();
    for place in places {
        for device in index.all_under(&place.display().to_string()) {
            let of_device = |it: &&IoMax| it.dev.is_known() && it.dev == device.dev;
            let limits = group.io_max.value().into_iter().flatten().filter(of_device);
            texts.extend(limits.flat_map(|limit| {
                let per_second = |limit: Option<&u64>, format: &dyn Fn(u64) -> String| {
                    limit.map(|it| format!("{}: {} per second", device.name(), format(*it)))
                };
                [
                    per_second(limit.read_requests.value(), &|it| format!("{it} reads")),
                    per_second(limit.write_requests.value(), &|it| format!("{it} writes")),
                    per_second(limit.read_bytes.value(), &|it| {
                        format!("{} read", bytes(it))
                    }),
                    per_second(limit.write_bytes.value(), &|it| {
                        format!("{} written", bytes(it))
                    }),
                ]
            }));
        }
    }
    let texts: Vec<String> = texts.into_iter().flatten().collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// Returns the memory of a group that cannot hold the disks of the run and its largest guest.
fn memory_limit(root: &Path, group: &str, plan: &Plan) -> Option<String> {
    let of_group = |unified: &Path, single: &Path| {
        let text = bounded::text(&unified.join("memory.max"));
        let text = text.or_else(|_| bounded::text(&single.join("memory.limit_in_bytes")));
        text.ok()?.trim().parse::<u64>().ok()
    };
    let limit = least(root, group, "memory", of_group, u64::min)?;
    let configurations = plan.configurations.iter();
    let disks: u64 = configurations.clone().map(|it| it.size.0).sum();
    let has_guest = plan.cells.iter().any(|it| it.engine == EngineKind::Guest);
    let guest = configurations.filter_map(|it| Some(it.guest.memory?.0));
    let guest = guest.filter(|_| has_guest).max();
    let needed = disks
        .saturating_add(guest.unwrap_or(0))
        .saturating_add(PROGRAMS);
    (limit < needed).then(|| format!("{} for what takes {}", bytes(limit), bytes(needed)))
}

/// Returns the smallest processor limit of a group and those above it.
fn processor_limit(root: &Path, group: &str) -> Option<String> {
    let number = |path: PathBuf| bounded::text(&path).ok()?.trim().parse::<f64>().ok();
    let of_group = |unified: &Path, single: &Path| {
        let unified = bounded::text(&unified.join("cpu.max")).ok();
        let unified = unified.and_then(|text| {
            let (quota, period) = text.trim().split_once(' ')?;
            Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
        });
        unified.or_else(|| {
            let quota = number(single.join("cpu.cfs_quota_us")).filter(|quota| *quota > 0.0)?;
            Some(quota / number(single.join("cpu.cfs_period_us"))?)
        })
    };
    let least = least(root, group, "cpu", of_group, f64::min)?;
    Some(format!("{least:.2} processors"))
}

/// Returns the smallest limit of a group and those above it, in either version of control groups: `of_group` reads it in
/// the folder of version 2, or in that of a controller of version 1.
fn least<T>(
    root: &Path,
    group: &str,
    controller: &str,
    of_group: impl Fn(&Path, &Path) -> Option<T>,
    smaller: fn(T, T) -> T,
) -> Option<T> {
    let folder = root.join("sys/fs/cgroup");
    let limits = Path::new(group).ancestors().filter_map(|group| {
        let group = group.strip_prefix("/").unwrap_or(group);
        of_group(&folder.join(group), &folder.join(controller).join(group))
    });
    limits.reduce(smaller)
}

#[cfg(test)]
mod tests {
    use vmdisk_bench_runner::{PlanOptions, read_plan};

    use super::*;

    const FACTS: &str = r#"{"schema_version": "1.0", "cgroups": {"own": {"path": "/ci/job", "io_max": [
                {"dev": "7:3", "read_requests": 400}, {"dev": "7:9", "write_bytes": 1048576}]},
            "machine": {"path": "/machine.slice", "io_max": [{"dev": "7:3", "write_bytes": 1048576}]}},
        "filesystems": [{"id": "fs1", "kind": "ext4", "devices": ["b1"]}],
        "mounts": [{"id": "m1", "point": "/srv", "fs": "fs1"}],
        "blockdevs": [{"id": "b1", "paths": ["/dev/loop3"], "dev": "7:3", "kind": "loop"}]}"#;

    fn found(memory: &str, engine: &str, place: &str) -> Vec<String> {
        let facts = Facts::parse(FACTS).unwrap().facts;
        let text = format!(
            "version: 1\nname: t\nquestion: q\nsize: 64M\nphases: [steady]\nworkloads: [4k-random-read-qd1]\n\
             fixed: {{engine: {engine}}}\nmatrix: {{format: [raw]}}\n"
        );
        let plan = read_plan(&text, "t", &PlanOptions::default()).unwrap();
        let root = tempfile::tempdir().unwrap();
        for (group, text) in [("ci", "50000 100000\n"), ("ci/job", "max 100000\n")] {
            let folder = root.path().join("sys/fs/cgroup").join(group);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("cpu.max"), text).unwrap();
            std::fs::write(folder.join("memory.max"), memory).unwrap();
        }
        let found = limits_below(root.path(), &facts, &plan, &[PathBuf::from(place)]);
        found
            .iter()
            .map(|(what, limit)| format!("{what}: {limit}"))
            .collect()
    }

    #[test]
    fn limits_are_named_where_they_touch_the_run() {
        let own = [
            "limit on I/O of the cgroup of the run: /dev/loop3: 400 reads per second",
            "limit on processors of the cgroup of the run: 0.50 processors",
            "limit on memory of the cgroup of the run: 128 MiB for what takes 320 MiB",
        ];
        assert_eq!(found("134217728\n", "host-fio", "/srv/a"), own);
        let guests = "limit on I/O of machine.slice, in which libvirt starts guests: /dev/loop3: 1 MiB written per second";
        let all: Vec<&str> = own.iter().copied().chain([guests]).collect();
        assert_eq!(found("134217728\n", "storage-daemon", "/srv/a"), all);
        // Another device, and memory for all disks.
        assert_eq!(found("134217728\n", "host-fio", "/other"), own[1..]);
        assert_eq!(found("max\n", "host-fio", "/other"), own[1..2]);
    }
}
