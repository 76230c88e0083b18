//! Defects of a header, each with the offset of the field that shows it.

mod kind;

pub use kind::DefectKind;

/// One defect of an image's header.
///
/// ```
/// use vmdisk_image::{DefectKind, Effect, Header, probe};
///
/// let mut image: &[u8] = b"QFI\xfb\x00\x00\x00\x09";
/// let Header::Qcow2(header) = probe(&mut image).unwrap() else { panic!("the signature belongs to qcow2") };
/// let defect = &header.defects[0];
/// assert_eq!(defect.kind, DefectKind::UnsupportedVersion { found: 9 });
/// assert_eq!(defect.effect(), Effect::Refused);
/// assert_eq!(defect.to_string(), "version 9 is not supported by QEMU (at byte 4)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} (at byte {offset})")]
pub struct Defect {
    /// The offset of the field that shows it, in bytes from the beginning of the image.
    pub offset: u64,
    /// The kind of defect.
    pub kind: DefectKind,
}

impl Defect {
    pub(crate) fn at(offset: u64, kind: DefectKind) -> Self {
        Self { offset, kind }
    }

    pub(crate) fn unreadable(
        offset: u64,
        part: &'static str,
        error: &crate::read::FetchError,
    ) -> Self {
        Self {
            offset,
            kind: DefectKind::Unreadable {
                part,
                reason: error.to_string(),
            },
        }
    }

    /// Returns the effect in QEMU.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.kind.effect()
    }
}

/// The effect of a defect when QEMU opens the image with the driver of its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// QEMU opens the image; something is unusual, against the specification, or unknown here.
    Noted,
    /// QEMU opens the image read-only.
    ReadOnly,
    /// QEMU opens the image, but the guest does not read the data that was written: QEMU reads zeroes after the end of a
    /// file, and trusts overlapping tables.
    Damaged,
    /// QEMU does not open the image.
    Refused,
}

impl DefectKind {
    /// Returns the effect in QEMU; this crate's tests compare it with `qemu-img info` if that is installed.
    #[must_use]
    pub fn effect(&self) -> Effect {
        match self {
            Self::TruncatedHeader { .. }
            | Self::UnsupportedVersion { .. }
            | Self::ClusterBits { .. }
            | Self::ClusterTooSmallForExtendedL2 { .. }
            | Self::HeaderLength { .. }
            | Self::UnknownIncompatibleFeatures { .. }
            | Self::LegacyEncryption
            | Self::UnknownEncryption { .. }
            | Self::EncryptionHeaderMissing
            | Self::EncryptionHeaderUnexpected
            | Self::CompressionBit { .. }
            | Self::UnknownCompression { .. }
            | Self::RefcountOrder { .. }
            | Self::TableMissing { .. }
            | Self::TableTooLarge { .. }
            | Self::TableTooSmall { .. }
            | Self::TableUnaligned { .. }
            | Self::TableOverflows { .. }
            | Self::BackingNameTooLong { .. }
            | Self::BackingNameOutsideHeader { .. }
            | Self::ExtensionOverrun { .. }
            | Self::ExtensionLength { .. }
            | Self::SnapshotExtraData { .. }
            | Self::DataFileMissing
            | Self::RawDataFileMissing
            | Self::VirtualSizeTooLarge { .. }
            | Self::TableEndsImage { .. }
            | Self::UnknownAlgorithm { .. }
            | Self::NameUnterminated { .. }
            | Self::Overlap { .. }
            | Self::Signature { .. }
            | Self::Field { .. } => Effect::Refused,
            Self::TableBeyondEnd { .. } | Self::TableOverHeader { .. } => Effect::Damaged,
            Self::Corrupt => Effect::ReadOnly,
            Self::Unreadable { .. }
            | Self::NotRead { .. }
            | Self::HeaderLengthUnaligned { .. }
            | Self::Dirty
            | Self::NoKey
            | Self::VirtualSizeUnaligned { .. }
            | Self::BackingNameOverHeader { .. }
            | Self::BackingNameEmpty
            | Self::NameWithNul { .. }
            | Self::ExtensionRepeated { .. }
            | Self::TooManyExtensions { .. }
            | Self::FeatureName
            | Self::SnapshotsNotRead { .. }
            | Self::BackingAndRawDataFile
            | Self::DataFileUnused => Effect::Noted,
        }
    }
}
