//! Derives the path of a disk, step by step.

use std::collections::HashMap;

use vmdisk_facts::{Fact, HostIndex};
use vmdisk_fields::{NeutralSpeller, Setting, Speller};
use vmdisk_model::{AioMode, CacheMode, Disk, DiskField, FieldPath, Fields as _, Format};
use vmdisk_rule::{Context, Missing};

use crate::loss;
use crate::path::{
    IoPath, Layer, Property, RequestEffect, RequestKind, RequestOutcome, Statement, StatementBasis,
    TraceStep,
};

/// The path of a disk of the guest; settings are written as `speller` spells them. `None` if there is no such disk.
pub fn trace(context: &Context<'_>, disk: usize, speller: &dyn Speller) -> Option<IoPath> {
    let mut tracer = Tracer {
        context,
        speller,
        index: disk,
        disk: context.domain.disks.get(disk)?,
        steps: Vec::new(),
        shared: HashMap::new(),
        levels: 0,
    };
    tracer.frontend();
    let mut steps = tracer.steps;
    end_operations(&mut steps);
    let loss = loss::of(context.domain.disks.get(disk)?, &steps);
    Some(IoPath { steps, loss })
}

/// The path so far.
pub(crate) struct Tracer<'a> {
    pub(crate) context: &'a Context<'a>,
    speller: &'a dyn Speller,
    pub(crate) index: usize,
    pub(crate) disk: &'a Disk,
    pub(crate) steps: Vec<TraceStep>,
    /// File systems and devices that are already steps, by their ids.
    shared: HashMap<String, usize>,
    /// Number of devices above the next one.
    pub(crate) levels: usize,
}

/// The results of the four operations, in the order of [`RequestKind::ALL`].
pub(crate) type Results = [(RequestOutcome, Statement); 4];

impl<'a> Tracer<'a> {
    /// Adds a step below another one, and returns its number.
    pub(crate) fn add(
        &mut self,
        above: Option<usize>,
        layer: Layer,
        name: impl Into<String>,
        properties: Vec<Property>,
        results: Results,
    ) -> usize {
        let mut operations = RequestKind::ALL.iter().copied();
        let effects = results.map(|(outcome, statement)| RequestEffect {
            operation: operations
                .next()
                .expect("there are as many results as operations"),
            outcome,
            statement,
        });
        let number = self.steps.len();
        self.steps.push(TraceStep {
            layer,
            name: name.into(),
            below: Vec::new(),
            properties,
            effects: effects.into(),
            image: None,
        });
        if let Some(above) = above {
            self.steps[above].below.push(number);
        }
        number
    }

    /// Puts a step that is already there below another one; `None` if it is not there, and is noted as the next step.
    pub(crate) fn join(&mut self, above: usize, id: String) -> Option<usize> {
        let next = self.steps.len();
        let known = *self.shared.entry(id).or_insert(next);
        if known == next {
            return None;
        }
        let below = &mut self.steps[above].below;
        if !below.contains(&known) {
            below.push(known);
        }
        Some(known)
    }

    /// Adds what was measured on the storage of a path to the step with this number.
    pub(crate) fn add_measured(&mut self, number: usize, host: &HostIndex<'_>, path: &str) {
        let Some(step) = self.steps.get_mut(number) else {
            return;
        };
        let backend = &self.disk.backend;
        let format = backend
            .image()
            .and_then(|image| image.format)
            .map(Format::as_str);
        let (cache, io) = (
            backend.cache.map(CacheMode::as_str),
            backend.aio.map(AioMode::as_str),
        );
        for measured in host.measured_like(path, format, cache, io) {
            let figures: Vec<String> = measured.figures.iter().map(ToString::to_string).collect();
            let basis = StatementBasis::fact(format!("measured on {}", measured.conditions()));
            step.properties
                .push(property("measured here", figures.join("; "), basis));
        }
    }

    /// A setting of the disk as the basis of a statement.
    pub(crate) fn setting(&self, field: DiskField) -> StatementBasis {
        let at = FieldPath::Disk(self.index, field);
        match self.disk.get(field) {
            Some(value) => {
                let settings = [Setting { at, value }];
                let spelled = self.speller.settings(&settings);
                configuration(spelled.or_else(|| NeutralSpeller.settings(&settings)))
            }
            None => self.unset(at),
        }
    }

    /// A field that is not set as the basis of a statement.
    pub(crate) fn unset(&self, at: FieldPath) -> StatementBasis {
        let name = self.name(at);
        configuration(Some(format!("{name} is not set")))
    }

