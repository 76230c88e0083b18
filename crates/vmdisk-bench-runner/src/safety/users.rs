//! Users of a device: mounts, swap, processes and locks, by device number because a device has many paths.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use vmdisk_facts::DeviceNumber;
use vmdisk_facts::mount::unescaped;

use super::family::Family;
use super::node::{Node, number_of};
use super::refusal::{Check, Refusal, Refusals};

/// Refuses a family with a mounted member, in every mount table that is readable.
pub(crate) fn no_mounts(family: &Family, refusals: &mut Vec<Refusal>) {
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut own = false;
    for (process, folder) in processes() {
        // Each mount namespace has one table.
        let namespace = fs::read_link(folder.join("ns/mnt")).ok();
        if namespace.is_some() && !seen.insert(namespace) {
            continue;
        }
        let Ok(bytes) = fs::read(folder.join("mountinfo")) else {
            continue;
        };
        own |= process == std::process::id();
        let text = String::from_utf8_lossy(&bytes);
        for line in text.lines() {
            let mut words = line.split(' ').skip(2);
            let (Some(number), _root, Some(point)) = (
                words.next().and_then(DeviceNumber::parse),
                words.next(),
                words.next(),
            ) else {
                continue;
            };
            if family.members.contains_key(&number) {
                found.insert(unescaped(point));
            }
        }
    }
    // Our own mount table is among them, unless /proc is broken.
    if !own && fs::read("/proc/self/mountinfo").is_err() {
        refusals.refuse(
            Check::Mounts,
            "not checked: /proc/self/mountinfo cannot be read",
        );
    }
    if !found.is_empty() {
        let points: Vec<String> = found.into_iter().collect();
        refusals.refuse(
            Check::Mounts,
            format!("it is mounted at {}", points.join(", ")),
        );
    }
}

/// Refuses members of a mounted btrfs: the mount names only one member and has an anonymous device number.
pub(crate) fn no_btrfs(family: &Family, refusals: &mut Vec<Refusal>) {
    let Ok(entries) = fs::read_dir("/sys/fs/btrfs") else {
        // The kernel has no btrfs, so none is mounted.
        return;
    };
    for entry in entries.flatten() {
        let Ok(devices) = fs::read_dir(entry.path().join("devices")) else {
            continue;
        };
        for device in devices.flatten() {
            let number = fs::read_to_string(device.path().join("dev"))
                .ok()
                .and_then(|text| DeviceNumber::parse(&text));
            if number.is_some_and(|number| family.members.contains_key(&number)) {
                refusals.refuse(
                    Check::Btrfs,
                    format!(
                        "{} is a member of the btrfs {} that is mounted",
                        device.file_name().to_string_lossy(),
                        entry.file_name().to_string_lossy()
                    ),
                );
            }
        }
    }
}

/// Refuses swap space in use.
pub(crate) fn no_swap(family: &Family, refusals: &mut Vec<Refusal>) {
    match fs::read_to_string("/proc/swaps") {
        Ok(text) => {
            for line in text.lines().skip(1) {
                let Some(path) = line.split_whitespace().next() else {
                    continue;
                };
                let path = unescaped(path);
                let number = fs::metadata(&path)
                    .ok()
                    .filter(|metadata| metadata.file_type().is_block_device())
                    .map(|metadata| number_of(metadata.rdev()));
                if number.is_some_and(|number| family.members.contains_key(&number)) {
                    refusals.refuse(Check::Swap, format!("{path} is swap space in use"));
                }
            }
        }
        // A kernel without swap has no such file.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => refusals.not_checked(Check::Swap, "/proc/swaps", &error),
    }
}

/// Refuses devices that another process has open, by any path.
///
/// QEMU does not claim the devices it opens, and libvirt gives QEMU a private `/dev` with its own nodes. Locks on our
/// node do not show those: only the device numbers of open files do.
pub(crate) fn not_open(family: &Family, refusals: &mut Vec<Refusal>) {
    /// udev opens a device each time it is closed after writing.
    const ATTEMPTS: u32 = 5;
    let mut found = open_elsewhere(family);
    for _ in 1..ATTEMPTS {
        if found.users.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
        found = open_elsewhere(family);
    }
    let OpenElsewhere { users, unseen } = found;
    if !users.is_empty() {
        let users: Vec<String> = users.into_iter().collect();
        refusals.refuse(
            Check::OpenElsewhere,
            format!("{} has it open", users.join(", ")),
        );
    }
    if unseen > 0 {
        refusals.refuse(
            Check::OpenElsewhere,
            format!("not checked: the open files of {unseen} processes, which only root may read"),
        );
    }
}

