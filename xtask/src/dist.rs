//! Files of a release: a tarball, packages for Debian and Fedora, a container image and a Python wheel, all with the same
//! binary, the packages for npm and Go, the bill of materials, and the trial of those with the binary.
//!
//! The archives are written by `tar`, `dpkg-deb`, `rpmbuild` and Python's `zipfile`, whose users have them anyway. A wheel
//! with a binary is a zip with four files of text, which needs no build system.

mod container;
mod licences;
mod trial;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::{release, repository, wasm};

/// The version of everything.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// One line about the package.
const SUMMARY: &str =
    "Lints, generates, converts and measures the disk configuration of QEMU and libvirt guests";

/// The units of systemd.
const UNITS: &str = "integrations/systemd";

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
    /// Build for this processor: x86_64 or aarch64
    #[arg(long, value_name = "ARCH", default_value = std::env::consts::ARCH)]
    arch: String,
    /// Also install each on a clean root or in a new virtual environment, check a guest with it, and print the time
    #[arg(long = "try")]
    tries: bool,
    /// Also install the Debian package in a copy of this root, such as one of debootstrap
    #[arg(long = "root", value_name = "DIR", requires = "tries")]
    roots: Vec<PathBuf>,
}

/// Writes the files, and tries them if asked.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = repository().join(&arguments.folder);
    fs::create_dir_all(&folder)?;
    let binary = match &arguments.binary {
        Some(binary) => fs::canonicalize(binary)?,
        None => release::build_static(&arguments.arch)?,
    };
    let libraries = match &arguments.binary {
        None => release::build_libraries(&arguments.arch)?,
        Some(binary) => Some(binary.with_file_name("")),
    };
    let library = |name: &str| {
        let file = libraries.as_ref()?.join(name);
        file.exists().then_some(file)
    };
    let bytes = fs::read(&binary)?;
    let stage = tempfile::tempdir()?;
    let mut parts = Parts::write(&binary, stage.path())?;
    parts.arch.clone_from(&arguments.arch);
    parts.library = library("libvmdisk_capi.so");
    parts.module = library("libvmdisk_python.so");
    parts.c_library = c_library(&bytes)?;
    let libraries = parts.library.iter().chain(&parts.module);
    for file in libraries.chain([&binary]) {
        names_no_folder_of_this_host(&fs::read(file)?)?;
    }
    let files = write_all(&parts, &folder)?;
    let portable = match arguments.binary {
        None => wasm::packages(&folder, VERSION)?,
        Some(_) => Vec::new(),
    };
    let bill = folder.join(format!("vmdisk-{VERSION}.cdx.json"));
    fs::write(&bill, licences::materials(VERSION)?)?;
    for file in files.iter().flatten().chain(&portable).chain([&bill]) {
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
        trial::run(&files, &arguments.roots)?;
        // What differs between two runs cannot be built again by anybody else.
        let again = tempfile::tempdir()?;
        for (one, other) in files.iter().zip(write_all(&parts, again.path())?) {
            if let (Some(one), Some(other)) = (one, other)
                && fs::read(one)? != fs::read(&other)?
            {
                bail!("{} differs when it is packed again", one.display());
            }
        }
        println!("packed twice, the files are the same");
    }
    Ok(())
}

/// The tarball, both packages, the container image and the wheels: with the module, and with the command alone for C
/// libraries that the module does not run with. Those whose programs are missing are none.
fn write_all(parts: &Parts, folder: &Path) -> anyhow::Result<[Option<PathBuf>; 6]> {
    let module = parts.module.as_deref();
    Ok([
        Some(tarball(parts, folder)?),
        debian_package(parts, folder)?,
        rpm_package(parts, folder)?,
        Some(container::write(parts, folder)?),
        module
            .map(|_| wheel(parts, module, folder))
            .transpose()?
            .flatten(),
        wheel(parts, None, folder)?,
    ])
}

/// Fails if a binary has the path of a directory in which it was built: it would differ on every host.
fn names_no_folder_of_this_host(binary: &[u8]) -> anyhow::Result<()> {
    let homes = [Some(release::cargo_home()?), Some(repository().to_owned())];
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
    /// The library of C programs and the module of Python, which need the C library.
    library: Option<PathBuf>,
    module: Option<PathBuf>,
    /// Manual pages.
    man: PathBuf,
    /// Completion scripts by the names of [`COMPLETIONS`].
    completions: PathBuf,
    /// Licences of vmdisk and of the crates in the binary.
    licences: PathBuf,
    /// The processor of the binary.
    arch: String,
    /// The oldest glibc that runs the binary; none if it is static.
    c_library: Option<(u32, u32)>,
}

