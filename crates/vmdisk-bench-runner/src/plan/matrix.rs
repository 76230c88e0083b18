//! Plans written as YAML: factors and their values, or configurations by name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;
use serde_yaml::{Mapping, Value};
use vmdisk_model::Bytes;

use super::factors::{self, FACTORS, Limits, Meaning, Sorted, Words};
use super::{Access, Cell, CellId, Configuration, LeftOut, Load, Phase, Plan, Storage, Workload};
use crate::{EngineKind, Error, Place};

/// Largest plan that is read, in bytes.
pub const MAX_PLAN_BYTES: usize = 256 * 1024;

/// Most cells of a plan: each is measured six times at least.
const MOST_CELLS: usize = 1_000;

/// Most combinations of a matrix, before impossible ones are removed.
const MOST_COMBINATIONS: usize = 10_000;

/// Options of the user in addition to the plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wishes {
    /// Directories in which files are made; more than one makes the directory a factor.
    pub directories: Vec<PathBuf>,
    /// Size that the guest sees, instead of the plan's.
    pub size: Option<Bytes>,
    /// Seconds of each sample, instead of the plan's.
    pub seconds: Option<f64>,
    /// The engine of all configurations that run in QEMU, instead of the plan's.
    pub engine: Option<EngineKind>,
    /// Limits of the host and permissions of the user.
    pub limits: Limits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    version: u32,
    name: String,
    question: String,
    size: String,
    #[serde(default = "two")]
    seconds: f64,
    #[serde(default = "half")]
    ramp: f64,
    phases: Vec<Phase>,
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
    /// Fewest directories that the question needs.
    #[serde(default)]
    directories: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exclude {
    when: Mapping,
    because: String,
}

/// One requested configuration.
#[derive(Clone, Debug, Default)]
struct Combination {
    /// The factors whose values make its name.
    telling: Vec<String>,
    /// The factors that the configuration names itself.
    own: BTreeSet<String>,
    words: Words,
}

fn two() -> f64 {
    2.0
}

fn half() -> f64 {
    0.5
}

/// Reads a plan; `called` is what errors call the text.
///
/// # Errors
/// The first mistake of the syntax with its line, or all words that mean nothing.
pub fn read_plan(text: &str, called: &str, wishes: &Wishes) -> Result<Plan, Error> {
    let wrong = |message: String| Error::Malformed {
        place: Place {
            text: called.to_owned(),
            line: None,
        },
        message,
    };
    if text.len() > MAX_PLAN_BYTES {
        return Err(wrong(format!(
            "{} bytes, and {MAX_PLAN_BYTES} is the most that is read",
            text.len()
        )));
    }
    let file: File = serde_yaml::from_str(text).map_err(|error| Error::Malformed {
        place: Place {
            text: called.to_owned(),
            line: error.location().map(|location| location.line()),
        },
        message: error.to_string(),
    })?;
    if file.version != 1 {
        return Err(wrong(format!("expected version 1, found {}", file.version)));
    }
    Maker::new(&file, wishes).make().map_err(wrong)
}

/// Makes a plan of what was read.
struct Maker<'a> {
    file: &'a File,
    wishes: &'a Wishes,
    size: Bytes,
    mistakes: Vec<String>,
    /// Omissions, by reason.
    left_out: BTreeMap<String, Vec<String>>,
}

impl<'a> Maker<'a> {
    fn new(file: &'a File, wishes: &'a Wishes) -> Self {
        Maker {
            file,
            wishes,
            size: Bytes(0),
            mistakes: Vec::new(),
            left_out: BTreeMap::new(),
        }
    }

