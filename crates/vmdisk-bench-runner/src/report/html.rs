//! A result as one page that needs nothing else: no script, no font, no network.
//!
//! Every picture stands in a row with its values as text. Colours are those of Okabe and Ito, which
//! people tell apart whatever colours they see, and words say the same.

use super::figures;
use super::result::BenchResult;
use super::svg::{self, Axis};
use super::table::{Group, Row, baseline_name, groups, summary_line, with_version};
use crate::{Accelerator, Comparison, ConfigurationRecord, FindingSeverity, Metric, Verdict};

/// A page is smaller than this, in bytes; what is left out for it is said on the page.
pub const MOST_BYTES: usize = 500_000;

/// How much a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    /// Tables of the first groups only.
    Least,
    /// Ratios and tables.
    Ratios,
    /// Also latencies.
    Latencies,
    /// Everything.
    All,
}

/// A result as one page.
pub fn html(result: &BenchResult) -> String {
    let mut page = String::new();
    for detail in [
        Detail::All,
        Detail::Latencies,
        Detail::Ratios,
        Detail::Least,
    ] {
        page = Page {
            result,
            detail,
            text: String::new(),
        }
        .write();
        if page.len() < MOST_BYTES {
            break;
        }
    }
    page
}

struct Page<'a> {
    result: &'a BenchResult,
    detail: Detail,
    text: String,
}

