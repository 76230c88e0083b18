//! `<domainsnapshot>`, `<domaincheckpoint>` and `<domainbackup>`: what is kept of a guest's disks at a moment.
//!
//! The guest inside is read as any other; the disks of the snapshot name its disks, and say what becomes of
//! them. libvirt makes the files that they name, so that these are no disks of the guest.

use std::collections::HashSet;

use roxmltree::Node;
use vmdisk_model::{Domain, DomainField, FieldPath};
use vmdisk_source::{ProblemKind, Span};

use crate::kept::Kept;
use crate::reader::Reader;
use crate::vocabulary::{ElementSpec, Whose};
use crate::{domain, tree};

const ROOT: FieldPath = FieldPath::Domain(DomainField::Domain);

/// Reads a snapshot, checkpoint or backup along its table: its own elements are checked, and the guest in
/// it, if there is one, is read.
pub(crate) fn read<'d>(
    reader: &mut Reader<'_>,
    node: Node<'d, 'd>,
    spec: &'static ElementSpec,
) -> (Domain, Kept) {
    let text = reader.text;
    let named = |parent: Node<'d, 'd>, name: &str| {
        parent
            .children()
            .find(|child| child.is_element() && tree::name(text, *child) == name)
    };
    let (guest, kept) = match named(node, "domain") {
        // Old snapshots have the guest's number there and nothing else.
        Some(inner) if named(inner, "devices").is_some() => domain::read(reader, inner),
        Some(_) | None => (domain::disks_only(), Kept::default()),
    };
    // It is not written back, so that what is kept of it is nobody's.
    reader.unrecorded(|reader| {
        let element = reader.open(node, spec, [None; 2], ROOT, Whose::default());
        reader.close(element);
    });
    for list in ["disks", "revertDisks"] {
        if let Some(disks) = named(node, list) {
            check_names(reader, disks, &guest);
        }
    }
    (guest, kept)
}

/// Notes disks without a name, with the name of another, or with that of none of the guest's disks.
fn check_names<'d>(reader: &mut Reader<'_>, disks: Node<'d, 'd>, guest: &Domain) {
    let mut seen = HashSet::new();
    let mut known: HashSet<&str> = HashSet::new();
    for disk in &guest.disks {
        known.extend(disk.frontend.target.as_deref());
        let image = disk.backend.image();
        known.extend(image.and_then(|image| image.host_path()));
    }
    for disk in disks.children().filter(Node::is_element) {
        let range: Span = disk.range().into();
        let tag = crate::tag::scan_tag(reader.text, range.start)
            .map_or(range, |tag| Span::new(range.start, tag.end.end));
        let Some(name) = tree::attribute(disk, "name") else {
            let message = "the disk has no name: `<disk name=…>` is missing".to_owned();
            reader
                .problem(ProblemKind::MissingValue, ROOT, tag, message)
                .help = Some("name a target of the guest, such as `vda`".to_owned());
            continue;
        };
        if !seen.insert(name) {
            let message = format!("disk `{name}` is named twice, which libvirt refuses");
            reader.problem(ProblemKind::DuplicateRefused, ROOT, tag, message);
        } else if !known.is_empty() && !known.contains(name) {
            let message = format!("the guest has no disk `{name}`");
            reader.problem(ProblemKind::InvalidValue, ROOT, tag, message);
        }
    }
}
