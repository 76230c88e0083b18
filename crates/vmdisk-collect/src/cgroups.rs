//! Control groups: external limits on the I/O of guests.

use std::collections::BTreeMap;

use vmdisk_facts::cgroup::{Cgroup, Cgroups, IoMax};
use vmdisk_facts::{DeviceNumber, Fact, Reason, Unknown};

use crate::mountinfo::MountTable;
use crate::obstacle::{missing, obstacle};
use crate::root::Root;

/// The group of guests and containers under systemd.
const MACHINES: &str = "/machine.slice";

/// The mount points of the controllers.
enum Hierarchy {
    /// Version 2: one mount point for all controllers.
    Unified(String),
    /// Version 1: the mount point of the controller of I/O.
    Single(String),
}

/// Returns the limits of control groups.
pub(crate) fn cgroups(root: &Root, mounts: &MountTable) -> Cgroups {
    let Some(hierarchy) = hierarchy(root, mounts) else {
        let why = "no control groups are mounted here";
        return Cgroups {
            version: Fact::unknown(Reason::Namespace, why),
            own: Fact::unknown(Reason::Namespace, why),
            machine: Fact::unknown(Reason::Namespace, why),
        };
    };
    let membership = "/proc/self/cgroup";
    let own = match root.text(membership) {
        Ok(text) => own_path(&text, &hierarchy).map_or_else(
            || {
                Fact::unknown(
                    Reason::Parse,
                    format!("{membership} does not name the group"),
                )
            },
            Fact::Known,
        ),
        Err(error) => Fact::Unknown(obstacle(membership, &error)),
    };
    Cgroups {
        version: Fact::Known(match hierarchy {
            Hierarchy::Unified(_) => 2,
            Hierarchy::Single { .. } => 1,
        }),
        own: own.and_then(|path| group(root, &hierarchy, &path, true)),
        machine: group(root, &hierarchy, MACHINES, false),
    }
}

fn hierarchy(root: &Root, mounts: &MountTable) -> Option<Hierarchy> {
    let single = |controller: &str| {
        let mut of_kind = mounts.lines.iter().filter(|line| line.fstype == "cgroup");
        let line = of_kind.find(|line| line.options.iter().any(|(name, _)| name == controller));
        line.map(|line| line.point.clone())
    };
    if let Some(io) = single("blkio") {
        return Some(Hierarchy::Single(io));
    }
    let unified = mounts.lines.iter().find(|line| line.fstype == "cgroup2")?;
    root.exists(&unified.point)
        .then(|| Hierarchy::Unified(unified.point.clone()))
}

/// Returns the collector's own group, from lines such as `0::/user.slice` and `7:blkio:/`.
fn own_path(text: &str, hierarchy: &Hierarchy) -> Option<String> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let is_it = match hierarchy {
            Hierarchy::Unified(_) => controllers.is_empty(),
            Hierarchy::Single(_) => controllers.split(',').any(|name| name == "blkio"),
        };
        is_it.then(|| path.to_owned())
    })
}

/// Returns one group, including the limits of its parents if they apply; absent if it does not exist.
fn group(root: &Root, hierarchy: &Hierarchy, path: &str, with_above: bool) -> Fact<Cgroup> {
    let (Hierarchy::Unified(point) | Hierarchy::Single(point)) = hierarchy;
    let path = path.trim_end_matches('/');
    // A group of another namespace is outside the visible hierarchy.
    if path.split('/').any(|part| part == "..") {
        return Fact::unknown(
            Reason::Namespace,
            "the group is outside the mounted hierarchy",
        );
    }
    if !root.exists(format!("{point}{path}")) {
        return Fact::Absent;
    }
    let mut places = vec![path];
    while let Some((above, _)) = places
        .last()
        .filter(|_| with_above)
        .and_then(|path| path.rsplit_once('/'))
    {
        places.push(above);
    }
    // The root of the hierarchy has no limit files, but a container's root may be a limited group.
    let mut io_max: Fact<Vec<IoMax>> = Fact::Absent;
    for place in places {
        let limits = match hierarchy {
            Hierarchy::Unified(_) => io_max_of(root, &format!("{point}{place}")),
            Hierarchy::Single(_) => throttles_of(root, &format!("{point}{place}")),
        };
        io_max = both(io_max, limits);
    }
    Fact::Known(Cgroup {
        path: Fact::Known(if path.is_empty() { "/" } else { path }.to_owned()),
        io_max,
    })
}

