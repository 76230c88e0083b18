//! Texts that can stand where a template has a placeholder.

use std::collections::BTreeSet;

use vmdisk_source::Span;
use vmdisk_source::template::{Placeholder, PlaceholderKind};

use crate::document::Document;
use crate::root::RootKind;
use crate::vocabulary::{self, ChildSpec, ElementSpec, ValueSpec};
use crate::xml::{Attribute, Node};

/// Texts of all kinds: names, numbers, paths, targets and machines.
const TEXTS: [&str; 13] = [
    "x",
    "7",
    "/srv/x.qcow2",
    "/srv/x.img",
    "/dev/x",
    "vdx",
    "sdx",
    "hdd",
    "q35",
    "pc-i440fx-2.1",
    "none",
    "1048576",
    "00000000-0000-4000-8000-000000000007",
];
const NUMBERS: [&str; 14] = [
    "1",
    "0",
    "2",
    "3",
    "4",
    "5",
    "6",
    "7",
    "8",
    "16",
    "512",
    "4096",
    "1048576",
    "4294967295",
];
/// Number of numbers of the text that are tried, each with the next one.
const MAX_NUMBERS: usize = 24;
/// Parts of names and numbers.
const PARTS: [&str; 5] = ["7", "x", "1", "0", ""];

/// Depth of the elements that stand for a placeholder between elements.
const MAX_DEPTH: usize = 3;

/// Texts that the placeholder of a template may stand for: every accepted word, and numbers and names of each kind.
/// `numbers` are those of the [whole text](numbers).
pub fn fillings(
    document: &Document,
    text: &str,
    numbers: &[String],
    placeholder: &Placeholder,
) -> Vec<String> {
    let Placeholder { span, position, .. } = placeholder;
    if document.elements.is_empty() {
        return Vec::new();
    }
    let tree = document.elements.of(text);
    let Some(mut spec) = root(document.root) else {
        return Vec::new();
    };
    let node = tree.around(*span);
    let contains = |outer: Span| outer.start <= span.start && span.end <= outer.end;
    let mut path: Vec<Node<'_>> = std::iter::once(node).chain(node.ancestors()).collect();
    path.reverse();
    for outer_and_child in path.windows(2) {
        let (outer, child) = (outer_and_child[0], outer_and_child[1]);
        let own_type = child.attribute("type");
        spec = match spec.child(child.name()) {
            Some((_, known)) => {
                let outer_type = outer.attribute("type").unwrap_or("file");
                known.pick.element(outer_type, own_type)
            }
            None if child.is_named("domain") => &vocabulary::DOMAIN,
            None => return texts(PARTS),
        };
    }
    let is_value = |it: &Attribute<'_>| contains(it.whole());
    let written = node.attributes().find(is_value);
    match (position, written) {
        (PlaceholderKind::Name, _) => Vec::new(),
        (PlaceholderKind::Attributes, _) => attributes(spec, node),
        (_, Some(written)) => {
            let value = spec
                .attribute(written.name())
                .map_or(ValueSpec::Text, |it| it.value);
            let around = Span::new(span.start.max(written.value_span().start), span.end);
            let mut found = parts(value, written.value_span(), around, text);
            let usual = usual(spec.name, written.name());
            let is_whole =
                span.start <= written.value_span().start && written.value_span().end <= span.end;
            if is_whole && !matches!(value, ValueSpec::Text | ValueSpec::Words(_)) {
                let new = numbers.iter().filter(|it| value.check(it).is_ok());
                let new = new.filter(|it| !found.contains(it)).cloned();
                let new: Vec<String> = new.collect();
                found.extend(new);
            }
            if is_whole && !usual.is_empty() {
                found.retain(|text| text != usual);
                found.insert(0, usual.to_owned());
            }
            found
        }
        (_, None) => match (spec.content, node.text().1) {
            (Some(content), Some(all)) => parts(content, all, *span, text),
            _ => elements(spec),
        },
    }
}

/// The numbers in a text, and those after them: a count is compared with others.
pub fn numbers(text: &str) -> Vec<String> {
    let all = text.split(|c: char| !c.is_ascii_digit());
    let all: BTreeSet<u64> = all.filter_map(|it| it.parse().ok()).collect();
    let all = all.into_iter().take(MAX_NUMBERS);
    all.flat_map(|it| [it.to_string(), it.saturating_add(1).to_string()])
        .collect()
}

