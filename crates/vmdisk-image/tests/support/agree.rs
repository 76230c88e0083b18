//! Comparing a header with what the real qemu-img says of the same file.

use std::path::Path;

use serde_json::Value;

use super::counting::{Counting, File};
use super::qemu;
use vmdisk_image::{
    Header, ImageFormat, MAX_BYTES_READ, Qcow2Compression, Qcow2Encryption, Qcow2Header, probe,
};

pub(crate) fn read(directory: &Path, file: &str) -> Header {
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

pub(crate) fn text<'a>(info: &'a Value, key: &str) -> Option<&'a str> {
    info.get(key).and_then(Value::as_str)
}

pub(crate) fn number(info: &Value, key: &str) -> Option<u64> {
    info.get(key).and_then(Value::as_u64)
}

/// What every format has in common.
pub(crate) fn agree(directory: &Path, file: &str) -> (Header, Value) {
    let header = read(directory, file);
    let info = qemu::info(directory, file);
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
    // The clusters of a VMDK descriptor are in the files that it names.
    let is_read = header.cluster_size().is_some() || header.format() != ImageFormat::Vmdk;
    if let Some(cluster_size) = number(&info, "cluster-size").filter(|_| is_read) {
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

pub(crate) fn agree_qcow2(directory: &Path, file: &str) -> Qcow2Header {
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
    let snapshots = info
        .get("snapshots")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    assert_eq!(snapshots, header.snapshots as usize, "{file}");
    assert_eq!(
        info.get("dirty-flag").and_then(Value::as_bool),
        Some(header.incompatible.dirty()),
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
