//! The entry point: the format and header of an image.

use crate::bytes::{be32, has, le32};
use crate::defect::Defect;
use crate::format::ImageFormat;
use crate::luks::{self, Luks, Luks1Header, Luks2Header};
use crate::name::Name;
use crate::qcow2::{self, Qcow2Encryption, Qcow2Header};
use crate::raw::{self, RawGuess};
use crate::read::{ReadAt, ReadError, Window};
use crate::reference::BackingReference;
use crate::unchecked::{UncheckedHeader, parallels, qcow, qed, vdi, vhdx, vmdk, vpc};

/// An image's header, by format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Header {
    /// qcow2, versions 2 and 3.
    Qcow2(Qcow2Header),
    /// LUKS version 1.
    Luks1(Luks1Header),
    /// LUKS version 2.
    Luks2(Luks2Header),
    /// A format whose fields are not checked.
    Unchecked(UncheckedHeader),
    /// No header of a known format; probably raw.
    Raw(RawGuess),
}

/// A backing file or parent in a header.
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

/// The role of a file in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileRole {
    /// A backing file or parent.
    Backing,
    /// The guest's data: qcow2's external data file, or VMDK's extents.
    Data,
}

impl Header {
    /// Returns the format.
    #[must_use]
    pub fn format(&self) -> ImageFormat {
        match self {
            Self::Qcow2(_) => ImageFormat::Qcow2,
            Self::Luks1(_) => ImageFormat::Luks,
            Self::Luks2(_) => ImageFormat::Luks2,
            Self::Unchecked(header) => header.format,
            Self::Raw(_) => ImageFormat::Raw,
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
            Self::Luks2(_) => false,
            Self::Unchecked(header) => header.is_probed_by_qemu,
            Self::Luks1(_) | Self::Raw(_) => true,
        };
        if is_probed {
            self.format()
        } else {
            ImageFormat::Raw
        }
    }

    /// Returns the defects of the header.
    #[must_use]
    pub fn defects(&self) -> &[Defect] {
        match self {
            Self::Qcow2(header) => &header.defects,
            Self::Luks1(header) => &header.defects,
            Self::Luks2(header) => &header.defects,
            Self::Raw(guess) => &guess.defects,
            Self::Unchecked(_) => &[],
        }
    }

    /// Returns the size of the disk in QEMU in bytes, if the header or the length of the image determines it.
    ///
    /// A size that is not a multiple of a sector is rounded like in QEMU.
    #[must_use]
    pub fn virtual_size(&self) -> Option<u64> {
        match self {
            Self::Qcow2(header) => Some(header.virtual_size / 512 * 512),
            Self::Luks1(header) => header.virtual_size(),
            Self::Raw(guess) => guess.length,
            Self::Unchecked(header) => header.virtual_size,
            Self::Luks2(_) => None,
        }
    }

    /// Returns the unit of allocation in bytes: cluster, grain or block. `None` without one, or if the field is invalid.
    #[must_use]
    pub fn cluster_size(&self) -> Option<u64> {
        match self {
            Self::Qcow2(header) => header.cluster_size(),
            Self::Unchecked(header) => header.cluster_size,
            Self::Luks1(_) | Self::Luks2(_) | Self::Raw(_) => None,
        }
    }

