//! Factors of configurations, and the disks they describe.

use std::collections::BTreeMap;
use std::path::PathBuf;

use vmdisk_model::{
    AioMode, BackendSource, Bytes, CacheMode, Creation, Format, Image, Preallocation,
    Qcow2Creation, Qcow2Preallocation, VhostUserSocket,
};

use super::guest_choice::{FRONTENDS, GuestChoice};
use super::limits::Limits;
use super::pinning::pinning;
use super::{Configuration, Storage};
use crate::EngineKind;

/// Every factor with its description, in report order.
pub const FACTORS: [(&str, &str); 21] = [
    ("name", "name of a listed configuration"),
    (
        "engine",
        "engine: host-fio, storage-daemon, storage-daemon-nbd, guest",
    ),
    ("backend", "storage: file, device, thin, socket"),
    ("directory", "directory for files"),
    ("no-cow", "true: create files with chattr +C"),
    ("chunk", "unit of allocation of a thin pool"),
    ("zero", "true: zero the chunks of a thin pool before use"),
    ("scheduler", "I/O scheduler of the host's device"),
    (
        "direct",
        "false: fio on the host goes through the page cache",
    ),
    ("format", "raw or qcow2"),
    ("preallocation", "off, metadata, falloc, full"),
    ("cluster-size", "cluster size of qcow2"),
    ("cache", "cache mode"),
    ("aio", "threads, native, io_uring"),
    (
        "frontend",
        "virtio-blk, virtio-scsi, nvme, sata, vhost-user-blk",
    ),
    ("iothread", "true: use a separate event loop"),
    ("queues", "virtqueues"),
    ("vcpus", "virtual processors"),
    ("huge-pages", "true: guest memory in huge pages"),
    (
        "processors",
        "host processors of QEMU and its daemons, or of fio without QEMU, such as 0-1",
    ),
    (
        "numa-node",
        "the same with the processors and memory of a NUMA node; needs numactl",
    ),
];

/// The placeholder for the path of an image; engines set the real path.
pub(crate) const PLACEHOLDER: &str = "/to/be/replaced";

/// The word for [`Storage::Socket`].
const SOCKET: &str = "socket";

/// Values of factors, as words.
pub(crate) type Words = BTreeMap<String, String>;

/// The factors of a configuration, by whether its engine and storage use them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SortedFactors {
    /// Factors that affect the measurement.
    pub(crate) used: Words,
    /// Factors that request something the engine or the storage does not do.
    pub(crate) ignored: Words,
}

/// Sorts the factors of a configuration. Factors that request the default behaviour are in neither part.
///
/// # Errors
/// If the engine is unknown.
pub(crate) fn sort(words: &Words) -> Result<SortedFactors, String> {
    let engine = engine(words)?;
    let backend = word(words, "backend", "file");
    let mut sorted = SortedFactors::default();
    for (factor, value) in words {
        let into = if is_used(factor, engine, backend) {
            &mut sorted.used
        } else if backend != SOCKET && is_vacuous(factor, value, engine) {
            continue;
        } else {
            &mut sorted.ignored
        };
        into.insert(factor.clone(), value.clone());
    }
    Ok(sorted)
}

/// Returns true if a factor affects an engine on this kind of storage.
fn is_used(factor: &str, engine: EngineKind, backend: &str) -> bool {
    let is_of_storage = match factor {
        "directory" | "no-cow" | "preallocation" | "cluster-size" => backend == "file",
        "chunk" | "zero" => backend == "thin",
        "scheduler" => backend == "device",
        _ => true,
    };
    let is_of_image = matches!(
        factor,
        "format" | "preallocation" | "cluster-size" | "cache" | "aio"
    );
    if factor == "direct" {
        return engine == EngineKind::HostFio;
    }
    if backend == SOCKET {
        match factor {
            // Checked for every engine: it can only be vhost-user-blk.
            "frontend" => return true,
            "iothread" => return false,
            // No program of the run uses the disk.
            "processors" | "numa-node" if engine == EngineKind::StorageDaemon => return false,
            _ if is_of_image => return false,
            _ => {}
        }
    }
    let is_of_guest = matches!(factor, "frontend" | "queues" | "vcpus" | "huge-pages");
    is_of_storage
        && match engine {
            EngineKind::HostFio => !is_of_image && !is_of_guest && factor != "iothread",
            EngineKind::StorageDaemonNbd | EngineKind::QemuImgBench => {
                !is_of_guest && factor != "iothread"
            }
            // The daemon exports a queue for each job of the workload.
            EngineKind::StorageDaemon => !is_of_guest,
            EngineKind::Guest | EngineKind::Mock => true,
        }
}

