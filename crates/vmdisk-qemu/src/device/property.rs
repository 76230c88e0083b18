//! The properties of a disk's device: which model has which, and under which name.

use vmdisk_facts::Capability;
use vmdisk_model::{
    BackendSource, DiskField, ErrorPolicy, Frontend, Geometry, ReadErrorPolicy, Sgio, Statistics,
    Switch, Tray, VirtioOptions,
};

use super::DiskDevice;
use super::virtio::VirtioField;
use crate::blockdev::written_cache;
use crate::board::Transport;
use crate::json::{Json, JsonObject};
use crate::object::iothread::{iothread_id, vq_mapping};
use crate::options::Style;
use crate::writer::Writer;

/// The device models that a disk comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceModel {
    VirtioBlk,
    VhostUserBlk,
    ScsiHd,
    ScsiCd,
    ScsiBlock,
    IdeHd,
    IdeCd,
    UsbStorage,
    Floppy,
    NvmeNamespace,
}

/// Fields with the property that each becomes.
type Properties = &'static [(DiskField, &'static str)];

const QUEUES: Properties = &[
    (DiskField::Queues, "num-queues"),
    (DiskField::QueueSize, "queue-size"),
];
const VIRTIO: Properties = &[
    (DiskField::Iommu, "iommu_platform"),
    (DiskField::Ats, "ats"),
    (DiskField::Packed, "packed"),
    (DiskField::PagePerVq, "page-per-vq"),
    (DiskField::EventIdx, "event_idx"),
    (DiskField::AcpiIndex, "acpi-index"),
];
const IOEVENTFD: Properties = &[(DiskField::IoEventFd, "ioeventfd")];
const CHS: Properties = &[(DiskField::Geometry, "cyls")];
const TRANSLATION: Properties = &[(DiskField::GeometryTranslation, "bios-chs-trans")];
const DPOFUA: Properties = &[(DiskField::DpoFua, "dpofua")];
const LOADPARM: Properties = &[(DiskField::LoadParm, "loadparm")];
const IOTHREADS: Properties = &[
    (DiskField::IoThread, "iothread"),
    (DiskField::IoThreadMapping, "iothread-vq-mapping"),
];
const BLOCK: Properties = &[
    (DiskField::Shareable, "share-rw"),
    (DiskField::LogicalBlockSize, "logical_block_size"),
    (DiskField::PhysicalBlockSize, "physical_block_size"),
    (DiskField::DiscardGranularity, "discard_granularity"),
    (DiskField::Cache, "write-cache"),
    (DiskField::Statistics, "stats-intervals"),
];
const SHARE: Properties = &[(DiskField::Shareable, "share-rw")];
const ERRORS: Properties = &[
    (DiskField::ErrorPolicy, "werror"),
    (DiskField::ReadErrorPolicy, "rerror"),
];
const SERIAL: Properties = &[(DiskField::Serial, "serial")];
const WWN: Properties = &[(DiskField::Wwn, "wwn")];
const SCSI_MODEL: Properties = &[
    (DiskField::Vendor, "vendor"),
    (DiskField::Product, "product"),
];
const IDE_MODEL: Properties = &[(DiskField::Product, "model")];
const ROTATION: Properties = &[(DiskField::RotationRate, "rotation_rate")];
const REMOVABLE: Properties = &[(DiskField::Removable, "removable")];
const DAEMON: Properties = &[(DiskField::ConfigWce, "config-wce")];
const BOOT: Properties = &[(DiskField::BootOrder, "bootindex")];

/// How a model has a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// As this property.
    Property(&'static str),
    /// Not on the device itself: the code of the model sees to it.
    Elsewhere,
    /// Not at all.
    Nowhere,
}

impl DeviceModel {
    /// Every model.
    #[cfg(test)]
    const ALL: [DeviceModel; 10] = [
        DeviceModel::VirtioBlk,
        DeviceModel::VhostUserBlk,
        DeviceModel::ScsiHd,
        DeviceModel::ScsiCd,
        DeviceModel::ScsiBlock,
        DeviceModel::IdeHd,
        DeviceModel::IdeCd,
        DeviceModel::UsbStorage,
        DeviceModel::Floppy,
        DeviceModel::NvmeNamespace,
    ];