impl Parts {
    fn write(binary: &Path, stage: &Path) -> anyhow::Result<Self> {
        let parts = Parts {
            binary: binary.to_owned(),
            library: None,
            module: None,
            man: stage.join("man"),
            completions: stage.join("completions"),
            licences: stage.join("licences"),
            arch: String::new(),
            c_library: None,
        };
        // The binary may be for another processor.
        let runs = Command::new(binary)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success());
        let program = match runs {
            true => binary.to_owned(),
            false => release::build_release()?,
        };
        output(
            Command::new(&program)
                .args(["print", "man"])
                .arg(&parts.man),
        )?;
        fs::create_dir(&parts.completions)?;
        for (shell, name, _) in COMPLETIONS {
            let script = output(Command::new(&program).args(["print", "completions", shell]))?;
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

/// Writes `vmdisk-VERSION-ARCH-linux.tar.gz`, with one directory in it.
fn tarball(parts: &Parts, folder: &Path) -> anyhow::Result<PathBuf> {
    let name = format!("vmdisk-{VERSION}-{}-linux", parts.arch);
    let stage = tempfile::tempdir()?;
    let root = stage.path().join(&name);
    install(&parts.binary, &root.join("vmdisk"), 0o755)?;
    for (from, to) in [
        (&parts.man, "man/man1"),
        (&parts.completions, "completions"),
        (&parts.licences, "licences"),
        (&repository().join(UNITS), "systemd"),
    ] {
        install_all(from, &root.join(to))?;
    }
    if let Some(library) = &parts.library {
        let header = repository().join("crates/vmdisk-capi/include/vmdisk.h");
        install(library, &root.join("lib/libvmdisk.so.1"), 0o644)?;
        std::os::unix::fs::symlink("libvmdisk.so.1", root.join("lib/libvmdisk.so"))?;
        install(&header, &root.join("include/vmdisk.h"), 0o644)?;
        let settings = format!(
            "prefix=${{pcfiledir}}/../..\n\nName: vmdisk\nDescription: {SUMMARY}\nVersion: {VERSION}\nCflags: -I${{prefix}}/include\nLibs: -L${{prefix}}/lib -lvmdisk\n"
        );
        let folder = root.join("lib/pkgconfig");
        fs::create_dir(&folder)?;
        fs::write(folder.join("vmdisk.pc"), settings)?;
    }
    for name in ["README.md", "CHANGELOG.md"] {
        install(&repository().join(name), &root.join(name), 0o644)?;
    }
    let file = folder.join(format!("{name}.tar.gz"));
    archive(stage.path(), &file, true)?;
    Ok(file)
}

/// Packs what is in a directory: the same files are the same archive.
pub(crate) fn archive(stage: &Path, file: &Path, compresses: bool) -> anyhow::Result<()> {
    let names = fs::read_dir(stage)?.map(|entry| Ok(entry?.file_name()));
    let names: Vec<_> = names.collect::<anyhow::Result<_>>()?;
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--mtime=@0",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
    ]);
    let create = if compresses { "-czf" } else { "-cf" };
    output(tar.arg(create).arg(file).arg("-C").arg(stage).args(names))?;
    Ok(())
}

/// What packages install, below a directory.
fn system(parts: &Parts) -> anyhow::Result<tempfile::TempDir> {
    let stage = tempfile::tempdir()?;
    let root = stage.path();
    fs::set_permissions(root, fs::Permissions::from_mode(0o755))?;
    install(&parts.binary, &root.join("usr/bin/vmdisk"), 0o755)?;
    let man = root.join("usr/share/man/man1");
    install_all(&parts.man, &man)?;
    for entry in fs::read_dir(&man)? {
        output(Command::new("gzip").args(["-9n"]).arg(entry?.path()))?;
    }
    install_all(
        &repository().join(UNITS),
        &root.join("usr/lib/systemd/system"),
    )?;
    for (_, name, place) in COMPLETIONS {
        install(&parts.completions.join(name), &root.join(place), 0o644)?;
    }
    let doc = root.join("usr/share/doc/vmdisk");
    install_all(&parts.licences, &doc)?;
    fs::write(
        doc.join("copyright"),
        "Copyright: the vmdisk authors\nLicense: MIT or Apache-2.0; see LICENSE-MIT, LICENSE-APACHE and THIRD-PARTY here.\n",
    )?;
    Ok(stage)
}

