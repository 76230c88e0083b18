//! Advice for people: the recommendation with its reasons, what would change it, and a table of everything that fits.

use std::collections::BTreeSet;
use std::fmt::Write;

use vmdisk::advise::{Alternative, DiskLoad, Mechanism, StorageAdvice, StorageCandidate, Want};

use vmdisk::facts::Quantity;
use vmdisk::{Diagnostic, Severity};

use super::whole_disk;
use crate::args::AdviseArgs;
use crate::sanitize::line;
use vmdisk_source::table::{fitted, table};

/// The advice as text.
pub(super) fn write(
    advice: &StorageAdvice,
    AdviseArgs {
        workload: load,
        wants,
        guests,
        ..
    }: &AdviseArgs,
    width: Option<usize>,
) -> String {
    let mut out = compared(advice);
    match advice.fitting.first() {
        Some(best) => recommended(&mut out, best, &advice.reasons[0], wants, *guests),
        None => out.push_str("nothing fits\n"),
    }
    let second = advice.reasons.get(1).map(|why| (1, why));
    let second = advice
        .other_place
        .as_ref()
        .map(|(nth, why)| (*nth, why))
        .or(second);
    if let Some((nth, why)) = second {
        let second = &advice.fitting[nth];
        let (form, place) = (second.form, line(&second.place));
        let _ = writeln!(
            out,
            "second best: {form} in {place}; for the first one: {why}"
        );
    }
    if !advice.alternatives.is_empty() {
        out.push_str("\nif more is asked:\n");
    }
    let is_same =
        |one: &Alternative, next: &Alternative| (&one.best, &one.why) == (&next.best, &next.why);
    for same in advice.alternatives.chunk_by(is_same) {
        let Alternative { best, why, .. } = &same[0];
        let asked: Vec<&str> = same.iter().map(|it| it.asked.as_str()).collect();
        let (asked, why) = (asked.join(" or "), line(why));
        let _ = match best {
            Some((place, form)) => writeln!(out, "  {asked}: {form} in {}: {why}", line(place)),
            None => writeln!(out, "  {asked}: nothing fits: {why}"),
        };
    }
    if !advice.fitting.is_empty() {
        out.push('\n');
    }
    out = fitted(&out, width);
    if !advice.fitting.is_empty() {
        compare(&mut out, &advice.fitting, *load, width);
    }
    out + &fitted(&left_out(advice), width)
}

/// Places that the first line names.
const MAX_COMPARED: usize = 6;

