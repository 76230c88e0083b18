//! The space that the steps of a plan allocate, compared with the free space of a host.

use std::collections::BTreeMap;

use vmdisk_facts::{Facts, HostIndex};
use vmdisk_model::Bytes;

use super::Condition;
use crate::Plan;

/// A file system with too little free space for the files that a plan allocates there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceShortage {
    /// The directory of the first such file.
    pub directory: String,
    /// Bytes that all files of the plan allocate on the file system.
    pub needed: Bytes,
    /// Bytes that were free when the facts were collected.
    pub free: Bytes,
}

/// The file systems of a host that are too small for the preallocated files of a plan.
///
/// Sparse files are not counted, because they allocate space as the guest writes. File systems whose free space is not
/// in the facts are not reported.
pub fn shortages(plan: &Plan, facts: &Facts) -> Vec<SpaceShortage> {
    let index = HostIndex::new(facts);
    let mut found: BTreeMap<&str, SpaceShortage> = BTreeMap::new();
    for condition in plan.steps.iter().flat_map(|step| &step.conditions) {
        let Condition::Room { directory, size } = condition else {
            continue;
        };
        let Some(filesystem) = index.filesystem_of(directory).known() else {
            continue;
        };
        let Some(free) = filesystem.free_bytes.value() else {
            continue;
        };
        let of_filesystem = found
            .entry(&filesystem.id)
            .or_insert_with(|| SpaceShortage {
                directory: directory.clone(),
                needed: Bytes(0),
                free: Bytes(*free),
            });
        of_filesystem.needed.0 = of_filesystem.needed.0.saturating_add(size.0);
    }
    let found = found.into_values();
    found
        .filter(|shortage| shortage.needed > shortage.free)
        .collect()
}
