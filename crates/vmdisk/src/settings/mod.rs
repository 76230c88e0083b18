//! Settings of a repository: the contents of a `vmdisk.toml`, which the command and the bindings read.

mod patterns;
mod reader;

use std::path::Path;

use vmdisk_facts::Target;
use vmdisk_source::Span;

pub use patterns::Patterns;
pub use reader::{FILE_KEYS, KEYS, RULE_KEYS};

pub use crate::house::{ConditionMistake, HouseRule, facts, fields};
use crate::rules::{Policy, Rule, Severity};
use crate::selection::RuleLevel;

/// The contents of a `vmdisk.toml`. Paths and patterns start at its directory.
///
/// ```
/// use std::path::Path;
/// use vmdisk::settings::ConfigText;
///
/// let settings = ConfigText::parse("[[files]]\npaths = [\"lab/\"]\npolicy = \"lab\"\n").unwrap();
/// assert_eq!(settings.sections(Path::new("lab/a.xml")).len(), 2);
/// assert_eq!(settings.sections(Path::new("a.xml")).len(), 1);
///
/// let mistakes = ConfigText::parse("[rules]\ncache-unsave = \"off\"\n").unwrap_err();
/// assert_eq!(mistakes[0].title, "`cache-unsave`: there is no such rule or group; did you mean `cache-unsafe`?");
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ConfigText {
    /// Settings for every input.
    pub all: Section,
    /// ConfigText by the paths of inputs; later ones take precedence.
    pub files: Vec<(Patterns, Section)>,
    /// House rules.
    pub rules: Vec<&'static Rule>,
    /// Inputs that are not checked.
    pub exclude: Patterns,
    /// The lowest severity that fails a run.
    pub fail_on: Option<Severity>,
    /// The lowest severity that is reported.
    pub min_severity: Option<Severity>,
    /// The file of known findings, and the place that names it.
    pub baseline: Option<(String, Span)>,
}

/// Settings for some inputs.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Section {
    /// Facts files, directories and patterns, with their places.
    pub facts: Option<Vec<(String, Span)>>,
    /// Names of the hosts among them, with their places.
    pub hosts: Option<Vec<(String, Span)>>,
    /// Versions to check for.
    pub target: Option<Target>,
    /// Who shares the host.
    pub policy: Option<Policy>,
    /// Levels of rules and groups, in the order in which they take effect.
    pub rules: Vec<(String, RuleLevel)>,
}

/// A mistake in a `vmdisk.toml`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{title}")]
#[non_exhaustive]
pub struct SettingsMistake {
    /// The mistake.
    pub title: String,
    /// The remedy.
    pub help: Option<String>,
    /// The place.
    pub span: Span,
}

impl ConfigText {
    /// The numbers of the entries of `files` that hold for a file, which is named from the directory of the settings.
    pub fn matching(&self, file: &Path) -> Vec<usize> {
        let entries = self.files.iter().enumerate();
        let matching = entries.filter(|(_, (paths, _))| paths.has(file));
        matching.map(|(number, _)| number).collect()
    }

    /// The settings of a file, the least specific first.
    pub fn sections(&self, file: &Path) -> Vec<&Section> {
        self.sections_of(&self.matching(file))
    }

    /// The settings of files that match these entries of `files`, the least specific first.
    pub fn sections_of(&self, matching: &[usize]) -> Vec<&Section> {
        let matching = matching.iter().map(|number| &self.files[*number].1);
        std::iter::once(&self.all).chain(matching).collect()
    }
}
