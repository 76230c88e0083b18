//! Caveats for readers of the figures.

use std::collections::{BTreeMap, BTreeSet};

use super::figures;
use super::result::BenchResult;
use crate::method::{median, percent};
use crate::{
    Accelerator, CellId, Comparison, Ended, Load, MIN_ROUNDS, Measurement, Phase, Round, Verdict,
};

/// The first words of a limit of a control group in the environment of a run.
pub const LIMIT: &str = "limit on ";

/// Returns every remark, the most important first.
pub(crate) fn of(result: &BenchResult) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut say = |remark: Option<String>| remarks.extend(remark);
    say(emulation(result));
    say(ending(result));
    say(too_few(result));
    say(limits(result));
    say(disturbed(result));
    say(control(result));
    say(complaints(result));
    say(memory(result));
    say(passes(result));
    say(failures(result));
    remarks.extend(notes(result));
    let mut say = |remark: Option<String>| remarks.extend(remark);
    say(first_round(result));
    say(outliers(result));
    say(interrupted(result));
    say(correction(result));
    remarks
}

fn emulation(result: &BenchResult) -> Option<String> {
    let emulated = result
        .cells
        .iter()
        .filter(|cell| cell.accelerator == Accelerator::Tcg);
    (emulated.count() > 0).then(|| {
        "guests ran under TCG, which emulates their processors; computation costs many times as much as under KVM, so the \
        figures show which configuration does less work and not how fast a guest is; do not compare them with \
        figures from KVM"
            .to_owned()
    })
}

fn ending(result: &BenchResult) -> Option<String> {
    match result.ended {
        Some(Ended::Precise | Ended::AllRounds) => None,
        Some(Ended::TimeBudget) => {
            Some("the time budget ended before all rounds were complete".to_owned())
        }
        Some(Ended::Stopped) => Some("the run was stopped; it can be resumed".to_owned()),
        Some(Ended::NothingLeft) => Some("no remaining cell could be measured".to_owned()),
        None => {
            Some("the run is still in progress or was interrupted; it can be resumed".to_owned())
        }
    }
}

fn too_few(result: &BenchResult) -> Option<String> {
    let is_short = |comparison: &Comparison| comparison.verdict == Verdict::TooFewRounds;
    let count = result.comparisons().filter(|it| is_short(it)).count();
    (count > 0).then(|| {
        let comparisons = figures::count(count, "comparison has", "comparisons have");
        format!("{comparisons} fewer than {MIN_ROUNDS} rounds, too few to show a difference")
    })
}

fn limits(result: &BenchResult) -> Option<String> {
    let environment = result.header.environment.iter();
    let limits = environment.filter(|(what, _)| what.starts_with(LIMIT));
    let limits: Vec<String> = limits
        .map(|(what, limit)| format!("{what} ({limit})"))
        .collect();
    (!limits.is_empty()).then(|| {
        format!(
            "figures may be those of a limit, and not of a disk: {}",
            limits.join("; ")
        )
    })
}

fn disturbed(result: &BenchResult) -> Option<String> {
    let rounds: Vec<_> = result
        .rounds
        .iter()
        .filter(|round| !round.disturbances.is_empty())
        .collect();
    if rounds.is_empty() {
        return None;
    }
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in rounds.iter().flat_map(|round| &round.disturbances) {
        *reasons.entry(reason).or_default() += 1;
    }
    let worst = reasons
        .iter()
        .max_by_key(|(reason, count)| (**count, std::cmp::Reverse(*reason)));
    Some(format!(
        "the machine was not quiet in {} of {} rounds ({}); their samples count like the others",
        rounds.len(),
        result.rounds.len(),
        worst.map_or("", |(reason, _)| reason)
    ))
}

/// Minimum variation of the machine's own speed for a remark.
const MAX_SWING: f64 = 0.10;

