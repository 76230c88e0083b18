//! Writes `-readconfig` files.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use vmdisk_model::{Domain, DomainField, FieldPath};

use super::{MAX_LINE, MAX_NAME};
use crate::argument::{Argument, ArgumentValue, QemuOption};
use crate::daemon::StorageDaemon;
use crate::json::{Json, JsonObject};
use crate::key_value::KeyValue;
use crate::options::{Medium, Options};
use crate::problem::{WriteProblem, WriteProblems};
use crate::shell::shell_quote;
use crate::write::write_for;

/// A guest as a `-readconfig` file, and the few options that it cannot contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFile {
    /// The file.
    pub text: String,
    /// The command that starts QEMU, except `-readconfig` and the file; the program comes first.
    pub start: Vec<String>,
    /// The daemons that must run before it, one for each vhost-user disk whose image is known.
    pub daemons: Vec<StorageDaemon>,
    /// Settings outside the file, left to QEMU or its user.
    pub left_out: Vec<WriteProblem>,
}

/// Writes a guest as a file of `-readconfig`, with the nodes of each disk as one `[drive]`.
///
/// # Errors
/// Fails for settings that QEMU has no option for, or that such a file cannot express: quotes and line ends in values,
/// lists such as `iothread-vq-mapping`, lines and keys that are too long.
///
/// ```
/// use vmdisk_model::{CacheMode, Disk, Domain, Format, Frontend, Image, Scope, TargetBus};
/// use vmdisk_qemu::{Options, write_config_file};
///
/// let disk = Disk::new(
///     Frontend::new("vda", TargetBus::Virtio),
///     Image::file("/srv/web1.img", Format::Raw),
/// );
/// let domain = Domain { scope: Scope::DisksOnly, disks: vec![disk], ..Domain::default() };
/// let file = write_config_file(&domain, &Options::default())?;
/// assert!(file.text.contains("[drive \"drive-vda\"]\n"));
/// assert!(file.text.contains("  file.filename = \"/srv/web1.img\"\n"));
/// # Ok::<(), vmdisk_qemu::WriteProblems>(())
/// ```
pub fn write_config_file(domain: &Domain, options: &Options) -> Result<ConfigFile, WriteProblems> {
    let line = write_for(domain, options, Medium::ConfigFile)?;
    let mut file = Groups {
        domain,
        text: String::new(),
        start: vec![line.program.unwrap_or("qemu-system-x86_64").to_owned()],
        nodes: HashMap::new(),
        names: HashSet::new(),
        problems: Vec::new(),
        left_out: line.left_out,
    };
    for argument in line.arguments {
        file.argument(argument);
    }
    for daemon in &line.daemons {
        let at = FieldPath::Disk(daemon.disk, vmdisk_model::DiskField::SocketPath);
        let message =
            "the daemon that serves it needs a separate command line, which is not in this file";
        file.leave_out(at, message, "write it with --to qemu");
    }
    if !file.problems.is_empty() {
        return Err(WriteProblems(file.problems));
    }
    let mut text = String::new();
    if line.program.is_some() {
        let words: Vec<_> = file.start.iter().map(|word| shell_quote(word)).collect();
        // A comment is one line; the words in it have no line ends.
        let _ = writeln!(
            text,
            "# Start it with: {} -readconfig FILE",
            words.join(" ")
        );
    }
    text.push_str(&file.text);
    Ok(ConfigFile {
        text,
        start: file.start,
        daemons: line.daemons,
        left_out: file.left_out,
    })
}

/// A file that is being written.
struct Groups<'d> {
    domain: &'d Domain,
    text: String,
    start: Vec<String>,
    /// Nodes without a parent so far, by name.
    nodes: HashMap<String, (JsonObject, FieldPath)>,
    /// Names of all nodes and drives, which share QEMU's namespace.
    names: HashSet<String>,
    problems: Vec<WriteProblem>,
    left_out: Vec<WriteProblem>,
}

