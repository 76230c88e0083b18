//! File cycles: files of a crate that import each other, directly or indirectly.
//!
//! A file in a cycle cannot be read, tested or moved without the others. Moving a shared type to a third file
//! removes most cycles.

mod graph;
mod imports;
mod modules;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use graph::Graph;
use modules::Modules;

/// Cycles: the files below `crates/`, and the names that each file takes from another.
type Cycles = BTreeMap<Vec<String>, Vec<String>>;

/// Prints the cycles, and fails if there is one.
pub(crate) fn run() -> anyhow::Result<()> {
    let found = find(&crate::repository().join("crates"))?;
    for (files, ties) in &found {
        println!("a cycle of {} files:\n  {}", files.len(), ties.join("\n  "));
    }
    ensure!(found.is_empty(), "files of a crate import each other");
    println!("no file cycles");
    Ok(())
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
    fn the_crates_have_no_cycles() {
        let found = find(&crate::repository().join("crates")).unwrap();
        assert_eq!(found, Cycles::new());
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
}
