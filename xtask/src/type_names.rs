//! Names of public types: each has one meaning in the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use proc_macro2::{TokenStream, TokenTree};

/// Names that several crates define, with the reason.
const SHARED: &[(&str, &str)] = &[
    (
        "CannotEdit",
        "each syntax has its own reasons, under the name that `edits` of each crate fails with",
    ),
    (
        "Document",
        "each syntax returns its own from `read`, and `vmdisk::Document` holds one of them",
    ),
    (
        "ReadFailure",
        "each syntax fails with its own in `read`, and `vmdisk::ReadFailure` holds one of them",
    ),
    (
        "ReadFailureKind",
        "`vmdisk::ReadFailureKind` holds the one of libvirt",
    ),
];

/// The crate whose names are compared with its own only: measurements have samples, rounds and verdicts, and no
/// reader of another crate meets them.
const APART: &str = "vmdisk-bench-runner";

/// Prints the names that several types have, and fails if there is one that is not allowed.
pub(crate) fn run() -> anyhow::Result<()> {
    let found = find(&crate::repository().join("crates"))?;
    let faults = faults(&found);
    for fault in &faults {
        println!("{fault}");
    }
    if !faults.is_empty() {
        bail!("rename one of the types, or add the name to SHARED with the reason");
    }
    println!(
        "{} public types, no name twice except {} allowed ones",
        found.len(),
        SHARED.len()
    );
    Ok(())
}

/// The files that define each name, relative to the directory of crates.
type Found = BTreeMap<String, Vec<String>>;

fn faults(found: &Found) -> Vec<String> {
    let is_shared = |name: &str| SHARED.iter().any(|(shared, _)| *shared == name);
    let is_apart = |file: &&String| file.starts_with(APART);
    let is_twice = |files: &[String]| {
        let apart = files.iter().filter(is_apart).count();
        apart > 1 || files.len() - apart > 1
    };
    let twice = found
        .iter()
        .filter(|(name, files)| is_twice(files) && !is_shared(name))
        .map(|(name, files)| format!("{name} is defined in {}", files.join(" and in ")));
    let gone = SHARED
        .iter()
        .filter(|(name, _)| !found.get(*name).is_some_and(|files| is_twice(files)))
        .map(|(name, _)| {
            format!("remove {name} from SHARED, because at most one crate defines it")
        });
    twice.chain(gone).collect()
}

/// Returns the public types of all crates in a directory.
fn find(crates: &Path) -> anyhow::Result<Found> {
    let mut found = Found::new();
    for path in entries(crates)? {
        add_directory(&path.join("src"), crates, &mut found)?;
    }
    Ok(found)
}

/// Returns the paths in a directory, sorted.
fn entries(directory: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let entries = std::fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn add_directory(directory: &Path, crates: &Path, found: &mut Found) -> anyhow::Result<()> {
    for path in entries(directory)? {
        if path.is_dir() {
            add_directory(&path, crates, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path)?;
            let tokens: TokenStream = text
                .parse()
                .map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
            let file = path.strip_prefix(crates).unwrap_or(&path);
            let mut names = Vec::new();
            add_types(tokens, &mut names);
            for name in names {
                found
                    .entry(name)
                    .or_default()
                    .push(file.display().to_string());
            }
        }
    }
    Ok(())
}

/// Adds the names after `pub struct`, `pub enum`, `pub union`, `pub trait` and `pub type`, in items and in macros.
fn add_types(tokens: TokenStream, names: &mut Vec<String>) {
    let mut before = [String::new(), String::new()];
    for token in tokens {
        let word = match token {
            TokenTree::Group(group) => {
                add_types(group.stream(), names);
                String::new()
            }
            TokenTree::Ident(word) => word.to_string(),
            TokenTree::Punct(_) | TokenTree::Literal(_) => String::new(),
        };
        let [visibility, keyword] = &before;
        let is_type = matches!(
            keyword.as_str(),
            "struct" | "enum" | "union" | "trait" | "type"
        );
        if visibility == "pub" && is_type && !word.is_empty() {
            names.push(word.clone());
        }
        before.rotate_left(1);
        before[1] = word;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_a_public_type_has_two_meanings() {
        let found = find(&crate::repository().join("crates")).unwrap();
        assert!(found.len() > 300, "{}", found.len());
        assert_eq!(faults(&found), Vec::<String>::new());
    }

    #[test]
    fn a_name_in_two_crates_is_found_in_items_and_in_macros() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            (
                "one/src/lib.rs",
                "/// pub struct Comment\npub struct Twice(pub u8);",
            ),
            (
                "two/src/a.rs",
                "words! { /// Words.\n pub enum Twice { A = \"a\" } }",
            ),
            ("two/src/b.rs", "pub(crate) struct Inside; struct Private;"),
            ("three/src/b.rs", "pub struct Inside; pub struct Private;"),
        ];
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found = find(folder.path()).unwrap();
        let twice = "Twice is defined in one/src/lib.rs and in two/src/a.rs";
        let mut faults = faults(&found);
        // The empty workspace has none of the allowed names.
        faults.retain(|fault| !fault.starts_with("remove "));
        assert_eq!(faults, [twice]);
        assert_eq!(found["Inside"].len(), 1);
    }

    #[test]
    fn a_name_of_the_benchmarks_may_be_one_of_another_crate() {
        let files = |files: &[&str]| files.iter().map(|&file| file.to_owned()).collect();
        let mut found = Found::new();
        found.insert(
            "Plan".to_owned(),
            files(&["vmdisk-bench-runner/src/plan.rs", "vmdisk-plan/src/lib.rs"]),
        );
        let is_about_plan = |fault: &String| fault.starts_with("Plan");
        assert!(!faults(&found).iter().any(is_about_plan));
        found.insert(
            "Plan".to_owned(),
            files(&["vmdisk-bench-runner/src/plan.rs"; 2]),
        );
        assert!(faults(&found).iter().any(is_about_plan));
    }
}
