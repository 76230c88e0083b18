//! The members of an option as readers see them: a reader takes those that it understands, and the others remain.

use std::cell::Cell;

use crate::syntax::option::WrittenOption;
use crate::syntax::properties::{Properties, Property};

/// The values that readers have accepted, of all options.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// By the number of the value.
    marks: Vec<Cell<bool>>,
}

impl Accepted {
    /// No value is accepted yet.
    pub(crate) fn none_of(options: &[WrittenOption]) -> Self {
        let properties = options.iter().filter_map(|it| it.properties.as_ref());
        let count = properties.map(Properties::len).sum();
        let marks = vec![Cell::new(false); count];
        Accepted { marks }
    }

    /// Accepts a value, which the model has from now on.
    fn accept(&self, property: &Property) {
        self.marks[property.number].set(true);
    }

    /// True for a value that a reader has accepted.
    pub(crate) fn has(&self, property: &Property) -> bool {
        self.marks[property.number].get()
    }
}

/// The members of an option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Members<'a> {
    properties: &'a Properties,
    /// `None` after reading.
    accepted: Option<&'a Accepted>,
}

impl<'a> Members<'a> {
    pub(crate) const fn new(properties: &'a Properties, accepted: Option<&'a Accepted>) -> Self {
        Members {
            properties,
            accepted,
        }
    }

    /// All values with their syntax.
    pub(crate) const fn properties(self) -> &'a Properties {
        self.properties
    }

    /// The value of a key.
    pub(crate) fn get(self, key: &str) -> Option<&'a Property> {
        self.properties.get(key)
    }

    /// The text of a key.
    pub(crate) fn value(self, key: &str) -> Option<&'a str> {
        self.properties.value(key)
    }

    /// All values, in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'a Property> {
        self.properties.iter()
    }

    /// True if any key starts with the prefix.
    pub(crate) fn has_within(self, prefix: &str) -> bool {
        self.properties.has_within(prefix)
    }

    /// The value of a key, which the model has from now on.
    pub(crate) fn take(self, key: &str) -> Option<&'a Property> {
        let property = self.get(key)?;
        self.accept_value(property);
        Some(property)
    }

    /// The text of a key, which the model has from now on.
    pub(crate) fn take_text(self, key: &str) -> Option<&'a str> {
        self.take(key).map(|property| property.value.as_str())
    }

    /// Accepts values that the model has by other means.
    pub(crate) fn accept(self, keys: &[&str]) {
        for key in keys {
            self.take(key);
        }
    }

    /// Accepts one of the values.
    pub(crate) fn accept_value(self, property: &Property) {
        if let Some(accepted) = self.accepted {
            accepted.accept(property);
        }
    }

    /// True if a reader has accepted the value of a key.
    pub(crate) fn has_accepted(self, key: &str) -> bool {
        let accepts = |it: &Property| self.accepted.is_some_and(|accepted| accepted.has(it));
        self.get(key).is_some_and(accepts)
    }

    /// The values that no reader has accepted.
    pub(crate) fn not_accepted(self) -> impl Iterator<Item = &'a Property> {
        let accepts = move |it: &&Property| self.accepted.is_some_and(|accepted| accepted.has(it));
        self.iter().filter(move |property| !accepts(property))
    }
}

/// The members below a key, such as those of a nested node.
#[derive(Clone, Debug)]
pub(crate) struct View<'a> {
    pub(crate) members: Members<'a>,
    /// Empty, or a key with its dot.
    pub(crate) prefix: String,
}

impl<'a> View<'a> {
    pub(crate) const fn whole(members: Members<'a>) -> Self {
        View {
            members,
            prefix: String::new(),
        }
    }

    /// The members below one of these.
    pub(crate) fn inside(&self, key: &str) -> Self {
        View {
            members: self.members,
            prefix: format!("{}{key}.", self.prefix),
        }
    }

    /// Calls a function with the whole key.
    fn with<T>(&self, key: &str, then: impl FnOnce(&str) -> T) -> T {
        if self.prefix.is_empty() {
            return then(key);
        }
        then(&[&self.prefix, key].concat())
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Property> {
        self.with(key, |key| self.members.get(key))
    }

    /// The value of a key, which the model has from now on.
    pub(crate) fn take(&self, key: &str) -> Option<&'a Property> {
        self.with(key, |key| self.members.take(key))
    }

    /// The text of a key, which the model has from now on.
    pub(crate) fn take_text(&self, key: &str) -> Option<&'a str> {
        self.take(key).map(|property| property.value.as_str())
    }

    /// Accepts values that the model has by other means.
    pub(crate) fn accept(&self, keys: &[&str]) {
        for key in keys {
            self.take(key);
        }
    }

    pub(crate) fn has_within(&self, key: &str) -> bool {
        self.members.has_within(&format!("{}{key}.", self.prefix))
    }
}
