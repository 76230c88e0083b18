//! The storage of configurations: new files in fresh directories, claimed devices, thin pools.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{Advice, IFlags, SeekFrom};

use super::image_file;
use super::socket::{self, SocketDisk};
use super::storage::{PreparedStorage, StorageKind};
use crate::guest::Kernel;
use crate::host_changes::{self, HostChange, HostChanges, QueueSetting};
use crate::programs;
use crate::report::bytes;
use crate::safety::{ClaimedDevice, DeviceCheck, DeviceRefusal, Pinned, Refused, Scratch};
use crate::{Cancel, CellView, Configuration, Error, Measurement, Phase, Storage};

/// Bytes in one directory.
#[derive(Debug, Default)]
struct Space {
    /// Images that exist for the whole run.
    kept: u64,
    /// The largest file that an image is filled from.
    filling: u64,
    /// Images created for a single sample.
    fresh: Vec<u64>,
}

impl Space {
    /// Returns the bytes in use at once, of which at most `fresh_at_once` images are created for a single sample.
    fn largest(mut self, fresh_at_once: usize) -> u64 {
        self.fresh.sort_unstable_by(|one, other| other.cmp(one));
        let fresh: u64 = self.fresh.iter().take(fresh_at_once).sum();
        self.kept + self.filling.max(fresh)
    }
}

/// The kernel that guests boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KernelSource {
    /// The running kernel of the host, if its image is readable.
    #[default]
    Host,
    /// An image with the directory of its modules.
    Files {
        /// The bootable image.
        image: PathBuf,
        /// For example `/lib/modules/6.1.0-50-cloud-amd64`.
        modules: PathBuf,
    },
    /// A distribution's package, unpacked in this directory.
    Package(PathBuf),
}

/// The storage of a run, shared by its engines.
#[derive(Clone, Debug)]
pub struct Workspace(Rc<RefCell<State>>);

#[derive(Debug)]
struct State {
    directory: PathBuf,
    changes_folder: PathBuf,
    /// Fresh directories, by their parent and whether they are NOCOW.
    scratches: BTreeMap<(PathBuf, bool), Scratch>,
    devices: BTreeMap<PathBuf, ClaimedDevice>,
    /// Files and devices that are only read.
    pinned: BTreeMap<PathBuf, Pinned>,
    /// Devices behind sockets, as they described themselves.
    sockets: BTreeMap<PathBuf, SocketDisk>,
    changes: Option<HostChanges>,
    /// Storage that is written once, by configuration name.
    steady: BTreeMap<String, PreparedStorage>,
    /// Storage that is created for each sample, by configuration and cell.
    fresh: BTreeMap<(String, usize), PreparedStorage>,
    kernel: KernelSource,
    guest_program: Option<PathBuf>,
    /// Number of names already used.
    count: u32,
}

impl Workspace {
    /// Creates a workspace in a directory; nothing is written yet.
    pub fn new(directory: &Path) -> Self {
        Self::with_changes_in(directory, Path::new(host_changes::FOLDER))
    }

    /// Like [`Workspace::new`], with another directory for the journals of host changes.
    pub fn with_changes_in(directory: &Path, changes_folder: &Path) -> Self {
        Self(Rc::new(RefCell::new(State {
            directory: directory.to_owned(),
            changes_folder: changes_folder.to_owned(),
            scratches: BTreeMap::new(),
            devices: BTreeMap::new(),
            pinned: BTreeMap::new(),
            sockets: BTreeMap::new(),
            changes: None,
            steady: BTreeMap::new(),
            fresh: BTreeMap::new(),
            kernel: KernelSource::Host,
            guest_program: None,
            count: 0,
        })))
    }

    /// Sets the kernel that guests boot; by default, the host's.
    #[must_use]
    pub fn with_kernel(self, kernel: KernelSource) -> Self {
        self.0.borrow_mut().kernel = kernel;
        self
    }

    /// Sets the program that guests run as process 1; by default, the current one. It must call
    /// [`crate::guest::run_as_first_program`].
    #[must_use]
    pub fn with_guest_program(self, program: &Path) -> Self {
        self.0.borrow_mut().guest_program = Some(program.to_owned());
        self
    }

