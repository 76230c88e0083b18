//! The properties of a disk's device, from the rows of vmdisk-fields.

use vmdisk_facts::Capability;
use vmdisk_fields::{DISK_FIELDS, DeviceModel, FieldRow, Spelling, Zero, disk};
use vmdisk_model::{
    DiskField, ErrorPolicy, FieldValue, Fields, Frontend, Geometry, Sgio, Statistics, Switch, Tray,
};

use super::DiskDevice;
use super::virtio::VirtioField;
use crate::blockdev::written_cache;
use crate::board::Transport;
use crate::json::{Json, JsonObject};
use crate::object::iothread::{iothread_id, vq_mapping};
use crate::writer::Writer;

/// The order in which libvirt writes the properties (`qemuBuildDiskDeviceProps`), which differs from the order of its
/// elements. Properties outside the list come last.
const ORDER: &[DiskField] = &[
    DiskField::Model,
    DiskField::Shareable,
    DiskField::Iommu,
    DiskField::Ats,
    DiskField::Packed,
    DiskField::PagePerVq,
    DiskField::IoEventFd,
    DiskField::EventIdx,
    DiskField::ConfigWce,
    DiskField::AcpiIndex,
    DiskField::Queues,
    DiskField::QueueSize,
    DiskField::IoThread,
    DiskField::IoThreadMapping,
    DiskField::BootOrder,
    DiskField::LoadParm,
    DiskField::LogicalBlockSize,
    DiskField::PhysicalBlockSize,
    DiskField::DiscardGranularity,
    DiskField::Wwn,
    DiskField::RotationRate,
    DiskField::Vendor,
    DiskField::Product,
    DiskField::Removable,
    DiskField::DpoFua,
    DiskField::Statistics,
    DiskField::Cache,
    DiskField::Serial,
    DiskField::ErrorPolicy,
    DiskField::ReadErrorPolicy,
    DiskField::Geometry,
    DiskField::GeometryTranslation,
];

/// Every field that is a property of a device, in libvirt's order.
fn properties() -> impl Iterator<Item = DiskField> {
    let others = DISK_FIELDS
        .iter()
        .filter(|field| disk(**field).is_property() && !ORDER.contains(field));
    ORDER.iter().chain(others).copied()
}

/// A value in QEMU's form.
pub(crate) fn json_of(row: &FieldRow, value: FieldValue) -> Json {
    match value {
        FieldValue::Set => true.into(),
        FieldValue::Switch(switch) => (switch == Switch::On).into(),
        FieldValue::Number(number) => number.into(),
        FieldValue::Count(count) => count.into(),
        FieldValue::Size(size) => size.0.into(),
        FieldValue::Text(text) => text.into(),
        FieldValue::Word(word) => row.qemu_word(word).into(),
        FieldValue::IoThread(id) => iothread_id(id).into(),
    }
}

/// The default sector size.
const fn default_block_size(model: DeviceModel) -> u32 {
    if matches!(model, DeviceModel::ScsiCd) {
        2048
    } else {
        512
    }
}

/// True if the guest's sectors always have 512 bytes.
const fn has_fixed_sectors(model: DeviceModel) -> bool {
    matches!(
        model,
        DeviceModel::IdeHd | DeviceModel::IdeCd | DeviceModel::Floppy
    )
}