/// All limits of two groups that both apply; an absent limit is no limit, and an unknown one stays unknown.
fn both(one: Fact<Vec<IoMax>>, other: Fact<Vec<IoMax>>) -> Fact<Vec<IoMax>> {
    match (one, other) {
        (Fact::Known(mut one), Fact::Known(other)) => {
            one.extend(other);
            Fact::Known(one)
        }
        (unknown @ Fact::Unknown(_), _) | (_, unknown @ Fact::Unknown(_)) => unknown,
        (Fact::Known(one), Fact::Absent | Fact::NotCollected)
        | (Fact::Absent | Fact::NotCollected, Fact::Known(one)) => Fact::Known(one),
        (Fact::Absent | Fact::NotCollected, Fact::Absent | Fact::NotCollected) => Fact::Absent,
    }
}

/// Parses `8:16 rbps=2097152 wbps=max riops=max wiops=120`, with one line per device.
fn io_max_of(root: &Root, at: &str) -> Fact<Vec<IoMax>> {
    let file = format!("{at}/io.max");
    root.fact(&file, |text| text.lines().map(io_max_line).collect())
}

fn io_max_line(line: &str) -> Option<IoMax> {
    let mut words = line.split_whitespace();
    let mut limits = IoMax {
        dev: Fact::Known(DeviceNumber::parse(words.next()?)?),
        read_bytes: Fact::Absent,
        write_bytes: Fact::Absent,
        read_requests: Fact::Absent,
        write_requests: Fact::Absent,
    };
    for word in words {
        let (name, value) = word.split_once('=')?;
        let value = if value == "max" {
            Fact::Absent
        } else {
            Fact::Known(value.parse().ok()?)
        };
        match name {
            "rbps" => limits.read_bytes = value,
            "wbps" => limits.write_bytes = value,
            "riops" => limits.read_requests = value,
            "wiops" => limits.write_requests = value,
            // A newer kernel may have other limits.
            _ => {}
        }
    }
    Some(limits)
}

