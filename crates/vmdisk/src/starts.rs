//! The starts of QEMU in one script.

use std::collections::{BTreeSet, HashMap, HashSet};

use vmdisk_model::{DomainField, FieldPath};
use vmdisk_qemu::CommandLineForm;
use vmdisk_source::Span;

use crate::rules::{Missing, NotChecked};
use crate::{Diagnostic, Document, LintReport, RelatedPlace, Source};

impl Document {
    /// This document, and those of the further starts of QEMU in its text.
    pub fn starts(&self) -> impl Iterator<Item = &Document> {
        std::iter::once(self).chain(&self.further)
    }

    /// The starts, each as a document of its own, without [parts](Self::is_part).
    pub fn into_starts(mut self) -> Vec<Document> {
        let further = std::mem::take(&mut self.further);
        let all = std::iter::once(self).chain(further);
        all.filter(|it| !it.is_part()).collect()
    }

    /// True if it is another start once more, with text of the script that only counts under its last condition: that text is
    /// checked so, and nothing is converted so.
    pub fn is_part(&self) -> bool {
        self.start().is_some_and(|start| start.is_part)
    }

    /// The number of disks of all starts, with those that only count under a condition.
    pub fn disks_of_starts(&self) -> usize {
        let (mut sum, mut whole) = (0, 0);
        for start in self.starts() {
            let number = start.domain().disks.len();
            match start.is_part() {
                true => sum += number.saturating_sub(whole),
                false => {
                    sum += number;
                    whole = number;
                }
            }
        }
        sum
    }

    /// The function or target that starts QEMU so.
    pub fn start_owner(&self) -> Option<&str> {
        self.start()?.owner.as_deref()
    }

    /// The line from which QEMU is started so.
    pub fn start_line(&self) -> Option<usize> {
        if let Source::LibvirtXml(_) = self.source {
            let place = self.nearest_place(FieldPath::Domain(DomainField::Domain));
            return Some(place.start.line);
        }
        let offset = Span::empty(self.start()?.offset);
        Some(self.unnamed_place(offset, true).start.line)
    }

    /// True if several documents of its text are several guests, and not the ways in which a script starts one.
    pub fn is_guest_of_its_own(&self) -> bool {
        match &self.source {
            Source::QemuCommandLine(document) => document.form == CommandLineForm::Json,
            Source::LibvirtXml(_) => true,
            Source::Spec(_) => false,
        }
    }

    /// True if a run without arguments and variables of the caller starts QEMU so.
    pub fn is_default_start(&self) -> bool {
        self.start().is_none_or(|start| start.is_default)
    }

    /// The start in words: ``line 4, in `run`, `[ -n "$CD" ]` ``.
    pub fn start_in_words(&self) -> String {
        let mut words = format!("line {}", self.start_line().unwrap_or(1));
        if let Some(owner) = self.start_owner() {
            words.push_str(&format!(", in `{owner}`"));
        }
        for condition in self.start().iter().flat_map(|start| &start.conditions) {
            words.push_str(&format!(", `{condition}`"));
        }
        words
    }

    /// Words of the command line that may be any options, because a shell fills them in.
    pub fn unknown_words(&self) -> impl Iterator<Item = &vmdisk_qemu::OtherOption> {
        let others = match &self.source {
            Source::QemuCommandLine(document) => document.others.as_slice(),
            Source::LibvirtXml(_) | Source::Spec(_) => &[],
        };
        others.iter().filter(|other| other.is_unknown)
    }

    /// The values of disks that have a part which is unknown, as they are written.
    pub fn unknown_values(&self) -> impl Iterator<Item = &str> {
        let kept = match &self.source {
            Source::QemuCommandLine(document) => document.kept.as_slice(),
            Source::LibvirtXml(_) | Source::Spec(_) => &[],
        };
        let open = kept
            .iter()
            .filter(|it| it.is_open && it.at.disk().is_some());
        open.filter_map(|it| it.span.slice(&self.text))
    }

