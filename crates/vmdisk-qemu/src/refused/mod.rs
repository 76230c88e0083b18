//! What a command line alone shows that QEMU refuses, or takes and does not do: names, types, ranges, places.
//!
//! What the model has is judged by rules, for XML and command lines alike; here is the rest. Each check makes
//! problems of the kind whose rule has the reasons.

mod check;
mod device_tables;
mod drives;
mod images;
mod limits;
mod members;
mod memory;
mod names;
mod node_tables;
mod nodes;
mod places;
mod wants;

use std::collections::HashSet;

use vmdisk_model::FieldPath;
use vmdisk_source::{Problem, ProblemKind, Span};

use crate::index::Index;
use crate::lower::Lowered;
use check::Check;

/// The last phase of reading: what QEMU refuses or does not do, beyond what lowering came across.
pub(crate) fn find_refused(index: &Index<'_>, lowered: &Lowered<'_>) -> Vec<Problem<FieldPath>> {
    let mut check = Check::new(index, lowered);
    check.find_refused_names();
    check.find_refused_members();
    check.find_refused_nodes();
    check.find_refused_images();
    check.find_refused_drives();
    check.find_refused_limits();
    check.find_refused_places();
    check.find_refused_memory();
    // One mistake is one problem: what reading came across is not reported a second time.
    let known: HashSet<Span> = lowered.problems().iter().map(|it| it.span).collect();
    let mut found = check.finish();
    found.retain(|it| it.kind != ProblemKind::PropertyRefused || !known.contains(&it.span));
    found
}
