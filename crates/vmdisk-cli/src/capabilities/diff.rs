//! `vmdisk capabilities diff`: the changes between two targets.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use vmdisk::Target;
use vmdisk::facts::capability::TABLE;
use vmdisk::facts::{Answer, MemberTable, Owner};

use crate::args::{CapabilitiesDiffArgs, TextFormat};
use crate::exit::Exit;
use crate::io::Io;
use crate::output::deliver;
use crate::qemu;
use crate::stop::Stop;

/// Version of the shape.
const SCHEMA_VERSION: &str = "1.0";

/// Owners named in a line of text; the others are counted.
const NAMED_OWNERS: usize = 3;

/// What `vmdisk capabilities diff --format json` prints.
///
/// Within version 1 keys are added, never removed, renamed or given another meaning.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(
    title = "vmdisk capabilities diff, version 1",
    rename = "CapabilitiesDiff"
)]
struct Envelope {
    /// Version of this shape: another first number is another shape.
    schema_version: &'static str,
    /// The first target.
    old: String,
    /// The second target.
    new: String,
    /// The differences: capabilities first, then properties and members by their owner.
    changes: Vec<Change>,
    /// Capabilities, properties and members of which one of the two targets is unknown.
    not_compared: usize,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct Change {
    /// `added` or `removed`.
    change: &'static str,
    /// `capability`, `device`, `node` or `object`.
    kind: &'static str,
    /// The name of the capability, or the owner of the property or member: `virtio-blk-pci`, `qcow2`, `iothread`.
    owner: String,
    /// The property or member; null for a capability.
    member: Option<String>,
}

/// Prints what the second target has and the first lacks, and the other way round. Exit status 1 if they differ.
pub(crate) fn run(args: &CapabilitiesDiffArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let (old, new) = (target(&args.old)?, target(&args.new)?);
    let (changes, not_compared) = compare(&old, &new);
    let exit = if changes.is_empty() {
        Exit::Clean
    } else {
        Exit::Findings
    };
    let text = match args.format {
        TextFormat::Text => text(&changes, not_compared),
        TextFormat::Json => {
            let envelope = Envelope {
                schema_version: SCHEMA_VERSION,
                old: old.to_string(),
                new: new.to_string(),
                changes,
                not_compared,
            };
            let mut text = serde_json::to_string_pretty(&envelope)
                .expect("text, numbers and lists can be written");
            text.push('\n');
            text
        }
    };
    deliver(io, None, &text)?;
    Ok(exit)
}

/// The JSON Schema of the differences.
pub(crate) fn schema() -> schemars::Schema {
    schemars::schema_for!(Envelope)
}

/// A target as written, or the QEMU or recording at a path.
fn target(text: &str) -> Result<Target, Stop> {
    match text.parse() {
        Ok(target) => Ok(target),
        Err(_) if Path::new(text).exists() => Ok(qemu::ask(Path::new(text))?.target()),
        Err(error) => Err(Stop::new(error.to_string())
            .help("name a target, or the path of a QEMU or of a recording")),
    }
}

fn compare(old: &Target, new: &Target) -> (Vec<Change>, usize) {
    let mut changes = Vec::new();
    let mut not_compared = 0;
    let mut note = |before: Answer, after: Answer, kind, owner: &str, member: Option<&str>| {
        let change = match (before, after) {
            (Answer::Yes(_), Answer::No(_)) => "removed",
            (Answer::No(_), Answer::Yes(_)) => "added",
            (Answer::Yes(_), Answer::Yes(_))
            | (Answer::No(_), Answer::No(_))
            | (Answer::Unknown, Answer::Unknown) => return,
            (Answer::Unknown, Answer::Yes(_) | Answer::No(_))
            | (Answer::Yes(_) | Answer::No(_), Answer::Unknown) => {
                not_compared += 1;
                return;
            }
        };
        changes.push(Change {
            change,
            kind,
            owner: owner.to_owned(),
            member: member.map(str::to_owned),
        });
    };
    for row in TABLE {
        let (before, after) = (old.can(row.capability), new.can(row.capability));
        note(before, after, "capability", row.name, None);
    }
    for (owner, members) in MemberTable::recorded().owners() {
        let (kind, name) = match owner {
            Owner::Device(name) => ("device", name),
            Owner::Node(name) => ("node", name),
            Owner::Object(name) => ("object", name),
        };
        for member in members.keys() {
            let (before, after) = (old.has_member(owner, member), new.has_member(owner, member));
            note(before, after, kind, name, Some(member));
        }
    }
    (changes, not_compared)
}

/// One line for each capability, and for each property or member with its owners.
fn text(changes: &[Change], not_compared: usize) -> String {
    let mut out = String::new();
    let mut members: BTreeMap<(&str, &str, &str), Vec<&str>> = BTreeMap::new();
    for change in changes {
        let sign = if change.change == "added" { "+" } else { "-" };
        match &change.member {
            None => {
                let row = TABLE.iter().find(|row| row.name == change.owner);
                let about = row.map_or("", |row| row.about);
                let _ = writeln!(out, "{sign} {}: {about}", change.owner);
            }
            Some(member) => members
                .entry((change.kind, member, sign))
                .or_default()
                .push(&change.owner),
        }
    }
    for ((kind, member, sign), owners) in members {
        let named = owners[..owners.len().min(NAMED_OWNERS)].join(", ");
        let _ = write!(out, "{sign} {kind} {named}");
        if owners.len() > NAMED_OWNERS {
            let _ = write!(out, " and {} more", owners.len() - NAMED_OWNERS);
        }
        let _ = writeln!(out, ": {member}");
    }
    if changes.is_empty() {
        out.push_str("no differences\n");
    }
    if not_compared > 0 {
        let _ = writeln!(
            out,
            "{not_compared} not compared: unknown of one of the two"
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Target {
        text.parse().unwrap()
    }

    #[test]
    fn a_property_that_came_and_one_that_went_are_changes() {
        let (changes, _) = compare(&parsed("qemu=7.2"), &parsed("qemu=11.1"));
        let has = |change, owner: &str, member: Option<&str>| {
            changes.iter().any(|one| {
                one.change == change && one.owner == owner && one.member.as_deref() == member
            })
        };
        assert!(has("added", "virtio-blk-pci", Some("in_order")));
        assert!(has("removed", "gluster", None));
        assert!(!has("added", "virtio-blk-pci", Some("serial")));
        let (back, _) = compare(&parsed("qemu=11.1"), &parsed("qemu=7.2"));
        assert_eq!(back.len(), changes.len());
    }

    #[test]
    fn a_target_does_not_differ_from_itself() {
        let (changes, not_compared) = compare(&parsed("qemu=10.0"), &parsed("qemu=10.0"));
        assert_eq!((changes.as_slice(), not_compared), (&[][..], 0));
        assert_eq!(text(&changes, not_compared), "no differences\n");
    }
}
