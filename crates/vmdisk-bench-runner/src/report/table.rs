//! A result as groups of rows, which every form for people shows.

use super::figures;
use super::result::{BenchResult, CellResult};
use crate::{CellId, Phase, Verdict};

/// The cells of one workload in one phase.
pub(crate) struct Group<'a> {
    /// Name of the workload.
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
    /// The figure in the middle, with its unit.
    pub(crate) median: String,
    /// How much the figure varies from round to round.
    pub(crate) variation: String,
    /// The latency that one request of a hundred exceeds.
    pub(crate) p99: String,
    /// Ratio and interval.
    pub(crate) ratio: String,
    /// What may be said, in words.
    pub(crate) verdict: String,
}

/// All groups of a result, in the order of the plan.
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
                // The interval of two or three rounds says nothing, at length.
                if comparison.verdict == Verdict::TooFewRounds {
                    return figures::ratio(interval.ratio);
                }
                format!(
                    "{} [{}, {}]",
                    figures::ratio(interval.ratio),
                    figures::ratio(interval.low),
                    figures::ratio(interval.high)
                )
            });
            (ratio, comparison.in_words())
        }
        None if is_baseline => (String::new(), "baseline".to_owned()),
        None => (String::new(), String::new()),
    };
    Row {
        cell,
        configuration: &plan.configurations[configuration].name,
        median: summary.map_or_else(
            || "not measured".to_owned(),
            |summary| figures::figure(summary.median, metric),
        ),
        variation: summary
            .and_then(|summary| summary.variation)
            .map_or_else(String::new, |variation| {
                format!("{:.0} %", variation * 100.0)
            }),
        p99: cell
            .latency_ns
            .get("99")
            .map_or_else(String::new, |nanoseconds| figures::time(*nanoseconds)),
        ratio,
        verdict,
    }
}

/// The configuration that a group's ratios are against, if it is the same for all.
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

/// What the run was, in one line.
pub(crate) fn summary_line(result: &BenchResult) -> String {
    let header = &result.header;
    let rounds = match result.complete_rounds {
        1 => "1 round".to_owned(),
        count => format!("{count} rounds"),
    };
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
        "{rounds}, seed {}, {} % intervals, begun {}, {}",
        header.settings.seed,
        (header.settings.repetition.confidence * 100.0).round(),
        header.began_at,
        versions.join(", ")
    )
}

/// A program with its version, which may begin with the program's name.
pub(crate) fn with_version(program: &str, version: &str) -> String {
    if version.starts_with(program) {
        version.to_owned()
    } else {
        format!("{program} {version}")
    }
}
