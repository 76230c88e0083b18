//! Fixes: from a change of the model to edits of the spec that change nothing else.

use vmdisk_document::{Entry, Node, Value, read_yaml};
use vmdisk_fields::Label;
use vmdisk_model::{Change, DiskField, FieldPath, FieldValue, LimitField};
use vmdisk_source::{Edit, Span};

use super::speller::{key_of, value_text};
use super::{PlannedSpec, SpecDocument};

/// The reason why a change cannot be made by edits: it takes more than one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotEdit(pub FieldPath);

impl std::fmt::Display for CannotEdit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "`{}` cannot be changed by editing a value",
            self.0.label()
        )
    }
}

impl std::error::Error for CannotEdit {}

impl SpecDocument {
    /// The edits that make several changes at once.
    ///
    /// # Errors
    /// At the first change that is not the value of one key, and at every change if the spec has anchors, because
    /// several disks may share the anchored value.
    pub fn edits_of_all(
        &self,
        text: &str,
        planned: &PlannedSpec,
        changes: &[Change],
    ) -> Result<Vec<Edit>, CannotEdit> {
        let mut edits = Vec::new();
        for change in changes {
            let (at, edit) = match change {
                Change::Set { at, value } => (*at, self.set(text, planned, *at, value)),
                Change::Remove { at } => (*at, self.remove(text, planned, *at)),
            };
            edits.push(
                edit.filter(|_| !self.yaml.has_anchors)
                    .ok_or(CannotEdit(at))?,
            );
        }
        Ok(edits)
    }

    /// The group that has or may have a field, and its key there.
    fn slot(&self, planned: &PlannedSpec, at: FieldPath) -> Option<(&Node, String)> {
        let disk = |nth: usize| self.disk(*planned.numbers.get(nth)?);
        let group = match at {
            FieldPath::Disk(nth, DiskField::Reconnect) => disk(nth)?.get("vhost-user-blk")?,
            FieldPath::Disk(nth, _) | FieldPath::Iotune(nth, LimitField::Limits) => disk(nth)?,
            FieldPath::Iotune(nth, _) => disk(nth)?.get("iotune")?,
            FieldPath::Domain(_) => self.yaml.root.get("guest")?,
            _ => return None,
        };
        Some((group, key_of(at)?))
    }

    fn set(
        &self,
        text: &str,
        planned: &PlannedSpec,
        at: FieldPath,
        value: &FieldValue,
    ) -> Option<Edit> {
        let (group, key) = self.slot(planned, at)?;
        let mut value = value_text(at, value)?;
        if is_json(text, group) {
            value = in_json(&value)?;
        }
        match group.member(&key) {
            Some(member) if member.node.span.is_empty() => {
                Some(Edit::insert(member.node.span.start, format!(" {value}")))
            }
            Some(member) => Some(Edit::replace(member.node.span, value)),
            None => insert(text, group, &key, &value),
        }
    }

    fn remove(&self, text: &str, planned: &PlannedSpec, at: FieldPath) -> Option<Edit> {
        let (group, key) = self.slot(planned, at)?;
        let nth = group
            .members()
            .iter()
            .position(|member| member.key == key)?;
        remove(text, group, nth)
    }
}

fn is_flow(text: &str, group: &Node) -> bool {
    text[group.span.start..].starts_with('{')
}

/// True for a group as JSON writes it, which is YAML too.
fn is_json(text: &str, group: &Node) -> bool {
    let quotes_keys = |first: &Entry| text[first.key_span.start..].starts_with('"');
    is_flow(text, group) && group.members().first().is_some_and(quotes_keys)
}

/// A scalar of YAML as JSON.
fn in_json(scalar: &str) -> Option<String> {
    let value = read_yaml(scalar, 1).ok()?.root.value;
    Some(match value {
        Value::Text(text) => serde_json::Value::String(text).to_string(),
        _ => scalar.to_owned(),
    })
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// The end of a member: of its value, or of its key and colon.
fn end_of(member: &Entry) -> usize {
    member.node.span.end.max(member.key_span.end)
}

/// Adds a key at the end of a group.
fn insert(text: &str, group: &Node, key: &str, value: &str) -> Option<Edit> {
    let (first, last) = (group.members().first()?, group.members().last()?);
    if is_flow(text, group) {
        let quote = if is_json(text, group) { "\"" } else { "" };
        let member = format!(", {quote}{key}{quote}: {value}");
        return Some(Edit::insert(end_of(last), member));
    }
    let column = text[line_start(text, first.key_span.start)..first.key_span.start]
        .chars()
        .count();
    let rest = &text[end_of(last)..];
    // After a comment on the same line, which belongs to the last value.
    let at = end_of(last) + rest.find('\n').unwrap_or(rest.len());
    Some(Edit::insert(
        at,
        format!("\n{}{key}: {value}", " ".repeat(column)),
    ))
}

/// Removes a key and its value.
fn remove(text: &str, group: &Node, nth: usize) -> Option<Edit> {
    let members = group.members();
    let (member, next) = (&members[nth], members.get(nth + 1));
    let before = nth.checked_sub(1).map(|before| &members[before]);
    let span = match (before, next) {
        (Some(before), _) if is_flow(text, group) => Span::new(end_of(before), end_of(member)),
        (None, Some(next)) => Span::new(member.key_span.start, next.key_span.start),
        // A group needs a key.
        (None, None) => return None,
        (Some(_), _) => {
            let start = line_start(text, member.key_span.start);
            let end = text[end_of(member)..]
                .find('\n')
                .map(|end| end_of(member) + end + 1);
            match end {
                Some(end) => Span::new(start, end),
                None => Span::new(start.saturating_sub(1), text.len()),
            }
        }
    };
    Some(Edit::delete(span))
}
