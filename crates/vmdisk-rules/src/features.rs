//! Features that some releases of QEMU and libvirt lack: one row per capability and use.

use vmdisk_facts::{Capability, Probe};
use vmdisk_fields::{Phrase, phrase};
use vmdisk_model::{
    BackendSource, ControllerField, CpuMode, DiskField, Domain, DomainField, EncryptionEngine,
    EncryptionFormat, FieldPath, Fields, Image, ImageField, IoThreadField, MemorySource,
    NetworkProtocol, NetworkSource, TargetBus,
};

use Description::{SetsField, Text};
use Uses::{Disk, DiskValue, Image as InImage, ImageWith, Other, Protocol};

/// The reaction of a program without the capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Without {
    /// The program refuses it.
    Refused,
    /// The program silently ignores the setting.
    Ignored,
}

/// The use of a feature, as the rest of a sentence that starts with the name of its user.
enum Description {
    /// Described in these words.
    Text(&'static str),
    /// It sets the field.
    SetsField,
}

/// The places in a configuration that use a feature.
pub(crate) enum Uses {
    /// Disks that set a field.
    Disk(DiskField),
    /// Disks that set a field to this.
    DiskValue(DiskField, &'static str),
    /// Images of each chain that are reached by one of these protocols.
    Protocol(&'static [NetworkProtocol]),
    /// Images of each chain that set a field; not sources whose protocol does not use it.
    Image(ImageField),
    /// Images of each chain that meet a condition; the finding is at a field of the image.
    ImageWith(ImageField, fn(&Image) -> bool),
    /// Elsewhere.
    Other(fn(&Domain) -> Vec<FieldPath>),
}

/// The use of a feature that some releases lack.
pub(crate) struct Feature {
    pub(crate) capability: Capability,
    does: Description,
    pub(crate) without: Without,
    uses: Uses,
    /// The way to do without it, in the imperative.
    pub(crate) instead: &'static str,
}

impl Feature {
    /// The use of the feature, as the rest of a sentence that starts with the name of its user: `uses io_uring`.
    pub(crate) fn does(&self, at: FieldPath) -> Phrase {
        match self.does {
            Text(text) => text.into(),
            SetsField => phrase!("sets {field}", field = at),
        }
    }

    /// Each place where it is used.
    pub(crate) fn places(&self, domain: &Domain) -> Vec<FieldPath> {
        match self.uses {
            Disk(field) => disks(domain, field, |disk| disk.has(field)),
            DiskValue(field, value) => disks(domain, field, |disk| {
                disk.get(field).is_some_and(|set| set.to_string() == value)
            }),
            Protocol(protocols) => images(domain, ImageField::NetworkProtocol, |image| {
                network(image).is_some_and(|network| protocols.contains(&network.protocol))
            }),
            InImage(field) => images(domain, field, |image| {
                let is_used =
                    |source: &NetworkSource| vmdisk_fields::image(field).is_of(source.protocol);
                image.has_member(field) && network(image).is_none_or(is_used)
            }),
            ImageWith(field, holds) => images(domain, field, holds),
            Other(places) => places(domain),
        }
    }
}

/// Declares the rows: a capability, its use, the reaction of programs without it, the places, and what to do instead.
macro_rules! features {
    ($($capability:ident: $does:expr, $without:ident, $uses:expr, $instead:expr;)+) => {
        /// Every row; a capability may have several.
        pub(crate) const FEATURES: &[Feature] = &[
            $(Feature {
                capability: Capability::$capability,
                does: $does,
                without: Without::$without,
                uses: $uses,
                instead: $instead,
            },)+
        ];
    };
}

/// The guest needs the data that it has there.
const OTHER_STORAGE: &str = "use other storage";
const REMOVE: &str = "remove it";

features! {
    AioIoUring: Text("uses io_uring"), Refused, DiskValue(DiskField::Aio, "io_uring"), REMOVE;
    AioNative: Text("uses native AIO"), Refused, DiskValue(DiskField::Aio, "native"), REMOVE;
    LibvirtIoUring: Text("uses io_uring"), Refused, DiskValue(DiskField::Aio, "io_uring"), REMOVE;
    DiscardNoUnref: SetsField, Refused, DiskValue(DiskField::DiscardNoUnref, "on"), REMOVE;
    LibvirtDiscardNoUnref: SetsField, Ignored, DiskValue(DiskField::DiscardNoUnref, "on"), REMOVE;
    LibvirtNbdReconnect: Text("waits for its NBD server to return"), Ignored, InImage(ImageField::ReconnectDelay), REMOVE;
    LibvirtSshIdentity: Text("sets the user or keys of its SSH connection"), Ignored, Other(ssh_identity), REMOVE;
    IothreadVqMappingBlk: Text("maps its queues to iothreads"), Refused, Disk(DiskField::IoThreadMapping), REMOVE;
    LibvirtIothreadMapping: Text("maps its queues to iothreads"), Ignored, Disk(DiskField::IoThreadMapping), REMOVE;
    IothreadVqMappingScsi: Text("maps its queues to iothreads"), Refused, Other(controller_mapping), REMOVE;
    LibvirtScsiIothreadMapping: Text("maps its queues to iothreads"), Ignored, Other(controller_mapping), REMOVE;
    IothreadThreadPool: Text("sets the size of its thread pool"), Refused, Other(thread_pool), REMOVE;
    NvmeNamespaceDevice: Text("is on bus nvme"), Refused, Other(nvme_bus), "use another bus";
    LibvirtNvmeBus: Text("is on bus nvme"), Refused, Other(nvme_bus), "use another bus";
    LibvirtQueueSize: Text("sets the size of its queues"), Ignored, Disk(DiskField::QueueSize), REMOVE;
    LibvirtMetadataCache: Text("sets the size of its metadata cache"), Ignored, Disk(DiskField::MetadataCacheSize), REMOVE;
    LibvirtVhostUser: Text("is served by a daemon over vhost-user"), Refused, Other(vhost_user), OTHER_STORAGE;
    LibvirtDiscardGranularity: SetsField, Ignored, Other(discard_granularity), REMOVE;
    LibvirtDiscardGranularityZero: SetsField, Ignored, DiskValue(DiskField::DiscardGranularity, "0"), REMOVE;
    LibvirtRbdNamespace: Text("is in a namespace of its RBD pool"), Refused, ImageWith(ImageField::NetworkName, |image| network(image).is_some_and(in_rbd_namespace)), "use an image outside a namespace";
    LibvirtRotationRate: SetsField, Ignored, Disk(DiskField::RotationRate), REMOVE;
    LibvirtTransient: Text("is transient"), Refused, Disk(DiskField::Transient), REMOVE;
    MemoryBackendMemfd: Text("uses memfd memory"), Refused, Other(memfd), "use another kind of memory";
    Rbd: Text("is on RBD"), Refused, Protocol(&[NetworkProtocol::Rbd]), OTHER_STORAGE;
    Iscsi: Text("is on iSCSI"), Refused, Protocol(&[NetworkProtocol::Iscsi]), OTHER_STORAGE;
    Nfs: Text("is on NFS, accessed by QEMU,"), Refused, Protocol(&[NetworkProtocol::Nfs]), OTHER_STORAGE;
    Ssh: Text("is read over SSH"), Refused, Protocol(&[NetworkProtocol::Ssh]), OTHER_STORAGE;
    Https: Text("is read over HTTP"), Refused, Protocol(&[NetworkProtocol::Http, NetworkProtocol::Https]), OTHER_STORAGE;
    Ftp: Text("is read over FTP"), Refused, Protocol(&[NetworkProtocol::Ftp, NetworkProtocol::Ftps]), OTHER_STORAGE;
    Tftp: Text("is read over TFTP"), Refused, Protocol(&[NetworkProtocol::Tftp]), OTHER_STORAGE;
    Gluster: Text("is on GlusterFS"), Refused, Protocol(&[NetworkProtocol::Gluster]), OTHER_STORAGE;
    Sheepdog: Text("is on Sheepdog"), Refused, Protocol(&[NetworkProtocol::Sheepdog]), OTHER_STORAGE;
    Vxhs: Text("is on VxHS"), Refused, Protocol(&[NetworkProtocol::Vxhs]), OTHER_STORAGE;
    RbdEncryption: Text("is decrypted by librbd"), Refused, ImageWith(ImageField::Encryption, |image| engine(image) == Some(EncryptionEngine::Librbd)), "let QEMU decrypt it";
    RbdLuksAny: Text("lets librbd detect the LUKS version"), Refused, ImageWith(ImageField::Encryption, |image| format(image) == Some(EncryptionFormat::LuksAny)), "set the version of LUKS";
    NbdTlsHostname: Text("sets the host name in the certificate of its NBD server"), Refused, InImage(ImageField::TlsHostname), REMOVE;
    NvmeDriver: Text("has an NVMe controller driven by QEMU"), Refused, ImageWith(ImageField::Source, |image| matches!(image.protocol, vmdisk_model::Protocol::Nvme(_))), OTHER_STORAGE;
    VhostVdpaDriver: Text("is on vhost-vdpa"), Refused, ImageWith(ImageField::Source, |image| matches!(image.protocol, vmdisk_model::Protocol::VhostVdpa { .. })), OTHER_STORAGE;
    Qcow2DataFile: Text("has an external data file"), Refused, InImage(ImageField::DataFile), OTHER_STORAGE;
    PrManager: Text("passes SCSI reservations through"), Refused, InImage(ImageField::Reservations), REMOVE;
    StatsIntervals: Text("collects statistics over intervals"), Refused, Other(statistics), REMOVE;
    LibvirtNvmeSource: Text("has an NVMe controller driven by QEMU"), Refused, ImageWith(ImageField::Source, |image| matches!(image.protocol, vmdisk_model::Protocol::Nvme(_))), OTHER_STORAGE;
    LibvirtVhostVdpa: Text("is on vhost-vdpa"), Refused, ImageWith(ImageField::Source, |image| matches!(image.protocol, vmdisk_model::Protocol::VhostVdpa { .. })), OTHER_STORAGE;
    LibvirtDataStore: Text("has an external data file"), Ignored, InImage(ImageField::DataFile), OTHER_STORAGE;
    LibvirtSlices: Text("is a slice of its file"), Ignored, InImage(ImageField::Slice), OTHER_STORAGE;
    LibvirtStatistics: Text("collects statistics over intervals"), Ignored, Other(statistics), REMOVE;
    LibvirtCpuMaximum: Text("has the virtual CPU `maximum`"), Refused, Other(maximum_cpu), "use another mode";
    LibvirtThrottleFilters: Text("is limited by throttle groups"), Ignored, Disk(DiskField::ThrottleFilters), REMOVE;
}

/// The field of each disk that meets a condition.
fn disks(
    domain: &Domain,
    field: DiskField,
    holds: impl Fn(&vmdisk_model::Disk) -> bool,
) -> Vec<FieldPath> {
    let disks = domain.disks.iter().enumerate();
    let found = disks.filter(|(_, disk)| holds(disk));
    found.map(|(nth, _)| FieldPath::Disk(nth, field)).collect()
}

/// True if a disk uses a block driver that a QEMU may lack.
pub fn has_optional_driver(domain: &Domain) -> bool {
    let optional = FEATURES
        .iter()
        .filter(|feature| matches!(feature.capability.row().probe, Probe::BlockDriver(_)));
    let mut places = optional.flat_map(|feature| feature.places(domain));
    places.next().is_some()
}

/// The field of each image of each chain that meets a condition.
fn images(domain: &Domain, field: ImageField, holds: impl Fn(&Image) -> bool) -> Vec<FieldPath> {
    let mut found = Vec::new();
    for (index, disk) in domain.disks.iter().enumerate() {
        let chain = disk.backend.image().into_iter().flat_map(Image::chain);
        let chain = chain.enumerate().filter(|(_, image)| holds(image));
        found.extend(chain.map(|(depth, _)| FieldPath::Image(index, depth, field)));
    }
    found
}

fn network(image: &Image) -> Option<&NetworkSource> {
    let vmdisk_model::Protocol::Network(network) = &image.protocol else {
        return None;
    };
    Some(network)
}

fn engine(image: &Image) -> Option<EncryptionEngine> {
    image.encryption.as_ref()?.engine
}

fn format(image: &Image) -> Option<EncryptionFormat> {
    image.encryption.as_ref()?.format
}

/// True for `POOL/NAMESPACE/IMAGE`.
fn in_rbd_namespace(network: &NetworkSource) -> bool {
    network.protocol == NetworkProtocol::Rbd
        && network
            .name
            .as_deref()
            .is_some_and(|name| name.split('/').count() == 3)
}

/// A value other than 0, which has its own row.
fn discard_granularity(domain: &Domain) -> Vec<FieldPath> {
    disks(domain, DiskField::DiscardGranularity, |disk| {
        disk.frontend
            .discard_granularity
            .is_some_and(|size| size > 0)
    })
}

fn controller_mapping(domain: &Domain) -> Vec<FieldPath> {
    let controllers = domain.controllers.iter().enumerate();
    let mapped = controllers.filter(|(_, controller)| !controller.iothread_mapping.is_empty());
    mapped
        .map(|(nth, _)| FieldPath::Controller(nth, ControllerField::IoThreadMapping))
        .collect()
}

fn thread_pool(domain: &Domain) -> Vec<FieldPath> {
    let iothreads = domain.iothreads.iter().enumerate();
    let sized =
        iothreads.filter(|(_, it)| it.thread_pool_min.is_some() || it.thread_pool_max.is_some());
    sized
        .map(|(nth, _)| FieldPath::IoThread(nth, IoThreadField::IoThread))
        .collect()
}

fn nvme_bus(domain: &Domain) -> Vec<FieldPath> {
    let is_nvme = |disk: &vmdisk_model::Disk| disk.frontend.effective_bus() == TargetBus::Nvme;
    disks(domain, DiskField::TargetBus, is_nvme)
}

fn vhost_user(domain: &Domain) -> Vec<FieldPath> {
    disks(domain, DiskField::SourceType, |disk| {
        matches!(disk.backend.source, BackendSource::VhostUser(_))
    })
}

fn memfd(domain: &Domain) -> Vec<FieldPath> {
    let is_memfd = domain.memory_backing.source == Some(MemorySource::Memfd);
    let at = FieldPath::Domain(DomainField::MemorySource);
    is_memfd.then_some(at).into_iter().collect()
}

fn maximum_cpu(domain: &Domain) -> Vec<FieldPath> {
    let is_maximum = domain.cpu == Some(CpuMode::Maximum);
    let at = FieldPath::Domain(DomainField::Cpu);
    is_maximum.then_some(at).into_iter().collect()
}

fn ssh_identity(domain: &Domain) -> Vec<FieldPath> {
    use ImageField::{AgentSocket, Identity, KeyFile, KnownHosts, Username};
    let of_ssh = |at, fields: &[ImageField]| {
        images(domain, at, |image| {
            let is_ssh = |source: &NetworkSource| source.protocol == NetworkProtocol::Ssh;
            let mut fields = fields.iter();
            network(image).is_some_and(is_ssh) && fields.any(|field| image.has_member(*field))
        })
    };
    let mut found = of_ssh(Identity, &[Username, KeyFile, AgentSocket]);
    found.extend(of_ssh(KnownHosts, &[KnownHosts]));
    found
}

fn statistics(domain: &Domain) -> Vec<FieldPath> {
    disks(domain, DiskField::Statistics, |disk| {
        !disk.frontend.statistics.intervals.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_help_removes_the_storage_of_a_disk() {
        let of_storage = |feature: &&Feature| {
            let is_name = matches!(feature.uses, ImageWith(ImageField::NetworkName, _));
            is_name || matches!(feature.uses, Protocol(_) | ImageWith(ImageField::Source, _))
        };
        for feature in FEATURES.iter().filter(of_storage) {
            assert_ne!(feature.instead, REMOVE, "{:?}", feature.capability);
        }
    }
}
