//! The types of fields.

use crate::{
    Address, AioMode, Authentication, BackendSource, Bytes, CacheMode, Cookie, DetectZeroes,
    Device, Discard, DomainType, Encryption, ErrorPolicy, FieldKind, FieldValue, Format, Geometry,
    GeometryTranslation, Image, IoThreadId, IoThreadQueues, Iotune, MemoryAccess, MemorySource,
    NetworkHost, ReadErrorPolicy, Reservations, ScsiControllerModel, Sgio, Slice, Snapshot,
    StartupPolicy, Statistics, Switch, TargetBus, Tray, TypedField, VirtioModel,
};

impl TypedField for bool {
    const KIND: FieldKind = FieldKind::Flag;

    fn value(&self) -> Option<FieldValue> {
        self.then_some(FieldValue::Set)
    }

    fn is_some_value(&self) -> bool {
        *self
    }

    fn set_value(&mut self, value: FieldValue) -> Option<()> {
        *self |= value == FieldValue::Set;
        (value == FieldValue::Set).then_some(())
    }
}

/// Makes an optional value a field: its kind, and how it becomes a [`FieldValue`] and is found in one.
macro_rules! optional_values {
    ($($type:ty: $kind:expr, $of:expr, $pattern:pat => $value:expr;)+) => {$(
        impl TypedField for Option<$type> {
            const KIND: FieldKind = $kind;

            fn value(&self) -> Option<FieldValue> {
                self.clone().map(FieldValue::from)
            }

            fn is_some_value(&self) -> bool {
                self.is_some()
            }

            fn set_value(&mut self, value: FieldValue) -> Option<()> {
                let $pattern = value else {
                    return None;
                };
                *self = Some($value?);
                Some(())
            }
        }

        impl From<$type> for FieldValue {
            fn from(value: $type) -> Self {
                let of: fn($type) -> FieldValue = $of;
                of(value)
            }
        }
    )+};
}

optional_values! {
    Switch: FieldKind::Switch, FieldValue::Switch, FieldValue::Switch(it) => Some(it);
    u32: FieldKind::Number, FieldValue::Number, FieldValue::Number(it) => Some(it);
    u64: FieldKind::Count, FieldValue::Count, FieldValue::Count(it) => Some(it);
    Bytes: FieldKind::Size, FieldValue::Size, FieldValue::Size(it) => Some(it);
    String: FieldKind::Text, FieldValue::Text, FieldValue::Text(it) => Some(it);
    IoThreadId: FieldKind::IoThread, FieldValue::IoThread, FieldValue::IoThread(it) => Some(it);
    // A switch of a spec.
    bool: FieldKind::Switch, |is_on| FieldValue::Switch(if is_on { Switch::On } else { Switch::Off }),
        FieldValue::Switch(it) => Some(it == Switch::On);
}

/// Makes optional words of `words!` fields.
macro_rules! optional_words {
    ($($type:ident),+ $(,)?) => {
        optional_values! {
            $($type: FieldKind::Word($type::WORDS), |it| FieldValue::Word(it.as_str()),
                FieldValue::Word(word) => $type::from_word(word);)+
        }
    };
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
    MemoryAccess,
    MemorySource,
    ReadErrorPolicy,
    ScsiControllerModel,
    Sgio,
    Snapshot,
    StartupPolicy,
    TargetBus,
    Tray,
    VirtioModel,
);

impl From<DomainType> for FieldValue {
    fn from(it: DomainType) -> Self {
        it.as_str().into()
    }
}

/// Makes a type of more than one value a field, given when it is set.
macro_rules! structures {
    ($($type:ty, $is_set:expr;)+) => {$(
        impl TypedField for $type {
            const KIND: FieldKind = FieldKind::Structure;

            fn value(&self) -> Option<FieldValue> {
                None
            }

            fn is_some_value(&self) -> bool {
                let is_set: fn(&$type) -> bool = $is_set;
                is_set(self)
            }

            fn set_value(&mut self, _: FieldValue) -> Option<()> {
                None
            }
        }
    )+};
}

structures! {
    Option<Address>, Option::is_some;
    Option<Geometry>, Option::is_some;
    Option<Box<Iotune>>, Option::is_some;
    Option<Box<Authentication>>, Option::is_some;
    Option<Box<Image>>, Option::is_some;
    Option<Box<Encryption>>, Option::is_some;
    Option<Reservations>, Option::is_some;
    Option<Slice>, Option::is_some;
    Vec<Cookie>, |cookies| !cookies.is_empty();
    Vec<IoThreadQueues>, |rows| !rows.is_empty();
    Vec<NetworkHost>, |hosts| !hosts.is_empty();
    Vec<String>, |texts| !texts.is_empty();
    Statistics, |statistics| *statistics != Statistics::default();
    BackendSource, |source| *source != BackendSource::Empty;
}
