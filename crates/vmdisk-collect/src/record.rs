//! Recording a system into a directory from which the same facts can be collected later and elsewhere.
//!
//! Files, folders and links that were read are copied; answers of the kernel are stored in
//! `vmdisk/answers.json`. Only requested data is copied, and of images only their facts.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use vmdisk_facts::path::TrialOutcome;
use vmdisk_facts::{Directory, Fact, File};

/// The name of a failed recording among the errors of facts.
pub const RECORDING: &str = "the recording";

/// The path of the answers within a recorded system.
pub(crate) const ANSWERS: &str = "/vmdisk/answers.json";

/// Answers of the kernel, recorded next to the files.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Answers {
    /// The request and its time, so that it can be repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<RecordedRequest>,
    /// True if the collector ran as root.
    pub(crate) privileged: Option<bool>,
    /// True if the collector had access to KVM, if KVM is present.
    pub(crate) kvm_access: Option<bool>,
    /// The result of a trial guest with KVM, if there was one.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) kvm_trial: Trial,
    /// The result of io_uring_setup(2).
    #[serde(skip_serializing_if = "Fact::is_not_collected")]
    pub(crate) io_uring_setup: Fact<TrialOutcome>,
    /// Why programs gave no output, by the path of the output in the recording.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) failed: BTreeMap<String, Fact<String>>,
    /// Files and devices, by requested path.
    pub(crate) files: BTreeMap<String, Answer<File>>,
    /// Directories, by requested path.
    pub(crate) directories: BTreeMap<String, Answer<Directory>>,
    /// Error numbers of files that exist but could not be read.
    pub(crate) errors: BTreeMap<String, i32>,
}

/// The request during which a system was recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RecordedRequest {
    pub(crate) collected_at: String,
    pub(crate) groups: Vec<String>,
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) chains: Vec<PathBuf>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The kernel's answer about one path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answer<T> {
    /// The facts.
    found: T,
    /// Its real path, if it exists.
    real: Option<PathBuf>,
    mount_id: Option<u64>,
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    space: Fact<Space>,
}

impl<T: Clone> Answer<T> {
    /// Creates an answer from facts and their location.
    pub(crate) fn new(found: &T, place: Option<&RealPath>) -> Self {
        Self {
            found: found.clone(),
            real: place.map(|place| place.real.clone()),
            mount_id: place.and_then(|place| place.mount_id),
            space: place.map_or(Fact::NotCollected, |place| place.space.clone()),
        }
    }

    /// Returns the recorded facts and location.
    pub(crate) fn restore(&self) -> (T, Option<RealPath>) {
        let place = self.real.as_ref().map(|real| RealPath {
            real: real.clone(),
            mount_id: self.mount_id,
            space: self.space.clone(),
        });
        (self.found.clone(), place)
    }
}

/// The real location of a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct RealPath {
    /// The path with all links resolved.
    pub(crate) real: PathBuf,
    /// The id of its mount (Linux 5.8).
    pub(crate) mount_id: Option<u64>,
    pub(crate) space: Fact<Space>,
}

/// The result of statfs(2).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Space {
    pub(crate) magic: u64,
    pub(crate) free: u64,
    pub(crate) total: u64,
}

/// The result of a trial guest with KVM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trial {
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub(crate) proven: Fact<bool>,
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub(crate) trial: Fact<String>,
}

/// Copies everything that is read from the running system.
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

    fn path_of(&self, path: &Path) -> PathBuf {
        self.base.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Performs an operation on the recording, and stores the first failure.
    fn attempt(&self, work: impl FnOnce() -> io::Result<()>) {
        if let Err(error) = work() {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.failed.get_or_insert(error);
        }
    }

    /// Records the contents of a file; its path must not contain links.
    pub(crate) fn file(&self, real: &Path, bytes: &[u8]) {
        self.attempt(|| {
            let copy = self.path_of(real);
            make_parent(&copy)?;
            fs::write(copy, bytes)
        });
    }

    /// Records the existence of an entry; its path must not contain links, except the entry itself.
    pub(crate) fn entry(&self, path: &Path) {
        let Ok(metadata) = fs::symlink_metadata(path) else {
            return;
        };
        self.attempt(|| {
            let copy = self.path_of(path);
            if fs::symlink_metadata(&copy).is_ok() {
                return Ok(());
            }
            make_parent(&copy)?;
            if metadata.file_type().is_symlink() {
                symlink(fs::read_link(path)?, copy)
            } else if metadata.is_dir() {
                fs::create_dir(copy)
            } else {
                // Devices and images are not copied; their facts are in the answers.
                fs::File::create(copy).map(drop)
            }
        });
    }

    /// Records an entry that exists but could not be read.
    pub(crate) fn error(&self, path: &Path, error: &io::Error) {
        if let (Some(path), Some(number)) = (path.to_str(), error.raw_os_error()) {
            self.answer(|answers| {
                answers.errors.insert(path.to_owned(), number);
            });
        }
    }

    /// Records an answer of the kernel.
    pub(crate) fn answer(&self, note: impl FnOnce(&mut Answers)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        note(&mut state.answers);
    }

    /// Writes the answers, and returns the first failure of the recording.
    pub(crate) fn finish(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        let mut text = serde_json::to_string_pretty(&state.answers)?;
        text.push('\n');
        let copy = self.path_of(Path::new(ANSWERS));
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
