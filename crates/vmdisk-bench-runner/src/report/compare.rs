//! Two runs beside each other, if they differ in one thing only.

use std::collections::{BTreeMap, BTreeSet};

use crate::{BenchResult, ConfigurationRecord, Error, Interval, Verdict, unpaired_interval};

use super::figures;
use crate::method::{factor, none_shown};

/// One thing in which two runs differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// What differs.
    pub what: String,
    /// What it is in the first run.
    pub first: String,
    /// What it is in the second.
    pub second: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} and {}", self.what, self.first, self.second)
    }
}

/// A cell that both runs have.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// Its name in the first run.
    pub first: String,
    /// Its name in the second run.
    pub second: String,
    /// Median in the first run and in the second, with their unit.
    pub medians: (String, String),
    /// The second run divided by the first.
    pub interval: Option<Interval>,
    /// What may be said.
    pub verdict: Verdict,
}

/// Two runs beside each other.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoRuns {
    /// The one thing in which they differ; unset if the same was measured twice.
    pub studied: Option<Difference>,
    /// Every cell that both have.
    pub cells: Vec<Side>,
    /// Cells that only one of them has.
    pub unmatched: Vec<String>,
}

/// Compares two runs, the second against the first.
///
/// # Errors
/// If they differ in more than one thing, with all of them; or if they have no cell in common.
pub fn compare(first: &BenchResult, second: &BenchResult) -> Result<TwoRuns, Error> {
    let studied = factors_that_differ(first, second);
    let mut differences = BTreeSet::new();
    let pairs = pairs(first, second, &studied);
    if pairs.is_empty() {
        return Err(Error::Incomparable {
            differences: vec![
                "no cell of one has the same workload, phase, engine and configuration in the other".to_owned(),
            ],
        });
    }
    for (a, b) in &pairs {
        cell_differences(first, second, *a, *b, &mut differences);
    }
    machine_differences(first, second, &mut differences);
    // Programs of one package change together, and count once.
    let mut grouped: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for difference in &differences {
        let sides = (difference.first.clone(), difference.second.clone());
        grouped
            .entry(sides)
            .or_default()
            .push(difference.what.clone());
    }
    let mut grouped: Vec<Difference> = grouped
        .into_iter()
        .map(|((first, second), what)| Difference {
            what: what.join(", "),
            first,
            second,
        })
        .collect();
    if grouped.len() > 1 {
        grouped.sort();
        return Err(Error::Incomparable {
            differences: grouped.iter().map(ToString::to_string).collect(),
        });
    }
    let alpha = 1.0
        - first
            .header
            .settings
            .repetition
            .confidence
            .max(second.header.settings.repetition.confidence);
    let cells = pairs
        .iter()
        .map(|(a, b)| side(first, second, *a, *b, alpha))
        .collect();
    let of = |result: &BenchResult, used: &BTreeSet<usize>| {
        let cells = result.cells.iter().enumerate();
        let unmatched = cells.filter(|(index, _)| !used.contains(index));
        unmatched
            .map(|(_, cell)| cell.name.clone())
            .collect::<Vec<_>>()
    };
    let mut unmatched = of(first, &pairs.iter().map(|(a, _)| *a).collect());
    unmatched.extend(of(second, &pairs.iter().map(|(_, b)| *b).collect()));
    Ok(TwoRuns {
        studied: grouped.pop(),
        cells,
        unmatched,
    })
}

/// The factors whose values differ from run to run, if the runs have no configuration in common.
fn factors_that_differ(first: &BenchResult, second: &BenchResult) -> BTreeSet<String> {
    let all = |result: &BenchResult| -> BTreeSet<BTreeMap<String, String>> {
        let configurations = result.header.plan.configurations.iter();
        configurations
            .map(|configuration| without_name(configuration, &BTreeSet::new()))
            .collect()
    };
    let (a, b) = (all(first), all(second));
    if a.intersection(&b).next().is_some() {
        return BTreeSet::new();
    }
    let factors: BTreeSet<&String> = a.iter().chain(&b).flat_map(BTreeMap::keys).collect();
    let values =
        |all: &BTreeSet<BTreeMap<String, String>>, factor: &String| -> BTreeSet<Option<String>> {
            all.iter().map(|words| words.get(factor).cloned()).collect()
        };
    factors
        .into_iter()
        .filter(|factor| values(&a, factor) != values(&b, factor))
        .cloned()
        .collect()
}

