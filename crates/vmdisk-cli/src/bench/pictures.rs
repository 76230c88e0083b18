//! The pictures of a run: ratios, latencies, samples over time, and what reached the devices.

use vmdisk_bench_runner::report::{BenchReport, Operation, ReportTable, figure, ratio, time};
use vmdisk_bench_runner::{BenchResult, CellId, CellResult, Interval, Verdict};

use crate::draw::{self, Axis, Mark, Picture, Row, Strips};

/// The bars of a distribution of latencies.
const BARS: usize = 72;

/// The pictures of each table of a report. Without a run, those of the ratios.
pub(super) fn of(report: &BenchReport, result: Option<&BenchResult>) -> Vec<Vec<Picture>> {
    let of_table = |table: &ReportTable| {
        let mut strips: Vec<Strips> = ratios(table).into_iter().collect();
        if let Some(result) = result {
            let cells: Vec<(&str, &CellResult)> = table
                .rows
                .iter()
                .filter_map(|row| Some((row.texts[0].as_str(), &result.cells[row.cell?.0])))
                .collect();
            let operations = Operation::ALL.into_iter();
            strips.extend(operations.filter_map(|it| latencies(result, it, &cells)));
            strips.push(samples(result, &cells));
            strips.extend(devices(result, &cells));
        }
        strips.iter().map(Strips::draw).collect()
    };
    report.tables.iter().map(of_table).collect()
}

/// The pictures of a report as one file.
pub(super) fn file(report: &BenchReport, result: Option<&BenchResult>) -> String {
    let title = format!("{}: {}", report.name, report.question);
    let mut pictures = vec![Picture::heading(&title)];
    for (of_table, table) in of(report, result).into_iter().zip(&report.tables) {
        pictures.push(Picture::heading(&table.heading));
        pictures.extend(of_table);
    }
    draw::file(&title, &pictures, false)
}

/// The class of a verdict; a baseline has none.
const fn class(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        None => "baseline",
        Some(Verdict::Faster) => "faster",
        Some(Verdict::Slower) => "slower",
        Some(Verdict::AboutEqual) => "about-equal",
        Some(Verdict::Inconclusive | Verdict::TooFewRounds) => "undecided",
    }
}

/// The ratios of a table with their intervals, and the line of no difference.
fn ratios(table: &ReportTable) -> Option<Strips> {
    let known = || table.rows.iter().filter_map(|row| row.ratio);
    known().next()?;
    let values = known().flat_map(|it| [it.low, it.high]).chain([0.8, 1.25]);
    let against = table.heads.iter().map(|(head, _)| head.as_str());
    let against = against.rev().nth(1).unwrap_or_default();
    let words = format!("speed {against}, with its interval; right of 1 is faster");
    let axis = Axis {
        reference: Some(1.0),
        ..Axis::logarithmic(values, &words, &ratio)
    };
    let rows = table.rows.iter().map(|row| {
        let marks = row
            .ratio
            .map(|Interval { ratio, low, high }| Mark::Interval {
                low,
                middle: ratio,
                high,
            });
        let verdict = row.texts.last().cloned().unwrap_or_default();
        let known = row.ratio.map(|it| format!("{} · ", ratio(it.ratio)));
        Row {
            name: row.texts[0].clone(),
            text: format!("{}{verdict}", known.unwrap_or_default()),
            class: class(row.verdict),
            marks: marks.into_iter().collect(),
        }
    });
    Some(Strips {
        title: "Ratios".to_owned(),
        rows: rows.collect(),
        axis,
    })
}

fn class_of(cell: &CellResult) -> &'static str {
    class(cell.comparison.as_ref().map(|it| it.verdict))
}

/// The latencies of an operation: the share of requests at each, and percentiles.
fn latencies(
    result: &BenchResult,
    operation: Operation,
    cells: &[(&str, &CellResult)],
) -> Option<Strips> {
    let all = |cell: CellId| result.histogram(cell, operation);
    let bins = cells
        .iter()
        .flat_map(|(_, cell)| all(cell.cell).into_keys());
    let mut bins = bins.map(|ns| ns as f64).peekable();
    bins.peek()?;
    let words = format!(
        "latency of a {}; the height is the share of requests",
        operation.name()
    );
    let axis = Axis::logarithmic(bins, &words, &time);
    let edge = |nth: usize| axis.low * (axis.high / axis.low).powf(nth as f64 / BARS as f64);
    let row = |(name, cell): &(&str, &CellResult)| {
        let requests = all(cell.cell);
        let mut counts = [0_u64; BARS];
        for (ns, count) in &requests {
            let share = (*ns as f64 / axis.low).ln() / (axis.high / axis.low).ln();
            let nth = (share.max(0.0) * BARS as f64) as usize;
            counts[nth.min(BARS - 1)] += count;
        }
        let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
        let bars = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let mut marks: Vec<Mark> = bars
            .map(|(nth, count)| Mark::Bar {
                from: edge(nth),
                to: edge(nth + 1),
                height: (*count as f64 / most).max(0.05),
            })
            .collect();
        let known = cell.latencies.get(&operation);
        let percentile = |name: &str| Some(*known?.percentiles_ns.get(name)?);
        let p99 = percentile("99");
        marks.extend(p99.map(|at| Mark::Line {
            at,
            words: "p99".to_owned(),
        }));
        let words = [("median", percentile("50")), ("p99", p99)];
        let words = words
            .into_iter()
            .filter_map(|(name, ns)| Some(format!("{name} {}", time(ns?))));
        Row {
            name: (*name).to_owned(),
            text: words.collect::<Vec<_>>().join(" · "),
            class: class_of(cell),
            marks,
        }
    };
    Some(Strips {
        title: format!("Latency, {}", operation.name()),
        rows: cells.iter().map(row).collect(),
        axis,
    })
}

