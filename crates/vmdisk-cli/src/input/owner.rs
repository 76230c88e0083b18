//! Files that decide about inputs without being named: a user must not decide about another user's files.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// True if a file may decide about the inputs in a directory: it belongs to the caller, to root, or to the owner of the
/// directory.
pub(crate) fn may_decide(file: &Metadata, directory: &Path) -> bool {
    let owner = file.uid();
    let is_of_caller = owner == rustix::process::geteuid().as_raw();
    let is_of_directory = || directory.metadata().is_ok_and(|of| of.uid() == owner);
    owner == 0 || is_of_caller || is_of_directory()
}