fn without_name(
    configuration: &ConfigurationRecord,
    without: &BTreeSet<String>,
) -> BTreeMap<String, String> {
    let factors = configuration.factors.iter();
    factors
        .filter(|(factor, _)| *factor != "name" && !without.contains(*factor))
        .map(|(factor, value)| (factor.clone(), value.clone()))
        .collect()
}

/// Cells of the first and of the second run that are the same but for what is studied.
fn pairs(
    first: &BenchResult,
    second: &BenchResult,
    studied: &BTreeSet<String>,
) -> Vec<(usize, usize)> {
    let key = |result: &BenchResult, index: usize| {
        let plan = &result.header.plan;
        let cell = &plan.cells[index];
        let configuration = &plan.configurations[cell.configuration];
        // A studied factor changes names with it.
        let name = if studied.is_empty() {
            configuration.name.clone()
        } else {
            String::new()
        };
        let workload = plan.workloads[cell.workload].name.clone();
        (
            name,
            workload,
            cell.phase,
            cell.engine,
            without_name(configuration, studied),
        )
    };
    let mut others: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for index in 0..second.cells.len() {
        others.entry(key(second, index)).or_default().push(index);
    }
    let mut pairs = Vec::new();
    for index in 0..first.cells.len() {
        // Where several are alike nobody can say which belongs to which.
        if let Some([other]) = others.get(&key(first, index)).map(Vec::as_slice) {
            pairs.push((index, *other));
        }
    }
    let firsts: Vec<_> = pairs.iter().map(|(_, b)| *b).collect();
    pairs.retain(|(_, b)| firsts.iter().filter(|other| *other == b).count() == 1);
    pairs
}

fn cell_differences(
    first: &BenchResult,
    second: &BenchResult,
    a: usize,
    b: usize,
    differences: &mut BTreeSet<Difference>,
) {
    let (plan_a, plan_b) = (&first.header.plan, &second.header.plan);
    let (cell_a, cell_b) = (&plan_a.cells[a], &plan_b.cells[b]);
    let one = &plan_a.configurations[cell_a.configuration];
    let other = &plan_b.configurations[cell_b.configuration];
    let mut add = |what: &str, a: String, b: String| {
        if a != b {
            differences.insert(Difference {
                what: what.to_owned(),
                first: a,
                second: b,
            });
        }
    };
    let factors: BTreeSet<&String> = one.factors.keys().chain(other.factors.keys()).collect();
    let mut same_factors = true;
    for factor in factors.into_iter().filter(|factor| *factor != "name") {
        let of = |configuration: &ConfigurationRecord| {
            configuration
                .factors
                .get(factor)
                .cloned()
                .unwrap_or_else(|| "unset".to_owned())
        };
        same_factors &= of(one) == of(other);
        add(factor, of(one), of(other));
    }
    add(
        "size of disks",
        figures::bytes(one.size_bytes),
        figures::bytes(other.size_bytes),
    );
    if same_factors
        && (&one.disk_xml, &one.guest_xml, &one.creation)
            != (&other.disk_xml, &other.guest_xml, &other.creation)
    {
        add(
            "disk or guest that factors stand for",
            "one".to_owned(),
            "another".to_owned(),
        );
    }
    let (load_a, load_b) = (
        &plan_a.workloads[cell_a.workload],
        &plan_b.workloads[cell_b.workload],
    );
    if load_a != load_b {
        let amount = |amount: &crate::Amount, ramp: f64| format!("{amount:?} after {ramp} s");
        add(
            "length of samples",
            amount(&load_a.amount, load_a.ramp_seconds),
            amount(&load_b.amount, load_b.ramp_seconds),
        );
    }
    let of = |result: &BenchResult, index: usize| format!("{:?}", result.cells[index].accelerator);
    add("accelerator", of(first, a), of(second, b));
}

