//! The inspected paths of a system: each once, and none longer than the timeout.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use vmdisk_facts::libvirt::QemuUser;
use vmdisk_facts::{CollectError, Directory, Fact, File, FileKind, Reason, Unknown};

use crate::btrfs::Registry;
use crate::mountinfo::MountTable;
use crate::obstacle::obstacle;
use crate::paths;
use crate::record::{Answer, RealPath};
use crate::request::Request;
use crate::root::Root;
use crate::timeout::{WaitError, within};

/// The requested paths, and everything that they refer to.
pub(crate) struct Paths<'a> {
    pub(crate) root: &'a Arc<Root>,
    pub(crate) request: &'a Request,
    /// The user that QEMU runs as.
    user: Arc<Fact<QemuUser>>,
    pub(crate) mounts: MountTable,
    pub(crate) registry: Registry,
    /// Indices of mounts that did not answer before the timeout; no other path on them is tried.
    hung: HashSet<usize>,
    /// Number of timeouts.
    timeouts: u32,
    pub(crate) files: BTreeMap<String, (File, Option<RealPath>)>,
    pub(crate) directories: BTreeMap<String, (Directory, Option<RealPath>)>,
    pub(crate) errors: Vec<CollectError>,
}

impl<'a> Paths<'a> {
    pub(crate) fn new(root: &'a Arc<Root>, request: &'a Request, user: Fact<QemuUser>) -> Self {
        let mut errors = Vec::new();
        let what = "/proc/self/mountinfo";
        let mounts = match root.text(what) {
            Ok(text) => {
                let (table, rejected) = MountTable::parse(&text);
                errors.extend(rejected.into_iter().map(|line| {
                    CollectError::new(
                        what.to_owned(),
                        Reason::Parse,
                        format!("could not parse: {line}"),
                    )
                }));
                table
            }
            Err(error) => {
                errors.push(CollectError::of(what, obstacle(what, &error)));
                MountTable::default()
            }
        };
        Self {
            root,
            request,
            user: Arc::new(user),
            mounts,
            registry: Registry::scan(root),
            hung: HashSet::new(),
            timeouts: 0,
            files: BTreeMap::new(),
            directories: BTreeMap::new(),
            errors,
        }
    }

    pub(crate) fn is_known(&self, path: &str) -> bool {
        let directory = self.directories.get(path);
        self.files.contains_key(path) || directory.is_some_and(|(it, _)| !it.present.is_false())
    }

    /// Inspects paths, and the directory of each, existing or not.
    pub(crate) fn inspect(&mut self, todo: &mut VecDeque<String>) {
        while let Some(path) = todo.pop_front() {
            if self.is_known(&path) {
                continue;
            }
            let (file, place) = self.file(&path);
            let kind = file.kind.clone().known();
            let directory = match kind {
                Some(FileKind::Directory) => Some(path.clone()),
                // The directory of a device node has no relevance.
                Some(FileKind::Block | FileKind::Character) => None,
                Some(FileKind::Regular | FileKind::Socket | FileKind::Fifo | FileKind::Other)
                | None => {
                    let parent = Path::new(&path).parent().and_then(Path::to_str);
                    // A missing path under /dev is a missing device.
                    parent
                        .filter(|parent| !Path::new(parent).starts_with("/dev"))
                        .map(str::to_owned)
                }
            };
            if kind != Some(FileKind::Directory) {
                self.files.insert(path, (file, place));
            }
            if let Some(directory) = directory
                && !self.directories.contains_key(&directory)
            {
                self.add_directory(&directory);
            }
        }
    }

    /// Adds the nearest existing directory, and those below it that a new file would need and that are missing.
    fn add_directory(&mut self, path: &str) {
        let (found, place) = self.directory(path);
        let missing = Path::new(path)
            .ancestors()
            .take_while(|path| *path != Path::new(&found.path));
        for path in missing.filter_map(Path::to_str) {
            self.directories
                .entry(path.to_owned())
                .or_insert_with_key(|path| (paths::missing_directory(path), None));
        }
        self.directories
            .entry(found.path.clone())
            .or_insert((found, place));
    }

