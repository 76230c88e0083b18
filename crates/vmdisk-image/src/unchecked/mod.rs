//! Formats of which only what a backing chain needs is read: format, size and backing file.
//!
//! The headers of VDI, VHD, QED, Parallels and qcow are checked like in QEMU. The other fields are not checked: `qemu-img check` and
//! `qemu-img info` open the image with the driver of its format.

pub(crate) mod parallels;
pub(crate) mod qcow;
pub(crate) mod qed;
pub(crate) mod vdi;
pub(crate) mod vhdx;
pub(crate) mod vpc;

use crate::bytes::until_nul;
use crate::defect::{Defect, DefectKind};
use crate::format::ImageFormat;
use crate::read::{FetchError, ReadAt, Window};
use crate::reference::BackingReference;

/// The maximum length of a backing file name in QEMU.
const MAX_BACKING_NAME: u64 = 1023;

/// The header of a format whose fields are not checked, or whose header is checked, but none of its tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncheckedHeader {
    /// The format.
    pub format: ImageFormat,
    /// True if QEMU's probing detects the format.
    pub is_probed_by_qemu: bool,
    /// The size of the disk in QEMU, in bytes; `None` if the header does not contain it.
    pub virtual_size: Option<u64>,
    /// The size of a cluster or block in bytes.
    pub cluster_size: Option<u64>,
    /// The backing file as QEMU would open it, or a parent, which QEMU does not support.
    pub backing_file: Option<BackingReference>,
    /// True if the header marks the backing file as raw. None of these formats records another format.
    pub backing_is_raw: bool,
    /// True if the guest's data is encrypted.
    pub is_encrypted: bool,
    /// The defects that prevent reading these fields, parents that QEMU does not support, and in a header of VDI,
    /// VHD, QED, Parallels or qcow everything that QEMU refuses.
    pub defects: Vec<Defect>,
}

impl UncheckedHeader {
    pub(crate) fn new(format: ImageFormat) -> Self {
        Self {
            format,
            is_probed_by_qemu: true,
            virtual_size: None,
            cluster_size: None,
            backing_file: None,
            backing_is_raw: false,
            is_encrypted: false,
            defects: Vec::new(),
        }
    }

    fn found(&mut self, offset: u64, kind: DefectKind) {
        self.defects.push(Defect::at(offset, kind));
    }

    fn unreadable(&mut self, offset: u64, part: &'static str, error: &FetchError) {
        self.defects.push(Defect::unreadable(offset, part, error));
    }

    /// Returns the `length` bytes of a header at `offset`; if the image ends before, records that.
    fn whole<'a>(&mut self, bytes: &'a [u8], offset: u64, length: usize) -> Option<&'a [u8]> {
        let whole = bytes.get(..length);
        if whole.is_none() {
            let found = offset.saturating_add(bytes.len() as u64);
            let needed = offset.saturating_add(length as u64);
            self.found(found, DefectKind::TruncatedHeader { needed, found });
        }
        whole
    }

    /// Reads the name of the backing file, up to its first NUL.
    fn read_backing_name<R: ReadAt + ?Sized>(
        &mut self,
        window: &mut Window<'_, R>,
        offset: u64,
        length: u64,
    ) {
        match window.fetch(offset, length.min(MAX_BACKING_NAME) as usize) {
            Ok(bytes) => {
                let name = until_nul(&bytes);
                self.backing_file = (!name.is_empty()).then(|| BackingReference::from_bytes(name));
            }
            Err(error) => self.unreadable(offset, "backing file name", &error),
        }
    }
}
