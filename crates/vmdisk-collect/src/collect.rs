//! The collector: from a request to facts.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use vmdisk_facts::path::{Dio, Lock};
use vmdisk_facts::{
    CollectError, Collector, Directory, Fact, Facts, File, FileKind, Filesystem, FsKind, Host,
    Mount, Reason, Unknown,
};

use crate::btrfs::Registry;
use crate::devices::Devices;
use crate::filesystems::{self, Under};
use crate::host;
use crate::locks::Locks;
use crate::lvm;
use crate::mountinfo::MountTable;
use crate::obstacle::{fact_of, obstacle};
use crate::paths::{self, Place, Space};
use crate::patience::{GivenUp, within};
use crate::programs::{self, Packages};
use crate::root::Root;
use crate::trial;

/// What to collect.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where the system is: `/`, or the directory a system was recorded into.
    pub root: PathBuf,
    /// Images, devices and directories in question, as absolute paths.
    pub paths: Vec<PathBuf>,
    /// The groups of facts wanted; those that start a program are not among the default.
    pub groups: BTreeSet<Group>,
    /// A directory to try direct I/O in, with a nameless file of 64 KiB that is gone afterwards; the only writing there is.
    pub probe_direct_io: Option<PathBuf>,
    /// The time to write into the facts, RFC 3339 in UTC; the collector itself looks at no clock.
    pub collected_at: String,
    /// How long to wait for one path, or one program, before its facts become unknown.
    pub patience: Duration,
}

impl Request {
    /// Asks the running system for its core facts and for no path.
    pub fn new(collected_at: impl Into<String>) -> Self {
        Self {
            root: PathBuf::from("/"),
            paths: Vec::new(),
            groups: BTreeSet::from([Group::Core]),
            probe_direct_io: None,
            collected_at: collected_at.into(),
            patience: Duration::from_secs(2),
        }
    }
}

/// A group of facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Everything that files and the kernel tell: the host, and the paths in question.
    Core,
    /// What `lvs` tells of thin pools; starts `lvs` and `lvmconfig`, which need root.
    Lvm,
    /// The exact versions of QEMU; starts each with `--version`.
    Programs,
}

impl Group {
    /// The name in the facts and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Lvm => "lvm",
            Self::Programs => "programs",
        }
    }

    /// The group of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Core, Self::Lvm, Self::Programs]
            .into_iter()
            .find(|group| group.name() == name)
    }
}

/// Collects facts. Never fails as a whole: what could not be had is unknown with a reason, or listed in `errors`.
pub fn collect(request: &Request) -> Facts {
    let root = Arc::new(Root::new(&request.root));
    let mut facts = Facts {
        collector: Collector {
            name: Fact::Known(env!("CARGO_PKG_NAME").to_owned()),
            version: Fact::Known(env!("CARGO_PKG_VERSION").to_owned()),
            privileged: if root.is_live() {
                Fact::Known(rustix::process::geteuid().is_root())
            } else {
                Fact::NotCollected
            },
            groups: Fact::Known(
                request
                    .groups
                    .iter()
                    .map(|group| group.name().to_owned())
                    .collect(),
            ),
            probed_dio: Fact::Known(root.is_live() && request.probe_direct_io.is_some()),
            namespace: Fact::Known("self".to_owned()),
        },
        collected_at: Fact::Known(request.collected_at.clone()),
        ..Facts::default()
    };
    if request.groups.contains(&Group::Core) {
        the_host(&root, request, &mut facts);
    }
    Paths::new(&root, request).collect_into(&mut facts);
    facts
}

fn the_host(root: &Root, request: &Request, facts: &mut Facts) {
    let line = |path: &str| {
        fact_of(path, root.text(path), |text| {
            (!text.is_empty()).then(|| text.to_owned())
        })
    };
    facts.host = Host {
        id: line("/proc/sys/kernel/hostname"),
        class: Fact::NotCollected,
        boot: line("/proc/sys/kernel/random/boot_id"),
    };
    facts.kernel = host::kernel(root);
    facts.cpu = host::cpu(root);
    facts.kvm = host::kvm(root);
    facts.limits = host::limits(root);
    facts.memory = host::memory(root);
    facts.lsm = host::security_modules(root);
    facts.services = host::services(root);
    let packages = Packages::read(root);
    let run = request
        .groups
        .contains(&Group::Programs)
        .then_some(request.patience);
    facts.qemu = programs::qemu(root, &packages, run);
    facts.libvirt = programs::libvirt(root, &packages);
}

