//! The contents of a configuration file.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use ignore::gitignore::Gitignore;
use vmdisk::settings::{ConfigText, SettingsMistake};
use vmdisk_source::Span;

use crate::input::absolute::absolute;
use crate::input::{read, watch};
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
    /// Its contents.
    pub(crate) settings: ConfigText,
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

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or contains anything unknown: every mistake with its place.
    pub(crate) fn read(path: &Path) -> Result<Self, Stop> {
        Self::of_bytes(path, read::file(path)?)
    }

    /// Reads the contents of a file.
    pub(super) fn of_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self, Stop> {
        let text = String::from_utf8(bytes)
            .map_err(|_| Stop::new(format!("{}: not valid UTF-8", path.display())))?;
        let settings = ConfigText::parse(&text).map_err(|mistakes| {
            let mistakes = mistakes.into_iter();
            Stop(mistakes.map(|it| mistake(path, &text, it)).collect())
        })?;
        Ok(Config {
            path: path.to_owned(),
            directory: directory_of(path),
            settings,
            text,
            found: None,
        })
    }

    /// A path that the configuration names, as people expect it.
    pub(crate) fn named(&self, path: &str) -> PathBuf {
        shown(self.directory.join(path))
    }

    /// The numbers of the entries of `files` that hold for an input.
    pub(crate) fn matching(&self, input: &Path) -> Vec<usize> {
        let below = input.strip_prefix(&self.directory);
        below.map_or_else(|_| Vec::new(), |input| self.settings.matching(input))
    }

    /// True if an input is not to be checked.
    pub(crate) fn excludes(&self, input: &Path) -> bool {
        let below = input.strip_prefix(&self.directory);
        below.is_ok_and(|input| self.settings.exclude.has(input))
    }

    /// True if nothing below a directory is to be checked.
    pub(crate) fn excludes_directory(&self, directory: &Path) -> bool {
        // Only a pattern for every name matches this one; patterns of the directory match its parents.
        self.excludes(&directory.join("\u{1}"))
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
        message(&self.path, &self.text, span, title, help)
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

fn mistake(path: &Path, text: &str, mistake: SettingsMistake) -> Message {
    message(path, text, mistake.span, mistake.title, mistake.help)
}

fn message(path: &Path, text: &str, span: Span, title: String, help: Option<String>) -> Message {
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
