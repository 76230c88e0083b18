//! Trials of a guest's disks on a real QEMU: the command to start, and the meaning of its messages.
//!
//! Images of the guest are never opened: small images of the same formats replace them, because a QEMU that
//! opens an image for writing takes locks, and may write before the guest does.

use std::collections::{BTreeMap, BTreeSet};

use crate::rules::Severity;
use vmdisk_model::{
    Backend, BackendSource, Backing, Bytes, Device, Disk, DiskField, Domain, DomainField,
    DomainType, FieldPath, Format, Image, MachineType, MemoryAccess, MemoryBacking, MemorySource,
    Protocol, Scope, Slice, TargetBus, VhostUserSocket,
};
use vmdisk_qemu::{Argument, ArgumentValue, QemuOption, StorageDaemon, UnmodeledProperty};

use crate::{Document, Source, Target};

/// Size of a replacement disk.
const DISK_BYTES: u64 = 512 << 20;

/// Size of a replacement floppy disk.
const FLOPPY_BYTES: u64 = 1440 << 10;

/// Memory of the guest that is tried; it never runs.
const MEMORY: Bytes = Bytes(256 << 20);

/// The programs to start for a trial of a guest's disks.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Trial {
    /// The images to be made before the start.
    pub stand_ins: Vec<StandIn>,
    /// The daemons to start before QEMU: they replace the daemons that serve disks of the guest.
    pub daemons: Vec<StorageDaemon>,
    /// The parts that are not tried, with reasons.
    pub not_tried: Vec<(FieldPath, String)>,
    arguments: Vec<Argument>,
}

/// An image that replaces one of the guest's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StandIn {
    /// Its path, in the folder that was named.
    pub path: String,
    /// The path of the guest's image.
    pub stands_for: String,
    /// Bytes that are in it.
    pub head: Vec<u8>,
    /// Where these begin.
    pub offset: u64,
    /// Its size; all else is a hole.
    pub bytes: u64,
}

/// A message of a QEMU about a guest or one of its disks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QemuMessage {
    /// The subject.
    pub at: FieldPath,
    /// How much it matters.
    pub severity: Severity,
    /// QEMU's words, with the guest's own names.
    pub message: String,
    /// The option concerned; `None` if QEMU names none.
    pub option: Option<String>,
}

/// The result of trying a guest.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct QemuTrialOutcome {
    /// The QEMU, such as `QEMU 7.2.22`.
    pub qemu: String,
    /// The messages.
    pub messages: Vec<QemuMessage>,
    /// The parts that were not tried, with reasons.
    pub not_tried: Vec<(FieldPath, String)>,
}

impl Trial {
    /// The trial of a guest on a QEMU; replacements of its images must be created in `folder`, an absolute path.
    /// `has_storage_daemon` says whether `qemu-storage-daemon` is available to replace the daemons of the guest.
    pub fn new(domain: &Domain, target: &Target, folder: &str, has_storage_daemon: bool) -> Self {
        let mut trial = Trial::default();
        let is_served = |disk: &Disk| matches!(disk.backend.source, BackendSource::VhostUser(_));
        // Bare disks leave the memory open.
        let shares_memory = domain.scope == Scope::DisksOnly || domain.memory_backing.is_shared();
        let needs_shared = shares_memory && domain.disks.iter().any(is_served);
        let mut guest = without_disks(domain, needs_shared);
        let guest_arch = guest.architecture.map(|architecture| architecture.as_str());
        if let (Some(arch), Some(of_qemu)) = (guest_arch, target.arch.as_deref())
            && arch != of_qemu
        {
            let why = format!("the guest is of {arch}, and this QEMU emulates {of_qemu}");
            trial
                .not_tried
                .push((FieldPath::Domain(DomainField::Architecture), why));
            return trial;
        }
        let mut folder = Folder {
            path: folder,
            names: BTreeMap::new(),
            has_storage_daemon,
            shares_memory,
        };
        // The numbers of the disks that are tried, in the guest's own numbering.
        let mut numbers = Vec::new();
        for (index, disk) in domain.disks.iter().enumerate() {
            match folder.stand_in(disk) {
                Ok((disk, left_out)) => {
                    let at = |field| FieldPath::Disk(index, field);
                    let left_out = left_out.into_iter().map(|why| (at(DiskField::Source), why));
                    trial.not_tried.extend(left_out);
                    numbers.push(index);
                    guest.disks.push(disk);
                }
                Err(why) => trial
                    .not_tried
                    .push((FieldPath::Disk(index, DiskField::Disk), why)),
            }
        }
        trial.stand_ins = folder.names.into_values().collect();
        let options = vmdisk_qemu::Options {
            target: target.clone(),
        };
        trial.write(&mut guest, &mut numbers, &options);
        for argument in &mut trial.arguments {
            argument.origin = renumbered(argument.origin, &numbers);
        }
        // Default number of queues of a device: one for each CPU.
        let queues = guest.vcpus.unwrap_or(1).clamp(1, MAX_QUEUES);
        for daemon in &mut trial.daemons {
            set_queues(daemon, queues);
        }
        trial
    }

