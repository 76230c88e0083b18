//! Settings that a conversion drops.

use vmdisk::model::FieldPath;
use vmdisk::{ConfigFilePart, Document};
use vmdisk_source::Span;

use crate::input::config_files;
use crate::input::inputs::Input;
use crate::render::message::{Message, MessagePlace, MessageText, SharedText};

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
        // An expansion of a script is named with its reason.
        let help = help.unwrap_or(match what.contains("(`") {
            true => "give the value with `--set NAME=VALUE`, or run it: `vmdisk capture -- COMMAND | vmdisk convert -`",
            false => "write it in a form that can be carried over",
        });
        let message = if changes_guest {
            Message::error(format!("{owner}: {what} cannot be carried over")).help(match is_of_disk
            {
                true => format!("{help}, or leave the disk out with `--without DISK`"),
                false => help.to_owned(),
            })
        } else {
            Message::warning(format!("{owner}: {what} is not carried over"))
        };
        message.at(place)
    }
}

/// The texts that messages about a document quote, shared by all of them: there may be one for each element.
pub(super) struct Places<'a> {
    pub(super) document: &'a Document,
    input: &'a Input,
    own: SharedText,
    config_files: Vec<SharedText>,
}

impl<'a> Places<'a> {
    pub(super) fn new(document: &'a Document, input: &'a Input) -> Self {
        let of_file = |part: &ConfigFilePart| {
            SharedText::new(part.span.slice(&document.text).unwrap_or_default())
        };
        Places {
            document,
            input,
            own: SharedText::new(document.own_text()),
            config_files: document.config_files.iter().map(of_file).collect(),
        }
    }

    fn file_at(&self, span: Span) -> Option<(&ConfigFilePart, &SharedText)> {
        let part = self.document.config_file_at(span)?;
        let mut all = self.document.config_files.iter().zip(&self.config_files);
        all.find(|(other, _)| *other == part)
    }

    /// Where a field of the document is written.
    pub(super) fn of_field(&self, at: FieldPath) -> MessagePlace {
        self.of(self.document.place(at).span)
    }

    /// A place in the text of the document, or in a file that it names.
    pub(super) fn of(&self, span: Span) -> MessagePlace {
        let (path, text, start) = match self.file_at(span) {
            Some((part, text)) => (
                config_files::path_of(self.input, &part.name)
                    .display()
                    .to_string(),
                text.clone(),
                part.span.start,
            ),
            None => (self.input.path(), self.own.clone(), 0),
        };
        MessagePlace::new(
            path,
            Some(MessageText::new(
                text,
                Span::new(span.start - start, span.end - start),
            )),
        )
    }
}
