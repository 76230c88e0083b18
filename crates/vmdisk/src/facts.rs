//! Facts about a host, and targets.

pub use vmdisk_facts::{
    Answer, Basis, BlockDevice, BlockKind, Btrfs, Buffered, Bug, Capability, CollectError,
    Collector, Component, DeviceNumber, DirectIo, DirectIoBasis, DirectIoEffect, Directory, Fact,
    Facts, FactsError, FactsNeeded, File, FileKind, Filesystem, FsKind, HostIndex, HostName,
    INTROSPECTION_VERSION, Identity, ImageHeader, Introspection, IntrospectionError, LEAST_QEMU,
    MAX_BYTES, MAX_LEVELS, MeasuredEffect, MeasuredFigure, MeasuredStorage, Member, MemberTable,
    Mount, NamedFile, OptionValue, Owner, Probe, Quantity, Read, Reason, Redaction, SCHEMA,
    SCHEMA_VERSION, Target, TargetError, Unknown, ValueKind, Version, VersionError, Warning,
    access, blockdev, btrfs_regime, capability, cgroup, direct_io, drivers, filesystem, host,
    io_uring, is_unstable, known_bad, libvirt, lvm_config, machine_version, machines, mount,
    named_file, path, stack,
};
