//! The entry point: the format and header of an image.

use crate::bytes::{be16, be32, has, le32};
use crate::format::ImageFormat;
use crate::name::Name;
use crate::other::{OtherHeader, parallels, qcow, qed, vdi, vhdx, vmdk, vpc};
use crate::qcow2::{self, Qcow2Encryption, Qcow2Header};
use crate::read::{ReadAt, ReadError, Window};
use crate::reference::BackingReference;

/// An image's header, by format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Header {
    /// qcow2, versions 2 and 3.
    Qcow2(Qcow2Header),
    /// LUKS.
    Luks {
        /// 1, or 2, which only the kernel supports: QEMU probes it as raw.
        version: u16,
        /// The size of the disk: what follows the header. `None` for version 2, whose header says it in JSON.
        virtual_size: Option<u64>,
    },
    /// Another format.
    Other(OtherHeader),
    /// No header of a known format; probably raw.
    Raw {
        /// The length of the image, if known: the size of the disk.
        length: Option<u64>,
    },
}

/// A backing file in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderBacking<'a> {
    /// The file.
    pub reference: &'a BackingReference,
    /// The name of its format in the header.
    pub format: Option<&'a Name>,
    /// Its format without a name: a flag of QED marks it as raw, and QEMU (5.1) and libvirt open the parent of a VMDK as
    /// VMDK. Without a name and this, QEMU probes, and libvirt (6.0) refuses.
    pub implied: Option<ImageFormat>,
}

impl Header {
    /// Returns the format.
    #[must_use]
    pub fn format(&self) -> ImageFormat {
        match self {
            Self::Qcow2(_) => ImageFormat::Qcow2,
            Self::Luks { version: 1, .. } => ImageFormat::Luks,
            Self::Luks { .. } => ImageFormat::Luks2,
            Self::Other(header) => header.format,
            Self::Raw { .. } => ImageFormat::Raw,
        }
    }

    /// Returns the format that QEMU's probing detects.
    ///
    /// Differs from [`Header::format`] if QEMU's probing is less thorough: for a fixed VHD, LUKS version 2, and unknown
    /// versions. Anyone who can write the beginning of a raw disk controls the result, in particular the guest.
    #[must_use]
    pub fn probed_by_qemu(&self) -> ImageFormat {
        let is_probed = match self {
            Self::Qcow2(header) => header.version >= 2,
            Self::Luks { version, .. } => *version == 1,
            Self::Other(header) => header.is_probed_by_qemu,
            Self::Raw { .. } => true,
        };
        if is_probed {
            self.format()
        } else {
            ImageFormat::Raw
        }
    }

    /// Returns the size of the disk in QEMU in bytes, if the header or the length of the image determines it.
    ///
    /// A size that is not a multiple of a sector is rounded like in QEMU.
    #[must_use]
    pub fn virtual_size(&self) -> Option<u64> {
        match self {
            Self::Qcow2(header) => Some(header.virtual_size / 512 * 512),
            Self::Luks { virtual_size, .. } => *virtual_size,
            Self::Raw { length } => *length,
            Self::Other(header) => header.virtual_size,
        }
    }

    /// Returns the unit of allocation in bytes: cluster, grain or block. `None` without one, or if the field is invalid.
    #[must_use]
    pub fn cluster_size(&self) -> Option<u64> {
        match self {
            Self::Qcow2(header) => header.cluster_size(),
            Self::Other(header) => header.cluster_size,
            Self::Luks { .. } | Self::Raw { .. } => None,
        }
    }

    /// Returns the backing file as QEMU would open it.
    #[must_use]
    pub fn backing(&self) -> Option<HeaderBacking<'_>> {
        let (reference, format, implied) = match self {
            Self::Qcow2(header) => (&header.backing_file, header.backing_format.as_ref(), None),
            Self::Other(header) => (&header.backing_file, None, header.backing_format),
            Self::Luks { .. } | Self::Raw { .. } => return None,
        };
        reference.as_ref().map(|reference| HeaderBacking {
            reference,
            format,
            implied,
        })
    }

    /// Returns true if the format encrypts the guest's data.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        match self {
            Self::Qcow2(header) => header.encryption != Qcow2Encryption::None,
            Self::Other(header) => header.is_encrypted,
            Self::Luks { .. } => true,
            Self::Raw { .. } => false,
        }
    }
}