/// The processes that have a device open.
struct OpenElsewhere {
    users: BTreeSet<String>,
    /// Number of processes whose open files are not readable.
    unseen: u32,
}

fn open_elsewhere(family: &Family) -> OpenElsewhere {
    let mut unseen = 0_u32;
    let mut users = BTreeSet::new();
    for (process, folder) in processes() {
        if process == std::process::id() {
            continue;
        }
        let descriptors = match fs::read_dir(folder.join("fd")) {
            Ok(descriptors) => descriptors,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                unseen += 1;
                continue;
            }
            // The process exited.
            Err(_) => continue,
        };
        for descriptor in descriptors.flatten() {
            let Ok(metadata) = fs::metadata(descriptor.path()) else {
                continue;
            };
            if metadata.file_type().is_block_device()
                && family.members.contains_key(&number_of(metadata.rdev()))
            {
                let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
                users.insert(format!("process {process} ({})", name.trim()));
            }
        }
    }
    OpenElsewhere { users, unseen }
}

/// Refuses devices with a lock, as QEMU takes from byte 100 for its image locking.
pub(crate) fn no_locks(node: &Node, refusals: &mut Vec<Refusal>) {
    let (metadata, text) = match (node.file().metadata(), fs::read_to_string("/proc/locks")) {
        (Ok(metadata), Ok(text)) => (metadata, text),
        (Err(error), _) | (_, Err(error)) => {
            refusals.not_checked(Check::Locks, "/proc/locks", &error);
            return;
        }
    };
    let file = (number_of(metadata.dev()), metadata.ino());
    if let Some(start) = lock_on(&text, file) {
        refusals.refuse(
            Check::Locks,
            format!("it is locked from byte {start}, as by a running QEMU"),
        );
    }
}

/// Returns the first byte of a lock on a file in `/proc/locks`.
///
/// `/proc/locks` names the device of the file system. Files on btrfs have the anonymous device of their subvolume,
/// and are matched by inode alone.
pub(super) fn lock_on(text: &str, (device, inode): (DeviceNumber, u64)) -> Option<&str> {
    text.lines()
        .filter_map(locked)
        .find_map(|(of, number, start)| {
            (number == inode && (of == device || device.major == 0)).then_some(start)
        })
}

/// Parses device, inode and first byte of a line in `/proc/locks`: `3: OFDLCK ADVISORY READ -1 00:06:1234 100 101`.
///
/// Locks of flock(2) do not count: udev locks every device it examines.
fn locked(line: &str) -> Option<(DeviceNumber, u64, &str)> {
    let mut words = line.split_whitespace().skip(1);
    if !matches!(words.next()?, "POSIX" | "OFDLCK") {
        return None;
    }
    let mut place = words.nth(3)?.split(':');
    let mut number = || u32::from_str_radix(place.next()?, 16).ok();
    let device = DeviceNumber {
        major: number()?,
        minor: number()?,
    };
    let inode: u64 = place.next()?.parse().ok()?;
    Some((device, inode, words.next()?))
}

/// Returns all processes with their directories in /proc.
pub(super) fn processes() -> impl Iterator<Item = (u32, std::path::PathBuf)> {
    fs::read_dir(Path::new("/proc"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_locks_count_and_whole_file_locks_do_not() {
        let device = DeviceNumber {
            major: 8,
            minor: 0x16,
        };
        let file = (device, 1234);
        for (line, start) in [
            (
                "3: OFDLCK ADVISORY  READ -1 08:16:1234 100 101",
                Some("100"),
            ),
            ("3: POSIX  ADVISORY  WRITE 77 08:16:1234 0 EOF", Some("0")),
            ("3: POSIX  ADVISORY  WRITE 77 08:16:1235 0 EOF", None),
            ("3: POSIX  ADVISORY  WRITE 77 00:10:1234 0 EOF", None),
            ("3: FLOCK  ADVISORY  READ 77 08:16:1234 0 EOF", None),
            ("3: -> OFDLCK ADVISORY READ -1 08:16:1234 100 101", None),
            ("3: OFDLCK ADVISORY  READ -1 00:16:1234 100 101", None),
            ("nonsense", None),
            ("", None),
        ] {
            assert_eq!(lock_on(line, file), start, "{line}");
        }
        let subvolume = DeviceNumber {
            major: 0,
            minor: 44,
        };
        let line = "3: OFDLCK ADVISORY  READ -1 00:1f:1234 100 101";
        assert_eq!(lock_on(line, (subvolume, 1234)), Some("100"));
        assert_eq!(lock_on(line, (subvolume, 1235)), None);
    }
}