/// Returns true if a value requests the behaviour of an unused factor.
fn is_vacuous(factor: &str, value: &str, engine: EngineKind) -> bool {
    match factor {
        "iothread" | "huge-pages" | "no-cow" => value == "false",
        "preallocation" => value == "off",
        "format" => engine == EngineKind::HostFio && value == "raw",
        _ => false,
    }
}

fn word<'a>(words: &'a Words, factor: &str, default: &'a str) -> &'a str {
    words.get(factor).map_or(default, String::as_str)
}

fn engine(words: &Words) -> Result<EngineKind, String> {
    let word = word(words, "engine", "storage-daemon");
    EngineKind::ALL
        .into_iter()
        .find(|kind| kind.name() == word)
        .ok_or_else(|| {
            let engines = EngineKind::ALL.into_iter();
            let real = engines.filter(|kind| *kind != EngineKind::Mock);
            unknown(
                "engine",
                word,
                &real.map(EngineKind::name).collect::<Vec<_>>(),
            )
        })
}

fn unknown(factor: &str, word: &str, known: &[&str]) -> String {
    format!("{factor}: `{word}` is not one of {}", known.join(", "))
}

/// The meaning of a combination of factors.
pub(crate) enum Meaning {
    /// A configuration and its engine.
    Configuration(Box<Configuration>, EngineKind),
    /// A combination that is impossible, or not available here, with the reason.
    Invalid(String),
}

/// Returns the meaning of a combination of factors.
///
/// # Errors
/// If a value is invalid.
pub(crate) fn meaning(
    name: String,
    words: &Words,
    size: Bytes,
    limits: &Limits,
) -> Result<Meaning, String> {
    let engine = engine(words)?;
    let reader = FactorReader { words };
    let format = reader.among("format", Format::from_wire, &["raw", "qcow2"])?;
    let format = format.unwrap_or(Format::Raw);
    let cache = reader.among("cache", CacheMode::from_wire, CacheMode::WORDS)?;
    let aio = reader.among("aio", AioMode::from_wire, AioMode::WORDS)?;
    let known = |word: &str| FRONTENDS.iter().find(|known| **known == word).copied();
    let frontend = reader.among("frontend", known, &FRONTENDS)?;
    let is_socket = word(words, "backend", "file") == SOCKET;
    let frontend = frontend.unwrap_or(if is_socket {
        "vhost-user-blk"
    } else {
        "virtio-blk"
    });
    let choice = GuestChoice {
        frontend,
        has_iothread: reader.switch("iothread")?,
        queues: reader.number("queues")?,
        vcpus: reader.number("vcpus")?,
        has_huge_pages: reader.switch("huge-pages")?,
    };
    let storage = match reader.storage(limits)? {
        Ok(storage) => storage,
        Err(why) => return Ok(Meaning::Invalid(why)),
    };
    if is_socket && let Some(why) = choice.impossible_on_socket(engine) {
        return Ok(Meaning::Invalid(why));
    }
    let pinning = match pinning(reader.text("processors"), reader.text("numa-node"), limits)? {
        Ok(pinning) => pinning,
        Err(why) => return Ok(Meaning::Invalid(why)),
    };
    if format != Format::Raw && !matches!(storage, Storage::File { .. }) {
        return Ok(Meaning::Invalid(format!(
            "devices and volumes are measured as raw disks, not as {format} images"
        )));
    }
    let creation = match reader.creation(&storage, format, size)? {
        Ok(creation) => creation,
        Err(why) => return Ok(Meaning::Invalid(why)),
    };
    let direct = cache.unwrap_or(CacheMode::Writeback).switches().direct;
    if aio == Some(AioMode::Native) && !direct {
        // The message of QEMU 7.2.
        let why =
            "aio=native was specified, but it requires cache.direct=on, which was not specified";
        return Ok(Meaning::Invalid(why.to_owned()));
    }
    if let Some(why) = choice.impossible(limits, pinning.processors) {
        return Ok(Meaning::Invalid(why));
    }
    let image = |mut image: Image| {
        image.format = Some(format);
        image.creation = creation;
        BackendSource::from(image)
    };
    let source = match &storage {
        Storage::Device { path, .. } => image(Image::host_device(path.display().to_string())),
        Storage::ThinVolume { .. } => image(Image::host_device(PLACEHOLDER)),
        Storage::File { .. } => image(Image::file(PLACEHOLDER, format)),
        Storage::Socket { path } => VhostUserSocket::new(path.display().to_string()).into(),
    };
    let (mut guest, mut disk) = choice.guest(source);
    disk.backend.cache = cache;
    disk.backend.aio = aio;
    guest.disks = vec![disk];
    let configuration = Configuration {
        name,
        factors: words.clone(),
        guest,
        storage,
        size,
        fills: 1,
        is_served_by_daemon: choice.is_served_by_daemon(),
        is_buffered: words.contains_key("direct") && !reader.switch("direct")?,
        launcher: pinning.launcher,
        findings: Vec::new(),
    };
    Ok(Meaning::Configuration(Box::new(configuration), engine))
}

