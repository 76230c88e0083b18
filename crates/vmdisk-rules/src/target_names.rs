//! Names of targets, such as `vda`, and the unused ones.

use std::collections::{BTreeMap, HashSet};

use vmdisk_model::{Domain, TargetBus};

/// Prefixes that libvirt knows; a longer prefix comes before its suffixes.
const PREFIXES: [&str; 6] = ["xvd", "ubd", "hd", "sd", "vd", "fd"];

/// Prefix and letters of a target's name; `None` for names of another form, such as `nvme0n1`.
pub(crate) fn split(target: &str) -> Option<(&'static str, &str)> {
    let prefix = PREFIXES
        .into_iter()
        .find(|prefix| target.starts_with(prefix))?;
    let letters = &target[prefix.len()..];
    let is_plain = !letters.is_empty() && letters.bytes().all(|byte| byte.is_ascii_lowercase());
    is_plain.then_some((prefix, letters))
}

/// Allocates unused names.
#[derive(Debug)]
pub(crate) struct TargetNames<'a> {
    domain: &'a Domain,
    /// The names that the guest's disks use; collected on first use, because few guests need a new name.
    taken: Option<HashSet<&'a str>>,
    given: HashSet<String>,
    /// Per prefix, the number of names known to be in use, so that no name is tried twice.
    tried: BTreeMap<&'static str, u32>,
}

impl<'a> TargetNames<'a> {
    /// The names that the guest's disks do not use.
    pub(crate) fn of(domain: &'a Domain) -> Self {
        TargetNames {
            domain,
            taken: None,
            given: HashSet::new(),
            tried: BTreeMap::new(),
        }
    }

    /// The first free name with this prefix.
    pub(crate) fn free(&mut self, prefix: &'static str) -> String {
        let mut next = self.tried.get(prefix).copied().unwrap_or(0);
        loop {
            let name = format!("{prefix}{}", letters(next));
            next += 1;
            if self.take(&name) {
                self.tried.insert(prefix, next);
                return name;
            }
        }
    }

    /// The name for the bus: with the same letters if it is unused, otherwise the first unused one.
    ///
    /// libvirt computes addresses from the letters, so keeping them keeps the address. `None` for buses whose names do
    /// not end in letters.
    pub(crate) fn for_bus(&mut self, bus: TargetBus, target: &str) -> Option<String> {
        let (_, letters) = split(target)?;
        let prefix = bus.target_prefix();
        split(&format!("{prefix}a"))?;
        let same = format!("{prefix}{letters}");
        if self.take(&same) {
            Some(same)
        } else {
            Some(self.free(prefix))
        }
    }

    /// Reserves a name if it is unused.
    fn take(&mut self, name: &str) -> bool {
        let taken = self.taken.get_or_insert_with(|| {
            let disks = self.domain.disks.iter();
            disks
                .filter_map(|disk| disk.frontend.target.as_deref())
                .collect()
        });
        !taken.contains(name) && self.given.insert(name.to_owned())
    }
}

/// The letters of the nth disk as libvirt counts them: `a`, `b`, … `z`, `aa`.
fn letters(index: u32) -> String {
    let mut letters = Vec::new();
    let mut rest = Some(index);
    while let Some(index) = rest {
        letters.push(b'a' + (index % 26) as u8);
        rest = (index / 26).checked_sub(1);
    }
    letters
        .iter()
        .rev()
        .map(|letter| char::from(*letter))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmdisk_model::{Disk, Format, Frontend, Image};

    fn domain(targets: &[&str]) -> Domain {
        let disk = |target: &&str| {
            let frontend = Frontend::new(*target, TargetBus::Virtio);
            Disk::new(frontend, Image::file("/a.img", Format::Raw))
        };
        Domain {
            disks: targets.iter().map(disk).collect(),
            ..Domain::default()
        }
    }

    #[test]
    fn letters_are_counted_as_libvirt_counts_them() {
        for (index, name) in [
            (0, "a"),
            (25, "z"),
            (26, "aa"),
            (51, "az"),
            (52, "ba"),
            (702, "aaa"),
        ] {
            assert_eq!(letters(index), name, "{index}");
        }
    }

    #[test]
    fn a_free_name_is_one_that_nobody_has_and_is_given_once() {
        let domain = domain(&["vda", "vdc", "sda"]);
        let mut names = TargetNames::of(&domain);
        assert_eq!(
            [names.free("vd"), names.free("vd"), names.free("sd")],
            ["vdb", "vdd", "sdb"]
        );
    }

    #[test]
    fn another_bus_keeps_the_letters_where_they_are_free() {
        let domain = domain(&["vda", "sda", "sdb"]);
        let mut names = TargetNames::of(&domain);
        assert_eq!(
            names.for_bus(TargetBus::Virtio, "sdb").as_deref(),
            Some("vdb")
        );
        assert_eq!(
            names.for_bus(TargetBus::Virtio, "sda").as_deref(),
            Some("vdc")
        );
        assert_eq!(names.for_bus(TargetBus::Nvme, "sda"), None);
        assert_eq!(names.for_bus(TargetBus::Virtio, "nvme0n1"), None);
    }

    #[test]
    fn a_name_is_prefix_and_letters_or_neither() {
        assert_eq!(split("xvda"), Some(("xvd", "a")));
        assert_eq!(split("sdaa"), Some(("sd", "aa")));
        for odd in ["nvme0n1", "sd", "sda1", "", "whatever"] {
            assert_eq!(split(odd), None, "{odd}");
        }
    }
}
