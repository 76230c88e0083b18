//! The spelling of settings on a command line, according to the options of its disks.

use std::collections::BTreeMap;

use vmdisk_facts::{MemberTable, Owner, Version};
use vmdisk_fields::{FirstReleases, Setting, Speller, Spelling, controller, disk, image};
use vmdisk_model::{
    AioMode, CacheMode, Device, DiskField, DomainField, FieldPath, FieldValue, Format, ImageField,
    IoThreadField, IoThreadId, TargetBus,
};
use vmdisk_source::Span;

use crate::device::driver::disk_driver;
use crate::device::recorded::device_owner;
use crate::document::Document;
use crate::edits::{Put, puts, written_key};
use crate::file_name;
use crate::slots::{NewValue, SlotOption};
use crate::syntax::properties::Syntax;

/// Spells settings as the values of options: `cache=none` of a `-drive`, `cache.direct=on` of a node.
#[derive(Clone, Copy, Debug)]
pub struct CommandLineSpeller<'d> {
    /// The command line.
    pub document: &'d Document,
    /// The source text.
    pub text: &'d str,
}

impl Speller for CommandLineSpeller<'_> {
    fn disk(&self, nth: usize) -> String {
        let written = self.written(FieldPath::Disk(nth, DiskField::TargetDev));
        let name = written.or_else(|| Some(self.document.domain.disks.get(nth)?.name()));
        name.map_or_else(|| format!("disk {nth}"), |name| format!("`{name}`"))
    }

    fn controller(&self, nth: usize) -> String {
        let kind = self
            .document
            .domain
            .controllers
            .get(nth)
            .map(|it| it.controller_type);
        let kind = kind.map_or("", |kind| kind.as_str());
        let option = self.document.slots.controller.get(&nth);
        match option.and_then(|option| self.name_of(*option)) {
            Some(name) => format!("{kind} controller `{name}`"),
            None => format!("{kind} controller without an id"),
        }
    }

    fn iothread(&self, id: IoThreadId) -> String {
        format!("`{}`", self.document.iothread_name(id))
    }

    fn settings(&self, settings: &[Setting]) -> Option<String> {
        let mut parts: Vec<String> = Vec::new();
        let mut values: Vec<Put> = Vec::new();
        let mut of_new_device: Vec<String> = Vec::new();
        for setting in settings {
            // A command line does not name targets; the target belongs to the device.
            let is_target = matches!(setting.at, FieldPath::Disk(_, DiskField::TargetDev));
            if is_target && settings.len() > 1 || self.is_part_of_new_memory(setting, settings) {
                continue;
            }
            match puts(self.document, setting.at, &setting.value) {
                Some(mut found) => {
                    self.keep_decisive(setting, &mut found);
                    values.append(&mut found);
                }
                None => match self.property_of_new_device(setting) {
                    Some(property) => of_new_device.push(property),
                    None => parts.push(self.option_for(setting)?),
                },
            }
        }
        if let Some(Setting {
            at: FieldPath::Disk(nth, _),
            ..
        }) = settings.first()
            && let Some(device) = self.device_of_drive(*nth)
            && !of_new_device.is_empty()
        {
            let properties = of_new_device.join(",");
            parts.push(format!(
                "`if=none,id=ID` with `-device {device},drive=ID,{properties}`"
            ));
        }
        let mut by_option: BTreeMap<usize, Vec<Put>> = BTreeMap::new();
        for put in values {
            by_option.entry(put.option).or_default().push(put);
        }
        let are_several = by_option.len() > 1;
        for (option, puts) in by_option {
            parts.push(self.values_of(option, &puts, are_several)?);
        }
        Some(parts.join(" and "))
    }

    fn field(&self, at: FieldPath) -> Option<String> {
        let named = |name: &str| Some(format!("`{name}`"));
        if let Some((option, key)) = written_key(self.document, at) {
            let options = &self.document.slots.options;
            let is_pair = |slot: &SlotOption| slot.values.contains_key(&key);
            if !matches!(at, FieldPath::Disk(_, DiskField::Cache))
                || options.get(&option).is_some_and(is_pair)
            {
                return named(&key);
            }
        }
        match at {
            FieldPath::Disk(_, DiskField::Disk) => named("-device"),
            FieldPath::Disk(_, DiskField::Cache) => named("cache"),
            FieldPath::Disk(_, DiskField::Address) => named("addr"),
            FieldPath::Disk(_, DiskField::TargetDev) => named("id"),
            FieldPath::Disk(_, DiskField::ReadOnly) => named("read-only"),
            FieldPath::Disk(_, DiskField::Transient) => named("snapshot"),
            FieldPath::Disk(_, field) => named(disk(field).node?),
            FieldPath::Controller(_, field) => named(controller(field).virtio_scsi?),
            FieldPath::Image(nth, _, ImageField::Format) => named(if self.is_blockdev(nth) {
                "driver"
            } else {
                "format"
            }),
            FieldPath::Image(nth, _, ImageField::Path) => named(if self.is_blockdev(nth) {
                "filename"
            } else {
                "file"
            }),
            FieldPath::Image(_, 1.., ImageField::Image) => named("backing"),
            FieldPath::Image(_, _, ImageField::DataFile) => named("data-file"),
            FieldPath::Image(_, _, field) => named(image(field).node?),
            FieldPath::Domain(field) => named(domain_option(field)?),
            FieldPath::IoThread(_, IoThreadField::IoThread) => named("-object iothread"),
            _ => None,
        }
    }

    fn first_releases(&self, setting: &Setting) -> FirstReleases {
        let mut first = FirstReleases::default();
        if self.is_current(setting) {
            return first;
        }
        let Some(mut puts) = puts(self.document, setting.at, &setting.value) else {
            return first;
        };
        self.keep_decisive(setting, &mut puts);
        for put in &puts {
            let release = self.slot(put.option).and_then(|slot| {
                let (owner, name) = member_of(slot, self.text, &put.key)?;
                MemberTable::recorded().first_release(owner, name)
            });
            let qemu = release.map(|Version(major, minor, micro)| (major, minor, micro));
            first = first.and(FirstReleases::of(None, qemu));
        }
        first
    }
}