/// The paths in question, and everything they lead to.
struct Paths<'a> {
    root: &'a Arc<Root>,
    request: &'a Request,
    mounts: MountTable,
    registry: Registry,
    /// Mounts that did not answer in time, by their place in the table: no second path is tried on them.
    hung: HashSet<usize>,
    /// How many answers did not come in time.
    late: u32,
    files: BTreeMap<String, (File, Option<Place>)>,
    directories: BTreeMap<String, (Directory, Option<Place>)>,
    errors: Vec<CollectError>,
}

impl<'a> Paths<'a> {
    fn new(root: &'a Arc<Root>, request: &'a Request) -> Self {
        let mut errors = Vec::new();
        let what = "/proc/self/mountinfo";
        let mounts = match root.text(what) {
            Ok(text) => {
                let (table, rejected) = MountTable::parse(&text);
                errors.extend(rejected.into_iter().map(|line| CollectError {
                    what: what.to_owned(),
                    reason: Reason::Parse,
                    detail: format!("not understood: {line}"),
                }));
                table
            }
            Err(error) => {
                errors.push(error_of(what, obstacle(what, &error)));
                MountTable::default()
            }
        };
        Self {
            root,
            request,
            mounts,
            registry: Registry::scan(root),
            hung: HashSet::new(),
            late: 0,
            files: BTreeMap::new(),
            directories: BTreeMap::new(),
            errors,
        }
    }

    fn collect_into(mut self, facts: &mut Facts) {
        let mut todo: VecDeque<String> = VecDeque::new();
        let mut asked = Vec::new();
        for path in &self.request.paths {
            match path.to_str() {
                Some(text) if text.starts_with('/') => {
                    let tidy = tidy(text);
                    asked.push(tidy.clone());
                    todo.push_back(tidy);
                }
                Some(text) => self.errors.push(CollectError {
                    what: text.to_owned(),
                    reason: Reason::Parse,
                    detail: "the path is not absolute".to_owned(),
                }),
                None => self.errors.push(CollectError {
                    what: path.to_string_lossy().into_owned(),
                    reason: Reason::Parse,
                    detail: "the path is no UTF-8, which facts cannot hold".to_owned(),
                }),
            }
        }
        self.look_at(&mut todo);
        if let Some(directory) = self.request.probe_direct_io.clone() {
            self.try_direct_io(&directory);
        }
        let root: &Root = self.root;
        let registry = std::mem::take(&mut self.registry);
        let mounts = std::mem::take(&mut self.mounts);
        let mut devices = Devices::new(root, &mounts, &registry);
        for path in &asked {
            if let Some((
                File {
                    device: Fact::Known(number),
                    kind: Fact::Known(FileKind::Block),
                    ..
                },
                _,
            )) = self.files.get(path)
            {
                match devices.name_of(*number) {
                    Ok(name) => devices.add_asked(&name),
                    Err(error) => {
                        let what = format!("/sys/dev/block/{number}");
                        self.errors.push(error_of(&what, obstacle(&what, &error)));
                    }
                }
            }
        }
        self.mounts = mounts;
        self.registry = registry;
        // A loop device leads to a file, which leads to a filesystem, which may be on a loop device.
        let mut places = self.used_mounts();
        loop {
            for place in &places {
                if let Under::Devices(names) =
                    filesystems::under(root, &self.registry, &self.mounts.lines[*place])
                {
                    names.iter().for_each(|name| devices.add(name));
                }
            }
            let mut todo: VecDeque<String> = devices
                .backing_files()
                .into_iter()
                .chain(self.upper_directories(&places))
                .filter(|path| !self.is_known(path))
                .collect();
            if todo.is_empty() {
                break;
            }
            self.look_at(&mut todo);
            let more = self.used_mounts();
            if more == places
                && todo.is_empty()
                && devices
                    .backing_files()
                    .iter()
                    .all(|path| self.is_known(path))
            {
                break;
            }
            places = more;
        }
        self.write(facts, &places, devices);
    }

