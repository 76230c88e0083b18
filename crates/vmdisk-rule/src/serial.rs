//! The part of a serial number that a guest sees.

use vmdisk_model::FrontendKind;

/// The number of bytes that SCSI and USB disks show.
pub const SCSI_BYTES: usize = 36;

/// The number of bytes of a serial number that a device shows; `None` if it shows none or its behaviour is not known.
pub const fn shown_bytes(kind: FrontendKind) -> Option<usize> {
    match kind {
        FrontendKind::VirtioBlk | FrontendKind::Sata | FrontendKind::Ide | FrontendKind::Nvme => {
            Some(20)
        }
        FrontendKind::VirtioScsi | FrontendKind::Scsi | FrontendKind::Usb => Some(SCSI_BYTES),
        _ => None,
    }
}

/// The part of a serial number that the guest sees; a character that the limit would split is omitted.
pub fn shown(kind: FrontendKind, serial: &str) -> &str {
    let most = shown_bytes(kind).unwrap_or(serial.len());
    let end = (0..=most.min(serial.len()))
        .rev()
        .find(|end| serial.is_char_boundary(*end))
        .unwrap_or(0);
    &serial[..end]
}
