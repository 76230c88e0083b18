//! The spelling of settings in libvirt XML.

use vmdisk_fields::{FirstReleases, Setting, Speller, ValueForm, controller, disk};
use vmdisk_model::{
    DiskField, Domain, DomainField, FieldKind, FieldPath, FieldValue, IoThreadId, Switch,
};

use crate::edits::slot::{Leaf, Slot, root_of, slot_of};
use crate::source::image::type_of;
use crate::vocabulary::{AttributeSpec, ElementSpec};
use crate::xml::character::{escape_attribute, escape_text};

/// Spells settings as attributes and elements: `cache='none'`, `<readonly/>`.
#[derive(Clone, Copy, Debug)]
pub struct XmlSpeller<'d>(pub &'d Domain);

/// A setting with its element.
enum Spelled {
    /// An attribute with an unambiguous name, or the complete text.
    Alone(String),
    /// An attribute that needs its element for context.
    On(&'static str, String),
}

impl Speller for XmlSpeller<'_> {
    fn disk(&self, nth: usize) -> String {
        match self.0.disks.get(nth) {
            Some(disk) if disk.frontend.target.is_none() => "a disk without a target".to_owned(),
            Some(disk) => ["`", disk.name(), "`"].concat(),
            None => format!("disk {nth}"),
        }
    }

    fn controller(&self, nth: usize) -> String {
        let controller = self.0.controllers.get(nth);
        match controller.map(|it| (it.controller_type, it.index)) {
            Some((kind, Some(number))) => format!("{kind} controller {number}"),
            Some((kind, None)) => format!("a {kind} controller"),
            None => format!("controller {nth}"),
        }
    }

    fn iothread(&self, id: IoThreadId) -> String {
        id.to_string()
    }

    fn settings(&self, settings: &[Setting]) -> Option<String> {
        let mut spelled: Vec<Spelled> = Vec::new();
        for setting in settings {
            let next = self.setting(setting)?;
            match (spelled.last_mut(), next) {
                (Some(Spelled::On(element, before)), Spelled::On(same, more))
                    if *element == same =>
                {
                    before.push(' ');
                    before.push_str(&more);
                }
                (_, next) => spelled.push(next),
            }
        }
        let words = spelled.into_iter().map(|spelled| match spelled {
            Spelled::Alone(text) => text,
            Spelled::On(element, attributes) => format!("`<{element} {attributes}/>`"),
        });
        Some(words.collect::<Vec<_>>().join(" and "))
    }

    fn field(&self, at: FieldPath) -> Option<String> {
        let (root, spec) = root_of(at, self.0)?;
        if root == at {
            return Some(format!("`<{}>`", spec.name));
        }
        let slot = self.slot(at, spec)?;
        match slot.leaf {
            Leaf::Attribute(attribute) => Some(format!("`{}`", attribute.name)),
            Leaf::Element => Some(format!("`<{}>`", slot.steps.last()?.element.name)),
        }
    }

    fn first_releases(&self, setting: &Setting) -> FirstReleases {
        self.releases_of(setting).unwrap_or_default()
    }
}

impl XmlSpeller<'_> {
    fn slot(&self, at: FieldPath, root: &'static ElementSpec) -> Option<Slot> {
        let image = match at {
            FieldPath::Image(nth, depth, _) => {
                let image = self.0.disks.get(nth).and_then(|disk| disk.backend.image());
                image.and_then(|image| image.chain().nth(depth))
            }
            FieldPath::Disk(nth, _) => self.0.disks.get(nth).and_then(|disk| disk.backend.image()),
            _ => None,
        };
        slot_of(
            at,
            root,
            image.map_or("file", |image| type_of(&image.protocol)),
        )
    }

    /// The first releases with each element on the path to a setting, its attribute and its value.
    fn releases_of(&self, setting: &Setting) -> Option<FirstReleases> {
        let Setting { at, value } = setting;
        if self.0.value(*at).as_ref() == Some(value) {
            return None;
        }
        let (_, root) = root_of(*at, self.0)?;
        let slot = self.slot(*at, root)?;
        let mut first = FirstReleases::default();
        for step in &slot.steps {
            let child = step.parent.children.get(step.order)?;
            first = first.and(FirstReleases::of(Some(child.since), child.qemu));
        }
        if let Leaf::Attribute(attribute) = slot.leaf {
            let (libvirt, qemu) = attribute.since_with(&text_of(*at, value));
            first = first.and(FirstReleases::of(Some(libvirt), qemu));
        }
        Some(first)
    }

    fn setting(&self, setting: &Setting) -> Option<Spelled> {
        let Setting { at, value } = setting;
        let (_, root) = root_of(*at, self.0)?;
        let slot = self.slot(*at, root)?;
        let text = text_of(*at, value);
        let attribute = match slot.leaf {
            Leaf::Element if is_flag(*at) => {
                let name = slot.steps.last()?.element.name;
                let no = if text == "no" { "no " } else { "" };
                return Some(Spelled::Alone(format!("{no}`<{name}/>`")));
            }
            Leaf::Element => {
                let element = slot.steps.last()?.element;
                element.content?.check(&text).ok()?;
                let name = element.name;
                return Some(Spelled::Alone(format!(
                    "`<{name}>{}</{name}>`",
                    escape_text(&text)
                )));
            }
            Leaf::Attribute(attribute) => attribute,
        };
        if *at == FieldPath::Domain(DomainField::DomainType) {
            return Some(Spelled::Alone(format!("`<domain type='{text}'>`")));
        }
        attribute_with(attribute, &slot, &text)
    }
}

/// An attribute with a valid value.
fn attribute_with(attribute: &AttributeSpec, slot: &Slot, text: &str) -> Option<Spelled> {
    attribute.value.check(text).ok()?;
    let pair = format!("{}='{}'", attribute.name, escape_attribute(text));
    Some(match slot.steps.last().map(|step| step.element.name) {
        None | Some("driver") => Spelled::Alone(format!("`{pair}`")),
        Some(element) => Spelled::On(element, pair),
    })
}

/// True for elements whose presence is the value.
pub(crate) fn is_flag(at: FieldPath) -> bool {
    matches!(
        at,
        FieldPath::Disk(
            _,
            DiskField::ReadOnly | DiskField::Shareable | DiskField::Transient
        ) | FieldPath::Domain(DomainField::HugePages)
    )
}

/// A value as libvirt writes it in a field.
pub(crate) fn text_of(at: FieldPath, value: &FieldValue) -> String {
    let row = match at {
        FieldPath::Disk(_, field) => Some(disk(field)),
        FieldPath::Controller(_, field) => Some(controller(field)),
        _ => None,
    };
    let is_yes_no = row.is_some_and(|row| row.libvirt.form == ValueForm::YesNo);
    let is_flag = row.is_some_and(|row| row.kind == Some(FieldKind::Flag)) || is_flag(at);
    match value {
        FieldValue::Set => "yes".to_owned(),
        FieldValue::Switch(switch) if is_yes_no || is_flag => {
            let word = if *switch == Switch::On { "yes" } else { "no" };
            word.to_owned()
        }
        FieldValue::Size(size) => size.0.to_string(),
        _ => value.to_string(),
    }
}
