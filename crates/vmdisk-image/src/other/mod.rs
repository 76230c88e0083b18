//! Formats of which only the sizes and the backing file are read.

pub(crate) mod parallels;
pub(crate) mod qcow;
pub(crate) mod qed;
pub(crate) mod vdi;
pub(crate) mod vhdx;
pub(crate) mod vmdk;
pub(crate) mod vpc;

use crate::bytes::until_nul;
use crate::format::ImageFormat;
use crate::read::{ReadAt, Window};
use crate::reference::BackingReference;

/// The maximum length of a backing file name in QEMU.
const MAX_BACKING_NAME: u64 = 1023;

/// The header of another format than qcow2 and LUKS. A field that cannot be read is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherHeader {
    /// The format.
    pub format: ImageFormat,
    /// True if QEMU's probing detects the format.
    pub is_probed_by_qemu: bool,
    /// The size of the disk in QEMU, in bytes.
    pub virtual_size: Option<u64>,
    /// The size of a cluster, grain or block in bytes.
    pub cluster_size: Option<u64>,
    /// The backing file as QEMU would open it. QEMU does not support the parents of VHD and VHDX.
    pub backing_file: Option<BackingReference>,
    /// The format of the backing file, if the format of the image implies one.
    pub backing_format: Option<ImageFormat>,
    /// True if the guest's data is encrypted.
    pub is_encrypted: bool,
}

impl OtherHeader {
    pub(crate) fn new(format: ImageFormat) -> Self {
        Self {
            format,
            is_probed_by_qemu: true,
            virtual_size: None,
            cluster_size: None,
            backing_file: None,
            backing_format: None,
            is_encrypted: false,
        }
    }

    /// Reads the name of the backing file, up to its first NUL.
    fn read_backing_name<R: ReadAt + ?Sized>(
        &mut self,
        window: &mut Window<'_, R>,
        offset: u64,
        length: u64,
    ) {
        if let Ok(bytes) = window.fetch(offset, length.min(MAX_BACKING_NAME) as usize) {
            let name = until_nul(&bytes);
            self.backing_file = (!name.is_empty()).then(|| BackingReference::from_bytes(name));
        }
    }
}
