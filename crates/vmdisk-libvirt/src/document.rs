//! A document that has been read.

use vmdisk_model::{Domain, FieldPath};
use vmdisk_rule::Problem;
use vmdisk_source::{Allowance, LaterWord, SourceMap};

use crate::edits::Outlines;
use crate::{Kept, RootKind, StorageItem};

/// A document: the model, and the place of everything in it.
#[derive(Clone, Debug)]
pub struct Document {
    /// What kind of document it was.
    pub root: RootKind,
    /// The guest; [`Scope::DisksOnly`](vmdisk_model::Scope::DisksOnly) unless the root was a domain.
    pub domain: Domain,
    /// Where each field was written.
    pub source_map: SourceMap<FieldPath>,
    /// Mistakes, in the order of the text.
    pub problems: Vec<Problem>,
    /// What not every libvirt knows, from 4.0 on.
    pub later_words: Vec<LaterWord<FieldPath>>,
    /// Places where findings are allowed.
    pub allowances: Vec<Allowance>,
    /// Parts that the model does not cover.
    pub kept: Kept,
    /// The pool or volume, where the root was one; the guest is empty then.
    pub storage: Option<StorageItem>,
    /// What looking for places of edits has found so far.
    pub(crate) outlines: Outlines,
}
