//! The headers of VMDK: sparse extents, and the descriptor of an image.
//!
//! The layout follows VMware's *Virtual Disk Format* specification, the checks follow `block/vmdk.c` of QEMU.
//! Binary fields are little endian.

mod descriptor;

use descriptor::Doubts;
pub use descriptor::VmdkExtent;

use crate::bytes::{has, le32, le64};
use crate::defect::{Defect, DefectKind};
use crate::name::Name;
use crate::read::{MAX_OFFSET, ReadAt, Window};
use crate::reference::BackingReference;

/// A hosted sparse extent.
pub(crate) const MAGIC_SPARSE: &[u8] = b"KDMV";
/// An ESX Server sparse extent.
pub(crate) const MAGIC_COWD: &[u8] = b"COWD";

/// Size of the binary headers: one sector.
const HEADER_LENGTH: usize = 512;
/// Maximum size of a descriptor: QEMU writes at most 20 sectors, and an extent's line takes about 50 bytes, so
/// a descriptor of this size has a thousand extents.
const MAX_DESCRIPTOR: usize = 64 * 1024;
/// The offset of a grain directory at the end of the image, which then has a footer.
const AT_END: u64 = u64::MAX;
/// The bytes in which QEMU looks for the content ids: of a sparse file from its second sector on, whatever its header
/// says.
const IDS_LENGTH: usize = 20 * 512;
const IDS_OF_SPARSE: u64 = 512;
/// QEMU's limits: 1 GiB per grain, 512 entries per grain table, 32 Mi entries in the grain directory.
const MAX_GRAIN_SECTORS: u64 = 0x20_0000;
const MAX_TABLE_ENTRIES: u32 = 512;
const MAX_DIRECTORY_ENTRIES: u64 = 32 << 20;
/// Size of an entry of the grain directory.
const ENTRY_BYTES: u64 = 4;
/// The flag of a sparse extent with a redundant grain directory.
const FLAG_REDUNDANT: u32 = 1 << 1;

/// The header of a VMDK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmdkHeader {
    /// The kind of file.
    pub kind: VmdkKind,
    /// The version of the binary header, or of a descriptor without one.
    pub version: u32,
    /// The disk's size as the guest sees it, in bytes: the capacity, or the sum of the extents.
    pub virtual_size: Option<u64>,
    /// The size of a grain in bytes, the unit of allocation.
    pub grain_size: Option<u64>,
    /// True if grains are compressed, as in images for transport.
    pub compressed: bool,
    /// The `createType` of the descriptor.
    pub create_type: Option<Name>,
    /// The content's id, which changes with every writer.
    pub content_id: Option<u32>,
    /// The parent's content id when the image was created; `0xffffffff` without a parent.
    pub parent_content_id: Option<u32>,
    /// The parent as QEMU would open it: `parentFileNameHint`.
    pub parent: Option<BackingReference>,
    /// The data files in the descriptor.
    pub extents: Vec<VmdkExtent>,
    /// The defects, in the order of detection.
    pub defects: Vec<Defect>,
}

/// The kind of a VMDK file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VmdkKind {
    /// `KDMV`: a hosted sparse extent, usually with an embedded descriptor.
    Sparse,
    /// `COWD`: an ESX Server sparse extent.
    Cowd,
    /// Text: a descriptor whose data is in other files.
    Descriptor,
}

impl VmdkHeader {
    fn new(kind: VmdkKind) -> Self {
        Self {
            kind,
            version: 0,
            virtual_size: None,
            grain_size: None,
            compressed: false,
            create_type: None,
            content_id: None,
            parent_content_id: None,
            parent: None,
            extents: Vec::new(),
            defects: Vec::new(),
        }
    }

    /// Returns the extents whose files QEMU opens: none if a sparse file holds the disk, whatever its descriptor contains.
    #[must_use]
    pub fn opened_extents(&self) -> &[VmdkExtent] {
        if self.kind == VmdkKind::Descriptor || self.grain_size.is_none() {
            &self.extents
        } else {
            &[]
        }
    }

    fn found(&mut self, offset: u64, kind: DefectKind) {
        self.defects.push(Defect::at(offset, kind));
    }
}

/// Returns true if QEMU considers `head` a descriptor: comments and blank lines, then a line `version=1`, 2 or 3.
pub(crate) fn is_descriptor(head: &[u8]) -> bool {
    // QEMU's probe is limited to this length.
    let head = &head[..head.len().min(HEADER_LENGTH)];
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        let Some(line) = line.strip_suffix(b"\n") else {
            return false;
        };
        match line.first() {
            Some(b'#') => {}
            Some(b' ') => {
                let rest = line
                    .iter()
                    .position(|byte| *byte != b' ')
                    .map_or(&line[..0], |at| &line[at..]);
                if !matches!(rest, [] | [b'\r']) {
                    return false;
                }
            }
            Some(_) | None => {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                return matches!(line, b"version=1" | b"version=2" | b"version=3");
            }
        }
    }
    false
}

