//! The placeholders of a template, and the values that are given for them.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_source::template::Template;

/// The placeholders of a template, by the text that the reader of its words has in place of each.
pub(super) struct Placeholders<'t> {
    names: BTreeMap<&'t str, String>,
    given: &'t BTreeMap<String, String>,
}

impl<'t> Placeholders<'t> {
    pub(super) fn new(template: Option<&'t Template>, given: &'t BTreeMap<String, String>) -> Self {
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
        Placeholders { names, given }
    }

    /// The placeholder as it is written, and its value if it is given.
    pub(super) fn of<'n>(&'n self, read: &'n str) -> (&'n str, Option<&'n str>) {
        let Some(name) = self.names.get(read) else {
            return (read, None);
        };
        let is_of_name = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
        let variable = name.trim_matches(|letter| !is_of_name(letter));
        (name, self.given.get(variable).map(String::as_str))
    }
}
