//! A guest kernel on QEMU's device models, with several disks in one boot.

mod line;
mod session;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::time::Duration;

use vmdisk_facts::Target;
use vmdisk_model::FrontendKind;

use super::fio::{self, InstalledFio, IoEngine};
use super::storage::PreparedStorage;
use super::version;
use super::workspace::Workspace;
use crate::guest::message::PLACEHOLDER;
use crate::guest::{Archive, Kernel, fill, libraries};
use crate::programs;
use crate::{
    Accelerator, Cancel, CellId, CellView, Emit, Engine, EngineKind, Error, Load, Phase,
    RunContext, Storage, Workload,
};

const PROGRAM: &str = "qemu-system-x86_64";

/// Maximum number of disks in one boot, so that each has a slot on the PCI bus.
const MAX_DISKS: usize = 10;

/// Returns the disk of a cell: cells on steady storage share the disk of their configuration.
fn disk_of<'a>(cell: &CellView<'a>) -> (&'a str, Option<CellId>) {
    let fresh = (cell.phase == Phase::FirstTouch).then_some(cell.id);
    (&cell.configuration.name, fresh)
}

/// Splits the cells of a batch into boots, each of at most [`MAX_DISKS`] disks.
fn boots<'c, 'a>(cells: &'c [CellView<'a>]) -> Vec<&'c [CellView<'a>]> {
    let mut boots = Vec::new();
    let mut first = 0;
    let mut disks = BTreeSet::new();
    for (index, cell) in cells.iter().enumerate() {
        let disk = disk_of(cell);
        if disks.len() == MAX_DISKS && !disks.contains(&disk) {
            boots.push(&cells[first..index]);
            first = index;
            disks.clear();
        }
        disks.insert(disk);
    }
    boots.push(&cells[first..]);
    boots
}

/// Drivers that every guest needs.
const DRIVERS: &[&str] = &["virtio_pci", "virtio_console"];

/// Disk drivers; without one of them a kernel cannot run the cells that need it.
const DISK_DRIVERS: &[&str] = &[
    "virtio_blk",
    "virtio_scsi",
    "sd_mod",
    "nvme",
    "ahci",
    "ext4",
];

/// Guests under QEMU.
#[derive(Debug)]
pub(crate) struct Guest {
    workspace: Workspace,
    target: Target,
    kernel: Result<Kernel, String>,
    /// The I/O engine of fio in the guest.
    fio: Option<IoEngine>,
    /// The archive of programs and drivers, identical in each boot.
    archive: Option<Vec<u8>>,
    /// The configurations whose disks behind sockets were filled.
    filled: BTreeSet<String>,
    /// The accelerator, once a guest has started, with the reason if it is not KVM.
    accelerator: Option<(Accelerator, String)>,
}

impl Guest {
    pub(crate) fn new(workspace: &Workspace) -> Self {
        Self {
            workspace: workspace.clone(),
            target: Target::default(),
            kernel: workspace.kernel().map_err(|error| error.to_string()),
            fio: None,
            archive: None,
            filled: BTreeSet::new(),
            accelerator: None,
        }
    }

    fn kernel(&self) -> Result<&Kernel, Error> {
        self.kernel.as_ref().map_err(|why| {
            Error::missing("a kernel for the guest", "the guest engine", why.clone())
        })
    }

    /// Builds the archive used in each boot.
    fn build_archive(&self) -> Result<Vec<u8>, Error> {
        let kernel = self.kernel()?;
        let mut archive = Archive::default();
        for folder in ["dev", "proc", "sys", "tmp", "mnt"] {
            archive.folder(folder);
        }
        archive.character_device("dev/console", 5, 1);
        libraries::add_program(&mut archive, &self.workspace.guest_program()?, "init")?;
        if self.fio.is_some()
            && let Some(fio) = libraries::find("fio")
        {
            libraries::add_program(&mut archive, &fio, "bin/fio")?;
        }
        if let Some(mke2fs) = libraries::find("mke2fs") {
            libraries::add_program(&mut archive, &mke2fs, "bin/mke2fs")?;
        }
        let mut wanted = DRIVERS.to_vec();
        wanted.extend(DISK_DRIVERS.iter().filter(|driver| kernel.has(driver)));
        for (number, (name, bytes)) in kernel.closure(&wanted)?.into_iter().enumerate() {
            archive.file(&format!("modules/{number:03}-{name}.ko"), bytes, false);
        }
        Ok(archive.bytes())
    }

