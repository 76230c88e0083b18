//! The storage of a disk during a run.

use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use super::counters;

/// The location of a disk's bytes, and the writable range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PreparedStorage {
    pub(crate) path: PathBuf,
    /// The first byte of the guest's disk that is used.
    pub(crate) offset: u64,
    /// Number of bytes used.
    pub(crate) length: u64,
    pub(crate) kind: StorageKind,
}

/// The kind of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StorageKind {
    File,
    Device,
    /// A file or device that is only read.
    Existing,
    /// The socket of a vhost-user-blk device with this many queues, which a program outside this run serves.
    Socket {
        queues: u32,
    },
}

impl PreparedStorage {
    pub(crate) fn new(path: impl Into<PathBuf>, length: u64, kind: StorageKind) -> Self {
        PreparedStorage {
            path: path.into(),
            offset: 0,
            length,
            kind,
        }
    }

    /// Returns a note for readers of the figures.
    pub(crate) fn notes(&self) -> Option<String> {
        match self.kind {
            StorageKind::File | StorageKind::Existing => {
                file_system_note(&self.path).or_else(|| loop_note(&self.path))
            }
            StorageKind::Device => loop_note(&self.path),
            StorageKind::Socket { .. } => Some(format!(
                "the program behind {} is not part of this run: its cache mode, its processor time and the effect of \
                 flushes are unknown",
                self.path.display()
            )),
        }
    }

    /// Returns the path whose devices can be counted.
    pub(crate) fn counted_path(&self) -> Option<&Path> {
        match self.kind {
            StorageKind::File | StorageKind::Device | StorageKind::Existing => Some(&self.path),
            // The file system of a socket has nothing to do with the disk.
            StorageKind::Socket { .. } => None,
        }
    }

    /// Returns the number of queues of a device behind a socket; `None` for a file or device of the host.
    pub(crate) fn socket_queues(&self) -> Option<u32> {
        match self.kind {
            StorageKind::Socket { queues } => Some(queues),
            StorageKind::File | StorageKind::Device | StorageKind::Existing => None,
        }
    }
}

/// Returns a note if a loop device below uses the host's page cache.
fn loop_note(path: &Path) -> Option<String> {
    let loops = counters::buffered_loops(path);
    let name = loops.first()?;
    Some(format!(
        "{name} is a loop device without direct I/O: the figures are those of the host's page cache"
    ))
}

/// Returns a note on a file system that is not on a disk of this host. For a device, the file system of its node does not count.
fn file_system_note(path: &Path) -> Option<String> {
    if std::fs::metadata(path).is_ok_and(|it| it.file_type().is_block_device()) {
        return None;
    }
    let kind = rustix::fs::statfs(path).ok()?.f_type;
    let name = match u64::try_from(kind).ok()? & 0xffff_ffff {
        0x0102_1994 => "tmpfs: the figures are those of memory",
        0x8584_58f6 => "ramfs: the figures are those of memory",
        0x794c_7630 => "overlayfs: the figures are those of its upper layer",
        0x6969 => "NFS: the figures are those of a network",
        0x6573_5546 => "FUSE: the figures are those of a user-space file system",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB: the figures are those of a network",
        _ => return None,
    };
    Some(format!("files are on {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_of_a_device_node_is_not_that_of_its_bytes() {
        let nodes = std::fs::read_dir("/dev").unwrap().flatten();
        let is_device = |path: &PathBuf| {
            std::fs::metadata(path).is_ok_and(|it| it.file_type().is_block_device())
        };
        // Without a device there is nothing to test.
        for path in nodes.map(|node| node.path()).filter(is_device) {
            assert_eq!(file_system_note(&path), None, "{}", path.display());
        }
    }
}
