//! Plans in YAML: factors and their values, or configurations by name.

use std::collections::btree_map::Entry::Vacant;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;
use vmdisk_document::{Entry, Value, from_node, read_yaml};
use vmdisk_model::Bytes;
use vmdisk_source::{LineIndex, Span};

use super::factor::{self, Factor, Words};
use super::limits::{Limits, NoMeaning};
use super::meaning::meaning;
use super::{
    Access, Cell, CellId, Configuration, LeftOut, Load, NamedPair, Phase, Plan, Storage, Workload,
};
use crate::{EngineKind, Error};

/// Maximum size of a plan, in bytes.
pub const MAX_PLAN_BYTES: usize = 256 * 1024;

/// Maximum number of values of a plan; aliases count at each use.
const MAX_VALUES: usize = 50_000;

/// Maximum number of cells of a plan: each is measured at least six times.
const MAX_CELLS: usize = 1_000;

/// Maximum number of times that storage is filled.
const MAX_FILLS: u32 = 10;

/// Maximum number of combinations of a matrix, before impossible ones are removed.
const MAX_COMBINATIONS: usize = 10_000;

/// Options of the user in addition to the plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanOptions {
    /// Directories in which files are created; several directories become a factor.
    pub directories: Vec<PathBuf>,
    /// Size that the guest sees, instead of the plan's.
    pub size: Option<Bytes>,
    /// Seconds of each sample, instead of the plan's.
    pub seconds: Option<f64>,
    /// Workloads by their names, instead of the plan's; empty for those.
    pub workloads: Vec<String>,
    /// The engine of all configurations that use QEMU, instead of the plan's.
    pub engine: Option<EngineKind>,
    /// Limits of the host and permissions of the user.
    pub limits: Limits,
}

#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a group of keys such as `version` and `configurations`"
)]
struct PlanFile {
    version: u32,
    name: String,
    question: String,
    size: String,
    #[serde(default = "two")]
    seconds: f64,
    #[serde(default = "half")]
    ramp: f64,
    phases: Vec<Phase>,
    /// Number of times that steady storage is written before it is measured.
    #[serde(default = "one")]
    fills: u32,
    workloads: Vec<String>,
    /// Factors of the baselines; by default the first configuration is the baseline.
    #[serde(default)]
    baseline: Mapping,
    #[serde(default)]
    fixed: Mapping,
    #[serde(default)]
    matrix: Mapping,
    #[serde(default)]
    configurations: Vec<Mapping>,
    #[serde(default)]
    exclude: Vec<Exclude>,
    /// Minimum number of directories that the question needs.
    #[serde(default)]
    directories: usize,
    /// Configurations that are also compared with each other, by their names without a directory.
    #[serde(default)]
    pairs: Vec<NamedPair>,
}

#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a group of the keys `when` and `because`"
)]
struct Exclude {
    when: Mapping,
    because: String,
}

/// Factors and their values, in the order of the plan.
#[derive(Deserialize, Default)]
#[serde(try_from = "Value")]
struct Mapping(Vec<Entry>);

impl TryFrom<Value> for Mapping {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        if let Value::Map(members) = value {
            Ok(Mapping(members))
        } else {
            Err("expected factors with their values")
        }
    }
}

/// One requested configuration.
#[derive(Clone, Debug, Default)]
struct Combination {
    /// The factors that its name is made of.
    naming: Vec<Factor>,
    /// The factors set by the configuration itself.
    own: BTreeSet<Factor>,
    words: Words,
}

impl Combination {
    /// Sets a factor from an axis; a factor of the configuration overrides an axis.
    fn with(mut self, axis: Factor, value: &str, is_naming: bool) -> Self {
        if let Vacant(word) = self.words.entry(axis) {
            word.insert(value.to_owned());
            if is_naming {
                self.naming.push(axis);
            }
        }
        self
    }

    /// Its name without its directory.
    fn name(&self, words: &Words) -> String {
        let naming = self.naming.iter().copied();
        let naming: Vec<Factor> = naming.filter(|it| *it != Factor::Directory).collect();
        factor::name_of(words, &naming)
    }
}

fn one() -> u32 {
    1
}

fn two() -> f64 {
    2.0
}

fn half() -> f64 {
    0.5
}

