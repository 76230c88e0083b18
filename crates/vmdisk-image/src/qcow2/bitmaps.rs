//! The persistent dirty bitmaps of qcow2: the extension, the directory that it names, and the table of each bitmap.
//!
//! The checks follow `block/qcow2-bitmap.c` of QEMU, which reads all of this whenever it opens the image. The bits
//! themselves are not read.

use std::collections::HashSet;

use super::header::{Bitmaps, Qcow2Header};
use crate::bytes::{be16, be32, be64, slice, until_nul};
use crate::defect::{Defect, DefectKind};
use crate::name::Name;
use crate::read::{MAX_OFFSET, ReadAt, Window};

/// QEMU's `QCOW2_MAX_BITMAPS`.
const MAX_BITMAPS: u32 = 65535;
/// QEMU's `QCOW2_MAX_BITMAP_DIRECTORY_SIZE`: 1024 bytes per bitmap.
const MAX_DIRECTORY: u64 = 65535 * 1024;
/// QEMU's `BME_MAX_PHYS_SIZE`: the maximum size of one bitmap in bytes.
const MAX_BITMAP_BYTES: u64 = 512 << 20;
/// The granularities that QEMU accepts, as powers of two: 512 bytes to 2 GiB.
const GRANULARITY_BITS: std::ops::RangeInclusive<u8> = 9..=31;
/// QEMU's `BME_MAX_NAME_SIZE`.
const MAX_NAME: u16 = 1023;
/// Size of a directory entry without its extra data and name.
const ENTRY_BYTES: u64 = 24;
/// Size of an entry of a bitmap table.
const TABLE_ENTRY_BYTES: u64 = 8;
/// The flag of a bitmap in use: QEMU does not read its table.
const IN_USE: u32 = 1;
/// The flags that QEMU knows: in use, and recording.
const KNOWN_FLAGS: u32 = 0b11;
/// The bits of a table entry that must be zero.
const TABLE_ENTRY_RESERVED: u64 = 0xff00_0000_0000_01fe;
/// The bits of a table entry with the offset of a cluster of bits.
const TABLE_ENTRY_OFFSET: u64 = 0x00ff_ffff_ffff_fe00;

/// Maximum number of bytes read of the directory: about two thousand bitmaps with short names.
const DIRECTORY_READ: u64 = 64 * 1024;
/// Maximum number of bytes read of all bitmap tables together. With clusters of 64 KiB and the default granularity, the
/// bitmap of a disk of 1 TiB has a table of 256 bytes.
const TABLES_READ: u64 = 64 * 1024;

/// Reads the extension's data at `offset`.
pub(super) fn read_extension(header: &mut Qcow2Header, offset: u64, bytes: &[u8]) {
    let (Some(count), Some(directory_size), Some(directory_offset)) =
        (be32(bytes, 0), be64(bytes, 8), be64(bytes, 16))
    else {
        return;
    };
    header.bitmaps = Some(Bitmaps {
        count,
        directory_size,
        directory_offset,
    });
    if !header.autoclear.bitmaps() {
        // QEMU stops here too.
        header
            .defects
            .push(Defect::at(88, DefectKind::BitmapsInconsistent));
        return;
    }
    let mut found = |at, problem| {
        header
            .defects
            .push(Defect::at(offset + at, DefectKind::Bitmaps { problem }))
    };
    if slice(bytes, 4, 4) != Some(&[0; 4]) {
        found(4, "has a reserved field that is not zero");
    }
    if count == 0 {
        found(0, "has no bitmaps");
    }
    if count > MAX_BITMAPS {
        found(0, "has more than 65535 bitmaps");
    }
    if directory_size == 0 {
        found(8, "has an empty directory");
    }
    if directory_size > MAX_DIRECTORY {
        found(8, "has a directory larger than QEMU reads");
    }
    let cluster_mask = (1u64 << header.cluster_bits.min(63)) - 1;
    if directory_offset & cluster_mask != 0 {
        found(16, "has a directory that does not begin at a cluster");
    }
    if directory_offset.saturating_add(directory_size) > MAX_OFFSET {
        found(
            16,
            "has a directory that ends beyond the largest possible file",
        );
    }
}