/// The signature, type and subtype of a growing Bochs image.
const BOCHS: [(usize, &[u8]); 3] = [
    (0, b"Bochs Virtual HD Image\0"),
    (32, b"Redolog\0"),
    (48, b"Growing\0"),
];
/// The versions of Bochs images, which follow the subtype.
const BOCHS_VERSIONS: [u32; 2] = [0x1_0000, 0x2_0000];
/// The signature of LUKS, which the version follows.
const LUKS: &[u8] = b"LUKS\xba\xbe";
/// A compressed loop device begins with a shell script that mounts it.
const CLOOP: &[u8] = b"#!/bin/sh\n#V2.0 Format\nmodprobe cloop file=$0";

/// Reads an image's header and detects its format.
///
/// ```
/// use vmdisk_image::{Header, ImageFormat, probe};
///
/// let mut image: &[u8] = b"LUKS\xba\xbe\x00\x02";
/// let header = probe(&mut image)?;
/// assert_eq!(header.format(), ImageFormat::Luks2);
/// assert_eq!(header.probed_by_qemu(), ImageFormat::Raw);
/// # Ok::<(), vmdisk_image::ReadError>(())
/// ```
///
/// # Errors
///
/// Only if the first page cannot be read. What else cannot be read is missing from the header.
pub fn probe<R: ReadAt + ?Sized>(input: &mut R) -> Result<Header, ReadError> {
    let mut window = Window::open(input)?;
    let length = window.image_length();
    let head = window.head();
    let begins_with = |magic| has(head, 0, magic);
    let header = if begins_with(qcow2::MAGIC) {
        if be32(head, 4) == Some(1) {
            Header::Other(qcow::read(&mut window))
        } else {
            Header::Qcow2(qcow2::read(&mut window))
        }
    } else if begins_with(qed::MAGIC) {
        Header::Other(qed::read(&mut window))
    } else if begins_with(vhdx::MAGIC) {
        Header::Other(vhdx::read(&mut window))
    } else if begins_with(vpc::MAGIC) {
        let footer = head[..head.len().min(vpc::FOOTER_LENGTH)].to_vec();
        Header::Other(vpc::read(&mut window, 0, &footer))
    } else if begins_with(parallels::MAGIC) || begins_with(parallels::MAGIC_OLD) {
        Header::Other(parallels::read(head))
    } else if let Some(version @ 1..=2) = be16(head, LUKS.len()).filter(|_| begins_with(LUKS)) {
        Header::Luks {
            version,
            virtual_size: luks_size(head, length).filter(|_| version == 1),
        }
    } else if begins_with(vmdk::MAGIC_SPARSE)
        || begins_with(vmdk::MAGIC_COWD)
        || vmdk::is_descriptor(head)
    {
        Header::Other(vmdk::read(&mut window))
    } else if has(head, vdi::MAGIC_OFFSET, vdi::MAGIC) {
        Header::Other(vdi::read(head))
    } else if BOCHS.iter().all(|(at, magic)| has(head, *at, magic))
        && le32(head, 64).is_some_and(|version| BOCHS_VERSIONS.contains(&version))
    {
        Header::Other(OtherHeader::new(ImageFormat::Bochs))
    } else if begins_with(CLOOP) {
        Header::Other(OtherHeader::new(ImageFormat::Cloop))
    } else {
        raw_or_fixed_vpc(&mut window)
    };
    Ok(header)
}

/// The size of the disk in a LUKS image of version 1: QEMU shows everything after the payload offset.
fn luks_size(head: &[u8], length: Option<u64>) -> Option<u64> {
    let payload_offset = u64::from(be32(head, 104)?) * 512;
    Some(length?.saturating_sub(payload_offset))
}

/// Reads the footer of a fixed VHD, which is in the last sector.
fn raw_or_fixed_vpc<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> Header {
    let length = window.image_length();
    let place = length.and_then(|length| length.checked_sub(vpc::FOOTER_LENGTH as u64));
    if let Some(offset) = place.filter(|offset| *offset > 0)
        && let Ok(footer) = window.fetch(offset, vpc::FOOTER_LENGTH)
        && has(&footer, 0, vpc::MAGIC)
    {
        return Header::Other(vpc::read(window, offset, &footer));
    }
    Header::Raw { length }
}
