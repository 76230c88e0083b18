//! `<domainsnapshot>`, `<domaincheckpoint>` and `<domainbackup>`: states of a guest's disks at a point in time.
//!
//! The guest inside is read like any other; the disks of the snapshot refer to its disks and name the action for each
//! of them. libvirt creates the files that they name, so these are not disks of the guest.

use std::collections::HashSet;

use vmdisk_model::{Domain, DomainField, FieldPath};
use vmdisk_rule::Severity;
use vmdisk_rule::reading::{DUPLICATE_VALUE, INVALID_VALUE, MISSING_VALUE};

use crate::domain;
use crate::reader::Reader;
use crate::unmodeled::Unmodeled;
use crate::vocabulary::{ElementSpec, FieldOwner};
use crate::xml::Node;

const ROOT: FieldPath = FieldPath::Domain(DomainField::Domain);

/// Reads a snapshot, checkpoint or backup with its table: checks its own elements, and reads the guest in it, if there
/// is one.
pub(crate) fn read<'d>(
    reader: &mut Reader<'_>,
    node: Node<'d>,
    spec: &'static ElementSpec,
) -> (Domain, Unmodeled) {
    let (guest, kept) = match node.child("domain") {
        // Old snapshots only contain the guest's UUID here.
        Some(inner) if inner.child("devices").is_some() => domain::read(reader, inner),
        Some(_) | None => (domain::disks_only(), Unmodeled::default()),
    };
    // It is not written back, so the kept parts are dropped.
    reader.unrecorded(|reader| {
        let element = reader.open(node, spec, [None; 2], ROOT, FieldOwner::default());
        reader.close(element);
    });
    for list in ["disks", "revertDisks"] {
        if let Some(disks) = node.child(list) {
            check_names(reader, disks, &guest);
        }
    }
    (guest, kept)
}

/// Reports disks without a name, with a repeated name, or with a name that no disk of the guest has.
fn check_names(reader: &mut Reader<'_>, disks: Node<'_>, guest: &Domain) {
    let mut seen = HashSet::new();
    let mut known: HashSet<&str> = HashSet::new();
    for disk in &guest.disks {
        known.extend(disk.frontend.target.as_deref());
        let image = disk.backend.image();
        known.extend(image.and_then(|image| image.host_path()));
    }
    for disk in disks.children() {
        let tag = disk.tag();
        let Some(name) = disk.attribute("name") else {
            let message = "the disk has no name: `<disk name=…>` is missing".to_owned();
            reader.problem(&MISSING_VALUE, ROOT, tag, message).help =
                Some("name a target of the guest, such as `vda`".to_owned());
            continue;
        };
        if !seen.insert(name) {
            let message = format!("disk `{name}` is named twice, which libvirt refuses");
            reader
                .problem(&DUPLICATE_VALUE, ROOT, tag, message)
                .severity = Severity::Error;
        } else if !known.is_empty() && !known.contains(name) {
            let message = format!("the guest has no disk `{name}`");
            reader.problem(&INVALID_VALUE, ROOT, tag, message);
        }
    }
}
