//! What a spec is made of before anything is known of disks: scalars, lists and maps.
//!
//! YAML, JSON and one-liners all become nodes, so the same reader serves them.

use std::fmt;

use serde::de::{DeserializeSeed, EnumAccess, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserializer, Serialize, Serializer};

/// Most values in one spec: some thousand disks, and an end to aliases that multiply.
const MOST_NODES: usize = 200_000;

/// One value, as written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// Nothing: an empty value, `null` or `~`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(u64),
    /// A number that is no natural number; its spelling is lost.
    OtherNumber,
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Keys and values, in the order written; a key may be there twice.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// What the value is, for people.
    pub(crate) fn describe(&self) -> String {
        match self {
            Node::Null => "nothing".to_owned(),
            Node::Bool(value) => format!("`{value}`"),
            Node::Integer(value) => format!("the number {value}"),
            Node::OtherNumber => "a number".to_owned(),
            Node::Text(text) => format!("`{}`", shortened(text)),
            Node::List(_) => "a list".to_owned(),
            Node::Map(_) => "a group of keys".to_owned(),
        }
    }
}

/// A text of the user's that is fit for one line of a message, cut if it is long.
pub(crate) fn shortened(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => one_line(&text[..end]) + "…",
        None => one_line(text),
    }
}

/// A text on one line, with everything escaped that could leave it or hide in it.
pub(crate) fn one_line(text: &str) -> String {
    let escaped: String = text.chars().flat_map(char::escape_debug).collect();
    // Quotes need no escape between backticks.
    escaped.replace("\\'", "'").replace("\\\"", "\"")
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Node::Null | Node::OtherNumber => serializer.serialize_unit(),
            Node::Bool(value) => serializer.serialize_bool(*value),
            Node::Integer(value) => serializer.serialize_u64(*value),
            Node::Text(text) => serializer.serialize_str(text),
            Node::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Node::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

/// Reads any value, and counts.
pub(crate) struct NodeSeed<'a> {
    /// How many values may still come.
    pub(crate) left: &'a mut usize,
}

impl NodeSeed<'_> {
    /// Reads one whole document.
    pub(crate) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        let mut left = MOST_NODES;
        NodeSeed { left: &mut left }.deserialize(deserializer)
    }

    fn spend<E: Error>(&mut self) -> Result<(), E> {
        *self.left = self.left.checked_sub(1).ok_or_else(|| {
            E::custom(format_args!(
                "more than {MOST_NODES} values, aliases counted as often as they are used"
            ))
        })?;
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for NodeSeed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<Node, D::Error> {
        self.spend()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NodeSeed<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a plain value, a list or a group of keys, without tags")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Integer(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        Ok(u64::try_from(value).map_or(Node::OtherNumber, Node::Integer))
    }

    fn visit_u128<E: Error>(self, _: u128) -> Result<Node, E> {
        Ok(Node::OtherNumber)
    }

    fn visit_i128<E: Error>(self, _: i128) -> Result<Node, E> {
        Ok(Node::OtherNumber)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Node, E> {
        Ok(Node::OtherNumber)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, _: A) -> Result<Node, A::Error> {
        Err(A::Error::custom("a tag such as `!name` means nothing here"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(NodeSeed { left: self.left })? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key_seed(KeySeed)? {
            entries.push((key, map.next_value_seed(NodeSeed { left: self.left })?));
        }
        Ok(Node::Map(entries))
    }
}

/// Reads a key: text, or a scalar that is taken as text.
pub(crate) struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key, which is plain text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Node, serde_yaml::Error> {
        NodeSeed::read(serde_yaml::Deserializer::from_str(text))
    }

    #[test]
    fn yaml_becomes_nodes_and_a_repeated_key_is_kept() {
        let entries = |list: &[(&str, Node)]| {
            Node::Map(
                list.iter()
                    .map(|(key, value)| ((*key).to_owned(), value.clone()))
                    .collect(),
            )
        };
        assert_eq!(
            read("{a: 1, a: -1, b: [true, ~, x, 1.5], 7: 40G}").unwrap(),
            entries(&[
                ("a", Node::Integer(1)),
                ("a", Node::OtherNumber),
                (
                    "b",
                    Node::List(vec![
                        Node::Bool(true),
                        Node::Null,
                        Node::Text("x".into()),
                        Node::OtherNumber
                    ])
                ),
                ("7", Node::Text("40G".into())),
            ])
        );
        assert_eq!(read("").unwrap(), Node::Null);
    }

    #[test]
    fn tags_and_keys_that_are_no_text_are_refused() {
        for text in ["!tagged 1", "{[1]: 2}", "{{a: 1}: 2}"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn aliases_that_multiply_come_to_an_end() {
        let mut text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (name, below) in "bcdefghij".chars().zip("abcdefghi".chars()) {
            let list = vec![format!("*{below}"); 10].join(", ");
            text.push_str(&format!("{name}: &{name} [{list}]\n"));
        }
        let error = read(&text).unwrap_err().to_string();
        assert!(
            error.contains("more than") || error.contains("repetition"),
            "{error}"
        );
        // Few aliases of a long list stay below the limit on repetitions.
        let long = vec!["x"; 5000].join(", ");
        let many = vec!["*a"; 100].join(", ");
        let error = read(&format!("a: &a [{long}]\nb: [{many}]\n"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("more than 200000 values"), "{error}");
    }

    #[test]
    fn text_is_shown_on_one_line() {
        assert_eq!(shortened("it's \"x\"\n"), "it's \"x\"\\n");
        assert_eq!(shortened(&"x".repeat(100)).chars().count(), 81);
    }
}
