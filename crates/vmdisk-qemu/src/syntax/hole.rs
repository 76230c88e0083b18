//! What the evaluation of a script found: commands with their words, and the parts without a known value.

use std::collections::BTreeMap;
use std::ops::Range;

use vmdisk_source::{Span, has_expansion};

use super::folder::Folder;
use super::placeholders::{Placeholders, configured};
use super::text::Text;

/// What is known of a script.
#[derive(Debug, Default)]
pub(crate) struct Evaluated {
    /// The commands that it may run, in order.
    pub(crate) commands: Vec<Command>,
    /// The expansions without a known value.
    pub(crate) holes: Vec<Hole>,
    /// The branches that are not certain, by the start of their text.
    pub(crate) choices: BTreeMap<usize, Choice>,
    /// The places of expansions, each with its first values, or why they are unknown.
    pub(crate) uses: BTreeMap<Span, Vec<Result<String, String>>>,
    /// Text that stands in several places of the commands: a change of it changes all of them.
    pub(crate) shared: Vec<Span>,
}

/// Expansions whose values are kept, at most.
const MAX_USES: usize = 10_000;

impl Evaluated {
    /// Notes the value of an expansion.
    pub(crate) fn note_use(&mut self, place: Span, words: &[Text]) {
        if self.uses.len() >= MAX_USES || place.is_empty() {
            return;
        }
        let hole = words.iter().flat_map(Text::holes).next();
        let value = match hole.and_then(|(_, hole)| self.holes.get(hole as usize)) {
            Some(hole) if hole.values.is_empty() => Err(hole.reason.clone()),
            Some(hole) => Err(format!("{}: {}", hole.reason, hole.values.join(" or "))),
            None => {
                let words = words.iter().take(20);
                let words: Vec<String> = words
                    .map(|it| it.as_str().chars().take(80).collect())
                    .collect();
                Ok(words.join(" "))
            }
        };
        let values = self.uses.entry(place).or_default();
        if values.len() < 4 && !values.contains(&value) {
            values.push(value);
        }
    }

    /// The text of an unknown value.
    pub(crate) fn hole(&mut self, name: &str, span: Span, reason: impl Into<String>) -> Text {
        let mut text = Text::empty(span.start);
        let number = u32::try_from(self.holes.len()).unwrap_or(u32::MAX);
        text.push_hole(name, span, number);
        self.holes.push(Hole {
            name: name.to_owned(),
            span,
            reason: reason.into(),
            values: Vec::new(),
            choice: None,
            assumed: None,
        });
        text
    }

    /// A text in a run without arguments and variables of the caller, if it is known then.
    pub(super) fn assumed_text(&self, text: &Text) -> Option<String> {
        let mut all = String::new();
        let mut at = 0;
        for (range, hole) in text.holes() {
            let hole = self.holes.get(hole as usize)?;
            all.push_str(&text.as_str()[at..range.start]);
            all.push_str(hole.assumed?);
            at = range.end;
        }
        all.push_str(&text.as_str()[at..]);
        Some(all)
    }
}

/// A command with its expanded words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Command {
    pub(crate) words: Vec<Text>,
    /// The function or target that it stands in.
    pub(crate) owner: Option<String>,
    /// Where the script calls that function, or the command stands.
    pub(crate) site: usize,
    pub(crate) folder: Folder,
}

/// The branches of which one is taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    /// Their conditions, as text.
    pub(crate) conditions: Vec<String>,
    /// The one that is taken without arguments and variables of the caller, if that is known.
    pub(crate) default: Option<usize>,
    /// True for a loop: its first way is that it runs, and what it sets is unknown then.
    pub(crate) is_loop: bool,
}

/// The branches that are taken, by the start of the text around them.
pub(crate) type Decisions = BTreeMap<usize, usize>;

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
    /// The branches that set it, by the start of their text.
    pub(crate) choice: Option<usize>,
    /// The value in a run without arguments and variables of the caller.
    pub(crate) assumed: Option<&'static str>,
}

impl Hole {
    /// True if each expansion of this name has the same value: the caller, or a branch before both, sets it.
    pub fn is_stable(&self) -> bool {
        self.is_of_caller() || self.choice.is_some()
    }

    /// True if only the caller sets it, who may leave it out.
    pub(crate) fn is_of_caller(&self) -> bool {
        self.assumed == Some("")
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
    let mut found = Evaluated {
        holes: std::mem::take(holes),
        ..Evaluated::default()
    };
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
                    let hole = found.hole(name, span, reason);
                    if let Some(last) = found.holes.last_mut() {
                        last.assumed = name.starts_with(['$', '`']).then_some("");
                    }
                    marked.push_part(&hole, 0..name.len());
                }
            }
            at = range.end;
        }
        marked.push_part(word, at..word.as_str().len());
        *word = marked;
    }
    *holes = found.holes;
}

/// The reason for a variable without a value.
pub(super) const UNSET: &str = "nothing in the file sets it";

/// The reason for a placeholder of a template.
const RENDERED: &str = "what renders the template sets it";

/// The next part that another program fills in.
fn placeholder(text: &str, from: usize, is_evaluated: bool) -> Option<Range<usize>> {
    let marks = text[from..].match_indices(['$', '`', '%', '{', '@']);
    let mut found = marks.filter_map(|(at, mark)| {
        let start = from + at;
        let rest = &text[start..];
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
            ("%", Some('~')) if !is_evaluated => Some(name.max(3).min(rest.len())),
            ("%", _) if starts_name && rest[name..].starts_with('%') => Some(name + 1),
            ("%", _) if starts_name && !is_evaluated => Some(2),
            ("%", Some('{')) if !is_evaluated => to("}"),
            _ if is_evaluated => None,
            ("`", Some(_)) => Some(rest[1..].find('`').map_or(rest.len(), |at| at + 2)),
            ("$", Some('(')) => to(")"),
            ("$", Some('{')) => to("}"),
            ("$", Some('@' | '<' | '*' | '^' | '#')) => Some(2),
            ("$", _) if starts_name => Some(name),
            _ => None,
        };
        // It keeps the structure of the text around it.
        let most = rest
            .find([',', '=', '"', '\'', ' ', '\t', '\n', '\r'])
            .unwrap_or(rest.len());
        length.map(|length| start..start + length.min(most).max(1))
    });
    found.next()
}
