//! Configured users of a device: a guest that is shut off holds nothing open, but would lose its data.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::family::Family;
use super::node::number_of;
use super::refusal::{Check, Refusal, Refusals, plain};

/// Directories of libvirt's system guests, running or not.
const GUESTS: &[&str] = &["/etc/libvirt/qemu", "/run/libvirt/qemu"];

/// Tables that name devices of this host. Encryption without a header leaves no signature.
const TABLES: &[&str] = &["/etc/fstab", "/etc/crypttab"];

/// Refuses devices that a libvirt guest or a table of this host names.
pub(crate) fn not_configured(family: &Family, refusals: &mut Vec<Refusal>) {
    let mut guests = folders(GUESTS.iter().map(PathBuf::from));
    // Session guests are in the users' home directories.
    for home in homes() {
        guests.extend(folders([home.join(".config/libvirt/qemu")].into_iter()));
    }
    for folder in guests {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => {
                refusals.not_checked(Check::Configured, folder.display(), &error);
                continue;
            }
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "xml") {
                guest(&path, family, refusals);
            }
        }
    }
    for table in TABLES {
        let Ok(text) = fs::read_to_string(table) else {
            continue;
        };
        for word in words(&text) {
            if is_of(word, family) {
                refusals.refuse(Check::Configured, format!("{table} names {word}"));
            }
        }
    }
}

fn folders(folders: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    folders.filter(|folder| folder.is_dir()).collect()
}

/// Returns the home directories in the list of users.
fn homes() -> Vec<PathBuf> {
    let text = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut homes: Vec<PathBuf> = text
        .lines()
        .filter_map(|line| line.split(':').nth(5))
        .filter(|home| home.starts_with('/') && home.len() > 1)
        .map(PathBuf::from)
        .collect();
    homes.sort();
    homes.dedup();
    homes
}

/// Refuses devices named by one guest: the images of its disks, and anything else in its XML.
fn guest(path: &Path, family: &Family, refusals: &mut Vec<Refusal>) {
    let not_checked = |why: String| {
        Refusal::new(
            Check::Configured,
            format!("not checked: {}: {why}", path.display()),
        )
    };
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            refusals.push(not_checked(plain(&error)));
            return;
        }
    };
    let document = match vmdisk_libvirt::read_bytes(&bytes) {
        Ok(document) => document,
        Err(failure) => {
            // The state of a running guest has another root element; its QEMU is found by its open files.
            if !path.starts_with("/run") {
                refusals.push(not_checked(failure.to_string()));
            }
            return;
        }
    };
    let images = document
        .domain
        .disks
        .iter()
        .filter_map(|disk| Some((disk, disk.backend.image()?)));
    for (disk, image) in images {
        for image in image.chain() {
            if let Some(host_path) = image.host_path().filter(|path| is_of(path, family)) {
                refusals.refuse(
                    Check::Configured,
                    format!(
                        "the guest of {} uses it as {} ({host_path})",
                        path.display(),
                        disk.name()
                    ),
                );
            }
        }
    }
}

/// Returns the first two words of each line, without comments.
fn words(table: &str) -> impl Iterator<Item = &str> {
    table
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(|line| line.split_whitespace().take(2))
        .filter(|word| word.starts_with("/dev/"))
}

fn is_of(path: &str, family: &Family) -> bool {
    fs::metadata(path).is_ok_and(|metadata| {
        metadata.file_type().is_block_device()
            && family.members.contains_key(&number_of(metadata.rdev()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_can_be_devices_are_checked() {
        let table =
            "# /dev/a\nUUID=1 / ext4\n/dev/vg/b /srv xfs /dev/no\nswap2 /dev/c /dev/urandom swap\n";
        assert_eq!(words(table).collect::<Vec<_>>(), ["/dev/vg/b", "/dev/c"]);
    }
}
