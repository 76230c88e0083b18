//! Fixes: from a change of the model to edits of the command line that change nothing else.

use vmdisk_fields::{Label, Spelling, disk};
use vmdisk_model::{
    CacheMode, Change, ControllerField, DiskField, DomainField, FieldKind, FieldPath, Format,
    ImageField, Switch,
};
use vmdisk_source::Edit;

use crate::device::driver::disk_driver;
use crate::document::Document;
use crate::slots::{NewValue, Slots, insertion};
use crate::syntax::properties::{Kind, Syntax};

/// Why a change cannot be made by edits: it would take more than the values of options that are there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` cannot be changed by editing a value", .0.label())]
pub struct CannotEdit(pub FieldPath);

/// The edits that make several changes at once.
///
/// # Errors
/// At the first change that is more than the value of one or a few properties: another bus, another
/// name, memory that is not written.
pub fn edits_of_all(document: &Document, changes: &[Change]) -> Result<Vec<Edit>, CannotEdit> {
    let mut editor = Editor {
        slots: &document.slots,
        edits: Vec::new(),
    };
    for change in changes {
        let (at, done) = match change {
            Change::Set { at, value } => (at, editor.set(document, *at, value)),
            Change::Remove { at } => (at, editor.remove(*at)),
        };
        done.ok_or(CannotEdit(*at))?;
    }
    Ok(editor.edits)
}

/// True for a word that no shell, JSON or key=value reads as anything else.
fn is_plain(value: &str) -> bool {
    !value.is_empty()
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

struct Editor<'d> {
    slots: &'d Slots,
    edits: Vec<Edit>,
}

