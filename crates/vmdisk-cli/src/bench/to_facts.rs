//! The figures of a run, as facts of the host.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;

use vmdisk::Facts;
use vmdisk::facts::{
    Fact, FsKind, HostIndex, MeasuredEffect, MeasuredFigure, MeasuredStorage, Quantity,
};
use vmdisk_bench_runner::{
    Accelerator, Access, BenchResult, CellResult, ConfigurationRecord, EngineKind, Interval, Load,
    Metric, Phase, Plan, Storage, Workload,
};

use super::result_file::{FACTS, RESULT, directory_of, read};
use crate::atomic;
use crate::facts_file::from_file;
use crate::input::bounded::{self, MAX_BYTES};
use crate::io::Io;
use crate::sanitize;
use crate::stop::{Stop, plain};

/// The chance that an interval misses the true figure.
const ALPHA: f64 = 0.05;

/// Adds what a run measured to a facts file of its host; a new file gets the facts of the run.
pub(super) fn write(run: &Path, file: &Path, io: &mut Io<'_>) -> Result<(), Stop> {
    let MeasuredRun {
        facts: own,
        measured,
        without,
    } = of_run(run)?;
    let paths = measured
        .iter()
        .filter_map(|it| it.path.value().map(String::as_str));
    let mut facts = facts_of(file, &own, paths)?;
    add(&mut facts, measured.clone());
    let text = facts.to_json();
    atomic::rewrite(file, |out| out.write_all(text.as_bytes()))
        .map_err(|error| Stop::file("write", file, error))?;
    let (stacks, figures) = (
        measured.len(),
        measured.iter().map(|it| it.figures.len()).sum::<usize>(),
    );
    io.say(&format!(
        "wrote {figures} figures of {stacks} configurations to {}\n",
        file.display()
    ));
    for why in without {
        io.say(&format!("left out: {}\n", sanitize::line(&why)));
    }
    Ok(())
}

/// Fails before a run if its figures could not be added to a facts file afterwards.
pub(super) fn check(file: &Path, own: &Facts, plan: &Plan, directory: &Path) -> Result<(), Stop> {
    let configurations = plan.configurations.iter();
    let storages = configurations.map(|it| &it.storage);
    let paths: Vec<&str> = storages
        .filter_map(|it| path_of(it, directory.to_str()))
        .collect();
    let host = HostIndex::new(own);
    if !paths.iter().any(|path| host.storage_of(path).is_some()) {
        return Err(no_figures(paths.into_iter(), &host));
    }
    facts_of(file, own, paths.into_iter()).map(|_| ())
}

/// The facts in a file that figures are added to, which describe their storage; those of the run without a file.
fn facts_of<'a>(
    file: &Path,
    own: &Facts,
    mut paths: impl Iterator<Item = &'a str>,
) -> Result<Facts, Stop> {
    // The facts of the run are evidence of it.
    atomic::refuse(file).map_err(|error| Stop::file("write", file, error))?;
    if !file.exists() {
        return Ok(own.clone());
    }
    let facts = rewritable(file)?;
    let [index, here] = [&facts, own].map(HostIndex::new);
    let is_described = |path: &str| {
        let [there, here] = [&index, &here].map(|it| it.storage_of(path));
        here.is_none_or(|here| {
            there.is_some_and(|it| (it.fstype, it.devices) == (here.fstype, here.devices))
        })
    };
    if let Some(path) = paths.find(|path| !is_described(path)) {
        let what = format!(
            "{} does not describe the storage of {path} that is measured",
            file.display()
        );
        return Err(
            Stop::new(what).help("collect its facts with `vmdisk facts`, or name a new file")
        );
    }
    let names = |facts: &Facts| facts.host.id.value().cloned();
    if let (Some(one), Some(other)) = (names(&facts), names(own))
        && one != other
    {
        return Err(Stop::new(format!(
            "{} is about another host",
            file.display()
        )));
    }
    Ok(facts)
}

