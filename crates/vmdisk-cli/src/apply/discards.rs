//! Why storage keeps what a guest discards.

use std::collections::BTreeMap;

use vmdisk::facts::{Facts, HostIndex};
use vmdisk::model::{Bytes, Disk, Domain, Format};
use vmdisk::plan::PresentImage;
use vmdisk::trace::{DiskTrace, Layer, RequestKind, RequestOutcome, trace};
use vmdisk::{Document, Host, LintOptions, Target, facts_needed};
use vmdisk_collect::{Request, collect};

use super::copies::SNAPSHOTS;
use super::guest::{self, Existing};

/// Notes why images keep what the guest discards, by what it has: its definition, or what it runs with.
pub(super) fn note_kept<'i>(
    images: impl Iterator<Item = (usize, &'i mut PresentImage)>,
    (guest, name, is_running): (&Domain, &str, bool),
    target: &Target,
) {
    let Existing::There(document) = guest::existing(name, !is_running) else {
        return;
    };
    let facts = collect(&Request::of(&facts_needed(document.domain()), ""));
    let clusters = clusters(document.domain(), &facts);
    let disks = traced(&document, target, facts);
    for (nth, image) in images {
        let name = guest.disks[nth].name();
        let mut disks = disks.iter();
        let disk = disks.find(|it| it.disk.target.as_deref() == Some(name));
        // A snapshot keeps its data.
        let mut obstacles = image.obstacles.iter();
        let of_snapshots = obstacles.find(|it| it.ends_with(SNAPSHOTS));
        image.cluster = clusters.get(name).copied();
        image.keeps_discards = of_snapshots.cloned().or_else(|| kept(disk?));
    }
}

/// The cluster sizes of qcow2 images whose guest may discard less at once, by the names of their disks.
fn clusters<'g>(guest: &'g Domain, facts: &Facts) -> BTreeMap<&'g str, Bytes> {
    let host = HostIndex::new(facts);
    let cluster = |disk: &'g Disk| {
        let image = disk.backend.image()?;
        let header = host.file(image.host_path()?)?.image.value()?;
        let size = header
            .cluster
            .value()
            .filter(|_| image.format == Some(Format::Qcow2))?;
        let told = disk.frontend.discard_granularity.unwrap_or_default();
        (u64::from(told) < *size).then_some((disk.name(), Bytes(*size)))
    };
    guest.disks.iter().filter_map(cluster).collect()
}

fn traced(document: &Document, target: &Target, facts: Facts) -> Vec<DiskTrace> {
    let options = LintOptions::default()
        .target(target.clone().or(Target::from_facts(&facts)))
        .host(Some(Host::new(facts)));
    trace(document, &options).disks
}

/// The reason why no discard reaches the storage of a disk, or must not; none if one does, or that is not known.
fn kept(disk: &DiskTrace) -> Option<String> {
    let mut findings = disk.findings.iter();
    if let Some((_, bug)) = findings.find(|(_, it)| it.rule.name == "qcow2-discard-corruption") {
        return Some(bug.title.clone());
    }
    for step in &disk.path.steps {
        let effect = step.effect(RequestKind::Discard);
        match effect.outcome {
            RequestOutcome::Dropped | RequestOutcome::Refused | RequestOutcome::Absent => {
                let remedy = match step.layer {
                    Layer::BlockLayer => " without `discard: unmap` (`--change options`)",
                    _ => "",
                };
                return Some(format!("{}: {}{remedy}", step.name, effect.statement.text));
            }
            RequestOutcome::Freed | RequestOutcome::Honoured => return None,
            // The file system has the space back.
            _ if step.layer == Layer::File => return None,
            _ => {}
        }
    }
    None
}
