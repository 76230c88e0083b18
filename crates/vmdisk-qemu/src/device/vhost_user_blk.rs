//! vhost-user-blk: the device of a `VhostUserBackend`, which shares the guest's memory.

use vmdisk_facts::Capability;
use vmdisk_fields::{DISK_FIELDS, DeviceModel, disk};
use vmdisk_model::{
    BackendSource, Device, DiskField, DomainField, FieldPath, Fields, Scope, Switch, TargetBus,
    VhostUserSocket,
};

use super::DiskDevice;
use crate::argument::QemuOption;
use crate::board::Transport;
use crate::key_value::KeyValue;
use crate::writer::Writer;

/// Maximum bytes of a UNIX socket's path, with the terminating zero (`sockaddr_un`).
const SOCKET_PATH_BYTES: usize = 108;

impl Writer<'_> {
    /// Writes the socket and the device of a `VhostUserBackend`.
    pub(crate) fn write_vhost_user_blk(&mut self, device: &DiskDevice<'_>) {
        let BackendSource::VhostUser(socket) = &device.disk.backend.source else {
            return;
        };
        if socket.served.is_none() {
            self.refuse_host_options(device);
        }
        let frontend = &device.disk.frontend;
        let bus = frontend.effective_bus();
        if bus != TargetBus::Virtio || frontend.effective_device() != Device::Disk {
            self.problem(
                device.at(DiskField::TargetBus),
                "a VhostUserBackend only supports virtio disks",
            );
            return;
        }
        match self.domain().scope {
            Scope::WholeGuest if !self.domain().memory_backing.is_shared() => {
                // Without shared memory QEMU starts, and the guest hangs at its first request.
                self.problem_with_help(
                    FieldPath::Domain(DomainField::MemoryAccess),
                    format!(
                        "disk {} is served by a VhostUserBackend, which must map the guest's memory, and that is private",
                        device.disk.name()
                    ),
                    "share the memory: memfd with access shared",
                );
            }
            Scope::WholeGuest => {}
            Scope::DisksOnly => self.leave_out(
                device.at(DiskField::Source),
                "the rest of the command line must share the guest's memory with the daemon",
            ),
        }
        let address = frontend.address.as_ref();
        let transport = self.transport(address);
        let driver = match transport {
            // The MMIO variant has no suffix.
            Transport::Mmio => "vhost-user-blk".to_owned(),
            Transport::Ccw => {
                self.problem(
                    device.at(DiskField::TargetBus),
                    "QEMU has no vhost-user-blk on channel I/O",
                );
                return;
            }
            Transport::Pci => {
                let at = device.at(DiskField::Model);
                self.virtio_driver("vhost-user-blk", transport, frontend.model, at)
            }
        };
        let chardev = self.write_socket(device, socket);
        let mut object = self.begin_device(driver, device);
        self.virtio_place(
            &mut object,
            transport,
            address,
            device.at(DiskField::Address),
        );
        object.push("chardev", chardev);
        self.disk_properties(&mut object, device, DeviceModel::VhostUserBlk);
        self.device(object, device.at(DiskField::Disk));
    }

    fn write_socket(&mut self, device: &DiskDevice<'_>, socket: &VhostUserSocket) -> String {
        let VhostUserSocket {
            path,
            reconnect,
            reconnect_timeout,
            // A property of the device.
            config_wce: _,
            // Written for the daemon.
            served: _,
        } = socket;
        let at = device.at(DiskField::SocketPath);
        if path.is_empty() || path.len() >= SOCKET_PATH_BYTES {
            let message = format!(
                "the path of a UNIX socket has 1 to {} bytes, and this one {}",
                SOCKET_PATH_BYTES - 1,
                path.len()
            );
            self.problem(at, message);
        }
        let id = format!("socket-{}", device.stem);
        let id = self.places().take_id(&id);
        // `-chardev` does not support JSON in any version; a doubled comma escapes it in the path.
        let mut chardev = KeyValue::first("socket")
            .with("id", id.as_str())
            .with("path", path.as_str());
        if *reconnect == Some(Switch::On) {
            let Some(seconds) = reconnect_timeout else {
                self.problem_with_help(
                    device.at(DiskField::Reconnect),
                    "reconnecting requires a `timeout`, the delay between attempts",
                    "set it to a number of seconds",
                );
                return id;
            };
            chardev = if self.can(Capability::ReconnectMs) {
                chardev.with("reconnect-ms", (u64::from(*seconds) * 1000).to_string())
            } else {
                chardev.with("reconnect", seconds.to_string())
            };
        }
        self.push_pairs(QemuOption::Chardev, chardev, at);
        id
    }

    /// Reports options of the host side, which belong to the daemon.
    fn refuse_host_options(&mut self, device: &DiskDevice<'_>) {
        for field in DISK_FIELDS {
            let is_of_the_host = disk(*field).is_of_the_medium
                || matches!(
                    field,
                    // Of the switches only `write-cache` is a property of the device.
                    DiskField::Cache | DiskField::ReadOnly | DiskField::Shareable
                );
            if is_of_the_host && device.disk.has(*field) {
                let option = disk(*field).libvirt.name();
                self.problem_with_help(
                    device.at(*field),
                    format!(
                        "QEMU cannot set `{option}`, because the VhostUserBackend does the I/O"
                    ),
                    "set it in the daemon",
                );
            }
        }
    }
}
