//! Keys and values of a spec, from its JSON Schema and the table of fields.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;
use vmdisk::Target;
use vmdisk_fields::{DISK_FIELDS, FieldRow, disk};
use vmdisk_source::Span;

use crate::completion::flow::{self, Scan};
use crate::completion::proposal::{Kind, Proposal, Proposals, is_in};

use crate::meaning::since;

/// A step from the top of a spec to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step<'t> {
    Key(&'t str),
    Item,
}

/// A place in a spec.
#[derive(Debug)]
struct Place<'t> {
    path: Vec<Step<'t>>,
    span: Span,
    is_key: bool,
    /// True if the text around it is JSON, or the word is in quotes.
    is_quoted: bool,
}

pub(crate) fn complete(text: &str, offset: usize, target: &Target) -> Option<Proposals> {
    let place = place(text, offset)?;
    let mut schemas = vec![schema()];
    for step in &place.path {
        schemas = schemas
            .into_iter()
            .flat_map(|schema| alternatives(schema, 0))
            .filter_map(|schema| match step {
                Step::Key(key) => schema.get("properties")?.get(key),
                Step::Item => schema.get("items"),
            })
            .collect();
    }
    let schemas = schemas
        .into_iter()
        .flat_map(|schema| alternatives(schema, 0));
    let row = match place.path.last() {
        Some(Step::Key(key)) if !place.is_key => row(key),
        _ => None,
    };
    let mut list = BTreeMap::new();
    for schema in schemas {
        let found = match place.is_key {
            true => keys(schema, place.is_quoted, target),
            false => words(schema, row, target),
        };
        for proposal in found {
            list.entry(proposal.label.clone()).or_insert(proposal);
        }
    }
    Some(Proposals {
        span: place.span,
        list: list.into_values().collect(),
    })
}

/// The schema of specs.
fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(vmdisk::plan::Spec::json_schema)
}

/// A schema and those it refers to.
fn alternatives(schema: &'static Value, depth: usize) -> Vec<&'static Value> {
    // Deeper than schemas of ours refer to each other without a property between.
    const MAX_DEPTH: usize = 8;
    let mut all = vec![schema];
    if depth == MAX_DEPTH {
        return all;
    }
    let pointer = schema.get("$ref").and_then(Value::as_str);
    let referred = pointer.and_then(|pointer| self::schema().pointer(pointer.strip_prefix('#')?));
    let listed = ["anyOf", "oneOf", "allOf"].iter();
    let listed = listed
        .filter_map(|word| schema.get(word)?.as_array())
        .flatten();
    for inner in referred.into_iter().chain(listed) {
        all.extend(alternatives(inner, depth + 1));
    }
    all
}

/// The row of a key of a disk.
fn row(key: &str) -> Option<&'static FieldRow> {
    let mut rows = DISK_FIELDS.iter().map(|field| disk(*field));
    rows.find(|row| row.spec == Some(key))
}

fn keys(schema: &Value, is_quoted: bool, target: &Target) -> Vec<Proposal> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let proposal = |(key, schema): (&String, &Value)| {
        let row = row(key);
        let libvirt = row.and_then(|row| row.libvirt.since);
        let qemu = row.and_then(|row| row.qemu_since);
        Proposal {
            label: key.clone(),
            kind: if is_quoted { Kind::Name } else { Kind::SpecKey },
            detail: libvirt.map_or_else(String::new, |libvirt| since(libvirt, qemu)),
            documentation: description(schema),
            is_unavailable: libvirt.is_some_and(|libvirt| !is_in(target, libvirt, qemu)),
        }
    };
    properties.into_iter().flatten().map(proposal).collect()
}

fn words(schema: &Value, row: Option<&FieldRow>, target: &Target) -> Vec<Proposal> {
    let listed = schema.get("enum").and_then(Value::as_array);
    let single = schema.get("const");
    let is_boolean = schema.get("type").is_some_and(|kind| match kind {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "boolean"),
        kind => kind == "boolean",
    });
    let booleans: &[&str] = if is_boolean { &["true", "false"] } else { &[] };
    let words = listed.into_iter().flatten().chain(single);
    let words = words
        .filter_map(Value::as_str)
        .chain(booleans.iter().copied());
    let proposal = |word: &str| {
        let later = row.and_then(|row| {
            let mut later = row.libvirt.versioned_syntax.iter();
            later.find(|(known, ..)| *known == word)
        });
        let (libvirt, qemu) = match (later, row) {
            (Some((_, libvirt, qemu)), _) => (Some(*libvirt), *qemu),
            (None, Some(row)) => (row.libvirt.since, row.qemu_since),
            (None, None) => (None, None),
        };
        Proposal {
            label: word.to_owned(),
            kind: Kind::Value,
            detail: libvirt.map_or_else(String::new, |libvirt| since(libvirt, qemu)),
            documentation: description(schema),
            is_unavailable: libvirt.is_some_and(|libvirt| !is_in(target, libvirt, qemu)),
        }
    };
    words.map(proposal).collect()
}

