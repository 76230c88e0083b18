//! Who would use a device if it were running: guests that are shut off hold nothing and lose everything.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::family::Family;
use super::node::{number_of, plain};
use super::refusal::{Check, Refusal};

/// Where libvirt keeps the guests of the system, running or not.
const GUESTS: &[&str] = &["/etc/libvirt/qemu", "/run/libvirt/qemu"];

/// Tables whose words are devices of this host. Encryption without a header has no signature to be found by.
const TABLES: &[&str] = &["/etc/fstab", "/etc/crypttab"];

/// Refuses devices that a guest of libvirt or a table of this host names.
pub(crate) fn not_configured(family: &Family, refusals: &mut Vec<Refusal>) {
    let mut guests = folders(GUESTS.iter().map(PathBuf::from));
    // Guests of users have their files in the users' homes.
    for home in homes() {
        guests.extend(folders([home.join(".config/libvirt/qemu")].into_iter()));
    }
    for folder in guests {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => {
                refusals.push(Refusal::new(
                    Check::Configured,
                    format!("not checked: {}: {}", folder.display(), plain(&error)),
                ));
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
                refusals.push(Refusal::new(
                    Check::Configured,
                    format!("{table} names {word}"),
                ));
            }
        }
    }
}

fn folders(folders: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    folders.filter(|folder| folder.is_dir()).collect()
}

/// The homes of users, by the system's list of them.
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

/// Refuses what one guest names: the images of its disks, and anything else in its text that is this device.
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
            // The state of a running guest has another root, and its QEMU is found by what it has open.
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
                refusals.push(Refusal::new(
                    Check::Configured,
                    format!(
                        "the guest of {} uses it as {} ({host_path})",
                        path.display(),
                        disk.name()
                    ),
                ));
            }
        }
    }
}

/// The first two words of each line that says anything.
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
    fn only_words_that_can_be_devices_are_looked_at() {
        let table =
            "# /dev/a\nUUID=1 / ext4\n/dev/vg/b /srv xfs /dev/no\nswap2 /dev/c /dev/urandom swap\n";
        assert_eq!(words(table).collect::<Vec<_>>(), ["/dev/vg/b", "/dev/c"]);
    }
}
