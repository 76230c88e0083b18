//! A result as groups of rows, used by every format.

use super::figures::{self, count};
use super::latency::Operation;
use super::result::{BenchResult, CellResult};
use crate::method::ratio;
use crate::{Cell, CellId, Interval, Phase, Verdict};

/// The cells of one workload in one phase.
pub(crate) struct Group<'a> {
    pub(crate) workload: &'a str,
    pub(crate) phase: Phase,
    /// The cells with the names of their configurations, in the order of the plan.
    pub(crate) rows: Vec<(&'a str, &'a CellResult)>,
}

/// Returns all groups of a result, in plan order.
pub(crate) fn groups(result: &BenchResult) -> Vec<Group<'_>> {
    let plan = &result.header.plan;
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (cell, planned) in result.cells.iter().zip(&plan.cells) {
        let workload = plan.workloads[planned.workload].name.as_str();
        let configuration = plan.configurations[planned.configuration].name.as_str();
        let row = (configuration, cell);
        let same =
            |group: &&mut Group<'_>| group.workload == workload && group.phase == planned.phase;
        match groups.iter_mut().find(same) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group {
                workload,
                phase: planned.phase,
                rows: vec![row],
            }),
        }
    }
    groups
}

/// Returns the ratio of a cell to its baseline, and the verdict.
fn compared(result: &BenchResult, cell: &CellResult) -> [String; 2] {
    let is_baseline = |other: &Cell| other.baseline == Some(cell.cell);
    match &cell.comparison {
        Some(comparison) if cell.summary.is_some() => {
            let ratio = comparison
                .interval
                .map(|interval| match comparison.verdict {
                    // The interval of two or three rounds is wide and says nothing.
                    Verdict::TooFewRounds => ratio(interval.ratio),
                    _ => with_interval(interval),
                });
            [ratio.unwrap_or_default(), comparison.in_words()]
        }
        None if result.header.plan.cells.iter().any(is_baseline) => {
            [String::new(), "baseline".to_owned()]
        }
        Some(_) | None => Default::default(),
    }
}

/// Formats a ratio with its interval: `1.9 [1.6, 2.3]`.
pub(crate) fn with_interval(interval: Interval) -> String {
    format!(
        "{} [{}, {}]",
        ratio(interval.ratio),
        ratio(interval.low),
        ratio(interval.high)
    )
}

/// Texts in columns.
pub(crate) struct Grid {
    /// Headings of the columns; true for numeric columns.
    pub(crate) heads: Vec<(String, bool)>,
    /// The texts of each row.
    pub(crate) rows: Vec<Vec<String>>,
}

/// Returns a group as columns for terminals and Markdown, without empty ones.
pub(crate) fn grid(result: &BenchResult, group: &Group<'_>) -> Grid {
    let against = match baseline_name(result, group) {
        Some(name) => format!("against {name}"),
        None => "against its baseline".to_owned(),
    };
    let of_all = |text: &dyn Fn(&CellResult) -> Option<String>| -> Vec<String> {
        let cells = group.rows.iter().map(|(_, cell)| text(cell));
        cells.map(Option::unwrap_or_default).collect()
    };
    let names = group.rows.iter().map(|(name, _)| (*name).to_owned());
    let mean = of_all(&|cell| match &cell.summary {
        Some(summary) => Some(figures::figure(summary.mean, result.metric(cell.cell))),
        None => Some("not measured".to_owned()),
    });
    let varies = of_all(&|cell| {
        let variation = cell.summary.as_ref()?.variation?;
        Some(format!("{:.0} %", variation * 100.0))
    });
    let mut columns = vec![
        ("configuration".to_owned(), false, names.collect()),
        ("mean".to_owned(), true, mean),
        ("varies".to_owned(), true, varies),
    ];
    for operation in Operation::ALL {
        let head = format!("{} p99", operation.name());
        columns.push((head, true, of_all(&|cell| p99(cell, operation))));
    }
    let processor = |cell: &CellResult| cell.processor_ns_per_request.map(figures::time);
    columns.push(("CPU per I/O".to_owned(), true, of_all(&processor)));
    let at_devices = |cell: &CellResult| {
        let shares = cell.devices.iter();
        let texts = shares.map(|it| format!("{} {:.0} %", it.name, it.share * 100.0));
        Some(texts.collect::<Vec<_>>().join(", "))
    };
    columns.push(("at the devices".to_owned(), false, of_all(&at_devices)));
    for (at, head) in [against, "verdict".to_owned()].into_iter().enumerate() {
        let texts = of_all(&|cell| Some(compared(result, cell)[at].clone()));
        columns.push((head, false, texts));
    }
    columns.retain(|(_, _, texts)| texts.iter().any(|text| !text.is_empty()));
    Grid {
        rows: (0..group.rows.len())
            .map(|row| columns.iter().map(move |(_, _, texts)| texts[row].clone()))
            .map(Iterator::collect)
            .collect(),
        heads: columns
            .into_iter()
            .map(|(head, is_number, _)| (head, is_number))
            .collect(),
    }
}

fn p99(cell: &CellResult, operation: Operation) -> Option<String> {
    let percentiles = &cell.latencies.get(&operation)?.percentiles_ns;
    percentiles.get("99").map(|ns| figures::time(*ns))
}

/// Returns the name of a group's baseline, if all rows have the same.
fn baseline_name<'a>(result: &'a BenchResult, group: &Group<'_>) -> Option<&'a str> {
    let plan = &result.header.plan;
    let mut names = group.rows.iter().filter_map(|(_, cell)| {
        let CellId(baseline) = cell.comparison.as_ref()?.baseline;
        Some(
            plan.configurations[plan.cells[baseline].configuration]
                .name
                .as_str(),
        )
    });
    let first = names.next()?;
    names.all(|name| name == first).then_some(first)
}

/// Describes the run in one line.
pub(crate) fn summary_line(result: &BenchResult) -> String {
    let header = &result.header;
    let versions = header.versions.iter().map(|(engine, versions)| {
        let programs = versions.iter().map(|(program, version)| {
            // A version may begin with the program's name.
            match version.starts_with(program.as_str()) {
                true => version.clone(),
                false => format!("{program} {version}"),
            }
        });
        format!("{engine} ({})", programs.collect::<Vec<_>>().join(", "))
    });
    format!(
        "{}, seed {}, {} % intervals, begun {}, {}",
        count(result.complete_rounds as usize, "round", "rounds"),
        header.settings.seed,
        (header.settings.repetition.confidence * 100.0).round(),
        header.began_at,
        versions.collect::<Vec<_>>().join(", ")
    )
}
