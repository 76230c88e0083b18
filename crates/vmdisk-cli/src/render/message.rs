//! Messages that are not findings: unreadable inputs, invalid settings, warnings.

use std::sync::Arc;

use vmdisk_source::secrets::Secrets;
use vmdisk_source::{LineIndex, Position, Span};

use crate::render::block::{Block, Heading, Quoted};

/// A message for people.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) is_error: bool,
    /// The mistake.
    pub(crate) title: String,
    /// Where.
    pub(crate) place: Option<MessagePlace>,
    pub(crate) notes: Vec<String>,
    /// The remedy.
    pub(crate) help: Option<String>,
}

/// Where a message belongs.
#[derive(Clone, Debug)]
pub(crate) struct MessagePlace {
    /// The given path of the file.
    pub(crate) path: String,
    /// The place in its text, if it could be read as text.
    pub(crate) quoted: Option<MessageText>,
}

/// A place in a text that is kept for the message.
#[derive(Clone, Debug)]
pub(crate) struct MessageText {
    pub(crate) text: SharedText,
    pub(crate) span: Span,
    pub(crate) label: Option<String>,
    pub(crate) related: Vec<(Span, String)>,
}

/// A text with its lines and secrets. There may be a message about each of its elements, so they share it.
#[derive(Clone, Debug)]
pub(crate) struct SharedText(Arc<(String, LineIndex, Secrets)>);

impl SharedText {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let lines = LineIndex::new(&text);
        let secrets = Secrets::of(&text);
        SharedText(Arc::new((text, lines, secrets)))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0.0
    }

    pub(crate) fn lines(&self) -> &LineIndex {
        &self.0.1
    }
}

impl MessagePlace {
    pub(crate) fn new(path: impl Into<String>, quoted: Option<MessageText>) -> Self {
        MessagePlace {
            path: path.into(),
            quoted,
        }
    }
}

impl MessageText {
    /// A place without a label.
    pub(crate) fn new(text: SharedText, span: Span) -> Self {
        MessageText {
            text,
            span,
            label: None,
            related: Vec::new(),
        }
    }

    /// Where it begins.
    pub(crate) fn start(&self) -> Position {
        let text = &self.text;
        text.lines().position(text.text(), self.span.start)
    }
}

impl Message {
    pub(crate) fn error(title: impl Into<String>) -> Self {
        Message {
            is_error: true,
            title: title.into(),
            place: None,
            notes: Vec::new(),
            help: None,
        }
    }

    pub(crate) fn warning(title: impl Into<String>) -> Self {
        Message {
            is_error: false,
            ..Message::error(title)
        }
    }

    pub(crate) fn at(mut self, place: MessagePlace) -> Self {
        self.place = Some(place);
        self
    }

    pub(crate) fn notes(mut self, notes: Vec<String>) -> Self {
        self.notes = notes;
        self
    }

    /// Says what to do about it, if that is known.
    pub(crate) fn help(mut self, help: impl Into<Option<String>>) -> Self {
        self.help = help.into();
        self
    }

    pub(crate) fn render(&self, colored: bool) -> String {
        let text = self.place.as_ref().and_then(|place| place.quoted.as_ref());
        let block = Block {
            heading: if self.is_error {
                Heading::Error
            } else {
                Heading::Warning
            },
            id: None,
            url: None,
            title: &self.title,
            path: self.place.as_ref().map(|place| place.path.as_str()),
            quoted: text.map(|text| Quoted {
                text: text.text.text(),
                lines: text.text.lines(),
                secrets: &text.text.0.2,
                span: text.span,
                label: text.label.as_deref(),
                snippet: true,
            }),
            related: text
                .into_iter()
                .flat_map(|text| &text.related)
                .map(|(span, label)| (*span, label.as_str()))
                .collect(),
            notes: self.notes.clone(),
            help: self.help.clone(),
            patch: &[],
        };
        block.render(colored)
    }
}
