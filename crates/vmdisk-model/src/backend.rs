//! The host side of a disk.

use crate::{
    AioMode, Bytes, CacheMode, DetectZeroes, Discard, DiskField, Image, Iotune, Switch, fields,
};
use vmdisk_source::words;

words! {
    /// Effect of a snapshot of the guest on a disk; libvirt `disk/@snapshot` (0.9.5).
    pub enum Snapshot as as_str {
        /// Leaves it out.
        No = "no",
        /// Makes one inside the image.
        Internal = "internal",
        /// Makes an overlay.
        External = "external",
        /// Leaves it to somebody else.
        Manual = "manual",
    }
}

words! {
    /// What becomes of a disk whose source is missing; libvirt `source/@startupPolicy` (0.9.7).
    /// Default: `mandatory`.
    pub enum StartupPolicy as as_str {
        /// The guest does not start.
        Mandatory = "mandatory",
        /// The guest does not boot; at migration the drive is emptied. Removable media only.
        Requisite = "requisite",
        /// The drive is emptied, or the disk left out.
        Optional = "optional",
    }
}

fields! {
    /// The host side of a disk: the storage, and how QEMU opens it.
    ///
    /// libvirt spreads it over `<driver>` and `<source>`; QEMU has it in a graph of `-blockdev` nodes.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Backend of DiskField {
        /// The storage to open.
        pub source: BackendSource = Source,
        // Its `write_cache` switch belongs to the frontend.
        /// How the host caches the disk. Default: `writeback`.
        pub cache: Option<CacheMode> = Cache,
        /// How requests reach the host kernel. Default: `threads`.
        pub aio: Option<AioMode> = Aio,
        /// What becomes of discard requests. Default: `ignore`.
        pub discard: Option<Discard> = Discard,
        /// Whether written zeroes are turned into cheaper requests. Default: `off`.
        pub detect_zeroes: Option<DetectZeroes> = DetectZeroes,
        /// Whether data read from the backing image is copied up; libvirt `driver/@copy_on_read`. Default: off.
        pub copy_on_read: Option<Switch> = CopyOnRead,
        /// qcow2 keeps discarded clusters allocated; libvirt 9.5, QEMU 8.1.
        pub discard_no_unref: Option<Switch> = DiscardNoUnref,
        /// Largest qcow2 metadata cache of the top image; libvirt `driver/metadata_cache/max_size` (7.0),
        /// QEMU `cache-size`.
        pub metadata_cache_size: Option<Bytes> = MetadataCacheSize,
        /// Throttling.
        pub iotune: Option<Box<Iotune>> = Iotune,
        /// Groups of the guest whose limits the disk shares, in the order of their filters; libvirt
        /// `throttlefilters` (11.2.0). Excludes `iotune`.
        pub throttle_filters: Vec<String> = ThrottleFilters,
        /// Effect of a snapshot of the guest.
        pub snapshot: Option<Snapshot> = Snapshot,
        /// The guest must not write; libvirt `<readonly/>`.
        pub is_read_only: bool = ReadOnly,
        /// Other guests use it at the same time; libvirt `<shareable/>`, QEMU `share-rw`.
        pub is_shareable: bool = Shareable,
        /// Writes vanish when the guest stops; libvirt `<transient/>`.
        pub is_transient: bool = Transient,
        /// Whether the guests that start from a transient disk share what is below; libvirt
        /// `transient/@shareBacking` (7.4.0), `yes` or `no`.
        pub share_backing: Option<Switch> = ShareBacking,
        /// What becomes of the disk if its source is missing at start. Default: `mandatory`.
        pub startup_policy: Option<StartupPolicy> = StartupPolicy,
    }
}

impl Backend {
    /// A backend with every option left open.
    pub fn new(source: impl Into<BackendSource>) -> Self {
        Backend {
            source: source.into(),
            ..Backend::default()
        }
    }

    /// The image, if the backend is one.
    pub fn image(&self) -> Option<&Image> {
        match &self.source {
            BackendSource::Image(image) => Some(image),
            BackendSource::VhostUser(_) | BackendSource::Empty => None,
        }
    }

    /// The image with the data, if it is known: the image of the disk, or the image that its daemon serves.
    pub fn opened_image(&self) -> Option<&Image> {
        let served = || self.socket()?.served.as_deref();
        self.image().or_else(served)
    }

    /// The socket, if a daemon does the I/O.
    pub fn socket(&self) -> Option<&VhostUserSocket> {
        match &self.source {
            BackendSource::VhostUser(socket) => Some(socket),
            BackendSource::Image(_) | BackendSource::Empty => None,
        }
    }

    /// The cache mode in force: `writeback` where none is written, and `none` for a shareable disk
    /// that can be written, which libvirt emits then (`qemuDomainPrepareDiskCachemode`).
    pub fn effective_cache(&self) -> CacheMode {
        self.cache
            .unwrap_or(if self.is_shareable && !self.is_read_only {
                CacheMode::None
            } else {
                CacheMode::Writeback
            })
    }

    /// True if the image is opened with `O_DIRECT`.
    pub fn is_direct(&self) -> bool {
        self.effective_cache().switches().direct
    }
}

/// The storage that a backend opens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BackendSource {
    /// An image: a format on a protocol, with its backing chain.
    Image(Box<Image>),
    /// A socket of a `VhostUserBackend`, which does the I/O itself; libvirt `disk/@type='vhostuser'`.
    VhostUser(VhostUserSocket),
    /// Nothing: an empty drive with removable media.
    #[default]
    Empty,
}

impl From<Image> for BackendSource {
    fn from(image: Image) -> Self {
        BackendSource::Image(Box::new(image))
    }
}

impl From<VhostUserSocket> for BackendSource {
    fn from(socket: VhostUserSocket) -> Self {
        BackendSource::VhostUser(socket)
    }
}

/// The socket of a `VhostUserBackend` (the daemon that serves the disk).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VhostUserSocket {
    /// Path of the UNIX socket.
    pub path: String,
    /// Whether QEMU reconnects when the daemon goes away.
    pub reconnect: Option<Switch>,
    /// Seconds between attempts.
    pub reconnect_timeout: Option<u32>,
    /// Whether the guest may turn the daemon's write cache on and off, which it then sees as off; QEMU
    /// `config-wce` (2.12), for which libvirt has no word. Default: on.
    pub config_wce: Option<Switch>,
    /// The image that the daemon serves, where it is `qemu-storage-daemon` and that is known: the options of
    /// the backend are the daemon's then.
    pub served: Option<Box<Image>>,
}

impl VhostUserSocket {
    /// A socket by its path.
    pub fn new(path: impl Into<String>) -> Self {
        VhostUserSocket {
            path: path.into(),
            reconnect: None,
            reconnect_timeout: None,
            config_wce: None,
            served: None,
        }
    }
}
