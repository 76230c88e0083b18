//! Elements, attributes and values of libvirt's XML.

use vmdisk::Target;
use vmdisk_facts::Version;
use vmdisk_fields::Since;
use vmdisk_libvirt::vocabulary::{AttributeSpec, ChildSpec, ElementSpec, ValueSpec};
use vmdisk_source::Span;

use crate::completion::proposal::{Kind, Proposal, Proposals};
use crate::completion::xml::{At, cursor};
use crate::meaning::{self, about_field, since};

pub(crate) fn complete(text: &str, offset: usize, target: &Target) -> Option<Proposals> {
    let cursor = cursor(text, offset)?;
    let (span, list) = match &cursor.at {
        At::ElementName { span } => (*span, elements(cursor.parent(text)?, target)),
        At::AttributeName { span } => {
            let mut present = cursor.attributes(text);
            present.retain(|name| span.slice(text) != Some(name));
            (*span, attributes(cursor.element(text)?, &present, target))
        }
        At::AttributeValue { name, value, .. } => {
            let row = cursor.element(text)?.attribute(name.slice(text)?)?;
            // Of a value whose end is not written yet, only the word under the cursor is replaced.
            let rest = text[offset..value.end].bytes();
            let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            let end = offset + rest.take_while(is_word).count();
            (Span::new(value.start, end), values(row, target))
        }
        At::Text | At::Elsewhere => return None,
    };
    Some(Proposals { span, list })
}

fn elements(parent: &'static ElementSpec, target: &Target) -> Vec<Proposal> {
    let proposal = |row: &ChildSpec| Proposal {
        label: row.name.to_owned(),
        kind: Kind::Element,
        detail: since(row.since, row.qemu),
        documentation: row
            .fields
            .iter()
            .flatten()
            .next()
            .map_or_else(String::new, |field| {
                about_field(&format!("<{}>", row.name), *field)
            }),
        is_unavailable: !is_in(target, row.since, row.qemu),
    };
    parent.children.iter().map(proposal).collect()
}

fn attributes(element: &'static ElementSpec, present: &[&str], target: &Target) -> Vec<Proposal> {
    let rows = element.attributes.iter();
    let rows = rows.filter(|row| !present.contains(&row.name));
    let proposal = |row: &AttributeSpec| Proposal {
        label: row.name.to_owned(),
        kind: Kind::Attribute,
        detail: since(row.since, row.qemu),
        documentation: row
            .fields
            .iter()
            .flatten()
            .next()
            .map_or_else(String::new, |field| {
                about_field(&format!("{}/@{}", element.name, row.name), *field)
            }),
        is_unavailable: !is_in(target, row.since, row.qemu),
    };
    rows.map(proposal).collect()
}

fn values(row: &AttributeSpec, target: &Target) -> Vec<Proposal> {
    let (words, others): (&[&str], &[&str]) = match row.value {
        ValueSpec::Words(words) => (words, &[]),
        ValueSpec::WordsAnd(words, others) => (words, others),
        _ => return Vec::new(),
    };
    let meaning = row
        .fields
        .iter()
        .flatten()
        .next()
        .map(|field| meaning::of(*field));
    let proposal = |word: &&str| {
        let (libvirt, qemu) = row.since_with(word);
        let about = meaning.as_ref().and_then(|meaning| meaning.of_word(word));
        Proposal {
            label: (*word).to_owned(),
            kind: Kind::Value,
            detail: since(libvirt, qemu),
            documentation: about.unwrap_or_default().to_owned(),
            is_unavailable: !is_in(target, libvirt, qemu),
        }
    };
    words.iter().chain(others).map(proposal).collect()
}

/// False if the target's libvirt or QEMU is older than this; true for an unknown one.
pub(crate) fn is_in(target: &Target, libvirt: Since, qemu: Option<Since>) -> bool {
    let is_new = |have: Option<Version>, need: Since| {
        have.is_none_or(|have| have >= Version(need.0, need.1, need.2))
    };
    is_new(target.libvirt, libvirt) && qemu.is_none_or(|need| is_new(target.qemu, need))
}