    pub(crate) fn kernel(&self) -> Result<Kernel, Error> {
        match &self.0.borrow().kernel {
            KernelSource::Host => Kernel::of_host(),
            KernelSource::Files { image, modules } => Kernel::of(image, modules),
            KernelSource::Package(root) => Kernel::find(root),
        }
    }

    pub(crate) fn guest_program(&self) -> Result<PathBuf, Error> {
        match &self.0.borrow().guest_program {
            Some(program) => Ok(program.clone()),
            None => std::env::current_exe()
                .map_err(|error| Error::io("find", "the running program", error)),
        }
    }

    /// Returns why a configuration cannot be started, or its storage cannot be in a state; `None` if both can.
    pub(crate) fn refuses(configuration: &Configuration, is_fresh: bool) -> Option<String> {
        if let Some(launcher) = configuration.launcher.first()
            && !programs::is_installed(launcher)
        {
            return Some(format!("{launcher} is not installed"));
        }
        match &configuration.storage {
            Storage::Device { .. } | Storage::Socket { .. } | Storage::Existing { .. }
                if is_fresh =>
            {
                Some("the disk is not created for each sample; use the `steady` phase".to_owned())
            }
            Storage::Existing { path } => holes(path, configuration.size.0),
            Storage::File { .. }
            | Storage::Device { .. }
            | Storage::ThinVolume { .. }
            | Storage::Socket { .. } => None,
        }
    }

    /// Returns the largest number of bytes that files take at once, by directory, given all cells of an engine and the
    /// number of first-touch images that exist at once.
    pub(crate) fn space(
        &self,
        cells: &[CellView<'_>],
        fresh_at_once: usize,
    ) -> Vec<(PathBuf, u64)> {
        let mut spaces: BTreeMap<PathBuf, Space> = BTreeMap::new();
        let mut steady = BTreeSet::new();
        for cell in cells {
            let configuration = cell.configuration;
            let Storage::File { directory, .. } = &configuration.storage else {
                continue;
            };
            let directory = directory
                .clone()
                .unwrap_or_else(|| self.0.borrow().directory.clone());
            let space = spaces.entry(directory).or_default();
            match cell.phase {
                Phase::Steady if steady.insert(&configuration.name) => {
                    space.kept += image_file::largest_bytes(configuration);
                    space.filling = space.filling.max(image_file::filling_bytes(configuration));
                }
                Phase::Steady => {}
                Phase::FirstTouch => space.fresh.push(image_file::largest_bytes(configuration)),
            }
        }
        spaces
            .into_iter()
            .map(|(directory, space)| (directory, space.largest(fresh_at_once)))
            .collect()
    }

    /// Creates the storage that exists for the whole run.
    pub(crate) fn prepare(&self, cells: &[CellView<'_>], cancel: &Cancel) -> Result<(), Error> {
        for cell in cells {
            if cell.phase == Phase::Steady {
                self.steady(cell.configuration, cancel)?;
            }
        }
        Ok(())
    }

    /// Checks before a run that files can be created in every directory of a plan and that its devices may be written,
    /// and claims the devices.
    ///
    /// # Errors
    /// All refusals, without duplicates.
    pub fn check<'a>(
        &self,
        configurations: impl IntoIterator<Item = &'a Configuration>,
    ) -> Result<(), Error> {
        let mut refused = BTreeSet::new();
        let mut state = self.0.borrow_mut();
        for configuration in configurations {
            let usable = match &configuration.storage {
                Storage::File { directory, no_cow } => {
                    let parent = directory.clone().unwrap_or_else(|| state.directory.clone());
                    state.scratch(&parent, *no_cow).map(|_| ())
                }
                Storage::Device { path, serial, .. } => state.claim(path, serial),
                Storage::ThinVolume { .. } => Ok(()),
                Storage::Existing { path } => {
                    state.existing(path, configuration.size.0).map(|_| ())
                }
                Storage::Socket { path } => state.socket(path, configuration.size.0).map(|_| ()),
            };
            if let Err(error) = usable {
                refused.insert(error.to_string());
            }
        }
        if refused.is_empty() {
            return Ok(());
        }
        Err(Error::Unusable {
            refusals: refused.into_iter().collect(),
        })
    }

    /// Checks without any change that what a plan only reads can be read.
    ///
    /// # Errors
    /// The first refusal.
    pub fn check_existing<'a>(
        configurations: impl IntoIterator<Item = &'a Configuration>,
    ) -> Result<(), Error> {
        for configuration in configurations {
            if let Storage::Existing { path } = &configuration.storage {
                length_of(&pinned(path)?, path, configuration.size.0)?;
            }
        }
        Ok(())
    }

