//! The three feature bitmaps of a qcow2 header.

/// Declares a bitmap with a question for each bit that is read.
macro_rules! features {
    ($(#[$meta:meta])* $name:ident { $($(#[$of_bit:meta])* $bit:ident = $number:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name {
            /// The field, unchanged.
            pub bits: u64,
        }

        impl $name {
            $(
                $(#[$of_bit])*
                #[must_use]
                pub fn $bit(self) -> bool {
                    self.bits & (1 << $number) != 0
                }
            )+
        }
    };
}

features! {
    /// Features that a program must support to open the image; QEMU refuses unknown bits.
    IncompatibleFeatures {
        /// Bit 0: the image was not closed after writing; reference counts may be wrong.
        dirty = 0;
        /// Bit 1: QEMU found the image to be corrupt and opens it read-only.
        corrupt = 1;
        /// Bit 2: guest data is in an external file (QEMU 4.0).
        external_data_file = 2;
        /// Bit 4: L2 entries have 16 bytes, and each cluster has 32 subclusters (QEMU 5.2).
        extended_l2 = 4;
    }
}

features! {
    /// Features that a program may ignore.
    CompatibleFeatures {
        /// Bit 0: reference counts may be written late, while the dirty bit is set.
        lazy_refcounts = 0;
    }
}

features! {
    /// Features that a program must clear before writing if it does not support them.
    AutoclearFeatures {
        /// Bit 0: the bitmaps of the bitmaps extension are consistent with the data (QEMU 2.9).
        bitmaps = 0;
        /// Bit 1: the external data file alone is a consistent raw image (QEMU 4.0).
        raw_external_data = 1;
    }
}