/// Reads a facts file of which nothing is lost when it is written again.
fn rewritable(file: &Path) -> Result<Facts, Stop> {
    // An output may replace it: this one does.
    let bytes = bounded::open_regular(file).and_then(|it| bounded::contents(it, MAX_BYTES));
    let bytes = bytes.map_err(|error| Stop::file("read", file, plain(&error)))?;
    let text = String::from_utf8_lossy(&bytes);
    let lost = |why: &dyn Display| {
        Stop::file("write", file, why)
            .help("name a new file, and copy what you need; facts are written as JSON")
    };
    let read = Facts::from_json(&text).map_err(|error| match Facts::parse(&text) {
        Ok(_) => lost(&"it is YAML, whose comments would be lost"),
        Err(_) => Stop::file("read", file, error).help("`vmdisk facts` writes such a file"),
    })?;
    match read.warnings.first() {
        Some(warning) => Err(lost(&format!("it would lose something: {warning}"))),
        None => Ok(read.facts),
    }
}

/// Adds measurements to facts; older ones of the same conditions make room.
pub(crate) fn add(facts: &mut Facts, measured: Vec<MeasuredStorage>) {
    let conditions = |it: &MeasuredStorage| MeasuredStorage {
        measured_at: Fact::NotCollected,
        path: Fact::NotCollected,
        figures: Vec::new(),
        effects: Vec::new(),
        ..it.clone()
    };
    for new in &measured {
        for old in facts
            .measured
            .iter_mut()
            .filter(|old| conditions(old) == conditions(new))
        {
            old.figures.retain(|it| new.figure(it.quantity).is_none());
            let is_new = |it: &MeasuredEffect| {
                new.effects
                    .iter()
                    .any(|other| (&other.rule, &other.workload) == (&it.rule, &it.workload))
            };
            old.effects.retain(|it| !is_new(it));
        }
    }
    facts
        .measured
        .retain(|it| !it.figures.is_empty() || !it.effects.is_empty());
    facts.measured.extend(measured);
}

/// A run, with what facts can hold of it.
pub(crate) struct MeasuredRun {
    /// The facts of the host.
    facts: Facts,
    /// What was measured.
    pub(crate) measured: Vec<MeasuredStorage>,
    /// The reasons why other figures have no place.
    without: Vec<String>,
}

/// The facts of a run, and what it measured.
pub(crate) fn of_run(run: &Path) -> Result<MeasuredRun, Stop> {
    let result = read(run)?;
    let facts = directory_of(run).join(FACTS);
    let facts = from_file(&facts)
        .map_err(|stop| stop.help(format!("name the directory of a run, with its {RESULT}")))?
        .0;
    let host = HostIndex::new(&facts);
    let measured = measured(&result, &host);
    let configurations = result.header.plan.configurations.iter();
    let directory = result.header.request["directory"].as_str();
    let paths = configurations.filter_map(|it| path_of(&it.storage, directory));
    if measured.is_empty() {
        return Err(no_figures(paths, &host));
    }
    let without = without_place(paths, &host);
    drop(host);
    Ok(MeasuredRun {
        facts,
        measured,
        without,
    })
}

/// The error of a run without figures for facts.
fn no_figures<'a>(paths: impl Iterator<Item = &'a str>, host: &HostIndex<'_>) -> Stop {
    let stop = Stop::new("the run has no figures for facts");
    let without = without_place(paths, host);
    match without.is_empty() {
        true => stop.help("they need two rounds of direct requests to a file or device that the facts of the run describe"),
        false => stop.help(without.join("; ")),
    }
}

/// The reasons why figures of a run have no place in facts.
fn without_place<'a>(paths: impl Iterator<Item = &'a str>, host: &HostIndex<'_>) -> Vec<String> {
    let paths: BTreeSet<&str> = paths.collect();
    let on_loop = |path| {
        let device = host.loop_device_under(path)?;
        Some(format!(
            "{path} is on the loop device {}, whose figures are not those of the drives below it",
            device.name()
        ))
    };
    paths.into_iter().filter_map(on_loop).collect()
}