    /// Measures a cell on its storage; first-touch storage is removed after the sample.
    pub(crate) fn measure_on(
        &self,
        cell: &CellView<'_>,
        cancel: &Cancel,
        measure: impl FnOnce(&PreparedStorage) -> Result<Measurement, Error>,
    ) -> Result<Measurement, Error> {
        let storage = self.storage(cell, cancel)?;
        let guard = self.prepare_sample(cell.configuration, &storage);
        let measured = guard.and_then(|guard| {
            let measured = measure(&storage);
            drop(guard);
            self.verify(cell.configuration)?;
            measured
        });
        // They look at what is removed next.
        let notes = storage.notes();
        let discarded = self.discard_fresh(cell);
        let mut measured = measured?;
        discarded?;
        measured.notes.extend(notes);
        Ok(measured)
    }

    /// Returns the directory for temporary files other than images: sockets, jobs, archives.
    pub(crate) fn scratch(&self) -> Result<PathBuf, Error> {
        let mut state = self.0.borrow_mut();
        let directory = state.directory.clone();
        Ok(state.scratch(&directory, false)?.path().to_owned())
    }

    /// Returns a name that is unique in this run.
    pub(crate) fn name(&self, stem: &str) -> String {
        self.0.borrow_mut().name(stem)
    }

    /// Returns the storage of a configuration, filled once with incompressible data.
    pub(crate) fn steady(
        &self,
        configuration: &Configuration,
        cancel: &Cancel,
    ) -> Result<PreparedStorage, Error> {
        let mut state = self.0.borrow_mut();
        if let Some(storage) = state.steady.get(&configuration.name) {
            return Ok(storage.clone());
        }
        let storage = state.make(configuration, cancel)?;
        if storage.kind != StorageKind::Existing {
            image_file::fill(configuration, &storage, state.count, cancel)?;
        }
        state
            .steady
            .insert(configuration.name.clone(), storage.clone());
        Ok(storage)
    }

    /// Returns new storage for a cell, after removing its previous storage.
    pub(crate) fn fresh(
        &self,
        cell: &CellView<'_>,
        cancel: &Cancel,
    ) -> Result<PreparedStorage, Error> {
        self.discard_fresh(cell)?;
        let mut state = self.0.borrow_mut();
        let storage = state.make(cell.configuration, cancel)?;
        let key = (cell.configuration.name.clone(), cell.id.0);
        state.fresh.insert(key, storage.clone());
        Ok(storage)
    }

    /// Returns the storage that a cell is measured on.
    pub(crate) fn storage(
        &self,
        cell: &CellView<'_>,
        cancel: &Cancel,
    ) -> Result<PreparedStorage, Error> {
        match cell.phase {
            Phase::FirstTouch => self.fresh(cell, cancel),
            Phase::Steady => self.steady(cell.configuration, cancel),
        }
    }

    /// Removes the storage that was created for a cell, if any.
    pub(crate) fn discard_fresh(&self, cell: &CellView<'_>) -> Result<(), Error> {
        let mut state = self.0.borrow_mut();
        let key = (cell.configuration.name.clone(), cell.id.0);
        match state.fresh.remove(&key) {
            Some(storage) => state.remove(cell.configuration, &storage),
            None => Ok(()),
        }
    }

    /// Checks that the storage is still what was claimed; to be called before and after each sample.
    ///
    /// # Errors
    /// If it is not: the run has to end.
    pub(crate) fn verify(&self, configuration: &Configuration) -> Result<(), Error> {
        let state = self.0.borrow();
        match &configuration.storage {
            Storage::Device { path, .. } => {
                let device = state.devices.get(path);
                let device = device.expect("it was claimed during preparation");
                device.verify().map_err(Error::Endangered)
            }
            Storage::Existing { path } if !state.pinned[path].is_still_named() => {
                let found = "it is not what it was when the run began";
                let refusal = DeviceRefusal::new(DeviceCheck::SameDevice, found);
                Err(Error::Endangered(Refused::one(path.display(), refusal)))
            }
            Storage::Existing { .. }
            | Storage::File { .. }
            | Storage::ThinVolume { .. }
            | Storage::Socket { .. } => Ok(()),
        }
    }

