//! One option of a command line with its value.

use vmdisk_model::FieldPath;

use crate::json::{Json, JsonObject};
use crate::key_value::KeyValue;

vmdisk_source::words! {
    /// An option of QEMU's command line that this crate writes.
    pub enum QemuOption as as_word {
        /// `-name`.
        Name = "-name",
        /// `-uuid`: the identity of the guest.
        Uuid = "-uuid",
        /// `-nodefaults`: only the listed devices exist.
        Nodefaults = "-nodefaults",
        /// `-machine`.
        Machine = "-machine",
        /// `-accel`.
        Accel = "-accel",
        /// `-cpu`: the model of the CPUs.
        Cpu = "-cpu",
        /// `-m`: memory.
        Memory = "-m",
        /// `-smp`: CPUs.
        Smp = "-smp",
        /// `-object`: iothreads, memory, throttle groups.
        Object = "-object",
        /// `-chardev`: sockets.
        Chardev = "-chardev",
        /// `-global`: a property of a built-in device.
        Global = "-global",
        /// `-drive`: an SD card, which cannot be added as a device.
        Drive = "-drive",
        /// `-blockdev`: a node of a backend.
        Blockdev = "-blockdev",
        /// `-device`: a frontend or controller.
        Device = "-device",
        /// `--export`: an option of `qemu-storage-daemon` only.
        Export = "-export",
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
