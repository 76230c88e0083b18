//! The header extensions of qcow2: the list, and the five known extensions.

use super::backing::opened_name;
use super::header::{
    EncryptionHeader, Extension, FeatureClass, FeatureName, Qcow2Encryption, Qcow2Header, V3_LENGTH,
};
use crate::bytes::{be32, be64, until_nul};
use crate::defect::{Defect, DefectKind};
use crate::luks;
use crate::name::Name;
use crate::read::{FetchError, ReadAt, Window};

/// The type of the last extension.
const END: u32 = 0;
/// Maximum number of extensions read. QEMU writes at most six; a cluster of 2 MiB could hold 262144 empty ones.
const MAX_EXTENSIONS: usize = 64;
/// QEMU's buffer for the name of the backing format has 16 bytes, including the NUL.
const MAX_BACKING_FORMAT: u32 = 15;
/// Maximum length of the data file's name; QEMU and the specification have no limit, so Linux's `PATH_MAX` is used.
const MAX_DATA_FILE: u32 = 4096;
/// Size of an entry of the feature name table: class, bit, and a name of 46 bytes.
const FEATURE_NAME_BYTES: usize = 48;
/// Size of a table with names for all 64 bits of all three classes.
const MAX_FEATURE_TABLE: u32 = 3 * 64 * 48;

/// Reads the extensions between the end of the header's fields and `end`.
pub(super) fn read_all<R: ReadAt + ?Sized>(
    header: &mut Qcow2Header,
    window: &mut Window<'_, R>,
    end: u64,
) {
    let mut offset = u64::from(header.header_length);
    if header.version >= 3 && header.header_length < V3_LENGTH {
        // The header's fields would be read as extensions.
        return;
    }
    while offset < end {
        let bytes = match window.fetch(offset, 8) {
            Ok(bytes) => bytes,
            Err(error) => {
                header
                    .defects
                    .push(Defect::unreadable(offset, "header extensions", &error));
                return;
            }
        };
        // QEMU reads zeroes after the end of a file, which end the list.
        let (id, length) = (be32(&bytes, 0).unwrap_or(END), be32(&bytes, 4).unwrap_or(0));
        let data = offset + 8;
        if data > end || u64::from(length) > end - data {
            let kind = DefectKind::ExtensionOverrun {
                id,
                length,
                room: end.saturating_sub(data),
            };
            header.defects.push(Defect::at(offset, kind));
            return;
        }
        if id == END {
            return;
        }
        if header.extensions.len() == MAX_EXTENSIONS {
            let kind = DefectKind::TooManyExtensions {
                limit: MAX_EXTENSIONS as u64,
            };
            header.defects.push(Defect::at(offset, kind));
            return;
        }
        let extension = Extension {
            id,
            length,
            offset: data,
        };
        let repeated = extension.is_known() && header.extensions.iter().any(|known| known.id == id);
        header.extensions.push(extension);
        if repeated {
            header
                .defects
                .push(Defect::at(offset, DefectKind::ExtensionRepeated { id }));
        }
        if let Err(error) = read_one(header, window, extension) {
            header
                .defects
                .push(Defect::unreadable(data, "header extension", &error));
        }
        offset = data + u64::from(length).next_multiple_of(8);
    }
}

fn read_one<R: ReadAt + ?Sized>(
    header: &mut Qcow2Header,
    window: &mut Window<'_, R>,
    extension: Extension,
) -> Result<(), FetchError> {
    let Extension { id, length, offset } = extension;
    let wrong = |expected| {
        Defect::at(
            offset - 4,
            DefectKind::ExtensionLength {
                id,
                length,
                expected,
            },
        )
    };
    match id {
        Extension::BACKING_FORMAT => {
            if length > MAX_BACKING_FORMAT {
                header.defects.push(wrong("but QEMU supports at most 15"));
                return Ok(());
            }
            let bytes = window.fetch(offset, length as usize)?;
            header.backing_format =
                Some(Name::from(until_nul(&bytes))).filter(|name| !name.is_empty());
        }
        Extension::DATA_FILE => {
            if length > MAX_DATA_FILE {
                let kind = DefectKind::NotRead {
                    part: "data file name",
                    length: u64::from(length),
                    limit: u64::from(MAX_DATA_FILE),
                };
                header.defects.push(Defect::at(offset, kind));
            }
            let bytes = window.fetch(offset, length.min(MAX_DATA_FILE) as usize)?;
            header.data_file = opened_name(&mut header.defects, offset, "data file name", &bytes);
        }
        Extension::FEATURE_NAMES => {
            let bytes = window.fetch(offset, length.min(MAX_FEATURE_TABLE) as usize)?;
            read_feature_names(header, offset, &bytes);
        }
        Extension::ENCRYPTION_HEADER => {
            if header.encryption != Qcow2Encryption::Luks {
                header.defects.push(Defect::at(
                    offset - 8,
                    DefectKind::EncryptionHeaderUnexpected,
                ));
            }
            if length != 16 {
                header.defects.push(wrong("expected 16"));
                return Ok(());
            }
            let bytes = window.fetch(offset, 16)?;
            read_encryption_header(header, window, offset, &bytes)?;
        }
        // Unknown extensions stay in the list; QEMU preserves them, too.
        _ => {}
    }
    Ok(())
}

fn read_feature_names(header: &mut Qcow2Header, offset: u64, bytes: &[u8]) {
    header.feature_names.clear();
    for (index, entry) in bytes.chunks(FEATURE_NAME_BYTES).enumerate() {
        let class = match entry[0] {
            0 => Some(FeatureClass::Incompatible),
            1 => Some(FeatureClass::Compatible),
            2 => Some(FeatureClass::Autoclear),
            _ => None,
        };
        match (class, entry.get(1)) {
            (Some(class), Some(&bit)) if bit < 64 && entry.len() == FEATURE_NAME_BYTES => {
                header.feature_names.push(FeatureName {
                    class,
                    bit,
                    name: Name::from(until_nul(&entry[2..])),
                });
            }
            _ => {
                let at = offset + (index * FEATURE_NAME_BYTES) as u64;
                header.defects.push(Defect::at(at, DefectKind::FeatureName));
            }
        }
    }
}

fn read_encryption_header<R: ReadAt + ?Sized>(
    header: &mut Qcow2Header,
    window: &mut Window<'_, R>,
    offset: u64,
    bytes: &[u8],
) -> Result<(), FetchError> {
    let (Some(begin), Some(length)) = (be64(bytes, 0), be64(bytes, 8)) else {
        return Ok(());
    };
    header.encryption_header = Some(EncryptionHeader {
        offset: begin,
        length,
    });
    if let Some(alignment) = header.cluster_size()
        && !begin.is_multiple_of(alignment)
    {
        let kind = DefectKind::TableUnaligned {
            table: "LUKS header",
            offset: begin,
            alignment,
        };
        header.defects.push(Defect::at(offset, kind));
    } else if header.encryption != Qcow2Encryption::Luks {
        // QEMU does not read it.
    } else if length < luks::V1_LENGTH as u64 {
        let kind = DefectKind::truncated(luks::V1_LENGTH as u64, length);
        header.defects.push(Defect::at(offset + 8, kind));
    } else {
        let mut luks = window.fetch(begin, luks::V1_LENGTH)?;
        // QEMU reads zeroes after the end of a file.
        luks.resize(luks::V1_LENGTH, 0);
        let defects = luks::check_embedded(&luks).into_iter();
        header.defects.extend(defects.map(|defect| Defect {
            offset: begin.saturating_add(defect.offset),
            kind: defect.kind,
        }));
    }
    Ok(())
}
