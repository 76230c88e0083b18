//! Where a value of a YAML text is written.
//!
//! The YAML reader tells places only with its errors. So the place of a value is found by reading
//! the text once more, down the value's path, and failing there on purpose. Only faults cost that.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::node::KeySeed;
use super::{SpecPath, SpecPlace, SpecSegment};

/// The place of the value at `path`, or of its key; else of the nearest that encloses it.
pub(crate) fn locate(text: &str, path: &SpecPath, is_about_key: bool) -> Option<SpecPlace> {
    let mut path = path.clone();
    let mut is_about_key = is_about_key;
    loop {
        if let Some(place) = exactly(text, &path, is_about_key) {
            return Some(place);
        }
        // A key that is missing belongs to the map that should have it.
        path = path.parent()?;
        is_about_key = false;
    }
}

/// The place that an error of the YAML reader names.
pub(crate) fn place_of(error: &serde_yaml::Error) -> Option<SpecPlace> {
    let location = error.location()?;
    Some(SpecPlace {
        line: location.line(),
        column: location.column(),
    })
}

fn exactly(text: &str, path: &SpecPath, is_about_key: bool) -> Option<SpecPlace> {
    let descent = Descent {
        rest: &path.0,
        is_about_key,
    };
    let found = descent.deserialize(serde_yaml::Deserializer::from_str(text));
    let error = found.err()?;
    // Any other error means that the path was not reached.
    error
        .to_string()
        .contains(HERE)
        .then(|| place_of(&error))
        .flatten()
}

/// The text of the failure that marks the spot; no YAML library says this.
const HERE: &str = "\u{1}vmdisk: here\u{1}";

/// Goes down a path and fails at its end.
struct Descent<'a> {
    rest: &'a [SpecSegment],
    is_about_key: bool,
}

impl<'de> DeserializeSeed<'de> for Descent<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Descent<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A scalar where the path goes on, or ends: at the end this is the mark.
        f.write_str(if self.rest.is_empty() {
            HERE
        } else {
            "a list or a group of keys"
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        match self.rest.split_first() {
            None => Err(A::Error::custom(HERE)),
            Some((SpecSegment::Index(index), rest)) => {
                for _ in 0..*index {
                    list.next_element::<IgnoredAny>()?;
                }
                let is_about_key = self.is_about_key;
                list.next_element_seed(Descent { rest, is_about_key })?;
                Err(A::Error::custom("not there"))
            }
            Some((SpecSegment::Key(_), _)) => Err(A::Error::custom("not there")),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (key, rest) = match self.rest.split_first() {
            None => return Err(A::Error::custom(HERE)),
            Some((SpecSegment::Key(key), rest)) => (key, rest),
            Some((SpecSegment::Index(_), _)) => return Err(A::Error::custom("not there")),
        };
        let wanted = WantedKey {
            key,
            fails: self.is_about_key && rest.is_empty(),
        };
        while let Some(is_wanted) = map.next_key_seed(&wanted)? {
            if is_wanted {
                let is_about_key = self.is_about_key;
                return map.next_value_seed(Descent { rest, is_about_key });
            }
            map.next_value::<IgnoredAny>()?;
        }
        Err(A::Error::custom("not there"))
    }
}

/// Tells whether a key is the one, and fails on it if it is what is looked for.
struct WantedKey<'a> {
    key: &'a str,
    fails: bool,
}

impl<'de> DeserializeSeed<'de> for &WantedKey<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        if self.fails {
            return deserializer.deserialize_str(FailingKey(self.key));
        }
        KeySeed.deserialize(deserializer).map(|key| key == self.key)
    }
}

struct FailingKey<'a>(&'a str);

impl Visitor<'_> for FailingKey<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<bool, E> {
        if key == self.0 {
            Err(E::custom(HERE))
        } else {
            Ok(false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "version: 1\ndisks:\n- raw: {path: /a, size: 1G}\n- qcow2:\n    path: \"é\"\n    size:   x\n    nothing:\n";

    fn at(path: &SpecPath, is_about_key: bool) -> (usize, usize) {
        let place = locate(TEXT, path, is_about_key).unwrap();
        (place.line, place.column)
    }

    #[test]
    fn keys_and_values_are_found_where_they_are_written() {
        let second = SpecPath::disk(1).key("qcow2");
        assert_eq!(at(&SpecPath::default().key("version"), true), (1, 1));
        assert_eq!(at(&SpecPath::default().key("version"), false), (1, 10));
        assert_eq!(
            at(&SpecPath::disk(0).key("raw").key("size"), false),
            (3, 25)
        );
        assert_eq!(at(&second.key("size"), true), (6, 5));
        assert_eq!(at(&second.key("size"), false), (6, 13));
        assert_eq!(at(&second.key("nothing"), true), (7, 5));
        assert_eq!(at(&SpecPath::disk(0), false), (3, 3));
    }

    #[test]
    fn what_is_missing_is_placed_at_what_should_have_it() {
        let second = SpecPath::disk(1).key("qcow2");
        assert_eq!(at(&second.key("absent"), true), at(&second, false));
        assert_eq!(
            at(&second.key("path").key("below"), true),
            at(&second.key("path"), false)
        );
        assert_eq!(
            at(&SpecPath::disk(7), false),
            at(&SpecPath::default().key("disks"), false)
        );
    }

    #[test]
    fn a_text_that_is_no_yaml_is_placed_at_its_beginning() {
        let place = SpecPlace { line: 1, column: 1 };
        let at = SpecPath::default().key("a");
        assert_eq!(locate("{", &at, true), Some(place));
    }
}
