//! The input of rules about XML text.

use vmdisk_model::FieldPath;
use vmdisk_source::SourceMap;

use crate::RootKind;
use crate::xml::Tree;

/// A document that has been read.
pub(crate) struct Xml<'t> {
    /// The text.
    pub(crate) text: &'t str,
    /// Its elements.
    pub(crate) tree: &'t Tree<'t>,
    /// The kind of its root element.
    pub(crate) root: RootKind,
    /// The spans of the fields of the model.
    pub(crate) map: &'t SourceMap<FieldPath>,
}