/// Parses a plan; `called` is its name in errors.
///
/// # Errors
/// The first syntax error with its line, or all invalid values.
pub fn read_plan(text: &str, called: &str, options: &PlanOptions) -> Result<Plan, Error> {
    let wrong = |message: String| Error::malformed(called, None, message);
    if text.len() > MAX_PLAN_BYTES {
        return Err(wrong(format!(
            "a plan must be at most {MAX_PLAN_BYTES} bytes, found {}",
            text.len()
        )));
    }
    let malformed = |span: Span, message: String| {
        let line = LineIndex::new(text).position(text, span.start).line;
        Error::malformed(called, Some(line), message)
    };
    let document =
        read_yaml(text, MAX_VALUES).map_err(|error| malformed(error.span, error.message))?;
    let root = document.root;
    if let Some(member) = root.duplicate_key() {
        let message = format!("`{}` is set twice", member.key);
        return Err(malformed(member.key_span, message));
    }
    let (file, _) = from_node::<PlanFile>(&root).map_err(|error| {
        let message = match error.path {
            Some(path) => format!("{path}: {}", error.message),
            None => error.message,
        };
        malformed(error.span, message)
    })?;
    if file.version != 1 {
        return Err(wrong(format!("expected version 1, found {}", file.version)));
    }
    PlanBuilder::new(&file, options).make().map_err(wrong)
}

/// Builds a plan from its parsed file.
struct PlanBuilder<'a> {
    file: &'a PlanFile,
    options: &'a PlanOptions,
    size: Bytes,
    mistakes: Vec<String>,
    /// Omissions, by reason.
    left_out: BTreeMap<String, Vec<String>>,
    /// Names of all requested configurations, without directories.
    names: BTreeSet<String>,
    /// Factors of `fixed` that no configuration uses.
    unused: BTreeSet<Factor>,
}

impl<'a> PlanBuilder<'a> {
    fn new(file: &'a PlanFile, options: &'a PlanOptions) -> Self {
        PlanBuilder {
            file,
            options,
            size: Bytes(0),
            mistakes: Vec::new(),
            left_out: BTreeMap::new(),
            names: BTreeSet::new(),
            unused: BTreeSet::new(),
        }
    }

    fn make(mut self) -> Result<Plan, String> {
        self.size = self.disk_size()?;
        let wanted = self.file.directories;
        if self.options.directories.len() < wanted {
            return Err(format!(
                "{} compares {wanted} directories: set `--directory` for each",
                self.file.name
            ));
        }
        if !(1..=MAX_FILLS).contains(&self.file.fills) {
            return Err(format!("fills: expected 1 to {MAX_FILLS}"));
        }
        let workloads = self.workloads();
        let combinations = self.combinations();
        if !self.mistakes.is_empty() {
            return Err(self.mistakes.join("; "));
        }
        let (configurations, engines, names) = self.configurations(combinations);
        let pairs = self.pairs(&configurations, &names);
        let baseline = self.words(&self.file.baseline, "baseline");
        let (cells, without) = self.cells(&configurations, &engines, &workloads, baseline);
        if !self.mistakes.is_empty() {
            self.mistakes.sort();
            self.mistakes.dedup();
            return Err(self.mistakes.join("; "));
        }
        if cells.len() > MAX_CELLS {
            return Err(format!(
                "a plan must have at most {MAX_CELLS} cells, found {}",
                cells.len()
            ));
        }
        let mut left_out: Vec<LeftOut> = self
            .left_out
            .into_iter()
            .map(|(why, names)| LeftOut {
                what: names.join(", "),
                why,
            })
            .collect();
        left_out.extend(without);
        let mut plan = Plan {
            name: self.file.name.clone(),
            question: self.file.question.clone(),
            configurations,
            workloads,
            cells,
            left_out,
            pairs,
        };
        plan.drop_unused();
        Ok(plan)
    }

    /// Returns the size of each disk.
    fn disk_size(&self) -> Result<Bytes, String> {
        let text = &self.file.size;
        let size = self.options.size.map_or_else(|| Bytes::parse(text), Ok);
        match size {
            Ok(size) if size.0 >= 1 << 20 && size.0 % 4096 == 0 => Ok(size),
            Ok(size) => Err(format!(
                "size: {} bytes is invalid; expected a multiple of 4 KiB of at least 1 MiB",
                size.0
            )),
            Err(_) => Err(format!("size: `{text}` is not a size such as 256M")),
        }
    }

