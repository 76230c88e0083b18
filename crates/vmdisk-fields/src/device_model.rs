//! QEMU's devices of disks.

/// The device models of disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceModel {
    /// `virtio-blk-pci` and kin.
    VirtioBlk,
    /// `vhost-user-blk-pci` and kin.
    VhostUserBlk,
    /// `scsi-hd`.
    ScsiHd,
    /// `scsi-cd`.
    ScsiCd,
    /// `scsi-block`, which passes commands through.
    ScsiBlock,
    /// `ide-hd`.
    IdeHd,
    /// `ide-cd`.
    IdeCd,
    /// `usb-storage`.
    UsbStorage,
    /// `floppy`.
    Floppy,
    /// `nvme-ns`.
    NvmeNamespace,
}

impl DeviceModel {
    /// Every model.
    pub const ALL: [DeviceModel; 10] = [
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
    pub const fn name(self) -> &'static str {
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
}
