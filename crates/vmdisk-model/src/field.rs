//! Names of model fields, without reference to any text.
//!
//! A reader notes where each field was written in a source map keyed by [`FieldPath`]; a rule
//! reports at a path and never sees a byte.

use vmdisk_source::SourcePath;

/// One field of a [`Domain`](crate::Domain), named by where it sits in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldPath {
    /// A field of the guest itself.
    Domain(DomainField),
    /// A field of the nth disk (from 0).
    Disk(usize, DiskField),
    /// A field of an image of the nth disk, by its depth in the chain (0 is the top image).
    Image(usize, usize, ImageField),
    /// A field of the nth controller (from 0).
    Controller(usize, ControllerField),
    /// A field of the nth iothread (from 0).
    IoThread(usize, IoThreadField),
    /// A limit of the nth disk (from 0).
    Iotune(usize, LimitField),
    /// A limit of the guest's nth throttle group (from 0).
    ThrottleGroup(usize, LimitField),
}

/// Declares a field enum whose every value names its parent; none means the top of its kind.
macro_rules! field_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[$variant_meta:meta])* $variant:ident $(in $parent:ident)? = $label:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_meta])* $variant,)+ }

        impl $name {
            /// Every field.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// The enclosing field of the same kind.
            pub const fn parent(self) -> Option<Self> {
                match self {
                    $($name::$variant => field_enum!(@parent $name $($parent)?),)+
                }
            }

            /// How the field is called in a breadcrumb: libvirt's element or attribute.
            pub const fn label(self) -> &'static str {
                match self { $($name::$variant => $label,)+ }
            }
        }
    };
    (@parent $name:ident $parent:ident) => { Some($name::$parent) };
    (@parent $name:ident) => { None };
}

field_enum! {
    /// Fields of the guest itself.
    pub enum DomainField {
        /// The guest.
        Domain = "domain",
        /// Its name.
        Name in Domain = "name",
        /// Its identity.
        Uuid in Domain = "uuid",
        /// How CPUs run.
        DomainType in Domain = "@type",
        /// The operating system part.
        Os in Domain = "os",
        /// Instruction set.
        Architecture in Os = "type/@arch",
        /// Machine.
        Machine in Os = "type/@machine",
        /// vCPUs.
        Vcpus in Domain = "vcpu",
        /// What the firmware looks for.
        BootDevices in Os = "os/boot",
        /// Memory size.
        Memory in Domain = "memory",
        /// How memory is backed.
        MemoryBacking in Domain = "memoryBacking",
        /// Huge pages.
        HugePages in MemoryBacking = "hugepages",
        /// Kind of memory.
        MemorySource in MemoryBacking = "source/@type",
        /// Access of memory.
        MemoryAccess in MemoryBacking = "access/@mode",
        /// Memory of the NUMA cells.
        NumaCells in Domain = "cpu/numa",
        /// Share of the host's disks.
        Blkiotune in Domain = "blkiotune",
        /// CPUs and schedulers.
        CpuTune in Domain = "cputune",
        /// Groups of limits.
        ThrottleGroups in Domain = "throttlegroups",
        /// Number of iothreads.
        IoThreads in Domain = "iothreads",
        /// List of iothreads.
        IoThreadIds in Domain = "iothreadids",
        /// QEMU's main loop.
        DefaultIoThread in Domain = "defaultiothread",
        /// Devices.
        Devices in Domain = "devices",
    }
}