/// Where the advice looked.
fn compared(advice: &StorageAdvice) -> String {
    let fitting = advice.fitting.iter().map(|it| it.place.as_str());
    let excluded = advice.excluded.iter().map(|it| it.place.as_str());
    let mut seen = BTreeSet::new();
    let places = fitting.chain(excluded).filter(|place| seen.insert(*place));
    let places: Vec<_> = places.map(line).collect();
    let more = match places.len().saturating_sub(MAX_COMPARED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    if places.is_empty() {
        let collect = "`vmdisk facts --group places -o facts.json` collects them";
        return format!("the facts name no place: {collect}\n");
    }
    let first = &places[..places.len().min(MAX_COMPARED)];
    format!("compared: {}{more}\n", first.join(", "))
}

fn recommended(out: &mut String, best: &StorageCandidate, why: &str, wants: &[Want], guests: u32) {
    let (form, place, kind) = (best.form, line(&best.place), line(&best.kind));
    let mut wanted = best.gives.iter().filter(|(want, _)| wants.contains(want));
    let is_unknown = wanted.any(|(_, it)| matches!(it, Mechanism::Unknown(_)));
    let has_error = best
        .findings
        .iter()
        .any(|it| it.severity == Severity::Error);
    let head = match (has_error, is_unknown) {
        (true, _) => "the best of what fits, but only after its error is ended",
        (false, true) => "may fit, which the facts do not decide",
        (false, false) => "recommended",
    };
    let _ = writeln!(out, "{head}: {form} in {place} ({kind})\n  why: {why}");
    let _ = writeln!(out, "  flushed data after a crash: {}", best.loss.flushed);
    for (want, mechanism) in &best.gives {
        let (word, text) = (mechanism.word(), line(mechanism.text()));
        let _ = writeln!(out, "  {want}: {word}: {text}");
    }
    let free = match (best.free, best.most_free) {
        (Some(free), _) => format!("{} are free", free.rounded()),
        (None, Some(most)) => format!(
            "the free space is not known, at most {} can be free",
            most.rounded()
        ),
        (None, None) => "the free space is not known".to_owned(),
    };
    let each = if guests > 1 { " each" } else { "" };
    let _ = writeln!(
        out,
        "  space: {}{each} when it is made; {free}",
        best.taken.rounded()
    );
    match best.is_removable {
        Some(true) => out.push_str("  medium: removable or on USB\n"),
        Some(false) => {}
        None => out.push_str("  medium: whether it is removable is not known\n"),
    }
    if let Some(command) = whole_disk::command(best) {
        let _ = writeln!(out, "  before it is used: `{command}` must print nothing");
    }
    let settings = best.plan.choices.iter().filter(|it| it.at.disk().is_some());
    let settings: Vec<String> = settings
        .map(|it| format!("{}={}", it.option, it.value))
        .collect();
    let _ = writeln!(out, "  settings: {}", line(&settings.join(" ")));
    for measured in &best.measured {
        let figures: Vec<String> = measured.figures.iter().map(ToString::to_string).collect();
        let on = measured.conditions();
        let _ = writeln!(out, "  measured: {}, on {}", figures.join("; "), line(&on));
    }
    for (measured, why) in &best.unused {
        let figures: Vec<String> = measured.figures.iter().map(ToString::to_string).collect();
        if !figures.is_empty() {
            let _ = writeln!(out, "  not used: {}: {}", figures.join("; "), line(why));
        }
    }
    for finding in best.todo() {
        let todo = finding.help.as_ref().unwrap_or(&finding.title);
        let _ = writeln!(out, "  best after: {} ({})", line(todo), finding.rule.name);
    }
    let is_shown = |it: &&Diagnostic| !it.is_about_host || it.severity == Severity::Error;
    for finding in best.findings.iter().filter(is_shown) {
        let (severity, title) = (finding.severity.as_str(), line(&finding.title));
        let _ = writeln!(out, "  {severity}[{}]: {title}", finding.rule.name);
    }
}

/// A row for each candidate, in aligned columns.
fn compare(
    out: &mut String,
    candidates: &[StorageCandidate],
    load: DiskLoad,
    width: Option<usize>,
) {
    let quantity = match load {
        DiskLoad::Database => Quantity::Flush,
        DiskLoad::Sequential | DiskLoad::Backup => Quantity::SequentialWrite,
        DiskLoad::Mixed | DiskLoad::Ci => Quantity::ParallelWrite,
        DiskLoad::Boot => Quantity::RandomRead,
    };
    // The figure of the load, or another one.
    let measured = |candidate: &StorageCandidate| {
        let figures = candidate.measured.iter().flat_map(|it| &it.figures);
        let of_load = figures.clone().find(|it| it.quantity == quantity);
        of_load.or(figures.clone().next()).map(ToString::to_string)
    };
    let is_measured = candidates.iter().any(|it| measured(it).is_some());
    let heads = ["place", "form"].map(str::to_owned).into_iter();
    let heads = heads.chain(Want::ALL.iter().map(ToString::to_string));
    let head = is_measured.then_some("measured");
    let heads = heads.chain(["flushed", "free"].map(str::to_owned));
    let heads = heads.chain(head.into_iter().chain(["findings"]).map(str::to_owned));
    let rows = candidates.iter().map(|candidate| {
        let short = |want: &Want| match candidate.mechanism(*want) {
            Mechanism::AtPrice(_) => "price".to_owned(),
            Mechanism::Unknown(_) => "?".to_owned(),
            mechanism => mechanism.word().to_owned(),
        };
        let mut row = vec![
            line(&candidate.place).into_owned(),
            candidate.form.to_string(),
        ];
        row.extend(Want::ALL.iter().map(short));
        row.push(candidate.loss.flushed.to_string());
        row.push(candidate.free.map_or("?".to_owned(), |free| free.rounded()));
        if is_measured {
            row.push(measured(candidate).unwrap_or("not known".to_owned()));
        }
        let mut rules: Vec<&str> = candidate.findings.iter().map(|it| it.rule.name).collect();
        rules.dedup();
        row.push(rules.join(" "));
        row
    });
    let rows: Vec<Vec<String>> = std::iter::once(heads.collect()).chain(rows).collect();
    out.push_str(&table(&rows, true, width));
}

/// Everything that does not fit, with the deciding fact.
pub(super) fn left_out(advice: &StorageAdvice) -> String {
    let mut out = String::new();
    if !advice.excluded.is_empty() {
        out.push_str("\nleft out:\n");
    }
    for excluded in &advice.excluded {
        let (place, why) = (line(&excluded.place), line(&excluded.why));
        let forms: Vec<&str> = excluded.forms.iter().map(|form| form.word()).collect();
        let _ = match forms.is_empty() {
            true => writeln!(out, "  {place}: {why}"),
            false => writeln!(out, "  {place}: {why} ({})", forms.join("; ")),
        };
    }
    out
}