    fn make(mut self) -> Result<Plan, String> {
        self.size = self.disk_size()?;
        let wanted = self.file.directories;
        if self.wishes.directories.len() < wanted {
            return Err(format!(
                "{} compares directories and needs {wanted} of them: give --directory for each",
                self.file.name
            ));
        }
        let workloads = self.workloads();
        let combinations = self.combinations();
        if !self.mistakes.is_empty() {
            return Err(self.mistakes.join("; "));
        }
        let (configurations, engines) = self.configurations(combinations);
        let baseline = self.words(&self.file.baseline, "baseline");
        let (cells, without) = self.cells(&configurations, &engines, &workloads, baseline);
        if !self.mistakes.is_empty() {
            self.mistakes.sort();
            self.mistakes.dedup();
            return Err(self.mistakes.join("; "));
        }
        if cells.len() > MOST_CELLS {
            return Err(format!(
                "{} cells, and {MOST_CELLS} is the most that a plan may have",
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
        };
        plan.drop_unused();
        Ok(plan)
    }

    /// Size of each disk.
    fn disk_size(&self) -> Result<Bytes, String> {
        let text = &self.file.size;
        let size = self.wishes.size.map_or_else(|| Bytes::parse(text), Ok);
        match size {
            Ok(size) if size.0 >= 1 << 20 && size.0 % 4096 == 0 => Ok(size),
            Ok(size) => Err(format!(
                "size: {} bytes; a disk to measure has at least 1 MiB, in steps of 4 KiB",
                size.0
            )),
            Err(_) => Err(format!("size: `{text}` is not a size such as 256M")),
        }
    }

    /// Every configuration with its engine; the others are left out with the reason.
    fn configurations(
        &mut self,
        combinations: Vec<Combination>,
    ) -> (Vec<Configuration>, Vec<EngineKind>) {
        let mut configurations: Vec<Configuration> = Vec::new();
        let mut engines = Vec::new();
        let mut seen: BTreeMap<Words, String> = BTreeMap::new();
        for combination in combinations {
            let Some(used) = self.used(&combination, &seen) else {
                continue;
            };
            // A value that is not used is not in the name either.
            let name = factors::name_of(&used, &combination.telling);
            seen.insert(used.clone(), name.clone());
            match factors::meaning(name.clone(), &used, self.size, &self.wishes.limits) {
                Err(mistake) => self.mistakes.push(format!("{name}: {mistake}")),
                Ok(Meaning::Invalid(why)) => self.leave_out(name, &why),
                Ok(Meaning::Configuration(mut configuration, engine)) => {
                    let is_taken =
                        |name: &String| configurations.iter().any(|other| other.name == *name);
                    let mut number = 2;
                    while is_taken(&configuration.name) {
                        configuration.name = format!("{name}-{number}");
                        number += 1;
                    }
                    configurations.push(*configuration);
                    engines.push(engine);
                }
            }
        }
        (configurations, engines)
    }

    /// The words of a combination that its engine uses; `None` if it is left out or wrong.
    fn used(&mut self, combination: &Combination, seen: &BTreeMap<Words, String>) -> Option<Words> {
        let Combination {
            telling,
            own,
            words,
        } = combination;
        let in_full = factors::name_of(words, telling);
        if let Some(because) = self.excluded(words) {
            self.leave_out(in_full, because);
            return None;
        }
        let Sorted { used, ignored } = factors::sort(words)
            .map_err(|mistake| self.mistakes.push(mistake))
            .ok()?;
        let engine = words.get("engine").map_or("its engine", String::as_str);
        // A configuration is measured only if every factor that it names itself is used.
        let unheard: Vec<String> = ignored
            .iter()
            .filter(|(factor, _)| own.contains(*factor))
            .map(|(factor, value)| format!("{factor}={value}"))
            .collect();
        let why = if !unheard.is_empty() {
            format!("{engine} does not use {}", unheard.join(", "))
        } else if let Some(other) = seen.get(&used) {
            // Listed configurations have names of their own: the same twice is a test of the method.
            format!("{engine} would measure the same as for {other}")
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
        let seconds = self.wishes.seconds.unwrap_or(self.file.seconds);
        let ramp = self.file.ramp;
        if !(0.1..=3600.0).contains(&seconds) || !(0.0..=60.0).contains(&ramp) {
            self.mistakes
                .push("seconds: from 0.1 to 3600, and ramp from 0 to 60".to_owned());
        }
        let mut workloads: Vec<Workload> = Vec::new();
        for name in &self.file.workloads {
            match Workload::by_name(name, seconds, ramp) {
                Ok(workload) if !workloads.contains(&workload) => workloads.push(workload),
                Ok(_) => {}
                Err(mistake) => self.mistakes.push(mistake),
            }
        }
        workloads
    }

    /// Factors as words; mistakes are noted.
    fn words(&mut self, mapping: &Mapping, called: &str) -> Words {
        let mut words = Words::new();
        for (key, value) in mapping {
            let Some(key) = self.factor(key, called) else {
                continue;
            };
            match scalar(value) {
                Some(value) => {
                    words.insert(key, value);
                }
                None => self
                    .mistakes
                    .push(format!("{called}: {key} has more than one value")),
            }
        }
        words
    }

    fn factor(&mut self, key: &Value, called: &str) -> Option<String> {
        let word = key.as_str().unwrap_or_default();
        if FACTORS.iter().any(|(factor, _)| *factor == word) {
            return Some(word.to_owned());
        }
        let known: Vec<&str> = FACTORS.iter().map(|(factor, _)| *factor).collect();
        self.mistakes.push(format!(
            "{called}: `{word}` is not a factor; factors are {}",
            known.join(", ")
        ));
        None
    }

    /// The factors of the matrix with their values.
    fn axes(&mut self) -> Vec<(String, Vec<String>)> {
        let mut axes: Vec<(String, Vec<String>)> = Vec::new();
        for (key, value) in &self.file.matrix {
            let Some(key) = self.factor(key, "matrix") else {
                continue;
            };
            let values: Option<Vec<String>> = match value {
                Value::Sequence(values) => values.iter().map(scalar).collect(),
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Mapping(_)
                | Value::Tagged(_) => scalar(value).map(|value| vec![value]),
            };
            match values {
                Some(values) if !values.is_empty() => axes.push((key, values)),
                Some(_) | None => self
                    .mistakes
                    .push(format!("matrix: {key} has no values, or values of values")),
            }
        }
        axes
    }

    /// Every requested configuration, in order.
    fn combinations(&mut self) -> Vec<Combination> {
        let fixed = self.words(&self.file.fixed, "fixed");
        let mut axes = self.axes();
        let directories: Vec<String> = self
            .wishes
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
            if !words.contains_key("name") {
                self.mistakes
                    .push("configurations: each has a name".to_owned());
            }
            rows.push(Combination {
                telling: vec!["name".to_owned()],
                own: words.keys().cloned().collect(),
                words,
            });
        }
        if !directories.is_empty() {
            axes.retain(|(axis, _)| axis != "directory");
            axes.push(("directory".to_owned(), directories));
        }
        for (axis, values) in axes {
            if rows.len() * values.len() > MOST_COMBINATIONS {
                self.mistakes.push(format!(
                    "matrix: more than {MOST_COMBINATIONS} combinations"
                ));
                break;
            }
            let is_telling = values.len() > 1;
            rows = rows
                .iter()
                .flat_map(|row| {
                    let axis = &axis;
                    values.iter().map(move |value| {
                        let mut row = row.clone();
                        // A factor of the configuration overrides an axis.
                        if !row.words.contains_key(axis) {
                            row.words.insert(axis.clone(), value.clone());
                            if is_telling {
                                row.telling.push(axis.clone());
                            }
                        }
                        row
                    })
                })
                .collect();
        }
        for Combination { words, .. } in &mut rows {
            for (factor, value) in &fixed {
                words.entry(factor.clone()).or_insert_with(|| value.clone());
            }
            let is_qemus = words.get("engine").map(String::as_str) != Some("host-fio");
            if let (Some(engine), true) = (self.wishes.engine, is_qemus) {
                words.insert("engine".to_owned(), engine.name().to_owned());
            }
        }
        rows
    }

    fn excluded(&mut self, words: &Words) -> Option<&'a str> {
        let file = self.file;
        file.exclude.iter().find_map(|exclude| {
            let when = self.words(&exclude.when, "exclude");
            matches(words, &when).then_some(exclude.because.as_str())
        })
    }

    /// Every cell with its baseline, and the combinations that would measure nothing.
    fn cells(
        &mut self,
        configurations: &[Configuration],
        engines: &[EngineKind],
        workloads: &[Workload],
        baseline: Words,
    ) -> (Vec<Cell>, Vec<LeftOut>) {
        let mut cells = Vec::new();
        let mut without = BTreeSet::new();
        for (workload_index, workload) in workloads.iter().enumerate() {
            for phase in &self.file.phases {
                for (index, configuration) in configurations.iter().enumerate() {
                    if let Some(why) = senseless(configuration, workload, *phase) {
                        without
                            .insert((format!("{} in phase {}", workload.name, phase.name()), why));
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
                    .map(|(factor, value)| format!("{factor}={value}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ));
        }
        let without = without
            .into_iter()
            .map(|(what, why)| LeftOut {
                what,
                why: why.to_owned(),
            })
            .collect();
        (cells, without)
    }
}

/// Which configuration another is divided by: of those with the baseline's factors, the configuration that
/// has most other factors in common; itself, if it is a baseline.
fn baseline_of(configurations: &[Configuration], index: usize, baseline: &Words) -> Option<usize> {
    let own = &configurations[index].factors;
    if matches(own, baseline) {
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
        .filter(|(_, other)| matches(&other.factors, baseline))
        // The first of equals, so that the order of the plan decides.
        .max_by_key(|(at, other)| (alike(other), usize::MAX - at))
        .map(|(at, _)| at)
}

fn matches(words: &Words, wanted: &Words) -> bool {
    wanted
        .iter()
        .all(|(factor, value)| words.get(factor) == Some(value))
}

/// Why a combination of storage, workload and phase asks nothing.
fn senseless(
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
        (Phase::FirstTouch, _) if reads => {
            Some("reading what was never written measures nothing: no data is fetched")
        }
        (Phase::FirstTouch, Storage::Device { .. }) => {
            Some("a whole device has no first touch of its own")
        }
        (Phase::FirstTouch, Storage::File { .. } | Storage::ThinVolume { .. })
        | (Phase::Steady, _) => None,
    }
}

/// A value as a word.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(value) => Some(value.to_string()),
        Value::String(value) => Some(value.clone()),
        Value::Null | Value::Sequence(_) | Value::Mapping(_) | Value::Tagged(_) => None,
    }
}
