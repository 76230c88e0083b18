//! The types of an I/O path.

use schemars::JsonSchema;
use serde::Serialize;

/// The I/O path of one disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct IoPath {
    /// The steps; the first is the device that the guest sees. A step stands after the first step above it.
    pub steps: Vec<TraceStep>,
    /// The data that a crash of the host can lose.
    pub loss: CrashLoss,
}

/// One step of an I/O path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TraceStep {
    /// Its kind.
    pub layer: Layer,
    /// Its name, such as `/dev/vg0/web1`.
    pub name: String,
    /// The numbers of the steps below it, from 0; none at the end of the path.
    pub below: Vec<usize>,
    /// Sector sizes, queues and other sizes.
    pub properties: Vec<Property>,
    /// The result of each operation, in the order of [`RequestKind::ALL`].
    pub effects: Vec<RequestEffect>,
    /// The depth in the backing chain, for a step that belongs to an image.
    #[serde(skip)]
    pub image: Option<usize>,
}

impl TraceStep {
    /// The result of an operation.
    pub fn effect(&self, operation: RequestKind) -> &RequestEffect {
        &self.effects[operation as usize]
    }
}

/// The kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// The device that the guest sees.
    Device,
    /// The controller that it is attached to.
    Controller,
    /// The thread of QEMU that runs its requests.
    EventLoop,
    /// QEMU's block layer: cache mode, discards, limits.
    BlockLayer,
    /// The format of an image.
    Format,
    /// A file on the host.
    File,
    /// A block device that QEMU opens.
    HostDevice,
    /// The daemon behind a vhost-user or vDPA device.
    Daemon,
    /// A server.
    Server,
    /// A file system of the host.
    FileSystem,
    /// A partition.
    Partition,
    /// A logical volume.
    LogicalVolume,
    /// A thin pool.
    ThinPool,
    /// Encryption of a block device.
    Crypt,
    /// An array.
    Raid,
    /// Several paths to one drive.
    Multipath,
    /// A file shown as a block device.
    Loop,
    /// A cache in front of a drive.
    Cache,
    /// Another device of the device mapper.
    DeviceMapper,
    /// A drive, or a device without known devices below it.
    Drive,
    /// Storage that the facts do not describe.
    Unknown,
}

impl Layer {
    /// The name people use for it.
    pub const fn name(self) -> &'static str {
        match self {
            Layer::Device => "device",
            Layer::Controller => "controller",
            Layer::EventLoop => "event loop",
            Layer::BlockLayer => "block layer",
            Layer::Format => "format",
            Layer::File => "file",
            Layer::HostDevice => "host device",
            Layer::Daemon => "daemon",
            Layer::Server => "server",
            Layer::FileSystem => "file system",
            Layer::Partition => "partition",
            Layer::LogicalVolume => "logical volume",
            Layer::ThinPool => "thin pool",
            Layer::Crypt => "encryption",
            Layer::Raid => "RAID",
            Layer::Multipath => "multipath",
            Layer::Loop => "loop device",
            Layer::Cache => "cache",
            Layer::DeviceMapper => "device mapper",
            Layer::Drive => "drive",
            Layer::Unknown => "unknown",
        }
    }
}

/// A request of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RequestKind {
    /// Read data.
    Read,
    /// Write data.
    Write,
    /// Make written data durable.
    Flush,
    /// Say that data is no longer needed.
    Discard,
}

impl RequestKind {
    /// Every operation.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Flush, Self::Discard];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            RequestKind::Read => "read",
            RequestKind::Write => "write",
            RequestKind::Flush => "flush",
            RequestKind::Discard => "discard",
        }
    }
}

/// The result of an operation at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RequestOutcome {
    /// It continues to the steps below.
    Passed,
    /// It continues in other pieces.
    Split,
    /// It continues to each step below.
    Copied,
    /// It is served from memory or a cache; written data continues later.
    Cached,
    /// It continues, and the caller waits.
    Blocking,
    /// It is done here.
    Honoured,
    /// Space is freed here, and the steps below are not informed.
    Freed,
    /// It is ignored, and reported as done.
    Dropped,
    /// It fails.
    Refused,
    /// It does not arrive here.
    Absent,
    /// A fact is missing.
    Unknown,
}

impl RequestOutcome {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            RequestOutcome::Passed => "passed",
            RequestOutcome::Split => "split",
            RequestOutcome::Copied => "copied",
            RequestOutcome::Cached => "cached",
            RequestOutcome::Blocking => "blocking",
            RequestOutcome::Honoured => "honoured",
            RequestOutcome::Freed => "freed",
            RequestOutcome::Dropped => "dropped",
            RequestOutcome::Refused => "refused",
            RequestOutcome::Absent => "absent",
            RequestOutcome::Unknown => "unknown",
        }
    }

    /// True if the steps below see the operation, now or later, as far as is known.
    pub const fn goes_on(self) -> bool {
        match self {
            RequestOutcome::Passed
            | RequestOutcome::Split
            | RequestOutcome::Copied
            | RequestOutcome::Cached
            | RequestOutcome::Blocking
            | RequestOutcome::Unknown => true,
            RequestOutcome::Honoured
            | RequestOutcome::Freed
            | RequestOutcome::Dropped
            | RequestOutcome::Refused
            | RequestOutcome::Absent => false,
        }
    }
}

/// The result of an operation at a step, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RequestEffect {
    /// The operation.
    pub operation: RequestKind,
    /// The result.
    pub outcome: RequestOutcome,
    /// The result in words.
    #[serde(flatten)]
    pub statement: Statement,
}

/// A sentence with its basis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Statement {
    /// The sentence, without a full stop.
    pub text: String,
    /// Its basis.
    pub basis: StatementBasis,
}

/// A size, a queue or a mode of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Property {
    /// Its name, such as `sectors`.
    pub name: String,
    /// Its value with the unit; `unknown` if a fact is missing.
    pub value: String,
    /// The basis of the value.
    pub basis: StatementBasis,
}

/// The basis of a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum StatementBasis {
    /// The configuration.
    Configuration {
        /// The setting in the words of the file, or the field that is not set.
        setting: String,
    },
    /// A fact of the host.
    Fact {
        /// The fact with its value, by the names of the facts file.
        fact: String,
    },
    /// The documented or measured behaviour of a program.
    Source {
        /// The program with its file and function, its manual, or the measurement.
        source: String,
    },
    /// The result of the operation at another step.
    Step {
        /// The number of that step, from 0.
        step: usize,
    },
    /// Nothing: a fact is missing.
    Missing {
        /// The missing fact.
        what: String,
        /// The reason why it is missing.
        why: String,
        /// The command that collects it; empty if no command can.
        command: Vec<String>,
    },
}

impl StatementBasis {
    /// A documented behaviour.
    pub(crate) fn source(source: &str) -> Self {
        StatementBasis::Source {
            source: source.to_owned(),
        }
    }

    /// A fact with its value.
    pub(crate) fn fact(fact: impl Into<String>) -> Self {
        StatementBasis::Fact { fact: fact.into() }
    }
}

/// The survival of written data if the host crashes or loses power.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CrashLoss {
    /// Data that the guest flushed.
    pub flushed: Survival,
    /// Data that the guest wrote and did not flush.
    pub unflushed: Survival,
    /// The reasons.
    pub statements: Vec<Statement>,
}

/// Whether data survives a crash of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Survival {
    /// It is still there.
    Kept,
    /// It can be lost.
    Lost,
    /// A fact is missing.
    Unknown,
}

impl Survival {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Survival::Kept => "kept",
            Survival::Lost => "can be lost",
            Survival::Unknown => "unknown",
        }
    }
}
