//! The order of candidates, with the reasons.

use std::collections::BTreeSet;

use vmdisk_rule::{Group, Severity};

use crate::Diagnostic;
use crate::diagnostic::mask;

use super::candidate::StorageCandidate;
use super::intent::{DiskLoad, StorageForm, StorageIntent, Want};
use super::places::{ExcludedStorage, unknown_between};
use super::wants::Mechanism;
use crate::trace::Survival;

/// The compared places and forms.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StorageAdvice {
    /// Those that have everything that is asked, the best first.
    pub fitting: Vec<StorageCandidate>,
    /// The number of the first ones that only the form and the free space separate: which is the fastest is not known.
    pub undecided: usize,
    /// The reason why each of [`StorageAdvice::fitting`] follows the one before; of the first, what speaks for it.
    pub reasons: Vec<String>,
    /// The number of the best one in another place, if there is one, and why the first one is better.
    pub other_place: Option<(usize, String)>,
    /// What the best would be if more were asked, where that changes it.
    pub alternatives: Vec<Alternative>,
    /// Everything else, with the deciding fact.
    pub excluded: Vec<ExcludedStorage>,
}

/// The answer to another question.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Alternative {
    /// The question, as options of the command: `--wants migration`.
    pub asked: String,
    /// The best place and form, with the mechanism; `None` if nothing fits.
    pub best: Option<(String, StorageForm)>,
    /// The mechanism, or why nothing fits.
    pub why: String,
}

/// The criteria, the most important first: what speaks for the candidate with the smaller number. First what is known to
/// be safe, then room, the wishes with their price, the medium, and the form. Unknown is between good and bad.
const CRITERIA: [&str; 15] = [
    "the rules report fewer errors about it",
    FLUSHED,
    "less is lost when a drive fails, as far as is known",
    "its medium is known to be neither removable nor on USB",
    "more room for the disk is known",
    "fewer facts are missing about what is wanted",
    "what is wanted has a lower price",
    "the rules report fewer warnings that nothing on the host ends",
    "its medium is faster (memory, NVMe, other drives that do not rotate)",
    "a tenth of its file system stays free",
    "the rules report less advice about it",
    FORM_FITS,
    "less is to be done on the host first",
    "QEMU's user reaches its directory, which is no mount point",
    "more space is free there",
];

/// The number of the first criterion that does not separate places.
const FORM: usize = CRITERIA.len() - 4;

const FLUSHED: &str = "flushed data is known to survive a crash of the host";

const NO_ROTATION: &str = "its drives do not rotate";

const FORM_FITS: &str = "its form fits the load better";

type Rank = [u64; CRITERIA.len()];

/// Sorts the candidates that have everything that is asked, and gives the reason for each of the others.
pub(super) fn order(
    intent: &StorageIntent,
    candidates: Vec<StorageCandidate>,
    mut excluded: Vec<ExcludedStorage>,
) -> StorageAdvice {
    let ranked = ranked(intent, &candidates);
    let mut alternatives = Vec::new();
    let missing = Want::ALL.iter().filter(|want| !intent.wants.contains(want));
    for want in missing {
        let mut other = intent.clone();
        other.wants.insert(*want);
        let asked = format!("--wants {want}");
        alternatives.extend(alternative(
            asked,
            &other,
            Some(*want),
            &candidates,
            &ranked,
        ));
    }
    for load in DiskLoad::ALL.iter().filter(|load| **load != intent.load) {
        let other = StorageIntent {
            load: *load,
            ..intent.clone()
        };
        let asked = format!("--workload {load}");
        alternatives.extend(alternative(asked, &other, None, &candidates, &ranked));
    }
    let is_undecided = |(_, rank): &&(usize, Rank)| rank[..FORM] == ranked[0].1[..FORM];
    let undecided = ranked.iter().take_while(is_undecided).count();
    let mut reasons = Vec::new();
    for (nth, (_, rank)) in ranked.iter().enumerate() {
        reasons.push(match nth.checked_sub(1) {
            None => in_favour(&candidates[ranked[0].0]),
            Some(before) => decisive(&ranked[before].1, rank).to_owned(),
        });
    }
    let place = |nth: usize| &candidates[ranked[nth].0].place;
    let mut others = 1..ranked.len();
    let other_place = others.find(|nth| place(*nth) != place(0)).map(|nth| {
        let why = decisive(&ranked[0].1, &ranked[nth].1);
        (nth, why.to_owned())
    });
    excluded.extend(candidates.iter().filter_map(|candidate| {
        Some(ExcludedStorage {
            place: candidate.place.clone(),
            forms: vec![candidate.form],
            why: obstacle(intent, candidate)?,
        })
    }));
    let excluded = merged(excluded);
    let places: Vec<usize> = ranked.iter().map(|(nth, _)| *nth).collect();
    let mut candidates: Vec<Option<StorageCandidate>> = candidates.into_iter().map(Some).collect();
    StorageAdvice {
        fitting: places
            .iter()
            .filter_map(|nth| candidates[*nth].take())
            .collect(),
        undecided,
        reasons,
        other_place,
        alternatives,
        excluded,
    }
}

