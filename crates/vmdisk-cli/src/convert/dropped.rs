//! Settings that a conversion drops.

use vmdisk::Document;
use vmdisk_source::{LineIndex, Span};

use crate::lint::config_files;
use crate::lint::inputs::Input;
use crate::render::message::{Message, MessagePlace, MessageText};

/// Something that is not carried over.
pub(super) struct Dropped<'a> {
    pub(super) owner: String,
    pub(super) is_of_disk: bool,
    pub(super) what: &'a str,
    pub(super) changes_guest: bool,
    /// How the document can be changed so that it is carried over; `None` without a known way.
    pub(super) help: Option<String>,
    pub(super) place: MessagePlace,
}

impl Dropped<'_> {
    pub(super) fn message(self) -> Message {
        let Dropped {
            owner,
            is_of_disk,
            what,
            changes_guest,
            help,
            place,
        } = self;
        // What has no other name than its field's is not named twice.
        let field = format!(" › {}", what.trim_matches('`'));
        let owner = owner.strip_suffix(&field).unwrap_or(&owner);
        let help = help.as_deref();
        let help = help.unwrap_or("write it in a form that can be carried over");
        let message = if changes_guest {
            Message {
                help: Some(match is_of_disk {
                    true => format!("{help}, or leave the disk out with `--without DISK`"),
                    false => help.to_owned(),
                }),
                ..Message::error(format!("{owner}: {what} cannot be carried over"))
            }
        } else {
            Message::warning(format!("{owner}: {what} is not carried over"))
        };
        message.at(place)
    }
}

/// A place in the text of a document, or in a file that it names.
pub(super) fn place_of(document: &Document, input: &Input, span: Span) -> MessagePlace {
    let (path, text, start) = match document.config_file_at(span) {
        Some(part) => (
            config_files::path_of(input, &part.name)
                .display()
                .to_string(),
            part.span.slice(&document.text).unwrap_or_default(),
            part.span.start,
        ),
        None => (input.path(), document.own_text(), 0),
    };
    MessagePlace {
        path,
        quoted: Some(MessageText {
            lines: LineIndex::new(text),
            text: text.to_owned(),
            span: Span::new(span.start - start, span.end - start),
            label: None,
            related: Vec::new(),
        }),
    }
}
