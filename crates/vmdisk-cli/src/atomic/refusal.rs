//! Outputs that would destroy what is there.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

use rustix::fs::{Access, AtFlags};
use vmdisk::image::{ImageFormat, probe};

use super::place::{Found, Other, Place};
use crate::input::bounded::Regular;
use crate::input::used;

/// The beginning of a file, which holds the header of an image.
const HEAD: u64 = 4096;
/// The bytes that are read at once to look for a byte that is not text.
const PIECE: usize = 1024 * 1024;
/// A larger file than this is none of our reports.
const MAX_REPORT: u64 = 1024 * 1024 * 1024;
/// `/dev/null` and `/dev/full`, on Linux.
const HARMLESS_DEVICES: [(u32, u32); 2] = [(1, 3), (1, 7)];

/// Returns why an output must not replace what is there, if it must not.
pub(super) fn of(found: &Found) -> io::Result<Option<String>> {
    match found {
        Found::Nothing => Ok(None),
        Found::Other(other) => Ok(of_other(other)),
        Found::File(file) if used::contains(&file.metadata) => Ok(Some(
            "this run reads it; name another file for the output".to_owned(),
        )),
        Found::File(file) => of_contents(file),
    }
}

/// Returns why a file must not be replaced although its contents may be, if it must not: a rename asks only the directory.
pub(super) fn of_permission(place: &Place, file: &Regular) -> Option<String> {
    let mode = file.metadata.mode() & 0o7777;
    let may_write = || {
        let access = Access::WRITE_OK;
        let asked = rustix::fs::accessat(place.handle(), place.name(), access, AtFlags::EACCESS);
        asked != Err(rustix::io::Errno::ACCESS)
    };
    let is_protected = mode & 0o222 == 0 || !may_write();
    is_protected.then(|| {
        format!("it is write-protected (mode {mode:04o}); `chmod u+w` allows to replace it")
    })
}

fn of_other(other: &Other) -> Option<String> {
    let kind = other.metadata.file_type();
    if kind.is_block_device() {
        Some("it is a block device".to_owned())
    } else if kind.is_char_device() {
        (!is_harmless(other)).then(|| "it is a device".to_owned())
    } else {
        None
    }
}

fn is_harmless(device: &Other) -> bool {
    let number = device.metadata.rdev();
    let number = (rustix::fs::major(number), rustix::fs::minor(number));
    HARMLESS_DEVICES.contains(&number) || device.open_terminal().is_ok_and(|it| it.is_terminal())
}

/// All outputs are text. A disk image is not, with few exceptions that have a header.
fn of_contents(existing: &Regular) -> io::Result<Option<String>> {
    let mut file = existing.file.try_clone()?;
    file.rewind()?;
    let mut head = Vec::new();
    (&file).take(HEAD).read_to_end(&mut head)?;
    let format = probe(&mut head.as_slice()).map_or(ImageFormat::Raw, |header| header.format());
    let length = existing.metadata.len();
    Ok(if format != ImageFormat::Raw {
        Some(format!("it is a disk image ({format})"))
    } else if length > MAX_REPORT {
        Some("it is larger than any report and can be a disk image; remove it first".to_owned())
    } else if has_hole(&mut file, length) || has_nul(&mut file)? {
        Some("it is not a text file and can be a disk image; remove it first".to_owned())
    } else {
        None
    })
}

/// True if a part of the file was never written. A file system that cannot tell has none.
fn has_hole(file: &mut File, length: u64) -> bool {
    let hole = rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(0));
    hole.is_ok_and(|at| at < length)
}

