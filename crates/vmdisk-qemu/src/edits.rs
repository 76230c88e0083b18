//! Fixes: turns changes of the model into minimal edits of the command line.

use vmdisk_fields::{Label, Spelling, controller, disk};
use vmdisk_model::{
    CacheMode, Change, DiskField, DomainField, FieldKind, FieldPath, FieldValue, Format,
    ImageField, Switch,
};
use vmdisk_source::Edit;

use crate::device::driver::disk_driver;
use crate::document::Document;
use crate::slots::{NewValue, SlotValue, Slots, insertion};
use crate::syntax::properties::{Kind, Syntax};

/// The reason why edits cannot make a change: it needs more than the values of existing options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` cannot be changed by editing a value", .0.label())]
pub struct CannotEdit(pub FieldPath);

/// The edits for several changes.
///
/// # Errors
/// Fails at the first change that needs more than the values of a few properties: another bus, another name, memory
/// that is not configured.
pub fn edits_of_all(document: &Document, changes: &[Change]) -> Result<Vec<Edit>, CannotEdit> {
    let mut edits = Vec::new();
    for change in changes {
        let (at, done) = match change {
            Change::Set { at, value } => (
                at,
                puts(document, *at, value).and_then(|puts| make(document, &puts, &mut edits)),
            ),
            Change::Remove { at } => (at, remove(document, *at).map(|edit| edits.push(edit))),
        };
        done.ok_or(CannotEdit(*at))?;
    }
    Ok(edits)
}

/// A value to write in an option.
#[derive(Clone, Debug)]
pub(crate) struct Put {
    /// The option that contains it.
    pub(crate) option: usize,
    /// The key, dotted: `cache.direct`.
    pub(crate) key: String,
    /// The value.
    pub(crate) value: NewValue,
}

/// The values that set a field of the model; `None` if it needs more than values of existing options.
pub(crate) fn puts(document: &Document, at: FieldPath, value: &FieldValue) -> Option<Vec<Put>> {
    let mut plan = PutPlan {
        slots: &document.slots,
        puts: Vec::new(),
    };
    let text = match value {
        FieldValue::IoThread(id) => document.iothread_name(*id),
        FieldValue::Size(size) => size.0.to_string(),
        _ => value.to_string(),
    };
    if !is_plain(&text) {
        return None;
    }
    plan.set(at, &text)?;
    Some(plan.puts)
}

/// The edits that write some values.
fn make(document: &Document, puts: &[Put], edits: &mut Vec<Edit>) -> Option<()> {
    let mut rest = puts;
    while let Some((first, others)) = rest.split_first() {
        let slot = document.slots.options.get(&first.option)?;
        let outer = first.key.split_once('.').map(|(outer, _)| outer);
        // Members of a new object are written together.
        let is_new_object = matches!(slot.syntax, Syntax::Json { .. })
            && outer.is_some_and(|outer| !slot.values.keys().any(|key| is_inside(key, outer)));
        let together = match outer.filter(|_| is_new_object) {
            Some(outer) => others
                .iter()
                .take_while(|put| put.option == first.option && is_inside(&put.key, outer))
                .count(),
            None => 0,
        };
        let edit = match (slot.values.get(&first.key), &slot.syntax) {
            (Some(written), _) => replacement(written, &first.value)?,
            (None, Syntax::Json { end, quote }) if together > 0 => {
                Edit::insert(*end, json_object(&rest[..=together], quote)?)
            }
            (None, _) => insertion(&slot.syntax, &slot.values, &first.key, &first.value)?,
        };
        // Insertions at the same position are merged, because edits must not overlap.
        let is_same = |other: &&mut Edit| edit.span.is_empty() && other.span == edit.span;
        match edits.iter_mut().find(is_same) {
            Some(other) => other.text.push_str(&edit.text),
            None => edits.push(edit),
        }
        rest = &others[together..];
    }
    Some(())
}

fn is_inside(key: &str, object: &str) -> bool {
    key.strip_prefix(object)
        .is_some_and(|rest| rest.starts_with('.'))
}