/// The figures and effects of each configuration.
fn measured(result: &BenchResult, host: &HostIndex<'_>) -> Vec<MeasuredStorage> {
    let configurations = 0..result.header.plan.configurations.len();
    let pairs =
        configurations.flat_map(|it| EngineKind::ALL.iter().map(move |engine| (it, *engine)));
    pairs
        .filter_map(|(configuration, engine)| of_configuration(result, configuration, engine, host))
        .filter(|it| !it.figures.is_empty() || !it.effects.is_empty())
        .collect()
}

fn of_configuration(
    result: &BenchResult,
    number: usize,
    engine: EngineKind,
    host: &HostIndex<'_>,
) -> Option<MeasuredStorage> {
    let plan = &result.header.plan;
    let configuration = &plan.configurations[number];
    let cells = result
        .cells
        .iter()
        .map(|cell| (cell, &plan.cells[cell.cell.0]));
    let mut cells = cells
        .filter(|(_, planned)| (planned.configuration, planned.engine) == (number, engine))
        .peekable();
    let (first, _) = cells.peek().filter(|_| !configuration.is_buffered)?;
    let accelerator = match first.accelerator {
        Accelerator::NoGuest => Fact::Absent,
        Accelerator::Kvm => Fact::Known("kvm".to_owned()),
        Accelerator::Tcg => Fact::Known("tcg".to_owned()),
    };
    let mut storage = storage_of(result, configuration, engine, host)?;
    storage.accelerator = accelerator;
    for (cell, planned) in cells {
        let workload = &plan.workloads[planned.workload];
        let mut found = figures(result, cell, workload, planned.phase);
        found.retain(|it| storage.figure(it.quantity).is_none());
        storage.figures.extend(found);
        storage
            .effects
            .extend(effect(configuration, cell, workload));
    }
    Some(storage)
}

/// The directory, file or device of a storage; `common` is the directory of files that have no other.
fn path_of<'a>(storage: &'a Storage, common: Option<&'a str>) -> Option<&'a str> {
    match storage {
        Storage::File { directory, .. } => {
            let own = directory.as_ref().and_then(|directory| directory.to_str());
            own.or(common)
        }
        Storage::Device { path, .. } | Storage::Existing { path } => path.to_str(),
        Storage::ThinVolume { .. } | Storage::Socket { .. } => None,
    }
}

/// The storage of a configuration, with its settings.
fn storage_of(
    result: &BenchResult,
    configuration: &ConfigurationRecord,
    engine: EngineKind,
    host: &HostIndex<'_>,
) -> Option<MeasuredStorage> {
    let common = result.header.request["directory"].as_str();
    let path = path_of(&configuration.storage, common)?;
    let (is_nocow, form) = match &configuration.storage {
        Storage::File { no_cow, .. } => {
            let form = configuration.creation.strip_suffix(", preallocation off");
            (*no_cow, Some(form.unwrap_or(&configuration.creation)))
        }
        Storage::Device { path, .. } => (false, Some(form_of_device(host, path))),
        Storage::Existing { .. } | Storage::ThinVolume { .. } | Storage::Socket { .. } => {
            (false, None)
        }
    };
    let mut storage = host.storage_of(path)?;
    if is_nocow && storage.fstype.is(&FsKind::Btrfs) {
        storage.nocow = Fact::Known(true);
    }
    let known = |word: Option<String>| word.map_or(Fact::NotCollected, Fact::Known);
    if engine != EngineKind::HostFio {
        let document = vmdisk::read(&configuration.disk_xml).ok()?;
        let backend = &document.domain().disks.first()?.backend;
        storage.cache = known(backend.cache.map(|it| it.to_string()));
        storage.io = known(backend.aio.map(|it| it.to_string()));
    }
    Some(MeasuredStorage {
        measured_at: Fact::Known(result.header.began_at.clone()),
        path: Fact::Known(path.to_owned()),
        engine: Fact::Known(engine.name().to_owned()),
        form: known(form.map(str::to_owned)),
        ..storage
    })
}

