//! What a configuration uses that not every QEMU and libvirt has: one row per capability and use.

use vmdisk_facts::Capability;
use vmdisk_model::{
    AioMode, ControllerField, Disk, DiskField, Domain, DomainField, EncryptionEngine,
    EncryptionFormat, FieldPath, Image, ImageField, IoThreadField, MemorySource, NetworkProtocol,
    Protocol, Switch, TargetBus,
};

/// What becomes of a configuration where the capability is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Without {
    /// The program refuses it.
    Refused,
    /// The program does not know the words, and goes on as if they were not there.
    Ignored,
}

/// A use of something that not every version has.
pub(crate) struct Feature {
    pub(crate) capability: Capability,
    /// What the user of it does; reads on from its name: `asks for io_uring`.
    pub(crate) does: &'static str,
    pub(crate) without: Without,
    /// Calls back with each place where it is used.
    pub(crate) places: fn(&Domain, &mut dyn FnMut(FieldPath)),
}

const fn feature(
    capability: Capability,
    without: Without,
    does: &'static str,
    places: fn(&Domain, &mut dyn FnMut(FieldPath)),
) -> Feature {
    Feature {
        capability,
        does,
        without,
        places,
    }
}

/// Every row; a capability may have several.
pub(crate) const FEATURES: &[Feature] = &[
    feature(
        Capability::AioIoUring,
        Without::Refused,
        "asks for io_uring",
        io_uring,
    ),
    feature(
        Capability::LibvirtIoUring,
        Without::Refused,
        "asks for io_uring",
        io_uring,
    ),
    feature(
        Capability::DiscardNoUnref,
        Without::Refused,
        "asks for discard_no_unref",
        discard_no_unref,
    ),
    feature(
        Capability::LibvirtDiscardNoUnref,
        Without::Ignored,
        "asks for discard_no_unref",
        discard_no_unref,
    ),
    feature(
        Capability::LibvirtNbdReconnect,
        Without::Ignored,
        "is to wait for its NBD server when that is gone",
        nbd_reconnect,
    ),
    feature(
        Capability::LibvirtSshIdentity,
        Without::Ignored,
        "says by which user or keys it speaks ssh",
        ssh_identity,
    ),
    feature(
        Capability::IothreadVqMappingBlk,
        Without::Refused,
        "maps its queues to iothreads",
        disk_mapping,
    ),
    feature(
        Capability::LibvirtIothreadMapping,
        Without::Ignored,
        "maps its queues to iothreads",
        disk_mapping,
    ),
    feature(
        Capability::IothreadVqMappingScsi,
        Without::Refused,
        "maps its queues to iothreads",
        controller_mapping,
    ),
    feature(
        Capability::LibvirtScsiIothreadMapping,
        Without::Ignored,
        "maps its queues to iothreads",
        controller_mapping,
    ),
    feature(
        Capability::IothreadThreadPool,
        Without::Refused,
        "sets the size of its thread pool",
        thread_pool,
    ),
    feature(
        Capability::NvmeNamespaceDevice,
        Without::Refused,
        "is on bus nvme",
        nvme_bus,
    ),
    feature(
        Capability::LibvirtNvmeBus,
        Without::Refused,
        "is on bus nvme",
        nvme_bus,
    ),
    feature(
        Capability::LibvirtQueueSize,
        Without::Ignored,
        "sets the size of its queues",
        queue_size,
    ),
    feature(
        Capability::LibvirtMetadataCache,
        Without::Ignored,
        "sets the size of its metadata cache",
        metadata_cache,
    ),
    feature(
        Capability::LibvirtVhostUser,
        Without::Refused,
        "is served by a daemon over vhost-user",
        vhost_user,
    ),
    feature(
        Capability::LibvirtDiscardGranularity,
        Without::Ignored,
        "sets discard_granularity",
        discard_granularity,
    ),
    feature(
        Capability::LibvirtRotationRate,
        Without::Ignored,
        "sets rotation_rate",
        rotation_rate,
    ),
    feature(
        Capability::LibvirtTransient,
        Without::Refused,
        "forgets what the guest writes",
        transient,
    ),
    feature(
        Capability::MemoryBackendMemfd,
        Without::Refused,
        "has its memory in a memfd",
        memfd,
    ),
    feature(Capability::Rbd, Without::Refused, "is on RBD", rbd),
    feature(Capability::Iscsi, Without::Refused, "is on iSCSI", iscsi),
    feature(
        Capability::Nfs,
        Without::Refused,
        "is on NFS, spoken by QEMU,",
        nfs,
    ),
    feature(Capability::Ssh, Without::Refused, "is read over SSH", ssh),
    feature(
        Capability::Https,
        Without::Refused,
        "is read over HTTP",
        http,
    ),
    feature(Capability::Ftp, Without::Refused, "is read over FTP", ftp),
    feature(
        Capability::Tftp,
        Without::Refused,
        "is read over TFTP",
        tftp,
    ),
    feature(
        Capability::Gluster,
        Without::Refused,
        "is on GlusterFS",
        gluster,
    ),
    feature(
        Capability::Sheepdog,
        Without::Refused,
        "is on Sheepdog",
        sheepdog,
    ),
    feature(Capability::Vxhs, Without::Refused, "is on VxHS", vxhs),
    feature(
        Capability::RbdEncryption,
        Without::Refused,
        "lets librbd decrypt",
        librbd,
    ),
    feature(
        Capability::RbdLuksAny,
        Without::Refused,
        "lets librbd find out the version of LUKS",
        luks_any,
    ),
    feature(
        Capability::NbdTlsHostname,
        Without::Refused,
        "names the host in the certificate of its NBD server",
        tls_hostname,
    ),
    feature(
        Capability::NvmeDriver,
        Without::Refused,
        "has an NVMe controller driven by QEMU",
        nvme_source,
    ),
    feature(
        Capability::VhostVdpaDriver,
        Without::Refused,
        "is on vhost-vdpa",
        vhost_vdpa,
    ),
    feature(
        Capability::Qcow2DataFile,
        Without::Refused,
        "has its data in a file of its own",
        data_file,
    ),
    feature(
        Capability::PrManager,
        Without::Refused,
        "passes reservations on",
        reservations,
    ),
    feature(
        Capability::StatsIntervals,
        Without::Refused,
        "asks for averages over intervals",
        statistics,
    ),
    feature(
        Capability::LibvirtNvmeSource,
        Without::Refused,
        "has an NVMe controller driven by QEMU",
        nvme_source,
    ),
    feature(
        Capability::LibvirtVhostVdpa,
        Without::Refused,
        "is on vhost-vdpa",
        vhost_vdpa,
    ),
    feature(
        Capability::LibvirtDataStore,
        Without::Ignored,
        "has its data in a file of its own",
        data_file,
    ),
    feature(
        Capability::LibvirtSlices,
        Without::Ignored,
        "is a slice of its file",
        slice,
    ),
    feature(
        Capability::LibvirtStatistics,
        Without::Ignored,
        "asks for averages over intervals",
        statistics,
    ),
    feature(
        Capability::LibvirtThrottleFilters,
        Without::Ignored,
        "is limited by throttle groups",
        throttle_filters,
    ),
];