/// Reads the directory and the tables, if QEMU reads them.
pub(super) fn read_directory<R: ReadAt + ?Sized>(
    header: &mut Qcow2Header,
    window: &mut Window<'_, R>,
) {
    let (Some(bitmaps), Some(cluster_size)) = (header.bitmaps, header.cluster_size()) else {
        return;
    };
    let is_refused = |defect: &Defect| matches!(defect.kind, DefectKind::Bitmaps { .. });
    if !header.autoclear.bitmaps() || header.defects.iter().any(is_refused) {
        return;
    }
    let length = bitmaps.directory_size.min(DIRECTORY_READ);
    let mut directory = match window.fetch(bitmaps.directory_offset, length as usize) {
        Ok(bytes) => bytes,
        Err(error) => {
            let offset = bitmaps.directory_offset;
            let defect = Defect::unreadable(offset, "bitmap directory", &error);
            header.defects.push(defect);
            return;
        }
    };
    // QEMU reads zeroes after the end of a file.
    directory.resize(length as usize, 0);
    let mut reader = Reader {
        window,
        defects: &mut header.defects,
        bitmaps,
        cluster_size,
        disk_size: header.virtual_size / 512 * 512,
        tables_left: TABLES_READ,
        names: HashSet::new(),
    };
    if let Err((at, problem)) = reader.entries(&directory) {
        reader.found(at, DefectKind::Bitmaps { problem });
    }
}

struct Reader<'a, 'w, R: ReadAt + ?Sized> {
    window: &'a mut Window<'w, R>,
    defects: &'a mut Vec<Defect>,
    bitmaps: Bitmaps,
    cluster_size: u64,
    /// The size of the disk in QEMU.
    disk_size: u64,
    /// The number of bytes of tables that may still be read.
    tables_left: u64,
    /// The names of the bitmaps before this one.
    names: HashSet<Name>,
}

/// An entry of the directory.
struct Entry {
    name: Name,
    table_offset: u64,
    table_entries: u32,
    flags: u32,
    kind: u8,
    granularity_bits: u8,
    name_length: u16,
}

impl<R: ReadAt + ?Sized> Reader<'_, '_, R> {
    /// Reports at an offset in the directory.
    fn found(&mut self, at: u64, kind: DefectKind) {
        let offset = self.bitmaps.directory_offset + at;
        self.defects.push(Defect::at(offset, kind));
    }

    /// Reads all entries; fails with the offset and the problem of the directory.
    fn entries(&mut self, directory: &[u8]) -> Result<(), (u64, &'static str)> {
        const BROKEN: &str = "has a directory with an entry that is cut off";
        let size = self.bitmaps.directory_size;
        let (mut at, mut count) = (0, 0);
        while at < size {
            if size - at < ENTRY_BYTES {
                return Err((at, BROKEN));
            }
            if count == self.bitmaps.count {
                return Err((at, "has fewer bitmaps than the directory"));
            }
            let rest = directory.get(at as usize..).unwrap_or_default();
            let (Some(name_length), Some(extra)) = (be16(rest, 18), be32(rest, 20)) else {
                self.not_read("bitmap directory", size, DIRECTORY_READ);
                return Ok(());
            };
            // QEMU adds the lengths in 32 bits, but it refuses every entry with extra data.
            if extra != 0 {
                return Err((at + 20, "has a directory with extra data"));
            }
            let length = (ENTRY_BYTES + u64::from(name_length)).next_multiple_of(8);
            if size - at < length {
                return Err((at, BROKEN));
            }
            let Some(entry) = Entry::read(rest, name_length) else {
                self.not_read("bitmap directory", size, DIRECTORY_READ);
                return Ok(());
            };
            self.entry(at, &entry);
            at += length;
            count += 1;
        }
        if count < self.bitmaps.count {
            return Err((at, "has more bitmaps than the directory"));
        }
        Ok(())
    }

    fn not_read(&mut self, part: &'static str, length: u64, limit: u64) {
        let kind = DefectKind::NotRead {
            part,
            length,
            limit,
        };
        self.found(0, kind);
    }

    fn entry(&mut self, at: u64, entry: &Entry) {
        let problems = entry.problems(self.cluster_size);
        let is_sound = problems.is_empty();
        for (field, problem) in problems {
            let name = entry.name.clone();
            self.found(at + field, DefectKind::Bitmap { name, problem });
        }
        // QEMU ignores a second bitmap of a name if it is in use.
        let is_used = entry.flags & IN_USE != 0;
        if !self.names.insert(entry.name.clone()) && !is_used {
            let kind = DefectKind::Bitmap {
                name: entry.name.clone(),
                problem: "has the name of an earlier bitmap",
            };
            self.found(at + ENTRY_BYTES, kind);
        }
        if is_sound && !is_used {
            self.table(at, entry);
        }
    }

