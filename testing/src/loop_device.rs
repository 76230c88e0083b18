//! Loop devices.

use std::path::Path;

use crate::run;

/// A loop device over a file of zeroes, detached when this goes.
#[derive(Debug)]
pub struct LoopDevice {
    path: String,
}

impl LoopDevice {
    /// Makes the file, which must not exist, and a device over it, with options of losetup(8).
    ///
    /// # Errors
    /// If the file or the device cannot be made, as where this process is not root.
    pub fn new(file: &Path, bytes: u64, options: &[&str]) -> Result<Self, String> {
        std::fs::File::create_new(file)
            .and_then(|made| made.set_len(bytes))
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let name = file.to_str().ok_or("the file's name is no text")?;
        let made = run(
            "losetup",
            &[&["--find", "--show"], options, &[name]].concat(),
        )?;
        Ok(Self { path: made })
    }

    /// Its name, such as `/dev/loop0`.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // Who still uses it keeps it until then.
        let _ = run("losetup", &["--detach", &self.path]);
    }
}
