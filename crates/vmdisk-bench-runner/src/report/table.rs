//! A result as groups of rows, used by every format.

use super::answer::count;
use super::figures;
use super::latency::Operation;
use super::result::{BenchResult, CellResult};
use crate::method::ratio;
use crate::{CellId, Interval, Phase, Verdict};

/// The cells of one workload in one phase.
pub(crate) struct Group<'a> {
    /// Name of the workload as it was carried out.
    pub(crate) workload: String,
    /// Phase.
    pub(crate) phase: Phase,
    /// The cells, in the order of the plan.
    pub(crate) rows: Vec<Row<'a>>,
}

/// One cell.
pub(crate) struct Row<'a> {
    /// The cell.
    pub(crate) cell: &'a CellResult,
    /// Name of its configuration.
    pub(crate) configuration: &'a str,
    /// The geometric mean, with its unit.
    pub(crate) mean: String,
    /// The variation of the figure between rounds.
    pub(crate) variation: String,
    /// Processor time per request.
    pub(crate) processor_time: String,
    /// Ratio and interval.
    pub(crate) ratio: String,
    /// The verdict in words.
    pub(crate) verdict: String,
}

/// Returns all groups of a result, in plan order.
pub(crate) fn groups(result: &BenchResult) -> Vec<Group<'_>> {
    let plan = &result.header.plan;
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (cell, planned) in result.cells.iter().zip(&plan.cells) {
        let workload = plan.workload_name(planned);
        let row = row(result, cell, planned.configuration);
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

fn row<'a>(result: &'a BenchResult, cell: &'a CellResult, configuration: usize) -> Row<'a> {
    let plan = &result.header.plan;
    let metric = result.metric(cell.cell);
    let summary = cell.summary.as_ref();
    let is_baseline = plan
        .cells
        .iter()
        .any(|other| other.baseline == Some(cell.cell));
    let (ratio, verdict) = match &cell.comparison {
        Some(_) if summary.is_none() => (String::new(), String::new()),
        Some(comparison) => {
            let ratio = comparison.interval.map_or_else(String::new, |interval| {
                // The interval of two or three rounds is wide and says nothing.
                if comparison.verdict == Verdict::TooFewRounds {
                    return ratio(interval.ratio);
                }
                with_interval(interval)
            });
            (ratio, comparison.in_words())
        }
        None if is_baseline => (String::new(), "baseline".to_owned()),
        None => (String::new(), String::new()),
    };
    Row {
        cell,
        configuration: &plan.configurations[configuration].name,
        mean: summary.map_or_else(
            || "not measured".to_owned(),
            |summary| figures::figure(summary.mean, metric),
        ),
        variation: summary
            .and_then(|summary| summary.variation)
            .map_or_else(String::new, |variation| {
                format!("{:.0} %", variation * 100.0)
            }),
        processor_time: cell
            .processor_ns_per_request
            .map_or_else(String::new, figures::time),
        ratio,
        verdict,
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

/// A group as headings and cells, without empty columns.
pub(crate) struct Grid {
    /// Headings of the columns; true for numeric columns.
    pub(crate) heads: Vec<(String, bool)>,
    /// The texts of each row.
    pub(crate) rows: Vec<Vec<String>>,
}

/// Returns the columns of a group for terminals and Markdown.
pub(crate) fn grid(result: &BenchResult, group: &Group<'_>) -> Grid {
    let against = match baseline_name(result, group) {
        Some(name) => format!("against {name}"),
        None => "against its baseline".to_owned(),
    };
    let has = |operation: Operation| {
        let mut rows = group.rows.iter();
        rows.any(|row| row.cell.latencies.contains_key(&operation))
    };
    let operations: Vec<Operation> = Operation::ALL.into_iter().filter(|it| has(*it)).collect();
    let mut heads = vec![
        ("configuration".to_owned(), false),
        ("mean".to_owned(), true),
        ("varies".to_owned(), true),
    ];
    heads.extend(
        operations
            .iter()
            .map(|operation| (format!("{} p99", operation.name()), true)),
    );
    heads.extend([
        ("CPU per I/O".to_owned(), true),
        (against, false),
        ("verdict".to_owned(), false),
    ]);
    let rows: Vec<Vec<String>> = group
        .rows
        .iter()
        .map(|row| {
            let mut cells = vec![
                row.configuration.to_owned(),
                row.mean.clone(),
                row.variation.clone(),
            ];
            cells.extend(operations.iter().map(|operation| p99(row.cell, *operation)));
            cells.extend([
                row.processor_time.clone(),
                row.ratio.clone(),
                row.verdict.clone(),
            ]);
            cells
        })
        .collect();
    let is_filled: Vec<bool> = (0..heads.len())
        .map(|column| rows.iter().any(|row| !row[column].is_empty()))
        .collect();
    let kept = |cells: Vec<String>| -> Vec<String> {
        let filled = cells.into_iter().zip(&is_filled);
        filled
            .filter(|(_, is_filled)| **is_filled)
            .map(|(cell, _)| cell)
            .collect()
    };
    Grid {
        rows: rows.into_iter().map(kept).collect(),
        heads: heads
            .into_iter()
            .zip(&is_filled)
            .filter(|(_, is_filled)| **is_filled)
            .map(|(head, _)| head)
            .collect(),
    }
}

fn p99(cell: &CellResult, operation: Operation) -> String {
    let distribution = cell.latencies.get(&operation);
    distribution
        .and_then(|distribution| distribution.percentiles_ns.get("99"))
        .map_or_else(String::new, |nanoseconds| figures::time(*nanoseconds))
}

/// Returns the name of a group's baseline, if all rows have the same.
pub(crate) fn baseline_name<'a>(result: &'a BenchResult, group: &Group<'_>) -> Option<&'a str> {
    let plan = &result.header.plan;
    let mut names = group.rows.iter().filter_map(|row| {
        let CellId(baseline) = row.cell.comparison.as_ref()?.baseline;
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
    let versions: Vec<String> = header
        .versions
        .iter()
        .map(|(engine, versions)| {
            let programs: Vec<String> = versions
                .iter()
                .map(|(program, version)| with_version(program, version))
                .collect();
            format!("{engine} ({})", programs.join(", "))
        })
        .collect();
    format!(
        "{}, seed {}, {} % intervals, begun {}, {}",
        count(result.complete_rounds as usize, "round", "rounds"),
        header.settings.seed,
        (header.settings.repetition.confidence * 100.0).round(),
        header.began_at,
        versions.join(", ")
    )
}

/// Formats a program with its version, which may begin with the program's name.
pub(crate) fn with_version(program: &str, version: &str) -> String {
    if version.starts_with(program) {
        version.to_owned()
    } else {
        format!("{program} {version}")
    }
}