/// Writes `vmdisk-VERSION-1.ARCH.rpm`.
fn rpm_package(parts: &Parts, folder: &Path) -> anyhow::Result<Option<PathBuf>> {
    if !has("rpmbuild")? {
        return Ok(None);
    }
    let stage = system(parts)?;
    let zsh = stage.path().join("usr/share/zsh");
    fs::rename(zsh.join("vendor-completions"), zsh.join("site-functions"))?;
    let requires = match parts.c_library {
        Some((major, minor)) => format!("Requires: glibc >= {major}.{minor}, libgcc\n"),
        None => String::new(),
    };
    let list = output(
        Command::new("find")
            .args([".", "-type", "f"])
            .current_dir(&stage),
    )?;
    let mut list: Vec<&str> = list.lines().map(|path| &path[1..]).collect();
    list.sort_unstable();
    let spec = format!(
        "Name: vmdisk\nVersion: {VERSION}\nRelease: 1\nSummary: {SUMMARY}\nLicense: MIT OR Apache-2.0\nURL: {}\nAutoReqProv: no\n{requires}\n%description\n{SUMMARY}.\n\n%install\ncp -a {}/. %{{buildroot}}\n\n%files\n%defattr(-,root,root)\n{}\n",
        env!("CARGO_PKG_REPOSITORY"),
        stage.path().display(),
        list.join("\n"),
    );
    let work = tempfile::tempdir()?;
    fs::write(work.path().join("vmdisk.spec"), spec)?;
    let mut build = Command::new("rpmbuild");
    build.args(["-bb", "--quiet", "--target", &parts.arch]);
    let top = format!("_topdir {}", work.path().display());
    for setting in [
        top.as_str(),
        "_buildhost vmdisk",
        "use_source_date_epoch_as_buildtime 1",
        "clamp_mtime_to_source_date_epoch 1",
        "__os_install_post %{nil}",
        "debug_package %{nil}",
        "_build_id_links none",
        "_binary_payload w6.xzdio",
    ] {
        build.args(["--define", setting]);
    }
    // rpmbuild treats 0 as unset.
    build.env("SOURCE_DATE_EPOCH", "1");
    output(build.arg(work.path().join("vmdisk.spec")))?;
    let name = format!("vmdisk-{VERSION}-1.{}.rpm", parts.arch);
    let file = folder.join(&name);
    fs::copy(work.path().join("RPMS").join(&parts.arch).join(name), &file)?;
    Ok(Some(file))
}

/// Writes `vmdisk_VERSION_amd64.deb`.
fn debian_package(parts: &Parts, folder: &Path) -> anyhow::Result<Option<PathBuf>> {
    if !has("dpkg-deb")? {
        return Ok(None);
    }
    let stage = system(parts)?;
    let root = stage.path();
    let architecture = match parts.arch.as_str() {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("Debian has no name for {other} here"),
    };
    let depends = match parts.c_library {
        Some((major, minor)) => format!("Depends: libc6 (>= {major}.{minor}), libgcc-s1\n"),
        None => String::new(),
    };
    let control = format!(
        "Package: vmdisk\nVersion: {VERSION}\nArchitecture: {architecture}\nMaintainer: the vmdisk authors <noreply@vmdisk.invalid>\nSection: admin\nPriority: optional\n{depends}Suggests: libvirt-clients, qemu-utils\nHomepage: {}\nDescription: {SUMMARY}\n",
        env!("CARGO_PKG_REPOSITORY"),
    );
    fs::create_dir(root.join("DEBIAN"))?;
    fs::write(root.join("DEBIAN/control"), control)?;
    let file = folder.join(format!("vmdisk_{VERSION}_{architecture}.deb"));
    let mut build = Command::new("dpkg-deb");
    output(
        build
            .env("SOURCE_DATE_EPOCH", "0")
            .args(["--root-owner-group", "-Zxz", "--build"])
            .arg(root)
            .arg(&file),
    )?;
    Ok(Some(file))
}