    fn table(&mut self, at: u64, entry: &Entry) {
        let mut found = |at, problem| {
            let name = entry.name.clone();
            self.defects
                .push(Defect::at(at, DefectKind::Bitmap { name, problem }));
        };
        let here = self.bitmaps.directory_offset + at;
        let bits = self.disk_size.div_ceil(1 << entry.granularity_bits);
        if bits.div_ceil(8).div_ceil(self.cluster_size) != u64::from(entry.table_entries) {
            found(here + 8, "has a table of the wrong size for the disk");
            return;
        }
        let length = u64::from(entry.table_entries) * TABLE_ENTRY_BYTES;
        if entry.table_offset.saturating_add(length) > MAX_OFFSET {
            found(
                here,
                "has a table that ends beyond the largest possible file",
            );
            return;
        }
        if length > self.tables_left {
            self.not_read("bitmap table", length, self.tables_left);
            return;
        }
        self.tables_left -= length;
        let table = match self.window.fetch(entry.table_offset, length as usize) {
            Ok(table) => table,
            Err(error) => {
                let defect = Defect::unreadable(entry.table_offset, "bitmap table", &error);
                self.defects.push(defect);
                return;
            }
        };
        let mut end = entry.table_offset + length;
        for (index, bytes) in table.chunks_exact(TABLE_ENTRY_BYTES as usize).enumerate() {
            let value = be64(bytes, 0).unwrap_or(0);
            let cluster = value & TABLE_ENTRY_OFFSET;
            // Bit 0 means a cluster of ones, which has no offset.
            let is_odd = cluster != 0 && value & 1 != 0;
            if value & TABLE_ENTRY_RESERVED != 0
                || is_odd
                || !cluster.is_multiple_of(self.cluster_size)
            {
                found(
                    entry.table_offset + index as u64 * TABLE_ENTRY_BYTES,
                    "has an invalid entry in its table",
                );
                return;
            }
            if cluster != 0 {
                end = end.max(cluster + self.cluster_size);
            }
        }
        if let Some(length) = self.window.image_length()
            && end > length
        {
            let name = entry.name.clone();
            let kind = DefectKind::BitmapBeyondEnd { name, end, length };
            self.defects.push(Defect::at(here, kind));
        }
    }
}

impl Entry {
    fn read(bytes: &[u8], name_length: u16) -> Option<Self> {
        let name = slice(bytes, ENTRY_BYTES as usize, usize::from(name_length))?;
        Some(Self {
            name: Name::from(until_nul(name)),
            table_offset: be64(bytes, 0)?,
            table_entries: be32(bytes, 8)?,
            flags: be32(bytes, 12)?,
            kind: *bytes.get(16)?,
            granularity_bits: *bytes.get(17)?,
            name_length,
        })
    }

    /// Returns the offsets of the fields with values that QEMU refuses, each with its problem.
    fn problems(&self, cluster_size: u64) -> Vec<(u64, &'static str)> {
        let bytes = u64::from(self.table_entries) * cluster_size;
        let mut problems = Vec::new();
        let mut check = |is_wrong, field, problem| {
            if is_wrong {
                problems.push((field, problem));
            }
        };
        check(self.table_offset == 0, 0, "has no table");
        check(
            !self.table_offset.is_multiple_of(cluster_size),
            0,
            "has a table that does not begin at a cluster",
        );
        check(self.table_entries == 0, 8, "has an empty table");
        check(
            bytes > MAX_BITMAP_BYTES,
            8,
            "is larger than 512 MiB, the most that QEMU reads",
        );
        check(
            self.flags & !KNOWN_FLAGS != 0,
            12,
            "has flags that QEMU does not know",
        );
        check(self.kind != 1, 16, "is of a type that QEMU does not know");
        check(
            !GRANULARITY_BITS.contains(&self.granularity_bits),
            17,
            "has a granularity that is not between 512 bytes and 2 GiB",
        );
        check(
            self.name_length > MAX_NAME,
            18,
            "has a name of more than 1023 bytes",
        );
        problems
    }
}
