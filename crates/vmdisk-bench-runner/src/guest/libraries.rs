//! A program of the host with its libraries, for a guest without any.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::archive::Archive;
use crate::programs;
use crate::{Cancel, Error};

/// Adds a program to an archive under a given path, with its libraries under their own paths.
pub(crate) fn add_program(
    archive: &mut Archive,
    program: &Path,
    inside: &str,
) -> Result<(), Error> {
    let bytes = fs::read(program).map_err(|error| Error::io("read", program, error))?;
    let interpreter = interpreter(&bytes);
    archive.file(inside, bytes, true);
    let Some(interpreter) = interpreter else {
        // A static program needs no libraries.
        return Ok(());
    };
    // The loader lists the libraries without running the program.
    let loader = PathBuf::from(&interpreter);
    let argv = [loader.as_os_str(), "--list".as_ref(), program.as_os_str()];
    let listed = programs::output(&argv, Duration::from_secs(30), &Cancel::new())?;
    let mut paths = BTreeSet::from([interpreter]);
    for line in listed.stdout.lines() {
        if line.contains("not found") {
            return Err(Error::program(
                program.display().to_string(),
                format!("a library is missing: {}", line.trim()),
            ));
        }
        // `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)`, or only a path.
        let path = line
            .split_once("=>")
            .map_or(line, |(_, path)| path)
            .split(" (0x")
            .next()
            .unwrap_or_default()
            .trim();
        if path.starts_with('/') {
            paths.insert(path.to_owned());
        }
    }
    for path in paths {
        if !archive.has(&path) {
            let bytes = fs::read(&path).map_err(|error| Error::io("read", &path, error))?;
            archive.file(&path, bytes, true);
        }
    }
    Ok(())
}

/// Finds a program on the search path.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // mkfs is in a directory that is not on the default search path of users.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// Returns the loader of a 64-bit ELF program; `None` if it needs none.
fn interpreter(bytes: &[u8]) -> Option<String> {
    const PT_INTERP: u64 = 3;
    let number = |at: usize, length: usize| -> Option<u64> {
        let field = bytes.get(at..at.checked_add(length)?)?;
        Some(
            field
                .iter()
                .rev()
                .fold(0, |number, byte| number << 8 | u64::from(*byte)),
        )
    };
    // Magic, 64 bits, little endian.
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table = usize::try_from(number(32, 8)?).ok()?;
    let size = usize::try_from(number(54, 2)?).ok()?;
    for index in 0..usize::try_from(number(56, 2)?).ok()? {
        let header = table.checked_add(index.checked_mul(size)?)?;
        if number(header, 4)? == PT_INTERP {
            let offset = usize::try_from(number(header.checked_add(8)?, 8)?).ok()?;
            let length = usize::try_from(number(header.checked_add(32)?, 8)?).ok()?;
            let text = bytes.get(offset..offset.checked_add(length)?)?;
            return Some(
                String::from_utf8_lossy(text)
                    .trim_end_matches('\0')
                    .to_owned(),
            );
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_added_with_its_libraries() {
        let program = std::env::current_exe().unwrap();
        let mut archive = Archive::default();
        add_program(&mut archive, &program, "init").unwrap();
        assert!(archive.has("/init"));
        if let Some(interpreter) = interpreter(&fs::read(&program).unwrap()) {
            assert!(archive.has(&interpreter), "{interpreter}");
        }
    }

    #[test]
    fn files_that_are_not_elf_need_no_loader() {
        assert_eq!(interpreter(b""), None);
        assert_eq!(interpreter(b"#!/bin/sh\n"), None);
        assert_eq!(interpreter(b"\x7fELF\x02\x01"), None);
        let mut broken = vec![0xff_u8; 64];
        broken[..6].copy_from_slice(b"\x7fELF\x02\x01");
        assert_eq!(interpreter(&broken), None);
    }
}
