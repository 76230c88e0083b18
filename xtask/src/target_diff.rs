//! The differences between two targets, to review a new release.

use std::collections::BTreeMap;

use vmdisk::Target;
use vmdisk::facts::capability::TABLE;
use vmdisk::facts::{Answer, MemberTable, Owner};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A target such as qemu=7.2
    old: Target,
    /// The target to compare it with
    new: Target,
}

/// Prints the capabilities, properties and members that one of two targets has and the other lacks.
pub(crate) fn run(arguments: &Arguments) {
    for line in lines(&arguments.old, &arguments.new) {
        println!("{line}");
    }
}

/// Returns a line for each capability, and for each property or member with its owners.
fn lines(old: &Target, new: &Target) -> Vec<String> {
    let mut unknown = 0;
    let mut sign = |before: Answer, after: Answer| match (before, after) {
        (Answer::Yes(_), Answer::No(_)) => Some('-'),
        (Answer::No(_), Answer::Yes(_)) => Some('+'),
        (Answer::Unknown, Answer::Unknown) => None,
        (Answer::Unknown, _) | (_, Answer::Unknown) => {
            unknown += 1;
            None
        }
        (Answer::Yes(_), Answer::Yes(_)) | (Answer::No(_), Answer::No(_)) => None,
    };
    let mut lines = Vec::new();
    for row in TABLE {
        let sign = sign(old.can(row.capability), new.can(row.capability));
        lines.extend(sign.map(|sign| format!("{sign} {}: {}", row.name, row.about)));
    }
    let mut members: BTreeMap<(&str, &str, char), Vec<&str>> = BTreeMap::new();
    for (owner, known) in MemberTable::recorded().owners() {
        let (kind, name) = match owner {
            Owner::Device(name) => ("device", name),
            Owner::Node(name) => ("node", name),
            Owner::Object(name) => ("object", name),
        };
        for member in known.keys() {
            let (before, after) = (old.has_member(owner, member), new.has_member(owner, member));
            if let Some(sign) = sign(before, after) {
                members.entry((kind, member, sign)).or_default().push(name);
            }
        }
    }
    for ((kind, member, sign), owners) in members {
        lines.push(format!("{sign} {kind} {}: {member}", owners.join(", ")));
    }
    lines.push(format!("{unknown} not compared: unknown of one of the two"));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_that_came_and_one_that_went_are_lines() {
        let target = |text: &str| text.parse::<Target>().unwrap();
        let found = lines(&target("qemu=7.2"), &target("qemu=11.1"));
        let has = |start: &str, end: &str| {
            let mut lines = found.iter();
            lines.any(|line| line.starts_with(start) && line.ends_with(end))
        };
        assert!(has("+ device", ": in_order"));
        assert!(has("- virtio-blk-scsi: ", ""));
        assert!(!has("+ device", ": serial"));
        let same = lines(&target("qemu=10.0"), &target("qemu=10.0"));
        assert_eq!(same, ["0 not compared: unknown of one of the two"]);
    }
}
