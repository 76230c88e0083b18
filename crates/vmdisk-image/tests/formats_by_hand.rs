//! Headers of the other formats made byte by byte, where qemu-img cannot make them.
#![allow(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it says"
)]

mod support;

use support::image::Image;
use support::microsoft::{vhdx, vhdx_header, vpc_differencing, vpc_footer, with_checksum};
use vmdisk_image::{
    BackingReference, DefectKind, Effect, Header, ImageFormat, Name, VdiType, VhdxHeader, VmdkKind,
    VpcType,
};

fn vmdk_descriptor(text: &str) -> Image {
    Image(text.as_bytes().to_vec())
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

#[test]
fn the_largest_disks_of_each_format_are_sound_and_larger_ones_are_not() {
    // qcow: clusters of 4 KiB and tables of 512 entries map 2 MiB with each of the L1 entries a C int can count.
    let qcow = |entries: u64| {
        let image = Image::zeros(4096)
            .put(0, b"QFI\xfb\0\0\0\x01")
            .put(32, &[12, 9])
            .be64(40, 48);
        image.be64(24, entries << 21).kinds()
    };
    assert_eq!(qcow(i32::MAX as u64 / 8), []);
    assert!(matches!(
        qcow(i32::MAX as u64 / 8 + 1)[..],
        [DefectKind::VirtualSizeTooLarge { .. }]
    ));

    // VHD: 2040 GiB.
    let vpc = |size: u64| {
        Image::zeros(1024)
            .put(1024, &vpc_footer(2, size, u64::MAX).0)
            .kinds()
    };
    assert_eq!(vpc(2040 << 30), []);
    assert!(matches!(
        vpc((2040 << 30) + 512)[..],
        [DefectKind::VirtualSizeTooLarge { .. }]
    ));

    // VHDX: a table of 1 MiB has 131072 entries, of which every 4097th is for a bitmap.
    let vhdx = |blocks: u64| vhdx(&[]).le64((3 << 20) + 0x1_0010, blocks << 20).kinds();
    assert_eq!(vhdx(131_041), []);
    let too_small = DefectKind::TableTooSmall {
        table: "block table",
        found: 131_072,
        needed: 131_073,
    };
    assert_eq!(vhdx(131_042), [too_small]);
}
