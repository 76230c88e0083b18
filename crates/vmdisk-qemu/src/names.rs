//! Names of nodes and devices: short, telling, unique, and the same for the same guest.

use std::collections::HashSet;

use vmdisk_model::Disk;

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
pub(crate) struct NodeNames<'a> {
    stem: &'a str,
}

/// Images below the top one that have a name; QEMU would be slow long before.
pub(crate) const DEEPEST: usize = 999;

impl<'a> NodeNames<'a> {
    pub(crate) const fn new(stem: &'a str) -> Self {
        NodeNames { stem }
    }

    fn layer(self, depth: usize, layer: &str) -> String {
        match depth {
            0 => format!("{}-{layer}", self.stem),
            below => format!("{}-base{below}-{layer}", self.stem),
        }
    }

    /// The node that opens the file or device.
    pub(crate) fn protocol(self, depth: usize) -> String {
        self.layer(depth, "file")
    }

    /// The node that knows the format.
    pub(crate) fn format(self, depth: usize) -> String {
        self.layer(depth, "format")
    }

    /// The filter that copies up what is read.
    pub(crate) fn copy_on_read(self) -> String {
        format!("{}-copy-on-read", self.stem)
    }

    /// The filter that limits the rate.
    pub(crate) fn throttle(self) -> String {
        format!("{}-throttle", self.stem)
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
                let names = NodeNames::new(stem);
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
