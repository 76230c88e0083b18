//! The space that images can still use on their file systems.

use vmdisk_facts::{Filesystem, HostIndex, ImageHeader};
use vmdisk_rule::{Context, Missing};

/// The file system of a file, and the bytes by which the image can still grow; `None` if it cannot.
///
/// # Errors
/// Fails if the size of the image or its file system is not known.
pub fn growth<'a>(
    facts: &HostIndex<'a>,
    path: &str,
) -> Result<Option<(&'a Filesystem, u64)>, Missing> {
    let what = || format!("the size of {path}");
    let Some(file) = facts.file(path) else {
        return Err(Missing::new(what(), Missing::NOT_COLLECTED));
    };
    if file.is_missing() {
        return Ok(None);
    }
    let has_data_file = |header: &ImageHeader| header.data_file.is_known();
    if file.image.value().is_some_and(has_data_file) {
        return Ok(None);
    }
    let in_header = file
        .image
        .as_ref()
        .and_then(|header| header.virtual_size.clone());
    let size = Context::known(in_header.or(file.size.clone()), what)?;
    let allocated = Context::known(file.alloc.clone(), what)?;
    let (Some(size), Some(allocated)) = (size, allocated) else {
        return Ok(None);
    };
    let growth = size.saturating_sub(allocated);
    if growth == 0 {
        return Ok(None);
    }
    let filesystem = Context::known(facts.filesystem_of(path), || {
        format!("the file system of {path}")
    })?;
    Ok(filesystem.map(|filesystem| (filesystem, growth)))
}
