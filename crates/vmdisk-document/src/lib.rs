//! Internal to vmdisk: YAML and JSON as values with places.
//!
//! Facts, specs and benchmark plans are read through this crate, so that each of their mistakes has a place in the text.
//! [`read_yaml`] and [`read_json`] return a [`Document`], whose [`Node`]s have spans. [`from_node`] hands a node to any
//! serde type and reports the path and the span of the first mistake and of every key that the type does not read.
//!
//! Both readers are linear in the size of the text. Nesting is limited to [`MAX_DEPTH`]. The caller limits the
//! number of values, in which an alias counts as many values as it repeats.
//!
//! ```
//! use vmdisk_document::{PathStep, read_yaml};
//!
//! let text = "disks:\n- path: /srv/a.img\n  size: 4G\n";
//! let document = read_yaml(text, 1000)?;
//! let disk = document.root.get("disks").and_then(|disks| disks.item(0)).expect("there is one disk");
//! assert_eq!(disk.get("size").and_then(|size| size.span.slice(text)), Some("4G"));
//! let path = [PathStep::Key("disks"), PathStep::Index(0), PathStep::Key("cache")];
//! assert_eq!(document.root.nearest(path).span, disk.span, "a missing key belongs to its map");
//! # Ok::<(), vmdisk_document::SyntaxError>(())
//! ```

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

mod de;
mod json;
mod path;
mod value;
mod write;
mod yaml;

pub use de::{Ignored, ValueError, from_node};
pub use json::read_json;
pub use value::{Entry, Node, PathStep, Value};
pub use yaml::read_yaml;

use vmdisk_source::Span;

/// Deepest nesting of lists and maps that is read.
pub const MAX_DEPTH: usize = 128;

/// A text that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The outermost value.
    pub root: Node,
    /// Comments of a YAML text, in order.
    pub comments: Vec<Comment>,
    /// True if a YAML text has anchors: one value may be used in several places.
    pub has_anchors: bool,
}

/// A comment of a YAML text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The comment from its `#` to the end of the line.
    pub span: Span,
    /// The text after the `#`.
    pub text: String,
    /// True if nothing else is written on its line.
    pub is_alone: bool,
}

/// The reason why a text is not YAML or not JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The place of the mistake.
    pub span: Span,
    /// The mistake: lower case, no full stop.
    pub message: String,
}

impl SyntaxError {
    fn new(span: Span, message: impl Into<String>) -> Self {
        SyntaxError {
            span,
            message: message.into(),
        }
    }
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SyntaxError {}
