//! The part of a guest that its disks depend on.

use crate::{
    Address, Architecture, BackendSource, Blkiotune, BootDevice, Bytes, Controller, ControllerType,
    CpuMode, DefaultIoThread, Disk, DomainType, DriveAddress, FieldPath, FieldValue, Fields,
    Firmware, FrontendKind, ImageField, IoThread, IoThreadId, Iotune, MachineType, MemoryBacking,
    ScsiControllerModel, Switch, TargetBus,
};

/// How much of a guest is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The whole guest. Absent devices do not exist.
    #[default]
    WholeGuest,
    /// Disks alone, as in a `<disk>` snippet: the machine around them is not known.
    DisksOnly,
}

/// A program that makes guests and has its own way with disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manager {
    /// OpenStack Nova.
    Nova,
    /// oVirt.
    Ovirt,
    /// KubeVirt.
    KubeVirt,
    /// Unraid.
    Unraid,
}

impl Manager {
    /// The manager whose mark has this XML name space.
    pub fn of_namespace(namespace: &str) -> Option<Self> {
        const MARKS: [(&str, Manager); 4] = [
            ("http://openstack.org/xmlns/libvirt/nova/", Manager::Nova),
            ("http://ovirt.org/vm/", Manager::Ovirt),
            ("http://kubevirt.io", Manager::KubeVirt),
            ("unraid", Manager::Unraid),
        ];
        let mut marks = MARKS.iter();
        let mark = marks.find(|(mark, _)| namespace.starts_with(mark));
        mark.map(|(_, manager)| *manager)
    }

    /// True if it chooses the host, and writes the paths of devices anew at each start.
    pub const fn resolves_devices(self) -> bool {
        !matches!(self, Manager::Unraid)
    }
}

/// An operating system that needs other disks than most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestSystem {
    /// macOS.
    Macos,
    /// Windows.
    Windows,
}

impl GuestSystem {
    /// The system with this id of libosinfo.
    pub fn of_libosinfo(id: &str) -> Option<Self> {
        if id.contains("apple.com/macos") {
            Some(Self::Macos)
        } else {
            id.contains("microsoft.com/win").then_some(Self::Windows)
        }
    }

    /// The system for which a guest has this device of QEMU.
    pub fn of_device(device: &str) -> Option<Self> {
        let driver = device.split(',').next().unwrap_or_default();
        let driver = driver.strip_prefix("driver=").unwrap_or(driver);
        (driver.trim() == "isa-applesmc").then_some(Self::Macos)
    }
}

/// The part of a guest that its disks depend on; libvirt `<domain>`, one QEMU command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domain {
    /// How much of the guest is known.
    pub scope: Scope,
    /// Name.
    pub name: Option<String>,
    /// The identity that stays when the name changes; libvirt `uuid`, QEMU `-uuid`. Unset, libvirt makes one up
    /// when the guest is defined.
    pub uuid: Option<String>,
    /// The program that made the guest, as its mark in libvirt's `metadata` says. It is only looked at.
    pub manager: Option<Manager>,
    /// The operating system, if the guest names one that needs other disks than most.
    pub system: Option<GuestSystem>,
    /// How CPUs run.
    pub domain_type: Option<DomainType>,
    /// Instruction set.
    pub architecture: Option<Architecture>,
    /// QEMU machine.
    pub machine: Option<MachineType>,
    /// Largest number of vCPUs; unset is 1.
    pub vcpus: Option<u32>,
    /// Memory of the guest.
    pub memory: Option<Bytes>,
    /// How memory is backed.
    pub memory_backing: MemoryBacking,
    /// Kind of firmware that libvirt looks for; libvirt `os/@firmware` (5.2.0).
    pub firmware: Option<Firmware>,
    /// The virtual CPU; unset is the machine's default.
    pub cpu: Option<CpuMode>,
    /// ACPI; libvirt `features/acpi`, QEMU `acpi=`. Unset, libvirt switches it off and QEMU has it. The other features are
    /// written back as they were read.
    pub acpi: Option<Switch>,
    /// Boot devices of the firmware, in order; libvirt `os/boot`. Excludes a boot order of devices.
    pub boot_devices: Vec<BootDevice>,
    /// Share of the host's disks.
    pub blkiotune: Option<Blkiotune>,
    /// Groups of limits that disks may share, each under the name in `group`; libvirt `throttlegroups`
    /// (11.2.0).
    pub throttle_groups: Vec<Iotune>,
    /// QEMU's main loop.
    pub default_iothread: Option<DefaultIoThread>,
    /// Event-loop threads.
    pub iothreads: Vec<IoThread>,
    /// Iothreads that have CPUs or a scheduler of their own; libvirt `cputune/iothreadpin` (1.2.9) and
    /// `cputune/iothreadsched` (1.2.13). They are only looked at, and written back as they were read.
    pub tuned_iothreads: Vec<IoThreadId>,
    /// Path of the program that runs the guest; libvirt `devices/emulator`. It is only looked at, and written back as it was
    /// read.
    pub emulator: Option<String>,
    /// Disk controllers that are written down.
    pub controllers: Vec<Controller>,
    /// Disks, in order.
    pub disks: Vec<Disk>,
    /// Addresses on SCSI controllers that host devices occupy; libvirt `<hostdev
    /// type='scsi'>`. They are only looked at, and written back as they were read.
    pub scsi_host_devices: Vec<DriveAddress>,
    /// Another device than a disk has a place in the boot order; libvirt `interface/boot`, `hostdev/boot` and
    /// `redirdev/boot`. It is only looked at, and written back as it was read.
    pub boots_from_others: bool,
    /// The number of devices for which libvirt finds a place on PCI, beside those with an address. `None` if it is not known
    /// or without a limit. It is only looked at.
    pub pci_room: Option<usize>,
}

