//! Installed QEMU programs and their versions, found without starting them.
//!
//! The package databases of Debian (text) and pacman (directory names) are readable; RPM's needs
//! RPM itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use vmdisk_facts::host::Qemu;
use vmdisk_facts::{Fact, Introspection, Reason, Unknown, Version};
use vmdisk_qmp::QmpError;

use crate::obstacle::{missing, obstacle, shortened};
use crate::process::{ProgramQuery, answered};
use crate::root::Root;

/// The directories for QEMU's programs.
const DIRECTORIES: [&str; 3] = ["/usr/bin", "/usr/local/bin", "/usr/libexec"];

/// The package databases that are readable as text.
pub(crate) struct Packages {
    dpkg: Option<String>,
    /// Names with versions, in pacman's notation.
    pacman: Vec<String>,
}

/// One Debian package.
struct Package<'a> {
    version: &'a str,
    depends: &'a str,
}

impl Packages {
    pub(crate) fn read(root: &Root) -> Self {
        Self {
            dpkg: root.text("/var/lib/dpkg/status").ok(),
            pacman: root.names("/var/lib/pacman/local").unwrap_or_default(),
        }
    }

    fn debian(&self, name: &str) -> Option<Package<'_>> {
        let text = self.dpkg.as_deref()?;
        let head = format!("Package: {name}\n");
        let start = if text.starts_with(&head) {
            0
        } else {
            text.find(&format!("\n{head}"))? + 1
        };
        let entry = text[start..].split("\n\n").next()?;
        let field = |name: &str| {
            entry
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        let installed = field("Status").is_some_and(|status| status.ends_with(" installed"));
        installed.then(|| Package {
            version: field("Version").unwrap_or_default(),
            depends: field("Depends").unwrap_or_default(),
        })
    }

    fn arch(&self, name: &str) -> Option<&str> {
        self.pacman.iter().find_map(|entry| {
            let version = entry.strip_prefix(name)?.strip_prefix('-')?;
            version
                .starts_with(|c: char| c.is_ascii_digit())
                .then_some(version)
        })
    }

    pub(crate) fn version_of(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| {
            self.debian(name)
                .map(|package| package.version.to_owned())
                .or_else(|| self.arch(name).map(str::to_owned))
        })
    }
}

/// Parses the upstream version of a package version: without epoch and distribution suffix.
pub(crate) fn upstream(package: &str) -> Option<Version> {
    let without_epoch = package.split_once(':').map_or(package, |(_, rest)| rest);
    Version::leading(without_epoch)
}

/// The text that QEMU prints before its version.
const BEFORE_VERSION: &[u8] = b"QEMU emulator version ";

/// The largest program that is searched for its version.
const MAX_PROGRAM: u64 = 128 << 20;

/// The version in the text of a program, whose package may leave out the last number: 7.2.22 of Debian's `7.2+dfsg-7+deb12u18`.
fn written(root: &Root, path: &str) -> Option<Version> {
    let program = File::open(root.host(path)).ok()?;
    let mut bytes = Vec::new();
    program.take(MAX_PROGRAM).read_to_end(&mut bytes).ok()?;
    let mut texts = bytes.split(|byte| *byte == 0);
    let text = texts.find_map(|text| text.strip_prefix(BEFORE_VERSION))?;
    Version::leading(std::str::from_utf8(text.get(..16)?).ok()?)
}

/// True if a package version has three numbers.
fn is_whole(package: &str) -> bool {
    let without_epoch = package.split_once(':').map_or(package, |(_, rest)| rest);
    let numbers = without_epoch.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let numbers = numbers.into_iter().next().unwrap_or_default();
    numbers.trim_end_matches('.').split('.').count() > 2
}

/// Returns every installed QEMU system emulator.
pub(crate) fn qemu(root: &Root, packages: &Packages, run: Option<Duration>) -> Fact<Vec<Qemu>> {
    let mut found = Vec::new();
    // Programs of one package have one version.
    let mut versions = BTreeMap::new();
    for directory in DIRECTORIES {
        let names = match root.names(directory) {
            Ok(names) => names,
            Err(error) if missing(&error) => continue,
            Err(error) => return Fact::Unknown(obstacle(directory, &error)),
        };
        for name in names {
            // RHEL and derivatives hide their only QEMU under this name; others keep internal programs there.
            let hidden = directory == "/usr/libexec";
            let arch = name
                .strip_prefix("qemu-system-")
                .map(|arch| arch.split('-').next().unwrap_or(arch).to_owned())
                .filter(|_| !hidden);
            if arch.is_some() || (hidden && name == "qemu-kvm") {
                found.push(one_qemu(
                    root,
                    packages,
                    &format!("{directory}/{name}"),
                    arch,
                    run,
                    &mut versions,
                ));
            }
        }
    }
    Fact::Known(found)
}