/// A new object with these members, after the existing ones.
fn json_object(puts: &[Put], q: &str) -> Option<String> {
    let (outer, _) = puts.first()?.key.split_once('.')?;
    let members = puts.iter().map(|put| {
        let (_, inner) = put.key.split_once('.')?;
        let value = put.value.text(true);
        let value = if put.value.is_quoted() {
            format!("{q}{value}{q}")
        } else {
            value.to_owned()
        };
        Some(format!("{q}{inner}{q}:{value}"))
    });
    let members: Vec<String> = members.collect::<Option<_>>()?;
    Some(format!(",{q}{outer}{q}:{{{}}}", members.join(",")))
}

/// Replaces a value.
fn replacement(written: &SlotValue, value: &NewValue) -> Option<Edit> {
    // `file=json:{…}` has JSON inside key=value.
    let is_json = !matches!(written.kind, Kind::Plain);
    if is_json && (written.kind == Kind::Text) != value.is_quoted() {
        return None;
    }
    Some(Edit::replace(written.span, value.text(is_json)))
}

fn remove(document: &Document, at: FieldPath) -> Option<Edit> {
    let (option, key) = written_key(document, at)?;
    let written = document.slots.options.get(&option)?.values.get(&key)?;
    Some(Edit::delete(written.whole))
}

/// The option and the key of a field that is one property.
pub(crate) fn written_key(document: &Document, at: FieldPath) -> Option<(usize, String)> {
    let plan = PutPlan {
        slots: &document.slots,
        puts: Vec::new(),
    };
    match at {
        FieldPath::Disk(nth, field) => plan
            .device_key(nth, field)
            .map(|(option, key)| (option, key.to_owned())),
        FieldPath::Controller(nth, field) => {
            let option = *document.slots.controller.get(&nth)?;
            Some((option, controller(field).virtio_scsi?.to_owned()))
        }
        _ => None,
    }
}

/// True for a word without special meaning in a shell, in JSON and in key=value.
fn is_plain(value: &str) -> bool {
    !value.is_empty()
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

struct PutPlan<'d> {
    slots: &'d Slots,
    puts: Vec<Put>,
}

