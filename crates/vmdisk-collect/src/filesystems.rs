//! Mounts and filesystems of the requested paths, as facts.

use std::collections::BTreeMap;
use std::path::Path;

use vmdisk_facts::filesystem::{Ext4, Overlay, Zfs};
use vmdisk_facts::{Fact, Filesystem, FsKind, Mount, OptionValue, Reason, Unknown, Version};

use crate::btrfs::Registry;
use crate::mountinfo::MountLine;
use crate::obstacle::{missing, obstacle};
use crate::record::Space;
use crate::root::Root;

/// Mount options that rules use on every filesystem.
const EVERYWHERE: [&str; 7] = [
    "noatime",
    "relatime",
    "strictatime",
    "discard",
    "sync",
    "barrier",
    "nobarrier",
];

/// Returns the mount options that rules use on one kind of filesystem. Other options are dropped: they may hold secrets.
fn of_kind(kind: &FsKind) -> &'static [&'static str] {
    match kind {
        FsKind::Ext2 | FsKind::Ext3 | FsKind::Ext4 => &["data", "commit", "nodelalloc", "dax"],
        FsKind::Xfs => &["dax", "allocsize", "largeio", "swalloc"],
        FsKind::Btrfs => &[
            "compress",
            "compress-force",
            "nodatasum",
            "nodatacow",
            "autodefrag",
            "flushoncommit",
            "degraded",
            "commit",
            "subvolid",
        ],
        FsKind::Nfs | FsKind::Nfs4 => &[
            "soft",
            "softerr",
            "hard",
            "vers",
            "proto",
            "nolock",
            "local_lock",
            "fsc",
            "timeo",
            "retrans",
            "rsize",
            "wsize",
            "nconnect",
            "noac",
        ],
        FsKind::Cifs => &[
            "soft", "hard", "vers", "cache", "nobrl", "rsize", "wsize", "actimeo",
        ],
        FsKind::Plan9 => &["cache", "directio", "trans"],
        FsKind::Tmpfs => &["size", "huge", "noswap"],
        FsKind::Overlay => &["volatile", "fsync", "metacopy"],
        FsKind::F2fs => &["mode", "compress_algorithm"],
        FsKind::Fuse(_) => &["allow_other", "default_permissions", "max_read", "blksize"],
        FsKind::Virtiofs => &["dax"],
        _ => &[],
    }
}

/// Returns true for mounts that may hold disks; container mounts are included only if a requested path is on them.
pub(crate) fn is_of_interest(line: &MountLine) -> bool {
    const NO_DISKS: [&str; 26] = [
        "autofs",
        "binfmt_misc",
        "bpf",
        "cgroup",
        "cgroup2",
        "configfs",
        "debugfs",
        "devpts",
        "devtmpfs",
        "efivarfs",
        "fusectl",
        "hugetlbfs",
        "mqueue",
        "nsfs",
        "pipefs",
        "proc",
        "pstore",
        "ramfs",
        "resctrl",
        "rpc_pipefs",
        "securityfs",
        "selinuxfs",
        "sockfs",
        "sysfs",
        "tracefs",
        "fuse.lxcfs",
    ];
    const PASSING: [&str; 12] = [
        "/proc",
        "/sys",
        "/dev",
        "/run/user",
        "/run/credentials",
        "/run/netns",
        "/run/docker",
        "/run/containerd",
        "/var/lib/docker",
        "/var/lib/containers",
        "/var/lib/containerd",
        "/snap",
    ];
    !NO_DISKS.contains(&line.fstype.as_str())
        && !PASSING
            .iter()
            .any(|prefix| Path::new(&line.point).starts_with(prefix))
}

/// Converts one mount to facts, without the reference to its filesystem.
pub(crate) fn mount(line: &MountLine) -> Mount {
    let kind = FsKind::from(line.fstype.as_str());
    let mut options: BTreeMap<String, Fact<OptionValue>> = EVERYWHERE
        .iter()
        .chain(of_kind(&kind))
        .map(|name| ((*name).to_owned(), Fact::Absent))
        .collect();
    for (name, value) in &line.options {
        if let Some(option) = options.get_mut(name) {
            *option = Fact::Known(match value {
                Some(text) => OptionValue::Text(text.clone()),
                None => OptionValue::Flag(true),
            });
        }
    }
    // Either the mount or the filesystem can be read-only.
    let read_only = line.options.iter().any(|(name, _)| name == "ro");
    let set = |is: bool| {
        if is {
            Fact::Known(OptionValue::Flag(true))
        } else {
            Fact::Absent
        }
    };
    options.insert("ro".to_owned(), set(read_only));
    options.insert("rw".to_owned(), set(!read_only));
    Mount {
        id: String::new(),
        point: line.point.clone(),
        fstype: Fact::Known(line.fstype.clone()),
        source: if line.source.is_empty() {
            Fact::Absent
        } else {
            Fact::Known(without_user(&line.source))
        },
        fs: Fact::NotCollected,
        options,
    }
}

