//! Runs the rules about XML.

use vmdisk_rule::{Context, Outcome};

use crate::document::Document;
use crate::rules::{TEXT_RULES, Xml, XmlRule};

/// Runs the rules about the XML of a document; `text` is the text that it was read from.
pub fn check(document: &Document, text: &str, context: &Context<'_>, outcome: &mut Outcome) {
    if document.elements.is_empty() {
        return;
    }
    let xml = Xml {
        context,
        text,
        tree: document.elements.of(text),
        root: document.root,
        map: &document.source_map,
        passthrough: &document.passthrough,
    };
    let is_foreign = context.domain.foreign_type().is_some();
    for XmlRule { rule, check } in TEXT_RULES {
        if let Some(check) = check
            && (rule.applies_to_foreign_guests || !is_foreign)
        {
            outcome.run(rule, |report| check(&xml, report));
        }
    }
}
