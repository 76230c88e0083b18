//! The step that a finding concerns.

use vmdisk_model::{DiskField, Domain, FieldPath, ImageField, IoThreadId};

use crate::path::{IoPath, Layer, TraceStep};

/// Layers of rules that report a setting of the disk but are about the storage below: the beginning of their names, and
/// the layers, the best first.
pub const RULE_LAYERS: &[(&str, &[Layer])] = &[
    ("thin-", &[Layer::ThinPool, Layer::LogicalVolume]),
    ("btrfs-", &[Layer::FileSystem]),
    ("odirect-", &[Layer::FileSystem]),
    ("mount-", &[Layer::FileSystem]),
    ("nfs-", &[Layer::FileSystem]),
    ("zfs-", &[Layer::FileSystem, Layer::Drive]),
    ("read-only-filesystem", &[Layer::FileSystem]),
    ("discard-crypt-blocked", &[Layer::Crypt]),
    ("md-degraded", &[Layer::Raid]),
    ("bfq-on-fast-media", &[Layer::Drive]),
    ("lvm-scans-guest-volumes", &[Layer::LogicalVolume]),
    ("qcow2-", &[Layer::Format]),
];

/// The number of the step of the `index`th disk that a finding concerns; `None` for a finding about other disks, or about
/// the guest as a whole.
pub fn step_of(
    domain: &Domain,
    index: usize,
    path: &IoPath,
    rule: &str,
    at: FieldPath,
) -> Option<usize> {
    let find = |wanted: &dyn Fn(&TraceStep) -> bool| path.steps.iter().position(wanted);
    let place = match at {
        FieldPath::Domain(_) | FieldPath::ThrottleGroup(..) => return None,
        FieldPath::Controller(number, _) => {
            let controller = domain.controllers.get(number)?;
            let own = domain.scsi_controller_of(domain.disks.get(index)?)?;
            if !std::ptr::eq(controller, own) {
                return None;
            }
            find(&|step| step.layer == Layer::Controller)
        }
        FieldPath::IoThread(number, _) => {
            let id = domain.iothreads.get(number)?.id;
            if !runs_on(domain, index, id) {
                return None;
            }
            find(&|step| step.layer == Layer::EventLoop)
        }
        FieldPath::Disk(disk, _) | FieldPath::Image(disk, ..) | FieldPath::Iotune(disk, _)
            if disk != index =>
        {
            return None;
        }
        FieldPath::Disk(_, field) => {
            let layer = layer_of(field);
            find(&|step| step.layer == layer || (layer == Layer::File && is_storage(step)))
        }
        FieldPath::Iotune(..) => find(&|step| step.layer == Layer::BlockLayer),
        FieldPath::Image(_, depth, field) => {
            let is_format = matches!(
                field,
                ImageField::Format | ImageField::Encryption | ImageField::DataFile
            );
            find(&|step| step.image == Some(depth) && (step.layer == Layer::Format) == is_format)
        }
    };
    let of_rule = RULE_LAYERS
        .iter()
        .find(|(start, _)| rule.starts_with(start));
    let layers = of_rule.map_or(&[][..], |(_, layers)| layers);
    let below = layers
        .iter()
        .find_map(|layer| find(&|step| step.layer == *layer));
    Some(below.or(place).unwrap_or(0))
}

const fn is_storage(step: &TraceStep) -> bool {
    matches!(
        step.layer,
        Layer::File | Layer::HostDevice | Layer::Server | Layer::Daemon
    )
}

/// The layer of a setting.
const fn layer_of(field: DiskField) -> Layer {
    match field {
        DiskField::IoThread | DiskField::IoThreadMapping => Layer::EventLoop,
        DiskField::Cache
        | DiskField::Discard
        | DiskField::DetectZeroes
        | DiskField::CopyOnRead
        | DiskField::Iotune
        | DiskField::ThrottleFilters
        | DiskField::ErrorPolicy
        | DiskField::ReadErrorPolicy
        | DiskField::Transient
        | DiskField::Snapshot => Layer::BlockLayer,
        DiskField::DiscardNoUnref | DiskField::MetadataCacheSize => Layer::Format,
        DiskField::Aio
        | DiskField::Source
        | DiskField::SourceType
        | DiskField::StartupPolicy
        | DiskField::Shareable => Layer::File,
        DiskField::SocketPath | DiskField::Reconnect | DiskField::ConfigWce => Layer::Daemon,
        _ => Layer::Device,
    }
}

/// True if an iothread runs requests of the disk.
fn runs_on(domain: &Domain, index: usize, id: IoThreadId) -> bool {
    let Some(disk) = domain.disks.get(index) else {
        return false;
    };
    let frontend = &disk.frontend;
    let controller = domain.scsi_controller_of(disk);
    let mapped = frontend.iothread_mapping.iter();
    let mapped = mapped.chain(controller.iter().flat_map(|it| &it.iothread_mapping));
    let single = [frontend.iothread, controller.and_then(|it| it.iothread)];
    let mut threads = single
        .into_iter()
        .flatten()
        .chain(mapped.map(|row| row.iothread));
    threads.any(|thread| thread == id)
}
