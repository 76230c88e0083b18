//! A script that is being read: its variables, and what was found so far.

use std::collections::BTreeMap;

use vmdisk_source::Span;

use super::folder::Folder;
use super::hole::Hole;
use super::made_image::MadeImage;
use super::steps::Steps;
use super::text::Text;
use super::variables::Variables;

/// Bytes of values that are copied, at most.
pub(super) const MAX_BYTES: usize = 16 << 20;

/// A start of QEMU.
pub(super) struct Found {
    /// The words from the program on.
    pub(super) words: Vec<Text>,
    pub(super) at: usize,
    pub(super) owner: Option<String>,
    pub(super) conditions: Vec<String>,
    pub(super) folder: Folder,
    /// True for a start with text that may not count.
    pub(super) is_part: bool,
    /// True if the first word may be a program with options.
    pub(super) is_command: bool,
    /// The number of scripts around its own.
    pub(super) depth: usize,
}

/// The effect of the scripts of a file.
#[derive(Default)]
pub(super) struct Shell<'g> {
    given: Option<&'g BTreeMap<String, String>>,
    pub(super) holes: Vec<Hole>,
    pub(super) starts: Vec<Found>,
    /// The options of storage daemons.
    pub(super) daemons: Vec<Vec<Text>>,
    /// The images that commands make in any branch: nobody knows which branch has run.
    pub(super) made: Vec<MadeImage>,
    /// The places of expansions, each with its values, or why they are unknown.
    pub(super) uses: BTreeMap<Span, Vec<Result<String, String>>>,
    /// Text that is used in several places.
    pub(super) shared: Vec<Span>,
    /// The commands whose words are options: lines of options, if all are.
    pub(super) options: Vec<Vec<Text>>,
    pub(super) has_other_commands: bool,
    /// Why a variable that is not set is unknown, where it is not the caller who sets it.
    pub(super) reason: Option<&'static str>,
    pub(super) is_documentation: bool,
    pub(super) bytes: usize,
    pub(super) depth: usize,
    pub(super) file: &'g str,
    /// The places of line ends.
    lines: Vec<usize>,
}

/// A script with its variables.
pub(super) struct Run {
    pub(super) steps: Steps,
    pub(super) variables: Variables,
    pub(super) site: Site,
    /// True if a pattern without files gives no word.
    pub(super) drops_patterns: bool,
}

/// Where commands stand.
#[derive(Clone, Debug, Default)]
pub(super) struct Site {
    pub(super) at: usize,
    /// The function or target.
    pub(super) owner: Option<String>,
    pub(super) condition: Option<usize>,
    pub(super) folder: Folder,
}

impl<'g> Shell<'g> {
    pub(super) fn new(file: &'g str, given: &'g BTreeMap<String, String>) -> Self {
        Shell {
            given: Some(given),
            file,
            lines: file.match_indices('\n').map(|(at, _)| at).collect(),
            ..Shell::default()
        }
    }

    /// The number of the line at a place.
    pub(super) fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|end| *end < at) + 1
    }

    pub(super) fn given(&self, name: &str) -> Option<&'g str> {
        self.given?.get(name).map(String::as_str)
    }

    pub(super) fn note_use(&mut self, place: Span, value: Result<String, String>) {
        const MAX_USES: usize = 10_000;
        if self.uses.len() < MAX_USES && !place.is_empty() {
            let values = self.uses.entry(place).or_default();
            if values.len() < 4 && !values.contains(&value) {
                values.push(value);
            }
        }
    }

    pub(super) fn start(&mut self, site: &Site, words: Vec<Text>) {
        let condition = site.condition.map(|at| quote(self.file, at, site.at));
        self.starts.push(Found {
            words,
            at: site.at,
            owner: site.owner.clone(),
            conditions: condition.into_iter().filter(|it| !it.is_empty()).collect(),
            folder: site.folder.clone(),
            is_part: false,
            is_command: false,
            depth: self.depth,
        });
    }
}

/// The text of a condition on one line, not too long.
fn quote(text: &str, at: usize, end: usize) -> String {
    let rest = text.get(at..end.max(at)).unwrap_or_default();
    let end = ["; then", "\nthen", "; do", "\ndo", "&&", "||", "\n"]
        .iter()
        .filter_map(|it| rest.find(it))
        .min();
    let line = rest[..end.unwrap_or(rest.len())].trim();
    line.chars().take(80).collect()
}
