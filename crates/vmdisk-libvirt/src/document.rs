//! A document that has been read.

use vmdisk_model::{Domain, FieldPath};
use vmdisk_rule::Problem;
use vmdisk_source::{Allowance, SourceMap, VersionedSyntax};

use crate::edits::Outlines;
use crate::loader::FirmwareElements;
use crate::passthrough::Passthrough;
use crate::xml::Arenas;
use crate::{RootKind, StorageItem, Unmodeled};

/// A document: the model, and the span of everything in it.
#[derive(Clone, Debug)]
pub struct Document {
    /// The kind of document.
    pub root: RootKind,
    /// The guest; [`Scope::DisksOnly`](vmdisk_model::Scope::DisksOnly) unless the root was a domain.
    pub domain: Domain,
    /// The span of each field.
    pub source_map: SourceMap<FieldPath>,
    /// Mistakes, in the order of the text.
    pub problems: Vec<Problem>,
    /// Attributes and elements that some libvirt releases since 4.0 do not support.
    pub versioned_syntax: Vec<VersionedSyntax<FieldPath>>,
    /// Places where findings are allowed.
    pub allowances: Vec<Allowance>,
    /// Parts that the model does not cover; empty after [`read_only`](crate::read_only).
    pub kept: Unmodeled,
    /// The arguments that libvirt passes to QEMU unread.
    pub passthrough: Passthrough,
    /// The pool or volume, if it is the root; the guest is empty then.
    pub storage: Option<StorageItem>,
    /// The elements of the text, for rules about XML.
    pub(crate) elements: Arenas,
    /// A cache for the search of edit positions.
    pub(crate) outlines: Outlines,
}

impl Document {
    /// The paths of the firmware that the guest names, for the facts about them; `text` is what was read.
    pub fn firmware_paths(&self, text: &str) -> Vec<String> {
        if self.elements.is_empty() {
            return Vec::new();
        }
        let tree = self.elements.of(text);
        let Some(named) = FirmwareElements::of(&tree) else {
            return Vec::new();
        };
        let files = [Some(named.code), named.variables, named.template];
        let paths = files.into_iter().flatten();
        paths.map(|(path, _)| path.into_owned()).collect()
    }

    /// The code and the variables of UEFI in flash that the guest names; the variables may be made at the first start.
    pub fn uefi_flash(&self, text: &str) -> Option<(String, Option<String>)> {
        if self.elements.is_empty() {
            return None;
        }
        let tree = self.elements.of(text);
        let named = FirmwareElements::of(&tree).filter(|it| it.is_flash)?;
        let variables = named.variables.map(|(path, _)| path.into_owned());
        Some((named.code.0.into_owned(), variables))
    }

    /// Forgets what only findings about the text use, when the model is changed.
    pub fn forget_text(&mut self) {
        self.problems.clear();
        self.versioned_syntax.clear();
        self.elements = Arenas::default();
    }
}
