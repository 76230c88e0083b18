//! What the reports of one run say.

use super::answer::{accelerator_label, answer};
use super::document::{BenchReport, ReportRow, ReportTable};
use super::figures::{self, count};
use super::latency::Operation;
use super::pairs::lines;
use super::result::{BenchResult, CellResult};
use super::table::{Group, groups, with_interval};
use crate::method::ratio;
use crate::{Cell, CellId, Comparison, Verdict};

impl BenchResult {
    /// Returns what the reports of the run say.
    pub fn report(&self) -> BenchReport {
        let plan = &self.header.plan;
        let left_out = self.left_out.iter();
        let left_out = left_out.map(|it| format!("{}: {}", it.what, it.why));
        let environment = self.header.environment.iter();
        BenchReport {
            name: plan.name.clone(),
            question: format!("{}{}", plan.question, accelerator_label(self)),
            summary: summary_line(self),
            answer: answer(self),
            tables: groups(self)
                .iter()
                .map(|group| table(self, group))
                .collect(),
            lists: vec![
                ("left out", left_out.collect()),
                ("caveats", self.remarks.clone()),
            ],
            environment: environment
                .map(|(what, value)| format!("{what}: {value}"))
                .collect(),
        }
    }
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

/// Returns a group as a table without empty columns.
fn table(result: &BenchResult, group: &Group<'_>) -> ReportTable {
    let against = match baseline_name(result, group) {
        Some(name) => format!("against {name}"),
        None => "against its baseline".to_owned(),
    };
    let of_all = |text: &dyn Fn(&CellResult) -> Option<String>| -> Vec<String> {
        let cells = group.rows.iter().map(|(_, cell)| text(cell));
        cells.map(Option::unwrap_or_default).collect()
    };
    let names = group.rows.iter().map(|(name, _)| (*name).to_owned());
    // The ratio beside it is that of the common rounds.
    let mean = of_all(&|cell| match (&cell.summary, result.common_means(cell)) {
        (Some(_), Some((mean, _, _))) => Some(figures::figure(mean, result.metric(cell.cell))),
        (Some(summary), None) => Some(figures::figure(summary.mean, result.metric(cell.cell))),
        (None, _) => Some("not measured".to_owned()),
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
    let at_devices = |cell: &CellResult| Some(result.at_devices(cell));
    columns.push(("at the devices".to_owned(), false, of_all(&at_devices)));
    for (at, head) in [against, "verdict".to_owned()].into_iter().enumerate() {
        let texts = of_all(&|cell| Some(compared(result, cell)[at].clone()));
        columns.push((head, false, texts));
    }
    columns.retain(|(_, _, texts)| texts.iter().any(|text| !text.is_empty()));
    let row = |(nth, (_, cell)): (usize, &(&str, &CellResult))| {
        let comparison = cell.comparison.as_ref().filter(|_| cell.summary.is_some());
        let has_verdict = |it: &&Comparison| it.verdict != Verdict::TooFewRounds;
        ReportRow {
            texts: columns
                .iter()
                .map(|(_, _, texts)| texts[nth].clone())
                .collect(),
            ratio: comparison.filter(has_verdict).and_then(|it| it.interval),
            verdict: comparison.map(|it| it.verdict),
            cell: Some(cell.cell),
        }
    };
    ReportTable {
        heading: format!("{}, {}", group.workload, group.phase.name()),
        rows: group.rows.iter().enumerate().map(row).collect(),
        notes: lines(result, group)
            .chain(other_rounds(result, group))
            .collect(),
        heads: columns
            .into_iter()
            .map(|(head, is_number, _)| (head, is_number))
            .collect(),
    }
}

/// Returns the mean of the baseline for each row that was not measured in all of its rounds.
fn other_rounds(result: &BenchResult, group: &Group<'_>) -> Vec<String> {
    let of_row = |(name, cell): &(&str, &CellResult)| {
        let baseline = cell.comparison.as_ref()?.baseline;
        let (_, mean, rounds) = result.common_means(cell)?;
        let is_other = rounds < result.cells[baseline.0].values.len();
        is_other.then(|| {
            let mean = figures::figure(mean, result.metric(cell.cell));
            let baseline = result.header.plan.configuration_of(baseline);
            let rounds = count(rounds, "round", "rounds");
            format!("{name} was measured in {rounds}, in which {baseline} had {mean}")
        })
    };
    group.rows.iter().filter_map(of_row).collect()
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
fn summary_line(result: &BenchResult) -> String {
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
