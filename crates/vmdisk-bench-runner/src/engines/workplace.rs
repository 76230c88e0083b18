//! Where the storage of configurations is made: new files in fresh directories, devices that are held, thin pools.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{Advice, IFlags};
use vmdisk_facts::DeviceNumber;

use super::image_file;
use crate::guest::Kernel;
use crate::host_changes::{self, Change, HostChanges, QueueSetting};
use crate::safety::{self, ClaimedDevice, Scratch};
use crate::{Cancel, CellView, Configuration, Error, Measurement, Phase, Storage};

/// Where a disk's bytes are, and which of them may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    /// The first byte of the guest's disk that is used.
    pub(crate) offset: u64,
    /// How many are.
    pub(crate) length: u64,
    pub(crate) is_device: bool,
}

impl Place {
    /// A note for readers of the figures.
    pub(crate) fn notes(&self) -> Option<String> {
        if self.is_device {
            return buffered_loop_note(&self.path);
        }
        file_system_note(&self.path)
    }
}

/// How many images that are made anew for a sample are there at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fresh {
    /// One, as each sample is measured on its own.
    OneAtATime,
    /// All, as the disks of one boot.
    Together,
}

/// Bytes in one directory.
#[derive(Debug, Default)]
struct Space {
    /// Images that stay for the whole run.
    kept: u64,
    /// The largest file that an image is filled from.
    filling: u64,
    /// Images that are made anew.
    fresh: u64,
}

/// Which kernel guests boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KernelSource {
    /// The one that the host runs, if its image may be read.
    #[default]
    Host,
    /// An image with the folder of its modules.
    Files {
        /// The bootable image.
        image: PathBuf,
        /// Such as `/lib/modules/6.1.0-50-cloud-amd64`.
        modules: PathBuf,
    },
    /// A distribution's package, unpacked in this folder.
    Package(PathBuf),
}

/// The one place of a run where storage is made, shared by its engines.
#[derive(Clone, Debug)]
pub struct Workplace(Rc<RefCell<Inside>>);

#[derive(Debug)]
struct Inside {
    directory: PathBuf,
    changes_folder: PathBuf,
    /// Fresh directories, by the directory they are in and whether their files are not copied on writing.
    scratches: BTreeMap<(PathBuf, bool), Scratch>,
    devices: BTreeMap<PathBuf, ClaimedDevice>,
    changes: Option<HostChanges>,
    /// Storage that is written once, by the name of its configuration.
    steady: BTreeMap<String, Place>,
    /// Storage that is created for each sample, by configuration and cell.
    fresh: BTreeMap<(String, usize), Place>,
    kernel: KernelSource,
    guest_program: Option<PathBuf>,
    /// Whether fio is left out of guests.
    has_own_generator: bool,
    /// Names that were given out.
    count: u32,
}

impl Workplace {
    /// A place in a directory; nothing is made yet.
    pub fn new(directory: &Path) -> Self {
        Self::with_changes_in(directory, Path::new(host_changes::FOLDER))
    }

    /// As [`Workplace::new`], with another folder for the journals of changes to the host.
    pub fn with_changes_in(directory: &Path, changes_folder: &Path) -> Self {
        Self(Rc::new(RefCell::new(Inside {
            directory: directory.to_owned(),
            changes_folder: changes_folder.to_owned(),
            scratches: BTreeMap::new(),
            devices: BTreeMap::new(),
            changes: None,
            steady: BTreeMap::new(),
            fresh: BTreeMap::new(),
            kernel: KernelSource::Host,
            guest_program: None,
            has_own_generator: false,
            count: 0,
        })))
    }

    /// The same place with the kernel that guests boot; unset it is the host's own.
    #[must_use]
    pub fn with_kernel(self, kernel: KernelSource) -> Self {
        self.0.borrow_mut().kernel = kernel;
        self
    }

    /// Sets the program that guests run as process 1, by default the current one. It has to call
    /// [`crate::guest::run_as_first_program`].
    #[must_use]
    pub fn with_guest_program(self, program: &Path) -> Self {
        self.0.borrow_mut().guest_program = Some(program.to_owned());
        self
    }

    /// Uses our own generator in guests even if the host has fio: the generator that drives the
    /// storage daemon too.
    #[must_use]
    pub fn with_own_generator(self) -> Self {
        self.0.borrow_mut().has_own_generator = true;
        self
    }

