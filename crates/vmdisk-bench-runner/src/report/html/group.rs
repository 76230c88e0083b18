//! The charts and the table of one workload.

use maud::{Markup, html};

use super::chart;
use super::page::heading;
use super::{BenchResult, Detail};
use crate::report::figures;
use crate::report::latency::{Distribution, Operation};
use crate::report::svg::{self, Axis};
use crate::report::table::{Group, Row, baseline_name};
use crate::{Comparison, Metric, PERCENTILES, Verdict};

/// Returns the section of a group.
pub(super) fn section(result: &BenchResult, group: &Group<'_>, detail: Detail) -> Markup {
    html! {
        section {
            (heading(&format!("{}, {}", group.workload, group.phase.name())))
            @if detail > Detail::Least { (ratios(result, group)) }
            (table(group))
            @if detail >= Detail::Latencies {
                @for operation in Operation::ALL { (latencies(group, operation)) }
            }
            @if detail == Detail::All { (series(group)) }
        }
    }
}

/// Returns the comparison to draw; comparisons with too few rounds are not drawn.
fn drawn<'a>(row: &Row<'a>) -> Option<&'a Comparison> {
    let comparison = row.cell.comparison.as_ref()?;
    (comparison.verdict != Verdict::TooFewRounds).then_some(comparison)
}

/// Draws ratios with intervals and rounds, or plain figures without a comparison.
fn ratios(result: &BenchResult, group: &Group<'_>) -> Markup {
    let comparisons = group.rows.iter().filter_map(drawn);
    let ends = comparisons.flat_map(|comparison| {
        let interval = comparison.interval.into_iter();
        let ends = interval.flat_map(|interval| [interval.low, interval.high]);
        ends.chain(comparison.ratios.iter().copied())
    });
    let Some(axis) =
        Axis::of(ends.chain([1.0])).filter(|_| group.rows.iter().any(|row| drawn(row).is_some()))
    else {
        return values(group);
    };
    let against = baseline_name(result, group).unwrap_or("its baseline");
    // At most two decimals, without trailing zeros.
    let confidence = ((1.0 - result.alpha) * 1e4).round() / 100.0;
    html! {
        figure {
            figcaption {
                "Speed against " (against) ": the thick line is the " (confidence)
                " % interval with a tick at the ratio, each dot is a round; right of 1 is faster."
            }
            @for row in &group.rows { (ratio(row, axis)) }
            (chart::axis(axis, |value| value.to_string()))
        }
    }
}

fn ratio(row: &Row<'_>, axis: Axis) -> Markup {
    if row.cell.comparison.is_none() {
        return chart::row(
            row.configuration,
            "",
            &html! { (row.verdict) " (" (row.mean) ")" },
        );
    }
    let picture = drawn(row).and_then(|comparison| {
        let interval = comparison.interval?;
        Some(svg::ratio(
            &interval,
            &comparison.ratios,
            comparison.verdict,
            axis,
        ))
    });
    chart::row(
        row.configuration,
        picture.as_deref().unwrap_or_default(),
        &html! { b { (row.ratio) } " " (row.verdict) },
    )
}

fn values(group: &Group<'_>) -> Markup {
    let of = |row: &Row<'_>| {
        row.cell
            .summary
            .as_ref()
            .map_or(0.0, |summary| summary.mean)
    };
    let largest = group.rows.iter().map(of).fold(0.0, f64::max);
    html! {
        figure {
            figcaption { "Geometric mean; more is faster." }
            @for row in &group.rows {
                (chart::row(row.configuration, &svg::value(of(row), largest), &html! { (row.mean) }))
            }
        }
    }
}