/// One entry for each place and reason.
fn merged(mut excluded: Vec<ExcludedStorage>) -> Vec<ExcludedStorage> {
    // A place may be what somebody took for the name of one, such as an address with a login.
    for it in &mut excluded {
        mask(&mut it.place);
        mask(&mut it.why);
    }
    excluded.sort_by(|one, other| (&one.place, &one.why).cmp(&(&other.place, &other.why)));
    excluded.dedup_by(|next, first| {
        let is_same = (&next.place, &next.why) == (&first.place, &first.why);
        if is_same {
            first.forms.append(&mut next.forms);
        }
        is_same
    });
    excluded
}

/// The numbers of the fitting candidates, the best first.
fn ranked(intent: &StorageIntent, candidates: &[StorageCandidate]) -> Vec<(usize, Rank)> {
    let fitting = candidates.iter().enumerate();
    let fitting = fitting.filter(|(_, candidate)| obstacle(intent, candidate).is_none());
    let mut ranked: Vec<(usize, Rank)> = fitting
        .map(|(nth, candidate)| (nth, rank(intent, candidate)))
        .collect();
    // Sorting keeps the order of places and forms among equals.
    ranked.sort_by_key(|(_, rank)| *rank);
    ranked
}

/// Why a candidate does not have what is asked.
fn obstacle(intent: &StorageIntent, candidate: &StorageCandidate) -> Option<String> {
    if candidate.loss.flushed == Survival::Lost && !intent.is_scratch {
        let statement = candidate.loss.statements.first();
        return statement.map(|statement| statement.text.clone());
    }
    no_room(intent, candidate).or_else(|| no_wish(intent, candidate))
}

/// Why a candidate has no room: for the whole disk, or, if space is taken as the guest writes, for its beginning.
fn no_room(intent: &StorageIntent, candidate: &StorageCandidate) -> Option<String> {
    let needed = match intent.wants.contains(&Want::Thin) {
        true => candidate.taken,
        false => candidate.taken.max(intent.size),
    };
    let needed = intent.of_all(needed);
    let needs = format!("it needs {}", needed.rounded());
    match (candidate.free, candidate.most_free) {
        (Some(free), _) if free < needed => {
            Some(format!("{needs}, and {} are free", free.rounded()))
        }
        (None, Some(most)) if most < needed => {
            let most = most.rounded();
            Some(format!("{needs}, and at most {most} can be free"))
        }
        _ => None,
    }
}

fn no_wish(intent: &StorageIntent, candidate: &StorageCandidate) -> Option<String> {
    intent
        .wants
        .iter()
        .find_map(|want| match candidate.mechanism(*want) {
            Mechanism::Missing(why) => Some(format!("no {want}: {why}")),
            Mechanism::Given(_) | Mechanism::AtPrice(_) | Mechanism::Unknown(_) => None,
        })
}