    fn is_known(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.directories.contains_key(path)
    }

    /// Looks at paths, and at the directory each is in or would be.
    fn look_at(&mut self, todo: &mut VecDeque<String>) {
        while let Some(path) = todo.pop_front() {
            if self.is_known(&path) {
                continue;
            }
            let (file, place) = self.file(&path);
            let kind = file.kind.clone().known();
            let directory = match kind {
                Some(FileKind::Directory) => Some(path.clone()),
                // A device's directory says nothing of the device.
                Some(FileKind::Block | FileKind::Character) => None,
                Some(FileKind::Regular | FileKind::Socket | FileKind::Fifo | FileKind::Other)
                | None => {
                    let parent = Path::new(&path).parent().and_then(Path::to_str);
                    // What is missing under /dev is a device that is missing.
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
                let (directory, place) = self.directory(&directory);
                self.directories
                    .entry(directory.path.clone())
                    .or_insert((directory, place));
            }
        }
    }

    fn file(&mut self, path: &str) -> (File, Option<Place>) {
        let (root, owned) = (Arc::clone(self.root), path.to_owned());
        match self.patiently(path, move || paths::file(&root, &owned)) {
            Ok(report) => (report.file, report.place),
            Err(unknown) => (paths::unknown_file(path, &unknown), None),
        }
    }

    fn directory(&mut self, path: &str) -> (Directory, Option<Place>) {
        let (root, owned) = (Arc::clone(self.root), path.to_owned());
        match self.patiently(path, move || paths::directory(&root, &owned)) {
            Ok(report) => (report.directory, report.place),
            Err(unknown) => (paths::unknown_directory(path, &unknown), None),
        }
    }

    /// Does something with a path on a thread of its own, once per mount that hangs.
    fn patiently<T: Send + 'static>(
        &mut self,
        path: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unknown> {
        /// After so many answers that never came, waiting long for the next is no use.
        const PATIENT: u32 = 3;
        let mount = self.mounts.covering(Path::new(path));
        if mount.is_some_and(|mount| self.hung.contains(&mount)) {
            let why = format!("{path}: another path on this mount did not answer");
            return Err(Unknown::new(Reason::Timeout, why));
        }
        let patience = self.request.patience;
        let patience = if self.late < PATIENT {
            patience
        } else {
            patience / 10
        };
        within(patience, work).map_err(|given_up| match given_up {
            GivenUp::Late => {
                self.late += 1;
                // A link may have led from a healthy mount to the one that hangs, so that only those are blamed that can.
                self.hung
                    .extend(mount.filter(|mount| self.mounts.lines[*mount].can_hang()));
                let waited = patience.as_millis();
                Unknown::new(
                    Reason::Timeout,
                    format!("{path}: no answer within {waited} ms"),
                )
            }
            GivenUp::Broken => {
                let why = format!("{path}: the collector failed");
                Unknown::new(Reason::Other("internal".to_owned()), why)
            }
        })
    }

    fn try_direct_io(&mut self, directory: &Path) {
        if !self.root.is_live() {
            self.errors.push(CollectError {
                what: "the trial of direct I/O".to_owned(),
                reason: Reason::UnsupportedKernel,
                detail: "a recorded system cannot be tried".to_owned(),
            });
            return;
        }
        let Some(text) = directory
            .to_str()
            .filter(|text| text.starts_with('/'))
            .map(tidy)
        else {
            self.errors.push(CollectError {
                what: directory.to_string_lossy().into_owned(),
                reason: Reason::Parse,
                detail: "the directory to try direct I/O in is not absolute, or no UTF-8"
                    .to_owned(),
            });
            return;
        };
        let (found, place) = self.directory(&text);
        if found.path != text {
            self.errors.push(CollectError {
                what: text,
                reason: Reason::Other("missing".to_owned()),
                detail: "the directory to try direct I/O in does not exist".to_owned(),
            });
            return;
        }
        let tried = {
            let directory = directory.to_owned();
            self.patiently(&text, move || trial::in_directory(&directory))
        };
        let entry = self.directories.entry(text).or_insert((found, place));
        entry.0.dio = match tried {
            Ok(dio) => dio,
            Err(unknown) => Dio {
                open: Fact::Unknown(unknown),
                ..Dio::default()
            },
        };
    }

    /// The place of a path's mount in the table.
    fn mount_of(&self, place: &Place) -> Option<usize> {
        place
            .mount_id
            .and_then(|id| self.mounts.by_id(id))
            .or_else(|| self.mounts.covering(&place.real))
    }

    fn lock_of(&self, locks: &Locks, file: &File, place: Option<&Place>) -> Fact<Lock> {
        let device = place
            .and_then(|place| self.mount_of(place))
            .map(|mount| self.mounts.lines[mount].device);
        match (device, file.inode.value()) {
            (Some(device), Some(inode)) => locks.of(device, inode.number),
            (Some(_) | None, Some(_) | None) => Fact::NotCollected,
        }
    }

    fn used_mounts(&self) -> BTreeSet<usize> {
        let files = self
            .files
            .values()
            .filter(|(file, _)| !is_device(file))
            .filter_map(|(_, place)| place.as_ref());
        let directories = self
            .directories
            .values()
            .filter_map(|(_, place)| place.as_ref());
        files
            .chain(directories)
            .filter_map(|place| self.mount_of(place))
            .collect()
    }

    /// The directories that take the writes of the overlays in use.
    fn upper_directories(&self, places: &BTreeSet<usize>) -> Vec<String> {
        let overlays = places
            .iter()
            .map(|place| &self.mounts.lines[*place])
            .filter(|line| line.fstype == "overlay");
        overlays
            .filter_map(|line| {
                line.options
                    .iter()
                    .find(|(name, _)| name == "upperdir")
                    .and_then(|(_, value)| value.clone())
            })
            .filter(|path| path.starts_with('/'))
            .map(|path| tidy(&path))
            .collect()
    }

    fn write(self, facts: &mut Facts, used: &BTreeSet<usize>, devices: Devices<'_>) {
        let root: &Root = self.root;
        let (mut blockdevs, device_ids) = devices.finish();
        let mut errors = Vec::new();
        if self.request.groups.contains(&Group::Lvm) {
            lvm::complete(
                root,
                &mut blockdevs,
                self.request.patience.max(Duration::from_secs(10)),
                &mut errors,
            );
        }
        // Every mount that may hold a disk is listed, so that a path nobody asked about is not taken to be on another.
        let listed: Vec<usize> = (0..self.mounts.lines.len())
            .filter(|place| {
                used.contains(place) || filesystems::is_of_interest(&self.mounts.lines[*place])
            })
            .collect();
        let mount_ids: HashMap<usize, String> = listed
            .iter()
            .enumerate()
            .map(|(number, place)| (*place, format!("m{}", number + 1)))
            .collect();
        let mut spaces: HashMap<usize, &Result<Space, Unknown>> = HashMap::new();
        for place in self
            .files
            .values()
            .filter_map(|(_, place)| place.as_ref())
            .chain(
                self.directories
                    .values()
                    .filter_map(|(_, place)| place.as_ref()),
            )
        {
            if let (Some(mount), Some(space)) = (self.mount_of(place), &place.space) {
                spaces.entry(mount).or_insert(space);
            }
        }
        let mut written = Written {
            filesystems: Vec::new(),
            mounts: Vec::new(),
            by_device: HashMap::new(),
        };
        for place in &listed {
            let line = &self.mounts.lines[*place];
            let mut mount = filesystems::mount(line);
            mount.id = mount_ids[place].clone();
            if used.contains(place) {
                let id = written.filesystem(line, || {
                    let mut filesystem = filesystems::filesystem(
                        root,
                        &self.registry,
                        line,
                        spaces.get(place).copied(),
                    );
                    filesystem.devices = match filesystems::under(root, &self.registry, line) {
                        Under::Devices(names) => Fact::Known(
                            names
                                .iter()
                                .filter_map(|name| device_ids.get(name).cloned())
                                .collect(),
                        ),
                        Under::Nothing => Fact::Absent,
                        Under::Unknown(unknown) => Fact::Unknown(unknown),
                    };
                    filesystem
                });
                mount.fs = Fact::Known(id);
            }
            written.mounts.push(mount);
        }
        let locks = Locks::read(root);
        let kind_at = |place: &Option<Place>| {
            let line = place
                .as_ref()
                .and_then(|place| self.mount_of(place))
                .map(|place| &self.mounts.lines[place]);
            line.map(|line| FsKind::from(line.fstype.as_str()))
        };
        let id_at =
            |place: &Option<Place>| match place.as_ref().and_then(|place| self.mount_of(place)) {
                Some(mount) => mount_ids
                    .get(&mount)
                    .cloned()
                    .map_or(Fact::NotCollected, Fact::Known),
                None => Fact::NotCollected,
            };
        for (file, place) in self.files.values() {
            let mut file = file.clone();
            if is_device(&file) {
                // A device is on itself, not on the filesystem its node is in.
                file.mount = Fact::Absent;
            } else {
                file.mount = id_at(place);
                file.lock = self.lock_of(&locks, &file, place.as_ref());
                (file.nocow, file.compressed) =
                    meaningful(kind_at(place).as_ref(), file.nocow, file.compressed);
            }
            facts.files.push(file);
        }
        for (directory, place) in self.directories.values() {
            let mut directory = directory.clone();
            directory.mount = id_at(place);
            (directory.nocow, directory.compressed) = meaningful(
                kind_at(place).as_ref(),
                directory.nocow,
                directory.compressed,
            );
            facts.dirs.push(directory);
        }
        facts.mounts = written.mounts;
        facts.filesystems = written.filesystems;
        facts.blockdevs = blockdevs;
        facts.errors = self.errors;
        facts.errors.extend(errors);
    }
}

fn is_device(file: &File) -> bool {
    matches!(
        file.kind,
        Fact::Known(FileKind::Block | FileKind::Character)
    )
}

/// Keeps the two flags only where they mean something: ext4 takes them and does nothing.
fn meaningful(
    kind: Option<&FsKind>,
    nocow: Fact<bool>,
    compressed: Fact<bool>,
) -> (Fact<bool>, Fact<bool>) {
    let gone = |fact: Fact<bool>| {
        if fact.is_not_collected() {
            fact
        } else {
            Fact::Absent
        }
    };
    match kind {
        Some(FsKind::Btrfs | FsKind::Bcachefs) | None => (nocow, compressed),
        Some(FsKind::F2fs) => (gone(nocow), compressed),
        Some(_) => (gone(nocow), gone(compressed)),
    }
}

/// Mounts and filesystems as they are written, each filesystem once.
struct Written {
    filesystems: Vec<Filesystem>,
    mounts: Vec<Mount>,
    by_device: HashMap<vmdisk_facts::DeviceNumber, String>,
}

impl Written {
    fn filesystem(
        &mut self,
        line: &crate::mountinfo::MountLine,
        read: impl FnOnce() -> Filesystem,
    ) -> String {
        if let Some(id) = self.by_device.get(&line.device) {
            return id.clone();
        }
        let id = format!("f{}", self.filesystems.len() + 1);
        let mut filesystem = read();
        filesystem.id.clone_from(&id);
        self.filesystems.push(filesystem);
        self.by_device.insert(line.device, id.clone());
        id
    }
}

fn error_of(what: &str, unknown: Unknown) -> CollectError {
    CollectError {
        what: what.to_owned(),
        reason: unknown.reason,
        detail: unknown.detail,
    }
}

/// A path without doubled slashes, single dots and a slash at the end; `..` stays, because links decide what it means.
fn tidy(path: &str) -> String {
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
