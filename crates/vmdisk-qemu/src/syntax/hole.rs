//! The parts of command lines without a known value.

use std::ops::Range;

use vmdisk_source::{Span, has_expansion};

use super::placeholders::{Placeholders, configured};
use super::text::{Text, floor_char_boundary};

/// The words that an expansion gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fields {
    /// One, because it is quoted.
    #[default]
    One,
    /// Any number, because a shell splits its value.
    Split,
    /// The members of an array.
    Members,
    /// The members of an array, of which each is split.
    SplitMembers,
    /// The members of an array as one word.
    Joined,
}

impl Fields {
    /// Those of a special parameter, with the quotes around it.
    pub(super) fn of(self, name: &str) -> Self {
        match (name, self) {
            ("@", Fields::One) => Fields::Members,
            ("*", Fields::One) => Fields::Joined,
            ("@" | "*", _) => Fields::SplitMembers,
            _ => self,
        }
    }
}

/// An expansion whose value is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hole {
    /// The text that stands for it: its own text, or its beginning.
    pub name: String,
    /// Its span.
    pub span: Span,
    /// Why its value is unknown.
    pub reason: String,
    /// The values that it may have, if they are known and at most four.
    pub values: Vec<String>,
    /// The variable whose value it is; empty for another expansion.
    pub(crate) variable: String,
    pub(crate) fields: Fields,
    /// Its own text.
    pub(crate) whole: String,
    /// The variable of `${NAME:-TEXT}`, which may be given.
    pub(crate) default_of: String,
    /// Texts that may be the value, each with its condition.
    pub(crate) alternatives: Vec<(Text, String)>,
    /// True for arguments of the script and variables that nothing in the file sets.
    pub(crate) is_of_caller: bool,
    /// True if it stands for words that a condition adds to a known value.
    pub(crate) is_addition: bool,
    /// True if the variable has one value in the whole file.
    pub(crate) is_stable: bool,
}

impl Hole {
    pub(crate) fn new(name: &str, span: Span, reason: &str) -> Self {
        Hole {
            name: name.to_owned(),
            span,
            reason: reason.to_owned(),
            ..Hole::default()
        }
    }

    /// True if each expansion of this name has the same value.
    pub const fn is_stable(&self) -> bool {
        self.is_of_caller || self.is_stable
    }

    /// True if only the caller sets it, who may leave it out.
    pub(crate) const fn is_of_caller(&self) -> bool {
        self.is_of_caller
    }

    /// True unless none of its values, as a word of a command line, is an image or an option that adds a disk.
    pub(crate) fn may_be_disk(&self) -> bool {
        self.may_be(may_be_disk)
    }

    /// True unless none of its values, as a word of a command line, is an image or an option that decides over disks or the
    /// machine.
    pub(crate) fn may_decide(&self) -> bool {
        self.may_be(decides)
    }

    fn may_be(&self, is_option: impl Fn(&str) -> bool) -> bool {
        let is_such = |value: &String| {
            let mut words = value.split_whitespace();
            let first = words.clone().next();
            first.is_some_and(|word| !word.starts_with('-')) || words.any(&is_option)
        };
        self.values.is_empty() || self.values.iter().any(is_such)
    }
}

impl Text {
    /// A text that is unknown.
    pub(super) fn of_hole(hole: Hole, holes: &mut Vec<Hole>) -> Self {
        let mut text = Text::empty(hole.span.start);
        text.push_new(hole, holes);
        text
    }

    /// Appends a part that is unknown.
    pub(super) fn push_new(&mut self, hole: Hole, holes: &mut Vec<Hole>) {
        let number = u32::try_from(holes.len()).unwrap_or(u32::MAX);
        self.push_hole(&hole.name, hole.span, number);
        holes.push(hole);
    }
}

/// Options that may add a disk.
const DISKS: [&str; 14] = [
    "blockdev",
    "cdrom",
    "device",
    "drive",
    "fda",
    "fdb",
    "hda",
    "hdb",
    "hdc",
    "hdd",
    "mtdblock",
    "pflash",
    "readconfig",
    "sd",
];

/// Further options that decide over disks or the machine.
const DECISIVE: [&str; 8] = [
    "M", "global", "m", "machine", "object", "set", "smp", "snapshot",
];

