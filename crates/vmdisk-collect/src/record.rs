//! Recording a system into a directory that facts can be collected from later, elsewhere, the same.
//!
//! What was read is copied as files, folders and links; what only a kernel can answer lies beside it in
//! `vmdisk/answers.json`. Nothing is copied of what was not asked for, and of an image only its facts.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use vmdisk_facts::path::Outcome;
use vmdisk_facts::{Directory, Fact, File};

use crate::kvm::Trial;
use crate::paths::{Place, Space};

/// What a recording that could not be written is called among the errors of facts.
pub const RECORDING: &str = "the recording";

/// Where the answers are, within a recorded system.
pub(crate) const ANSWERS: &str = "/vmdisk/answers.json";

/// What only the kernel could answer, recorded beside the files.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Answers {
    /// What was asked for, and when, so that the same can be asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<Asked>,
    /// Whether root asked.
    pub(crate) privileged: Option<bool>,
    /// Whether whoever asked may use KVM, if there is one.
    pub(crate) kvm_access: Option<bool>,
    /// How a guest that was tried with KVM ended, if one was.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) kvm_trial: Trial,
    /// What io_uring_setup(2) gave.
    #[serde(skip_serializing_if = "Fact::is_not_collected")]
    pub(crate) io_uring_setup: Fact<Outcome>,
    /// Why programs that were asked gave no answer, by the place of the answer in the recording.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) failed: BTreeMap<String, Fact<String>>,
    /// Files and devices, by the path asked for.
    pub(crate) files: BTreeMap<String, Answer<File>>,
    /// Directories, by the path asked for.
    pub(crate) directories: BTreeMap<String, Answer<Directory>>,
    /// The error numbers of what was there and could not be read.
    pub(crate) errors: BTreeMap<String, i32>,
}

/// What a system was asked for while it was recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) collected_at: String,
    pub(crate) groups: Vec<String>,
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) chains: Vec<PathBuf>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What the kernel answered about one path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answer<T> {
    /// What was found.
    found: T,
    /// Where it really is, if it is there.
    real: Option<PathBuf>,
    mount_id: Option<u64>,
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    space: Fact<Space>,
}

impl<T: Clone> Answer<T> {
    /// What was found, and where, for it to be recorded.
    pub(crate) fn new(found: &T, place: Option<&Place>) -> Self {
        Self {
            found: found.clone(),
            real: place.map(|place| place.real.clone()),
            mount_id: place.and_then(|place| place.mount_id),
            space: match place.and_then(|place| place.space.clone()) {
                Some(Ok(space)) => Fact::Known(space),
                Some(Err(unknown)) => Fact::Unknown(unknown),
                None => Fact::NotCollected,
            },
        }
    }

    /// What was found, and where, as it was recorded.
    pub(crate) fn again(&self) -> (T, Option<Place>) {
        let place = self.real.as_ref().map(|real| Place {
            real: real.clone(),
            mount_id: self.mount_id,
            space: match &self.space {
                Fact::Known(space) => Some(Ok(*space)),
                Fact::Unknown(unknown) => Some(Err(unknown.clone())),
                Fact::Absent | Fact::NotCollected => None,
            },
        });
        (self.found.clone(), place)
    }
}

/// Copies what is read of the running system.
#[derive(Debug)]
pub(crate) struct Recorder {
    base: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    answers: Answers,
    failed: Option<io::Error>,
}

impl Recorder {
    pub(crate) fn new(base: &Path) -> Self {
        Self {
            base: base.to_owned(),
            state: Mutex::default(),
        }
    }

    fn inside(&self, path: &Path) -> PathBuf {
        self.base.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Does something to the recording, and remembers the first failure.
    fn attempt(&self, work: impl FnOnce() -> io::Result<()>) {
        if let Err(error) = work() {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.failed.get_or_insert(error);
        }
    }

    /// A file that was read; its path has no links in it.
    pub(crate) fn file(&self, real: &Path, bytes: &[u8]) {
        self.attempt(|| {
            let copy = self.inside(real);
            make_parent(&copy)?;
            fs::write(copy, bytes)
        });
    }

    /// Something that is there, without what is in it; its path has no links in it, but may be one itself.
    pub(crate) fn entry(&self, path: &Path) {
        let Ok(metadata) = fs::symlink_metadata(path) else {
            return;
        };
        self.attempt(|| {
            let copy = self.inside(path);
            if fs::symlink_metadata(&copy).is_ok() {
                return Ok(());
            }
            make_parent(&copy)?;
            if metadata.file_type().is_symlink() {
                symlink(fs::read_link(path)?, copy)
            } else if metadata.is_dir() {
                fs::create_dir(copy)
            } else {
                // Neither a device nor an image can be copied; the answers tell of them.
                fs::File::create(copy).map(drop)
            }
        });
    }

    /// Something that is there and could not be read.
    pub(crate) fn error(&self, path: &Path, error: &io::Error) {
        if let (Some(path), Some(number)) = (path.to_str(), error.raw_os_error()) {
            self.answer(|answers| {
                answers.errors.insert(path.to_owned(), number);
            });
        }
    }

    /// Notes what only the kernel can answer.
    pub(crate) fn answer(&self, note: impl FnOnce(&mut Answers)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        note(&mut state.answers);
    }

    /// Writes the answers; the first failure of the whole recording comes back.
    pub(crate) fn finish(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        let mut text = serde_json::to_string_pretty(&state.answers)?;
        text.push('\n');
        let copy = self.inside(Path::new(ANSWERS));
        make_parent(&copy)?;
        fs::write(copy, text)
    }
}

fn make_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) => fs::create_dir_all(parent),
        None => Ok(()),
    }
}