/// The form of a disk that is a device.
fn form_of_device(host: &HostIndex<'_>, path: &Path) -> &'static str {
    let device = path
        .to_str()
        .and_then(|path| host.block_device(path).known());
    match device.map(|device| &device.lvm) {
        Some(Fact::Known(lvm)) if lvm.pool.is_known() => "thin volume",
        Some(Fact::Known(_)) => "logical volume",
        _ => "whole disk",
    }
}

/// The figures of a cell that facts have a place for.
fn figures(
    result: &BenchResult,
    cell: &CellResult,
    workload: &Workload,
    phase: Phase,
) -> Vec<MeasuredFigure> {
    let Load::Blocks(load) = &workload.load else {
        return Vec::new();
    };
    let figure = |quantity, values: Vec<f64>| {
        let Interval { ratio, low, high } = Interval::of_ratios(&values, ALPHA)?;
        let [mean, low, high] = [ratio, low, high].map(|it| it.round() as u64);
        Some(MeasuredFigure {
            quantity,
            mean,
            low,
            high,
        })
    };
    let samples = result
        .samples
        .iter()
        .filter(|it| it.cell == cell.cell && it.counts());
    let counted = samples.filter(|it| cell.values.contains_key(&it.round));
    let flushes = counted.filter_map(|it| Some(it.measurement.sync.as_ref()?.mean_ns));
    let is_large = load.block_bytes >= 64 << 10;
    let is_plain = load.sync_every.is_none() && !load.ends_with_sync && load.jobs == 1;
    let of_load = match (load.access, load.block_bytes, load.depth, phase) {
        (Access::SequentialWrite, _, _, Phase::FirstTouch) if is_large => {
            Some(Quantity::FirstWrite)
        }
        (_, _, _, Phase::FirstTouch) => None,
        (Access::RandomRead, 4096, 1, _) => Some(Quantity::RandomRead),
        (Access::RandomRead, 4096, 32, _) => Some(Quantity::ParallelRead),
        (Access::RandomWrite, 4096, 1, _) => Some(Quantity::RandomWrite),
        (Access::RandomWrite, 4096, 32, _) => Some(Quantity::ParallelWrite),
        (Access::SequentialRead, ..) if is_large => Some(Quantity::SequentialRead),
        (Access::SequentialWrite, ..) if is_large => Some(Quantity::SequentialWrite),
        _ => None,
    };
    let unit = match workload.metric {
        Metric::Iops => Some(load.block_bytes as f64),
        Metric::Throughput => Some(1.0),
        Metric::Latency => None,
    };
    let rates = of_load
        .filter(|_| is_plain)
        .zip(unit)
        .map(|(quantity, unit)| {
            (
                quantity,
                cell.values.values().map(|value| value * unit).collect(),
            )
        });
    let flushes = load
        .sync_every
        .map(|_| (Quantity::Flush, flushes.collect()));
    let found = rates.into_iter().chain(flushes);
    found
        .filter_map(|(quantity, values)| figure(quantity, values))
        .collect()
}

/// The effect of the change that a rule proposes, if the cell is the guest after it.
fn effect(
    configuration: &ConfigurationRecord,
    cell: &CellResult,
    workload: &Workload,
) -> Option<MeasuredEffect> {
    let rule = configuration.factors.get("rule")?.clone();
    let Interval { ratio, low, high } = cell.comparison.as_ref()?.interval?;
    let [ratio, low, high] = [ratio, low, high].map(|it| (it * 1000.0).round() as u64);
    let workload = workload.name.clone();
    Some(MeasuredEffect {
        rule,
        workload,
        ratio,
        low,
        high,
    })
}

/// An allowance for each rule whose effect was measured, with the figures.
pub(super) fn allowances(run: &Path) -> Result<String, Stop> {
    let MeasuredRun { measured, .. } = of_run(run)?;
    let mut lines = Vec::new();
    for storage in &measured {
        for of_rule in storage
            .effects
            .chunk_by(|one, other| one.rule == other.rule)
        {
            let effects: Vec<String> = of_rule.iter().map(ToString::to_string).collect();
            let (rule, on) = (&of_rule[0].rule, storage.conditions());
            lines.push(format!(
                "<!-- vmdisk: allow({rule}) the change was {}, on {on} -->\n",
                effects.join("; ")
            ));
        }
    }
    match lines.is_empty() {
        true => Err(Stop::new("the run measured no change that a rule proposes")),
        false => Ok(lines.concat()),
    }
}
