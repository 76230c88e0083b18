//! Other names of block devices: links by udev and the device mapper.

use std::collections::HashMap;
use std::path::Path;

use crate::root::Root;

/// Links under `/dev`, by the kernel's name of their device.
#[derive(Debug, Default)]
pub(crate) struct Aliases {
    by_name: HashMap<String, Vec<String>>,
}

/// Directories under `/dev` without useful links to block devices.
const SKIPPED_DIRECTORIES: [&str; 13] = [
    "block",
    "bus",
    "bsg",
    "char",
    "cpu",
    "dri",
    "fd",
    "hugepages",
    "input",
    "mqueue",
    "net",
    "pts",
    "shm",
];

/// Maximum depth of directories; `/dev/zvol/pool/some/volume` is the deepest in practice.
const MAX_DEPTH: usize = 6;

impl Aliases {
    /// Collects all links.
    pub(crate) fn scan(root: &Root) -> Self {
        let mut aliases = Self::default();
        for name in root.names("/dev").unwrap_or_default() {
            if !SKIPPED_DIRECTORIES.contains(&name.as_str()) {
                aliases.descend(root, &format!("/dev/{name}"), 1);
            }
        }
        aliases
    }

    fn descend(&mut self, root: &Root, path: &str, depth: usize) {
        let Ok(metadata) = std::fs::symlink_metadata(root.host(path)) else {
            return;
        };
        if metadata.is_symlink() {
            if let Ok(real) = root.resolve(Path::new(path))
                && let Some(name) = real.strip_prefix("/dev").ok().and_then(Path::to_str)
                && !name.is_empty()
                && !name.contains('/')
            {
                self.by_name
                    .entry(name.to_owned())
                    .or_default()
                    .push(path.to_owned());
            }
        } else if metadata.is_dir() && depth < MAX_DEPTH {
            for name in root.names(path).unwrap_or_default() {
                self.descend(root, &format!("{path}/{name}"), depth + 1);
            }
        }
    }

    /// Returns every path of a device: meaningful names first, then the kernel's, then udev's.
    pub(crate) fn of(&self, name: &str) -> Vec<String> {
        let own = format!("/dev/{name}");
        let mut paths = self.by_name.get(name).cloned().unwrap_or_default();
        paths.push(own.clone());
        paths.sort_by_cached_key(|path| {
            let rank = if path.starts_with("/dev/disk/") {
                3
            } else if *path == own {
                2
            } else if path.starts_with("/dev/mapper/") {
                1
            } else {
                0
            };
            (rank, path.clone())
        });
        paths
    }
}
