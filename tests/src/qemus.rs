//! The QEMUs that tests try things on: those that `cargo xtask qemus` fetched, and the one that is installed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use vmdisk::facts::{Target, Version};

/// The versions that everything is tried on.
pub const QEMU_VERSIONS: [&str; 4] = ["5.2", "7.2", "10.0", "11.1"];

/// A QEMU with its tools.
#[derive(Clone, Debug)]
pub struct QemuBuild {
    /// Its version as people say it, such as `7.2`.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// Where its programs are; `None` for those on the search path.
    folder: Option<PathBuf>,
}

impl QemuBuild {
    /// One of its programs: `qemu-system-x86_64`, `qemu-img`, `qemu-io`, `qemu-storage-daemon`.
    pub fn program(&self, name: &str) -> PathBuf {
        match &self.folder {
            Some(folder) => folder.join(name),
            None => PathBuf::from(name),
        }
    }

    /// The emulator.
    pub fn emulator(&self) -> PathBuf {
        self.program("qemu-system-x86_64")
    }

    /// It as the target of what is written for it.
    pub fn target(&self) -> Target {
        Target {
            qemu: Some(self.version),
            ..Target::default()
        }
    }

    fn at(folder: Option<&Path>) -> Option<Self> {
        let mut build = QemuBuild {
            name: String::new(),
            version: Version(0, 0, 0),
            folder: folder.map(Path::to_owned),
        };
        let said = Command::new(build.emulator())
            .arg("--version")
            .output()
            .ok()?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        build.version = Version::leading(said.split("version ").nth(1)?)?;
        build.name = format!("{}.{}", build.version.0, build.version.1);
        Some(build)
    }
}

/// Every QEMU at hand, oldest first: one of each of [`QEMU_VERSIONS`], if they were fetched, and the installed one.
///
/// They are looked for in the folder that `VMDISK_QEMUS` names, else in `target/qemus`. What is missing is said in
/// one line.
///
/// # Panics
/// Under `VMDISK_REAL=require`, if one of [`QEMU_VERSIONS`] is missing.
pub fn qemus(test: &str) -> Vec<QemuBuild> {
    static FOUND: OnceLock<Vec<QemuBuild>> = OnceLock::new();
    let found = FOUND.get_or_init(find);
    let missing: Vec<&str> = QEMU_VERSIONS
        .into_iter()
        .filter(|version| !found.iter().any(|build| build.name == *version))
        .collect();
    let needs = format!("QEMU {} (cargo xtask qemus)", missing.join(", "));
    crate::real(missing.is_empty(), test, &needs);
    found.clone()
}

fn find() -> Vec<QemuBuild> {
    let folder = std::env::var_os("VMDISK_QEMUS").map_or_else(
        || crate::repository().join("target").join("qemus"),
        PathBuf::from,
    );
    let mut found: Vec<QemuBuild> = QEMU_VERSIONS
        .iter()
        .filter_map(|version| QemuBuild::at(Some(&folder.join(version))))
        .collect();
    if let Some(installed) = QemuBuild::at(None)
        && !found.iter().any(|build| build.name == installed.name)
    {
        found.push(installed);
    }
    found.sort_by_key(|build| build.version);
    found
}

/// Runs a test on every QEMU at hand, and says on which it failed.
///
/// # Panics
/// As [`qemus`], and as the test does.
pub fn on_each_qemu(test: &str, run: impl Fn(&QemuBuild)) {
    for build in qemus(test) {
        let blame = Blame(&build);
        run(&build);
        drop(blame);
    }
}

/// Names the QEMU when a test panics.
struct Blame<'a>(&'a QemuBuild);

impl Drop for Blame<'_> {
    #[allow(
        clippy::print_stderr,
        reason = "a failed test says on which program it failed"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "failed on QEMU {} ({})",
                self.0.name,
                self.0.emulator().display()
            );
        }
    }
}
