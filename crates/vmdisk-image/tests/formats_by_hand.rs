//! Headers of the other formats made byte by byte, where qemu-img cannot make them.
#![allow(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it says"
)]

mod support;

use support::image::Image;
use vmdisk_image::{
    BackingReference, DefectKind, Effect, Header, ImageFormat, Name, VdiType, VhdxHeader, VmdkKind,
    VpcType,
};

fn vmdk_descriptor(text: &str) -> Image {
    Image(text.as_bytes().to_vec())
}

/// A footer with its checksum, of a size and type.
fn vpc_footer(kind: u32, size: u64, data_offset: u64) -> Image {
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
fn vpc_differencing(parent: &str) -> Image {
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

/// The CRC-32C of MS-VHDX, one bit at a time.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut value = u32::MAX;
    for byte in bytes {
        value ^= u32::from(*byte);
        for _ in 0..8 {
            value = (value >> 1) ^ (0x82f6_3b78 & 0u32.wrapping_sub(value & 1));
        }
    }
    !value
}

fn with_checksum(image: Image, at: usize, length: usize) -> Image {
    let image = image.le32(at + 4, 0);
    let sum = crc32c(&image.0[at..at + length]);
    image.le32(at + 4, sum)
}

fn vhdx_header(image: Image, at: usize, sequence: u64, log: bool) -> Image {
    let image = image
        .put(at, b"head")
        .le64(at + 8, sequence)
        .le16(at + 66, 1)
        .le32(at + 68, 1 << 20);
    let image = image
        .le64(at + 72, 1 << 20)
        .put(at + 48, &[u8::from(log); 16]);
    with_checksum(image, at, 4096)
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
fn vhdx(parents: &[(&str, &str)]) -> Image {
    let (table, metadata) = (2 << 20, 3 << 20);
    let image = Image::zeros(4 << 20).put(0, b"vhdxfile");
    let image = vhdx_header(image, 0x1_0000, 7, false);
    let image = vhdx_header(image, 0x2_0000, 8, false);
    let regions = image
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
    let mut image = with_checksum(regions, 0x3_0000, 0x1_0000);
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

fn read_vhdx(image: &Image) -> VhdxHeader {
    let Header::Vhdx(header) = image.header() else {
        panic!("not a VHDX")
    };
    header
}

#[test]
fn a_vhdx_is_read_through_its_regions() {
    let header = read_vhdx(&vhdx(&[]));
    assert_eq!(header.defects, []);
    assert_eq!(
        (header.virtual_size, header.block_size),
        (Some(1 << 30), Some(1 << 20))
    );
    assert_eq!(
        (header.logical_sector_size, header.physical_sector_size),
        (Some(512), Some(4096))
    );
    assert_eq!(
        (header.sequence, header.has_parent, header.fixed),
        (Some(8), false, false)
    );
}

#[test]
fn of_the_two_headers_of_a_vhdx_the_valid_one_of_the_higher_number_counts() {
    let sound = vhdx(&[]);
    let second_broken = sound.clone().put(0x2_0100, &[1]);
    assert_eq!(read_vhdx(&second_broken).sequence, Some(7));
    assert_eq!(read_vhdx(&second_broken).defects, []);
    let both_broken = second_broken.put(0x1_0100, &[1]);
    assert_eq!(
        read_vhdx(&both_broken).defects[0].kind,
        DefectKind::PartMissing {
            part: "valid header"
        }
    );
    assert_eq!(
        read_vhdx(&both_broken).virtual_size,
        Some(1 << 30),
        "reading goes on"
    );
    let first_newer = vhdx_header(sound.clone(), 0x1_0000, 9, true);
    assert_eq!(read_vhdx(&first_newer).sequence, Some(9));
    assert_eq!(
        read_vhdx(&first_newer).defects[0].kind,
        DefectKind::LogNotReplayed
    );
    let same = vhdx_header(sound.clone(), 0x1_0000, 8, false);
    assert_eq!(read_vhdx(&same).defects, []);
    let differ = vhdx_header(sound, 0x1_0000, 8, true);
    assert!(matches!(
        read_vhdx(&differ).defects[0].kind,
        DefectKind::PartRepeated { .. }
    ));
}

#[test]
fn the_parent_of_a_vhdx_is_named_and_not_supported() {
    let absolute = r"C:\base.vhdx";
    for (parents, expected) in [
        (
            &[
                ("parent_linkage", "{0}"),
                ("relative_path", r".\base.vhdx"),
                ("absolute_win32_path", absolute),
            ][..],
            Some(&br".\base.vhdx"[..]),
        ),
        (
            &[("absolute_win32_path", absolute)],
            Some(absolute.as_bytes()),
        ),
        (&[("parent_linkage", "{0}")], None),
    ] {
        let header = read_vhdx(&vhdx(parents));
        assert!(header.has_parent);
        assert_eq!(
            header
                .defects
                .iter()
                .map(|defect| &defect.kind)
                .collect::<Vec<_>>(),
            [&DefectKind::ParentUnsupported]
        );
        assert_eq!(header.parent, expected.map(BackingReference::from_bytes));
    }
}

#[test]
fn a_vhdx_with_parts_that_must_be_understood_is_refused() {
    let with_region = |flags: u32| {
        let image = vhdx(&[])
            .le32(0x3_0008, 3)
            .put(0x3_0050, &[9; 16])
            .le32(0x3_006c, flags);
        with_checksum(image, 0x3_0000, 0x1_0000)
    };
    assert_eq!(with_region(0).kinds(), []);
    assert_eq!(
        with_region(1).kinds(),
        [DefectKind::UnknownRequiredPart { part: "region" }]
    );
    let unknown_item = vhdx(&[]).put((3 << 20) + 32 + 2 * 32, &[9; 16]);
    let kinds = unknown_item.kinds();
    assert!(
        kinds.contains(&DefectKind::UnknownRequiredPart {
            part: "metadata item"
        }),
        "{kinds:?}"
    );
    assert!(
        kinds.contains(&DefectKind::PartMissing {
            part: "disk identity"
        }),
        "{kinds:?}"
    );
}

#[test]
fn a_differencing_vhd_names_a_parent_that_qemu_leaves_out() {
    let image = vpc_differencing(r"C:\images\grün.vhd");
    let header = image.header();
    assert_eq!(
        header.backing().unwrap().reference.name().as_str(),
        Some(r"C:\images\grün.vhd")
    );
    let Header::Vpc(vpc) = header else { panic!() };
    assert_eq!(vpc.disk_type, VpcType::Differencing);
    assert_eq!(vpc.virtual_size(), 4 << 20);
    assert_eq!(vpc.defects.len(), 1);
    assert_eq!(
        (&vpc.defects[0].kind, vpc.defects[0].effect()),
        (&DefectKind::ParentIgnored, Effect::Damaged)
    );
}

#[test]
fn a_fixed_vhd_has_its_footer_at_the_end() {
    let footer = vpc_footer(2, 1 << 20, u64::MAX);
    let image = Image::zeros(1 << 20).put(1 << 20, &footer.0);
    let Header::Vpc(header) = image.header() else {
        panic!()
    };
    assert!(header.footer_at_end_only);
    assert_eq!(header.defects, []);
    assert_eq!(
        (header.disk_type, header.virtual_size()),
        (VpcType::Fixed, 1 << 20)
    );
    assert_eq!(image.header().probed_by_qemu(), ImageFormat::Raw);
    let broken = image.put((1 << 20) + 200, &[1]);
    assert_eq!(broken.kinds(), [DefectKind::Checksum { part: "footer" }]);
}

#[test]
fn a_vmdk_descriptor_is_recognised_as_qemu_does_it() {
    let body = "CID=1234abcd\nparentCID=ffffffff\ncreateType=\"twoGbMaxExtentFlat\"\n\
                RW 100 FLAT \"a b.vmdk\" 0\nRDONLY 50 FLAT \"c.vmdk\" 8\nRW 20 FLAT \"/d.vmdk\" 3\nRW 7 ZERO\n";
    for begin in [
        "version=1\n",
        "# c\nversion=2\r\n",
        "#\n   \n# \n  \r\nversion=3\n",
    ] {
        let image = vmdk_descriptor(&format!("{begin}{body}"));
        let Header::Vmdk(header) = image.header() else {
            panic!("{begin:?}")
        };
        assert_eq!(header.kind, VmdkKind::Descriptor);
        assert_eq!(header.defects, []);
        assert_eq!(header.virtual_size, Some(120 * 512));
        assert_eq!(header.content_id, Some(0x1234_abcd));
        assert_eq!(header.parent_content_id, Some(u32::MAX));
        assert_eq!(header.extents.len(), 4);
        assert_eq!(
            (
                header.extents[1].access.to_string(),
                header.extents[1].offset
            ),
            ("RDONLY".into(), 8)
        );
        assert_eq!(
            header.extents[0].file,
            Some(BackingReference::Relative("a b.vmdk".into()))
        );
        assert_eq!(
            header.extents[2].file,
            Some(BackingReference::Absolute("/d.vmdk".into()))
        );
        assert_eq!(header.extents[3].file, None);
    }
    let long_comment = format!("#{}\nversion=1\n{body}", "x".repeat(600));
    for begin in [
        "\nversion=1\n",
        "version=4\n",
        "version=1",
        "version=1 \n",
        " x\nversion=1\n",
        &long_comment,
    ] {
        let image = vmdk_descriptor(begin);
        assert_eq!(image.header().format(), ImageFormat::Raw, "{begin:?}");
    }
}

#[test]
fn the_footer_of_a_streamed_vmdk_counts() {
    let header = |capacity: u64, directory: u64| {
        Image::zeros(512)
            .put(0, b"KDMV")
            .le32(4, 3)
            .le64(12, capacity)
            .le64(20, 128)
            .le32(44, 512)
            .le64(56, directory)
            .le64(64, 1)
            .le16(77, 1)
    };
    let image = Image::zeros(4096)
        .put(0, &header(0, u64::MAX).0)
        .put(3072, &header(2048, 5).0);
    let Header::Vmdk(vmdk) = image.header() else {
        panic!()
    };
    assert_eq!(vmdk.defects, []);
    assert_eq!((vmdk.virtual_size, vmdk.compressed), (Some(1 << 20), true));
    let without = image.put(3072, &[0; 512]);
    assert_eq!(without.kinds()[0], DefectKind::Signature { part: "footer" });
}

#[test]
fn an_esx_server_extent_is_a_vmdk() {
    let image = Image::zeros(2048)
        .put(0, b"COWD")
        .le32(4, 1)
        .le32(12, 2048)
        .le32(16, 1);
    let Header::Vmdk(header) = image.header() else {
        panic!()
    };
    assert_eq!((header.kind, header.version), (VmdkKind::Cowd, 1));
    assert_eq!(
        (header.virtual_size, header.grain_size),
        (Some(1 << 20), Some(512))
    );
}

#[test]
fn luks_2_is_read_and_is_raw_to_qemu() {
    let image = Image::zeros(16384)
        .put(0, b"LUKS\xba\xbe\x00\x02")
        .be64(8, 16384)
        .be64(16, 3)
        .put(24, b"root")
        .put(72, b"sha256")
        .put(168, b"cb9457c8-b4a9-4dfa-a3d3-ca01218620a3")
        .put(208, b"subsystem");
    let header = image.header();
    assert_eq!(
        (header.format(), header.probed_by_qemu()),
        (ImageFormat::Luks2, ImageFormat::Raw)
    );
    assert!(header.is_encrypted());
    let Header::Luks2(luks) = header else {
        panic!()
    };
    assert_eq!(
        (luks.label, luks.subsystem),
        (Name::from("root"), Name::from("subsystem"))
    );
    assert_eq!((luks.header_size, luks.sequence), (16384, 3));
    assert_eq!(luks.defects, []);
    let other = Image::zeros(4096).put(0, b"LUKS\xba\xbe\x00\x03");
    assert_eq!(other.header().format(), ImageFormat::Raw);
}

#[test]
fn a_vdi_of_virtualbox_with_a_parent_is_refused() {
    let image = Image::zeros(1 << 20)
        .put(0, b"<<< Oracle VM VirtualBox Disk Image >>>\n")
        .put(64, &[0x7f, 0x10, 0xda, 0xbe])
        .le32(68, 0x1_0001)
        .le32(76, 4)
        .le32(340, 512)
        .le32(344, 1024)
        .le32(360, 512)
        .le64(368, 1 << 20)
        .le32(376, 1 << 20)
        .le32(384, 1)
        .put(440, &[1; 16]);
    let Header::Vdi(header) = image.header() else {
        panic!()
    };
    assert_eq!(header.image_type, VdiType::Other(4));
    assert_eq!(image.kinds(), [DefectKind::ParentUnsupported]);
}

#[test]
fn formats_that_are_only_recognised_are_named() {
    let bochs = Image::zeros(512)
        .put(0, b"Bochs Virtual HD Image")
        .put(32, b"Redolog")
        .put(48, b"Growing")
        .le32(64, 0x2_0000);
    assert_eq!(bochs.header(), Header::Other(ImageFormat::Bochs));
    assert_eq!(bochs.le32(64, 3).header().format(), ImageFormat::Raw);
    let cloop = Image::zeros(512).put(
        0,
        b"#!/bin/sh\n#V2.0 Format\nmodprobe cloop file=$0 && mount",
    );
    assert_eq!(cloop.header(), Header::Other(ImageFormat::Cloop));
}

#[test]
fn signatures_without_the_rest_are_cut_images_of_their_format() {
    let signatures: [(&[u8], ImageFormat); 7] = [
        (b"QFI\xfb\0\0\0\x01", ImageFormat::Qcow),
        (b"QED\0", ImageFormat::Qed),
        (b"KDMV", ImageFormat::Vmdk),
        (b"COWD", ImageFormat::Vmdk),
        (b"conectix", ImageFormat::Vpc),
        (b"LUKS\xba\xbe\0\x01", ImageFormat::Luks),
        (b"WithouFreSpacExt", ImageFormat::Parallels),
    ];
    for (signature, format) in signatures {
        let image = Image(signature.to_vec());
        assert_eq!(image.header().format(), format);
        assert!(
            matches!(image.kinds()[0], DefectKind::TruncatedHeader { .. }),
            "{format}: {:?}",
            image.kinds()
        );
    }
    let vhdx = Image(b"vhdxfile".to_vec());
    assert_eq!(vhdx.header().format(), ImageFormat::Vhdx);
    assert_eq!(
        vhdx.kinds()[0],
        DefectKind::PartMissing {
            part: "valid header"
        }
    );
}
