//! Files of the corpus, and what of a command line both sides can be held to: the graph of nodes below each device,
//! and the properties of devices.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value};
use vmdisk_qemu::{Options, WriteProblems};

/// A directory of the corpus, or nothing and a line that says so.
pub(crate) fn corpus(directory: &str) -> Option<PathBuf> {
    let Some(root) = std::env::var_os("VMDISK_CORPUS") else {
        vmdisk_testing::skipped_even_if_required(
            "needs VMDISK_CORPUS (a folder with libvirt's test data)",
        );
        return None;
    };
    let path = PathBuf::from(root).join(directory);
    assert!(path.is_dir(), "VMDISK_CORPUS has no {directory}");
    Some(path)
}

pub(crate) fn options(target: &str) -> Options {
    Options {
        target: target.parse().unwrap(),
    }
}

/// Files of a directory by name, those that end so.
pub(crate) fn files(directory: &PathBuf, end: &str) -> BTreeMap<String, PathBuf> {
    std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_suffix(end)?.to_owned();
            Some((name, path))
        })
        .collect()
}

/// The words of a file that is written for a shell.
pub(crate) fn shell_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut is_quoted, mut has_word) = (false, false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\'' => {
                is_quoted = !is_quoted;
                has_word = true;
            }
            _ if is_quoted => word.push(character),
            '\\' if characters.peek() == Some(&'\n') => {
                characters.next();
            }
            '\\' => word.extend(characters.next()),
            ' ' | '\n' => {
                if has_word {
                    words.push(std::mem::take(&mut word));
                }
                has_word = false;
            }
            other => {
                word.push(other);
                has_word = true;
            }
        }
    }
    words
}

/// Drivers of the devices that this crate writes for disks.
const DISKS: &[&str] = &[
    "virtio-blk-pci",
    "virtio-blk-pci-transitional",
    "virtio-blk-pci-non-transitional",
    "vhost-user-blk-pci",
    "scsi-hd",
    "scsi-cd",
    "scsi-block",
    "ide-hd",
    "ide-cd",
    "usb-storage",
    "floppy",
    "isa-fdc",
];

/// Drivers of the controllers that it writes.
const CONTROLLERS: &[&str] = &[
    "virtio-scsi-pci",
    "virtio-scsi-pci-transitional",
    "virtio-scsi-pci-non-transitional",
    "lsi53c895a",
    "megasas",
    "mptsas1068",
    "pvscsi",
    "am53c974",
    "dc390",
    "ich9-ahci",
    "piix3-usb-uhci",
    "qemu-xhci",
    "nec-usb-xhci",
    "ich9-usb-ehci1",
    "ich9-usb-uhci1",
    "ich9-usb-uhci2",
    "ich9-usb-uhci3",
    "usb-ehci",
    "pci-ohci",
    "piix4-usb-uhci",
    "vt82c686b-usb-uhci",
];

/// True for a device that this crate writes.
pub(crate) fn is_ours(driver: &str) -> bool {
    DISKS.contains(&driver) || CONTROLLERS.contains(&driver)
}

/// Where a device sits on PCI or USB, which libvirt chooses where it is not written.
pub(crate) const PLACES: &[&str] = &["bus", "addr", "multifunction", "port"];

/// The options that a command line has in common with another one for the same guest.
pub(crate) struct Line {
    nodes: BTreeMap<String, Map<String, Value>>,
    groups: BTreeMap<String, Value>,
    sockets: BTreeMap<String, String>,
    devices: Vec<Map<String, Value>>,
    objects: Vec<String>,
    /// The property of the floppy controller for the order of a drive, and the order.
    floppy_order: Vec<String>,
}

fn text<'v>(object: &'v Map<String, Value>, key: &str) -> &'v str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Newer names of devices that have two.
fn renamed(driver: &str) -> &str {
    match driver {
        "ahci" => "ich9-ahci",
        "lsi" => "lsi53c895a",
        other => other,
    }
}

