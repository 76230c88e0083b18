//! A command line that has been read.

use vmdisk_model::{Domain, FieldPath};
use vmdisk_source::{Problem, SourceMap, Span};

use crate::slots::Slots;
use crate::syntax::form::Form;

/// A command line that has been read: the model, and beside it where everything was written.
#[derive(Clone, Debug)]
pub struct Document {
    /// How it was written down.
    pub form: Form,
    /// The guest; [`Scope::DisksOnly`](vmdisk_model::Scope::DisksOnly) for lines of options that name
    /// neither program nor machine.
    pub domain: Domain,
    /// Where each field was written.
    pub source_map: SourceMap<FieldPath>,
    /// Mistakes, in the order of the text.
    pub problems: Vec<Problem<FieldPath>>,
    /// What is written about disks and controllers and is not in the model.
    pub kept: Vec<KeptProperty>,
    /// Options that are about something else, in order.
    pub others: Vec<OtherOption>,
    /// Files that `-readconfig` names and that were not given: what is in them is not known.
    pub config_files: Vec<String>,
    pub(crate) slots: Slots,
}

/// A property of a disk or controller that the model does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptProperty {
    /// The disk, controller or guest that it belongs to.
    pub at: FieldPath,
    /// Its key, such as `encrypt.key-secret`.
    pub key: String,
    /// Where it stands.
    pub span: Span,
}

/// An option that is not about disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherOption {
    /// Its word, such as `-netdev`.
    pub name: String,
    /// Where it stands with its value.
    pub span: Span,
}
