//! The three feature bitmaps of a qcow2 header.

/// Features that a program must support to open the image; QEMU refuses unknown bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct IncompatibleFeatures {
    /// The field, unchanged.
    pub bits: u64,
}

impl IncompatibleFeatures {
    /// The known bits, as in QEMU 10.0.
    pub const KNOWN: u64 = 0b1_1111;

    /// Bit 0: the image was not closed after writing; reference counts may be wrong.
    #[must_use]
    pub fn dirty(self) -> bool {
        self.bits & 1 != 0
    }

    /// Bit 1: QEMU found the image to be corrupt and opens it read-only.
    #[must_use]
    pub fn corrupt(self) -> bool {
        self.bits & (1 << 1) != 0
    }

    /// Bit 2: guest data is in an external file (QEMU 4.0).
    #[must_use]
    pub fn external_data_file(self) -> bool {
        self.bits & (1 << 2) != 0
    }

    /// Bit 3: compressed clusters do not use zlib (QEMU 5.1).
    #[must_use]
    pub fn compression_type(self) -> bool {
        self.bits & (1 << 3) != 0
    }

    /// Bit 4: L2 entries have 16 bytes, and each cluster has 32 subclusters (QEMU 5.2).
    #[must_use]
    pub fn extended_l2(self) -> bool {
        self.bits & (1 << 4) != 0
    }

    /// Returns the unknown bits.
    #[must_use]
    pub fn unknown(self) -> u64 {
        self.bits & !Self::KNOWN
    }
}

/// Features that a program may ignore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CompatibleFeatures {
    /// The field, unchanged.
    pub bits: u64,
}

impl CompatibleFeatures {
    /// The known bits.
    pub const KNOWN: u64 = 1;

    /// Bit 0: reference counts may be written late, while the dirty bit is set.
    #[must_use]
    pub fn lazy_refcounts(self) -> bool {
        self.bits & 1 != 0
    }

    /// Returns the unknown bits.
    #[must_use]
    pub fn unknown(self) -> u64 {
        self.bits & !Self::KNOWN
    }
}

/// Features that a program must clear before writing if it does not support them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AutoclearFeatures {
    /// The field, unchanged.
    pub bits: u64,
}

impl AutoclearFeatures {
    /// The known bits.
    pub const KNOWN: u64 = 0b11;

    /// Bit 0: the bitmaps of the bitmaps extension are consistent with the data (QEMU 2.9).
    #[must_use]
    pub fn bitmaps(self) -> bool {
        self.bits & 1 != 0
    }

    /// Bit 1: the external data file alone is a consistent raw image (QEMU 4.0).
    #[must_use]
    pub fn raw_external_data(self) -> bool {
        self.bits & (1 << 1) != 0
    }

    /// Returns the unknown bits.
    #[must_use]
    pub fn unknown(self) -> u64 {
        self.bits & !Self::KNOWN
    }
}
