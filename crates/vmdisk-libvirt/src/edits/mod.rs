//! Fixes: from a change of the model to edits of the text that change nothing else.

mod devices;
mod insert;
mod outline;
pub(crate) mod slot;

use vmdisk_fields::Label;
use vmdisk_model::{Change, DiskField, DomainField, FieldPath, ImageField};
use vmdisk_source::{Edit, Place, Span};

use crate::speller::{is_flag, text_of};
use crate::vocabulary::{SOURCE_TYPES, source_of};
use crate::xml::character::{escape_attribute, escape_text, is_xml_char};
use crate::{Document, RootKind};
pub use devices::{CannotAdd, add_devices};
use insert::Insertions;
use outline::Outline;
pub(crate) use outline::Outlines;
use slot::{Leaf, Slot, slot_of};

/// The reason why edits cannot make a change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotEdit {
    /// The field to remove is not in the text.
    #[error("`{}` is not written, so there is nothing to remove", .0.label())]
    NotWritten(FieldPath),
    /// The disk, controller, iothread or guest that the field belongs to is not in the document.
    #[error("`{}` has no place in this document", .0.label())]
    NoPlace(FieldPath),
    /// The field is the whole document.
    #[error("`{}` is the whole document", .0.label())]
    WholeDocument(FieldPath),
    /// The field is more than one value, such as an address.
    #[error("`{}` is more than one value", .0.label())]
    NotOneValue(FieldPath),
    /// libvirt does not know the value, or XML cannot represent it.
    #[error("`{value}` is not a valid value for `{}`", .at.label())]
    InvalidValue {
        /// The field.
        at: FieldPath,
        /// The value.
        value: String,
    },
}

/// The edits that make one change.
///
/// `text` must be the text that `document` was read from. An existing value is replaced
/// where it stands; a missing attribute is added to its element, and a missing element among its
/// siblings in libvirt's order, with their indentation. Nothing else changes.
///
/// An element that says all by being there (`readonly`, `shareable`, `transient`, `hugepages`) is added for
/// [`FieldValue::Set`](vmdisk_model::FieldValue::Set) and for `yes`, and removed for `no`.
///
/// ```
/// use vmdisk_libvirt::{edits, read};
/// use vmdisk_model::{Change, DiskField, FieldPath};
/// use vmdisk_source::apply_edits;
///
/// let text = "<disk type='file'>
///     <source file='/srv/a.img'/> <!-- the data -->
///     <target dev='vda'/>
/// </disk>";
/// let document = read(text)?;
/// let change = Change::set(FieldPath::Disk(0, DiskField::Cache), "none");
/// let fixed = apply_edits(text, &edits(text, &document, &change)?)?;
/// assert_eq!(fixed, "<disk type='file'>
///     <driver name='qemu' cache='none'/>
///     <source file='/srv/a.img'/> <!-- the data -->
///     <target dev='vda'/>
/// </disk>");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the field has no place in the document, is more than one value, or the value is none of its own.
pub fn edits(text: &str, document: &Document, change: &Change) -> Result<Vec<Edit>, CannotEdit> {
    edits_of_all(text, document, std::slice::from_ref(change))
}

/// The edits that make several changes at once, so that two attributes of one missing element share it.
///
/// # Errors
/// As [`edits`], at the first change that cannot be made.
pub fn edits_of_all(
    text: &str,
    document: &Document,
    changes: &[Change],
) -> Result<Vec<Edit>, CannotEdit> {
    let mut editor = Editor::new(text, document);
    editor.make(changes)?;
    Ok(editor.finish())
}

/// Whether [`edits_of_all`] can make these changes. It costs less than the edits.
///
/// # Errors
/// As [`edits_of_all`].
pub fn check_changes(
    text: &str,
    document: &Document,
    changes: &[Change],
) -> Result<(), CannotEdit> {
    let mut editor = Editor::new(text, document);
    editor.only_checks = true;
    editor.make(changes)
}

struct Editor<'t> {
    text: &'t str,
    document: &'t Document,
    edits: Vec<Edit>,
    insertions: Insertions,
    /// True if nobody needs the edits.
    only_checks: bool,
}

/// True for fields with one element per item, of which the map has the first.
fn is_several(at: FieldPath) -> bool {
    matches!(
        at,
        FieldPath::Domain(DomainField::BootDevices) | FieldPath::Image(_, _, ImageField::Hosts)
    )
}

impl<'t> Editor<'t> {
    fn new(text: &'t str, document: &'t Document) -> Self {
        Editor {
            text,
            document,
            edits: Vec::new(),
            insertions: Insertions::default(),
            only_checks: false,
        }
    }

    fn make(&mut self, changes: &[Change]) -> Result<(), CannotEdit> {
        for change in changes {
            match change {
                Change::Set { at, value } => self.set(*at, &text_of(*at, value))?,
                Change::Remove { at } => self.remove(*at)?,
            }
        }
        Ok(())
    }

    /// The edits of everything that was requested.
    fn finish(self) -> Vec<Edit> {
        let mut edits = self.edits;
        self.insertions
            .write(self.text, &self.document.outlines, &mut edits);
        edits
    }

