//! Values of fields, and how a field is read and set by its name.

use crate::{Bytes, IoThreadId, Switch};

/// The value of one field, without the syntax that it is written in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldValue {
    /// Set, where a field says no more than that.
    Set,
    /// On or off.
    Switch(Switch),
    /// A number.
    Number(u32),
    /// A number that may be large.
    Count(u64),
    /// A size.
    Size(Bytes),
    /// Text, such as a serial number.
    Text(String),
    /// A word of an enum of the model.
    Word(&'static str),
    /// An iothread.
    IoThread(IoThreadId),
}

impl std::fmt::Display for FieldValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FieldValue::Set => f.write_str("on"),
            FieldValue::Switch(switch) => switch.fmt(f),
            FieldValue::Number(number) => number.fmt(f),
            FieldValue::Count(count) => count.fmt(f),
            FieldValue::Size(size) => size.fmt(f),
            FieldValue::Text(text) => f.write_str(text),
            FieldValue::Word(word) => f.write_str(word),
            FieldValue::IoThread(id) => id.fmt(f),
        }
    }
}

impl FieldValue {
    /// The same value as a field of this kind has it; `None` if it has no such value, or is then not set.
    ///
    /// ```
    /// use vmdisk_model::{Bytes, FieldKind, FieldValue, Switch};
    ///
    /// assert_eq!(FieldValue::Size(Bytes(4096)).to_kind(FieldKind::Number), Some(FieldValue::Number(4096)));
    /// assert_eq!(FieldValue::Switch(Switch::On).to_kind(FieldKind::Flag), Some(FieldValue::Set));
    /// assert_eq!(FieldValue::Switch(Switch::Off).to_kind(FieldKind::Flag), None);
    /// ```
    pub fn to_kind(self, kind: FieldKind) -> Option<Self> {
        match (self, kind) {
            (FieldValue::Set, FieldKind::Switch) => Some(FieldValue::Switch(Switch::On)),
            (FieldValue::Switch(switch), FieldKind::Flag) => {
                (switch == Switch::On).then_some(FieldValue::Set)
            }
            (FieldValue::Size(size), FieldKind::Number) => {
                u32::try_from(size.0).ok().map(FieldValue::Number)
            }
            (FieldValue::Size(size), FieldKind::Count) => Some(size.0.into()),
            (FieldValue::Count(count), FieldKind::Size) => Some(Bytes(count).into()),
            (FieldValue::Number(number), FieldKind::Size) => Some(Bytes(number.into()).into()),
            (value, _) => Some(value),
        }
    }
}

/// Which values a field can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// [`FieldValue::Set`].
    Flag,
    /// [`FieldValue::Switch`].
    Switch,
    /// [`FieldValue::Number`].
    Number,
    /// [`FieldValue::Count`].
    Count,
    /// [`FieldValue::Size`].
    Size,
    /// [`FieldValue::Text`].
    Text,
    /// [`FieldValue::Word`], one of these.
    Word(&'static [&'static str]),
    /// [`FieldValue::IoThread`].
    IoThread,
    /// More than one value, such as an address.
    Structure,
}

/// A field of the model, whatever its type.
pub trait FieldType {
    /// Which values it can have.
    fn kind(&self) -> FieldKind;

    /// The value; `None` if the field is not set, or is a [`FieldKind::Structure`].
    fn get(&self) -> Option<FieldValue>;

    /// True if the field is set.
    fn is_set(&self) -> bool;

    /// Sets the field; false, and no change, if the value is not of its kind.
    fn set(&mut self, value: FieldValue) -> bool;

    /// Leaves the field unset.
    fn clear(&mut self);
}

/// A type that a field of the model has; each is a [`FieldType`].
pub trait TypedField: Default {
    /// Which values it can have.
    const KIND: FieldKind;

    /// The value.
    fn value(&self) -> Option<FieldValue>;

    /// True if there is one.
    fn is_some_value(&self) -> bool;

    /// Sets the value, if it is of this type.
    fn set_value(&mut self, value: FieldValue) -> Option<()>;
}

