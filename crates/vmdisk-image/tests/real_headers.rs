//! Images the real qemu-img makes, and what it says of them, against what this crate reads.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests make files and start qemu-img, stop at a failure and say what they skip"
)]

mod support;

use std::path::Path;

use serde_json::Value;
use support::counting::{Counting, File};
use support::qemu;
use vmdisk_image::{
    BackingReference, Header, ImageFormat, MAX_BYTES_READ, PartitionTable, Qcow2Compression,
    Qcow2Encryption, Qcow2Header, SignatureKind, VmdkKind, probe,
};

fn read(directory: &Path, file: &str) -> Header {
    let file_opened = std::fs::File::open(directory.join(file)).unwrap();
    let mut input = Counting::new(File(file_opened));
    let header = probe(&mut input).unwrap();
    assert!(
        input.bytes_read <= MAX_BYTES_READ,
        "{file}: {} bytes read",
        input.bytes_read
    );
    header
}

fn text<'a>(info: &'a Value, key: &str) -> Option<&'a str> {
    info.get(key).and_then(Value::as_str)
}

fn number(info: &Value, key: &str) -> Option<u64> {
    info.get(key).and_then(Value::as_u64)
}

/// What every format has in common.
fn agree(directory: &Path, file: &str) -> (Header, Value) {
    let header = read(directory, file);
    let info = qemu::info(directory, file);
    assert_eq!(header.defects(), [], "{file}");
    assert_eq!(
        text(&info, "format"),
        header.probed_by_qemu().qemu_name(),
        "{file}"
    );
    assert_eq!(
        number(&info, "virtual-size"),
        header.virtual_size(),
        "{file}: {info}"
    );
    // Of a descriptor, the clusters are in the files it names.
    let elsewhere = matches!(&header, Header::Vmdk(vmdk) if vmdk.kind == VmdkKind::Descriptor);
    if let Some(cluster_size) = number(&info, "cluster-size").filter(|_| !elsewhere) {
        assert_eq!(Some(cluster_size), header.cluster_size(), "{file}");
    }
    let backing = header
        .backing()
        .map(|backing| backing.reference.name().to_string());
    assert_eq!(
        text(&info, "backing-filename"),
        backing.as_deref(),
        "{file}"
    );
    let encrypted = info
        .get("encrypted")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    assert_eq!(encrypted, header.is_encrypted(), "{file}");
    (header, info)
}

fn agree_qcow2(directory: &Path, file: &str) -> Qcow2Header {
    let (header, info) = agree(directory, file);
    let Header::Qcow2(header) = header else {
        panic!("{file}: {header:?}")
    };
    let data = &info["format-specific"]["data"];
    let flag = |key| data.get(key).and_then(Value::as_bool);
    assert_eq!(
        text(data, "compat"),
        Some(if header.version == 2 { "0.10" } else { "1.1" }),
        "{file}"
    );
    assert_eq!(
        number(data, "refcount-bits"),
        Some(1 << header.refcount_order),
        "{file}"
    );
    let compression = match header.compression {
        Qcow2Compression::Zlib => "zlib",
        Qcow2Compression::Zstd => "zstd",
        Qcow2Compression::Unknown(_) => "?",
    };
    // QEMU before 5.1 has no such key.
    assert_eq!(
        text(data, "compression-type").unwrap_or("zlib"),
        compression,
        "{file}"
    );
    if header.version >= 3 {
        assert_eq!(
            flag("lazy-refcounts"),
            Some(header.compatible.lazy_refcounts()),
            "{file}"
        );
        assert_eq!(
            flag("corrupt"),
            Some(header.incompatible.corrupt()),
            "{file}"
        );
        assert_eq!(
            flag("extended-l2").unwrap_or(false),
            header.incompatible.extended_l2(),
            "{file}"
        );
    }
    let data_file = header
        .data_file
        .as_ref()
        .map(|name| name.name().to_string());
    assert_eq!(text(data, "data-file"), data_file.as_deref(), "{file}");
    if data_file.is_some() {
        assert_eq!(
            flag("data-file-raw"),
            Some(header.autoclear.raw_external_data()),
            "{file}"
        );
        assert!(header.incompatible.external_data_file(), "{file}");
    }
    let encryption = match header.encryption {
        Qcow2Encryption::None => None,
        Qcow2Encryption::Aes => Some("aes"),
        Qcow2Encryption::Luks => Some("luks"),
        Qcow2Encryption::Unknown(_) => Some("?"),
    };
    assert_eq!(
        data.get("encrypt")
            .and_then(|encrypt| text(encrypt, "format")),
        encryption,
        "{file}"
    );
    let bitmaps = data
        .get("bitmaps")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    assert_eq!(
        bitmaps,
        header.bitmaps.map_or(0, |bitmaps| bitmaps.count as usize),
        "{file}"
    );
    let snapshots = info
        .get("snapshots")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    assert_eq!(snapshots, header.snapshots.entries as usize, "{file}");
    assert_eq!(
        info.get("dirty-flag").and_then(Value::as_bool),
        Some(header.incompatible.dirty()),
        "{file}"
    );
    assert_eq!(
        header.autoclear.bitmaps(),
        header.bitmaps.is_some(),
        "{file}"
    );
    assert_eq!(
        header.encryption_header.is_some(),
        header.encryption == Qcow2Encryption::Luks,
        "{file}"
    );
    let backing_format = header.backing_format.as_ref().map(ToString::to_string);
    assert_eq!(
        text(&info, "backing-filename-format"),
        backing_format.as_deref(),
        "{file}"
    );
    header
}

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
        assert_eq!(Header::Qcow2(header).files().count(), 1);
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
    assert_eq!(agree_qcow2(directory, "image.qcow2").snapshots.entries, 3);
    qemu::create(directory, "qcow2", "", &["image.qcow2", "4M"]);
    for name in ["a", "b"] {
        qemu::succeed(directory, &["bitmap", "--add", "image.qcow2", name]);
    }
    let header = agree_qcow2(directory, "image.qcow2");
    assert_eq!(header.bitmaps.unwrap().count, 2);
    assert!(header.autoclear.bitmaps());
}

