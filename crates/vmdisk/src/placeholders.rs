//! The placeholders of a document.

use std::collections::{BTreeMap, BTreeSet};

use aho_corasick::{AhoCorasick, MatchKind};
use vmdisk_model::{Disk, FieldPath};
use vmdisk_source::template::{Engine, PlaceholderKind, Syntax, Template};
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
    let text = template.text();
    let is_value = |start: usize, end: usize| {
        let own = text.get(start..end).unwrap_or_default();
        !own.contains(['<', '\n']) && !own.contains(": ")
    };
    let mut found = None;
    let mut at = span.start;
    for inner in template.placeholders_in(span) {
        if !is_value(at, inner.span.start) {
            return None;
        }
        at = inner.span.end.min(span.end);
        found.get_or_insert(inner.name.as_str());
    }
    found.filter(|_| is_value(at, span.end))
}

/// The placeholder in the start tag at this place that may stand for any attribute.
pub(crate) fn attributes_in(template: &Template, span: Span) -> Option<&str> {
    let mut at = span.start + 1;
    for inner in template.placeholders_in(span) {
        let before = template.text().get(at..inner.span.start)?;
        if before.contains(['<', '>']) {
            return None;
        }
        if inner.position == PlaceholderKind::Attributes {
            return Some(&inner.name);
        }
        at = inner.span.end;
    }
    None
}

/// The placeholders that messages quote.
pub(crate) struct QuotedPlaceholders<'t> {
    texts: AhoCorasick,
    names: Vec<&'t str>,
    /// Names of disks with a placeholder.
    disks: AhoCorasick,
}

impl<'t> QuotedPlaceholders<'t> {
    /// Those of a template; `None` if no message can quote one.
    pub(crate) fn of(template: &'t Template, disks: &[Disk]) -> Option<Self> {
        let all = template.placeholders.iter();
        let all = all.map(|it| (template.read_as(it), it.name.as_str()));
        let texts: BTreeMap<&str, &str> = all.filter(|(read, _)| !read.trim().is_empty()).collect();
        let names = texts.values().copied().collect();
        let texts = longest(texts.keys().copied())?;
        let open = disks.iter().map(Disk::name);
        let disks = longest(open.filter(|it| texts.is_match(*it)))?;
        Some(QuotedPlaceholders {
            texts,
            names,
            disks,
        })
    }

    /// The first placeholder in a title, other than in the name of a disk.
    pub(crate) fn first(&self, title: &str) -> Option<&'t str> {
        let of_disks: Vec<_> = self.disks.find_iter(title).map(|it| it.span()).collect();
        let is_of_disk = |start| of_disks.iter().any(|name| name.range().contains(&start));
        let mut all = self.texts.find_iter(title);
        let found = all.find(|it| !is_of_disk(it.start()))?;
        Some(self.names[found.pattern()])
    }

    /// The first placeholder in a text.
    #[cfg(feature = "plan")]
    pub(crate) fn any(&self, text: &str) -> Option<&'t str> {
        let found = self.texts.find(text)?;
        Some(self.names[found.pattern()])
    }

    /// Writes placeholders as the template does, where a message quotes them as its reader has them.
    pub(crate) fn restore(&self, message: &mut String) {
        if self.texts.is_match(message.as_str()) {
            *message = self.texts.replace_all(message, &self.names);
        }
    }
}

/// Finds texts, the longest of those that start at one place.
fn longest<'t>(texts: impl Iterator<Item = &'t str>) -> Option<AhoCorasick> {
    let mut builder = AhoCorasick::builder();
    builder.match_kind(MatchKind::LeftmostLongest);
    builder.build(texts).ok()
}

/// The remedy for a template that cannot be read.
pub(crate) fn help(engine: Engine) -> String {
    format!("this looks like {}; lint what it renders to", engine.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_beside_attributes_may_stand_for_any_of_them() {
        let named = |text: &str, start: &str, end: &str| {
            let template = Template::of(text, Syntax::Xml).unwrap();
            let text = template.text();
            let start = text.find(start).unwrap();
            let end = start + text[start..].find(end).unwrap() + end.len();
            attributes_in(&template, Span::new(start, end)).map(str::to_owned)
        };
        let text = "<disk <%= d %>><driver name='<%= n %>' <%= {:type => 1} %>/><target dev='<%= t %>'/></disk>";
        assert_eq!(
            named(text, "<driver", "/>").as_deref(),
            Some("<%= {:type => 1} %>")
        );
        assert_eq!(named(text, "<target", "/>"), None);
        let text = "<disk type='file'><driver <%= o %>/></disk>";
        assert_eq!(named(text, "<disk", "</disk>"), None);
    }
}