impl Groups<'_> {
    fn note(&self, at: FieldPath, message: String, help: &str) -> WriteProblem {
        let disk = at.disk().and_then(|nth| self.domain.disks.get(nth));
        WriteProblem {
            at,
            disk: disk.map(|disk| disk.name().to_owned()),
            message,
            help: Some(help.to_owned()),
        }
    }

    fn problem(&mut self, at: FieldPath, message: String, help: &str) {
        let problem = self.note(at, message, help);
        self.problems.push(problem);
    }

    fn leave_out(&mut self, at: FieldPath, message: impl Into<String>, help: &str) {
        let note = self.note(at, message.into(), help);
        self.left_out.push(note);
    }

    fn argument(&mut self, argument: Argument) {
        let Argument {
            option,
            value,
            origin,
        } = argument;
        match (option, value) {
            (QemuOption::Uuid, ArgumentValue::KeyValue(uuid)) => {
                self.start.push(option.to_string());
                self.start.push(uuid.to_string());
                let message = "a -readconfig file cannot set the UUID";
                self.leave_out(
                    FieldPath::Domain(DomainField::Uuid),
                    message,
                    "start QEMU with -uuid in addition to -readconfig",
                );
            }
            (QemuOption::Nodefaults, _) => {
                self.start.push(option.to_string());
                let message = "-nodefaults cannot be expressed in a -readconfig file";
                self.leave_out(
                    FieldPath::Domain(DomainField::Devices),
                    message,
                    "start QEMU with -nodefaults in addition to -readconfig",
                );
            }
            (QemuOption::Blockdev, ArgumentValue::Json(node)) => {
                if let Some(name) = node.text("node-name").map(str::to_owned) {
                    self.names.insert(name.clone());
                    self.nodes.insert(name, (node, origin));
                }
            }
            (QemuOption::Device, ArgumentValue::KeyValue(device)) => {
                let device = self.with_drive(device);
                self.group("device", "driver", &device, origin);
            }
            (QemuOption::Global, ArgumentValue::KeyValue(pairs)) => {
                let global = in_parts(pairs);
                self.group("global", "driver", &global, origin);
            }
            (option, value) => match (group_of(option), value) {
                (Some((group, first)), ArgumentValue::KeyValue(pairs)) => {
                    self.group(group, first, &pairs, origin);
                }
                // These options are never written for such a file.
                (_, value) => {
                    let word = value.word().unwrap_or_default();
                    self.problem(
                        origin,
                        format!("{option} {word} cannot be expressed in a -readconfig file"),
                        "write a command line",
                    );
                }
            },
        }
    }

    /// Writes the nodes of a device as a drive, and then the device.
    fn with_drive(&mut self, mut device: KeyValue) -> KeyValue {
        let Some(at) = device.pairs.iter().position(|(key, _)| key == "drive") else {
            return device;
        };
        let top = device.pairs[at].1.clone();
        let Some((node, origin)) = self.nodes.remove(&top) else {
            return device;
        };
        let id = device.pairs.iter().find(|(key, _)| key == "id");
        let own = id.map_or("disk", |(_, id)| id.as_str());
        let id = (1_usize..)
            .map(|number| match number {
                1 => format!("drive-{own}"),
                more => format!("drive-{own}-{more}"),
            })
            .find(|id| !self.names.contains(id))
            .expect("there are more names than disks");
        self.names.insert(id.clone());
        let mut drive = KeyValue::default()
            .with("id", id.as_str())
            .with("if", "none");
        self.nest("", &node, false, &mut drive);
        self.group("drive", "file", &drive, origin);
        device.pairs[at].1 = id;
        device
    }

    /// Adds the members of a node, and those of the nodes below it; `in_format` below a format node.
    ///
    /// An unset option of a named node is off. A node inside a drive inherits it from there, and a child of a format
    /// node gets discards (`bdrv_inherited_options`), unless it is set.
    fn nest(&mut self, prefix: &str, node: &JsonObject, in_format: bool, drive: &mut KeyValue) {
        let is_format = !matches!(node.text("driver"), Some("throttle" | "copy-on-read"));
        for (key, value) in node.members() {
            let is_child = matches!(key, "file" | "backing" | "data-file");
            if let (true, Json::String(name)) = (is_child, value)
                && let Some((child, _)) = self.nodes.remove(name)
            {
                self.nest(&format!("{prefix}{key}."), &child, is_format, drive);
                continue;
            }
            flatten(&format!("{prefix}{key}"), value, drive);
        }
        for (key, off, is_needed) in [
            ("discard", "ignore", in_format),
            ("read-only", "off", true),
            ("auto-read-only", "off", true),
        ] {
            if node.get(key).is_none() && is_needed {
                drive
                    .pairs
                    .push((format!("{prefix}{key}").into(), off.to_owned()));
            }
        }
    }

    /// Writes a group; `head` is the key of the value that has no key on a command line.
    fn group(&mut self, group: &str, head: &str, option: &KeyValue, at: FieldPath) {
        let KeyValue { first, pairs } = option;
        let id = pairs.iter().find(|(key, _)| key == "id");
        self.text.push('\n');
        match id {
            Some((_, id)) => {
                if id.len() > MAX_NAME {
                    let message = format!("the id `{id}` has more than {MAX_NAME} bytes");
                    self.problem(at, message, "write a command line, or a shorter name");
                }
                let _ = writeln!(self.text, "[{group} \"{id}\"]");
            }
            None => {
                let _ = writeln!(self.text, "[{group}]");
            }
        }
        let first = first.iter().map(|value| (head, value));
        let rest = pairs.iter().map(|(key, value)| (key.as_ref(), value));
        for (key, value) in first.chain(rest).filter(|(key, _)| *key != "id") {
            self.check(key, value, at);
            let _ = writeln!(self.text, "  {key} = \"{value}\"");
        }
    }

    /// Reports values that QEMU would misread.
    fn check(&mut self, key: &str, value: &str, at: FieldPath) {
        if value.contains(['"', '\n']) {
            let message = format!(
                "`{key}` has a quote or a line end in its value, which a -readconfig file cannot express"
            );
            self.problem(at, message, "write a command line, or another name");
        }
        let length = key.len() + value.len() + "   = \"\"\n".len();
        if key.len() > MAX_NAME {
            let message = format!(
                "`{key}` is longer than {MAX_NAME} bytes, the limit for a key in a -readconfig file"
            );
            self.problem(at, message, "write a command line, or fewer backing images");
        } else if length > MAX_LINE {
            let message = format!(
                "the line of `{key}` has {length} bytes, but QEMU reads only {MAX_LINE} of a line in a -readconfig file"
            );
            self.problem(at, message, "write a command line, or a shorter name");
        }
    }
}

