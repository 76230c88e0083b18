//! Relative paths of images.

use std::path::Path;

use vmdisk_model::{BackendSource, Backing, Disk, Image, Protocol};

/// The paths of an image and those below it that are not full.
pub(crate) fn relative_paths(image: &Image) -> impl Iterator<Item = &str> {
    image.chain().filter_map(|image| {
        let path = match &image.protocol {
            Protocol::File { path } | Protocol::Directory { path } => path.as_str(),
            Protocol::HostDevice { path } => path.0.as_str(),
            _ => return None,
        };
        is_relative(path).then_some(path)
    })
}

fn is_relative(path: &str) -> bool {
    // A variable may hold the folder, and Windows has drives.
    let begins_elsewhere = path.starts_with(['/', '\\', '$', '%']) || path.get(1..2) == Some(":");
    !path.is_empty() && !begins_elsewhere
}

/// Makes the relative paths of a disk full, and adds them to `resolved`.
pub(crate) fn resolve_paths_of(disk: &mut Disk, base: &Path, resolved: &mut Vec<String>) {
    let mut next = match &mut disk.backend.source {
        BackendSource::Image(image) => Some(image),
        _ => None,
    };
    while let Some(image) = next {
        let data_file = image.data_file.as_deref_mut();
        let protocols = std::iter::once(&mut image.protocol)
            .chain(data_file.map(|data_file| &mut data_file.protocol));
        for protocol in protocols {
            if let Protocol::File { path } = protocol
                && is_relative(path)
                && let Some(full) = base.join(path.trim_start_matches("./")).to_str()
            {
                resolved.push(std::mem::replace(path, full.to_owned()));
            }
        }
        next = match &mut image.backing {
            Backing::Image(below) => Some(below),
            Backing::Unspecified | Backing::Terminated => None,
        };
    }
}