    /// Switches locks off where the command line of the guest does, so that QEMU refuses what it refuses of the guest.
    #[must_use]
    pub fn with_locks_of(mut self, document: &Document) -> Self {
        let Source::QemuCommandLine(source) = &document.source else {
            return self;
        };
        let is_off = |kept: &&UnmodeledProperty| {
            let text = kept.span.slice(&document.text).unwrap_or_default();
            kept.key.rsplit('.').next() == Some("locking") && text.contains("off")
        };
        let unlocked = source.kept.iter().filter(is_off).map(|kept| kept.at.disk());
        let unlocked: BTreeSet<Option<usize>> = unlocked.collect();
        for argument in &mut self.arguments {
            let is_unlocked = unlocked.contains(&argument.origin.disk());
            if let ArgumentValue::Json(node) = &mut argument.value
                && is_unlocked
                && matches!(node.text("driver"), Some("file" | "host_device"))
            {
                node.push("locking", "off");
            }
        }
        self
    }

    /// Writes the command line of `guest`. Rules report invalid settings: a disk that cannot be written is removed
    /// from the guest and from the `numbers` of its disks, and the others are tried without it.
    fn write(
        &mut self,
        guest: &mut Domain,
        numbers: &mut Vec<usize>,
        options: &vmdisk_qemu::Options,
    ) {
        loop {
            let problems = match vmdisk_qemu::write(guest, options) {
                Ok(line) => {
                    self.arguments = line.arguments;
                    self.daemons = line.daemons;
                    return;
                }
                Err(problems) => problems.0,
            };
            let mut bad: Vec<usize> = problems
                .iter()
                .filter_map(|problem| problem.at.disk())
                .collect();
            for problem in problems {
                self.not_tried
                    .push((renumbered(problem.at, numbers), problem.message));
            }
            bad.sort_unstable();
            bad.dedup();
            bad.retain(|index| *index < numbers.len());
            if bad.is_empty() {
                return;
            }
            for index in bad.into_iter().rev() {
                guest.disks.remove(index);
                numbers.remove(index);
            }
        }
    }

    /// True if there is anything to start a QEMU with.
    pub fn is_possible(&self) -> bool {
        !self.arguments.is_empty()
    }

    /// The words to start QEMU with, without the devices of these numbers.
    pub fn words(&self, without: &[usize]) -> Vec<String> {
        let used = self
            .arguments
            .iter()
            .enumerate()
            .filter(|(number, _)| !without.contains(number));
        used.flat_map(|(_, argument)| {
            let words = [Some(argument.option.to_string()), argument.value.word()];
            words.into_iter().flatten()
        })
        .collect()
    }

    /// The numbers of devices without dependents: the trial can continue without them.
    pub fn disks(&self) -> Vec<usize> {
        let numbered = self.arguments.iter().enumerate();
        numbered
            .filter(|(_, argument)| {
                argument.option == QemuOption::Device
                    && (argument.property("drive").is_some()
                        || argument.property("chardev").is_some())
            })
            .map(|(number, _)| number)
            .collect()
    }

