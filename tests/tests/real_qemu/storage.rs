//! Images and loop devices for one test, gone when it is over.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use vmdisk_testing::LoopDevice;
use vmdisk_tests::QemuBuild;

/// A directory of its own.
pub(crate) struct Storage {
    loops: Vec<LoopDevice>,
    directory: tempfile::TempDir,
}

impl Storage {
    pub(crate) fn new() -> Self {
        Storage {
            loops: Vec::new(),
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.directory
            .path()
            .join(name)
            .to_str()
            .unwrap()
            .to_owned()
    }

    /// A raw file of some size.
    pub(crate) fn raw(&self, name: &str, bytes: u64) -> String {
        let path = self.path(name);
        std::fs::File::create(&path)
            .unwrap()
            .set_len(bytes)
            .unwrap();
        path
    }

    /// A qcow2 image, on a backing image if one is named.
    pub(crate) fn qcow2(&self, name: &str, backing: Option<&str>) -> Option<String> {
        let path = self.path(name);
        let mut command = Command::new("qemu-img");
        command.args(["create", "-q", "-f", "qcow2"]);
        if let Some(backing) = backing {
            command.args(["-F", "qcow2", "-b", backing]);
        }
        let output = command.arg(&path).arg("16M").output().ok()?;
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Some(path)
    }

    /// A loop device over a new file, where this process may make one.
    pub(crate) fn loop_device(&mut self, name: &str) -> Option<String> {
        let made = LoopDevice::new(Path::new(&self.path(name)), 16 << 20, &[]).ok()?;
        let device = made.path().to_owned();
        self.loops.push(made);
        Path::new(&device).exists().then_some(device)
    }
}

/// A `VhostUserBackend` over a raw image; it ends with this value.
pub(crate) struct Daemon(Child);

impl Daemon {
    /// Starts one with two queues, and waits for its socket.
    pub(crate) fn start(build: &QemuBuild, image: &str, socket: &str) -> Option<Self> {
        let object = |value: serde_json::Value| value.to_string();
        let child = Command::new(build.program("qemu-storage-daemon"))
            .arg("--blockdev")
            .arg(object(serde_json::json!({
                "driver": "file", "node-name": "disk", "filename": image
            })))
            .arg("--export")
            .arg(object(serde_json::json!({
                "type": "vhost-user-blk", "id": "export", "node-name": "disk", "writable": true,
                "num-queues": 2, "addr": { "type": "unix", "path": socket }
            })))
            .stdin(Stdio::null())
            .spawn()
            .ok()?;
        let daemon = Daemon(child);
        let start = Instant::now();
        while !Path::new(socket).exists() {
            if start.elapsed() > Duration::from_secs(10) {
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(daemon)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
