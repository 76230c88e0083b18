//! The members of an option, by dotted keys: `cache.direct` is the same in JSON and in key=value.

use std::collections::HashMap;

use vmdisk_source::Span;

use super::text::Text;

/// The type of a written value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A value of key=value, which can have any type.
    Plain,
    /// A string of JSON.
    Text,
    Number,
    Bool,
    Null,
    /// An empty array; elements of other arrays are separate properties.
    EmptyArray,
}

/// One value of an option.
#[derive(Clone, Debug)]
pub(crate) struct Property {
    /// Its key, prefixed with those of the enclosing objects.
    pub(crate) key: String,
    /// The value, without quotes.
    pub(crate) value: Text,
    pub(crate) kind: Kind,
    /// The span of the value, without quotes.
    pub(crate) span: Span,
    /// The span of the key.
    pub(crate) key_span: Span,
    /// True if a part of the key is unknown.
    pub(crate) has_open_key: bool,
    /// The range to delete with the member.
    pub(crate) whole: Span,
    /// Its number among the values of all options.
    pub(crate) number: usize,
}

impl Property {
    /// True if a part of its value is unknown.
    pub(crate) fn is_open(&self) -> bool {
        self.value.has_hole()
    }
}

/// The form of an option, which additions must follow.
#[derive(Clone, Debug)]
pub(crate) enum Syntax {
    /// A JSON object that ends at `end`, with its quotes unchanged.
    Json { end: usize, quote: String },
    /// key=value pairs that end at `end`.
    Pairs { end: usize },
    /// Only a file name: QEMU uses all of it as the name, so nothing can be added.
    FileName,
    /// Lines of a `-readconfig` file that end at `end`; `is_cut` if the last of them has no line end.
    Lines { end: usize, is_cut: bool },
}

/// The maximum number of values that are searched one by one.
const MAX_UNINDEXED: usize = 16;

/// The values of one option.
#[derive(Clone, Debug)]
pub(crate) struct Properties {
    list: Vec<Property>,
    /// The position of the last value of each key; empty up to [`MAX_UNINDEXED`] values, which are faster to compare than
    /// to hash.
    index: HashMap<String, usize>,
    pub(crate) syntax: Syntax,
    /// Keys that are set twice, each with the span of the later one, and the range to delete with the value that does not
    /// count.
    pub(crate) twice: Vec<(String, Span, Span)>,
}

impl Properties {
    pub(crate) fn new(list: Vec<Property>, syntax: Syntax) -> Self {
        let mut all = Properties {
            list: Vec::with_capacity(list.len()),
            index: HashMap::new(),
            syntax,
            twice: Vec::new(),
        };
        for property in list {
            if let Some(earlier) = all.get(&property.key) {
                // util/qemu-option.c, opts_parse_id
                let counts_first = all.has_first(&property.key);
                let unused = match counts_first {
                    true => property.whole,
                    false => earlier.whole,
                };
                let again = (property.key.clone(), property.key_span, unused);
                all.twice.push(again);
                if counts_first {
                    continue;
                }
            }
            all.push(property);
        }
        all
    }

    /// True for the id of key=value pairs, of which the first counts.
    pub(crate) fn has_first(&self, key: &str) -> bool {
        key == "id" && matches!(self.syntax, Syntax::Pairs { .. })
    }

    fn push(&mut self, property: Property) {
        let nth = self.list.len();
        self.list.push(property);
        let keys = |nth: usize| (self.list[nth].key.clone(), nth);
        match nth {
            0..MAX_UNINDEXED => {}
            MAX_UNINDEXED => self.index = (0..=MAX_UNINDEXED).map(keys).collect(),
            _ => self.index.extend([keys(nth)]),
        }
    }

    /// The position of the last value of a key. QEMU uses the last of several.
    fn position(&self, key: &str) -> Option<usize> {
        if self.index.is_empty() {
            return self.list.iter().rposition(|property| property.key == key);
        }
        self.index.get(key).copied()
    }

    /// Sets a value, replacing one with the same key.
    pub(crate) fn set(&mut self, property: Property) {
        match self.position(&property.key) {
            Some(nth) => self.list[nth] = property,
            None => self.push(property),
        }
    }

    /// The number of values.
    pub(crate) const fn len(&self) -> usize {
        self.list.len()
    }

    /// All values, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Property> {
        self.list.iter()
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Property> {
        self.position(key).map(|nth| &self.list[nth])
    }

    /// The text of a key.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        self.get(key).map(|property| property.value.as_str())
    }

    /// Numbers the values, and returns the next number.
    pub(crate) fn number_from(&mut self, first: usize) -> usize {
        for (number, property) in (first..).zip(&mut self.list) {
            property.number = number;
        }
        first + self.list.len()
    }

    /// True if any key starts with the prefix.
    pub(crate) fn has_within(&self, prefix: &str) -> bool {
        self.list
            .iter()
            .any(|property| property.key.starts_with(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::pairs::pairs;

    #[test]
    fn the_last_value_of_a_key_counts_among_few_and_among_many() {
        for count in [
            MAX_UNINDEXED - 2,
            MAX_UNINDEXED - 1,
            MAX_UNINDEXED,
            MAX_UNINDEXED + 1,
            3 * MAX_UNINDEXED,
        ] {
            let others: Vec<String> = (0..count).map(|nth| format!("k{nth}={nth}")).collect();
            let text = format!("a=first,{},a=last", others.join(","));
            let mut written = Text::empty(0);
            written.push_verbatim(&text, Span::new(0, text.len()));
            let mut properties = pairs(&written, None);
            assert_eq!(properties.len(), count + 2);
            assert_eq!(properties.value("a"), Some("last"));
            assert_eq!(properties.value("k3"), Some("3"));
            assert_eq!(properties.value("none"), None);
            let twice: Vec<&str> = properties.twice.iter().map(|(key, ..)| &**key).collect();
            assert_eq!(twice, ["a"]);

            let [changed, mut added] = [0, 1].map(|nth| properties.list[nth].clone());
            properties.set(changed);
            assert_eq!(properties.value("a"), Some("first"));
            added.key = "new".to_owned();
            properties.set(added);
            assert_eq!(properties.value("new"), Some("0"));
            assert_eq!(properties.len(), count + 3);
        }
    }
}
