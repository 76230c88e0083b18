//! How a guest that exists differs from the guest that a spec asks for.

use vmdisk_document::{Node, Value};
use vmdisk_model::Domain;

use super::Spec;
use super::section::SpecValue as _;

/// A key of a spec for which a guest has another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The key, such as `memory` or `disk vda: qcow2.path`.
    pub key: String,
    /// The value of the plan.
    pub planned: String,
    /// The value of the guest.
    pub existing: String,
}

/// Keys of a disk that are compared even if the spec leaves them to the plan. The image is compared, too.
const ALWAYS: [&str; 5] = ["bus", "cache", "io", "discard", "media"];

const UNSET: &str = "unset";

impl Spec {
    /// The keys that differ between the planned guest and one that exists: all that this spec sets, and those that decide
    /// what happens to the data.
    pub fn differences(&self, planned: &Domain, existing: &Domain) -> Vec<Difference> {
        let asked = written(self);
        let planned = written(&Spec::of_domain(planned).0);
        let existing = written(&Spec::of_domain(existing).0);
        let mut found = Vec::new();
        let guest = |spec: &'_ Node, key: &str| spec.get("guest")?.get(key).cloned();
        for entry in asked.get("guest").map_or(&[][..], Node::members) {
            let key = entry.key.as_str();
            // The operating system is no part of a guest; it is in the buses.
            let Some(planned) = guest(&planned, key) else {
                continue;
            };
            let existing = guest(&existing, key);
            let texts = (
                planned.value.as_text(),
                existing.as_ref().and_then(|it| it.value.as_text()),
            );
            let is_same_machine = match (key, texts) {
                ("machine", (Some(planned), Some(existing))) => is_machine(existing, planned),
                _ => false,
            };
            if !is_same_machine {
                compare(key, &planned, existing.as_ref(), &mut found);
            }
        }
        compare_disks(&asked, &planned, &existing, &mut found);
        found
    }
}

fn written(spec: &Spec) -> Node {
    Node {
        value: spec.write(),
        ..Node::default()
    }
}

/// libvirt writes the newest machine of the name that a guest asks for.
fn is_machine(existing: &str, planned: &str) -> bool {
    let versioned = match planned {
        "pc" => "pc-i440fx-".to_owned(),
        "q35" => "pc-q35-".to_owned(),
        other => format!("{other}-"),
    };
    existing == planned || existing.starts_with(&versioned)
}

fn compare_disks(asked: &Node, planned: &Node, existing: &Node, found: &mut Vec<Difference>) {
    fn disks(spec: &Node) -> &[Node] {
        spec.get("disks").map_or(&[][..], Node::items)
    }
    fn target(disk: &Node) -> &str {
        let target = disk.get("target").and_then(|it| it.value.as_text());
        target.unwrap_or_default()
    }
    let missing = |name: &str, planned: &str, existing: &str| Difference {
        key: format!("disk {name}"),
        planned: planned.to_owned(),
        existing: existing.to_owned(),
    };
    for (nth, disk) in disks(planned).iter().enumerate() {
        let name = target(disk);
        let Some(same) = disks(existing).iter().find(|it| target(it) == name) else {
            found.push(missing(name, "a disk", "no disk"));
            continue;
        };
        let asked = disks(asked).get(nth);
        for entry in disk.members() {
            let key = entry.key.as_str();
            let is_asked = asked.is_some_and(|it| it.get(key).is_some());
            let is_image = matches!(entry.node.value, Value::Map(_));
            if is_asked || is_image || ALWAYS.contains(&key) {
                compare(
                    &format!("disk {name}: {key}"),
                    &entry.node,
                    same.get(key),
                    found,
                );
            }
        }
    }
    for disk in disks(existing) {
        let name = target(disk);
        if !disks(planned).iter().any(|it| target(it) == name) {
            found.push(missing(name, "no disk", "a disk"));
        }
    }
}

/// Names what differs, at the deepest key.
fn compare(key: &str, planned: &Node, existing: Option<&Node>, found: &mut Vec<Difference>) {
    match (planned.members(), existing) {
        (_, Some(existing)) if *planned == *existing => {}
        (members @ [_, ..], Some(existing)) if !existing.members().is_empty() => {
            for entry in members {
                let key = format!("{key}.{}", entry.key);
                compare(&key, &entry.node, existing.get(&entry.key), found);
            }
        }
        (_, existing) => found.push(Difference {
            key: key.to_owned(),
            planned: text(planned),
            existing: existing.map_or_else(|| UNSET.to_owned(), text),
        }),
    }
}

fn text(node: &Node) -> String {
    match &node.value {
        Value::Text(text) => text.clone(),
        value => serde_json::to_string(value).unwrap_or_default(),
    }
}