field_enum! {
    /// Fields of a disk.
    pub enum DiskField {
        /// The disk.
        Disk = "disk",
        /// Kind of source.
        SourceType in Disk = "@type",
        /// Kind of device.
        Device in Disk = "@device",
        /// virtio standard.
        Model in Disk = "@model",
        /// Right to raw I/O.
        RawIo in Disk = "@rawio",
        /// Filter of SCSI commands.
        Sgio in Disk = "@sgio",
        /// What a snapshot does.
        Snapshot in Disk = "@snapshot",
        /// The driver element.
        Driver in Disk = "driver",
        /// Name of the driver.
        DriverName in Driver = "driver/@name",
        /// Cache mode.
        Cache in Driver = "driver/@cache",
        /// Host I/O mode.
        Aio in Driver = "driver/@io",
        /// Discard mode.
        Discard in Driver = "driver/@discard",
        /// Zero detection.
        DetectZeroes in Driver = "driver/@detect_zeroes",
        /// Copy on read.
        CopyOnRead in Driver = "driver/@copy_on_read",
        /// Discard without unreferencing.
        DiscardNoUnref in Driver = "driver/@discard_no_unref",
        /// Write error policy.
        ErrorPolicy in Driver = "driver/@error_policy",
        /// Read error policy.
        ReadErrorPolicy in Driver = "driver/@rerror_policy",
        /// Notification by another thread.
        IoEventFd in Driver = "driver/@ioeventfd",
        /// Fewer interrupts.
        EventIdx in Driver = "driver/@event_idx",
        /// Through the guest's IOMMU.
        Iommu in Driver = "driver/@iommu",
        /// Cached translations of addresses.
        Ats in Driver = "driver/@ats",
        /// Packed virtqueues.
        Packed in Driver = "driver/@packed",
        /// A page for each queue.
        PagePerVq in Driver = "driver/@page_per_vq",
        /// Statistics.
        Statistics in Driver = "driver/statistics",
        /// Queues.
        Queues in Driver = "driver/@queues",
        /// Queue size.
        QueueSize in Driver = "driver/@queue_size",
        /// Event loop.
        IoThread in Driver = "driver/@iothread",
        /// Queue mapping.
        IoThreadMapping in Driver = "driver/iothreads",
        /// Metadata cache.
        MetadataCacheSize in Driver = "driver/metadata_cache",
        /// The source element, also of a backend that is not an image.
        Source in Disk = "source",
        /// What becomes of a disk without its source.
        StartupPolicy in Source = "source/@startupPolicy",
        /// Socket of a `VhostUserBackend`.
        SocketPath in Source = "source/@path",
        /// Reconnection to the daemon.
        Reconnect in Source = "source/reconnect",
        /// Whether the guest may switch the daemon's write cache.
        ConfigWce in Source = "config-wce",
        /// The target element.
        Target in Disk = "target",
        /// Name of the target.
        TargetDev in Target = "target/@dev",
        /// Bus.
        TargetBus in Target = "target/@bus",
        /// Revolutions per minute.
        RotationRate in Target = "target/@rotation_rate",
        /// Removable.
        Removable in Target = "target/@removable",
        /// State of the tray.
        Tray in Target = "target/@tray",
        /// DPO and FUA.
        DpoFua in Target = "target/@dpofua",
        /// Cylinders, heads and sectors.
        Geometry in Disk = "geometry",
        /// How the firmware translates them.
        GeometryTranslation in Geometry = "geometry/@trans",
        /// Block sizes.
        BlockIo in Disk = "blockio",
        /// Logical block size.
        LogicalBlockSize in BlockIo = "blockio/@logical_block_size",
        /// Physical block size.
        PhysicalBlockSize in BlockIo = "blockio/@physical_block_size",
        /// Discard granularity.
        DiscardGranularity in BlockIo = "blockio/@discard_granularity",
        /// Throttling.
        Iotune in Disk = "iotune",
        /// Groups whose limits the disk shares.
        ThrottleFilters in Disk = "throttlefilters",
        /// Read-only.
        ReadOnly in Disk = "readonly",
        /// Shareable.
        Shareable in Disk = "shareable",
        /// Transient.
        Transient in Disk = "transient",
        /// Guests share what is below.
        ShareBacking in Transient = "transient/@shareBacking",
        /// Serial number.
        Serial in Disk = "serial",
        /// World wide name.
        Wwn in Disk = "wwn",
        /// Vendor.
        Vendor in Disk = "vendor",
        /// Product.
        Product in Disk = "product",
        /// Boot order.
        BootOrder in Disk = "boot/@order",
        /// What the boot loader is told.
        LoadParm in Disk = "boot/@loadparm",
        /// Address.
        Address in Disk = "address",
        /// Alias.
        Alias in Disk = "alias",
        /// Number for the firmware.
        AcpiIndex in Disk = "acpi/@index",
    }
}

field_enum! {
    /// Fields of an image.
    pub enum ImageField {
        /// The image: the top one stands for the disk, one below for its `<backingStore>`.
        Image = "image",
        /// Format.
        Format in Image = "format",
        /// Where the bytes are.
        Source in Image = "source",
        /// Path of the file or device.
        Path in Source = "source path",
        /// Descriptors instead of a path.
        FdGroup in Source = "source/@fdgroup",
        /// How a server is spoken to.
        NetworkProtocol in Source = "source/@protocol",
        /// What the storage is called on its server.
        NetworkName in Source = "source/@name",
        /// What follows the `?` of a URL.
        Query in Source = "source/@query",
        /// Encryption of the connection.
        Tls in Source = "source/@tls",
        /// Name in the server's certificate.
        TlsHostname in Source = "source/@tlsHostname",
        /// The servers.
        Hosts in Source = "source/host",
        /// Snapshot.
        Snapshot in Source = "source/snapshot",
        /// Configuration file of Ceph.
        ConfigFile in Source = "source/config",
        /// Name of the iSCSI initiator.
        Initiator in Source = "source/initiator",
        /// Verification of the server's certificate.
        SslVerify in Source = "source/ssl",
        /// Cookies.
        Cookies in Source = "source/cookies",
        /// Reading ahead.
        Readahead in Source = "source/readahead",
        /// Time after which a request has failed.
        Timeout in Source = "source/timeout",
        /// Reconnection to the server.
        ReconnectDelay in Source = "source/reconnect",
        /// As whom a server is spoken to.
        Identity in Source = "source/identity",
        /// Keys of known servers.
        KnownHosts in Source = "source/knownHosts",
        /// Pool of a volume.
        Pool in Source = "source/@pool",
        /// Volume of a pool.
        Volume in Source = "source/@volume",
        /// How a volume is reached.
        VolumeMode in Source = "source/@mode",
        /// Namespace of an NVMe controller.
        Namespace in Source = "source/@namespace",
        /// Whether libvirt takes the controller from the host.
        Managed in Source = "source/@managed",
        /// Where the controller sits on the host.
        SourceAddress in Source = "source/address",
        /// Part of the storage.
        Slice in Source = "source/slices",
        /// Data file.
        DataFile in Source = "source/dataStore",
        /// Encryption of the image.
        Encryption in Source = "source/encryption",
        /// Logging in to the server.
        Authentication in Source = "source/auth",
        /// Persistent reservations.
        Reservations in Source = "source/reservations",
        /// Metadata cache of an image below the top one.
        MetadataCacheSize in Format = "format/metadata_cache",
    }
}