fn one_qemu(
    root: &Root,
    packages: &Packages,
    path: &str,
    arch: Option<String>,
    run: Option<Duration>,
    versions: &mut BTreeMap<String, Option<Version>>,
) -> Qemu {
    let package_names = match arch.as_deref() {
        Some("x86_64" | "i386" | "microvm") => ["qemu-system-x86", "qemu-system-x86"],
        Some("aarch64" | "arm") => ["qemu-system-arm", "qemu-system-aarch64"],
        Some("ppc" | "ppc64") => ["qemu-system-ppc", "qemu-system-ppc"],
        Some("s390x") => ["qemu-system-s390x", "qemu-system-misc"],
        Some("riscv32" | "riscv64") => ["qemu-system-riscv", "qemu-system-misc"],
        Some(_) | None => ["qemu-system-misc", "qemu-system-common"],
    };
    let package = packages.version_of(&package_names);
    let depends = package_names
        .iter()
        .find_map(|name| packages.debian(name))
        .map(|package| package.depends);
    let recorded = format!("/vmdisk/version{}", path.replace('/', "-"));
    let deep = ProgramQuery {
        program: path,
        arguments: &["--version"],
        recorded: &recorded,
    };
    let asked = run
        .filter(|_| deep.can_answer(root))
        .map(|limit| deep.ask(root, limit));
    let version = match (asked, &package) {
        (Some(Ok(text)), _) => match text.split_whitespace().find_map(Version::leading) {
            Some(version) => Fact::Known(version),
            None => Fact::unknown(
                Reason::Parse,
                format!("{path} --version: `{}`", shortened(&text)),
            ),
        },
        (Some(Err(unknown)), _) => Fact::Unknown(unknown),
        (None, Some(package)) => match upstream(package) {
            Some(version) if is_whole(package) => Fact::Known(version),
            Some(version) => {
                let known = versions.entry(package.clone());
                let whole = *known.or_insert_with(|| written(root, path));
                let is_same = |whole: &Version| whole.release() == version.release();
                Fact::Known(whole.filter(is_same).unwrap_or(version))
            }
            None => Fact::unknown(Reason::Parse, format!("the package version `{package}`")),
        },
        (None, None) => Fact::unknown(
            Reason::ToolMissing,
            format!(
                "no readable package database contains {path}; use `--group programs` to start it"
            ),
        ),
    };
    let capabilities = run.map_or_else(BTreeMap::new, |limit| introspected(root, path, limit));
    Qemu {
        path: Fact::Known(path.to_owned()),
        arch: arch.map_or(Fact::NotCollected, Fact::Known),
        version,
        package: match package {
            Some(package) => Fact::Known(package),
            None => Fact::NotCollected,
        },
        capabilities,
        aio: depends.map_or(Fact::NotCollected, |depends| Fact::Known(ways(depends))),
    }
}

/// Returns the capabilities of a QEMU by introspection; empty if that fails, so that its version decides.
fn introspected(root: &Root, path: &str, limit: Duration) -> BTreeMap<String, bool> {
    let recorded = format!("/vmdisk/introspection{}", path.replace('/', "-"));
    let said = answered(root, path, &recorded, || {
        vmdisk_qmp::introspect(Path::new(path), limit)
            .map(|introspection| introspection.to_json())
            .map_err(|error| {
                let reason = match error {
                    QmpError::Start { .. } => Reason::ToolMissing,
                    QmpError::Timeout { .. } => Reason::Timeout,
                    _ => Reason::Parse,
                };
                Unknown::new(reason, shortened(&error.to_string()))
            })
    });
    said.ok()
        .and_then(|said| Introspection::from_json(&said).ok())
        .map(|introspection| introspection.capabilities)
        .unwrap_or_default()
}

