//! The guest and the frontend that factors select.

use vmdisk_model::{
    BackendSource, Controller, ControllerType, Disk, Domain, Frontend, HugePages, IoThread,
    IoThreadId, MachineType, MemoryAccess, MemoryBacking, MemorySource, TargetBus,
};

use super::Limits;
use super::limits::GUEST_MEMORY;
use crate::EngineKind;

/// Words for frontends.
pub(super) const FRONTENDS: [&str; 5] = [
    "virtio-blk",
    "virtio-scsi",
    "nvme",
    "sata",
    "vhost-user-blk",
];

/// The frontend and guest that the factors select.
pub(super) struct GuestChoice<'a> {
    pub(super) frontend: &'a str,
    pub(super) has_iothread: bool,
    pub(super) queues: Option<u32>,
    pub(super) vcpus: Option<u32>,
    pub(super) has_huge_pages: bool,
}

impl GuestChoice<'_> {
    pub(super) fn is_served_by_daemon(&self) -> bool {
        self.frontend == "vhost-user-blk"
    }

    /// Returns why an engine cannot use it on a vhost-user-blk socket; `None` if it can.
    pub(super) fn impossible_on_socket(&self, engine: EngineKind) -> Option<String> {
        if !matches!(engine, EngineKind::Guest | EngineKind::Mock) {
            return Some(format!(
                "{engine} cannot use a vhost-user-blk socket; guest can"
            ));
        }
        (!self.is_served_by_daemon()).then(|| {
            format!(
                "the disk behind a socket is a vhost-user-blk device, not {}",
                self.frontend
            )
        })
    }

    /// Returns why QEMU or this host cannot run it on this many processors, or on all; `None` if they can.
    pub(super) fn impossible(&self, limits: &Limits, pinned: Option<u32>) -> Option<String> {
        let frontend = self.frontend;
        let is_plain = matches!(frontend, "nvme" | "sata");
        if self.has_iothread && is_plain {
            return Some(format!("QEMU runs {frontend} in its main loop only"));
        }
        if self.queues.is_some() && is_plain {
            return Some(format!("{frontend} has no virtqueues"));
        }
        if self.vcpus.is_some_and(|vcpus| vcpus > limits.processors) {
            return Some(format!(
                "more vCPUs than the host's {} processors would measure its scheduler",
                limits.processors
            ));
        }
        if let (Some(vcpus), Some(pinned)) = (self.vcpus, pinned)
            && vcpus > pinned
        {
            return Some(format!(
                "more vCPUs than the processors of QEMU ({pinned}) would measure the host's scheduler"
            ));
        }
        (self.has_huge_pages && limits.huge_page_bytes < GUEST_MEMORY.0).then(|| {
            format!(
                "the host has {} MiB of free huge pages, but the guest needs {}",
                limits.huge_page_bytes >> 20,
                GUEST_MEMORY.0 >> 20
            )
        })
    }

    /// Builds the guest without its disk, and the disk.
    pub(super) fn guest(&self, source: BackendSource) -> (Domain, Disk) {
        let iothread = self.has_iothread.then_some(IoThreadId(1));
        let mut controllers = Vec::new();
        let frontend = match self.frontend {
            "virtio-scsi" => {
                let mut controller = Controller::virtio_scsi(0);
                controller.iothread = iothread;
                controller.queues = self.queues;
                controllers.push(controller);
                Frontend::new("sda", TargetBus::Scsi)
            }
            "nvme" => {
                controllers.push(Controller::new(ControllerType::Nvme, 0));
                Frontend::new("nvme0n1", TargetBus::Nvme)
            }
            "sata" => Frontend::new("sda", TargetBus::Sata),
            _ => {
                let mut frontend = Frontend::new("vda", TargetBus::Virtio);
                frontend.iothread = iothread;
                frontend.queues = self.queues;
                frontend
            }
        };
        let is_served = self.is_served_by_daemon();
        let guest = Domain {
            name: Some("bench".to_owned()),
            machine: Some(MachineType::new("q35")),
            vcpus: self.vcpus,
            memory: Some(GUEST_MEMORY),
            memory_backing: MemoryBacking {
                huge_pages: self.has_huge_pages.then(HugePages::default),
                source: is_served.then_some(MemorySource::Memfd),
                access: is_served.then_some(MemoryAccess::Shared),
                cell_access: Vec::new(),
            },
            iothreads: iothread.map(IoThread::new).into_iter().collect(),
            controllers,
            ..Domain::default()
        };
        (guest, Disk::new(frontend, source))
    }
}
