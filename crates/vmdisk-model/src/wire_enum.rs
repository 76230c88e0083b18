//! Enums whose values have one spelling on the wire.

/// Declares an enum with its libvirt spellings; QEMU's are the same unless the type says otherwise.
///
/// The list is written once: reader, writer, error texts, documentation and tests use it.
macro_rules! wire_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $wire:literal,)+
        }
    ) => {
        vmdisk_source::words! {
            $(#[$meta])*
            pub enum $name as as_wire { $($(#[$variant_meta])* $variant = $wire,)+ }
        }

        impl $name {
            /// The value with this spelling, if there is one.
            pub fn from_wire(word: &str) -> Option<Self> {
                Self::from_word(word)
            }
        }
    };
}

pub(crate) use wire_enum;