    pub(crate) fn has_own_generator(&self) -> bool {
        self.0.borrow().has_own_generator
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

    /// Why storage of a kind cannot be in a state; `None` if it can.
    pub(crate) fn refuses(configuration: &Configuration, is_fresh: bool) -> Option<String> {
        match &configuration.storage {
            Storage::Device { .. } if is_fresh => Some(
                "a device is not created, so it has no first touch; measure it steady".to_owned(),
            ),
            Storage::File { .. } | Storage::Device { .. } | Storage::ThinVolume { .. } => None,
        }
    }

    /// Bytes that files take at most at once, by the directory they are made in, given all cells of an engine.
    pub(crate) fn space(&self, cells: &[CellView<'_>], fresh: Fresh) -> Vec<(PathBuf, u64)> {
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
            match (cell.phase, fresh) {
                (Phase::Steady, _) if steady.insert(&configuration.name) => {
                    space.kept += image_file::largest_bytes(configuration);
                    space.filling = space.filling.max(image_file::filling_bytes(configuration));
                }
                (Phase::Steady, _) => {}
                (Phase::FirstTouch, Fresh::OneAtATime) => {
                    space.fresh = space.fresh.max(image_file::largest_bytes(configuration));
                }
                (Phase::FirstTouch, Fresh::Together) => {
                    space.fresh += image_file::largest_bytes(configuration);
                }
            }
        }
        spaces
            .into_iter()
            .map(|(directory, space)| (directory, space.kept + space.filling.max(space.fresh)))
            .collect()
    }

    /// Makes what stays for the whole run.
    pub(crate) fn prepare(&self, cells: &[CellView<'_>], cancel: &Cancel) -> Result<(), Error> {
        for cell in cells {
            if cell.phase == Phase::Steady {
                self.steady(cell.configuration, cancel)?;
            }
        }
        Ok(())
    }

    /// Checks before a run that files can be made in every directory of a plan and that its devices can be written on,
    /// and takes hold of the devices.
    ///
    /// # Errors
    /// Everything that is refused, each once.
    pub fn check<'a>(
        &self,
        configurations: impl IntoIterator<Item = &'a Configuration>,
    ) -> Result<(), Error> {
        let mut refused = BTreeSet::new();
        let mut inside = self.0.borrow_mut();
        for configuration in configurations {
            let usable = match &configuration.storage {
                Storage::File { directory, no_cow } => {
                    let parent = directory
                        .clone()
                        .unwrap_or_else(|| inside.directory.clone());
                    inside.scratch(&parent, *no_cow).map(|_| ())
                }
                Storage::Device { path, serial, .. } => inside.claim(path, serial),
                Storage::ThinVolume { .. } => Ok(()),
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

    /// Measures a cell on its storage, which is ready before and, where it was made for this sample alone, gone after.
    pub(crate) fn measure_on(
        &self,
        cell: &CellView<'_>,
        cancel: &Cancel,
        measure: impl FnOnce(&Place) -> Result<Measurement, Error>,
    ) -> Result<Measurement, Error> {
        let place = self.place(cell, cancel)?;
        let settled = self.settle(cell.configuration, &place);
        let measured = settled.and_then(|settled| {
            let measured = measure(&place);
            drop(settled);
            measured
        });
        let discarded = self.discard_fresh(cell);
        let mut measured = measured?;
        discarded?;
        measured.notes.extend(place.notes());
        Ok(measured)
    }

    /// A directory for what is neither an image nor to be kept: sockets, jobs, archives.
    pub(crate) fn scratch(&self) -> Result<PathBuf, Error> {
        let mut inside = self.0.borrow_mut();
        let directory = inside.directory.clone();
        Ok(inside.scratch(&directory, false)?.path().to_owned())
    }

    /// A name that nothing of this run has.
    pub(crate) fn name(&self, stem: &str) -> String {
        self.0.borrow_mut().name(stem)
    }

    /// The storage of a configuration, written once over its whole length with data that nothing can compress.
    pub(crate) fn steady(
        &self,
        configuration: &Configuration,
        cancel: &Cancel,
    ) -> Result<Place, Error> {
        let mut inside = self.0.borrow_mut();
        if let Some(place) = inside.steady.get(&configuration.name) {
            return Ok(place.clone());
        }
        let place = inside.make(configuration, cancel)?;
        image_file::fill(configuration, &place, inside.count, cancel)?;
        inside
            .steady
            .insert(configuration.name.clone(), place.clone());
        Ok(place)
    }

    /// The storage of a configuration, made anew for a cell; the last one made for it goes.
    pub(crate) fn fresh(&self, cell: &CellView<'_>, cancel: &Cancel) -> Result<Place, Error> {
        self.discard_fresh(cell)?;
        let mut inside = self.0.borrow_mut();
        let place = inside.make(cell.configuration, cancel)?;
        let key = (cell.configuration.name.clone(), cell.id.0);
        inside.fresh.insert(key, place.clone());
        Ok(place)
    }

    /// The storage that a cell is measured on.
    pub(crate) fn place(&self, cell: &CellView<'_>, cancel: &Cancel) -> Result<Place, Error> {
        match cell.phase {
            Phase::FirstTouch => self.fresh(cell, cancel),
            Phase::Steady => self.steady(cell.configuration, cancel),
        }
    }

    /// Removes the storage that was created for a cell, if any.
    pub(crate) fn discard_fresh(&self, cell: &CellView<'_>) -> Result<(), Error> {
        let mut inside = self.0.borrow_mut();
        let key = (cell.configuration.name.clone(), cell.id.0);
        match inside.fresh.remove(&key) {
            Some(place) => inside.remove(cell.configuration, &place),
            None => Ok(()),
        }
    }

    /// Gets a place ready for a sample: nothing of it in the page cache, the device still ours, its scheduler set.
    /// [`Settled`] sets back what was set when it goes.
    pub(crate) fn settle(
        &self,
        configuration: &Configuration,
        place: &Place,
    ) -> Result<Settled, Error> {
        let file =
            File::open(&place.path).map_err(|error| Error::io("open", &place.path, error))?;
        // Data still being written back would disturb the measurement.
        let _ = rustix::fs::fsync(&file);
        let _ = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
        let mut inside = self.0.borrow_mut();
        let before = inside.changes.as_ref().map_or(0, HostChanges::len);
        if let Storage::Device {
            path,
            serial: _,
            scheduler,
        } = &configuration.storage
        {
            let device = inside
                .devices
                .get(path)
                .expect("it was claimed when it was made ready");
            device.verify().map_err(|refused| refusal(path, &refused))?;
            if let Some(scheduler) = scheduler {
                let text = fs::read_to_string(device.sysfs().join("dev"))
                    .map_err(|error| Error::io("read", device.sysfs(), error))?;
                let number = DeviceNumber::parse(&text).ok_or_else(|| {
                    Error::program("sysfs", format!("`{}` is not a device number", text.trim()))
                })?;
                let change = Change::queue(number, QueueSetting::Scheduler, scheduler)?;
                inside.changes()?.make(change)?;
            }
        }
        Ok(Settled {
            workplace: self.clone(),
            before,
        })
    }

    /// Removes everything that was created and restores every setting.
    pub(crate) fn clear(&self) -> Result<(), Error> {
        let mut inside = self.0.borrow_mut();
        inside.steady.clear();
        inside.fresh.clear();
        let mut failed = Vec::new();
        if let Some(changes) = inside.changes.take() {
            failed = changes.take_back().failed;
        }
        inside.devices.clear();
        inside.scratches.clear();
        if failed.is_empty() {
            return Ok(());
        }
        Err(Error::Refused {
            what: "to take back".to_owned(),
            why: failed.join("; "),
        })
    }
}

/// A place that is ready for a sample; host settings made for it are taken back when this goes.
#[derive(Debug)]
pub(crate) struct Settled {
    workplace: Workplace,
    before: usize,
}

impl Drop for Settled {
    fn drop(&mut self) {
        if let Some(changes) = &mut self.workplace.0.borrow_mut().changes {
            // A failure stays in the journal and is reported at the end.
            let _ = changes.take_back_to(self.before);
        }
    }
}

fn refusal(path: &Path, refused: &crate::safety::Refused) -> Error {
    let lines: Vec<String> = refused.refusals.iter().map(ToString::to_string).collect();
    Error::Refused {
        what: format!("to write on {}", path.display()),
        why: lines.join("; "),
    }
}

impl Inside {
    fn name(&mut self, stem: &str) -> String {
        self.count += 1;
        format!("{stem}-{}", self.count)
    }

    fn changes(&mut self) -> Result<&mut HostChanges, Error> {
        if self.changes.is_none() {
            self.changes = Some(HostChanges::begin(&self.changes_folder)?);
        }
        Ok(self.changes.as_mut().expect("it was put there"))
    }

    fn scratch(&mut self, parent: &Path, no_cow: bool) -> Result<&Scratch, Error> {
        // Programs run in directories of their own.
        let parent =
            &std::path::absolute(parent).map_err(|error| Error::io("find", parent, error))?;
        let key = (parent.to_owned(), no_cow);
        if !self.scratches.contains_key(&key) {
            let scratch = Scratch::create(parent).map_err(|error| Error::Refused {
                what: "to make files".to_owned(),
                why: error.to_string(),
            })?;
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

    /// Claims a device, if its serial number is the confirmed one.
    fn claim(&mut self, path: &Path, serial: &str) -> Result<(), Error> {
        if !self.devices.contains_key(path) {
            let device = ClaimedDevice::claim(path).map_err(|refused| refusal(path, &refused))?;
            self.devices.insert(path.to_owned(), device);
        }
        let identity = &self.devices[path].marker().identity;
        if identity != serial {
            return Err(Error::Refused {
                what: format!("to write on {}", path.display()),
                why: format!("its serial number is {identity}, and {serial} was confirmed"),
            });
        }
        Ok(())
    }

    fn make(&mut self, configuration: &Configuration, cancel: &Cancel) -> Result<Place, Error> {
        let size = configuration.size.0;
        match &configuration.storage {
            Storage::File { directory, no_cow } => {
                let parent = directory.clone().unwrap_or_else(|| self.directory.clone());
                let name = self.name("disk");
                let scratch = self.scratch(&parent, *no_cow)?;
                let path = image_file::create(scratch, &name, configuration, cancel)?;
                Ok(Place {
                    path,
                    offset: 0,
                    length: size,
                    is_device: false,
                })
            }
            Storage::Device {
                path,
                serial,
                scheduler: _,
            } => {
                self.claim(path, serial)?;
                let usable = self.devices[path].usable();
                Ok(Place {
                    path: path.clone(),
                    offset: usable.start,
                    length: size.min(usable.end - usable.start),
                    is_device: true,
                })
            }
            Storage::ThinVolume {
                group,
                chunk_bytes,
                zero,
            } => {
                let pool = self.name(&format!("{}{}", host_changes::PREFIX, std::process::id()));
                let path = PathBuf::from(format!("/dev/{group}/{}", host_changes::volume(&pool)));
                self.changes()?.make(Change::ThinPool {
                    group: group.clone(),
                    pool,
                    volume_bytes: size,
                    // The pool holds all of the volume, so that it never waits for more.
                    pool_bytes: size + size / 8 + 2 * chunk_bytes,
                    chunk_bytes: *chunk_bytes,
                    zero: *zero,
                })?;
                Ok(Place {
                    path,
                    offset: 0,
                    length: size,
                    is_device: true,
                })
            }
        }
    }

    fn remove(&mut self, configuration: &Configuration, place: &Place) -> Result<(), Error> {
        match &configuration.storage {
            Storage::File { .. } => {
                fs::remove_file(&place.path)
                    .map_err(|error| Error::io("remove", &place.path, error))?;
                if let Some(parent) = place.path.parent().and_then(|path| File::open(path).ok()) {
                    // A file system that discards does it when this is on disk, and not while the next is measured.
                    let _ = rustix::fs::fsync(&parent);
                }
                Ok(())
            }
            Storage::Device { .. } => Ok(()),
            Storage::ThinVolume { group, .. } => {
                let Some(changes) = &mut self.changes else {
                    return Ok(());
                };
                let volume = place.path.file_name().unwrap_or_default().to_string_lossy();
                changes.take_back_one(|change| {
                    matches!(change, Change::ThinPool { group: other, pool, .. }
                        if other == group && host_changes::volume(pool) == volume)
                })
            }
        }
    }
}

/// A note on a loop device that the host's page cache stands before.
fn buffered_loop_note(path: &Path) -> Option<String> {
    let number = fs::metadata(path).ok()?.rdev();
    let sysfs = format!(
        "/sys/dev/block/{}:{}",
        rustix::fs::major(number),
        rustix::fs::minor(number)
    );
    safety::is_buffered(Path::new(&sysfs)).then(|| {
        "the device is a loop device without direct I/O: this measures the host's page cache"
            .to_owned()
    })
}

/// A note on a file system that is not on a disk of this host.
fn file_system_note(path: &Path) -> Option<String> {
    let kind = rustix::fs::statfs(path).ok()?.f_type;
    let name = match u64::try_from(kind).ok()? & 0xffff_ffff {
        0x0102_1994 => "tmpfs: this measures memory",
        0x8584_58f6 => "ramfs: this measures memory",
        0x794c_7630 => "overlayfs: its upper layer is measured",
        0x6969 => "NFS: this measures a network",
        0x6573_5546 => "FUSE: this measures a program",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB: this measures a network",
        _ => return None,
    };
    Some(format!("the files are on {name}"))
}
