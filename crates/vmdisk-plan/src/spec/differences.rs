//! How a guest that exists differs from the guest that a spec asks for.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use vmdisk_document::{Node, Value};
use vmdisk_model::{Disk, Domain};

use super::section::SpecValue as _;
use super::{BackendSpec, Spec};
use crate::plan::{Choice, ChoiceSource, Plan};

/// A key of a spec for which a guest has another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The target of the disk that it is about; none for a key of the guest.
    pub disk: Option<String>,
    /// The key, such as `memory` or `disk vda: qcow2.path`.
    pub key: String,
    /// The value of the plan.
    pub planned: String,
    /// The value of the guest.
    pub existing: String,
}

/// Keys of a disk that are compared even if the spec leaves them to the plan. The image is compared, too.
const ALWAYS: [&str; 2] = ["bus", "media"];

/// Keys of a disk that its storage decides, each with the key that decides it, too.
const OF_STORAGE: [(&str, &str); 3] = [("cache", ""), ("io", "cache"), ("discard", "readonly")];

const UNSET: &str = "unset";

impl Difference {
    /// The key of the disk that it is about, such as `cache` or `iotune.total-iops-sec`; empty for the whole disk, and the
    /// key itself for one of the guest.
    pub fn own_key(&self) -> &str {
        match self.key.strip_prefix("disk ") {
            Some(rest) if self.disk.is_some() => rest.split_once(": ").map_or("", |(_, key)| key),
            _ => &self.key,
        }
    }
}

impl Spec {
    /// The keys that differ between the guest of the plan of this spec and one that exists: all that this spec sets, and the
    /// cache mode, the I/O interface and discards if facts decide them. Without facts, they differ only with what decides
    /// them: the image, the cache mode for the I/O interface, and a disk that is not read-only any more. A disk is the planned one with its image, or else with its target.
    pub fn differences(&self, plan: &Plan, existing: &Domain) -> Vec<Difference> {
        let asked = written(self);
        let planned = &plan.domain;
        let named = with_planned_names(planned, existing);
        let mut found: Vec<Difference> = renamed(&named, existing).collect();
        // The spec of a guest of which a disk uses none has no number of them.
        let has_threads = planned.iothreads.len() == existing.iothreads.len();
        let planned = written(&Spec::of_domain(planned).0);
        let existing = written(&Spec::of_domain(&named).0);
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
            let is_same = is_same_machine || key == "iothreads" && has_threads;
            if !is_same {
                compare(None, key, &planned, existing.as_ref(), &mut found);
            }
        }
        compare_disks((&asked, &plan.choices), &planned, &existing, &mut found);
        found
    }
}

/// A guest whose disks have the targets of the planned disks with their images. A disk whose target another one keeps, or
/// whose image is there twice, has its own target.
pub(crate) fn with_planned_names<'a>(planned: &Domain, existing: &'a Domain) -> Cow<'a, Domain> {
    let image = |disk: &'_ Disk| disk.backend.image().map(|image| image.protocol.clone());
    let only = |guest: &'_ Domain, disk: &Disk| {
        let own = image(disk)?;
        let mut all = guest.disks.iter().enumerate();
        let mut found = all
            .by_ref()
            .filter(|(_, it)| image(it).as_ref() == Some(&own));
        let (first, _) = found.next()?;
        found.next().is_none().then_some(first)
    };
    let mut targets: BTreeMap<usize, Option<String>> = BTreeMap::new();
    for (nth, disk) in existing.disks.iter().enumerate() {
        if let (Some(new), Some(_)) = (only(planned, disk), only(existing, disk)) {
            let target = &planned.disks[new].frontend.target;
            let is_other = *target != disk.frontend.target;
            targets.extend(is_other.then(|| (nth, target.clone())));
        }
    }
    loop {
        let kept = existing.disks.iter().enumerate();
        let kept = kept.filter(|(nth, _)| !targets.contains_key(nth));
        let kept: BTreeSet<Option<String>> =
            kept.map(|(_, it)| it.frontend.target.clone()).collect();
        let count = targets.len();
        targets.retain(|_, target| !kept.contains(target));
        if targets.len() == count {
            break;
        }
    }
    let mut named = Cow::Borrowed(existing);
    for (nth, target) in targets {
        let frontend = &mut named.to_mut().disks[nth].frontend;
        frontend.bus = Some(frontend.effective_bus());
        frontend.target = target;
    }
    named
}

