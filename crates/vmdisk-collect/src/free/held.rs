//! A block device held by a file descriptor, so that its path is resolved only once.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use vmdisk_facts::DeviceNumber;
use vmdisk_source::sanitize::system_message;

use super::configured;
use super::contents;
use super::open_file::{OpenFile, number_of};
use super::refusal::{DeviceCheck, DeviceRefusal, Refused};
use super::stack::Stack;
use super::users;

/// The identity of a device, independent of its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceIdentity {
    /// The kind of name: `serial`, `wwid`, `dm-uuid`, `md-uuid` or `loop-file`.
    pub kind: String,
    /// The name, as typed by the user.
    pub value: String,
}

impl std::fmt::Display for DeviceIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, self.value)
    }
}

/// A block device that is open for reading. What is checked and what is used is this descriptor, never the path again.
#[derive(Debug)]
pub struct HeldDevice {
    given: PathBuf,
    real: PathBuf,
    number: DeviceNumber,
    size_bytes: u64,
    sysfs: PathBuf,
    file: File,
}

impl HeldDevice {
    /// Opens a path, if it is a block device.
    ///
    /// # Errors
    /// If it is none, or cannot be read.
    pub fn open(given: &Path) -> Result<Self, Refused> {
        let device = given.display();
        let unread = |what: &str, error: std::io::Error| {
            let why = format!("{what}{}", system_message(&error));
            Refused::one(
                &device,
                DeviceRefusal::not_checked(DeviceCheck::BlockDevice, why),
            )
        };
        let real = fs::canonicalize(given).map_err(|error| unread("", error))?;
        // Opening a FIFO would block without O_NONBLOCK.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(&real)
            .map_err(|error| unread("", error))?;
        let metadata = file.metadata().map_err(|error| unread("", error))?;
        if !metadata.file_type().is_block_device() {
            let refusal = DeviceRefusal::new(DeviceCheck::BlockDevice, "not a block device");
            return Err(Refused::one(&device, refusal));
        }
        let number = number_of(metadata.rdev());
        let sysfs = fs::canonicalize(format!("/sys/dev/block/{number}"))
            .map_err(|error| unread("its directory in sysfs: ", error))?;
        let size_bytes = (&file)
            .seek(SeekFrom::End(0))
            .map_err(|error| unread("its size: ", error))?;
        Ok(Self {
            given: given.to_owned(),
            real,
            number,
            size_bytes,
            sysfs,
            file,
        })
    }

    /// The path that it was opened by.
    pub fn given(&self) -> &Path {
        &self.given
    }

    /// That path with links resolved, when it was opened.
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// Its number.
    pub fn number(&self) -> DeviceNumber {
        self.number
    }

    /// Its size.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Its directory in sysfs.
    pub fn sysfs(&self) -> &Path {
        &self.sysfs
    }

    /// The open descriptor.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns its identity, if the kernel knows one.
    pub fn identity(&self) -> Option<DeviceIdentity> {
        identity(&self.sysfs)
    }

