//! Access of QEMU's user to a path by permission bits and access lists; labels; and listeners on sockets.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use vmdisk_facts::access::{QemuAccess, Socket};
use vmdisk_facts::libvirt::QemuUser;
use vmdisk_facts::{Fact, Unknown};

use crate::obstacle::obstacle;

const READ: u32 = 4;
const WRITE: u32 = 2;
const SEARCH: u32 = 1;

/// Maximum size of an attribute; longer ones are irrelevant here.
const MAX_ATTRIBUTE_BYTES: usize = 4096;

/// Returns an extended attribute; `None` if it does not exist.
fn attribute(path: &Path, name: &str) -> io::Result<Option<Vec<u8>>> {
    let mut buffer = vec![0; MAX_ATTRIBUTE_BYTES];
    match rustix::fs::getxattr(path, name, &mut buffer[..]) {
        Ok(length) => {
            buffer.truncate(length);
            Ok(Some(buffer))
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the SELinux label of a path.
pub(crate) fn label(path: &Path) -> Fact<String> {
    match attribute(path, "security.selinux") {
        Ok(Some(bytes)) => {
            let text = String::from_utf8_lossy(&bytes);
            Fact::Known(text.trim_end_matches('\0').to_owned())
        }
        Ok(None) => Fact::Absent,
        Err(error) => Fact::Unknown(obstacle(&format!("{}: its label", path.display()), &error)),
    }
}

/// Returns the access of QEMU's user to a path with its links resolved.
pub(crate) fn of(given: &Path, real: &Path, user: &Fact<QemuUser>) -> Fact<QemuAccess> {
    user.as_ref().and_then(|user| {
        let who = match Who::new(user) {
            Ok(who) => who,
            Err(unknown) => return unknown.and_then(|()| Fact::NotCollected),
        };
        let (search, stopped_at) = searched(given, real, &who);
        let (read, write) = match Permissions::of(real) {
            Ok(permissions) => (
                Fact::Known(permissions.let_through(&who, READ)),
                Fact::Known(permissions.let_through(&who, WRITE)),
            ),
            Err(unknown) => (Fact::Unknown(unknown.clone()), Fact::Unknown(unknown)),
        };
        Fact::Known(QemuAccess {
            search,
            stopped_at,
            read,
            write,
        })
    })
}

/// Checks search permission on every directory above both paths; returns the first directory without it.
fn searched(given: &Path, real: &Path, who: &Who) -> (Fact<bool>, Fact<String>) {
    let above: BTreeSet<PathBuf> = given
        .ancestors()
        .skip(1)
        .chain(real.ancestors().skip(1))
        .map(Path::to_owned)
        .collect();
    // Sorted, a directory precedes its contents.
    for directory in above {
        match Permissions::of(&directory) {
            Ok(permissions) if permissions.let_through(who, SEARCH) => {}
            Ok(_) => {
                return (
                    Fact::Known(false),
                    Fact::Known(directory.to_string_lossy().into_owned()),
                );
            }
            Err(unknown) => return (Fact::Unknown(unknown.clone()), Fact::Unknown(unknown)),
        }
    }
    (Fact::Known(true), Fact::Absent)
}

/// The user and groups whose access is checked.
struct Who {
    uid: u32,
    groups: Vec<u32>,
}

impl Who {
    fn new(user: &QemuUser) -> Result<Self, Fact<()>> {
        match (&user.uid, &user.groups) {
            (Fact::Known(uid), Fact::Known(groups)) => Ok(Self {
                uid: *uid,
                groups: groups.clone(),
            }),
            (Fact::Known(_), groups) => Err(groups.as_ref().map(|_| ())),
            (uid, _) => Err(uid.as_ref().map(|_| ())),
        }
    }
}

/// Owner, permission bits and access list of one path.
#[derive(Debug)]
struct Permissions {
    mode: u32,
    uid: u32,
    gid: u32,
    list: Option<List>,
}

impl Permissions {
    fn of(path: &Path) -> Result<Self, Unknown> {
        let failed = |error: &io::Error| obstacle(&path.display().to_string(), error);
        let metadata = fs::metadata(path).map_err(|error| failed(&error))?;
        let bytes = attribute(path, "system.posix_acl_access").map_err(|error| failed(&error))?;
        Ok(Self {
            mode: metadata.mode(),
            uid: metadata.uid(),
            gid: metadata.gid(),
            list: bytes.as_deref().and_then(List::parse),
        })
    }

    /// Implements the access check of acl(5). libvirt drops QEMU's capabilities, so root is no exception.
    fn let_through(&self, who: &Who, wanted: u32) -> bool {
        let grants = |bits: u32| bits & wanted == wanted;
        if self.uid == who.uid {
            return grants(self.mode >> 6);
        }
        let is_in = |group: u32| who.groups.contains(&group);
        let Some(list) = &self.list else {
            return grants(if is_in(self.gid) {
                self.mode >> 3
            } else {
                self.mode
            });
        };
        if let Some((_, bits)) = list.users.iter().find(|(user, _)| *user == who.uid) {
            return grants(bits & list.mask);
        }
        let own = is_in(self.gid).then_some(list.group);
        let named = list.groups.iter().filter(|(group, _)| is_in(*group));
        let mut fitting = own
            .into_iter()
            .chain(named.map(|(_, bits)| *bits))
            .peekable();
        if fitting.peek().is_some() {
            return fitting.any(|bits| grants(bits & list.mask));
        }
        grants(self.mode)
    }
}

/// An access list in addition to the permission bits.
#[derive(Debug, PartialEq, Eq)]
struct List {
    users: Vec<(u32, u32)>,
    /// Permissions of the owning group, before the mask.
    group: u32,
    groups: Vec<(u32, u32)>,
    mask: u32,
}

impl List {
    /// Parses the format of linux/posix_acl_xattr.h: a version, followed by entries of tag, permissions and id.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let (version, entries) = bytes.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*version) != 2 {
            return None;
        }
        let mut list = Self {
            users: Vec::new(),
            group: 0,
            groups: Vec::new(),
            mask: 7,
        };
        for entry in entries.chunks_exact(8) {
            let tag = u16::from_le_bytes([entry[0], entry[1]]);
            let bits = u32::from(u16::from_le_bytes([entry[2], entry[3]]));
            let number = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
            match tag {
                0x02 => list.users.push((number, bits)),
                0x04 => list.group = bits,
                0x08 => list.groups.push((number, bits)),
                0x10 => list.mask = bits,
                // The entries of owner and others repeat the permission bits.
                _ => {}
            }
        }
        Some(list)
    }
}

/// Returns whether a process listens on a socket; does not connect.
pub(crate) fn socket(given: &Path, real: &Path) -> Socket {
    let table = "/proc/net/unix";
    Socket {
        listening: match fs::read_to_string(table) {
            Ok(text) => Fact::Known(text.lines().any(|line| {
                listened_on(line)
                    .is_some_and(|bound| Path::new(bound) == given || Path::new(bound) == real)
            })),
            Err(error) => Fact::Unknown(obstacle(table, &error)),
        },
    }
}

/// Returns the path of a listening socket in `/proc/net/unix`: `0: 00000002 00000000 00010000 0001 01 123 /run/x`.
fn listened_on(line: &str) -> Option<&str> {
    const ACCEPTS_CONNECTIONS: u64 = 0x1_0000;
    let mut rest = line;
    let mut flags = None;
    for number in 0..7 {
        let (word, after) = rest.trim_start().split_once(' ')?;
        if number == 3 {
            flags = u64::from_str_radix(word, 16).ok();
        }
        rest = after;
    }
    (flags? & ACCEPTS_CONNECTIONS != 0).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permissions(mode: u32, list: Option<List>) -> Permissions {
        Permissions {
            mode,
            uid: 0,
            gid: 50,
            list,
        }
    }

    #[test]
    fn owner_group_and_others_have_separate_bits() {
        let who = |uid: u32, groups: &[u32]| Who {
            uid,
            groups: groups.to_vec(),
        };
        let file = permissions(0o100_750, None);
        assert!(file.let_through(&who(0, &[]), WRITE));
        assert!(file.let_through(&who(7, &[50]), SEARCH));
        assert!(!file.let_through(&who(7, &[50]), WRITE));
        assert!(!file.let_through(&who(7, &[51]), SEARCH));
        // The owner's bits apply to the owner, even if others have more permissions.
        assert!(!permissions(0o077, None).let_through(&who(0, &[50]), READ));
    }

    #[test]
    fn entries_of_an_access_list_are_limited_by_its_mask() {
        let list = |mask| List {
            users: vec![(64_055, 7)],
            group: 4,
            groups: vec![(107, 5)],
            mask,
        };
        let who = |uid: u32, groups: &[u32]| Who {
            uid,
            groups: groups.to_vec(),
        };
        assert!(permissions(0o710, Some(list(7))).let_through(&who(64_055, &[]), WRITE));
        assert!(!permissions(0o710, Some(list(5))).let_through(&who(64_055, &[]), WRITE));
        assert!(permissions(0o710, Some(list(7))).let_through(&who(1, &[107]), SEARCH));
        assert!(!permissions(0o717, Some(list(7))).let_through(&who(1, &[50]), WRITE));
        assert!(permissions(0o717, Some(list(7))).let_through(&who(1, &[9]), WRITE));
    }

    #[test]
    fn an_access_list_in_the_kernels_format_is_parsed() {
        let mut bytes = 2_u32.to_le_bytes().to_vec();
        for (tag, bits, number) in [
            (0x01_u16, 7_u16, u32::MAX),
            (0x02, 6, 1000),
            (0x04, 5, u32::MAX),
            (0x08, 4, 107),
            (0x10, 7, u32::MAX),
            (0x20, 0, u32::MAX),
        ] {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(bits.to_le_bytes());
            bytes.extend(number.to_le_bytes());
        }
        let expected = List {
            users: vec![(1000, 6)],
            group: 5,
            groups: vec![(107, 4)],
            mask: 7,
        };
        assert_eq!(List::parse(&bytes), Some(expected));
        assert_eq!(List::parse(&[3, 0, 0, 0]), None);
        assert_eq!(List::parse(&[2, 0]), None);
    }

    #[test]
    fn only_listening_sockets_count() {
        assert_eq!(
            listened_on("0000000000000000: 00000002 00000000 00010000 0001 01 24583 /run/a b.sock"),
            Some("/run/a b.sock")
        );
        assert_eq!(
            listened_on("0000000000000000: 00000003 00000000 00000000 0001 03 24583 /run/a.sock"),
            None
        );
        assert_eq!(
            listened_on("Num       RefCount Protocol Flags    Type St Inode Path"),
            None
        );
        assert_eq!(listened_on(""), None);
    }

    #[test]
    fn a_listening_socket_is_detected_without_connecting() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        assert_eq!(socket(&path, &path).listening, Fact::Known(true));
        assert_eq!(
            listener.accept().unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        drop(listener);
        assert_eq!(socket(&path, &path).listening, Fact::Known(false));
    }
}