/// The targets of the same disks that differ.
fn renamed<'a>(named: &'a Domain, existing: &'a Domain) -> impl Iterator<Item = Difference> + 'a {
    let pairs = named.disks.iter().zip(&existing.disks);
    let pairs = pairs.filter(|(new, old)| new.frontend.target != old.frontend.target);
    pairs.map(|(new, old)| Difference {
        disk: new.frontend.target.clone(),
        key: format!("disk {}: target", new.name()),
        planned: new.name().to_owned(),
        existing: old.name().to_owned(),
    })
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

fn compare_disks(
    (asked, choices): (&Node, &[Choice]),
    planned: &Node,
    existing: &Node,
    found: &mut Vec<Difference>,
) {
    fn disks(spec: &Node) -> &[Node] {
        spec.get("disks").map_or(&[][..], Node::items)
    }
    fn target(disk: &Node) -> &str {
        let target = disk.get("target").and_then(|it| it.value.as_text());
        target.unwrap_or_default()
    }
    let missing = |name: &str, planned: &str, existing: &str| Difference {
        disk: Some(name.to_owned()),
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
        let first = found.len();
        found.extend(dropped(asked, disk, same).map(|it| Difference {
            disk: Some(name.to_owned()),
            key: format!("disk {name}: {}", it.key),
            ..it
        }));
        let is_asked = |key: &str| asked.is_some_and(|it| it.get(key).is_some());
        for entry in disk.members() {
            let key = entry.key.as_str();
            let is_image = matches!(entry.node.value, Value::Map(_));
            if is_asked(key) || is_image || ALWAYS.contains(&key) {
                let path = format!("disk {name}: {key}");
                compare(Some(name), &path, &entry.node, same.get(key), found);
            }
        }
        for (key, deciding) in OF_STORAGE {
            if let Some(planned) = disk.get(key).filter(|_| !is_asked(key))
                && is_decided((key, deciding), nth, &found[first..], choices)
            {
                let path = format!("disk {name}: {key}");
                compare(Some(name), &path, planned, same.get(key), found);
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

/// True for a key that a plan decided for a disk that differs so: by facts, or for other storage than the disk has.
fn is_decided(
    (key, deciding): (&str, &str),
    nth: usize,
    differing: &[Difference],
    choices: &[Choice],
) -> bool {
    let mut choices = choices.iter();
    let is_by_fact = |it: &Choice| {
        it.at.disk() == Some(nth) && it.option == key && it.source == ChoiceSource::Fact
    };
    let mut differing = differing.iter().map(Difference::own_key);
    choices.any(is_by_fact)
        || differing.any(|it| {
            let kind = it.split('.').next().unwrap_or_default();
            it == deciding || BackendSpec::KINDS.contains(&kind)
        })
}

/// What the disk that exists has and the planned one has not: options that the spec sets to their defaults, which a plan does
/// not write, and further limits.
fn dropped<'a>(
    asked: Option<&'a Node>,
    planned: &'a Node,
    existing: &'a Node,
) -> impl Iterator<Item = Difference> + 'a {
    let options = asked.into_iter().flat_map(Node::members);
    let options = options.filter(|it| planned.get(&it.key).is_none());
    let options =
        options.filter_map(|it| Some((it.key.clone(), text(&it.node), existing.get(&it.key)?)));
    let limits = planned.get("iotune").zip(existing.get("iotune"));
    let limits = limits.into_iter().flat_map(|(planned, existing)| {
        let members = existing.members().iter();
        members.filter(|it| planned.get(&it.key).is_none())
    });
    let limits = limits.map(|it| (format!("iotune.{}", it.key), UNSET.to_owned(), &it.node));
    options
        .chain(limits)
        .map(|(key, planned, existing)| Difference {
            disk: None,
            key,
            planned,
            existing: text(existing),
        })
}

/// Names what differs, at the deepest key.
fn compare(
    disk: Option<&str>,
    key: &str,
    planned: &Node,
    existing: Option<&Node>,
    found: &mut Vec<Difference>,
) {
    match (planned.members(), existing) {
        (_, Some(existing)) if *planned == *existing => {}
        (members @ [_, ..], Some(existing)) if !existing.members().is_empty() => {
            for entry in members {
                let key = format!("{key}.{}", entry.key);
                compare(disk, &key, &entry.node, existing.get(&entry.key), found);
            }
        }
        (_, existing) => found.push(Difference {
            disk: disk.map(str::to_owned),
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
