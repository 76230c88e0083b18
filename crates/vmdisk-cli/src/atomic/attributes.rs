//! Owner, mode, access control list and extended attributes, carried from a file to the one that replaces it.
//!
//! The group bits of a file with an access control list are the list's mask. Without the list they would give the
//! owning group what the mask lets through to others, so a file has either both or neither.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr, getxattr, listxattr};
use rustix::io::Errno;

/// The most bytes of a value, and of all names (`XATTR_SIZE_MAX`, `XATTR_LIST_MAX`).
const MAX_BYTES: usize = 65_536;

/// Attributes that the kernel makes of the contents.
const OF_CONTENTS: [&[u8]; 2] = [b"security.ima", b"security.evm"];

/// The number of names that a file has.
pub(super) fn names_of(metadata: &Metadata) -> u64 {
    metadata.nlink()
}

/// Gives `to` the owner, mode and attributes of the file `from`.
pub(super) fn copy(from: &Path, metadata: &Metadata, to: &File) -> io::Result<()> {
    let is = to.metadata()?;
    if (is.uid(), is.gid()) != (metadata.uid(), metadata.gid()) {
        fchown(to, Some(metadata.uid()), Some(metadata.gid()))?;
    }
    let wanted = names(|buffer| listxattr(from, buffer))?;
    // A directory may give new files a list of its own.
    for name in names(|buffer| flistxattr(to, buffer))? {
        let is_settable = name.starts_with(b"system.posix_acl") || name.starts_with(b"user.");
        if is_settable && !wanted.contains(&name) {
            fremovexattr(to, name.as_slice())?;
        }
    }
    for name in wanted
        .iter()
        .filter(|name| !OF_CONTENTS.contains(&name.as_slice()))
    {
        let value = value(|buffer| getxattr(from, name.as_slice(), buffer))?;
        let present = value_if_any(|buffer| fgetxattr(to, name.as_slice(), buffer))?;
        if present.as_ref() != Some(&value) {
            fsetxattr(to, name.as_slice(), &value, XattrFlags::empty())?;
        }
    }
    // After the owner, because changing the owner clears set-id bits.
    to.set_permissions(metadata.permissions())
}

/// The names of a list of attributes; none where the file system has no attributes.
fn names(list: impl Fn(&mut [u8]) -> rustix::io::Result<usize>) -> io::Result<Vec<Vec<u8>>> {
    let bytes = match value(list) {
        Err(error) if error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => Vec::new(),
        other => other?,
    };
    let names = bytes
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    Ok(names.map(<[u8]>::to_vec).collect())
}

fn value(get: impl Fn(&mut [u8]) -> rustix::io::Result<usize>) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; MAX_BYTES];
    let length = get(&mut buffer)?;
    buffer.truncate(length);
    Ok(buffer)
}

fn value_if_any(
    get: impl Fn(&mut [u8]) -> rustix::io::Result<usize>,
) -> io::Result<Option<Vec<u8>>> {
    match value(get) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.raw_os_error() == Some(Errno::NODATA.raw_os_error()) => Ok(None),
        Err(error) => Err(error),
    }
}
