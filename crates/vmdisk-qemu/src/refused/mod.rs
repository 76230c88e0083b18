//! What a command line alone shows that QEMU refuses, or takes and does not do: names, types, ranges, places.
//!
//! What the model has is judged by rules, for XML and command lines alike; here is the rest. Each check makes
//! problems of the kind whose rule has the reasons.

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

use vmdisk_model::{DomainField, FieldPath};
use vmdisk_source::{Problem, ProblemKind, Span};

use crate::reader::Reader;
use crate::syntax::properties::Properties;

impl<'a> Reader<'a> {
    /// Notes what QEMU refuses or does not do, beyond what reading came across.
    pub(crate) fn find_refused(&mut self) {
        let read = self.problems.len();
        self.find_refused_names();
        self.find_refused_members();
        self.find_refused_nodes();
        self.find_refused_images();
        self.find_refused_drives();
        self.find_refused_limits();
        self.find_refused_places();
        self.find_refused_memory();
        // One mistake is one problem: what reading stumbled over is not told a second time.
        let mut found = self.problems.split_off(read);
        let known: HashSet<Span> = self.problems.iter().map(|problem| problem.span).collect();
        found.retain(|problem| {
            problem.kind != ProblemKind::PropertyRefused || !known.contains(&problem.span)
        });
        self.problems.append(&mut found);
    }

    /// The field that an option was read for, or the guest's devices.
    pub(super) fn field_of(&self, option: usize) -> FieldPath {
        let owner = self.owners.get(&option).copied();
        owner.unwrap_or(FieldPath::Domain(DomainField::Devices))
    }

    /// Notes something about an option.
    pub(super) fn refuse(
        &mut self,
        kind: ProblemKind,
        option: usize,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> &mut Problem<FieldPath> {
        let at = self.field_of(option);
        let problem = self.problem(kind, at, span, message);
        problem.help = Some(help.into());
        problem
    }

    /// The devices with their driver, in order.
    pub(super) fn devices(&self) -> Vec<(usize, &'a str, &'a Properties)> {
        self.of_name("device")
            .into_iter()
            .filter_map(|(option, device)| {
                Some((option, device.peek("driver")?.value.as_str(), device))
            })
            .collect()
    }
}

/// The name of a device without its transport: `virtio-blk` of `virtio-blk-pci-transitional`.
pub(super) fn base_of(driver: &str) -> &str {
    let driver = driver
        .strip_suffix("-non-transitional")
        .or_else(|| driver.strip_suffix("-transitional"))
        .unwrap_or(driver);
    ["-pci", "-ccw", "-device"]
        .iter()
        .find_map(|end| driver.strip_suffix(end))
        .unwrap_or(driver)
}
