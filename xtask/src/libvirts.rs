//! A newer libvirt in addition to the system's: `cargo xtask libvirts`.
//!
//! libvirt uses fixed paths for its drivers, schemas and programs, so it needs a private root. Nothing is
//! installed: the packages are unpacked, and a script enters the root in a temporary mount namespace.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::hostlab::packages::{Packages, Release, run as run_program};

/// The Debian release with this version.
const RELEASE: Release = Release {
    name: "trixie",
    suites: &[""],
};
const VERSION: &str = "11.3";

const PACKAGES: [&str; 6] = [
    "libvirt-daemon", // virt-aa-helper
    "libvirt-daemon-driver-qemu",
    "libvirt-clients",
    "qemu-system-x86",
    "qemu-utils",
    "bash",
];

/// Programs that a script of the same name starts in the root.
const PROGRAMS: [(&str, &str); 2] = [
    ("virsh", "/usr/bin/virsh"),
    ("virt-aa-helper", "/usr/lib/libvirt/virt-aa-helper"),
];

/// Downloads and unpacks libvirt, unless it is already there.
pub(crate) fn run(folder: Option<PathBuf>) -> anyhow::Result<()> {
    ensure!(
        std::env::consts::ARCH == "x86_64",
        "libvirt is only available for x86_64 here, not {}",
        std::env::consts::ARCH
    );
    let folder = match folder {
        Some(folder) => std::path::absolute(folder)?,
        None => crate::repository().join("target/libvirts"),
    };
    let programs = folder.join(VERSION);
    let virsh = programs.join("virsh");
    let has_scripts = PROGRAMS
        .iter()
        .all(|(name, _)| programs.join(name).exists());
    if !has_scripts || !version(&virsh).is_ok_and(|found| is_it(&found)) {
        fetch(&programs)
            .with_context(|| format!("libvirt {VERSION} of Debian {}", RELEASE.name))?;
    }
    let found = version(&virsh)?;
    ensure!(
        is_it(&found),
        "{} is libvirt {found}, not {VERSION}",
        virsh.display()
    );
    println!("{} is libvirt {found}", virsh.display());
    Ok(())
}

/// Unpacks the root, completes it so that programs start, and writes the scripts.
fn fetch(programs: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(programs)?;
    let packages = Packages::ready(programs, RELEASE)?;
    let root = packages.unpacked("root", "", &PACKAGES, |_| true)?;
    for name in ["dev", "proc", "tmp", "run", "etc"] {
        fs::create_dir_all(root.join(name))?;
    }
    // Packages create users during installation, which does not take place.
    let users = [
        (
            "etc/passwd",
            "root:x:0:0:root:/root:/bin/sh\nlibvirt-qemu:x:64055:64055::/var/lib/libvirt:/usr/sbin/nologin\n",
        ),
        (
            "etc/group",
            "root:x:0:\nlibvirt-qemu:x:64055:\nkvm:x:104:\n",
        ),
    ];
    for (file, text) in users {
        let mut file = fs::File::create(root.join(file))?;
        file.write_all(text.as_bytes())?;
    }
    // The old and new directories of programs and libraries are merged by a package's setup script.
    for name in ["bin", "sbin", "lib", "lib64"] {
        let old = root.join(name);
        if !old.exists() {
            fs::create_dir_all(root.join("usr").join(name))?;
            std::os::unix::fs::symlink(format!("usr/{name}"), old)?;
        }
    }
    let below = root
        .strip_prefix(programs)?
        .to_str()
        .context("the folder of packages has no UTF-8 name")?;
    for (name, program) in PROGRAMS {
        let script = programs.join(name);
        fs::write(&script, wrapper(below, program))?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Returns a script that runs a program in the root, with the folder `$VMDISK_ROOT` mounted at the same path.
fn wrapper(below: &str, program: &str) -> String {
    format!(
        r#"#!/bin/sh
# Mounts are made in a namespace of their own, which ends with the program.
root="${{0%/*}}/{below}"
shared="${{VMDISK_ROOT:-/tmp}}"
export root shared
exec unshare --mount sh -c '
  set -e
  mount --make-rprivate /
  mount --rbind /dev "$root/dev"
  mount -t proc proc "$root/proc"
  mount -t tmpfs tmpfs "$root/run"
  mkdir -p "$root$shared"
  mount --bind "$shared" "$root$shared"
  exec chroot "$root" {program} "$@"
' "${{0##*/}}" "$@"
"#
    )
}

/// Returns the version that a `virsh` reports.
fn version(virsh: &Path) -> anyhow::Result<String> {
    ensure!(virsh.is_file(), "{} does not exist", virsh.display());
    let said = run_program(Command::new(virsh).arg("--version"))?;
    Ok(said.trim().to_owned())
}

fn is_it(found: &str) -> bool {
    found
        .strip_prefix(VERSION)
        .is_some_and(|rest| rest.starts_with('.'))
}
