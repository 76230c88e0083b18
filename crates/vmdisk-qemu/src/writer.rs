//! The last phase of writing: options, in order, and problems.

use vmdisk_facts::Capability;
use vmdisk_model::{Domain, FieldPath};

use crate::argument::{Argument, ArgumentValue, QemuOption};
use crate::board::Machine;
use crate::guest::Guest;
use crate::json::{Json, JsonObject};
use crate::key_value::KeyValue;
use crate::options::Medium;
use crate::places::Places;
use crate::problem::WriteProblem;

/// Writes the options of a guest.
pub(crate) struct Writer<'a> {
    guest: &'a Guest<'a>,
    places: Places<'a>,
    written: Written,
}

/// The guest to write.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) arguments: Vec<Argument>,
    /// The problems.
    pub(crate) problems: Vec<WriteProblem>,
    /// Requested settings that are not among the arguments.
    pub(crate) left_out: Vec<WriteProblem>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(guest: &'a Guest<'a>) -> Self {
        Writer {
            guest,
            places: Places::new(guest),
            written: Written::default(),
        }
    }

    /// All output.
    pub(crate) fn finish(self) -> Written {
        self.written
    }

    /// The options so far.
    pub(crate) const fn written(&self) -> &Written {
        &self.written
    }

    pub(crate) const fn domain(&self) -> &'a Domain {
        self.guest.domain()
    }

    pub(crate) const fn machine(&self) -> &'a Machine {
        self.guest.machine()
    }

    pub(crate) const fn medium(&self) -> Medium {
        self.guest.medium()
    }

    /// True unless the target is known to lack it: a recent QEMU is assumed.
    pub(crate) fn can(&self, capability: Capability) -> bool {
        self.guest.can(capability)
    }

    /// True if an option is written as JSON, which the target must support.
    pub(crate) fn takes_json(&self, capability: Capability) -> bool {
        self.guest.takes_json(capability)
    }

    /// The place of a disk in the boot order.
    pub(crate) fn boot_index(&self, nth: usize) -> Option<u32> {
        self.guest.boot_index(nth)
    }

    /// Ids and slots.
    pub(crate) const fn places(&mut self) -> &mut Places<'a> {
        &mut self.places
    }

    /// Records a setting that cannot be written.
    pub(crate) fn problem(&mut self, at: FieldPath, message: impl Into<String>) {
        let problem = self.guest.note(at, message.into(), None);
        self.written.problems.push(problem);
    }

    /// Records a setting that cannot be written, and the remedy.
    pub(crate) fn problem_with_help(
        &mut self,
        at: FieldPath,
        message: impl Into<String>,
        help: &str,
    ) {
        let problem = self.guest.note(at, message.into(), Some(help));
        self.written.problems.push(problem);
    }

    /// Reports a requested setting that is not on the command line.
    pub(crate) fn leave_out(&mut self, at: FieldPath, message: impl Into<String>) {
        let note = self.guest.note(at, message.into(), None);
        self.written.left_out.push(note);
    }

    /// Adds the problems of planning.
    pub(crate) fn add_notes(&mut self, problems: &[WriteProblem], left_out: &[WriteProblem]) {
        self.written.problems.extend_from_slice(problems);
        self.written.left_out.extend_from_slice(left_out);
    }

    /// Moves the first arguments to the end.
    pub(crate) fn move_to_end(&mut self, count: usize) {
        self.written.arguments.rotate_left(count);
    }

    /// Adds an option.
    pub(crate) fn push(&mut self, option: QemuOption, value: ArgumentValue, origin: FieldPath) {
        let hidden = match &value {
            ArgumentValue::None => None,
            ArgumentValue::Json(object) => unwritable_member(object),
            ArgumentValue::KeyValue(pairs) => pairs
                .first
                .iter()
                .chain(pairs.pairs.iter().map(|(_, value)| value))
                .find_map(|text| text.contains('\0').then_some("a zero byte")),
        };
        if let Some(what) = hidden {
            self.problem(origin, format!("{what} cannot be passed to QEMU"));
            return;
        }
        self.written.arguments.push(Argument {
            option,
            value,
            origin,
        });
    }

    /// Adds an option in key=value form.
    pub(crate) fn push_pairs(&mut self, option: QemuOption, pairs: KeyValue, origin: FieldPath) {
        self.push(option, ArgumentValue::KeyValue(pairs), origin);
    }

    /// Adds a node; `-blockdev` takes JSON in every version that has it.
    pub(crate) fn blockdev(&mut self, node: JsonObject, origin: FieldPath) {
        self.push(QemuOption::Blockdev, ArgumentValue::Json(node), origin);
    }

    /// Adds an object: as JSON if the target supports it, otherwise as key=value.
    pub(crate) fn object(&mut self, object: JsonObject, origin: FieldPath) {
        if self.takes_json(Capability::ObjectJson) {
            self.push(QemuOption::Object, ArgumentValue::Json(object), origin);
            return;
        }
        match KeyValue::from_json(&object, "qom-type") {
            Ok(pairs) => self.push_pairs(QemuOption::Object, pairs, origin),
            Err(key) => self.needs_json(origin, "-object", &key, Capability::ObjectJson),
        }
    }

    /// Adds a device: as JSON if the target supports it, otherwise as key=value.
    pub(crate) fn device(&mut self, device: JsonObject, origin: FieldPath) {
        if self.takes_json(Capability::DeviceJson) {
            self.push(QemuOption::Device, ArgumentValue::Json(device), origin);
            return;
        }
        match KeyValue::from_json(&device, "driver") {
            Ok(pairs) => self.push_pairs(QemuOption::Device, pairs, origin),
            Err(key) => self.needs_json(origin, "-device", &key, Capability::DeviceJson),
        }
    }

    fn needs_json(&mut self, at: FieldPath, option: &str, key: &str, capability: Capability) {
        let since = capability.row().since;
        let message =
            format!("`{key}` can only be set in JSON, which {option} accepts since QEMU {since}");
        self.problem(at, message);
    }
}

/// The part of a string of this object that QEMU's JSON parser refuses or changes, if any: it reads `\u0000` as the
/// bytes C0 80, and refuses Unicode noncharacters (`util/unicode.c`).
fn unwritable_member(object: &JsonObject) -> Option<&'static str> {
    object.members().find_map(|(_, value)| unwritable(value))
}

fn unwritable(value: &Json) -> Option<&'static str> {
    match value {
        Json::Null | Json::Bool(_) | Json::Number(_) => None,
        Json::String(text) => text.chars().find_map(|character| {
            let code = u32::from(character);
            if code == 0 {
                Some("a zero byte")
            } else if (0xfdd0..=0xfdef).contains(&code) || code & 0xfffe == 0xfffe {
                Some("a Unicode noncharacter")
            } else {
                None
            }
        }),
        Json::Array(items) => items.iter().find_map(unwritable),
        Json::Object(object) => unwritable_member(object),
    }
}
