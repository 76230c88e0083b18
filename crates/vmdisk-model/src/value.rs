//! Values of fields, and how a field is read and set by its name.

use crate::{
    Address, AioMode, BackendSource, Bytes, CacheMode, DetectZeroes, Device, Discard, ErrorPolicy,
    Format, Geometry, GeometryTranslation, IoThreadId, IoThreadQueues, Iotune, ReadErrorPolicy,
    ScsiControllerModel, Sgio, Snapshot, StartupPolicy, Statistics, Switch, TargetBus, Tray,
    VirtioModel,
};

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

/// A type that a field of the model has.
pub trait FieldType {
    /// Which values it can have.
    fn kind(&self) -> FieldKind;

    /// The value; `None` if the field is not set, or is a [`FieldKind::Structure`].
    fn get(&self) -> Option<FieldValue>;

    /// True if the field is set.
    fn is_set(&self) -> bool;

    /// Sets the field; false, and no change, if the value is not of its kind.
    fn set(&mut self, value: FieldValue) -> bool;
}

/// The kind of a type, for tables that are made at compile time.
pub trait ConstKind {
    /// Which values it can have.
    const KIND: FieldKind;
}

/// The kind of the field that a function leads to; the function is never called.
pub const fn kind_of<S, T: ConstKind>(_: fn(&S) -> &T) -> FieldKind {
    T::KIND
}

impl FieldType for bool {
    fn kind(&self) -> FieldKind {
        Self::KIND
    }

    fn get(&self) -> Option<FieldValue> {
        self.then_some(FieldValue::Set)
    }

    fn is_set(&self) -> bool {
        *self
    }

    fn set(&mut self, value: FieldValue) -> bool {
        let is_mine = value == FieldValue::Set;
        *self |= is_mine;
        is_mine
    }
}

impl ConstKind for bool {
    const KIND: FieldKind = FieldKind::Flag;
}

/// A switch of a spec.
impl FieldType for Option<bool> {
    fn kind(&self) -> FieldKind {
        Self::KIND
    }

    fn get(&self) -> Option<FieldValue> {
        self.map(FieldValue::from)
    }

    fn is_set(&self) -> bool {
        self.is_some()
    }

    fn set(&mut self, value: FieldValue) -> bool {
        let FieldValue::Switch(switch) = value else {
            return false;
        };
        *self = Some(switch == Switch::On);
        true
    }
}

impl ConstKind for Option<bool> {
    const KIND: FieldKind = FieldKind::Switch;
}

impl From<bool> for FieldValue {
    fn from(is_on: bool) -> Self {
        FieldValue::Switch(if is_on { Switch::On } else { Switch::Off })
    }
}

/// Makes an optional value a field, given the pattern of its [`FieldValue`].
macro_rules! optional_values {
    ($($type:ty = $kind:ident;)+) => {$(
        impl ConstKind for Option<$type> {
            const KIND: FieldKind = FieldKind::$kind;
        }

        impl FieldType for Option<$type> {
            fn kind(&self) -> FieldKind {
                Self::KIND
            }

            fn get(&self) -> Option<FieldValue> {
                self.clone().map(FieldValue::$kind)
            }

            fn is_set(&self) -> bool {
                self.is_some()
            }

            fn set(&mut self, value: FieldValue) -> bool {
                let FieldValue::$kind(value) = value else {
                    return false;
                };
                *self = Some(value);
                true
            }
        }

        impl From<$type> for FieldValue {
            fn from(value: $type) -> Self {
                FieldValue::$kind(value)
            }
        }
    )+};
}

optional_values! {
    Switch = Switch;
    u32 = Number;
    u64 = Count;
    Bytes = Size;
    String = Text;
    IoThreadId = IoThread;
}

/// Makes an optional word of a `wire_enum!` a field.
macro_rules! optional_words {
    ($($type:ty),+ $(,)?) => {$(
        impl ConstKind for Option<$type> {
            const KIND: FieldKind = FieldKind::Word(<$type>::WORDS);
        }

        impl FieldType for Option<$type> {
            fn kind(&self) -> FieldKind {
                Self::KIND
            }

            fn get(&self) -> Option<FieldValue> {
                self.map(FieldValue::from)
            }

            fn is_set(&self) -> bool {
                self.is_some()
            }

            fn set(&mut self, value: FieldValue) -> bool {
                let FieldValue::Word(word) = value else {
                    return false;
                };
                let value = <$type>::from_wire(word);
                *self = value.or(*self);
                value.is_some()
            }
        }

        impl From<$type> for FieldValue {
            fn from(value: $type) -> Self {
                FieldValue::Word(value.as_wire())
            }
        }
    )+};
}

optional_words!(
    AioMode,
    CacheMode,
    DetectZeroes,
    Device,
    Discard,
    ErrorPolicy,
    Format,
    GeometryTranslation,
    ReadErrorPolicy,
    ScsiControllerModel,
    Sgio,
    Snapshot,
    StartupPolicy,
    TargetBus,
    Tray,
    VirtioModel,
);

/// Makes a type of more than one value a field, given when it is set.
macro_rules! structures {
    ($($type:ty, $is_set:expr;)+) => {$(
        impl ConstKind for $type {
            const KIND: FieldKind = FieldKind::Structure;
        }

        impl FieldType for $type {
            fn kind(&self) -> FieldKind {
                Self::KIND
            }

            fn get(&self) -> Option<FieldValue> {
                None
            }

            fn is_set(&self) -> bool {
                let is_set: fn(&$type) -> bool = $is_set;
                is_set(self)
            }

            fn set(&mut self, _: FieldValue) -> bool {
                false
            }
        }
    )+};
}

structures! {
    Option<Address>, Option::is_some;
    Option<Geometry>, Option::is_some;
    Option<Iotune>, Option::is_some;
    Vec<IoThreadQueues>, |rows| !rows.is_empty();
    Vec<String>, |texts| !texts.is_empty();
    Statistics, |statistics| *statistics != Statistics::default();
    BackendSource, |source| *source != BackendSource::Empty;
}

/// Something of the model whose fields are read and set by their names.
pub trait Fields {
    /// The names.
    type Field: Copy;

    /// The field; `None` for a name that is no field of its own, such as that of an element around others.
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

/// Says which name each field of a struct has, once for reading and setting.
///
/// Every field of the struct stands in the list, or the code does not compile. A struct inside is taken apart; what
/// no name reaches is named behind `without`.
#[macro_export]
macro_rules! fields {
    (
        impl $names:ident for $struct:ident {
            $($name:ident: $field:ident),+
            $(; inside $part:ident: $part_struct:ident { $($inner:ident: $inner_field:ident,)+ })*
            $(; without $($without:ident),+)?
        }
    ) => {
        impl $crate::Fields for $struct {
            type Field = $names;

            fn field(&self, field: $names) -> Option<&dyn $crate::FieldType> {
                let $struct {
                    $($name,)+
                    $($part: $part_struct { $($inner,)+ },)*
                    $($($without: _,)+)?
                } = self;
                $(if matches!(field, $names::$field) { return Some($name); })+
                $($(if matches!(field, $names::$inner_field) { return Some($inner); })+)*
                None
            }

            fn field_mut(&mut self, field: $names) -> Option<&mut dyn $crate::FieldType> {
                let $struct {
                    $($name,)+
                    $($part: $part_struct { $($inner,)+ },)*
                    $($($without: _,)+)?
                } = self;
                $(if matches!(field, $names::$field) { return Some($name); })+
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