field_enum! {
    /// Fields of a controller.
    pub enum ControllerField {
        /// The controller.
        Controller = "controller",
        /// Kind.
        ControllerType in Controller = "@type",
        /// Number.
        Index in Controller = "@index",
        /// Model.
        Model in Controller = "@model",
        /// The driver element.
        Driver in Controller = "driver",
        /// Queues.
        Queues in Driver = "driver/@queues",
        /// Commands per LUN.
        CmdPerLun in Driver = "driver/@cmd_per_lun",
        /// Largest request.
        MaxSectors in Driver = "driver/@max_sectors",
        /// Notification by another thread.
        IoEventFd in Driver = "driver/@ioeventfd",
        /// Through the guest's IOMMU.
        Iommu in Driver = "driver/@iommu",
        /// Cached translations of addresses.
        Ats in Driver = "driver/@ats",
        /// Packed virtqueues.
        Packed in Driver = "driver/@packed",
        /// A page for each queue.
        PagePerVq in Driver = "driver/@page_per_vq",
        /// Event loop.
        IoThread in Driver = "driver/@iothread",
        /// Queue mapping.
        IoThreadMapping in Driver = "driver/iothreads",
        /// Ports.
        Ports in Controller = "@ports",
        /// First port that is served.
        StartPort in Controller = "master/@startport",
        /// Serial number.
        Serial in Controller = "serial",
        /// Address.
        Address in Controller = "address",
        /// Alias.
        Alias in Controller = "alias",
        /// Number for the firmware.
        AcpiIndex in Controller = "acpi/@index",
    }
}

field_enum! {
    /// Fields of an iothread.
    pub enum IoThreadField {
        /// The iothread.
        IoThread = "iothread",
        /// Number.
        Id in IoThread = "@id",
        /// Fewest threads in its pool.
        ThreadPoolMin in IoThread = "@thread_pool_min",
        /// Most threads in its pool.
        ThreadPoolMax in IoThread = "@thread_pool_max",
        /// Polling.
        Polling in IoThread = "poll",
    }
}

field_enum! {
    /// Limits of a disk or of a throttle group.
    pub enum LimitField {
        /// All of them.
        Limits = "limits",
        /// Name of the group.
        Group in Limits = "group_name",
        /// Size of a request.
        SizeIops in Limits = "size_iops_sec",
        /// All, in bytes a second.
        TotalBytes in Limits = "total_bytes_sec",
        /// Reads, in bytes a second.
        ReadBytes in Limits = "read_bytes_sec",
        /// Writes, in bytes a second.
        WriteBytes in Limits = "write_bytes_sec",
        /// All, in bytes a second in a burst.
        TotalBytesMax in Limits = "total_bytes_sec_max",
        /// Reads, in bytes a second in a burst.
        ReadBytesMax in Limits = "read_bytes_sec_max",
        /// Writes, in bytes a second in a burst.
        WriteBytesMax in Limits = "write_bytes_sec_max",
        /// All, in bytes, seconds of a burst.
        TotalBytesMaxLength in Limits = "total_bytes_sec_max_length",
        /// Reads, in bytes, seconds of a burst.
        ReadBytesMaxLength in Limits = "read_bytes_sec_max_length",
        /// Writes, in bytes, seconds of a burst.
        WriteBytesMaxLength in Limits = "write_bytes_sec_max_length",
        /// All, in requests a second.
        TotalIops in Limits = "total_iops_sec",
        /// Reads, in requests a second.
        ReadIops in Limits = "read_iops_sec",
        /// Writes, in requests a second.
        WriteIops in Limits = "write_iops_sec",
        /// All, in requests a second in a burst.
        TotalIopsMax in Limits = "total_iops_sec_max",
        /// Reads, in requests a second in a burst.
        ReadIopsMax in Limits = "read_iops_sec_max",
        /// Writes, in requests a second in a burst.
        WriteIopsMax in Limits = "write_iops_sec_max",
        /// All, in requests, seconds of a burst.
        TotalIopsMaxLength in Limits = "total_iops_sec_max_length",
        /// Reads, in requests, seconds of a burst.
        ReadIopsMaxLength in Limits = "read_iops_sec_max_length",
        /// Writes, in requests, seconds of a burst.
        WriteIopsMaxLength in Limits = "write_iops_sec_max_length",
    }
}