/// True if there is a byte in the whole file that no text has.
fn has_nul(file: &mut File) -> io::Result<bool> {
    file.seek(SeekFrom::Start(0))?;
    let mut piece = vec![0; PIECE];
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 || piece[..length].contains(&0) {
            return Ok(length > 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::{ReplaceError, refuse};

    fn refused(path: &Path) -> String {
        match refuse(path) {
            Ok(()) => String::new(),
            Err(ReplaceError::Refused(why)) => why,
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }

    #[test]
    fn only_text_and_what_does_not_exist_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str, contents: &[u8]| {
            let path = directory.path().join(name);
            fs::write(&path, contents).unwrap();
            path
        };
        assert_eq!(refused(&directory.path().join("new")), "");
        let long = "text\n".repeat(600_000);
        for text in ["", "{}\n", "grün\n", &long] {
            assert_eq!(refused(&at("text", text.as_bytes())), "");
        }
        let images: [&[u8]; 3] = [
            b"QFI\xfb\0\0\0\x03",
            b"LUKS\xba\xbe\0\x01",
            b"# Disk\nversion=1\n",
        ];
        for image in images {
            assert!(refused(&at("image", image)).contains("disk image ("));
        }
        // A guest may have written text to the beginning of a raw image, in whatever amount.
        for text in [4, 70_000, 3_000_000] {
            let raw = [vec![b'a'; text], vec![0; 512], vec![b'a'; 512]].concat();
            assert!(
                refused(&at("raw", &raw)).contains("not a text file"),
                "{text}"
            );
        }
        let sparse = at("sparse", long.as_bytes());
        let file = fs::File::options().write(true).open(&sparse).unwrap();
        file.set_len(1 << 29).unwrap();
        assert!(refused(&sparse).contains("not a text file"));
        file.set_len(1 << 40).unwrap();
        assert!(refused(&sparse).contains("larger than any report"));
        std::os::unix::fs::symlink("nowhere", directory.path().join("dangling")).unwrap();
        assert!(refused(&directory.path().join("dangling")).contains("does not exist"));
        for device in ["/dev/null", "/dev/full"] {
            assert_eq!(refused(Path::new(device)), "");
        }
        assert_eq!(refused(Path::new("/dev/zero")), "it is a device");
    }

    #[test]
    fn a_link_of_another_user_where_others_can_write_is_not_followed() {
        use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::write(root.join("victim"), "theirs").unwrap();
        let folders = [
            ("sticky", 0o1777, 0),
            ("group", 0o775, 0),
            ("theirs", 0o755, 1000),
            ("private", 0o755, 0),
        ];
        for (name, mode, owner) in folders {
            let folder = root.join(name);
            fs::create_dir(&folder).unwrap();
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            chown(&folder, Some(owner), Some(owner)).unwrap();
            symlink("../victim", folder.join("own")).unwrap();
            symlink("../victim", folder.join("foreign")).unwrap();
            symlink("..", folder.join("up")).unwrap();
            for link in ["foreign", "up"] {
                lchown(folder.join(link), Some(1000), Some(1000)).unwrap();
            }
            symlink(
                format!("{name}/foreign"),
                root.join(format!("through-{name}")),
            )
            .unwrap();
        }
        for (name, _, _) in folders {
            let is_private = name == "private";
            for path in [
                format!("{name}/foreign"),
                format!("{name}/up/victim"),
                format!("{name}/up/new"),
                format!("through-{name}"),
            ] {
                let why = refused(&root.join(&path));
                assert_eq!(why.contains("another user"), !is_private, "{path}: {why}");
                if !is_private {
                    let fixed = super::super::replace(&root.join(&path), b"theirs", b"fixed");
                    let error = fixed.unwrap_err().to_string();
                    assert!(error.contains("another user"), "{path}: {error}");
                    assert_eq!(fs::read(root.join("victim")).unwrap(), b"theirs");
                }
            }
            for path in ["own", "new"] {
                assert_eq!(refused(&root.join(name).join(path)), "", "{name}/{path}");
            }
        }
    }

    #[test]
    fn a_write_protected_file_is_not_replaced() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.xml");
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        for result in [
            refuse(&path),
            super::super::replace(&path, b"before", b"after"),
            super::super::rewrite(&path, |file| file.write_all(b"after")),
        ] {
            let error = result.unwrap_err().to_string();
            assert!(error.contains("write-protected (mode 0444)"), "{error}");
        }
        assert_eq!(fs::read(&path).unwrap(), b"before");
    }

    #[test]
    fn a_pipe_that_nobody_reads_is_given_up_and_one_with_a_reader_gets_all() {
        let directory = tempfile::tempdir().unwrap();
        let [lonely, read] = ["a", "b"].map(|name| directory.path().join(name));
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        for path in [&lonely, &read] {
            rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
        }
        let error = super::super::write(&lonely, b"text").unwrap_err();
        assert_eq!(error.to_string(), "no program reads from this pipe");
        let text = vec![b'a'; 300_000];
        let reader = std::thread::spawn(move || fs::read(read).unwrap());
        super::super::write(&directory.path().join("b"), &text).unwrap();
        assert_eq!(reader.join().unwrap(), text);
    }
}
