//! What images stand on: backing and data files, followed only where that was asked for.

use std::collections::{HashSet, VecDeque};

use vmdisk_facts::{Fact, File, NamedFile, named_file};

use crate::collect::{Paths, tidy};

/// The most images that are followed in one chain: libvirt refuses more.
const MOST_IMAGES: usize = 200;

/// Looks at what the images of `Request::chains` stand on, each file once, so that a loop ends. Gives the paths that
/// were looked at.
pub(crate) fn follow(paths: &mut Paths<'_>) -> HashSet<String> {
    let mut seen = HashSet::new();
    let mut looked_at = HashSet::new();
    let asked: Vec<String> = paths
        .request
        .chains
        .iter()
        .filter_map(|path| path.to_str())
        .filter(|path| path.starts_with('/'))
        .map(tidy)
        .collect();
    for top in asked {
        let mut next = Some(top);
        // Names that lead through links may be new for ever.
        for _ in 0..MOST_IMAGES {
            let Some(path) = next.take().filter(|path| seen.insert(path.clone())) else {
                break;
            };
            let mut todo = VecDeque::from([path.clone()]);
            paths.look_at(&mut todo);
            let Some((file, _)) = paths.files.get(&path) else {
                break;
            };
            let (backing, data) = named_in(file);
            todo.extend(data);
            todo.extend(backing.as_ref().map(|(below, _)| below.clone()));
            looked_at.extend(todo.iter().cloned());
            paths.look_at(&mut todo);
            // Of what is opened as raw nobody reads a header.
            next = backing
                .filter(|(_, is_raw)| !is_raw)
                .map(|(below, _)| below);
        }
    }
    looked_at
}

/// The backing file that an image names, with whether it is opened as raw, and its data file.
fn named_in(file: &File) -> (Option<(String, bool)>, Option<String>) {
    let Fact::Known(image) = &file.image else {
        return (None, None);
    };
    let path_of = |name: &str| match named_file(&file.path, name) {
        NamedFile::Path(path) => Some(tidy(&path)),
        NamedFile::Protocol(_) | NamedFile::Json | NamedFile::Unresolvable => None,
    };
    let backing = image.backing.value().and_then(|backing| {
        // Old tools recorded the protocol, which means the bytes as they come.
        let is_raw = backing
            .format
            .value()
            .is_some_and(|format| matches!(format.as_str(), "raw" | "file" | "host_device"));
        Some((path_of(&backing.path)?, is_raw))
    });
    let data = image.data_file.value().and_then(|name| path_of(name));
    (backing, data)
}