    /// True if a finding compares values of one name that need not be the same: of two calls of `mktemp`, two lines of `read`.
    pub(crate) fn compares_unknown(&self, finding: &Diagnostic) -> bool {
        let Source::QemuCommandLine(source) = &self.source else {
            return false;
        };
        if finding.related.is_empty() {
            return false;
        }
        let places = finding.related.iter().map(|it| it.place.span);
        let places: BTreeSet<Span> = places.chain([finding.place.span]).collect();
        let holes = places.iter().flat_map(|it| source.holes_in(*it));
        let holes: Vec<_> = holes.filter(|it| !it.is_stable()).collect();
        let is_repeated = |(nth, hole): (usize, &&vmdisk_qemu::Hole)| {
            let mut others = holes[..nth].iter();
            others.any(|it| it.name == hole.name && !std::ptr::eq(*it, *hole))
        };
        holes.iter().enumerate().any(is_repeated)
    }

    /// Names the variables of what was not checked, and adds the unknown words, whose disks were not.
    pub(crate) fn name_variables(&self, not_checked: &mut Vec<NotChecked>) {
        let Source::QemuCommandLine(source) = &self.source else {
            return;
        };
        for missed in self.missed_by_paths(not_checked) {
            missed.missing = Missing::new("the path of the image", Missing::OPEN_VALUE);
        }
        for missed in not_checked.iter_mut() {
            if missed.missing.why != Missing::OPEN_VALUE {
                continue;
            }
            let span = self.nearest_place(missed.at).span;
            let names: BTreeSet<&str> = source.holes_in(span).map(|it| it.name.as_str()).collect();
            if !names.is_empty() {
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                missed.missing.what = format!("the value of {}", names.join(" and "));
            }
        }
        let rule = crate::rules::find("invalid-value").expect("the rule is in the table");
        let words: BTreeSet<&str> = self.unknown_words().map(|it| it.name.as_str()).collect();
        not_checked.extend(words.into_iter().map(|word| {
            let what = format!("the options of the word `{word}`");
            let missing = Missing::new(what, Missing::OPEN_VALUE);
            NotChecked::new(rule, FieldPath::Domain(DomainField::Devices), missing)
        }));
    }

    fn start(&self) -> Option<&vmdisk_qemu::Start> {
        match &self.source {
            Source::QemuCommandLine(document) => Some(&document.start),
            Source::LibvirtXml(_) | Source::Spec(_) => None,
        }
    }

    /// True if one text of the script becomes several options, as in a loop.
    pub(crate) fn repeats_text(&self) -> bool {
        match &self.source {
            Source::QemuCommandLine(document) => !document.shared.is_empty(),
            Source::LibvirtXml(_) | Source::Spec(_) => false,
        }
    }

    fn places(&self) -> Option<impl Iterator<Item = Span>> {
        match &self.source {
            Source::QemuCommandLine(document) => Some(document.places()),
            Source::LibvirtXml(_) | Source::Spec(_) => None,
        }
    }
}

/// The starts of a text, with what is asked about each finding.
struct Starts<'a> {
    all: Vec<&'a Document>,
    /// The number of starts that are no parts.
    whole: usize,
    /// The options of all starts in the order of their places, each with the number of its start.
    options: Vec<(Span, usize)>,
    /// The end of the longest of the options up to each.
    ends: Vec<usize>,
}

impl<'a> Starts<'a> {
    fn new(document: &'a Document) -> Self {
        let all: Vec<&Document> = document.starts().collect();
        let places = all.iter().enumerate().flat_map(|(nth, start)| {
            let places = start.places().into_iter().flatten();
            places.map(move |span| (span, nth))
        });
        let mut options: Vec<(Span, usize)> = places.collect();
        options.sort_unstable();
        let ends = options.iter().scan(0, |longest, (span, _)| {
            *longest = span.end.max(*longest);
            Some(*longest)
        });
        Starts {
            whole: all.iter().filter(|it| !it.is_part()).count(),
            ends: ends.collect(),
            options,
            all,
        }
    }

