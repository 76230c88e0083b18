//! VHD and VHDX by hand.

use super::image::Image;

/// A footer with its checksum, of a size and type.
pub(crate) fn vpc_footer(kind: u32, size: u64, data_offset: u64) -> Image {
    let footer = Image::zeros(512)
        .put(0, b"conectix")
        .be32(8, 2)
        .be32(12, 0x1_0000)
        .be64(16, data_offset)
        .put(28, b"win ")
        .be64(40, size)
        .be64(48, size)
        .be32(60, kind);
    let sum: u32 = footer.0.iter().map(|byte| u32::from(*byte)).sum();
    footer.be32(64, !sum)
}

/// A differencing VHD with a parent's name.
pub(crate) fn vpc_differencing(parent: &str) -> Image {
    let mut header = Image::zeros(1024)
        .put(0, b"cxsparse")
        .be64(8, u64::MAX)
        .be64(16, 1536)
        .be32(24, 0x1_0000)
        .be32(28, 2)
        .be32(32, 2 << 20);
    for (index, unit) in parent.encode_utf16().enumerate() {
        header = header.be16(64 + 2 * index, unit);
    }
    let sum: u32 = header.0.iter().map(|byte| u32::from(*byte)).sum();
    let header = header.be32(36, !sum);
    let footer = vpc_footer(4, 4 << 20, 512);
    Image::zeros(2560)
        .put(0, &footer.0)
        .put(512, &header.0)
        .put(1536, &[0xff; 512])
        .put(2048, &footer.0)
}

const BLOCK_TABLE: [u8; 16] = *b"\x66\x77\xc2\x2d\x23\xf6\x00\x42\x9d\x64\x11\x5e\x9b\xfd\x4a\x08";
const METADATA: [u8; 16] = *b"\x06\xa2\x7c\x8b\x90\x47\x9a\x4b\xb8\xfe\x57\x5f\x05\x0f\x88\x6e";
const PARAMETERS: [u8; 16] = *b"\x37\x67\xa1\xca\x36\xfa\x43\x4d\xb3\xb6\x33\xf0\xaa\x44\xe7\x6b";
const SIZE: [u8; 16] = *b"\x24\x42\xa5\x2f\x1b\xcd\x76\x48\xb2\x11\x5d\xbe\xd8\x3b\xf4\xb8";
const IDENTITY: [u8; 16] = *b"\xab\x12\xca\xbe\xe6\xb2\x23\x45\x93\xef\xc3\x09\xe0\x00\xc7\x46";
const LOGICAL: [u8; 16] = *b"\x1d\xbf\x41\x81\x6f\xa9\x09\x47\xba\x47\xf2\x33\xa8\xfa\xab\x5f";
const PHYSICAL: [u8; 16] = *b"\xc7\x48\xa3\xcd\x5d\x44\x71\x44\x9c\xc9\xe9\x88\x52\x51\xc5\x56";
const LOCATOR: [u8; 16] = *b"\x2d\x5f\xd3\xa8\x0b\xb3\x4d\x45\xab\xf7\xd3\xd8\x48\x34\xab\x0c";
const LOCATOR_TYPE: [u8; 16] = *b"\xb7\xef\x4a\xb0\x9e\xd1\x81\x4a\xb7\x89\x25\xb8\xe9\x44\x59\x13";

/// A VHDX of 1 GiB; with `parents`, one that holds differences.
pub(crate) fn vhdx(parents: &[(&str, &str)]) -> Image {
    let (table, metadata) = (2 << 20, 3 << 20);
    let mut image = Image::zeros(4 << 20)
        .put(0, b"vhdxfile")
        .put(0x3_0000, b"regi")
        .le32(0x3_0008, 2)
        .put(0x3_0010, &BLOCK_TABLE)
        .le64(0x3_0020, table)
        .le32(0x3_0028, 1 << 20)
        .le32(0x3_002c, 1)
        .put(0x3_0030, &METADATA)
        .le64(0x3_0040, metadata)
        .le32(0x3_0048, 1 << 20)
        .le32(0x3_004c, 1);
    let base = metadata as usize;
    let flags = if parents.is_empty() { 0 } else { 2 };
    let values: [([u8; 16], Vec<u8>); 6] = [
        (
            PARAMETERS,
            [(1u32 << 20).to_le_bytes(), u32::to_le_bytes(flags)].concat(),
        ),
        (SIZE, (1u64 << 30).to_le_bytes().to_vec()),
        (IDENTITY, vec![7; 16]),
        (LOGICAL, 512u32.to_le_bytes().to_vec()),
        (PHYSICAL, 4096u32.to_le_bytes().to_vec()),
        (LOCATOR, locator(parents)),
    ];
    let count = if parents.is_empty() { 5 } else { 6 };
    image = image.put(base, b"metadata").le16(base + 10, count);
    let mut place = 0x1_0000;
    for (index, (id, value)) in values.iter().enumerate().take(usize::from(count)) {
        let at = base + 32 + index * 32;
        image = image
            .put(at, id)
            .le32(at + 16, place as u32)
            .le32(at + 20, value.len() as u32)
            .le32(at + 24, 4);
        image = image.put(base + place, value);
        place += value.len().next_multiple_of(16);
    }
    image
}

fn locator(parents: &[(&str, &str)]) -> Vec<u8> {
    let mut locator = Image(LOCATOR_TYPE.to_vec()).le16(18, parents.len() as u16);
    let mut text = 20 + 12 * parents.len();
    for (index, (key, value)) in parents.iter().enumerate() {
        for (field, string) in [(0, key), (1, value)] {
            let units: Vec<u8> = string.encode_utf16().flat_map(u16::to_le_bytes).collect();
            locator = locator.le32(20 + 12 * index + 4 * field, text as u32);
            locator = locator
                .le16(28 + 12 * index + 2 * field, units.len() as u16)
                .put(text, &units);
            text += units.len();
        }
    }
    locator.0
}
