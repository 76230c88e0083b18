//! Several releases of QEMU side by side: `cargo xtask qemus`. [`QEMU_VERSIONS`] lists them.
//!
//! Each is unpacked with all its libraries and started by its own dynamic loader, so that it runs on any
//! host, for any user, without a chroot.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, anyhow, ensure};
use vmdisk_tests::QEMU_VERSIONS;

use crate::hostlab::packages::{Packages, Release, run as run_program};

/// The source of a QEMU.
struct Source {
    version: &'static str,
    release: Release,
    suite: &'static str,
}

/// A release for each version that the tests use: a version without one does not compile.
const SOURCES: [Source; QEMU_VERSIONS.len()] = [
    Source {
        version: QEMU_VERSIONS[0],
        release: Release {
            name: "bullseye",
            suites: &[""],
        },
        suite: "",
    },
    Source {
        version: QEMU_VERSIONS[1],
        release: Release {
            name: "bookworm",
            suites: &[""],
        },
        suite: "",
    },
    Source {
        version: QEMU_VERSIONS[2],
        release: Release {
            name: "trixie",
            suites: &[""],
        },
        suite: "",
    },
    Source {
        version: QEMU_VERSIONS[3],
        release: Release {
            name: "trixie",
            suites: &["", "-backports"],
        },
        suite: "-backports",
    },
];

/// The emulator.
const EMULATOR: &str = "qemu-system-x86_64";

/// The packages of each.
const PACKAGES: [&str; 3] = ["qemu-system-x86", "qemu-utils", "qemu-block-extra"];

/// A driver in a separate Debian package, by its path in the directory of a version.
const MODULE: &str = "apt/root/usr/lib/x86_64-linux-gnu/qemu/block-curl.so";

/// Records the introspection of each unpacked QEMU.
pub(crate) fn record(folder: Option<PathBuf>) -> anyhow::Result<()> {
    let folder = folder.unwrap_or_else(|| crate::repository().join("target/qemus"));
    for source in &SOURCES {
        let emulator = folder.join(source.version).join(EMULATOR);
        let emulator = emulator
            .to_str()
            .context("the folder's name is not UTF-8")?;
        let arguments = ["facts", "qemu", "--qemu", emulator, "--format", "recording"];
        let recording = crate::codegen::vmdisk(&arguments, "")?;
        let file = format!("fixtures/capabilities/{}.json", source.version);
        fs::write(crate::repository().join(&file), recording)?;
        println!("{file}");
    }
    Ok(())
}

/// Records the default interfaces of machines.
pub(crate) fn record_interfaces() -> anyhow::Result<()> {
    let file = "crates/vmdisk-qemu/src/interfaces.txt";
    fs::write(
        crate::repository().join(file),
        vmdisk_tests::interfaces::table(),
    )?;
    println!("{file}");
    Ok(())
}

/// Downloads and unpacks missing versions.
pub(crate) fn run(folder: Option<PathBuf>) -> anyhow::Result<()> {
    ensure!(
        std::env::consts::ARCH == "x86_64",
        "QEMU is only available for x86_64 here, not {}",
        std::env::consts::ARCH
    );
    let folder = match folder {
        Some(folder) => std::path::absolute(folder)?,
        None => crate::repository().join("target/qemus"),
    };
    for source in &SOURCES {
        let programs = folder.join(source.version);
        let emulator = programs.join(EMULATOR);
        let is_whole = programs.join(MODULE).is_file();
        if is_whole && version(&emulator).is_ok_and(|found| is_of(&found, source.version)) {
            println!("{} exists", emulator.display());
            continue;
        }
        let Source {
            version: wanted,
            release,
            suite,
        } = source;
        fetch(&programs, *release, suite, &PACKAGES).map_err(|error| {
            anyhow!(
                "could not get QEMU {wanted} of Debian {}: {error:#}",
                release.name
            )
        })?;
        let found = version(&emulator)?;
        ensure!(
            is_of(&found, source.version),
            "{} is QEMU {found}, not {}",
            emulator.display(),
            source.version
        );
        println!("{} is QEMU {found}", emulator.display());
    }
    Ok(())
}

/// Unpacks packages of QEMU with all they need, and writes a script for each of its programs.
pub(crate) fn fetch(
    programs: &Path,
    release: Release,
    suite: &str,
    wanted: &[&str],
) -> anyhow::Result<()> {
    fs::create_dir_all(programs)?;
    let packages = Packages::ready(programs, release)?;
    let root = packages.unpacked("root", suite, wanted, |_| true)?;
    let loader = ["lib", "usr/lib"]
        .map(|place| format!("{place}/x86_64-linux-gnu/ld-linux-x86-64.so.2"))
        .into_iter()
        .find(|place| root.join(place).is_file())
        .with_context(|| format!("no dynamic loader in {}", root.display()))?;
    let below = root
        .strip_prefix(programs)?
        .to_str()
        .context("the folder of packages has no UTF-8 name")?;
    for entry in fs::read_dir(root.join("usr/bin"))? {
        let name = entry?.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with("qemu-")) else {
            continue;
        };
        let script = programs.join(name);
        fs::write(&script, wrapper(below, &loader, name))?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Returns a script that starts a program with its own loader, libraries, modules and firmware.
///
/// Paths are relative to the script, so the whole directory can be moved.
fn wrapper(below: &str, loader: &str, name: &str) -> String {
    let firmware = if name.starts_with("qemu-system-") {
        r#" -L "$root/usr/share/qemu" -L "$root/usr/share/seabios" -L "$root/usr/lib/ipxe/qemu""#
    } else {
        ""
    };
    let libraries = "$root/lib/x86_64-linux-gnu:$root/usr/lib/x86_64-linux-gnu:\
         $root/usr/lib/x86_64-linux-gnu/pulseaudio:$root/usr/lib/x86_64-linux-gnu/ceph";
    format!(
        r#"#!/bin/sh
root="${{0%/*}}/{below}"
export QEMU_MODULE_DIR="$root/usr/lib/x86_64-linux-gnu/qemu"
exec "$root/{loader}" --library-path "{libraries}" "$root/usr/bin/{name}"{firmware} "$@"
"#
    )
}

/// Returns the version that a QEMU reports.
fn version(emulator: &Path) -> anyhow::Result<String> {
    let said = run_program(Command::new(emulator).arg("--version"))?;
    let version = said
        .split("version ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next());
    Ok(version
        .with_context(|| format!("{} reports no version", emulator.display()))?
        .to_owned())
}

fn is_of(found: &str, version: &str) -> bool {
    found
        .strip_prefix(version)
        .is_some_and(|rest| rest.starts_with('.'))
}
