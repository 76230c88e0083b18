//! virtio-blk.

use vmdisk_fields::DeviceModel;
use vmdisk_model::DiskField;

use super::DiskDevice;
use crate::writer::Writer;

impl Writer<'_> {
    /// Writes a virtio-blk device.
    pub(crate) fn write_virtio_blk(&mut self, device: &DiskDevice<'_>) {
        let frontend = &device.disk.frontend;
        let address = frontend.address.as_ref();
        let transport = self.transport(address);
        let driver = self.virtio_driver(
            "virtio-blk",
            transport,
            frontend.model,
            device.at(DiskField::Model),
        );
        let mut object = self.begin_device(driver, device);
        self.virtio_place(
            &mut object,
            transport,
            address,
            device.at(DiskField::Address),
        );
        self.virtio_without_legacy(&mut object, &frontend.virtio, frontend.model, address);
        object.push_some("drive", device.node.as_deref());
        self.disk_properties(&mut object, device, DeviceModel::VirtioBlk);
        self.device(object, device.at(DiskField::Disk));
    }
}