impl PutPlan<'_> {
    fn set(&mut self, at: FieldPath, value: &str) -> Option<()> {
        match at {
            FieldPath::Disk(nth, field) => self.set_disk(nth, field, value),
            FieldPath::Controller(nth, field) => {
                let option = *self.slots.controller.get(&nth)?;
                let row = controller(field);
                let value = match row.kind? {
                    FieldKind::Number => NewValue::Number(value.to_owned()),
                    FieldKind::Switch => NewValue::Bool(Switch::from_word(value)? == Switch::On),
                    FieldKind::IoThread => NewValue::Word(value.to_owned()),
                    _ => return None,
                };
                self.put(option, row.virtio_scsi?, value)
            }
            FieldPath::Domain(DomainField::MemoryAccess) => {
                let objects = &self.slots.memory;
                for object in objects {
                    self.put(*object, "share", NewValue::Bool(value == "shared"))?;
                }
                (!objects.is_empty()).then_some(())
            }
            FieldPath::Image(nth, 0, ImageField::Format) => {
                let top = *self.slots.top.get(&nth)?;
                let option = self.slots.options.get(&top)?;
                let has = |key| option.values.contains_key(key);
                // A node of another format can have options of that format, and a protocol node has no format.
                let is_plain = option.driver == "raw" && !has("offset") && !has("size");
                if option.name == "blockdev" && !is_plain {
                    return None;
                }
                // QEMU refuses a drive with both keys.
                let key = if has("driver") { "driver" } else { "format" };
                let driver = Format::from_word(value)?.qemu_driver()?;
                self.put(top, key, NewValue::Word(driver.to_owned()))
            }
            _ => None,
        }
    }

    fn set_disk(&mut self, nth: usize, field: DiskField, value: &str) -> Option<()> {
        let top = self.slots.top.get(&nth).copied();
        let bottom = self.slots.bottom.get(&nth).copied();
        let is_drive = |option: usize| {
            self.slots
                .options
                .get(&option)
                .is_some_and(|option| option.name != "blockdev")
        };
        match field {
            DiskField::Cache if top.is_some_and(is_drive) => {
                self.set_cache_of_drive(nth, top?, self.cache_mode(nth, value)?)
            }
            DiskField::Cache => {
                let switches = self.cache_mode(nth, value)?.switches();
                self.put_cache(top?, switches.direct, switches.no_flush)?;
                if top != bottom {
                    self.put_cache(bottom?, switches.direct, switches.no_flush)?;
                }
                let word = if switches.write_cache { "on" } else { "off" };
                self.put_on_device(nth, field, NewValue::Word(word.to_owned()))
            }
            // The image is a nested node with its own setting.
            DiskField::Discard | DiskField::DetectZeroes if self.is_filter(top?) => None,
            DiskField::Discard if top.is_some_and(is_drive) => {
                self.put_in_drive(top?, disk(field).node?, NewValue::Word(value.to_owned()))
            }
            DiskField::Discard => self.put_on_nodes(
                top?,
                bottom?,
                disk(field).node?,
                NewValue::Word(value.to_owned()),
            ),
            DiskField::MetadataCacheSize => {
                let top = top?;
                let mut others = self.values_of(top, "l2-cache-size");
                let is_alone = others.next().is_none() && !self.is_filter(top);
                drop(others);
                let size = NewValue::Number(value.to_owned());
                is_alone.then(|| self.put(top, "cache-size", size))?
            }
            DiskField::DiscardNoUnref => {
                let top = top.filter(|top| !self.is_filter(*top))?;
                let is_on = Switch::from_word(value)? == Switch::On;
                self.put(top, "discard-no-unref", NewValue::Bool(is_on))
            }
            DiskField::DetectZeroes => {
                self.put(top?, disk(field).node?, NewValue::Word(value.to_owned()))
            }
            DiskField::Aio => {
                let bottom = bottom?;
                if is_drive(bottom) && self.values_of(bottom, "aio").any(|key| key != "aio") {
                    return self.put_in_drive(bottom, "aio", NewValue::Word(value.to_owned()));
                }
                let is_inline = top == Some(bottom) && !is_drive(bottom);
                let inside = is_inline
                    && self
                        .slots
                        .options
                        .get(&bottom)?
                        .values
                        .keys()
                        .any(|key| key.starts_with("file."));
                self.put(
                    bottom,
                    if inside { "file.aio" } else { "aio" },
                    NewValue::Word(value.to_owned()),
                )
            }
            _ => self.set_property(nth, field, value),
        }
    }

    /// The cache mode to set; `cache.direct=on` stays where only the flushes are wrong.
    fn cache_mode(&self, nth: usize, value: &str) -> Option<CacheMode> {
        match CacheMode::from_word(value)? {
            CacheMode::Writeback if self.slots.direct_unsafe.contains(&nth) => {
                Some(CacheMode::None)
            }
            mode => Some(mode),
        }
    }

    /// Sets the cache mode of a `-drive`. Its switches override its `cache`, and the switch of the device overrides both.
    fn set_cache_of_drive(&mut self, nth: usize, drive: usize, mode: CacheMode) -> Option<()> {
        const WRITE_CACHE: &str = "cache.writeback";
        let is_written = |option: usize, key: &str| {
            let slot = self.slots.options.get(&option);
            slot.is_some_and(|slot| slot.values.contains_key(key))
        };
        let device = self.device_key(nth, DiskField::Cache);
        let is_on_device = device.is_some_and(|(device, key)| is_written(device, key));
        let is_on_drive = is_written(drive, WRITE_CACHE);
        let has_switches = is_on_drive || self.has_cache_switches(drive);
        let has_mode = !has_switches || is_written(drive, "cache");
        let switches = mode.switches();
        if has_mode {
            self.put(drive, "cache", NewValue::Word(mode.as_str().to_owned()))?;
        }
        if has_switches {
            self.put_in_drive(drive, "cache.direct", NewValue::Bool(switches.direct))?;
            self.put_in_drive(drive, "cache.no-flush", NewValue::Bool(switches.no_flush))?;
        }
        if is_on_drive || !has_mode && device.is_none() {
            self.put(drive, WRITE_CACHE, NewValue::Bool(switches.write_cache))?;
        }
        if is_on_device || !has_mode && !is_on_drive && device.is_some() {
            let word = if switches.write_cache { "on" } else { "off" };
            self.put_on_device(nth, DiskField::Cache, NewValue::Word(word.to_owned()))?;
        }
        Some(())
    }

    /// Sets a field that is a property of the device.
    fn set_property(&mut self, nth: usize, field: DiskField, value: &str) -> Option<()> {
        let value = match field.kind()? {
            FieldKind::Number => NewValue::Number(value.to_owned()),
            FieldKind::Switch => NewValue::Bool(Switch::from_word(value)? == Switch::On),
            // QEMU uses a number, the model hexadecimal text.
            FieldKind::Text if field == DiskField::Wwn => return None,
            FieldKind::Text | FieldKind::IoThread => NewValue::Word(value.to_owned()),
            FieldKind::Word(words) => {
                let word = words.iter().find(|word| **word == value)?;
                NewValue::Word(disk(field).qemu_word(word).to_owned())
            }
            FieldKind::Flag if field == DiskField::Shareable => NewValue::Bool(true),
            FieldKind::Flag | FieldKind::Count | FieldKind::Size | FieldKind::Structure => {
                return None;
            }
        };
        self.put_on_device(nth, field, value)
    }

    /// The option and key of an error policy that is written in a `-drive`, which sets it for its device.
    fn drive_key(&self, nth: usize, field: DiskField) -> Option<(usize, &'static str)> {
        let key = match field {
            DiskField::ErrorPolicy => "werror",
            DiskField::ReadErrorPolicy => "rerror",
            _ => return None,
        };
        let drive = *self.slots.top.get(&nth)?;
        let is_written = self.slots.options.get(&drive)?.values.contains_key(key);
        is_written.then_some((drive, key))
    }

    fn device_key(&self, nth: usize, field: DiskField) -> Option<(usize, &'static str)> {
        if let Some(found) = self.drive_key(nth, field) {
            return Some(found);
        }
        let device = *self.slots.device.get(&nth)?;
        let model = disk_driver(&self.slots.options.get(&device)?.driver)?.model;
        match disk(field).spelling(model) {
            Spelling::Named(key) => Some((device, key)),
            Spelling::Elsewhere | Spelling::Unknown => None,
        }
    }

    fn put_on_device(&mut self, nth: usize, field: DiskField, value: NewValue) -> Option<()> {
        let (device, key) = self.device_key(nth, field)?;
        self.put(device, key, value)
    }

    /// The two switches of a node.
    fn put_cache(&mut self, option: usize, direct: bool, no_flush: bool) -> Option<()> {
        self.put(option, "cache.direct", NewValue::Bool(direct))?;
        self.put(option, "cache.no-flush", NewValue::Bool(no_flush))
    }

    /// The keys of an option that set a property, for any node in it.
    fn values_of<'s>(&'s self, option: usize, name: &'s str) -> impl Iterator<Item = &'s str> {
        let slot = self.slots.options.get(&option);
        let keys = slot.into_iter().flat_map(|slot| slot.values.keys());
        keys.map(String::as_str).filter(move |key| {
            key.strip_suffix(name)
                .is_some_and(|before| before.is_empty() || before.ends_with('.'))
        })
    }

    /// True if the node of an option is a filter above the image.
    fn is_filter(&self, option: usize) -> bool {
        let slot = self.slots.options.get(&option);
        slot.is_some_and(|slot| matches!(slot.driver.as_str(), "throttle" | "copy-on-read"))
    }

    /// True if a drive sets its switches individually, which override a mode.
    fn has_cache_switches(&self, option: usize) -> bool {
        let mut keys = self.values_of(option, "cache.direct");
        keys.next().is_some() || self.values_of(option, "cache.no-flush").next().is_some()
    }

    /// Replaces a value of a drive at each of its nodes that sets it; otherwise adds it at the top, unless it belongs
    /// to the node that opens the file.
    fn put_in_drive(&mut self, option: usize, name: &str, value: NewValue) -> Option<()> {
        let mut keys: Vec<String> = self.values_of(option, name).map(str::to_owned).collect();
        if name != "aio" && !keys.iter().any(|key| key == name) {
            keys.push(name.to_owned());
        }
        // In the order of the text, independent of the order of the map.
        keys.sort_unstable();
        for key in keys {
            self.put(option, &key, value.clone())?;
        }
        Some(())
    }

    fn put_on_nodes(
        &mut self,
        top: usize,
        bottom: usize,
        key: &str,
        value: NewValue,
    ) -> Option<()> {
        self.put(top, key, value.clone())?;
        if bottom != top {
            self.put(bottom, key, value)?;
        }
        Some(())
    }

    /// Requests a value in an option.
    fn put(&mut self, option: usize, key: &str, value: NewValue) -> Option<()> {
        self.slots.options.get(&option)?;
        self.puts.push(Put {
            option,
            key: key.to_owned(),
            value,
        });
        Some(())
    }
}