/// Calls back with a field of each disk that something holds for.
fn disks(
    domain: &Domain,
    found: &mut dyn FnMut(FieldPath),
    field: DiskField,
    holds: fn(&Disk) -> bool,
) {
    for (index, _) in domain
        .disks
        .iter()
        .enumerate()
        .filter(|(_, disk)| holds(disk))
    {
        found(FieldPath::Disk(index, field));
    }
}

fn io_uring(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    disks(domain, found, DiskField::Aio, |disk| {
        disk.backend.aio == Some(AioMode::IoUring)
    });
}

fn discard_no_unref(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    disks(domain, found, DiskField::DiscardNoUnref, |disk| {
        disk.backend.discard_no_unref == Some(Switch::On)
    });
}

fn disk_mapping(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    disks(domain, found, DiskField::IoThreadMapping, |disk| {
        !disk.frontend.iothread_mapping.is_empty()
    });
}

fn controller_mapping(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    for (index, controller) in domain.controllers.iter().enumerate() {
        if !controller.iothread_mapping.is_empty() {
            found(FieldPath::Controller(
                index,
                ControllerField::IoThreadMapping,
            ));
        }
    }
}

fn thread_pool(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    for (index, iothread) in domain.iothreads.iter().enumerate() {
        if iothread.thread_pool_min.is_some() || iothread.thread_pool_max.is_some() {
            found(FieldPath::IoThread(index, IoThreadField::IoThread));
        }
    }
}

fn nvme_bus(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    disks(domain, found, DiskField::TargetBus, |disk| {
        disk.frontend.effective_bus() == TargetBus::Nvme
    });
}

fn queue_size(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    disks(domain, found, DiskField::QueueSize, |disk| {
        disk.frontend.queue_size.is_some()
    });
}

fn metadata_cache(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    disks(domain, found, DiskField::MetadataCacheSize, |disk| {
        disk.backend.metadata_cache_size.is_some()
    });
}

fn vhost_user(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    disks(domain, found, DiskField::SourceType, |disk| {
        matches!(
            disk.backend.source,
            vmdisk_model::BackendSource::VhostUser(_)
        )
    });
}

fn discard_granularity(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    disks(domain, found, DiskField::DiscardGranularity, |disk| {
        disk.frontend.discard_granularity.is_some()
    });
}

fn rotation_rate(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    disks(domain, found, DiskField::RotationRate, |disk| {
        disk.frontend.rotation_rate.is_some()
    });
}

