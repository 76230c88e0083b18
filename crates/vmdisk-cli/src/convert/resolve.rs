//! libvirt's defaults for `--resolved`, and its refusals.

use std::collections::BTreeSet;
use std::fmt::Write;

use vmdisk::model::{DiskField, Domain, FieldPath};
use vmdisk::{Conflict, ConflictKind, Decision, Document, Label, Resolved, breadcrumb, resolve};

use super::dropped::Places;
use crate::input::inputs::Input;
use crate::render::message::Message;
use crate::sanitize::line;
use crate::stop::Stop;

/// The guest as libvirt would define it; or the reason, if libvirt would refuse its addresses.
pub(super) fn resolved(document: &Document, input: &Input) -> Result<Resolved, Stop> {
    let resolved = resolve(document);
    let places = Places::new(document, input);
    let mut messages: Vec<Message> = resolved
        .conflicts
        .iter()
        .map(|conflict| message(&places, &resolved, conflict))
        .collect();
    messages.extend(same_targets(&places, &resolved));
    if messages.is_empty() {
        Ok(resolved)
    } else {
        Err(Stop(messages))
    }
}

fn message(places: &Places<'_>, resolved: &Resolved, conflict: &Conflict) -> Message {
    let Conflict { at, with, kind } = conflict;
    let owner = |at: FieldPath| match at.disk().and_then(|nth| resolved.domain.disks.get(nth)) {
        Some(disk) => format!("disk {}", line(disk.name())),
        None => owner_of(&resolved.domain, at),
    };
    let (title, help) = match kind {
        ConflictKind::NameWithoutNumber => (
            format!(
                "{} has no address, and libvirt cannot derive one from its name",
                owner(*at)
            ),
            "use a name with the prefix of its bus, such as vdb or sdb, or set an address",
        ),
        ConflictKind::SameAddress => (
            format!(
                "{} has the address of {}, and libvirt does not choose another one",
                owner(*at),
                with.map_or_else(|| "another disk".to_owned(), owner)
            ),
            "change the name or the address of one of them",
        ),
        ConflictKind::SameController {
            controller_type,
            index,
        } => (
            format!("there are two {controller_type} controllers with index {index}"),
            "give one of them another index",
        ),
    };
    Message::error(title)
        .help(help.to_owned())
        .at(places.of_field(*at))
}

/// Disks with the target name of another one, which libvirt refuses.
fn same_targets(places: &Places<'_>, resolved: &Resolved) -> Vec<Message> {
    let mut seen = BTreeSet::new();
    let disks = resolved.domain.disks.iter().enumerate();
    let named = disks.filter_map(|(nth, disk)| Some((nth, disk.frontend.target.as_deref()?)));
    let twice = named.filter(|(_, target)| !seen.insert(*target));
    let message = |(nth, target): (usize, &str)| {
        Message::error(format!("two disks have the name {}", line(target)))
            .help("give one of them another name".to_owned())
            .at(places.of_field(FieldPath::Disk(nth, DiskField::Target)))
    };
    twice.map(message).collect()
}

/// The filled-in values: a line for each with its reason, or their number.
pub(super) fn summary(resolved: &Resolved, explain: bool) -> String {
    let decisions = &resolved.decisions;
    if !explain {
        return match decisions.len() {
            0 => "nothing was left open\n".to_owned(),
            1 => "libvirt would add one default; --explain shows the reason\n".to_owned(),
            count => format!("libvirt would add {count} defaults; --explain shows the reasons\n"),
        };
    }
    let mut out = String::new();
    // By disk, the controllers last; within each in the order of the decisions.
    let mut sorted: Vec<&Decision> = decisions.iter().collect();
    sorted.sort_by_key(|decision| decision.at.disk().unwrap_or(usize::MAX));
    for decision in sorted {
        let Decision { at, value, reason } = decision;
        let what = match at {
            FieldPath::Controller(_, field) => {
                format!("{} › {}", owner_of(&resolved.domain, *at), field.label())
            }
            _ => breadcrumb(&resolved.domain, *at),
        };
        let _ = writeln!(out, "{}: {}: {reason}", line(&what), line(value));
    }
    out
}

/// A controller by its kind and number.
fn owner_of(domain: &Domain, at: FieldPath) -> String {
    let controller = match at {
        FieldPath::Controller(nth, _) => domain.controllers.get(nth),
        _ => None,
    };
    match controller {
        Some(controller) => {
            let index = controller.index.unwrap_or_default();
            format!("{} controller {index}", controller.controller_type)
        }
        None => "the guest".to_owned(),
    }
}
