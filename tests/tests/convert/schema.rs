//! Every element and attribute of libvirt's installed schema, planted into a small guest.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use super::conversion::{Conversion, Target, convert, is_lost, report};
use super::xml::{self, Element};

const SCHEMAS: &str = "/usr/share/libvirt/schemas";

const GUEST: &str = "<domain type='kvm'>
  <name>a</name>
  <memory unit='KiB'>1048576</memory>
  <vcpu>2</vcpu>
  <os><type arch='x86_64' machine='q35'>hvm</type></os>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2'/>
      <source file='/srv/a.qcow2'/>
      <target dev='vda' bus='virtio'/>
    </disk>
  </devices>
</domain>";

/// What is said in another form, or says nothing where it is planted, each with the reason.
const NO_LOSSES: &[(&str, &str)] = &[
    (
        "domain/devices/disk/geometry@trans",
        "without a geometry it says nothing",
    ),
    (
        "domain/blkiotune/device/path",
        "a path without a weight; the weights are named",
    ),
    ("domain/devices/disk@type", "the default"),
    (
        "domain/devices/disk/address@type",
        "`pci` alone asks for any place",
    ),
    ("domain/os/type", "the only kind there is"),
    (
        "domain/cpu/numa/cell@memAccess",
        "named as the memory of the cells",
    ),
    (
        "domain/devices/controller@model",
        "named with the controller, which no disk uses",
    ),
    (
        "domain/devices/disk/auth@username",
        "of a file, which has no login",
    ),
];

/// Values of all kinds that patterns ask for.
const SAMPLES: &[&str] = &["1", "7", "on", "yes", "x1", "/srv/x", "0x2", "1.5"];

/// An element on the way to what is planted, with the attributes that its place in the schema fixes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Step {
    name: String,
    fixed: BTreeMap<String, String>,
}

/// What is planted: an attribute of the last element of a path, or its text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Planted {
    path: Vec<Step>,
    attribute: Option<String>,
    values: Vec<String>,
}

/// The grammar of a domain: its patterns by name.
struct Grammar {
    definitions: HashMap<String, Vec<Element>>,
    planted: BTreeSet<Planted>,
    /// Definitions that are being walked.
    open: HashMap<String, usize>,
}

impl Grammar {
    fn load(&mut self, file: &str, starts: &mut Vec<Element>) {
        let text = std::fs::read_to_string(Path::new(SCHEMAS).join(file))
            .expect("the schema is installed");
        self.add(xml::parse(&text), starts);
    }

    fn add(&mut self, grammar: Element, starts: &mut Vec<Element>) {
        for child in grammar.children {
            match child.name.as_str() {
                "define" => {
                    let name = child.get("name").unwrap_or_default().to_owned();
                    self.definitions.entry(name).or_default().push(child);
                }
                "start" => starts.push(child),
                "include" => {
                    let file = child.get("href").unwrap_or_default().to_owned();
                    self.load(&file, &mut Vec::new());
                }
                "div" => self.add(child, starts),
                _ => {}
            }
        }
    }

    /// Walks the patterns of a group, below an element.
    fn walk_all(&mut self, patterns: &[Element], path: &[Step]) {
        let mut path = path.to_vec();
        // What the group fixes tells which of several meanings its elements have.
        for pattern in patterns {
            if let ("attribute", [value], Some(last)) = (
                pattern.name.as_str(),
                pattern.children.as_slice(),
                path.last_mut(),
            ) && value.name == "value"
            {
                let name = pattern.get("name").unwrap_or_default();
                last.fixed.insert(name.to_owned(), value.text.clone());
            }
        }
        for pattern in patterns {
            self.walk(pattern, &path);
        }
    }

    fn walk(&mut self, pattern: &Element, path: &[Step]) {
        match pattern.name.as_str() {
            "element" => {
                let Some(name) = pattern.get("name") else {
                    return;
                };
                let mut path = path.to_vec();
                path.push(Step {
                    name: name.to_owned(),
                    fixed: BTreeMap::new(),
                });
                let values = self.values(&pattern.children);
                if !values.is_empty() {
                    self.planted.insert(Planted {
                        path: path.clone(),
                        attribute: None,
                        values,
                    });
                }
                self.walk_all(&pattern.children, &path);
            }
            "attribute" => {
                let Some(name) = pattern.get("name") else {
                    return;
                };
                let values = self.values(&pattern.children);
                let values = if values.is_empty() {
                    vec!["x1".to_owned()]
                } else {
                    values
                };
                self.planted.insert(Planted {
                    path: path.to_vec(),
                    attribute: Some(name.to_owned()),
                    values,
                });
            }
            "ref" => {
                let name = pattern.get("name").unwrap_or_default().to_owned();
                let depth = self.open.entry(name.clone()).or_default();
                // A chain of backing images is as good as endless.
                if *depth > 0 || path.len() > 9 {
                    return;
                }
                *depth += 1;
                for definition in self.definitions.get(&name).cloned().unwrap_or_default() {
                    self.walk_all(&definition.children, path);
                }
                *self.open.get_mut(&name).expect("it is open") -= 1;
            }
            "choice" => pattern
                .children
                .iter()
                .for_each(|child| self.walk(child, path)),
            "group" | "interleave" | "optional" | "zeroOrMore" | "oneOrMore" | "mixed" => {
                self.walk_all(&pattern.children, path);
            }
            _ => {}
        }
    }

