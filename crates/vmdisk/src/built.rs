//! Structs that callers build by methods and read by fields, so that a new member breaks no program.

/// Declares a struct, with a method for each member that sets it.
macro_rules! built {
    ($(#[$attribute:meta])* pub struct $name:ident { $($(#[$doc:meta])* pub $member:ident: $type:ty,)* }) => {
        $(#[$attribute])*
        #[non_exhaustive]
        pub struct $name {
            $($(#[$doc])* pub $member: $type,)*
        }

        impl $name {
            $($(#[$doc])*
            #[must_use]
            pub fn $member(mut self, $member: impl Into<$type>) -> Self {
                self.$member = $member.into();
                self
            })*
        }
    };
}

pub(crate) use built;