impl<T: TypedField> FieldType for T {
    fn kind(&self) -> FieldKind {
        T::KIND
    }

    fn get(&self) -> Option<FieldValue> {
        self.value()
    }

    fn is_set(&self) -> bool {
        self.is_some_value()
    }

    fn set(&mut self, value: FieldValue) -> bool {
        self.set_value(value).is_some()
    }

    fn clear(&mut self) {
        *self = T::default();
    }
}

/// The kind of the field that a function leads to; the function is never called.
pub const fn kind_of<S, T: TypedField>(_: fn(&S) -> &T) -> FieldKind {
    T::KIND
}

impl From<&str> for FieldValue {
    fn from(text: &str) -> Self {
        FieldValue::Text(text.to_owned())
    }
}

/// Something of the model whose fields are read and set by their names.
pub trait Fields {
    /// The names.
    type Field: Copy;

    /// The field; `None` for the name of a group, such as an element around others.
    fn field(&self, field: Self::Field) -> Option<&dyn FieldType>;

    /// The same, to be set.
    fn field_mut(&mut self, field: Self::Field) -> Option<&mut dyn FieldType>;

    /// The value of a field; `None` if it is not set, or is not one value.
    fn get(&self, field: Self::Field) -> Option<FieldValue> {
        self.field(field)?.get()
    }

    /// True if the field is set.
    fn has(&self, field: Self::Field) -> bool {
        self.field(field).is_some_and(FieldType::is_set)
    }

    /// Sets a field; false, and no change, if the value is not of its kind.
    fn set(&mut self, field: Self::Field, value: impl Into<FieldValue>) -> bool
    where
        Self: Sized,
    {
        self.field_mut(field)
            .is_some_and(|field| field.set(value.into()))
    }
}

/// Declares a struct, and which name of a field each member has: `pub cache: Option<CacheMode> = Cache,`.
///
/// A member without a name is more than the value of one field. The fields of a struct in the struct are those of `inside`.
#[macro_export]
macro_rules! fields {
    (
        $(#[$meta:meta])*
        pub struct $struct:ident of $names:ident {
            $($(#[$name_meta:meta])* pub $name:ident: $type:ty $(= $field:ident)?,)+
        }
        $(inside $part:ident: $part_struct:ident $inner:tt)*
    ) => {
        $(#[$meta])*
        pub struct $struct { $($(#[$name_meta])* pub $name: $type,)+ }

        $crate::fields! { @names $names of $struct { $($($name: $field,)?)+ } $($part: $part_struct $inner)* }
    };
    (
        @names $names:ident of $struct:ident { $($name:ident: $field:ident,)+ }
        $($part:ident: $part_struct:ident { $($inner:ident: $inner_field:ident),+ })*
    ) => {
        impl $crate::Fields for $struct {
            type Field = $names;

            fn field(&self, field: $names) -> Option<&dyn $crate::FieldType> {
                $(let $part_struct { $($inner,)+ } = &self.$part;)*
                $(if matches!(field, $names::$field) { return Some(&self.$name); })+
                $($(if matches!(field, $names::$inner_field) { return Some($inner); })+)*
                None
            }

            fn field_mut(&mut self, field: $names) -> Option<&mut dyn $crate::FieldType> {
                $(let $part_struct { $($inner,)+ } = &mut self.$part;)*
                $(if matches!(field, $names::$field) { return Some(&mut self.$name); })+
                $($(if matches!(field, $names::$inner_field) { return Some($inner); })+)*
                None
            }
        }

        impl $struct {
            /// Every name in the list, in its order.
            pub const FIELDS: &'static [$names] = &[
                $($names::$field,)+
                $($($names::$inner_field,)+)*
            ];

            /// Which values a field can have; `None` if it is not one of these.
            pub const fn kind_of(field: $names) -> Option<$crate::FieldKind> {
                $(if matches!(field, $names::$field) {
                    return Some($crate::kind_of(|it: &$struct| &it.$name));
                })+
                $($(if matches!(field, $names::$inner_field) {
                    return Some($crate::kind_of(|it: &$part_struct| &it.$inner));
                })+)*
                None
            }
        }
    };
}
