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

const BLOCK_TABLE: [u8; 16] = *b"\x66\x77\xc2\x2d\x23\xf6\x00\x42\x9d\x64\x11\x5e\x9b\xfd\x4a\x08";
const METADATA: [u8; 16] = *b"\x06\xa2\x7c\x8b\x90\x47\x9a\x4b\xb8\xfe\x57\x5f\x05\x0f\x88\x6e";
const PARAMETERS: [u8; 16] = *b"\x37\x67\xa1\xca\x36\xfa\x43\x4d\xb3\xb6\x33\xf0\xaa\x44\xe7\x6b";
const SIZE: [u8; 16] = *b"\x24\x42\xa5\x2f\x1b\xcd\x76\x48\xb2\x11\x5d\xbe\xd8\x3b\xf4\xb8";
const IDENTITY: [u8; 16] = *b"\xab\x12\xca\xbe\xe6\xb2\x23\x45\x93\xef\xc3\x09\xe0\x00\xc7\x46";
const LOGICAL: [u8; 16] = *b"\x1d\xbf\x41\x81\x6f\xa9\x09\x47\xba\x47\xf2\x33\xa8\xfa\xab\x5f";
const PHYSICAL: [u8; 16] = *b"\xc7\x48\xa3\xcd\x5d\x44\x71\x44\x9c\xc9\xe9\x88\x52\x51\xc5\x56";

/// A VHDX of 1 GiB.
pub(crate) fn vhdx() -> Image {
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
    let values: [([u8; 16], Vec<u8>); 5] = [
        (PARAMETERS, [(1u32 << 20).to_le_bytes(), [0; 4]].concat()),
        (SIZE, (1u64 << 30).to_le_bytes().to_vec()),
        (IDENTITY, vec![7; 16]),
        (LOGICAL, 512u32.to_le_bytes().to_vec()),
        (PHYSICAL, 4096u32.to_le_bytes().to_vec()),
    ];
    image = image.put(base, b"metadata").le16(base + 10, 5);
    let mut place = 0x1_0000;
    for (index, (id, value)) in values.iter().enumerate() {
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