/// Removes user and password from a network source, where some mount helpers leave them.
fn without_user(source: &str) -> String {
    match (source.find("://"), source.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => {
            format!("{}{}", &source[..scheme + 3], &source[at + 1..])
        }
        _ => source.to_owned(),
    }
}

/// The storage of a filesystem.
pub(crate) enum Under {
    /// Block devices, by kernel name.
    Devices(Vec<String>),
    /// No block device.
    Nothing,
    /// Not known.
    Unknown(Unknown),
}

/// Converts one filesystem to facts, without its id and the ids of its devices.
pub(crate) fn filesystem(
    root: &Root,
    registry: &Registry,
    line: &MountLine,
    space: &Fact<Space>,
) -> Filesystem {
    let kind = FsKind::from(line.fstype.as_str());
    let btrfs = if kind == FsKind::Btrfs {
        match registry.uuid_of_source(root, &line.source) {
            Some(uuid) => Fact::Known(registry.facts(root, uuid)),
            None => Fact::Unknown(no_such_btrfs(line)),
        }
    } else {
        Fact::Absent
    };
    let ext4 = if matches!(kind, FsKind::Ext3 | FsKind::Ext4) {
        Fact::Known(Ext4 {
            data_mode: data_mode(root, line),
        })
    } else {
        Fact::Absent
    };
    let overlay = if kind == FsKind::Overlay {
        Fact::Known(overlay(line))
    } else {
        Fact::Absent
    };
    // sysfs has only the version; dataset properties need ZFS's tools.
    let zfs = if kind == FsKind::Zfs {
        let path = "/sys/module/zfs/version";
        Fact::Known(Zfs {
            dataset: Fact::Known(line.source.clone()),
            version: root.fact(path, Version::leading),
            ..Zfs::default()
        })
    } else {
        Fact::Absent
    };
    Filesystem {
        id: String::new(),
        kind,
        magic: space.as_ref().map(|space| format!("{:#x}", space.magic)),
        free_bytes: space.as_ref().map(|space| space.free),
        total_bytes: space.as_ref().map(|space| space.total),
        devices: Fact::NotCollected,
        btrfs,
        ext4,
        zfs,
        overlay,
    }
}

fn no_such_btrfs(line: &MountLine) -> Unknown {
    Unknown::new(
        Reason::Namespace,
        format!("no btrfs in /sys/fs/btrfs has the device {}", line.source),
    )
}

/// Returns the data journaling mode of ext3 and ext4.
///
/// mountinfo omits the mode if it is the filesystem's default (`tune2fs -o journal_data`); procfs always shows it.
fn data_mode(root: &Root, line: &MountLine) -> Fact<String> {
    let device = root.resolve(Path::new(&format!("/sys/dev/block/{}", line.device)));
    let name = device
        .ok()
        .and_then(|real| real.file_name()?.to_str().map(str::to_owned));
    // The ext4 driver also serves ext3, under the name ext4.
    let shown = name.map(|name| root.text(format!("/proc/fs/ext4/{name}/options")));
    if let Some(Ok(text)) = shown {
        let mode = text
            .lines()
            .find_map(|option| option.trim().strip_prefix("data="));
        // Without a journal there is no mode.
        return mode.map_or(Fact::Absent, |mode| Fact::Known(mode.to_owned()));
    }
    let mounted = line
        .options
        .iter()
        .find(|(name, _)| name == "data")
        .and_then(|(_, value)| value.clone());
    match mounted {
        Some(mode) => Fact::Known(mode),
        None => Fact::unknown(
            Reason::UnsupportedKernel,
            format!("{}: /proc/fs/ext4 does not show the data mode", line.point),
        ),
    }
}