/// A value and those nested in it, by dotted keys.
fn flatten(key: &str, value: &Json, option: &mut KeyValue) {
    let text = match value {
        Json::Object(object) => {
            for (inner, value) in object.members() {
                flatten(&format!("{key}.{inner}"), value, option);
            }
            return;
        }
        Json::Array(items) => {
            for (nth, value) in items.iter().enumerate() {
                flatten(&format!("{key}.{nth}"), value, option);
            }
            return;
        }
        // QEMU reads it as no backing image, with a warning: the file format has no `null`.
        Json::Null => String::new(),
        Json::Bool(true) => "on".to_owned(),
        Json::Bool(false) => "off".to_owned(),
        Json::Number(number) => number.to_string(),
        Json::String(text) => text.clone(),
    };
    option.pairs.push((key.to_owned().into(), text));
}

/// The group of an option, and the key of the first part of its value.
const fn group_of(option: QemuOption) -> Option<(&'static str, &'static str)> {
    match option {
        QemuOption::Name => Some(("name", "guest")),
        QemuOption::Machine => Some(("machine", "type")),
        QemuOption::Accel => Some(("accel", "accel")),
        QemuOption::Memory => Some(("memory", "size")),
        QemuOption::Smp => Some(("smp-opts", "cpus")),
        QemuOption::Object => Some(("object", "qom-type")),
        QemuOption::Chardev => Some(("chardev", "backend")),
        QemuOption::Drive => Some(("drive", "file")),
        // Other options are written separately, or not at all.
        _ => None,
    }
}

/// `-global driver.property=value` in its long form.
fn in_parts(global: KeyValue) -> KeyValue {
    let parts = global.first.as_deref().and_then(|first| {
        let (name, value) = first.split_once('=')?;
        let (driver, property) = name.split_once('.')?;
        Some((driver.to_owned(), property.to_owned(), value.to_owned()))
    });
    match parts {
        Some((driver, property, value)) => KeyValue::default()
            .with("driver", driver)
            .with("property", property)
            .with("value", value),
        None => global,
    }
}
