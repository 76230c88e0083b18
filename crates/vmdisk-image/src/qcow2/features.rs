//! The three feature bitmaps of a qcow2 header.

/// Features a program must know to open the image; QEMU refuses an image with a bit it does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct IncompatibleFeatures {
    /// The field as it stands in the image.
    pub bits: u64,
}

impl IncompatibleFeatures {
    /// All bits this crate knows, which are all that QEMU 10.0 knows.
    pub const KNOWN: u64 = 0b1_1111;

    /// Bit 0: the image was opened for writing and not closed; reference counts may be wrong.
    #[must_use]
    pub fn dirty(self) -> bool {
        self.bits & 1 != 0
    }

    /// Bit 1: QEMU found the image damaged; it opens it for reading only.
    #[must_use]
    pub fn corrupt(self) -> bool {
        self.bits & (1 << 1) != 0
    }

    /// Bit 2: guest data is in another file (QEMU 4.0).
    #[must_use]
    pub fn external_data_file(self) -> bool {
        self.bits & (1 << 2) != 0
    }

    /// Bit 3: compressed clusters are not zlib's (QEMU 5.1).
    #[must_use]
    pub fn compression_type(self) -> bool {
        self.bits & (1 << 3) != 0
    }

    /// Bit 4: L2 entries of 16 bytes, each cluster in 32 subclusters (QEMU 5.2).
    #[must_use]
    pub fn extended_l2(self) -> bool {
        self.bits & (1 << 4) != 0
    }

    /// The bits nobody is known to have given a meaning.
    #[must_use]
    pub fn unknown(self) -> u64 {
        self.bits & !Self::KNOWN
    }
}

/// Features a program may ignore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CompatibleFeatures {
    /// The field as it stands in the image.
    pub bits: u64,
}

impl CompatibleFeatures {
    /// All bits this crate knows.
    pub const KNOWN: u64 = 1;

    /// Bit 0: reference counts may be written late, with the dirty bit set meanwhile.
    #[must_use]
    pub fn lazy_refcounts(self) -> bool {
        self.bits & 1 != 0
    }

    /// The bits without a known meaning.
    #[must_use]
    pub fn unknown(self) -> u64 {
        self.bits & !Self::KNOWN
    }
}

/// Features a program that does not know them has to clear before it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AutoclearFeatures {
    /// The field as it stands in the image.
    pub bits: u64,
}

impl AutoclearFeatures {
    /// All bits this crate knows.
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

    /// The bits without a known meaning.
    #[must_use]
    pub fn unknown(self) -> u64 {
        self.bits & !Self::KNOWN
    }
}
