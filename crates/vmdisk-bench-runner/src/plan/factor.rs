//! The factors of configurations: one row each.

use std::collections::BTreeMap;

use vmdisk_model::{AioMode, CacheMode, Qcow2Preallocation};

use super::guest_choice::FRONTENDS;
use crate::EngineKind;

/// The values of a factor.
enum Values {
    /// One of these words.
    Words(&'static [&'static str]),
    /// Anything that its reader accepts.
    Any,
}

/// The part of a measurement that a factor changes.
enum Part {
    /// Every measurement.
    All,
    /// How QEMU opens the image.
    Image,
    /// The guest.
    Guest,
    /// fio on the host.
    HostFio,
}

/// How a value is written in the name of a configuration.
enum Naming {
    Plain,
    /// The words for `true` and `false`.
    Switch(&'static str, &'static str),
    /// A number of these things.
    Count(&'static str),
    /// The value after this word.
    After(&'static str),
    /// The last component of a path.
    LastComponent,
}

/// A factor, with its description.
struct Row {
    factor: Factor,
    word: &'static str,
    meaning: &'static str,
    values: Values,
    part: Part,
    /// The backends that have it.
    backends: &'static [&'static str],
    /// The value that requests what happens anyway where the factor is not used.
    vacuous: Option<&'static str>,
    naming: Naming,
}

/// The backend that another program serves.
pub(super) const SOCKET: &str = "socket";
/// A file or device that exists, and is only read.
pub(super) const EXISTING: &str = "existing";
const BACKENDS: &[&str] = &["file", "device", "thin", SOCKET, EXISTING];
/// Backends that a program of the run opens.
const OPENED: &[&str] = &["file", "device", "thin"];
const SWITCH: Values = Values::Words(&["true", "false"]);
const ENGINES: &[&str] = &["host-fio", "storage-daemon", "guest", "mock"];

macro_rules! factors {
    ($($factor:ident $word:literal $meaning:literal: $values:expr, $part:ident, $backends:expr, $vacuous:expr, $naming:expr;)+) => {
        /// A factor of configurations, in report order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Factor { $($factor,)+ }

        const ROWS: &[Row] = &[$(Row {
            factor: Factor::$factor,
            word: $word,
            meaning: $meaning,
            values: $values,
            part: Part::$part,
            backends: $backends,
            vacuous: $vacuous,
            naming: $naming,
        },)+];
    };
}

use Naming::{After, Count, LastComponent, Plain, Switch};
use Values::{Any, Words as OneOf};

factors! {
    Name "name" "name of a listed configuration": Any, All, BACKENDS, None, Plain;
    Engine "engine" "engine: host-fio, storage-daemon, guest": OneOf(ENGINES), All, BACKENDS, None, Plain;
    Backend "backend" "storage: file, device, thin, socket, existing": OneOf(BACKENDS), All, BACKENDS, None, Plain;
    Path "path" "file or device that exists, and is only read": Any, All, &[EXISTING], None, LastComponent;
    Directory "directory" "directory for files": Any, All, &["file"], None, LastComponent;
    NoCow "no-cow" "true: create files with chattr +C": SWITCH, All, &["file"], Some("false"), Switch("nocow", "cow");
    Chunk "chunk" "unit of allocation of a thin pool": Any, All, &["thin"], None, Plain;
    Zero "zero" "true: zero the chunks of a thin pool before use": SWITCH, All, &["thin"], None, Switch("zeroed", "unzeroed");
    Scheduler "scheduler" "I/O scheduler of the host's device": Any, All, &["device"], None, Plain;
    Direct "direct" "false: fio on the host goes through the page cache": SWITCH, HostFio, BACKENDS, None, Switch("direct", "buffered");
    Format "format" "raw or qcow2": OneOf(&["raw", "qcow2"]), Image, OPENED, Some("raw"), Plain;
    Preallocation "preallocation" "off, metadata, falloc, full": OneOf(Qcow2Preallocation::WORDS), Image, &["file"], Some("off"), Plain;
    ClusterSize "cluster-size" "cluster size of qcow2": Any, Image, &["file"], None, Plain;
    Cache "cache" "cache mode": OneOf(CacheMode::WORDS), Image, OPENED, None, Plain;
    Aio "aio" "threads, native, io_uring": OneOf(AioMode::WORDS), Image, OPENED, None, Plain;
    Frontend "frontend" "virtio-blk, virtio-scsi, nvme, sata, vhost-user-blk": OneOf(&FRONTENDS), Guest, BACKENDS, None, Plain;
    IoThread "iothread" "true: use a separate event loop": SWITCH, Guest, OPENED, Some("false"), Switch("iothread", "main-loop");
    Queues "queues" "virtqueues": Any, Guest, BACKENDS, None, Count("queues");
    Vcpus "vcpus" "virtual processors": Any, Guest, BACKENDS, None, Count("vcpus");
    HugePages "huge-pages" "true: guest memory in huge pages": SWITCH, Guest, BACKENDS, Some("false"), Switch("huge-pages", "small-pages");
    Processors "processors" "host processors of QEMU and its daemons, or of fio without QEMU, such as 0-1": Any, All, BACKENDS, None, After("processors");
    NumaNode "numa-node" "the same with the processors and memory of a NUMA node; needs numactl": Any, All, BACKENDS, None, After("node");
}

/// Returns every factor with its description, in report order.
pub fn factors() -> impl Iterator<Item = (&'static str, &'static str)> {
    ROWS.iter().map(|row| (row.word, row.meaning))
}

/// Values of factors, as words.
pub(super) type Words = BTreeMap<Factor, String>;

impl Factor {
    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Returns the name used in plans.
    pub(super) fn word(self) -> &'static str {
        self.row().word
    }