impl Writer<'_> {
    /// Adds the properties of a disk to its device.
    pub(crate) fn disk_properties(
        &mut self,
        object: &mut JsonObject,
        device: &DiskDevice<'_>,
        model: DeviceModel,
    ) {
        let has = |field| disk(field).spelling(model) != Spelling::Unknown;
        let frontend = &device.disk.frontend;
        if has(DiskField::Iommu) {
            let transport = self.transport(frontend.address.as_ref());
            let (ioeventfd, acpi_index) = (frontend.ioeventfd, frontend.acpi_index);
            self.check_transport(
                transport,
                &frontend.virtio,
                ioeventfd,
                acpi_index,
                |field| {
                    device.at(match field {
                        VirtioField::Ats => DiskField::Ats,
                        VirtioField::PagePerVq => DiskField::PagePerVq,
                        VirtioField::AcpiIndex => DiskField::AcpiIndex,
                        VirtioField::IoEventFd => DiskField::IoEventFd,
                    })
                },
            );
        }
        self.check_values(device);
        self.check_passed_through(device, frontend.rawio, frontend.sgio);
        if device.disk.backend.startup_policy.is_some() {
            let message = "QEMU refuses to start without the source, whatever `startupPolicy` says";
            self.leave_out(device.at(DiskField::StartupPolicy), message);
        }
        if frontend.tray == Some(Tray::Open) {
            let message = "QEMU starts with every tray closed; open it over QMP";
            self.leave_out(device.at(DiskField::Tray), message);
        }
        let computed = self.computed(device, model);
        for field in properties() {
            let row = disk(field);
            let known = computed.iter().find(|(computed, _)| *computed == field);
            let value = match known {
                Some((_, value)) => value.clone(),
                None => device.disk.get(field).map(|value| json_of(row, value)),
            };
            if row.values.zero() == Zero::UnsetForLibvirt && value == Some(0_u32.into()) {
                continue;
            }
            let Some(value) = value else { continue };
            match row.spelling(model) {
                Spelling::Named(_) if field == DiskField::Geometry => {
                    cylinders_heads_sectors(object, device);
                }
                Spelling::Named(name) => object.push(name, value),
                Spelling::Elsewhere => {}
                Spelling::Unknown => {
                    let option = row.libvirt.name();
                    let message = format!("`{option}` is not supported by {}", model.name());
                    self.problem(device.at(field), message);
                }
            }
        }
        if !frontend.iothread_mapping.is_empty() && has(DiskField::IoThreadMapping) {
            let at = device.at(DiskField::IoThreadMapping);
            self.require(
                Capability::IothreadVqMappingBlk,
                at,
                "a mapping of queues to iothreads",
            );
            if frontend.iothread.is_some() {
                self.problem(at, "a disk can have one iothread or a mapping, not both");
            }
        }
    }

    /// The properties that need more than the value of their field.
    fn computed(
        &mut self,
        device: &DiskDevice<'_>,
        model: DeviceModel,
    ) -> [(DiskField, Option<Json>); 11] {
        let Frontend {
            statistics,
            loadparm,
            logical_block_size,
            physical_block_size,
            wwn,
            serial,
            error_policy,
            read_error_policy,
            iothread_mapping,
            geometry,
            ..
        } = &device.disk.frontend;
        let intervals = self.statistics(device, statistics);
        let loadparm = self.loadparm(device, loadparm.as_deref());
        let (logical, physical) =
            self.block_sizes(device, model, *logical_block_size, *physical_block_size);
        let write_cache = written_cache(&device.disk.backend)
            .map(|switches| if switches.write_cache { "on" } else { "off" });
        // The configured policy, otherwise that for write errors, like libvirt (`qemuBuildDiskDeviceProps`); reads
        // cannot run out of space.
        let read_errors = read_error_policy.map(|policy| policy.as_str());
        let write_errors = error_policy.filter(|policy| *policy != ErrorPolicy::Enospace);
        let read_errors = read_errors.or(write_errors.map(ErrorPolicy::as_str));
        let mapping = (!iothread_mapping.is_empty()).then(|| vq_mapping(iothread_mapping));
        let boot_index = self.boot_index(device.nth);
        [
            (DiskField::IoThreadMapping, mapping),
            (DiskField::BootOrder, boot_index.map(Json::from)),
            (DiskField::LoadParm, loadparm),
            (DiskField::LogicalBlockSize, logical.map(Json::from)),
            (DiskField::PhysicalBlockSize, physical.map(Json::from)),
            (DiskField::Wwn, self.wwn(device, wwn.as_deref())),
            (DiskField::Statistics, intervals),
            (DiskField::Cache, write_cache.map(Json::from)),
            (DiskField::Serial, serial.clone().map(Json::from)),
            (DiskField::ReadErrorPolicy, read_errors.map(Json::from)),
            // Three properties.
            (DiskField::Geometry, geometry.map(|_| Json::Null)),
        ]
    }

    /// Reports settings of a passed-through unit that QEMU does not control.
    fn check_passed_through(
        &mut self,
        device: &DiskDevice<'_>,
        rawio: Option<Switch>,
        sgio: Option<Sgio>,
    ) {
        if rawio == Some(Switch::On) {
            self.leave_out(
                device.at(DiskField::RawIo),
                "raw I/O needs CAP_SYS_RAWIO, which the program that starts QEMU must grant",
            );
        }
        if sgio == Some(Sgio::Unfiltered) {
            self.problem(
                device.at(DiskField::Sgio),
                "current kernels always filter SCSI commands",
            );
        }
    }

    /// The intervals of averages.
    fn statistics(&mut self, device: &DiskDevice<'_>, statistics: &Statistics) -> Option<Json> {
        let Statistics {
            intervals,
            histograms,
        } = statistics;
        let at = device.at(DiskField::Statistics);
        if !histograms.is_empty() {
            self.leave_out(at, "latency histograms are set over QMP after the start");
        }
        if intervals.is_empty() {
            return None;
        }
        self.require(Capability::StatsIntervals, at, "an interval of statistics");
        let intervals: Vec<Json> = intervals
            .iter()
            .map(|interval| (*interval).into())
            .collect();
        Some(intervals.into())
    }

    /// Parameter of the boot loader of an IBM Z; libvirt ignores it on other machines.
    fn loadparm(&mut self, device: &DiskDevice<'_>, loadparm: Option<&str>) -> Option<Json> {
        let loadparm = loadparm?;
        if Transport::of(self.machine().board) != Transport::Ccw {
            let message = "`loadparm` is not written: only the boot loader of an IBM Z uses it";
            self.leave_out(device.at(DiskField::LoadParm), message);
            return None;
        }
        Some(loadparm.into())
    }

    /// Reports values that QEMU refuses, crashes with, or that no guest can use.
    fn check_values(&mut self, device: &DiskDevice<'_>) {
        for field in DISK_FIELDS {
            let values = disk(*field).values;
            let value = device.disk.get(*field).filter(|_| values.are_of_qemu());
            if let Some(why) = value.and_then(|value| values.refusal(&value)) {
                self.problem(device.at(*field), why);
            }
        }
    }

    /// The sector sizes to write: QEMU refuses a physical size below the logical one, and does not raise it
    /// automatically.
    fn block_sizes(
        &mut self,
        device: &DiskDevice<'_>,
        model: DeviceModel,
        logical: Option<u32>,
        physical: Option<u32>,
    ) -> (Option<u32>, Option<u32>) {
        // 0 is unset, for libvirt and for QEMU.
        let [logical, physical] = [logical, physical].map(|size| size.filter(|size| *size != 0));
        let is_other = |size: Option<u32>| size.is_some_and(|size| size != 512);
        for (field, is_refused) in [
            (
                DiskField::LogicalBlockSize,
                is_other(logical) && has_fixed_sectors(model),
            ),
            (
                DiskField::PhysicalBlockSize,
                is_other(physical) && model == DeviceModel::Floppy,
            ),
        ] {
            if is_refused {
                self.problem_with_help(
                    device.at(field),
                    format!("{} only supports sectors of 512 bytes", model.name()),
                    "use virtio, SCSI or NVMe for larger sectors",
                );
            }
        }
        let in_force = logical.unwrap_or(default_block_size(model));
        match physical {
            Some(physical) if physical < in_force => {
                self.problem(
                    device.at(DiskField::PhysicalBlockSize),
                    format!("{physical} bytes are less than the logical sector of {in_force}"),
                );
                (logical, Some(physical))
            }
            Some(physical) => (logical, Some(physical)),
            None => (logical, logical.map(|logical| logical.max(512))),
        }
    }

    /// A world wide name as the number that QEMU expects.
    fn wwn(&mut self, device: &DiskDevice<'_>, wwn: Option<&str>) -> Option<Json> {
        let text = wwn?;
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let is_hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        match u64::from_str_radix(digits, 16) {
            Ok(number) if is_hexadecimal => Some(number.into()),
            Ok(_) | Err(_) => {
                let message = format!("'{text}' is not a WWN: expected 16 hexadecimal digits");
                self.problem(device.at(DiskField::Wwn), message);
                None
            }
        }
    }
}

/// Adds the cylinders, heads and sectors of a disk.
fn cylinders_heads_sectors(object: &mut JsonObject, device: &DiskDevice<'_>) {
    let Some(geometry) = device.disk.frontend.geometry else {
        return;
    };
    let Geometry {
        cylinders,
        heads,
        sectors,
        translation: _, // a property of its own
    } = geometry;
    object.push_some("cyls", cylinders);
    object.push_some("heads", heads);
    object.push_some("secs", sectors);
}
