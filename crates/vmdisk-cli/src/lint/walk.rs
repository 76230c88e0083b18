//! The files below a directory that may hold a guest, by the ends of their names.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ignore::{DirEntry, Error, WalkBuilder};

/// The files found below a directory.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Files by the ends of their names, sorted; whether they hold a guest is for the reader to say.
    pub(crate) files: Vec<PathBuf>,
    /// Unreadable paths, each with the reason.
    pub(crate) trouble: Vec<(PathBuf, String)>,
}

/// Ends of the names of files that may hold a guest.
const EXTENSIONS: [&str; 6] = ["xml", "args", "cmdline", "cfg", "yaml", "yml"];

/// All files below `directory` with such names that `.gitignore` does not exclude; hidden ones
/// are left out, and so are links to anything but a regular file below `directory`.
pub(crate) fn guest_files(directory: &Path) -> Found {
    let mut found = Found::default();
    let mut links = Vec::new();
    for entry in WalkBuilder::new(directory).build() {
        match entry {
            Ok(entry) if is_wanted(&entry) => {
                if entry.path_is_symlink() {
                    links.push(entry.into_path());
                } else {
                    found.files.push(entry.into_path());
                }
            }
            Ok(_) => {}
            Err(error) => found.trouble.push(explain(directory, &error)),
        }
    }
    if !links.is_empty() {
        // libvirt's autostart folder links to the files next to it, which are checked once.
        let mut seen: HashSet<PathBuf> = found.files.iter().flat_map(fs::canonicalize).collect();
        let root = fs::canonicalize(directory);
        links.sort();
        links.retain(|link| match (fs::canonicalize(link), &root) {
            // Whoever may put a link into a directory does not thereby choose what is read, or fixed, elsewhere.
            (Ok(target), Ok(root)) => {
                target.starts_with(root) && target.is_file() && seen.insert(target)
            }
            // The reader reports a link that leads nowhere.
            (Err(_), _) | (_, Err(_)) => true,
        });
        found.files.append(&mut links);
    }
    found.files.sort();
    found.trouble.sort();
    found
}

/// A file by its name. A link counts unless it leads to a directory: one that leads nowhere is for the
/// reader to complain about.
fn is_wanted(entry: &DirEntry) -> bool {
    let has_name = entry.path().extension().is_some_and(|extension| {
        EXTENSIONS
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known))
    });
    has_name
        && entry
            .file_type()
            .is_some_and(|kind| kind.is_file() || (kind.is_symlink() && !entry.path().is_dir()))
}

fn explain(directory: &Path, error: &Error) -> (PathBuf, String) {
    let why = match error.io_error() {
        Some(error) => crate::stop::plain(cause(error)),
        None => error.to_string(),
    };
    (path_of(error).unwrap_or(directory).to_owned(), why)
}

/// The error of the operating system in an error of the walk, whose text names the path once more.
fn cause(error: &io::Error) -> &io::Error {
    let inner = error.get_ref().and_then(std::error::Error::source);
    inner
        .and_then(|inner| inner.downcast_ref())
        .unwrap_or(error)
}

/// The innermost path that an error of the walk names.
fn path_of(error: &Error) -> Option<&Path> {
    match error {
        Error::WithPath { path, err } => Some(path_of(err).unwrap_or(path)),
        Error::WithLineNumber { err, .. } | Error::WithDepth { err, .. } => path_of(err),
        Error::Partial(errors) => errors.iter().find_map(path_of),
        Error::Loop { child, .. } => Some(child),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_guest_files_that_git_would_see_are_found_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(root.join("sub/named.xml")).unwrap();
        fs::create_dir_all(root.join("build")).unwrap();
        fs::write(root.join(".gitignore"), "build/\n").unwrap();
        for name in [
            "z.xml",
            "a.XML",
            "sub/m.xml",
            "build/x.xml",
            "notes.txt",
            ".hidden.xml",
        ] {
            fs::write(root.join(name), "<domain/>").unwrap();
        }
        let found = guest_files(root);
        let names: Vec<&Path> = found
            .files
            .iter()
            .map(|path| path.strip_prefix(root).unwrap())
            .collect();
        assert_eq!(
            names,
            [
                Path::new("a.XML"),
                Path::new("sub/m.xml"),
                Path::new("z.xml")
            ]
        );
        assert!(found.trouble.is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_counts_if_it_leads_to_a_regular_file_below_that_is_not_found_anyway() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("qemu/autostart")).unwrap();
        fs::write(root.join("qemu/web1.xml"), "<domain/>").unwrap();
        fs::write(root.join("outside.xml"), "<domain/>").unwrap();
        symlink("../web1.xml", root.join("qemu/autostart/web1.xml")).unwrap();
        symlink("../outside.xml", root.join("qemu/outside.xml")).unwrap();
        symlink("nowhere", root.join("qemu/dangling.xml")).unwrap();
        symlink("/dev/stdin", root.join("qemu/terminal.xml")).unwrap();
        symlink("/dev/null", root.join("qemu/device.xml")).unwrap();
        fs::write(root.join("qemu/.hidden"), "<domain/>").unwrap();
        symlink(".hidden", root.join("qemu/inside.xml")).unwrap();
        symlink(".hidden", root.join("qemu/twice.xml")).unwrap();
        let fifo = std::process::Command::new("mkfifo")
            .arg(root.join("qemu/.pipe"))
            .status();
        if fifo.is_ok_and(|status| status.success()) {
            symlink(".pipe", root.join("qemu/pipe.xml")).unwrap();
        }
        let found = guest_files(&root.join("qemu"));
        let names: Vec<&Path> = found
            .files
            .iter()
            .map(|path| path.strip_prefix(root.join("qemu")).unwrap())
            .collect();
        let expected = ["dangling.xml", "inside.xml", "web1.xml"].map(Path::new);
        assert_eq!(names, expected);
    }
}
