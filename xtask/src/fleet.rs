//! Writes the generated domains to a directory.

use std::path::Path;

use anyhow::Context as _;

/// Writes `count` domains into `folder` and returns their size in bytes.
pub(crate) fn write_all(folder: &Path, count: u32, seed: u64) -> anyhow::Result<u64> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mut bytes = 0;
    for number in 0..count {
        let text = vmdisk_benches::domain(number, seed);
        bytes += text.len() as u64;
        let path = folder.join(format!("guest-{number:05}.xml"));
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(bytes)
}
