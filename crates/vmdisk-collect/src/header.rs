//! The header of an image, as facts.

use std::fs::File;
use std::os::unix::fs::FileExt;

use vmdisk_facts::path::BackingFact;
use vmdisk_facts::{Fact, ImageHeader, Reason};
use vmdisk_image::{
    BackingReference, Header, ImageFormat, Name, Qcow2Compression, Qcow2Encryption, ReadAt,
    ReadError,
};

use crate::secrets::without_secrets;

/// A file or device open for reading.
pub(crate) struct Opened<'a> {
    pub(crate) file: &'a File,
    pub(crate) length: Option<u64>,
}

impl ReadAt for Opened<'_> {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, ReadError> {
        self.file
            .read_at(buffer, offset)
            .map_err(|error| ReadError::new(offset, buffer.len(), crate::obstacle::message(&error)))
    }

    fn len(&self) -> Option<u64> {
        self.length
    }
}

/// Reads the header of an open image, without opening other files.
pub(crate) fn read(file: &File, length: Option<u64>) -> Fact<ImageHeader> {
    match vmdisk_image::probe(&mut Opened { file, length }) {
        Ok(header) => Fact::Known(facts(&header)),
        Err(error) => Fact::unknown(Reason::Other("io".to_owned()), error.to_string()),
    }
}

fn facts(header: &Header) -> ImageHeader {
    let format = header.format();
    let mut image = ImageHeader {
        format: Fact::Known(format.to_string()),
        probed: Fact::Known(header.probed_by_qemu().to_string()),
        virtual_size: header.virtual_size().map_or(Fact::Absent, Fact::Known),
        cluster: header.cluster_size().map_or(Fact::Absent, Fact::Known),
        backing: header.backing().map_or(Fact::Absent, |backing| {
            Fact::Known(BackingFact {
                path: name(backing.reference),
                format: match backing.format {
                    Some(format) => Fact::Known(text(format)),
                    None => backing
                        .implied
                        .map_or(Fact::Absent, |format| Fact::Known(format.to_string())),
                },
            })
        }),
        encryption: if header.is_encrypted() {
            Fact::Known("luks".to_owned())
        } else {
            Fact::Absent
        },
        data_file: Fact::Absent,
        ..ImageHeader::default()
    };
    match header {
        Header::Qcow2(qcow2) => {
            image.version = Fact::Known(qcow2.version);
            image.ext_l2 = Fact::Known(qcow2.incompatible.extended_l2());
            image.dirty = Fact::Known(qcow2.incompatible.dirty());
            image.corrupt = Fact::Known(qcow2.incompatible.corrupt());
            image.lazy = Fact::Known(qcow2.compatible.lazy_refcounts());
            image.snapshots = Fact::Known(qcow2.snapshots);
            image.refcount_bits = match 1_u32.checked_shl(qcow2.refcount_order) {
                Some(bits) => Fact::Known(bits),
                None => Fact::unknown(
                    Reason::Parse,
                    format!("refcount order {}", qcow2.refcount_order),
                ),
            };
            image.compression = match qcow2.compression {
                Qcow2Compression::Zlib => Fact::Known("zlib".to_owned()),
                Qcow2Compression::Zstd => Fact::Known("zstd".to_owned()),
                Qcow2Compression::Unknown(number) => Fact::Known(format!("type {number}")),
            };
            image.encryption = match qcow2.encryption {
                Qcow2Encryption::None => Fact::Absent,
                Qcow2Encryption::Aes => Fact::Known("aes".to_owned()),
                Qcow2Encryption::Luks => Fact::Known("luks".to_owned()),
                Qcow2Encryption::Unknown(number) => Fact::Known(format!("method {number}")),
            };
            if qcow2.incompatible.external_data_file() {
                image.data_file = match &qcow2.data_file {
                    Some(reference) => Fact::Known(name(reference)),
                    None => Fact::unknown(
                        Reason::Parse,
                        "the header requires an external data file but does not name it",
                    ),
                };
            }
        }
        Header::Other(qcow) if qcow.format == ImageFormat::Qcow => {
            image.version = Fact::Known(1);
            if qcow.is_encrypted {
                image.encryption = Fact::Known("aes".to_owned());
            }
        }
        Header::Luks { version, .. } => image.version = Fact::Known(u32::from(*version)),
        Header::Other(_) | Header::Raw { .. } => {}
    }
    image
}

/// Returns the name of a referenced file without secrets.
fn name(reference: &BackingReference) -> String {
    let name = text(reference.name());
    match reference {
        BackingReference::Relative(_) | BackingReference::Absolute(_) => name,
        BackingReference::Json(_) | BackingReference::Protocol { .. } => without_secrets(&name),
    }
}

fn text(name: &Name) -> String {
    String::from_utf8_lossy(name.as_bytes()).into_owned()
}
