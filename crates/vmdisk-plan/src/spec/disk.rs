//! One disk of a spec.

use serde_json::{Value as Schema, json};
use vmdisk_document::Value;
use vmdisk_model::{
    AioMode, Bytes, CacheMode, DetectZeroes, Device, Discard, DiskField, ErrorPolicy,
    ReadErrorPolicy,
};

use super::backend::BackendSpec;
use super::iotune::IotuneSpec;
use super::node::describe;
use super::section::{Reader, SpecValue, all_of, list_of, section};
use super::value::spec_words;

section! {
    /// One disk: its backend, and how the guest sees it. Unset options are chosen.
    #[derive(Default)]
    pub struct DiskSpec of DiskField {
        /// The backend.
        backend: BackendSpec = "",
        /// Bus; default `virtio`, and `scsi` for a LUN, `sata` or `ide` for a CD drive.
        bus: Option<BusSpec> = "bus",
        /// Name of the disk in the configuration, such as `vda`; default: the next free one of the bus.
        target: Option<String> = "target" as TargetDev,
        /// Kind of drive; default `disk`.
        media: Option<MediaSpec> = "media",
        /// Cache mode; default: the fastest safe mode for the host's storage.
        cache: Option<CacheMode> = "cache" as Cache,
        /// Interface for requests to the host's kernel; the default fits the cache mode and the host.
        io: Option<AioMode> = "io" as Aio,
        /// Treatment of the guest's discards; default `unmap` if that frees space.
        discard: Option<Discard> = "discard" as Discard,
        /// Whether writes of zeroes become cheaper requests; QEMU's default is `off`.
        detect_zeroes: Option<DetectZeroes> = "detect-zeroes" as DetectZeroes,
        /// Whether data that the guest reads from the backing image is copied into the image; QEMU's default is `off`.
        copy_on_read: Option<bool> = "copy-on-read" as CopyOnRead,
        /// Whether qcow2 keeps discarded clusters (libvirt 9.5, QEMU 8.1).
        discard_no_unref: Option<bool> = "discard-no-unref" as DiscardNoUnref,
        /// Largest qcow2 metadata cache (libvirt 7.0).
        metadata_cache_size: Option<Bytes> = "metadata-cache-size" as MetadataCacheSize,
        /// Number of virtqueues; QEMU's default is one per vCPU, with current machine types.
        queues: Option<u32> = "queues" as Queues,
        /// Entries of a virtqueue; QEMU's default is 256.
        queue_size: Option<u32> = "queue-size" as QueueSize,
        /// Event loop: a number, several numbers, or `auto`.
        iothread: Option<IoThreadSpec> = "iothread",
        /// Sector size that the guest sees, in bytes.
        logical_block_size: Option<Bytes> = "logical-block-size" as LogicalBlockSize,
        /// Physical sector size, in bytes: the disk reads and writes a whole sector for a smaller write.
        physical_block_size: Option<Bytes> = "physical-block-size" as PhysicalBlockSize,
        /// Smallest discard that the disk offers, in bytes (libvirt 9.8).
        discard_granularity: Option<Bytes> = "discard-granularity" as DiscardGranularity,
        /// Effect of a failed write; QEMU's default is `enospace`.
        error_policy: Option<ErrorPolicy> = "error-policy" as ErrorPolicy,
        /// Effect of a failed read; QEMU's default is `report`.
        read_error_policy: Option<ReadErrorPolicy> = "read-error-policy" as ReadErrorPolicy,
        /// Serial number that the guest sees; unset by default.
        serial: Option<String> = "serial" as Serial,
        /// World wide name, 16 hexadecimal digits.
        wwn: Option<String> = "wwn" as Wwn,
        /// Vendor, at most 8 characters; SCSI only.
        vendor: Option<String> = "vendor" as Vendor,
        /// Product, at most 16 characters on SCSI, 40 on IDE and SATA.
        product: Option<String> = "product" as Product,
        /// Revolutions per minute, 1 for an SSD; SCSI, IDE and SATA only.
        rotation_rate: Option<u32> = "rotation-rate" as RotationRate,
        /// Whether it is shown as removable; USB and SCSI only.
        removable: Option<bool> = "removable" as Removable,
        /// Position in the boot order, from 1.
        boot: Option<u32> = "boot" as BootOrder,
        /// Whether the disk is read-only; default `false`. A CD drive is always read-only.
        readonly: Option<bool> = "readonly" as ReadOnly,
        /// Whether other guests use it at the same time; default `false`.
        shareable: Option<bool> = "shareable" as Shareable,
        /// Whether writes are discarded when the guest stops; default `false`.
        transient: Option<bool> = "transient" as Transient,
        /// Throttling.
        iotune: Option<IotuneSpec> = "iotune",
    }
    unknown keys: explain_unknown_key;
}

/// The intended key for a key in the wrong place, or from another tool.
fn explain_unknown_key(key: &str, value: &Value) -> Option<String> {
    if let Value::Map(_) = value {
        return None;
    }
    if key == "format" || key == "type" {
        let kinds = list_of(BackendSpec::KINDS);
        return Some(format!("use a key of the backend instead: {kinds}"));
    }
    if IotuneSpec::keys().contains(&key) {
        return Some(format!("write `{key}` in the group `iotune`"));
    }
    let kinds: Vec<&str> = BackendSpec::KINDS
        .iter()
        .copied()
        .filter(|kind| BackendSpec::keys_of(kind).contains(&key))
        .collect();
    (!kinds.is_empty()).then(|| format!("`{key}` belongs to the keys of {}", all_of(&kinds)))
}

