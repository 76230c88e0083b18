//! The system that the collector reads: the running one, or a recorded one in a directory.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use vmdisk_facts::Fact;

use crate::obstacle::fact_of;
use crate::record::{ANSWERS, Answers, Recorder};

/// Maximum number of symbolic links that are followed, as in Linux.
const MAX_LINKS: usize = 40;

/// The root of the system; all paths are relative to it.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    base: PathBuf,
    live: bool,
    recorder: Option<Arc<Recorder>>,
    answers: Arc<Answers>,
}

impl Root {
    pub(crate) fn new(base: &Path) -> Self {
        Self {
            base: base.to_owned(),
            live: base == Path::new("/"),
            recorder: None,
            answers: Arc::default(),
        }
    }

    /// Returns the same system, with everything that is read copied; a recorded system is not recorded again.
    pub(crate) fn recorded_into(mut self, directory: &Path) -> Self {
        if self.live {
            self.recorder = Some(Arc::new(Recorder::new(directory)));
        }
        self
    }

    /// Returns the recorder of this system, if it is being recorded.
    pub(crate) fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_deref()
    }

    /// Loads the recorded answers of the kernel, if this is a recorded system that has them.
    pub(crate) fn read_answers(&mut self) -> io::Result<()> {
        if self.live || !self.exists(ANSWERS) {
            return Ok(());
        }
        let text = self.text(ANSWERS)?;
        self.answers = Arc::new(serde_json::from_str(&text)?);
        Ok(())
    }

    /// Returns the recorded answers of the kernel; empty for the running system.
    pub(crate) fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Returns the path that can be opened. Links are resolved within a recorded tree, so that none leads to the
    /// running system, and one by one if they are to be recorded.
    fn followed(&self, path: &Path) -> io::Result<PathBuf> {
        if self.live && self.recorder.is_none() {
            Ok(path.to_owned())
        } else {
            self.resolve(path)
        }
    }

    /// Returns true for the running system, where the kernel can be queried about paths.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// Converts a path of the system to a path of the host.
    pub(crate) fn host(&self, path: impl AsRef<Path>) -> PathBuf {
        let inside = path.as_ref();
        self.base.join(inside.strip_prefix("/").unwrap_or(inside))
    }

    /// Reads a small text file, as in procfs and sysfs, without the white space around its text; invalid UTF-8 is replaced.
    pub(crate) fn text(&self, path: impl AsRef<Path>) -> io::Result<String> {
        let path = self.followed(path.as_ref())?;
        if let Some(number) = path.to_str().and_then(|path| self.answers.errors.get(path)) {
            return Err(io::Error::from_raw_os_error(*number));
        }
        let read = fs::read(self.host(&path));
        if let Some(recorder) = &self.recorder {
            match &read {
                Ok(bytes) => recorder.file(&path, bytes),
                Err(error) => recorder.error(&path, error),
            }
        }
        let bytes = read?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// Parses a small file as a fact: absent if it does not exist, unknown if it cannot be read or parsed.
    pub(crate) fn fact<T>(&self, path: &str, parse: impl FnOnce(&str) -> Option<T>) -> Fact<T> {
        fact_of(path, self.text(path), parse)
    }

    /// The number in a file.
    pub(crate) fn number<T: FromStr>(&self, path: &str) -> Fact<T> {
        self.fact(path, |text| text.parse().ok())
    }

    /// The text of a file.
    pub(crate) fn word(&self, path: &str) -> Fact<String> {
        self.fact(path, |text| Some(text.to_owned()))
    }

    /// The word in brackets in a file with all choices, such as `always [madvise] never`.
    pub(crate) fn chosen(&self, path: &str) -> Fact<String> {
        self.fact(path, |text| {
            let (chosen, _) = text.split_once('[')?.1.split_once(']')?;
            Some(chosen.to_owned())
        })
    }

    /// Returns the sorted names in a directory; names that are not valid UTF-8 are skipped.
    pub(crate) fn names(&self, path: impl AsRef<Path>) -> io::Result<Vec<String>> {
        let path = self.followed(path.as_ref())?;
        let mut names: Vec<String> = fs::read_dir(self.host(&path))?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        if let Some(recorder) = &self.recorder {
            names
                .iter()
                .for_each(|name| recorder.entry(&path.join(name)));
        }
        Ok(names)
    }

    /// Returns true if a path exists and is accessible.
    pub(crate) fn exists(&self, path: impl AsRef<Path>) -> bool {
        if self.live && self.recorder.is_none() {
            path.as_ref().exists()
        } else {
            self.resolve(path.as_ref()).is_ok()
        }
    }

    /// Resolves all symbolic links, each within the tree.
    pub(crate) fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let mut todo: VecDeque<OsString> = parts(path);
        let mut done = PathBuf::from("/");
        let mut links = 0;
        while let Some(part) = todo.pop_front() {
            if part == ".." {
                done.pop();
                continue;
            }
            let next = done.join(&part);
            let metadata = fs::symlink_metadata(self.host(&next))?;
            if !metadata.file_type().is_symlink() {
                if !todo.is_empty() && !metadata.is_dir() {
                    return Err(io::Error::from(io::ErrorKind::NotADirectory));
                }
                done = next;
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(io::Error::from(rustix::io::Errno::LOOP));
            }
            let target = fs::read_link(self.host(&next))?;
            if let Some(recorder) = &self.recorder {
                recorder.entry(&next);
            }
            if target.as_os_str().as_bytes().starts_with(b"/") {
                done = PathBuf::from("/");
            }
            for part in parts(&target).into_iter().rev() {
                todo.push_front(part);
            }
        }
        if let Some(recorder) = &self.recorder {
            recorder.entry(&done);
        }
        Ok(done)
    }
}

