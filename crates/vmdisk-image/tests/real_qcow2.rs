//! qcow2 images the real qemu-img makes, and what it says of them, against what this crate reads.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests make files and start qemu-img, stop at a failure and say what they skip"
)]

use std::path::Path;

use crate::support::agree::{agree_qcow2, number, read};
use crate::support::qemu;
use serde_json::Value;
use vmdisk_image::{BackingReference, Header};

/// Whether this QEMU was built with an option; what it cannot make cannot be compared.
fn can(directory: &Path, options: &str) -> bool {
    let output = qemu::run(
        directory,
        &[
            "create",
            "-q",
            "-f",
            "qcow2",
            "-o",
            options,
            "probe.qcow2",
            "1M",
        ],
    );
    output.status.success()
}

#[test]
fn qcow2_of_every_option_reads_as_qemu_img_says() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut count = 0;
    for compat in ["0.10", "1.1"] {
        for cluster_size in [512u64, 4096, 65536, 2 << 20] {
            for size in ["0", "1", "512", "1000000", "10G"] {
                let options = format!("compat={compat},cluster_size={cluster_size}");
                qemu::create(directory, "qcow2", &options, &["image.qcow2", size]);
                let header = agree_qcow2(directory, "image.qcow2");
                assert_eq!(header.cluster_size(), Some(cluster_size));
                count += 1;
            }
        }
    }
    let mut options = vec![
        "lazy_refcounts=on",
        "lazy_refcounts=off",
        "refcount_bits=1",
        "refcount_bits=8",
        "refcount_bits=64",
        "preallocation=metadata",
        "preallocation=falloc",
        "preallocation=full",
    ];
    let by_version = [
        "extended_l2=on",
        "extended_l2=on,cluster_size=16384",
        "extended_l2=on,cluster_size=2M,lazy_refcounts=on,refcount_bits=32",
        "compression_type=zstd",
        "compression_type=zstd,extended_l2=on,lazy_refcounts=on",
    ];
    for options_of_newer in by_version {
        if can(directory, options_of_newer) {
            options.push(options_of_newer);
        } else {
            eprintln!("not compared: this qemu-img does not know {options_of_newer}");
        }
    }
    for options in options {
        qemu::create(directory, "qcow2", options, &["image.qcow2", "20M"]);
        agree_qcow2(directory, "image.qcow2");
        count += 1;
    }
    assert!(count >= 48, "{count} images");
}

#[test]
fn qcow2_with_a_data_file_names_it() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    for (raw, options) in [
        (false, "data_file=outside.raw"),
        (true, "data_file=outside.raw,data_file_raw=on"),
    ] {
        qemu::create(directory, "qcow2", options, &["image.qcow2", "4M"]);
        let header = agree_qcow2(directory, "image.qcow2");
        assert_eq!(
            header.data_file,
            Some(BackingReference::from_bytes(b"outside.raw"))
        );
        assert_eq!(header.autoclear.raw_external_data(), raw);
    }
}

#[test]
fn qcow2_with_a_backing_file_names_it_and_its_format() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    qemu::create(directory, "raw", "", &["base.img", "4M"]);
    qemu::create(directory, "qcow2", "", &["middle.qcow2", "4M"]);
    for compat in ["0.10", "1.1"] {
        for (base, format) in [
            ("base.img", "raw"),
            ("middle.qcow2", "qcow2"),
            ("./base.img", "raw"),
        ] {
            let options = format!("compat={compat}");
            qemu::create(
                directory,
                "qcow2",
                &options,
                &["-b", base, "-F", format, "top.qcow2"],
            );
            let header = agree_qcow2(directory, "top.qcow2");
            assert_eq!(
                header.backing_file,
                Some(BackingReference::from_bytes(base.as_bytes()))
            );
            assert_eq!(header.backing_format.unwrap().as_bytes(), format.as_bytes());
        }
    }
    let absolute = directory.join("base.img");
    qemu::create(
        directory,
        "qcow2",
        "",
        &["-b", absolute.to_str().unwrap(), "-F", "raw", "top.qcow2"],
    );
    assert!(matches!(
        agree_qcow2(directory, "top.qcow2").backing_file,
        Some(BackingReference::Absolute(_))
    ));
    // Without a look at it, any name goes.
    for (name, format) in [
        ("json:{\"driver\":\"file\",\"filename\":\"x\"}", "raw"),
        ("nbd://host/x", "raw"),
    ] {
        qemu::succeed(
            directory,
            &["rebase", "-q", "-u", "-b", name, "-F", format, "top.qcow2"],
        );
        let header = agree_qcow2(directory, "top.qcow2");
        let reference = header.backing_file.unwrap();
        assert_eq!(reference.to_string(), name);
        assert!(matches!(
            reference,
            BackingReference::Json(_) | BackingReference::Protocol { .. }
        ));
    }
    qemu::succeed(directory, &["rebase", "-q", "-u", "-b", "", "top.qcow2"]);
    assert_eq!(agree_qcow2(directory, "top.qcow2").backing_file, None);
}

#[test]
fn qcow2_with_snapshots_and_bitmaps_counts_them() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    qemu::create(directory, "qcow2", "", &["image.qcow2", "4M"]);
    for name in ["one", "two", "three"] {
        qemu::succeed(directory, &["snapshot", "-c", name, "image.qcow2"]);
    }
    assert_eq!(agree_qcow2(directory, "image.qcow2").snapshots, 3);
    qemu::create(directory, "qcow2", "", &["image.qcow2", "4M"]);
    for name in ["a", "b"] {
        qemu::succeed(directory, &["bitmap", "--add", "image.qcow2", name]);
    }
    let header = agree_qcow2(directory, "image.qcow2");
    assert!(header.autoclear.bitmaps());
}

#[test]
fn qcow2_and_luks_that_are_encrypted_say_so() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let options =
        "encrypt.format=luks,encrypt.key-secret=key,encrypt.iter-time=10,encrypt.hash-alg=sha512";
    qemu::create_encrypted(directory, "qcow2", options, &["image.qcow2", "4M"]);
    agree_qcow2(directory, "image.qcow2");
    qemu::create_encrypted(
        directory,
        "luks",
        "key-secret=key,iter-time=10,hash-alg=sha512",
        &["image.luks", "4M"],
    );
    let header = read(directory, "image.luks");
    assert!(
        matches!(header, Header::Luks { version: 1, .. }),
        "{header:?}"
    );
    let output = qemu::run(
        directory,
        &[
            "info",
            "--output=json",
            "--image-opts",
            "driver=luks,file.filename=image.luks",
        ],
    );
    let info: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(number(&info, "virtual-size"), header.virtual_size());
}

#[test]
fn a_dirty_image_is_dirty_for_both() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    qemu::create(
        directory,
        "qcow2",
        "lazy_refcounts=on",
        &["image.qcow2", "4M"],
    );
    let mut bytes = std::fs::read(directory.join("image.qcow2")).unwrap();
    bytes[79] |= 1;
    std::fs::write(directory.join("image.qcow2"), &bytes).unwrap();
    let info = qemu::info(directory, "image.qcow2");
    assert_eq!(info["dirty-flag"].as_bool(), Some(true));
    assert!(agree_qcow2(directory, "image.qcow2").incompatible.dirty());
}