    /// A field as the basis of a statement.
    pub(crate) fn field(&self, at: FieldPath) -> StatementBasis {
        configuration(Some(self.name(at)))
    }

    fn name(&self, at: FieldPath) -> String {
        let name = self.speller.field(at);
        name.or_else(|| NeutralSpeller.field(at))
            .unwrap_or_default()
    }
}

fn configuration(setting: Option<String>) -> StatementBasis {
    StatementBasis::Configuration {
        setting: setting.unwrap_or_default(),
    }
}

/// A result that depends on a missing fact.
pub(crate) fn unknown(missing: Missing, command: Vec<String>) -> (RequestOutcome, Statement) {
    let basis = lacking(missing, command);
    RequestOutcome::Unknown.by("unknown", basis)
}

/// The result of a request that changes data, on a backing image.
pub(crate) fn not_written() -> (RequestOutcome, Statement) {
    RequestOutcome::Absent.by(
        "a backing image is not written",
        StatementBasis::source("QEMU block.c: a backing image is opened read-only"),
    )
}

/// A missing fact as the basis of a statement.
pub(crate) fn lacking(missing: Missing, command: Vec<String>) -> StatementBasis {
    StatementBasis::Missing {
        what: missing.what,
        why: missing.why.into_owned(),
        command,
    }
}

/// A property with its value.
pub(crate) fn property(name: &str, value: impl Into<String>, basis: StatementBasis) -> Property {
    Property {
        name: name.to_owned(),
        value: value.into(),
        basis,
    }
}

/// Properties that are facts, with the begin of their keys and the command that collects them.
pub(crate) struct FactProperties {
    keys: String,
    command: Vec<String>,
    pub(crate) properties: Vec<Property>,
}

impl FactProperties {
    pub(crate) fn new(keys: String, groups: &[&str], path: &str) -> Self {
        Self {
            keys,
            command: collect(groups, path),
            properties: Vec::new(),
        }
    }

    /// Adds a property, unless the fact is absent.
    pub(crate) fn add<T: Clone + ToString>(
        &mut self,
        name: &str,
        fact: &Fact<T>,
        key: &str,
        show: impl FnOnce(&T) -> String,
    ) {
        let key = format!("{}{key}", self.keys);
        let (value, basis) = match Context::known(fact.clone(), || key.clone()) {
            Ok(Some(value)) => {
                let basis = StatementBasis::fact(format!("{key} = {}", value.to_string()));
                (show(&value), basis)
            }
            Ok(None) => return,
            Err(missing) => ("unknown".to_owned(), lacking(missing, self.command.clone())),
        };
        self.properties.push(property(name, value, basis));
    }
}

/// A size in words.
pub(crate) fn bytes(bytes: &u64) -> String {
    format!("{bytes} bytes")
}

/// The command that collects the facts of a path.
pub(crate) fn collect(groups: &[&str], path: &str) -> Vec<String> {
    let mut words = vec!["vmdisk".to_owned(), "facts".to_owned()];
    for group in groups {
        words.extend(["--group".to_owned(), (*group).to_owned()]);
    }
    words.push(path.to_owned());
    words
}

/// Marks each operation as absent at the steps that it does not reach.
fn end_operations(steps: &mut [TraceStep]) {
    for operation in RequestKind::ALL.iter().copied() {
        let mut is_reached = vec![false; steps.len()];
        let mut todo = vec![0];
        while let Some(number) = todo.pop() {
            let Some(step) = steps.get(number).filter(|_| !is_reached[number]) else {
                continue;
            };
            is_reached[number] = true;
            if step.effect(operation).outcome.goes_on() {
                todo.extend(&step.below);
            }
        }
        for number in 0..steps.len() {
            if is_reached[number]
                || steps[number].effect(operation).outcome == RequestOutcome::Absent
            {
                continue;
            }
            let ends = end_above(steps, number, operation);
            steps[number].effects[operation as usize] = RequestEffect {
                operation,
                outcome: RequestOutcome::Absent,
                statement: Statement {
                    text: "does not arrive here".to_owned(),
                    basis: StatementBasis::Step { step: ends },
                },
            };
        }
    }
}

/// The step above where an operation ends.
fn end_above(steps: &[TraceStep], number: usize, operation: RequestKind) -> usize {
    let above = steps.iter().position(|step| step.below.contains(&number));
    match above.filter(|above| *above < number) {
        Some(above) => {
            let effect = steps[above].effect(operation);
            match &effect.statement.basis {
                StatementBasis::Step { step } if effect.outcome == RequestOutcome::Absent => *step,
                _ => above,
            }
        }
        None => 0,
    }
}