/// Parses factors and reports invalid values.
struct FactorReader<'a> {
    words: &'a Words,
}

impl FactorReader<'_> {
    fn among<T>(
        &self,
        factor: &str,
        read: impl Fn(&str) -> Option<T>,
        known: &[&str],
    ) -> Result<Option<T>, String> {
        let Some(word) = self.words.get(factor) else {
            return Ok(None);
        };
        if !known.contains(&word.as_str()) {
            return Err(unknown(factor, word, known));
        }
        Ok(read(word))
    }

    fn text(&self, factor: &str) -> Option<&str> {
        self.words.get(factor).map(String::as_str)
    }

    fn switch(&self, factor: &str) -> Result<bool, String> {
        let read = |word: &str| Some(word == "true");
        Ok(self
            .among(factor, read, &["true", "false"])?
            .unwrap_or(false))
    }

    fn number(&self, factor: &str) -> Result<Option<u32>, String> {
        let Some(word) = self.words.get(factor) else {
            return Ok(None);
        };
        let number = word
            .parse()
            .ok()
            .filter(|number| (1..=1024).contains(number));
        number
            .map(Some)
            .ok_or_else(|| format!("{factor}: `{word}` is not a number from 1 to 1024"))
    }

    fn size(&self, factor: &str) -> Result<Option<Bytes>, String> {
        let Some(word) = self.words.get(factor) else {
            return Ok(None);
        };
        let size = Bytes::parse(word);
        size.map(Some)
            .map_err(|_| format!("{factor}: `{word}` is not a size such as 64K"))
    }

    /// Returns the storage, or why it is not available.
    fn storage(&self, limits: &Limits) -> Result<Result<Storage, String>, String> {
        let scheduler = self.words.get("scheduler").cloned();
        let storage = match word(self.words, "backend", "file") {
            "file" => Ok(Storage::File {
                directory: self.words.get("directory").map(PathBuf::from),
                no_cow: self.switch("no-cow")?,
            }),
            "device" => match &limits.device {
                Some((path, serial)) => Ok(Storage::Device {
                    path: path.clone(),
                    serial: serial.clone(),
                    scheduler,
                }),
                None => Err(
                    "no prepared block device was given; see `vmdisk bench prepare-device`"
                        .to_owned(),
                ),
            },
            "thin" => match &limits.group {
                Some(group) => Ok(Storage::ThinVolume {
                    group: group.clone(),
                    chunk_bytes: self.size("chunk")?.unwrap_or(Bytes(64 << 10)).0,
                    zero: !self.words.contains_key("zero") || self.switch("zero")?,
                }),
                None => Err("no volume group was given; use `--group`".to_owned()),
            },
            SOCKET => match &limits.socket {
                Some(path) => Ok(Storage::Socket { path: path.clone() }),
                None => Err(
                    "no vhost-user-blk socket was given; use `--destroy-data-behind`".to_owned(),
                ),
            },
            other => {
                return Err(unknown(
                    "backend",
                    other,
                    &["file", "device", "thin", SOCKET],
                ));
            }
        };
        Ok(storage)
    }

    /// Returns how the image is created, or why that is impossible.
    fn creation(
        &self,
        storage: &Storage,
        format: Format,
        size: Bytes,
    ) -> Result<Result<Option<Creation>, String>, String> {
        let known = Qcow2Preallocation::WORDS;
        let preallocation = self.among("preallocation", Qcow2Preallocation::from_wire, known)?;
        let cluster_size = self.size("cluster-size")?;
        if format == Format::Qcow2 {
            return Ok(Ok(Some(Creation::Qcow2(Qcow2Creation {
                size: Some(size),
                preallocation,
                cluster_size,
                ..Qcow2Creation::default()
            }))));
        }
        if let Some(cluster_size) = cluster_size {
            return Ok(Err(format!(
                "cluster-size={} requires qcow2, not {format}",
                cluster_size.0
            )));
        }
        match storage {
            Storage::Device { .. } | Storage::ThinVolume { .. } | Storage::Socket { .. } => {
                Ok(Ok(None))
            }
            Storage::File { .. } => {
                let preallocation = match preallocation {
                    None => None,
                    Some(Qcow2Preallocation::Off) => Some(Preallocation::Off),
                    Some(Qcow2Preallocation::Falloc) => Some(Preallocation::Falloc),
                    Some(Qcow2Preallocation::Full) => Some(Preallocation::Full),
                    Some(Qcow2Preallocation::Metadata) => {
                        return Ok(Err("raw has no metadata to allocate".to_owned()));
                    }
                };
                Ok(Ok(Some(Creation::RawFile {
                    size: Some(size),
                    preallocation,
                })))
            }
        }
    }
}

