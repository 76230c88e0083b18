//! Configured users of a stack: a guest that is shut off holds nothing open, but would lose its data.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::open_file::OpenFile;
use super::refusal::{DeviceCheck, DeviceRefusal};
use super::stack::Stack;
use crate::places::POOLS;
use crate::timeout::within;

/// Directories of guests and storage pools, running or not.
const DEFINITIONS: &[&str] = &[
    "/etc/libvirt/qemu",
    POOLS,
    "/run/libvirt/qemu",
    "/etc/pve/qemu-server",
];

/// The directory of a user's own guests.
const OF_USER: &str = ".config/libvirt/qemu";

/// Tables that name devices of this host. Encryption without a header leaves no signature.
const TABLES: &[&str] = &["/etc/fstab", "/etc/crypttab"];

/// A name may lead to a server that does not answer.
const LIMIT: Duration = Duration::from_secs(10);

/// Refuses a stack with a member that a guest, a storage pool or a table of this host names.
pub(super) fn of(stack: &Stack, refusals: &mut Vec<DeviceRefusal>) {
    let stack = stack.clone();
    let found = within(LIMIT, move || {
        let mut found = Vec::new();
        let folders = DEFINITIONS.iter().map(PathBuf::from);
        for folder in folders.chain(homes().into_iter().map(|home| home.join(OF_USER))) {
            definitions(&folder, &stack, &mut found);
        }
        for table in TABLES {
            names(Path::new(table), &stack, &mut found);
        }
        found
    });
    refusals.extend(found.unwrap_or_else(|_| {
        let why = "a file that a guest names is on a server that does not answer";
        vec![DeviceRefusal::not_checked(DeviceCheck::Configured, why)]
    }));
}

/// Returns the home directories in the list of users.
fn homes() -> BTreeSet<PathBuf> {
    let text = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let homes = text.lines().filter_map(|line| line.split(':').nth(5));
    homes
        .filter(|home| home.starts_with('/') && home.len() > 1)
        .map(PathBuf::from)
        .collect()
}

fn definitions(folder: &Path, stack: &Stack, found: &mut Vec<DeviceRefusal>) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return;
        }
        Err(error) => {
            found.push(DeviceRefusal::unread(
                DeviceCheck::Configured,
                folder.display(),
                &error,
            ));
            return;
        }
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_definition = |extension: &std::ffi::OsStr| extension == "xml" || extension == "conf";
        if path.extension().is_some_and(is_definition) {
            names(&path, stack, found);
        }
    }
}

/// Refuses the members that a file names.
fn names(file: &Path, stack: &Stack, found: &mut Vec<DeviceRefusal>) {
    let text = match fs::read(file) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        Err(error) => {
            found.push(DeviceRefusal::unread(
                DeviceCheck::Configured,
                file.display(),
                &error,
            ));
            return;
        }
    };
    for path in paths(&text) {
        let named = OpenFile::of(Path::new(&path));
        if let Some(name) = named.ok().and_then(|named| stack.name_of(named)) {
            let found_at = format!("{} names {name} ({path})", file.display());
            found.push(DeviceRefusal::new(DeviceCheck::Configured, found_at));
        }
    }
}

/// Everything in a text that may be a path: whole quoted values, and the words in them. No syntax is read, because a
/// definition that cannot be read names its disks all the same.
fn paths(text: &str) -> BTreeSet<String> {
    let is_comment = |line: &&str| !line.trim_start().starts_with('#');
    let lines: Vec<&str> = text.lines().filter(is_comment).collect();
    let mut text = lines.join("\n");
    for (entity, letter) in [
        ("&apos;", "'"),
        ("&quot;", "\""),
        ("&lt;", "<"),
        ("&gt;", ">"),
    ] {
        text = text.replace(entity, letter);
    }
    let text = text.replace("&amp;", "&");
    let values = text.split(['\'', '"', '<', '>', '\n']);
    let words = values.flat_map(|value| {
        let words = value.split(|letter: char| letter.is_whitespace() || ",=;".contains(letter));
        words.chain([value])
    });
    let from_root = words.filter_map(|word| word.find('/').map(|at| word[at..].to_owned()));
    from_root.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_in_every_notation_of_a_guest() {
        let text = "# /dev/comment\n\
            <source dev='/dev/a b,c'/><source file=\"/srv/it&apos;s &amp; d\"/>\n\
            <qemu:arg value='file=/dev/e,if=virtio'/>\n\
            <qemu:arg value='{&quot;filename&quot;:&quot;/dev/f&quot;}'/>\n\
            <path>/dev/g</path>\n\
            scsi0: /dev/disk/by-path/pci-0000:00:1f.2-ata-1,size=1G\n\
            UUID=1 / ext4\n/dev/vg/b /srv xfs\nswap2 /dev/c /dev/urandom swap\n";
        let found = paths(text);
        for path in [
            "/dev/a b,c",
            "/srv/it",
            "/dev/e",
            "/dev/f",
            "/dev/g",
            "/dev/disk/by-path/pci-0000:00:1f.2-ata-1",
            "/dev/vg/b",
            "/dev/c",
        ] {
            assert!(found.contains(path), "{path}: {found:?}");
        }
        assert!(!found.contains("/dev/comment"));
    }

    #[test]
    fn the_definition_of_a_guest_that_is_shut_off_counts() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::write(at("disk.img"), "x").unwrap();
        std::os::unix::fs::symlink(at("disk.img"), at("by-id")).unwrap();
        fs::create_dir(at("qemu")).unwrap();
        let mut stack = Stack::default();
        stack.add_node(OpenFile::of(&at("disk.img")).unwrap());
        let found = |text: String| {
            fs::write(at("qemu/web.xml"), text).unwrap();
            let mut found = Vec::new();
            definitions(&at("qemu"), &stack, &mut found);
            found.len()
        };
        let named = |name: &str| format!("<domain><disk><source file='{}'/>", at(name).display());
        assert_eq!(found(named("disk.img")), 1, "the text is not well-formed");
        assert_eq!(found(named("by-id")), 1);
        assert_eq!(found(named("other.img")), 0);
        assert_eq!(found(String::new()), 0);
    }
}
