//! One guest in every syntax that is read.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value;
use vmdisk::facts::Target;
use vmdisk::model::{Disk, Domain, HostStorage, Scope, TargetBus};
use vmdisk::plan::Spec;
use vmdisk::write::{self, QemuOptions};
use vmdisk::{Document, Source};

/// A way to write a guest down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Syntax {
    /// libvirt's XML.
    Xml,
    /// A command line as it is in a fixture, or as people write it.
    CommandLine,
    /// `-drive` with the nodes of the disk inside it.
    Drive,
    /// `-drive` with a file, its format and its bus.
    ShortDrive,
    /// `-hda` and its kin, and a file name alone.
    FileName,
    /// `-blockdev` with JSON.
    BlockdevJson,
    /// `-blockdev` with key=value.
    BlockdevPairs,
    /// A file of `-readconfig`.
    ConfigFile,
    /// Commands for the monitor.
    MonitorScript,
    /// A spec.
    Spec,
}

impl Syntax {
    /// The syntax that a document is read from.
    pub(super) fn of(document: &Document) -> Self {
        match document.source {
            Source::LibvirtXml(_) => Syntax::Xml,
            Source::QemuCommandLine(_) => Syntax::CommandLine,
            Source::Spec(_) => Syntax::Spec,
        }
    }

    /// Its name in figures.
    pub const fn name(self) -> &'static str {
        match self {
            Syntax::Xml => "XML",
            Syntax::CommandLine => "command lines as they are",
            Syntax::Drive => "-drive",
            Syntax::ShortDrive => "short -drive",
            Syntax::FileName => "file names",
            Syntax::BlockdevJson => "-blockdev JSON",
            Syntax::BlockdevPairs => "-blockdev key=value",
            Syntax::ConfigFile => "-readconfig",
            Syntax::MonitorScript => "QMP scripts",
            Syntax::Spec => "specs",
        }
    }
}

/// A guest in each syntax that can express it.
pub(super) fn all(document: &Document, target: &Target) -> Vec<(Syntax, String)> {
    let domain = document.domain();
    let options = QemuOptions {
        target: target.clone(),
    };
    let mut forms = Vec::new();
    if domain.disks.is_empty() {
        return forms;
    }
    if let Ok(xml) = write::libvirt_xml(domain) {
        forms.push((Syntax::Xml, xml));
    }
    if let Ok(line) = write::qemu_command_line(domain, &options) {
        let words = line.argv();
        let text = match domain.scope {
            Scope::WholeGuest => line.to_shell(),
            Scope::DisksOnly => format!("qemu-system-x86_64 {}", line.to_shell()),
        };
        forms.push((Syntax::BlockdevJson, text));
        forms.push((Syntax::BlockdevPairs, as_pairs(&words)));
        let words = with_drives(&words);
        forms.push((Syntax::Drive, as_pairs(&words)));
        forms.extend(as_config_file(&words).map(|text| (Syntax::ConfigFile, text)));
    }
    if let Ok(script) = write::qemu_monitor_script(domain, &options) {
        forms.push((Syntax::MonitorScript, script.to_lines()));
    }
    let (spec, lost) = Spec::of_domain(domain);
    if spec.check().is_empty() && !lost.iter().any(|one| one.changes_guest) {
        forms.push((Syntax::Spec, spec.to_yaml()));
    }
    forms.extend(short_drives(domain).map(|text| (Syntax::ShortDrive, text)));
    forms.extend(file_names(domain).map(|text| (Syntax::FileName, text)));
    forms
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A value inside key=value.
fn escaped(value: &str) -> String {
    value.replace(',', ",,")
}

/// A command line whose JSON is written as key=value.
fn as_pairs(words: &[String]) -> String {
    let mut text = String::new();
    if words.first().is_none_or(|word| word.starts_with('-')) {
        text.push_str("qemu-system-x86_64 ");
    }
    for word in words {
        let word = match serde_json::from_str::<Value>(word) {
            Ok(value @ Value::Object(_)) => {
                let mut pairs = Vec::new();
                flatten("", &value, &mut pairs);
                pairs.join(",")
            }
            Ok(_) | Err(_) => word.clone(),
        };
        let _ = write!(text, "{} ", quoted(&word));
    }
    text.push('\n');
    text.replacen("'qemu-system-x86_64'", "qemu-system-x86_64", 1)
}

fn flatten(key: &str, value: &Value, pairs: &mut Vec<String>) {
    let below = |name: &str| match key {
        "" => name.to_owned(),
        key => format!("{key}.{name}"),
    };
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                flatten(&below(name), value, pairs);
            }
        }
        Value::Array(items) => {
            for (nth, value) in items.iter().enumerate() {
                flatten(&below(&nth.to_string()), value, pairs);
            }
        }
        Value::Bool(is_on) => pairs.push(format!("{key}={}", if *is_on { "on" } else { "off" })),
        Value::String(text) => pairs.push(format!("{key}={}", escaped(text))),
        Value::Number(number) => pairs.push(format!("{key}={number}")),
        Value::Null => pairs.push(format!("{key}=")),
    }
}

