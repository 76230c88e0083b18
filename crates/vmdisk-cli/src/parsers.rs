//! Parsers of values that several commands have.

use std::ffi::OsStr;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use vmdisk::Severity;
use vmdisk::rules::{ALL, Group, RULES, named};

/// A parser of one word, with the words that a shell completes.
#[derive(Clone)]
pub(crate) struct Words {
    parse: fn(&str) -> Result<String, String>,
    known: fn() -> Vec<PossibleValue>,
}

impl TypedValueParser for Words {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        TypedValueParser::parse_ref(&self.parse, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.known)().into_iter()))
    }
}

/// Parses the name of a file in a directory.
pub(crate) fn file_name(name: &str) -> Result<String, String> {
    match name.is_empty() || name.contains('/') {
        true => Err("expected a name without `/`".to_owned()),
        false => Ok(name.to_owned()),
    }
}

/// A parser of the name of a rule.
pub(crate) fn rule() -> Words {
    Words {
        parse: rule_name,
        known: rules,
    }
}

/// A parser of words that a page is looked up by, which completes names of rules.
pub(crate) fn page_words() -> Words {
    Words {
        parse: |word| Ok(word.to_owned()),
        known: rules,
    }
}

/// A parser of the name of a rule or of a group of rules.
pub(crate) fn selector() -> Words {
    Words {
        parse: selector_name,
        known: || groups().into_iter().chain(rules()).collect(),
    }
}

fn rules() -> Vec<PossibleValue> {
    let value = |rule: &&vmdisk::Rule| PossibleValue::new(rule.name).help(rule.summary());
    RULES.iter().map(value).collect()
}

fn groups() -> Vec<PossibleValue> {
    let groups = Group::ALL.iter().map(|group| group.as_str());
    groups.chain([ALL]).map(PossibleValue::new).collect()
}

/// Returns a name of a rule, or suggests one.
fn rule_name(name: &str) -> Result<String, String> {
    if vmdisk::rules::find(name).is_some() {
        return Ok(name.to_owned());
    }
    let known = RULES.iter().map(|rule| rule.name);
    Err(match vmdisk_source::nearest(name, known) {
        Some(near) => format!("there is no such rule; did you mean `{near}`?"),
        None => "there is no such rule; `vmdisk explain --list` lists them".to_owned(),
    })
}

/// Returns a name of a rule or group, or suggests one.
fn selector_name(name: &str) -> Result<String, String> {
    match named(name) {
        Ok(_) => Ok(name.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// A number from 1 on.
pub(crate) fn count<N: FromStr + PartialEq + Default>(text: &str) -> Result<N, String> {
    let number = text.parse().ok().filter(|number| *number != N::default());
    number.ok_or_else(|| "expected a number from 1 on".to_owned())
}

/// One of a few words, each with its value.
pub(crate) fn one_of<T: Clone + Send + Sync + 'static>(
    words: impl IntoIterator<Item = &'static str>,
    from_word: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    let words = PossibleValuesParser::new(words);
    words.map(move |word| from_word(&word).expect("clap lets only known words through"))
}

/// One of the severities.
pub(crate) fn severity_parser() -> impl TypedValueParser<Value = Severity> {
    one_of(Severity::WORDS.iter().rev().copied(), Severity::from_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_rule_is_refused_with_what_was_meant() {
        assert_eq!(
            rule_name("cache-unsaf"),
            Err("there is no such rule; did you mean `cache-unsafe`?".to_owned())
        );
        assert_eq!(rule_name("cache-unsafe"), Ok("cache-unsafe".to_owned()));
    }

    #[test]
    fn a_selector_is_a_rule_a_group_or_all() {
        assert_eq!(named("cache-unsafe"), Ok(vec!["cache-unsafe"]));
        assert!(named("data-safety").unwrap().contains(&"cache-unsafe"));
        assert_eq!(named(ALL).unwrap().len(), RULES.len());
        assert_eq!(
            selector_name("data-safty"),
            Err("there is no such rule or group; did you mean `data-safety`?".to_owned())
        );
    }

    #[test]
    fn no_rule_is_called_like_a_group() {
        for group in groups() {
            assert!(vmdisk::rules::find(group.get_name()).is_none());
        }
    }
}