impl SourcePath for FieldPath {
    fn parent(self) -> Option<Self> {
        match self {
            FieldPath::Domain(field) => field.parent().map(FieldPath::Domain),
            FieldPath::Disk(disk, field) => Some(match field.parent() {
                Some(parent) => FieldPath::Disk(disk, parent),
                None => FieldPath::Domain(DomainField::Devices),
            }),
            FieldPath::Image(disk, depth, field) => Some(match (field, field.parent()) {
                // The top image's format is written on the disk's driver element.
                (ImageField::Format, _) if depth == 0 => FieldPath::Disk(disk, DiskField::Driver),
                (_, Some(parent)) => FieldPath::Image(disk, depth, parent),
                (_, None) if depth == 0 => FieldPath::Disk(disk, DiskField::Disk),
                (_, None) => FieldPath::Image(disk, depth - 1, ImageField::Image),
            }),
            FieldPath::Controller(controller, field) => Some(match field.parent() {
                Some(parent) => FieldPath::Controller(controller, parent),
                None => FieldPath::Domain(DomainField::Devices),
            }),
            FieldPath::IoThread(iothread, field) => Some(match field.parent() {
                Some(parent) => FieldPath::IoThread(iothread, parent),
                None => FieldPath::Domain(DomainField::IoThreadIds),
            }),
            FieldPath::Iotune(disk, field) => Some(match field.parent() {
                Some(parent) => FieldPath::Iotune(disk, parent),
                None => FieldPath::Disk(disk, DiskField::Iotune),
            }),
            FieldPath::ThrottleGroup(group, field) => Some(match field.parent() {
                Some(parent) => FieldPath::ThrottleGroup(group, parent),
                None => FieldPath::Domain(DomainField::ThrottleGroups),
            }),
        }
    }
}

impl FieldPath {
    /// Number of the disk that the field belongs to, if it belongs to one.
    pub const fn disk(self) -> Option<usize> {
        match self {
            FieldPath::Disk(disk, _)
            | FieldPath::Image(disk, _, _)
            | FieldPath::Iotune(disk, _) => Some(disk),
            FieldPath::Domain(_)
            | FieldPath::Controller(..)
            | FieldPath::IoThread(..)
            | FieldPath::ThrottleGroup(..) => None,
        }
    }

    /// How the field is called in a breadcrumb.
    pub const fn label(self) -> &'static str {
        match self {
            FieldPath::Domain(field) => field.label(),
            FieldPath::Disk(_, field) => field.label(),
            FieldPath::Image(_, _, field) => field.label(),
            FieldPath::Controller(_, field) => field.label(),
            FieldPath::IoThread(_, field) => field.label(),
            FieldPath::Iotune(_, field) | FieldPath::ThrottleGroup(_, field) => field.label(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_leads_to_the_guest_in_a_few_steps() {
        let all = DiskField::ALL
            .iter()
            .map(|field| FieldPath::Disk(3, *field))
            .chain(
                ImageField::ALL
                    .iter()
                    .map(|field| FieldPath::Image(3, 2, *field)),
            )
            .chain(
                ControllerField::ALL
                    .iter()
                    .map(|field| FieldPath::Controller(1, *field)),
            )
            .chain(
                IoThreadField::ALL
                    .iter()
                    .map(|field| FieldPath::IoThread(0, *field)),
            )
            .chain(LimitField::ALL.iter().flat_map(|field| {
                [
                    FieldPath::Iotune(3, *field),
                    FieldPath::ThrottleGroup(0, *field),
                ]
            }))
            .chain(
                DomainField::ALL
                    .iter()
                    .map(|field| FieldPath::Domain(*field)),
            );
        for path in all {
            let chain: Vec<FieldPath> =
                std::iter::successors(Some(path), |path| path.parent()).collect();
            assert_eq!(
                chain.last(),
                Some(&FieldPath::Domain(DomainField::Domain)),
                "{path:?}"
            );
            assert!(chain.len() < 12, "{path:?}");
        }
    }
}
