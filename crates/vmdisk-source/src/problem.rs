//! What a reader has to say about a text it could not take as it stands.

use crate::{Edit, Span};

/// What kind of thing a reader stumbled over.
///
/// Each kind is shown to people under the name of a rule, so that it can be explained and allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemKind {
    /// A value that is none of the known words, not a number, or out of range.
    InvalidValue,
    /// An attribute or option that is not known here; it is kept, and not checked.
    UnknownAttribute,
    /// An element that is not known here; it is kept, and not checked.
    UnknownElement,
    /// Something without which the rest means nothing, such as a missing `<source file=…>`.
    MissingValue,
    /// The same thing written twice; the first counts.
    Duplicate,
    /// The same thing written twice, which is refused.
    DuplicateRefused,
    /// A name space prefix that nobody declared: libvirt drops such elements without a word.
    UndeclaredPrefix,
    /// Discards are passed on by one node of an image and not by the next.
    DiscardOnOneNode,
    /// `cache.direct` stands on the format node and not on the one that opens the file.
    DirectOnOneNode,
    /// `read-only` stands on the format node and not on the one that opens the file.
    ReadOnlyOnOneNode,
    /// The name of a node or the id of a device or object is too long, has a character that none may have, or
    /// is given away.
    NameRefused,
    /// A node names a child that is only written behind it.
    NodeOrder,
    /// A node or drive that no device uses.
    NodeUnused,
    /// Two devices use one node, or one drive.
    NodeUsedTwice,
    /// `-snapshot`, which holds for `-drive` alone, beside a `-blockdev`.
    SnapshotIgnored,
    /// A property that no version of the device or driver has, or a value of the wrong type.
    PropertyRefused,
    /// A sector size, or one of the sizes that must be multiples of it, that the device refuses.
    BlockSizeRefused,
    /// A number of requests in a queue that the device refuses or does not survive.
    QueueSizeRefused,
    /// A number of queues that the device refuses or does not survive.
    QueueCountRefused,
    /// Sizes of the caches of qcow2 that exclude each other.
    Qcow2CacheRefused,
    /// The locks that keep two guests off one image are turned off.
    LockingOff,
    /// `force-share` on a node that writes.
    ForceShareWritable,
    /// A part of a file whose ends lie inside a sector.
    WindowUnaligned,
    /// An encrypted image without the secret that opens it.
    SecretMissing,
    /// A device that needs a bus which nothing makes.
    BusMissing,
    /// A place on a bus that the bus does not have.
    UnitOutOfRange,
    /// Two devices at one place.
    SlotTaken,
    /// Memory of another size than the guest's.
    MemorySizeMismatch,
    /// A cache mode and a switch that says otherwise.
    CacheContradicted,
    /// A file name that is taken for a protocol that does not exist.
    ProtocolUnknown,
    /// Fewer interrupt vectors than queues.
    TooFewVectors,
    /// A socket at which QEMU waits for somebody to connect.
    ServerSocket,
    /// An iothread for a device whose requests it cannot notice.
    IoeventfdOff,
    /// A serial number that is too long for the name that is made of it.
    SerialTooLong,
}

/// One thing a reader stumbled over; reading went on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem<P> {
    /// Kind.
    pub kind: ProblemKind,
    /// The field it belongs to, or the nearest one that encloses it.
    pub at: P,
    /// Exactly where.
    pub span: Span,
    /// What is wrong: lower case, no full stop, with the value and what was expected.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// Edits that mend it, where only one thing can have been meant.
    pub fix: Vec<Edit>,
}

/// A place where the author of a file allows findings of some rules, for a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Names of the rules, each with its place.
    pub rules: Vec<(String, Span)>,
    /// The reason, if one was given.
    pub reason: Option<String>,
    /// Where the allowance itself is written.
    pub span: Span,
    /// The text it covers: a finding whose place lies within is allowed.
    pub covers: Span,
}

impl Allowance {
    /// True if it covers a place.
    pub const fn covers(&self, span: Span) -> bool {
        self.covers.start <= span.start && span.end <= self.covers.end
    }
}
