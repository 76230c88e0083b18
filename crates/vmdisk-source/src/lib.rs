//! Internal to vmdisk: places in source text, and edits at them.
//!
//! This crate knows text and byte ranges. It does not know what a disk is: [`SourceMap`] is generic
//! over the path type that names a field, so the same map serves XML, a QEMU command line and a spec.
//!
//! ```
//! use vmdisk_source::{LineIndex, Span};
//!
//! let text = "<disk>\n  <driver cache='none'/>\n</disk>\n";
//! let start = text.find("none").expect("it is there");
//! let place = LineIndex::new(text).position(text, start);
//! assert_eq!((place.line, place.column), (2, 18));
//! assert_eq!(Span::new(start, start + 4).slice(text), Some("none"));
//! ```

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

mod allowance;
mod edit;
mod expansion;
mod line_index;
mod nearest;
pub mod sanitize;
pub mod secrets;
mod source_map;
mod span;
pub mod table;
pub mod template;
mod versioned_syntax;
mod words;

pub use allowance::Allowance;
pub use edit::{Edit, EditConflict, apply_edits};
pub use expansion::has_expansion;
pub use line_index::{LineIndex, Position};
pub use nearest::nearest;
pub use source_map::{Place, SourceMap, SourcePath};
pub use span::Span;
pub use versioned_syntax::{VersionedSyntax, WordKind};
pub use words::UnknownWord;
