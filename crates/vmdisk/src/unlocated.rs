//! Volumes that no input locates: the rules that need their file or device are not checked.

use vmdisk_facts::Facts;
use vmdisk_model::{
    BackendSource, Backing, DevicePath, Domain, FieldPath, Image, Protocol, VolumeSource,
};

use std::collections::BTreeSet;

use crate::rules::{Missing, NotChecked, Outcome, Rule};

/// True if a disk is on a volume that no input locates.
pub(crate) fn has_volumes(domain: &Domain) -> bool {
    let images = domain.disks.iter().filter_map(|disk| disk.backend.image());
    images
        .flat_map(Image::chain)
        .any(|image| volume_of(image).is_some())
}

/// Says which rules would have needed the file or the device of a volume, and could not look at it.
///
/// `check` runs the rules on a domain. It runs on the unchanged domain, then with each volume replaced by a file and by
/// a block device of which nothing is known. A rule that says more then depends on where the volume is.
pub(crate) fn add(domain: &Domain, outcome: &mut Outcome, check: impl Fn(&Domain) -> Outcome) {
    let said = statements(&check(domain));
    let mut known: BTreeSet<(FieldPath, &str)> =
        said.iter().map(|(at, rule)| (*at, rule.name)).collect();
    for storage in [Storage::File, Storage::Device] {
        for (at, rule) in statements(&check(&with_paths(domain, storage))) {
            if let Some(missing) = missing(domain, at).filter(|_| known.insert((at, rule.name))) {
                outcome.not_checked.push(NotChecked::new(rule, at, missing));
            }
        }
    }
}

/// The same facts without what they know about paths and devices.
pub(crate) fn without_paths(facts: Option<&Facts>) -> Facts {
    let mut facts = facts.cloned().unwrap_or_default();
    facts.files.clear();
    facts.dirs.clear();
    facts.mounts.clear();
    facts.filesystems.clear();
    facts.blockdevs.clear();
    facts
}

/// The assumed storage of a volume.
#[derive(Clone, Copy)]
enum Storage {
    File,
    Device,
}

/// The places that rules said something about: a finding, or that they could not look.
fn statements(outcome: &Outcome) -> Vec<(FieldPath, &'static Rule)> {
    let missed = outcome.not_checked.iter();
    let missed = missed.flat_map(|missed| missed.places().map(|at| (at, missed.rule)));
    let found = outcome.findings.iter();
    missed
        .chain(found.map(|finding| (finding.at, finding.rule)))
        .collect()
}

fn volume_of(image: &Image) -> Option<&VolumeSource> {
    match &image.protocol {
        Protocol::Volume(source) => Some(source),
        _ => None,
    }
}

/// The volume that a rule needed at this place: the one of the image there, otherwise the first of the disk or guest.
fn missing(domain: &Domain, at: FieldPath) -> Option<Missing> {
    let images = |index: usize| {
        let image = domain
            .disks
            .get(index)
            .and_then(|disk| disk.backend.image());
        image.into_iter().flat_map(Image::chain)
    };
    let there = match at {
        FieldPath::Image(index, depth, _) => images(index).nth(depth).and_then(volume_of),
        _ => None,
    };
    let of_disk = || {
        at.disk()
            .and_then(|index| images(index).find_map(volume_of))
    };
    let of_guest = || {
        let mut all = (0..domain.disks.len()).flat_map(images);
        all.find_map(volume_of).filter(|_| at.disk().is_none())
    };
    let VolumeSource { pool, volume, .. } = there.or_else(of_disk).or_else(of_guest)?;
    Some(Missing::new(
        format!("the file or device of volume {volume} in pool {pool}"),
        "no input describes the pool (`virsh pool-dumpxml` prints it)",
    ))
}

/// The domain with a file or device for each volume, one for each name, at a path that says nothing about it.
fn with_paths(domain: &Domain, storage: Storage) -> Domain {
    let mut domain = domain.clone();
    let mut volumes: Vec<VolumeSource> = Vec::new();
    for disk in &mut domain.disks {
        let BackendSource::Image(top) = &mut disk.backend.source else {
            continue;
        };
        let mut next = Some(&mut **top);
        while let Some(image) = next {
            if let Some(volume) = volume_of(image) {
                let known = volumes.iter().position(|it| it == volume);
                let number = known.unwrap_or(volumes.len());
                if known.is_none() {
                    volumes.push(volume.clone());
                }
                image.protocol = match storage {
                    Storage::File => Protocol::File {
                        path: format!("/volume-{number}"),
                    },
                    Storage::Device => Protocol::HostDevice {
                        path: DevicePath::new(format!("/dev/mapper/volume-{number}")),
                    },
                };
            }
            next = match &mut image.backing {
                Backing::Image(below) => Some(below),
                Backing::Unspecified | Backing::Terminated => None,
            };
        }
    }
    domain
}
