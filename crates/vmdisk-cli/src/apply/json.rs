//! Version 1 of the steps of a plan, as `vmdisk generate --to steps` and `vmdisk apply --format json` print them.
//!
//! Within version 1 keys are added, never removed, renamed or given another meaning.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;
use vmdisk::plan::{Condition, Named, Plan, Step};

use vmdisk::report::changes::{ListedChange, ListedDifference};
use vmdisk::report::escaped_json;

/// Version of the shape.
const SCHEMA_VERSION: &str = "1.0";

/// The steps that make the storage of a plan.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(title = "vmdisk generate --to steps, version 1", rename = "Steps")
)]
pub(super) struct Envelope {
    /// Version of this shape: another first number is another shape.
    schema_version: &'static str,
    /// `done`, `nothing-to-do`, `incomplete` if something still differs, `refused` or `failed`; null if nothing was run.
    pub(super) result: Option<&'static str>,
    /// Why it is refused, failed or incomplete.
    pub(super) reasons: Vec<String>,
    /// The steps, in their order. All preconditions are checked before the first is run.
    pub(super) steps: Vec<StepJson>,
    /// The guest that `--define` defines; null without it.
    pub(super) guest: Option<Guest>,
    /// The changes of what is there, in their order. All of them are checked before the first is made.
    pub(super) changes: Vec<ListedChange>,
    /// What differs, and no change makes equal.
    pub(super) unchanged: Vec<ListedDifference>,
}

/// A guest of libvirt.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub(super) struct Guest {
    /// Its name.
    pub(super) name: String,
    /// As of a step.
    pub(super) state: &'static str,
}

/// A step.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Step"))]
pub(super) struct StepJson {
    /// Number of the step, from 1.
    id: usize,
    /// Target of the disk that needs it.
    disk: String,
    /// `raw-file`, `qcow2-image`, `volume`, `thin-pool`, `thin-volume`, `seed-image`, `zvol` or `pool-volume`; or `copy`,
    /// `rename`, `owner` or `mode`, which complete what the step before makes.
    kind: &'static str,
    /// The path, GROUP/VOLUME, the dataset, or POOL/VOLUME.
    pub(super) makes: String,
    /// What must hold.
    precondition: Vec<Precondition>,
    /// The program and its arguments, which need no shell.
    argv: Vec<String>,
    /// The program that removes what the step made, and its arguments.
    undo: Vec<String>,
    /// The thing, for people.
    pub(super) what: String,
    /// Trade-offs, for people.
    notes: Vec<String>,
    /// `planned`, `done`, `already-done`, `differs`, `unknown`, `failed`, or `undone` after a failure of a later step.
    pub(super) state: &'static str,
}

/// Something that must hold.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Precondition {
    /// `nothing-at`, `something-at`, `directory-at`, `private-file`, `room` or `room-in-group`; `volume-group`, `volume`,
    /// `dataset`, `pool` or `pool-volume`, each with `no-` if it must not be there.
    kind: String,
    /// The path, volume or volume group.
    of: String,
    /// Free bytes, for the step alone.
    bytes: Option<u64>,
}

/// The JSON Schema of the steps.
#[cfg(feature = "schema")]
pub(crate) fn schema() -> schemars::Schema {
    schemars::schema_for!(Envelope)
}

impl Envelope {
    pub(super) fn of(plan: &Plan) -> Self {
        let steps = plan.steps.iter().enumerate();
        Envelope {
            schema_version: SCHEMA_VERSION,
            result: None,
            reasons: Vec::new(),
            steps: steps
                .map(|(index, step)| of_step(index, step, plan))
                .collect(),
            guest: None,
            changes: Vec::new(),
            unchanged: Vec::new(),
        }
    }

    pub(super) fn text(&self) -> String {
        escaped_json::text(self)
    }
}

/// The steps of a plan as JSON.
pub(crate) fn steps(plan: &Plan) -> String {
    Envelope::of(plan).text()
}

fn of_step(index: usize, step: &Step, plan: &Plan) -> StepJson {
    let Step {
        disk,
        kind,
        argv,
        why,
        notes,
        conditions,
        equality: _, // part of `apply` and the script
        resize: _,   // a change
    } = step;
    let disk = plan.domain.disks.get(*disk);
    StepJson {
        id: index + 1,
        disk: disk.map_or("", |disk| disk.name()).to_owned(),
        kind: kind.word(),
        makes: step.makes(),
        precondition: conditions.iter().map(precondition).collect(),
        argv: argv.clone(),
        undo: step.undo(),
        what: why.clone(),
        notes: notes.clone(),
        state: "planned",
    }
}

fn precondition(condition: &Condition) -> Precondition {
    let (kind, of, bytes) = match condition {
        Condition::NothingAt(path) => ("nothing-at", path.clone(), None),
        Condition::SomethingAt(path) => ("something-at", path.clone(), None),
        Condition::DirectoryAt(path) => ("directory-at", path.clone(), None),
        Condition::PrivateFile(path) => ("private-file", path.clone(), None),
        Condition::Exists(thing) | Condition::Missing(thing) => {
            let kind = match thing {
                Named::Group(_) => "volume-group",
                Named::Volume(_) => "volume",
                Named::Dataset(_) => "dataset",
                Named::Pool(_) => "pool",
                Named::PoolVolume { .. } => "pool-volume",
            };
            (kind, thing.name(), None)
        }
        Condition::Room { directory, size } => ("room", directory.clone(), Some(size.0)),
        Condition::RoomInGroup { group, size } => ("room-in-group", group.clone(), Some(size.0)),
    };
    let no = match condition {
        Condition::Missing(_) => "no-",
        _ => "",
    };
    let kind = format!("{no}{kind}");
    Precondition { kind, of, bytes }
}