/// Returns the AIO modes of a build, by the libraries it depends on.
fn ways(depends: &str) -> Vec<String> {
    let needs = |library: &str| {
        depends.split(',').map(str::trim).any(|package| {
            // The name is followed by the ABI version, and by `t64` since Debian 13.
            package
                .strip_prefix(library)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
    };
    let mut ways = vec!["threads".to_owned()];
    if needs("libaio") {
        ways.push("native".to_owned());
    }
    if needs("liburing") {
        ways.push("io_uring".to_owned());
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "\
Package: qemu-system-x86-64
Status: install ok installed
Version: 9

Package: qemu-system-x86
Status: install ok installed
Architecture: amd64
Version: 1:10.0.2+ds-2+deb13u1
Depends: libaio1t64 (>= 0.3.93), liburing2 (>= 2.3), zlib1g (>= 1:1.2.0)

Package: libvirt0
Status: deinstall ok config-files
Version: 9.0.0-4
";

    fn packages() -> Packages {
        Packages {
            dpkg: Some(STATUS.to_owned()),
            pacman: vec![
                "qemu-system-x86-10.1.0-2".to_owned(),
                "qemu-system-x86-firmware-1".to_owned(),
            ],
        }
    }

    #[test]
    fn an_installed_package_is_found_by_its_exact_name() {
        let packages = packages();
        assert_eq!(
            packages.debian("qemu-system-x86").unwrap().version,
            "1:10.0.2+ds-2+deb13u1"
        );
        assert!(packages.debian("qemu-system").is_none());
        assert!(
            packages.debian("libvirt0").is_none(),
            "it was removed, but its configuration remains"
        );
        assert_eq!(packages.arch("qemu-system-x86"), Some("10.1.0-2"));
    }

    #[test]
    fn the_upstream_version_is_part_of_the_package_version() {
        assert_eq!(upstream("1:10.0.2+ds-2+deb13u1"), Some(Version(10, 0, 2)));
        assert_eq!(upstream("1:7.2+dfsg-7+deb12u18+b3"), Some(Version(7, 2, 0)));
        assert_eq!(upstream("10.1.0-2"), Some(Version(10, 1, 0)));
        assert_eq!(upstream("unknown"), None);
    }

    #[test]
    fn a_version_without_its_last_number_is_read_in_the_program() {
        for (package, is_complete) in [
            ("1:7.2+dfsg-7+deb12u18+b3", false),
            ("1:10.0.2+ds-2+deb13u1", true),
            ("10.1.0-2", true),
            ("17:6.2-1.el9", false),
            ("2.11.1.3-1", true),
        ] {
            assert_eq!(is_whole(package), is_complete, "{package}");
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("usr/bin")).unwrap();
        let program = folder.path().join("usr/bin/qemu-system-x86_64");
        let root = Root::new(folder.path());
        let packages = |version: &str| Packages {
            dpkg: Some(format!(
                "Package: qemu-system-x86\nStatus: install ok installed\nVersion: {version}\n"
            )),
            pacman: Vec::new(),
        };
        for (text, package, expected) in [
            (
                "QEMU emulator version 7.2.22 (Debian 1:7.2)",
                "1:7.2+dfsg-7",
                Version(7, 2, 22),
            ),
            (
                "QEMU emulator version 8.2.2 (Debian 1:8.2)",
                "1:7.2+dfsg-7",
                Version(7, 2, 0),
            ),
            (
                "QEMU emulator version 7.2.22 (Debian 1:7.2)",
                "1:7.2.4+dfsg-7",
                Version(7, 2, 4),
            ),
            ("nothing", "1:7.2+dfsg-7", Version(7, 2, 0)),
        ] {
            std::fs::write(&program, format!("ELF\0{text}\0")).unwrap();
            let Fact::Known(found) = qemu(&root, &packages(package), None) else {
                panic!("{text}")
            };
            assert_eq!(found[0].version, Fact::Known(expected), "{text} {package}");
        }
    }

    #[test]
    fn libraries_determine_the_aio_modes() {
        assert_eq!(
            ways("libaio1t64 (>= 0.3.93), liburing2 (>= 2.3)"),
            ["threads", "native", "io_uring"]
        );
        assert_eq!(ways("libc6, libaiosomething"), ["threads"]);
    }
}