    /// Returns the text of a fio job with a placeholder for the disk; `None` for a load without fio.
    fn job(
        &self,
        workload: &Workload,
        phase: Phase,
        storage: &PreparedStorage,
        seed: u64,
    ) -> Option<String> {
        let Load::Blocks(_) = &workload.load else {
            return None;
        };
        let target = fio::Target::File {
            path: PLACEHOLDER,
            offset: storage.offset,
            length: storage.length,
            is_buffered: false,
        };
        Some(fio::job(workload, phase, target, self.fio?, seed))
    }

    /// Returns the jobs that fill a disk behind a socket, unless it was filled.
    fn fills(&self, disk: &line::DiskOfBoot<'_>, seed: u64) -> Vec<String> {
        let configuration = disk.configuration;
        if disk.storage.socket_queues().is_none() || self.filled.contains(&configuration.name) {
            return Vec::new();
        }
        let workload = fill::workload(disk.storage.length);
        let seeds = (0..configuration.fills).map(|fill| seed.wrapping_add(2 * u64::from(fill)));
        seeds
            .filter_map(|seed| self.job(&workload, Phase::FirstTouch, &disk.storage, seed))
            .collect()
    }

    /// Returns the accelerators to try: KVM first, unless it is known not to work.
    fn attempts(&self) -> Vec<Accelerator> {
        match &self.accelerator {
            Some((known, _)) => vec![*known],
            // Opening /dev/kvm proves little; failing to open it rules KVM out.
            None if OpenOptions::new()
                .read(true)
                .write(true)
                .open("/dev/kvm")
                .is_ok() =>
            {
                vec![Accelerator::Kvm, Accelerator::Tcg]
            }
            None => vec![Accelerator::Tcg],
        }
    }

    /// Prepares the disks and tasks of one boot; emits an error for each cell without storage.
    fn tasks<'a>(
        &self,
        cells: &[CellView<'a>],
        context: &RunContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(Vec<line::DiskOfBoot<'a>>, Vec<session::TaskOfBoot<'a>>), Error> {
        let mut disks = Vec::new();
        let mut tasks = Vec::new();
        for cell in cells {
            context.cancel.check()?;
            let known = disks.iter().position(|disk: &line::DiskOfBoot<'_>| {
                cell.phase == Phase::Steady
                    && disk.is_steady
                    && std::ptr::eq(disk.configuration, cell.configuration)
            });
            let disk = match known {
                Some(disk) => disk,
                None => {
                    let storage = self.workspace.storage(cell, context.cancel);
                    let prepared = storage.and_then(|storage| {
                        let guard = self
                            .workspace
                            .prepare_sample(cell.configuration, &storage)?;
                        Ok((storage, guard))
                    });
                    let (storage, guard) = match prepared {
                        Ok(prepared) => prepared,
                        Err(error) if error.ends_run() => return Err(error),
                        Err(error) => {
                            emit(cell.id, Err(error));
                            continue;
                        }
                    };
                    disks.push(line::DiskOfBoot {
                        configuration: cell.configuration,
                        storage,
                        is_steady: cell.phase == Phase::Steady,
                        _guard: guard,
                    });
                    disks.len() - 1
                }
            };
            let seed = context.seed.wrapping_add(cell.id.0 as u64);
            let is_first = known.is_none();
            let fills = is_first.then(|| self.fills(&disks[disk], seed));
            let job =
                |workload: &Workload| self.job(workload, cell.phase, &disks[disk].storage, seed);
            let ramp = cell.workload.ramp(cell.phase);
            let (ramp, fio) = (ramp.and_then(|ramp| job(&ramp)), job(cell.workload));
            tasks.push(session::TaskOfBoot {
                cell: *cell,
                disk,
                seed,
                fills: fills.unwrap_or_default(),
                ramp,
                fio,
            });
        }
        Ok((disks, tasks))
    }