    fn outline(&self, span: Span) -> Option<Outline<'t>> {
        self.document.outlines.outline(self.text, span)
    }

    fn place(&self, at: FieldPath) -> Option<Place> {
        self.document.source_map.place(at)
    }

    fn slot(&self, at: FieldPath) -> Result<(Slot, Span), CannotEdit> {
        let missing = || CannotEdit::NoPlace(at);
        let (root, spec) = slot::root_of(at, &self.document.domain).ok_or_else(missing)?;
        let element = element_span(self.place(root).ok_or_else(missing)?);
        let source_type = attribute_of(self.text, element.start, "type").unwrap_or("file");
        let slot = slot_of(at, spec, source_type).ok_or_else(missing)?;
        Ok((slot, element))
    }

    fn set(&mut self, at: FieldPath, value: &str) -> Result<(), CannotEdit> {
        let invalid = || CannotEdit::InvalidValue {
            at,
            value: value.to_owned(),
        };
        if !value.chars().all(is_xml_char) {
            return Err(invalid());
        }
        if let FieldPath::Disk(nth, DiskField::SourceType) = at {
            self.retype(nth, value).ok_or_else(invalid)?;
        }
        let (slot, root) = self.slot(at)?;
        if let (Leaf::Element, Some(size)) = (slot.leaf, slot.size_inside()) {
            return self.set_size(at, &size, root, value);
        }
        match slot.leaf {
            Leaf::Attribute(attribute) => {
                if attribute.value.check(value).is_err() {
                    return Err(invalid());
                }
                // The place of an element with one attribute is the whole element.
                match self
                    .place(at)
                    .filter(|place| place.attributes_end.is_none())
                {
                    Some(place) => self.replace(place.span, escape_attribute(value)),
                    None => self.add(at, &slot, root, value)?,
                }
                Ok(())
            }
            Leaf::Element if is_flag(at) => match (value, self.place(at)) {
                ("yes", Some(_)) | ("no", None) => Ok(()),
                ("yes", None) => self.add(at, &slot, root, ""),
                ("no", Some(place)) => {
                    self.edits.push(Edit::delete(place.whole));
                    Ok(())
                }
                _ => Err(invalid()),
            },
            Leaf::Element => {
                let spec = slot.steps.last().map(|step| step.element);
                let content = spec
                    // A number with a unit consists of two values.
                    .filter(|spec| spec.attribute("unit").is_none())
                    .and_then(|spec| spec.content)
                    .ok_or(CannotEdit::NotOneValue(at))?;
                // libvirt treats an empty text as unset.
                if value.is_empty() || content.check(value).is_err() {
                    return Err(invalid());
                }
                match self.place(at) {
                    Some(place) => {
                        self.set_text(place, value);
                        Ok(())
                    }
                    None => self.add(at, &slot, root, value),
                }
            }
        }
    }

    /// Sets the text of an element that has a number of bytes with a unit.
    fn set_size(
        &mut self,
        at: FieldPath,
        slot: &Slot,
        root: Span,
        value: &str,
    ) -> Result<(), CannotEdit> {
        if value.parse::<u64>().is_err() {
            return Err(CannotEdit::InvalidValue {
                at,
                value: value.to_owned(),
            });
        }
        let mut element = self.outline(root);
        for step in &slot.steps {
            let child = element.and_then(|element| element.child(step.element.name));
            element = child.and_then(|span| self.outline(span));
        }
        let Some(Outline {
            name, span, tag, ..
        }) = element
        else {
            return self.add(at, slot, root, value);
        };
        let unit = tag
            .attributes
            .iter()
            .find(|attribute| attribute.name.slice(self.text) == Some("unit"));
        if let Some(unit) = unit {
            self.replace(unit.value, "bytes".to_owned());
        }
        if tag.end.is_empty_element {
            let rest = Span::new(tag.end.attributes_end, tag.end.end);
            self.replace(rest, format!(">{value}</{name}>"));
            return Ok(());
        }
        let content = Span::new(tag.end.end, span.end)
            .slice(self.text)
            .and_then(|rest| rest.rfind("</"))
            .ok_or(CannotEdit::NoPlace(at))?;
        self.replace(
            Span::new(tag.end.end, tag.end.end + content),
            value.to_owned(),
        );
        Ok(())
    }

    fn replace(&mut self, span: Span, text: String) {
        if span.slice(self.text) != Some(text.as_str()) {
            self.edits.push(Edit::replace(span, text));
        }
    }

    /// Replaces the text of an element that is there.
    fn set_text(&mut self, place: Place, value: &str) {
        let found = place.span.slice(self.text).unwrap_or_default();
        let is_tag = found.starts_with('<') && !found.starts_with("<!");
        if !is_tag {
            return self.replace(place.span, escape_text(value));
        }
        // The element has no text yet: `<serial/>` or `<serial></serial>`.
        let Some(Outline { tag, name, .. }) = self.outline(element_span(place)) else {
            return;
        };
        let text = escape_text(value);
        self.edits.push(if tag.end.is_empty_element {
            let rest = Span::new(tag.end.attributes_end, tag.end.end);
            Edit::replace(rest, format!(">{text}</{name}>"))
        } else {
            Edit::insert(tag.end.end, text)
        });
    }

    /// The attribute for a block device differs from that for a file.
    fn retype(&mut self, nth: usize, value: &str) -> Option<()> {
        let is_local = |word: &str| matches!(word, "file" | "block");
        let disk = self.place(FieldPath::Disk(nth, DiskField::Disk))?;
        let before = attribute_of(self.text, disk.span.start, "type").unwrap_or("file");
        if before == value || !SOURCE_TYPES.contains(&before) {
            return Some(());
        }
        if !is_local(before) || !is_local(value) {
            return None;
        }
        let Some(source) = self.place(FieldPath::Disk(nth, DiskField::Source)) else {
            return Some(());
        };
        let name_in = |word| source_of(word).attributes.first().map(|known| known.name);
        let (old, new) = (name_in(before)?, name_in(value)?);
        let tag = crate::xml::tag::scan_tag(self.text, source.span.start)?;
        let named = |name: &str| {
            let attributes = tag.attributes.iter();
            attributes
                .map(|attribute| attribute.name)
                .find(|written| written.slice(self.text) == Some(name))
        };
        // Often the attribute is already correct, and only the type is wrong.
        if let (Some(written), None) = (named(old), named(new)) {
            self.edits.push(Edit::replace(written, new));
        }
        Some(())
    }

    /// Adds a missing attribute or element.
    fn add(
        &mut self,
        at: FieldPath,
        slot: &Slot,
        root: Span,
        value: &str,
    ) -> Result<(), CannotEdit> {
        // There is always a place for an attribute: its element, or the missing element that it is added with.
        if self.only_checks && matches!(slot.leaf, Leaf::Attribute(_)) {
            return Ok(());
        }
        let missing = || CannotEdit::NoPlace(at);
        let mut parent = self.outline(root).ok_or_else(missing)?;
        for (nth, step) in slot.steps.iter().enumerate() {
            match parent.child(step.element.name) {
                Some(span) => parent = self.outline(span).ok_or_else(missing)?,
                None => {
                    self.insertions
                        .add(&parent, &slot.steps[nth..], slot.leaf, value);
                    return Ok(());
                }
            }
        }
        match slot.leaf {
            Leaf::Attribute(attribute) => {
                let value = escape_attribute(value);
                let mut written = parent.tag.attributes.iter();
                let is_same = |name: Span| name.slice(self.text) == Some(attribute.name);
                if let Some(written) = written.find(|written| is_same(written.name)) {
                    self.replace(written.value, value);
                    return Ok(());
                }
                let at = parent.tag.end.attributes_end;
                let quote = parent.quote(self.text);
                let text = format!(" {}={quote}{value}{quote}", attribute.name);
                self.edits.push(Edit::insert(at, text));
                Ok(())
            }
            // The element exists without a recorded place: the model does not cover it.
            Leaf::Element => Err(missing()),
        }
    }

    fn remove(&mut self, at: FieldPath) -> Result<(), CannotEdit> {
        if is_several(at) {
            return Err(CannotEdit::NotOneValue(at));
        }
        let place = self.place(at).ok_or(CannotEdit::NotWritten(at))?;
        let root = match self.document.root {
            RootKind::Disk => FieldPath::Disk(0, DiskField::Disk),
            RootKind::Devices => FieldPath::Domain(DomainField::Devices),
            _ => FieldPath::Domain(DomainField::Domain),
        };
        if self.place(root) == Some(place) {
            return Err(CannotEdit::WholeDocument(at));
        }
        if self.only_checks {
            return Ok(());
        }
        let whole = if place.attributes_end.is_none() {
            self.hollow(at).unwrap_or(place.whole)
        } else {
            place.whole
        };
        self.edits.push(Edit::delete(whole));
        Ok(())
    }

    /// True for elements that mean nothing without their only attribute, such as `<boot order='1'/>`.
    fn hollow(&self, at: FieldPath) -> Option<Span> {
        let (slot, root) = self.slot(at).ok()?;
        let mut element = self.outline(root)?;
        for step in &slot.steps {
            element = self.outline(element.child(step.element.name)?)?;
        }
        let is_needed = matches!(
            element.name,
            "driver" | "source" | "target" | "type" | "format"
        );
        let is_hollow = !slot.steps.is_empty()
            && !is_needed
            && element.tag.attributes.len() == 1
            && element.children.is_empty();
        is_hollow.then(|| crate::reader::whole(self.text, element.span))
    }
}

/// The element of a field that is an element.
fn element_span(place: Place) -> Span {
    Span::new(place.span.start, place.whole.end)
}

/// The raw value of an attribute in the start tag at `start`.
fn attribute_of<'t>(text: &'t str, start: usize, name: &str) -> Option<&'t str> {
    let tag = crate::xml::tag::scan_tag(text, start)?;
    let attribute = tag
        .attributes
        .iter()
        .find(|attribute| attribute.name.slice(text) == Some(name))?;
    attribute.value.slice(text)
}