    fn file(&mut self, path: &str) -> (File, Option<RealPath>) {
        if let Some(answer) = self.root.answers().files.get(path) {
            return answer.restore();
        }
        let (root, owned) = (Arc::clone(self.root), path.to_owned());
        let user = Arc::clone(&self.user);
        let looked = move || paths::file(&root, &owned, &user);
        let (file, place) = self
            .with_timeout(path, looked)
            .unwrap_or_else(|unknown| (paths::unknown_file(path, &unknown), None));
        if let Some(recorder) = self.root.recorder() {
            let answer = Answer::new(&file, place.as_ref());
            recorder.answer(|answers| {
                answers.files.insert(path.to_owned(), answer);
            });
        }
        (file, place)
    }

    pub(crate) fn directory(&mut self, path: &str) -> (Directory, Option<RealPath>) {
        if let Some(answer) = self.root.answers().directories.get(path) {
            return answer.restore();
        }
        let (root, owned) = (Arc::clone(self.root), path.to_owned());
        let user = Arc::clone(&self.user);
        let looked = move || paths::directory(&root, &owned, &user);
        let (directory, place) = self
            .with_timeout(path, looked)
            .unwrap_or_else(|unknown| (paths::unknown_directory(path, &unknown), None));
        if let Some(recorder) = self.root.recorder() {
            let answer = Answer::new(&directory, place.as_ref());
            recorder.answer(|answers| {
                answers.directories.insert(path.to_owned(), answer);
            });
        }
        (directory, place)
    }

    /// Processes a path in a separate thread; gives up once per hung mount.
    pub(crate) fn with_timeout<T: Send + 'static>(
        &mut self,
        path: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unknown> {
        /// After this many timeouts, later waits are shortened.
        const FULL_WAITS: u32 = 3;
        let mount = self.mounts.covering(Path::new(path));
        if mount.is_some_and(|mount| self.hung.contains(&mount)) {
            let why = format!("{path}: another path on this mount did not answer");
            return Err(Unknown::new(Reason::Timeout, why));
        }
        let timeout = self.request.timeout;
        let timeout = if self.timeouts < FULL_WAITS {
            timeout
        } else {
            timeout / 10
        };
        within(timeout, work).map_err(|error| match error {
            WaitError::Timeout => {
                self.timeouts += 1;
                // A link may have led from a healthy mount to the hung one, so only mounts that can hang are recorded.
                self.hung
                    .extend(mount.filter(|mount| self.mounts.lines[*mount].can_hang()));
                let waited = timeout.as_millis();
                Unknown::new(
                    Reason::Timeout,
                    format!("{path}: no answer within {waited} ms"),
                )
            }
            WaitError::Panicked => {
                let why = format!("{path}: the collector failed");
                Unknown::new(Reason::Other("internal".to_owned()), why)
            }
        })
    }

    /// Returns the index of a path's mount in the table.
    pub(crate) fn mount_of(&self, place: &RealPath) -> Option<usize> {
        place
            .mount_id
            .and_then(|id| self.mounts.by_id(id))
            .or_else(|| self.mounts.covering(&place.real))
    }
}

pub(crate) fn is_device(file: &File) -> bool {
    matches!(
        file.kind,
        Fact::Known(FileKind::Block | FileKind::Character)
    )
}

/// Removes double slashes, single dots and a trailing slash; `..` stays, because its meaning depends on links.
pub(crate) fn normalize(path: &str) -> String {
    let parts = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".");
    let tidied = parts.fold(String::new(), |whole, part| whole + "/" + part);
    if tidied.is_empty() {
        "/".to_owned()
    } else {
        tidied
    }
}