fn machine_differences(
    first: &BenchResult,
    second: &BenchResult,
    differences: &mut BTreeSet<Difference>,
) {
    let (one, other) = (&first.header, &second.header);
    let unset = || "unknown".to_owned();
    let mut add = |what: &str, a: Option<&String>, b: Option<&String>| {
        if a != b {
            differences.insert(Difference {
                what: what.to_owned(),
                first: a.cloned().unwrap_or_else(unset),
                second: b.cloned().unwrap_or_else(unset),
            });
        }
    };
    let keys: BTreeSet<&String> = one
        .environment
        .keys()
        .chain(other.environment.keys())
        .collect();
    for key in keys {
        add(key, one.environment.get(key), other.environment.get(key));
    }
    let engines: BTreeSet<_> = one
        .versions
        .keys()
        .filter(|engine| other.versions.contains_key(engine))
        .collect();
    for engine in engines {
        let (a, b) = (&one.versions[engine], &other.versions[engine]);
        let programs: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        for program in programs {
            add(program, a.get(program), b.get(program));
        }
    }
    let words = |does: bool| if does { "yes" } else { "no" }.to_owned();
    let (a, b) = (
        words(one.settings.has_warm_up),
        words(other.settings.has_warm_up),
    );
    add("warm-up", Some(&a), Some(&b));
}

fn side(first: &BenchResult, second: &BenchResult, a: usize, b: usize, alpha: f64) -> Side {
    let (one, other) = (&first.cells[a], &second.cells[b]);
    let values = |cell: &crate::CellResult| cell.values.values().copied().collect::<Vec<f64>>();
    let interval = unpaired_interval(&values(other), &values(one), alpha);
    let metric = first.metric(one.cell);
    let median = |cell: &crate::CellResult| {
        cell.summary.as_ref().map_or_else(
            || "not measured".to_owned(),
            |summary| figures::figure(summary.median, metric),
        )
    };
    Side {
        first: one.name.clone(),
        second: other.name.clone(),
        medians: (median(one), median(other)),
        verdict: Verdict::of(one.values.len().min(other.values.len()), interval),
        interval,
    }
}

impl TwoRuns {
    /// The comparison for a terminal.
    pub fn text(&self) -> String {
        let mut text = match &self.studied {
            Some(difference) => format!("studied: {difference}\n"),
            None => "studied: nothing differs, the same was measured twice\n".to_owned(),
        };
        for side in &self.cells {
            let name = if side.first == side.second {
                side.first.clone()
            } else {
                format!("{} / {}", side.first, side.second)
            };
            let ratio = side.interval.map_or_else(String::new, |interval| {
                format!(
                    "{} [{}, {}] ",
                    figures::ratio(interval.ratio),
                    figures::ratio(interval.low),
                    figures::ratio(interval.high)
                )
            });
            let words = match (side.verdict, side.interval) {
                (Verdict::Faster, Some(interval)) => format!("faster, {}", factor(interval.ratio)),
                (Verdict::Slower, Some(interval)) => format!("slower, {}", factor(interval.ratio)),
                (Verdict::NoDifferenceShown, Some(interval)) => {
                    none_shown(interval.largest_difference())
                }
                (_, _) => "too few rounds to tell".to_owned(),
            };
            text.push_str(&format!(
                "  {name}: {} and {}; {ratio}{words}\n",
                side.medians.0, side.medians.1
            ));
        }
        for name in &self.unmatched {
            text.push_str(&format!("  {name}: only one of them has it\n"));
        }
        text.push_str(
            "the runs were made at different times: what changed on the machine between them is in the ratios\n",
        );
        text
    }
}
