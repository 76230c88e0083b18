//! The devices and files that have bytes in common with a device: its partitions, what is built on it, and what is
//! below it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use vmdisk_facts::DeviceNumber;

use super::open_file::OpenFile;
use super::refusal::{DeviceCheck, DeviceRefusal};

/// A device, everything above it and everything below it, with the kernel's names.
#[derive(Clone, Debug, Default)]
pub(super) struct Stack {
    members: BTreeMap<OpenFile, String>,
    /// The devices that are not the device itself but below it.
    below: Vec<DeviceNumber>,
}

impl Stack {
    /// Collects the stack of a device, and refuses partitions, holders, and read-only devices.
    pub(super) fn of(sys: &Path, device: &Path, refusals: &mut Vec<DeviceRefusal>) -> Self {
        match fs::read_to_string(device.join("ro")) {
            Ok(text) if text.trim() == "0" => {}
            Ok(_) => refusals.push(DeviceRefusal::new(
                DeviceCheck::Writable,
                "the device is read-only",
            )),
            Err(error) => refusals.push(DeviceRefusal::unread(DeviceCheck::Writable, "ro", &error)),
        }
        let mut walk = Walk {
            sys,
            refusals,
            stack: Self::default(),
        };
        walk.insert(device);
        walk.above(device);
        walk.below(device);
        walk.stack
    }

    /// The name of a member that a path or an open descriptor leads to.
    pub(super) fn name_of(&self, file: OpenFile) -> Option<&str> {
        self.members.get(&file).map(String::as_str)
    }

    /// The name of a member.
    pub(super) fn device(&self, number: DeviceNumber) -> Option<&str> {
        self.name_of(OpenFile::Device(number))
    }

    pub(super) fn members(&self) -> impl Iterator<Item = (OpenFile, &str)> {
        self.members
            .iter()
            .map(|(file, name)| (*file, name.as_str()))
    }

    pub(super) fn is_below(&self, file: OpenFile) -> bool {
        self.below.iter().any(|it| OpenFile::Device(*it) == file)
    }

    /// Adds a node of the device; locks are on nodes.
    pub(super) fn add_node(&mut self, node: OpenFile) {
        self.members.insert(node, "it".to_owned());
    }

    /// Leaves out a device, which this process itself uses.
    pub(super) fn ignore(&mut self, number: DeviceNumber) {
        self.members.remove(&OpenFile::Device(number));
    }
}

struct Walk<'a> {
    sys: &'a Path,
    refusals: &'a mut Vec<DeviceRefusal>,
    stack: Stack,
}

