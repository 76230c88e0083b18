//! Capabilities of QEMU, libvirt, kernels and machine types: a table with sources. No version is tested outside it.

use crate::version::Version;

/// The component whose version decides about a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    /// QEMU.
    Qemu,
    /// libvirt.
    Libvirt,
    /// The host's kernel.
    Kernel,
    /// The machine type, whatever QEMU runs it.
    Machine,
}

/// The query that detects a capability. The answer takes precedence over its version, because builds differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Its place in the answer of `query-qmp-schema`: the command, then `arg-type` or `ret-type`, then names of
    /// members; `+WORD` is the variant of a tag, `^WORD` a value of an enumeration, `$WORD` a feature.
    QmpSchema(&'static str),
    /// A block driver that `blockdev-add` has and that a trial loads. Builds leave such drivers out, and packages put them
    /// into modules of their own, so no version implies it.
    BlockDriver(&'static str),
    /// A property in `device-list-properties`.
    DeviceProperty {
        /// The device's type.
        device: &'static str,
        /// The property.
        property: &'static str,
    },
    /// A type in `qom-list-types`.
    QomType(&'static str),
    /// Only an experiment decides.
    Trial,
}

/// One capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapabilityRow {
    /// The capability.
    pub capability: Capability,
    /// Its name in facts and messages.
    pub name: &'static str,
    /// Its description, in Markdown.
    pub about: &'static str,
    /// The component whose version decides.
    pub component: Component,
    /// The first version that has it.
    pub since: Version,
    /// The first version that no longer has it.
    pub until: Option<Version>,
    /// The last version that was tried and lacks it, if the answer for later versions before `since` is unknown. `None`
    /// if they count as lacking it.
    pub tried_without: Option<Version>,
    /// How the program is asked.
    pub probe: Probe,
    /// The source of the row.
    pub source: &'static str,
}

/// True or false for a capability of a target, with its basis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It can.
    Yes(Basis),
    /// It cannot.
    No(Basis),
    /// The target does not say enough.
    Unknown,
}

/// The basis of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The program was asked.
    Probed,
    /// Its version implies it.
    Assumed(Version),
}

impl Answer {
    /// Whether it can, by whatever evidence.
    pub const fn is_yes(self) -> bool {
        matches!(self, Self::Yes(_))
    }

    /// Whether it cannot, by whatever evidence.
    pub const fn is_no(self) -> bool {
        matches!(self, Self::No(_))
    }
}

impl CapabilityRow {
    /// The answer that a version of the component implies.
    pub(crate) fn answer(&self, version: Version) -> Answer {
        let is_untried = |last: Version| version.release() > last.release() && version < self.since;
        if self.tried_without.is_some_and(is_untried) {
            Answer::Unknown
        } else if version >= self.since && self.until.is_none_or(|until| version < until) {
            match self.probe {
                Probe::BlockDriver(_) => Answer::Unknown,
                _ => Answer::Yes(Basis::Assumed(version)),
            }
        } else {
            Answer::No(Basis::Assumed(version))
        }
    }
}

impl Capability {
    /// Its row in the table.
    pub fn row(self) -> &'static CapabilityRow {
        // The table is in the order of the enum; a test holds it to that.
        &TABLE[self as usize]
    }

    /// Its name in facts and messages.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The capability of a name; `None` when there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE
            .iter()
            .find(|row| row.name == name)
            .map(|row| row.capability)
    }
}

macro_rules! capabilities {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident = $name:literal, $component:ident $since:tt $(until $until:tt)? $(without $without:tt)?, $probe:expr, $source:literal;
    )*) => {
        /// Something a target can do or not.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Capability {
            $($(#[doc = $doc])+ $variant,)*
        }

        /// One row per capability, in the order of [`Capability`].
        // A constant would be in the binary once for each crate that reads it.
        pub static TABLE: &[CapabilityRow] = &[
            $(CapabilityRow {
                capability: Capability::$variant,
                name: $name,
                about: concat!($($doc),+).trim_ascii_start(),
                component: Component::$component,
                since: Version $since,
                until: version!($($until)?),
                tried_without: version!($($without)?),
                probe: $probe,
                source: $source,
            },)*
        ];
    };
}

