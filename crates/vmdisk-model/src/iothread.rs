//! Event-loop threads and which virtqueue runs where.

/// Number of an iothread, from 1; libvirt `iothreadids/iothread/@id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoThreadId(pub u32);

impl std::fmt::Display for IoThreadId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// How long a thread polls before it sleeps, in nanoseconds; libvirt `poll` (9.4.0), QEMU `poll-max-ns`,
/// `poll-grow` and `poll-shrink` (2.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polling {
    /// Longest time; 0 means no polling. Default: 32768.
    pub max: Option<u64>,
    /// How the time grows; 0 doubles it.
    pub grow: Option<u64>,
    /// How the time shrinks; 0 resets it.
    pub shrink: Option<u64>,
}

/// QEMU's main loop, which runs what no iothread does; libvirt `<defaultiothread>` (8.5.0), QEMU
/// `-object main-loop` (7.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DefaultIoThread {
    /// Fewest threads in its pool.
    pub thread_pool_min: Option<u32>,
    /// Most threads in its pool.
    pub thread_pool_max: Option<u32>,
}

/// An event-loop thread; libvirt `<iothread>`, QEMU `-object iothread`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoThread {
    /// Its number.
    pub id: IoThreadId,
    /// True if it has an `<iothread>` element of its own; false if only `<iothreads>` counts it.
    pub is_listed: bool,
    /// Fewest threads in its pool; libvirt 8.5, QEMU 7.1.
    pub thread_pool_min: Option<u32>,
    /// Most threads in its pool; libvirt 8.5, QEMU 7.1.
    pub thread_pool_max: Option<u32>,
    /// How long it polls.
    pub polling: Polling,
}

impl IoThread {
    /// An iothread with QEMU's defaults.
    pub const fn new(id: IoThreadId) -> Self {
        IoThread {
            id,
            is_listed: false,
            thread_pool_min: None,
            thread_pool_max: None,
            polling: Polling {
                max: None,
                grow: None,
                shrink: None,
            },
        }
    }
}

/// One row of a queue mapping; libvirt `driver/iothreads/iothread` (10.0), QEMU `iothread-vq-mapping` (9.0).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoThreadQueues {
    /// The iothread.
    pub iothread: IoThreadId,
    /// Virtqueues it serves; empty lets QEMU deal the queues out in turn.
    pub queues: Vec<u32>,
}
