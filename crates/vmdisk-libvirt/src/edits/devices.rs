//! Adding whole devices to a guest.

use std::collections::BTreeMap;

use vmdisk_model::{Change, Controller, Disk, DomainField, FieldPath};
use vmdisk_source::{Edit, Span};

use super::insert::{behind_comments, ends_line, separator};
use super::outline::Outline;
use super::{CannotEdit, Editor, element_span};
use crate::controller::write_controller;
use crate::disk::write_disk;
use crate::unmodeled::UnmodeledContent;
use crate::vocabulary::DOMAIN;
use crate::{Document, Unwritable};

/// The reason why devices cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotAdd {
    /// The document is not a guest.
    #[error(transparent)]
    NoPlace(#[from] CannotEdit),
    /// A device cannot be written in XML.
    #[error(transparent)]
    Unwritable(#[from] Unwritable),
}

/// The edits that add controllers and disks to a guest, each after the last element of its kind and with the
/// indentation of its siblings. A guest without `<devices>` gets that element. `changes` are made as well, such as a
/// larger number of iothreads; the rest of the text does not change.
///
/// `text` must be the text that `document` was read from.
///
/// ```
/// use vmdisk_libvirt::{add_devices, read};
/// use vmdisk_model::{Disk, Format, Frontend, Image, TargetBus};
/// use vmdisk_source::apply_edits;
///
/// let text = "<domain type='kvm'>
///     <devices>
///         <emulator>/usr/bin/qemu</emulator> <!-- ours -->
///         <video/>
///     </devices>
/// </domain>";
/// let document = read(text)?;
/// let image = Image::file("/srv/a.img", Format::Raw);
/// let disk = Disk::new(Frontend::new("vda", TargetBus::Virtio), image);
/// let added = apply_edits(text, &add_devices(text, &document, &[], &[disk], &[])?)?;
/// assert_eq!(added, "<domain type='kvm'>
///     <devices>
///         <emulator>/usr/bin/qemu</emulator> <!-- ours -->
///         <disk type='file'>
///           <driver name='qemu' type='raw'/>
///           <source file='/srv/a.img'/>
///           <target dev='vda' bus='virtio'/>
///         </disk>
///         <video/>
///     </devices>
/// </domain>");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Fails if the document is not a guest, a name contains a character that XML cannot represent, or one of the changes
/// cannot be made.
pub fn add_devices(
    text: &str,
    document: &Document,
    controllers: &[Controller],
    disks: &[Disk],
    changes: &[Change],
) -> Result<Vec<Edit>, CannotAdd> {
    let mut editor = Editor::new(text, document);
    editor.make(changes)?;
    let outline = |field| {
        let place = document.source_map.place(FieldPath::Domain(field))?;
        document.outlines.outline(text, element_span(place))
    };
    let mut written = Vec::with_capacity(controllers.len() + disks.len());
    for disk in disks {
        written.push(("disk", write_disk(disk, &UnmodeledContent::default())?));
    }
    for controller in controllers {
        written.push(("controller", write_controller(controller)?));
    }
    if let Some(devices) = outline(DomainField::Devices) {
        let places: Vec<(usize, &str)> = written
            .iter()
            .map(|(kind, xml)| (place_in_devices(&devices, kind), xml.as_str()))
            .collect();
        editor.edits.extend(insert(text, &devices, &places));
    } else if let Some(domain) = outline(DomainField::Domain).filter(|it| it.name == DOMAIN.name) {
        let lines = written.iter().flat_map(|(_, xml)| xml.lines());
        let inside: String = lines.map(|line| format!("  {line}\n")).collect();
        let devices = format!("<devices>\n{inside}</devices>\n");
        editor
            .insertions
            .add_written(&domain, &DOMAIN, "devices", devices);
    } else {
        return Err(CannotEdit::NoPlace(FieldPath::Domain(DomainField::Domain)).into());
    }
    Ok(editor.finish())
}

/// The end of the element that a new device of a kind follows.
fn place_in_devices(devices: &Outline<'_>, kind: &str) -> usize {
    let last = |name: &str| {
        let mut all = devices.children.iter().rev();
        all.find(|(known, _)| *known == name)
    };
    let before = last(kind)
        .or_else(|| last("disk"))
        .or_else(|| last("emulator"));
    before.map_or(devices.tag.end.end, |(_, span)| span.end)
}

/// Inserts elements behind the given places of the children of an element.
fn insert(text: &str, parent: &Outline<'_>, written: &[(usize, &str)]) -> Vec<Edit> {
    let own = separator(text, parent.span.start);
    let children = parent.children.iter();
    let among = children
        .map(|(_, span)| separator(text, span.start))
        .find(|separator| !separator.is_empty())
        .map_or_else(|| first_separator(own), str::to_owned);
    let mut inserted: BTreeMap<usize, String> = BTreeMap::new();
    for (at, xml) in written {
        let at = behind_comments(text, *at);
        let out = inserted.entry(at).or_default();
        for line in xml.lines() {
            out.push_str(&among);
            out.push_str(if among.is_empty() { line.trim() } else { line });
        }
    }
    let end = parent.tag.end;
    if end.is_empty_element {
        let inside: String = inserted.into_values().collect();
        let rest = Span::new(end.attributes_end, end.end);
        let name = parent.name;
        return vec![Edit::replace(rest, format!(">{inside}{own}</{name}>"))];
    }
    // The end tag may be on the same line.
    if parent.children.is_empty()
        && let Some((at, out)) = inserted.iter_mut().next()
        && !ends_line(text, *at)
    {
        out.push_str(own);
    }
    let edits = inserted.into_iter();
    edits
        .map(|(at, inserted)| Edit::insert(at, inserted))
        .collect()
}

/// The text before the first child of an element without children.
fn first_separator(own: &str) -> String {
    match own {
        "" => String::new(),
        own => format!("{own}  "),
    }
}