fn rank(intent: &StorageIntent, candidate: &StorageCandidate) -> Rank {
    // One finding of a rule counts once, wherever it is. What may be lost needs no safety.
    let found = |is_counted: &dyn Fn(&Diagnostic) -> bool| {
        let safe = |it: &&Diagnostic| intent.is_scratch && it.rule.group == Group::DataSafety;
        let found = candidate.findings.iter().filter(|it| !safe(it));
        let rules: BTreeSet<_> = found
            .filter(|it| is_counted(it))
            .map(|it| it.rule.name)
            .collect();
        rules.len() as u64
    };
    let lasting = |severity| found(&|it| it.severity == severity && !it.is_about_host);
    let wanted = |is_counted: fn(&Mechanism) -> bool| {
        let mechanisms = intent.wants.iter().map(|want| candidate.mechanism(*want));
        mechanisms.filter(|it| is_counted(it)).count() as u64
    };
    let safe = |rank: u64| if intent.is_scratch { 0 } else { rank };
    let free = candidate.free.map(|free| free.0);
    let whole = intent.of_all(intent.size).0;
    [
        found(&|it| it.severity == Severity::Error),
        safe(match candidate.loss.flushed {
            Survival::Kept => 0,
            Survival::Unknown => 1,
            Survival::Lost => 2,
        }),
        safe(candidate.redundancy.redundancy as u64),
        safe(unknown_between(candidate.is_removable.map(|it| !it))),
        match free {
            Some(free) if free >= whole => 0,
            None => 1,
            // Of places that a thin disk can outgrow, the one that lasts longest.
            Some(free) => u64::MAX - free,
        },
        wanted(|it| matches!(it, Mechanism::Unknown(_))),
        wanted(|it| matches!(it, Mechanism::AtPrice(_))),
        lasting(Severity::Warning),
        match (candidate.is_memory, candidate.is_fast) {
            // The fast medium is for those who wait for it.
            _ if intent.load == DiskLoad::Backup => 0,
            (true, _) => 0,
            (false, Some(true)) if candidate.is_nvme => 1,
            (false, is_fast) => 2 + unknown_between(is_fast),
        },
        match free.map(|free| free.saturating_sub(candidate.reserve.0)) {
            Some(left) if left < whole => u64::MAX - left,
            _ => 0,
        },
        lasting(Severity::Advice),
        place_of(candidate.form, intent.load),
        found(&|it| it.is_about_host && it.severity >= Severity::Advice),
        u64::from(candidate.is_closed) * 2 + u64::from(candidate.is_mount_point),
        u64::MAX - free.unwrap_or_default(),
    ]
}

/// The place of each form in the order for a database or a sequential load, for a mixed load or backups, and for systems: small
/// fits well. Allocated storage has no cost at the first write, a raw file no tables, and a sparse file takes no space
/// that a guest may never need.
const PLACES: [(StorageForm, [u64; 3]); 13] = [
    (StorageForm::Raw, [5, 0, 0]),
    (StorageForm::ThinVolume, [4, 1, 3]),
    (StorageForm::ZfsVolume, [4, 1, 3]),
    (StorageForm::Volume, [1, 2, 5]),
    (StorageForm::RawFalloc, [3, 3, 4]),
    (StorageForm::Qcow2Metadata, [8, 4, 2]),
    (StorageForm::Qcow2, [9, 5, 1]),
    (StorageForm::RawFull, [2, 6, 7]),
    (StorageForm::Qcow2Falloc, [7, 7, 6]),
    (StorageForm::Qcow2Full, [6, 8, 8]),
    (StorageForm::WholeDisk, [0, 9, 11]),
    (StorageForm::RawCopied, [10, 10, 9]),
    (StorageForm::Qcow2Copied, [11, 11, 10]),
];

