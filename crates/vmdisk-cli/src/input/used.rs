//! The files that this run reads, and the disks of the guests that it is about. No output replaces one of them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use vmdisk::model::Domain;

use crate::input::watch;

/// The time in which the mounts of all files must answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// What the run uses.
struct Used {
    /// The files that were opened.
    opened: BTreeSet<Identity>,
    /// Paths at which nobody looks before an output has to be written. They are compared as bytes, which takes a tenth of the
    /// time.
    paths: BTreeSet<OsString>,
}

static USED: Mutex<Used> = Mutex::new(Used {
    opened: BTreeSet::new(),
    paths: BTreeSet::new(),
});

fn used() -> MutexGuard<'static, Used> {
    USED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes an open file that is read, as its descriptor describes it.
pub(crate) fn opened(file: &Metadata) {
    used().opened.insert(identity(file));
}

/// Notes a file that will be read, or is looked at by other means.
pub(crate) fn file(path: &Path) {
    used().paths.insert(path.as_os_str().to_owned());
}

/// Device, inode, and the time at which the inode was made, where that is known: a file that is removed leaves its number
/// to the next.
type Identity = (u64, u64, Option<SystemTime>);

fn identity(file: &Metadata) -> Identity {
    (file.dev(), file.ino(), file.created().ok())
}

/// Notes the disks of a guest.
pub(crate) fn disks(domain: &Domain) {
    let paths = vmdisk::facts_needed(domain).paths;
    used().paths.extend(paths.into_iter().map(OsString::from));
}

/// True if an existing file is one that this run uses, or if one of those is on a mount that does not answer.
pub(crate) fn contains(output: &Metadata) -> bool {
    let output = identity(output);
    let used = used();
    if used.opened.contains(&output) {
        return true;
    }
    let paths = used.paths.clone();
    drop(used);
    let is_same =
        move |file: OsString| fs::metadata(file).is_ok_and(|file| identity(&file) == output);
    watch::within(TIMEOUT, move || paths.into_iter().any(is_same)).unwrap_or(true)
}
