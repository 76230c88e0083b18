//! Images of other formats the real qemu-img makes, and what it says of them, against what this crate reads.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests make files and start qemu-img, stop at a failure and say what they skip"
)]

use crate::support::agree::{agree, number, read, text};
use crate::support::qemu;
use vmdisk_image::{BackingReference, ImageFormat};

#[test]
fn other_formats_read_as_qemu_img_says() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let made = [
        ("qcow", ""),
        ("qed", ""),
        ("qed", "cluster_size=4096,table_size=16"),
        ("vdi", ""),
        ("vdi", "static=on"),
        ("vhdx", ""),
        ("vhdx", "subformat=fixed,block_size=1M"),
        ("vhdx", "log_size=2M,block_size=32M"),
        ("vpc", ""),
        ("vpc", "force_size=on"),
        ("vmdk", ""),
        ("vmdk", "subformat=monolithicFlat"),
        ("vmdk", "subformat=twoGbMaxExtentSparse"),
        ("vmdk", "subformat=twoGbMaxExtentFlat"),
        ("vmdk", "subformat=streamOptimized"),
        ("vmdk", "compat6,adapter_type=lsilogic"),
        ("parallels", ""),
        ("parallels", "cluster_size=2M"),
        ("raw", ""),
    ];
    for (format, options) in made {
        for size in ["1M", "100M", "3G"] {
            // A fixed image of 3 GiB is a file of 3 GiB.
            if size == "3G" && (options.contains("static") || options.contains("fixed")) {
                continue;
            }
            let file = format!("image.{format}");
            qemu::create(directory, format, options, &[&file, size]);
            let (header, _) = agree(directory, &file);
            assert_eq!(
                header.format(),
                ImageFormat::from_qemu_name(format.as_bytes()).unwrap()
            );
        }
    }
}

#[test]
fn a_fixed_vhd_is_raw_to_probing_and_a_vhd_to_its_driver() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    for options in ["subformat=fixed", "subformat=fixed,force_size=on"] {
        qemu::create(directory, "vpc", options, &["image.vpc", "3M"]);
        let header = read(directory, "image.vpc");
        assert_eq!(header.format(), ImageFormat::Vpc);
        assert_eq!(header.probed_by_qemu(), ImageFormat::Raw);
        assert_eq!(
            text(&qemu::info(directory, "image.vpc"), "format"),
            Some("raw")
        );
        let info = qemu::opens(directory, "vpc", "image.vpc").unwrap();
        assert_eq!(number(&info, "virtual-size"), header.virtual_size());
    }
}

#[test]
fn backing_files_of_other_formats_are_named() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    qemu::create(directory, "raw", "", &["base.img", "4M"]);
    qemu::create(directory, "vmdk", "", &["base.vmdk", "4M"]);
    for (format, base, base_format) in [("qcow", "base.img", "raw"), ("qed", "base.img", "raw")] {
        let file = format!("top.{format}");
        qemu::create(
            directory,
            format,
            "",
            &["-b", base, "-F", base_format, &file],
        );
        let (header, _) = agree(directory, &file);
        let backing = header.backing().unwrap();
        assert_eq!(
            backing.reference,
            &BackingReference::from_bytes(base.as_bytes())
        );
        let implied = (format == "qed").then_some(ImageFormat::Raw);
        assert_eq!(backing.implied, implied);
    }
    qemu::create(
        directory,
        "vmdk",
        "",
        &["-b", "base.vmdk", "-F", "vmdk", "top.vmdk"],
    );
    let (header, _) = agree(directory, "top.vmdk");
    let backing = header.backing().unwrap();
    assert_eq!(
        backing.reference,
        &BackingReference::from_bytes(b"base.vmdk")
    );
    assert_eq!(backing.implied, Some(ImageFormat::Vmdk));
}

#[test]
fn signatures_alone_are_probed_as_qemu_probes_them() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let vdi = [&[0; 64][..], &[0x7f, 0x10, 0xda, 0xbe]].concat();
    let signatures: [&[u8]; 19] = [
        b"",
        b"QFI\xfb",
        b"QFI\xfb\0\0\0\0",
        b"QFI\xfb\0\0\0\x01",
        b"QFI\xfb\0\0\0\x02",
        b"QFI\xfb\0\0\0\x09",
        b"QED\0",
        b"KDMV",
        b"COWD",
        b"conectix",
        b"vhdxfile",
        b"LUKS\xba\xbe\0\x01",
        b"LUKS\xba\xbe\0\x02",
        b"WithouFreSpacExt\x01\0\0\0",
        b"WithoutFreeSpace\x02\0\0\0",
        b"version=1\n",
        b"# text\nversion=3\n",
        b"# text\nversion=4\n",
        &vdi,
    ];
    for signature in signatures {
        std::fs::write(directory.join("image"), signature).unwrap();
        let output = qemu::run(directory, &["info", "--output=json", "image"]);
        // A signature alone is not an image: only raw opens.
        let raw = output.status.success();
        let header = read(directory, "image");
        assert_eq!(
            header.probed_by_qemu() == ImageFormat::Raw,
            raw,
            "{:?}",
            String::from_utf8_lossy(signature)
        );
    }
}