macro_rules! version {
    () => {
        None
    };
    ($version:tt) => {
        Some(Version $version)
    };
}

const fn property(device: &'static str, property: &'static str) -> Probe {
    Probe::DeviceProperty { device, property }
}

capabilities! {
    /// `-blockdev` on the command line.
    Blockdev = "blockdev", Qemu (2, 9, 0), Probe::QmpSchema("blockdev-add"), "QEMU commit 42e5f39378";
    /// `-object` accepts JSON.
    ObjectJson = "object-json", Qemu (6, 0, 0), Probe::QmpSchema("object-add/arg-type/qom-type/^iothread"), "QEMU QAPI docs";
    /// `-device` accepts JSON.
    DeviceJson = "device-json", Qemu (6, 2, 0), Probe::QmpSchema("device_add/$json-cli"), "QEMU qapi/qdev.json, feature json-cli; tried on 5.2 and 7.2";
    /// `aio=io_uring`, if it was built in.
    AioIoUring = "aio-io-uring", Qemu (5, 0, 0), Probe::QmpSchema("blockdev-add/arg-type/+file/aio/^io_uring"), "QEMU commit c644751069";
    /// `aio=native`, if it was built in.
    AioNative = "aio-native", Qemu (0, 12, 0), Probe::Trial, "QEMU commit 5c6c3a6c54; a build without libaio refuses it";
    /// QEMU starts even if the host denies io_uring, and uses threads from the first request on.
    IoUringFallsBack = "io-uring-falls-back", Qemu (10, 0, 0) until (10, 1, 0), Probe::Trial, "tried: 10.0 starts, 5.2, 7.2 and 11.1 refuse; 8.2.4 refuses (kata-containers issue 10314) and so does the source of 10.2.2; 9.x and 10.1 were not tried and count as refusing";
    /// QEMU starts without free slots for Linux AIO, and uses threads.
    NativeAioFallsBack = "native-aio-falls-back", Qemu (10, 0, 0) without (7, 2, 0), Probe::Trial, "tried: 5.2 and 7.2 exit, 10.0 and 11.1 start";
    /// Devices in different iothreads can share one node.
    NodeOnSeveralIothreads = "node-on-several-iothreads", Qemu (10, 0, 0) without (7, 2, 0), Probe::Trial, "tried: 5.2 and 7.2 refuse it, 10.0 and 11.1 accept it";
    /// The devices `ide-drive` and `scsi-disk`, which are disks or CD drives.
    DiskOrCdDevices = "disk-or-cd-devices", Qemu (0, 12, 0) until (6, 0, 0), Probe::Trial, "QEMU docs/about/removed-features";
    /// The `file` driver refuses devices, so that they need `host_device`.
    FileDriverRefusesDevices = "file-driver-refuses-devices", Qemu (6, 0, 0), Probe::Trial, "QEMU docs/about/removed-features; tried";
    /// qemu-img refuses a backing file without a format.
    BackingFormatRequired = "backing-format-required", Qemu (6, 1, 0), Probe::Trial, "QEMU docs/about/removed-features; tried";
    /// Image locks, and `locking=`.
    ImageLocking = "image-locking", Qemu (2, 10, 0), Probe::QmpSchema("blockdev-add/arg-type/+file/locking"), "QEMU QAPI docs";
    /// Images dropped from the page cache on migration, so that cached modes can migrate.
    DropCache = "drop-cache", Qemu (4, 0, 0), Probe::QmpSchema("blockdev-add/arg-type/+file/drop-cache"), "QEMU QAPI docs";
    /// qcow2 with an external data file.
    Qcow2DataFile = "qcow2-data-file", Qemu (4, 0, 0), Probe::QmpSchema("blockdev-add/arg-type/+qcow2/data-file"), "QEMU QAPI docs";
    /// qcow2 with zstd, if it was built in.
    Qcow2Zstd = "qcow2-zstd", Qemu (5, 1, 0), Probe::QmpSchema("blockdev-create/arg-type/options/+qcow2/compression-type/^zstd"), "QEMU QAPI docs; Debian's 5.2 lacks it";
    /// qcow2 with subclusters.
    Qcow2ExtendedL2 = "qcow2-extended-l2", Qemu (5, 2, 0), Probe::QmpSchema("blockdev-create/arg-type/options/+qcow2/extended-l2"), "QEMU QAPI docs";
    /// qcow2 `discard-no-unref`.
    DiscardNoUnref = "discard-no-unref", Qemu (8, 1, 0), Probe::QmpSchema("blockdev-add/arg-type/+qcow2/discard-no-unref"), "QEMU QAPI docs; libvirt's recorded replies";
    /// Block jobs hide protocol nodes in backing file strings, so that a raw image needs no format node.
    BackingMaskProtocol = "backing-mask-protocol", Qemu (9, 0, 0), Probe::QmpSchema("block-commit/arg-type/backing-mask-protocol"), "libvirt's recorded replies: absent in 8.2, present in 9.0";
    /// LUKS with a detached header.
    LuksDetachedHeader = "luks-detached-header", Qemu (9, 0, 0), Probe::QmpSchema("blockdev-add/arg-type/+luks/header"), "QEMU QAPI docs";
    /// `aio-max-batch` on file nodes.
    AioMaxBatch = "aio-max-batch", Qemu (6, 2, 0), Probe::QmpSchema("blockdev-add/arg-type/+file/aio-max-batch"), "QEMU QAPI docs";
    /// The throttle filter and its groups.
    ThrottleFilter = "throttle-filter", Qemu (2, 11, 0), Probe::QomType("throttle-group"), "QEMU git history";
    /// The block drivers of libblkio, if they were built in.
    Libblkio = "libblkio", Qemu (7, 2, 0), Probe::BlockDriver("virtio-blk-vhost-user"), "QEMU QAPI docs; Debian's 7.2 lacks them";
    /// nbd `open-timeout`.
    NbdOpenTimeout = "nbd-open-timeout", Qemu (7, 0, 0), Probe::QmpSchema("blockdev-add/arg-type/+nbd/open-timeout"), "QEMU QAPI docs";
    /// The gluster driver.
    Gluster = "gluster", Qemu (1, 3, 0) until (11, 1, 0), Probe::BlockDriver("gluster"), "QEMU docs/about/removed-features";
    /// The chardev option `reconnect`, in seconds.
    Reconnect = "reconnect", Qemu (2, 2, 0) until (10, 2, 0), Probe::QmpSchema("chardev-add/arg-type/backend/+socket/data/reconnect"), "QEMU qapi/char.json, ChardevSocket: since 2.2; docs/about/removed-features; tried";
    /// The chardev option `reconnect-ms`.
    ReconnectMs = "reconnect-ms", Qemu (9, 2, 0), Probe::QmpSchema("chardev-add/arg-type/backend/+socket/data/reconnect-ms"), "libvirt's recorded replies";
    /// The vhost-user-blk device.
    VhostUserBlk = "vhost-user-blk", Qemu (2, 12, 0), Probe::QomType("vhost-user-blk"), "QEMU commit 00343e4b54";
    /// virtio-blk `discard` and `write-zeroes`.
    VirtioBlkDiscard = "virtio-blk-discard", Qemu (4, 0, 0), property("virtio-blk-pci", "discard"), "QEMU commit 37b06f8d46";
    /// virtio-blk `queue-size`.
    VirtioBlkQueueSize = "virtio-blk-queue-size", Qemu (2, 12, 0), property("virtio-blk-pci", "queue-size"), "QEMU git history";
    /// virtio-blk with queues mapped to several iothreads.
    IothreadVqMappingBlk = "iothread-vq-mapping-blk", Qemu (9, 0, 0), property("virtio-blk-pci", "iothread-vq-mapping"), "QEMU QAPI docs; libvirt's recorded replies";
    /// virtio-scsi with queues mapped to several iothreads.
    IothreadVqMappingScsi = "iothread-vq-mapping-scsi", Qemu (10, 0, 0), property("virtio-scsi-pci", "iothread-vq-mapping"), "libvirt's recorded replies: absent in 9.2, present in 10.0";
    /// iothread `thread-pool-min` and `thread-pool-max`.
    IothreadThreadPool = "iothread-thread-pool", Qemu (7, 1, 0), Probe::QmpSchema("object-add/arg-type/+iothread/thread-pool-min"), "QEMU QAPI docs";
    /// nvme namespaces as separate devices.
    NvmeNamespaceDevice = "nvme-ns", Qemu (5, 2, 0), Probe::QomType("nvme-ns"), "tried on 5.2 and later";
    /// Hot-plugging of nvme namespaces.
    NvmeNamespaceHotplug = "nvme-ns-hotplug", Qemu (11, 1, 0), Probe::Trial, "tried: refused by 5.2, 7.2 and 10.0, accepted by 11.1; the versions in between were not tried";
    /// QEMU refuses serial numbers of SCSI disks that it cut before.
    ScsiSerialChecked = "scsi-serial-checked", Qemu (9, 1, 0), Probe::Trial, "QEMU commit 75997e182b69 (9.1); tried: 5.2 and 7.2 cut it, 10.0 and 11.1 refuse it";
    /// QEMU refuses serial numbers of NVMe disks of more than 20 bytes; earlier versions cut them.
    NvmeSerialChecked = "nvme-serial-checked", Qemu (11, 1, 0) without (10, 0, 0), Probe::Trial, "tried: 5.2, 7.2 and 10.0 cut it, 11.1 refuses it";
    /// QEMU refuses NVMe transfers that do not fit into one request to the host.
    NvmeTransferSizeChecked = "nvme-transfer-size-checked", Qemu (10, 0, 4), Probe::Trial, "QEMU commit 53493c1f836f (10.1), in the announcement of 10.0.4; tried: 5.2 and 7.2 accept mdts=12, 10.0.13 and 11.1 refuse it";
    /// Disk devices keep averages over `stats-intervals`.
    StatsIntervals = "stats-intervals", Qemu (10, 2, 0), property("virtio-blk-pci", "stats-intervals"), "in the properties of 11.1 and not in those of 10.0; sent to qemu-devel on 2025-09-29, before 10.2";
    /// scsi-hd `dpofua`, off until machine type 10.0.
    ScsiDpofua = "scsi-dpofua", Qemu (1, 0, 0), property("scsi-hd", "dpofua"), "QEMU hw/core/machine.c hw_compat_10_0";

    /// RBD images, if they were built in.
    Rbd = "rbd", Qemu (0, 14, 0), Probe::BlockDriver("rbd"), "QEMU block/rbd.c (0.14); blockdev-add since 2.9";
    /// RBD images with an encryption layer of librbd.
    RbdEncryption = "rbd-encryption", Qemu (6, 1, 0), Probe::QmpSchema("blockdev-add/arg-type/+rbd/encrypt"), "QEMU QAPI docs";
    /// RBD encryption with the LUKS version of the image.
    RbdLuksAny = "rbd-luks-any", Qemu (8, 0, 0), Probe::QmpSchema("blockdev-add/arg-type/+rbd/encrypt/+luks-any"), "QEMU QAPI docs";
    /// iSCSI with QEMU's own initiator, if it was built in.
    Iscsi = "iscsi", Qemu (1, 0, 0), Probe::BlockDriver("iscsi"), "QEMU block/iscsi.c (1.0); blockdev-add since 2.9";
    /// NFS with QEMU's own client, if it was built in.
    Nfs = "nfs", Qemu (2, 0, 0), Probe::BlockDriver("nfs"), "QEMU block/nfs.c (2.0); blockdev-add since 2.9";
    /// Images over SSH, if it was built in.
    Ssh = "ssh", Qemu (1, 5, 0), Probe::BlockDriver("ssh"), "QEMU block/ssh.c (1.5); blockdev-add since 2.9";
    /// Images over HTTP and HTTPS, if they were built in.
    Https = "https", Qemu (0, 11, 0), Probe::BlockDriver("https"), "QEMU block/curl.c (0.11); blockdev-add since 2.9";
    /// HTTP ranges, even if the server does not announce them.
    HttpForceRange = "http-force-range", Qemu (11, 0, 0), Probe::QmpSchema("blockdev-add/arg-type/+https/force-range"), "QEMU QAPI docs";
    /// nbd `reconnect-delay`.
    NbdReconnect = "nbd-reconnect", Qemu (4, 2, 0), Probe::QmpSchema("blockdev-add/arg-type/+nbd/reconnect-delay"), "QEMU QAPI docs";
    /// nbd `tls-hostname`.
    NbdTlsHostname = "nbd-tls-hostname", Qemu (7, 0, 0), Probe::QmpSchema("blockdev-add/arg-type/+nbd/tls-hostname"), "QEMU QAPI docs";
    /// Images on FTP servers, if it was built in.
    Ftp = "ftp", Qemu (0, 11, 0), Probe::BlockDriver("ftp"), "QEMU block/curl.c (0.11); blockdev-add since 2.9";
    /// The TFTP driver.
    Tftp = "tftp", Qemu (1, 6, 0) until (2, 8, 0), Probe::QmpSchema("blockdev-add/arg-type/+tftp"), "QEMU qapi/block-core.json, BlockDeviceInfo: dropped in 2.8";
    /// The sheepdog driver.
    Sheepdog = "sheepdog", Qemu (2, 9, 0) until (6, 0, 0), Probe::QmpSchema("blockdev-add/arg-type/+sheepdog"), "QEMU docs/about/removed-features";
    /// The vxhs driver.
    Vxhs = "vxhs", Qemu (2, 10, 0) until (5, 1, 0), Probe::QmpSchema("blockdev-add/arg-type/+vxhs"), "QEMU qapi/block-core.json, BlockdevDriver: since 2.10; docs/about/removed-features";
    /// NVMe controllers driven from user space.
    NvmeDriver = "nvme-driver", Qemu (2, 12, 0), Probe::QmpSchema("blockdev-add/arg-type/+nvme"), "QEMU git history";
    /// vhost-vdpa block devices, with libblkio, if it was built in.
    VhostVdpaDriver = "vhost-vdpa-driver", Qemu (7, 2, 0), Probe::BlockDriver("virtio-blk-vhost-vdpa"), "QEMU QAPI docs; Debian's 7.2 lacks it";
    /// qcow2 with LUKS inside.
    Qcow2Encryption = "qcow2-encryption", Qemu (2, 10, 0), Probe::QmpSchema("blockdev-add/arg-type/+qcow2/encrypt"), "QEMU QAPI docs";
    /// LUKS below any format.
    Luks = "luks", Qemu (2, 6, 0), Probe::QmpSchema("blockdev-add/arg-type/+luks"), "QEMU QAPI docs";
    /// Nodes that start inactive, for migration.
    NodeActive = "node-active", Qemu (10, 0, 0), Probe::QmpSchema("blockdev-add/arg-type/active"), "QEMU QAPI docs";
    /// Persistent reservations, through a helper process.
    PrManager = "pr-manager", Qemu (2, 11, 0), Probe::QomType("pr-manager-helper"), "QEMU git history";
    /// Guest memory in an unnamed file (memfd).
    MemoryBackendMemfd = "memory-backend-memfd", Qemu (2, 12, 0), Probe::QomType("memory-backend-memfd"), "QEMU git history";
    /// Guest memory in POSIX shared memory.
    MemoryBackendShm = "memory-backend-shm", Qemu (9, 1, 0), Probe::QomType("memory-backend-shm"), "QEMU QAPI docs; libvirt's recorded replies";
    /// iothread `aio-max-batch`.
    IothreadAioMaxBatch = "iothread-aio-max-batch", Qemu (6, 1, 0), Probe::QmpSchema("object-add/arg-type/+iothread/aio-max-batch"), "QEMU QAPI docs";
    /// virtio-blk passes SCSI commands to the device.
    VirtioBlkScsi = "virtio-blk-scsi", Qemu (0, 12, 0) until (9, 1, 0), property("virtio-blk-pci", "scsi"), "QEMU docs/about/removed-features; tried: refused on 5.2 and 7.2 already unless the device is legacy";
    /// virtio-blk `report-discard-granularity`.
    ReportDiscardGranularity = "report-discard-granularity", Qemu (6, 0, 0), property("virtio-blk-pci", "report-discard-granularity"), "libvirt's recorded replies; QEMU hw/core/machine.c";

    /// `io='io_uring'`.
    LibvirtIoUring = "libvirt-io-uring", Libvirt (6, 3, 0), Probe::Trial, "libvirt formatdomain";
    /// The iothreads of one disk (`<driver><iothreads>`).
    LibvirtIothreadMapping = "libvirt-iothread-mapping", Libvirt (10, 0, 0), Probe::Trial, "libvirt formatdomain";
    /// The iothreads of one virtio-scsi controller.
    LibvirtScsiIothreadMapping = "libvirt-scsi-iothread-mapping", Libvirt (11, 2, 0), Probe::Trial, "libvirt formatdomain";
    /// `discard_no_unref`.
    LibvirtDiscardNoUnref = "libvirt-discard-no-unref", Libvirt (9, 5, 0), Probe::Trial, "libvirt formatdomain";
    /// `<reconnect delay='…'/>` of nbd.
    LibvirtNbdReconnect = "libvirt-nbd-reconnect", Libvirt (9, 2, 0), Probe::Trial, "libvirt NEWS 9.2.0; 9.0 leaves it out";
    /// `<identity>` and `<knownHosts>` of ssh.
    LibvirtSshIdentity = "libvirt-ssh-identity", Libvirt (9, 8, 0), Probe::Trial, "libvirt formatdomain; 9.0 leaves them out";
    /// `queue_size`.
    LibvirtQueueSize = "libvirt-queue-size", Libvirt (7, 8, 0), Probe::Trial, "libvirt formatdomain";
    /// `<metadata_cache>`.
    LibvirtMetadataCache = "libvirt-metadata-cache", Libvirt (7, 0, 0), Probe::Trial, "libvirt formatdomain";
    /// `type='vhostuser'`.
    LibvirtVhostUser = "libvirt-vhost-user", Libvirt (7, 1, 0), Probe::Trial, "libvirt formatdomain";
    /// `type='vhostvdpa'`.
    LibvirtVhostVdpa = "libvirt-vhost-vdpa", Libvirt (9, 8, 0), Probe::Trial, "libvirt formatdomain";
    /// `type='nvme'`.
    LibvirtNvmeSource = "libvirt-nvme-source", Libvirt (6, 0, 0), Probe::Trial, "libvirt formatdomain";
    /// `bus='nvme'`.
    LibvirtNvmeBus = "libvirt-nvme-bus", Libvirt (11, 5, 0), Probe::Trial, "libvirt NEWS 11.5.0";
    /// `<dataStore>`.
    LibvirtDataStore = "libvirt-data-store", Libvirt (10, 10, 0), Probe::Trial, "libvirt formatdomain";
    /// `<slices>`.
    LibvirtSlices = "libvirt-slices", Libvirt (6, 1, 0), Probe::Trial, "libvirt formatdomain";
    /// `discard_granularity`.
    LibvirtDiscardGranularity = "libvirt-discard-granularity", Libvirt (9, 8, 0), Probe::Trial, "absent in the schema of 9.0, in libvirt-go-xml between 9.7 and 9.8";
    /// `discard_granularity='0'`, which disables discards; earlier versions leave the attribute out.
    LibvirtDiscardGranularityZero = "libvirt-discard-granularity-zero", Libvirt (11, 6, 0), Probe::Trial, "libvirt NEWS 11.6.0: Allow specifying zero discard granularity";
    /// Namespaces in RBD pools: `name='POOL/NAMESPACE/IMAGE'`.
    LibvirtRbdNamespace = "libvirt-rbd-namespace", Libvirt (11, 6, 0), Probe::Trial, "libvirt NEWS 11.6.0: Add support for RBD namespaces";
    /// libvirt can serve web, FTP and SSH disks with nbdkit.
    LibvirtNbdkit = "libvirt-nbdkit", Libvirt (9, 8, 0), Probe::Trial, "libvirt NEWS 9.8.0";
    /// libvirt uses nbdkit if it is installed, whatever qemu.conf says.
    LibvirtNbdkitByDefault = "libvirt-nbdkit-by-default", Libvirt (9, 8, 0) until (10, 0, 0), Probe::Trial, "libvirt NEWS 10.0.0: `storage_use_nbdkit`, off by default";
    /// `rotation_rate`.
    LibvirtRotationRate = "libvirt-rotation-rate", Libvirt (7, 3, 0), Probe::Trial, "libvirt formatdomain";
    /// `<transient/>` disks on QEMU.
    LibvirtTransient = "libvirt-transient", Libvirt (6, 9, 0), Probe::Trial, "libvirt formatdomain";
    /// `<cpu mode='maximum'/>`.
    LibvirtCpuMaximum = "libvirt-cpu-maximum", Libvirt (7, 1, 0), Probe::Trial, "libvirt formatdomain";
    /// `<throttlefilters>`.
    LibvirtThrottleFilters = "libvirt-throttle-filters", Libvirt (11, 2, 0), Probe::Trial, "libvirt formatdomain";
    /// CD drives on USB are real CD drives, not disks with the contents of a CD.
    LibvirtUsbCdrom = "libvirt-usb-cdrom", Libvirt (11, 5, 0), Probe::Trial, "libvirt NEWS 11.5.0; 11.3's expected command lines have usb-storage";
    /// `<statistics>`.
    LibvirtStatistics = "libvirt-statistics", Libvirt (11, 9, 0), Probe::Trial, "libvirt-go-xml commit e466eba";
    /// libvirt refuses unused secrets and servers: several secrets of an encrypted image, several servers of
    /// iSCSI, and Sheepdog. Earlier versions use the first secret or server, and start a QEMU without Sheepdog.
    LibvirtRefusesUnusedSources = "libvirt-refuses-unused-sources", Libvirt (9, 1, 0), Probe::Trial, "accepted by 9.0, refused by 11.3; the exact release is unknown";
    /// Names of a product of up to 40 characters on SATA and IDE; earlier versions accept 16.
    LibvirtLongProduct = "libvirt-long-product", Libvirt (11, 1, 0), Probe::Trial, "libvirt docs/formatdomain.rst, product: since 11.1.0; refused by 9.0, accepted by 11.3";
    /// NOCOW set on new directories of storage pools.
    LibvirtPoolsNocow = "libvirt-pools-nocow", Libvirt (6, 6, 0), Probe::Trial, "libvirt NEWS 6.6.0";

    /// io_uring.
    KernelIoUring = "kernel-io-uring", Kernel (5, 1, 0), Probe::Trial, "Linux 5.1";
    /// statx(2) returns the alignment of direct I/O.
    KernelStatxDioalign = "kernel-statx-dioalign", Kernel (6, 1, 0), Probe::Trial, "statx(2)";
    /// tmpfs accepts O_DIRECT.
    KernelTmpfsDirect = "kernel-tmpfs-direct", Kernel (6, 6, 0), Probe::Trial, "Linux commit e88e0d366f9c";

    /// virtio devices on PCI have the modern interface, not only the legacy one.
    MachineVirtioModern = "machine-virtio-modern", Machine (2, 7, 0), Probe::Trial, "QEMU hw/core/machine.c hw_compat_2_6";
    /// virtio-blk has one interrupt per queue, not two for all queues.
    MachineVectorPerQueue = "machine-vector-per-queue", Machine (2, 12, 0), Probe::Trial, "QEMU hw/core/machine.c hw_compat_2_11";
    /// virtio-blk passes discards on.
    MachineVirtioBlkDiscard = "machine-virtio-blk-discard", Machine (4, 0, 0), property("virtio-blk-pci", "discard"), "QEMU hw/core/machine.c hw_compat_3_1";
    /// virtio queues hold 256 requests instead of 128.
    MachineQueueSize256 = "machine-queue-size-256", Machine (5, 0, 0), property("virtio-blk-pci", "queue-size"), "QEMU hw/core/machine.c hw_compat_4_2";
    /// virtio-blk and virtio-scsi get one queue per vCPU.
    MachineQueuePerVcpu = "machine-queue-per-vcpu", Machine (5, 2, 0), property("virtio-blk-pci", "num-queues"), "QEMU hw/core/machine.c hw_compat_5_1";
    /// virtio-blk announces the discard granularity to the guest.
    MachineReportDiscardGranularity = "machine-report-discard-granularity", Machine (6, 0, 0), property("virtio-blk-pci", "report-discard-granularity"), "QEMU hw/core/machine.c hw_compat_5_2";
    /// nvme namespaces are shared by the controllers of their subsystem.
    MachineNvmeShared = "machine-nvme-shared", Machine (6, 2, 0), Probe::Trial, "QEMU hw/core/machine.c hw_compat_6_1";
    /// virtio queues can be reset one by one.
    MachineQueueReset = "machine-queue-reset", Machine (7, 2, 0), Probe::Trial, "QEMU hw/core/machine.c hw_compat_7_1";
    /// scsi-hd announces DPO and FUA.
    MachineScsiDpofua = "machine-scsi-dpofua", Machine (10, 1, 0), property("scsi-hd", "dpofua"), "QEMU hw/core/machine.c hw_compat_10_0";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    #[test]
    fn a_probe_answers_in_both_ways() {
        for (has, expected) in [
            (true, Answer::Yes(Basis::Probed)),
            (false, Answer::No(Basis::Probed)),
        ] {
            let mut target: Target = "qemu=7.2".parse().unwrap();
            target.probed.insert(Capability::DiscardNoUnref, has);
            assert_eq!(target.can(Capability::DiscardNoUnref), expected);
        }
    }

    #[test]
    fn versions_that_were_not_tried_have_no_answer() {
        let answer = |target: &str| {
            let target: Target = target.parse().unwrap();
            target.can(Capability::NativeAioFallsBack)
        };
        for lacking in ["qemu=5.2", "qemu=7.2.22"] {
            assert!(answer(lacking).is_no(), "{lacking}");
        }
        for untried in ["qemu=8.0", "qemu=9.2.50", "libvirt=11.3"] {
            assert_eq!(answer(untried), Answer::Unknown, "{untried}");
        }
        for having in ["qemu=10.0", "qemu=11.1"] {
            assert!(answer(having).is_yes(), "{having}");
        }
    }

    #[test]
    fn each_capability_has_one_row_in_order_with_a_unique_name() {
        let mut names = std::collections::HashSet::new();
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.capability as usize, index);
            assert_eq!(row.capability.row(), row);
            assert_eq!(Capability::from_name(row.name), Some(row.capability));
            let is_before = |last: Version| last.release() < row.since.release();
            assert!(row.tried_without.is_none_or(is_before), "{}", row.name);
            assert!(names.insert(row.name), "{}", row.name);
            assert!(
                row.until.is_none_or(|until| row.since < until),
                "{}",
                row.name
            );
            assert!(!row.source.is_empty());
        }
        assert_eq!(Capability::from_name("teleport"), None);
    }

    #[test]
    fn the_first_version_has_it_and_the_one_before_does_not() {
        let at = |text: &str| text.parse::<Target>().unwrap();
        assert!(
            at("qemu=8.2.9")
                .can(Capability::IothreadVqMappingBlk)
                .is_no()
        );
        assert!(
            at("qemu=9.0")
                .can(Capability::IothreadVqMappingBlk)
                .is_yes()
        );
        assert!(
            at("qemu=9.2")
                .can(Capability::IothreadVqMappingScsi)
                .is_no()
        );
        assert!(at("qemu=10.1").can(Capability::Reconnect).is_yes());
        assert!(at("qemu=10.2").can(Capability::Reconnect).is_no());
        assert!(
            at("machine=pc-q35-5.1")
                .can(Capability::MachineQueuePerVcpu)
                .is_no()
        );
        assert!(
            at("machine=pc-q35-5.2")
                .can(Capability::MachineQueuePerVcpu)
                .is_yes()
        );
        assert_eq!(
            at("machine=q35").can(Capability::MachineQueuePerVcpu),
            Answer::Unknown
        );
        assert_eq!(
            at("qemu=9.0").can(Capability::KernelIoUring),
            Answer::Unknown
        );
    }

    #[test]
    fn a_probe_takes_precedence_over_the_version() {
        let mut target: Target = "qemu=10.0".parse().unwrap();
        assert!(target.can(Capability::AioIoUring).is_yes());
        target.probed.insert(Capability::AioIoUring, false);
        assert_eq!(
            target.can(Capability::AioIoUring),
            Answer::No(Basis::Probed)
        );
    }
}
