//! `<qemu:commandline>`: arguments that libvirt passes to QEMU unread.

use vmdisk_source::Span;

use crate::xml::Node;

/// The arguments of a guest that libvirt does not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passthrough {
    /// The arguments, in order.
    pub arguments: Vec<String>,
    /// True if QEMU also gets variables of the environment.
    pub has_environment: bool,
    /// Those arguments that are options with the storage of a disk, each with its value and the span of its element.
    pub disks: Vec<(String, String, Span)>,
    /// The values of `-device`, each with the span of its element.
    pub devices: Vec<(String, Span)>,
    /// The values of `-set` for devices that no argument before it has, each with the span of its element.
    pub settings: Vec<(String, Span)>,
    /// Options of disks and devices that are one argument with their value, each with the span of its element.
    pub joined: Vec<(String, Span)>,
}

/// Options of QEMU that describe the storage of a disk.
const OPTIONS: [&str; 10] = [
    "blockdev", "cdrom", "drive", "fda", "fdb", "hda", "hdb", "hdc", "hdd", "sd",
];

/// Reads the arguments of a `<domain>`.
pub(crate) fn read(domain: Node<'_>) -> Passthrough {
    let mut found = Passthrough::default();
    let lines = domain
        .children()
        .filter(|node| is_named(*node, "commandline"));
    for node in lines.flat_map(Node::children) {
        found.has_environment |= is_named(node, "env");
        let Some(word) = node.attribute("value").filter(|_| is_named(node, "arg")) else {
            continue;
        };
        let before = found.arguments.last().map(String::as_str);
        let option = before.and_then(|before| before.strip_prefix('-'));
        match option.map(|it| it.trim_start_matches('-')) {
            Some("device") => found.devices.push((word.to_owned(), node.tag())),
            Some("set") if !found.has_device_of(word) => {
                found.settings.push((word.to_owned(), node.tag()));
            }
            _ => {}
        }
        match found.disks.last_mut() {
            Some((option, value, _)) if before == Some(option) && value.is_empty() => {
                value.push_str(word);
            }
            _ => {}
        }
        let option = word.strip_prefix('-').map(|it| it.trim_start_matches('-'));
        let first = option
            .and_then(|it| it.split_once(' '))
            .map(|(first, _)| first);
        let is_value = before.is_some_and(|before| before.starts_with('-'));
        found.arguments.push(word.to_owned());
        if let Some(first) =
            first.filter(|it| !is_value && (OPTIONS.contains(it) || *it == "device"))
        {
            found.joined.push((format!("-{first}"), node.tag()));
        }
        if option.is_some_and(|option| OPTIONS.contains(&option)) {
            found
                .disks
                .push((word.to_owned(), String::new(), node.tag()));
        }
    }
    found
}

impl Passthrough {
    /// True if an argument has the device that a value of `-set` is about.
    fn has_device_of(&self, setting: &str) -> bool {
        let id = device_setting(setting).map(|(id, ..)| id);
        let mut devices = self.devices.iter();
        id.is_some() && devices.any(|(device, _)| part(device, "id") == id)
    }

    /// The driver of the device that uses the storage with this value of an option.
    pub(crate) fn device_of(&self, storage: &str) -> Option<&str> {
        let name = part(storage, "id").or_else(|| part(storage, "node-name"))?;
        let mut devices = self.devices.iter();
        let (device, _) = devices.find(|(device, _)| part(device, "drive") == Some(name))?;
        device.split(',').next()
    }
}

/// The id, the property and the value of `device.ID.PROPERTY=VALUE`, as QEMU splits it.
pub(crate) fn device_setting(setting: &str) -> Option<(&str, &str, &str)> {
    let (place, value) = setting.strip_prefix("device.")?.split_once('=')?;
    let (id, property) = place.split_once('.')?;
    Some((id, property, value))
}

/// The value of a key in `key=value,…`.
pub(crate) fn part<'v>(value: &'v str, key: &str) -> Option<&'v str> {
    let mut parts = value.split(',');
    parts.find_map(|part| part.strip_prefix(key)?.strip_prefix('='))
}

/// True for an element of this name, whatever its prefix is.
fn is_named(node: Node<'_>, name: &str) -> bool {
    node.name()
        .split_once(':')
        .is_some_and(|(_, local)| local == name)
}
