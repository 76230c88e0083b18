//! Files that `.ignore`, `.gitignore` and `.git/info/exclude` exclude. The crate `ignore` judges patterns; it opens no file,
//! because it would follow any link and read without a limit.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::input::{bounded, owner};
use crate::stop::plain;

/// The limit of a file of patterns: a pattern takes a hundred times its length in memory.
const MAX_BYTES: u64 = 1024 * 1024;

/// The limit of patterns in a file: 10,000 take 0.1 seconds.
const MAX_PATTERNS: usize = 10_000;

/// The patterns of a directory, and of those above it in its repository.
#[derive(Debug)]
pub(crate) struct Ignored {
    above: Option<Rc<Ignored>>,
    /// The patterns in the files of [`FILES`].
    patterns: [Gitignore; 3],
    /// True for the directory of a repository.
    is_top: bool,
    /// The directory that the files may not lie outside of, without links.
    bounds: PathBuf,
}

/// The files, by precedence. Git's own count only in a repository, and not above it.
const FILES: [&str; 3] = [".ignore", ".gitignore", ".git/info/exclude"];

impl Ignored {
    /// The patterns for a directory that is searched, given as an absolute path.
    pub(crate) fn of(directory: &Path, trouble: &mut Vec<(PathBuf, String)>) -> Rc<Self> {
        let top = directory.ancestors().find(|above| is_top(above));
        let top = top.unwrap_or(directory);
        let mut levels: Vec<&Path> = directory
            .ancestors()
            .take_while(|above| above.starts_with(top))
            .collect();
        let bounds = fs::canonicalize(top).unwrap_or_else(|_| top.to_owned());
        let mut ignored = None;
        while let Some(level) = levels.pop() {
            let is_of_others = |path: &Path| {
                level != directory
                    && path
                        .metadata()
                        .is_ok_and(|file| !owner::may_decide(&file, directory))
            };
            let above = ignored.take();
            ignored = Some(Self::level(level, above, &bounds, &is_of_others, trouble));
        }
        ignored.expect("a directory is one of its ancestors")
    }

    /// The patterns for a directory below.
    pub(crate) fn below(
        self: &Rc<Self>,
        directory: &Path,
        trouble: &mut Vec<(PathBuf, String)>,
    ) -> Rc<Self> {
        let above = Some(self.clone());
        Self::level(directory, above, &self.bounds, &|_| false, trouble)
    }

    fn level(
        directory: &Path,
        above: Option<Rc<Ignored>>,
        bounds: &Path,
        is_of_others: &dyn Fn(&Path) -> bool,
        trouble: &mut Vec<(PathBuf, String)>,
    ) -> Rc<Self> {
        let patterns = FILES.map(|name| {
            let path = directory.join(name);
            if is_of_others(&path) {
                return Gitignore::empty();
            }
            read(directory, &path, bounds).unwrap_or_else(|why| {
                trouble.push((path, why));
                Gitignore::empty()
            })
        });
        Rc::new(Ignored {
            above,
            patterns,
            is_top: is_top(directory),
            bounds: bounds.to_owned(),
        })
    }

    /// True if the patterns exclude a file or directory, given as an absolute path.
    pub(crate) fn hides(&self, path: &Path, is_directory: bool) -> bool {
        let levels = || std::iter::successors(Some(self), |level| level.above.as_deref());
        let is_in_repository = levels().any(|level| level.is_top);
        for number in 0..FILES.len() {
            let is_of_git = number > 0;
            for level in levels().take_while(|_| !is_of_git || is_in_repository) {
                match level.patterns[number].matched(path, is_directory) {
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                    Match::None if is_of_git && level.is_top => break,
                    Match::None => {}
                }
            }
        }
        false
    }
}

fn is_top(directory: &Path) -> bool {
    directory.join(".git").exists()
}

/// The patterns in a file; none if it is not there.
fn read(directory: &Path, path: &Path, bounds: &Path) -> Result<Gitignore, String> {
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Gitignore::empty());
        }
        Err(error) => return Err(plain(&error)),
    };
    if !real.starts_with(bounds) {
        return Err(format!("it leads out of {}", bounds.display()));
    }
    let bytes = bounded::regular(&real, MAX_BYTES).map_err(|error| plain(&error))?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_start_matches('\u{feff}');
    if text.lines().count() > MAX_PATTERNS {
        return Err(format!("more than {MAX_PATTERNS} patterns"));
    }
    let mut builder = GitignoreBuilder::new(directory);
    for line in text.lines() {
        // Git ignores a malformed pattern, too.
        let _ = builder.add_line(None, line);
    }
    builder.build().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// True for each path that is hidden, below a directory of files.
    fn hidden(files: &[(&str, &str)], start: &str, paths: &[&str]) -> Vec<bool> {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut trouble = Vec::new();
        let start = root.join(start);
        let hidden = paths.iter().map(|path| {
            let path = start.join(path);
            let mut ignored = Ignored::of(&start, &mut trouble);
            let mut between: Vec<&Path> = path.ancestors().skip(1).collect();
            between.retain(|directory| *directory != start && directory.starts_with(&start));
            for directory in between.into_iter().rev() {
                ignored = ignored.below(directory, &mut trouble);
            }
            ignored.hides(&path, false)
        });
        let hidden = hidden.collect();
        assert_eq!(trouble, []);
        hidden
    }

    #[test]
    fn patterns_count_as_for_git_and_only_in_their_repository() {
        let files = [
            (".ignore", "outside.xml\n"),
            (".gitignore", "outside.xml\n"),
            ("r/.git/info/exclude", "e.xml\n"),
            ("r/.gitignore", "# a note\n*.xml\n!/keep.xml\n"),
            ("r/.ignore", "!a.xml\n"),
            ("r/s/.gitignore", "!b.xml\n"),
            ("r/n/.git/HEAD", ""),
        ];
        let hides = |start, paths: &[&str]| hidden(&files, start, paths);
        // `.ignore` precedes git's files; the nearest file precedes those above; `/` is its directory.
        let expected = [true, false, false, true, false, true];
        let paths = [
            "c.xml",
            "a.xml",
            "keep.xml",
            "s/keep.xml",
            "s/b.xml",
            "e.xml",
        ];
        assert_eq!(hides("r", &paths), expected);
        assert_eq!(hides("r/s", &["b.xml", "c.xml"]), [false, true]);
        // Another repository, and no repository.
        assert_eq!(hides("r/n", &["c.xml", "outside.xml"]), [false, false]);
        assert_eq!(hides("", &["outside.xml"]), [true]);
        assert_eq!(hides("t", &["outside.xml"]), [false]);
        assert_eq!(hidden(&[(".gitignore", "a.xml")], "", &["a.xml"]), [false]);
    }
}
