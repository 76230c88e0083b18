//! Patterns such as `domains/*.xml` and `domains/**/*.xml`, for shells and callers that expand none.

use std::ffi::OsString;
use std::fs::{self, FileType};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use globset::GlobBuilder;

use crate::input::watch::Progress;
use crate::stop::plain;

/// True if the path is not there and has a character of a pattern in it.
pub(crate) fn is_pattern(path: &Path) -> bool {
    has_wildcard(path) && !path.exists()
}

fn has_wildcard(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.iter().any(|byte| b"*?[{".contains(byte))
}

/// The matches of a pattern.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    /// Sorted.
    pub(crate) files: Vec<PathBuf>,
    /// Directories that could not be searched, each with the reason.
    pub(crate) trouble: Vec<(PathBuf, String)>,
}

/// The files that a pattern matches; `**` matches any number of directories, and every other
/// name of the pattern one. A directory that cannot be searched hides only the files below it.
///
/// # Errors
/// The reason, if the pattern is malformed, or nothing matches although every directory could be searched.
pub(crate) fn matching(pattern: &Path, progress: &Progress) -> Result<Matches, String> {
    let mut found = vec![PathBuf::new()];
    let mut trouble = Vec::new();
    for component in pattern.components() {
        let Component::Normal(name) = component else {
            found.iter_mut().for_each(|path| path.push(component));
            continue;
        };
        if name == "**" {
            let mut all = Vec::new();
            for directory in found {
                with_directories_below(directory, &mut all, &mut trouble, progress);
            }
            found = all;
            continue;
        }
        if !has_wildcard(Path::new(name)) {
            found.iter_mut().for_each(|path| path.push(name));
            found.retain(|path| match path.symlink_metadata() {
                Ok(_) => true,
                Err(error) => {
                    trouble.extend(hidden(path.parent().unwrap_or(path), &error));
                    false
                }
            });
            continue;
        }
        let glob = GlobBuilder::new(&name.to_string_lossy())
            .literal_separator(true)
            .build()
            .map_err(|error| error.kind().to_string())?
            .compile_matcher();
        let mut next = Vec::new();
        for directory in found {
            progress.at(&directory);
            let entries = list(&directory, &[], &mut trouble).into_iter();
            let matching = entries.filter(|entry| glob.is_match(&entry.name));
            next.extend(matching.map(|entry| directory.join(entry.name)));
        }
        found = next;
    }
    // A pipe that nobody writes would block the run. The reader reports a link that leads nowhere.
    found.retain(|path| {
        progress.at(path);
        path.metadata().map_or(true, |metadata| metadata.is_file())
    });
    if found.is_empty() && trouble.is_empty() {
        return Err("no file matches".to_owned());
    }
    found.sort();
    // Several parts of a pattern may search one directory.
    trouble.sort();
    trouble.dedup();
    Ok(Matches {
        files: found,
        trouble,
    })
}

/// The directory and all below it. Links are not followed: they may lead in a circle.
fn with_directories_below(
    directory: PathBuf,
    all: &mut Vec<PathBuf>,
    trouble: &mut Vec<(PathBuf, String)>,
    progress: &Progress,
) {
    progress.at(&directory);
    for entry in list(&directory, &[], trouble) {
        if entry.kind.is_dir() {
            with_directories_below(directory.join(entry.name), all, trouble, progress);
        }
    }
    all.push(directory);
}

/// An entry of a directory.
pub(crate) struct Entry {
    pub(crate) name: OsString,
    /// That of a link itself.
    pub(crate) kind: FileType,
}

/// The entries of a directory that are not hidden, or have one of the `kept` names; none of a path that is not a directory.
pub(crate) fn list(
    directory: &Path,
    kept: &[&str],
    trouble: &mut Vec<(PathBuf, String)>,
) -> Vec<Entry> {
    read_entries(directory, kept).unwrap_or_else(|error| {
        trouble.extend(hidden(directory, &error));
        Vec::new()
    })
}

/// The directory that cannot be searched, with the reason; `None` if it is known to hold nothing that a pattern matches.
fn hidden(directory: &Path, error: &io::Error) -> Option<(PathBuf, String)> {
    let is_known = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    (!is_known).then(|| (directory.to_owned(), plain(error)))
}

fn read_entries(directory: &Path, kept: &[&str]) -> io::Result<Vec<Entry>> {
    // An empty path is the directory that the command was started in.
    let start = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(start)? {
        let entry = entry?;
        let name = entry.file_name();
        if !name.as_encoded_bytes().starts_with(b".") || kept.iter().any(|it| name == *it) {
            found.push(Entry {
                name,
                kind: entry.file_type()?,
            });
        }
    }
    Ok(found)
}

/// The entries of a directory that are not hidden, sorted.
pub(crate) fn entries(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let found = read_entries(directory, &[])
        .map_err(|error| format!("{}: {}", directory.display(), plain(&error)))?;
    let found = found.into_iter();
    let mut paths: Vec<PathBuf> = found.map(|entry| directory.join(entry.name)).collect();
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_stars_match_any_number_of_directories() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("a/b/.git")).unwrap();
        for file in [
            "1.xml",
            "a/2.xml",
            "a/b/3.xml",
            "a/b/3.txt",
            "a/b/.git/4.xml",
        ] {
            fs::write(root.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("..", root.join("a/up")).unwrap();
        let names = |pattern: &str| {
            let found = matching(&root.join(pattern), &Progress::default())?;
            assert!(found.trouble.is_empty(), "{found:?}");
            let name = |path: &PathBuf| path.strip_prefix(root).unwrap().display().to_string();
            Ok::<_, String>(found.files.iter().map(name).collect::<Vec<_>>())
        };
        assert_eq!(
            names("**/*.xml").unwrap(),
            ["1.xml", "a/2.xml", "a/b/3.xml"]
        );
        assert_eq!(names("a/**/*.xml").unwrap(), ["a/2.xml", "a/b/3.xml"]);
        assert_eq!(names("*/*.xml").unwrap(), ["a/2.xml"]);
        assert_eq!(names("*/b/3.xml").unwrap(), ["a/b/3.xml"]);
        assert_eq!(names("*.yaml").unwrap_err(), "no file matches");
        assert!(names("[.xml").is_err());
    }
}
