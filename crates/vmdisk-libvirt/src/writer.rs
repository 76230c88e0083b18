//! Writes elements in libvirt's format: single quotes, two spaces per level.

use crate::unmodeled::{UnmodeledParts, name_of};
use crate::xml::character::{escape_attribute, escape_text, is_xml_char};

/// A value that XML cannot represent.
///
/// XML 1.0 cannot represent most control characters, not even as a reference, so libvirt cannot be given a path that
/// contains one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{character:?} in `{name}` cannot be written in XML: {value:?}")]
pub struct Unwritable {
    /// The attribute or element of the value.
    pub name: String,
    /// The value.
    pub value: String,
    /// The first character that XML cannot represent.
    pub character: char,
}

/// An element that is still open.
struct Open<'k> {
    name: &'static str,
    kept: &'k UnmodeledParts,
    /// Indexes of kept attributes that are already written.
    placed: Vec<usize>,
    has_children: bool,
    /// Names of the children so far, if duplicates will follow.
    names: Vec<String>,
}

/// Writes elements; depth is data, so a chain of any depth can be written.
pub(crate) struct Writer<'k> {
    out: String,
    open: Vec<Open<'k>>,
    unwritable: Option<Unwritable>,
}

impl<'k> Writer<'k> {
    pub(crate) const fn new() -> Self {
        Writer {
            out: String::new(),
            open: Vec::new(),
            unwritable: None,
        }
    }

    fn indent(&mut self) {
        for _ in 0..self.open.len() {
            self.out.push_str("  ");
        }
    }

    fn check(&mut self, name: &str, value: &str) {
        if self.unwritable.is_none()
            && let Some(character) = value.chars().find(|c| !is_xml_char(*c))
        {
            self.unwritable = Some(Unwritable {
                name: name.to_owned(),
                value: value.to_owned(),
                character,
            });
        }
    }

    /// Starts an element; attributes may follow, then children, then [`Self::end`].
    pub(crate) fn start(&mut self, name: &'static str, kept: &'k UnmodeledParts) {
        self.begin_children();
        self.note_name(name);
        self.indent();
        self.out.push('<');
        self.out.push_str(name);
        self.open.push(Open {
            name,
            kept,
            placed: Vec::new(),
            has_children: false,
            names: Vec::new(),
        });
    }

    /// Writes an attribute; a kept attribute precedes it unchanged.
    pub(crate) fn attribute(&mut self, name: &str, value: impl std::fmt::Display) {
        if self.kept(name) {
            return;
        }
        let value = value.to_string();
        self.check(name, &value);
        self.out.push(' ');
        self.out.push_str(name);
        self.out.push_str("='");
        self.out.push_str(&escape_attribute(&value));
        self.out.push('\'');
    }

    /// Writes a kept attribute at this position; true if there was one.
    pub(crate) fn kept(&mut self, name: &str) -> bool {
        if let Some(open) = self.open.last_mut()
            && let Some(nth) = open.kept.position(name)
        {
            open.placed.push(nth);
            self.out.push(' ');
            self.out.push_str(&open.kept.attributes[nth].1);
            return true;
        }
        false
    }

