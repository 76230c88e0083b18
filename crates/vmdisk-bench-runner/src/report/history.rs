//! Runs of one plan, in the order of time.

use super::document::{BenchReport, ReportRow, ReportTable};
use super::figures;
use super::table::with_interval;
use crate::{BenchResult, Verdict};

/// Returns the ratio of each cell to its baseline in each run: the first run names the cells. What a machine does to all cells
/// of a run is not in a ratio.
pub fn history(name: &str, runs: &[BenchResult]) -> BenchReport {
    let cells = runs.first().map_or(&[][..], |first| &first.cells);
    let compared = cells.iter().filter(|cell| cell.comparison.is_some());
    BenchReport {
        name: name.to_owned(),
        question: format!("{} over time", figures::count(runs.len(), "run", "runs")),
        tables: compared.map(|cell| of_cell(&cell.name, runs)).collect(),
        ..BenchReport::default()
    }
}

fn of_cell(name: &str, runs: &[BenchResult]) -> ReportTable {
    let row = |run: &BenchResult| {
        let cell = run.cells.iter().find(|cell| cell.name == name)?;
        let comparison = cell.comparison.as_ref()?;
        let ratio = comparison
            .interval
            .filter(|_| comparison.verdict != Verdict::TooFewRounds);
        let mean = cell
            .summary
            .as_ref()
            .map(|it| figures::figure(it.mean, run.metric(cell.cell)));
        Some(ReportRow {
            texts: vec![
                run.header.began_at.clone(),
                mean.unwrap_or_default(),
                ratio.map_or_else(String::new, with_interval),
                comparison.in_words(),
            ],
            ratio,
            verdict: Some(comparison.verdict),
            cell: None,
        })
    };
    ReportTable {
        heading: name.to_owned(),
        heads: ["begun", "mean", "against its baseline", "verdict"]
            .map(|head| (head.to_owned(), head == "mean"))
            .to_vec(),
        rows: runs.iter().filter_map(row).collect(),
        notes: Vec::new(),
    }
}
