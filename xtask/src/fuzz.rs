//! Runs the fuzz targets for a while, from the committed inputs on.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use vmdisk_tests::fuzz::{TARGETS, Target};

/// What to run, and for how long.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Names of targets; all of them where none is named
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// How long to run each, in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Seed of the engine: the same seed makes up the same inputs first
    #[arg(long, default_value_t = 1)]
    seed: u32,
    /// Afterwards add to the committed inputs the smallest of those that reach something new, at most so many bytes each
    #[arg(long, value_name = "BYTES")]
    keep: Option<u32>,
}

/// The longest input that is made up, in bytes.
const LONGEST: u32 = 16 * 1024;

/// An input that takes longer is a failure, in seconds.
const SLOWEST: u32 = 10;

/// Runs them one behind the other.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let targets: Vec<&Target> = if arguments.targets.is_empty() {
        TARGETS.iter().collect()
    } else {
        let named = |name: &String| {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            TARGETS
                .iter()
                .find(|target| target.name == name)
                .with_context(|| format!("no target `{name}`; there are {}", names.join(", ")))
        };
        arguments
            .targets
            .iter()
            .map(named)
            .collect::<Result<_, _>>()?
    };
    if let Some(missing) = missing() {
        bail!("fuzzing needs {missing}");
    }
    let mut failed = Vec::new();
    for target in targets {
        println!("{}: {} seconds", target.name, arguments.seconds);
        let found = folder("corpus", target)?;
        if engine(target, &found, arguments)? {
            if let Some(bytes) = arguments.keep {
                keep(target, &found, bytes)?;
            }
        } else {
            failed.push(target.name);
        }
    }
    if !failed.is_empty() {
        bail!(
            "failing inputs of {} are below fuzz/artifacts; mended, they belong into fixtures/fuzz",
            failed.join(", ")
        );
    }
    Ok(())
}

/// What is missing here, and how to get it.
fn missing() -> Option<&'static str> {
    let runs = |arguments: &[&str]| {
        Command::new("cargo")
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    if !runs(&["+nightly", "--version"]) {
        return Some("a nightly toolchain: rustup toolchain install nightly");
    }
    if !runs(&["+nightly", "fuzz", "--version"]) {
        return Some("cargo-fuzz: cargo install cargo-fuzz");
    }
    None
}

/// A folder below `fuzz/` for what is not committed.
fn folder(kind: &str, target: &Target) -> anyhow::Result<PathBuf> {
    let folder = crate::repository()
        .join("fuzz")
        .join(kind)
        .join(target.name);
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}

fn committed(target: &Target) -> PathBuf {
    crate::repository().join("fixtures/fuzz").join(target.name)
}

/// Runs one target; false if an input failed. What is found new goes into `found`.
fn engine(target: &Target, found: &Path, arguments: &Arguments) -> anyhow::Result<bool> {
    let status = fuzz(target, &[found, &committed(target)])
        .arg(format!("-max_total_time={}", arguments.seconds))
        .arg(format!("-seed={}", arguments.seed))
        .arg(format!("-max_len={LONGEST}"))
        .arg(format!("-timeout={SLOWEST}"))
        .arg("-print_final_stats=1")
        .arg("-verbosity=0")
        .status()
        .context("cargo fuzz could not be started")?;
    Ok(status.success())
}

/// `cargo fuzz run` over folders, ready for the engine's own options. Our code is safe Rust, so that no sanitizer has
/// anything to see, and without one it is several times as fast.
fn fuzz(target: &Target, folders: &[&Path]) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(crate::repository())
        .args([
            "+nightly",
            "fuzz",
            "run",
            "--sanitizer",
            "none",
            target.name,
        ])
        .args(folders)
        .arg("--");
    command
}

/// Merges what was found into the committed inputs: the engine takes the small ones first, and only those that reach
/// something that no committed one does.
fn keep(target: &Target, found: &Path, most_bytes: u32) -> anyhow::Result<()> {
    let status = fuzz(target, &[&committed(target), found])
        .arg("-merge=1")
        .arg(format!("-max_len={most_bytes}"))
        .arg("-verbosity=0")
        .status()
        .context("cargo fuzz could not be started")?;
    if !status.success() {
        bail!("{}: what was found could not be merged", target.name);
    }
    Ok(())
}
