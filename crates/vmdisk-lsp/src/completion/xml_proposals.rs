//! Elements, attributes and values of libvirt's XML.

use vmdisk::Target;
use vmdisk_libvirt::vocabulary::{AttributeSpec, ChildSpec, ElementSpec};
use vmdisk_source::Span;

use crate::completion::proposal::{Kind, Proposal, Proposals};
use crate::completion::xml::{At, cursor};
use crate::meaning::{self, about_field};

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
    let proposal = |row: &ChildSpec| {
        let field = row.fields.iter().flatten().next();
        let about = field.map(|field| about_field(&format!("<{}>", row.name), *field));
        let about = about.unwrap_or_default();
        Proposal::versioned(
            row.name,
            Kind::Element,
            target,
            (row.since, row.qemu),
            about,
        )
    };
    parent.children.iter().map(proposal).collect()
}

fn attributes(element: &'static ElementSpec, present: &[&str], target: &Target) -> Vec<Proposal> {
    let rows = element.attributes.iter();
    let rows = rows.filter(|row| !present.contains(&row.name));
    let proposal = |row: &AttributeSpec| {
        let name = format!("{}/@{}", element.name, row.name);
        let field = row.fields.iter().flatten().next();
        let about = field.map(|field| about_field(&name, *field));
        let about = about.unwrap_or_default();
        Proposal::versioned(
            row.name,
            Kind::Attribute,
            target,
            (row.since, row.qemu),
            about,
        )
    };
    rows.map(proposal).collect()
}

fn values(row: &AttributeSpec, target: &Target) -> Vec<Proposal> {
    let meaning = meaning::of_row(row);
    let proposal = |word: &'static str| {
        let about = meaning.as_ref().and_then(|meaning| meaning.of_word(word));
        let about = about.unwrap_or_default().to_owned();
        Proposal::versioned(word, Kind::Value, target, row.since_with(word), about)
    };
    row.value.words().map(proposal).collect()
}
