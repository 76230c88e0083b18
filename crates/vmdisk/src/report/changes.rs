//! Changes of what is there, as `vmdisk apply --format json` prints them.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;
use vmdisk_plan::{ChangeKind, Difference, PlannedChange};

/// A change of a guest or of storage that is there.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Change"))]
#[non_exhaustive]
pub struct ListedChange {
    /// Number of the change, from 1.
    pub id: usize,
    /// `grow`, `shrink`, `add`, `remove`, `options`, `bus`, `move` or `reclaim`: the word for `--change`. `shrink` is always refused.
    pub kind: &'static str,
    /// Target of the disk.
    pub disk: String,
    /// The change, for people.
    pub what: String,
    /// The program and its arguments, which need no shell. `virsh define` reads the definition from standard input.
    pub argv: Vec<String>,
    /// The program that compares what was copied, and its arguments; empty if nothing is copied.
    pub comparison: Vec<String>,
    /// The program that a running guest gets it by at once, and its arguments; empty if it has to start again, or is off.
    /// `attach-device` reads the disk from standard input.
    pub live: Vec<String>,
    /// The program that undoes the change, and its arguments; empty if nothing does.
    pub undo: Vec<String>,
    /// Why nothing undoes it; null if something does.
    pub is_final: Option<&'static str>,
    /// Bytes by which storage grows at most; null if none does.
    pub bytes: Option<u64>,
    /// `none`; `restart`, if the guest keeps what it has until it is shut off and started again; or `off`, if it must be off.
    pub down_time: &'static str,
    /// The steps in the guest, for people.
    pub afterwards: Option<String>,
    /// Why it is refused, and what to do instead, for people.
    pub refusal: Option<String>,
    /// `not-asked` without its kind in `--change`, `refused`, or as of a step.
    pub state: &'static str,
}

/// A key with both values.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Difference"))]
#[non_exhaustive]
pub struct ListedDifference {
    /// The key, such as `memory` or `disk vda: qcow2.path`.
    pub key: String,
    /// The value that is there.
    pub existing: String,
    /// The value of the plan.
    pub planned: String,
}

impl ListedChange {
    /// A change, by its place in its plan.
    pub fn of(index: usize, change: &PlannedChange) -> Self {
        let define = ["virsh", "define", "/dev/stdin"].map(str::to_owned);
        let of_guest = || define.to_vec();
        let live = change.live.as_ref().map(|it| it.argv.clone());
        let live = live.unwrap_or_default();
        let is_live_alone = change.live_copy().is_some()
            || change.kind == ChangeKind::Reclaim && change.live.is_some();
        let kept = change
            .copy
            .as_ref()
            .and_then(|it| Some((&it.from, it.kept.as_ref()?)));
        ListedChange {
            id: index + 1,
            kind: change.kind.word(),
            disk: change.disk.clone(),
            what: change.what.clone(),
            argv: match (&change.command, &change.copy, &change.refusal) {
                (Some(command), ..) => command.argv.clone(),
                (None, None, None) if is_live_alone => live.clone(),
                (None, _, Some(_)) => Vec::new(),
                (None, Some(copy), None) => copy.copy.argv.clone(),
                (None, None, None) => of_guest(),
            },
            comparison: match (&change.copy, &change.refusal) {
                (Some(copy), None) => copy.comparison.argv.clone(),
                _ => Vec::new(),
            },
            live: match is_live_alone {
                true => Vec::new(),
                false => live,
            },
            undo: match kept {
                _ if change.is_final.is_some() || change.refusal.is_some() => Vec::new(),
                Some((image, kept)) => ["mv", "-fT", "--", &kept.path, image]
                    .map(str::to_owned)
                    .to_vec(),
                None => of_guest(),
            },
            is_final: change.is_final,
            bytes: change.bytes.map(|bytes| bytes.0),
            down_time: change.down_time.word(),
            afterwards: change.afterwards.clone(),
            refusal: change.refusal.clone(),
            state: match change.refusal {
                Some(_) => "refused",
                None => "not-asked",
            },
        }
    }
}

impl ListedDifference {
    /// A difference of a plan.
    pub fn of(difference: &Difference) -> Self {
        ListedDifference {
            key: difference.key.clone(),
            existing: difference.existing.clone(),
            planned: difference.planned.clone(),
        }
    }
}