impl Page<'_> {
    fn write(mut self) -> String {
        let plan = &self.result.header.plan;
        let title = escape(&plan.name);
        self.text.push_str(&format!(
            "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n\
             <meta name='viewport' content='width=device-width, initial-scale=1'>\n\
             <title>{title} – vmdisk bench</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <header>\n<h1>{title}</h1>\n<p class='question'>{}</p>\n<p>{}.</p>\n",
            escape(&plan.question),
            escape(&summary_line(self.result)),
        ));
        self.labels();
        self.text.push_str("</header>\n");
        self.list("Mind", self.result.remarks.iter().cloned());
        if self.detail < Detail::All {
            self.text.push_str(
                "<p>Courses and commands are left out, to keep this page small; the JSON result has them.</p>\n",
            );
        }
        for group in groups(self.result) {
            if self.text.len() > MOST_BYTES * 3 / 5 && self.detail == Detail::Least {
                self.text.push_str(
                    "<p>There is more than a page holds: the JSON and CSV results have the rest.</p>\n",
                );
                break;
            }
            self.group(&group);
        }
        let left_out = self.result.left_out.iter();
        self.list(
            "Left out",
            left_out.map(|left_out| format!("{}: {}", shortened(&left_out.what), left_out.why)),
        );
        self.configurations();
        self.environment();
        self.rounds();
        self.method();
        self.text.push_str("</main>\n</body>\n</html>\n");
        self.text
    }

    fn labels(&mut self) {
        let has = |accelerator| {
            self.result
                .cells
                .iter()
                .any(|cell| cell.accelerator == accelerator)
        };
        let mut labels = Vec::new();
        if has(Accelerator::Tcg) {
            labels.push("TCG: emulated processors");
        }
        if has(Accelerator::Kvm) {
            labels.push("KVM");
        }
        if self
            .result
            .rounds
            .iter()
            .any(|round| !round.disturbances.is_empty())
        {
            labels.push("machine was not quiet");
        }
        if labels.is_empty() {
            return;
        }
        let items: String = labels
            .iter()
            .map(|label| format!("<li>{label}</li>"))
            .collect();
        self.text
            .push_str(&format!("<ul class='labels'>{items}</ul>\n"));
    }

    fn list(&mut self, title: &str, items: impl Iterator<Item = String>) {
        let items: String = items
            .map(|item| format!("<li>{}</li>\n", escape(&item)))
            .collect();
        if !items.is_empty() {
            self.text.push_str(&format!(
                "<section>\n<h2>{title}</h2>\n<ul>\n{items}</ul>\n</section>\n"
            ));
        }
    }

    fn group(&mut self, group: &Group<'_>) {
        self.text.push_str(&format!(
            "<section>\n<h2>{}, {}</h2>\n",
            escape(&group.workload),
            group.phase.name()
        ));
        if self.detail > Detail::Least {
            self.ratios(group);
        }
        self.table(group);
        if self.detail >= Detail::Latencies {
            self.latencies(group);
        }
        if self.detail == Detail::All {
            self.courses(group);
        }
        self.text.push_str("</section>\n");
    }

    /// Ratios with intervals, or plain figures where nothing is compared.
    fn ratios(&mut self, group: &Group<'_>) {
        // Of too few rounds nothing is drawn: what may not be concluded is not to be seen either.
        let is_drawn = |comparison: &&Comparison| comparison.verdict != Verdict::TooFewRounds;
        let comparisons = group
            .rows
            .iter()
            .filter_map(|row| row.cell.comparison.as_ref());
        let intervals = comparisons
            .filter(is_drawn)
            .filter_map(|comparison| comparison.interval);
        let ends = intervals.flat_map(|interval| [interval.low, interval.ratio, interval.high]);
        let Some(axis) = Axis::of(ends.chain([1.0])).filter(|_| {
            let mut comparisons = group
                .rows
                .iter()
                .filter_map(|row| row.cell.comparison.as_ref());
            comparisons.any(|comparison| is_drawn(&comparison))
        }) else {
            return self.values(group);
        };
        let against = baseline_name(self.result, group).unwrap_or("its baseline");
        // Two digits behind the point, and none that say nothing.
        let confidence = ((1.0 - self.result.alpha) * 1e4).round() / 100.0;
        self.text.push_str(&format!(
            "<figure>\n<figcaption>Speed against {}: the bar is the ratio, the line its {confidence} % interval; \
             right of 1 is faster.</figcaption>\n",
            escape(against)
        ));
        for row in &group.rows {
            let Some(comparison) = &row.cell.comparison else {
                self.row(
                    row.configuration,
                    "",
                    &format!("{} ({})", row.verdict, row.median),
                );
                continue;
            };
            let interval = comparison.interval.filter(|_| is_drawn(&comparison));
            let drawn = interval.map_or_else(String::new, |interval| {
                svg::ratio(&interval, comparison.verdict, axis)
            });
            let value = format!("<b>{}</b> {}", row.ratio, row.verdict);
            self.row(row.configuration, &drawn, &value);
        }
        self.axis(axis, |value| value.to_string());
        self.text.push_str("</figure>\n");
    }

    fn values(&mut self, group: &Group<'_>) {
        let of = |row: &Row<'_>| {
            row.cell
                .summary
                .as_ref()
                .map_or(0.0, |summary| summary.median)
        };
        let largest = group.rows.iter().map(of).fold(0.0, f64::max);
        self.text
            .push_str("<figure>\n<figcaption>Median; more is faster.</figcaption>\n");
        for row in &group.rows {
            self.row(
                row.configuration,
                &svg::value(of(row), largest),
                &row.median,
            );
        }
        self.text.push_str("</figure>\n");
    }

    /// One row of a chart: a name, a picture, and the picture's values as text (which may hold markup of ours).
    fn row(&mut self, name: &str, picture: &str, value: &str) {
        self.text.push_str(&format!(
            "<div class='row'><span class='name'>{}</span><span class='picture'>{picture}</span>\
             <span class='value'>{value}</span></div>\n",
            escape(name)
        ));
    }

    fn axis(&mut self, axis: Axis, label: impl Fn(f64) -> String) {
        let labels: String = axis
            .labels()
            .iter()
            .map(|(value, place)| {
                format!("<span style='left:{place:.1}%'>{}</span>", label(*value))
            })
            .collect();
        self.text.push_str(&format!(
            "<div class='row axis' aria-hidden='true'><span class='name'></span>\
             <span class='picture'>{labels}</span><span class='value'></span></div>\n"
        ));
    }

    fn table(&mut self, group: &Group<'_>) {
        let percentiles = percentiles_of(group.rows.iter().map(|row| &row.cell.latency_ns));
        let has_sync = group
            .rows
            .iter()
            .any(|row| !row.cell.sync_latency_ns.is_empty());
        let mut heads = vec![
            "median".to_owned(),
            "varies".to_owned(),
            "rounds".to_owned(),
        ];
        heads.extend(
            percentiles
                .iter()
                .map(|percentile| format!("p{percentile}")),
        );
        if has_sync {
            heads.push("p99 of flushes".to_owned());
        }
        let head: String = heads
            .iter()
            .map(|head| format!("<th scope='col'>{head}</th>"))
            .collect();
        self.text.push_str(&format!(
            "<table>\n<thead><tr><th scope='col'>configuration</th>{head}</tr></thead>\n<tbody>\n"
        ));
        for row in &group.rows {
            let mut cells = vec![
                row.median.clone(),
                row.variation.clone(),
                row.cell.values.len().to_string(),
            ];
            let time =
                |value: Option<&f64>| value.map_or_else(String::new, |ns| figures::time(*ns));
            cells.extend(
                percentiles
                    .iter()
                    .map(|percentile| time(row.cell.latency_ns.get(percentile))),
            );
            if has_sync {
                cells.push(time(row.cell.sync_latency_ns.get("99")));
            }
            let cells: String = heads
                .iter()
                .zip(&cells)
                .map(|(head, cell)| format!("<td data-head='{head}'>{cell}</td>"))
                .collect();
            self.text.push_str(&format!(
                "<tr><th scope='row'>{}</th>{cells}</tr>\n",
                escape(row.configuration)
            ));
        }
        self.text.push_str("</tbody>\n</table>\n");
    }

    fn latencies(&mut self, group: &Group<'_>) {
        let all = group
            .rows
            .iter()
            .flat_map(|row| row.cell.latency_ns.values().copied());
        let Some(axis) = Axis::of(all) else {
            return;
        };
        self.text.push_str(
            "<figure>\n<figcaption>Latency of requests: a tick for each percentile, the higher the rarer.</figcaption>\n",
        );
        for row in &group.rows {
            let latencies = &row.cell.latency_ns;
            if latencies.is_empty() {
                continue;
            }
            let texts: Vec<String> = percentiles_of(std::iter::once(latencies))
                .iter()
                .map(|percentile| {
                    let time = figures::time(latencies[percentile]);
                    format!("<span class='whole'>p{percentile} {time}</span>")
                })
                .collect();
            let picture = svg::percentiles(latencies, axis);
            self.row(row.configuration, &picture, &texts.join(" · "));
        }
        self.axis(axis, figures::round_time);
        self.text.push_str("</figure>\n");
    }

    fn courses(&mut self, group: &Group<'_>) {
        // One point is no course.
        let rows = || group.rows.iter().filter(|row| row.cell.series.len() > 1);
        let points = rows().flat_map(|row| &row.cell.series);
        let largest = points.map(|point| point.iops).fold(0.0, f64::max);
        if largest <= 0.0 {
            return;
        }
        self.text.push_str(
            "<figure>\n<figcaption>Course of one sample, the middle one: requests per second over its time, from 0.</figcaption>\n",
        );
        for row in rows() {
            let series = &row.cell.series;
            let Some(last) = series.last() else {
                continue;
            };
            let lowest = series
                .iter()
                .map(|point| point.iops)
                .fold(f64::INFINITY, f64::min);
            let highest = series.iter().map(|point| point.iops).fold(0.0, f64::max);
            let value = format!(
                "{} to {} in {:.1} s",
                figures::figure(lowest, Metric::Iops),
                figures::figure(highest, Metric::Iops),
                last.seconds
            );
            self.row(row.configuration, &svg::course(series, largest), &value);
        }
        self.text.push_str("</figure>\n");
    }

    fn configurations(&mut self) {
        self.text.push_str("<section>\n<h2>Configurations</h2>\n");
        for (index, configuration) in self.result.header.plan.configurations.iter().enumerate() {
            if self.text.len() > MOST_BYTES * 9 / 10 {
                self.text.push_str("<p>The JSON result has the rest.</p>\n");
                break;
            }
            self.configuration(index, configuration);
        }
        self.text.push_str("</section>\n");
    }

    fn configuration(&mut self, index: usize, configuration: &ConfigurationRecord) {
        let factors: Vec<String> = configuration
            .factors
            .iter()
            .filter(|(factor, _)| *factor != "name")
            .map(|(factor, value)| format!("{factor}={value}"))
            .collect();
        self.text.push_str(&format!(
            "<h3>{}</h3>\n<p>{}. {}{}</p>\n",
            escape(&configuration.name),
            escape(&factors.join(", ")),
            figures::bytes(configuration.size_bytes),
            if configuration.creation.is_empty() {
                ".".to_owned()
            } else {
                format!("; {}.", escape(&configuration.creation))
            },
        ));
        if configuration.findings.is_empty() {
            self.text
                .push_str("<p>The linter has nothing to say of it.</p>\n");
        } else {
            let items: String = configuration
                .findings
                .iter()
                .map(|finding| {
                    let severity = match finding.severity {
                        FindingSeverity::Error => "error",
                        FindingSeverity::Warning => "warning",
                        FindingSeverity::Advice => "advice",
                    };
                    format!(
                        "<li>{severity}: {} <code>{}</code></li>\n",
                        escape(&finding.title),
                        escape(&finding.rule)
                    )
                })
                .collect();
            self.text
                .push_str(&format!("<p>The linter says:</p>\n<ul>\n{items}</ul>\n"));
        }
        if self.detail < Detail::All {
            return;
        }
        let sample = self
            .result
            .samples
            .iter()
            .find(|sample| self.result.header.plan.cells[sample.cell.0].configuration == index);
        let commands: Vec<String> = sample
            .into_iter()
            .flat_map(|sample| &sample.measurement.commands)
            .map(|command| escape(&command.argv.join(" ")))
            .collect();
        self.text.push_str(&format!(
            "<details><summary>Disk and commands</summary>\n<pre>{}</pre>\n{}</details>\n",
            escape(configuration.disk_xml.trim_end()),
            commands
                .iter()
                .map(|command| format!("<pre>{command}</pre>\n"))
                .collect::<String>(),
        ));
    }

    fn environment(&mut self) {
        let header = &self.result.header;
        let mut pairs: Vec<(String, String)> = vec![
            ("vmdisk".to_owned(), header.vmdisk.clone()),
            ("plan".to_owned(), format!("SHA-256 {}", header.plan_hash)),
        ];
        if let Some(hash) = &header.facts_hash {
            pairs.push(("facts of the host".to_owned(), format!("SHA-256 {hash}")));
        }
        for (engine, versions) in &header.versions {
            let programs: Vec<String> = versions
                .iter()
                .map(|(program, version)| with_version(program, version))
                .collect();
            pairs.push((
                format!("engine {engine}"),
                format!("{}; measures {}", programs.join(", "), engine.measures()),
            ));
        }
        pairs.extend(header.environment.clone());
        let rows: String = pairs
            .iter()
            .map(|(what, value)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(what), escape(value)))
            .collect();
        self.text.push_str(&format!(
            "<section>\n<h2>Where</h2>\n<dl>\n{rows}</dl>\n</section>\n"
        ));
    }

    fn rounds(&mut self) {
        let rows: String = self
            .result
            .rounds
            .iter()
            .map(|round| {
                let name = match round.round {
                    0 => "warm-up".to_owned(),
                    number => number.to_string(),
                };
                let disturbances = if round.disturbances.is_empty() {
                    "quiet".to_owned()
                } else {
                    escape(&round.disturbances.join("; "))
                };
                format!(
                    "<tr><th scope='row'>{name}</th><td data-head='began'>{}</td>\
                     <td data-head='control'>{:.1} M steps/s</td><td data-head='machine'>{disturbances}</td></tr>\n",
                    figures::duration(round.at_seconds),
                    round.control / 1e6,
                )
            })
            .collect();
        self.text.push_str(&format!(
            "<section>\n<h2>Rounds</h2>\n<table>\n<thead><tr><th scope='col'>round</th><th scope='col'>began</th>\
             <th scope='col'>control</th><th scope='col'>machine</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</section>\n"
        ));
    }

    fn method(&mut self) {
        self.text.push_str(
            "<section>\n<h2>How this was measured</h2>\n<p>Every round measures each cell once, in an order that the \
             seed decides; each second round has the order of the one before backwards. A ratio is that of a cell and \
             its baseline in the same round. Shown are the geometric mean of the ratios and the interval of Student's t \
             on their logarithms; a run that repeats itself until it is precise shares the probability to be wrong out \
             among its looks. Where the interval includes 1, no difference is shown. No sample is deleted.</p>\n</section>\n",
        );
    }
}

/// The percentiles that some of the rows have, by their size.
fn percentiles_of<'a>(
    rows: impl Iterator<Item = &'a std::collections::BTreeMap<String, f64>>,
) -> Vec<String> {
    let mut all: Vec<String> = rows
        .flat_map(|latencies| latencies.keys().cloned())
        .collect();
    let number = |text: &String| text.parse::<f64>().unwrap_or(0.0);
    all.sort_by(|a, b| number(a).total_cmp(&number(b)).then_with(|| a.cmp(b)));
    all.dedup();
    all
}

/// A list of names that is too long for a page, cut.
fn shortened(text: &str) -> String {
    const MOST: usize = 600;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}… (the JSON result has all)", &text[..at]),
        None => text.to_owned(),
    }
}

/// Text that means itself in HTML, also in an attribute.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

const STYLE: &str = include_str!("style.css");
