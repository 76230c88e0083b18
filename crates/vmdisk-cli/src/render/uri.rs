//! Paths from the bytes of their names.

use std::path::PathBuf;

/// A path with these bytes.
#[cfg(unix)]
pub(crate) fn path_of_bytes(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes).into()
}

/// A path with these bytes, if they are UTF-8.
#[cfg(not(unix))]
pub(crate) fn path_of_bytes(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}
