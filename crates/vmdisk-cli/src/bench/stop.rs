//! Errors of the runner, with help.

use vmdisk_bench_runner::Error;

use crate::stop::Stop;

/// Converts an error of the runner, with help if available.
pub(super) fn stop(error: Error) -> Stop {
    let help = match &error {
        Error::NotQuiet { .. } => {
            Some("wait until it is quiet, or use `--noisy`, which marks the result")
        }
        Error::Incomparable { .. } => {
            Some("measure both in one run, or change one thing at a time")
        }
        _ => None,
    };
    let stop = Stop::new(error.to_string());
    match help {
        Some(help) => stop.help(help),
        None => stop,
    }
}
