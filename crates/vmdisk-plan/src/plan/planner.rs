//! The state of planning: the decisions so far, and the options that are impossible.

use std::collections::BTreeSet;
use std::fmt::Display;

use vmdisk_facts::{HostIndex, Quantity, Target};
use vmdisk_model::{CacheMode, Disk, DiskField, Domain, FieldPath, Format, Image, Scope};

use super::choice::{Choice, ChoiceSource, Chosen, Plan, PlanError, PlanErrors, RULES};
use super::existing::Existing;
use super::host::Host;
use super::nocow::Nocow;
use crate::spec::{GuestSpec, Spec, SpecPath};
use crate::steps::Step;

/// The state of planning.
pub(crate) struct Planner<'a> {
    pub(crate) spec: &'a Spec,
    /// The guest that the disks are added to, if it exists.
    pub(crate) existing: Existing<'a>,
    pub(crate) host: Host<'a>,
    pub(crate) domain: Domain,
    choices: Vec<Choice>,
    errors: Vec<PlanError>,
    groundwork: Vec<Step>,
    groundwork_known: BTreeSet<Vec<String>>,
    steps: Vec<Step>,
    /// Threads that may run disks with native AIO so far; each disk may have an event loop of its own.
    pub(crate) native_threads: u64,
    /// The decisions about copy-on-write of each disk's file, until they are recorded.
    pub(super) nocow: Vec<Option<Nocow>>,
    /// For each disk, true if its file is made without copy-on-write.
    pub(crate) nocow_files: Vec<bool>,
    /// The disk that a new guest boots from, once the disks have names.
    pub(crate) boot_disk: Option<usize>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(
        spec: &'a Spec,
        into: Option<&'a Domain>,
        host: &'a HostIndex<'a>,
        target: &Target,
        nocow: Vec<Option<Nocow>>,
    ) -> Self {
        Planner {
            spec,
            existing: Existing::new(into),
            host: Host::new(host, target.clone()),
            domain: Domain {
                scope: Scope::WholeGuest,
                ..Domain::default()
            },
            choices: Vec::new(),
            errors: Vec::new(),
            groundwork: Vec::new(),
            groundwork_known: BTreeSet::new(),
            steps: Vec::new(),
            native_threads: 0,
            nocow_files: vec![false; nocow.len()],
            nocow,
            boot_disk: None,
        }
    }

    /// Returns the plan, unless something was impossible.
    pub(super) fn finish(mut self) -> Result<Plan, PlanErrors> {
        self.cite_measurements();
        let Planner {
            spec,
            existing: _,
            host: _,
            domain,
            choices,
            errors,
            mut groundwork,
            groundwork_known: _,
            steps,
            native_threads: _,
            nocow: _,
            nocow_files: _,
            boot_disk: _,
        } = self;
        if !errors.is_empty() {
            return Err(errors.into());
        }
        groundwork.extend(steps);
        Ok(Plan {
            domain,
            os: spec.guest.as_ref().and_then(|guest| guest.os),
            devices: spec
                .guest
                .as_ref()
                .map(GuestSpec::devices)
                .unwrap_or_default(),
            choices,
            steps: groundwork,
        })
    }

    /// Adds what was measured on the host to the reasons that it is about.
    fn cite_measurements(&mut self) {
        let host = self.host.index;
        if host.facts().measured.is_empty() {
            return;
        }
        let chosen = self.choices.iter_mut();
        for choice in chosen.filter(|choice| choice.source != ChoiceSource::Asked) {
            let disk = choice.at.disk().and_then(|nth| self.domain.disks.get(nth));
            let Some(backend) = disk.map(|disk| &disk.backend) else {
                continue;
            };
            let Some(path) = backend.image().and_then(Image::host_path) else {
                continue;
            };
            for (measured, effect) in choice
                .rule
                .map_or_else(Vec::new, |rule| host.effects_on(path, rule))
            {
                let on = measured.conditions();
                choice.reason += &format!(
                    "; the change that {} proposes was {effect} here on {on}",
                    effect.rule
                );
            }
            if choice.option != "cache" {
                continue;
            }
            let format = backend
                .image()
                .and_then(|image| image.format)
                .map(Format::as_str);
            let cache = backend.cache.map(CacheMode::as_str);
            let measured = host.measured_like(path, format, cache, None).into_iter();
            let mut flushes =
                measured.filter_map(|it| Some((it.figure(Quantity::Flush)?, it.conditions())));
            if let Some((flush, on)) = flushes.next() {
                choice.reason += &format!("; {flush} here on {on}");
            }
        }
    }

    /// The disk that is being planned; `name_disks` has made one for each of the spec.
    pub(crate) fn disk(&mut self, index: usize) -> &mut Disk {
        &mut self.domain.disks[index]
    }

    /// Returns the requested value, or the chosen one if none was requested; records which.
    pub(crate) fn decide<T: Display>(
        &mut self,
        at: FieldPath,
        option: &'static str,
        asked: Option<T>,
        choose: impl FnOnce(&mut Self) -> Option<Chosen<T>>,
    ) -> Option<T> {
        let chosen = match asked {
            Some(value) => Chosen {
                value: Some(value),
                reason: "asked for".to_owned(),
                rule: None,
                source: ChoiceSource::Asked,
            },
            None => choose(self)?,
        };
        let Chosen {
            value,
            reason,
            rule,
            source,
        } = chosen;
        debug_assert!(rule.is_none_or(|rule| RULES.contains(&rule)));
        self.choices.push(Choice {
            at,
            option,
            value: value
                .as_ref()
                .map_or_else(|| "unset".to_owned(), ToString::to_string),
            reason,
            rule,
            source,
        });
        value
    }

    /// [`Planner::decide`] for a field of a disk.
    pub(crate) fn decide_disk<T: Display>(
        &mut self,
        index: usize,
        field: DiskField,
        option: &'static str,
        asked: Option<T>,
        choose: impl FnOnce(&mut Self) -> Option<Chosen<T>>,
    ) -> Option<T> {
        self.decide(FieldPath::Disk(index, field), option, asked, choose)
    }

    /// Records a requested value that is used unchanged.
    pub(crate) fn note_asked<T: Display>(
        &mut self,
        at: FieldPath,
        option: &'static str,
        asked: Option<T>,
    ) {
        self.decide(at, option, asked, |_| None);
    }

    /// Notes what no choice can make work.
    pub(crate) fn refuse(&mut self, at: SpecPath, message: impl Into<String>) -> &mut PlanError {
        let index = self.errors.len();
        self.errors.push(PlanError {
            at,
            message: message.into(),
            help: None,
        });
        &mut self.errors[index]
    }

    /// Adds a step that comes before those of all disks, each command once.
    pub(crate) fn add_groundwork(&mut self, step: Option<Step>) {
        if let Some(step) = step
            && self.groundwork_known.insert(step.argv.clone())
        {
            self.groundwork.push(step);
        }
    }

    /// Adds the steps that make an image or a volume.
    pub(crate) fn add_steps(&mut self, steps: Vec<Step>) {
        self.steps.extend(steps);
    }
}