    /// QEMU's name for it, without the transport.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            DeviceModel::VirtioBlk => "virtio-blk",
            DeviceModel::VhostUserBlk => "vhost-user-blk",
            DeviceModel::ScsiHd => "scsi-hd",
            DeviceModel::ScsiCd => "scsi-cd",
            DeviceModel::ScsiBlock => "scsi-block",
            DeviceModel::IdeHd => "ide-hd",
            DeviceModel::IdeCd => "ide-cd",
            DeviceModel::UsbStorage => "usb-storage",
            DeviceModel::Floppy => "floppy",
            DeviceModel::NvmeNamespace => "nvme-ns",
        }
    }

    /// The properties of a model; `device-list-properties` of QEMU 5.2 to 11.1 agree on them.
    const fn properties(self) -> &'static [Properties] {
        match self {
            DeviceModel::VirtioBlk => &[
                VIRTIO, IOEVENTFD, QUEUES, IOTHREADS, BLOCK, CHS, ERRORS, SERIAL, BOOT, LOADPARM,
            ],
            DeviceModel::VhostUserBlk => &[DAEMON, VIRTIO, QUEUES, BOOT, LOADPARM],
            DeviceModel::ScsiHd => &[
                BLOCK, CHS, ERRORS, SERIAL, WWN, SCSI_MODEL, ROTATION, REMOVABLE, DPOFUA, BOOT,
                LOADPARM,
            ],
            DeviceModel::ScsiCd => &[BLOCK, ERRORS, SERIAL, WWN, SCSI_MODEL, BOOT, LOADPARM],
            DeviceModel::ScsiBlock => &[SHARE, ERRORS, ROTATION, BOOT],
            DeviceModel::IdeHd => &[
                BLOCK,
                CHS,
                TRANSLATION,
                ERRORS,
                SERIAL,
                WWN,
                IDE_MODEL,
                ROTATION,
                BOOT,
            ],
            DeviceModel::IdeCd => &[BLOCK, ERRORS, SERIAL, WWN, IDE_MODEL, BOOT],
            DeviceModel::UsbStorage => &[BLOCK, ERRORS, SERIAL, REMOVABLE, BOOT],
            DeviceModel::Floppy => &[BLOCK],
            DeviceModel::NvmeNamespace => &[BLOCK, BOOT],
        }
    }

    /// How the model has a field.
    pub(crate) fn spelling(self, field: DiskField) -> Spelling {
        let property = self
            .properties()
            .iter()
            .flat_map(|group| group.iter())
            .find(|(name, _)| *name == field);
        match (property, self, field) {
            (Some((_, property)), _, _) => Spelling::Property(property),
            // The end of the device's name.
            (None, DeviceModel::VirtioBlk | DeviceModel::VhostUserBlk, DiskField::Model)
            // On the controller, which all its namespaces share.
            | (None, DeviceModel::NvmeNamespace, DiskField::Serial)
            // On the floppy controller.
            | (None, DeviceModel::Floppy, DiskField::BootOrder)
            // Refused together with the other options of the host side.
            | (None, DeviceModel::VhostUserBlk, DiskField::Cache | DiskField::Shareable)
            // The unit's own; the switches for the host are on the nodes.
            | (None, DeviceModel::ScsiBlock, DiskField::Cache) => Spelling::Elsewhere,
            (None, _, _) => Spelling::Nowhere,
        }
    }

    /// Sector size of a disk that says none.
    const fn default_block_size(self) -> u32 {
        match self {
            DeviceModel::ScsiCd => 2048,
            DeviceModel::VirtioBlk
            | DeviceModel::VhostUserBlk
            | DeviceModel::ScsiHd
            | DeviceModel::ScsiBlock
            | DeviceModel::IdeHd
            | DeviceModel::IdeCd
            | DeviceModel::UsbStorage
            | DeviceModel::Floppy
            | DeviceModel::NvmeNamespace => 512,
        }
    }

    /// True if the guest's sectors have 512 bytes whatever is asked for.
    const fn has_fixed_sectors(self) -> bool {
        match self {
            DeviceModel::IdeHd | DeviceModel::IdeCd | DeviceModel::Floppy => true,
            DeviceModel::VirtioBlk
            | DeviceModel::VhostUserBlk
            | DeviceModel::ScsiHd
            | DeviceModel::ScsiCd
            | DeviceModel::ScsiBlock
            | DeviceModel::UsbStorage
            | DeviceModel::NvmeNamespace => false,
        }
    }
}

