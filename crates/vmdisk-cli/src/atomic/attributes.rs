//! Owner, mode, access control list and extended attributes, copied from a file to its replacement.
//!
//! The group bits of a file with an access control list are the list's mask. Without the list they would give the
//! owning group what the mask lets through to others, so a file has either both or neither.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};

use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr};
use rustix::io::Errno;

/// The most bytes of a value, and of all names (`XATTR_SIZE_MAX`, `XATTR_LIST_MAX`).
const MAX_BYTES: usize = 65_536;

/// Attributes that the kernel makes of the contents.
const OF_CONTENTS: [&[u8]; 2] = [b"security.ima", b"security.evm"];

/// Gives `to` the owner, mode and attributes of the file `from`.
pub(super) fn copy(from: &File, metadata: &Metadata, to: &File) -> io::Result<()> {
    let is = to.metadata()?;
    if (is.uid(), is.gid()) != (metadata.uid(), metadata.gid()) {
        fchown(to, Some(metadata.uid()), Some(metadata.gid()))?;
    }
    let wanted = names(|buffer| flistxattr(from, buffer))?;
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
        let value = value(|buffer| fgetxattr(from, name.as_slice(), buffer))?;
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use rustix::fs::{getxattr, setxattr};

    use super::super::{ReplaceError, replace, rewrite};
    use super::*;

    const LIST: &str = "system.posix_acl_access";

    /// An access control list: owner rw, user 1002 r, owning group nothing, mask r, others nothing.
    fn list() -> Vec<u8> {
        let entries: [(u16, u16, u32); 5] = [
            (0x01, 6, u32::MAX),
            (0x02, 4, 1002),
            (0x04, 0, u32::MAX),
            (0x10, 4, u32::MAX),
            (0x20, 0, u32::MAX),
        ];
        let mut bytes = 2_u32.to_le_bytes().to_vec();
        for (tag, permissions, id) in entries {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(permissions.to_le_bytes());
            bytes.extend(id.to_le_bytes());
        }
        bytes
    }

    fn read(path: &Path, name: &str) -> Option<Vec<u8>> {
        value_if_any(|buffer| getxattr(path, name, buffer)).unwrap()
    }

    #[test]
    fn a_replaced_file_keeps_its_list_and_attributes_and_nobody_else_gets_access() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.xml");
        for round in 0..2 {
            fs::write(&path, "before").unwrap();
            let set = |name: &str, value: &[u8]| setxattr(&path, name, value, XattrFlags::empty());
            let made = set("user.origin", b"test").and_then(|()| set(LIST, &list()));
            let made = made.map_err(|error| format!("no attributes here: {error}"));
            if vmdisk_testing::needed(made).is_none() {
                return;
            }
            assert_eq!(
                fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o640
            );
            if round == 0 {
                replace(&path, b"before", b"after").unwrap();
            } else {
                rewrite(&path, |file| file.write_all(b"after")).unwrap();
            }
            assert_eq!(fs::read(&path).unwrap(), b"after");
            assert_eq!(read(&path, "user.origin").as_deref(), Some(&b"test"[..]));
            // Without the list the owning group could read what only user 1002 may.
            assert_eq!(read(&path, LIST), Some(list()));
            assert_eq!(
                fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o640
            );
        }
    }

    /// The label stays, so that libvirt and QEMU may still open the file. Without SELinux only root may set one.
    #[test]
    fn a_replaced_file_keeps_its_security_label() {
        const LABEL: &[u8] = b"system_u:object_r:virt_image_t:s0\0";
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.xml");
        fs::write(&path, "before").unwrap();
        let made = setxattr(&path, "security.selinux", LABEL, XattrFlags::empty());
        let made = made.map_err(|error| format!("security labels cannot be set here: {error}"));
        if vmdisk_testing::needed(made).is_none() {
            return;
        }
        replace(&path, b"before", b"after").unwrap();
        assert_eq!(read(&path, "security.selinux").as_deref(), Some(LABEL));
    }

    #[test]
    fn a_directory_gives_the_new_file_no_list_that_the_old_one_had_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.xml");
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let name = "system.posix_acl_default";
        let made = setxattr(directory.path(), name, &list(), XattrFlags::empty());
        let made = made.map_err(|error| format!("no attributes here: {error}"));
        if vmdisk_testing::needed(made).is_none() {
            return;
        }
        replace(&path, b"before", b"after").unwrap();
        assert_eq!(read(&path, LIST), None);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn a_file_with_two_names_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.xml");
        fs::write(&path, "before").unwrap();
        fs::hard_link(&path, directory.path().join("b.xml")).unwrap();
        let refused = replace(&path, b"before", b"after");
        assert!(
            matches!(refused, Err(ReplaceError::Linked(2))),
            "{refused:?}"
        );
        let refused = rewrite(&path, |file| file.write_all(b"after"));
        assert!(
            matches!(refused, Err(ReplaceError::Linked(2))),
            "{refused:?}"
        );
        assert_eq!(fs::read(&path).unwrap(), b"before");
    }

    #[test]
    fn the_very_same_written_by_another_run_is_no_failure() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.xml");
        fs::write(&path, "after").unwrap();
        replace(&path, b"before", b"after").unwrap();
    }
}