fn table(group: &Group<'_>) -> Markup {
    let has = |operation: &Operation| {
        let mut rows = group.rows.iter();
        rows.any(|row| row.cell.latencies.contains_key(operation))
    };
    let operations: Vec<Operation> = Operation::ALL.into_iter().filter(has).collect();
    let has_processor_time = group.rows.iter().any(|row| !row.processor_time.is_empty());
    let mut heads: Vec<String> = ["mean", "varies", "rounds"].map(str::to_owned).to_vec();
    for operation in &operations {
        heads.extend(PERCENTILES.map(|name| format!("{} p{name}", operation.name())));
    }
    if has_processor_time {
        heads.push("CPU per I/O".to_owned());
    }
    let cells = |row: &Row<'_>| {
        let mut cells = vec![
            row.mean.clone(),
            row.variation.clone(),
            row.cell.values.len().to_string(),
        ];
        for operation in &operations {
            let distribution = row.cell.latencies.get(operation);
            let time = |name: &str| distribution?.percentiles_ns.get(name).copied();
            cells
                .extend(PERCENTILES.map(|name| time(name).map_or_else(String::new, figures::time)));
        }
        if has_processor_time {
            cells.push(row.processor_time.clone());
        }
        cells
    };
    html! {
        table {
            thead {
                tr {
                    th scope="col" { "configuration" }
                    @for head in &heads { th scope="col" { (head) } }
                }
            }
            tbody {
                @for row in &group.rows {
                    tr {
                        th scope="row" { (row.configuration) }
                        @for (head, cell) in heads.iter().zip(cells(row)) {
                            td data-head=(head) { (cell) }
                        }
                    }
                }
            }
        }
    }
}

/// Draws distributions if there are histograms, and percentiles for older results.
fn latencies(group: &Group<'_>, operation: Operation) -> Markup {
    let of = |row: &Row<'_>| row.cell.latencies.get(&operation).cloned();
    let rows: Vec<(&str, Distribution)> = group
        .rows
        .iter()
        .filter_map(|row| Some((row.configuration, of(row)?)))
        .filter(|(_, distribution)| !distribution.percentiles_ns.is_empty())
        .collect();
    let values = rows.iter().flat_map(|(_, distribution)| {
        let recorded = distribution
            .histogram
            .iter()
            .map(|(value, _)| *value as f64);
        recorded.chain(distribution.percentiles_ns.values().copied())
    });
    let Some(axis) = Axis::of(values) else {
        return html! {};
    };
    html! {
        figure {
            figcaption {
                "Latency of " (operation.name())
                " requests: the area shows their distribution; older results have only a tick for each percentile."
            }
            @for (name, distribution) in &rows {
                (chart::row(name, &latency(distribution, axis), &percentiles(distribution)))
            }
            (chart::axis(axis, figures::round_time))
        }
    }
}

fn latency(distribution: &Distribution, axis: Axis) -> String {
    if distribution.histogram.is_empty() {
        return svg::percentiles(&distribution.percentiles_ns, axis);
    }
    svg::distribution(&distribution.histogram, axis)
}

fn percentiles(distribution: &Distribution) -> Markup {
    let known = PERCENTILES
        .iter()
        .filter_map(|name| Some((name, distribution.percentiles_ns.get(*name)?)));
    html! {
        @for (index, (name, nanoseconds)) in known.enumerate() {
            @if index > 0 { " · " }
            span class="whole" { "p" (name) " " (figures::time(*nanoseconds)) }
        }
    }
}

fn series(group: &Group<'_>) -> Markup {
    // A single point is not a series.
    let rows: Vec<&Row<'_>> = group
        .rows
        .iter()
        .filter(|row| row.cell.series.len() > 1)
        .collect();
    let points = rows.iter().flat_map(|row| &row.cell.series);
    let largest = points.map(|point| point.iops).fold(0.0, f64::max);
    html! {
        @if largest > 0.0 {
            figure {
                figcaption { "Time series of the median sample: requests per second, from 0." }
                @for row in rows {
                    (chart::row(row.configuration, &svg::series(&row.cell.series, largest), &range(row)))
                }
            }
        }
    }
}

/// Describes the lowest and the highest interval of a series, and its length.
fn range(row: &Row<'_>) -> Markup {
    let iops = row.cell.series.iter().map(|point| point.iops);
    let (low, high) = iops.fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    let seconds = row.cell.series.last().map_or(0.0, |point| point.seconds);
    html! {
        (figures::figure(low, Metric::Iops)) " to " (figures::figure(high, Metric::Iops))
        " in " (format!("{seconds:.1}")) " s"
    }
}