#[test]
fn qcow2_and_luks_that_are_encrypted_say_so() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let options = "encrypt.format=luks,encrypt.key-secret=key,encrypt.iter-time=10";
    qemu::create_encrypted(directory, "qcow2", options, &["image.qcow2", "4M"]);
    let header = agree_qcow2(directory, "image.qcow2");
    assert!(header.encryption_header.unwrap().length > 592);
    qemu::create_encrypted(
        directory,
        "luks",
        "key-secret=key,iter-time=10",
        &["image.luks", "4M"],
    );
    let header = read(directory, "image.luks");
    assert_eq!(header.defects(), []);
    let Header::Luks1(luks) = &header else {
        panic!("{header:?}")
    };
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
    let data = &info["format-specific"]["data"];
    assert_eq!(number(&info, "virtual-size"), header.virtual_size());
    assert_eq!(number(data, "payload-offset"), Some(luks.payload_offset));
    assert_eq!(text(data, "uuid").unwrap().as_bytes(), luks.uuid.as_bytes());
    let active: Vec<bool> = data["slots"]
        .as_array()
        .unwrap()
        .iter()
        .map(|slot| slot["active"].as_bool().unwrap())
        .collect();
    assert_eq!(active, luks.key_slots.map(|slot| slot.is_active()));
    assert_eq!(luks.mode.to_string(), "xts-plain64");
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
    let header = read(directory, "image.qcow2");
    assert_eq!(header.defects().len(), 1);
    assert_eq!(header.defects()[0].kind, vmdisk_image::DefectKind::Dirty);
}

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
        assert_eq!(header.defects(), []);
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
        assert_eq!(backing.is_raw, format == "qed");
    }
    qemu::create(
        directory,
        "vmdk",
        "",
        &["-b", "base.vmdk", "-F", "vmdk", "top.vmdk"],
    );
    let (header, info) = agree(directory, "top.vmdk");
    let Header::Vmdk(vmdk) = header else { panic!() };
    let data = &info["format-specific"]["data"];
    assert_eq!(number(data, "cid"), vmdk.content_id.map(u64::from));
    assert_eq!(
        number(data, "parent-cid"),
        vmdk.parent_content_id.map(u64::from)
    );
    assert_eq!(
        text(data, "create-type"),
        vmdk.create_type.as_ref().and_then(|name| name.as_str())
    );
    assert_eq!(
        vmdk.parent,
        Some(BackingReference::from_bytes(b"base.vmdk"))
    );
}