impl Writer<'_> {
    /// Adds the properties that a disk asks for to its device.
    #[allow(clippy::too_many_lines, reason = "a row for each field")]
    pub(crate) fn disk_properties(
        &mut self,
        object: &mut JsonObject,
        device: &DiskDevice<'_>,
        model: DeviceModel,
    ) {
        let Frontend {
            // Decide the model itself.
            device: _,
            target: _,
            bus: _,
            model: virtio_model,
            rawio,
            sgio,
            ioeventfd,
            event_idx,
            virtio,
            statistics,
            queues,
            queue_size,
            iothread,
            iothread_mapping,
            geometry,
            logical_block_size,
            physical_block_size,
            discard_granularity,
            error_policy,
            read_error_policy,
            serial,
            wwn,
            vendor,
            product,
            rotation_rate,
            removable,
            tray,
            dpofua,
            // Read through `boot_index`, which knows the firmware's order too.
            boot_order: _,
            loadparm,
            // The device's place and id, which stand before its properties.
            address: _,
            alias: _,
            acpi_index,
        } = &device.disk.frontend;
        let VirtioOptions {
            iommu,
            ats,
            packed,
            page_per_vq,
        } = *virtio;
        if model.spelling(DiskField::Iommu) != Spelling::Nowhere {
            let transport = self.transport(device.disk.frontend.address.as_ref());
            self.check_transport(transport, virtio, *ioeventfd, *acpi_index, |field| {
                device.at(match field {
                    VirtioField::Ats => DiskField::Ats,
                    VirtioField::PagePerVq => DiskField::PagePerVq,
                    VirtioField::AcpiIndex => DiskField::AcpiIndex,
                    VirtioField::IoEventFd => DiskField::IoEventFd,
                })
            });
        }
        self.check_queues(device, model);
        self.check_passed_through(device, *rawio, *sgio);
        if *tray == Some(Tray::Open) {
            let message = "QEMU starts with every tray closed; it is opened over QMP";
            self.leave_out(device.at(DiskField::Tray), message);
        }
        let backend = &device.disk.backend;
        let config_wce = match &backend.source {
            BackendSource::VhostUser(socket) => socket.config_wce,
            BackendSource::Image(_) | BackendSource::Empty => None,
        };
        let intervals = self.statistics(device, statistics);
        let loadparm = self.loadparm(device, loadparm.as_deref());
        let translation = geometry.and_then(|geometry| geometry.translation);
        let (logical, physical) =
            self.block_sizes(device, model, *logical_block_size, *physical_block_size);
        let write_cache =
            written_cache(backend).map(|switches| if switches.write_cache { "on" } else { "off" });
        let text = |text: &Option<String>| text.as_deref().map(Json::from);
        let serial = match (serial, self.style()) {
            // libvirt puts a backslash before a space, and the guest sees it.
            (Some(serial), Style::Libvirt) => Some(serial.replace(' ', "\\ ")),
            (serial, Style::Readable) | (serial @ None, Style::Libvirt) => serial.clone(),
        };
        let number = |number: Option<u32>| number.map(Json::from);
        let switch = |switch: Option<Switch>| switch.map(|switch| Json::from(switch == Switch::On));
        let values = [
            (DiskField::Model, virtio_model.map(|_| Json::Null)),
            (
                DiskField::Shareable,
                backend.is_shareable.then_some(Json::Bool(true)),
            ),
            (DiskField::Iommu, switch(iommu)),
            (DiskField::Ats, switch(ats)),
            (DiskField::Packed, switch(packed)),
            (DiskField::PagePerVq, switch(page_per_vq)),
            (DiskField::IoEventFd, switch(*ioeventfd)),
            (DiskField::EventIdx, switch(*event_idx)),
            (DiskField::ConfigWce, switch(config_wce)),
            (DiskField::AcpiIndex, number(*acpi_index)),
            (DiskField::Queues, number(*queues)),
            (DiskField::QueueSize, number(*queue_size)),
            (
                DiskField::IoThread,
                iothread.map(|id| iothread_id(id).into()),
            ),
            (
                DiskField::IoThreadMapping,
                (!iothread_mapping.is_empty()).then(|| vq_mapping(iothread_mapping)),
            ),
            (DiskField::BootOrder, number(self.boot_index(device.nth))),
            (DiskField::LoadParm, loadparm),
            (DiskField::LogicalBlockSize, number(logical)),
            (DiskField::PhysicalBlockSize, number(physical)),
            (DiskField::DiscardGranularity, number(*discard_granularity)),
            (DiskField::Wwn, self.wwn(device, wwn.as_deref())),
            (DiskField::RotationRate, number(*rotation_rate)),
            (DiskField::Vendor, text(vendor)),
            (DiskField::Product, text(product)),
            (DiskField::Removable, switch(*removable)),
            (DiskField::DpoFua, switch(*dpofua)),
            (DiskField::Statistics, intervals),
            (DiskField::Cache, write_cache.map(Json::from)),
            (DiskField::Serial, text(&serial)),
            (
                DiskField::ErrorPolicy,
                error_policy.map(|policy| write_error_word(policy).into()),
            ),
            (
                DiskField::ReadErrorPolicy,
                read_error_word(*read_error_policy, *error_policy).map(Json::from),
            ),
        ];
        let translation = translation.map(|translation| translation.as_wire().into());
        let geometry = geometry.map(|_| Json::Null);
        let values = values.into_iter().chain([
            (DiskField::Geometry, geometry),
            (DiskField::GeometryTranslation, translation),
        ]);
        for (field, value) in values {
            let Some(value) = value else { continue };
            match model.spelling(field) {
                Spelling::Property(_) if field == DiskField::Geometry => {
                    cylinders_heads_sectors(object, device);
                }
                Spelling::Property(name) => object.push(name, value),
                Spelling::Elsewhere => {}
                Spelling::Nowhere => {
                    let name = model.name();
                    self.problem(
                        device.at(field),
                        format!("{name} does not have this option"),
                    );
                }
            }
        }
        if !iothread_mapping.is_empty()
            && model.spelling(DiskField::IoThreadMapping) != Spelling::Nowhere
        {
            let at = device.at(DiskField::IoThreadMapping);
            self.require(
                Capability::IothreadVqMappingBlk,
                at,
                "a mapping of queues to iothreads",
            );
            if iothread.is_some() {
                self.problem(at, "a disk has either one iothread or a mapping, not both");
            }
        }
    }

    /// Notes what is asked for a unit that is passed through and is not QEMU's to do.
    fn check_passed_through(
        &mut self,
        device: &DiskDevice<'_>,
        rawio: Option<Switch>,
        sgio: Option<Sgio>,
    ) {
        if rawio == Some(Switch::On) {
            self.leave_out(
                device.at(DiskField::RawIo),
                "raw I/O is a right of the process (CAP_SYS_RAWIO), which whoever starts QEMU gives it",
            );
        }
        if sgio == Some(Sgio::Unfiltered) {
            self.problem(
                device.at(DiskField::Sgio),
                "no kernel of today passes SCSI commands on unfiltered",
            );
        }
    }

    /// The intervals over which averages are kept.
    fn statistics(&mut self, device: &DiskDevice<'_>, statistics: &Statistics) -> Option<Json> {
        let Statistics {
            intervals,
            histograms,
        } = statistics;
        let at = device.at(DiskField::Statistics);
        if !histograms.is_empty() {
            self.leave_out(
                at,
                "histograms of latencies are set over QMP, after the start",
            );
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

    /// What the boot loader of an IBM Z is told.
    fn loadparm(&mut self, device: &DiskDevice<'_>, loadparm: Option<&str>) -> Option<Json> {
        let loadparm = loadparm?;
        if self.machine().board.transport() != Transport::Ccw {
            let message = "only the boot loader of an IBM Z is told something";
            self.problem(device.at(DiskField::LoadParm), message);
        }
        Some(loadparm.into())
    }

    /// Notes numbers of queues and requests that QEMU does not survive, or that no guest could use.
    fn check_queues(&mut self, device: &DiskDevice<'_>, model: DeviceModel) {
        if model.spelling(DiskField::Queues) == Spelling::Nowhere {
            return;
        }
        let frontend = &device.disk.frontend;
        if let Some(queues) = frontend.queues
            && !(1..=1024).contains(&queues)
        {
            let message =
                format!("{queues} queues: QEMU takes 1 to 1024, and some versions abort on more");
            self.problem(device.at(DiskField::Queues), message);
        }
        if let Some(size) = frontend.queue_size
            && !((4..=1024).contains(&size) && size.is_power_of_two())
        {
            let message = format!("a queue of {size}: QEMU takes a power of two from 4 to 1024");
            self.problem(device.at(DiskField::QueueSize), message);
        }
    }

    /// The sector sizes to write: QEMU wants the physical one not smaller than the logical one, and
    /// does not raise it by itself.
    fn block_sizes(
        &mut self,
        device: &DiskDevice<'_>,
        model: DeviceModel,
        logical: Option<u32>,
        physical: Option<u32>,
    ) -> (Option<u32>, Option<u32>) {
        for (field, size) in [
            (DiskField::LogicalBlockSize, logical),
            (DiskField::PhysicalBlockSize, physical),
        ] {
            if let Some(size) = size
                && !(size.is_power_of_two() && (512..=2 << 20).contains(&size))
            {
                let message = format!("{size} bytes: QEMU takes a power of two from 512 to 2 MiB");
                self.problem(device.at(field), message);
            }
        }
        let is_other = |size: Option<u32>| size.is_some_and(|size| size != 512);
        for (field, is_refused) in [
            (
                DiskField::LogicalBlockSize,
                is_other(logical) && model.has_fixed_sectors(),
            ),
            (
                DiskField::PhysicalBlockSize,
                is_other(physical) && model == DeviceModel::Floppy,
            ),
        ] {
            if is_refused {
                self.problem_with_help(
                    device.at(field),
                    format!("{} has sectors of 512 bytes and no others", model.name()),
                    "use virtio, SCSI or NVMe for larger sectors",
                );
            }
        }
        let in_force = logical.unwrap_or(model.default_block_size());
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

    /// A world wide name as the number that QEMU wants.
    fn wwn(&mut self, device: &DiskDevice<'_>, wwn: Option<&str>) -> Option<Json> {
        let text = wwn?;
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let is_hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        match u64::from_str_radix(digits, 16) {
            Ok(number) if is_hexadecimal => Some(number.into()),
            Ok(_) | Err(_) => {
                let message =
                    format!("'{text}' is not a world wide name: expected 16 hexadecimal digits");
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

/// QEMU's word for what a failed write does.
const fn write_error_word(policy: ErrorPolicy) -> &'static str {
    match policy {
        ErrorPolicy::Enospace => "enospc",
        ErrorPolicy::Stop | ErrorPolicy::Report | ErrorPolicy::Ignore => policy.as_wire(),
    }
}

/// QEMU's word for what a failed read does: as said, else the same as a failed write, which is what
/// libvirt makes of it (`qemuBuildDiskDeviceProps`).
const fn read_error_word(
    read: Option<ReadErrorPolicy>,
    write: Option<ErrorPolicy>,
) -> Option<&'static str> {
    match (read, write) {
        (Some(read), _) => Some(read.as_wire()),
        (None, Some(write @ (ErrorPolicy::Stop | ErrorPolicy::Report | ErrorPolicy::Ignore))) => {
            Some(write.as_wire())
        }
        // Reads do not run out of space.
        (None, Some(ErrorPolicy::Enospace) | None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_model_has_a_property_twice() {
        for model in DeviceModel::ALL {
            let mut names: Vec<&str> = model
                .properties()
                .iter()
                .flat_map(|group| group.iter().map(|(_, name)| *name))
                .collect();
            names.sort_unstable();
            let all = names.len();
            names.dedup();
            assert_eq!(names.len(), all, "{}", model.name());
        }
    }
}
