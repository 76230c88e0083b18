//! Names of nodes and devices: short, descriptive, unique and deterministic.

use std::collections::HashSet;

use vmdisk_model::{BackendSource, Disk, EncryptionEngine};

/// The maximum length of a stem, which leaves room for `-base999-format` within QEMU's 31 characters.
const STEM_LENGTH: usize = 16;

/// True for a valid id of QEMU: a letter, then letters, digits, `-`, `.` and `_`.
pub(crate) fn is_identifier(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

/// The prefix for the nodes and devices of each disk: its target if that is a valid and unique name, otherwise `disk`
/// and its index.
///
/// A stem has no `-`, so that `vda` with a base image cannot collide with a disk named `vda-base1`.
pub(crate) fn stems(disks: &[Disk]) -> Vec<String> {
    let is_stem = |target: &&str| {
        is_identifier(target) && target.len() <= STEM_LENGTH && !target.contains('-')
    };
    let written: Vec<Option<&str>> = disks
        .iter()
        .map(|disk| disk.frontend.target.as_deref().filter(is_stem))
        .collect();
    let targets: HashSet<&str> = written.iter().copied().flatten().collect();
    let mut taken: HashSet<String> = HashSet::new();
    let mut stems = Vec::with_capacity(disks.len());
    for (nth, target) in written.iter().enumerate() {
        let own = target
            .filter(|target| !taken.contains(*target))
            .map(str::to_owned);
        let stem = own.unwrap_or_else(|| {
            (0_usize..)
                .map(|attempt| match attempt {
                    0 => format!("disk{nth}"),
                    more => format!("disk{nth}_{more}"),
                })
                .find(|stem| !targets.contains(stem.as_str()) && !taken.contains(stem))
                .expect("there are more names than disks")
        });
        taken.insert(stem.clone());
        stems.push(stem);
    }
    stems
}

/// Ids of devices that are in use.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    taken: HashSet<String>,
}

impl Ids {
    /// The id if it is free, otherwise the id with the first number that makes it unique.
    pub(crate) fn take(&mut self, id: &str) -> String {
        let free = if self.taken.contains(id) {
            (2_usize..)
                .map(|number| format!("{id}-{number}"))
                .find(|id| !self.taken.contains(id))
                .expect("there are more ids than devices")
        } else {
            id.to_owned()
        };
        self.taken.insert(free.clone());
        free
    }
}

/// Names of the nodes of one disk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NodeNames<'a> {
    /// Named after the disk and their role.
    Readable {
        /// The disk's stem.
        stem: &'a str,
    },
    /// Numbered as libvirt does.
    Libvirt {
        /// The disk's stem, which only the copy-on-read filter uses.
        stem: &'a str,
        /// Number of the top image; the images below follow, and then the filters.
        first: usize,
        /// The number of images.
        images: usize,
    },
}

/// The maximum number of named images below the top one; QEMU would become slow long before.
pub(crate) const DEEPEST: usize = 999;

/// Number of each disk's top image in libvirt's style: libvirt counts from the last disk to the first, and in each from
/// the top image down; an empty drive has a number too (`qemuProcessPrepareHost`).
pub(crate) fn libvirt_numbers(disks: &[Disk], order: &[usize]) -> Vec<usize> {
    let mut next = 1;
    let mut numbers = vec![0; disks.len()];
    for nth in order.iter().rev() {
        numbers[*nth] = next;
        let backend = &disks[*nth].backend;
        next += image_count(&backend.source) + backend.throttle_filters.len();
    }
    numbers
}

/// The number of images that libvirt numbers; an empty drive counts as one.
pub(crate) fn image_count(source: &BackendSource) -> usize {
    match source {
        BackendSource::Image(image) => {
            let data_files = image.chain().filter(|image| image.data_file.is_some());
            image.chain().count() + data_files.count()
        }
        BackendSource::Empty => 1,
        BackendSource::VhostUser(_) => 0,
    }
}

impl<'a> NodeNames<'a> {
    /// Names for one image of the disk.
    pub(crate) const fn image(self, depth: usize, serial: usize) -> ImageNames<'a> {
        ImageNames {
            disk: self,
            depth,
            serial,
            is_data: false,
        }
    }

    /// The copy-on-read filter.
    pub(crate) fn copy_on_read(self) -> String {
        match self {
            NodeNames::Readable { stem } => format!("{stem}-copy-on-read"),
            NodeNames::Libvirt { stem, .. } => format!("libvirt-CoR-{stem}"),
        }
    }

    /// A filter with the limits of one of the guest's throttle groups.
    pub(crate) fn throttle_filter(self, filter: usize) -> String {
        match self {
            NodeNames::Readable { stem } => format!("{stem}-limit{filter}"),
            NodeNames::Libvirt { first, images, .. } => {
                format!("libvirt-{}-filter", first + images + filter)
            }
        }
    }

    /// The filter that limits the rate.
    pub(crate) fn throttle(self) -> String {
        match self {
            NodeNames::Readable { stem } | NodeNames::Libvirt { stem, .. } => {
                format!("{stem}-throttle")
            }
        }
    }
}

