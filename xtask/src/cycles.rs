//! File cycles: files of a crate that import each other, directly or indirectly.
//!
//! A file in a cycle cannot be read, tested or moved without the others. Moving a shared type to a third file
//! removes most cycles.

mod graph;
mod imports;
mod known;
mod modules;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use graph::Graph;
use known::KNOWN;
use modules::Modules;

/// Cycles: the files below `crates/`, and the names that each file takes from another.
type Cycles = BTreeMap<Vec<String>, Vec<String>>;

/// Prints the cycles, and fails if one is unknown, or known but gone.
pub(crate) fn run() -> anyhow::Result<()> {
    let crates = crate::repository().join("crates");
    let found = find(&crates)?;
    let faults = faults(&found, KNOWN);
    for fault in &faults {
        println!("{fault}");
    }
    if !faults.is_empty() {
        bail!("the list of known cycles and the crates differ");
    }
    println!("no file cycles except {} known ones", KNOWN.len());
    Ok(())
}

/// Returns the differences: unlisted cycles, and rows without a cycle.
fn faults(found: &Cycles, known: &[&[&str]]) -> Vec<String> {
    let rows: Vec<Vec<String>> = known
        .iter()
        .map(|row| row.iter().map(|&file| file.to_owned()).collect())
        .collect();
    let new = found
        .iter()
        .filter(|(files, _)| !rows.contains(files))
        .map(|(files, ties)| format!("a cycle of {} files:\n  {}", files.len(), ties.join("\n  ")));
    let gone = rows
        .iter()
        .filter(|row| !found.contains_key(*row))
        .map(|row| {
            format!(
                "remove this row, because its cycle is gone: {}",
                row.join(", ")
            )
        });
    new.chain(gone).collect()
}

/// Returns the cycles of all crates in a directory.
fn find(crates: &Path) -> anyhow::Result<Cycles> {
    let mut cycles = Cycles::new();
    for entry in std::fs::read_dir(crates).with_context(|| crates.display().to_string())? {
        let sources = entry?.path().join("src");
        if let Some(root) = root(&sources) {
            let modules = Modules::read(&root)?;
            cycles.extend(cycles_of(&modules, crates));
        }
    }
    Ok(cycles)
}

/// Returns the root file of a crate.
fn root(sources: &Path) -> Option<PathBuf> {
    ["lib.rs", "main.rs"]
        .map(|name| sources.join(name))
        .into_iter()
        .find(|path| path.is_file())
}

fn cycles_of(modules: &Modules, crates: &Path) -> Cycles {
    let graph = Graph::of(modules);
    let name = |file: &Path| {
        let file = file.strip_prefix(crates).unwrap_or(file);
        file.display().to_string()
    };
    graph
        .cycles()
        .into_iter()
        .map(|files| {
            let ties = graph
                .ties(&files)
                .map(|(from, to, names)| format!("{} takes {names} from {}", name(from), name(to)));
            let mut files: Vec<String> = files.iter().map(|file| name(file)).collect();
            files.sort();
            (files, ties.collect())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a crate with these files, and returns its cycles.
    fn cycles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join("one/src").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        find(folder.path()).unwrap().into_keys().collect()
    }

    const CYCLE: [&str; 2] = ["one/src/a.rs", "one/src/b.rs"];

    #[test]
    fn the_crates_have_only_the_listed_cycles() {
        let found = find(&crate::repository().join("crates")).unwrap();
        let faults = faults(&found, KNOWN);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn crates_without_cycles_stay_clean() {
        for clean in ["vmdisk-qemu/", "vmdisk-cli/"] {
            let files = KNOWN.iter().copied().flatten();
            assert_eq!(files.filter(|file| file.starts_with(clean)).count(), 0);
        }
    }

    #[test]
    fn every_kind_of_reference_is_a_dependency() {
        let root = ("lib.rs", "mod a;\nmod b;\n");
        let back = ("b.rs", "use super::a::One;\npub struct Two(One);\n");
        for text in [
            "use crate::b::Two;\n",
            "use crate::{b::{self, Two as Other}};\n",
            "use crate::b;\nfn f() { b::g() }\n",
            "fn f() -> crate::b::Two { todo!() }\n",
            "fn f() { println!(\"{:?}\", super::b::Two) }\n",
            "mod inner { use super::super::b::Two; }\n",
            "fn f() { use crate::b::*; }\n",
        ] {
            let files = [root, ("a.rs", text), back];
            assert_eq!(cycles(&files), [CYCLE], "{text}");
        }
    }

    #[test]
    fn references_in_tests_and_to_other_crates_are_not_dependencies() {
        let back = ("b.rs", "use crate::a::One;\n");
        for text in [
            "#[cfg(test)]\nmod tests { use crate::b::Two; }\n",
            "#[cfg(test)]\nuse crate::b::Two;\n",
            "use other::b::Two;\n",
            "//! See [`crate::b`].\n",
        ] {
            let files = [("lib.rs", "mod a;\nmod b;\n"), ("a.rs", text), back];
            assert_eq!(cycles(&files), Vec::<Vec<String>>::new(), "{text}");
        }
    }

    #[test]
    fn a_re_export_resolves_to_the_defining_file() {
        let root = ("lib.rs", "mod a;\nmod b;\npub use a::One;\npub use b::*;\n");
        let a = ("a.rs", "use crate::Two;\npub struct One;\n");
        let b = ("b.rs", "use crate::One;\npub struct Two;\n");
        assert_eq!(cycles(&[root, a, b]), [CYCLE]);
        let b = ("b.rs", "pub struct Two;\n");
        assert_eq!(cycles(&[root, a, b]), Vec::<Vec<String>>::new());
    }

    #[test]
    fn a_parent_that_uses_an_item_of_a_dependent_child_is_a_cycle() {
        let child = ("a/b.rs", "use super::One;\npub fn two(_: One) {}\n");
        let parent = "mod b;\npub struct One;\n";
        let files = |text: &str| {
            let parent = format!("{parent}{text}");
            cycles(&[("lib.rs", "mod a;\n"), ("a/mod.rs", &parent), child])
        };
        assert!(files("pub use b::two;\n").is_empty());
        assert_eq!(files("use b::two;\n").len(), 1);
        assert_eq!(files("pub use b::two;\nfn f() { two(One) }\n").len(), 1);
        assert_eq!(files("fn f() { b::two(One) }\n").len(), 1);
    }

    #[test]
    fn rows_without_a_cycle_and_cycles_without_a_row_are_faults() {
        let found = Cycles::from([(vec!["a".to_owned(), "b".to_owned()], Vec::new())]);
        assert_eq!(faults(&found, &[&["a", "b"]]), Vec::<String>::new());
        assert_eq!(faults(&found, &[]).len(), 1);
        assert_eq!(faults(&found, &[&["a", "c"]]).len(), 2);
    }
}
