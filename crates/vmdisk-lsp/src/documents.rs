//! The open documents.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lsp_types::TextDocumentContentChangeEvent as Change;

use crate::check::{Checked, check};
use crate::file_settings::FileSettings;
use crate::text::Text;
use crate::uri;

/// An open document.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) uri: String,
    pub(crate) path: PathBuf,
    pub(crate) version: i32,
    pub(crate) text: Text,
    /// The result for this text; `None` if it changed since the last check.
    pub(crate) checked: Option<Checked>,
    /// True if the editor has that result.
    pub(crate) is_published: bool,
    /// True if the editor has findings for it, which an empty list removes.
    pub(crate) has_findings: bool,
    /// The last message about missing facts.
    pub(crate) said: String,
}

impl Open {
    /// The result for the current text.
    pub(crate) fn check(&mut self, settings: &mut dyn FileSettings) -> &Checked {
        self.checked
            .get_or_insert_with(|| check(&self.uri, &self.path, &self.text, settings))
    }

    fn forget(&mut self) {
        self.checked = None;
        self.is_published = false;
    }
}

/// The open documents by their URIs.
#[derive(Debug, Default)]
pub(crate) struct Documents(BTreeMap<String, Open>);

impl Documents {
    pub(crate) fn open(&mut self, uri: String, version: i32, text: String) {
        let open = Open {
            path: uri::path_of(&uri),
            uri: uri.clone(),
            version,
            text: Text::new(text),
            checked: None,
            is_published: false,
            has_findings: false,
            said: String::new(),
        };
        self.0.insert(uri, open);
    }

    pub(crate) fn close(&mut self, uri: &str) -> Option<Open> {
        self.0.remove(uri)
    }

    pub(crate) fn get_mut(&mut self, uri: &str) -> Option<&mut Open> {
        self.0.get_mut(uri)
    }

    /// Applies changes in their order; of a document that is not open there is nothing to change.
    pub(crate) fn change(&mut self, uri: &str, version: i32, changes: Vec<Change>) {
        let Some(open) = self.0.get_mut(uri) else {
            return;
        };
        open.version = version;
        open.forget();
        for change in changes {
            match change {
                Change::TextDocumentContentChangePartial(part) => {
                    open.text.replace(part.range, &part.text);
                }
                Change::TextDocumentContentChangeWholeDocument(whole) => {
                    open.text = Text::new(whole.text);
                }
            }
        }
    }

    /// Forgets all results, because settings may have changed.
    pub(crate) fn forget(&mut self) {
        for open in self.0.values_mut() {
            open.forget();
        }
    }

    /// The documents of which the editor has no result, or an old one.
    pub(crate) fn unpublished(&mut self) -> impl Iterator<Item = &mut Open> {
        self.0.values_mut().filter(|open| !open.is_published)
    }
}