    /// Returns every possible configuration with its engine, and its name without its directory; the others are left
    /// out with the reason.
    fn configurations(
        &mut self,
        combinations: Vec<Combination>,
    ) -> (Vec<Configuration>, Vec<EngineKind>, Vec<String>) {
        let mut configurations: Vec<Configuration> = Vec::new();
        let mut engines = Vec::new();
        let mut names = Vec::new();
        let mut seen: BTreeMap<Words, String> = BTreeMap::new();
        for combination in combinations {
            self.names.insert(combination.name(&combination.words));
            let Some(used) = self.used(&combination, &seen) else {
                continue;
            };
            // An unused value must not be part of the name.
            let name = factor::name_of(&used, &combination.naming);
            seen.insert(used.clone(), name.clone());
            match meaning(name.clone(), &used, self.size, &self.options.limits) {
                Err(NoMeaning::Mistake(mistake)) => {
                    self.mistakes.push(format!("{name}: {mistake}"));
                }
                Err(NoMeaning::Impossible(why)) => self.leave_out(name, &why),
                Ok((mut configuration, engine)) => {
                    let is_taken =
                        |name: &String| configurations.iter().any(|other| other.name == *name);
                    let mut number = 2;
                    while is_taken(&configuration.name) {
                        configuration.name = format!("{name}-{number}");
                        number += 1;
                    }
                    configuration.fills = self.file.fills;
                    configurations.push(configuration);
                    engines.push(engine);
                    names.push(combination.name(&used));
                }
            }
        }
        (configurations, engines, names)
    }

    /// Returns the named pairs whose configurations are measured, for each directory.
    fn pairs(&mut self, configurations: &[Configuration], names: &[String]) -> Vec<NamedPair> {
        let mut pairs = Vec::new();
        for (one, other) in &self.file.pairs {
            let all = || configurations.iter().zip(names);
            for name in [one, other] {
                if !self.names.contains(name) && !names.contains(name) {
                    self.mistakes
                        .push(format!("pairs: no configuration is named {name}"));
                }
            }
            for (first, _) in all().filter(|(_, name)| *name == one) {
                let is_there = |it: &Configuration| {
                    let [here, there] = [first, it].map(|it| it.factors.get("directory"));
                    here.is_none() || there.is_none() || here == there
                };
                let others = all().filter(|(it, name)| *name == other && is_there(it));
                pairs.extend(others.map(|(it, _)| (first.name.clone(), it.name.clone())));
            }
        }
        pairs
    }

    /// Returns the factors of a combination that its engine uses; `None` if it is left out or invalid.
    fn used(&mut self, combination: &Combination, seen: &BTreeMap<Words, String>) -> Option<Words> {
        let Combination { naming, own, words } = combination;
        let in_full = factor::name_of(words, naming);
        if let Some(because) = self.excluded(words) {
            self.leave_out(in_full, because);
            return None;
        }
        let (used, ignored) = factor::sort(words)
            .map_err(|mistake| self.mistakes.push(mistake))
            .ok()?;
        let engine = words
            .get(&Factor::Engine)
            .map_or("its engine", String::as_str);
        // A configuration is measured only if all factors that it sets itself are used, and some one uses what is fixed.
        let unused: Vec<String> = ignored
            .iter()
            .filter(|(factor, _)| own.contains(*factor) || self.unused.contains(*factor))
            .map(|(factor, value)| format!("{}={value}", factor.word()))
            .collect();
        let why = if !unused.is_empty() {
            let unused = unused.join(", ");
            match words.get(&Factor::Backend).map(String::as_str) {
                Some(factor::SOCKET) => format!(
                    "{engine} does not use {unused} for a disk behind a socket, which another program opened"
                ),
                _ => format!("{engine} does not use {unused}"),
            }
        } else if let Some(other) = seen.get(&used) {
            // Listed configurations have their own names: measuring one twice is a test of the method.
            format!("{engine} would repeat the measurement of {other}")
        } else {
            return Some(used);
        };
        self.leave_out(in_full, &why);
        None
    }

    fn leave_out(&mut self, what: String, why: &str) {
        self.left_out.entry(why.to_owned()).or_default().push(what);
    }

    fn workloads(&mut self) -> Vec<Workload> {
        let seconds = self.options.seconds.unwrap_or(self.file.seconds);
        let ramp = self.file.ramp;
        if !(0.1..=3600.0).contains(&seconds) || !(0.0..=60.0).contains(&ramp) {
            self.mistakes
                .push("seconds must be from 0.1 to 3600, and ramp from 0 to 60".to_owned());
        }
        let mut workloads: Vec<Workload> = Vec::new();
        let asked = &self.options.workloads;
        for name in if asked.is_empty() {
            &self.file.workloads
        } else {
            asked
        } {
            match Workload::by_name(name, seconds, ramp) {
                Ok(workload) if !workloads.contains(&workload) => workloads.push(workload),
                Ok(_) => {}
                Err(mistake) => self.mistakes.push(mistake),
            }
        }
        workloads
    }

