//! Trying a guest's disks on a real QEMU: what to start it with, and what its words mean.
//!
//! Nothing of the guest's is opened: small images of the same formats stand for its storage, because a QEMU that
//! opens an image for writing takes locks, and may write before the guest does.

use std::collections::BTreeMap;

use vmdisk_model::{
    Backend, BackendSource, Backing, Bytes, Device, Disk, DiskField, Domain, DomainField,
    DomainType, FieldPath, Format, Image, MachineType, MemoryBacking, Protocol, Scope, TargetBus,
};
use vmdisk_qemu::{Argument, QemuOption};
use vmdisk_rules::Severity;

use crate::Target;

/// Size of what stands for a disk.
const DISK_BYTES: u64 = 512 << 20;

/// Size of what stands for a floppy disk.
const FLOPPY_BYTES: u64 = 1440 << 10;

/// Memory of the guest that is tried; it never runs.
const MEMORY: Bytes = Bytes(256 << 20);

/// What to start a QEMU with, to see what it says to a guest's disks.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    /// The images to be made before the start.
    pub stand_ins: Vec<StandIn>,
    /// What is not tried, and why.
    pub not_tried: Vec<(FieldPath, String)>,
    arguments: Vec<Argument>,
}

/// An image that stands for one of the guest's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandIn {
    /// Its path, in the folder that was named.
    pub path: String,
    /// What the guest's is called.
    pub stands_for: String,
    /// Its first bytes.
    pub head: Vec<u8>,
    /// Its size; what lies behind the first bytes is a hole.
    pub bytes: u64,
}

/// Something that a QEMU said to a guest's disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// What it is about.
    pub at: FieldPath,
    /// How much it matters.
    pub severity: Severity,
    /// QEMU's words, with the guest's own names.
    pub message: String,
    /// The option it was said to; `None` where QEMU names none.
    pub option: Option<String>,
}

/// What came of trying a guest.
#[derive(Clone, Debug, Default)]
pub struct Tried {
    /// The QEMU, such as `QEMU 7.2.22`.
    pub qemu: String,
    /// What it said.
    pub said: Vec<Said>,
    /// What was not tried, and why.
    pub not_tried: Vec<(FieldPath, String)>,
}

