//! Files that are written beside their target, and what a killed run left of them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{
    AtFlags, FlockOperation, OFlags, RenameFlags, flock, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use tempfile::{Builder, NamedTempFile};

use super::interrupt;
use super::place::Place;
use super::step::reached;
use crate::contents::Contents;
use crate::input::bounded::Regular;

/// How the names begin and end, with six letters or digits between.
const PREFIX: &str = ".vmdisk-";
const SUFFIX: &str = ".tmp";

const WHOLE: &str = "only `publish` and `drop` take the file, at the end";

/// A file beside its target, locked while this run lives.
#[derive(Debug)]
pub(super) struct Beside(Option<NamedTempFile>);

impl Beside {
    /// Creates a file in the directory of a place, after the files of killed runs are removed from it.
    pub(super) fn new(place: &Place, mode: Option<u32>) -> io::Result<Self> {
        let directory = &place.directory();
        if is_first_in(place.directory_identity()?) {
            remove_abandoned(directory);
        }
        loop {
            let mut builder = Builder::new();
            builder.prefix(PREFIX).suffix(SUFFIX);
            if let Some(mode) = mode {
                builder.permissions(Permissions::from_mode(mode));
            }
            let file = interrupt::create(|| builder.tempfile_in(directory), |file| file.path())?;
            flock(file.as_file(), FlockOperation::LockExclusive)?;
            // Another run may have removed it as abandoned before it was locked.
            let is_named = file.as_file().metadata()?.nlink() > 0;
            let beside = Beside(Some(file));
            if is_named {
                reached("created");
                return Ok(beside);
            }
        }
    }

    pub(super) fn write(&mut self, write: impl Contents) -> io::Result<()> {
        let mut out = BufWriter::new(self.file());
        write(&mut out)?;
        out.flush()
    }

    pub(super) fn file(&self) -> &File {
        self.0.as_ref().expect(WHOLE).as_file()
    }

    /// Gives the file the name of its place, if `over` still has that name, or nothing, and `is_unchanged`. Returns false,
    /// and changes nothing, otherwise.
    pub(super) fn publish(
        &mut self,
        place: &Place,
        over: Option<&Regular>,
        is_unchanged: impl Fn() -> bool,
    ) -> io::Result<bool> {
        let path = self.0.as_ref().expect(WHOLE).path().to_owned();
        let name = path.file_name().expect("a temporary file has a name");
        let is_named = interrupt::end_if(&path, || match over {
            Some(file) => exchange(place, name, file, is_unchanged),
            None => take_free(place, name),
        })?;
        if is_named && let Some(file) = self.0.take() {
            // The name that `drop` would remove is gone.
            file.keep()?;
        }
        Ok(is_named)
    }
}

/// Exchanges the names of the new file and of the one that it replaces; then nobody can put another one in between, and it
/// is undone if somebody did so before.
fn exchange(
    place: &Place,
    new: &OsStr,
    old: &Regular,
    is_unchanged: impl Fn() -> bool,
) -> io::Result<bool> {
    let (directory, name) = (place.handle(), place.name());
    let is_old = |name: &OsStr| {
        let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        let old = &old.metadata;
        stat.is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (old.dev(), old.ino()))
    };
    if !is_old(name) || !is_unchanged() {
        return Ok(false);
    }
    reached("compared");
    let swap = || renameat_with(directory, new, directory, name, RenameFlags::EXCHANGE);
    match swap() {
        Ok(()) if is_old(new) && is_unchanged() => {
            unlinkat(directory, new, AtFlags::empty())?;
            Ok(true)
        }
        Ok(()) => swap().map(|()| false).map_err(io::Error::from),
        Err(Errno::NOENT) => Ok(false),
        // A file system that cannot exchange, such as NFS: what somebody puts there in this moment is lost.
        Err(error) if cannot(error) => {
            renameat(directory, new, directory, name)?;
            Ok(true)
        }
        Err(error) => Err(error.into()),
    }
}

/// Gives the new file a name that nothing has.
fn take_free(place: &Place, new: &OsStr) -> io::Result<bool> {
    let (directory, name) = (place.handle(), place.name());
    match renameat_with(directory, new, directory, name, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(error) if cannot(error) => {
            let is_free = matches!(
                statat(directory, name, AtFlags::SYMLINK_NOFOLLOW),
                Err(Errno::NOENT)
            );
            if is_free {
                renameat(directory, new, directory, name)?;
            }
            Ok(is_free)
        }
        Err(error) => Err(error.into()),
    }
}

fn cannot(error: Errno) -> bool {
    [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP].contains(&error)
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(file) = self.0.take() {
            let path = file.path().to_owned();
            interrupt::end(&path, || drop(file));
        }
    }
}

/// True once for each directory: to list it for each of its files would take quadratic time.
fn is_first_in(directory: (u64, u64)) -> bool {
    static SEEN: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    seen.insert(directory)
}

/// Removes files that a killed run left in a directory: unlocked files of this user. If that
/// fails, they remain, which is harmless.
fn remove_abandoned(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(is_our_name);
        if is_ours {
            let _ = remove_if_abandoned(&entry.path());
        }
    }
}

fn is_our_name(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(SUFFIX))
        .is_some_and(|middle| {
            middle.len() == 6 && middle.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}

fn remove_if_abandoned(path: &Path) -> io::Result<()> {
    let seen = fs::symlink_metadata(path)?;
    let user = rustix::process::geteuid().as_raw();
    if !seen.is_file() || seen.uid() != user || seen.nlink() != 1 {
        return Ok(());
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    // Refused while the run that writes it lives.
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    let (locked, named) = (file.metadata()?, fs::symlink_metadata(path)?);
    if (locked.dev(), locked.ino()) == (named.dev(), named.ino()) {
        fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_left_is_removed_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in [
            ".vmdisk-a1B2c3.tmp",
            ".vmdisk-config",
            ".vmdisk-toolong.tmp",
        ] {
            fs::write(at(name), "half").unwrap();
        }
        std::os::unix::fs::symlink("nowhere", at(".vmdisk-linked.tmp")).unwrap();
        // A run that still writes has its file locked.
        let place = Place::of(&at("target")).unwrap();
        let mut writing = Beside::new(&place, None).unwrap();
        remove_abandoned(directory.path());
        drop(Beside::new(&place, None).unwrap());
        assert!(!at(".vmdisk-a1B2c3.tmp").exists());
        assert!(at(".vmdisk-config").exists());
        assert!(at(".vmdisk-toolong.tmp").exists());
        assert!(at(".vmdisk-linked.tmp").is_symlink());
        assert!(writing.0.as_ref().unwrap().path().exists());
        assert!(writing.publish(&place, None, || true).unwrap());
        assert!(at("target").exists());
    }
}
