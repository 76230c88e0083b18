//! The file of a loop device: users of the file use the device, but the kernel does not connect the two.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::node::{Node, number_of};
use super::refusal::{Check, Refusal, Refusals};
use super::users::{lock_on, processes};

/// Device and inode of a file.
type FileId = (u64, u64);

/// Refuses a loop device whose file a process has open or locked, or that has another loop device.
pub(crate) fn no_file_users(node: &Node, refusals: &mut Vec<Refusal>) {
    let Ok(text) = fs::read_to_string(node.sysfs.join("loop/backing_file")) else {
        // Not a loop device, or a loop device without a file, which holds no data.
        return;
    };
    let path = PathBuf::from(text.trim_end_matches('\n'));
    let metadata = match fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) => {
            refusals.not_checked(Check::LoopFile, path.display(), &error);
            return;
        }
    };
    if metadata.file_type().is_block_device() {
        refusals.refuse(
            Check::LoopFile,
            format!(
                "it is a loop device over the block device {}; use that device instead",
                path.display()
            ),
        );
        return;
    }
    let id = (metadata.dev(), metadata.ino());
    let mut found = Vec::new();
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    if let Some(start) = lock_on(&locks, (number_of(id.0), id.1)) {
        found.push(format!(
            "{} is locked from byte {start}, as by a running QEMU",
            path.display()
        ));
    }
    found.extend(open_in_processes(id).map(|user| format!("{user} has {} open", path.display())));
    let aliases = aliases(Path::new("/sys/block"), node.kernel_name(), id);
    found.extend(aliases.map(|name| format!("{name} is a loop device over the same file")));
    refusals.extend(
        found
            .into_iter()
            .map(|found| Refusal::new(Check::LoopFile, found)),
    );
}

/// Returns true if a loop device uses the page cache of the host, so that measurements show memory.
pub(crate) fn is_buffered(sysfs: &Path) -> bool {
    fs::read_to_string(sysfs.join("loop/dio")).is_ok_and(|text| text.trim() == "0")
}

fn open_in_processes(id: FileId) -> impl Iterator<Item = String> {
    let others = processes().filter(|(process, _)| *process != std::process::id());
    others.filter_map(move |(process, folder)| {
        let descriptors = fs::read_dir(folder.join("fd")).ok()?;
        let has_it = descriptors
            .flatten()
            .filter_map(|descriptor| fs::metadata(descriptor.path()).ok())
            .any(|metadata| (metadata.dev(), metadata.ino()) == id);
        let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
        has_it.then(|| format!("process {process} ({})", name.trim()))
    })
}

/// Returns the names of other loop devices over the same file.
fn aliases(blocks: &Path, own: String, id: FileId) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(blocks).into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let text = fs::read_to_string(entry.path().join("loop/backing_file")).ok()?;
        let metadata = fs::metadata(text.trim_end_matches('\n')).ok()?;
        (name != own && (metadata.dev(), metadata.ino()) == id).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_device_over_the_same_file_is_found_by_any_path() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("disk.img");
        fs::write(&file, "x").unwrap();
        let link = root.path().join("link.img");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let blocks = root.path().join("block");
        for (name, path) in [
            ("loop1", &file),
            ("loop2", &link),
            ("loop3", &root.path().join("no")),
        ] {
            let folder = blocks.join(name).join("loop");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("backing_file"), format!("{}\n", path.display())).unwrap();
        }
        let metadata = fs::metadata(&file).unwrap();
        let found: Vec<String> = aliases(
            &blocks,
            "loop1".to_owned(),
            (metadata.dev(), metadata.ino()),
        )
        .collect();
        assert_eq!(found, ["loop2"]);
    }

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
}
