//! Allowances: places where the author of a file allows findings of some rules, for a reason.

use roxmltree::Document;
use vmdisk_model::{Domain, FieldPath};
use vmdisk_source::{Allowance, SourceMap};

/// Finds the allowances of a document.
pub(crate) fn read(
    _text: &str,
    _tree: &Document<'_>,
    _domain: &Domain,
    _map: &SourceMap<FieldPath>,
) -> Vec<Allowance> {
    Vec::new()
}