impl Walk<'_> {
    /// Adds a device; `None` if it is known, or was removed meanwhile.
    fn insert(&mut self, sysfs: &Path) -> Option<(PathBuf, DeviceNumber, String)> {
        let real = fs::canonicalize(sysfs).ok()?;
        let number = DeviceNumber::parse(&fs::read_to_string(real.join("dev")).ok()?)?;
        let name = real.file_name()?.to_string_lossy().into_owned();
        let old = self
            .stack
            .members
            .insert(OpenFile::Device(number), name.clone());
        old.is_none().then_some((real, number, name))
    }

    fn entries(&mut self, directory: PathBuf, check: DeviceCheck) -> Vec<PathBuf> {
        match fs::read_dir(&directory) {
            Ok(entries) => {
                let mut paths: Vec<PathBuf> = entries.flatten().map(|it| it.path()).collect();
                paths.sort();
                paths
            }
            // A partition has no slaves, and some devices have no holders.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                let what = directory.display();
                self.refusals
                    .push(DeviceRefusal::unread(check, what, &error));
                Vec::new()
            }
        }
    }

    /// Adds partitions and holders, and refuses each.
    fn above(&mut self, sysfs: &Path) {
        for entry in self.entries(sysfs.to_owned(), DeviceCheck::Partitions) {
            if entry.join("partition").exists() {
                self.is_above(&entry, DeviceCheck::Partitions, "is a partition of it");
            }
        }
        for entry in self.entries(sysfs.join("holders"), DeviceCheck::Holders) {
            self.is_above(&entry, DeviceCheck::Holders, "is built on it");
        }
    }

    fn is_above(&mut self, sysfs: &Path, check: DeviceCheck, what: &str) {
        let name = sysfs.file_name().unwrap_or_default().to_string_lossy();
        self.refusals
            .push(DeviceRefusal::new(check, format!("{name} {what}")));
        if let Some((real, ..)) = self.insert(sysfs) {
            self.above(&real);
        }
    }

    /// Adds the disk of a partition, the devices that a device is made of, and the file of a loop device. Other devices
    /// made of them, such as other partitions of the disk, have other bytes.
    fn below(&mut self, sysfs: &Path) {
        if sysfs.join("partition").exists()
            && let Some(disk) = sysfs.parent()
        {
            for entry in self.entries(disk.join("holders"), DeviceCheck::Holders) {
                let holder = entry.file_name().unwrap_or_default().to_string_lossy();
                let found = format!("{holder} is built on its whole disk");
                self.refusals
                    .push(DeviceRefusal::new(DeviceCheck::Holders, found));
            }
            self.is_below(disk);
        }
        for entry in self.entries(sysfs.join("slaves"), DeviceCheck::Holders) {
            self.is_below(&entry);
        }
        if let Ok(text) = fs::read_to_string(sysfs.join("loop/backing_file")) {
            self.loop_file(Path::new(text.trim_end_matches('\n')));
        }
    }

    fn is_below(&mut self, sysfs: &Path) -> Option<PathBuf> {
        let (real, number, _) = self.insert(sysfs)?;
        self.stack.below.push(number);
        self.below(&real);
        Some(real)
    }

    /// Adds the file of a loop device, and other loop devices over it: the kernel does not connect them.
    fn loop_file(&mut self, path: &Path) {
        let file = match OpenFile::of(path) {
            Ok(file) => file,
            Err(error) => {
                let refusal = DeviceRefusal::unread(DeviceCheck::Holders, path.display(), &error);
                self.refusals.push(refusal);
                return;
            }
        };
        match file {
            OpenFile::Device(number) => {
                let sysfs = self.sys.join("dev/block").join(number.to_string());
                // All of it has the same bytes.
                if let Some(real) = self.is_below(&sysfs) {
                    self.above(&real);
                }
            }
            OpenFile::Other(..) => {
                let name = path.display().to_string();
                self.stack.members.insert(file, name);
            }
        }
        for other in self.entries(self.sys.join("block"), DeviceCheck::Holders) {
            let is_same = fs::read_to_string(other.join("loop/backing_file"))
                .ok()
                .and_then(|text| OpenFile::of(Path::new(text.trim_end_matches('\n'))).ok())
                .is_some_and(|it| it == file);
            let number = fs::read_to_string(other.join("dev")).ok();
            let number = number.and_then(|text| DeviceNumber::parse(&text));
            let is_known = number.is_some_and(|it| self.stack.device(it).is_some());
            if is_same && !is_known {
                let what = "is a loop device over the same file";
                self.is_above(&other, DeviceCheck::Holders, what);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A sysfs with these devices: their paths below `devices`, with their numbers.
    fn sysfs(devices: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for folder in ["block", "dev/block"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        for (path, number) in devices {
            let at = root.path().join("devices").join(path);
            fs::create_dir_all(at.join("holders")).unwrap();
            fs::write(at.join("dev"), format!("{number}\n")).unwrap();
            fs::write(at.join("ro"), "0\n").unwrap();
            symlink(&at, root.path().join("dev/block").join(number)).unwrap();
            match path.split_once('/') {
                Some(_) => fs::write(at.join("partition"), "1\n").unwrap(),
                None => {
                    fs::create_dir(at.join("slaves")).unwrap();
                    symlink(&at, root.path().join("block").join(path)).unwrap();
                }
            }
        }
        root
    }

    /// Connects devices as the kernel does.
    fn build(root: &Path, upper: &str, lower: &str) {
        let at = |path: &str| root.join("devices").join(path);
        let name = |path: &str| path.rsplit('/').next().unwrap().to_owned();
        symlink(at(lower), at(upper).join("slaves").join(name(lower))).unwrap();
        symlink(at(upper), at(lower).join("holders").join(name(upper))).unwrap();
    }

    fn of(root: &Path, path: &str) -> (String, Vec<String>) {
        let mut refusals = Vec::new();
        let stack = Stack::of(root, &root.join("devices").join(path), &mut refusals);
        let names: Vec<&str> = stack.members().map(|(_, name)| name).collect();
        let refusals = refusals.iter().map(|it| it.found.clone()).collect();
        (names.join(" "), refusals)
    }

    #[test]
    fn a_volume_has_everything_below_it_and_no_other_volume() {
        let root = sysfs(&[
            ("sda", "8:0"),
            ("sda/sda1", "8:1"),
            ("sda/sda2", "8:2"),
            ("sdb", "8:16"),
            ("md0", "9:0"),
            ("dm-0", "253:0"),
            ("dm-1", "253:1"),
        ]);
        for lower in ["sda/sda2", "sdb"] {
            build(root.path(), "md0", lower);
        }
        build(root.path(), "dm-0", "md0");
        build(root.path(), "dm-1", "md0");
        let (names, refusals) = of(root.path(), "dm-0");
        assert_eq!(names, "sda sda2 sdb md0 dm-0");
        assert_eq!(refusals, [""; 0]);
        let (names, refusals) = of(root.path(), "sda/sda1");
        assert_eq!(names, "sda sda1");
        assert_eq!(refusals, [""; 0]);
        let (names, refusals) = of(root.path(), "sda");
        assert_eq!(names, "sda sda1 sda2 md0 dm-0 dm-1");
        let built = [
            "sda1 is a partition of it",
            "sda2 is a partition of it",
            "md0 is built on it",
            "dm-0 is built on it",
            "dm-1 is built on it",
        ];
        assert_eq!(refusals, built);
        fs::write(root.path().join("devices/dm-0/ro"), "1\n").unwrap();
        assert_eq!(of(root.path(), "dm-0").1, ["the device is read-only"]);
    }

    #[test]
    fn a_partition_of_a_disk_that_is_used_as_a_whole_is_refused() {
        let root = sysfs(&[("sda", "8:0"), ("sda/sda1", "8:1"), ("dm-0", "253:0")]);
        build(root.path(), "dm-0", "sda");
        let (_, refusals) = of(root.path(), "sda/sda1");
        assert_eq!(refusals, ["dm-0 is built on its whole disk"]);
    }

    #[test]
    fn another_loop_device_over_the_same_file_is_found_by_any_path() {
        let root = sysfs(&[("loop1", "7:1"), ("loop2", "7:2"), ("loop3", "7:3")]);
        let file = root.path().join("disk.img");
        fs::write(&file, "x").unwrap();
        let link = root.path().join("link.img");
        symlink(&file, &link).unwrap();
        let gone = root.path().join("gone.img");
        for (name, path) in [("loop1", &file), ("loop2", &link), ("loop3", &gone)] {
            let folder = root.path().join("devices").join(name).join("loop");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("backing_file"), format!("{}\n", path.display())).unwrap();
        }
        let (names, refusals) = of(root.path(), "loop1");
        assert_eq!(names, format!("loop1 loop2 {}", file.display()));
        assert_eq!(refusals, ["loop2 is a loop device over the same file"]);
        let (_, refusals) = of(root.path(), "loop3");
        assert!(refusals[0].contains("no such file"), "{refusals:?}");
    }
}