fn transient(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    disks(domain, found, DiskField::Transient, |disk| {
        disk.backend.is_transient
    });
}

fn memfd(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    if domain.memory_backing.source == Some(MemorySource::Memfd) {
        found(FieldPath::Domain(DomainField::MemorySource));
    }
}

/// Calls back with a field of each image of each chain that something holds for.
fn images(
    domain: &Domain,
    found: &mut dyn FnMut(FieldPath),
    field: ImageField,
    holds: impl Fn(&Image) -> bool,
) {
    for (index, disk) in domain.disks.iter().enumerate() {
        let chain = disk.backend.image().into_iter().flat_map(Image::chain);
        for (depth, _) in chain.enumerate().filter(|(_, image)| holds(image)) {
            found(FieldPath::Image(index, depth, field));
        }
    }
}

/// Images that are reached by one of these protocols.
fn networked(domain: &Domain, found: &mut dyn FnMut(FieldPath), protocols: &[NetworkProtocol]) {
    images(
        domain,
        found,
        ImageField::NetworkProtocol,
        |image| match &image.protocol {
            Protocol::Network(network) => protocols.contains(&network.protocol),
            Protocol::File { .. }
            | Protocol::HostDevice { .. }
            | Protocol::Directory { .. }
            | Protocol::Volume(_)
            | Protocol::Nvme(_)
            | Protocol::VhostVdpa { .. }
            | Protocol::Other(_) => false,
        },
    );
}

fn rbd(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    networked(domain, found, &[NetworkProtocol::Rbd]);
}

fn iscsi(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    networked(domain, found, &[NetworkProtocol::Iscsi]);
}

fn nfs(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    networked(domain, found, &[NetworkProtocol::Nfs]);
}

fn ssh(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    networked(domain, found, &[NetworkProtocol::Ssh]);
}

fn http(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    networked(
        domain,
        found,
        &[NetworkProtocol::Http, NetworkProtocol::Https],
    );
}

fn ftp(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    networked(
        domain,
        found,
        &[NetworkProtocol::Ftp, NetworkProtocol::Ftps],
    );
}

fn tftp(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    networked(domain, found, &[NetworkProtocol::Tftp]);
}

fn gluster(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    networked(domain, found, &[NetworkProtocol::Gluster]);
}

fn sheepdog(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    networked(domain, found, &[NetworkProtocol::Sheepdog]);
}

fn vxhs(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    networked(domain, found, &[NetworkProtocol::Vxhs]);
}

fn librbd(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    images(domain, found, ImageField::Encryption, |image| {
        let encryption = image.encryption.as_ref();
        encryption.is_some_and(|encryption| encryption.engine == Some(EncryptionEngine::Librbd))
    });
}

fn luks_any(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    images(domain, found, ImageField::Encryption, |image| {
        let encryption = image.encryption.as_ref();
        encryption.is_some_and(|encryption| encryption.format == Some(EncryptionFormat::LuksAny))
    });
}

fn tls_hostname(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    images(
        domain,
        found,
        ImageField::TlsHostname,
        |image| matches!(&image.protocol, Protocol::Network(network) if network.tls_hostname.is_some()),
    );
}

fn nbd_reconnect(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    images(
        domain,
        found,
        ImageField::ReconnectDelay,
        |image| matches!(&image.protocol, Protocol::Network(network) if network.reconnect_delay.is_some()),
    );
}

fn ssh_identity(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    images(
        domain,
        found,
        ImageField::Identity,
        |image| matches!(&image.protocol, Protocol::Network(network) if network.protocol == NetworkProtocol::Ssh && network.identity.is_some()),
    );
    images(
        domain,
        found,
        ImageField::KnownHosts,
        |image| matches!(&image.protocol, Protocol::Network(network) if network.known_hosts.is_some()),
    );
}

fn nvme_source(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    images(domain, found, ImageField::Source, |image| {
        matches!(image.protocol, Protocol::Nvme(_))
    });
}

fn vhost_vdpa(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    images(domain, found, ImageField::Source, |image| {
        matches!(image.protocol, Protocol::VhostVdpa { .. })
    });
}

fn data_file(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    images(domain, found, ImageField::DataFile, |image| {
        image.data_file.is_some()
    });
}

fn slice(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    images(domain, found, ImageField::Slice, |image| {
        image.slice.is_some()
    });
}

fn reservations(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    images(domain, found, ImageField::Reservations, |image| {
        image.reservations.is_some()
    });
}

fn statistics(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    disks(domain, found, DiskField::Statistics, |disk| {
        !disk.frontend.statistics.intervals.is_empty()
    });
}

fn throttle_filters(domain: &Domain, found: &mut dyn FnMut(FieldPath)) {
    disks(domain, found, DiskField::ThrottleFilters, |disk| {
        !disk.backend.throttle_filters.is_empty()
    });
}