impl Domain {
    /// The value of a field; `None` if it is not set, or is not one value of a disk, a controller or an image's format.
    pub fn value(&self, at: FieldPath) -> Option<FieldValue> {
        match at {
            FieldPath::Disk(nth, field) => self.disks.get(nth)?.get(field),
            FieldPath::Controller(nth, field) => self.controllers.get(nth)?.get(field),
            FieldPath::Image(nth, depth, ImageField::Format) => {
                let image = self.disks.get(nth)?.backend.image()?.chain().nth(depth)?;
                image.format.map(FieldValue::from)
            }
            _ => None,
        }
    }

    /// The type of a guest that QEMU does not run.
    pub fn foreign_type(&self) -> Option<&DomainType> {
        let domain_type = self.domain_type.as_ref();
        domain_type.filter(|domain_type| !domain_type.is_run_by_qemu())
    }

    /// True for an x86 PC, to which QEMU gives ACPI unless told otherwise.
    pub fn is_pc(&self) -> bool {
        let is_x86 = matches!(
            self.architecture,
            Some(Architecture::X86_64 | Architecture::I686)
        );
        let is_pc = |machine: &MachineType| machine.is_q35() || machine.is_i440fx();
        is_x86 && self.machine.as_ref().is_none_or(is_pc)
    }

    /// Writes down that the guest boots from its first disk, which libvirt gives every guest without a boot order
    /// (`virDomainDefBootOrderPostParse`).
    pub fn boot_from_first_disk(&mut self) {
        let has_order = |disk: &Disk| disk.frontend.boot_order.is_some();
        let is_open = self.scope == Scope::WholeGuest && !self.boots_from_others;
        if is_open && self.boot_devices.is_empty() && !self.disks.iter().any(has_order) {
            self.boot_devices.push(BootDevice::Disk);
        }
    }

    /// True if there is an iothread with this number.
    pub fn has_iothread(&self, id: IoThreadId) -> bool {
        self.iothreads.iter().any(|thread| thread.id == id)
    }

    /// The configured SCSI controller of a disk: as addressed, else derived from its
    /// target's name, as libvirt puts 7 disks on each. A disk on another bus has none.
    ///
    /// libvirt has a second rule for a wide bus, of 15 disks, which its driver for QEMU never follows: the
    /// flag for it (`VIR_DOMAIN_DEF_FEATURE_WIDE_SCSI`) is VMware's (`virDomainDiskDefAssignAddress`;
    /// tried with libvirt 9.0, which puts `sdi` on controller 1 and `sdq` on controller 2 whatever their
    /// models).
    pub fn scsi_controller_of(&self, disk: &Disk) -> Option<&Controller> {
        if disk.frontend.effective_bus() != TargetBus::Scsi {
            return None;
        }
        let index = Self::scsi_controller_number_of(disk);
        let is_scsi = |controller: &&Controller| controller.controller_type == ControllerType::Scsi;
        // As libvirt writes them they stand together, sorted: then this is the one, however many there are.
        let first = self.controllers.iter().position(|it| is_scsi(&it))?;
        let guess = self.controllers.get(first.saturating_add(index as usize));
        if let Some(controller) = guess.filter(is_scsi)
            && controller.index == Some(index)
            && self.controllers[first].index == Some(0)
        {
            return Some(controller);
        }
        self.scsi_controllers()
            .find(|(number, _)| *number == index)
            .map(|(_, controller)| controller)
    }

