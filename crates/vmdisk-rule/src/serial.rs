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

/// True for a UUID: groups of 8, 4, 4, 4 and 12 hexadecimal digits.
///
/// ```
/// use vmdisk_rule::serial::is_uuid;
/// assert!(is_uuid("0f1e2d3c-4b5a-4697-8877-665544332211"));
/// assert!(!is_uuid("0f1e2d3c-4b5a-4697-8877-66554433221"));
/// assert!(!is_uuid("0f1e2d3c-4b5a-4697-8877-66554433221g"));
/// ```
pub fn is_uuid(serial: &str) -> bool {
    let groups: Vec<usize> = serial.split('-').map(str::len).collect();
    let is_digit = |byte: u8| byte == b'-' || byte.is_ascii_hexdigit();
    groups == [8, 4, 4, 4, 12] && serial.bytes().all(is_digit)
}
