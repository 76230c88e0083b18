//! The guest's side: the device and its controller, and the thread and the block layer of QEMU.

use vmdisk_facts::{Answer, Capability};
use vmdisk_model::{
    ControllerField, DetectZeroes, Device, Discard, DiskField, DomainField, FieldPath,
    FrontendKind, MachineType, Scope, Switch,
};
use vmdisk_rule::Missing;

use crate::path::{Layer, Property, RequestOutcome, Statement, StatementBasis};
use crate::tracer::{Results, Tracer, lacking, property, unknown};

/// The source for the commands that QEMU passes to a SCSI device of the host.
pub(crate) const SG_IO: &str = "QEMU hw/scsi/scsi-disk.c, scsi_block_is_passthrough: commands use SG_IO, but reads and writes with O_DIRECT";

const PASSES: &str =
    "QEMU block/block-backend.c: a request is passed to the root node of the device";

impl Tracer<'_> {
    /// Adds all steps of the path.
    pub(crate) fn frontend(&mut self) {
        let device = self.guest_device();
        let controller = self.controller(device);
        if self.disk.backend.socket().is_some() {
            self.daemon(controller);
            return;
        }
        let thread = self.event_loop(controller);
        let layer = self.block_layer(thread);
        let disk = self.disk;
        match disk.backend.image() {
            Some(image) if disk.backend.is_transient && disk.is_writable() => {
                let overlay = self.temporary_overlay(layer);
                self.image(overlay, image, 1);
            }
            Some(image) => self.image(layer, image, 0),
            None => {}
        }
    }

    fn kind(&self) -> FrontendKind {
        self.context.domain.frontend_kind(self.disk)
    }

    fn guest_device(&mut self) -> usize {
        let read = RequestOutcome::Passed.by(
            "the guest's driver sends it to the device",
            StatementBasis::source(PASSES),
        );
        let results = [
            read,
            self.guest_writes(),
            self.guest_flushes(),
            self.guest_discards(),
        ];
        let name = format!("{} {}", self.kind().name(), self.disk.name());
        let properties = self.guest_properties();
        self.add(None, Layer::Device, name, properties, results)
    }

    fn guest_properties(&self) -> Vec<Property> {
        let frontend = &self.disk.frontend;
        let mut properties = vec![self.guest_sectors()];
        let is_virtio_blk = matches!(
            self.kind(),
            FrontendKind::VirtioBlk | FrontendKind::VhostUserBlk
        );
        if is_virtio_blk {
            let queues = self.queues(
                frontend.queues,
                FieldPath::Disk(self.index, DiskField::Queues),
            );
            properties.push(queues);
            properties.push(match frontend.queue_size.filter(|size| *size != 0) {
                Some(size) => property(
                    "queue size",
                    size.to_string(),
                    self.setting(DiskField::QueueSize),
                ),
                None if self.is_machine_before((5, 0)) => property(
                    "queue size",
                    "128",
                    StatementBasis::source(
                        "QEMU hw/core/machine.c, hw_compat_4_2: 128 with machine types before 5.0",
                    ),
                ),
                None => property(
                    "queue size",
                    "256",
                    StatementBasis::source(
                        "QEMU hw/block/virtio-blk.c, queue-size: 256 by default since QEMU 5.0",
                    ),
                ),
            });
        }
        if let Some(size) = frontend.discard_granularity {
            let basis = self.setting(DiskField::DiscardGranularity);
            properties.push(property(
                "discard granularity",
                format!("{size} bytes"),
                basis,
            ));
        }
        properties
    }

    /// True for a machine type of an older version than this.
    fn is_machine_before(&self, version: (u32, u32)) -> bool {
        let machine = self.context.domain.machine.as_ref();
        let own = machine.and_then(MachineType::version);
        own.is_some_and(|own| own < version)
    }

    /// True for a SCSI device of the host, whose commands QEMU passes on.
    pub(crate) fn is_passed_through(&self) -> bool {
        self.disk.frontend.effective_device() == Device::Lun
    }

    /// The sectors that the guest sees.
    fn guest_sectors(&self) -> Property {
        if self.is_passed_through() {
            return property(
                "sectors",
                "those of the device",
                StatementBasis::source(SG_IO),
            );
        }
        let frontend = &self.disk.frontend;
        let (logical, physical) = (frontend.logical_block_size, frontend.physical_block_size);
        let value = format!(
            "{}/{} bytes",
            self.guest_sector(),
            physical.unwrap_or(self.guest_sector())
        );
        let basis = match (logical, physical) {
            (Some(_), _) => self.setting(DiskField::LogicalBlockSize),
            (None, Some(_)) => self.setting(DiskField::PhysicalBlockSize),
            (None, None) => StatementBasis::source(
                "QEMU hw/block/block.c, blkconf_blocksizes: 512 bytes unless set; CD drives have 2048",
            ),
        };
        property("sectors", value, basis)
    }

    /// The logical sector size that the guest sees, in bytes.
    pub(crate) fn guest_sector(&self) -> u32 {
        let default = match self.disk.frontend.effective_device() {
            Device::Cdrom => 2048,
            _ => 512,
        };
        self.disk.frontend.logical_block_size.unwrap_or(default)
    }

    /// The number of queues of a virtio device or controller.
    fn queues(&self, set: Option<u32>, at: FieldPath) -> Property {
        match (set.filter(|queues| *queues != 0), self.context.domain.scope) {
            (Some(queues), _) => property("queues", queues.to_string(), self.field(at)),
            (None, Scope::WholeGuest) if self.is_machine_before((5, 2)) => {
                let source = "QEMU hw/core/machine.c, hw_compat_5_1: one queue with machine types before 5.2";
                property("queues", "1", StatementBasis::source(source))
            }
            (None, Scope::WholeGuest) => {
                let basis = self.field(FieldPath::Domain(DomainField::Vcpus));
                let queues = self.context.domain.queues_by_default();
                property("queues", queues.to_string(), basis)
            }
            (None, Scope::DisksOnly) => {
                let missing = Missing::new("the number of vCPUs", Missing::DISKS_ONLY);
                property("queues", "unknown", lacking(missing, Vec::new()))
            }
        }
    }

    fn guest_writes(&self) -> (RequestOutcome, Statement) {
        if self.disk.is_writable() {
            return RequestOutcome::Passed.by(
                "the guest's driver sends it to the device",
                StatementBasis::source(PASSES),
            );
        }
        let field = match self.disk.backend.is_read_only {
            true => DiskField::ReadOnly,
            false => DiskField::Device,
        };
        RequestOutcome::Refused.by("the guest cannot write", self.setting(field))
    }

    fn guest_flushes(&self) -> (RequestOutcome, Statement) {
        if !self.disk.is_writable() {
            let basis = StatementBasis::source(
                "QEMU block/io.c, bdrv_co_flush: nothing is flushed of a read-only node",
            );
            return RequestOutcome::Absent.by("nothing is written", basis);
        }
        if self.is_passed_through() {
            return RequestOutcome::Passed.by(
                "the device itself says whether it has a write cache",
                StatementBasis::source(SG_IO),
            );
        }
        let writes_back = self.disk.backend.effective_cache().switches().write_cache;
        match self.disk.backend.socket() {
            // As the rule vhost-user-flushes-lost reports.
            Some(socket) if socket.config_wce != Some(Switch::Off) && writes_back => {
                let measured = StatementBasis::source(
                    "measured with QEMU 5.2 to 11.1: 2000 writes with an fsync each led to 0 flushes of the daemon",
                );
                let text =
                    "the guest sees a write cache that is switched off, and sends no flushes";
                RequestOutcome::Dropped.by(text, measured)
            }
            _ if writes_back => RequestOutcome::Passed.by(
                "the guest sees a write cache, and flushes it",
                self.setting(DiskField::Cache),
            ),
            _ => RequestOutcome::Blocking.by(
                "the guest sees no write cache; QEMU flushes after each write",
                self.setting(DiskField::Cache),
            ),
        }
    }

    fn guest_discards(&self) -> (RequestOutcome, Statement) {
        let passed = |text: &str, source: &str| {
            RequestOutcome::Passed.by(text, StatementBasis::source(source))
        };
        if !self.disk.is_writable() {
            let basis = StatementBasis::source("QEMU refuses discards of a read-only device");
            return RequestOutcome::Absent.by("nothing is discarded", basis);
        }
        if self.is_passed_through() {
            return passed("the device itself says whether it accepts UNMAP", SG_IO);
        }
        match self.kind() {
            FrontendKind::VirtioBlk => self.virtio_blk_discards(),
            FrontendKind::VirtioScsi | FrontendKind::Scsi | FrontendKind::Usb => passed(
                "the device accepts UNMAP",
                "QEMU hw/scsi/scsi-disk.c, scsi_disk_emulate_unmap",
            ),
            FrontendKind::Sata | FrontendKind::Ide => passed(
                "the device accepts TRIM",
                "QEMU hw/ide/core.c, cmd_data_set_management",
            ),
            FrontendKind::Nvme => passed(
                "the device accepts dataset management",
                "QEMU hw/nvme/ctrl.c, nvme_dsm",
            ),
            FrontendKind::VhostUserBlk => {
                let missing =
                    Missing::new("whether the daemon accepts discards", "the daemon decides");
                unknown(missing, Vec::new())
            }
            FrontendKind::Fdc | FrontendKind::Sd | FrontendKind::Foreign => RequestOutcome::Absent
                .by(
                    "the device has no discards",
                    StatementBasis::source("QEMU hw/block/fdc.c, hw/sd/sd.c"),
                ),
        }
    }

    fn virtio_blk_discards(&self) -> (RequestOutcome, Statement) {
        let source = StatementBasis::source(
            "QEMU hw/core/machine.c, hw_compat_3_1: virtio-blk offers discards since 4.0",
        );
        let mut target = self.context.target.clone();
        if let Some(machine) = &self.context.domain.machine {
            target.machine = Some(machine.0.clone());
        }
        let of_machine = target.can(Capability::MachineVirtioBlkDiscard);
        let of_qemu = target.can(Capability::VirtioBlkDiscard);
        match (of_machine, of_qemu) {
            (Answer::No(_), _) | (_, Answer::No(_)) => {
                RequestOutcome::Absent.by("the device offers no discards", source)
            }
            // Every QEMU that is still in use has them, unless the machine type is old.
            (Answer::Yes(_) | Answer::Unknown, Answer::Yes(_) | Answer::Unknown) => {
                RequestOutcome::Passed.by("the device accepts discards", source)
            }
        }
    }

    /// The controller, if the bus has one: the number of the step that requests leave by.
    fn controller(&mut self, device: usize) -> usize {
        let domain = self.context.domain;
        let kind = self.kind();
        let (name, found) = match kind {
            FrontendKind::VirtioScsi | FrontendKind::Scsi => {
                let model = domain.scsi_model_of(self.disk);
                let number = vmdisk_model::Domain::scsi_controller_number_of(self.disk);
                let found = domain.scsi_controller_of(self.disk);
                (format!("{model} controller {number}"), found)
            }
            FrontendKind::Sata
            | FrontendKind::Ide
            | FrontendKind::Usb
            | FrontendKind::Fdc
            | FrontendKind::Nvme => (format!("{} controller", kind.name()), None),
            FrontendKind::VirtioBlk
            | FrontendKind::VhostUserBlk
            | FrontendKind::Sd
            | FrontendKind::Foreign => return device,
        };
        let index = found.and_then(|found| {
            domain
                .controllers
                .iter()
                .position(|it| std::ptr::eq(it, found))
        });
        let mut properties = Vec::new();
        if kind == FrontendKind::VirtioScsi {
            let at = |field| FieldPath::Controller(index.unwrap_or_default(), field);
            let set = found.and_then(|controller| controller.queues);
            properties.push(self.queues(set, at(ControllerField::Queues)));
            if let Some(sectors) = found.and_then(|controller| controller.max_sectors) {
                let value = format!("{} bytes", u64::from(sectors) * 512);
                properties.push(property(
                    "largest request",
                    value,
                    self.field(at(ControllerField::MaxSectors)),
                ));
            }
        }
        let results = same(
            RequestOutcome::Passed,
            "the controller hands it to the device",
            PASSES,
        );
        self.add(Some(device), Layer::Controller, name, properties, results)
    }

    /// The thread that runs requests.
    fn event_loop(&mut self, above: usize) -> usize {
        let frontend = &self.disk.frontend;
        let controller = self.context.domain.scsi_controller_of(self.disk);
        let mapped: Vec<u32> = frontend
            .iothread_mapping
            .iter()
            .chain(
                controller
                    .iter()
                    .flat_map(|controller| &controller.iothread_mapping),
            )
            .map(|row| row.iothread.0)
            .collect();
        let one = frontend
            .iothread
            .or(controller.and_then(|controller| controller.iothread));
        let (name, text, basis) = match (mapped.as_slice(), one) {
            ([_, ..], _) => (
                format!("iothreads {}", join(&mapped)),
                "its queue's iothread runs it",
                match frontend.iothread_mapping.is_empty() {
                    false => self.field(FieldPath::Disk(self.index, DiskField::IoThreadMapping)),
                    true => StatementBasis::source("the mapping of the controller's queues"),
                },
            ),
            ([], Some(thread)) => (
                format!("iothread {thread}"),
                "the iothread runs it",
                match frontend.iothread {
                    Some(_) => self.setting(DiskField::IoThread),
                    None => StatementBasis::source("the iothread of the controller"),
                },
            ),
            ([], None) => (
                "main loop".to_owned(),
                "QEMU's main loop runs it, among all devices without an iothread",
                self.setting(DiskField::IoThread),
            ),
        };
        let results = std::array::from_fn(|_| RequestOutcome::Passed.by(text, basis.clone()));
        self.add(Some(above), Layer::EventLoop, name, Vec::new(), results)
    }

    /// The block layer, which implements the cache mode, discards and limits.
    pub(crate) fn block_layer(&mut self, above: usize) -> usize {
        let backend = &self.disk.backend;
        let mut properties = vec![property(
            "cache mode",
            backend.effective_cache().as_str(),
            self.setting(DiskField::Cache),
        )];
        let at = |field| self.field(FieldPath::Disk(self.index, field));
        if let Some(iotune) = &backend.iotune {
            let limits = iotune.limits().into_iter().filter_map(|(field, limit)| {
                Some(format!(
                    "{} {}",
                    vmdisk_fields::limit(field)?.libvirt,
                    limit?
                ))
            });
            let limits = limits.collect::<Vec<_>>().join(", ");
            properties.push(property("limits", limits, at(DiskField::Iotune)));
        }
        if !backend.throttle_filters.is_empty() {
            let at = at(DiskField::ThrottleFilters);
            let groups = backend.throttle_filters.join(", ");
            properties.push(property("throttle groups", groups, at));
        }
        let passed = || RequestOutcome::Passed.by("to the image", StatementBasis::source(PASSES));
        let write = match backend.detect_zeroes {
            Some(DetectZeroes::On | DetectZeroes::Unmap) => RequestOutcome::Passed.by(
                "to the image; zeroes become a request to write zeroes",
                self.setting(DiskField::DetectZeroes),
            ),
            Some(DetectZeroes::Off) | None => passed(),
        };
        let flush = match backend.effective_cache().switches().no_flush {
            true => {
                RequestOutcome::Dropped.by("QEMU ignores flushes", self.setting(DiskField::Cache))
            }
            false => passed(),
        };
        let discard = match (backend.discard, self.disk.frontend.effective_device()) {
            (_, Device::Lun) => RequestOutcome::Passed.by(
                "the device receives the command unchanged",
                StatementBasis::source(SG_IO),
            ),
            (Some(Discard::Unmap), _) => {
                RequestOutcome::Passed.by("to the image", self.setting(DiskField::Discard))
            }
            (Some(Discard::Ignore) | None, _) => RequestOutcome::Dropped
                .by("QEMU ignores discards", self.setting(DiskField::Discard)),
        };
        let read = match backend.copy_on_read {
            Some(Switch::On) => RequestOutcome::Passed.by(
                "to the image; data of a backing image is also written to the image",
                self.setting(DiskField::CopyOnRead),
            ),
            Some(Switch::Off) | None => passed(),
        };
        let results = [read, write, flush, discard];
        self.add(Some(above), Layer::BlockLayer, "QEMU", properties, results)
    }
}

/// Four times the same result.
pub(crate) fn same(outcome: RequestOutcome, text: &str, source: &str) -> Results {
    std::array::from_fn(|_| outcome.by(text, StatementBasis::source(source)))
}

fn join(numbers: &[u32]) -> String {
    let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    words.join(", ")
}
