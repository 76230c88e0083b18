//! What the evaluation of a script found: commands with their words, and the parts without a known value.

use vmdisk_source::Span;

use super::text::Text;

/// What is known of a script.
#[derive(Debug, Default)]
pub(crate) struct Evaluated {
    /// The commands that it may run, in order, each with its expanded words.
    pub(crate) commands: Vec<Vec<Text>>,
    /// The expansions without a known value.
    pub(crate) holes: Vec<Hole>,
    /// Text that stands in several places of the commands: a change of it changes all of them.
    pub(crate) shared: Vec<Span>,
}

/// An expansion whose value is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hole {
    /// The text that stands for it: its own text, or its beginning.
    pub name: String,
    /// Its span.
    pub span: Span,
    /// Why its value is unknown.
    pub reason: String,
    /// The values that it may have, if they are known and at most four.
    pub values: Vec<String>,
}

impl Hole {
    /// True unless none of its values, as a word of a command line, is an image or an option that adds a disk.
    pub(crate) fn may_be_disk(&self) -> bool {
        let is_disk = |value: &String| {
            let mut words = value.split_whitespace();
            let first = words.clone().next();
            first.is_some_and(|word| !word.starts_with('-')) || words.any(may_be_disk)
        };
        self.values.is_empty() || self.values.iter().any(is_disk)
    }
}

/// True for an option that may add a disk.
pub(super) fn may_be_disk(word: &str) -> bool {
    let name = word
        .strip_prefix('-')
        .map(|it| it.strip_prefix('-').unwrap_or(it));
    matches!(
        name,
        Some(
            "blockdev"
                | "cdrom"
                | "device"
                | "drive"
                | "fda"
                | "fdb"
                | "hda"
                | "hdb"
                | "hdc"
                | "hdd"
                | "mtdblock"
                | "pflash"
                | "readconfig"
                | "sd"
        )
    )
}