/// A command line with the nodes of each device inside one `-drive`.
fn with_drives(words: &[String]) -> Vec<String> {
    let mut nodes = HashMap::new();
    let mut others = Vec::new();
    for word in words {
        let value = serde_json::from_str::<Value>(word).unwrap_or_default();
        match (others.last().map(String::as_str), &value["node-name"]) {
            (Some("-blockdev"), Value::String(name)) => {
                others.pop();
                nodes.insert(name.clone(), value);
            }
            _ => others.push(word.clone()),
        }
    }
    let mut words: Vec<String> = Vec::new();
    for word in others {
        let mut device = serde_json::from_str::<Value>(&word).unwrap_or_default();
        if words.last().is_some_and(|option| option == "-device")
            && let Some(name) = device["drive"].as_str()
            && let Some(node) = nodes.get(name)
        {
            let id = format!("drive-{}", words.len());
            let mut pairs = vec![format!("id={id},if=none")];
            flatten("", &nested(node, &nodes, false), &mut pairs);
            let option = words.pop();
            words.extend(["-drive".to_owned(), pairs.join(",")]);
            words.extend(option);
            device["drive"] = id.into();
            words.push(device.to_string());
        } else {
            words.push(word);
        }
    }
    words
}

/// A node with the nodes below it inside it.
///
/// An unset option of a named node is off. Inside a drive, a node inherits it from there, and a child of a format node
/// gets discards (`bdrv_inherited_options`), unless it is set.
fn nested(node: &Value, nodes: &HashMap<String, Value>, in_format: bool) -> Value {
    let mut node = node.clone();
    let is_format = !matches!(node["driver"].as_str(), Some("throttle" | "copy-on-read"));
    for (key, off, is_needed) in [
        ("discard", "ignore".into(), in_format),
        ("read-only", Value::Bool(false), true),
        ("auto-read-only", Value::Bool(false), true),
    ] {
        if node[key].is_null() && is_needed {
            node[key] = off;
        }
    }
    for key in ["file", "backing", "data-file"] {
        if let Some(child) = node[key].as_str().and_then(|name| nodes.get(name)) {
            node[key] = nested(child, nodes, is_format);
        }
    }
    node
}

/// The options of a command line as groups of a configuration file; `None` if it cannot express a value.
fn as_config_file(words: &[String]) -> Option<String> {
    let mut text = String::new();
    for pair in words.windows(2) {
        let [option, value] = pair else { continue };
        let (group, head) = match option.as_str() {
            "-name" => ("name", "guest"),
            "-machine" => ("machine", "type"),
            "-accel" => ("accel", "accel"),
            "-m" => ("memory", "size"),
            "-smp" => ("smp-opts", "cpus"),
            "-object" => ("object", "qom-type"),
            "-chardev" => ("chardev", "backend"),
            "-device" => ("device", "driver"),
            "-drive" => ("drive", "file"),
            _ => continue,
        };
        let mut pairs = Vec::new();
        match serde_json::from_str::<Value>(value) {
            Ok(value @ Value::Object(_)) => flatten("", &value, &mut pairs),
            Ok(_) | Err(_) => {
                let value = value.replace(",,", "\0");
                let parts = value.split(',').map(|part| part.replace('\0', ",,"));
                pairs.extend(parts);
            }
        }
        let mut id = String::new();
        let mut lines = String::new();
        for pair in pairs {
            let (key, value) = pair.split_once('=').unwrap_or((head, &pair));
            let value = value.replace(",,", ",");
            if value.contains(['"', '\n']) || key.len() > 63 {
                return None;
            }
            if key == "id" {
                id = format!(" \"{value}\"");
            } else {
                let _ = writeln!(lines, "  {key} = \"{value}\"");
            }
        }
        let _ = writeln!(text, "\n[{group}{id}]\n{}", lines.trim_end());
    }
    Some(text)
}

/// The file or device of a disk.
fn path_of(disk: &Disk) -> Option<&str> {
    match disk.backend.image()?.protocol.on_host()? {
        HostStorage::File(path) => Some(path),
        HostStorage::Device(path) => Some(&path.0),
    }
}

/// The program and its machine.
fn start(domain: &Domain) -> String {
    let mut text = "qemu-system-x86_64 -nodefaults".to_owned();
    if let Some(machine) = &domain.machine {
        let _ = write!(text, " -machine {}", quoted(&machine.0));
    }
    text
}

fn short_drives(domain: &Domain) -> Option<String> {
    let mut text = start(domain);
    for disk in &domain.disks {
        let mut pairs = vec![format!("file={}", escaped(path_of(disk)?))];
        let interface = match disk.frontend.effective_bus() {
            TargetBus::Virtio => "virtio",
            TargetBus::Scsi => "scsi",
            TargetBus::Fdc => "floppy",
            TargetBus::Sd => "sd",
            TargetBus::Sata
            | TargetBus::Ide
            | TargetBus::Usb
            | TargetBus::Nvme
            | TargetBus::Xen
            | TargetBus::Uml => "ide",
        };
        pairs.push(format!("if={interface}"));
        let backend = &disk.backend;
        let format = backend.image().and_then(|image| image.format);
        let aio = backend.aio.map(|aio| aio.as_str());
        let words = [
            ("format", format.and_then(|format| format.qemu_driver())),
            ("cache", backend.cache.map(|mode| mode.as_str())),
            ("aio", aio),
            ("discard", backend.discard.map(|mode| mode.as_str())),
            (
                "detect-zeroes",
                backend.detect_zeroes.map(|mode| mode.as_str()),
            ),
        ];
        for (key, word) in words {
            pairs.extend(word.map(|word| format!("{key}={word}")));
        }
        let _ = write!(text, " -drive {}", quoted(&pairs.join(",")));
    }
    text.push('\n');
    Some(text)
}

fn file_names(domain: &Domain) -> Option<String> {
    let mut text = start(domain);
    // The first stands alone, which is the same as `-hda`.
    let options = ["", "-hdb ", "-hdc ", "-hdd ", "-sd "];
    for (disk, option) in domain.disks.iter().zip(options) {
        let _ = write!(text, " {option}{}", quoted(path_of(disk)?));
    }
    text.push('\n');
    Some(text)
}