    /// The meaning of a line printed by QEMU, and the number of the option concerned, if it names one.
    pub fn understand(&self, line: &str) -> Option<(QemuMessage, Option<usize>)> {
        let line = line.trim();
        // Missing features of an emulated CPU are not about disks.
        if line.is_empty() || line.contains("TCG doesn't support requested feature") {
            return None;
        }
        for (number, argument) in self.arguments.iter().enumerate() {
            let word = argument.value.word().unwrap_or_default();
            let option = format!("{} {word}", argument.option);
            if let Some((_, message)) = line.split_once(&format!("{option}: ")) {
                return Some((
                    self.message(argument.origin, message, Some(option)),
                    Some(number),
                ));
            }
        }
        // Its own name stands first; a line without it is a hint to the one before.
        let (program, message) = line.split_once(": ")?;
        if program.contains(' ') {
            return None;
        }
        let at = FieldPath::Domain(if message.contains("achine") {
            DomainField::Machine
        } else {
            DomainField::Domain
        });
        Some((self.message(at, message, None), None))
    }

    /// Reports that QEMU ended without a message about an option.
    pub fn ended(&self, number: Option<usize>, how: &str) -> QemuMessage {
        let argument = number.and_then(|number| self.arguments.get(number));
        let at = argument.map_or(FieldPath::Domain(DomainField::Domain), |argument| {
            argument.origin
        });
        let option = argument.map(|argument| {
            format!(
                "{} {}",
                argument.option,
                argument.value.word().unwrap_or_default()
            )
        });
        QemuMessage {
            at,
            severity: Severity::Error,
            message: how.to_owned(),
            option: option.map(|option| self.with_own_names(&option)),
        }
    }

    fn message(&self, at: FieldPath, message: &str, option: Option<String>) -> QemuMessage {
        let (severity, message) = match message.split_once("warning: ") {
            Some((_, message)) => (Severity::Advice, message),
            None => (Severity::Error, message),
        };
        QemuMessage {
            at,
            severity,
            message: self.with_own_names(message),
            option: option.map(|option| self.with_own_names(&option)),
        }
    }

    fn with_own_names(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for stand_in in &self.stand_ins {
            text = text.replace(&stand_in.path, &stand_in.stands_for);
        }
        text
    }
}

/// The guest to try, before its disks are added: a machine of its own if only the disks are written.
fn without_disks(domain: &Domain, needs_shared_memory: bool) -> Domain {
    let mut guest = Domain {
        domain_type: Some(DomainType::Qemu),
        memory: Some(MEMORY),
        memory_backing: MemoryBacking {
            source: needs_shared_memory.then_some(MemorySource::Memfd),
            access: needs_shared_memory.then_some(MemoryAccess::Shared),
            ..MemoryBacking::default()
        },
        disks: Vec::new(),
        ..domain.clone()
    };
    if guest.scope == Scope::DisksOnly {
        let is_ide = |disk: &Disk| disk.frontend.effective_bus() == TargetBus::Ide;
        let machine = if domain.disks.iter().any(is_ide) {
            "pc"
        } else {
            "q35"
        };
        guest.scope = Scope::WholeGuest;
        guest.machine = Some(MachineType::new(machine));
    }
    guest
}

/// Sets the number of queues of the exports that leave it open.
fn set_queues(daemon: &mut StorageDaemon, queues: u32) {
    for argument in &mut daemon.arguments {
        if let (QemuOption::Export, ArgumentValue::Json(export)) =
            (argument.option, &mut argument.value)
            && export.get("num-queues").is_none()
        {
            export.push("num-queues", queues);
        }
    }
}

/// A field in the guest's own numbering of disks.
fn renumbered(at: FieldPath, numbers: &[usize]) -> FieldPath {
    let own = |index: usize| numbers.get(index).copied().unwrap_or(index);
    match at {
        FieldPath::Disk(index, field) => FieldPath::Disk(own(index), field),
        FieldPath::Image(index, depth, field) => FieldPath::Image(own(index), depth, field),
        FieldPath::Iotune(index, field) => FieldPath::Iotune(own(index), field),
        other @ (FieldPath::Domain(_)
        | FieldPath::Controller(..)
        | FieldPath::IoThread(..)
        | FieldPath::ThrottleGroup(..)) => other,
    }
}

