//! The free space of a volume group.

use std::collections::HashSet;

use crate::blockdev::{BlockDevice, Lvm};
use crate::fact::Fact;
use crate::index::HostIndex;

/// A volume group, as its volumes show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeGroup<'a> {
    /// Its physical volumes, as far as its volumes are on them.
    pub drives: Vec<&'a BlockDevice>,
    /// Free bytes; `None` if they were not collected.
    pub free: Option<u64>,
    /// What its volumes leave of the physical volumes, in bytes; `None` if a size is not known.
    pub left: Option<u64>,
}

impl<'a> HostIndex<'a> {
    /// A volume group by its name.
    pub fn volume_group(&self, name: &str) -> VolumeGroup<'a> {
        let lvm = |device: &'a BlockDevice| -> Option<&'a Lvm> {
            let lvm = device.lvm.value()?;
            lvm.vg.as_str().is(&name).then_some(lvm)
        };
        let mut group = VolumeGroup::default();
        let (mut taken, mut seen) = (Some(0_u64), HashSet::new());
        for device in &self.facts().blockdevs {
            let Some(lvm) = lvm(device) else {
                continue;
            };
            if let Fact::Known(free) = lvm.vg_free {
                group.free = Some(free);
            }
            // Only the lowest volumes take space: a pool, a mirror or an origin is on others.
            let below = self.below(device).into_iter();
            let below: Vec<_> = below.filter(|below| !below.kind.is_lvm()).collect();
            if !below.is_empty() {
                let size = device.size.value();
                taken = taken.zip(size).map(|(sum, size)| sum.saturating_add(*size));
            }
            group
                .drives
                .extend(below.into_iter().filter(|it| seen.insert(&it.id)));
        }
        let sizes = group.drives.iter().map(|drive| drive.size.value().copied());
        let all: Option<u64> = sizes.sum();
        let known = all.filter(|all| *all > 0).zip(taken);
        group.left = known.map(|(all, taken)| all.saturating_sub(taken));
        group
    }
}

#[cfg(test)]
mod tests {
    use crate::{Facts, HostIndex};

    #[test]
    fn a_group_has_what_its_lowest_volumes_leave() {
        let facts = "
schema_version: '1.0'
blockdevs:
- {id: pv1, kind: partition, paths: [/dev/sda2], size: 1000}
- {id: pv2, kind: disk, paths: [/dev/sdb], size: 1000}
- {id: root, kind: lvm, paths: [/dev/vg/root], size: 100, slaves: [pv1], lvm: {vg: vg, lv: root}}
- {id: tdata, kind: lvm-thin-data, size: 700, slaves: [pv1, pv2], lvm: {vg: vg, lv: pool_tdata}}
- {id: pool, kind: lvm-thin-pool, size: 700, slaves: [tdata], lvm: {vg: vg, lv: pool}}
- {id: thin, kind: lvm-thin, size: 9000, slaves: [pool], lvm: {vg: vg, lv: thin}}
- {id: other, kind: lvm, size: 50, slaves: [pv1], lvm: {vg: other, lv: root, vg_free: 7}}
";
        let mut facts = Facts::parse(facts).unwrap().facts;
        let index = HostIndex::new(&facts);
        let group = index.volume_group("vg");
        assert_eq!((group.free, group.left), (None, Some(1200)));
        assert_eq!(group.drives.len(), 2);
        assert_eq!(index.volume_group("other").free, Some(7));
        assert_eq!(index.volume_group("other").left, Some(950));
        assert_eq!(index.volume_group("none").left, None);
        facts.blockdevs[0].size = crate::Fact::NotCollected;
        assert_eq!(HostIndex::new(&facts).volume_group("vg").left, None);
    }
}
