//! Headers of the other formats made byte by byte, where qemu-img cannot make them.
#![allow(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it says"
)]

use crate::support::image::Image;
use crate::support::microsoft::{vhdx, vpc_footer};
use vmdisk_image::{Header, ImageFormat, OtherHeader};

fn vmdk_descriptor(text: &str) -> Image {
    Image(text.as_bytes().to_vec())
}

fn other(image: &Image) -> OtherHeader {
    match image.header() {
        Header::Other(header) => header,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_vhdx_is_read_through_its_regions() {
    let header = other(&vhdx());
    assert_eq!(
        (header.virtual_size, header.cluster_size),
        (Some(1 << 30), Some(1 << 20))
    );
    assert_eq!(header.backing_file, None);
}

#[test]
fn a_fixed_vhd_has_its_footer_at_the_end() {
    let footer = vpc_footer(2, 1 << 20, u64::MAX);
    let header = Image::zeros(1 << 20).put(1 << 20, &footer.0).header();
    assert_eq!(header.format(), ImageFormat::Vpc);
    assert_eq!(header.virtual_size(), Some(1 << 20));
    assert_eq!(header.probed_by_qemu(), ImageFormat::Raw);
}

#[test]
fn the_size_of_a_vdi_is_read() {
    let image = Image::zeros(1 << 20)
        .put(64, &[0x7f, 0x10, 0xda, 0xbe])
        .le64(368, (1 << 20) - 1)
        .le32(376, 1 << 20);
    let header = other(&image);
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
        let header = other(&image);
        assert_eq!(header.format, ImageFormat::Vmdk, "{begin:?}");
        // QEMU opens no extent that is not writable, and none without a file.
        assert_eq!(header.virtual_size, Some(120 * 512));
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
    assert_eq!(other(&image).virtual_size, Some(1 << 20));
}

#[test]
fn an_esx_server_extent_is_a_vmdk() {
    let image = Image::zeros(2048)
        .put(0, b"COWD")
        .le32(4, 1)
        .le32(12, 2048)
        .le32(16, 1);
    let header = other(&image);
    assert_eq!(header.format, ImageFormat::Vmdk);
    assert_eq!(
        (header.virtual_size, header.cluster_size),
        (Some(1 << 20), Some(512))
    );
}

#[test]
fn luks_2_is_raw_to_qemu_and_luks_1_shows_what_follows_its_header() {
    let luks = |version| {
        let image = Image::zeros(1 << 20)
            .put(0, b"LUKS\xba\xbe")
            .be16(6, version);
        image.be32(104, 8).header()
    };
    let two = luks(2);
    assert_eq!(
        (two.format(), two.probed_by_qemu()),
        (ImageFormat::Luks2, ImageFormat::Raw)
    );
    assert_eq!((two.is_encrypted(), two.virtual_size()), (true, None));
    let one = luks(1);
    assert_eq!(
        (one.format(), one.probed_by_qemu()),
        (ImageFormat::Luks, ImageFormat::Luks)
    );
    assert_eq!(one.virtual_size(), Some((1 << 20) - 4096));
    assert_eq!(luks(3).format(), ImageFormat::Raw);
}

#[test]
fn formats_that_are_only_recognised_are_named() {
    let bochs = Image::zeros(512)
        .put(0, b"Bochs Virtual HD Image")
        .put(32, b"Redolog")
        .put(48, b"Growing")
        .le32(64, 0x2_0000);
    assert_eq!(other(&bochs).format, ImageFormat::Bochs);
    assert_eq!(bochs.le32(64, 3).header().format(), ImageFormat::Raw);
    let cloop = Image::zeros(512).put(
        0,
        b"#!/bin/sh\n#V2.0 Format\nmodprobe cloop file=$0 && mount",
    );
    assert_eq!(other(&cloop).format, ImageFormat::Cloop);
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