    /// Returns the backing file as QEMU would open it, or a parent, which QEMU does not support.
    #[must_use]
    pub fn backing(&self) -> Option<HeaderBacking<'_>> {
        let (reference, format, implied) = match self {
            Self::Qcow2(header) => (&header.backing_file, header.backing_format.as_ref(), None),
            Self::Unchecked(header) => (&header.backing_file, None, header.backing_format),
            Self::Luks1(_) | Self::Luks2(_) | Self::Raw(_) => return None,
        };
        reference.as_ref().map(|reference| HeaderBacking {
            reference,
            format,
            implied,
        })
    }

    /// Returns all other files in the header, which QEMU would open: a hostile image can name any file.
    pub fn files(&self) -> impl Iterator<Item = (FileRole, &BackingReference)> {
        let backing = self
            .backing()
            .map(|backing| (FileRole::Backing, backing.reference));
        let data = match self {
            Self::Qcow2(header) => header.data_file.as_slice(),
            Self::Unchecked(header) => &header.data_files,
            _ => &[],
        };
        backing
            .into_iter()
            .chain(data.iter().map(|reference| (FileRole::Data, reference)))
    }

    /// Returns true if the format encrypts the guest's data.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        match self {
            Self::Qcow2(header) => header.encryption != Qcow2Encryption::None,
            Self::Unchecked(header) => header.is_encrypted,
            Self::Luks1(_) | Self::Luks2(_) => true,
            Self::Raw(_) => false,
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
/// assert_eq!(header.defects().len(), 1, "eight bytes are not a complete header");
/// # Ok::<(), vmdisk_image::ReadError>(())
/// ```
///
/// # Errors
///
/// Only if the first page cannot be read. Any other problem is a defect of the header.
pub fn probe<R: ReadAt + ?Sized>(input: &mut R) -> Result<Header, ReadError> {
    let mut window = Window::open(input)?;
    let length = window.image_length();
    let head = window.head();
    let begins_with = |magic| has(head, 0, magic);
    let header = if begins_with(qcow2::MAGIC) {
        if be32(head, 4) == Some(1) {
            Header::Unchecked(qcow::read(&mut window))
        } else {
            Header::Qcow2(qcow2::read(&mut window))
        }
    } else if begins_with(qed::MAGIC) {
        Header::Unchecked(qed::read(&mut window))
    } else if begins_with(vhdx::MAGIC) {
        Header::Unchecked(vhdx::read(&mut window))
    } else if begins_with(vpc::MAGIC) {
        let footer = head[..head.len().min(vpc::FOOTER_LENGTH)].to_vec();
        Header::Unchecked(vpc::read(&mut window, 0, &footer))
    } else if begins_with(parallels::MAGIC) || begins_with(parallels::MAGIC_OLD) {
        Header::Unchecked(parallels::read(head))
    } else if let Some(luks) = begins_with(luks::MAGIC)
        .then(|| luks::read(head, length))
        .flatten()
    {
        match luks {
            Luks::One(header) => Header::Luks1(header),
            Luks::Two(header) => Header::Luks2(header),
        }
    } else if begins_with(vmdk::MAGIC_SPARSE)
        || begins_with(vmdk::MAGIC_COWD)
        || vmdk::is_descriptor(head)
    {
        Header::Unchecked(vmdk::read(&mut window))
    } else if has(head, vdi::MAGIC_OFFSET, vdi::MAGIC) {
        Header::Unchecked(vdi::read(head))
    } else if BOCHS.iter().all(|(at, magic)| has(head, *at, magic))
        && le32(head, 64).is_some_and(|version| BOCHS_VERSIONS.contains(&version))
    {
        Header::Unchecked(UncheckedHeader::new(ImageFormat::Bochs))
    } else if begins_with(CLOOP) {
        Header::Unchecked(UncheckedHeader::new(ImageFormat::Cloop))
    } else {
        raw_or_fixed_vpc(&mut window)
    };
    Ok(header)
}

/// Reads the footer of a fixed VHD, which is in the last sector, or guesses at a raw image.
fn raw_or_fixed_vpc<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> Header {
    let place = window
        .image_length()
        .and_then(|length| length.checked_sub(vpc::FOOTER_LENGTH as u64));
    let mut unreadable = None;
    if let Some(offset) = place.filter(|offset| *offset > 0) {
        match window.fetch(offset, vpc::FOOTER_LENGTH) {
            Ok(footer) if has(&footer, 0, vpc::MAGIC) => {
                return Header::Unchecked(vpc::read(window, offset, &footer));
            }
            Ok(_) => {}
            Err(error) => unreadable = Some(Defect::unreadable(offset, "end of the image", &error)),
        }
    }
    let mut guess = raw::read(window);
    guess.defects.extend(unreadable);
    Header::Raw(guess)
}