impl Editor<'_> {
    fn set(&mut self, document: &Document, at: FieldPath, value: &str) -> Option<()> {
        if !is_plain(value) {
            return None;
        }
        match at {
            FieldPath::Disk(nth, field) => self.set_disk(nth, field, value),
            FieldPath::Controller(nth, ControllerField::Queues) => {
                let option = *self.slots.controller.get(&nth)?;
                self.put(option, "num_queues", &NewValue::Number(value))
            }
            FieldPath::Domain(DomainField::MemoryAccess) => {
                let place = document.source_map.place(at)?;
                let word = match value {
                    "shared" => "on",
                    "private" => "off",
                    _ => return None,
                };
                // The word that stands there tells which form it has.
                let is_json = place.span.len() >= 4 && word == "on" || place.span.len() == 5;
                let word = match (is_json, word) {
                    (true, "on") => "true",
                    (true, _) => "false",
                    (false, word) => word,
                };
                self.edits.push(Edit::replace(place.span, word));
                Some(())
            }
            // A format node has options of its own, and is not mended by a word.
            FieldPath::Image(nth, 0, ImageField::Format) => {
                let top = *self.slots.top.get(&nth)?;
                let is_drive = self.slots.options.get(&top)?.name == "drive";
                let driver = Format::from_wire(value)?.qemu_driver()?;
                is_drive.then(|| self.put(top, "format", &NewValue::Word(driver)))?
            }
            FieldPath::Image(..)
            | FieldPath::Domain(_)
            | FieldPath::Controller(..)
            | FieldPath::IoThread(..)
            | FieldPath::Iotune(..)
            | FieldPath::ThrottleGroup(..) => None,
        }
    }

    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "what is not on the nodes is a property of the device, or cannot be set"
    )]
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
            DiskField::Cache if top.is_some_and(is_drive) && self.has_cache_switches(top?) => {
                let switches = CacheMode::from_wire(value)?.switches();
                let top = top?;
                self.put_in_drive(top, "cache.direct", &NewValue::Bool(switches.direct))?;
                self.put_in_drive(top, "cache.no-flush", &NewValue::Bool(switches.no_flush))?;
                let word = if switches.write_cache { "on" } else { "off" };
                self.put_on_device(nth, field, &NewValue::Word(word))
            }
            DiskField::Cache if top.is_some_and(is_drive) => {
                self.put(top?, "cache", &NewValue::Word(value))
            }
            DiskField::Cache => {
                let switches = CacheMode::from_wire(value)?.switches();
                self.put_cache(top?, switches.direct, switches.no_flush)?;
                if top != bottom {
                    self.put_cache(bottom?, switches.direct, switches.no_flush)?;
                }
                let word = if switches.write_cache { "on" } else { "off" };
                self.put_on_device(nth, field, &NewValue::Word(word))
            }
            // The image is a node inside it, which has a setting of its own.
            DiskField::Discard | DiskField::DetectZeroes if self.is_filter(top?) => None,
            DiskField::Discard if top.is_some_and(is_drive) => {
                self.put_in_drive(top?, disk(field).node?, &NewValue::Word(value))
            }
            DiskField::Discard => {
                self.put_on_nodes(top?, bottom?, disk(field).node?, &NewValue::Word(value))
            }
            DiskField::DetectZeroes => self.put(top?, disk(field).node?, &NewValue::Word(value)),
            DiskField::Aio => {
                let bottom = bottom?;
                if is_drive(bottom) && self.values_of(bottom, "aio").any(|key| key != "aio") {
                    return self.put_in_drive(bottom, "aio", &NewValue::Word(value));
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
                    &NewValue::Word(value),
                )
            }
            _ => self.set_property(nth, field, value),
        }
    }

    /// Sets a field that is a property of the device.
    fn set_property(&mut self, nth: usize, field: DiskField, value: &str) -> Option<()> {
        let value = match field.kind()? {
            FieldKind::Number => NewValue::Number(value),
            FieldKind::Switch => NewValue::Bool(Switch::from_wire(value)? == Switch::On),
            // A number to QEMU, and text in base 16 to the model.
            FieldKind::Text if field == DiskField::Wwn => return None,
            FieldKind::Text => NewValue::Word(value),
            FieldKind::Word(words) => {
                let word = words.iter().find(|word| **word == value)?;
                NewValue::Word(disk(field).qemu_word(word))
            }
            // An iothread is an object of its own, and a share takes more than a property.
            FieldKind::IoThread
            | FieldKind::Flag
            | FieldKind::Count
            | FieldKind::Size
            | FieldKind::Structure => {
                return None;
            }
        };
        self.put_on_device(nth, field, &value)
    }

    fn device_key(&self, nth: usize, field: DiskField) -> Option<(usize, &'static str)> {
        let device = *self.slots.device.get(&nth)?;
        let model = disk_driver(&self.slots.options.get(&device)?.driver)?.model;
        match disk(field).spelling(model) {
            Spelling::Named(key) => Some((device, key)),
            Spelling::Elsewhere | Spelling::Unknown => None,
        }
    }

    fn put_on_device(&mut self, nth: usize, field: DiskField, value: &NewValue<'_>) -> Option<()> {
        let (device, key) = self.device_key(nth, field)?;
        self.put(device, key, value)
    }

    /// The two switches of a node; where it has neither, one object with both.
    fn put_cache(&mut self, option: usize, direct: bool, no_flush: bool) -> Option<()> {
        let slot = self.slots.options.get(&option)?;
        let is_new = !slot.values.keys().any(|key| key.starts_with("cache."));
        if let (Syntax::Json { end, quote: q }, true) = (&slot.syntax, is_new) {
            let text = format!(",{q}cache{q}:{{{q}direct{q}:{direct},{q}no-flush{q}:{no_flush}}}");
            self.edits.push(Edit::insert(*end, text));
            return Some(());
        }
        self.put(option, "cache.direct", &NewValue::Bool(direct))?;
        self.put(option, "cache.no-flush", &NewValue::Bool(no_flush))
    }

    /// The keys of an option that set a property, of whatever node in it.
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

    /// True if a drive says its switches one by one, which beat a mode.
    fn has_cache_switches(&self, option: usize) -> bool {
        let mut keys = self.values_of(option, "cache.direct");
        keys.next().is_some() || self.values_of(option, "cache.no-flush").next().is_some()
    }

    /// Replaces a value of a drive at each of its nodes that says it, and adds it at the top, unless it belongs to
    /// the node that opens the file.
    fn put_in_drive(&mut self, option: usize, name: &str, value: &NewValue<'_>) -> Option<()> {
        let mut keys: Vec<String> = self.values_of(option, name).map(str::to_owned).collect();
        if name != "aio" && !keys.iter().any(|key| key == name) {
            keys.push(name.to_owned());
        }
        // In the order of the text whatever that of the map is.
        keys.sort_unstable();
        for key in keys {
            self.put(option, &key, value)?;
        }
        Some(())
    }

    fn put_on_nodes(
        &mut self,
        top: usize,
        bottom: usize,
        key: &str,
        value: &NewValue<'_>,
    ) -> Option<()> {
        self.put(top, key, value)?;
        if bottom != top {
            self.put(bottom, key, value)?;
        }
        Some(())
    }

    /// Replaces or adds a value.
    fn put(&mut self, option: usize, key: &str, value: &NewValue<'_>) -> Option<()> {
        let slot = self.slots.options.get(&option)?;
        if let Some(written) = slot.values.get(key) {
            // `file=json:{…}` has JSON inside key=value.
            let is_json = match written.kind {
                Kind::Plain => false,
                Kind::Text | Kind::Number | Kind::Bool | Kind::Null | Kind::EmptyArray => true,
            };
            if is_json && (written.kind == Kind::Text) != value.is_quoted() {
                return None;
            }
            let text = value.text(is_json);
            self.edits.push(Edit::replace(written.span, text));
            return Some(());
        }
        let edit = insertion(&slot.syntax, &slot.values, key, value)?;
        // Two insertions at one place are one, or they would overlap.
        match self.edits.iter_mut().find(|other| other.span == edit.span) {
            Some(other) => other.text.push_str(&edit.text),
            None => self.edits.push(edit),
        }
        Some(())
    }

    fn remove(&mut self, at: FieldPath) -> Option<()> {
        let FieldPath::Disk(nth, field) = at else {
            return None;
        };
        let (device, key) = self.device_key(nth, field)?;
        let written = self.slots.options.get(&device)?.values.get(key)?;
        self.edits.push(Edit::delete(written.whole));
        Some(())
    }
}