fn overlay(line: &MountLine) -> Overlay {
    let option = |wanted: &str| {
        line.options
            .iter()
            .find(|(name, _)| name == wanted)
            .and_then(|(_, value)| value.clone())
    };
    let lower: Vec<String> = match option("lowerdir") {
        Some(all) => all.split(':').map(str::to_owned).collect(),
        // Since Linux 6.8 each lower directory may have a separate option.
        None => line
            .options
            .iter()
            .filter(|(name, _)| name == "lowerdir+")
            .filter_map(|(_, value)| value.clone())
            .collect(),
    };
    Overlay {
        upper: option("upperdir").map_or(Fact::Absent, Fact::Known),
        lower: Fact::Known(lower),
    }
}

/// Returns the block devices of a mount without opening them.
pub(crate) fn under(root: &Root, registry: &Registry, line: &MountLine) -> Under {
    if line.device.major != 0 {
        let link = format!("/sys/dev/block/{}", line.device);
        return match root.resolve(Path::new(&link)) {
            Ok(real) => match real.file_name().and_then(|name| name.to_str()) {
                Some(name) => Under::Devices(vec![name.to_owned()]),
                None => Under::Unknown(Unknown::new(Reason::Parse, link)),
            },
            Err(error) if missing(&error) => Under::Unknown(Unknown::new(
                Reason::Namespace,
                format!("{link} does not exist"),
            )),
            Err(error) => Under::Unknown(obstacle(&link, &error)),
        };
    }
    if line.fstype == "btrfs" {
        return match registry.devices_of_source(root, &line.source) {
            Some(members) => Under::Devices(members.to_vec()),
            None => Under::Unknown(Unknown::new(
                Reason::Namespace,
                format!("no btrfs in /sys/fs/btrfs has the device {}", line.source),
            )),
        };
    }
    if line.fstype == "zfs" || line.fstype == "bcachefs" {
        return Under::Unknown(Unknown::new(
            Reason::ToolMissing,
            format!(
                "only the filesystem's tools can list the devices of {}",
                line.fstype
            ),
        ));
    }
    Under::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mountinfo::MountTable;

    fn line(text: &str) -> MountLine {
        MountTable::parse(text).0.lines.remove(0)
    }

    #[test]
    fn only_options_used_by_rules_are_kept() {
        let mount = mount(&line(
            "9 1 0:50 / /m ro,noatime - cifs //user@server/share rw,soft,username=joe,password=x,cache=none",
        ));
        assert!(mount.has_option("noatime").is_true());
        assert!(mount.has_option("soft").is_true());
        assert_eq!(mount.has_option("hard"), Fact::Known(false));
        assert!(mount.option("cache").known().unwrap().is_text("none"));
        assert!(
            !mount
                .options
                .keys()
                .any(|name| name.contains("user") || name.contains("pass"))
        );
        assert_eq!(
            mount.read_only(),
            Fact::Known(true),
            "either of the two is enough"
        );
    }

    #[test]
    fn a_user_in_the_source_is_dropped() {
        assert_eq!(
            without_user("https://joe:secret@host/dav"),
            "https://host/dav"
        );
        assert_eq!(without_user("/dev/mapper/a@b"), "/dev/mapper/a@b");
        assert_eq!(without_user("server:/export"), "server:/export");
    }

    #[test]
    fn an_overlay_names_its_directories() {
        let overlay = overlay(&line(
            "9 1 0:50 / /m rw - overlay none rw,lowerdir=/l1:/l2,upperdir=/up,workdir=/w",
        ));
        assert_eq!(overlay.upper, Fact::Known("/up".to_owned()));
        assert_eq!(
            overlay.lower,
            Fact::Known(vec!["/l1".to_owned(), "/l2".to_owned()])
        );
    }

    #[test]
    fn container_mounts_are_left_out() {
        assert!(is_of_interest(&line(
            "9 1 8:1 / /srv rw - ext4 /dev/sda1 rw"
        )));
        assert!(!is_of_interest(&line(
            "9 1 0:50 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw"
        )));
        assert!(!is_of_interest(&line(
            "9 1 0:22 / /sys rw - sysfs sysfs rw"
        )));
        assert!(is_of_interest(&line(
            "9 1 0:50 / /system rw - tmpfs tmpfs rw"
        )));
    }
}
