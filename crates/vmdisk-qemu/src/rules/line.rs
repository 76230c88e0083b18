//! The input of a rule about command lines.

use vmdisk_fields::Phrase;
use vmdisk_model::{Domain, DomainField, FieldPath};
use vmdisk_rule::{Context, Finding, Report, TextRule};
use vmdisk_source::Span;

use crate::document::Document;
use crate::index::Index;
use crate::interface::DefaultInterface;
use crate::members::Members;
use crate::syntax::properties::Property;
use vmdisk_model::Board;

/// A check of a command line.
pub(super) type Check = fn(&Line<'_>, &mut Report);

/// A rule about command lines.
pub(crate) type LineRule = TextRule<Check>;

/// Declares a rule about command lines, as [`vmdisk_rule::declare_rule`] does.
macro_rules! line_rule {
    ($($rule:tt)+) => {
        vmdisk_rule::declare_rule! { static RULE: $crate::rules::line::LineRule; $($rule)+ }
    };
}

pub(crate) use line_rule;

/// A command line: its options, its model, and the other inputs of rules.
pub(crate) struct Line<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) index: Index<'a>,
    pub(super) document: &'a Document,
}

impl<'a> Line<'a> {
    pub(super) fn new(context: &'a Context<'a>, document: &'a Document) -> Self {
        Line {
            context,
            index: Index::new(&document.options),
            document,
        }
    }

    /// The guest.
    pub(super) const fn domain(&self) -> &'a Domain {
        &self.document.domain
    }

    /// The board of the machine type.
    pub(super) const fn board(&self) -> Board {
        self.document.board
    }

    /// True if the machine is known: it is written, or is the default of the program.
    pub(super) const fn has_machine(&self) -> bool {
        self.document.has_machine
    }

    /// The field of an option.
    pub(super) fn owner(&self, option: usize) -> FieldPath {
        let owner = self.document.owners.get(&option).copied();
        owner.unwrap_or(FieldPath::Domain(DomainField::Devices))
    }

    /// The option of a disk's topmost node.
    pub(super) fn top_node(&self, disk: usize) -> Option<usize> {
        self.document.slots.top.get(&disk).copied()
    }

    /// Reports a finding about an option, at the option's field.
    pub(super) fn refuse<'r>(
        &self,
        report: &'r mut Report,
        option: usize,
        span: Span,
        message: impl Into<Phrase>,
        help: impl Into<Phrase>,
    ) -> &'r mut Finding {
        let finding = report.finding(self.owner(option), message);
        finding.span(span).help(help);
        finding
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

/// True for a `-drive` that creates no device.
pub(super) fn is_loose(line: &Line<'_>, drive: Members<'_>) -> bool {
    match drive.value("if") {
        Some(interface) => interface == "none",
        None => line.document.defaults.interface == DefaultInterface::None,
    }
}

/// True for a `-drive` that creates a device.
pub(super) fn has_own_device(line: &Line<'_>, drive: Members<'_>) -> bool {
    let is_unknown = line.document.defaults.interface == DefaultInterface::Unknown;
    !(is_loose(line, drive) || is_unknown && drive.value("if").is_none())
}

/// The names of the nodes that an option defines.
pub(super) fn node_names(node: Members<'_>) -> impl Iterator<Item = &Property> {
    node.iter()
        .filter(|property| property.key == "node-name" || property.key.ends_with(".node-name"))
}