    /// The starts with an option at a place.
    fn at(&self, place: Span) -> impl Iterator<Item = usize> {
        let first = self.ends.partition_point(|end| *end < place.start);
        let after = self
            .options
            .partition_point(|(span, _)| span.start <= place.end);
        let near = self.options.get(first..after).unwrap_or_default().iter();
        near.filter(move |(span, _)| place.start <= span.end)
            .map(|(_, nth)| *nth)
    }

    fn is_whole(&self, nth: usize) -> bool {
        !self.all[nth].is_part()
    }

    /// The start that a part belongs to.
    fn base(&self, nth: usize) -> Option<usize> {
        (0..=nth).rev().find(|it| self.is_whole(*it))
    }
}

/// One report of all starts. What several starts or disks share is there once, such as what a loop adds; what only some
/// starts have names them.
pub(crate) fn merged(
    document: &Document,
    reports: impl IntoIterator<Item = LintReport>,
) -> LintReport {
    let starts = Starts::new(document);
    let first = starts.all[0];
    let mut all = LintReport::default();
    let (mut shared, mut allowed) = (Shared::default(), Shared::default());
    let mut missing = HashSet::new();
    for (nth, report) in reports.into_iter().enumerate() {
        all.placeholders = all.placeholders.max(report.placeholders);
        report
            .diagnostics
            .into_iter()
            .for_each(|one| shared.add(nth, starts.all[nth], one));
        report
            .allowed
            .into_iter()
            .for_each(|one| allowed.add(nth, starts.all[nth], one));
        let name = |document: &Document, index: usize| {
            document
                .domain()
                .disks
                .get(index)
                .map(|disk| disk.name().to_owned())
        };
        for mut missed in report.not_checked {
            // The names of disks are those of the first start.
            let is_other = |at: &FieldPath| {
                let disk = at.disk();
                disk.is_some_and(|disk| name(first, disk) != name(starts.all[nth], disk))
            };
            let places = std::iter::once(&mut missed.at).chain(&mut missed.further);
            for at in places.filter(|at| is_other(at)) {
                *at = FieldPath::Domain(DomainField::Devices);
            }
            missed.further.dedup();
            let NotChecked {
                rule,
                at,
                missing: reason,
                hosts: _, // several starts have no several hosts
                further,
            } = &missed;
            if missing.insert((rule.name, *at, reason.clone(), further.clone())) {
                all.not_checked.push(missed);
            }
        }
    }
    let order = |diagnostic: &Diagnostic| (diagnostic.place.span, diagnostic.rule.name);
    // What one start does not need, another one may.
    let is_needed = |one: &SharedFinding| {
        one.first.rule.name == "allowance-unused" && one.starts.len() < starts.all.len()
    };
    all.diagnostics = shared
        .all
        .into_iter()
        .filter(|one| !is_needed(one))
        .map(|one| one.told(&starts))
        .collect();
    all.allowed = allowed.all.into_iter().map(|one| one.first).collect();
    all.diagnostics.sort_by_key(order);
    all.allowed.sort_by_key(order);
    all.not_checked.sort_by_key(|missed| missed.rule.name);
    all
}