impl Line {
    pub(crate) fn new(words: &[String]) -> Self {
        let mut line = Line {
            nodes: BTreeMap::new(),
            groups: BTreeMap::new(),
            sockets: BTreeMap::new(),
            devices: Vec::new(),
            objects: Vec::new(),
            floppy_order: Vec::new(),
        };
        for pair in words.windows(2) {
            let json = || match serde_json::from_str(&pair[1]) {
                Ok(Value::Object(object)) => object,
                _ => Map::new(),
            };
            match pair[0].as_str() {
                "-blockdev" => {
                    let node = json();
                    line.nodes.insert(text(&node, "node-name").to_owned(), node);
                }
                "-device" => line.device(json()),
                "-object" => line.object(json(), &pair[1]),
                "-chardev" => {
                    if let Some((id, rest)) = pair[1]
                        .strip_prefix("socket,id=")
                        .and_then(|it| it.split_once(','))
                    {
                        line.sockets.insert(id.to_owned(), rest.to_owned());
                    }
                }
                "-global" => line.global(&pair[1]),
                _ => {}
            }
        }
        line
    }

    fn device(&mut self, mut device: Map<String, Value>) {
        let driver = renamed(text(&device, "driver")).to_owned();
        if driver == "isa-fdc" {
            for key in ["bootindexA", "bootindexB"] {
                let order = device.remove(key);
                let order = order.map(|order| format!("{key}={order}"));
                self.floppy_order.extend(order);
            }
        }
        device.insert("driver".to_owned(), driver.into());
        self.devices.push(device);
    }

    fn object(&mut self, mut object: Map<String, Value>, whole: &str) {
        match text(&object, "qom-type") {
            "throttle-group" => {
                let limits = object.remove("limits").unwrap_or_default();
                self.groups.insert(text(&object, "id").to_owned(), limits);
            }
            "iothread" | "main-loop" => self.objects.push(whole.to_owned()),
            _ => {}
        }
    }

    fn global(&mut self, whole: &str) {
        if let Some(order) = whole.strip_prefix("isa-fdc.") {
            self.floppy_order.push(order.to_owned());
        } else if let Some(rest) = whole.strip_prefix("driver=isa-fdc,property=") {
            self.floppy_order.push(rest.replace(",value=", "="));
        }
    }

    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The nodes from this one down, without names, and without what each side says where it has no effect.
    pub(crate) fn graph(&self, name: &str) -> Value {
        let Some(node) = self.nodes.get(name) else {
            return format!("no node {name}").into();
        };
        let mut node = node.clone();
        node.remove("node-name");
        let driver = text(&node, "driver").to_owned();
        if node.values().any(is_of_nbdkit) || SERVED.contains(&driver.as_str()) {
            return "what nbdkit serves, or could serve".into();
        }
        // Ids that each side chooses; cookies are secrets that one of them leaves out.
        for key in ["key-secret", "password-secret", "tls-creds", "pr-manager"] {
            if let Some(id) = node.get_mut(key) {
                *id = "…".into();
            }
        }
        if let Some(encrypt) = node.get_mut("encrypt").and_then(Value::as_object_mut) {
            strip_secrets(encrypt);
        }
        node.remove("cookie-secret");
        node.remove("debug"); // a setting of qemu.conf
        let below = |key: &str| {
            let name = node.get(key)?.as_str()?;
            Some(self.graph(name))
        };
        let (file, backing, data) = (below("file"), below("backing"), below("data-file"));
        let is_plain_raw = driver == "raw"
            && !["offset", "size", "key-secret"]
                .iter()
                .any(|key| node.contains_key(*key));
        let limits = node.get("throttle-group").and_then(Value::as_str);
        if let Some(group) = limits {
            // libvirt sets the limits of one disk after the start, and has no group for them.
            if ["group-", "unnamed-group-"]
                .iter()
                .any(|it| group.starts_with(it))
                || group == format!("throttle-{}", stem_of(name))
            {
                return file.unwrap_or_default();
            }
            let limits = self.groups.get(group).cloned().unwrap_or_default();
            node.insert("throttle-group".to_owned(), limits);
        }
        let is_filter = matches!(driver.as_str(), "throttle" | "copy-on-read");
        if is_filter {
            for key in COMMON {
                node.remove(*key);
            }
        }
        if let Some(mut file) = file {
            if let Some(lower) = file.as_object_mut()
                && !is_filter
            {
                for key in ["read-only", "auto-read-only", "discard", "detect-zeroes"] {
                    lower.remove(key);
                }
                if is_plain_raw {
                    // The node decides for those below it, whether it is there or not.
                    node.remove("driver");
                    node.remove("file");
                    lower.append(&mut node);
                    return file;
                }
            }
            if is_plain_raw {
                return file;
            }
            node.insert("file".to_owned(), file);
        }
        if let Some(data) = data {
            node.insert("data-file".to_owned(), as_lower(data));
        }
        if let Some(backing) = backing {
            node.insert("backing".to_owned(), as_lower(backing));
        }
        Value::Object(node)
    }

