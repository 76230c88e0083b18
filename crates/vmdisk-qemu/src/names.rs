//! Names of nodes and devices: short, descriptive, unique and deterministic.

use std::collections::HashSet;

use vmdisk_model::Disk;

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

/// Names of the nodes of one disk, after the disk and their role.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeNames<'a> {
    pub(crate) stem: &'a str,
}

/// The maximum number of named images below the top one; QEMU would become slow long before.
pub(crate) const DEEPEST: usize = 999;

impl<'a> NodeNames<'a> {
    /// Names for one image of the disk.
    pub(crate) const fn image(self, depth: usize) -> ImageNames<'a> {
        ImageNames {
            stem: self.stem,
            depth,
            is_data: false,
        }
    }

    /// The copy-on-read filter.
    pub(crate) fn copy_on_read(self) -> String {
        format!("{}-copy-on-read", self.stem)
    }

    /// A filter with the limits of one of the guest's throttle groups.
    pub(crate) fn throttle_filter(self, filter: usize) -> String {
        format!("{}-limit{filter}", self.stem)
    }

    /// The filter that limits the rate.
    pub(crate) fn throttle(self) -> String {
        format!("{}-throttle", self.stem)
    }
}

/// Names for one image of a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImageNames<'a> {
    stem: &'a str,
    /// Depth in the chain; 0 is the top image.
    depth: usize,
    /// True for an external data file.
    is_data: bool,
}

impl ImageNames<'_> {
    /// The names for the data file of this image.
    pub(crate) const fn data_file(self) -> Self {
        ImageNames {
            is_data: true,
            ..self
        }
    }

    fn part(self, role: &str) -> String {
        let stem = self.stem;
        // The data file of a base image has short names: QEMU limits their length.
        match (self.depth, self.is_data, role) {
            (0, false, role) => format!("{stem}-{role}"),
            (0, true, role) => format!("{stem}-data-{role}"),
            (below, false, role) => format!("{stem}-base{below}-{role}"),
            (below, true, "format") => format!("{stem}-base{below}-dfmt"),
            (below, true, role) => format!("{stem}-base{below}-d{role}"),
        }
    }

    /// The node that opens the file or device.
    pub(crate) fn protocol(self) -> String {
        self.part("file")
    }

    /// The node that selects a slice of the storage.
    pub(crate) fn slice(self) -> String {
        self.part("slice")
    }

    /// The format node.
    pub(crate) fn format(self) -> String {
        self.part("format")
    }

    /// The object with the login secret.
    pub(crate) fn login_secret(self) -> String {
        self.part("login")
    }

    /// The object with the cookies of a web server.
    pub(crate) fn cookie_secret(self) -> String {
        self.part("cookies")
    }

    /// The object with one of the secrets of an encrypted image.
    pub(crate) fn encryption_secret(self, nth: usize) -> String {
        self.part(&format!("key{nth}"))
    }

    /// The object with the certificates for a connection.
    pub(crate) fn tls(self) -> String {
        self.part("tls")
    }

    /// The object through which persistent reservations are made.
    pub(crate) fn reservations(self) -> String {
        self.part("reservations")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vmdisk_model::{BackendSource, Frontend, TargetBus};

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
                let names = NodeNames { stem };
                let (top, below) = (names.image(0), names.image(depth));
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