    /// Prepares storage for a sample: verifies it, drops it from the page cache, and sets the scheduler of a device.
    /// The returned [`SchedulerGuard`] restores the scheduler when dropped.
    pub(crate) fn prepare_sample(
        &self,
        configuration: &Configuration,
        storage: &PreparedStorage,
    ) -> Result<SchedulerGuard, Error> {
        self.verify(configuration)?;
        drop_cached(storage)?;
        let mut state = self.0.borrow_mut();
        let before = state.changes.as_ref().map_or(0, HostChanges::len);
        if let Storage::Device {
            path,
            serial: _,
            scheduler: Some(scheduler),
        } = &configuration.storage
        {
            let number = state.devices[path].number();
            let change = HostChange::queue(number, QueueSetting::Scheduler, scheduler)?;
            state.changes()?.make(change)?;
        }
        Ok(SchedulerGuard {
            workspace: self.clone(),
            before,
        })
    }

    /// Removes everything that was created and restores every setting.
    pub(crate) fn clear(&self) -> Result<(), Error> {
        let mut state = self.0.borrow_mut();
        state.steady.clear();
        state.fresh.clear();
        // LVM removes no volume that is open.
        state.pinned.clear();
        let mut failed = Vec::new();
        if let Some(changes) = state.changes.take() {
            failed = changes.revert().failed;
        }
        state.devices.clear();
        state.sockets.clear();
        state.scratches.clear();
        if failed.is_empty() {
            return Ok(());
        }
        Err(Error::refused(
            "to revert changes to the host",
            failed.join("; "),
        ))
    }
}

/// Writes pending data of a storage, which would disturb a sample, and drops it from the page cache, so that reads begin
/// cold.
pub(crate) fn drop_cached(storage: &PreparedStorage) -> Result<(), Error> {
    // The cache of a disk behind a socket belongs to another program.
    if storage.socket_queues().is_some() {
        return Ok(());
    }
    let file =
        File::open(&storage.path).map_err(|error| Error::io("open", &storage.path, error))?;
    if storage.kind != StorageKind::Existing {
        let _ = rustix::fs::fsync(&file);
    }
    let _ = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
    Ok(())
}

/// Settings of the host for one sample, reverted on drop.
#[derive(Debug)]
pub(crate) struct SchedulerGuard {
    workspace: Workspace,
    before: usize,
}

impl Drop for SchedulerGuard {
    fn drop(&mut self) {
        if let Some(changes) = &mut self.workspace.0.borrow_mut().changes {
            // A failure stays in the journal and is reported at the end.
            let _ = changes.revert_to(self.before);
        }
    }
}

/// Opens a file or device that exists.
fn pinned(path: &Path) -> Result<Pinned, Error> {
    let kind = fs::metadata(path).map_err(|error| Error::io("open", path, error))?;
    let kind = kind.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        let what = format!("to read {}", path.display());
        return Err(Error::refused(
            what,
            "it is neither a file nor a block device",
        ));
    }
    Pinned::open(path).map_err(|error| Error::io("open", path, error))
}

/// Returns at most `size` bytes of a file or device, or all of them if it has fewer.
fn length_of(pinned: &Pinned, given: &Path, size: u64) -> Result<u64, Error> {
    let end = pinned.size_bytes();
    let end = end.map_err(|error| Error::io("find the end of", given, error))?;
    let length = end.min(size) / 4096 * 4096;
    if length < 1 << 20 {
        let what = format!("to read {}", given.display());
        return Err(Error::refused(what, "it has less than 1 MiB"));
    }
    Ok(length)
}

