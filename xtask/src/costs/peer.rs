//! The cost of `vmdisk lint` beside `xmllint`, in one run: a ratio that no recording moves.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use vmdisk_tests::{has_program, real};

use super::usage::usage;
use super::{profile_where, total};

/// The program that only parses the same files.
const PEER: &str = "xmllint";

/// The most instructions and the most processor time, as a part of those of [`PEER`], which runs no rule. Measured: 1.28
/// and 2.6; the time is that of a busy machine.
const MOST: [f64; 2] = [1.35, 4.0];

/// Runs of each program, in turn, whose processor time is added.
const ROUNDS: u32 = 20;

/// Refuses a lint of libvirt's domains that costs more than [`MOST`].
pub(super) fn must_be_near(program: &Path) -> anyhow::Result<()> {
    let corpus = std::env::var_os("VMDISK_CORPUS");
    let what = "xmllint, and libvirt's test files in VMDISK_CORPUS";
    let is_there = has_program(PEER) && corpus.is_some();
    if !real(is_there, "cargo xtask costs --peer", what) {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let names = copied(
        &Path::new(&corpus.unwrap_or_default()).join("qemuxmlconf"),
        folder.path(),
    )?;
    let with = |options: &[&str]| -> Vec<String> {
        let options = options.iter().map(|it| (*it).to_owned());
        options.chain(names.iter().cloned()).collect()
    };
    let ours = with(&["lint", "-j1", "--format", "concise"]);
    let theirs = with(&["--noout"]);
    let runs = [(program, &ours), (Path::new(PEER), &theirs)];
    let mut instructions = [0; 2];
    let mut times = [Duration::ZERO; 2];
    for (nth, (program, arguments)) in runs.into_iter().enumerate() {
        let profile = profile_where(program, arguments, folder.path(), |code| code <= 1)?;
        instructions[nth] = total(&profile)?;
    }
    for _ in 0..ROUNDS {
        for (nth, (program, arguments)) in runs.into_iter().enumerate() {
            let (time, _) = usage(Command::new(program).args(arguments), folder.path())?;
            times[nth] += time;
        }
    }
    println!(
        "{} domains, vmdisk lint -j1 and {PEER} --noout:",
        names.len()
    );
    let counted = instructions.map(|it| it as f64 / 1e6);
    let timed = times.map(|it| it.as_secs_f64() * 1000.0 / f64::from(ROUNDS));
    let mut faults = Vec::new();
    for ((what, [ours, theirs]), most) in [
        ("million instructions", counted),
        ("ms of processor time", timed),
    ]
    .into_iter()
    .zip(MOST)
    {
        let ratio = ours / theirs;
        println!("{ours:>8.1} and {theirs:.1} {what}: {ratio:.2}");
        if ratio > most {
            faults.push(format!("{ratio:.2} times the {what}, at most {most}"));
        }
    }
    match faults.is_empty() {
        true => Ok(()),
        false => bail!("lint costs more than {PEER} allows: {}", faults.join("; ")),
    }
}

/// Copies the domains of a folder into another one, and returns their names.
fn copied(from: &Path, to: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_none_or(|it| it != "xml") {
            continue;
        }
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.context("names of libvirt's files are ASCII")?;
        fs::copy(&path, to.join(name))?;
        names.push(name.to_owned());
    }
    names.sort_unstable();
    Ok(names)
}