/// Reads an image that begins with a signature or is a descriptor.
pub(crate) fn read<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> VmdkHeader {
    if has(window.head(), 0, MAGIC_SPARSE) {
        read_sparse(window)
    } else if has(window.head(), 0, MAGIC_COWD) {
        read_cowd(window)
    } else {
        let mut header = VmdkHeader::new(VmdkKind::Descriptor);
        let length = window.image_length().unwrap_or(u64::MAX);
        let doubts = read_descriptor(&mut header, window, 0, length);
        check_ids(&mut header, window, 0);
        descriptor::check_image(&mut header, 0, doubts);
        header.virtual_size = descriptor::sum_of_extents(&header.extents);
        header
    }
}

fn first_sector<R: ReadAt + ?Sized>(
    header: &mut VmdkHeader,
    window: &Window<'_, R>,
) -> [u8; HEADER_LENGTH] {
    let mut fields = [0; HEADER_LENGTH];
    let have = window.head().len().min(HEADER_LENGTH);
    fields[..have].copy_from_slice(&window.head()[..have]);
    if have < HEADER_LENGTH {
        let kind = DefectKind::TruncatedHeader {
            needed: HEADER_LENGTH as u64,
            found: have as u64,
        };
        header.found(have as u64, kind);
    }
    fields
}

fn read_cowd<R: ReadAt + ?Sized>(window: &Window<'_, R>) -> VmdkHeader {
    let mut header = VmdkHeader::new(VmdkKind::Cowd);
    let fields = first_sector(&mut header, window);
    let word = |at| le32(&fields, at).unwrap_or(0);
    header.version = word(4);
    header.virtual_size = Some(u64::from(word(12)) * 512);
    header.grain_size = Some(u64::from(word(16)) * 512);
    if check_grain(&mut header, 16, u64::from(word(16))) {
        let offset = u64::from(word(20)) * 512;
        let entries = u64::from(word(24));
        check_directory(&mut header, window, 20, "grain directory", offset, entries);
    }
    header
}

fn read_sparse<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> VmdkHeader {
    let mut header = VmdkHeader::new(VmdkKind::Sparse);
    let mut fields = first_sector(&mut header, window);
    if !header.defects.is_empty() {
        return header;
    }
    let long = |fields: &[u8], at| le64(fields, at).unwrap_or(0);
    let (descriptor_sector, descriptor_sectors) = (long(&fields, 28), long(&fields, 36));
    if descriptor_sector != 0 {
        let (offset, length) = (
            descriptor_sector.saturating_mul(512),
            descriptor_sectors.saturating_mul(512),
        );
        let doubts = read_descriptor(&mut header, window, offset, length);
        if long(&fields, 12) == 0 {
            // Without a capacity, QEMU treats the descriptor as the whole image.
            descriptor::check_image(&mut header, offset, doubts);
            header.version = le32(&fields, 4).unwrap_or(0);
            header.virtual_size = descriptor::sum_of_extents(&header.extents);
            return header;
        }
    }
    check_ids(&mut header, window, IDS_OF_SPARSE);
    if long(&fields, 56) == AT_END {
        read_footer(&mut header, window, &mut fields);
    }
    let (capacity, grain) = (long(&fields, 12), long(&fields, 20));
    header.version = le32(&fields, 4).unwrap_or(0);
    header.virtual_size = capacity.checked_mul(512);
    header.grain_size = grain.checked_mul(512);
    header.compressed = le16_is(&fields, 77, 1);
    if header.version > 3 {
        header.found(
            4,
            DefectKind::UnsupportedVersion {
                found: header.version,
            },
        );
    }
    let entries = le32(&fields, 44).unwrap_or(0);
    if entries == 0 || entries > MAX_TABLE_ENTRIES {
        let expected = "not between 1 and 512";
        let field = "number of grain table entries";
        header.found(
            44,
            DefectKind::Field {
                field,
                found: u64::from(entries),
                expected,
            },
        );
    }
    if check_grain(&mut header, 20, grain) && entries != 0 {
        let directory = capacity.div_ceil(grain * u64::from(entries));
        if directory > MAX_DIRECTORY_ENTRIES {
            let size = capacity.saturating_mul(512);
            header.found(12, DefectKind::VirtualSizeTooLarge { size });
        } else {
            check_directories(&mut header, window, &fields, directory);
        }
    }
    let data = long(&fields, 64).saturating_mul(512);
    if let Some(length) = window.image_length()
        && data > length
    {
        header.found(
            64,
            DefectKind::TableEndsImage {
                table: "data area",
                offset: data,
                bytes: 0,
                length,
            },
        );
    }
    header
}

