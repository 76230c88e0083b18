//! The placeholders of a document.

use std::collections::BTreeSet;

use vmdisk_model::FieldPath;
use vmdisk_source::template::{Engine, Syntax, Template};
use vmdisk_source::{SourceMap, Span};

/// The template that a text is, if it is one; `syntax` is that of its result.
pub(crate) fn of(text: &str, syntax: Syntax) -> Option<Box<Template>> {
    Template::of(text, syntax).map(Box::new)
}

/// The fields whose values have a placeholder.
pub(crate) fn open_fields(template: &Template, map: &SourceMap<FieldPath>) -> BTreeSet<FieldPath> {
    let places = map.iter();
    let open = places.filter(|(_, place)| placeholder_in(template, place.span).is_some());
    open.map(|(at, _)| at).collect()
}

/// The first placeholder in a value; `None` for an element or a mapping around values.
pub(crate) fn placeholder_in(template: &Template, span: Span) -> Option<&str> {
    let first = template.placeholders_in(span).next()?;
    let mut rest = span.slice(template.text())?.to_owned();
    for inner in template.placeholders_in(span) {
        rest = rest.replace(inner.span.slice(template.text()).unwrap_or_default(), "");
    }
    let is_value = !rest.contains(['<', '\n']) && !rest.contains(": ");
    is_value.then_some(first.name.as_str())
}

/// The remedy for a template that cannot be read.
pub(crate) fn help(engine: Engine) -> String {
    format!("this looks like {}; lint what it renders to", engine.name())
}
