//! What a process takes: processor time and memory.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;

use crate::memory::resident;

/// Ticks of processor time in a second, as procfs counts them: USER_HZ of proc(5).
const TICKS: u64 = 100;

/// The processor time of a run in a folder, and its largest resident set in bytes.
pub(super) fn usage(command: &mut Command, folder: &Path) -> anyhow::Result<(Duration, u64)> {
    let before = of_children()?;
    let command = command
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let resident = resident(command.spawn()?)?;
    Ok((of_children()?.saturating_sub(before), resident))
}

/// The processor time of all children that have ended.
fn of_children() -> anyhow::Result<Duration> {
    let text = fs::read_to_string("/proc/self/stat")?;
    let ticks = ticks_of_children(&text).context("procfs has the times of children")?;
    Ok(Duration::from_millis(ticks * 1000 / TICKS))
}

/// `cutime` and `cstime` of `/proc/PID/stat`; the name of the program before them may have blanks and parentheses.
fn ticks_of_children(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut numbers = after_name.split_whitespace().skip(13);
    let mut next = || numbers.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_children_stand_behind_the_name_and_thirteen_numbers() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 89 1000 0 1 11 12 300 40 20 0 1 0 5 6 7\n";
        assert_eq!(ticks_of_children(stat), Some(340));
        assert_eq!(ticks_of_children("7 (a) S 1"), None);
    }
}
