//! One guest in every syntax that is read.

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
        ..QemuOptions::default()
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
    }
    if let Ok(file) = write::qemu_config_file(domain, &options) {
        forms.push((Syntax::Drive, as_words(&file.text)));
        forms.push((Syntax::ConfigFile, file.text));
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

/// The groups of a configuration file as options.
fn as_words(file: &str) -> String {
    let mut text = "qemu-system-x86_64".to_owned();
    let mut option: Option<(String, Vec<String>)> = None;
    let mut end = |option: &mut Option<(String, Vec<String>)>| {
        if let Some((name, pairs)) = option.take() {
            let name = match name.as_str() {
                "memory" => "m",
                "smp-opts" => "smp",
                "boot-opts" => "boot",
                name => name,
            };
            let _ = write!(text, " -{name} {}", quoted(&pairs.join(",")));
        }
    };
    for line in file.lines() {
        let line = line.trim();
        if let Some(group) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            end(&mut option);
            let (name, id) = group.split_once(' ').unwrap_or((group, ""));
            let id = id.trim_matches('"');
            let ids = Some(format!("id={}", escaped(id))).filter(|_| !id.is_empty());
            option = Some((name.to_owned(), ids.into_iter().collect()));
        } else if let (Some((key, value)), Some((_, pairs))) =
            (line.split_once(" = "), option.as_mut())
        {
            let value = value.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
            pairs.push(format!("{key}={}", escaped(value.unwrap_or_default())));
        }
    }
    end(&mut option);
    text.push('\n');
    text
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
        let aio = backend.aio.map(|aio| aio.as_wire());
        let words = [
            ("format", format.and_then(|format| format.qemu_driver())),
            ("cache", backend.cache.map(|mode| mode.as_wire())),
            ("aio", aio),
            ("discard", backend.discard.map(|mode| mode.as_wire())),
            (
                "detect-zeroes",
                backend.detect_zeroes.map(|mode| mode.as_wire()),
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