/// Builds a name from the values that distinguish a configuration from the others.
pub(crate) fn name_of(words: &Words, axes: &[String]) -> String {
    let parts: Vec<String> = axes
        .iter()
        .filter_map(|axis| {
            let value = words.get(axis)?;
            Some(match (axis.as_str(), value.as_str()) {
                ("iothread", "true") => "iothread".to_owned(),
                ("iothread", _) => "main-loop".to_owned(),
                ("no-cow", "true") => "nocow".to_owned(),
                ("no-cow", _) => "cow".to_owned(),
                ("direct", "true") => "direct".to_owned(),
                ("direct", _) => "buffered".to_owned(),
                ("zero", "true") => "zeroed".to_owned(),
                ("zero", _) => "unzeroed".to_owned(),
                ("huge-pages", "true") => "huge-pages".to_owned(),
                ("huge-pages", _) => "small-pages".to_owned(),
                ("queues", number) => format!("{number}-queues"),
                ("vcpus", number) => format!("{number}-vcpus"),
                ("processors", list) => format!("processors-{list}"),
                ("numa-node", number) => format!("node-{number}"),
                ("directory", path) => {
                    let last = path.trim_end_matches('/').rsplit('/').next();
                    last.filter(|last| !last.is_empty())
                        .unwrap_or("root")
                        .to_owned()
                }
                (_, value) => value.to_owned(),
            })
        })
        .collect();
    if parts.is_empty() {
        "only".to_owned()
    } else {
        parts.join("-")
    }
}