    /// True if a disk is attached to a controller of this domain; of other kinds than SCSI, if a disk is on their bus.
    pub fn has_disk_on(&self, controller: &Controller) -> bool {
        let bus = match controller.controller_type {
            ControllerType::Scsi => {
                let mut own = self.disks.iter().map(|disk| self.scsi_controller_of(disk));
                return own.any(|own| own.is_some_and(|own| std::ptr::eq(own, controller)));
            }
            ControllerType::Ide => TargetBus::Ide,
            ControllerType::Sata => TargetBus::Sata,
            ControllerType::Fdc => TargetBus::Fdc,
            ControllerType::Usb => TargetBus::Usb,
            ControllerType::Nvme => TargetBus::Nvme,
        };
        let mut disks = self.disks.iter();
        disks.any(|disk| disk.frontend.effective_bus() == bus)
    }

    /// The SCSI controllers that are written down, with their numbers.
    pub fn scsi_controllers(&self) -> impl Iterator<Item = (u32, &Controller)> {
        self.controllers
            .iter()
            .filter(|controller| controller.controller_type == ControllerType::Scsi)
            .enumerate()
            .map(|(nth, controller)| (controller.index.unwrap_or(nth as u32), controller))
    }

    /// The number of the disk's SCSI controller, configured or not.
    pub fn scsi_controller_number_of(disk: &Disk) -> u32 {
        let by_name = || {
            let target = disk.frontend.target.as_deref().unwrap_or_default();
            DriveAddress::of_target(TargetBus::Scsi, target).map_or(0, |place| place.controller)
        };
        match &disk.frontend.address {
            Some(Address::Drive(drive)) => drive.controller,
            _ => by_name(),
        }
    }

    /// The model of the controller that a SCSI disk is attached to.
    ///
    /// Without a written controller, or on one without a model, it is what libvirt makes of it
    /// ([`ScsiControllerModel::libvirts_choice`]); without an architecture, the default of a PC.
    pub fn scsi_model_of(&self, disk: &Disk) -> ScsiControllerModel {
        let written = self
            .scsi_controller_of(disk)
            .and_then(|controller| controller.scsi_model)
            .filter(|model| *model != ScsiControllerModel::Auto);
        written.unwrap_or_else(|| {
            let architecture = self.architecture.unwrap_or(Architecture::X86_64);
            ScsiControllerModel::libvirts_choice(architecture, self.machine.as_ref())
        })
    }

    /// The device model of a disk's frontend; for a SCSI disk it depends on [`Self::scsi_model_of`].
    pub fn frontend_kind(&self, disk: &Disk) -> FrontendKind {
        if matches!(disk.backend.source, BackendSource::VhostUser(_)) {
            return FrontendKind::VhostUserBlk;
        }
        match disk.frontend.effective_bus() {
            TargetBus::Virtio => FrontendKind::VirtioBlk,
            TargetBus::Scsi => {
                if self.scsi_model_of(disk).is_virtio() {
                    FrontendKind::VirtioScsi
                } else {
                    FrontendKind::Scsi
                }
            }
            TargetBus::Sata => FrontendKind::Sata,
            TargetBus::Ide => FrontendKind::Ide,
            TargetBus::Usb => FrontendKind::Usb,
            TargetBus::Fdc => FrontendKind::Fdc,
            TargetBus::Nvme => FrontendKind::Nvme,
            TargetBus::Sd => FrontendKind::Sd,
            TargetBus::Xen | TargetBus::Uml => FrontendKind::Foreign,
        }
    }

    /// Number of vCPUs in force.
    pub fn effective_vcpus(&self) -> u32 {
        self.vcpus.unwrap_or(1)
    }

