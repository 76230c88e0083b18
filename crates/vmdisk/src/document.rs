//! A text that was read.

use vmdisk_libvirt::{ReadFailure, RootKind};
use vmdisk_model::{Domain, FieldPath};
use vmdisk_source::{Edit, LineIndex, Span};

use crate::Place;

/// A text that was read: the model, and where each part of it is written.
#[derive(Debug)]
pub struct Document {
    /// The text itself.
    pub text: String,
    /// What it says, and everything the reader knows of how it says it.
    pub source: vmdisk_libvirt::Document,
    pub(crate) lines: LineIndex,
}

/// Reads a libvirt domain or disk.
///
/// Reading goes on past every mistake inside a well-formed document; the mistakes come out of
/// [`lint`](crate::lint) as findings.
///
/// # Errors
/// If the text is no well-formed XML, too large or too deep, or not a domain or disk.
pub fn read(text: &str) -> Result<Document, ReadFailure> {
    Ok(Document {
        source: vmdisk_libvirt::read(text)?,
        lines: LineIndex::new(text),
        text: text.to_owned(),
    })
}

/// Reads a libvirt domain or disk from bytes, saying plainly if they are not UTF-8.
///
/// # Errors
/// As [`read`], and if the bytes are in another encoding or no text at all.
pub fn read_bytes(bytes: &[u8]) -> Result<Document, ReadFailure> {
    read(vmdisk_libvirt::decode(bytes)?)
}

impl Document {
    /// The guest, or the disks, that the text describes.
    pub const fn domain(&self) -> &Domain {
        &self.source.domain
    }

    /// The guest alone, when the text is no longer needed.
    pub fn into_domain(self) -> Domain {
        self.source.domain
    }

    /// What kind of document it is.
    pub const fn root(&self) -> RootKind {
        self.source.root
    }

    /// Where a field is written, or the nearest field around it.
    pub fn place(&self, at: FieldPath) -> Place {
        match self.source.source_map.resolve(at) {
            Some((found, place)) => self.place_of_span(at, place.span, found == at),
            None => self.place_of_span(at, Span::empty(0), false),
        }
    }

    pub(crate) fn place_of_span(&self, at: FieldPath, span: Span, is_exact: bool) -> Place {
        Place {
            span,
            start: self.lines.position(&self.text, span.start),
            end: self.lines.position(&self.text, span.end),
            is_exact,
            breadcrumb: self.breadcrumb(at),
        }
    }

    /// A field in words: `disk vda › driver/@cache`.
    pub fn breadcrumb(&self, at: FieldPath) -> String {
        let disk = |index: usize| match self.domain().disks.get(index) {
            Some(disk) => format!("disk {}", disk.name()),
            None => format!("disk {index}"),
        };
        match at {
            FieldPath::Domain(field) => field.label().to_owned(),
            FieldPath::Disk(index, vmdisk_model::DiskField::Disk) => disk(index),
            FieldPath::Disk(index, field) => format!("{} › {}", disk(index), field.label()),
            FieldPath::Image(index, 0, field) => format!("{} › {}", disk(index), field.label()),
            FieldPath::Image(index, depth, field) => {
                format!(
                    "{} › backing image {depth} › {}",
                    disk(index),
                    field.label()
                )
            }
            FieldPath::Controller(index, field) => {
                format!("controller {index} › {}", field.label())
            }
            FieldPath::IoThread(index, field) => format!("iothread {index} › {}", field.label()),
        }
    }

    /// The byte edits of a fix; `None` if one of its steps cannot be made in this text.
    pub(crate) fn edits_of(&self, fix: &vmdisk_rules::Fix) -> Option<Vec<Edit>> {
        let mut edits = fix.edits.clone();
        let changes = vmdisk_libvirt::edits_of_all(&self.text, &self.source, &fix.changes);
        edits.extend(changes.ok()?);
        Some(edits)
    }
}
