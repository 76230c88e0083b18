//! Headers of the other formats made byte by byte, where qemu-img cannot make them.
#![allow(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it says"
)]

use crate::support::image::Image;
use crate::support::microsoft::{vhdx, vpc_differencing, vpc_footer};
use vmdisk_image::{
    BackingReference, DefectKind, Effect, Header, ImageFormat, Name, UncheckedHeader, VmdkKind,
};

fn vmdk_descriptor(text: &str) -> Image {
    Image(text.as_bytes().to_vec())
}

fn unchecked(image: &Image) -> UncheckedHeader {
    match image.header() {
        Header::Unchecked(header) => header,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_vhdx_is_read_through_its_regions() {
    let header = unchecked(&vhdx(&[]));
    assert_eq!(header.defects, []);
    assert_eq!(
        (header.virtual_size, header.cluster_size),
        (Some(1 << 30), Some(1 << 20))
    );
    assert_eq!(header.backing_file, None);
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
        let image = vhdx(parents);
        assert_eq!(image.kinds(), [DefectKind::ParentUnsupported]);
        assert_eq!(
            unchecked(&image).backing_file,
            expected.map(BackingReference::from_bytes)
        );
    }
}

#[test]
fn a_differencing_vhd_names_a_parent_that_qemu_leaves_out() {
    let image = vpc_differencing(r"C:\images\grün.vhd");
    let header = image.header();
    assert_eq!(
        header.backing().unwrap().reference.name().as_str(),
        Some(r"C:\images\grün.vhd")
    );
    assert_eq!(header.virtual_size(), Some(4 << 20));
    assert_eq!(image.kinds(), [DefectKind::ParentIgnored]);
    assert_eq!(header.defects()[0].effect(), Effect::Damaged);
}

#[test]
fn a_fixed_vhd_has_its_footer_at_the_end() {
    let footer = vpc_footer(2, 1 << 20, u64::MAX);
    let header = Image::zeros(1 << 20).put(1 << 20, &footer.0).header();
    assert_eq!(header.format(), ImageFormat::Vpc);
    assert_eq!(header.defects(), []);
    assert_eq!(header.virtual_size(), Some(1 << 20));
    assert_eq!(header.probed_by_qemu(), ImageFormat::Raw);
}

#[test]
fn a_vdi_of_virtualbox_with_a_parent_is_refused() {
    let image = Image::zeros(1 << 20)
        .put(64, &[0x7f, 0x10, 0xda, 0xbe])
        .le32(68, 0x1_0001)
        .le32(340, 512)
        .le32(344, 1024)
        .le32(360, 512)
        .le64(368, 1 << 20)
        .le32(376, 1 << 20)
        .le32(384, 1)
        .put(440, &[1; 16]);
    assert_eq!(unchecked(&image).virtual_size, Some(1 << 20));
    assert_eq!(image.kinds(), [DefectKind::ParentUnsupported]);
    // QEMU reads zeroes after the end, and block 0 for each of them.
    let short = image.put(440, &[0; 16]).le32(340, 1 << 20);
    let (table, offset, bytes, length) = ("block map", 1 << 20, 4, 1 << 20);
    let kind = DefectKind::TableBeyondEnd {
        table,
        offset,
        bytes,
        length,
    };
    assert_eq!(short.kinds(), [kind]);
    assert_eq!(short.header().defects()[0].effect(), Effect::Damaged);
}

#[test]
fn a_qed_that_was_not_closed_is_checked_by_qemu() {
    let sound = Image::zeros(3 * 4096)
        .put(0, b"QED\0")
        .le32(4, 4096)
        .le32(8, 2)
        .le32(12, 1)
        .le64(40, 4096)
        .le64(48, 1 << 20);
    assert_eq!(sound.kinds(), []);
    assert_eq!(sound.le64(16, 2).kinds(), [DefectKind::Dirty]);
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
        .put(512, b"CID=1\nparentCID=ffffffff\n")
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
fn formats_that_are_only_recognised_are_named() {
    let bochs = Image::zeros(512)
        .put(0, b"Bochs Virtual HD Image")
        .put(32, b"Redolog")
        .put(48, b"Growing")
        .le32(64, 0x2_0000);
    assert_eq!(unchecked(&bochs).format, ImageFormat::Bochs);
    assert_eq!(bochs.le32(64, 3).header().format(), ImageFormat::Raw);
    let cloop = Image::zeros(512).put(
        0,
        b"#!/bin/sh\n#V2.0 Format\nmodprobe cloop file=$0 && mount",
    );
    assert_eq!(unchecked(&cloop).format, ImageFormat::Cloop);
}

#[test]
fn signatures_without_the_rest_are_cut_images_of_their_format() {
    let signatures: [(&[u8], ImageFormat); 8] = [
        (b"vhdxfile", ImageFormat::Vhdx),
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
}

#[test]
fn a_grain_directory_outside_of_the_file_is_a_defect() {
    let descriptor = "# Disk DescriptorFile\nversion=1\nCID=1234abcd\nparentCID=ffffffff\n";
    // 2048 sectors in grains of 128 and tables of 512 entries: a directory of one entry.
    let sound = Image::zeros(4096)
        .put(0, b"KDMV")
        .le32(4, 1)
        .le32(8, 3)
        .le64(12, 2048)
        .le64(20, 128)
        .le64(28, 1)
        .le64(36, 2)
        .le32(44, 512)
        .le64(48, 3)
        .le64(56, 4)
        .put(512, descriptor.as_bytes());
    assert_eq!(sound.kinds(), []);
    for (field, table) in [(56, "grain directory"), (48, "redundant grain directory")] {
        let defect = |sector| {
            sound
                .clone()
                .le64(field, sector)
                .header()
                .defects()
                .to_vec()
        };
        let [beyond] = &defect(8)[..] else { panic!() };
        let kind = DefectKind::TableBeyondEnd {
            table,
            offset: 4096,
            bytes: 4,
            length: 4096,
        };
        assert_eq!((beyond.offset, &beyond.kind), (field as u64, &kind));
        assert_eq!(beyond.effect(), Effect::Damaged);
        let [overflows] = &defect(1 << 54)[..] else {
            panic!()
        };
        assert!(matches!(overflows.kind, DefectKind::TableOverflows { .. }));
        assert_eq!(overflows.effect(), Effect::Refused);
    }
    // Without its flag, the second directory is not used; a directory in the header is.
    assert_eq!(sound.clone().le32(8, 1).le64(48, 8).kinds(), []);
    let table = "grain directory";
    let kind = DefectKind::TableOverHeader { table, offset: 0 };
    assert_eq!(sound.clone().le64(56, 0).kinds(), [kind]);
    let esx = Image::zeros(2048)
        .put(0, b"COWD")
        .le32(4, 1)
        .le32(12, 8192)
        .le32(16, 1)
        .le32(20, 3)
        .le32(24, 2);
    assert_eq!(esx.kinds(), []);
    let kind = DefectKind::TableBeyondEnd {
        table,
        offset: 2048,
        bytes: 8,
        length: 2048,
    };
    assert_eq!(esx.le32(20, 4).kinds(), [kind]);
}
