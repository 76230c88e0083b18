//! Mutation tests: one condition of a crate is changed, and the tests must notice.
//!
//! All drawn mutants are compiled at once, in a copy of the crate below `target/`, and chosen at run time by
//! `VMDISK_MUTANT`. A first run of each test notes which mutants it reaches, so that a mutant runs only against these.

mod build;
mod find;
mod known;
mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

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

/// A change of a file of a crate.
struct Mutant {
    package: String,
    /// Relative to the repository.
    file: PathBuf,
    line: usize,
    at: Range<usize>,
    original: String,
    text: String,
}

impl Mutant {
    /// The place and both texts in one line.
    fn shown(&self) -> String {
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (before, after) = (flat(&self.original), flat(&self.text));
        format!(
            "{}:{}: {before}  ->  {after}",
            self.file.display(),
            self.line
        )
    }
}

/// What the tests say of a mutant.
#[derive(PartialEq, Eq)]
enum Verdict {
    Caught,
    Survived,
    Unreached,
    NotViable,
    Known(&'static str),
    NotRun,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Verdict::Caught => f.write_str("caught"),
            Verdict::Survived => f.write_str("survived"),
            Verdict::Unreached => f.write_str("survived, no test reaches it"),
            Verdict::NotViable => f.write_str("does not compile"),
            Verdict::Known(reason) => write!(f, "survives: {reason}"),
            Verdict::NotRun => f.write_str("not run"),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(60 * arguments.minutes);
    let mut mutants = Vec::new();
    for package in &arguments.crates {
        mutants.extend(draw(package, arguments)?);
    }
    if mutants.is_empty() {
        println!("no condition to change");
        return Ok(());
    }
    let (programs, dropped) = build::build(&mutants)?;
    let verdicts = run::judge(&mutants, &programs, &dropped, deadline)?;
    let mut poor = Vec::new();
    for package in &arguments.crates {
        let of_package = || {
            let pairs = mutants.iter().zip(&verdicts);
            pairs.filter(|(mutant, _)| mutant.package == *package)
        };
        let count = |is: fn(&Verdict) -> bool| of_package().filter(|(_, it)| is(it)).count();
        let caught = count(|it| matches!(it, Verdict::Caught));
        let survived = count(|it| matches!(it, Verdict::Survived | Verdict::Unreached));
        println!(
            "{package}: {caught} of {} caught, {} known survivors, {} not viable, {} not run",
            caught + survived,
            count(|it| matches!(it, Verdict::Known(_))),
            count(|it| matches!(it, Verdict::NotViable)),
            count(|it| matches!(it, Verdict::NotRun)),
        );
        if caught * 100 < (caught + survived) * arguments.at_least {
            poor.push(package.as_str());
        }
    }
    if !poor.is_empty() {
        bail!(
            "less than {} % is caught in {}: add an example to the rule's page (`hidden` if it only holds a condition) \
             or a test, delete a condition that nothing reaches, or list the mutant in xtask/src/mutants/known.rs",
            arguments.at_least,
            poor.join(", ")
        );
    }
    Ok(())
}

/// Draws mutants of a crate.
fn draw(package: &str, arguments: &Arguments) -> anyhow::Result<Vec<Mutant>> {
    let sources = format!("crates/{package}/src");
    let changed = match &arguments.lines_of {
        Some(commit) => Some(changed_lines(commit, &sources)?),
        None => None,
    };
    let listed = git(&["ls-files", "--", &format!("{sources}/*.rs")])?;
    let mut found = Vec::new();
    for file in listed.lines().filter(|file| file.contains(&arguments.file)) {
        let source =
            std::fs::read_to_string(crate::repository().join(file)).context(file.to_owned())?;
        let mutations = find::find(&source).context(file.to_owned())?;
        let is_asked = |mutation: &find::Mutation| {
            changed.as_ref().is_none_or(|lines| {
                lines
                    .get(file)
                    .is_some_and(|lines| lines.contains(&mutation.line))
            })
        };
        found.extend(
            mutations
                .into_iter()
                .filter(is_asked)
                .map(|mutation| Mutant {
                    package: package.to_owned(),
                    file: PathBuf::from(file),
                    line: mutation.line,
                    original: source[mutation.at.clone()].to_owned(),
                    at: mutation.at,
                    text: mutation.text,
                }),
        );
    }
    let mut state = arguments.seed;
    // The first steps of a shuffle; the generator is SplitMix64.
    for place in 0..found.len().min(arguments.count) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let left = u64::try_from(found.len() - place)?;
        found.swap(
            place,
            place + usize::try_from((mixed ^ (mixed >> 31)) % left)?,
        );
    }
    found.truncate(arguments.count);
    // The longest first: a mutant may lie in another.
    found.sort_by(|one, other| {
        let key = |it: &Mutant| (it.file.clone(), it.at.start, std::cmp::Reverse(it.at.end));
        key(one).cmp(&key(other))
    });
    Ok(found)
}

/// Returns the lines below a folder that differ from a commit.
fn changed_lines(commit: &str, folder: &str) -> anyhow::Result<BTreeMap<String, BTreeSet<usize>>> {
    let mut lines: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    let mut file = String::new();
    for line in git(&["diff", "--unified=0", "--no-ext-diff", commit, "--", folder])?.lines() {
        if let Some(path) = line.strip_prefix("+++ b/") {
            file = path.to_owned();
        } else if let Some(hunk) = line.strip_prefix("@@ ") {
            let added = hunk.split(' ').find_map(|word| word.strip_prefix('+'));
            let added = added.context("a hunk names its lines")?;
            let (first, count) = added.split_once(',').unwrap_or((added, "1"));
            let (first, count): (usize, usize) = (first.parse()?, count.parse()?);
            lines
                .entry(file.clone())
                .or_default()
                .extend(first..first + count);
        }
    }
    Ok(lines)
}

fn git(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(crate::repository())
        .output()?;
    if !output.status.success() {
        bail!(
            "git {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8(output.stdout)?)
}
