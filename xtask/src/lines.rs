//! Lines of Rust code per crate, without comments, blank lines and tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Prints the number of lines of each crate below `checkout`, and their sum.
pub(crate) fn run(checkout: Option<PathBuf>) -> anyhow::Result<()> {
    let checkout = checkout.unwrap_or_else(crate::repository);
    let mut of_crates = BTreeMap::new();
    for entry in fs::read_dir(checkout.join("crates"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        of_crates.insert(name.into_owned(), of_directory(&path.join("src"))?);
    }
    of_crates.insert(
        "xtask".to_owned(),
        of_directory(&checkout.join("xtask/src"))?,
    );
    for (name, lines) in &of_crates {
        println!("{lines:>7} {name}");
    }
    println!("{:>7} in all", of_crates.values().sum::<usize>());
    Ok(())
}

/// The number of lines of all files in a directory that hold no tests alone.
fn of_directory(directory: &Path) -> anyhow::Result<usize> {
    let mut lines = 0;
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default();
        // The modules that `#[cfg(test)] mod tests;` declares.
        if stem == "tests" || stem == "test" {
            continue;
        }
        if path.is_dir() {
            lines += of_directory(&path)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            lines += of_text(&fs::read_to_string(&path)?);
        }
    }
    Ok(lines)
}

/// The number of lines of a file as rustfmt writes it: an item ends at the first line that closes a bracket at the
/// indentation of its first line, or with the line itself.
fn of_text(text: &str) -> usize {
    let mut count = 0;
    // The indentation of an item for tests, until its end.
    let mut in_test: Option<usize> = None;
    for line in text.lines() {
        let code = line.trim_start();
        let indentation = line.len() - code.len();
        if code.is_empty() || code.starts_with("//") {
            continue;
        }
        match in_test {
            Some(start) => {
                let is_attribute = code.starts_with("#[");
                let ends = indentation == start
                    && !is_attribute
                    && (code.starts_with(['}', ')', ']']) || code.ends_with([';', '}']));
                if ends {
                    in_test = None;
                }
            }
            None if code.starts_with("#[cfg(test)]") => in_test = Some(indentation),
            None => count += 1,
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::of_text;

    #[test]
    fn comments_blank_lines_and_tests_do_not_count() {
        let text = "\
//! A file.

use std::fs; // counts

/// A function.
fn counts() {
    // Not this.
    one();
}

#[cfg(test)]
mod tests;

#[cfg(test)]
#[expect(dead_code)]
fn helper() {
    one();
}

#[cfg(test)]
mod more {
    fn nested() {
    }
}

impl Counts {
    #[cfg(test)]
    fn helper() {
        one();
    }
    const TWO: u8 = 2;
}
";
        assert_eq!(of_text(text), 7);
    }
}
