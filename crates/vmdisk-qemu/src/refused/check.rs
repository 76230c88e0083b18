//! What the checks look at, and what they find.

use vmdisk_model::{DomainField, FieldPath};
use vmdisk_source::{Problem, ProblemKind, Span};

use crate::index::Index;
use crate::limits::Suggestions;
use crate::lower::Lowered;
use crate::syntax::properties::{Properties, Property};

/// The options and the model of a command line, and what QEMU refuses of them.
pub(super) struct Check<'a> {
    pub(super) index: &'a Index<'a>,
    pub(super) lowered: &'a Lowered<'a>,
    problems: Vec<Problem<FieldPath>>,
    pub(super) suggestions: Suggestions,
}

impl<'a> Check<'a> {
    pub(super) fn new(index: &'a Index<'a>, lowered: &'a Lowered<'a>) -> Self {
        Check {
            index,
            lowered,
            problems: Vec::new(),
            suggestions: Suggestions::default(),
        }
    }

    /// What was found.
    pub(super) fn finish(self) -> Vec<Problem<FieldPath>> {
        self.problems
    }

    /// Notes something about an option, at the field that the option was read for.
    pub(super) fn refuse(
        &mut self,
        kind: ProblemKind,
        option: usize,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> &mut Problem<FieldPath> {
        let owner = self.lowered.owner(option);
        self.problems.push(Problem {
            kind,
            at: owner.unwrap_or(FieldPath::Domain(DomainField::Devices)),
            span,
            message: message.into(),
            help: Some(help.into()),
            fix: Vec::new(),
        });
        let last = self.problems.len() - 1;
        &mut self.problems[last]
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

/// The names of the nodes that an option makes.
pub(super) fn node_names(node: &Properties) -> impl Iterator<Item = &Property> {
    node.iter()
        .filter(|property| property.key == "node-name" || property.key.ends_with(".node-name"))
}
