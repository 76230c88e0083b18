//! The text under the cursor explained: the page of each rule with a finding there, and the meaning of the attribute,
//! option or key.

use std::fmt::Write as _;

use lsp_types::{Contents, Hover, MarkupContent, MarkupKind, Position};
use vmdisk::Source;
use vmdisk_facts::{MemberTable, Owner};
use vmdisk_libvirt::vocabulary::{AttributeSpec, Field};
use vmdisk_model::DiskField;
use vmdisk_qemu::variable_at;
use vmdisk_source::Span;

use crate::check::Checked;
use crate::completion::command_line::{self, Key};
use crate::completion::xml::{self, At};
use crate::documents::Open;
use crate::meaning::{self, about_field, since};

/// The explanation of a position; `None` if there is nothing to say.
pub(crate) fn hover(open: &Open, position: Position) -> Option<Hover> {
    let offset = open.text.offset(position);
    let mut parts: Vec<String> = Vec::new();
    let mut range = None;
    if let Some((text, span)) = variable(open, offset) {
        parts.push(text);
        range = Some(open.text.range(span));
    }
    if let Some((text, span)) = setting(open, offset) {
        parts.push(text);
        range.get_or_insert(open.text.range(span));
    }
    let found = open.checked.iter().flat_map(|checked| &checked.findings);
    let mut rules: Vec<&'static str> = Vec::new();
    for found in found {
        let Some(finding) = &found.finding else {
            continue;
        };
        let span = finding.place.span;
        if span.start <= offset && offset <= span.end && !rules.contains(&finding.rule.name) {
            rules.push(finding.rule.name);
            parts.push(plain_fences(&finding.rule.explain()));
            range.get_or_insert(found.diagnostic.range);
        }
    }
    if parts.is_empty() {
        return None;
    }
    Some(Hover {
        contents: Contents::MarkupContent(MarkupContent {
            kind: MarkupKind::Markdown,
            value: parts.join("\n\n---\n\n"),
        }),
        range,
    })
}

/// A page whose examples name only their language.
fn plain_fences(page: &str) -> String {
    let line = |line: &str| match line.strip_prefix("```") {
        Some(info) => format!("```{}\n", info.split(',').next().unwrap_or_default()),
        None => format!("{line}\n"),
    };
    page.lines().map(line).collect()
}

/// The variable of a script at an offset, with its value or the reason why it is unknown.
fn variable(open: &Open, offset: usize) -> Option<(String, Span)> {
    let document = open.checked.as_ref()?.document.as_ref()?;
    match &document.source {
        Source::QemuCommandLine(_) => variable_at(open.text.as_str(), offset),
        _ => None,
    }
    .map(|(span, text)| (text, span))
}

/// The meaning of the setting at an offset, and its place.
fn setting(open: &Open, offset: usize) -> Option<(String, Span)> {
    let text = open.text.as_str();
    let document = open.checked.as_ref()?.document.as_ref();
    if text
        .trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('<')
    {
        return attribute(text, offset);
    }
    let is_spec = matches!(
        document.map(|document| &document.source),
        Some(Source::Spec(_))
    );
    // A whole disk is not a setting.
    let is_setting = |field: Field| field != Field::Disk(DiskField::Disk);
    let field = field_at(open.checked.as_ref()?, offset).filter(|(field, _)| is_setting(*field));
    let key = command_line::key_at(text, offset).filter(|_| !is_spec);
    if let Some((field, span)) = field
        && let Some(row) = meaning::row(field)
        && key.is_none_or(|key| row.property() == Some(key.name) || row.node == Some(key.name))
    {
        let title = match &key {
            Some(key) => key.name,
            None => row.spec.unwrap_or_else(|| row.libvirt.name()),
        };
        return Some((about_field(title, field), span));
    }
    let key = key?;
    member(&key).map(|about| (about, key.span))
}

/// The smallest field whose text holds an offset.
fn field_at(checked: &Checked, offset: usize) -> Option<(Field, Span)> {
    let document = checked.document.as_ref()?;
    let holds = |span: Span| span.start <= offset && offset <= span.end;
    let spans = document
        .source
        .source_map()
        .iter()
        .filter_map(|(path, place)| {
            let span = if place.attributes_end.is_some() {
                place.span
            } else {
                place.whole
            };
            holds(span).then_some((meaning::field_of(path), span))
        });
    spans.min_by_key(|(_, span)| span.end - span.start)
}

/// The meaning of an attribute of XML, or of the element around it.
fn attribute(text: &str, offset: usize) -> Option<(String, Span)> {
    let cursor = xml::cursor(text, offset)?;
    let (name, span) = match &cursor.at {
        At::AttributeName { span, .. } => (span.slice(text)?, *span),
        At::AttributeValue { name, whole, .. } => (name.slice(text)?, *whole),
        At::ElementName { span } => return element(text, &cursor, *span),
        At::Text | At::Elsewhere => return None,
    };
    let element = cursor.element(text)?;
    let row = element.attribute(name)?;
    let mut out = match row.fields.iter().flatten().next() {
        Some(field) => about_field(&format!("{}/@{name}", element.name), *field),
        None => format!("**`{}/@{name}`**\n", element.name),
    };
    if row.fields[0].is_none() || row.qemu.is_some() {
        let _ = writeln!(out, "\n{}.", since(row.since, row.qemu));
    }
    out.push_str(&values(row));
    Some((out, span))
}

fn element(text: &str, cursor: &xml::Cursor, span: Span) -> Option<(String, Span)> {
    let (_, row) = cursor.parent(text)?.child(span.slice(text)?)?;
    let mut out = match row.fields.iter().flatten().next() {
        Some(field) => about_field(&format!("<{}>", row.name), *field),
        None => format!("**`<{}>`**\n", row.name),
    };
    let _ = writeln!(out, "\n{}.", since(row.since, row.qemu));
    Some((out, span))
}

/// The words of an attribute with their meanings and versions, as a table.
fn values(row: &AttributeSpec) -> String {
    let mut words = row.value.words().peekable();
    if words.peek().is_none() {
        return String::new();
    }
    let meaning = meaning::of_row(row);
    let mut out = "\n| value | meaning | since |\n|---|---|---|\n".to_owned();
    for word in words {
        let about = meaning.as_ref().and_then(|meaning| meaning.of_word(word));
        let (libvirt, qemu) = row.since_with(word);
        let about = about.unwrap_or(match word {
            "default" => "As if it were not set.",
            _ => "",
        });
        let about = about.replace('|', "\\|");
        let _ = writeln!(out, "| `{word}` | {about} | {} |", since(libvirt, qemu));
    }
    out
}

/// A property or member that the model does not have: the kind of its value, and the releases with it.
fn member(key: &Key<'_>) -> Option<String> {
    let owner = key.owner?;
    let table = MemberTable::recorded();
    let member = table.find(owner, key.name)?;
    let of = match owner {
        Owner::Device(name) => format!("device `{name}`"),
        Owner::Node(name) => format!("block driver `{name}`"),
        Owner::Object(name) => format!("object `{name}`"),
    };
    Some(format!(
        "**`{}`** of {of}\n\nValue: {}. {}.\n",
        key.name,
        member.kind.as_str(),
        command_line::releases(owner, key.name)
    ))
}