/// Returns why the first bytes of a file would not be read from its device: more than a tenth of them are holes. `None` where
/// that is not known.
fn holes(path: &Path, size: u64) -> Option<String> {
    /// The most pieces that are counted; a file with more of them is not nearly all holes.
    const MAX_PIECES: usize = 100_000;
    // Opening a device can have an effect, and opening a pipe would wait.
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let file = File::open(path).ok()?;
    let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
    let length = metadata.len().min(size);
    let (mut data, mut at) = (0, 0);
    for _ in 0..MAX_PIECES {
        let from = match rustix::fs::seek(&file, SeekFrom::Data(at)) {
            Ok(from) if from < length => from,
            Ok(_) | Err(rustix::io::Errno::NXIO) => {
                let text = format!(
                    "only {} of its first {} are data, and holes are read without a device",
                    bytes(data),
                    bytes(length)
                );
                return (data < length - length / 10).then_some(text);
            }
            Err(_) => return None,
        };
        at = rustix::fs::seek(&file, SeekFrom::Hole(from)).ok()?;
        data += at.min(length) - from;
    }
    None
}

fn refusal(path: &Path, refused: &Refused) -> Error {
    let lines: Vec<String> = refused.refusals.iter().map(ToString::to_string).collect();
    Error::refused(format!("to write to {}", path.display()), lines.join("; "))
}

impl State {
    fn name(&mut self, stem: &str) -> String {
        self.count += 1;
        format!("{stem}-{}", self.count)
    }

    fn changes(&mut self) -> Result<&mut HostChanges, Error> {
        if self.changes.is_none() {
            self.changes = Some(HostChanges::begin(&self.changes_folder)?);
        }
        Ok(self.changes.as_mut().expect("it was set above"))
    }

    fn scratch(&mut self, parent: &Path, no_cow: bool) -> Result<&Scratch, Error> {
        // Programs run in other working directories.
        let parent =
            &std::path::absolute(parent).map_err(|error| Error::io("find", parent, error))?;
        let key = (parent.to_owned(), no_cow);
        if !self.scratches.contains_key(&key) {
            let scratch = Scratch::create(parent)
                .map_err(|error| Error::refused("to create files", error))?;
            if no_cow {
                let path = scratch.path();
                let set = File::open(path).and_then(|directory| {
                    let flags = rustix::fs::ioctl_getflags(&directory)?;
                    rustix::fs::ioctl_setflags(&directory, flags | IFlags::NOCOW)
                        .map_err(std::io::Error::from)
                });
                set.map_err(|error| Error::io("set NOCOW on", path, error))?;
            }
            self.scratches.insert(key.clone(), scratch);
        }
        Ok(&self.scratches[&key])
    }

    /// Claims a device if its serial number is the confirmed one.
    fn claim(&mut self, path: &Path, serial: &str) -> Result<(), Error> {
        if !self.devices.contains_key(path) {
            let device = ClaimedDevice::claim(path).map_err(|refused| refusal(path, &refused))?;
            self.devices.insert(path.to_owned(), device);
        }
        let identity = &self.devices[path].marker().identity;
        if identity != serial {
            return Err(Error::refused(
                format!("to write to {}", path.display()),
                format!("its serial number is `{identity}`, but `{serial}` was confirmed"),
            ));
        }
        Ok(())
    }

    /// Returns the first `size` bytes of a file or device that exists, or all of them if it has fewer.
    fn existing(&mut self, path: &Path, size: u64) -> Result<PreparedStorage, Error> {
        if !self.pinned.contains_key(path) {
            self.pinned.insert(path.to_owned(), pinned(path)?);
        }
        let pinned = &self.pinned[path];
        let length = length_of(pinned, path, size)?;
        Ok(PreparedStorage::new(
            pinned.path(),
            length,
            StorageKind::Existing,
        ))
    }

    /// Returns the first `size` bytes of the disk behind a socket, which must have as many.
    fn socket(&mut self, path: &Path, size: u64) -> Result<PreparedStorage, Error> {
        let disk = match self.sockets.get(path) {
            Some(known) => *known,
            None => {
                let disk = socket::describe(path)?;
                self.sockets.insert(path.to_owned(), disk);
                disk
            }
        };
        if disk.capacity < size {
            return Err(Error::refused(
                format!("to measure the disk behind {}", path.display()),
                format!(
                    "it has {}, but the plan uses {}; set `--size`",
                    bytes(disk.capacity),
                    bytes(size)
                ),
            ));
        }
        if disk.is_read_only {
            return Err(Error::refused(
                format!("to measure the disk behind {}", path.display()),
                "it is read-only",
            ));
        }
        Ok(PreparedStorage::new(
            path,
            size,
            StorageKind::Socket {
                queues: disk.queues,
            },
        ))
    }

