//! Files of a release: a tarball, a Debian package and a Python wheel, all with the same binary, and their trial.
//!
//! The archives are written by `tar`, `dpkg-deb` and Python's `zipfile`, whose users have them anyway. A wheel with a
//! binary is a zip with four files of text, which needs no build system.

mod licences;
mod trial;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::{race, repository};

/// The version of everything.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// One line about the package.
const SUMMARY: &str =
    "Lints, generates, converts and measures the disk configuration of QEMU and libvirt guests";

/// Shells, and where a Debian package has their completions.
const COMPLETIONS: [(&str, &str, &str); 3] = [
    (
        "bash",
        "vmdisk.bash",
        "usr/share/bash-completion/completions/vmdisk",
    ),
    ("zsh", "_vmdisk", "usr/share/zsh/vendor-completions/_vmdisk"),
    (
        "fish",
        "vmdisk.fish",
        "usr/share/fish/vendor_completions.d/vmdisk.fish",
    ),
];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Directory for the files; created if missing
    #[arg(default_value = "target/dist")]
    folder: PathBuf,
    /// Pack this binary instead of a release build
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Also install each on a clean root or in a new virtual environment, check a guest with it, and print the time
    #[arg(long = "try")]
    tries: bool,
}

/// Writes the files, and tries them if asked.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = repository().join(&arguments.folder);
    fs::create_dir_all(&folder)?;
    let binary = match &arguments.binary {
        Some(binary) => fs::canonicalize(binary)?,
        None => race::build_release()?,
    };
    names_no_folder_of_this_host(&fs::read(&binary)?)?;
    let stage = tempfile::tempdir()?;
    let parts = Parts::write(&binary, stage.path())?;
    let files = [
        Some(tarball(&parts, &folder)?),
        package(&parts, &folder)?,
        wheel(&parts, &folder)?,
    ];
    for file in files.iter().flatten() {
        let name = file
            .file_name()
            .context("it has a name")?
            .to_string_lossy()
            .into_owned();
        let sum = output(Command::new("sha256sum").arg(&name).current_dir(&folder))?;
        fs::write(folder.join(format!("{name}.sha256")), sum)?;
        println!("{:>9} bytes  {}", fs::metadata(file)?.len(), file.display());
    }
    if arguments.tries {
        let [tarball, package, wheel] = &files;
        trial::run(tarball.as_deref(), package.as_deref(), wheel.as_deref())?;
    }
    Ok(())
}

/// Fails if a binary has the path of a directory in which it was built: it would differ on every host.
fn names_no_folder_of_this_host(binary: &[u8]) -> anyhow::Result<()> {
    let homes = [Some(race::cargo_home()?), Some(repository().to_owned())];
    let user = std::env::var_os("HOME").map(PathBuf::from);
    let rustup = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
    let folders = homes.into_iter().chain([user, rustup]).flatten();
    for folder in folders.filter(|folder| folder.parent().is_some()) {
        let path = format!("{}/", folder.display());
        if binary
            .windows(path.len())
            .any(|bytes| bytes == path.as_bytes())
        {
            bail!("the binary has the path {path}");
        }
    }
    Ok(())
}

/// The installed files, before they are packed.
struct Parts {
    binary: PathBuf,
    /// Manual pages.
    man: PathBuf,
    /// Completion scripts by the names of [`COMPLETIONS`].
    completions: PathBuf,
    /// Licences of vmdisk and of the crates in the binary.
    licences: PathBuf,
}

impl Parts {
    fn write(binary: &Path, stage: &Path) -> anyhow::Result<Self> {
        let parts = Parts {
            binary: binary.to_owned(),
            man: stage.join("man"),
            completions: stage.join("completions"),
            licences: stage.join("licences"),
        };
        output(Command::new(binary).arg("man").arg(&parts.man))?;
        fs::create_dir(&parts.completions)?;
        for (shell, name, _) in COMPLETIONS {
            let script = output(Command::new(binary).args(["completions", shell]))?;
            fs::write(parts.completions.join(name), script)?;
        }
        fs::create_dir(&parts.licences)?;
        for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
            fs::copy(repository().join(name), parts.licences.join(name))?;
        }
        fs::write(parts.licences.join("THIRD-PARTY"), licences::third_party()?)?;
        Ok(parts)
    }
}

/// Writes `vmdisk-VERSION-x86_64-linux.tar.gz`, with one directory in it.
fn tarball(parts: &Parts, folder: &Path) -> anyhow::Result<PathBuf> {
    let name = format!("vmdisk-{VERSION}-{}-linux", std::env::consts::ARCH);
    let stage = tempfile::tempdir()?;
    let root = stage.path().join(&name);
    install(&parts.binary, &root.join("vmdisk"), 0o755)?;
    for (from, to) in [
        (&parts.man, "man/man1"),
        (&parts.completions, "completions"),
        (&parts.licences, "licences"),
    ] {
        install_all(from, &root.join(to))?;
    }
    for name in ["README.md", "CHANGELOG.md"] {
        install(&repository().join(name), &root.join(name), 0o644)?;
    }
    let file = folder.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--mtime=@0",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
    ]);
    output(
        tar.arg("-czf")
            .arg(&file)
            .arg("-C")
            .arg(stage.path())
            .arg(&name),
    )?;
    Ok(file)
}

