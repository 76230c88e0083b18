//! Runs tests with one mutant.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::Mutant;
use super::build::Program;
use super::known::KNOWN;

/// A test that takes more seconds of processor time without a mutant is left out.
const SLOW: u64 = 10;

/// What the tests say of a mutant.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Caught,
    Survived,
    /// No test reaches it.
    Unreached,
    /// No test can notice it.
    Known,
    NotRun,
}

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
    deadline: Instant,
) -> anyhow::Result<Vec<Verdict>> {
    let mut tests = first_run(programs)?;
    tests.sort_by_key(|test| test.time);
    Ok(in_parallel(mutants.len(), &|number| {
        let mutant = &mutants[number];
        let is_listed = |[file, original, text, _]: &&[&str; 4]| {
            mutant.file.ends_with(file) && mutant.original == *original && mutant.text == *text
        };
        if let Some([.., reason]) = KNOWN.iter().find(is_listed) {
            println!("known, {reason}: {mutant}");
            return Verdict::Known;
        }
        let is_late = Instant::now() > deadline;
        let verdict = if is_late {
            Verdict::NotRun
        } else {
            verdict(number, &tests)
        };
        println!("{verdict:?}: {mutant}");
        verdict
    }))
}

fn verdict(number: usize, tests: &[Test<'_>]) -> Verdict {
    let mut reaching = tests
        .iter()
        .filter(|test| test.reached.contains(&number))
        .peekable();
    if reaching.peek().is_none() {
        return Verdict::Unreached;
    }
    let number = number.to_string();
    let notices = |test: &Test<'_>| {
        let limit = test.time.as_secs() * 5 + 10;
        !passes(test.program, &test.name, ("VMDISK_MUTANT", &number), limit)
    };
    match reaching.any(notices) {
        true => Verdict::Caught,
        false => Verdict::Survived,
    }
}

/// Runs each test without a mutant.
fn first_run(programs: &[Program]) -> anyhow::Result<Vec<Test<'_>>> {
    let mut names = Vec::new();
    for program in programs {
        let mut command = Command::new(&program.executable);
        let output = command.args(["--list", "--format=terse"]).output()?;
        let listed = String::from_utf8(output.stdout)?;
        let tests = listed
            .lines()
            .filter_map(|line| line.strip_suffix(": test"));
        names.extend(tests.map(|name| (program, name.to_owned())));
    }
    let notes = tempfile::tempdir()?;
    let tests = in_parallel(names.len(), &|index| {
        let (program, name) = &names[index];
        let note = notes.path().join(index.to_string());
        let begun = Instant::now();
        let variable = ("VMDISK_MUTANTS_REACHED", note.to_str()?);
        if !passes(program, name, variable, SLOW) {
            println!("left out, fails or is slow: {name}");
            return None;
        }
        let time = begun.elapsed();
        let reached = std::fs::read_to_string(&note).unwrap_or_default();
        Some(Test {
            program,
            name: name.clone(),
            time,
            reached: reached
                .lines()
                .filter_map(|line| line.parse().ok())
                .collect(),
        })
    });
    Ok(tests.into_iter().flatten().collect())
}

/// True if a test passes with so many seconds of processor time, and with 4 GiB, because a mutant may allocate forever.
fn passes(program: &Program, name: &str, (variable, value): (&str, &str), limit: u64) -> bool {
    let limits = format!("ulimit -v 4194304 && ulimit -t {limit} && exec \"$@\"");
    let mut command = Command::new("sh");
    command
        .args(["-c", &limits, "sh"])
        .arg(&program.executable)
        .args([name, "--exact", "--test-threads=1"])
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env(variable, value)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Computes numbered results on every processor.
fn in_parallel<T: Send>(count: usize, work: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
    let numbers = Mutex::new(0..count);
    let worker = || {
        let next = || numbers.lock().expect("no worker panics here").next();
        std::iter::from_fn(|| next().map(|number| (number, work(number)))).collect::<Vec<_>>()
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let results: BTreeMap<usize, T> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let done = workers.into_iter();
        done.flat_map(|worker| worker.join().expect("a worker does not panic"))
            .collect()
    });
    results.into_values().collect()
}
