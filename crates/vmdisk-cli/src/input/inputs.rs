//! Which files to check, in a stable order.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::input::walk;
use crate::values::ValueArgs;
use vmdisk::Values;
use vmdisk::model::Format;

use crate::input::watch::{self, Progress};
use crate::pattern;

/// Where the bytes of an input come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A file that was named.
    Named,
    /// A file in a directory or matching a pattern, by the number of its search: it counts only if it
    /// holds a domain, a disk or a command line.
    Found(usize),
    /// Standard input.
    Stdin,
    /// Another program, which gave these bytes.
    Given(Vec<u8>),
    /// The facts of the host, which is checked itself.
    Host,
}

/// One input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Input {
    /// The path to open; for standard input, its name in messages.
    pub(crate) file: PathBuf,
    /// Where its bytes come from.
    pub(crate) origin: Origin,
    /// Values for the variables of a command line.
    pub(crate) values: Values,
    /// Formats of images that set none: of one disk, or of all.
    pub(crate) disk_formats: Vec<(Option<String>, Format)>,
    /// Directory of relative paths on a command line.
    pub(crate) base: Option<PathBuf>,
}

impl Input {
    pub(crate) const fn new(file: PathBuf, origin: Origin) -> Self {
        Input {
            file,
            origin,
            values: Values::new(),
            disk_formats: Vec::new(),
            base: None,
        }
    }

    /// With the values of `--set`, `--disk-format` and `--base`.
    pub(crate) fn with(mut self, values: &ValueArgs) -> Self {
        self.values = values.values();
        self.disk_formats.clone_from(&values.disk_formats);
        self.base.clone_from(&values.base);
        self
    }

    /// The path for people and for data.
    pub(crate) fn path(&self) -> String {
        self.file.display().to_string()
    }
}

/// A directory or pattern that was named, and what the search could not do.
#[derive(Debug)]
pub(crate) struct Search {
    /// The directory or pattern.
    pub(crate) path: PathBuf,
    /// True for files that were named, and of which foreign ones are skipped: none of them need be ours.
    pub(crate) may_be_empty: bool,
    /// Paths that could not be searched, each with the reason.
    pub(crate) trouble: Vec<(PathBuf, String)>,
    /// The number of its files that are excluded, and what excludes the first of them.
    pub(crate) excluded: Option<(usize, String)>,
}

impl Search {
    pub(crate) fn named(path: &Path) -> Self {
        Search {
            path: path.to_owned(),
            may_be_empty: false,
            trouble: Vec::new(),
            excluded: None,
        }
    }

    /// Notes that something excludes a file.
    pub(crate) fn exclude(&mut self, by: &str) {
        let excluded = self.excluded.get_or_insert_with(|| (0, by.to_owned()));
        excluded.0 += 1;
    }
}

/// Everything to check.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    /// Files in the order of the arguments, those of a search sorted by path; each once.
    pub(crate) files: Vec<Input>,
    /// Directories that were walked, and patterns.
    pub(crate) searches: Vec<Search>,
}

impl Inputs {
    /// Gives the values of `--set` to each input.
    pub(crate) fn set(&mut self, values: &ValueArgs) {
        for input in &mut self.files {
            *input = input.clone().with(values);
        }
    }

    /// True if one of them is standard input or a text from another program.
    pub(crate) fn has_text(&self) -> bool {
        let is_text = |input: &Input| matches!(input.origin, Origin::Stdin | Origin::Given(_));
        self.files.iter().any(is_text)
    }
}

/// Finds the inputs that the arguments name; with `skips_foreign` a named file counts only if it is ours.
pub(crate) fn find(paths: &[PathBuf], stdin_name: Option<&Path>, skips_foreign: bool) -> Inputs {
    let (paths, name) = (paths.to_owned(), stdin_name.map(Path::to_owned));
    let found = watch::while_it_goes_on(watch::NO_ANSWER, move |progress| {
        search_all(&paths, name.as_deref(), skips_foreign, progress)
    });
    found.unwrap_or_else(|path| {
        let mut search = Search::named(&path);
        search.trouble.push((path, watch::no_answer()));
        Inputs {
            files: Vec::new(),
            searches: vec![search],
        }
    })
}

fn search_all(
    paths: &[PathBuf],
    stdin_name: Option<&Path>,
    skips_foreign: bool,
    progress: &Progress,
) -> Inputs {
    let mut inputs = Inputs::default();
    let mut seen: HashSet<PathBuf> = HashSet::with_capacity(paths.len());
    inputs.files.reserve(paths.len());
    for path in paths {
        if path.as_os_str() == "-" {
            let file = stdin_name.unwrap_or(Path::new("<stdin>")).to_owned();
            if seen.insert(PathBuf::from("-")) {
                inputs.files.push(Input::new(file, Origin::Stdin));
            }
            continue;
        }
        progress.at(path);
        let found = search(path, skips_foreign, progress);
        let number = inputs.searches.len();
        let origin = match found {
            Some(_) => Origin::Found(number),
            None => Origin::Named,
        };
        let files = match found {
            Some((files, search)) => {
                inputs.searches.push(search);
                files
            }
            None => vec![path.clone()],
        };
        for file in files {
            let file = tidy(file);
            if seen.insert(file.clone()) {
                let origin = origin.clone();
                inputs.files.push(Input::new(file, origin));
            } else if let Origin::Found(search) = origin {
                // Another argument answers for the file.
                inputs.searches[search].may_be_empty = true;
            }
        }
    }
    inputs
}

/// The files of a directory or pattern; none for the name of a file.
fn search(path: &Path, skips_foreign: bool, progress: &Progress) -> Option<(Vec<PathBuf>, Search)> {
    let mut search = Search::named(path);
    let files = if path.is_dir() {
        let found = walk::guest_files(path, progress);
        search.trouble = found.trouble;
        found.files
    } else if pattern::is_pattern(path) {
        match pattern::matching(path, progress) {
            Ok(found) => {
                search.trouble = found.trouble;
                found.files
            }
            Err(why) => {
                search.trouble.push((path.to_owned(), why));
                Vec::new()
            }
        }
    } else if skips_foreign {
        search.may_be_empty = true;
        vec![path.to_owned()]
    } else {
        return None;
    };
    Some((files, search))
}

/// The path without `./` in front, so that `.` and no directory give the same names.
fn tidy(path: PathBuf) -> PathBuf {
    match path.strip_prefix(".") {
        Ok(rest) if !rest.as_os_str().is_empty() => rest.to_owned(),
        Ok(_) | Err(_) => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_checked_once_however_it_was_named() {
        let paths = ["b.xml", "./a.xml", "-", "a.xml", "-"].map(PathBuf::from);
        let inputs = find(&paths, Some(Path::new("piped.xml")), false);
        let names: Vec<String> = inputs.files.iter().map(Input::path).collect();
        assert_eq!(names, ["b.xml", "a.xml", "piped.xml"]);
    }
}
