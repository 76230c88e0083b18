//! A comparison of two runs for people.

use super::{ChangeVerdict, RunComparison};
use crate::method::{percent, ratio};
use crate::report::table::{Grid, with_interval};
use crate::report::text::{list, table};
use crate::{Interval, Verdict};

impl ChangeVerdict {
    /// Formats the verdict.
    fn in_words(self, change: Option<Interval>) -> String {
        let verdict = match self {
            ChangeVerdict::Faster => Verdict::Faster,
            ChangeVerdict::Slower => Verdict::Slower,
            ChangeVerdict::AboutEqual => Verdict::AboutEqual,
            ChangeVerdict::Inconclusive => Verdict::Inconclusive,
            ChangeVerdict::TooFewRounds => Verdict::TooFewRounds,
            ChangeVerdict::MachineChanged => return "the machine changed".to_owned(),
        };
        verdict.in_words(change)
    }
}

impl RunComparison {
    /// Returns the answer as one sentence.
    fn answer(&self) -> String {
        if !self.machine_changes.is_empty() {
            return format!(
                "No verdict, because the machine changed between the runs: {}.",
                self.machine_changes.join("; ")
            );
        }
        let count = |verdict: ChangeVerdict| {
            self.cells
                .iter()
                .filter(|cell| cell.verdict == verdict)
                .count()
        };
        let mut parts = Vec::new();
        for (verdict, word) in [
            (ChangeVerdict::Slower, "slower"),
            (ChangeVerdict::Faster, "faster"),
            (ChangeVerdict::AboutEqual, "about equal"),
            (ChangeVerdict::Inconclusive, "inconclusive"),
            (ChangeVerdict::TooFewRounds, "with too few rounds"),
        ] {
            if count(verdict) > 0 {
                parts.push(format!("{} {word}", count(verdict)));
            }
        }
        format!(
            "Of {} cells against their baselines, the second run has {} (tolerance {}).",
            self.cells.len(),
            parts.join(", "),
            percent(self.tolerance)
        )
    }

    fn studied_in_words(&self) -> String {
        match &self.studied {
            Some(difference) => difference.to_string(),
            None => "no difference, the same plan was measured twice".to_owned(),
        }
    }

    fn grid(&self) -> Grid {
        let interval =
            |interval: Option<Interval>| interval.map_or_else(String::new, with_interval);
        Grid {
            heads: ["cell", "first", "second", "change", "verdict"]
                .map(|head| (head.to_owned(), false))
                .to_vec(),
            rows: self
                .cells
                .iter()
                .map(|cell| {
                    let name = match cell.first == cell.second {
                        true => cell.first.clone(),
                        false => format!("{} / {}", cell.first, cell.second),
                    };
                    vec![
                        name,
                        interval(cell.first_ratio),
                        interval(cell.second_ratio),
                        interval(cell.change),
                        cell.verdict.in_words(cell.change),
                    ]
                })
                .collect(),
        }
    }

    fn baselines_in_words(&self) -> impl Iterator<Item = String> {
        self.baselines.iter().map(|baseline| {
            format!(
                "{}: {} and {} ({})",
                baseline.name,
                baseline.first,
                baseline.second,
                ratio(baseline.ratio)
            )
        })
    }

    /// Formats the comparison for a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("studied: {}\n{}\n", self.studied_in_words(), self.answer());
        text.push_str("\nratios to the baseline of the same round\n");
        text.push_str(&table(&self.grid()));
        list(
            &mut text,
            "baselines, without a verdict",
            self.baselines_in_words(),
        );
        list(&mut text, "controls", self.controls.iter().cloned());
        list(&mut text, "in one run only", self.unmatched.iter().cloned());
        text
    }
}