    fn make(
        &mut self,
        configuration: &Configuration,
        cancel: &Cancel,
    ) -> Result<PreparedStorage, Error> {
        let size = configuration.size.0;
        match &configuration.storage {
            Storage::File { directory, no_cow } => {
                let parent = directory.clone().unwrap_or_else(|| self.directory.clone());
                let name = self.name("disk");
                let scratch = self.scratch(&parent, *no_cow)?;
                let path = image_file::create(scratch, &name, configuration, cancel)?;
                Ok(PreparedStorage::new(path, size, StorageKind::File))
            }
            Storage::Device {
                path,
                serial,
                scheduler: _,
            } => {
                self.claim(path, serial)?;
                let device = &self.devices[path];
                let usable = device.usable();
                Ok(PreparedStorage {
                    path: device.path().to_owned(),
                    offset: usable.start,
                    length: size.min(usable.end - usable.start),
                    kind: StorageKind::Device,
                })
            }
            Storage::ThinVolume {
                group,
                chunk_bytes,
                zero,
            } => {
                let pool = self.name(&format!("{}{}", host_changes::PREFIX, std::process::id()));
                let path = PathBuf::from(format!("/dev/{group}/{}", host_changes::volume(&pool)));
                self.changes()?.make(HostChange::ThinPool {
                    group: group.clone(),
                    pool,
                    volume_bytes: size,
                    // The pool can hold the whole volume, so it never has to be extended.
                    pool_bytes: size + size / 8 + 2 * chunk_bytes,
                    chunk_bytes: *chunk_bytes,
                    zero: *zero,
                })?;
                let volume = pinned(&path)?;
                let storage = PreparedStorage::new(volume.path(), size, StorageKind::Device);
                self.pinned.insert(path, volume);
                Ok(storage)
            }
            Storage::Existing { path } => self.existing(path, size),
            Storage::Socket { path } => self.socket(path, size),
        }
    }

    fn remove(
        &mut self,
        configuration: &Configuration,
        storage: &PreparedStorage,
    ) -> Result<(), Error> {
        match &configuration.storage {
            Storage::File { .. } => {
                fs::remove_file(&storage.path)
                    .map_err(|error| Error::io("remove", &storage.path, error))?;
                if let Some(parent) = storage.path.parent().and_then(|path| File::open(path).ok()) {
                    // The file system discards freed blocks at commit, which must not happen during the next sample.
                    let _ = rustix::fs::fsync(&parent);
                }
                Ok(())
            }
            Storage::Device { .. } | Storage::Socket { .. } | Storage::Existing { .. } => Ok(()),
            Storage::ThinVolume { group, .. } => {
                let Some(changes) = &mut self.changes else {
                    return Ok(());
                };
                let is_it = |(_, volume): &(&PathBuf, &Pinned)| volume.path() == storage.path;
                let Some((path, _)) = self.pinned.iter().find(is_it) else {
                    return Ok(());
                };
                let path = path.clone();
                // LVM removes no volume that is open.
                self.pinned.remove(&path);
                let volume = path.file_name().unwrap_or_default().to_string_lossy();
                changes.revert_one(|change| {
                    matches!(change, HostChange::ThinPool { group: other, pool, .. }
                        if other == group && host_changes::volume(pool) == volume)
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn a_file_of_holes_is_known_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.img");
        let file = File::create(&path).unwrap();
        file.set_len(8 << 20).unwrap();
        file.write_all_at(&[1; 1 << 20], 0).unwrap();
        let found = holes(&path, 1 << 30).unwrap();
        assert!(
            found.starts_with("only 1 MiB of its first 8 MiB are data"),
            "{found}"
        );
        // Only the first bytes are read.
        assert_eq!(holes(&path, 1 << 20), None);
        file.write_all_at(&[1; 7 << 20], 1 << 20).unwrap();
        assert_eq!(holes(&path, 1 << 30), None);
    }
}
