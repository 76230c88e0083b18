//! Patterns such as `domains/*.xml` and `domains/**/*.xml`, for shells and callers that expand none.

use std::fs;
use std::path::{Component, Path, PathBuf};

use globset::GlobBuilder;

use crate::stop::plain;

/// True if the path is not there and has a character of a pattern in it.
pub(crate) fn is_pattern(path: &Path) -> bool {
    has_wildcard(path) && !path.exists()
}

fn has_wildcard(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '[', '{'])
}

/// The files that a pattern matches, sorted; `**` matches any number of directories, and every other
/// name of the pattern for one.
///
/// # Errors
/// The reason, if the pattern is malformed, a directory cannot be listed, or no file matches.
pub(crate) fn matching(pattern: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let Component::Normal(name) = component else {
            found.iter_mut().for_each(|path| path.push(component));
            continue;
        };
        if name == "**" {
            let mut all = Vec::new();
            for directory in found {
                with_directories_below(directory, &mut all)?;
            }
            found = all;
            continue;
        }
        if !has_wildcard(Path::new(name)) {
            found.iter_mut().for_each(|path| path.push(name));
            found.retain(|path| path.exists());
            continue;
        }
        let glob = GlobBuilder::new(&name.to_string_lossy())
            .literal_separator(true)
            .build()
            .map_err(|error| error.kind().to_string())?
            .compile_matcher();
        let mut next = Vec::new();
        for directory in found.iter().filter(|path| is_listed(path)) {
            let matches = |path: &PathBuf| path.file_name().is_some_and(|name| glob.is_match(name));
            next.extend(entries(directory)?.into_iter().filter(matches));
        }
        found = next;
    }
    found.retain(|path| !path.is_dir());
    if found.is_empty() {
        return Err("no file matches".to_owned());
    }
    found.sort();
    Ok(found)
}

/// An empty path is the directory that the command was started in.
fn is_listed(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.is_dir()
}

/// The directory and all below it. Links are not followed: they may lead in a circle.
fn with_directories_below(directory: PathBuf, all: &mut Vec<PathBuf>) -> Result<(), String> {
    if !is_listed(&directory) {
        return Ok(());
    }
    for entry in entries(&directory)? {
        if entry.is_dir() && !entry.is_symlink() {
            with_directories_below(entry, all)?;
        }
    }
    all.push(directory);
    Ok(())
}

/// The entries of a directory that are not hidden, sorted.
pub(crate) fn entries(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let fail = |error: &std::io::Error| format!("{}: {}", directory.display(), plain(error));
    let start = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(start).map_err(|error| fail(&error))? {
        let name = entry.map_err(|error| fail(&error))?.file_name();
        if !name.to_string_lossy().starts_with('.') {
            found.push(directory.join(name));
        }
    }
    found.sort();
    Ok(found)
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
            let found = matching(&root.join(pattern))?;
            let name = |path: &PathBuf| path.strip_prefix(root).unwrap().display().to_string();
            Ok::<_, String>(found.iter().map(name).collect::<Vec<_>>())
        };
        assert_eq!(
            names("**/*.xml").unwrap(),
            ["1.xml", "a/2.xml", "a/b/3.xml"]
        );
        assert_eq!(names("a/**/*.xml").unwrap(), ["a/2.xml", "a/b/3.xml"]);
        assert_eq!(names("*/*.xml").unwrap(), ["a/2.xml"]);
        assert_eq!(names("*.yaml").unwrap_err(), "no file matches");
        assert!(names("[.xml").is_err());
    }
}