/// Writes `vmdisk_VERSION_amd64.deb`.
fn package(parts: &Parts, folder: &Path) -> anyhow::Result<Option<PathBuf>> {
    if !has("dpkg-deb")? {
        return Ok(None);
    }
    let stage = tempfile::tempdir()?;
    let root = stage.path();
    fs::set_permissions(root, fs::Permissions::from_mode(0o755))?;
    install(&parts.binary, &root.join("usr/bin/vmdisk"), 0o755)?;
    let man = root.join("usr/share/man/man1");
    install_all(&parts.man, &man)?;
    for entry in fs::read_dir(&man)? {
        output(Command::new("gzip").args(["-9n"]).arg(entry?.path()))?;
    }
    for (_, name, place) in COMPLETIONS {
        install(&parts.completions.join(name), &root.join(place), 0o644)?;
    }
    let doc = root.join("usr/share/doc/vmdisk");
    install_all(&parts.licences, &doc)?;
    fs::write(
        doc.join("copyright"),
        "Copyright: the vmdisk authors\nLicense: MIT or Apache-2.0; see LICENSE-MIT, LICENSE-APACHE and THIRD-PARTY here.\n",
    )?;
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let architecture = architecture.trim();
    let control = format!(
        "Package: vmdisk\nVersion: {VERSION}\nArchitecture: {architecture}\nMaintainer: the vmdisk authors <noreply@vmdisk.invalid>\nSection: admin\nPriority: optional\nDepends: libc6 (>= {}), libgcc-s1\nSuggests: libvirt-clients, qemu-utils\nHomepage: {}\nDescription: {SUMMARY}\n",
        c_library()?,
        env!("CARGO_PKG_REPOSITORY"),
    );
    fs::create_dir(root.join("DEBIAN"))?;
    fs::write(root.join("DEBIAN/control"), control)?;
    let file = folder.join(format!("vmdisk_{VERSION}_{architecture}.deb"));
    let mut build = Command::new("dpkg-deb");
    output(
        build
            .args(["--root-owner-group", "-Zxz", "--build"])
            .arg(root)
            .arg(&file),
    )?;
    Ok(Some(file))
}

/// Writes `vmdisk-VERSION-py3-none-manylinux_2_N_x86_64.whl`.
fn wheel(parts: &Parts, folder: &Path) -> anyhow::Result<Option<PathBuf>> {
    if !has("python3")? {
        return Ok(None);
    }
    let tag = format!(
        "py3-none-manylinux_{}_{}",
        c_library()?.replace('.', "_"),
        std::env::consts::ARCH
    );
    let file = folder.join(format!("vmdisk-{VERSION}-{tag}.whl"));
    let mut write = Command::new("python3");
    write.args(["-c", include_str!("dist/wheel.py")]);
    write.args([&file, &parts.binary, &parts.licences]);
    write.arg(repository().join("README.md"));
    output(write.args([VERSION, &tag, SUMMARY, env!("CARGO_PKG_REPOSITORY")]))?;
    Ok(Some(file))
}

/// The version of this host's C library, which the binary needs at least.
fn c_library() -> anyhow::Result<String> {
    let said = output(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    let version = said.trim().strip_prefix("glibc ");
    Ok(version.context("the C library is not glibc")?.to_owned())
}

fn install(from: &Path, to: &Path, mode: u32) -> anyhow::Result<()> {
    let folder = to.parent().context("every file is in a folder")?;
    fs::create_dir_all(folder)?;
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
    Ok(())
}

fn install_all(from: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        install(&entry.path(), &to.join(entry.file_name()), 0o644)?;
    }
    Ok(())
}

/// True if a program is installed; a missing one is a failure where everything is required.
fn has(program: &str) -> anyhow::Result<bool> {
    if vmdisk_tests::has_program(program) {
        return Ok(true);
    }
    if std::env::var_os("VMDISK_REAL").is_some_and(|value| value == "require") {
        bail!("{program} is not installed");
    }
    println!("skipped: needs {program}");
    Ok(false)
}

/// Runs a program and returns its output.
fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_with_a_path_of_this_host_is_no_release() {
        assert!(names_no_folder_of_this_host(b"at /cargo/registry/src/a/lib.rs:1").is_ok());
        for folder in [race::cargo_home().unwrap(), repository().to_owned()] {
            let text = format!("at {}/src/lib.rs:1", folder.display());
            assert!(names_no_folder_of_this_host(text.as_bytes()).is_err());
        }
    }
}
