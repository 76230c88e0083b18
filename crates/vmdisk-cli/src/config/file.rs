//! The contents of a configuration file.

use std::fs::Metadata;
use std::path::{Component, Path, PathBuf};

use ignore::gitignore::Gitignore;
use vmdisk::{Policy, Severity, Target};
use vmdisk_source::Span;

use crate::input::watch;
use crate::render::message::{Message, MessagePlace, MessageText, SharedText};
use crate::stop::Stop;

/// The name of the file.
pub(crate) const NAME: &str = "vmdisk.toml";

/// A configuration file.
#[derive(Debug)]
pub(crate) struct Config {
    /// The path of the file.
    pub(crate) path: PathBuf,
    /// Its directory, absolute: paths and patterns start there.
    pub(crate) directory: PathBuf,
    /// Settings for every input.
    pub(crate) all: Section,
    /// Settings by the paths of inputs; later ones take precedence.
    pub(crate) files: Vec<(Gitignore, Section)>,
    /// Inputs that are not checked.
    pub(crate) exclude: Gitignore,
    pub(crate) fail_on: Option<Severity>,
    pub(crate) min_severity: Option<Severity>,
    /// Known findings, and the place that names them.
    pub(crate) baseline: Option<(PathBuf, Span)>,
    pub(super) text: String,
    /// Where it was found; `None` for one that the caller named.
    pub(super) found: Option<Found>,
}

/// Where a configuration was found.
#[derive(Debug)]
pub(super) struct Found {
    /// The directory of its repository, otherwise its own, without links.
    pub(super) repository: PathBuf,
    pub(super) metadata: Metadata,
}

/// Settings for some inputs.
#[derive(Debug, Default)]
pub(crate) struct Section {
    /// Facts files, directories and patterns.
    pub(crate) facts: Option<Vec<(PathBuf, Span)>>,
    /// Names of the hosts among them, with their places.
    pub(crate) hosts: Option<Vec<(String, Span)>>,
    pub(crate) target: Option<Target>,
    pub(crate) policy: Option<Policy>,
    /// Levels of rules and groups, in the order in which they take effect.
    pub(crate) rules: Vec<(String, Level)>,
}

/// The treatment of the findings of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// They are not reported.
    Off,
    /// They are reported.
    On,
    /// They are reported with this severity.
    Severity(Severity),
}

impl Config {
    /// The numbers of the entries of `files` that hold for an input.
    pub(crate) fn matching(&self, input: &Path) -> Vec<usize> {
        let entries = self.files.iter().enumerate();
        let matching = entries.filter(|(_, (paths, _))| is_in(paths, input));
        matching.map(|(number, _)| number).collect()
    }

    /// The settings of inputs that match these entries of `files`, the least specific first.
    pub(crate) fn sections(&self, matching: &[usize]) -> Vec<&Section> {
        let matching = matching.iter().map(|number| &self.files[*number].1);
        std::iter::once(&self.all).chain(matching).collect()
    }

    /// True if an input is not to be checked.
    pub(crate) fn excludes(&self, input: &Path) -> bool {
        is_in(&self.exclude, input)
    }

    /// True if nothing below a directory is to be checked.
    pub(crate) fn excludes_directory(&self, directory: &Path) -> bool {
        // Only a pattern for every name matches this one; patterns of the directory match its parents.
        is_in(&self.exclude, &directory.join("\u{1}"))
    }

    /// Refuses a file that the configuration names, unless it is a regular file of the repository, or is not there. The
    /// caller chooses freely with `--config`.
    pub(crate) fn check_named(&self, path: &Path, span: Span) -> Result<(), Stop> {
        let Some(Found { repository, .. }) = &self.found else {
            return Ok(());
        };
        let real = |path: &Path| {
            watch::look(path, || path.canonicalize())
                .or_else(|_| path.parent().unwrap_or(path).canonicalize())
        };
        let why = match real(path) {
            Ok(real) if !real.starts_with(repository) => {
                format!("outside of {}", repository.display())
            }
            Ok(real) if !(real.is_file() || real.is_dir()) => "not a regular file".to_owned(),
            Ok(_) | Err(_) => return Ok(()),
        };
        let title = format!("{} is {why}", path.display());
        let help = "a configuration that is found names files of its repository; name the configuration with --config";
        Err(self.mistake(span, title, Some(help.to_owned())).into())
    }

    /// A mistake at a place of the file.
    pub(crate) fn mistake(&self, span: Span, title: String, help: Option<String>) -> Message {
        mistake(&self.path, &self.text, span, title, help)
    }
}

/// True if patterns match a path, or a directory above it. Patterns say nothing about paths outside their directory.
pub(crate) fn is_in(patterns: &Gitignore, path: &Path) -> bool {
    !patterns.is_empty()
        && path.starts_with(patterns.path())
        && patterns
            .matched_path_or_any_parents(path, false)
            .is_ignore()
}

pub(super) fn mistake(
    path: &Path,
    text: &str,
    span: Span,
    title: String,
    help: Option<String>,
) -> Message {
    let quoted = MessageText::new(SharedText::new(text), span);
    Message::error(title)
        .at(MessagePlace::new(path.display().to_string(), Some(quoted)))
        .help(help)
}

/// The directory of an input, absolute and without `..`; of standard input, the current directory.
pub(crate) fn directory_of(input: &Path) -> PathBuf {
    let directory = match input.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    absolute(directory)
}

/// A path as people expect it: relative where it is below the current directory.
pub(super) fn shown(path: PathBuf) -> PathBuf {
    let here = absolute(Path::new("."));
    match path.strip_prefix(&here) {
        Ok(below) if !below.as_os_str().is_empty() => below.to_owned(),
        Ok(_) | Err(_) => path,
    }
}

/// A path that is absolute and has no `..` in it.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    let is_up = |component: Component<'_>| component == Component::ParentDir;
    if path.components().any(is_up)
        && let Ok(real) = std::fs::canonicalize(path)
    {
        return real;
    }
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
