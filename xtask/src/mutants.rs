//! Mutation tests: one condition of a crate is changed, and the tests must notice.
//!
//! All drawn mutants are compiled at once, in a copy of the repository below `target/`, and chosen at run time by
//! `VMDISK_MUTANT`. A first run of each test notes which mutants it reaches, so that a mutant runs only against these.
//! For hundreds of mutants, `CARGO_PROFILE_DEV_OPT_LEVEL=1` is worth the longer build.

mod build;
mod find;
mod known;
mod run;

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use run::Verdict;

/// What is changed, and how many changes are tried.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Crate to change; may be repeated. Its own tests and those of the crate vmdisk run
    #[arg(long = "crate", value_name = "NAME", required = true)]
    crates: Vec<String>,
    /// Number of mutants of each crate
    #[arg(long, default_value_t = 300)]
    count: usize,
    /// Seed: the same seed draws the same mutants
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only lines that differ from this commit
    #[arg(long, value_name = "COMMIT")]
    lines_of: Option<String>,
    /// Only files whose path contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    file: String,
    /// Start no mutant after this time
    #[arg(long, default_value_t = 600)]
    minutes: u64,
    /// Fail if a smaller part of a crate's mutants is caught, in percent
    #[arg(long, default_value_t = 0)]
    at_least: usize,
}

/// A change of a file: a text in the place of a part of a condition.
#[derive(Clone, Hash)]
struct Mutant {
    /// Relative to the repository.
    file: String,
    line: usize,
    at: Range<usize>,
    original: String,
    text: String,
}

impl std::fmt::Display for Mutant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (before, after) = (flat(&self.original), flat(&self.text));
        write!(f, "{}:{}: {before}  ->  {after}", self.file, self.line)
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let drawn = arguments
        .crates
        .iter()
        .map(|package| draw(package, arguments));
    let mutants = drawn.collect::<Result<Vec<_>, _>>()?.concat();
    if mutants.is_empty() {
        println!("no condition to change");
        return Ok(());
    }
    let programs = build::build(&arguments.crates, &mutants)?;
    let deadline = Instant::now() + Duration::from_secs(60 * arguments.minutes);
    let verdicts = run::judge(&mutants, &programs, deadline)?;
    let mut is_poor = false;
    for package in &arguments.crates {
        let of_package = |(mutant, _): &(&Mutant, _)| mutant.file.starts_with(&sources(package));
        let verdicts: Vec<&Verdict> = mutants
            .iter()
            .zip(&verdicts)
            .filter(of_package)
            .map(|(_, verdict)| verdict)
            .collect();
        let count = |wanted| {
            verdicts
                .iter()
                .filter(|verdict| ***verdict == wanted)
                .count()
        };
        let (caught, known, not_run) = (
            count(Verdict::Caught),
            count(Verdict::Known),
            count(Verdict::NotRun),
        );
        let all = verdicts.len() - known - not_run;
        println!("{package}: {caught} of {all} caught, {known} known survivors, {not_run} not run");
        is_poor |= caught * 100 < all * arguments.at_least;
    }
    ensure!(
        !is_poor,
        "less than {} % of a crate's mutants is caught: add an example to the rule's page (`hidden` if it only holds \
         a condition) or a test, delete a condition that nothing reaches, or list the mutant in \
         xtask/src/mutants/known.rs",
        arguments.at_least
    );
    Ok(())
}

/// The folder of a crate's sources, with a slash behind it.
fn sources(package: &str) -> String {
    format!("crates/{package}/src/")
}

/// Draws mutants of a crate, in random order, so that those before a deadline are a sample too.
fn draw(package: &str, arguments: &Arguments) -> anyhow::Result<Vec<Mutant>> {
    let sources = sources(package);
    let commit = arguments.lines_of.as_ref();
    let changed = commit
        .map(|commit| changed_lines(commit, &sources))
        .transpose()?;
    let listed = git(&["ls-files", "--", &format!("{sources}*.rs")])?;
    let mut found = Vec::new();
    for file in listed.lines().filter(|file| file.contains(&arguments.file)) {
        let source = std::fs::read_to_string(crate::repository().join(file));
        let mutants = find::find(file, &source.context(file.to_owned())?)?;
        found.extend(mutants.into_iter().filter(|mutant| {
            let is_in = |lines: &BTreeSet<_>| lines.contains(&(file.to_owned(), mutant.line));
            changed.as_ref().is_none_or(is_in)
        }));
    }
    found.sort_by_cached_key(|mutant| {
        let mut hasher = DefaultHasher::new();
        (arguments.seed, mutant).hash(&mut hasher);
        hasher.finish()
    });
    found.truncate(arguments.count);
    Ok(found)
}

/// Returns the lines below a folder that differ from a commit, with their files.
fn changed_lines(commit: &str, folder: &str) -> anyhow::Result<BTreeSet<(String, usize)>> {
    let mut lines = BTreeSet::new();
    let mut file = "";
    for line in git(&["diff", "--unified=0", "--no-ext-diff", commit, "--", folder])?.lines() {
        if let Some(path) = line.strip_prefix("+++ b/") {
            file = path;
        } else if let Some(hunk) = line.strip_prefix("@@ ") {
            let added = hunk.split(' ').find_map(|word| word.strip_prefix('+'));
            let added = added.context("a hunk names its lines")?;
            let (first, count) = added.split_once(',').unwrap_or((added, "1"));
            let (first, count): (usize, usize) = (first.parse()?, count.parse()?);
            lines.extend((first..first + count).map(|line| (file.to_owned(), line)));
        }
    }
    Ok(lines)
}

fn git(arguments: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    let output = command
        .args(arguments)
        .current_dir(crate::repository())
        .output()?;
    let why = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "git {}: {why}",
        arguments.join(" ")
    );
    Ok(String::from_utf8(output.stdout)?)
}
