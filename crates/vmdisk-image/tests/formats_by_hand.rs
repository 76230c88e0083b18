//! Headers of the other formats made byte by byte, where qemu-img cannot make them.
#![allow(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it says"
)]

use crate::support::image::Image;
use crate::support::microsoft::{vhdx, vpc_differencing, vpc_footer};
use vmdisk_image::{BackingReference, Header, ImageFormat, Name, UncheckedHeader};

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
    assert_eq!(
        (header.virtual_size, header.cluster_size),
        (Some(1 << 30), Some(1 << 20))
    );
    assert_eq!(header.backing_file, None);
}

#[test]
fn the_parent_of_a_vhdx_is_named() {
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
        assert_eq!(
            unchecked(&image).backing_file,
            expected.map(BackingReference::from_bytes)
        );
    }
}

#[test]
fn a_differencing_vhd_names_its_parent() {
    let image = vpc_differencing(r"C:\images\grün.vhd");
    let header = image.header();
    assert_eq!(
        header.backing().unwrap().reference.name().as_str(),
        Some(r"C:\images\grün.vhd")
    );
    assert_eq!(header.virtual_size(), Some(4 << 20));
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
fn the_size_of_a_vdi_is_read() {
    let image = Image::zeros(1 << 20)
        .put(64, &[0x7f, 0x10, 0xda, 0xbe])
        .le64(368, (1 << 20) - 1)
        .le32(376, 1 << 20);
    let header = unchecked(&image);
    assert_eq!(header.virtual_size, Some(1 << 20));
    assert_eq!(header.cluster_size, Some(1 << 20));
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
        let header = unchecked(&image);
        assert_eq!(header.format, ImageFormat::Vmdk, "{begin:?}");
        assert_eq!(header.virtual_size, Some(120 * 512));
        // QEMU opens no extent that is not writable, and none without a file.
        let files = [
            BackingReference::Relative("a b.vmdk".into()),
            BackingReference::Absolute("/d.vmdk".into()),
        ];
        assert_eq!(header.data_files, files);
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
    assert_eq!(unchecked(&image).virtual_size, Some(1 << 20));
}

#[test]
fn an_esx_server_extent_is_a_vmdk() {
    let image = Image::zeros(2048)
        .put(0, b"COWD")
        .le32(4, 1)
        .le32(12, 2048)
        .le32(16, 1);
    let header = unchecked(&image);
    assert_eq!(header.format, ImageFormat::Vmdk);
    assert_eq!(
        (header.virtual_size, header.cluster_size),
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
    let signatures: [(&[u8], ImageFormat); 7] = [
        (b"vhdxfile", ImageFormat::Vhdx),
        (b"QFI\xfb\0\0\0\x01", ImageFormat::Qcow),
        (b"QED\0", ImageFormat::Qed),
        (b"KDMV", ImageFormat::Vmdk),
        (b"COWD", ImageFormat::Vmdk),
        (b"conectix", ImageFormat::Vpc),
        (b"WithouFreSpacExt", ImageFormat::Parallels),
    ];
    for (signature, format) in signatures {
        let image = Image(signature.to_vec());
        assert_eq!(image.header().format(), format);
        assert_eq!(image.header().virtual_size(), None, "{format}");
    }
}