    /// Boots one guest for some cells.
    fn boot(
        &mut self,
        cells: &[CellView<'_>],
        context: &RunContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), Error> {
        let (disks, tasks) = self.tasks(cells, context, emit)?;
        if tasks.is_empty() {
            return Ok(());
        }
        let mut reason = match &self.accelerator {
            Some((_, reason)) => reason.clone(),
            None => "/dev/kvm cannot be opened".to_owned(),
        };
        let mut booted = Ok(());
        let mut given = Vec::<CellId>::new();
        for accelerator in self.attempts() {
            let is_proven = self.accelerator.is_some();
            let session = session::Session {
                workspace: &self.workspace,
                target: &self.target,
                kernel: self.kernel()?,
                archive: self.archive.as_deref().unwrap_or_default(),
                accelerator,
                is_proven,
                reason: &reason,
            };
            let outcome = session.run(&disks, &tasks, context, &mut |id, result| {
                given.push(id);
                emit(id, result);
            });
            match outcome {
                Err(session::Failure::NeverUp(why))
                    if accelerator == Accelerator::Kvm && !is_proven =>
                {
                    reason = format!("/dev/kvm is present and boots nothing: {why}");
                    continue;
                }
                Err(failure) => booted = Err(failure.into()),
                Ok(()) => {
                    let names = disks.iter().map(|disk| disk.configuration.name.clone());
                    self.filled.extend(names);
                    booted = Ok(());
                }
            }
            if !given.is_empty() || booted.is_ok() {
                self.accelerator = Some((accelerator, reason.clone()));
            }
            break;
        }
        drop(disks);
        for cell in cells {
            self.workspace.discard_fresh(cell)?;
        }
        booted
    }
}

impl Engine for Guest {
    fn kind(&self) -> EngineKind {
        EngineKind::Guest
    }

    fn workspace(&self) -> Option<&Workspace> {
        Some(&self.workspace)
    }

