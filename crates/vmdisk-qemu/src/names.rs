//! Names of nodes and devices: short, telling, unique, and the same for the same guest.

use std::collections::{HashMap, HashSet};

use vmdisk_model::{BackendSource, Disk, TargetBus};

use crate::placement::target_index;

/// Length that leaves room for `-base999-format` within QEMU's 31 characters for a node name.
const STEM_LENGTH: usize = 16;

/// True for what QEMU takes as an id: a letter, then letters, digits, `-`, `.` and `_`.
pub(crate) fn is_identifier(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

/// The word that the nodes and devices of each disk are called after: its target where that can be
/// a name of its own, else `disk` and its number.
///
/// A stem has no `-`, so that `vda` with a base image and a disk called `vda-base1` stay apart.
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
                .expect("one of endlessly many names is free")
        });
        taken.insert(stem.clone());
        stems.push(stem);
    }
    stems
}

/// Ids of devices that are already given away.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    taken: HashSet<String>,
}

impl Ids {
    /// The id itself if it is free, else the id with the first number that makes it so.
    pub(crate) fn take(&mut self, id: &str) -> String {
        let free = if self.taken.contains(id) {
            (2_usize..)
                .map(|number| format!("{id}-{number}"))
                .find(|id| !self.taken.contains(id))
                .expect("one of endlessly many ids is free")
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
    /// After the disk and the part.
    Readable {
        /// The disk's stem.
        stem: &'a str,
    },
    /// Numbered as libvirt does.
    Libvirt {
        /// The disk's stem, which only the copy-on-read filter is called after.
        stem: &'a str,
        /// Number of the top image; the images below follow.
        first: usize,
    },
}

/// Images below the top one that have a name; QEMU would be slow long before.
pub(crate) const DEEPEST: usize = 999;

/// The order in which libvirt has disks: those of a bus together, by the numbers of their names
/// (`virDomainDiskInsert`).
pub(crate) fn libvirt_order(disks: &[Disk]) -> Vec<usize> {
    let mut first_of_bus: HashMap<TargetBus, usize> = HashMap::new();
    for (nth, disk) in disks.iter().enumerate() {
        let bus = disk.frontend.effective_bus();
        first_of_bus.entry(bus).or_insert(nth);
    }
    let mut order: Vec<usize> = (0..disks.len()).collect();
    order.sort_by_key(|nth| {
        let frontend = &disks[*nth].frontend;
        let number = target_index(frontend.target.as_deref().unwrap_or_default());
        (first_of_bus[&frontend.effective_bus()], number)
    });
    order
}

/// Number of each disk's top image in libvirt's style: libvirt counts from the last disk to the first,
/// and in each from the top image down; an empty drive has a number too (`qemuProcessPrepareHost`).
pub(crate) fn libvirt_numbers(disks: &[Disk], order: &[usize]) -> Vec<usize> {
    let mut next = 1;
    let mut numbers = vec![0; disks.len()];
    for nth in order.iter().rev() {
        numbers[*nth] = next;
        next += match &disks[*nth].backend.source {
            BackendSource::Image(image) => image.chain().count(),
            BackendSource::Empty | BackendSource::Other(_) => 1,
            BackendSource::VhostUser(_) => 0,
        };
    }
    numbers
}

impl NodeNames<'_> {
    fn layer(self, depth: usize, readable: &str, libvirt: &str) -> String {
        match (self, depth) {
            (NodeNames::Readable { stem }, 0) => format!("{stem}-{readable}"),
            (NodeNames::Readable { stem }, below) => format!("{stem}-base{below}-{readable}"),
            (NodeNames::Libvirt { stem: _, first }, depth) => {
                format!("libvirt-{}-{libvirt}", first + depth)
            }
        }
    }

    /// The node that opens the file or device.
    pub(crate) fn protocol(self, depth: usize) -> String {
        self.layer(depth, "file", "storage")
    }

    /// The node that knows the format.
    pub(crate) fn format(self, depth: usize) -> String {
        self.layer(depth, "format", "format")
    }

    /// The filter that copies up what is read.
    pub(crate) fn copy_on_read(self) -> String {
        match self {
            NodeNames::Readable { stem } => format!("{stem}-copy-on-read"),
            NodeNames::Libvirt { stem, first: _ } => format!("libvirt-CoR-{stem}"),
        }
    }

    /// The filter that limits the rate.
    pub(crate) fn throttle(self) -> String {
        match self {
            NodeNames::Readable { stem } | NodeNames::Libvirt { stem, first: _ } => {
                format!("{stem}-throttle")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vmdisk_model::Frontend;

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
                for name in [
                    names.protocol(0), names.format(0), names.protocol(depth), names.format(depth),
                    names.copy_on_read(), names.throttle(),
                ] {
                    prop_assert!(is_identifier(&name) && name.len() <= 31, "{}", name);
                    prop_assert!(seen.insert(name.clone()), "{} twice", name);
                }
            }
        }
    }
}
