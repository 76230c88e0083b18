//! The placeholders of a template, and their values.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_source::template::Template;

use super::text::Text;

/// The placeholders of a template, by the text that the reader of its words has in place of each.
pub(super) struct Placeholders<'t> {
    text: &'t str,
    names: BTreeMap<&'t str, String>,
    /// Values by the name of a variable.
    values: BTreeMap<&'t str, &'t str>,
}

impl<'t> Placeholders<'t> {
    /// Those of a text; `given` are values of its variables.
    pub(super) fn new(
        text: &'t str,
        template: Option<&'t Template>,
        given: &'t BTreeMap<String, String>,
    ) -> Self {
        let mut names: BTreeMap<&str, String> = BTreeMap::new();
        let mut several = BTreeSet::new();
        for placeholder in template.iter().flat_map(|it| &it.placeholders) {
            let read = template.map_or("", |it| it.read_as(placeholder));
            // Options are split at these.
            let name = placeholder.name.replace([',', '='], "_");
            if names.get(read).is_some_and(|known| *known != name) {
                several.insert(read);
            }
            names.insert(read, name);
        }
        names.retain(|read, _| !several.contains(read));
        let given = given.iter();
        let values = given.map(|(name, value)| (name.as_str(), value.as_str()));
        Placeholders {
            text,
            names,
            values: values.collect(),
        }
    }

    /// The text of the placeholder in the template, and its value if it is known.
    pub(super) fn of<'n>(&'n self, read: &'n str) -> (&'n str, Option<&'n str>) {
        let name = match self.names.get(read) {
            Some(name) => name,
            None if read.starts_with('@') => read,
            None => return (read, None),
        };
        let is_of_name = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
        let variable = name.trim_matches(|letter| !is_of_name(letter));
        (name, self.values.get(variable).copied())
    }
}

impl Placeholders<'_> {
    /// The words of a word that is a placeholder without quotes, whose value is several words or none.
    pub(super) fn words(&self, word: &Text) -> Option<Vec<Text>> {
        let (_, value) = self.of(word.as_str());
        let value = value.filter(|it| it.is_empty() || it.contains(char::is_whitespace))?;
        let span = word.whole();
        let before = self.text.get(..span.start)?;
        let to_word = |part: &str| {
            let mut word = Text::empty(span.start);
            word.push_escape(part, span);
            word
        };
        let is_bare = !before.ends_with(['"', '\'']);
        is_bare.then(|| value.split_whitespace().map(to_word).collect())
    }
}

/// The length of `@NAME@` at the start of a text.
pub(super) fn configured(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('@')?;
    let is_in_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let end = inner.find(|letter| !is_in_name(letter))?;
    let is_name = inner.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    (is_name && inner[end..].starts_with('@')).then_some(end + 2)
}