fn is_among(word: &str, options: &[&str]) -> bool {
    let name = word
        .strip_prefix('-')
        .map(|it| it.strip_prefix('-').unwrap_or(it));
    name.is_some_and(|name| options.contains(&name))
}

/// True for an option that may add a disk.
pub(super) fn may_be_disk(word: &str) -> bool {
    is_among(word, &DISKS)
}

/// True for an option that decides over disks or the machine.
pub(super) fn decides(word: &str) -> bool {
    may_be_disk(word) || is_among(word, &DECISIVE)
}

/// Marks the parts of words that another program fills in: variables, unless they are already evaluated, and placeholders,
/// unless their values are given. The placeholders of a template have their own text again.
pub(super) fn mark<'t>(
    words: impl Iterator<Item = &'t mut Text>,
    holes: &mut Vec<Hole>,
    is_evaluated: bool,
    placeholders: &Placeholders<'_>,
) {
    let is_open = |word: &str| has_expansion(word) || word.contains('@');
    for word in words.filter(|word| is_open(word.as_str())) {
        let mut marked = Text::empty(word.whole().start);
        let mut at = 0;
        while let Some(range) = placeholder(word.as_str(), at, is_evaluated) {
            marked.push_part(word, at..range.start);
            match word.hole_at(range.start) {
                Some(_) => marked.push_part(word, range.clone()),
                None => {
                    let name = &word.as_str()[range.clone()];
                    let span = word.span(range.clone());
                    let (name, value) = placeholders.of(name);
                    if let Some(value) = value {
                        marked.push_escape(value, span);
                        at = range.end;
                        continue;
                    }
                    let reason = match name.starts_with(['{', '<', '@']) {
                        true => RENDERED,
                        false => UNSET,
                    };
                    let hole = Hole {
                        is_of_caller: name.starts_with(['$', '`']),
                        ..Hole::new(name, span, reason)
                    };
                    marked.push_new(hole, holes);
                }
            }
            at = range.end;
        }
        marked.push_part(word, at..word.as_str().len());
        *word = marked;
    }
}

/// The reason for a variable without a value.
pub(super) const UNSET: &str = "nothing in the file sets it";

/// The reason for a placeholder of a template.
const RENDERED: &str = "what renders the template sets it";

/// The next part that another program fills in.
fn placeholder(text: &str, from: usize, is_evaluated: bool) -> Option<Range<usize>> {
    let marks = text[from..].match_indices(['$', '`', '%', '{', '@']);
    let mut found = marks.filter_map(|(at, mark)| {
        if is_evaluated && matches!(mark, "$" | "`") {
            return None;
        }
        let start = from + at;
        // A placeholder is not longer.
        let end = floor_char_boundary(text, start + (1 << 10));
        let rest = &text[start..end];
        let after = rest[1..].chars().next();
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let starts_name = after.is_some_and(|it| it.is_ascii_alphabetic() || it == '_');
        let name = 1 + rest[1..].find(|it| !is_name(it)).unwrap_or(rest.len() - 1);
        let to = |end: &str| Some(rest.find(end).map_or(rest.len(), |at| at + end.len()));
        let length = match (mark, after) {
            ("{", Some('{')) if rest.contains("}}") => {
                return Some(start..start + rest.find("}}").map_or(2, |at| at + 2));
            }
            ("{", Some('{')) => Some(2),
            ("@", _) => {
                let before = text[..start].chars().next_back();
                let is_first = !before.is_some_and(|it| it.is_ascii_alphanumeric());
                is_first.then(|| configured(rest)).flatten()
            }
            ("%", _) if starts_name && rest[name..].starts_with('%') => Some(name + 1),
            ("%", _) if starts_name && !is_evaluated => Some(2),
            _ if is_evaluated => None,
            ("`", Some(_)) => Some(rest[1..].find('`').map_or(rest.len(), |at| at + 2)),
            ("$", Some('(')) => to(")"),
            ("$", Some('{')) => to("}"),
            ("$", Some('@' | '<' | '*' | '^' | '#')) => Some(2),
            ("$", _) if starts_name => Some(name),
            _ => None,
        };
        // It keeps the structure of the text around it.
        let most = || {
            let end = rest.find([',', '=', '"', '\'', ' ', '\t', '\n', '\r']);
            end.unwrap_or(rest.len())
        };
        length.map(|length| start..start + length.min(most()).max(1))
    });
    found.next()
}
