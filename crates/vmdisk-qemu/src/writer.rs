//! The state of writing one command line: what is written so far, and what went wrong.

use std::collections::{HashMap, HashSet};

use vmdisk_facts::{Capability, Target};
use vmdisk_model::{Domain, FieldPath};

use crate::argument::{Argument, ArgumentValue, QemuOption};
use crate::board::Machine;
use crate::boot::boot_indexes;
use crate::json::{Json, JsonObject};
use crate::key_value::KeyValue;
use crate::libvirt_order;
use crate::names::Ids;
use crate::options::{Medium, Options, Style};
use crate::pci_slots::PciSlots;
use crate::problem::WriteProblem;

/// The state of writing one command line.
pub(crate) struct Writer<'a> {
    pub(crate) domain: &'a Domain,
    pub(crate) target: &'a Target,
    pub(crate) style: Style,
    pub(crate) medium: Medium,
    pub(crate) machine: Machine,
    pub(crate) ids: Ids,
    pub(crate) pci: PciSlots,
    /// The place of each disk in the boot order.
    pub(crate) boot_indexes: Vec<Option<u32>>,
    /// Ids of the guest's throttle groups, by name.
    pub(crate) throttle_limits: HashMap<&'a str, String>,
    /// Ids of the groups that several disks share, by the name they were written with.
    pub(crate) throttle_groups: HashMap<&'a str, SharedThrottle<'a>>,
    /// Ids of the helpers for persistent reservations that are written.
    pub(crate) helpers: HashSet<String>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) problems: Vec<WriteProblem>,
    pub(crate) left_out: Vec<WriteProblem>,
}

/// A throttle group that is already written.
pub(crate) struct SharedThrottle<'a> {
    /// Its id.
    pub(crate) id: String,
    /// Its limits, which the next disk of the group must have too.
    pub(crate) limits: &'a vmdisk_model::Iotune,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(domain: &'a Domain, options: &'a Options, medium: Medium) -> Self {
        let Options { target, style } = options;
        let machine = Machine::of(domain, target);
        let pci = PciSlots::new(domain, machine.board);
        Writer {
            domain,
            target,
            style: *style,
            medium,
            machine,
            ids: Ids::default(),
            pci,
            boot_indexes: boot_indexes(domain, *style),
            throttle_limits: HashMap::new(),
            throttle_groups: HashMap::new(),
            helpers: HashSet::new(),
            arguments: Vec::new(),
            problems: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// True if names and order are libvirt's.
    pub(crate) fn is_libvirt_style(&self) -> bool {
        match self.style {
            Style::Readable => false,
            Style::Libvirt => true,
        }
    }

    /// True unless the target is known to lack it: a recent QEMU is assumed.
    pub(crate) fn can(&self, capability: Capability) -> bool {
        !self.target.can(capability).is_no()
    }

    /// The place of a disk in the boot order.
    pub(crate) fn boot_index(&self, nth: usize) -> Option<u32> {
        self.boot_indexes.get(nth).copied().flatten()
    }

    fn note(&self, at: FieldPath, message: String, help: Option<&str>) -> WriteProblem {
        WriteProblem {
            at,
            disk: at
                .disk()
                .and_then(|nth| self.domain.disks.get(nth))
                .map(|disk| disk.name().to_owned()),
            message,
            help: help.map(str::to_owned),
        }
    }

    /// Notes something that cannot be written.
    pub(crate) fn problem(&mut self, at: FieldPath, message: impl Into<String>) {
        let problem = self.note(at, message.into(), None);
        self.problems.push(problem);
    }

    /// Notes something that cannot be written, and what to write instead.
    pub(crate) fn problem_with_help(
        &mut self,
        at: FieldPath,
        message: impl Into<String>,
        help: &str,
    ) {
        let problem = self.note(at, message.into(), Some(help));
        self.problems.push(problem);
    }

    /// Notes something that is not on the command line although it was asked for.
    pub(crate) fn leave_out(&mut self, at: FieldPath, message: impl Into<String>) {
        let note = self.note(at, message.into(), None);
        self.left_out.push(note);
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
            self.problem(origin, format!("{what} cannot be given to QEMU"));
            return;
        }
        self.arguments.push(Argument {
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
    pub(crate) fn blockdev(&mut self, mut node: JsonObject, origin: FieldPath) {
        if self.is_libvirt_style() {
            libvirt_order::node(&mut node, origin);
        }
        self.push(QemuOption::Blockdev, ArgumentValue::Json(node), origin);
    }

    /// True if an option goes out in JSON, by the capability of the target to read it so.
    pub(crate) fn takes_json(&self, capability: Capability) -> bool {
        match self.medium {
            Medium::CommandLine => self.can(capability),
            Medium::ConfigFile => false,
            Medium::Monitor => true,
        }
    }

    /// Adds an object: JSON where the target takes it, else key=value.
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

    /// Adds a device: JSON where the target takes it, else key=value.
    pub(crate) fn device(&mut self, mut device: JsonObject, origin: FieldPath) {
        if self.is_libvirt_style() {
            libvirt_order::device(&mut device, origin);
        }
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
        let message = match self.medium {
            Medium::ConfigFile => {
                format!(
                    "`{key}` can only be said in JSON, which a configuration file does not have"
                )
            }
            Medium::CommandLine | Medium::Monitor => {
                format!("`{key}` can only be said in JSON, which {option} takes since QEMU {since}")
            }
        };
        self.problem(at, message);
    }
}

/// What QEMU's JSON parser refuses or changes in a string of this object, if anything: it takes
/// `\u0000` for the bytes C0 80, and no Unicode noncharacter (`util/unicode.c`).
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
