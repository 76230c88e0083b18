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
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// Every spelling, in the order of [`Self::ALL`].
            pub const WORDS: &'static [&'static str] = &[$($wire,)+];

            /// The spelling.
            pub const fn as_wire(self) -> &'static str {
                match self {
                    $($name::$variant => $wire,)+
                }
            }

            /// The value with this spelling, if there is one.
            pub fn from_wire(word: &str) -> Option<Self> {
                match word {
                    $($wire => Some($name::$variant),)+
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_wire())
            }
        }
    };
}

pub(crate) use wire_enum;
