//! The placeholders of a template, and their values.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_source::template::Template;

use super::text::Text;

/// Bytes of a value in a justfile, at most: each placeholder has a copy.
const MAX_VALUE: usize = 256;

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
        let mut values = match names.is_empty() {
            true => BTreeMap::new(),
            false => variables_of_justfile(text),
        };
        let given = given.iter();
        values.extend(given.map(|(name, value)| (name.as_str(), value.as_str())));
        Placeholders {
            text,
            names,
            values,
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

/// The variables that a justfile sets to a text. A variable that a parameter of a recipe hides is left out.
fn variables_of_justfile(text: &str) -> BTreeMap<&str, &str> {
    let mut values = BTreeMap::new();
    let mut hidden = BTreeSet::new();
    let is_own = |line: &&str| !line.starts_with([' ', '\t', '#', '[', '@']);
    for line in text.lines().filter(is_own) {
        if let Some((name, value)) = line.split_once(":=") {
            let name = name.trim().trim_start_matches("export ").trim();
            if let Some(value) = quoted(value.trim()) {
                values.insert(name, value);
            } else {
                hidden.insert(name);
            }
        } else if let Some((recipe, _)) = line.split_once(':') {
            let parameters = recipe.split_whitespace().skip(1);
            let parameters = parameters.map(|it| it.trim_start_matches(['+', '*', '$']));
            hidden.extend(parameters.filter_map(|it| it.split('=').next()));
        }
    }
    values.retain(|name, _| !hidden.contains(name));
    values
}

/// The text between quotes, if it is all of a value and means nothing to a shell.
fn quoted(value: &str) -> Option<&str> {
    let quote = value.chars().next().filter(|it| matches!(it, '"' | '\''))?;
    let inner = value.strip_prefix(quote)?.strip_suffix(quote)?;
    let means_nothing = |letter: char| letter.is_alphanumeric() || " /.,:=_+-@%".contains(letter);
    let is_known = inner.len() <= MAX_VALUE && inner.chars().all(means_nothing);
    is_known.then_some(inner)
}
