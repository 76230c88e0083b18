//! The declaration of the parts of a facts file.

/// Declares a part of a facts file: a fact that was not collected is not written, and may be missing in a file.
macro_rules! facts {
    ($(#[$($meta:tt)*])* pub struct $name:ident { $($fields:tt)* }) => {
        facts! { @[$(#[$($meta)*])* pub struct $name] [] [] $($fields)* }
    };
    (@$head:tt [$($done:tt)*] [$($names:tt)*] $(#[$($meta:tt)*])* pub $field:ident: Fact<$value:ty>, $($rest:tt)*) => {
        facts! { @$head [
            $($done)*
            $(#[$($meta)*])*
            #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
            pub $field: Fact<$value>,
        ] [$($names)* stringify!($field),] $($rest)* }
    };
    (@$head:tt [$($done:tt)*] [$($names:tt)*] $(#[$($meta:tt)*])* pub $field:ident: $value:ty, $($rest:tt)*) => {
        facts! { @$head [$($done)* $(#[$($meta)*])* pub $field: $value,] [$($names)* stringify!($field),] $($rest)* }
    };
    (@[$(#[$($meta:tt)*])* pub struct $name:ident] [$($done:tt)*] [$($names:tt)*]) => {
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        $(#[$($meta)*])*
        pub struct $name { $($done)* }

        impl $name {
            /// The names of its members.
            pub const MEMBERS: &'static [&'static str] = &[$($names)*];
        }
    };
}

pub(crate) use facts;
