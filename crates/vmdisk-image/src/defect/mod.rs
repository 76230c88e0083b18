//! What is wrong with a header, each with the place of the field that says so.

mod kind;

pub use kind::DefectKind;

/// One thing wrong with an image's header.
///
/// ```
/// use vmdisk_image::{DefectKind, Effect, Header, probe};
///
/// let mut image: &[u8] = b"QFI\xfb\x00\x00\x00\x09";
/// let Header::Qcow2(header) = probe(&mut image).unwrap() else { panic!("the signature is qcow2's") };
/// let defect = &header.defects[0];
/// assert_eq!(defect.kind, DefectKind::UnsupportedVersion { found: 9 });
/// assert_eq!(defect.effect(), Effect::Refused);
/// assert_eq!(defect.to_string(), "version 9 is not one that QEMU opens (at byte 4)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} (at byte {offset})")]
pub struct Defect {
    /// Where in the image the field stands that shows it, in bytes from its beginning.
    pub offset: u64,
    /// What is wrong.
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

    /// What QEMU makes of it.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.kind.effect()
    }
}

/// What follows from a defect when QEMU opens the image with the format's own driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// QEMU opens the image; something is odd, out of the format's rules, or not known here.
    Noted,
    /// QEMU opens the image for reading only.
    ReadOnly,
    /// QEMU opens the image, and what the guest reads is not what was written: QEMU reads zeros beyond the end of a
    /// file and trusts tables that overlap.
    Damaged,
    /// QEMU does not open the image.
    Refused,
}

impl DefectKind {
    /// What QEMU makes of it; measured against `qemu-img info` by this crate's tests where it is installed.
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
            | Self::Bitmaps { .. }
            | Self::DataFileMissing
            | Self::RawDataFileMissing
            | Self::VirtualSizeTooLarge { .. }
            | Self::UnitSize { .. }
            | Self::Checksum { .. }
            | Self::TableEndsImage { .. }
            | Self::UnknownAlgorithm { .. }
            | Self::NameUnterminated { .. }
            | Self::Overlap { .. }
            | Self::Signature { .. }
            | Self::PartMissing { .. }
            | Self::PartRepeated { .. }
            | Self::UnknownRequiredPart { .. }
            | Self::ParentUnsupported
            | Self::Descriptor { .. }
            | Self::UnsupportedType { .. }
            | Self::Field { .. } => Effect::Refused,
            Self::ParentIgnored
            | Self::BlocksUnmapped { .. }
            | Self::TableBeyondEnd { .. }
            | Self::TableOverHeader { .. } => Effect::Damaged,
            Self::Corrupt => Effect::ReadOnly,
            Self::Unreadable { .. }
            | Self::NotRead { .. }
            | Self::HeaderLengthUnaligned { .. }
            | Self::Dirty
            | Self::LogNotReplayed
            | Self::NoKey
            | Self::ChecksumUnverified { .. }
            | Self::VirtualSizeUnaligned { .. }
            | Self::BackingNameOverHeader { .. }
            | Self::BackingNameEmpty
            | Self::NameWithNul { .. }
            | Self::ExtensionRepeated { .. }
            | Self::TooManyExtensions { .. }
            | Self::FeatureName
            | Self::BitmapsInconsistent
            | Self::BackingAndRawDataFile
            | Self::DataFileUnused => Effect::Noted,
        }
    }
}