/// Names for one image of a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImageNames<'a> {
    disk: NodeNames<'a>,
    /// Depth in the chain; 0 is the top image.
    depth: usize,
    /// Number of the image among all images of the disk, including data files, as libvirt counts.
    serial: usize,
    /// True for an external data file.
    is_data: bool,
}

impl ImageNames<'_> {
    /// The names for the data file of this image, which has the next number in libvirt.
    pub(crate) const fn data_file(self) -> Self {
        ImageNames {
            serial: self.serial + 1,
            is_data: true,
            ..self
        }
    }

    fn part(self, readable: &str, libvirt: &str) -> String {
        let data = if self.is_data { "data-" } else { "" };
        match (self.disk, self.depth) {
            (NodeNames::Readable { stem }, 0) => format!("{stem}-{data}{readable}"),
            (NodeNames::Readable { stem }, below) => {
                // The maximum length of a name.
                let readable = if self.is_data && readable == "format" {
                    "fmt"
                } else {
                    readable
                };
                let data = if self.is_data { "d" } else { "" };
                format!("{stem}-base{below}-{data}{readable}")
            }
            (NodeNames::Libvirt { first, .. }, _) => {
                format!("libvirt-{}-{libvirt}", first + self.serial)
            }
        }
    }

    /// The node that opens the file or device.
    pub(crate) fn protocol(self) -> String {
        self.part("file", "storage")
    }

    /// The node that selects a slice of the storage.
    pub(crate) fn slice(self) -> String {
        self.part("slice", "slice-sto")
    }

    /// The format node.
    pub(crate) fn format(self) -> String {
        self.part("format", "format")
    }

    /// The object with the login secret.
    pub(crate) fn login_secret(self) -> String {
        self.part("login", "storage-auth-secret0")
    }

    /// The object with the cookies of a web server.
    pub(crate) fn cookie_secret(self) -> String {
        self.part("cookies", "storage-httpcookie-secret0")
    }

    /// The object with one of the secrets of an encrypted image.
    pub(crate) fn encryption_secret(self, nth: usize, engine: EncryptionEngine) -> String {
        let node = match engine {
            EncryptionEngine::Qemu => "format",
            EncryptionEngine::Librbd => "storage",
        };
        self.part(
            &format!("key{nth}"),
            &format!("{node}-encryption-secret{nth}"),
        )
    }

    /// The object with the certificates for a connection.
    pub(crate) fn tls(self) -> String {
        match self.disk {
            NodeNames::Readable { .. } => self.part("tls", ""),
            NodeNames::Libvirt { .. } => format!("obj{}_tls0", self.protocol()),
        }
    }

    /// The object through which persistent reservations are made.
    pub(crate) fn reservations(self) -> String {
        match self.disk {
            NodeNames::Readable { .. } => self.part("reservations", ""),
            NodeNames::Libvirt { .. } => format!("pr-helper-{}", self.protocol()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vmdisk_model::{Frontend, TargetBus};

    fn disks(targets: &[&str]) -> Vec<Disk> {
        targets
            .iter()
            .map(|target| {
                Disk::new(
                    Frontend::new(*target, TargetBus::Virtio),
                    BackendSource::Empty,
                )
            })
            .collect()
    }

    #[test]
    fn a_disk_is_called_after_its_target_where_that_is_a_name() {
        assert_eq!(
            stems(&disks(&[
                "vda",
                "",
                "disk1",
                "vda",
                "0x",
                "a-b",
                "a,b=c",
                "averyveryverylongname"
            ])),
            [
                "vda", "disk1_1", "disk1", "disk3", "disk4", "disk5", "disk6", "disk7"
            ]
        );
    }

    proptest! {
        #[test]
        fn node_names_are_valid_unique_and_stable_whatever_the_targets_are(
            targets in prop::collection::vec(prop_oneof!["vd[ab]", "disk[0-3]", "disk0_1", any::<String>()], 0..12),
            depth in 1_usize..=DEEPEST,
        ) {
            let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
            let disks = disks(&targets);
            let stems = stems(&disks);
            prop_assert_eq!(&stems, &super::stems(&disks));
            let mut seen = HashSet::new();
            for stem in &stems {
                let names = NodeNames::Readable { stem };
                let (top, below) = (names.image(0, 0), names.image(depth, depth));
                for name in [
                    top.protocol(), top.format(), below.protocol(), below.format(),
                    top.slice(), below.slice(), top.data_file().protocol(), below.data_file().protocol(),
                    top.data_file().format(), below.data_file().format(), top.data_file().slice(),
                    below.data_file().slice(),
                    names.copy_on_read(), names.throttle(), names.throttle_filter(0),
                ] {
                    prop_assert!(is_identifier(&name) && name.len() <= 31, "{}", name);
                    prop_assert!(seen.insert(name.clone()), "{} twice", name);
                }
            }
        }
    }
}
