//! Installs the files of a release as their users do, and checks a guest with each.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail};

use crate::dist::output;

/// A disk with a finding.
const GUEST: &str = "<disk type='file' device='disk'>\n  <driver name='qemu' type='qcow2' cache='unsafe'/>\n  <source file='/srv/web1.qcow2'/>\n  <target dev='vda' bus='virtio'/>\n</disk>\n";

/// Installs each in a new place, and prints the time until the first finding.
pub(super) fn run(
    tarball: Option<&Path>,
    package: Option<&Path>,
    wheel: Option<&Path>,
) -> anyhow::Result<()> {
    let tries = [
        ("tar -xzf", tarball, unpack as Install),
        (
            "chroot into a root with the binary alone",
            tarball.filter(|_| is_root()),
            unpack_alone as Install,
        ),
        ("dpkg --root -i", package, install_package as Install),
        (
            "python3 -m venv, pip install --no-index",
            wheel,
            install_wheel as Install,
        ),
    ];
    for (name, file, install) in tries {
        let Some(file) = file else { continue };
        let root = tempfile::tempdir()?;
        fs::write(root.path().join("guest.xml"), GUEST)?;
        let begun = Instant::now();
        let program = install(file, root.path()).with_context(|| name.to_owned())?;
        let output = Command::new(root.path().join(&program))
            .args(["lint", "guest.xml", "--format", "concise"])
            .current_dir(root.path())
            .env_clear()
            .output()?;
        let took = begun.elapsed();
        let text = String::from_utf8_lossy(&output.stdout);
        if output.status.code() != Some(1) || !text.contains("cache-unsafe") {
            bail!("{name}: {output:?}");
        }
        println!(
            "{:6.2} s from nothing to the first finding: {name}",
            took.as_secs_f64()
        );
    }
    Ok(())
}

/// Installs a file below a root, and returns the path of the program there.
type Install = fn(&Path, &Path) -> anyhow::Result<String>;

/// True if this process may change its root; it owns its own directory of /proc.
fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// The root of a container: the binary, and no other file of a system.
fn unpack_alone(file: &Path, root: &Path) -> anyhow::Result<String> {
    let stage = tempfile::tempdir()?;
    let program = unpack(file, stage.path())?;
    fs::copy(stage.path().join(program), root.join("vmdisk"))?;
    let run = Command::new("chroot")
        .arg(root)
        .args(["/vmdisk", "lint", "/guest.xml"])
        .output()?;
    if run.status.code() != Some(1) {
        bail!("{run:?}");
    }
    Ok("vmdisk".to_owned())
}

fn unpack(file: &Path, root: &Path) -> anyhow::Result<String> {
    output(
        Command::new("tar")
            .arg("-xzf")
            .arg(file)
            .args(["--strip-components=1", "-C"])
            .arg(root),
    )?;
    for part in [
        "man/man1/vmdisk-lint.1",
        "completions/_vmdisk",
        "licences/THIRD-PARTY",
        "systemd/vmdisk-lint.timer",
    ] {
        fs::metadata(root.join(part)).context(part)?;
    }
    Ok("vmdisk".to_owned())
}

/// Installs into a root with an empty database. The libraries that the package depends on are those of this host.
fn install_package(file: &Path, root: &Path) -> anyhow::Result<String> {
    let database = root.join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        fs::create_dir_all(database.join(folder))?;
    }
    fs::write(database.join("status"), "")?;
    fs::write(database.join("available"), "")?;
    let dpkg = || {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", root.display()));
        dpkg
    };
    output(
        dpkg()
            .args([
                "--force-depends",
                "--force-not-root",
                "--log=/dev/null",
                "--install",
            ])
            .arg(file),
    )?;
    let status = output(dpkg().args(["--status", "vmdisk"]))?;
    if !status.contains("Status: install ok installed") {
        bail!("{status}");
    }
    for part in [
        "share/man/man1/vmdisk-lint.1.gz",
        "share/doc/vmdisk/copyright",
        "lib/systemd/system/vmdisk-lint.timer",
    ] {
        fs::metadata(root.join("usr").join(part)).context(part)?;
    }
    Ok("usr/bin/vmdisk".to_owned())
}

fn install_wheel(file: &Path, root: &Path) -> anyhow::Result<String> {
    let environment = root.join("venv");
    output(
        Command::new("python3")
            .args(["-m", "venv"])
            .arg(&environment),
    )?;
    let mut pip = Command::new(environment.join("bin/pip"));
    output(
        pip.args([
            "install",
            "--no-index",
            "--quiet",
            "--disable-pip-version-check",
        ])
        .arg(file),
    )?;
    if file.to_string_lossy().contains("-abi3-") {
        let text = "import vmdisk; assert 'findings' in vmdisk.lint('<domain/>')";
        output(Command::new(environment.join("bin/python")).args(["-c", text]))?;
    }
    Ok("venv/bin/vmdisk".to_owned())
}