    /// Parses factors; mistakes are collected.
    fn words(&mut self, mapping: &Mapping, called: &str) -> Words {
        let mut words = Words::new();
        for Entry { key, node, .. } in &mapping.0 {
            let Some(factor) = self.factor(key, called) else {
                continue;
            };
            match scalar(&node.value) {
                Some(value) => {
                    words.insert(factor, value);
                }
                None => self
                    .mistakes
                    .push(format!("{called}: `{key}` must have a single value")),
            }
        }
        words
    }

    fn factor(&mut self, word: &str, called: &str) -> Option<Factor> {
        Factor::from_word(word)
            .map_err(|mistake| self.mistakes.push(format!("{called}: {mistake}")))
            .ok()
    }

    /// Returns the factors of the matrix with their values.
    fn axes(&mut self) -> Vec<(Factor, Vec<String>)> {
        let mut axes = Vec::new();
        for Entry { key, node, .. } in &self.file.matrix.0 {
            let Some(factor) = self.factor(key, "matrix") else {
                continue;
            };
            let values: Option<Vec<String>> = if let Value::List(values) = &node.value {
                values.iter().map(|item| scalar(&item.value)).collect()
            } else {
                scalar(&node.value).map(|value| vec![value])
            };
            match values {
                Some(values) if !values.is_empty() => axes.push((factor, values)),
                Some(_) | None => self
                    .mistakes
                    .push(format!("matrix: `{key}` needs a list of plain values")),
            }
        }
        axes
    }

    /// Returns every requested configuration, in order.
    fn combinations(&mut self) -> Vec<Combination> {
        let fixed = self.words(&self.file.fixed, "fixed");
        let mut axes = self.axes();
        let directories: Vec<String> = self
            .options
            .directories
            .iter()
            .map(|directory| directory.display().to_string())
            .collect();
        let mut rows: Vec<Combination> = Vec::new();
        if self.file.configurations.is_empty() {
            rows.push(Combination::default());
        }
        for mapping in &self.file.configurations {
            let words = self.words(mapping, "configurations");
            if !words.contains_key(&Factor::Name) {
                self.mistakes
                    .push("configurations: each needs a name".to_owned());
            }
            rows.push(Combination {
                naming: vec![Factor::Name],
                own: words.keys().copied().collect(),
                words,
            });
        }
        if !directories.is_empty() {
            axes.retain(|(axis, _)| *axis != Factor::Directory);
            axes.push((Factor::Directory, directories));
        }
        for (axis, values) in axes {
            if rows.len() * values.len() > MAX_COMBINATIONS {
                self.mistakes.push(format!(
                    "matrix: must have at most {MAX_COMBINATIONS} combinations"
                ));
                break;
            }
            let is_naming = values.len() > 1;
            rows = rows
                .iter()
                .flat_map(|row| {
                    let values = values.iter();
                    values.map(move |value| row.clone().with(axis, value, is_naming))
                })
                .collect();
        }
        for Combination { words, .. } in &mut rows {
            for (factor, value) in &fixed {
                words.entry(*factor).or_insert_with(|| value.clone());
            }
            let is_qemus = words.get(&Factor::Engine).map(String::as_str) != Some("host-fio");
            if let (Some(engine), true) = (self.options.engine, is_qemus) {
                words.insert(Factor::Engine, engine.name().to_owned());
            }
        }
        // The user's engine may use less of a plan than the plan's.
        if self.options.engine.is_none() {
            let is_ignored = |factor: &&Factor| {
                let ignored = |row: &Combination| {
                    factor::sort(&row.words).is_ok_and(|(_, ignored)| ignored.contains_key(*factor))
                };
                rows.iter().all(ignored)
            };
            self.unused = fixed.keys().filter(is_ignored).copied().collect();
        }
        rows
    }