#[test]
fn a_raw_image_with_a_partition_table_and_file_systems_is_raw_to_both() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    qemu::create(directory, "raw", "", &["image.raw", "64M"]);
    let mut bytes = std::fs::read(directory.join("image.raw")).unwrap();
    bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
    bytes[446..462].copy_from_slice(&[0x80, 0, 2, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0, 1, 0]);
    std::fs::write(directory.join("image.raw"), &bytes).unwrap();
    let (header, _) = agree(directory, "image.raw");
    let Header::Raw(guess) = header else { panic!() };
    let Some(PartitionTable::Mbr { partitions }) = guess.partition_table else {
        panic!("{guess:?}")
    };
    assert_eq!(
        (partitions[0].kind, partitions[0].first_sector),
        (0x83, 2048)
    );
    // File systems by their own tools, where there are any.
    let tools: [(&str, &[&str], SignatureKind); 5] = [
        (
            "mkfs.ext4",
            &["-q", "-F"],
            SignatureKind::Ext { version: 4 },
        ),
        (
            "mkfs.ext3",
            &["-q", "-F"],
            SignatureKind::Ext { version: 3 },
        ),
        (
            "mkfs.ext2",
            &["-q", "-F"],
            SignatureKind::Ext { version: 2 },
        ),
        ("mkfs.btrfs", &["-q", "-f"], SignatureKind::Btrfs),
        ("mkfs.xfs", &["-q", "-f"], SignatureKind::Xfs),
    ];
    for (tool, arguments, kind) in tools {
        let path = directory.join("fs.raw");
        let _ = std::fs::remove_file(&path);
        // XFS asks for 300 MB.
        qemu::create(directory, "raw", "", &["fs.raw", "512M"]);
        let search = format!(
            "{}:/usr/sbin:/sbin",
            std::env::var("PATH").unwrap_or_default()
        );
        let made = std::process::Command::new(tool)
            .args(arguments)
            .arg(&path)
            .env("PATH", search)
            .output();
        match made {
            Ok(output) if output.status.success() => {}
            _ => {
                eprintln!("not compared: no {tool}");
                continue;
            }
        }
        let (header, _) = agree(directory, "fs.raw");
        let Header::Raw(guess) = header else { panic!() };
        assert_eq!(guess.file_system(), Some(kind), "{tool}");
        assert_eq!(guess.partition_table, None, "{tool}");
    }
}

#[test]
fn the_metadata_of_a_full_image_is_what_qemu_img_measures() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut compared = 0;
    for cluster_size in [512u64, 4096, 16384, 65536, 1 << 20, 2 << 20] {
        for size in [0u64, 1, 65536, 1 << 20, (1 << 30) + 512, 100 << 30, 1 << 40] {
            for (refcount_bits, extended) in [(16, false), (1, false), (64, false), (16, true)] {
                if (extended && cluster_size < 16384) || (cluster_size == 512 && size > 128 << 30) {
                    continue;
                }
                let mut options =
                    format!("cluster_size={cluster_size},refcount_bits={refcount_bits}");
                if extended {
                    if !can(directory, "extended_l2=on") {
                        continue;
                    }
                    options.push_str(",extended_l2=on");
                }
                let size_text = size.to_string();
                let output = qemu::run(
                    directory,
                    &[
                        "measure",
                        "--output=json",
                        "-O",
                        "qcow2",
                        "-o",
                        &options,
                        "--size",
                        &size_text,
                    ],
                );
                assert!(
                    output.status.success(),
                    "{options}: {}",
                    String::from_utf8_lossy(&output.stderr)
                );
                let measured: Value = serde_json::from_slice(&output.stdout).unwrap();
                let features = if extended { 1 << 4 } else { 0 };
                let header = support::image::qcow2_v3()
                    .be32(20, cluster_size.ilog2())
                    .be64(24, size.next_multiple_of(512))
                    .be64(72, features)
                    .be32(96, u32::ilog2(refcount_bits))
                    .qcow2();
                let data = header.virtual_size.next_multiple_of(cluster_size);
                let metadata = header.metadata_bytes_when_full().unwrap();
                assert_eq!(
                    number(&measured, "fully-allocated"),
                    Some(data + metadata),
                    "{options} {size}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "{compared}");
}
