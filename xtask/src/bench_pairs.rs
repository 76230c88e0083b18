//! Judges `vmdisk bench` by real runs: equal pairs, pairs with an injected slowdown, and fio by hand.
//!
//! A run compares two directories of one file system. In every second run, fio stands still for a fifth of the time if
//! its job is in the second directory. So each run has a known answer, and so has each comparison of two runs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;
use vmdisk_bench_runner::Interval;
use vmdisk_tests::{has_program, real};

use crate::release;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Directory for images, on the file system to measure
    #[arg(long)]
    directory: PathBuf,
    /// Number of pairs
    #[arg(long, default_value_t = 20)]
    pairs: u32,
    /// Keep the runs in this new directory
    #[arg(long)]
    output: Option<PathBuf>,
}

/// Random reads, because their time depends least on what the storage did before.
const PLAN: &str = "\
version: 1
name: pairs
question: Are two directories of one file system equally fast?
size: 256M
seconds: 0.5
ramp: 0.2
phases: [steady]
workloads: [4k-random-read-qd32]
fixed: {engine: host-fio}
";

/// fio that is stopped for 20 of every 100 ms while it measures in the second directory.
const SLOWED_FIO: &str = r#"#!/bin/sh
for job; do :; done
grep -q '^filename=.*/second/' "$job" 2>/dev/null || exec "$FIO" "$@"
"$FIO" "$@" &
trap 'kill -CONT $!; kill $!' TERM INT
while kill -0 $! 2>/dev/null; do
  sleep 0.08
  kill -STOP $! 2>/dev/null && sleep 0.02
  kill -CONT $! 2>/dev/null
done
wait $!
"#;

/// The significance level of the intervals that are printed.
const ALPHA: f64 = 0.05;

/// A run of the plan, by its result.
struct Run {
    directory: PathBuf,
    result: Value,
}

/// Verdicts on pairs whose answer is known.
#[derive(Debug, Default, PartialEq)]
struct Tally {
    faster: u32,
    slower: u32,
    undecided: u32,
    machine_changed: u32,
}

impl Tally {
    fn add(&mut self, verdict: &str) -> anyhow::Result<()> {
        let count = match verdict {
            "faster" => &mut self.faster,
            "slower" => &mut self.slower,
            "about-equal" | "inconclusive" => &mut self.undecided,
            "machine-changed" => &mut self.machine_changed,
            other => bail!("unexpected verdict `{other}`"),
        };
        *count += 1;
        Ok(())
    }

    fn print(&self, what: &str) {
        println!(
            "{what:44} {:>6} {:>6} {:>9} {:>15}",
            self.faster, self.slower, self.undecided, self.machine_changed
        );
    }
}

/// Runs the pairs and prints their verdicts.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if !real(has_program("fio"), "cargo xtask bench-pairs", "fio") {
        return Ok(());
    }
    let vmdisk = release::build_release()?;
    let kept = tempfile::tempdir()?;
    let folder = match &arguments.output {
        Some(folder) => {
            fs::create_dir(folder).with_context(|| folder.display().to_string())?;
            folder.as_path()
        }
        None => kept.path(),
    };
    let bench = Bench::new(&vmdisk, &arguments.directory, folder)?;
    let (mut equal, mut slowed) = (Vec::new(), Vec::new());
    let (mut by_hand, mut exported) = (Vec::new(), Vec::new());
    for pair in 0..arguments.pairs {
        // Every second pair in the reverse order, so that a drift does not favour one side.
        for is_slowed in [pair % 2 == 1, pair % 2 == 0] {
            let runs = if is_slowed { &mut slowed } else { &mut equal };
            runs.push(bench.run(pair, is_slowed)?);
        }
        let engine = speed(equal.last().context("a run was added")?)?;
        by_hand.push(bench.fio_by_hand()? / engine);
        exported.push(bench.exported_job(equal.last().context("a run was added")?)? / engine);
        println!("{} of {} pairs", pair + 1, arguments.pairs);
    }
    bench.print(&equal, &slowed)?;
    print_ratio("fio by hand / engine", &by_hand);
    print_ratio("exported job / engine", &exported);
    Ok(())
}