/// The directory of the replacements, and the replacements by the path they replace.
struct Folder<'a> {
    path: &'a str,
    names: BTreeMap<String, StandIn>,
    /// True if a daemon can be started.
    has_storage_daemon: bool,
    /// True if the guest's memory may be mapped by a daemon.
    shares_memory: bool,
}

impl Folder<'_> {
    /// A disk on stand-ins, and what is left out of it; or why it cannot be tried.
    fn stand_in(&mut self, disk: &Disk) -> Result<(Disk, Vec<String>), String> {
        if disk.frontend.effective_device() == Device::Lun {
            return Err("it passes SCSI commands to a device, which cannot be replaced".to_owned());
        }
        let mut left_out = Vec::new();
        let mut backend = disk.backend.clone();
        let source = match &disk.backend.source {
            BackendSource::Image(image) => {
                let is_floppy = disk.frontend.effective_device() == Device::Floppy;
                BackendSource::Image(Box::new(self.image(image, is_floppy, &mut left_out)))
            }
            BackendSource::Empty => BackendSource::Empty,
            BackendSource::VhostUser(socket) => {
                if !self.shares_memory {
                    let why = "a daemon serves it, which could not map the guest's private memory";
                    return Err(why.to_owned());
                }
                if !self.has_storage_daemon {
                    let why =
                        "a daemon serves it, and no qemu-storage-daemon is available to replace it";
                    return Err(why.to_owned());
                }
                left_out
                    .push("a qemu-storage-daemon replaces the daemon that serves it".to_owned());
                if socket.served.is_none() {
                    // Options of an image that is not known are the other daemon's business.
                    backend = Backend::new(BackendSource::Empty);
                }
                let unknown = Image::new(Some(Format::Raw), Protocol::Other(String::new()));
                let mut of_image = Vec::new();
                let served = socket.served.as_deref().unwrap_or(&unknown);
                let served = self.image(served, false, &mut of_image);
                if socket.served.is_some() {
                    left_out.append(&mut of_image);
                }
                BackendSource::VhostUser(VhostUserSocket {
                    path: format!("{}/{}.sock", self.path, self.names.len()),
                    served: Some(Box::new(served)),
                    ..socket.clone()
                })
            }
        };
        let disk = Disk {
            frontend: disk.frontend.clone(),
            backend: Backend { source, ..backend },
        };
        Ok((disk, left_out))
    }

    fn image(&mut self, image: &Image, is_floppy: bool, left_out: &mut Vec<String>) -> Image {
        let format = match image.format {
            Some(Format::Qcow2) => Format::Qcow2,
            Some(Format::Raw) | None => Format::Raw,
            Some(other) => {
                left_out.push(format!("a raw image replaces one of format {other}"));
                Format::Raw
            }
        };
        let slice = image.slice.filter(|slice| is_possible(*slice, format));
        for (is_there, what) in [
            (
                image.encryption.is_some(),
                "the encryption, for which a key would take seconds to make,",
            ),
            (image.data_file.is_some(), "the data file"),
            (image.slice.is_some() && slice.is_none(), "the slice"),
            (image.reservations.is_some(), "reservations"),
        ] {
            if is_there {
                left_out.push(format!("{what} of the image is left out"));
            }
        }
        let host_path = image.host_path();
        if host_path.is_none() {
            left_out.push("a file replaces storage outside this host".to_owned());
        }
        let number = self.names.len();
        // An image that the guest uses twice is replaced once: QEMU then detects two writers.
        let name = host_path.map_or_else(|| format!("storage {number}"), str::to_owned);
        let key = match slice {
            // Each part of a file has a file of its own, as large as that takes.
            Some(Slice { offset, size }) => format!("{name} from {offset} for {size}"),
            None => name.clone(),
        };
        let path = format!("{}/{number}.{format}", self.path);
        let bytes = match (format, is_floppy) {
            (Format::Qcow2, _) => QCOW2_CLUSTERS * CLUSTER,
            (_, true) => FLOPPY_BYTES,
            (_, false) => DISK_BYTES,
        };
        let stand_in = self.names.entry(key).or_insert_with(|| StandIn {
            path,
            stands_for: name,
            head: if format == Format::Qcow2 {
                qcow2()
            } else {
                Vec::new()
            },
            offset: slice.map_or(0, |slice| slice.offset),
            bytes: slice.map_or(bytes, |slice| slice.offset + slice.size),
        });
        let protocol = Protocol::File {
            path: stand_in.path.clone(),
        };
        Image {
            backing: match &image.backing {
                Backing::Image(below) => {
                    Backing::Image(Box::new(self.image(below, false, left_out)))
                }
                // The stand-in has none, whatever the guest's has.
                Backing::Unspecified | Backing::Terminated => Backing::Terminated,
            },
            metadata_cache_size: image.metadata_cache_size,
            slice,
            ..Image::new(Some(format), protocol)
        }
    }
}