/// The device, node or object that a value of an option belongs to, and its name there.
fn member_of<'s>(
    slot: &'s SlotOption,
    text: &'s str,
    key: &'s str,
) -> Option<(Owner<'s>, &'s str)> {
    match slot.name.as_str() {
        "device" => Some((device_owner(&slot.driver)?, key)),
        "object" => {
            let kind = slot.values.get("qom-type")?;
            Some((Owner::Object(kind.span.slice(text)?), key))
        }
        "blockdev" => {
            let ends = key.rmatch_indices('.').map(|(end, _)| end);
            let inner = ends.into_iter().find_map(|end| {
                let driver = slot.values.get(&format!("{}.driver", &key[..end]))?;
                Some((Owner::Node(driver.span.slice(text)?), &key[end + 1..]))
            });
            inner.or(Some((Owner::Node(&slot.driver), key)))
        }
        // Options of the image's format; those of the drive itself are in every release.
        "drive" => {
            let format = slot.values.get("driver").or(slot.values.get("format"))?;
            Some((Owner::Node(format.span.slice(text)?), key))
        }
        _ => None,
    }
}

/// The option that sets a field of the guest.
const fn domain_option(field: DomainField) -> Option<&'static str> {
    Some(match field {
        DomainField::Name => "-name",
        DomainField::Uuid => "-uuid",
        DomainField::DomainType => "-accel",
        DomainField::Machine => "-machine",
        DomainField::Vcpus => "-smp",
        DomainField::Memory => "-m",
        DomainField::IoThreads | DomainField::IoThreadIds => "-object iothread",
        DomainField::MemoryBacking | DomainField::MemorySource => "-object memory-backend",
        DomainField::MemoryAccess => "share",
        DomainField::HugePages => "hugetlb",
        _ => return None,
    })
}

