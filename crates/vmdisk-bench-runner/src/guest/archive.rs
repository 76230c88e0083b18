//! The archive for a kernel's initial file system: cpio in the `newc` format.

use std::collections::BTreeMap;

/// The entries of an archive, by path without a leading slash.
#[derive(Debug, Default)]
pub struct Archive {
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    mode: u32,
    device: (u32, u32),
    bytes: Vec<u8>,
}

impl Archive {
    /// Adds a folder and its parents.
    pub fn folder(&mut self, path: &str) {
        let path = path.trim_matches('/');
        for (place, _) in path.match_indices('/').chain([(path.len(), "")]) {
            if place > 0 {
                self.entries
                    .entry(path[..place].to_owned())
                    .or_insert_with(|| Entry {
                        mode: 0o40_755,
                        device: (0, 0),
                        bytes: Vec::new(),
                    });
            }
        }
    }

    /// Adds a file, executable if `program`.
    pub fn file(&mut self, path: &str, bytes: Vec<u8>, program: bool) {
        let mode = if program { 0o100_755 } else { 0o100_644 };
        self.put(path, mode, (0, 0), bytes);
    }

    /// Returns true if the archive has this path.
    pub fn has(&self, path: &str) -> bool {
        self.entries.contains_key(path.trim_start_matches('/'))
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        self.put(path, 0o120_777, (0, 0), target.as_bytes().to_vec());
    }

    /// Adds a character device.
    pub fn character_device(&mut self, path: &str, major: u32, minor: u32) {
        self.put(path, 0o20_600, (major, minor), Vec::new());
    }

    fn put(&mut self, path: &str, mode: u32, device: (u32, u32), bytes: Vec<u8>) {
        let path = path.trim_start_matches('/');
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.folder(folder);
        }
        let entry = Entry {
            mode,
            device,
            bytes,
        };
        self.entries.insert(path.to_owned(), entry);
    }

    /// Returns the bytes of the archive. A folder sorts before its contents, as the kernel requires.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (number, (path, entry)) in self.entries.iter().enumerate() {
            append(&mut out, number + 1, path, entry);
        }
        let end = Entry {
            mode: 0,
            device: (0, 0),
            bytes: Vec::new(),
        };
        append(&mut out, 0, "TRAILER!!!", &end);
        out.resize(out.len().next_multiple_of(512), 0);
        out
    }
}

fn append(out: &mut Vec<u8>, number: usize, path: &str, entry: &Entry) {
    let (major, minor) = entry.device;
    // Inode, mode, owner, group, links, time, size, device, device of the node, length of the name, checksum.
    let fields = [
        number as u32,
        entry.mode,
        0,
        0,
        1,
        0,
        entry.bytes.len() as u32,
        0,
        0,
        major,
        minor,
        path.len() as u32 + 1,
        0,
    ];
    out.extend_from_slice(b"070701");
    for field in fields {
        out.extend_from_slice(format!("{field:08X}").as_bytes());
    }
    out.extend_from_slice(path.as_bytes());
    out.push(0);
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend_from_slice(&entry.bytes);
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_contents_are_aligned_and_folders_precede_their_contents() {
        let mut archive = Archive::default();
        archive.file("/etc/lvm/lvm.conf", b"a=1".to_vec(), false);
        archive.link("bin", "usr/bin");
        let bytes = archive.bytes();
        assert_eq!(bytes.len() % 512, 0);
        let text = String::from_utf8_lossy(&bytes);
        // 110 bytes of header, then the name and its zero.
        let headers: Vec<usize> = text.match_indices("070701").map(|(at, _)| at).collect();
        assert_eq!(headers.len(), 5, "bin, etc, etc/lvm, the file, the end");
        assert!(headers.iter().all(|at| at % 4 == 0));
        let names: Vec<&str> = headers
            .iter()
            .map(|at| text[at + 110..].split('\0').next().unwrap())
            .collect();
        assert_eq!(
            names,
            ["bin", "etc", "etc/lvm", "etc/lvm/lvm.conf", "TRAILER!!!"]
        );
    }
}