fn place_of(form: StorageForm, load: DiskLoad) -> u64 {
    let nth = match load {
        DiskLoad::Database | DiskLoad::Sequential => 0,
        DiskLoad::Mixed | DiskLoad::Backup => 1,
        DiskLoad::Boot | DiskLoad::Ci => 2,
    };
    let row = PLACES.iter().find(|(of, _)| *of == form);
    row.map_or(PLACES.len() as u64, |(_, places)| places[nth])
}

/// The first criterion in which one candidate is better than the next.
fn decisive(better: &Rank, worse: &Rank) -> &'static str {
    let pairs = better.iter().zip(worse).zip(CRITERIA);
    let first = pairs
        .into_iter()
        .find(|((better, worse), _)| better != worse);
    first.map_or("nothing known distinguishes them", |(_, criterion)| {
        criterion
    })
}

/// What speaks for the best candidate by itself.
fn in_favour(best: &StorageCandidate) -> String {
    let mut reasons = Vec::new();
    if best.findings.is_empty() {
        reasons.push("the rules report nothing about it".to_owned());
    }
    if best.loss.flushed == Survival::Kept {
        reasons.push("flushed data survives a crash of the host".to_owned());
    }
    if let Mechanism::Given(reason) = best.mechanism(Want::Redundancy) {
        reasons.push(reason.clone());
    }
    if best.is_fast == Some(true) {
        reasons.push(NO_ROTATION.to_owned());
    }
    let is_sparse = matches!(best.mechanism(Want::Thin), Mechanism::Given(_));
    let form = match best.form {
        StorageForm::Raw | StorageForm::RawCopied if is_sparse => {
            "a raw file has no tables, and a sparse one takes space as the guest writes"
        }
        StorageForm::Raw | StorageForm::RawCopied => "a raw file has no tables",
        StorageForm::RawFalloc => "a raw file has no tables, and its space is reserved",
        StorageForm::RawFull => {
            "a raw file has no tables, and space that was written costs nothing at the first write"
        }
        StorageForm::Volume | StorageForm::WholeDisk => {
            "no file system is between the guest and the drives, and all space is allocated"
        }
        StorageForm::ThinVolume | StorageForm::ZfsVolume => {
            "no file system is between the guest and the pool"
        }
        _ => "of the forms that have everything asked, it costs least",
    };
    reasons.push(form.to_owned());
    reasons.join("; ")
}

/// The best candidate for another intent, if that is another one.
fn alternative(
    asked: String,
    other: &StorageIntent,
    want: Option<Want>,
    candidates: &[StorageCandidate],
    now: &[(usize, Rank)],
) -> Option<Alternative> {
    let (best_now, _) = now.first()?;
    let ranked = ranked(other, candidates);
    let Some((best, rank)) = ranked.first() else {
        let want = want?;
        let of_now = candidates[*best_now].mechanism(want);
        let has_it = |it: &&StorageCandidate| !matches!(it.mechanism(want), Mechanism::Missing(_));
        let mut others = candidates.iter().filter(has_it);
        let other = others.find_map(|it| no_room(other, it));
        let why = other.unwrap_or_else(|| of_now.text().to_owned());
        return Some(Alternative {
            asked,
            best: None,
            why,
        });
    };
    if best == best_now {
        return None;
    }
    let candidate = &candidates[*best];
    let mut why = match want {
        Some(want) => candidate.mechanism(want).text().to_owned(),
        None => {
            let of_now = ranked.iter().find(|(nth, _)| nth == best_now);
            of_now
                .map_or(FORM_FITS, |(_, of_now)| decisive(rank, of_now))
                .to_owned()
        }
    };
    let is_error = |finding: &&Diagnostic| finding.severity == Severity::Error;
    if let Some(error) = candidate.findings.iter().find(is_error) {
        why = format!("{why}, with the error {}", error.rule.name);
    }
    Some(Alternative {
        asked,
        best: Some((candidate.place.clone(), candidate.form)),
        why,
    })
}