impl CommandLineSpeller<'_> {
    fn slice(&self, span: Span) -> &str {
        span.slice(self.text).unwrap_or_default()
    }

    /// The text at the place of a field.
    fn written(&self, at: FieldPath) -> Option<&str> {
        let place = self.document.source_map.place(at)?;
        Some(self.slice(place.span)).filter(|text| !text.is_empty())
    }

    fn slot(&self, option: usize) -> Option<&SlotOption> {
        self.document.slots.options.get(&option)
    }

    fn is_blockdev(&self, nth: usize) -> bool {
        let top = self.document.slots.top.get(&nth);
        top.and_then(|top| self.slot(*top))
            .is_some_and(|slot| slot.name == "blockdev")
    }

    /// The id or node name of an option.
    fn name_of(&self, option: usize) -> Option<&str> {
        let values = &self.slot(option)?.values;
        let name = values.get("node-name").or_else(|| values.get("id"))?;
        Some(self.slice(name.span))
    }

    /// True if the document has this value already.
    fn is_current(&self, setting: &Setting) -> bool {
        self.document.domain.value(setting.at).as_ref() == Some(&setting.value)
    }

    /// Keeps the values that differ: of an existing setting those that are not QEMU's defaults; of a new one those that
    /// are not set yet. If none differs, keeps all.
    fn keep_decisive(&self, setting: &Setting, puts: &mut Vec<Put>) {
        let is_current = self.is_current(setting);
        let is_decisive = |put: &Put| {
            let written = self
                .slot(put.option)
                .and_then(|slot| slot.values.get(&put.key));
            let is_default = is_default(put);
            match written {
                Some(_) if is_current => !is_default,
                Some(written) => {
                    let text = self.slice(written.span);
                    text != put.value.text(true) && text != put.value.text(false)
                }
                None => !is_current && !is_default,
            }
        };
        if puts.iter().any(is_decisive) {
            puts.retain(is_decisive);
        } else if is_current {
            let is_written = |put: &Put| {
                self.slot(put.option)
                    .is_some_and(|slot| slot.values.contains_key(&put.key))
            };
            if puts.iter().any(is_written) {
                puts.retain(is_written);
            }
        }
    }

    /// The word after an option if it is a variable alone, such as `"$DISK"`.
    fn variable_after(&self, option: usize) -> Option<&str> {
        let option = self.document.options.get(option)?.span;
        let word = self.text.get(option.end..)?.split_whitespace().next()?;
        let bare = word.trim_matches('"').strip_prefix('$')?;
        let name = bare
            .strip_prefix('{')
            .and_then(|it| it.strip_suffix('}'))
            .or_else(|| bare.strip_prefix('(')?.strip_suffix(')'))
            .unwrap_or(bare);
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        (!name.is_empty() && name.bytes().all(is_name)).then_some(word)
    }

    /// Values of one option; names the option if it would be ambiguous.
    fn values_of(&self, option: usize, puts: &[Put], are_several: bool) -> Option<String> {
        let slot = self.slot(option)?;
        let pairs = |separator: &str, pair: &dyn Fn(&Put) -> String| {
            puts.iter().map(pair).collect::<Vec<_>>().join(separator)
        };
        let plain = |put: &Put| format!("{}={}", put.key, put.value.text(false));
        let text = match &slot.syntax {
            Syntax::FileName => {
                let file = slot.values.get("file").and_then(|file| {
                    match self.document.is_shared(file.span) {
                        true => self.variable_after(option),
                        false => Some(self.slice(file.span)).filter(|it| file_name::is_plain(it)),
                    }
                });
                let drive = file_name::drive_of(&slot.name, file.unwrap_or("FILE"))?;
                let drive = format!("`-drive {drive},{}`", pairs(",", &plain));
                return Some(match slot.name.as_str() {
                    "" => format!("{drive} instead of the file name alone"),
                    name => format!("{drive} instead of `-{name}`"),
                });
            }
            Syntax::Pairs { .. } => pairs(",", &plain),
            Syntax::Lines { .. } => pairs("` and `", &|put| {
                format!("{} = \"{}\"", put.key, put.value.text(false))
            }),
            Syntax::Json { .. } => pairs(", ", &as_json),
        };
        let name = self.name_of(option);
        Some(match (slot.name.as_str(), name) {
            ("blockdev", Some(name)) => format!("`{text}` on node `{name}`"),
            ("device", Some(name)) if are_several => format!("`{text}` on device `{name}`"),
            ("device", None) if are_several => format!("`{text}` on the device"),
            ("object", Some(name)) => format!("`{text}` on object `{name}`"),
            _ => format!("`{text}`"),
        })
    }

    /// The option for a setting that needs more than a value of an existing option.
    fn option_for(&self, setting: &Setting) -> Option<String> {
        let Setting { at, value } = setting;
        let text = match (at, value) {
            (FieldPath::Domain(DomainField::DomainType), value) => {
                let word = if value.to_string() == "qemu" {
                    "tcg".to_owned()
                } else {
                    value.to_string()
                };
                let place = self.document.source_map.place(*at);
                let is_of_machine = place.is_some_and(|place| {
                    let before = self.text.get(..place.span.start).unwrap_or_default();
                    before.ends_with(",accel=")
                });
                if is_of_machine {
                    format!("accel={word}")
                } else {
                    format!("-accel {word}")
                }
            }
            (FieldPath::Domain(DomainField::Vcpus), value) => format!("-smp {value}"),
            (FieldPath::Domain(DomainField::Machine), value) => format!("-machine {value}"),
            (FieldPath::Domain(DomainField::IoThreads), FieldValue::Number(number)) => {
                let is_more = *number as usize > self.document.domain.iothreads.len();
                let id = is_more.then_some(IoThreadId(*number))?;
                format!("-object iothread,id={}", self.document.iothread_name(id))
            }
            (FieldPath::Disk(nth, DiskField::TargetBus), FieldValue::Word(word)) => {
                self.device_on(*nth, TargetBus::from_word(word)?)?
            }
            (FieldPath::Disk(nth, DiskField::Device), FieldValue::Word(word)) => {
                self.driver_of(*nth, Device::from_word(word)?).to_owned()
            }
            (FieldPath::Disk(nth, DiskField::ReadOnly), FieldValue::Set) => {
                self.is_on_nodes(*nth).then(|| "read-only=on".to_owned())?
            }
            (FieldPath::Disk(nth, DiskField::Transient), FieldValue::Set) => {
                (!self.is_blockdev(*nth)).then(|| "snapshot=on".to_owned())?
            }
            (FieldPath::Image(nth, depth, ImageField::Format), FieldValue::Word(word)) => {
                self.format_option(*nth, *depth, Format::from_word(word)?.qemu_driver()?)
            }
            // The nodes are nested below the option's own, which is a filter.
            (
                FieldPath::Disk(_, field @ (DiskField::Discard | DiskField::DetectZeroes)),
                FieldValue::Word(word),
            ) => {
                return Some(format!("`{}={word}` on the nodes of the image", disk(*field).node?));
            }
            (FieldPath::Image(nth, 0, ImageField::Path), FieldValue::Text(path)) => {
                return self.path_option(*nth, path);
            }
            (FieldPath::Disk(nth, DiskField::SourceType), FieldValue::Text(word)) => {
                let driver = match word.as_str() {
                    "block" => "host_device",
                    "file" => "file",
                    _ => return None,
                };
                let key = if self.is_blockdev(*nth) { "driver" } else { "file.driver" };
                format!("{key}={driver}")
            }
            (FieldPath::Domain(DomainField::HugePages), FieldValue::Set) => {
                "-object memory-backend-memfd,hugetlb=on".to_owned()
            }
            (FieldPath::Domain(DomainField::MemoryAccess), FieldValue::Word("shared")) => {
                "-object memory-backend-memfd,id=memory,size=SIZE,share=on` and `-machine memory-backend=memory"
                    .to_owned()
            }
            (FieldPath::Domain(DomainField::MemorySource), FieldValue::Word(word)) => match *word {
                "memfd" => "-object memory-backend-memfd".to_owned(),
                "file" => "-object memory-backend-file".to_owned(),
                _ => return None,
            },
            _ => return None,
        };
        Some(format!("`{text}`"))
    }

    /// The driver of a disk as another kind of device.
    fn driver_of(&self, nth: usize, device: Device) -> &'static str {
        let bus = self.document.domain.disks[nth].frontend.effective_bus();
        match device {
            Device::Cdrom if matches!(bus, TargetBus::Ide | TargetBus::Sata) => "ide-cd",
            Device::Lun => "scsi-block",
            Device::Disk => "scsi-hd",
            Device::Cdrom => "scsi-cd",
            Device::Floppy => "floppy",
        }
    }

    /// The value that opens another file.
    fn path_option(&self, nth: usize, path: &str) -> Option<String> {
        let option = *self.document.slots.bottom.get(&nth)?;
        let slot = self.slot(option)?;
        if matches!(slot.syntax, Syntax::FileName) {
            return Some(format!("`{path}`"));
        }
        let mut keys = ["filename", "file.filename", "file"].into_iter();
        let put = Put {
            option,
            key: keys.find(|key| slot.values.contains_key(*key))?.to_owned(),
            value: NewValue::Word(path.to_owned()),
        };
        self.values_of(option, &[put], false)
    }

    /// The property for a setting of a device that a `-drive` creates, which only a `-device` can have.
    fn property_of_new_device(&self, Setting { at, value }: &Setting) -> Option<String> {
        let FieldPath::Disk(nth, field) = *at else {
            return None;
        };
        let model = disk_driver(self.device_of_drive(nth)?)?.model;
        let Spelling::Named(key) = disk(field).spelling(model) else {
            return None;
        };
        match value {
            FieldValue::Set => Some(format!("{key}=on")),
            FieldValue::Number(number) => Some(format!("{key}={number}")),
            FieldValue::Size(size) => Some(format!("{key}={}", size.0)),
            _ => None,
        }
    }

    /// The options that give an image a format, where that takes more than a value of an option.
    fn format_option(&self, nth: usize, depth: usize, driver: &str) -> String {
        match self.bare_node(nth).filter(|_| depth == 0) {
            Some(node) if driver == "raw" => format!("drive={node}"),
            Some(node) => {
                let image = format!("{node}-image");
                format!(
                    "-blockdev driver={driver},node-name={image},file={node}` with `drive={image}"
                )
            }
            None => format!("driver={driver}"),
        }
    }

    /// The name of a disk's node, if it is a protocol node without a node for the format.
    fn bare_node(&self, nth: usize) -> Option<&str> {
        let top = *self.document.slots.top.get(&nth)?;
        let slot = self.slot(top).filter(|slot| slot.name == "blockdev")?;
        let is_protocol = matches!(slot.driver.as_str(), "file" | "host_device");
        self.name_of(top).filter(|_| is_protocol)
    }

    /// The device that a `-drive` creates for a disk, if it has no `-device`.
    fn device_of_drive(&self, nth: usize) -> Option<&'static str> {
        let slots = &self.document.slots;
        if slots.device.contains_key(&nth) || self.is_blockdev(nth) {
            return None;
        }
        match self
            .document
            .domain
            .disks
            .get(nth)?
            .frontend
            .effective_bus()
        {
            TargetBus::Virtio => Some("virtio-blk-pci"),
            TargetBus::Scsi => Some("scsi-hd"),
            TargetBus::Ide | TargetBus::Sata => Some("ide-hd"),
            _ => None,
        }
    }

    /// True for memory that needs a new object with all its properties.
    fn is_part_of_new_memory(&self, setting: &Setting, settings: &[Setting]) -> bool {
        let at = |field| FieldPath::Domain(field);
        setting.at == at(DomainField::MemorySource)
            && self.document.slots.memory.is_empty()
            && settings
                .iter()
                .any(|other| other.at == at(DomainField::MemoryAccess))
    }

    fn is_on_nodes(&self, nth: usize) -> bool {
        self.document.slots.top.contains_key(&nth)
    }

    /// The device of a disk on another bus; for a `-drive` that creates its device, the interface.
    fn device_on(&self, nth: usize, bus: TargetBus) -> Option<String> {
        let Some(device) = self.document.slots.device.get(&nth) else {
            return Some(match bus {
                TargetBus::Virtio => "if=virtio".to_owned(),
                TargetBus::Ide | TargetBus::Sata => "if=ide".to_owned(),
                _ => return None,
            });
        };
        let driver = &self.slot(*device)?.driver;
        let is_cd = disk_driver(driver).is_some_and(|it| it.device == Device::Cdrom);
        let transport = ["ccw", "device"]
            .into_iter()
            .find(|end| driver.ends_with(&format!("-{end}")));
        Some(match bus {
            TargetBus::Virtio => format!("virtio-blk-{}", transport.unwrap_or("pci")),
            TargetBus::Scsi if is_cd => "scsi-cd".to_owned(),
            TargetBus::Scsi => "scsi-hd".to_owned(),
            TargetBus::Sata | TargetBus::Ide if is_cd => "ide-cd".to_owned(),
            TargetBus::Sata | TargetBus::Ide => "ide-hd".to_owned(),
            TargetBus::Usb => "usb-storage".to_owned(),
            TargetBus::Nvme => "nvme".to_owned(),
            TargetBus::Fdc => "floppy".to_owned(),
            TargetBus::Sd => "sd-card".to_owned(),
            TargetBus::Xen | TargetBus::Uml => return None,
        })
    }
}

/// True for a value that is QEMU's default.
fn is_default(put: &Put) -> bool {
    match put.key.rsplit('.').next().unwrap_or_default() {
        "direct" | "no-flush" => put.value == NewValue::Bool(false),
        "writeback" => put.value == NewValue::Bool(true),
        "write-cache" => put.value == NewValue::Word("on".to_owned()),
        "cache" => put.value == NewValue::Word(CacheMode::Writeback.as_str().to_owned()),
        "aio" => put.value == NewValue::Word(AioMode::Threads.as_str().to_owned()),
        _ => false,
    }
}

/// A member of a JSON object.
fn as_json(put: &Put) -> String {
    let value = put.value.text(true);
    let value = if put.value.is_quoted() {
        format!("\"{value}\"")
    } else {
        value.to_owned()
    };
    let mut members = put.key.rsplit('.');
    let last = members.next().unwrap_or_default();
    let inner = format!("\"{last}\": {value}");
    members.fold(inner, |inside, outer| format!("\"{outer}\": {{{inside}}}"))
}