/// The samples in the order of time, with the rounds as ticks.
fn samples(result: &BenchResult, cells: &[(&str, &CellResult)]) -> Strips {
    let begins = result.rounds.iter().map(|round| round.at_seconds);
    let ends = result.samples.iter().map(|sample| sample.at_seconds);
    let end = begins.chain(ends).fold(1.0, f64::max);
    let every = result.rounds.len().div_ceil(12).max(1);
    let counted = result.rounds.iter().filter(|round| round.round > 0);
    let ticks = counted.step_by(every);
    let axis = Axis {
        low: 0.0,
        high: end,
        is_logarithmic: false,
        ticks: ticks
            .map(|it| (it.at_seconds, it.round.to_string()))
            .collect(),
        words: "rounds, in the order of time; a cross does not count".to_owned(),
        reference: None,
    };
    let row = |(name, cell): &(&str, &CellResult)| {
        let metric = result.metric(cell.cell);
        let own = result
            .samples
            .iter()
            .filter(|sample| sample.cell == cell.cell);
        let own = own.filter_map(|it| Some((it, it.measurement.value(metric)?)));
        let most = own.clone().map(|(_, value)| value).fold(0.0, f64::max) * 1.1;
        let points = own.map(|(sample, value)| match sample.counts() {
            true => Mark::Point {
                at: sample.at_seconds,
                height: value / most,
            },
            false => Mark::Cross {
                at: sample.at_seconds,
                height: value / most,
            },
        });
        let mean = cell.summary.as_ref().map(|it| it.mean);
        let level = mean.map(|mean| Mark::Level {
            height: mean / most,
        });
        let mean = mean.map(|mean| format!("mean {}", figure(mean, metric)));
        Row {
            name: (*name).to_owned(),
            text: mean.unwrap_or_else(|| "not measured".to_owned()),
            class: class_of(cell),
            marks: level.into_iter().chain(points).collect(),
        }
    };
    Strips {
        title: "Samples over time".to_owned(),
        rows: cells.iter().map(row).collect(),
        axis,
    }
}

/// The share of the requested bytes that reached each device; `None` where no device is counted.
fn devices(result: &BenchResult, cells: &[(&str, &CellResult)]) -> Option<Strips> {
    let shares = cells.iter().flat_map(|(_, cell)| &cell.devices);
    let most = shares.map(|it| it.share).reduce(f64::max)?.max(1.0) * 1.05;
    let step = [0.25, 0.5, 1.0, 2.0, 5.0]
        .into_iter()
        .find(|it| most / it < 6.0);
    let step = step.unwrap_or(most / 5.0);
    let ticks = (0_u8..=6).map(|nth| f64::from(nth) * step);
    let axis = Axis {
        low: 0.0,
        high: most,
        is_logarithmic: false,
        ticks: ticks
            .filter(|tick| *tick <= most)
            .map(|tick| (tick, format!("{:.0} %", tick * 100.0)))
            .collect(),
        words: "bytes at each device, of those that were requested".to_owned(),
        reference: Some(1.0),
    };
    let row = |(name, cell): &(&str, &CellResult)| {
        let bars = cell.devices.iter().enumerate();
        let height = 1.0 / cell.devices.len().max(1) as f64;
        let bars = bars.map(|(nth, it)| Mark::Bar {
            from: 0.0,
            to: it.share,
            height: 1.0 - nth as f64 * height,
        });
        Row {
            name: (*name).to_owned(),
            text: result.at_devices(cell),
            class: class_of(cell),
            marks: bars.collect(),
        }
    };
    Some(Strips {
        title: "At the devices".to_owned(),
        rows: cells.iter().map(row).collect(),
        axis,
    })
}
