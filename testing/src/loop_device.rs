//! Loop devices.

use std::path::Path;

use crate::run;

/// A loop device over a file of zeroes, detached on drop.
#[derive(Debug)]
pub struct LoopDevice {
    path: String,
}

impl LoopDevice {
    /// Creates the file, which must not exist, and a device over it, with options of losetup(8).
    ///
    /// # Errors
    /// If the file or the device cannot be created, for example without root privileges.
    pub fn new(file: &Path, bytes: u64, options: &[&str]) -> Result<Self, String> {
        std::fs::File::create_new(file)
            .and_then(|made| made.set_len(bytes))
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let name = file.to_str().ok_or("the file name is not valid UTF-8")?;
        let made = run(
            "losetup",
            &[&["--find", "--show"], options, &[name]].concat(),
        )?;
        Ok(Self { path: made })
    }

    /// Returns its name, such as `/dev/loop0`.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // The kernel detaches the device after its last user closes it.
        let _ = run("losetup", &["--detach", &self.path]);
    }
}
