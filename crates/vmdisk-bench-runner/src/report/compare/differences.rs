//! The differences between two runs, and the matching of their cells.

use std::collections::{BTreeMap, BTreeSet};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::report::figures;
use crate::{Accelerator, Amount, BenchResult, CellId, ConfigurationRecord, EngineKind, Phase};

/// One difference between two runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Difference {
    /// Its name.
    pub what: String,
    /// Its value in the first run.
    pub first: String,
    /// Its value in the second run.
    pub second: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} and {}", self.what, self.first, self.second)
    }
}

type Factors = BTreeMap<String, String>;

/// Returns the factors of a configuration, without its name.
fn factors(configuration: &ConfigurationRecord) -> Factors {
    let factors = configuration.factors.iter();
    factors
        .filter(|(factor, _)| *factor != "name")
        .map(|(factor, value)| (factor.clone(), value.clone()))
        .collect()
}

/// Finds the cells of two runs that are equal except for the studied factors.
pub(super) struct Matcher {
    /// Configurations of both runs.
    common: BTreeSet<Factors>,
    /// Factors in which the other configurations of the runs differ.
    studied: BTreeSet<String>,
}

/// The common properties of the cells of a pair.
type Key = (Option<String>, String, Phase, EngineKind, Factors);

impl Matcher {
    pub(super) fn new(first: &BenchResult, second: &BenchResult) -> Self {
        let all = |result: &BenchResult| -> BTreeSet<Factors> {
            let configurations = result.header.plan.configurations.iter();
            configurations.map(factors).collect()
        };
        let (a, b) = (all(first), all(second));
        let common: BTreeSet<Factors> = a.intersection(&b).cloned().collect();
        let (a, b) = (&a - &common, &b - &common);
        let names: BTreeSet<&String> = a.iter().chain(&b).flat_map(BTreeMap::keys).collect();
        let values = |all: &BTreeSet<Factors>, factor: &String| -> BTreeSet<Option<String>> {
            all.iter().map(|words| words.get(factor).cloned()).collect()
        };
        let studied = names
            .into_iter()
            .filter(|factor| {
                !a.is_empty() && !b.is_empty() && values(&a, factor) != values(&b, factor)
            })
            .cloned()
            .collect();
        Matcher { common, studied }
    }

    fn key(&self, result: &BenchResult, index: usize) -> Key {
        let plan = &result.header.plan;
        let cell = &plan.cells[index];
        let configuration = &plan.configurations[cell.configuration];
        let mut factors = factors(configuration);
        // A studied factor also changes names.
        let is_studied = !self.studied.is_empty() && !self.common.contains(&factors);
        let name = (!is_studied).then(|| configuration.name.clone());
        if is_studied {
            factors.retain(|factor, _| !self.studied.contains(factor));
        }
        (
            name,
            plan.workloads[cell.workload].name.clone(),
            cell.phase,
            cell.engine,
            factors,
        )
    }

    /// Returns matching cells of the first and the second run.
    pub(super) fn pairs(&self, first: &BenchResult, second: &BenchResult) -> Vec<(CellId, CellId)> {
        let mut others: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
        for index in 0..second.cells.len() {
            others
                .entry(self.key(second, index))
                .or_default()
                .push(index);
        }
        let mut pairs = Vec::new();
        for index in 0..first.cells.len() {
            // Several equal cells cannot be matched.
            if let Some([other]) = others.get(&self.key(first, index)).map(Vec::as_slice) {
                pairs.push((CellId(index), CellId(*other)));
            }
        }
        let seconds: Vec<CellId> = pairs.iter().map(|(_, b)| *b).collect();
        pairs.retain(|(_, b)| seconds.iter().filter(|other| *other == b).count() == 1);
        pairs
    }
}

/// Returns every difference between two runs that could affect the figures; programs of one package count once.
pub(super) fn differences(
    first: &BenchResult,
    second: &BenchResult,
    pairs: &[(CellId, CellId)],
) -> Vec<Difference> {
    let mut differences = BTreeSet::new();
    for (a, b) in pairs {
        cell_differences(first, second, a.0, b.0, &mut differences);
    }
    machine_differences(first, second, &mut differences);
    let mut grouped: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for Difference {
        what,
        first,
        second,
    } in differences
    {
        grouped.entry((first, second)).or_default().push(what);
    }
    let mut grouped: Vec<Difference> = grouped
        .into_iter()
        .map(|((first, second), what)| Difference {
            what: what.join(", "),
            first,
            second,
        })
        .collect();
    grouped.sort();
    grouped
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
    add(
        "fills of steady storage",
        one.fills.to_string(),
        other.fills.to_string(),
    );
    if same_factors
        && (&one.disk_xml, &one.guest_xml, &one.creation)
            != (&other.disk_xml, &other.guest_xml, &other.creation)
    {
        add(
            "disk or guest behind the factors",
            "one".to_owned(),
            "another".to_owned(),
        );
    }
    let (load_a, load_b) = (
        &plan_a.workloads[cell_a.workload],
        &plan_b.workloads[cell_b.workload],
    );
    if load_a != load_b {
        let amount = |amount: &Amount, ramp: f64| {
            let amount = match amount {
                Amount::Seconds(seconds) => format!("{seconds} s"),
                Amount::Operations(count) => format!("{count} requests"),
                Amount::Bytes(bytes) => figures::bytes(*bytes),
            };
            format!("{amount} after a ramp of {ramp} s")
        };
        add(
            "length of samples",
            amount(&load_a.amount, load_a.ramp_seconds),
            amount(&load_b.amount, load_b.ramp_seconds),
        );
    }
    let of = |result: &BenchResult, index: usize| match result.cells[index].accelerator {
        Accelerator::NoGuest => "none".to_owned(),
        Accelerator::Kvm => "KVM".to_owned(),
        Accelerator::Tcg => "TCG".to_owned(),
    };
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
