//! Looks for the configuration of each input.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::config::file::{Config, NAME, shown};
use crate::stop::{Stop, plain};

/// Where configurations come from.
#[derive(Debug)]
pub(crate) enum Finder {
    /// None is used.
    Nowhere,
    /// One is used for every input.
    Given(Rc<Config>),
    /// The nearest one of each input, by directories that were looked at.
    Nearest(HashMap<PathBuf, Option<Rc<Config>>>),
}

impl Finder {
    /// This configuration for every input.
    pub(crate) fn given(config: Config) -> Self {
        Finder::Given(Rc::new(config))
    }

    /// The nearest configuration of each input.
    pub(crate) fn nearest() -> Self {
        Finder::Nearest(HashMap::new())
    }

    /// The configuration of an input in a directory, which is an absolute path.
    ///
    /// Without a configuration this looks for one file in each directory, and nothing else.
    pub(crate) fn of(&mut self, directory: &Path) -> Result<Option<Rc<Config>>, Stop> {
        let known = match self {
            Finder::Nowhere => return Ok(None),
            Finder::Given(config) => return Ok(Some(config.clone())),
            Finder::Nearest(known) => known,
        };
        let mut passed = Vec::new();
        let mut nearest = None;
        for above in directory.ancestors() {
            if let Some(found) = known.get(above) {
                nearest = found
                    .clone()
                    .filter(|config| reaches(&config.directory, directory));
                break;
            }
            passed.push(above);
            let path = above.join(NAME);
            if !is_there(&path) {
                continue;
            }
            // One that does not reach is not read: anybody may write a file to `/tmp`.
            match reaches(above, directory) {
                true => nearest = Some(Rc::new(read(&shown(path))?)),
                false => passed.retain(|directory| !reaches(above, directory)),
            }
            break;
        }
        for directory in passed {
            let holds = nearest
                .clone()
                .filter(|config| reaches(&config.directory, directory));
            known.insert(directory.to_owned(), holds);
        }
        Ok(known.get(directory).cloned().flatten())
    }
}

/// True if there may be a file at a path. The inputs report a directory that may not be searched, or has an impossible
/// name.
fn is_there(path: &Path) -> bool {
    match path.metadata() {
        Ok(_) => true,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            false
        }
        Err(_) => path.symlink_metadata().is_ok(),
    }
}

fn read(path: &Path) -> Result<Config, Stop> {
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => Config::read(path),
        // To open a pipe would block.
        Ok(_) => Err(Stop::file("read", path, "it is not a regular file")),
        Err(error) => Err(Stop::file("read", path, plain(&error))),
    }
}

/// True if a configuration of one directory holds in another: the same, or one below it in the same repository. Otherwise a
/// file in `/tmp` would decide about everything below it.
fn reaches(from: &Path, directory: &Path) -> bool {
    if from == directory {
        return true;
    }
    let is_top = |directory: &&Path| directory.join(".git").exists();
    match directory.ancestors().find(is_top) {
        Some(top) => from.starts_with(top),
        None => false,
    }
}
