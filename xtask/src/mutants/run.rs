//! Runs tests with one mutant.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::build::Program;
use super::known::KNOWN;
use super::{Mutant, Verdict};

/// A test that takes longer without a mutant is left out.
const SLOW: Duration = Duration::from_secs(8);

/// Tests below this run in one process.
const QUICK: Duration = Duration::from_millis(150);

/// Memory of a test, in KiB: a mutant may never stop to allocate.
const MEMORY_KIB: u32 = 4 << 20;

/// A test of a program.
struct Test<'a> {
    program: &'a Program,
    name: String,
    time: Duration,
    reached: BTreeSet<usize>,
}

/// Returns the verdicts on all mutants, in their order.
pub(super) fn judge(
    mutants: &[Mutant],
    programs: &[Program],
    dropped: &BTreeSet<usize>,
    deadline: Instant,
) -> anyhow::Result<Vec<Verdict>> {
    let tests = first_run(programs)?;
    let judge_one = |number: usize| {
        let mutant = &mutants[number];
        if dropped.contains(&number) {
            return Verdict::NotViable;
        }
        let is_listed = |row: &&[&str; 4]| {
            mutant.file.to_string_lossy().ends_with(row[0])
                && mutant.original == row[1]
                && mutant.text == row[2]
        };
        if let Some([_, _, _, reason]) = KNOWN.iter().find(is_listed) {
            return Verdict::Known(reason);
        }
        if Instant::now() > deadline {
            return Verdict::NotRun;
        }
        verdict(number, &tests)
    };
    Ok(in_parallel(mutants.len(), &|number| {
        let verdict = judge_one(number);
        println!("{verdict}: {}", mutants[number].shown());
        verdict
    }))
}

fn verdict(number: usize, tests: &[Test<'_>]) -> Verdict {
    let mut runs: BTreeMap<(&Path, usize), Vec<&Test<'_>>> = BTreeMap::new();
    for (index, test) in tests.iter().enumerate() {
        if test.reached.contains(&number) {
            // Quick tests share a run.
            let run = if test.time < QUICK { 0 } else { index + 1 };
            runs.entry((&test.program.executable, run))
                .or_default()
                .push(test);
        }
    }
    let mut runs: Vec<(Duration, Vec<&Test<'_>>)> = runs
        .into_values()
        .map(|tests| (tests.iter().map(|test| test.time).sum(), tests))
        .collect();
    runs.sort_by_key(|(time, _)| *time);
    if runs.is_empty() {
        return Verdict::Unreached;
    }
    let number = number.to_string();
    let is_noticed = runs.iter().any(|(time, tests)| {
        let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
        let limit = *time * 5 + Duration::from_secs(10);
        !passes(
            tests[0].program,
            &names,
            ("VMDISK_MUTANT", Path::new(&number)),
            limit,
        )
    });
    if is_noticed {
        Verdict::Caught
    } else {
        Verdict::Survived
    }
}

/// Runs each test without a mutant.
fn first_run(programs: &[Program]) -> anyhow::Result<Vec<Test<'_>>> {
    let mut names = Vec::new();
    for program in programs {
        let output = Command::new(&program.executable)
            .args(["--list", "--format=terse"])
            .output()?;
        for line in String::from_utf8(output.stdout)?.lines() {
            names.extend(
                line.strip_suffix(": test")
                    .map(|name| (program, name.to_owned())),
            );
        }
    }
    let notes = tempfile::tempdir()?;
    let tests = in_parallel(names.len(), &|index| {
        let (program, name) = &names[index];
        let note = notes.path().join(index.to_string());
        let begun = Instant::now();
        if !passes(program, &[name], ("VMDISK_MUTANTS_REACHED", &note), SLOW) {
            println!("left out, fails or is slow: {name}");
            return None;
        }
        let time = begun.elapsed();
        let reached = std::fs::read_to_string(&note).unwrap_or_default();
        let reached = reached
            .lines()
            .filter_map(|line| line.parse().ok())
            .collect();
        Some(Test {
            program,
            name: name.clone(),
            time,
            reached,
        })
    });
    Ok(tests.into_iter().flatten().collect())
}

/// True if these tests pass in time.
fn passes(program: &Program, names: &[&str], variable: (&str, &Path), limit: Duration) -> bool {
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            &format!("ulimit -v {MEMORY_KIB} && exec \"$@\""),
            "sh",
        ])
        .arg(&program.executable)
        .args(["--exact", "--test-threads=1"])
        .args(names)
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env(variable.0, variable.1)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    let end = Instant::now() + limit;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return status.success();
        }
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Computes numbered results on every processor.
fn in_parallel<T: Send>(count: usize, work: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let worker = || {
        let mut results = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return results;
            }
            results.push((index, work(index)));
        }
    };
    let mut results: Vec<(usize, T)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let done = workers.into_iter();
        done.flat_map(|worker| worker.join().expect("a worker does not panic"))
            .collect()
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}
