//! Progress of a run.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;

use vmdisk_bench_runner::report::duration;
use vmdisk_bench_runner::{CellId, Event, Plan};

use crate::io::Io;
use crate::sanitize;

/// Formats a range of times: `3 min to 5 min`.
pub(super) fn range(low: f64, high: f64) -> String {
    let (low, high) = (duration(low), duration(high));
    if low == high {
        low
    } else {
        format!("{low} to {high}")
    }
}

/// Shows progress: on a terminal a line that is updated, otherwise a line per round.
pub(super) struct Progress<'a, 'io> {
    io: &'a mut Io<'io>,
    plan: &'a Plan,
    is_terminal: bool,
    round: String,
    /// Those of the round before.
    disturbances: Vec<String>,
}

impl<'a, 'io> Progress<'a, 'io> {
    /// Creates the progress of a run that has not started.
    pub(super) fn new(io: &'a mut Io<'io>, plan: &'a Plan) -> Self {
        Progress {
            io,
            plan,
            is_terminal: std::io::stderr().is_terminal(),
            round: String::new(),
            disturbances: Vec::new(),
        }
    }

    /// Shows an event.
    pub(super) fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Preparing { configuration } => {
                self.passing(&format!("creating the storage of {configuration}"))
            }
            Event::Round { round, of } => {
                self.round = match round.round {
                    0 => "warm-up".to_owned(),
                    number => format!("round {number} of {of}"),
                };
                // What is as in the round before is said once.
                let noise = match round.disturbances == self.disturbances {
                    true => String::new(),
                    false if round.disturbances.is_empty() => " (quiet)".to_owned(),
                    false => format!(" ({})", round.disturbances.join("; ")),
                };
                self.disturbances = round.disturbances.clone();
                if !self.is_terminal {
                    let line = format!("{}{noise}\n", self.round);
                    self.lasting(&line);
                }
            }
            Event::Sample {
                sample,
                done,
                of,
                left,
            } => {
                let left = range(left.0.as_secs_f64(), left.1.as_secs_f64());
                let name = self.plan.view(sample.cell).name();
                let line = format!("{}: {done} of {of}, {left} left: {name}", self.round);
                self.passing(&line);
            }
            Event::Failure { cell, error } => {
                let line = format!("{}: {error}\n", self.plan.view(*cell).name());
                self.lasting(&line);
            }
            Event::Fitted {
                cells,
                needed,
                is_enough,
            } => self.lasting(&self.fitted(cells, needed.as_secs_f64(), *is_enough)),
            Event::Expected { precision } if precision.is_finite() => {
                let line = format!("expect comparisons within ±{:.0} %\n", precision * 100.0);
                self.lasting(&line);
            }
            Event::Look { round, precision } => {
                let line = if precision.is_finite() {
                    format!(
                        "after {round} rounds the least precise comparison is ±{:.1} %\n",
                        precision * 100.0
                    )
                } else {
                    format!("after {round} rounds a comparison has no interval yet\n")
                };
                self.lasting(&line);
            }
            _ => {}
        }
    }

    /// Names what is left of the plan.
    fn fitted(&self, cells: &BTreeSet<CellId>, needed: f64, is_enough: bool) -> String {
        let views = || cells.iter().map(|cell| self.plan.view(*cell));
        let workloads: BTreeSet<&str> = views().map(|it| it.workload.name.as_str()).collect();
        let names: BTreeSet<&str> = views().map(|it| it.configuration.name.as_str()).collect();
        let [workloads, names] =
            [workloads, names].map(|words| words.into_iter().collect::<Vec<_>>().join(", "));
        let advice = match is_enough {
            true => String::new(),
            false => format!(
                ", which is more than the time budget: use `--time-budget {}m`",
                (needed / 60.0).ceil()
            ),
        };
        format!(
            "left: {workloads} of {names}, about {}{advice}\n",
            duration(needed)
        )
    }

    /// Writes a line that the next one replaces, only on a terminal.
    fn passing(&mut self, line: &str) {
        if self.is_terminal {
            let line: String = sanitize::line(line).chars().take(100).collect();
            self.io.say(&format!("\r\u{1b}[K{line}"));
        }
    }

    /// Writes a line that stays.
    fn lasting(&mut self, line: &str) {
        let clear = if self.is_terminal { "\r\u{1b}[K" } else { "" };
        let line = sanitize::line(line.trim_end_matches('\n'));
        self.io.say(&format!("{clear}{line}\n"));
    }

    /// Clears the line that would be replaced.
    pub(super) fn end(&mut self) {
        if self.is_terminal {
            self.io.say("\r\u{1b}[K");
        }
    }
}
