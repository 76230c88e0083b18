//! Comparing what this crate says QEMU refuses with what the real QEMU refuses.

use std::path::Path;

use super::image::Image;
use super::qemu;
use vmdisk_image::{DefectKind, Effect, Header};

/// A field, by its place and width in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Field(pub(crate) usize, pub(crate) usize);

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Order {
    Big,
    Little,
}

pub(crate) fn set(image: &Image, Field(at, width): Field, order: Order, value: u64) -> Image {
    let bytes = value.to_be_bytes();
    let mut bytes = bytes[8 - width..].to_vec();
    if order == Order::Little {
        bytes.reverse();
    }
    image.clone().put(at, &bytes)
}

/// Whether QEMU, in the guise of `qemu-img info`, should refuse: system emulators refuse some more.
pub(crate) fn refused_by_qemu_img(header: &Header) -> bool {
    header.defects().iter().any(|defect| {
        let only_emulators = matches!(
            defect.kind,
            // qemu-img opens this one to convert it.
            DefectKind::LegacyEncryption
                // And `info` opens no data file in the newer versions.
                | DefectKind::DataFileMissing
                | DefectKind::RawDataFileMissing
        );
        defect.effect() == Effect::Refused && !only_emulators
    })
}

/// Writes the pages that differ from what is there: the images of a sweep are nearly the same.
fn write(path: &Path, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let before = std::fs::read(path).unwrap_or_default();
    if before.len() != bytes.len() {
        std::fs::write(path, bytes).unwrap();
        return;
    }
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    for (index, (old, new)) in before.chunks(4096).zip(bytes.chunks(4096)).enumerate() {
        if old != new {
            file.write_all_at(new, index as u64 * 4096).unwrap();
        }
    }
}

fn crashes(header: &Header) -> bool {
    header
        .defects()
        .iter()
        .any(|defect| defect.kind == DefectKind::EncryptionHeaderMissing)
}

/// Compares for one image, and says how they differ.
pub(crate) fn compare(directory: &Path, format: &str, what: &str, image: &Image) -> Option<String> {
    let file = "damaged.img";
    write(&directory.join(file), &image.0);
    let header = image.header();
    if header.format().qemu_name() != Some(format) {
        // A signature or version that makes it another format, which the driver refuses.
        return qemu::opens(directory, format, file)
            .is_ok()
            .then(|| format!("{what}: QEMU opens it"));
    }
    let opened = qemu::opens(directory, format, file);
    match (refused_by_qemu_img(&header), opened) {
        // `qemu-img info` 7.2 does not check before it uses the header, and crashes silently.
        _ if crashes(&header) => None,
        (true, Ok(_)) => Some(format!(
            "{what}: QEMU opens it, we say {:?}",
            header.defects()
        )),
        (false, Err(error)) => Some(format!(
            "{what}: QEMU says {error}, we say {:?}",
            header.defects()
        )),
        (true, Err(_)) => None,
        (false, Ok(info)) => {
            let size = info["virtual-size"].as_u64();
            (size != header.virtual_size()).then(|| {
                format!(
                    "{what}: QEMU sees {size:?} bytes, we {:?}",
                    header.virtual_size()
                )
            })
        }
    }
}

pub(crate) fn sweep(
    directory: &Path,
    format: &str,
    order: Order,
    sound: &Image,
    fields: &[Field],
    values: &[u64],
) {
    let mut differences = Vec::new();
    let mut refused = 0;
    let mut compared = 0;
    for field in fields {
        for value in values {
            let width = field.1 as u32;
            if width < 8 && *value >= 1 << (8 * width) {
                continue;
            }
            let damaged = set(sound, *field, order, *value);
            let what = format!("{format}, {value:#x} at {}", field.0);
            differences.extend(compare(directory, format, &what, &damaged));
            refused += u32::from(refused_by_qemu_img(&damaged.header()));
            compared += 1;
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {compared}:\n{}",
        differences.len(),
        differences.join("\n")
    );
    assert!(
        refused > 0 && refused < compared,
        "{refused} of {compared} refused: the test sees one side only"
    );
}

pub(crate) const VALUES: &[u64] = &[
    0,
    1,
    2,
    3,
    4,
    6,
    7,
    8,
    9,
    13,
    14,
    16,
    17,
    21,
    22,
    63,
    64,
    72,
    103,
    104,
    105,
    112,
    120,
    128,
    129,
    511,
    512,
    513,
    1023,
    1024,
    4096,
    65535,
    65536,
    65537,
    131_072,
    196_608,
    262_144,
    1 << 20,
    1 << 21,
    1 << 22,
    (1 << 22) + 1,
    1 << 24,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 32,
    1 << 40,
    1 << 56,
    (1 << 62) + 512,
];

/// Fewer of them, for the formats that are rarer and the fields that are many.
pub(crate) const FEW: &[u64] = &[
    0,
    1,
    2,
    5,
    6,
    9,
    13,
    14,
    16,
    17,
    64,
    512,
    513,
    4096,
    65536,
    1 << 20,
    1 << 21,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 40,
    (1 << 62) + 512,
];

pub(crate) fn image_of(directory: &Path, format: &str, options: &str) -> Image {
    qemu::create(directory, format, options, &["sound.img", "4M"]);
    Image(std::fs::read(directory.join("sound.img")).unwrap())
}