    /// Number of queues of a virtio disk or controller that says none: one for each vCPU, and one with machine types
    /// before 5.2.
    pub fn queues_by_default(&self) -> u32 {
        let version = self.machine.as_ref().and_then(MachineType::version);
        if version.is_none_or(|version| version >= (5, 2)) {
            self.effective_vcpus()
        } else {
            1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, Frontend, Image};

    #[test]
    fn a_pc_is_an_x86_guest_on_a_machine_of_either_chipset() {
        let is_pc = |architecture, machine: Option<&str>| {
            let domain = Domain {
                architecture,
                machine: machine.map(MachineType::new),
                ..Domain::default()
            };
            domain.is_pc()
        };
        for x86 in [Architecture::X86_64, Architecture::I686] {
            for machine in [None, Some("pc"), Some("pc-i440fx-7.2"), Some("q35")] {
                assert!(is_pc(Some(x86), machine), "{x86:?} {machine:?}");
            }
            assert!(!is_pc(Some(x86), Some("microvm")));
        }
        for other in [None, Some(Architecture::Aarch64)] {
            assert!(!is_pc(other, None) && !is_pc(other, Some("q35")));
        }
    }

    #[test]
    fn a_disk_is_on_the_controller_of_its_number_in_any_order() {
        let disk = |target: &str, bus| {
            Disk::new(Frontend::new(target, bus), Image::file("/a", Format::Raw))
        };
        let of = |order: [u32; 3]| {
            let mut controllers = vec![Controller::new(ControllerType::Usb, 0)];
            controllers.extend(order.map(|index| Controller::new(ControllerType::Scsi, index)));
            controllers.push(Controller::new(ControllerType::Ide, 1));
            Domain {
                controllers,
                ..Domain::default()
            }
        };
        for order in [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [2, 1, 0],
            [1, 2, 3],
            [0, 0, 1],
        ] {
            let mut domain = of(order);
            for (number, target) in [(0, "sda"), (1, "sdh"), (2, "sdo"), (3, "sdv"), (4, "sdac")] {
                let disk = disk(target, TargetBus::Scsi);
                let found = domain.scsi_controller_of(&disk);
                let expected = order.contains(&number).then_some(number);
                assert_eq!(
                    found.map(|it| it.index),
                    expected.map(Some),
                    "{order:?} {target}"
                );
                assert!(found.is_none_or(|it| it.controller_type == ControllerType::Scsi));
                domain.disks = vec![disk];
                let controllers = domain.controllers.iter();
                let used: Vec<_> = controllers.filter(|it| domain.has_disk_on(it)).collect();
                assert_eq!(
                    used.len(),
                    usize::from(expected.is_some()),
                    "{order:?} {target}"
                );
            }
        }
        let mut domain = of([0, 1, 2]);
        for (bus, kind) in [
            (TargetBus::Usb, Some(ControllerType::Usb)),
            (TargetBus::Ide, Some(ControllerType::Ide)),
            (TargetBus::Virtio, None),
        ] {
            domain.disks = vec![disk("sda", bus)];
            let mut controllers = domain.controllers.iter();
            let used = controllers.find(|it| domain.has_disk_on(it));
            assert_eq!(used.map(|it| it.controller_type), kind);
        }
    }

    #[test]
    fn unset_values_follow_machine_vcpus_and_source() {
        let mut domain = Domain {
            vcpus: Some(4),
            ..Domain::default()
        };
        for (machine, queues) in [
            (None, 4),
            (Some("pc-q35-5.1"), 1),
            (Some("pc-q35-5.2"), 4),
            (Some("q35"), 4),
        ] {
            domain.machine = machine.map(MachineType::new);
            assert_eq!(domain.queues_by_default(), queues, "{machine:?}");
        }
        let mut disk = Disk::new(
            Frontend::new("vda", TargetBus::Virtio),
            Image::file("/a", Format::Raw),
        );
        assert_eq!(domain.frontend_kind(&disk), FrontendKind::VirtioBlk);
        assert!(disk.is_writable());
        disk.frontend.device = Some(crate::Device::Cdrom);
        assert!(!disk.is_writable());
        disk.frontend.device = None;
        disk.backend.is_read_only = true;
        assert!(!disk.is_writable());
        disk.backend.source = crate::VhostUserSocket::new("/run/a.sock").into();
        assert_eq!(domain.frontend_kind(&disk), FrontendKind::VhostUserBlk);
        domain.iothreads = vec![crate::IoThread::new(IoThreadId(2))];
        assert!(domain.has_iothread(IoThreadId(2)) && !domain.has_iothread(IoThreadId(1)));
        for (word, is_foreign) in [("kvm", false), ("qemu", false), ("xen", true)] {
            domain.domain_type = Some(DomainType::from_word(word));
            assert_eq!(domain.foreign_type().is_some(), is_foreign, "{word}");
        }
    }

    #[test]
    fn a_scsi_disk_is_what_its_controller_is() {
        let disk = Disk::new(
            Frontend::new("sda", TargetBus::Scsi),
            Image::host_device("/dev/vg0/a"),
        );
        let mut domain = Domain::default();
        assert_eq!(domain.frontend_kind(&disk), FrontendKind::Scsi);
        domain.controllers.push(Controller::virtio_scsi(0));
        assert_eq!(domain.frontend_kind(&disk), FrontendKind::VirtioScsi);
        domain.controllers[0].index = Some(1);
        assert_eq!(domain.frontend_kind(&disk), FrontendKind::Scsi);
        domain.architecture = Some(Architecture::Aarch64);
        assert_eq!(domain.frontend_kind(&disk), FrontendKind::VirtioScsi);
        domain.controllers[0].index = Some(0);
        assert!(domain.scsi_controller_of(&disk).is_some());
        let other = Disk::new(
            Frontend::new("vda", TargetBus::Virtio),
            Image::host_device("/dev/vg0/b"),
        );
        assert_eq!(domain.scsi_controller_of(&other), None);
    }
}
