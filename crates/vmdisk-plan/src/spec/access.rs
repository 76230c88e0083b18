//! How a guest sees a device of the host.

use super::value::spec_words;

spec_words! {
    /// The device type that the guest sees for a block device.
    pub enum DeviceAccess {
        /// A disk that QEMU emulates on it.
        Emulated = "emulated",
        /// The device itself, SCSI commands included; libvirt `device='lun'`, QEMU `scsi-block`.
        Lun = "lun",
    }
}
