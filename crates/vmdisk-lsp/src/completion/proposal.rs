//! Proposals, and how the editor inserts them.

use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionItemTextEdit, CompletionList, Documentation,
    InsertTextFormat, MarkupContent, MarkupKind, TextEdit,
};
use vmdisk::Target;
use vmdisk_facts::Version;
use vmdisk_fields::Since;
use vmdisk_source::Span;

use crate::meaning::since;
use crate::text::Text;

/// Proposals for one place.
#[derive(Debug)]
pub(crate) struct Proposals {
    /// The text that a proposal replaces.
    pub(crate) span: Span,
    pub(crate) list: Vec<Proposal>,
}

/// A name or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proposal {
    pub(crate) label: String,
    pub(crate) kind: Kind,
    /// The versions that know it.
    pub(crate) detail: String,
    /// The meaning, in Markdown.
    pub(crate) documentation: String,
    /// True if the versions that will run the file do not know it.
    pub(crate) is_unavailable: bool,
}

/// The role of a proposal, which decides about the text around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Value,
    Element,
    Attribute,
    /// A key of a spec, written with `: `.
    SpecKey,
    /// A key of an option, written with `=`.
    OptionKey,
    /// A key inside quotes, or an option.
    Name,
}

impl Proposals {
    pub(crate) fn to_list(&self, text: &Text, has_snippets: bool) -> CompletionList {
        let range = text.range(self.span);
        let item = |(nth, proposal): (usize, &Proposal)| {
            let (new_text, is_snippet) = proposal.insertion(has_snippets);
            CompletionItem {
                label: proposal.label.clone(),
                kind: Some(match proposal.kind {
                    Kind::Value => CompletionItemKind::Value,
                    Kind::Element => CompletionItemKind::Struct,
                    Kind::Attribute | Kind::SpecKey | Kind::OptionKey | Kind::Name => {
                        CompletionItemKind::Property
                    }
                }),
                detail: Some(match proposal.is_unavailable {
                    true => format!("{} (not in the target)", proposal.detail),
                    false => proposal.detail.clone(),
                }),
                documentation: (!proposal.documentation.is_empty()).then(|| {
                    Documentation::MarkupContent(MarkupContent {
                        kind: MarkupKind::Markdown,
                        value: proposal.documentation.clone(),
                    })
                }),
                sort_text: Some(format!("{}{nth:04}", u8::from(proposal.is_unavailable))),
                insert_text_format: Some(match is_snippet {
                    true => InsertTextFormat::Snippet,
                    false => InsertTextFormat::PlainText,
                }),
                text_edit: Some(CompletionItemTextEdit::TextEdit(TextEdit {
                    range,
                    new_text,
                })),
                ..CompletionItem::default()
            }
        };
        CompletionList {
            is_incomplete: false,
            items: self.list.iter().enumerate().map(item).collect(),
            ..CompletionList::default()
        }
    }
}

impl Proposal {
    /// A word with the first versions that have it.
    pub(crate) fn versioned(
        label: &str,
        kind: Kind,
        target: &Target,
        (libvirt, qemu): (Since, Option<Since>),
        documentation: String,
    ) -> Self {
        Proposal {
            label: label.to_owned(),
            kind,
            detail: since(libvirt, qemu),
            documentation,
            is_unavailable: !is_in(target, libvirt, qemu),
        }
    }

    /// The inserted text, and true if it is a snippet.
    fn insertion(&self, has_snippets: bool) -> (String, bool) {
        let label = &self.label;
        match self.kind {
            Kind::Value | Kind::Element | Kind::Name => (label.clone(), false),
            Kind::Attribute if has_snippets => (format!("{label}='$1'"), true),
            Kind::Attribute => (format!("{label}=''"), false),
            Kind::SpecKey => (format!("{label}: "), false),
            Kind::OptionKey => (format!("{label}="), false),
        }
    }
}

/// False if the target's libvirt or QEMU is older than this; true for an unknown one.
pub(crate) fn is_in(target: &Target, libvirt: Since, qemu: Option<Since>) -> bool {
    let is_new = |have: Option<Version>, need: Since| {
        have.is_none_or(|have| have >= Version(need.0, need.1, need.2))
    };
    is_new(target.libvirt, libvirt) && qemu.is_none_or(|need| is_new(target.qemu, need))
}
