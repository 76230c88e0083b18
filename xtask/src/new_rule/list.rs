//! The list of a crate's rules: a sorted list of modules, and a sorted list of rules.

use anyhow::Context as _;

use super::home::Home;

/// Returns the text of a `mod.rs` with one more rule.
pub(crate) fn with_rule(text: &str, module: &str, home: Home) -> anyhow::Result<String> {
    let declaration = format!("mod {module};\n");
    let modules = text.find("mod ").context("no modules found")?;
    // Modules for tests stand apart.
    let modules = text[..modules].rfind('\n').map_or(0, |at| at + 1);
    let length = text[modules..].find("\n\n").map_or(text.len(), |at| at + 1);
    let (before, rest) = text.split_at(modules);
    let (declared, rest) = rest.split_at(length);
    let lines = declared.split_inclusive('\n');
    let declared = inserted(lines, module_of_declaration, module, &declaration);

    let list = rest.find(home.list()).context("no list of rules found")?;
    let list = list + home.list().len() + 1;
    let length = rest[list..].find("];").context("the list has no end")?;
    let (between, rest) = rest.split_at(list);
    let (listed, after) = rest.split_at(length);
    let entries = listed.split_inclusive('\n');
    let listed = inserted(entries, module_of_entry, module, &entry(module));
    Ok([before, &declared, between, &listed, after].concat())
}

/// Returns the parts with a new one before the first that sorts after it.
fn inserted<'t>(
    parts: impl Iterator<Item = &'t str>,
    module_of: fn(&str) -> &str,
    module: &str,
    new: &str,
) -> String {
    // Rules are sorted by their names, in which `-` replaces `_`.
    let name = |module: &str| module.replace('_', "-");
    let mut out = String::new();
    let mut is_in = false;
    for part in parts {
        if !is_in && name(module_of(part)) > name(module) {
            out.push_str(new);
            is_in = true;
        }
        out.push_str(part);
    }
    if !is_in {
        out.push_str(new);
    }
    out
}

/// The entry of a rule in the list.
fn entry(module: &str) -> String {
    format!("    &{module}::RULE,\n")
}

fn module_of_declaration(line: &str) -> &str {
    let name = line.split("mod ").nth(1).unwrap_or_default();
    name.trim_end().trim_end_matches(';')
}

fn module_of_entry(entry: &str) -> &str {
    let name = entry.split('&').nth(1).unwrap_or_default();
    name.split("::").next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    /// The list of a crate, all of its modules private: those of new rules are.
    fn list(home: Home) -> String {
        let path = crate::repository().join(home.folder()).join("mod.rs");
        std::fs::read_to_string(path)
            .unwrap()
            .replace("pub(crate) mod ", "mod ")
    }

    #[test]
    fn a_rule_that_is_removed_and_added_again_leaves_the_list_as_it_was() {
        for home in Home::value_variants() {
            let text = list(*home);
            let mut tried = 0;
            let modules = text.lines().filter(|line| line.starts_with("mod "));
            for module in modules.map(module_of_declaration) {
                let (declaration, listed) = (format!("mod {module};\n"), entry(module));
                if text.matches(&listed).count() != 1 {
                    // A helper of several rules.
                    continue;
                }
                let without = text.replace(&declaration, "").replace(&listed, "");
                assert_eq!(without.len() + declaration.len() + listed.len(), text.len());
                let again = with_rule(&without, module, *home).unwrap();
                assert_eq!(again, text, "{module}");
                tried += 1;
            }
            assert!(tried > 0, "{home:?}");
        }
    }

    #[test]
    fn the_first_and_the_last_rule_of_a_list_have_their_places() {
        for home in Home::value_variants() {
            let text = list(*home);
            for module in ["aaa", "zzz"] {
                let longer = with_rule(&text, module, *home).unwrap();
                let declaration = longer.find(&format!("mod {module};\n")).unwrap();
                let listed = longer.find(&entry(module)).unwrap();
                let shorter = longer
                    .replace(&entry(module), "")
                    .replace(&format!("mod {module};\n"), "");
                assert_eq!(shorter, text);
                let list = longer.find(home.list()).unwrap();
                assert!(declaration < list && list < listed);
                let is_first = longer[list + home.list().len() + 1..].starts_with(&entry(module));
                assert_eq!(is_first, module == "aaa", "{home:?}");
            }
        }
    }
}
