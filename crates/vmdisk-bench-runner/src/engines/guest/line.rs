//! The command line of a boot, for a guest with the disks of several configurations.

use vmdisk_facts::Target;
use vmdisk_model::{
    Address, BackendSource, Bytes, ControllerType, DomainType, DriveAddress, FrontendKind,
    IoThread, IoThreadId, VhostUserSocket,
};
use vmdisk_qemu::{ArgumentValue, Json, Options};

use crate::engines::node::set_path;
use crate::engines::storage::PreparedStorage;
use crate::engines::workspace::SchedulerGuard;
use crate::{Accelerator, Configuration, Error};

/// A disk of a boot.
#[derive(Debug)]
pub(super) struct DiskOfBoot<'a> {
    pub(super) configuration: &'a Configuration,
    pub(super) storage: PreparedStorage,
    /// True if several cells share it.
    pub(super) is_steady: bool,
    pub(super) _guard: SchedulerGuard,
}

/// The names of a disk in the guest and in QEMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// The serial number that the guest reads.
    pub(super) serial: String,
    /// The id of its device in QEMU.
    pub(super) device: String,
}

/// Returns the writer's arguments, without the kernel, and the names of the disks.
pub(super) fn words(
    disks: &[DiskOfBoot<'_>],
    sockets: &[Option<String>],
    accelerator: Accelerator,
    target: &Target,
    archive_bytes: u64,
) -> Result<(Vec<String>, Vec<Name>), Error> {
    let first = disks.first().expect("a boot has disks").configuration;
    let mut guest = first.guest.clone();
    guest.domain_type = Some(match accelerator {
        Accelerator::Kvm => DomainType::Kvm,
        Accelerator::Tcg | Accelerator::NoGuest => DomainType::Qemu,
    });
    // Unpacking briefly needs the archive twice, and the kernel reserves only half of its memory for unpacked files.
    let least = (archive_bytes * 5 / 2 + (160 << 20)).next_multiple_of(64 << 20);
    guest.memory = guest.memory.max(Some(Bytes(least)));
    guest.disks.clear();
    guest.iothreads.clear();
    guest.controllers.clear();
    let mut names = Vec::new();
    for (index, (of_boot, socket)) in disks.iter().zip(sockets).enumerate() {
        let configuration = of_boot.configuration;
        let mut disk = configuration.disk().clone();
        let number = u32::try_from(index).expect("a boot has few disks");
        let kind = configuration.guest.frontend_kind(&disk);
        let device = device_name(kind, index);
        disk.frontend.target = Some(device.clone());
        // Each disk has its own event loop and controller, as in its original guest.
        let iothread = IoThreadId(number + 1);
        let mut has_iothread = false;
        if disk.frontend.iothread.is_some() && socket.is_none() {
            disk.frontend.iothread = Some(iothread);
            has_iothread = true;
        }
        for controller in &configuration.guest.controllers {
            let mut controller = controller.clone();
            controller.index = Some(number);
            if controller.iothread.is_some() {
                controller.iothread = Some(iothread);
                has_iothread = true;
            }
            guest.controllers.push(controller);
        }
        if has_iothread {
            guest.iothreads.push(IoThread::new(iothread));
        }
        let is_controlled = matches!(kind, FrontendKind::VirtioScsi | FrontendKind::Nvme);
        if is_controlled {
            disk.frontend.address = Some(Address::Drive(DriveAddress::of_unit(number, 0)));
        }
        let serial = format!("vmdisk-bench-{index}");
        match socket {
            Some(socket) => {
                // The daemon opens the image and runs the event loop.
                disk.frontend.iothread = None;
                if let Some(queues) = of_boot.storage.socket_queues() {
                    // By default QEMU requests a queue for each vCPU, and fails if the device has fewer.
                    let queues = queues.min(configuration.guest.effective_vcpus());
                    disk.frontend.queues.get_or_insert(queues);
                }
                disk.backend = vmdisk_model::Backend::new(BackendSource::VhostUser(
                    VhostUserSocket::new(socket.clone()),
                ));
            }
            None => {
                disk.frontend.serial = Some(serial.clone());
                set_path(&mut disk.backend.source, &of_boot.storage)?;
            }
        }
        guest.disks.push(disk);
        names.push(Name { serial, device });
    }
    // AHCI is part of the machine, so a separate controller would measure the same.
    guest
        .controllers
        .retain(|controller| controller.controller_type != ControllerType::Sata);
    let options = Options {
        target: target.clone(),
    };
    let mut line = vmdisk_qemu::write(&guest, &options)
        .map_err(|problems| Error::refused("to write the guest", problems))?;
    for argument in &mut line.arguments {
        disable_config_wce(&mut argument.value);
    }
    Ok((line.argv(), names))
}

/// Returns the name of a disk's device.
fn device_name(kind: FrontendKind, index: usize) -> String {
    let letter = char::from(b'a' + u8::try_from(index % 26).expect("a letter"));
    match kind {
        FrontendKind::Nvme => format!("nvme{index}n1"),
        FrontendKind::VirtioBlk | FrontendKind::VhostUserBlk => format!("vd{letter}"),
        _ => format!("sd{letter}"),
    }
}

/// Disables `config-wce` on vhost-user-blk: with it, QEMU 5.2 to 11.1 loses every flush to its own daemon.
fn disable_config_wce(value: &mut ArgumentValue) {
    if let ArgumentValue::Json(object) = value
        && let Some(Json::String(driver)) = object.get("driver")
        && driver.starts_with("vhost-user-blk")
    {
        object.push("config-wce", Json::Bool(false));
    }
}
