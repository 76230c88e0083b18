//! Allowances in comments: `# vmdisk: allow(rule) reason`.
//!
//! A comment on a line of its own covers the next key or disk; after something, what begins on its line; before the
//! first key or after everything, the whole spec.

use vmdisk_document::{Document, Node};
use vmdisk_source::{Allowance, Span};

/// The allowances of a spec, in the order of the text.
pub(super) fn read(text: &str, yaml: &Document) -> Vec<Allowance> {
    if !text.contains("vmdisk:") {
        return Vec::new();
    }
    let mut parts = Vec::new();
    collect(&yaml.root, &mut parts);
    // Of what begins at one place, the outermost comes first.
    parts.sort_by_key(|part| (part.start, std::cmp::Reverse(part.end)));
    let comments = yaml.comments.iter();
    comments
        .filter_map(|comment| {
            let inside = Span::new(comment.span.start + 1, comment.span.end);
            let mut allowance = Allowance::in_comment(text, comment.span, inside)?;
            let line = text[..comment.span.start]
                .rfind('\n')
                .map_or(0, |end| end + 1);
            let from = match comment.is_alone {
                true => comment.span.end,
                false => line,
            };
            let is_first = comment.is_alone && comment.span.start < yaml.root.span.start;
            let next = parts.partition_point(|part| part.start < from);
            if let Some(part) = parts.get(next)
                && !is_first
                && !allowance.rules.is_empty()
            {
                allowance.covers = *part;
            }
            Some(allowance)
        })
        .collect()
}

/// The places of all keys with their values, and of all items of lists.
fn collect(node: &Node, parts: &mut Vec<Span>) {
    for member in node.members() {
        let end = member.node.span.end.max(member.key_span.end);
        parts.push(Span::new(member.key_span.start, end));
        collect(&member.node, parts);
    }
    for item in node.items() {
        parts.push(item.span);
        collect(item, parts);
    }
}
