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
        pub enum $name:ident { $($(#[$variant_meta:meta])* $variant:ident $(in $parent:ident)?,)+ }
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

            /// True if other fields of the same kind are parts of this one.
            pub fn has_parts(self) -> bool {
                Self::ALL.iter().any(|field| field.parent() == Some(self))
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
        Domain,
        /// Its name.
        Name in Domain,
        /// Its identity.
        Uuid in Domain,
        /// How CPUs run.
        DomainType in Domain,
        /// The operating system part.
        Os in Domain,
        /// Kind of firmware.
        Firmware in Os,
        /// Instruction set.
        Architecture in Os,
        /// Machine.
        Machine in Os,
        /// vCPUs.
        Vcpus in Domain,
        /// The boot devices of the firmware.
        BootDevices in Os,
        /// Memory size.
        Memory in Domain,
        /// How memory is backed.
        MemoryBacking in Domain,
        /// Huge pages.
        HugePages in MemoryBacking,
        /// Kind of memory.
        MemorySource in MemoryBacking,
        /// Access of memory.
        MemoryAccess in MemoryBacking,
        /// Memory of the NUMA cells.
        NumaCells in Domain,
        /// Share of the host's disks.
        Blkiotune in Domain,
        /// Model of the CPUs.
        Cpu in Domain,
        /// CPUs and schedulers.
        CpuTune in Domain,
        /// Groups of limits.
        ThrottleGroups in Domain,
        /// Number of iothreads.
        IoThreads in Domain,
        /// List of iothreads.
        IoThreadIds in Domain,
        /// QEMU's main loop.
        DefaultIoThread in Domain,
        /// Devices.
        Devices in Domain,
        /// The program that runs the guest.
        Emulator in Devices,
    }
}

field_enum! {
    /// Fields of a disk.
    pub enum DiskField {
        /// The disk.
        Disk,
        /// Kind of source.
        SourceType in Disk,
        /// Kind of device.
        Device in Disk,
        /// virtio standard.
        Model in Disk,
        /// Right to raw I/O.
        RawIo in Disk,
        /// Filter of SCSI commands.
        Sgio in Disk,
        /// Effect of a snapshot.
        Snapshot in Disk,
        /// The driver element.
        Driver in Disk,
        /// Name of the driver.
        DriverName in Driver,
        /// Cache mode.
        Cache in Driver,
        /// Host I/O mode.
        Aio in Driver,
        /// Discard mode.
        Discard in Driver,
        /// Zero detection.
        DetectZeroes in Driver,
        /// Copy on read.
        CopyOnRead in Driver,
        /// Discard without unreferencing.
        DiscardNoUnref in Driver,
        /// Write error policy.
        ErrorPolicy in Driver,
        /// Read error policy.
        ReadErrorPolicy in Driver,
        /// Notification by another thread.
        IoEventFd in Driver,
        /// Fewer interrupts.
        EventIdx in Driver,
        /// Through the guest's IOMMU.
        Iommu in Driver,
        /// Cached translations of addresses.
        Ats in Driver,
        /// Packed virtqueues.
        Packed in Driver,
        /// A page for each queue.
        PagePerVq in Driver,
        /// Statistics.
        Statistics in Driver,
        /// Queues.
        Queues in Driver,
        /// Queue size.
        QueueSize in Driver,
        /// Event loop.
        IoThread in Driver,
        /// Queue mapping.
        IoThreadMapping in Driver,
        /// Metadata cache.
        MetadataCacheSize in Driver,
        /// The source element, also of a backend that is not an image.
        Source in Disk,
        /// What becomes of a disk without its source.
        StartupPolicy in Source,
        /// Socket of a `VhostUserBackend`.
        SocketPath in Source,
        /// Reconnection to the daemon.
        Reconnect in Source,
        /// Whether the guest may switch the daemon's write cache.
        ConfigWce in Source,
        /// The target element.
        Target in Disk,
        /// Name of the target.
        TargetDev in Target,
        /// Bus.
        TargetBus in Target,
        /// Revolutions per minute.
        RotationRate in Target,
        /// Removable.
        Removable in Target,
        /// State of the tray.
        Tray in Target,
        /// DPO and FUA.
        DpoFua in Target,
        /// Cylinders, heads and sectors.
        Geometry in Disk,
        /// How the firmware translates them.
        GeometryTranslation in Geometry,
        /// Block sizes.
        BlockIo in Disk,
        /// Logical block size.
        LogicalBlockSize in BlockIo,
        /// Physical block size.
        PhysicalBlockSize in BlockIo,
        /// Discard granularity.
        DiscardGranularity in BlockIo,
        /// Throttling.
        Iotune in Disk,
        /// Groups whose limits the disk shares.
        ThrottleFilters in Disk,
        /// Read-only.
        ReadOnly in Disk,
        /// Shareable.
        Shareable in Disk,
        /// Transient.
        Transient in Disk,
        /// Guests share what is below.
        ShareBacking in Transient,
        /// Serial number.
        Serial in Disk,
        /// World wide name.
        Wwn in Disk,
        /// Vendor.
        Vendor in Disk,
        /// Product.
        Product in Disk,
        /// Boot order.
        BootOrder in Disk,
        /// Parameters of the boot loader.
        LoadParm in Disk,
        /// Address.
        Address in Disk,
        /// Alias.
        Alias in Disk,
        /// Number for the firmware.
        AcpiIndex in Disk,
    }
}

field_enum! {
    /// Fields of an image.
    pub enum ImageField {
        /// The image: the top one means the disk, one below means its `<backingStore>`.
        Image,
        /// Format.
        Format in Image,
        /// Where the bytes are.
        Source in Image,
        /// Path of the file or device.
        Path in Source,
        /// Descriptors instead of a path.
        FdGroup in Source,
        /// Protocol of a server.
        NetworkProtocol in Source,
        /// Name of the storage on its server.
        NetworkName in Source,
        /// What follows the `?` of a URL.
        Query in Source,
        /// Encryption of the connection.
        Tls in Source,
        /// Name in the server's certificate.
        TlsHostname in Source,
        /// The servers.
        Hosts in Source,
        /// Snapshot.
        Snapshot in Source,
        /// Configuration file of Ceph.
        ConfigFile in Source,
        /// Name of the iSCSI initiator.
        Initiator in Source,
        /// Verification of the server's certificate.
        SslVerify in Source,
        /// Cookies.
        Cookies in Source,
        /// Reading ahead.
        Readahead in Source,
        /// Time after which a request has failed.
        Timeout in Source,
        /// Reconnection to the server.
        ReconnectDelay in Source,
        /// Identity presented to a server.
        Identity in Source,
        /// Owner of files.
        User in Identity,
        /// Group of files.
        Group in Identity,
        /// User name.
        Username in Identity,
        /// Private key.
        KeyFile in Identity,
        /// Socket of the agent that has the keys.
        AgentSocket in Identity,
        /// Keys of known servers.
        KnownHosts in Source,
        /// Pool of a volume.
        Pool in Source,
        /// Volume of a pool.
        Volume in Source,
        /// How a volume is reached.
        VolumeMode in Source,
        /// Namespace of an NVMe controller.
        Namespace in Source,
        /// Whether libvirt takes the controller from the host.
        Managed in Source,
        /// Where the controller sits on the host.
        SourceAddress in Source,
        /// Part of the storage.
        Slice in Source,
        /// Data file.
        DataFile in Source,
        /// Encryption of the image.
        Encryption in Source,
        /// Logging in to the server.
        Authentication in Source,
        /// Persistent reservations.
        Reservations in Source,
        /// Metadata cache of an image below the top one.
        MetadataCacheSize in Format,
    }
}

field_enum! {
    /// Fields of a controller.
    pub enum ControllerField {
        /// The controller.
        Controller,
        /// Kind.
        ControllerType in Controller,
        /// Number.
        Index in Controller,
        /// Model.
        Model in Controller,
        /// The driver element.
        Driver in Controller,
        /// Queues.
        Queues in Driver,
        /// Commands per LUN.
        CmdPerLun in Driver,
        /// Largest request.
        MaxSectors in Driver,
        /// Notification by another thread.
        IoEventFd in Driver,
        /// Through the guest's IOMMU.
        Iommu in Driver,
        /// Cached translations of addresses.
        Ats in Driver,
        /// Packed virtqueues.
        Packed in Driver,
        /// A page for each queue.
        PagePerVq in Driver,
        /// Event loop.
        IoThread in Driver,
        /// Queue mapping.
        IoThreadMapping in Driver,
        /// Ports.
        Ports in Controller,
        /// First port that is served.
        StartPort in Controller,
        /// Serial number.
        Serial in Controller,
        /// Address.
        Address in Controller,
        /// Alias.
        Alias in Controller,
        /// Number for the firmware.
        AcpiIndex in Controller,
    }
}

field_enum! {
    /// Fields of an iothread.
    pub enum IoThreadField {
        /// The iothread.
        IoThread,
        /// Number.
        Id in IoThread,
        /// Fewest threads in its pool.
        ThreadPoolMin in IoThread,
        /// Most threads in its pool.
        ThreadPoolMax in IoThread,
        /// Polling.
        Polling in IoThread,
    }
}

field_enum! {
    /// Limits of a disk or of a throttle group.
    pub enum LimitField {
        /// All of them.
        Limits,
        /// Name of the group.
        Group in Limits,
        /// Size of a request.
        SizeIops in Limits,
        /// All, in bytes a second.
        TotalBytes in Limits,
        /// Reads, in bytes a second.
        ReadBytes in Limits,
        /// Writes, in bytes a second.
        WriteBytes in Limits,
        /// All, in bytes a second in a burst.
        TotalBytesMax in Limits,
        /// Reads, in bytes a second in a burst.
        ReadBytesMax in Limits,
        /// Writes, in bytes a second in a burst.
        WriteBytesMax in Limits,
        /// All, in bytes, seconds of a burst.
        TotalBytesMaxLength in Limits,
        /// Reads, in bytes, seconds of a burst.
        ReadBytesMaxLength in Limits,
        /// Writes, in bytes, seconds of a burst.
        WriteBytesMaxLength in Limits,
        /// All, in requests a second.
        TotalIops in Limits,
        /// Reads, in requests a second.
        ReadIops in Limits,
        /// Writes, in requests a second.
        WriteIops in Limits,
        /// All, in requests a second in a burst.
        TotalIopsMax in Limits,
        /// Reads, in requests a second in a burst.
        ReadIopsMax in Limits,
        /// Writes, in requests a second in a burst.
        WriteIopsMax in Limits,
        /// All, in requests, seconds of a burst.
        TotalIopsMaxLength in Limits,
        /// Reads, in requests, seconds of a burst.
        ReadIopsMaxLength in Limits,
        /// Writes, in requests, seconds of a burst.
        WriteIopsMaxLength in Limits,
    }
}

impl SourcePath for FieldPath {
    /// The number of the device; its kind, the number of the field and the depth. No text has so many devices or images.
    type Key = (u32, u8, u8, u16);

    fn key(self) -> Self::Key {
        let small = |number| u32::try_from(number).unwrap_or(u32::MAX);
        match self {
            FieldPath::Domain(field) => (0, 0, field as u8, 0),
            FieldPath::Disk(disk, field) => (small(disk), 1, field as u8, 0),
            FieldPath::Image(disk, depth, field) => {
                let depth = u16::try_from(depth).unwrap_or(u16::MAX);
                (small(disk), 2, field as u8, depth)
            }
            FieldPath::Controller(controller, field) => (small(controller), 3, field as u8, 0),
            FieldPath::IoThread(iothread, field) => (small(iothread), 4, field as u8, 0),
            FieldPath::Iotune(disk, field) => (small(disk), 5, field as u8, 0),
            FieldPath::ThrottleGroup(group, field) => (small(group), 6, field as u8, 0),
        }
    }

    fn of_key((number, kind, field, depth): Self::Key) -> Self {
        let (number, field) = (number as usize, usize::from(field));
        match kind {
            0 => FieldPath::Domain(DomainField::ALL[field]),
            1 => FieldPath::Disk(number, DiskField::ALL[field]),
            2 => FieldPath::Image(number, usize::from(depth), ImageField::ALL[field]),
            3 => FieldPath::Controller(number, ControllerField::ALL[field]),
            4 => FieldPath::IoThread(number, IoThreadField::ALL[field]),
            5 => FieldPath::Iotune(number, LimitField::ALL[field]),
            _ => FieldPath::ThrottleGroup(number, LimitField::ALL[field]),
        }
    }

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
            _ => None,
        }
    }

    /// True if other fields are parts of this one.
    pub fn has_parts(self) -> bool {
        match self {
            // Disks, controllers, iothreads and limits have fields of their own.
            FieldPath::Domain(
                DomainField::Devices | DomainField::IoThreadIds | DomainField::ThrottleGroups,
            )
            | FieldPath::Disk(_, DiskField::Iotune) => true,
            FieldPath::Domain(field) => field.has_parts(),
            FieldPath::Disk(_, field) => field.has_parts(),
            FieldPath::Image(_, _, field) => field.has_parts(),
            FieldPath::Controller(_, field) => field.has_parts(),
            FieldPath::IoThread(_, field) => field.has_parts(),
            FieldPath::Iotune(_, field) | FieldPath::ThrottleGroup(_, field) => field.has_parts(),
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
            assert_eq!(FieldPath::of_key(path.key()), path);
            let chain: Vec<FieldPath> =
                std::iter::successors(Some(path), |path| path.parent()).collect();
            assert_eq!(
                chain.last(),
                Some(&FieldPath::Domain(DomainField::Domain)),
                "{path:?}"
            );
            assert!(chain.len() < 12, "{path:?}");
            let mut outer = chain.iter().skip(1);
            assert!(outer.all(|outer| outer.has_parts()), "{path:?}");
        }
        for (depth, field, parent) in [
            (0, ImageField::Format, FieldPath::Disk(3, DiskField::Driver)),
            (
                1,
                ImageField::Format,
                FieldPath::Image(3, 1, ImageField::Image),
            ),
            (0, ImageField::Image, FieldPath::Disk(3, DiskField::Disk)),
            (
                1,
                ImageField::Image,
                FieldPath::Image(3, 0, ImageField::Image),
            ),
            (
                2,
                ImageField::Image,
                FieldPath::Image(3, 1, ImageField::Image),
            ),
        ] {
            let path = FieldPath::Image(3, depth, field);
            assert_eq!(path.parent(), Some(parent), "{path:?}");
        }
    }
}
