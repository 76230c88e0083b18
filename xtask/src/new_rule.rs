//! A new rule from the template of its crate: `cargo xtask new-rule`.

mod home;
mod list;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use vmdisk::rules::{self, Group, Severity};

use home::Home;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Name of the rule: the mistake in kebab-case, such as cache-unsafe
    name: String,
    /// Group of the rule in the index
    #[arg(long, default_value = "clarity", value_parser = words(Group::ALL, Group::as_str))]
    group: Group,
    /// Severity of its findings
    #[arg(long, default_value = "warning", value_parser = words(Severity::ALL, Severity::as_str))]
    severity: Severity,
    /// Crate of the rule, by the input of its check
    #[arg(long = "in", value_enum, default_value_t = Home::Rules)]
    home: Home,
    /// Root of the checkout to write to [default: this one]
    #[arg(long)]
    checkout: Option<PathBuf>,
}

/// Parses the word of one of these values.
fn words<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    word: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().copied().map(word)).map(move |given| {
        let mut values = all.iter();
        *values
            .find(|value| word(**value) == given)
            .expect("clap accepts only these words")
    })
}

/// Writes the file of a rule and adds it to the list of its crate.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { name, home, .. } = arguments;
    let checkout = arguments.checkout.clone();
    let checkout = checkout.unwrap_or_else(crate::repository);
    check_name(name)?;
    let module = name.replace('-', "_");
    let folder = home.folder();
    let file = format!("{folder}/{module}.rs");
    let list = format!("{folder}/mod.rs");
    ensure!(!checkout.join(&file).exists(), "{file} exists");

    let read =
        |path: &str| fs::read_to_string(checkout.join(path)).with_context(|| path.to_owned());
    let rule = filled(&read(&format!("{folder}/template.rs"))?, arguments)?;
    let longer = list::with_rule(&read(&list)?, &module, *home).with_context(|| list.clone())?;
    fs::write(checkout.join(&file), rule).with_context(|| file.clone())?;
    fs::write(checkout.join(&list), longer).with_context(|| list.clone())?;
    println!("{file} is new");
    println!("{list} lists it");
    println!(
        "next: write what `REPLACE` asks for; `cargo test -p vmdisk --test it pages` finds what is left"
    );
    Ok(())
}

/// Fails unless a rule can have this name.
fn check_name(name: &str) -> anyhow::Result<()> {
    let is_word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
    };
    ensure!(
        name.starts_with(|first: char| first.is_ascii_lowercase()) && name.split('-').all(is_word),
        "`{name}` is not kebab-case: expected words of lower-case letters and digits, joined by `-`"
    );
    ensure!(
        syn::parse_str::<syn::Ident>(&name.replace('-', "_")).is_ok(),
        "`{name}` is a keyword of Rust"
    );
    ensure!(rules::find(name).is_none(), "the rule `{name}` exists");
    Ok(())
}

/// Returns the template with the values of the new rule.
fn filled(template: &str, arguments: &Arguments) -> anyhow::Result<String> {
    let Arguments {
        name,
        group,
        severity,
        ..
    } = arguments;
    let values = [
        ("//! `template`", format!("//! `{name}`")),
        ("name: \"template\"", format!("name: \"{name}\"")),
        ("Group::Clarity", format!("Group::{group:?}")),
        ("Severity::Warning", format!("Severity::{severity:?}")),
        (
            "since: \"0.1.0\"",
            format!("since: \"{}\"", env!("CARGO_PKG_VERSION")),
        ),
    ];
    let mut text = template.to_owned();
    for (placeholder, value) in values {
        ensure!(
            text.matches(placeholder).count() == 1,
            "the template must contain `{placeholder}` once"
        );
        text = text.replace(placeholder, &value);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kebab_case_new_and_a_module() {
        for good in ["a-new-mistake", "qcow9", "x2-y"] {
            check_name(good).unwrap();
        }
        for (bad, why) in [
            ("Cache-Unsafe", "not kebab-case"),
            ("cache_unsafe2", "not kebab-case"),
            ("a--b", "not kebab-case"),
            ("-a", "not kebab-case"),
            ("a-", "not kebab-case"),
            ("9p-share", "not kebab-case"),
            ("../a", "not kebab-case"),
            ("", "not kebab-case"),
            ("match", "a keyword of Rust"),
            ("cache-unsafe", "exists"),
        ] {
            let error = check_name(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }
}
