//! Lines of code of each crate, and the ceilings in `lines.txt` that they must not pass.

mod ceilings;
mod count;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use ceilings::Ceilings;
use count::Counted;

/// Tests of all crates, helpers for them, benchmarks of our own code, and fuzz targets.
const TESTS: &str = "tests";
/// Languages other than Rust.
const SCRIPTS: &str = "scripts";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Root of the checkout to count [default: this one]
    checkout: Option<PathBuf>,
    /// Fail if a crate has more lines than `lines.txt` allows
    #[arg(long, conflicts_with = "bless")]
    check: bool,
    /// Fail also if a later commit than this one raises a ceiling and changes something else
    #[arg(long, value_name = "COMMIT", requires = "check")]
    since: Option<String>,
    /// Lower the ceilings in `lines.txt` to the present numbers; none is raised
    #[arg(long)]
    bless: bool,
}

/// Prints the number of lines of each crate, and compares them with the ceilings.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let checkout = arguments.checkout.clone();
    let checkout = checkout.unwrap_or_else(crate::repository);
    let counted = of_checkout(&checkout)?;
    let file = checkout.join("lines.txt");
    let mut ceilings = Ceilings::read(&fs::read_to_string(&file).unwrap_or_default())?;
    print(&counted, &ceilings);
    if arguments.bless {
        ceilings.lower_to(&counted);
        fs::write(&file, ceilings.to_string()).context("lines.txt")?;
    }
    if arguments.check {
        let mut mistakes = ceilings.passed_by(&counted);
        if let Some(since) = &arguments.since {
            mistakes.extend(ceilings::raised_with_other_changes(&checkout, since)?);
        }
        ensure!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    }
    Ok(())
}

fn print(counted: &BTreeMap<String, usize>, ceilings: &Ceilings) {
    for (name, lines) in counted {
        match ceilings.of(name) {
            Some(ceiling) => println!("{lines:>7} of {ceiling:>6} {name}"),
            None => println!("{lines:>7}           {name}"),
        }
    }
    let product = counted
        .iter()
        .filter(|(name, _)| name.starts_with("vmdisk"));
    println!(
        "{:>7}           in the product",
        product.map(|(_, lines)| lines).sum::<usize>()
    );
}

/// The lines of each crate without its tests, of `xtask`, of all tests, and of scripts.
fn of_checkout(checkout: &Path) -> anyhow::Result<BTreeMap<String, usize>> {
    let mut counted = BTreeMap::new();
    let mut files = Vec::new();
    list(checkout, Path::new(""), &mut files)?;
    for file in files {
        let text =
            fs::read_to_string(checkout.join(&file)).with_context(|| file.display().to_string())?;
        if file.extension().is_some_and(|extension| extension == "rs") {
            let Counted { code, tests } =
                count::rust(&text).with_context(|| file.display().to_string())?;
            match crate_of(&file) {
                Some(name) => *counted.entry(name).or_default() += code,
                None => *counted.entry(TESTS.to_owned()).or_default() += code,
            }
            *counted.entry(TESTS.to_owned()).or_default() += tests;
        } else if is_script(&file) {
            *counted.entry(SCRIPTS.to_owned()).or_default() += count::script(&text);
        }
    }
    Ok(counted)
}

/// Appends the files below a directory, without those that builds and tests make.
fn list(checkout: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(checkout.join(folder))? {
        let entry = entry?;
        let name = entry.file_name();
        let path = folder.join(&name);
        let is_hidden = name.as_encoded_bytes().starts_with(b".") && name != ".ci";
        if is_hidden
            || ["target", "fixtures", "node_modules"]
                .iter()
                .any(|it| name == *it)
        {
            continue;
        }
        if entry.file_type()?.is_dir() {
            list(checkout, &path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// The crate whose product or chore a Rust file is; none if it is for tests.
fn crate_of(file: &Path) -> Option<String> {
    let words: Vec<_> = file.iter().map(|word| word.to_string_lossy()).collect();
    let stem = file.file_stem()?;
    // `tests.rs` is what `#[cfg(test)] mod tests;` declares.
    let is_test = stem == "tests" || stem == "test";
    let is_below_tests = words
        .iter()
        .any(|word| ["tests", "test", "benches", "examples"].contains(&word.as_ref()));
    if is_test || is_below_tests {
        return None;
    }
    match words.as_slice() {
        [first, name, ..] if first == "crates" => Some(name.clone().into_owned()),
        [first, ..] if first == "xtask" => Some(first.clone().into_owned()),
        _ => None,
    }
}

fn is_script(file: &Path) -> bool {
    let languages = "c go h js lua mjs mts py sh ts";
    let extension = file.extension().unwrap_or_default().to_string_lossy();
    file == Path::new(".ci/run") || languages.split(' ').any(|it| it == extension)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{crate_of, is_script};

    #[test]
    fn every_file_belongs_to_a_crate_or_to_the_tests() {
        let of = |file| crate_of(Path::new(file));
        let product = Some("vmdisk-qemu".to_owned());
        assert_eq!(of("crates/vmdisk-qemu/src/write/guest.rs"), product);
        assert_eq!(of("crates/vmdisk-qemu/build.rs"), product);
        assert_eq!(of("crates/vmdisk-qemu/src/write/tests.rs"), None);
        assert_eq!(of("crates/vmdisk-qemu/tests/support/any.rs"), None);
        assert_eq!(of("xtask/src/lines.rs"), Some("xtask".to_owned()));
        assert_eq!(of("testing/src/lib.rs"), None);
        assert!(is_script(Path::new(".ci/run")));
        assert!(is_script(Path::new("xtask/src/dist/wheel.py")));
        assert!(!is_script(Path::new("README.md")));
    }
}