/// Checks the places of the grain directory and of its copy.
fn check_directories<R: ReadAt + ?Sized>(
    header: &mut VmdkHeader,
    window: &Window<'_, R>,
    fields: &[u8; HEADER_LENGTH],
    entries: u64,
) {
    let has_copy = le32(fields, 8).unwrap_or(0) & FLAG_REDUNDANT != 0;
    let copy = has_copy.then_some((48, "redundant grain directory"));
    for (field, table) in [(56, "grain directory")].into_iter().chain(copy) {
        // Like QEMU, without the bits that do not fit.
        let offset = le64(fields, field).unwrap_or(0) << 9;
        // QEMU uses no copy in the first sector.
        if offset != 0 || field != 48 {
            check_directory(header, window, field as u64, table, offset, entries);
        }
    }
}

/// Checks that a grain directory is in the file: QEMU reads zeroes after its end, so that all grains are unallocated.
fn check_directory<R: ReadAt + ?Sized>(
    header: &mut VmdkHeader,
    window: &Window<'_, R>,
    field: u64,
    table: &'static str,
    offset: u64,
    entries: u64,
) {
    let bytes = entries * ENTRY_BYTES;
    let end = offset.saturating_add(bytes);
    if end > MAX_OFFSET {
        let kind = DefectKind::TableOverflows {
            table,
            offset,
            bytes,
        };
        header.found(field, kind);
        return;
    }
    if bytes > 0 && offset < HEADER_LENGTH as u64 {
        header.found(field, DefectKind::TableOverHeader { table, offset });
    }
    if let Some(length) = window.image_length()
        && end > length
    {
        let kind = DefectKind::TableBeyondEnd {
            table,
            offset,
            bytes,
            length,
        };
        header.found(field, kind);
    }
}

/// Checks that QEMU finds the content ids, without which it opens a file only as an extent of another image.
fn check_ids<R: ReadAt + ?Sized>(header: &mut VmdkHeader, window: &mut Window<'_, R>, offset: u64) {
    // A part that cannot be read is reported with the rest of the descriptor.
    let Ok(bytes) = window.fetch(offset, IDS_LENGTH) else {
        return;
    };
    if !descriptor::has_ids(&bytes) {
        header.found(
            offset,
            DefectKind::Descriptor {
                problem: "lacks a CID or parentCID, so QEMU opens the file only as an extent",
            },
        );
    }
}

fn le16_is(fields: &[u8], at: usize, value: u16) -> bool {
    crate::bytes::le16(fields, at) == Some(value)
}

/// Reads the footer, which replaces the header if the grain directory was not known when the header was written.
fn read_footer<R: ReadAt + ?Sized>(
    header: &mut VmdkHeader,
    window: &mut Window<'_, R>,
    fields: &mut [u8; HEADER_LENGTH],
) {
    let part = "footer";
    // The end of the image: the footer, and the sector that marks the end of the stream.
    let Some(offset) = window
        .image_length()
        .and_then(|length| length.checked_sub(1024))
    else {
        header.found(56, DefectKind::PartMissing { part });
        return;
    };
    match window.fetch(offset, HEADER_LENGTH) {
        Ok(footer) if has(&footer, 0, MAGIC_SPARSE) && footer.len() == HEADER_LENGTH => {
            fields.copy_from_slice(&footer);
        }
        Ok(_) => header.found(offset, DefectKind::Signature { part }),
        Err(error) => header
            .defects
            .push(Defect::unreadable(offset, part, &error)),
    }
}

fn check_grain(header: &mut VmdkHeader, field: u64, sectors: u64) -> bool {
    let sound = (1..=MAX_GRAIN_SECTORS).contains(&sectors);
    if !sound {
        let bytes = sectors.saturating_mul(512);
        header.found(
            field,
            DefectKind::UnitSize {
                part: "grain size",
                bytes,
                expected: "between 512 bytes and 1 GiB",
            },
        );
    }
    sound
}

fn read_descriptor<R: ReadAt + ?Sized>(
    header: &mut VmdkHeader,
    window: &mut Window<'_, R>,
    offset: u64,
    length: u64,
) -> Doubts {
    let part = "descriptor";
    if header.kind == VmdkKind::Descriptor && length > MAX_DESCRIPTOR as u64 && length != u64::MAX {
        header.found(
            offset,
            DefectKind::NotRead {
                part,
                length,
                limit: MAX_DESCRIPTOR as u64,
            },
        );
    }
    match window.fetch(offset, length.min(MAX_DESCRIPTOR as u64) as usize) {
        Ok(bytes) => descriptor::read(header, offset, &bytes),
        Err(error) => {
            header
                .defects
                .push(Defect::unreadable(offset, part, &error));
            Doubts::default()
        }
    }
}