/// A value that goes with most others, and is tried first with those of other placeholders.
fn usual(element: &str, attribute: &str) -> &'static str {
    match (element, attribute) {
        ("domain", "type") => "kvm",
        (_, "arch") => "x86_64",
        (_, "machine") => "q35",
        ("target", "dev") => "vdx",
        (_, "bus") => "virtio",
        ("memory" | "max_size" | "page" | "capacity" | "allocation", "unit") => "KiB",
        (_, "file") => "/srv/x.qcow2",
        (_, "dev") => "/dev/x",
        _ => "",
    }
}

fn root(kind: RootKind) -> Option<&'static ElementSpec> {
    Some(match kind {
        RootKind::Domain | RootKind::DomainStatus => &vocabulary::DOMAIN,
        RootKind::Devices => &vocabulary::DEVICES,
        RootKind::Disk => &vocabulary::DISK,
        RootKind::Pool => &vocabulary::POOL,
        RootKind::Volume => &vocabulary::STORAGE_VOLUME,
        RootKind::DomainSnapshot => &vocabulary::DOMAIN_SNAPSHOT,
        RootKind::DomainCheckpoint => &vocabulary::DOMAIN_CHECKPOINT,
        RootKind::DomainBackup => &vocabulary::DOMAIN_BACKUP,
        RootKind::OtherLibvirt(_) | RootKind::Foreign | RootKind::NotXml => return None,
    })
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

fn values(spec: ValueSpec) -> Vec<String> {
    let words = |words: &[&'static str]| words.iter().map(|word| (*word).to_owned()).collect();
    match spec {
        ValueSpec::Text => texts(TEXTS),
        ValueSpec::Words(all) => words(all),
        ValueSpec::WordsAnd(all, others) => words(&[all, others].concat()),
        _ => {
            let all = NUMBERS.iter().chain(TEXTS.last());
            let valid = all.filter(|text| spec.check(text).is_ok());
            valid.map(|text| (*text).to_owned()).collect()
        }
    }
}

/// The parts of values for a placeholder in a value that has other text, too.
fn parts(spec: ValueSpec, all: Span, span: Span, text: &str) -> Vec<String> {
    let part = |start: usize, end: usize| text.get(start..end).unwrap_or_default();
    let before = part(all.start, span.start).trim_start();
    let after = part(span.end.min(all.end), all.end).trim_end();
    if before.is_empty() && after.is_empty() {
        return values(spec);
    }
    let whole = values(spec);
    let inner = whole
        .iter()
        .filter_map(|it| it.strip_prefix(before)?.strip_suffix(after));
    inner.map(str::to_owned).chain(texts(PARTS)).collect()
}

/// Every attribute that the element does not have, with each value.
fn attributes(spec: &ElementSpec, node: Node<'_>) -> Vec<String> {
    let free = spec
        .attributes
        .iter()
        .filter(|it| node.attribute(it.name).is_none());
    let each = free.flat_map(|it| {
        let values = values(it.value).into_iter();
        values.map(|value| format!(" {}='{value}'", it.name))
    });
    each.collect()
}

/// Every child of an element, full of attributes and children; some lengths of its values.
fn elements(spec: &ElementSpec) -> Vec<String> {
    let all = spec.children.iter().filter(|child| !child.says_nothing());
    let one = |child: &ChildSpec, nth: usize| {
        let mut out = String::new();
        sample(child, "file", nth, MAX_DEPTH, &mut out);
        out
    };
    let each = all.flat_map(|child| (0..3).map(move |nth| one(child, nth)));
    each.collect()
}

fn sample(child: &ChildSpec, outer_type: &str, nth: usize, depth: usize, out: &mut String) {
    let mut spec = child.pick.element(outer_type, None);
    let value = |spec: ValueSpec| {
        let values = values(spec);
        values
            .get(nth % values.len().max(1))
            .cloned()
            .unwrap_or_default()
    };
    let own_type = spec.attribute("type").map(|it| value(it.value));
    let own_type = own_type.unwrap_or_else(|| outer_type.to_owned());
    spec = child.pick.element(outer_type, Some(&own_type));
    out.push('<');
    out.push_str(child.name);
    for attribute in spec.attributes {
        out.push_str(&format!(" {}='{}'", attribute.name, value(attribute.value)));
    }
    out.push('>');
    if let Some(content) = spec.content {
        out.push_str(&value(content));
    }
    if depth > 1 {
        for child in spec.children {
            sample(child, &own_type, nth, depth - 1, out);
        }
    }
    out.push_str("</");
    out.push_str(child.name);
    out.push('>');
}
