//! The backing and data files of images, followed only on request.

use std::collections::{HashSet, VecDeque};

use vmdisk_facts::{Fact, File, NamedFile, named_file};

use crate::inspection::{Paths, normalize};

/// Maximum number of images in a chain: libvirt refuses more.
const MAX_IMAGES: usize = 200;

/// Inspects the chains of the images in `Request::chains`, each file once, so that a loop ends. Returns the inspected
/// paths.
pub(crate) fn follow(paths: &mut Paths<'_>) -> HashSet<String> {
    let mut seen = HashSet::new();
    let mut looked_at = HashSet::new();
    let asked: Vec<String> = paths
        .request
        .chains
        .iter()
        .filter_map(|path| path.to_str())
        .filter(|path| path.starts_with('/'))
        .map(normalize)
        .collect();
    for top in asked {
        let mut next = Some(top);
        // Links can produce new names forever, so the number is limited.
        for _ in 0..MAX_IMAGES {
            let Some(path) = next.take().filter(|path| seen.insert(path.clone())) else {
                break;
            };
            let mut todo = VecDeque::from([path.clone()]);
            paths.inspect(&mut todo);
            let Some((file, _)) = paths.files.get(&path) else {
                break;
            };
            let (backing, data) = named_in(file);
            todo.extend(data);
            todo.extend(backing.as_ref().map(|(below, _)| below.clone()));
            looked_at.extend(todo.iter().cloned());
            paths.inspect(&mut todo);
            // The header of an image opened as raw is not read.
            next = backing
                .filter(|(_, is_raw)| !is_raw)
                .map(|(below, _)| below);
        }
    }
    looked_at
}

/// Returns the backing file in an image's header, with true if it is opened as raw, and its data file.
fn named_in(file: &File) -> (Option<(String, bool)>, Option<String>) {
    let Fact::Known(image) = &file.image else {
        return (None, None);
    };
    let path_of = |name: &str| match named_file(&file.path, name) {
        NamedFile::Path(path) => Some(normalize(&path)),
        NamedFile::Protocol(_) | NamedFile::Json | NamedFile::Unresolvable => None,
    };
    let backing = image.backing.value().and_then(|backing| {
        // Old tools recorded the protocol instead of the format, which means raw.
        let is_raw = backing
            .format
            .value()
            .is_some_and(|format| matches!(format.as_str(), "raw" | "file" | "host_device"));
        Some((path_of(&backing.path)?, is_raw))
    });
    let data = image.data_file.value().and_then(|name| path_of(name));
    (backing, data)
}