    /// Returns the factor with this name, or the known names.
    pub(super) fn from_word(word: &str) -> Result<Self, String> {
        let row = ROWS.iter().find(|row| row.word == word);
        row.map(|row| row.factor).ok_or_else(|| {
            let known: Vec<&str> = ROWS.iter().map(|row| row.word).collect();
            format!(
                "`{word}` is not a factor; expected one of {}",
                known.join(", ")
            )
        })
    }

    /// Returns the value of the factor; `None` if it is unset.
    ///
    /// # Errors
    /// If it is not one of the factor's words.
    pub(super) fn of(self, words: &Words) -> Result<Option<&str>, String> {
        let Some(value) = words.get(&self) else {
            return Ok(None);
        };
        match self.row().values {
            OneOf(known) if !known.contains(&value.as_str()) => {
                let real = known.iter().filter(|word| **word != "mock").copied();
                let real: Vec<&str> = real.collect();
                let word = self.word();
                Err(format!(
                    "{word}: `{value}` is not one of {}",
                    real.join(", ")
                ))
            }
            OneOf(_) | Any => Ok(Some(value)),
        }
    }

    /// Returns true if it affects an engine on this kind of storage.
    fn is_used(self, engine: EngineKind, backend: &str) -> bool {
        let row = self.row();
        let is_of_engine = match row.part {
            Part::All => true,
            Part::Image => engine != EngineKind::HostFio,
            Part::Guest => matches!(engine, EngineKind::Guest | EngineKind::Mock),
            Part::HostFio => engine == EngineKind::HostFio,
        };
        is_of_engine && row.backends.contains(&backend)
    }

    /// Returns a value as a part of a name.
    fn in_name(self, value: &str) -> String {
        let text = match self.row().naming {
            Plain => value,
            Switch(on, _) if value == "true" => on,
            Switch(_, off) => off,
            Count(noun) => return format!("{value}-{noun}"),
            After(word) => return format!("{word}-{value}"),
            LastComponent => {
                let last = value.trim_end_matches('/').rsplit('/').next();
                last.filter(|last| !last.is_empty()).unwrap_or("root")
            }
        };
        text.to_owned()
    }
}

/// Returns the engine of a configuration.
///
/// # Errors
/// If it is unknown.
pub(super) fn engine(words: &Words) -> Result<EngineKind, String> {
    let word = Factor::Engine.of(words)?.unwrap_or("storage-daemon");
    let mut engines = EngineKind::ALL.iter().copied();
    let engine = engines.find(|kind| kind.name() == word);
    Ok(engine.expect("the row has the names of all engines"))
}

/// Returns the word for the storage of a configuration.
///
/// # Errors
/// If it is unknown.
pub(super) fn backend(words: &Words) -> Result<&str, String> {
    Ok(Factor::Backend.of(words)?.unwrap_or("file"))
}

/// Returns the factors that affect the measurement, and those that request something the engine or the storage does not
/// do. Factors that request the default behaviour are in neither part.
///
/// # Errors
/// If the engine or the storage is unknown.
pub(super) fn sort(words: &Words) -> Result<(Words, Words), String> {
    let (engine, backend) = (engine(words)?, backend(words)?);
    let (mut used, mut ignored) = (Words::new(), Words::new());
    for (factor, value) in words {
        if factor.is_used(engine, backend) {
            used.insert(*factor, value.clone());
        } else if backend == SOCKET || factor.row().vacuous != Some(value) {
            ignored.insert(*factor, value.clone());
        }
    }
    Ok((used, ignored))
}

/// Builds a name from the values that distinguish a configuration from the others.
pub(super) fn name_of(words: &Words, axes: &[Factor]) -> String {
    let parts = axes
        .iter()
        .filter_map(|axis| Some(axis.in_name(words.get(axis)?)));
    let parts: Vec<String> = parts.collect();
    match parts.is_empty() {
        true => "only".to_owned(),
        false => parts.join("-"),
    }
}
