//! The types of an I/O path.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;

/// The I/O path of one disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct IoPath {
    /// The steps; the first is the device that the guest sees. A step stands after the first step above it.
    pub steps: Vec<TraceStep>,
    /// The data that a crash of the host can lose.
    pub loss: CrashLoss,
}

/// One step of an I/O path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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

vmdisk_source::words! {
    /// The kind of a step.
    #[derive(Serialize)]
    #[cfg_attr(feature = "schema", derive(JsonSchema))]
    #[serde(rename_all = "kebab-case")]
    pub enum Layer as name {
        /// The device that the guest sees.
        Device = "device",
        /// The controller that it is attached to.
        Controller = "controller",
        /// The thread of QEMU that runs its requests.
        EventLoop = "event loop",
        /// QEMU's block layer: cache mode, discards, limits.
        BlockLayer = "block layer",
        /// The format of an image.
        Format = "format",
        /// A file on the host.
        File = "file",
        /// A block device that QEMU opens.
        HostDevice = "host device",
        /// The daemon behind a vhost-user or vDPA device.
        Daemon = "daemon",
        /// A server.
        Server = "server",
        /// A file system of the host.
        FileSystem = "file system",
        /// A partition.
        Partition = "partition",
        /// A logical volume.
        LogicalVolume = "logical volume",
        /// A thin pool.
        ThinPool = "thin pool",
        /// Encryption of a block device.
        Crypt = "encryption",
        /// An array.
        Raid = "RAID",
        /// Several paths to one drive.
        Multipath = "multipath",
        /// A file shown as a block device.
        Loop = "loop device",
        /// A cache in front of a drive.
        Cache = "cache",
        /// Another device of the device mapper.
        DeviceMapper = "device mapper",
        /// A drive, or a device without known devices below it.
        Drive = "drive",
        /// Storage that the facts do not describe.
        Unknown = "unknown",
    }
}

vmdisk_source::words! {
    /// A request of the guest.
    #[derive(Serialize)]
    #[cfg_attr(feature = "schema", derive(JsonSchema))]
    #[serde(rename_all = "kebab-case")]
    pub enum RequestKind as name {
        /// Read data.
        Read = "read",
        /// Write data.
        Write = "write",
        /// Make written data durable.
        Flush = "flush",
        /// Say that data is no longer needed.
        Discard = "discard",
    }
}

vmdisk_source::words! {
    /// The result of an operation at a step.
    #[derive(Serialize)]
    #[cfg_attr(feature = "schema", derive(JsonSchema))]
    #[serde(rename_all = "kebab-case")]
    pub enum RequestOutcome as name {
        /// It continues to the steps below.
        Passed = "passed",
        /// It continues in other pieces.
        Split = "split",
        /// It continues to each step below.
        Copied = "copied",
        /// It is served from memory or a cache; written data continues later.
        Cached = "cached",
        /// It continues, and the caller waits.
        Blocking = "blocking",
        /// It is done here.
        Honoured = "honoured",
        /// Space is freed here, and the steps below are not informed.
        Freed = "freed",
        /// It is ignored, and reported as done.
        Dropped = "dropped",
        /// It fails.
        Refused = "refused",
        /// It does not arrive here.
        Absent = "absent",
        /// A fact is missing.
        Unknown = "unknown",
    }
}

impl RequestOutcome {
    /// The result in words, with its reason.
    pub(crate) fn by(
        self,
        text: impl Into<String>,
        basis: StatementBasis,
    ) -> (RequestOutcome, Statement) {
        let text = text.into();
        (self, Statement { text, basis })
    }

    /// True if the steps below see the operation, now or later, as far as is known.
    pub const fn goes_on(self) -> bool {
        matches!(
            self,
            RequestOutcome::Passed
                | RequestOutcome::Split
                | RequestOutcome::Copied
                | RequestOutcome::Cached
                | RequestOutcome::Blocking
                | RequestOutcome::Unknown
        )
    }
}

/// The result of an operation at a step, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Statement {
    /// The sentence, without a full stop.
    pub text: String,
    /// Its basis.
    pub basis: StatementBasis,
}

/// A size, a queue or a mode of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Property {
    /// Its name, such as `sectors`.
    pub name: String,
    /// Its value with the unit; `unknown` if a fact is missing.
    pub value: String,
    /// The basis of the value.
    pub basis: StatementBasis,
}

/// The basis of a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct CrashLoss {
    /// Data that the guest flushed.
    pub flushed: Survival,
    /// Data that the guest wrote and did not flush.
    pub unflushed: Survival,
    /// The reasons.
    pub statements: Vec<Statement>,
}

vmdisk_source::words! {
    /// Whether data survives a crash of the host.
    #[derive(Serialize)]
    #[cfg_attr(feature = "schema", derive(JsonSchema))]
    #[serde(rename_all = "kebab-case")]
    pub enum Survival as name {
        /// It is still there.
        Kept = "kept",
        /// It can be lost.
        Lost = "can be lost",
        /// A fact is missing.
        Unknown = "unknown",
    }
}
