//! The files that this run reads, and the disks of the guests that it is about. No output replaces one of them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use vmdisk::model::Domain;

use crate::input::watch;

/// The time in which the mounts of all files must answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Nobody looks at the paths before an output has to be written. They are compared as bytes, which takes a tenth of the time.
static USED: Mutex<BTreeSet<OsString>> = Mutex::new(BTreeSet::new());

fn used() -> MutexGuard<'static, BTreeSet<OsString>> {
    USED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a file that is read, or looked at by other means.
pub(crate) fn file(path: &Path) {
    used().insert(path.as_os_str().to_owned());
}

/// Notes the disks of a guest.
pub(crate) fn disks(domain: &Domain) {
    let paths = vmdisk::facts_needed(domain).paths;
    used().extend(paths.into_iter().map(OsString::from));
}

/// True if an existing file is one that this run uses, or if one of those is on a mount that does not answer.
pub(crate) fn contains(output: &Metadata) -> bool {
    let identity = (output.dev(), output.ino());
    let used = used().clone();
    let is_same = move |file: OsString| {
        fs::metadata(file).is_ok_and(|file| (file.dev(), file.ino()) == identity)
    };
    watch::within(TIMEOUT, move || used.into_iter().any(is_same)).unwrap_or(true)
}