    /// Writes an attribute if it is set.
    pub(crate) fn optional(&mut self, name: &str, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            self.attribute(name, value);
        }
    }

    fn kept_attributes(&mut self) {
        if let Some(open) = self.open.last() {
            for (nth, (_, verbatim)) in open.kept.attributes.iter().enumerate() {
                if !open.placed.contains(&nth) {
                    self.out.push(' ');
                    self.out.push_str(verbatim);
                }
            }
        }
    }

    /// Ends the start tag of the innermost element, if it is still open.
    fn begin_children(&mut self) {
        if self.open.last().is_some_and(|open| !open.has_children) {
            self.kept_attributes();
            self.out.push_str(">\n");
            if let Some(open) = self.open.last_mut() {
                open.has_children = true;
            }
        }
    }

    fn note_name(&mut self, name: &str) {
        if let Some(open) = self.open.last_mut()
            && !open.kept.duplicates.is_empty()
        {
            open.names.push(name.to_owned());
        }
    }

    /// Writes a repeated child; without a first copy, it would become effective.
    pub(crate) fn duplicate(&mut self, name: &str, element: &str) {
        let open = self.open.last();
        if open.is_some_and(|open| !open.names.iter().any(|known| known == name)) {
            self.verbatim(&format!("<{name}/>"));
        }
        self.verbatim(element);
    }

    /// Writes a child unchanged.
    pub(crate) fn verbatim(&mut self, element: &str) {
        self.begin_children();
        self.note_name(name_of(element));
        self.indent();
        self.out.push_str(element);
        self.out.push('\n');
    }

    /// Ends the innermost element, after its kept children.
    pub(crate) fn end(&mut self) {
        let kept = self.open.last().map(|open| open.kept);
        for child in kept.into_iter().flat_map(|kept| &kept.children) {
            self.verbatim(child);
        }
        for (name, child) in kept.into_iter().flat_map(|kept| &kept.duplicates) {
            self.duplicate(name, child);
        }
        self.end_without_kept_children();
    }

    /// Ends the innermost element; the caller has already written its kept children.
    pub(crate) fn end_without_kept_children(&mut self) {
        if self.open.last().is_some_and(|open| !open.has_children) {
            self.kept_attributes();
            self.out.push_str("/>\n");
            self.open.pop();
        } else if let Some(open) = self.open.pop() {
            self.indent();
            self.out.push_str("</");
            self.out.push_str(open.name);
            self.out.push_str(">\n");
        }
    }

    /// Writes an element that contains text, if there is text or parts of it were kept.
    pub(crate) fn text_element(
        &mut self,
        name: &'static str,
        text: Option<impl std::fmt::Display>,
        kept: &'k UnmodeledParts,
    ) {
        let text = text
            .map(|text| text.to_string())
            .or_else(|| kept.text.clone());
        if text.is_none() && kept.is_empty() {
            return;
        }
        self.start(name, kept);
        // White space around a kept child would become text.
        let has_children = !(kept.children.is_empty() && kept.duplicates.is_empty());
        self.end_with_text(text.or_else(|| has_children.then(String::new)));
    }

    /// Ends the innermost element around `text`, on one line; without text as [`Self::end`] does.
    pub(crate) fn end_with_text(&mut self, text: Option<String>) {
        let (Some(text), Some(open)) = (text, self.open.last()) else {
            return self.end();
        };
        let (name, kept) = (open.name, open.kept);
        self.kept_attributes();
        self.open.pop();
        self.check(name, &text);
        self.out.push('>');
        self.out.push_str(&escape_text(&text));
        let duplicates = kept.duplicates.iter().map(|(_, child)| child);
        for child in kept.children.iter().chain(duplicates) {
            self.out.push_str(child);
        }
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push_str(">\n");
    }

    /// The text; every element must be closed.
    pub(crate) fn finish(self) -> Result<String, Unwritable> {
        match self.unwritable {
            Some(unwritable) => Err(unwritable),
            None => Ok(self.out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_formatted_as_libvirt_formats_them_and_kept_ones_come_after() {
        let kept = UnmodeledParts {
            attributes: vec![("x".into(), "x=\"1\"".into())],
            children: vec!["<y/>".into()],
            duplicates: vec![
                ("c".into(), "<c>2</c>".into()),
                ("f".into(), "<f g='1'/>".into()),
            ],
            text: None,
        };
        let nothing = UnmodeledParts::default();
        let mut writer = Writer::new();
        writer.start("a", &kept);
        writer.attribute("b", "<'\n");
        writer.attribute("x", "ours");
        writer.attribute("z", 2);
        writer.start("c", &nothing);
        writer.end();
        writer.text_element("d", Some("e & f"), &nothing);
        writer.end();
        assert_eq!(
            writer.finish().unwrap(),
            "<a b='&lt;&apos;&#10;' x=\"1\" z='2'>\n  <c/>\n  <d>e &amp; f</d>\n  <y/>\n  <c>2</c>\n  <f/>\n  <f g='1'/>\n</a>\n"
        );
    }

    #[test]
    fn an_element_that_holds_text_gets_none_from_the_layout() {
        let kept = UnmodeledParts {
            children: vec!["<y/>".into()],
            ..UnmodeledParts::default()
        };
        let mut writer = Writer::new();
        writer.text_element("a", None::<&str>, &kept);
        assert_eq!(writer.finish().unwrap(), "<a><y/></a>\n");
    }

    #[test]
    fn a_value_that_xml_cannot_carry_is_refused_and_not_mangled() {
        let nothing = UnmodeledParts::default();
        let mut writer = Writer::new();
        writer.start("source", &nothing);
        writer.attribute("file", "/a\u{1}b");
        writer.end();
        let unwritable = writer.finish().unwrap_err();
        assert_eq!(
            (unwritable.name.as_str(), unwritable.character),
            ("file", '\u{1}')
        );
    }
}