/// Writes `vmdisk-VERSION-cp39-abi3-TAGS.whl`, or `vmdisk-VERSION-py3-none-TAGS.whl` without the module.
fn wheel(parts: &Parts, module: Option<&Path>, folder: &Path) -> anyhow::Result<Option<PathBuf>> {
    if !has("python3")? {
        return Ok(None);
    }
    let arch = &parts.arch;
    let newest = match module {
        Some(module) => c_library(&fs::read(module)?)?,
        None => parts.c_library,
    };
    let platforms = match newest {
        Some((major, minor)) => format!("manylinux_{major}_{minor}_{arch}"),
        // A static binary runs with any C library: these are the oldest ones that have a tag.
        None => format!("manylinux_2_17_{arch}.manylinux2014_{arch}.musllinux_1_1_{arch}"),
    };
    let python = match module {
        Some(_) => "cp39-abi3",
        None => "py3-none",
    };
    let tag = format!("{python}-{platforms}");
    let file = folder.join(format!("vmdisk-{VERSION}-{tag}.whl"));
    let mut write = Command::new("python3");
    write.args(["-c", include_str!("dist/wheel.py")]);
    write.args([&file, &parts.binary, &parts.licences]);
    write.arg(repository().join("README.md"));
    write.args([VERSION, &tag, SUMMARY, env!("CARGO_PKG_REPOSITORY")]);
    if let Some(module) = module {
        write
            .arg(module)
            .arg(repository().join("crates/vmdisk-python/python/vmdisk"));
    }
    output(&mut write)?;
    Ok(Some(file))
}

/// The oldest glibc that has all symbols and features that a binary asks for; none if it asks for none.
fn c_library(binary: &[u8]) -> anyhow::Result<Option<(u32, u32)>> {
    const NAME: &[u8] = b"GLIBC_";
    /// The feature of relative relocations, which has a name instead of a version.
    const RELATIVE: &[u8] = b"ABI_DT_RELR";
    let mut newest = None;
    for (at, _) in binary
        .windows(NAME.len() + 1)
        .enumerate()
        .filter(|(_, it)| it[0] == 0 && it[1..] == *NAME)
    {
        let rest = &binary[at + 1 + NAME.len()..];
        let name = rest.split(|byte| *byte == 0).next().unwrap_or_default();
        let version = match name {
            RELATIVE => (2, 36),
            b"PRIVATE" => continue,
            name => {
                let name = std::str::from_utf8(name)?;
                let mut numbers = name.split('.').map(str::parse);
                let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
                    bail!("the binary needs GLIBC_{name}, whose release is not known");
                };
                (major, minor)
            }
        };
        newest = newest.max(Some(version));
    }
    Ok(newest)
}

fn install(from: &Path, to: &Path, mode: u32) -> anyhow::Result<()> {
    let folder = to.parent().context("every file is in a folder")?;
    fs::create_dir_all(folder)?;
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
    Ok(())
}

pub(crate) fn install_all(from: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.path().is_dir() {
            install_all(&entry.path(), &to.join(entry.file_name()))?;
            continue;
        }
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
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
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
        for folder in [release::cargo_home().unwrap(), repository().to_owned()] {
            let text = format!("at {}/src/lib.rs:1", folder.display());
            assert!(names_no_folder_of_this_host(text.as_bytes()).is_err());
        }
    }

    #[test]
    fn the_oldest_c_library_is_that_of_the_newest_symbol() {
        let of = |text: &str| c_library(text.as_bytes());
        assert_eq!(
            of("\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0").unwrap(),
            Some((2, 34))
        );
        assert_eq!(
            of("\0GLIBC_2.34\0GLIBC_ABI_DT_RELR\0").unwrap(),
            Some((2, 36))
        );
        assert_eq!(of("no GLIBC_2.99 at all").unwrap(), None);
        assert!(of("\0GLIBC_ABI_NEW\0").is_err());
        assert!(c_library(&fs::read("/bin/sh").unwrap()).is_ok());
    }

    #[test]
    fn binstall_downloads_the_tarball() {
        let manifest =
            fs::read_to_string(repository().join("crates/vmdisk-cli/Cargo.toml")).unwrap();
        assert!(
            manifest.contains("/v{ version }/vmdisk-{ version }-{ target-arch }-linux.tar.gz\"")
        );
        assert!(manifest.contains(
            "bin-dir = \"vmdisk-{ version }-{ target-arch }-linux/{ bin }{ binary-ext }\""
        ));
    }
}
