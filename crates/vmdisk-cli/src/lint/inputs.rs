//! Which files to check, in a stable order.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::lint::walk;
use crate::render::uri;

/// Where the bytes of an input come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A file that was named.
    Named,
    /// A file in a directory, by the number of the directory: it counts only if it holds a domain, a
    /// disk or a command line.
    Found(usize),
    /// Standard input.
    Stdin,
}

/// One input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Input {
    /// What to open; for standard input, what to call it.
    pub(crate) file: PathBuf,
    /// Where its bytes come from.
    pub(crate) origin: Origin,
}

impl Input {
    /// The path for people and for data.
    pub(crate) fn path(&self) -> String {
        self.file.display().to_string()
    }

    pub(crate) fn uri(&self) -> String {
        uri::of_path(&self.file)
    }
}

/// A directory that was named, and what its walk could not do.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    pub(crate) trouble: Vec<(PathBuf, String)>,
}

/// Everything to check.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    /// Files in the order of the arguments, those of a directory sorted by path; each once.
    pub(crate) files: Vec<Input>,
    /// Directories that were walked.
    pub(crate) directories: Vec<Directory>,
}

/// Finds the inputs that the arguments name.
pub(crate) fn find(paths: &[PathBuf], stdin_name: Option<&Path>) -> Inputs {
    let mut inputs = Inputs::default();
    let mut seen: HashSet<PathBuf> = HashSet::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let file = stdin_name.unwrap_or(Path::new("<stdin>")).to_owned();
            if seen.insert(PathBuf::from("-")) {
                inputs.files.push(Input {
                    file,
                    origin: Origin::Stdin,
                });
            }
        } else if path.is_dir() {
            let number = inputs.directories.len();
            let found = walk::guest_files(path);
            for file in found.files {
                let file = tidy(&file);
                if seen.insert(file.clone()) {
                    inputs.files.push(Input {
                        file,
                        origin: Origin::Found(number),
                    });
                }
            }
            inputs.directories.push(Directory {
                path: path.clone(),
                trouble: found.trouble,
            });
        } else {
            let file = tidy(path);
            if seen.insert(file.clone()) {
                inputs.files.push(Input {
                    file,
                    origin: Origin::Named,
                });
            }
        }
    }
    inputs
}

/// The path without `./` in front, so that `.` and no directory give the same names.
fn tidy(path: &Path) -> PathBuf {
    match path.strip_prefix(".") {
        Ok(rest) if !rest.as_os_str().is_empty() => rest.to_owned(),
        Ok(_) | Err(_) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_checked_once_however_it_was_named() {
        let paths = ["b.xml", "./a.xml", "-", "a.xml", "-"].map(PathBuf::from);
        let inputs = find(&paths, Some(Path::new("piped.xml")));
        let names: Vec<String> = inputs.files.iter().map(Input::path).collect();
        assert_eq!(names, ["b.xml", "a.xml", "piped.xml"]);
    }
}
