//! Compiles the tests with all mutants in a copy of the workspace, in which only changed crates are not links.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

use super::Mutant;

/// Attempts to build: a mutant that does not compile is dropped after each.
const ATTEMPTS: usize = 8;

/// A compiled program with tests.
pub(super) struct Program {
    pub executable: PathBuf,
    pub folder: PathBuf,
}

/// A mutant in the written text of its file.
struct Place {
    number: usize,
    file: PathBuf,
    at: Range<usize>,
}

/// Returns the programs, and the mutants that do not compile.
pub(super) fn build(mutants: &[Mutant]) -> anyhow::Result<(Vec<Program>, BTreeSet<usize>)> {
    let tree = crate::repository().join("target/mutants");
    let packages: BTreeSet<&str> = mutants.iter().map(|it| it.package.as_str()).collect();
    copy(&tree, &packages)?;
    let mut dropped = BTreeSet::new();
    for _ in 0..ATTEMPTS {
        let places = write(&tree, mutants, &dropped)?;
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([
            "test",
            "--no-run",
            "--locked",
            "--message-format=json",
            "--package=vmdisk",
        ]);
        cargo.args(
            packages
                .iter()
                .map(|package| format!("--package={package}")),
        );
        cargo
            .arg("--target-dir")
            .arg(crate::repository().join("target/mutants-built"));
        let output = cargo.current_dir(&tree).stderr(Stdio::null()).output()?;
        let messages: Vec<Value> = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        if output.status.success() {
            return Ok((messages.iter().filter_map(program).collect(), dropped));
        }
        let before = dropped.len();
        for message in messages.iter().map(|it| &it["message"]) {
            if message["level"] == "error" {
                dropped.extend(blamed(message, &places));
            }
        }
        if dropped.len() == before {
            bail!(
                "the tests do not compile without mutants: {}",
                String::from_utf8_lossy(&output.stdout)
            );
        }
    }
    bail!("mutants do not compile after {ATTEMPTS} attempts")
}

/// Returns the mutants in which an error lies, or all of its file.
fn blamed(message: &Value, places: &[Place]) -> Vec<usize> {
    let spans = message["spans"].as_array().map_or(&[][..], Vec::as_slice);
    let of_span = |span: &Value, place: &&Place| {
        let file = span["file_name"].as_str().unwrap_or_default();
        Path::new(file).ends_with(&place.file)
    };
    let holds = |span: &Value, place: &&Place| {
        let start = span["byte_start"]
            .as_u64()
            .and_then(|it| usize::try_from(it).ok());
        start.is_some_and(|start| place.at.contains(&start))
    };
    let of_spans = |is_in: &dyn Fn(&Value, &&Place) -> bool| -> Vec<usize> {
        let places = spans
            .iter()
            .flat_map(|span| places.iter().filter(move |place| is_in(span, place)));
        places.map(|place| place.number).collect()
    };
    let close = of_spans(&|span, place| of_span(span, place) && holds(span, place));
    if close.is_empty() {
        of_spans(&of_span)
    } else {
        close
    }
}

fn program(message: &Value) -> Option<Program> {
    let is_test = message["profile"]["test"].as_bool()?;
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let executable = PathBuf::from(message["executable"].as_str()?);
    let folder = manifest.parent()?.to_owned();
    is_test.then_some(Program { executable, folder })
}

/// Fills the tree with links.
fn copy(tree: &Path, packages: &BTreeSet<&str>) -> anyhow::Result<()> {
    if tree.exists() {
        std::fs::remove_dir_all(tree)?;
    }
    let repository = crate::repository();
    link_all(&repository, tree, &["target", ".git", "crates"])?;
    let crates = Path::new("crates");
    let names: Vec<&str> = packages.iter().copied().collect();
    link_all(&repository.join(crates), &tree.join(crates), &names)?;
    for package in packages {
        let folder = crates.join(package);
        link_all(&repository.join(&folder), &tree.join(&folder), &["src"])?;
    }
    Ok(())
}

fn link_all(from: &Path, to: &Path, without: &[&str]) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let name = entry?.file_name();
        if !without.iter().any(|other| name == *other) {
            std::os::unix::fs::symlink(from.join(&name), to.join(&name))?;
        }
    }
    Ok(())
}

/// Writes the sources of the changed crates with all mutants that are not dropped.
fn write(tree: &Path, mutants: &[Mutant], dropped: &BTreeSet<usize>) -> anyhow::Result<Vec<Place>> {
    let packages: BTreeSet<&str> = mutants.iter().map(|it| it.package.as_str()).collect();
    let mut places = Vec::new();
    for package in packages {
        let sources = format!("crates/{package}/src");
        for file in super::git(&["ls-files", "--", &sources])?
            .lines()
            .map(Path::new)
        {
            let source = std::fs::read(crate::repository().join(file))?;
            let path = tree.join(file);
            std::fs::create_dir_all(path.parent().context("a source is in a folder")?)?;
            if file.extension().is_none_or(|extension| extension != "rs") {
                std::fs::write(path, source)?;
                continue;
            }
            let source = String::from_utf8(source)?;
            let is_root = file.ends_with("src/lib.rs");
            let mut written = Written {
                source: &source,
                text: String::new(),
                places: Vec::new(),
            };
            if is_root {
                written.text.push_str("#![allow(warnings)] ");
            }
            let here: Vec<(usize, &Mutant)> = mutants
                .iter()
                .enumerate()
                .filter(|(number, mutant)| mutant.file == file && !dropped.contains(number))
                .collect();
            written.write(0..source.len(), &here);
            if is_root {
                written.text.push_str(include_str!("runtime.rs"));
            }
            let of_file = written.places.into_iter();
            places.extend(of_file.map(|(number, at)| Place {
                number,
                file: file.to_owned(),
                at,
            }));
            // An unchanged file keeps its time, so that Cargo sees no change.
            if std::fs::read_to_string(&path).ok().as_ref() != Some(&written.text) {
                std::fs::write(path, written.text)?;
            }
        }
    }
    Ok(places)
}

struct Written<'a> {
    source: &'a str,
    text: String,
    places: Vec<(usize, Range<usize>)>,
}

impl Written<'_> {
    /// Writes a part of the source; the mutants lie in it, the longest first.
    fn write(&mut self, part: Range<usize>, mut mutants: &[(usize, &Mutant)]) {
        let mut end = part.start;
        while let Some(((number, mutant), others)) = mutants.split_first() {
            let at = mutant.at.clone();
            let (inside, after) = others.split_at(
                others
                    .iter()
                    .take_while(|(_, other)| other.at.start < at.end)
                    .count(),
            );
            self.text.push_str(&self.source[end..at.start]);
            let start = self.text.len();
            let text = &mutant.text;
            self.text.push_str(&format!(
                "(if crate::__mutant({number}) {{ {text} }} else {{ "
            ));
            self.write(at.clone(), inside);
            self.text.push_str(" })");
            self.places.push((*number, start..self.text.len()));
            (end, mutants) = (at.end, after);
        }
        self.text.push_str(&self.source[end..part.end]);
    }
}
