//! Looks for the configuration of each input.

use std::collections::HashMap;
use std::fmt::Display;
use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::config::file::{Config, Found, NAME, directory_of, shown};
use crate::input::bounded::{self, MAX_BYTES};
use crate::input::owner;
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
                if let Some((config, found)) = nearest
                    .as_ref()
                    .and_then(|of| Some((of, of.found.as_ref()?)))
                {
                    check_owner(&config.path, &found.metadata, directory)?;
                }
                break;
            }
            passed.push(above);
            let path = above.join(NAME);
            if !is_there(&path) {
                continue;
            }
            // One that does not reach is not read: anybody may write a file to `/tmp`.
            match reaches(above, directory) {
                true => nearest = Some(Rc::new(read(&shown(path), directory)?)),
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

/// Reads a configuration that was found for an input in a directory.
fn read(path: &Path, directory: &Path) -> Result<Config, Stop> {
    let refuse = |why: &dyn Display| Stop::file("read", path, why);
    let failed = |error: io::Error| refuse(&plain(&error));
    let file = bounded::regular_file(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let own = directory_of(path);
    let repository = top_of(&own).unwrap_or(&own);
    let repository = repository.canonicalize().map_err(failed)?;
    if !bounded::lies_in(&file, &repository) {
        return Err(refuse(&format!("it leads out of {}", repository.display())));
    }
    check_owner(path, &metadata, directory)?;
    let bytes = bounded::contents(file, MAX_BYTES).map_err(failed)?;
    let config = Config::of_bytes(path, bytes)?;
    let found = Some(Found {
        repository,
        metadata,
    });
    Ok(Config { found, ..config })
}

/// Refuses a configuration of a user who may not decide about inputs in a directory.
fn check_owner(path: &Path, metadata: &Metadata, directory: &Path) -> Result<(), Stop> {
    if owner::may_decide(metadata, directory) {
        return Ok(());
    }
    let why = format!("it belongs to another user, with the id {}", metadata.uid());
    let help = format!(
        "if you trust it, use --config {}; otherwise use --no-config",
        path.display()
    );
    Err(Stop::file("use", path, why).help(help))
}

/// The directory of the repository of a directory.
fn top_of(directory: &Path) -> Option<&Path> {
    let mut above = directory.ancestors();
    above.find(|directory| directory.join(".git").exists())
}

/// True if a configuration of one directory holds in another: the same, or one below it in the same repository. Otherwise a
/// file in `/tmp` would decide about everything below it.
fn reaches(from: &Path, directory: &Path) -> bool {
    if from == directory {
        return true;
    }
    top_of(directory).is_some_and(|top| from.starts_with(top))
}