    fn excluded(&mut self, words: &Words) -> Option<&'a str> {
        let file = self.file;
        file.exclude.iter().find_map(|exclude| {
            let when = self.words(&exclude.when, "exclude");
            let is_it = when
                .iter()
                .all(|(factor, value)| words.get(factor) == Some(value));
            is_it.then_some(exclude.because.as_str())
        })
    }

    /// Returns every cell with its baseline, and the combinations that would be meaningless.
    fn cells(
        &mut self,
        configurations: &[Configuration],
        engines: &[EngineKind],
        workloads: &[Workload],
        baseline: Words,
    ) -> (Vec<Cell>, Vec<LeftOut>) {
        let mut cells = Vec::new();
        let mut without: BTreeMap<(String, &str), Vec<&str>> = BTreeMap::new();
        for (workload_index, workload) in workloads.iter().enumerate() {
            let phases = self.file.phases.iter();
            let combinations = phases
                .flat_map(|phase| configurations.iter().enumerate().map(move |it| (phase, it)));
            for (phase, (index, configuration)) in combinations {
                if let Some(why) = meaningless(configuration, workload, *phase) {
                    let what = format!("{} in phase {}", workload.name, phase.name());
                    let names = without.entry((what, why)).or_default();
                    names.push(&configuration.name);
                    continue;
                }
                cells.push(Cell {
                    configuration: index,
                    workload: workload_index,
                    engine: engines[index],
                    phase: *phase,
                    baseline: None,
                });
            }
        }
        let baselines: Vec<Option<usize>> = (0..configurations.len())
            .map(|index| {
                if baseline.is_empty() {
                    Some(0)
                } else {
                    baseline_of(configurations, index, &baseline)
                }
            })
            .collect();
        for index in 0..cells.len() {
            let cell = cells[index];
            let Some(of) = baselines[cell.configuration].filter(|of| *of != cell.configuration)
            else {
                continue;
            };
            cells[index].baseline = cells
                .iter()
                .position(|other| {
                    other.configuration == of
                        && other.workload == cell.workload
                        && other.phase == cell.phase
                })
                .map(CellId);
        }
        if !baselines.iter().any(Option::is_some) && !configurations.is_empty() {
            self.mistakes.push(format!(
                "baseline: no configuration has {}",
                baseline
                    .iter()
                    .map(|(factor, value)| format!("{}={value}", factor.word()))
                    .collect::<Vec<_>>()
                    .join(", ")
            ));
        }
        let without = without
            .into_iter()
            .map(|((what, why), names)| LeftOut {
                what: match names.len() == configurations.len() {
                    true => what,
                    false => format!("{what} for {}", names.join(", ")),
                },
                why: why.to_owned(),
            })
            .collect();
        (cells, without)
    }
}

/// Returns the baseline of a configuration: of those with the baseline's factors, the one that has the most other
/// factors in common; a baseline is its own.
fn baseline_of(configurations: &[Configuration], index: usize, baseline: &Words) -> Option<usize> {
    let own = &configurations[index].factors;
    let is_baseline = |it: &Configuration| {
        let mut wanted = baseline.iter();
        wanted.all(|(factor, value)| it.factors.get(factor.word()) == Some(value))
    };
    if is_baseline(&configurations[index]) {
        return Some(index);
    }
    let alike = |other: &Configuration| {
        let shared = other.factors.iter();
        shared
            .filter(|(factor, value)| own.get(*factor) == Some(value))
            .count()
    };
    let candidates = configurations.iter().enumerate();
    candidates
        .filter(|(_, other)| is_baseline(other))
        // Of equal candidates the first wins, so that the plan's order decides.
        .max_by_key(|(at, other)| (alike(other), usize::MAX - at))
        .map(|(at, _)| at)
}

/// Returns why a combination of storage, workload and phase is meaningless.
fn meaningless(
    configuration: &Configuration,
    workload: &Workload,
    phase: Phase,
) -> Option<&'static str> {
    let reads = match &workload.load {
        Load::Blocks(load) => matches!(
            load.access,
            Access::SequentialRead | Access::RandomRead | Access::RandomMixed
        ),
        Load::InstallReplay(_) => false,
    };
    match (phase, &configuration.storage) {
        (Phase::FirstTouch, _) if reads => Some("reading unwritten storage fetches no data"),
        (Phase::FirstTouch, Storage::Device { .. }) => {
            Some("a device is not created for each sample, so it has no first touch")
        }
        (_, Storage::Existing { .. }) if workload.load.writes() => Some("what exists is only read"),
        (Phase::FirstTouch, Storage::Socket { .. }) => Some(
            "the disk behind a socket is not created for each sample, so it has no first touch",
        ),
        _ => None,
    }
}

/// Returns a value as a word.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Bool(value) => Some(value.to_string()),
        Value::Unsigned(value) => Some(value.to_string()),
        Value::Signed(value) => Some(value.to_string()),
        Value::Float(value) => Some(value.to_string()),
        Value::Text(value) => Some(value.clone()),
        Value::Null | Value::List(_) | Value::Map(_) => None,
    }
}
