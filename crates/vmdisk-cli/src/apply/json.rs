//! Version 1 of the steps of a plan, as `vmdisk generate --to steps` and `vmdisk apply --format json` print them.
//!
//! Within version 1 keys are added, never removed, renamed or given another meaning.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;
use vmdisk::plan::{Condition, Difference, Named, Plan, PlannedChange, Step};

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
    /// Why it is refused, or failed.
    pub(super) reasons: Vec<String>,
    /// The steps, in their order. All preconditions are checked before the first is run.
    pub(super) steps: Vec<StepJson>,
    /// The guest that `--define` defines; null without it.
    pub(super) guest: Option<Guest>,
    /// The changes of what is there, in their order. All of them are checked before the first is made.
    pub(super) changes: Vec<ChangeJson>,
    /// What differs, and no change makes equal.
    pub(super) unchanged: Vec<DifferenceJson>,
}

/// A change of a guest or of storage that is there.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Change"))]
pub(super) struct ChangeJson {
    /// Number of the change, from 1.
    id: usize,
    /// `grow`, `shrink`, `add`, `remove`, `options`, `bus` or `move`: the word for `--change`. `shrink` is always refused.
    pub(super) kind: &'static str,
    /// Target of the disk.
    pub(super) disk: String,
    /// The change, for people.
    pub(super) what: String,
    /// The program and its arguments, which need no shell. `virsh define` reads the definition from standard input.
    pub(super) argv: Vec<String>,
    /// The program that compares what was copied, and its arguments; empty if nothing is copied.
    pub(super) comparison: Vec<String>,
    /// The program that a running guest gets it by at once, and its arguments; empty if it has to start again, or is off.
    /// `attach-device` reads the disk from standard input.
    pub(super) live: Vec<String>,
    /// The program that undoes the change, and its arguments; empty if nothing does.
    pub(super) undo: Vec<String>,
    /// Why nothing undoes it; null if something does.
    pub(super) is_final: Option<&'static str>,
    /// Bytes by which storage grows at most; null if none does.
    pub(super) bytes: Option<u64>,
    /// `none`; `restart`, if the guest keeps what it has until it is shut off and started again; or `off`, if it must be off.
    pub(super) down_time: &'static str,
    /// The steps in the guest, for people.
    pub(super) afterwards: Option<String>,
    /// Why it is refused, and what to do instead, for people.
    pub(super) refusal: Option<String>,
    /// `not-asked` without its kind in `--change`, `refused`, or as of a step.
    pub(super) state: &'static str,
}

/// A key with both values.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Difference"))]
pub(super) struct DifferenceJson {
    /// The key, such as `memory` or `disk vda: qcow2.path`.
    pub(super) key: String,
    /// The value that is there.
    pub(super) existing: String,
    /// The value of the plan.
    pub(super) planned: String,
}

impl ChangeJson {
    pub(super) fn of(index: usize, change: &PlannedChange) -> Self {
        let define = ["virsh", "define", "/dev/stdin"].map(str::to_owned);
        let of_guest = || define.to_vec();
        let live = change.live.as_ref().map(|it| it.argv.clone());
        let live = live.unwrap_or_default();
        ChangeJson {
            id: index + 1,
            kind: change.kind.word(),
            disk: change.disk.clone(),
            what: change.what.clone(),
            argv: match (&change.command, &change.copy, &change.refusal) {
                (Some(command), ..) => command.argv.clone(),
                (None, None, None) if change.live_copy().is_some() => live.clone(),
                (None, _, Some(_)) => Vec::new(),
                (None, Some(copy), None) => copy.copy.argv.clone(),
                (None, None, None) => of_guest(),
            },
            comparison: match (&change.copy, &change.refusal) {
                (Some(copy), None) => copy.comparison.argv.clone(),
                _ => Vec::new(),
            },
            live: match change.live_copy() {
                Some(_) => Vec::new(),
                None => live,
            },
            undo: match change.is_final.is_some() || change.refusal.is_some() {
                true => Vec::new(),
                false => of_guest(),
            },
            is_final: change.is_final,
            bytes: change.bytes.map(|bytes| bytes.0),
            down_time: change.down_time.word(),
            afterwards: change.afterwards.clone(),
            refusal: change.refusal.clone(),
            state: "not-asked",
        }
    }
}

impl DifferenceJson {
    pub(super) fn of(difference: &Difference) -> Self {
        DifferenceJson {
            key: difference.key.clone(),
            existing: difference.existing.clone(),
            planned: difference.planned.clone(),
        }
    }
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