/// Reads version 1, which has a file for each kind of limit, with lines such as `8:16 2097152`.
fn throttles_of(root: &Root, at: &str) -> Fact<Vec<IoMax>> {
    type Which = fn(&mut IoMax) -> &mut Fact<u64>;
    let kinds: [(&str, Which); 4] = [
        ("read_bps_device", |limits| &mut limits.read_bytes),
        ("write_bps_device", |limits| &mut limits.write_bytes),
        ("read_iops_device", |limits| &mut limits.read_requests),
        ("write_iops_device", |limits| &mut limits.write_requests),
    ];
    let mut by_device: BTreeMap<DeviceNumber, IoMax> = BTreeMap::new();
    for (kind, which) in kinds {
        let file = format!("{at}/blkio.throttle.{kind}");
        let text = match root.text(&file) {
            Ok(text) => text,
            Err(error) if missing(&error) => return Fact::Absent,
            Err(error) => return Fact::Unknown(obstacle(&file, &error)),
        };
        for line in text.lines() {
            let parsed = line.split_once(' ').and_then(|(device, limit)| {
                Some((DeviceNumber::parse(device)?, limit.trim().parse().ok()?))
            });
            let Some((device, limit)) = parsed else {
                return Fact::Unknown(Unknown::new(Reason::Parse, format!("{file}: '{line}'")));
            };
            let limits = by_device.entry(device).or_insert_with(|| IoMax {
                dev: Fact::Known(device),
                read_bytes: Fact::Absent,
                write_bytes: Fact::Absent,
                read_requests: Fact::Absent,
                write_requests: Fact::Absent,
            });
            *which(limits) = Fact::Known(limit);
        }
    }
    Fact::Known(by_device.into_values().collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn tree(mounts: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, Cgroups) {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Root::new(directory.path());
        let cgroups = cgroups(&root, &MountTable::parse(mounts).0);
        (directory, cgroups)
    }

    #[test]
    fn limits_of_parent_groups_apply() {
        let (_directory, cgroups) = tree(
            "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            &[
                ("proc/self/cgroup", "0::/user.slice/a.scope\n"),
                (
                    "sys/fs/cgroup/user.slice/io.max",
                    "8:0 rbps=1000 wbps=max riops=max wiops=20\n",
                ),
                (
                    "sys/fs/cgroup/user.slice/a.scope/io.max",
                    "8:16 rbps=max wbps=7 riops=max wiops=max\n",
                ),
                ("sys/fs/cgroup/machine.slice/cgroup.procs", ""),
            ],
        );
        assert_eq!(cgroups.version, Fact::Known(2));
        let own = cgroups.own.known().unwrap();
        let limits = own.io_max.known().unwrap();
        assert_eq!(limits.len(), 2);
        assert_eq!(limits[0].write_bytes, Fact::Known(7));
        assert_eq!(limits[1].read_bytes, Fact::Known(1000));
        assert_eq!(limits[1].write_bytes, Fact::Absent);
        let machine = cgroups.machine.known().unwrap();
        assert_eq!(machine.io_max, Fact::Absent);
    }

    #[test]
    fn version_1_has_a_file_for_each_limit() {
        let throttle = "sys/fs/cgroup/blkio/machine.slice/blkio.throttle.";
        let path = |kind: &str| format!("{throttle}{kind}");
        let paths = [
            path("read_bps_device"),
            path("write_bps_device"),
            path("read_iops_device"),
            path("write_iops_device"),
        ];
        let (_directory, cgroups) = tree(
            "37 31 0:34 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            &[
                ("proc/self/cgroup", "7:blkio:/\n0::/x\n"),
                (&paths[0], "8:0 5\n"),
                (&paths[1], ""),
                (&paths[2], "8:0 6\n8:16 7\n"),
                (&paths[3], ""),
            ],
        );
        assert_eq!(cgroups.version, Fact::Known(1));
        assert_eq!(
            cgroups.own.known().unwrap().path,
            Fact::Known("/".to_owned())
        );
        let limits = cgroups.machine.known().unwrap().io_max.known().unwrap();
        assert_eq!(limits.len(), 2);
        assert_eq!(
            (
                limits[0].read_bytes.clone(),
                limits[0].read_requests.clone()
            ),
            (Fact::Known(5), Fact::Known(6))
        );
        assert_eq!(limits[1].read_bytes, Fact::Absent);
    }

    #[test]
    fn the_root_group_of_a_container_may_be_limited() {
        let (_directory, cgroups) = tree(
            "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            &[
                ("proc/self/cgroup", "0::/\n"),
                (
                    "sys/fs/cgroup/io.max",
                    "8:0 rbps=1000 wbps=max riops=max wiops=max\n",
                ),
            ],
        );
        let own = cgroups.own.known().unwrap();
        assert_eq!(own.io_max.known().unwrap().len(), 1);
    }

    #[test]
    fn without_control_groups_nothing_is_known() {
        let (_directory, cgroups) = tree("", &[]);
        assert!(cgroups.version.is_unknown() && cgroups.own.is_unknown());
    }

    #[test]
    fn a_missing_group_is_absent() {
        let (_directory, cgroups) = tree(
            "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            &[
                ("proc/self/cgroup", "0::/../outside\n"),
                ("sys/fs/cgroup/cgroup.procs", ""),
            ],
        );
        assert_eq!(cgroups.machine, Fact::Absent);
        assert!(cgroups.own.is_unknown(), "it is in another namespace");
    }
}
