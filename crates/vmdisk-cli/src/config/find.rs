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
                nearest.clone_from(found);
                break;
            }
            passed.push(above.to_owned());
            if let Some(config) = open(above)? {
                nearest = Some(Rc::new(config));
                break;
            }
        }
        for directory in passed {
            let holds = nearest.clone().filter(|config| reaches(config, &directory));
            known.insert(directory, holds);
        }
        Ok(known.get(directory).cloned().flatten())
    }
}

fn open(directory: &Path) -> Result<Option<Config>, Stop> {
    let path = directory.join(NAME);
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => Config::read(&shown(path)).map(Some),
        // To open a pipe would block.
        Ok(_) => Err(Stop::file("read", &shown(path), "it is not a regular file")),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        // Of a directory that may not be searched, or has an impossible name, the inputs say so.
        Err(_) if path.symlink_metadata().is_err() => Ok(None),
        Err(error) => Err(Stop::file("read", &path, plain(&error))),
    }
}

/// True if a configuration holds in a directory: its own, or one below it in the same repository. Otherwise a file in
/// `/tmp` would decide about everything below it.
fn reaches(config: &Config, directory: &Path) -> bool {
    if config.directory == directory {
        return true;
    }
    let is_top = |directory: &&Path| directory.join(".git").exists();
    match directory.ancestors().find(is_top) {
        Some(top) => config.directory.starts_with(top),
        None => false,
    }
}