fn parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn tree() -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::new(directory.path());
        fs::create_dir_all(root.host("/dev/mapper")).unwrap();
        fs::create_dir_all(root.host("/dev/vg")).unwrap();
        fs::write(root.host("/dev/dm-5"), "").unwrap();
        symlink("../dm-5", root.host("/dev/mapper/vg-lv")).unwrap();
        symlink("/dev/mapper/vg-lv", root.host("/dev/vg/lv")).unwrap();
        symlink("loop-b", root.host("/dev/loop-a")).unwrap();
        symlink("loop-a", root.host("/dev/loop-b")).unwrap();
        symlink("../../../../../../etc/hostname", root.host("/dev/escape")).unwrap();
        (directory, root)
    }

    #[test]
    fn links_are_resolved_within_the_tree() {
        let (_directory, root) = tree();
        assert_eq!(
            root.resolve(Path::new("/dev/vg/lv")).unwrap(),
            Path::new("/dev/dm-5")
        );
        assert_eq!(
            root.resolve(Path::new("/dev/vg/../dm-5")).unwrap(),
            Path::new("/dev/dm-5")
        );
        assert_eq!(root.resolve(Path::new("/")).unwrap(), Path::new("/"));
    }

    #[test]
    fn no_link_escapes_the_tree() {
        let (_directory, root) = tree();
        // The running system has such a file, the recorded one does not.
        assert_eq!(
            root.resolve(Path::new("/dev/escape")).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert!(root.text("/dev/escape").is_err());
        assert!(!root.exists("/dev/escape"));
    }

    #[test]
    fn a_loop_of_links_ends() {
        let (_directory, root) = tree();
        let error = root.resolve(Path::new("/dev/loop-a")).unwrap_err();
        assert_eq!(
            error.raw_os_error(),
            Some(rustix::io::Errno::LOOP.raw_os_error())
        );
    }

    #[test]
    fn a_file_is_not_a_directory() {
        let (_directory, root) = tree();
        assert_eq!(
            root.resolve(Path::new("/dev/dm-5/x")).unwrap_err().kind(),
            io::ErrorKind::NotADirectory
        );
    }
}