fn description(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// The place of an offset in block or flow style.
fn place(text: &str, offset: usize) -> Option<Place<'_>> {
    text.is_char_boundary(offset).then_some(())?;
    let mut stack: Vec<(usize, Step<'_>)> = Vec::new();
    let mut start = 0;
    while start <= text.len() {
        let end = text[start..]
            .find('\n')
            .map_or(text.len(), |found| start + found);
        let is_last = offset <= end;
        let line = &text[start..end];
        let content = line.trim_start_matches([' ', '\u{feff}']);
        let mut column = line.len() - content.len();
        if content.starts_with('#') || (content.trim().is_empty() && !is_last) {
            if is_last {
                return None;
            }
            start = end + 1;
            continue;
        }
        let mut from = start + column;
        if let Some(rest) = content.strip_prefix('-')
            && (rest.is_empty() || rest.starts_with(' '))
        {
            let is_inside = |(indent, step): &(usize, Step<'_>)| {
                *indent > column || (*indent == column && *step == Step::Item)
            };
            while stack.last().is_some_and(is_inside) {
                stack.pop();
            }
            stack.push((column, Step::Item));
            let inner = 1 + rest.len() - rest.trim_start_matches(' ').len();
            column += inner;
            from += inner;
        }
        if is_last && content.trim().is_empty() {
            column = offset - start;
        }
        match line_place(text, from, end, offset, is_last, column, &mut stack)? {
            Line::Place(place) => return Some(place),
            Line::Next(next) => start = next,
        }
    }
    None
}

/// The result of one line.
enum Line<'t> {
    Place(Place<'t>),
    /// The start of the next line to look at.
    Next(usize),
}

/// Looks at a line from its first key or value on.
fn line_place<'t>(
    text: &'t str,
    from: usize,
    end: usize,
    offset: usize,
    is_last: bool,
    column: usize,
    stack: &mut Vec<(usize, Step<'t>)>,
) -> Option<Line<'t>> {
    let content = &text[from..end];
    let is_flow = |at: usize| text[at..end].starts_with(['{', '[']);
    let steps = |stack: &[(usize, Step<'t>)]| stack.iter().map(|(_, step)| *step).collect();
    let colon = content
        .match_indices(':')
        .map(|(at, colon)| (at, &content[at + colon.len()..]))
        .find(|(_, rest)| rest.is_empty() || rest.starts_with([' ', '\r']))
        .map(|(at, _)| from + at)
        .filter(|_| !is_flow(from));
    let value = match colon {
        Some(colon) => {
            while stack.last().is_some_and(|(indent, _)| *indent >= column) {
                stack.pop();
            }
            if is_last && offset <= colon {
                return Some(Line::Place(Place {
                    path: steps(stack),
                    span: Span::new(from, colon),
                    is_key: true,
                    // The colon is there already.
                    is_quoted: true,
                }));
            }
            let key = text[from..colon].trim_matches(['"', '\'', ' ']);
            stack.push((column, Step::Key(key)));
            let rest = &text[colon + 1..end];
            colon + 1 + rest.len() - rest.trim_start().len()
        }
        None => from,
    };
    if is_flow(value) {
        return Some(match flow::scan(text, value, text.len(), offset) {
            Scan::Ended(at) => {
                let next = text[at..].find('\n').map_or(text.len(), |found| at + found);
                Line::Next(next + 1)
            }
            Scan::In(found) => Line::Place(of_flow(steps(stack), &found)),
        });
    }
    if !is_last {
        return Some(Line::Next(end + 1));
    }
    let is_key = colon.is_none();
    if is_key {
        while stack.last().is_some_and(|(indent, _)| *indent >= column) {
            stack.pop();
        }
    }
    let start = value.min(offset);
    let word = text[start..end].trim_end();
    Some(Line::Place(Place {
        path: steps(stack),
        span: Span::new(start, (start + word.len()).max(offset)),
        is_key,
        is_quoted: false,
    }))
}

fn of_flow<'t>(mut path: Vec<Step<'t>>, found: &flow::Flow<'t>) -> Place<'t> {
    let (last, outer) = match found.frames.split_last() {
        Some((last, outer)) => (Some(last), outer),
        None => (None, &[][..]),
    };
    let step = |frame: &flow::Frame<'t>| frame.key.map_or(Step::Item, Step::Key);
    path.extend(outer.iter().map(step));
    if let Some(last) = last
        && !found.is_key
    {
        path.push(step(last));
    }
    Place {
        path,
        span: found.span,
        is_key: found.is_key,
        is_quoted: found.is_quoted,
    }
}
