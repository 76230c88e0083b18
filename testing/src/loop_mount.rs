//! File systems on loop devices.

use std::path::{Path, PathBuf};

use crate::{LoopDevice, run};

/// A file system on a loop device with direct I/O, unmounted on drop.
#[derive(Debug)]
pub struct LoopMount {
    device: LoopDevice,
    point: PathBuf,
}

impl LoopMount {
    /// Creates the device with its file in a folder, makes the file system with a program and its arguments, and mounts
    /// it in the folder with options of mount(8).
    ///
    /// # Errors
    /// If a step fails, for example without root privileges.
    pub fn new(folder: &Path, bytes: u64, mkfs: &[&str], options: &str) -> Result<Self, String> {
        let device = LoopDevice::new(&folder.join("device"), bytes, &["--direct-io=on"])?;
        let (program, arguments) = mkfs.split_first().ok_or("no program")?;
        run(program, &[arguments, &[device.path()]].concat())?;
        let point = folder.join("mounted");
        std::fs::create_dir(&point).map_err(|error| error.to_string())?;
        let name = point.to_str().ok_or("the path is not valid UTF-8")?;
        run("mount", &["-o", options, device.path(), name])?;
        Ok(Self { device, point })
    }

    /// Returns the directory on which it is mounted.
    pub fn point(&self) -> &Path {
        &self.point
    }

    /// Returns the bytes read from the device and written to it so far, as the kernel counts them.
    ///
    /// # Panics
    /// If sysfs is not mounted.
    pub fn moved(&self) -> [u64; 2] {
        let device = self.device.path().trim_start_matches("/dev/");
        let stat = std::fs::read_to_string(format!("/sys/block/{device}/stat"));
        let stat = stat.expect("the device exists");
        let numbers: Vec<u64> = stat
            .split_whitespace()
            .filter_map(|it| it.parse().ok())
            .collect();
        [512 * numbers[2], 512 * numbers[6]]
    }
}

impl Drop for LoopMount {
    fn drop(&mut self) {
        let point = self.point.display().to_string();
        let _ = run("umount", &["--lazy", &point]);
    }
}