impl DiskSpec {
    /// The kind of drive: as asked for, else a CD drive for a seed image or an existing file called `*.iso` on a bus that
    /// has CD drives, else a disk.
    pub fn media(&self) -> MediaSpec {
        let is_iso = match &self.backend {
            BackendSpec::Raw(raw) => {
                let ending = raw.path.rsplit('.').next();
                raw.size.is_none()
                    && ending.is_some_and(|ending| ending.eq_ignore_ascii_case("iso"))
            }
            BackendSpec::Seed(_) => true,
            _ => false,
        };
        let is_on_cd_bus = matches!(
            self.bus,
            None | Some(
                BusSpec::Sata | BusSpec::Ide | BusSpec::Scsi | BusSpec::VirtioScsi | BusSpec::Usb
            )
        );
        match self.media {
            Some(media) => media,
            None if is_iso && is_on_cd_bus => MediaSpec::Cdrom,
            None => MediaSpec::Disk,
        }
    }

    /// A disk with every option left open.
    pub fn new(backend: impl Into<BackendSpec>) -> Self {
        DiskSpec {
            backend: backend.into(),
            ..DiskSpec::default()
        }
    }
}

spec_words! {
    /// Bus of a disk.
    pub enum BusSpec {
        /// A virtio-blk device of its own.
        Virtio = "virtio" | "virtio-blk",
        /// A virtio-scsi controller.
        VirtioScsi = "virtio-scsi",
        /// A SCSI controller; which one is chosen.
        Scsi = "scsi",
        /// AHCI.
        Sata = "sata",
        /// Parallel ATA.
        Ide = "ide",
        /// USB mass storage.
        Usb = "usb",
        /// Emulated NVMe (libvirt 11.5).
        Nvme = "nvme",
        /// Floppy controller.
        Fdc = "fdc",
        /// SD card.
        Sd = "sd",
    }
}

spec_words! {
    /// Kind of drive.
    pub enum MediaSpec {
        /// A disk.
        Disk = "disk",
        /// A CD or DVD drive.
        Cdrom = "cdrom",
        /// A floppy drive.
        Floppy = "floppy",
    }
}

impl MediaSpec {
    /// The kind of device of the model.
    pub const fn device(self) -> Device {
        match self {
            MediaSpec::Disk => Device::Disk,
            MediaSpec::Cdrom => Device::Cdrom,
            MediaSpec::Floppy => Device::Floppy,
        }
    }
}

/// Which event loop serves a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IoThreadSpec {
    /// One of its own, as far as there are enough.
    Auto,
    /// The iothread of this number.
    Number(u32),
    /// These iothreads, which share the queues (QEMU 9.0, libvirt 10.0).
    Several(Vec<u32>),
}

impl SpecValue for IoThreadSpec {
    fn read(node: Value, reader: &mut Reader) -> Option<Self> {
        match node {
            Value::Text(word) if word == "auto" => Some(IoThreadSpec::Auto),
            Value::List(items) => {
                if items.is_empty() {
                    reader.refuse("the list of iothreads is empty");
                    return None;
                }
                reader.items(items, u32::read).map(IoThreadSpec::Several)
            }
            // A one-liner has no lists.
            Value::Text(text) if text.contains('+') => {
                let numbers: Option<Vec<u32>> =
                    text.split('+').map(|part| part.parse().ok()).collect();
                if numbers.is_none() {
                    reader.refuse(format!("expected numbers between `+`, found `{text}`"));
                }
                numbers.map(IoThreadSpec::Several)
            }
            Value::Text(text) if !text.bytes().all(|byte| byte.is_ascii_digit()) => {
                let found = describe(&Value::Text(text));
                reader.refuse(format!(
                    "expected a number, a list of numbers or `auto`, found {found}"
                ));
                None
            }
            _ => u32::read(node, reader).map(IoThreadSpec::Number),
        }
    }

    fn write(&self) -> Value {
        match self {
            IoThreadSpec::Auto => Value::Text("auto".to_owned()),
            IoThreadSpec::Number(number) => number.write(),
            IoThreadSpec::Several(numbers) => Value::list(numbers.iter().map(SpecValue::write)),
        }
    }

    fn schema() -> Schema {
        let number = u32::schema();
        json!({
            "anyOf": [
                { "const": "auto" },
                number,
                { "type": "string", "pattern": "^[0-9]+([+][0-9]+)+$" },
                { "type": "array", "items": number, "minItems": 1 }
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_that_of_the_table_of_fields() {
        let keys = DiskSpec::keys();
        let of_fields = vmdisk_fields::DISK_FIELDS
            .iter()
            .filter_map(|field| vmdisk_fields::disk(*field).spec);
        let of_fields: Vec<&str> = of_fields.collect();
        for key in &of_fields {
            assert!(keys.contains(key), "{key}");
        }
        let backends = BackendSpec::KINDS;
        for key in keys.iter().filter(|key| !backends.contains(key)) {
            assert!(of_fields.contains(key), "{key}");
        }
        for field in DiskSpec::FIELDS {
            assert!(vmdisk_fields::disk(*field).spec.is_some(), "{field:?}");
        }
    }
}
