//! Capabilities reported by a QEMU program, for `--qemu`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use vmdisk::Target;
use vmdisk::facts::{Introspection, Version};
use vmdisk_qmp::QmpError;

use crate::input::bounded;
use crate::stop::{Stop, plain};

/// Longest wait for an answer of a program; an idle machine needs a tenth of a second for all of them.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Longest recording; one of QEMU 11.1 has 5 KiB.
const MAX_RECORDING: u64 = 1 << 20;

/// The capabilities of a QEMU: a program is started without a machine and queried; a recording is read.
pub(crate) fn ask(path: &Path) -> Result<Introspection, Stop> {
    let program = find(path)?;
    if let Some(recording) = recording(&program)? {
        return Ok(recording);
    }
    ask_program(&program)
}

/// Capabilities reported by a QEMU program.
pub(crate) fn ask_program(program: &Path) -> Result<Introspection, Stop> {
    vmdisk_qmp::introspect(program, TIMEOUT).map_err(|error| {
        Stop::new(format!(
            "could not query {}: {}",
            program.display(),
            in_words(&error)
        ))
        .help("name a qemu-system program, or a recording from `vmdisk facts qemu --format recording`")
    })
}

/// An error of a QEMU in one line, without the numbers of the operating system.
pub(crate) fn in_words(error: &QmpError) -> String {
    let text = match error {
        QmpError::Start { program: _, error } => {
            format!("it could not be started: {}", plain(error))
        }
        error => error.to_string(),
    };
    text.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

/// The target of `--target`, with the capabilities of the QEMU of `--qemu`.
pub(crate) fn target(asked: Option<&Target>, qemu: Option<&Introspection>) -> Result<Target, Stop> {
    let mut asked = asked.cloned().unwrap_or_default();
    let Some(introspection) = qemu else {
        return possible(asked);
    };
    if let Some(version) = asked.qemu {
        if !is_of(introspection.qemu, version) {
            return Err(Stop::new(format!(
                "--target asks for QEMU {version}, and the QEMU of --qemu is {}",
                introspection.qemu
            ))
            .help("leave qemu= out of --target, or name a QEMU of that version"));
        }
        // `7.2` matches 7.2.22.
        asked.qemu = None;
    }
    possible(asked.or(introspection.target()))
}

/// Refuses a target that no host can be.
fn possible(target: Target) -> Result<Target, Stop> {
    match target.impossible() {
        None => Ok(target),
        Some(why) => Err(
            Stop::new(format!("the target {target} is impossible: {why}"))
                .help("name a later QEMU or an earlier libvirt in --target"),
        ),
    }
}

/// True if a version matches the given parts of the requested one.
fn is_of(found: Version, asked: Version) -> bool {
    found == asked || (asked.2 == 0 && (found.0, found.1) == (asked.0, asked.1))
}

/// The path of a program; a name without a slash is searched in PATH.
pub(crate) fn find(path: &Path) -> Result<PathBuf, Stop> {
    if path.components().count() > 1 || path.is_absolute() {
        return Ok(path.to_owned());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders)
        .map(|folder| folder.join(path))
        .find(|path| path.is_file());
    match found {
        Some(found) => Ok(found),
        None if path.exists() => Ok(Path::new(".").join(path)),
        None => Err(
            Stop::new(format!("the program {} does not exist", path.display()))
                .help("name it with its folder, as in /usr/bin/qemu-system-x86_64"),
        ),
    }
}

/// A recording, if that is what the file is.
fn recording(path: &Path) -> Result<Option<Introspection>, Stop> {
    use std::io::Read;
    let refuse = |error: std::io::Error| Stop::file("read", path, plain(&error));
    if path.is_dir() {
        return Err(Stop::new(format!("{} is a directory", path.display())));
    }
    let file = bounded::regular_file(path).map_err(refuse)?;
    let mut file = file.take(MAX_RECORDING);
    let mut start = [0];
    if file.read(&mut start).map_err(refuse)? == 0 || start != *b"{" {
        return Ok(None);
    }
    let mut text = b"{".to_vec();
    file.read_to_end(&mut text).map_err(refuse)?;
    let text = String::from_utf8_lossy(&text);
    Introspection::from_json(&text)
        .map(Some)
        .map_err(|error| Stop::file("read", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(version: &str) -> Introspection {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/capabilities");
        ask(&folder.join(format!("{version}.json"))).unwrap()
    }

    #[test]
    fn a_recording_stands_for_its_program() {
        let recorded = recorded("5.2");
        let target = target(
            Some(&"qemu=5.2,libvirt=7.0".parse().unwrap()),
            Some(&recorded),
        )
        .unwrap();
        assert_eq!(target.to_string(), "qemu=5.2,libvirt=7.0,arch=x86_64");
        let zstd = target.can(vmdisk::facts::Capability::Qcow2Zstd);
        assert_eq!(
            zstd,
            vmdisk::facts::Answer::No(vmdisk::facts::Basis::Probed)
        );
        assert!(target.machines.contains("pc-q35-5.2"));
    }

    #[test]
    fn a_target_of_another_version_is_refused() {
        let asked: Target = "qemu=10.0".parse().unwrap();
        let stop = target(Some(&asked), Some(&recorded("7.2"))).unwrap_err();
        assert_eq!(
            stop.0[0].title,
            "--target asks for QEMU 10.0, and the QEMU of --qemu is 7.2.22"
        );
    }

    #[test]
    fn a_libvirt_that_refuses_the_qemu_is_an_impossible_target() {
        let asked = |text: &str| super::target(Some(&text.parse().unwrap()), None).is_ok();
        assert!(!asked("libvirt=12.5,qemu=6.0"));
        assert!(!asked("libvirt=11.2,qemu=6.1"));
        assert!(asked("libvirt=11.2,qemu=6.2"));
        assert!(asked("libvirt=9.0,qemu=5.2"));
        let old = recorded("5.2");
        assert!(super::target(Some(&"libvirt=11.3".parse().unwrap()), Some(&old)).is_err());
    }
}
