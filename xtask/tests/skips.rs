//! The last target of `cargo test --workspace` says how many tests were skipped, and why. Cargo hides what a passing test
//! prints, but not what a target without a harness prints.
//!
//! It fails if a test left a program behind that holds the output open: whoever reads the output waits for its end.

use std::fs;
use std::path::{Path, PathBuf};

#[allow(clippy::print_stdout, reason = "it is the output of this target")]
fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let reasons = vmdisk_testing::take_skipped();
    let number: usize = reasons.values().sum();
    let mut by_number: Vec<(usize, String)> = reasons
        .into_iter()
        .map(|(reason, number)| (number, reason))
        .collect();
    by_number.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    let list: Vec<String> = by_number
        .into_iter()
        .map(|(number, reason)| format!("{number} × {reason}"))
        .collect();
    match number {
        0 => println!("no test was skipped"),
        number => println!("{number} tests were skipped: {}", list.join("; ")),
    }
    let left = left_behind(std::os::unix::process::parent_id());
    assert!(left.is_empty(), "tests left programs behind: {left:#?}");
}

/// The command lines of programs that hold the output of this process and were started after `cargo`, which they have left.
fn left_behind(cargo: u32) -> Vec<String> {
    let output = |process: &Path| {
        [1, 2].map(|number| fs::read_link(process.join(format!("fd/{number}"))).ok())
    };
    let [own, _] = output(Path::new("/proc/self"));
    let (Some(own), Some((_, begun))) = (own, parent_and_begin(cargo)) else {
        return Vec::new();
    };
    // A terminal is not waited for.
    if own.starts_with("/dev") {
        return Vec::new();
    }
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|it| it.file_name().to_str()?.parse().ok());
    let is_left = |number: &u32| {
        let later = parent_and_begin(*number).is_some_and(|(_, begin)| begin >= begun);
        let place = PathBuf::from(format!("/proc/{number}"));
        later && output(&place).contains(&Some(own.clone())) && !is_below(*number, cargo)
    };
    let line = |number: u32| {
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ")
    };
    numbers.filter(is_left).map(line).collect()
}

fn is_below(mut number: u32, above: u32) -> bool {
    while number != above {
        match parent_and_begin(number) {
            Some((parent, _)) if parent > 0 => number = parent,
            _ => return false,
        }
    }
    true
}

/// The parent of a process, and when it began, in ticks since the start of the machine.
fn parent_and_begin(number: u32) -> Option<(u32, u64)> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some((fields.get(1)?.parse().ok()?, fields.get(19)?.parse().ok()?))
}
