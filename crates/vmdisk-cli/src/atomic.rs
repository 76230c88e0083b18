//! Whole files or none: writes beside the target, then exchanges the names. All files that a command writes by their names
//! are written here, with the exceptions that `clippy.toml` names.

mod attributes;
mod beside;
pub(crate) mod interrupt;
mod place;
mod private;
#[cfg(test)]
mod races;
mod refusal;
mod replace_error;
mod step;

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use crate::contents::Contents;
use crate::input::bounded::{MAX_BYTES, Regular};
use crate::input::watch;
use beside::Beside;
use place::{Found, Place};
pub(crate) use private::{directory_of, empty_directory, open_private};
pub(crate) use replace_error::ReplaceError;
use step::reached;

/// How often an output is judged again that another program replaces meanwhile.
const TRIES: usize = 10;

/// Replaces the contents of a file if they still are `before`; mode, owner, access control list, extended
/// attributes and a symbolic link to it stay. An identical change by another program is not a failure.
pub(crate) fn replace(path: &Path, before: &[u8], after: &[u8]) -> Result<(), ReplaceError> {
    let (place, Found::File(file)) = look(path)? else {
        return Err(io::Error::other("not a regular file").into());
    };
    check(&place, &file)?;
    let now = file.contents(MAX_BYTES)?;
    if now == after {
        return Ok(());
    }
    if now != before {
        return Err(ReplaceError::Changed);
    }
    let mut beside = Beside::new(&place, None)?;
    beside.write(|out| out.write_all(after))?;
    be_like(&beside, &file)?;
    let is_unchanged = || file.contents(MAX_BYTES).is_ok_and(|now| now == before);
    match beside.publish(&place, Some(&file), is_unchanged)? {
        true => Ok(()),
        false => Err(ReplaceError::Changed),
    }
}

/// Creates a file or replaces it as a whole. A pipe or a terminal (`/dev/stdout`) is written to directly.
///
/// # Errors
/// Also if the file is one that this run reads, a disk image or a device: every output of the command is written here.
pub(crate) fn write(path: &Path, contents: &[u8]) -> Result<(), ReplaceError> {
    write_with(path, |file| file.write_all(contents))
}

/// As [`write`], with contents that are made while they are written.
pub(crate) fn write_with(path: &Path, write: impl Contents) -> Result<(), ReplaceError> {
    put(path, write, judge, None, TRIES)
}

/// As [`write`], for a program: all users may run it.
pub(crate) fn write_program(path: &Path, contents: &[u8]) -> Result<(), ReplaceError> {
    put(
        path,
        |file| file.write_all(contents),
        judge,
        Some(0o755),
        TRIES,
    )
}

/// As [`write_with`], for a file of this program that the run reads to change it: a baseline, or its cache.
pub(crate) fn rewrite(path: &Path, write: impl Contents) -> Result<(), ReplaceError> {
    put(path, write, check_found, None, 1)
}

/// Creates a file.
///
/// # Errors
/// Also if there is anything with this name.
pub(crate) fn create(path: &Path, contents: &[u8]) -> Result<(), ReplaceError> {
    let exists = || Err(io::Error::from(io::ErrorKind::AlreadyExists).into());
    let (place, Found::Nothing) = look(path)? else {
        return exists();
    };
    let mut beside = Beside::new(&place, Some(0o666))?;
    beside.write(|out| out.write_all(contents))?;
    match beside.publish(&place, None, || true)? {
        true => Ok(()),
        false => exists(),
    }
}

/// Fails if [`write`] would refuse to write to a path.
pub(crate) fn refuse(path: &Path) -> Result<(), ReplaceError> {
    let (place, found) = look(path)?;
    judge(&place, &found)
}

/// The place that a path leads to, and what is there.
fn look(path: &Path) -> Result<(Place, Found), ReplaceError> {
    watch::look(path, || {
        let place = Place::of(path)?;
        let found = place.look()?;
        Ok((place, found))
    })
}

/// Fails if an output must not replace what is there.
fn judge(place: &Place, found: &Found) -> Result<(), ReplaceError> {
    match refusal::of(found)? {
        Some(why) => Err(ReplaceError::Refused(why)),
        None => check_found(place, found),
    }
}

fn check_found(place: &Place, found: &Found) -> Result<(), ReplaceError> {
    match found {
        Found::File(file) => check(place, file),
        Found::Nothing | Found::Other(_) => Ok(()),
    }
}

/// Fails if a file must not be replaced, whatever its contents are.
fn check(place: &Place, file: &Regular) -> Result<(), ReplaceError> {
    if let Some(why) = refusal::of_permission(place, file) {
        return Err(ReplaceError::Refused(why));
    }
    match file.metadata.nlink() {
        0 | 1 => Ok(()),
        names => Err(ReplaceError::Linked(names)),
    }
}

/// Writes a file whole, with this mode if one is given.
fn put(
    path: &Path,
    write: impl Contents,
    judge: impl Fn(&Place, &Found) -> Result<(), ReplaceError>,
    mode: Option<u32>,
    tries: usize,
) -> Result<(), ReplaceError> {
    let (place, mut found) = look(path)?;
    judge(&place, &found)?;
    if let Found::Other(other) = found {
        let mut out = io::BufWriter::new(other.open_to_write()?);
        write(&mut out)?;
        return Ok(out.flush()?);
    }
    // The process's umask applies to a new file, as to every file that a program creates.
    let is_new = matches!(found, Found::Nothing);
    let mut beside = Beside::new(&place, is_new.then_some(0o666))?;
    beside.write(write)?;
    for _ in 0..tries {
        let over = match &found {
            Found::Nothing => None,
            Found::File(file) => Some(file),
            Found::Other(_) => return Err(ReplaceError::Changed),
        };
        if let Some(file) = over {
            be_like(&beside, file)?;
        }
        if let Some(mode) = mode {
            beside
                .file()
                .set_permissions(Permissions::from_mode(mode))?;
        }
        beside.file().sync_all()?;
        if beside.publish(&place, over, || true)? {
            return Ok(());
        }
        // Another program was faster; what is there now is judged as what was there.
        found = place.look()?;
        judge(&place, &found)?;
    }
    Err(ReplaceError::Changed)
}

/// Gives a new file all that another one has but its contents.
fn be_like(new: &Beside, old: &Regular) -> Result<(), ReplaceError> {
    let copied = attributes::copy(&old.file, &old.metadata, new.file());
    copied.map_err(ReplaceError::Attributes)?;
    reached("written");
    Ok(new.file().sync_all()?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_changed_meanwhile_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.xml");
        fs::write(&path, "theirs").unwrap();
        let refused = replace(&path, b"before", b"after");
        assert!(matches!(refused, Err(ReplaceError::Changed)), "{refused:?}");
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        assert_eq!(
            fs::read_dir(directory.path()).unwrap().count(),
            1,
            "nothing is left behind"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_the_mode_stays() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("real.xml");
        let link = directory.path().join("link.xml");
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("real.xml", &link).unwrap();
        replace(&link, b"before", b"after").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"after");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
            0o640
        );
    }

    #[test]
    fn a_new_file_is_written_and_an_old_one_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.json");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert!(write(&directory.path().join("no/such/place"), b"x").is_err());
    }
}
