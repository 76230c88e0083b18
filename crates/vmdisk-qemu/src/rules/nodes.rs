//! Nodes of `-blockdev`, at any depth.

use vmdisk_rule::Report;
use vmdisk_source::Span;

use super::line::Line;
use crate::members::Members;
use crate::syntax::properties::Property;
use crate::syntax::value::{number_of, size_of};

/// The members of one node, in any option and at any depth.
pub(super) struct Node<'p> {
    pub(super) option: usize,
    pub(super) properties: Members<'p>,
    pub(super) prefix: String,
    pub(super) driver: &'p Property,
}

impl<'p> Node<'p> {
    /// The name of the driver.
    pub(super) fn driver(&self) -> &'p str {
        self.driver.value.as_str()
    }

    pub(super) const fn driver_property(&self) -> &'p Property {
        self.driver
    }

    /// The span that represents the node: its driver.
    pub(super) const fn span(&self) -> Span {
        self.driver.span
    }

    pub(super) fn get(&self, key: &str) -> Option<&'p Property> {
        self.properties.get(&format!("{}{key}", self.prefix))
    }

    pub(super) fn number(&self, key: &str) -> Option<(u64, &'p Property)> {
        let property = self.get(key)?;
        Some((number_of(property.value.as_str())?, property))
    }

    /// A size in bytes, which may have a unit.
    pub(super) fn size(&self, key: &str) -> Option<(u64, &'p Property)> {
        let property = self.get(key)?;
        Some((size_of(property.value.as_str(), 1)?.0, property))
    }

    /// Reports a key that refers to an undefined object; `rest` is what the object needs besides its id.
    pub(super) fn check_object(
        &self,
        line: &Line<'_>,
        report: &mut Report,
        key: &str,
        kind: &str,
        rest: &str,
    ) {
        let Some(named) = self.get(key) else {
            return;
        };
        let id = named.value.as_str();
        if !named.is_open() && !line.document.is_open && line.index.object(id).is_none() {
            let message = format!("the {kind} object `{id}` is not defined");
            let help = format!("add -object {kind},id={id},{rest}");
            line.refuse(report, self.option, named.span, message, help);
        }
    }
}

/// The nodes of all `-blockdev`, in order.
pub(super) fn nodes<'a>(line: &Line<'a>) -> impl Iterator<Item = Node<'a>> {
    let options = line.index.of_name("blockdev");
    options.flat_map(|(option, properties)| {
        properties.iter().filter_map(move |property| {
            let prefix = property.key.strip_suffix("driver")?;
            // If the key is set twice, the last one counts.
            let driver = properties.get(&property.key)?;
            (prefix.is_empty() || prefix.ends_with('.')).then(|| Node {
                option,
                properties,
                prefix: prefix.to_owned(),
                driver,
            })
        })
    })
}

/// The format node of each `-drive` that names its format.
pub(super) fn drives<'a>(line: &Line<'a>) -> impl Iterator<Item = Node<'a>> {
    let options = line.index.of_name("drive");
    options.filter_map(|(option, properties)| {
        let driver = properties
            .get("format")
            .or_else(|| properties.get("driver"))?;
        Some(Node {
            option,
            properties,
            prefix: String::new(),
            driver,
        })
    })
}

/// True if the node, or an enclosing one, is read-only.
pub(super) fn is_read_only(node: &Node<'_>) -> bool {
    let mut prefix = node.prefix.as_str();
    loop {
        let own = node.properties.get(&format!("{prefix}read-only"));
        if own.is_some() || prefix.is_empty() {
            return crate::syntax::value::is_on(own);
        }
        let shorter = prefix.trim_end_matches('.').rsplit_once('.');
        prefix = shorter.map_or("", |(outer, _)| &prefix[..=outer.len()]);
    }
}