fn control(result: &BenchResult) -> Option<String> {
    let controls = result
        .rounds
        .iter()
        .map(|round| round.control)
        .filter(|control| *control > 0.0);
    let (low, high) = controls.fold((f64::INFINITY, 0.0_f64), |(low, high), control| {
        (low.min(control), high.max(control))
    });
    let swing = high / low - 1.0;
    // Guests have a separate control.
    let guests: Vec<f64> = result
        .samples
        .iter()
        .filter_map(|sample| sample.measurement.control_iops)
        .filter(|control| *control > 0.0)
        .collect();
    let guest_low = guests.iter().copied().fold(f64::INFINITY, f64::min);
    let guest_swing = guests.iter().copied().fold(0.0, f64::max) / guest_low - 1.0;
    match (
        swing > MAX_SWING && swing.is_finite(),
        guest_swing > MAX_SWING && guest_swing.is_finite(),
    ) {
        (false, false) => None,
        (true, false) => Some(format!(
            "the speed of arithmetic without a disk differed by {} between rounds; this part of the variation is due to the machine",
            percent(swing)
        )),
        (false, true) => Some(format!(
            "the speed of requests without a disk differed by {} between guest boots; this part of the variation is due to the machine",
            percent(guest_swing)
        )),
        (true, true) => Some(format!(
            "without a disk, the speed of arithmetic differed by {} between rounds, and that of requests by {} between guest boots; \
            this part of the variation is due to the machine",
            percent(swing),
            percent(guest_swing)
        )),
    }
}

/// The words of a complaint, without its amounts.
pub(super) fn kind_of(complaint: &str) -> String {
    let is_amount = |word: &&str| {
        let unit = word.trim_end_matches(',');
        word.starts_with(|c: char| c.is_ascii_digit())
            || ["bytes", "KiB", "MiB", "GiB"].contains(&unit)
    };
    let words = complaint.split_whitespace().filter(|word| !is_amount(word));
    words.collect::<Vec<_>>().join(" ")
}

/// The most cells that a remark names.
const MAX_NAMES: usize = 4;

/// Returns the first names, and the number of the others.
fn some<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    if names.len() > MAX_NAMES + 1 {
        let more = names.split_off(MAX_NAMES).len();
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

fn complaints(result: &BenchResult) -> Option<String> {
    // By kind: the first complaint, the number of samples, and the cells.
    let mut kinds: BTreeMap<String, (&str, usize, BTreeSet<CellId>)> = BTreeMap::new();
    let counted = result.samples.iter().filter(|sample| sample.round > 0);
    for sample in counted.clone() {
        for complaint in &sample.measurement.semantics.complaints {
            let kind = kinds.entry(kind_of(complaint));
            let (_, count, cells) = kind.or_insert((complaint, 0, BTreeSet::new()));
            *count += 1;
            cells.insert(sample.cell);
        }
    }
    let all = counted.count();
    let texts = kinds.values().map(|(first, count, cells)| {
        let names = some(cells.iter().map(|cell| result.cells[cell.0].name.as_str()));
        format!("{count} of {all} samples, such as: {first} ({names})")
    });
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| {
        let texts = texts.join("; ");
        format!("samples failed their checks and do not count: {texts}")
    })
}

fn memory(result: &BenchResult) -> Option<String> {
    let cells = result.cells.iter();
    let cells = cells.filter(|cell| cell.summary.is_some() && result.is_of_memory(cell.cell));
    let names = some(cells.map(|cell| cell.name.as_str()));
    (!names.is_empty()).then(|| {
        format!(
            "less than 5 % of the bytes reached a device, so that the figures are those of the host's memory: {names}"
        )
    })
}

/// Names the first touches that went over the disk more than once and count: an older vmdisk did not check it.
fn passes(result: &BenchResult) -> Option<String> {
    let plan = &result.header.plan;
    // By workload: the configurations, and the fewest and the most passes.
    let mut rows: BTreeMap<&str, (BTreeSet<&str>, f64, f64)> = BTreeMap::new();
    for sample in result.samples.iter().filter(|sample| sample.counts()) {
        let cell = plan.cells[sample.cell.0];
        let workload = &plan.workloads[cell.workload];
        let (Phase::FirstTouch, Load::Blocks(load)) = (cell.phase, &workload.load) else {
            continue;
        };
        let size = plan.configurations[cell.configuration].size_bytes;
        let Measurement { read, write, .. } = &sample.measurement;
        let bytes: u64 = [read, write].into_iter().flatten().map(|it| it.bytes).sum();
        if bytes <= load.bytes_of_pass(size) {
            continue;
        }
        let passes = bytes as f64 / size.max(1) as f64;
        let (names, low, high) = rows
            .entry(&workload.name)
            .or_insert_with(|| (BTreeSet::new(), passes, passes));
        names.insert(plan.configuration_of(sample.cell));
        (*low, *high) = (low.min(passes), high.max(passes));
    }
    let texts = rows.iter().map(|(workload, (names, low, high))| {
        let names: Vec<&str> = names.iter().copied().collect();
        format!(
            "{workload} {low:.1} to {high:.1} times ({})",
            names.join(", ")
        )
    });
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| {
        format!(
            "samples of first-touch went over the disk more than once, so that their later writes are not first; a run of \
            today would not count them: {}",
            texts.join("; ")
        )
    })
}