    /// Values that patterns allow, without those of elements and attributes in them.
    fn values(&self, patterns: &[Element]) -> Vec<String> {
        let mut values = Vec::new();
        self.collect_values(patterns, 0, &mut values);
        values.truncate(12);
        values
    }

    fn collect_values(&self, patterns: &[Element], depth: usize, values: &mut Vec<String>) {
        for pattern in patterns {
            match pattern.name.as_str() {
                "value" => values.push(pattern.text.clone()),
                "data" | "text" => values.extend(SAMPLES.iter().map(|sample| (*sample).to_owned())),
                "ref" if depth < 6 => {
                    let name = pattern.get("name").unwrap_or_default();
                    for definition in self.definitions.get(name).into_iter().flatten() {
                        self.collect_values(&definition.children, depth + 1, values);
                    }
                }
                "choice" | "group" | "optional" | "list" | "mixed" => {
                    self.collect_values(&pattern.children, depth, values);
                }
                _ => {}
            }
        }
    }
}

/// The guest with everything that the path fixes.
fn guest(path: &[Step]) -> Element {
    let mut root = xml::parse(GUEST);
    element(&mut root, path);
    root
}

/// The element at the end of a path.
fn element<'e>(root: &'e mut Element, path: &[Step]) -> &'e mut Element {
    let mut at = root;
    for (nth, step) in path.iter().enumerate() {
        if nth > 0 {
            at = at.child(&step.name);
        }
        for (name, value) in &step.fixed {
            at.set(name, value);
        }
    }
    at
}

/// The names that elements around what is planted are reported under.
fn owners(planted: &Planted) -> Vec<String> {
    let names: Vec<&str> = planted
        .path
        .iter()
        .skip(1)
        .map(|step| step.name.as_str())
        .collect();
    let mut owners: Vec<String> = (1..=names.len())
        .map(|count| names[..count].join("/"))
        .collect();
    if let Some(attribute) = &planted.attribute {
        let path = names.join("/");
        owners.push(format!("{path}/@{attribute}"));
    }
    // Of a disk or controller, an element is named alone.
    if let ["devices", "disk" | "controller", below @ ..] = names.as_slice() {
        owners.extend(below.iter().map(|name| format!("<{name}>")));
    }
    owners
}

/// The path of what is planted.
fn name_of(planted: &Planted) -> String {
    let path: Vec<&str> = planted.path.iter().map(|step| step.name.as_str()).collect();
    let attribute = planted.attribute.as_deref();
    format!(
        "{}{}",
        path.join("/"),
        attribute.map_or_else(String::new, |it| format!("@{it}"))
    )
}

#[test]
fn every_element_and_attribute_of_libvirts_schema_is_carried_named_or_refused() {
    if !Path::new(SCHEMAS).join("domain.rng").exists() {
        println!("skipped: libvirt's schema is not installed");
        return;
    }
    let mut grammar = Grammar {
        definitions: HashMap::new(),
        planted: BTreeSet::new(),
        open: HashMap::new(),
    };
    let mut starts = Vec::new();
    grammar.load("domain.rng", &mut starts);
    for start in &starts {
        grammar.walk_all(&start.children, &[]);
    }
    let mut bases: HashMap<(Vec<Step>, bool), Conversion> = HashMap::new();
    let (mut cases, mut lost) = (0, Vec::new());
    for planted in &grammar.planted {
        if planted
            .path
            .first()
            .is_none_or(|step| step.name != "domain")
        {
            continue;
        }
        for target in [Target::Qemu, Target::Spec] {
            cases += 1;
            // What the place fixes may be what is planted.
            let mut around = planted.path.clone();
            if let (Some(last), Some(name)) = (around.last_mut(), &planted.attribute) {
                last.fixed.remove(name);
            }
            let base = bases
                .entry((around.clone(), target == Target::Qemu))
                .or_insert_with(|| convert(&guest(&around).write(), target));
            let is_lost = planted.values.iter().all(|value| {
                let mut root = guest(&around);
                let element = element(&mut root, &around);
                match &planted.attribute {
                    Some(name) if element.get(name) == Some(value) => return true,
                    Some(name) => element.set(name, value),
                    None if element.text == *value => return true,
                    None => element.text.clone_from(value),
                }
                is_lost(base, &convert(&root.write(), target), &owners(planted))
            });
            let name = name_of(planted);
            // A gap: a spec of an image that exists says nothing of those below it, which its header names.
            let is_below = target == Target::Spec && name.contains("disk/backingStore");
            if is_lost && !is_below && !NO_LOSSES.iter().any(|(known, _)| *known == name) {
                let steps = planted.path.iter().flat_map(|step| &step.fixed);
                let fixed: Vec<String> = steps
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                lost.push(format!(
                    "{target:?} {name} [{}] {:?}",
                    fixed.join(" "),
                    planted.values
                ));
            }
        }
    }
    assert!(cases > 2000, "only {cases} cases");
    report("libvirt's schema", cases, &lost);
}
