//! One option of a command line with its value.

use std::fmt;

use vmdisk_model::FieldPath;

use crate::json::{Json, JsonObject};
use crate::key_value::KeyValue;

/// An option of QEMU's command line that this crate writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QemuOption {
    /// `-name`.
    Name,
    /// `-uuid`: the identity of the guest.
    Uuid,
    /// `-nodefaults`: only the listed devices exist.
    Nodefaults,
    /// `-machine`.
    Machine,
    /// `-accel`.
    Accel,
    /// `-m`: memory.
    Memory,
    /// `-smp`: CPUs.
    Smp,
    /// `-object`: iothreads, memory, throttle groups.
    Object,
    /// `-chardev`: sockets.
    Chardev,
    /// `-global`: a property of a built-in device.
    Global,
    /// `-drive`: an SD card, which cannot be added as a device.
    Drive,
    /// `-blockdev`: a node of a backend.
    Blockdev,
    /// `-device`: a frontend or controller.
    Device,
    /// `--export`: an option of `qemu-storage-daemon` only.
    Export,
}

impl QemuOption {
    /// Every option.
    pub const ALL: &'static [QemuOption] = &[
        QemuOption::Name,
        QemuOption::Uuid,
        QemuOption::Nodefaults,
        QemuOption::Machine,
        QemuOption::Accel,
        QemuOption::Memory,
        QemuOption::Smp,
        QemuOption::Object,
        QemuOption::Chardev,
        QemuOption::Global,
        QemuOption::Drive,
        QemuOption::Blockdev,
        QemuOption::Device,
        QemuOption::Export,
    ];

    /// The name on the command line.
    pub const fn as_word(self) -> &'static str {
        match self {
            QemuOption::Name => "-name",
            QemuOption::Uuid => "-uuid",
            QemuOption::Nodefaults => "-nodefaults",
            QemuOption::Machine => "-machine",
            QemuOption::Accel => "-accel",
            QemuOption::Memory => "-m",
            QemuOption::Smp => "-smp",
            QemuOption::Object => "-object",
            QemuOption::Chardev => "-chardev",
            QemuOption::Global => "-global",
            QemuOption::Drive => "-drive",
            QemuOption::Blockdev => "-blockdev",
            QemuOption::Device => "-device",
            QemuOption::Export => "-export",
        }
    }
}

impl fmt::Display for QemuOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_word())
    }
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentValue {
    /// The option has no value.
    None,
    /// A JSON object, which cannot be broken by the content of a value.
    Json(JsonObject),
    /// The older key=value form.
    KeyValue(KeyValue),
}

impl ArgumentValue {
    /// The value as one word of the command line; `None` if there is none.
    pub fn word(&self) -> Option<String> {
        match self {
            ArgumentValue::None => None,
            ArgumentValue::Json(object) => Some(object.to_string()),
            ArgumentValue::KeyValue(pairs) => Some(pairs.to_string()),
        }
    }
}

/// An option with its value, and the field of the model that it was written for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The option.
    pub option: QemuOption,
    /// Its value.
    pub value: ArgumentValue,
    /// The field that caused the option.
    pub origin: FieldPath,
}

impl Argument {
    /// The value of a member or key as text; sizes and switches are spelled as in their form.
    pub fn property(&self, key: &str) -> Option<String> {
        match &self.value {
            ArgumentValue::None => None,
            ArgumentValue::Json(object) => object.get(key).map(|value| match value {
                Json::String(text) => text.clone(),
                Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => {
                    value.to_string()
                }
            }),
            ArgumentValue::KeyValue(option) => option
                .pairs
                .iter()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value.clone()),
        }
    }
}
