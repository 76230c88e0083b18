//! Outputs that would destroy what is there.

use std::fs::{self, Metadata};
use std::io::{self, IsTerminal as _, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Component, Path, PathBuf};

use vmdisk::image::{ImageFormat, probe};

use crate::input::{bounded, used};

/// The beginning of a file, which decides whether it is text.
const HEAD: u64 = 4096;
/// The kernel's limit of links in a path.
const MAX_LINKS: usize = 40;
/// The mode bits of a directory in which everybody may create files, and only their owners remove them.
const STICKY: u32 = 0o1002;
/// `/dev/null` and `/dev/full`, on Linux.
const HARMLESS_DEVICES: [(u32, u32); 2] = [(1, 3), (1, 7)];

/// Returns why an output must not be written to a path, if it must not.
pub(super) fn of(path: &Path) -> io::Result<Option<String>> {
    if let Some(link) = foreign_link(path)? {
        let link = link.display();
        return Ok(Some(format!(
            "{link} is a link that another user has put into a directory for all users"
        )));
    }
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let is_link = fs::symlink_metadata(path).is_ok();
            return Ok(is_link.then(|| "it is a link to a file that does not exist".to_owned()));
        }
        Err(error) => return Err(error),
    };
    let kind = metadata.file_type();
    Ok(if kind.is_block_device() {
        Some("it is a block device".to_owned())
    } else if kind.is_char_device() {
        (!is_harmless(path, &metadata)).then(|| "it is a device".to_owned())
    } else if !kind.is_file() {
        None
    } else if used::contains(&metadata) {
        Some("this run reads it; name another file for the output".to_owned())
    } else {
        of_contents(path)?
    })
}

fn is_harmless(path: &Path, device: &Metadata) -> bool {
    let (major, minor) = (
        rustix::fs::major(device.rdev()),
        rustix::fs::minor(device.rdev()),
    );
    HARMLESS_DEVICES.contains(&(major, minor))
        || bounded::device(path).is_ok_and(|device| device.is_terminal())
}

/// All outputs are text. A disk image is not, with few exceptions that have a header.
fn of_contents(path: &Path) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    let file = bounded::open_regular(path)?;
    file.take(HEAD).read_to_end(&mut head)?;
    let format = probe(&mut head.as_slice()).map_or(ImageFormat::Raw, |header| header.format());
    Ok(if format != ImageFormat::Raw {
        Some(format!("it is a disk image ({format})"))
    } else if head.contains(&0) {
        Some("it is not a text file and can be a disk image; remove it first".to_owned())
    } else {
        None
    })
}

/// Returns a link on the way to a file that the kernel does not follow with `fs.protected_symlinks`: it is in a sticky
/// directory that all users can write to, and belongs neither to the caller nor to the owner of the directory.
fn foreign_link(path: &Path) -> io::Result<Option<PathBuf>> {
    let user = rustix::process::geteuid().as_raw();
    let mut links = 0;
    let mut rest: Vec<PathBuf> = parts(path);
    let mut at = PathBuf::new();
    while let Some(part) = rest.pop() {
        let next = at.join(&part);
        let Ok(metadata) = fs::symlink_metadata(&next) else {
            return Ok(None);
        };
        if !metadata.is_symlink() {
            at = next;
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(io::Error::other("too many symbolic links"));
        }
        let directory = fs::metadata(if at.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &at
        })?;
        let is_trusted = [user, directory.uid()].contains(&metadata.uid());
        if directory.mode() & STICKY == STICKY && !is_trusted {
            return Ok(Some(next));
        }
        rest.extend(parts(&fs::read_link(&next)?));
    }
    Ok(None)
}

/// The parts of a path, the first one last.
fn parts(path: &Path) -> Vec<PathBuf> {
    let part = |part: Component<'_>| PathBuf::from(part.as_os_str());
    path.components().rev().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &Path) -> String {
        of(path).unwrap().unwrap_or_default()
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
        for text in ["", "{}\n", "grün\n"] {
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
        assert!(
            refused(&at("raw", &[b"text".as_slice(), &[0; 512]].concat()))
                .contains("not a text file")
        );
        std::os::unix::fs::symlink("nowhere", directory.path().join("dangling")).unwrap();
        assert!(refused(&directory.path().join("dangling")).contains("does not exist"));
        for device in ["/dev/null", "/dev/full"] {
            assert_eq!(refused(Path::new(device)), "");
        }
        assert_eq!(refused(Path::new("/dev/zero")), "it is a device");
    }

    #[test]
    fn a_link_of_another_user_in_a_directory_for_all_is_not_followed() {
        use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::write(root.join("victim"), "theirs").unwrap();
        for (name, mode) in [("sticky", 0o1777), ("private", 0o755)] {
            let folder = root.join(name);
            fs::create_dir(&folder).unwrap();
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            symlink("../victim", folder.join("own")).unwrap();
            symlink("../victim", folder.join("foreign")).unwrap();
            symlink("..", folder.join("up")).unwrap();
            for link in ["foreign", "up"] {
                lchown(folder.join(link), Some(1000), Some(1000)).unwrap();
            }
        }
        symlink("sticky/foreign", root.join("through")).unwrap();
        for path in [
            "sticky/foreign",
            "sticky/up/victim",
            "sticky/up/new",
            "through",
        ] {
            assert!(refused(&root.join(path)).contains("another user"), "{path}");
        }
        for path in [
            "sticky/own",
            "private/foreign",
            "private/up/victim",
            "sticky/new",
        ] {
            assert_eq!(refused(&root.join(path)), "", "{path}");
        }
    }
}