fn failures(result: &BenchResult) -> Option<String> {
    let failed: Vec<String> = result
        .cells
        .iter()
        .filter(|cell| cell.failures > 0)
        .map(|cell| format!("{} ({} times)", cell.name, cell.failures))
        .collect();
    (!failed.is_empty()).then(|| format!("not measured in every round: {}", failed.join(", ")))
}

/// Returns the engines' notes without duplicates, with the configurations of each unless it applies to all.
fn notes(result: &BenchResult) -> Vec<String> {
    let plan = &result.header.plan;
    let mut by_text: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    let mut measured = BTreeSet::new();
    for sample in &result.samples {
        let configuration = plan.cells[sample.cell.0].configuration;
        measured.insert(configuration);
        for note in &sample.measurement.notes {
            // The accelerator has a separate remark.
            if !note.starts_with("emulated (TCG)") {
                by_text.entry(note).or_default().insert(configuration);
            }
        }
    }
    by_text
        .into_iter()
        .map(|(text, configurations)| {
            if configurations == measured {
                return text.to_owned();
            }
            let names: Vec<&str> = configurations
                .iter()
                .filter_map(|index| Some(plan.configurations.get(*index)?.name.as_str()))
                .collect();
            format!("{}: {text}", names.join(", "))
        })
        .collect()
}

fn first_round(result: &BenchResult) -> Option<String> {
    let is_slow = |values: &BTreeMap<u32, f64>| {
        let mut values = values.values().copied();
        let first = values.next()?;
        let rest: Vec<f64> = values.collect();
        Some(rest.len() >= 5 && first < 0.8 * median(&rest)?)
    };
    let slow = result
        .cells
        .iter()
        .filter(|cell| is_slow(&cell.values).unwrap_or(false));
    let (slow, all) = (slow.count(), result.cells.len());
    // By chance the first round is the slowest in one cell of six.
    (slow * 3 > all && slow > 0).then(|| {
        format!(
            "in {slow} of {all} cells the first round was the slowest: the warm-up was too short"
        )
    })
}

fn outliers(result: &BenchResult) -> Option<String> {
    let cells: Vec<&str> = result
        .cells
        .iter()
        .filter(|cell| {
            cell.summary
                .as_ref()
                .is_some_and(|summary| !summary.outliers.is_empty())
        })
        .map(|cell| cell.name.as_str())
        .collect();
    (!cells.is_empty()).then(|| {
        format!(
            "outliers, counted like the other samples: {}",
            cells.join(", ")
        )
    })
}

fn interrupted(result: &BenchResult) -> Option<String> {
    let is_cut_off = |round: &&Round| {
        let samples = result.samples.iter();
        let measured = samples.filter(|sample| sample.round == round.round).count();
        // Failed cells have a separate remark.
        let has_not_failed = |cell: &&CellId| {
            let cell = result.cells.get(cell.0);
            cell.is_some_and(|cell| cell.failures == 0)
        };
        round.round > 0 && measured < round.order.iter().filter(has_not_failed).count()
    };
    let count = result.rounds.iter().filter(is_cut_off).count();
    (count > 0).then(|| {
        format!(
            "{} not complete",
            figures::count(count, "round is", "rounds are")
        )
    })
}

fn correction(result: &BenchResult) -> Option<String> {
    let tested: Vec<&Comparison> = result
        .comparisons()
        .filter(|comparison| comparison.p_value.is_some())
        .collect();
    let count = tested.len();
    let alone = tested
        .iter()
        .filter(|comparison| {
            let interval = comparison.interval;
            comparison.verdict == Verdict::Inconclusive
                && interval.is_some_and(|it| it.low > 1.0 || it.high < 1.0)
        })
        .count();
    (count > 1).then(|| {
        let held_back = match alone {
            0 => String::new(),
            alone => format!("; this withholds {alone} whose own interval excludes 1"),
        };
        format!(
            "verdicts of {count} comparisons are corrected for their number (Holm): the probability of any false difference \
            is at most {}{held_back}",
            percent(result.alpha)
        )
    })
}