    /// Returns the kernel's name for it.
    pub fn kernel_name(&self) -> String {
        let name = self.sysfs.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Opens the same device exclusively, without writing.
    ///
    /// # Errors
    /// If the kernel refuses, for example because a file system on it is mounted.
    pub fn hold(&self, is_writable: bool) -> Result<File, DeviceRefusal> {
        let again = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let held = OpenOptions::new()
            .read(true)
            .write(is_writable)
            .custom_flags(OFlags::EXCL.bits().cast_signed())
            .open(again);
        held.map_err(|error| match rustix::io::Errno::from_io_error(&error) {
            Some(rustix::io::Errno::BUSY) => DeviceRefusal::new(
                DeviceCheck::Exclusive,
                "the kernel says that it is in use (EBUSY)",
            ),
            _ => DeviceRefusal::not_checked(DeviceCheck::Exclusive, system_message(&error)),
        })
    }

    /// Checks that the given path still names this device; udev may give a name to another one at any time.
    ///
    /// # Errors
    /// If it does not.
    pub fn is_still_named(&self) -> Result<(), DeviceRefusal> {
        match OpenFile::of(&self.given) {
            Ok(OpenFile::Device(number)) if number == self.number => Ok(()),
            Ok(OpenFile::Device(number)) => Err(DeviceRefusal::new(
                DeviceCheck::SameDevice,
                format!(
                    "{} names the device {number} now, and {} was checked",
                    self.given.display(),
                    self.number
                ),
            )),
            Ok(OpenFile::Other(..)) => {
                let found = format!("{} is no block device now", self.given.display());
                Err(DeviceRefusal::new(DeviceCheck::SameDevice, found))
            }
            Err(error) => Err(DeviceRefusal::unread(
                DeviceCheck::SameDevice,
                self.given.display(),
                &error,
            )),
        }
    }

    /// Everything that uses the device, what is built on it, or what is below it.
    pub fn users(&self) -> Vec<DeviceRefusal> {
        self.used(true)
    }

    /// As [`users`](Self::users), while this process and its children have the device open.
    pub fn other_users(&self) -> Vec<DeviceRefusal> {
        self.used(false)
    }

    fn used(&self, is_closed: bool) -> Vec<DeviceRefusal> {
        let mut refusals = Vec::new();
        let mut stack = Stack::of(Path::new("/sys"), &self.sysfs, &mut refusals);
        users::mounts(&stack, &mut refusals);
        users::btrfs(&stack, &mut refusals);
        users::swap(&stack, &mut refusals);
        if is_closed {
            configured::of(&stack, &mut refusals);
            // QEMU may have locked the node of another directory than /dev.
            if let Ok(node) = self.file.metadata() {
                stack.add_node(OpenFile::Other(number_of(node.dev()), node.ino()));
            }
        } else {
            stack.ignore(self.number);
        }
        users::locks(&stack, &mut refusals);
        users::processes(&stack, &mut refusals);
        refusals
    }

    /// Everything that shows that the device holds data.
    pub fn contents(&self) -> Vec<DeviceRefusal> {
        let mut refusals = self.signatures();
        refusals.extend(self.blank());
        refusals
    }

    /// Everything at its ends and in a thin volume that may be data without a signature.
    pub fn blank(&self) -> Vec<DeviceRefusal> {
        let mut refusals = Vec::new();
        contents::ends(&self.file, self.size_bytes, &mut refusals);
        contents::thin(&self.sysfs, &mut refusals);
        refusals
    }

    /// Every signature on the device that libblkid knows.
    pub fn signatures(&self) -> Vec<DeviceRefusal> {
        contents::signature(&self.file).err().into_iter().collect()
    }
}

fn identity(sysfs: &Path) -> Option<DeviceIdentity> {
    let word = |name: &str| {
        let text = fs::read(sysfs.join(name)).ok()?;
        let text = String::from_utf8_lossy(&text).trim().to_owned();
        (!text.is_empty()).then_some(text)
    };
    if let Some(number) = word("partition") {
        let DeviceIdentity { kind, value } = identity(sysfs.parent()?)?;
        return Some(DeviceIdentity {
            kind,
            value: format!("{value}-part{number}"),
        });
    }
    // The SCSI serial number follows a header of four bytes.
    let page = || {
        let bytes = fs::read(sysfs.join("device/vpd_pg80")).ok()?;
        let text = String::from_utf8_lossy(bytes.get(4..)?)
            .trim_matches(['\0', ' '])
            .to_owned();
        (!text.is_empty()).then_some(text)
    };
    let named = |kind: &str, value: String| DeviceIdentity {
        kind: kind.to_owned(),
        value,
    };
    let serial = || {
        word("serial")
            .or_else(|| word("device/serial"))
            .or_else(page)
    };
    // The name of a volume has priority: a mapping has no disk of its own.
    word("dm/uuid")
        .map(|uuid| named("dm-uuid", uuid))
        .or_else(|| word("md/uuid").map(|uuid| named("md-uuid", uuid)))
        .or_else(|| word("loop/backing_file").map(|file| named("loop-file", file)))
        .or_else(|| serial().map(|serial| named("serial", serial)))
        .or_else(|| {
            word("wwid")
                .or_else(|| word("device/wwid"))
                .map(|wwid| named("wwid", wwid))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_not_a_block_device_is_refused() {
        for path in ["/dev/null", "/etc/hostname", "/", "/nonexistent/device"] {
            let refused = HeldDevice::open(Path::new(path)).unwrap_err();
            assert!(refused.names(DeviceCheck::BlockDevice), "{refused}");
        }
    }

    #[test]
    fn a_partition_is_identified_by_its_disk_and_number() {
        let folder = tempfile::tempdir().unwrap();
        let partition = folder.path().join("sdz/sdz3");
        fs::create_dir_all(folder.path().join("sdz/device")).unwrap();
        fs::create_dir_all(&partition).unwrap();
        fs::write(partition.join("partition"), "3\n").unwrap();
        assert_eq!(identity(&partition), None, "its disk has no name");
        fs::write(
            folder.path().join("sdz/device/vpd_pg80"),
            b"\0\x80\0\x08  HDD0001",
        )
        .unwrap();
        let found = identity(&partition).unwrap();
        assert_eq!(found.to_string(), "serial HDD0001-part3");
        fs::write(folder.path().join("sdz/serial"), "S1\n").unwrap();
        assert_eq!(identity(&partition).unwrap().value, "S1-part3");
    }
}