/// What the runs share.
struct Bench<'a> {
    vmdisk: &'a Path,
    directories: [PathBuf; 2],
    folder: &'a Path,
    /// The file of fio by hand, removed on drop.
    image: tempfile::NamedTempFile,
}

impl<'a> Bench<'a> {
    fn new(vmdisk: &'a Path, directory: &Path, folder: &'a Path) -> anyhow::Result<Self> {
        let directory = std::path::absolute(directory)?;
        let directories = ["first", "second"].map(|name| directory.join(name));
        for directory in &directories {
            fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        }
        fs::write(folder.join("plan.yaml"), PLAN)?;
        let slowed = folder.join("slowed");
        fs::create_dir(&slowed)?;
        fs::write(slowed.join("fio"), SLOWED_FIO)?;
        fs::set_permissions(slowed.join("fio"), fs::Permissions::from_mode(0o755))?;
        let image = tempfile::Builder::new().tempfile_in(&directory)?;
        let bench = Bench {
            vmdisk,
            directories,
            folder,
            image,
        };
        bench.fio(&["--rw=write", "--bs=1M", "--iodepth=8", "--refill_buffers=1"])?;
        Ok(bench)
    }

    fn run(&self, pair: u32, is_slowed: bool) -> anyhow::Result<Run> {
        let name = if is_slowed { "slowed" } else { "equal" };
        let directory = self.folder.join(format!("{name}-{pair:02}"));
        let mut command = Command::new(self.vmdisk);
        command.args(["bench", "run", "--noisy", "--rounds", "8", "--plan"]);
        command.arg(self.folder.join("plan.yaml"));
        for images in &self.directories {
            command.arg("--directory").arg(images);
        }
        command.arg("--output").arg(&directory);
        if is_slowed {
            let path = std::env::var("PATH")?;
            command.env("FIO", find("fio")?).env(
                "PATH",
                format!("{}:{path}", self.folder.join("slowed").display()),
            );
        }
        said(&mut command)?;
        let result = serde_json::from_slice(&fs::read(directory.join("result.json"))?)?;
        Ok(Run { directory, result })
    }

    fn compare(&self, first: &Run, second: &Run) -> anyhow::Result<String> {
        let output = Command::new(self.vmdisk)
            .args(["bench", "compare", "--format", "json"])
            .args([&first.directory, &second.directory])
            .stdin(Stdio::null())
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let compared: Value = serde_json::from_str(&text)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        if compared["machine_changes"]
            .as_array()
            .is_some_and(|changes| !changes.is_empty())
        {
            return Ok("machine-changed".to_owned());
        }
        let verdict = compared["cells"][0]["verdict"].as_str();
        Ok(verdict.with_context(|| text.into_owned())?.to_owned())
    }

    fn print(&self, equal: &[Run], slowed: &[Run]) -> anyhow::Result<()> {
        println!(
            "{:44} {:>6} {:>6} {:>9} {:>15}",
            "", "faster", "slower", "undecided", "machine changed"
        );
        for (what, runs) in [("report, equal", equal), ("report, second slowed", slowed)] {
            let mut tally = Tally::default();
            for run in runs {
                tally.add(comparison(run)?["verdict"].as_str().unwrap_or_default())?;
            }
            tally.print(what);
        }
        for (what, runs) in [
            ("compare, both equal", equal),
            ("compare, both slowed", slowed),
        ] {
            let mut tally = Tally::default();
            for pair in runs.windows(2) {
                tally.add(&self.compare(&pair[0], &pair[1])?)?;
            }
            tally.print(what);
        }
        let mut tally = Tally::default();
        for (equal, slowed) in equal.iter().zip(slowed) {
            tally.add(&self.compare(equal, slowed)?)?;
        }
        tally.print("compare, equal with slowed");
        for (what, runs) in [
            ("second / first, equal", equal),
            ("second / first, slowed", slowed),
        ] {
            let ratios: Option<Vec<f64>> = runs
                .iter()
                .map(|run| comparison(run).ok()?["interval"]["ratio"].as_f64())
                .collect();
            print_ratio(what, &ratios.context("a comparison without a ratio")?);
        }
        Ok(())
    }

