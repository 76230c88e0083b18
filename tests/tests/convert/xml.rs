//! A small XML tree: enough to parse a schema, and to plant things into a guest.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// An element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) children: Vec<Element>,
    pub(crate) text: String,
}

impl Element {
    pub(crate) fn new(name: &str) -> Self {
        Element {
            name: name.to_owned(),
            ..Element::default()
        }
    }

    /// The value of an attribute.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Sets an attribute.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.attributes.retain(|(known, _)| known != name);
        self.attributes.push((name.to_owned(), value.to_owned()));
    }

    /// The first child of a name, which is made if there is none.
    pub(crate) fn child(&mut self, name: &str) -> &mut Element {
        let found = self.children.iter().position(|child| child.name == name);
        let nth = found.unwrap_or_else(|| {
            self.children.push(Element::new(name));
            self.children.len() - 1
        });
        &mut self.children[nth]
    }

    /// The element as text.
    pub(crate) fn write(&self) -> String {
        let mut out = String::new();
        self.write_into(&mut out);
        out
    }

    fn write_into(&self, out: &mut String) {
        let escaped = |text: &str| {
            text.replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('\'', "&apos;")
        };
        out.push('<');
        out.push_str(&self.name);
        for (name, value) in &self.attributes {
            out.push_str(&format!(" {name}='{}'", escaped(value)));
        }
        out.push('>');
        out.push_str(&escaped(&self.text));
        for child in &self.children {
            child.write_into(out);
        }
        out.push_str(&format!("</{}>", self.name));
    }
}

/// Parses a document.
pub(crate) fn parse(text: &str) -> Element {
    let mut reader = Reader::from_str(text);
    let mut open = vec![Element::default()];
    loop {
        match reader.read_event().expect("the document is well-formed") {
            Event::Start(tag) => open.push(begin(&tag)),
            Event::Empty(tag) => {
                let element = begin(&tag);
                open.last_mut().unwrap().children.push(element);
            }
            Event::Text(text) => {
                open.last_mut().unwrap().text.push_str(text.trim());
            }
            Event::End(_) => {
                let element = open.pop().unwrap();
                open.last_mut().unwrap().children.push(element);
            }
            Event::Eof => break,
            _ => {}
        }
    }
    let mut root = open.pop().unwrap();
    root.children.pop().expect("a document has a root")
}

fn begin(tag: &BytesStart<'_>) -> Element {
    Element {
        name: tag.local_name().as_ref().to_owned(),
        attributes: tag
            .attributes()
            .map(|attribute| {
                let attribute = attribute.expect("an attribute is well-formed");
                (
                    attribute.key.as_ref().to_owned(),
                    attribute.value.into_owned(),
                )
            })
            .collect(),
        ..Element::default()
    }
}