    fn versions(&mut self, cells: &[CellView<'_>]) -> Result<BTreeMap<String, String>, Error> {
        let (text, target) = version::of_qemu(PROGRAM)?;
        self.target = target;
        let mut versions = BTreeMap::from([(PROGRAM.to_owned(), text)]);
        versions.insert(
            "guest-kernel".to_owned(),
            self.kernel()?
                .image
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        );
        let is_of_fio = |cell: &CellView<'_>| matches!(cell.workload.load, Load::Blocks(_));
        if cells.iter().any(is_of_fio) {
            let InstalledFio { version, io_engine } = fio::installed()?;
            self.fio = Some(fio::needed(io_engine)?);
            versions.insert("fio".to_owned(), version);
        }
        Ok(versions)
    }

    fn refuses(&self, cell: &CellView<'_>) -> Option<String> {
        if !programs::is_installed(PROGRAM) {
            return Some(format!("{PROGRAM} is not installed"));
        }
        let kernel = match &self.kernel {
            Ok(kernel) => kernel,
            Err(why) => return Some(format!("a kernel for the guest is missing: {why}")),
        };
        let configuration = cell.configuration;
        let driver = match configuration.guest.frontend_kind(configuration.disk()) {
            FrontendKind::VirtioBlk | FrontendKind::VhostUserBlk => "virtio_blk",
            FrontendKind::VirtioScsi => "virtio_scsi",
            FrontendKind::Nvme => "nvme",
            FrontendKind::Sata => "ahci",
            other @ (FrontendKind::Scsi
            | FrontendKind::Ide
            | FrontendKind::Usb
            | FrontendKind::Fdc
            | FrontendKind::Sd
            | FrontendKind::Foreign) => {
                return Some(format!("the guest has no driver for {}", other.name()));
            }
        };
        if !kernel.has(driver) {
            return Some(format!("the guest's kernel has no driver `{driver}`"));
        }
        if matches!(cell.workload.load, Load::Blocks(_)) {
            if !programs::is_installed("fio") {
                return Some("fio is not installed".to_owned());
            }
        } else {
            if libraries::find("mke2fs").is_none() {
                return Some("mke2fs (e2fsprogs) is not installed".to_owned());
            }
            if matches!(configuration.storage, Storage::Device { .. }) {
                return Some("a file system would overwrite the marker on the device".to_owned());
            }
            if cell.phase == Phase::Steady {
                return Some(
                    "an install replay starts on an empty disk: use the `first-touch` phase"
                        .to_owned(),
                );
            }
        }
        Workspace::refuses(configuration, cell.phase == Phase::FirstTouch)
    }

    fn batch(&self, cell: &CellView<'_>) -> String {
        let guest = &cell.configuration.guest;
        // A daemon maps the guest's memory, and its disks have no serial number by which two could be distinguished.
        let served = match (cell.configuration.is_served_by_daemon, cell.phase) {
            (false, _) => String::new(),
            (true, Phase::Steady) => cell.configuration.name.clone(),
            (true, Phase::FirstTouch) => cell.id.0.to_string(),
        };
        // QEMU is pinned as a whole.
        let launcher = cell.configuration.launcher.join(" ");
        format!(
            "{:?} {:?} {:?} {:?} {launcher} {served}",
            guest.machine, guest.vcpus, guest.memory, guest.memory_backing
        )
    }

    fn overhead(&self, batch: &[CellView<'_>]) -> Duration {
        let boot = match &self.accelerator {
            Some((Accelerator::Kvm, _)) => Duration::from_secs(2),
            Some((Accelerator::Tcg | Accelerator::NoGuest, _)) | None => Duration::from_secs(6),
        };
        let disks = batch.iter().map(disk_of).collect::<BTreeSet<_>>().len();
        // Each boot but the last has at least as many cells as disks, in any order.
        let boots = if disks <= MAX_DISKS {
            1
        } else {
            batch.len().div_ceil(MAX_DISKS)
        };
        boot * u32::try_from(boots).unwrap_or(u32::MAX)
    }

    fn space(&self, cells: &[CellView<'_>]) -> Vec<(PathBuf, u64)> {
        self.workspace.space(cells, MAX_DISKS)
    }

    fn prepare(&mut self, cells: &[CellView<'_>], cancel: &Cancel) -> Result<(), Error> {
        if self.archive.is_none() {
            self.archive = Some(self.build_archive()?);
        }
        self.workspace.prepare(cells, cancel)
    }

    fn run(
        &mut self,
        batch: &[CellView<'_>],
        context: &RunContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), Error> {
        for cells in boots(batch) {
            self.boot(cells, context, emit)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PlanOptions, read_plan};

    #[test]
    fn a_boot_has_ten_disks_and_as_many_cells_as_they_serve() {
        let text = "version: 1\nname: t\nquestion: q\nsize: 1M\nphases: [first-touch, steady]\n\
                    workloads: [4k-random-write-qd1, 4k-random-write-qd2, 4k-random-write-qd3]\n\
                    fixed: {engine: guest}\nmatrix: {cache: [none, writeback, writethrough, directsync]}\n";
        let plan = read_plan(text, "t", &PlanOptions::default()).unwrap();
        let cells: Vec<CellView<'_>> = plan.views().collect();
        assert_eq!(cells.len(), 24);
        let (fresh, steady): (Vec<_>, Vec<_>) = cells
            .iter()
            .copied()
            .partition(|cell| cell.phase == Phase::FirstTouch);
        let sizes = |cells: &[CellView<'_>]| -> Vec<usize> {
            boots(cells).iter().map(|boot| boot.len()).collect()
        };
        assert_eq!(sizes(&fresh), [10, 2], "each has its own disk");
        assert_eq!(sizes(&steady), [12], "three cells share a disk");
        for boot in boots(&cells) {
            let disks: BTreeSet<_> = boot.iter().map(disk_of).collect();
            assert!(disks.len() <= MAX_DISKS);
        }
        assert_eq!(boots(&cells).concat().len(), 24);
        let directory = tempfile::tempdir().unwrap();
        let guest = Guest::new(&Workspace::new(directory.path()));
        assert_eq!(guest.overhead(&fresh), 2 * guest.overhead(&steady));
        assert_eq!(guest.space(&fresh)[0].1, 10 << 20);
        assert_eq!(guest.space(&steady)[0].1, 4 << 20);
        assert_eq!(guest.space(&cells)[0].1, 14 << 20);
    }
}
