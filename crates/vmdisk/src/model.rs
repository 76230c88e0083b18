//! The model of disks.

pub use vmdisk_model::{
    Address, AioMode, Architecture, Authentication, Backend, BackendSource, Backing, BlkioDevice,
    Blkiotune, Board, BootDevice, Bytes, CacheMode, CacheSwitches, CcwAddress, Change, Controller,
    ControllerField, ControllerType, Cookie, CpuMode, Creation, DefaultIoThread, DetectZeroes,
    Device, DevicePath, DevicePathKind, Discard, Disk, DiskField, Domain, DomainField, DomainType,
    DriveAddress, Encryption, EncryptionCipher, EncryptionEngine, EncryptionFormat,
    EncryptionVector, ErrorPolicy, FieldKind, FieldPath, FieldType, FieldValue, Fields, Firmware,
    Format, FormatConflict, Frontend, FrontendKind, Geometry, GeometryTranslation, GuestSystem,
    HostStorage, HugePages, Image, ImageField, IoThread, IoThreadField, IoThreadId, IoThreadQueues,
    Iotune, IotuneLimits, LatencyHistogram, LimitField, LocatedVolume, LogicalVolumeName,
    MachineType, MadeAs, Manager, MemoryAccess, MemoryBacking, MemorySource, NetworkHost,
    NetworkProtocol, NetworkSource, NetworkTransport, NvmeSource, PciAddress, Polling, PoolType,
    Preallocation, Protocol, Qcow2Creation, Qcow2Preallocation, ReadErrorPolicy, Reservations,
    Scope, ScsiControllerModel, Secret, SecretReference, Sgio, SizeError, Slice, Snapshot,
    StartupPolicy, Statistics, StoragePool, StorageVolume, Switch, TargetBus, ThinCreation, Tray,
    TypedField, UsbAddress, VhostUserSocket, VirtioModel, VirtioOptions, VolumeMode,
    VolumeNotLocated, VolumeSource, VolumeType, kind_of, target_number,
};
