//! Compiles the tests with all mutants, in a copy of the repository.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::ensure;
use serde_json::Value;

use super::Mutant;

/// Copies what Git knows, as it is now; new times show Cargo what changed.
const COPY: &str = "rm -rf target/mutants && mkdir -p target/mutants && commit=$(git stash create) && \
    git archive \"${commit:-HEAD}\" | tar -x -m -C target/mutants";

/// A compiled program with tests.
pub(super) struct Program {
    pub executable: PathBuf,
    pub folder: PathBuf,
}

/// Returns the programs with the tests of these crates and of the crate vmdisk.
pub(super) fn build(packages: &[String], mutants: &[Mutant]) -> anyhow::Result<Vec<Program>> {
    let repository = crate::repository();
    let tree = repository.join("target/mutants");
    let copied = Command::new("sh")
        .args(["-c", COPY])
        .current_dir(&repository)
        .status()?;
    ensure!(copied.success(), "the repository is not copied");
    let files: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
    for file in files {
        let numbered = mutants.iter().enumerate();
        let here = numbered.filter(|(_, mutant)| mutant.file == file);
        let text = mutated(&fs::read_to_string(tree.join(file))?, here);
        fs::write(tree.join(file), text)?;
    }
    for package in packages {
        let root = tree.join(super::sources(package)).join("lib.rs");
        let text = fs::read_to_string(&root)?;
        fs::write(
            root,
            format!("#![allow(warnings)] {text}{}", include_str!("runtime.rs")),
        )?;
    }
    let output = Command::new(env!("CARGO"))
        .args(["test", "--no-run", "--locked", "--package=vmdisk"])
        .args(
            packages
                .iter()
                .map(|package| format!("--package={package}")),
        )
        .args(["--message-format=json-render-diagnostics", "--target-dir"])
        .arg(repository.join("target/mutants-built"))
        .current_dir(&tree)
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(
        output.status.success(),
        "the tests with the mutants do not compile"
    );
    let messages = String::from_utf8(output.stdout)?;
    let messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    Ok(messages.filter_map(program).collect())
}

fn program(message: Value) -> Option<Program> {
    let is_test = message["profile"]["test"].as_bool()?;
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let executable = PathBuf::from(message["executable"].as_str()?);
    let folder = manifest.parent()?.to_owned();
    is_test.then_some(Program { executable, folder })
}

/// Returns a source in which each mutant's place asks whether the mutant runs.
fn mutated<'a>(source: &str, mutants: impl Iterator<Item = (usize, &'a Mutant)>) -> String {
    let mut parts = Vec::new();
    for (number, mutant) in mutants {
        let begin = format!(
            "(if crate::__mutant({number}) {{ {} }} else {{ ",
            mutant.text
        );
        // Of two that begin at one place, the longer is around the other.
        parts.push((mutant.at.start, Reverse(mutant.at.end), begin));
        parts.push((mutant.at.end, Reverse(usize::MAX), " })".to_owned()));
    }
    parts.sort();
    let (mut text, mut end) = (String::new(), 0);
    for (at, _, part) in parts {
        text = text + &source[end..at] + &part;
        end = at;
    }
    text + &source[end..]
}