impl Trial {
    /// How to try a guest on a QEMU; stand-ins for its images are to be made in `folder`, an absolute path.
    pub fn new(domain: &Domain, target: &Target, folder: &str) -> Self {
        let mut trial = Trial::default();
        let mut guest = Domain {
            domain_type: Some(DomainType::Qemu),
            memory: Some(MEMORY),
            memory_backing: MemoryBacking::default(),
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
        let guest_arch = guest
            .architecture
            .map(|architecture| architecture.as_wire());
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
            ..vmdisk_qemu::Options::default()
        };
        // What nobody would write is told by rules; the other disks are tried without it.
        loop {
            let problems = match vmdisk_qemu::write(&guest, &options) {
                Ok(line) => {
                    trial.arguments = line.arguments;
                    break;
                }
                Err(problems) => problems.0,
            };
            let mut bad: Vec<usize> = problems
                .iter()
                .filter_map(|problem| problem.at.disk())
                .collect();
            for problem in problems {
                trial
                    .not_tried
                    .push((renumbered(problem.at, &numbers), problem.message));
            }
            bad.sort_unstable();
            bad.dedup();
            bad.retain(|index| *index < numbers.len());
            if bad.is_empty() {
                break;
            }
            for index in bad.into_iter().rev() {
                guest.disks.remove(index);
                numbers.remove(index);
            }
        }
        for argument in &mut trial.arguments {
            argument.origin = renumbered(argument.origin, &numbers);
        }
        trial
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

    /// The numbers of devices that nothing else hangs on: the trial can go on without them.
    pub fn disks(&self) -> Vec<usize> {
        let numbered = self.arguments.iter().enumerate();
        numbered
            .filter(|(_, argument)| {
                argument.option == QemuOption::Device && argument.property("drive").is_some()
            })
            .map(|(number, _)| number)
            .collect()
    }

    /// What a line of QEMU's means, and the number of the option it is about, where it names one.
    pub fn understand(&self, line: &str) -> Option<(Said, Option<usize>)> {
        let line = line.trim();
        // What an emulated CPU lacks says nothing of disks.
        if line.is_empty() || line.contains("TCG doesn't support requested feature") {
            return None;
        }
        for (number, argument) in self.arguments.iter().enumerate() {
            let word = argument.value.word().unwrap_or_default();
            let option = format!("{} {word}", argument.option);
            if let Some((_, message)) = line.split_once(&format!("{option}: ")) {
                return Some((
                    self.said(argument.origin, message, Some(option)),
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
        Some((self.said(at, message, None), None))
    }

    /// Says that QEMU ended over an option without a word.
    pub fn died(&self, number: Option<usize>, how: &str) -> Said {
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
        Said {
            at,
            severity: Severity::Error,
            message: how.to_owned(),
            option: option.map(|option| self.with_own_names(&option)),
        }
    }

    fn said(&self, at: FieldPath, message: &str, option: Option<String>) -> Said {
        let (severity, message) = match message.split_once("warning: ") {
            Some((_, message)) => (Severity::Advice, message),
            None => (Severity::Error, message),
        };
        Said {
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

/// Where stand-ins are made, and which there are by what they stand for.
struct Folder<'a> {
    path: &'a str,
    names: BTreeMap<String, StandIn>,
}

impl Folder<'_> {
    /// A disk on stand-ins, and what is left out of it; or why it cannot be tried.
    fn stand_in(&mut self, disk: &Disk) -> Result<(Disk, Vec<String>), String> {
        if disk.frontend.effective_device() == Device::Lun {
            return Err(
                "it passes SCSI commands to a device, and nothing stands for that".to_owned(),
            );
        }
        let mut left_out = Vec::new();
        let source = match &disk.backend.source {
            BackendSource::Image(image) => {
                let is_floppy = disk.frontend.effective_device() == Device::Floppy;
                BackendSource::Image(Box::new(self.image(image, is_floppy, &mut left_out)))
            }
            BackendSource::Empty => BackendSource::Empty,
            BackendSource::VhostUser(_) => {
                return Err("a daemon serves it, and none is started for a trial".to_owned());
            }
        };
        let disk = Disk {
            frontend: disk.frontend.clone(),
            backend: Backend {
                source,
                ..disk.backend.clone()
            },
        };
        Ok((disk, left_out))
    }

    fn image(&mut self, image: &Image, is_floppy: bool, left_out: &mut Vec<String>) -> Image {
        let format = match image.format {
            Some(Format::Qcow2) => Format::Qcow2,
            Some(Format::Raw) | None => Format::Raw,
            Some(other) => {
                left_out.push(format!("a raw image stands for one of format {other}"));
                Format::Raw
            }
        };
        for (is_there, what) in [
            (image.encryption.is_some(), "encryption"),
            (image.data_file.is_some(), "the data file"),
            (image.slice.is_some(), "the slice"),
            (image.reservations.is_some(), "reservations"),
        ] {
            if is_there {
                left_out.push(format!("{what} of the image is left out"));
            }
        }
        let host_path = image.host_path();
        if host_path.is_none() {
            left_out.push("a file stands for storage that is not of this host".to_owned());
        }
        let number = self.names.len();
        // What the guest has once is there once: QEMU sees whether two disks write to it.
        let key = host_path.map_or_else(|| format!("storage {number}"), str::to_owned);
        let stand_in = self.names.entry(key).or_insert_with_key(|key| StandIn {
            path: format!("{}/{number}.{format}", self.path),
            stands_for: key.clone(),
            head: if format == Format::Qcow2 {
                qcow2()
            } else {
                Vec::new()
            },
            bytes: match (format, is_floppy) {
                (Format::Qcow2, _) => QCOW2_CLUSTERS * CLUSTER,
                (_, true) => FLOPPY_BYTES,
                (_, false) => DISK_BYTES,
            },
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
            ..Image::new(Some(format), protocol)
        }
    }
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
