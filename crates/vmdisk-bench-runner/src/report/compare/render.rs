//! A comparison of two runs for people.

use super::{BaselineChange, CellChange, ChangeVerdict, RunComparison};
use crate::method::{percent, ratio};
use crate::report::document::{BenchReport, ReportRow, ReportTable};
use crate::report::table::with_interval;
use crate::{Interval, Verdict};

impl ChangeVerdict {
    /// Returns the verdict; `None` if the machine changed.
    const fn verdict(self) -> Option<Verdict> {
        Some(match self {
            ChangeVerdict::Faster => Verdict::Faster,
            ChangeVerdict::Slower => Verdict::Slower,
            ChangeVerdict::AboutEqual => Verdict::AboutEqual,
            ChangeVerdict::Inconclusive => Verdict::Inconclusive,
            ChangeVerdict::TooFewRounds => Verdict::TooFewRounds,
            ChangeVerdict::MachineChanged => return None,
        })
    }

    /// Formats the verdict.
    fn in_words(self, change: Option<Interval>) -> String {
        match self.verdict() {
            Some(verdict) => verdict.in_words(change),
            None => "the machine changed".to_owned(),
        }
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

    fn table(&self) -> ReportTable {
        let words = |interval: Option<Interval>| interval.map_or_else(String::new, with_interval);
        let row = |cell: &CellChange| {
            let name = match cell.first == cell.second {
                true => cell.first.clone(),
                false => format!("{} / {}", cell.first, cell.second),
            };
            let verdict = cell.verdict.verdict();
            let texts = [cell.first_ratio, cell.second_ratio, cell.change].map(words);
            let texts = [name].into_iter().chain(texts);
            ReportRow {
                texts: texts.chain([cell.verdict.in_words(cell.change)]).collect(),
                ratio: cell
                    .change
                    .filter(|_| verdict != Some(Verdict::TooFewRounds)),
                verdict,
                cell: None,
            }
        };
        ReportTable {
            heading: "ratios to the baseline of the same round".to_owned(),
            heads: ["cell", "first", "second", "change", "verdict"]
                .map(|head| (head.to_owned(), false))
                .to_vec(),
            rows: self.cells.iter().map(row).collect(),
            notes: Vec::new(),
        }
    }

    /// Returns what the reports of the comparison say.
    pub fn report(&self) -> BenchReport {
        let baseline = |it: &BaselineChange| {
            let change = ratio(it.ratio);
            format!("{}: {} and {} ({change})", it.name, it.first, it.second)
        };
        BenchReport {
            name: "studied".to_owned(),
            question: match &self.studied {
                Some(difference) => difference.to_string(),
                None => "no difference, the same plan was measured twice".to_owned(),
            },
            answer: vec![self.answer()],
            tables: vec![self.table()],
            lists: vec![
                (
                    "baselines, without a verdict",
                    self.baselines.iter().map(baseline).collect(),
                ),
                ("controls", self.controls.clone()),
                ("in one run only", self.unmatched.clone()),
            ],
            ..BenchReport::default()
        }
    }
}
