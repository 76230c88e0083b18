//! Users of a stack: mounts, swap, processes and locks.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use vmdisk_facts::DeviceNumber;
use vmdisk_facts::mount::unescaped;

use super::open_file::{OpenFile, number_of};
use super::refusal::{DeviceCheck, DeviceRefusal};
use super::stack::Stack;

/// Refuses a stack with a mounted member, in the mount table of every process.
pub(super) fn mounts(stack: &Stack, refusals: &mut Vec<DeviceRefusal>) {
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut is_own_read = false;
    for (process, folder) in all_processes() {
        // Each mount namespace has one table.
        let namespace = fs::read_link(folder.join("ns/mnt")).ok();
        if namespace.is_some() && !seen.insert(namespace) {
            continue;
        }
        let Ok(bytes) = fs::read(folder.join("mountinfo")) else {
            continue;
        };
        is_own_read |= process == std::process::id();
        found.extend(mounted(stack, &String::from_utf8_lossy(&bytes)));
    }
    // Our own mount table is among them, unless /proc is broken.
    if !is_own_read && let Err(error) = fs::read("/proc/self/mountinfo") {
        refusals.push(DeviceRefusal::unread(
            DeviceCheck::Mounts,
            "/proc/self/mountinfo",
            &error,
        ));
    }
    refusals.extend(
        found
            .into_iter()
            .map(|found| DeviceRefusal::new(DeviceCheck::Mounts, found)),
    );
}

fn mounted(stack: &Stack, table: &str) -> impl Iterator<Item = String> {
    table.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(2);
        let number = DeviceNumber::parse(words.next()?)?;
        let (_root, point) = (words.next()?, words.next()?);
        let name = stack.device(number)?;
        Some(format!("{name} is mounted at {}", unescaped(point)))
    })
}

/// Refuses members of a mounted btrfs: the mount names only one member and has an anonymous device number.
pub(super) fn btrfs(stack: &Stack, refusals: &mut Vec<DeviceRefusal>) {
    // Without the directory, the kernel has no btrfs.
    for file_system in fs::read_dir("/sys/fs/btrfs")
        .into_iter()
        .flatten()
        .flatten()
    {
        let devices = fs::read_dir(file_system.path().join("devices"));
        for device in devices.into_iter().flatten().flatten() {
            let number = fs::read_to_string(device.path().join("dev")).ok();
            let number = number.and_then(|text| DeviceNumber::parse(&text));
            if let Some(name) = number.and_then(|number| stack.device(number)) {
                let id = file_system.file_name();
                let id = id.to_string_lossy();
                let found = format!("{name} is a member of the btrfs {id} that is mounted");
                refusals.push(DeviceRefusal::new(DeviceCheck::Btrfs, found));
            }
        }
    }
}

/// Refuses swap space in use.
pub(super) fn swap(stack: &Stack, refusals: &mut Vec<DeviceRefusal>) {
    match fs::read_to_string("/proc/swaps") {
        Ok(text) => {
            let paths = text
                .lines()
                .skip(1)
                .filter_map(|line| line.split_whitespace().next());
            for path in paths.map(unescaped) {
                let file = OpenFile::of(Path::new(&path));
                if file.is_ok_and(|file| stack.name_of(file).is_some()) {
                    let found = format!("{path} is swap space in use");
                    refusals.push(DeviceRefusal::new(DeviceCheck::Swap, found));
                }
            }
        }
        // A kernel without swap has no such file.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => refusals.push(DeviceRefusal::unread(
            DeviceCheck::Swap,
            "/proc/swaps",
            &error,
        )),
    }
}

/// Refuses members that another process has open, by any path.
///
/// QEMU does not claim the devices it opens, and libvirt gives QEMU a private `/dev` with its own nodes. Locks on our
/// node do not show those: only the device numbers of open files do.
pub(super) fn processes(stack: &Stack, refusals: &mut Vec<DeviceRefusal>) {
    /// udev opens a device each time it is closed after writing.
    const ATTEMPTS: u32 = 5;
    let mut found = open_elsewhere(stack);
    for _ in 1..ATTEMPTS {
        if found.users.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
        found = open_elsewhere(stack);
    }
    let OpenElsewhere { users, unseen } = found;
    let users = users.into_iter();
    refusals.extend(users.map(|found| DeviceRefusal::new(DeviceCheck::OpenElsewhere, found)));
    if unseen > 0 {
        let why = format!("the open files of {unseen} processes, which only root may read");
        refusals.push(DeviceRefusal::not_checked(DeviceCheck::OpenElsewhere, why));
    }
}

/// The processes that have a member open.
struct OpenElsewhere {
    users: BTreeSet<String>,
    /// Number of processes whose open files are not readable.
    unseen: u32,
}

fn open_elsewhere(stack: &Stack) -> OpenElsewhere {
    let mut unseen = 0_u32;
    let mut users = BTreeSet::new();
    for (process, folder) in all_processes() {
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
            let Ok(file) = OpenFile::of(&descriptor.path()) else {
                continue;
            };
            let Some(name) = stack.name_of(file) else {
                continue;
            };
            let program = fs::read_to_string(folder.join("comm")).unwrap_or_default();
            let program = program.trim();
            // It watches the paths of a map.
            if program != "multipathd" || !stack.is_below(file) {
                users.insert(format!("process {process} ({program}) has {name} open"));
            }
        }
    }
    OpenElsewhere { users, unseen }
}

/// Refuses members with a lock, as QEMU takes from byte 100 for its image locking.
pub(super) fn locks(stack: &Stack, refusals: &mut Vec<DeviceRefusal>) {
    let text = match fs::read_to_string("/proc/locks") {
        Ok(text) => text,
        Err(error) => {
            refusals.push(DeviceRefusal::unread(
                DeviceCheck::Locks,
                "/proc/locks",
                &error,
            ));
            return;
        }
    };
    for (file, name) in stack.members() {
        let file = match file {
            OpenFile::Other(device, inode) => Some((device, inode)),
            OpenFile::Device(_) => {
                let node = Path::new("/dev").join(name.replace('!', "/"));
                let node = fs::metadata(node).ok();
                node.map(|node| (number_of(node.dev()), node.ino()))
            }
        };
        if let Some(start) = file.and_then(|file| lock_on(&text, file)) {
            let found = format!("{name} is locked from byte {start}, as by a running QEMU");
            refusals.push(DeviceRefusal::new(DeviceCheck::Locks, found));
        }
    }
}

/// Returns the first byte of a lock on a file in `/proc/locks`.
///
/// `/proc/locks` names the device of the file system. Files on btrfs have the anonymous device of their subvolume,
/// and are matched by inode alone.
fn lock_on(text: &str, (device, inode): (DeviceNumber, u64)) -> Option<&str> {
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
fn all_processes() -> impl Iterator<Item = (u32, PathBuf)> {
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

    #[test]
    fn a_mount_is_found_by_the_number_of_its_device() {
        let root = tempfile::tempdir().unwrap();
        let device = root.path().join("sdz");
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("dev"), "8:400\n").unwrap();
        let stack = Stack::of(root.path(), &device, &mut Vec::new());
        let table =
            "22 1 8:400 / /srv/a\\040b rw - xfs /dev/x rw\n23 1 8:401 / /b rw - xfs /dev/sdz rw\n";
        let found: Vec<String> = mounted(&stack, table).collect();
        assert_eq!(found, ["sdz is mounted at /srv/a b"]);
    }
}