    /// Runs fio on the file by hand, and returns its report.
    fn fio(&self, words: &[&str]) -> anyhow::Result<Value> {
        let mut command = Command::new("fio");
        command
            .args([
                "--name=by-hand",
                "--direct=1",
                "--ioengine=libaio",
                "--size=256M",
            ])
            .arg(format!("--filename={}", self.image.path().display()))
            .arg("--output-format=json")
            .args(words);
        report(&mut command)
    }

    /// Returns the mean speed of random reads with options that a person would write.
    fn fio_by_hand(&self) -> anyhow::Result<f64> {
        repeated(|| {
            let words = ["--rw=randread", "--bs=4k", "--iodepth=32", "--norandommap"];
            let times = ["--time_based", "--runtime=500ms", "--ramp_time=200ms"];
            self.fio(&[&words[..], &times[..]].concat())
        })
    }

    /// Returns the mean speed of the job that `vmdisk bench report --to fio` wrote.
    fn exported_job(&self, run: &Run) -> anyhow::Result<f64> {
        let folder = tempfile::tempdir()?;
        let jobs = folder.path().join("jobs");
        let mut export = Command::new(self.vmdisk);
        export.args(["bench", "report", "--to", "fio", "--output"]);
        said(export.arg(&jobs).arg(&run.directory))?;
        let mut files = fs::read_dir(&jobs)?.collect::<Result<Vec<_>, _>>()?;
        files.sort_by_key(fs::DirEntry::file_name);
        let job = files
            .iter()
            .map(fs::DirEntry::path)
            .find(|path| path.extension().is_some_and(|extension| extension == "fio"))
            .context("the export has no job")?;
        repeated(|| {
            let mut command = Command::new("fio");
            command
                .env("DISK", self.image.path())
                .arg("--output-format=json");
            report(command.arg(&job))
        })
    }
}

/// Returns the geometric mean of the requests per second of some samples.
fn repeated(mut measure: impl FnMut() -> anyhow::Result<Value>) -> anyhow::Result<f64> {
    const SAMPLES: u32 = 4;
    let mut sum = 0.0;
    for _ in 0..SAMPLES {
        let speed = measure()?["jobs"][0]["read"]["iops"].as_f64();
        sum += speed.context("fio reported no speed")?.ln();
    }
    Ok((sum / f64::from(SAMPLES)).exp())
}

/// Returns the geometric mean of the requests per second of both directories.
fn speed(run: &Run) -> anyhow::Result<f64> {
    let values: Vec<f64> = (0..2)
        .filter_map(|cell| run.result["cells"][cell]["values"].as_object())
        .flat_map(|values| values.values().filter_map(Value::as_f64))
        .collect();
    if values.is_empty() {
        bail!("{} has no samples", run.directory.display());
    }
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    Ok((sum / values.len() as f64).exp())
}

/// Returns the only comparison of a run.
fn comparison(run: &Run) -> anyhow::Result<&Value> {
    let cells = run.result["cells"].as_array();
    cells
        .and_then(|cells| cells.iter().find_map(|cell| cell.get("comparison")))
        .with_context(|| format!("{} compares nothing", run.directory.display()))
}

fn print_ratio(what: &str, ratios: &[f64]) {
    let Some(Interval { ratio, low, high }) = Interval::of_ratios(ratios, ALPHA) else {
        return;
    };
    println!("{what:44} {ratio:.3} [{low:.3}, {high:.3}]");
}

fn report(command: &mut Command) -> anyhow::Result<Value> {
    let text = said(command)?;
    serde_json::from_str(&text).with_context(|| text.clone())
}

fn find(program: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .with_context(|| format!("{program} is not installed"))
}

/// Runs a command and returns its output.
fn said(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verdict_is_counted_and_an_unknown_one_is_an_error() {
        let mut tally = Tally::default();
        for verdict in [
            "faster",
            "slower",
            "about-equal",
            "inconclusive",
            "machine-changed",
        ] {
            tally.add(verdict).unwrap();
        }
        let expected = Tally {
            faster: 1,
            slower: 1,
            undecided: 2,
            machine_changed: 1,
        };
        assert_eq!(tally, expected);
        assert!(tally.add("too-few-rounds").is_err());
    }
}