    /// All that both sides can be held to, without these properties of devices.
    pub(crate) fn comparable(&self, ignored: &[&str]) -> Vec<String> {
        let mut lines = self.objects.clone();
        lines.extend(self.floppy_order.iter().cloned());
        for device in &self.devices {
            let driver = text(device, "driver");
            if !is_ours(driver) {
                continue;
            }
            let mut device = device.clone();
            device.retain(|key, _| !ignored.contains(&key.as_str()));
            lines.push(self.of_device(device));
        }
        lines.sort();
        lines
    }

    fn of_device(&self, mut device: Map<String, Value>) -> String {
        let driver = text(&device, "driver").to_owned();
        if let Some(node) = device.get("drive").and_then(Value::as_str) {
            device.insert("drive".to_owned(), self.graph(node));
        }
        if let Some(socket) = device.get("chardev").and_then(Value::as_str) {
            let socket = self.sockets.get(socket).cloned().unwrap_or_default();
            device.insert("chardev".to_owned(), socket.into());
        }
        if text(&device, "device_id").starts_with("drive-") {
            device.remove("device_id"); // what QEMU makes up for a -drive
        }
        if let Some(serial) = device.get_mut("serial") {
            // libvirt escapes a space with a backslash, and the guest sees it.
            *serial = text_of(serial).replace("\\ ", " ").into();
        }
        if driver == "usb-storage" && device.get("removable") == Some(&Value::Bool(false)) {
            device.remove("removable");
        }
        if matches!(driver.as_str(), "floppy" | "isa-fdc") {
            device.remove("bus");
        }
        let is_controller = CONTROLLERS.contains(&driver.as_str());
        if !is_controller && !text(&device, "id").starts_with("ua-") {
            device.remove("id"); // each side's own name
        }
        Value::Object(device).to_string()
    }
}

/// The disk in one of our names of nodes.
fn stem_of(name: &str) -> &str {
    name.split('-').next().unwrap_or_default()
}

/// Options that every node has.
const COMMON: &[&str] = &[
    "read-only",
    "auto-read-only",
    "discard",
    "detect-zeroes",
    "cache",
];

/// Drivers that libvirt replaces where nbdkit is installed, and these tests say that it is.
const SERVED: &[&str] = &["http", "https", "ftp", "ftps", "ssh"];

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn is_of_nbdkit(value: &Value) -> bool {
    value
        .get("path")
        .is_some_and(|path| text_of(path).contains("/nbdkit-"))
}

fn strip_secrets(encrypt: &mut Map<String, Value>) {
    for (key, value) in encrypt {
        match value {
            Value::Object(parent) => strip_secrets(parent),
            value if key == "key-secret" => *value = "…".into(),
            _ => {}
        }
    }
}

/// An image below another, which is opened for reading by either word; only the top decides about zeroes.
fn as_lower(mut graph: Value) -> Value {
    if let Some(node) = graph.as_object_mut() {
        for key in ["read-only", "auto-read-only", "detect-zeroes"] {
            node.remove(key);
        }
    }
    graph
}

/// What libvirt does itself, or writes although QEMU refuses it, and we refuse.
const REFUSED: &[&str] = &["a transient disk needs", "an IDE disk needs a bus"];

/// True if we refuse the guest for nothing but these reasons.
pub(crate) fn is_refused(problems: &WriteProblems) -> bool {
    let is_known = |message: &str| REFUSED.iter().any(|known| message.starts_with(known));
    problems.0.iter().all(|problem| is_known(&problem.message))
}

/// The lines of each that the other lacks.
pub(crate) fn differences(ours: &[String], expected: &[String]) -> String {
    let lacks = expected.iter().filter(|option| !ours.contains(option));
    let more = ours.iter().filter(|option| !expected.contains(option));
    let lines: Vec<String> = lacks
        .map(|option| format!("  libvirt's {option}"))
        .chain(more.map(|option| format!("  ours      {option}")))
        .collect();
    lines.join("\n")
}