/// Largest part of a file that has a stand-in; a hole costs nothing, but not every file system takes a larger one.
const LARGEST_SLICE: u64 = 1 << 40;

/// Queues that a stand-in serves at most; QEMU's devices have as many.
const MAX_QUEUES: u32 = 1024;

/// True if a part of a file can have a stand-in: within it there is room for an empty image.
fn is_possible(slice: Slice, format: Format) -> bool {
    let Slice { offset, size } = slice;
    let least = match format == Format::Qcow2 {
        true => QCOW2_CLUSTERS * CLUSTER,
        false => 512,
    };
    size >= least
        && offset
            .checked_add(size)
            .is_some_and(|end| end <= LARGEST_SLICE)
}

/// Bytes of a cluster.
const CLUSTER: u64 = 64 << 10;

/// The header, the table of reference counts, its one block, and the table of tables.
const QCOW2_CLUSTERS: u64 = 4;

/// An empty qcow2 image of version 3 and [`DISK_BYTES`].
fn qcow2() -> Vec<u8> {
    let size = usize::try_from(QCOW2_CLUSTERS * CLUSTER).expect("a quarter of a MiB");
    let mut image = vec![0; size];
    let mut put = |at: u64, bytes: &[u8]| {
        let at = usize::try_from(at).expect("within a quarter of a MiB");
        image[at..at + bytes.len()].copy_from_slice(bytes);
    };
    put(0, b"QFI\xfb");
    put(4, &3_u32.to_be_bytes());
    put(20, &16_u32.to_be_bytes());
    put(24, &DISK_BYTES.to_be_bytes());
    // One entry of the first table leads to 512 MiB.
    put(36, &1_u32.to_be_bytes());
    put(40, &(3 * CLUSTER).to_be_bytes());
    put(48, &CLUSTER.to_be_bytes());
    put(56, &1_u32.to_be_bytes());
    put(96, &4_u32.to_be_bytes());
    put(100, &104_u32.to_be_bytes());
    put(CLUSTER, &(2 * CLUSTER).to_be_bytes());
    for cluster in 0..QCOW2_CLUSTERS {
        put(2 * CLUSTER + 2 * cluster, &1_u16.to_be_bytes());
    }
    image
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Frontend;

    #[test]
    fn each_part_of_a_file_has_a_stand_in_with_room_for_it() {
        let disk = |target: &str, offset: u64, size: u64| {
            let mut image = Image::file("/srv/a.img", Format::Qcow2);
            image.slice = Some(Slice { offset, size });
            Disk::new(Frontend::new(target, TargetBus::Virtio), image)
        };
        let domain = Domain {
            scope: Scope::DisksOnly,
            disks: vec![
                disk("vda", 0, 1 << 20),
                disk("vdb", 1 << 20, 2 << 20),
                // Without room for an image, and without an end.
                disk("vdc", 0, 512),
                disk("vdd", u64::MAX, u64::MAX),
            ],
            ..Domain::default()
        };
        let trial = Trial::new(&domain, &Target::default(), "/folder", false);
        let room: Vec<(u64, u64)> = trial
            .stand_ins
            .iter()
            .map(|stand_in| (stand_in.offset, stand_in.bytes))
            .collect();
        let whole = QCOW2_CLUSTERS * CLUSTER;
        assert_eq!(room, [(0, whole), (0, 1 << 20), (1 << 20, 3 << 20)]);
        let told: Vec<usize> = trial
            .not_tried
            .iter()
            .filter_map(|(at, _)| at.disk())
            .collect();
        assert_eq!(told, [2, 3]);
    }
}
