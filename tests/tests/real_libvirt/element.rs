//! XML as generated guests need it.

use std::fmt::Write as _;

/// An element that is changed before it is written.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) name: &'static str,
    attributes: Vec<(&'static str, String)>,
    text: String,
    pub(crate) children: Vec<Element>,
}

impl Element {
    pub(crate) fn new(name: &'static str) -> Self {
        Element {
            name,
            attributes: Vec::new(),
            text: String::new(),
            children: Vec::new(),
        }
    }

    pub(crate) fn with(mut self, attribute: &'static str, value: impl ToString) -> Self {
        self.set(attribute, value);
        self
    }

    pub(crate) fn saying(mut self, text: impl ToString) -> Self {
        self.text = text.to_string();
        self
    }

    pub(crate) fn around(mut self, child: Element) -> Self {
        self.children.push(child);
        self
    }

    /// Sets an attribute, in the place of one of that name.
    pub(crate) fn set(&mut self, attribute: &'static str, value: impl ToString) {
        let value = value.to_string();
        match self
            .attributes
            .iter_mut()
            .find(|(name, _)| *name == attribute)
        {
            Some((_, old)) => *old = value,
            None => self.attributes.push((attribute, value)),
        }
    }

    pub(crate) fn get(&self, attribute: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(name, _)| *name == attribute);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn unset(&mut self, attribute: &str) {
        self.attributes.retain(|(name, _)| *name != attribute);
    }

    /// The first child of that name, which is made if there is none.
    pub(crate) fn child(&mut self, name: &'static str) -> &mut Element {
        let at = self.children.iter().position(|child| child.name == name);
        let at = at.unwrap_or_else(|| {
            self.children.push(Element::new(name));
            self.children.len() - 1
        });
        &mut self.children[at]
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.children.retain(|child| child.name != name);
    }

    pub(crate) fn write(&self) -> String {
        let mut out = String::new();
        self.write_into(&mut out, 0);
        out
    }

    fn write_into(&self, out: &mut String, depth: usize) {
        let indent = "  ".repeat(depth);
        let _ = write!(out, "{indent}<{}", self.name);
        for (name, value) in &self.attributes {
            let _ = write!(out, " {name}='{}'", escaped(value));
        }
        if self.children.is_empty() && self.text.is_empty() {
            out.push_str("/>\n");
            return;
        }
        let _ = write!(out, ">{}", escaped(&self.text));
        if !self.children.is_empty() {
            out.push('\n');
            for child in &self.children {
                child.write_into(out, depth + 1);
            }
            out.push_str(&indent);
        }
        let _ = writeln!(out, "</{}>", self.name);
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('\'', "&apos;")
}
