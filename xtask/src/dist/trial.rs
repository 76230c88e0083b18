//! Installs the files of a release as their users do, and checks a guest with each.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail};

use crate::dist::{container, output};

/// A disk with a finding.
const GUEST: &str = "<disk type='file' device='disk'>\n  <driver name='qemu' type='qcow2' cache='unsafe'/>\n  <source file='/srv/web1.qcow2'/>\n  <target dev='vda' bus='virtio'/>\n</disk>\n";

/// Installs each in a new place, and prints the time until the first finding.
pub(super) fn run(files: &[Option<PathBuf>; 6], roots: &[PathBuf]) -> anyhow::Result<()> {
    let [tarball, debian, rpm, container, wheel, command] = files;
    let container = container.as_ref().filter(|_| is_root());
    let tries = [
        ("tar -xzf", tarball.as_ref(), unpack as Install),
        ("dpkg --root -i", debian.as_ref(), install_debian as Install),
        ("rpm --root -i", rpm.as_ref(), install_rpm as Install),
        ("chroot into the image", container, unpack_image as Install),
        (
            "python3 -m venv, pip install --no-index",
            wheel.as_ref(),
            install_wheel as Install,
        ),
        (
            "the same with the wheel of the command alone",
            command.as_ref(),
            install_wheel as Install,
        ),
    ];
    for (name, file, install) in tries {
        let Some(file) = file else { continue };
        let root = tempfile::tempdir()?;
        first_finding(name, file, root.path(), install)?;
    }
    for root in roots {
        let Some(file) = debian else { continue };
        let copy = tempfile::tempdir()?;
        output(Command::new("cp").arg("-aT").arg(root).arg(copy.path()))?;
        let name = format!("dpkg -i in {}", root.display());
        first_finding(&name, file, copy.path(), install_in_root)?;
    }
    Ok(())
}

fn first_finding(name: &str, file: &Path, root: &Path, install: Install) -> anyhow::Result<()> {
    fs::write(root.join("guest.xml"), GUEST)?;
    let begun = Instant::now();
    let program = install(file, root).with_context(|| name.to_owned())?;
    let output = Command::new(root.join(&program))
        .args(["lint", "guest.xml", "--format", "concise"])
        .current_dir(root)
        .env_clear()
        .output()?;
    let took = begun.elapsed();
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.code() != Some(1) || !text.contains("cache-unsafe") {
        bail!("{name}: {output:?}");
    }
    println!(
        "{:6.2} s from nothing to the first finding, {:4.1} MB: {name}",
        took.as_secs_f64(),
        fs::metadata(file)?.len() as f64 / 1e6
    );
    Ok(())
}

/// Installs a file below a root, and returns the path of the program there.
type Install = fn(&Path, &Path) -> anyhow::Result<String>;

/// True if this process may change its root; it owns its own directory of /proc.
fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// The root of a container: the binary, and no other file of a system.
fn unpack_image(file: &Path, root: &Path) -> anyhow::Result<String> {
    container::unpack(file, root)?;
    lint_inside(root, container::PROGRAM)?;
    Ok(container::PROGRAM[1..].to_owned())
}

/// Installs the package with the package manager of the root itself.
fn install_in_root(file: &Path, root: &Path) -> anyhow::Result<String> {
    fs::copy(file, root.join("vmdisk.deb"))?;
    output(
        Command::new("chroot")
            .arg(root)
            .args(["dpkg", "-i", "/vmdisk.deb"]),
    )?;
    lint_inside(root, "/usr/bin/vmdisk")?;
    Ok("usr/bin/vmdisk".to_owned())
}

fn lint_inside(root: &Path, program: &str) -> anyhow::Result<()> {
    let mut run = Command::new("chroot");
    let run = run
        .arg(root)
        .args([program, "lint", "/guest.xml"])
        .output()?;
    match run.status.code() {
        Some(1) => Ok(()),
        _ => bail!("{run:?}"),
    }
}

/// Installs into a root with an empty database.
fn install_rpm(file: &Path, root: &Path) -> anyhow::Result<String> {
    let mut rpm = Command::new("rpm");
    rpm.arg("--root").arg(root);
    output(
        rpm.args(["--install", "--nodeps", "--ignorearch"])
            .arg(file),
    )?;
    let mut query = Command::new("rpm");
    let listed = output(
        query
            .arg("--root")
            .arg(root)
            .args(["--query", "--list", "vmdisk"]),
    )?;
    for part in [
        "/usr/share/man/man1/vmdisk-lint.1.gz",
        "/usr/share/zsh/site-functions/_vmdisk",
    ] {
        if !listed.contains(part) {
            bail!("{listed}");
        }
    }
    Ok("usr/bin/vmdisk".to_owned())
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
fn install_debian(file: &Path, root: &Path) -> anyhow::Result<String> {
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
