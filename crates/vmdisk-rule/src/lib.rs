//! Internal to vmdisk: the types of rules: declaration, inputs and findings.
//!
//! A [`Rule`] is metadata, a manual page and a check. [`declare_rule!`] declares one from a doc comment, which is the
//! page, and a few fields. Rules about the model are in `vmdisk-rules`; rules about the text of a syntax are in the
//! crate of that syntax.

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

mod comparison;
mod context;
mod declare;
mod evidence;
mod flash;
pub mod image_facts;
mod other_guests;
mod outcome;
mod page;
mod policy;
mod problem;
pub mod reading;
mod registry;
mod rule;
pub mod serial;
mod severity;

pub use comparison::{ByAnswer, ComparedHost, Comparison};
pub use context::{Consumer, Context};
pub use declare::TextRule;
pub use evidence::Evidence;
pub use flash::report_flash;
pub use other_guests::{OtherGuests, Resource, SharedImage, Sharing, Shortage};
pub use outcome::Outcome;
pub use page::Example;
pub use policy::Policy;
pub use problem::Problem;
pub use registry::{has_sorted_names, joined};
pub use rule::{
    Applicability, Check, Confidence, Details, Finding, FindingText, Fix, NotChecked, Related,
    Report, Rule,
};
pub use severity::{Group, Severity};
pub use vmdisk_facts::Missing;
