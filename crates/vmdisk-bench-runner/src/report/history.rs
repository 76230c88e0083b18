//! Runs of the same plan over time: each cell against its baseline, run by run.

use maud::html;

use super::answer::count;
use super::html::{chart, page};
use super::result::BenchResult;
use super::svg::{self, Axis};
use super::table::{Grid, with_interval};
use super::text::table;
use crate::Comparison;

/// A cell with its comparison in each run.
struct CellHistory<'a> {
    name: &'a str,
    runs: Vec<(&'a str, &'a Comparison)>,
}

/// Returns every compared cell of at least two runs, in the order of the first run that has it.
fn cells(results: &[BenchResult]) -> Vec<CellHistory<'_>> {
    let mut cells: Vec<CellHistory<'_>> = Vec::new();
    for result in results {
        let began_at = result.header.began_at.as_str();
        for cell in &result.cells {
            let Some(comparison) = &cell.comparison else {
                continue;
            };
            match cells.iter_mut().find(|known| known.name == cell.name) {
                Some(known) => known.runs.push((began_at, comparison)),
                None => cells.push(CellHistory {
                    name: &cell.name,
                    runs: vec![(began_at, comparison)],
                }),
            }
        }
    }
    cells.retain(|cell| cell.runs.len() > 1);
    cells
}

/// Formats the history of some runs for a terminal.
pub fn history_text(results: &[BenchResult]) -> String {
    let mut text = format!("{}\n", count(results.len(), "run", "runs"));
    for cell in cells(results) {
        let heads = ["run", "against its baseline", "verdict"];
        let grid = Grid {
            heads: heads.map(|head| (head.to_owned(), false)).to_vec(),
            rows: cell
                .runs
                .iter()
                .map(|(began_at, comparison)| {
                    vec![
                        (*began_at).to_owned(),
                        comparison.interval.map_or_else(String::new, with_interval),
                        comparison.in_words(),
                    ]
                })
                .collect(),
        };
        text.push_str(&format!("\n{}\n{}", cell.name, table(&grid)));
    }
    text
}

/// Formats the history of some runs as one page, with a chart for each cell and a row for each run.
pub fn history_html(results: &[BenchResult]) -> String {
    let charts = cells(results).into_iter().map(|cell| {
        let intervals = cell.runs.iter().filter_map(|(_, comparison)| comparison.interval);
        let axis = Axis::of(intervals.flat_map(|it| [it.low, it.high]).chain([1.0]));
        html! {
            section {
                (page::heading(cell.name))
                figure {
                    figcaption { "Ratio to the baseline of the same round, run by run; right of 1 is faster." }
                    @for (began_at, comparison) in &cell.runs {
                        @let interval = comparison.interval.zip(axis);
                        @let picture = interval.map(|(interval, axis)| {
                            svg::ratio(&interval, &comparison.ratios, comparison.verdict, axis)
                        });
                        (chart::row(began_at, picture.as_deref().unwrap_or_default(), &html! {
                            @if let Some((interval, _)) = interval { b { (with_interval(interval)) } }
                            " " (comparison.in_words())
                        }))
                    }
                    @if let Some(axis) = axis { (chart::axis(axis, |value| value.to_string())) }
                }
            }
        }
    });
    page::page(
        "History",
        &html! {
            header { h1 { "History of " (count(results.len(), "run", "runs")) } }
            @for chart in charts { (chart) }
        },
    )
}