/// Findings of several starts, each once.
#[derive(Default)]
struct Shared {
    all: Vec<SharedFinding>,
    /// By place, rule, and title without the name of the disk.
    places: HashMap<(Span, &'static str, String), usize>,
    /// Findings that are about an image wherever it is named, by rule, image and title without the name of the disk.
    images: HashMap<(&'static str, String, String), usize>,
}

/// A finding, and where else it is.
struct SharedFinding {
    first: Diagnostic,
    /// The numbers of starts that have it.
    starts: BTreeSet<usize>,
    /// The targets of its further disks.
    disks: BTreeSet<String>,
    /// The starts with another fix than the first.
    other_fixes: BTreeSet<usize>,
}

impl Shared {
    fn add(&mut self, start: usize, document: &Document, one: Diagnostic) {
        let target = one.disk.as_ref().and_then(|disk| disk.target.as_deref());
        let title = match target {
            Some(target) => one.title.replace(&format!("`{target}`"), ""),
            None => one.title.clone(),
        };
        let new = self.all.len();
        let image = image_of(document, &one).map(|path| (one.rule.name, path, title.clone()));
        let named = image.map(|image| *self.images.entry(image).or_insert(new));
        let place = (one.place.span, one.rule.name, title);
        let at = *self.places.entry(place).or_insert(named.unwrap_or(new));
        match self.all.get_mut(at) {
            Some(known) if known.first.place.span != one.place.span => known.join(start, one),
            Some(known) => {
                known.starts.insert(start);
                // In a part, a disk of the start may have another name.
                if known.first.title != one.title && !document.is_part() {
                    known.disks.extend(target.map(str::to_owned));
                }
                if known.first.fix != one.fix {
                    known.other_fixes.insert(start);
                }
            }
            None => self.all.push(SharedFinding {
                first: one,
                starts: BTreeSet::from([start]),
                disks: BTreeSet::new(),
                other_fixes: BTreeSet::new(),
            }),
        }
    }
}

/// The image of a finding that is about the image, wherever starts name it.
fn image_of(document: &Document, one: &Diagnostic) -> Option<String> {
    if one.rule.name != "format-missing" {
        return None;
    }
    let disk = document.domain().disks.get(one.disk.as_ref()?.index)?;
    disk.backend.image()?.host_path().map(str::to_owned)
}

impl SharedFinding {
    /// Adds a finding about the same image at another place.
    fn join(&mut self, start: usize, one: Diagnostic) {
        self.starts.insert(start);
        let mut places = self.first.related.iter();
        if places.any(|it| it.place.span == one.place.span) {
            return;
        }
        self.first.related.push(RelatedPlace {
            place: one.place,
            label: "the same image".to_owned(),
        });
        self.first.fix = match (self.first.fix.take(), one.fix) {
            (Some(mut fix), Some(other)) if fix.applicability == other.applicability => {
                fix.edits.extend(other.edits);
                Some(fix)
            }
            _ => None,
        };
    }

    /// The finding, with the starts and disks that it is about, unless it is about all starts. A fix would change every
    /// start that uses its text, so each of them must have it.
    fn told(self, starts: &Starts<'_>) -> Diagnostic {
        let SharedFinding {
            first: mut one,
            starts: with,
            disks,
            other_fixes,
        } = self;
        let edits = one.fix.iter().flat_map(|fix| &fix.edits);
        let mut users = edits.flat_map(|edit| starts.at(edit.span));
        if users.any(|nth| !with.contains(&nth) || other_fixes.contains(&nth)) {
            one.fix = None;
        }
        if !disks.is_empty() {
            let names: Vec<String> = disks.iter().map(|name| format!("`{name}`")).collect();
            one.notes
                .push(format!("the same is true of {}", names.join(", ")));
        }
        // The parts of a start have what the start has.
        let is_of_all = with.iter().filter(|nth| starts.is_whole(**nth)).count() == starts.whole;
        if !is_of_all && !starts.all[0].is_guest_of_its_own() {
            let is_known = |nth: &&usize| {
                let base = starts.base(**nth);
                base == Some(**nth) || !base.is_some_and(|it| with.contains(&it))
            };
            let words = with
                .iter()
                .filter(is_known)
                .map(|nth| starts.all[*nth].start_in_words());
            let words: Vec<String> = words.take(4).collect();
            one.notes
                .push(format!("QEMU is started so in {}", words.join("; ")));
        }
        one
    }
}
