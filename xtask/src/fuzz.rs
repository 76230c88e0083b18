//! Runs the fuzz targets for a limited time, starting from the committed inputs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use vmdisk_tests::fuzz::{TARGETS, Target};

/// The targets and the duration
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Names of targets; by default all of them
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// How long to run each, in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Seed of the engine: the same seed generates the same first inputs
    #[arg(long, default_value_t = 1)]
    seed: u32,
    /// Afterwards add the smallest inputs with new coverage to the committed ones, up to this size each
    #[arg(long, value_name = "BYTES")]
    keep: Option<u32>,
}

/// Maximum size of generated inputs, in bytes.
const MAX_INPUT_BYTES: u32 = 16 * 1024;

/// Timeout for one input, in seconds.
const TIMEOUT_SECONDS: u32 = 10;

/// Runs the targets one after another.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let targets: Vec<&Target> = if arguments.targets.is_empty() {
        TARGETS.iter().collect()
    } else {
        let named = |name: &String| {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            TARGETS
                .iter()
                .find(|target| target.name == name)
                .with_context(|| {
                    format!(
                        "unknown target `{name}`; expected one of {}",
                        names.join(", ")
                    )
                })
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
            "failing inputs of {} are in fuzz/artifacts; after the fix, add them to fixtures/fuzz",
            failed.join(", ")
        );
    }
    Ok(())
}

/// Returns a missing requirement, and how to install it.
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

/// Returns a directory below `fuzz/` for uncommitted files.
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

/// Runs one target; returns false if an input failed. New inputs are stored in `found`.
fn engine(target: &Target, found: &Path, arguments: &Arguments) -> anyhow::Result<bool> {
    let status = fuzz(target, &[found, &committed(target)])
        .arg(format!("-max_total_time={}", arguments.seconds))
        .arg(format!("-seed={}", arguments.seed))
        .arg(format!("-max_len={MAX_INPUT_BYTES}"))
        .arg(format!("-timeout={TIMEOUT_SECONDS}"))
        .arg("-print_final_stats=1")
        .arg("-verbosity=0")
        .status()
        .context("could not start cargo fuzz")?;
    Ok(status.success())
}

/// Returns a `cargo fuzz run` command for some folders. Our code is safe Rust, so sanitizers would find nothing
/// and only slow it down.
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

/// Merges new inputs into the committed ones: the engine adds the smallest inputs that reach
/// new coverage.
fn keep(target: &Target, found: &Path, most_bytes: u32) -> anyhow::Result<()> {
    let status = fuzz(target, &[&committed(target), found])
        .arg("-merge=1")
        .arg(format!("-max_len={most_bytes}"))
        .arg("-verbosity=0")
        .status()
        .context("could not start cargo fuzz")?;
    if !status.success() {
        bail!("{}: could not merge the new inputs", target.name);
    }
    Ok(())
}
