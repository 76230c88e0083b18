//! The report about a document: everything that outputs say of it, as data.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vmdisk_model::FieldPath;
use vmdisk_source::LineIndex;

use crate::rules::{Missing, NotChecked};
use crate::{Diagnostic, Document, FailedFix, LintReport, Rule};

/// The findings of one document, with the parts of the document that outputs quote.
///
/// The secrets that findings quote are masked. The text and the edits of fixes are exact.
///
/// ```
/// use vmdisk::report::DocumentReport;
///
/// let text = "<disk type='file'><driver name='qemu' type='raw' cache='unsafe'/><source file='/a'/><target dev='vda'/></disk>";
/// let document = vmdisk::read(text)?;
/// let found = vmdisk::lint(&document, &vmdisk::LintOptions::default());
/// let report = DocumentReport::new(document.clone(), found.clone());
/// assert!(report.findings.iter().any(|finding| finding.rule.name == "cache-unsafe"));
/// assert_eq!((report.disks, &*report.text), (1, text));
/// let missed = report.not_checked.iter().find(|missed| missed.rule.name == "btrfs-cow-image").unwrap();
/// assert_eq!(missed.disk, Some((0, Some("vda"))));
/// assert_eq!((missed.what, missed.why), ("file system of /a", "no facts were given"));
///
/// let brief = DocumentReport::without_places(document, found);
/// assert!(brief.not_checked.iter().next().is_none() && brief.unchecked_rules == report.unchecked_rules);
/// # Ok::<(), vmdisk::ReadFailure>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DocumentReport {
    /// Name of the guest, if the document has one.
    pub domain: Option<String>,
    /// Number of disks.
    pub disks: usize,
    /// The text, if a finding refers to it.
    pub text: Arc<str>,
    /// Its lines.
    pub lines: Arc<LineIndex>,
    /// Findings that count.
    pub findings: Vec<Diagnostic>,
    /// Findings that do not count.
    pub allowed: Vec<Diagnostic>,
    /// Rules that could not look at something.
    pub unchecked_rules: UncheckedRules,
    /// The places that rules could not look at, without those of [`DocumentReport::without_places`].
    pub not_checked: UncheckedPlaces,
    /// Words of a command line that may be any options, each once.
    pub unknown_words: Vec<String>,
    /// Number of different placeholders and conditions of a template.
    pub placeholders: usize,
    /// Titles of the findings that were fixed.
    pub mended: Vec<String>,
    /// Fixes that were undone.
    pub failed_fixes: Vec<FailedFix>,
}

/// Rules that could not look at something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UncheckedRules {
    /// The rules.
    pub rules: Vec<&'static Rule>,
    /// The reasons, each once.
    pub reasons: Vec<Cow<'static, str>>,
}

/// Places that a rule could not look at for one reason, by the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unchecked<'a> {
    /// The rule.
    pub rule: &'static Rule,
    /// The disk by its number and its target's name, if it is about one.
    pub disk: Option<(usize, Option<&'a str>)>,
    /// The field in words.
    pub field: &'a str,
    /// The missing input.
    pub what: &'a str,
    /// Why it is missing.
    pub why: &'a str,
    /// The numbers of the hosts on which it was missing, where there are several.
    pub hosts: &'a [usize],
    /// The number of places.
    pub places: usize,
    /// The disks of the further places, by their numbers.
    pub further_disks: &'a [usize],
}

impl<'a> Unchecked<'a> {
    /// The order of reports. Most neighbours are of one rule, whose name need not be compared.
    fn compare(&self, other: &Self) -> Ordering {
        let further = |it: &Self| (it.places, it.further_disks);
        let words = |it: &Self| (it.disk, it.field, it.what, it.why, it.hosts, further(it));
        match std::ptr::eq(self.rule, other.rule) {
            true => words(self).cmp(&words(other)),
            false => self.rule.name.cmp(other.rule.name),
        }
    }
}

/// The places that rules could not look at, by rule and place. Without facts, a document has dozens with few texts, so each
/// text is stored once.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct UncheckedPlaces {
    entries: Vec<Entry>,
    /// The disk, and the number of the field's name.
    places: Vec<(Option<Disk>, u32)>,
    /// The number of each text about why something is missing, with the hosts on which it is.
    reasons: Vec<(u32, Vec<usize>)>,
    /// The disks of further places.
    further_disks: Vec<usize>,
    texts: String,
    /// Where each text ends.
    ends: Vec<u32>,
}

/// A disk by its number, and the number of its target's name.
type Disk = (usize, Option<u32>);

/// A rule, and the numbers of a place, of the text about what is missing, and of a reason.
#[derive(Clone, Copy, Debug)]
struct Entry {
    rule: &'static Rule,
    place: u32,
    what: u32,
    reason: u32,
    places: u32,
    /// Where its further disks begin and end.
    further_disks: [u32; 2],
}

impl DocumentReport {
    /// The report of a document.
    pub fn new(document: Document, report: LintReport) -> Self {
        let not_checked = unchecked(&document, &report.not_checked);
        DocumentReport {
            not_checked,
            ..Self::without_places(document, report)
        }
    }

    /// All findings, also those that do not count, in the order of the text.
    pub fn by_place(&self) -> Vec<&Diagnostic> {
        let mut findings: Vec<&Diagnostic> = self.findings.iter().chain(&self.allowed).collect();
        findings.sort_by_key(|finding| (finding.place.span, finding.rule.name));
        findings
    }

    /// The lists of hosts that it has, by their numbers.
    pub fn host_lists(&self) -> impl Iterator<Item = &[usize]> {
        let findings = self.findings.iter().chain(&self.allowed);
        let found = findings.filter_map(|finding| finding.hosts.as_ref());
        let found = found.flat_map(|hosts| [&*hosts.affected, &*hosts.not_checked]);
        found.chain(self.not_checked.iter().map(|missed| missed.hosts))
    }

    /// As [`DocumentReport::new`], without the places that rules could not look at: they are most of a report.
    pub fn without_places(document: Document, report: LintReport) -> Self {
        let LintReport {
            diagnostics,
            allowed,
            not_checked,
            placeholders,
        } = report;
        let domain = document.domain().name.clone();
        let domain = domain.map(|name| document.with_placeholders(name));
        let words = document.starts().flat_map(Document::unknown_words);
        let words: BTreeSet<&str> = words.map(|word| word.name.as_str()).collect();
        let unknown_words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let disks = document.disks_of_starts();
        let is_quoted = !diagnostics.is_empty() || !allowed.is_empty();
        let (text, lines) = match is_quoted {
            true => document.into_text(),
            false => Default::default(),
        };
        DocumentReport {
            domain,
            disks,
            text,
            lines,
            findings: diagnostics,
            allowed,
            unchecked_rules: UncheckedRules::of(&not_checked),
            unknown_words,
            placeholders,
            ..DocumentReport::default()
        }
    }
}

impl UncheckedRules {
    fn of(not_checked: &[NotChecked]) -> Self {
        let mut rules = UncheckedRules {
            rules: Vec::with_capacity(not_checked.len()),
            reasons: Vec::new(),
        };
        for NotChecked { rule, missing, .. } in not_checked {
            // Places come rule by rule.
            if rules.rules.last() != Some(rule) {
                rules.rules.push(rule);
            }
            if !rules.reasons.contains(&missing.why) {
                rules.reasons.push(missing.why.clone());
            }
        }
        rules.rules.shrink_to_fit();
        rules
    }

    /// Adds those of a further check of the same document.
    pub fn extend(&mut self, further: UncheckedRules) {
        for rule in further.rules {
            if !self.rules.contains(&rule) {
                self.rules.push(rule);
            }
        }
        for why in further.reasons {
            if !self.reasons.contains(&why) {
                self.reasons.push(why);
            }
        }
    }

    /// True if an input of a rule is missing. Of a guest that another program runs, there is nothing to look at.
    pub fn lack_input(&self) -> bool {
        self.reasons.iter().any(|why| *why != Missing::NOT_QEMU)
    }

    /// True if an input of a rule is missing that facts can have: none has what fills in a template or a variable, or other
    /// guests.
    pub fn lack_facts(&self) -> bool {
        let other = [
            Missing::NOT_QEMU,
            Missing::PLACEHOLDER,
            Missing::OPEN_VALUE,
            Missing::NO_OTHERS,
        ];
        self.reasons.iter().any(|why| !other.contains(&&**why))
    }
}

impl UncheckedPlaces {
    /// The places.
    pub fn iter(&self) -> impl Iterator<Item = Unchecked<'_>> {
        self.entries.iter().map(|entry| {
            let (disk, field) = &self.places[entry.place as usize];
            let (why, hosts) = &self.reasons[entry.reason as usize];
            let [first, end] = entry.further_disks;
            Unchecked {
                rule: entry.rule,
                disk: disk.map(|(index, target)| (index, target.map(|name| self.text(name)))),
                field: self.text(*field),
                what: self.text(entry.what),
                why: self.text(*why),
                hosts,
                places: entry.places as usize,
                further_disks: &self.further_disks[first as usize..end as usize],
            }
        })
    }

    /// Changes the numbers of hosts.
    pub fn renumber_hosts(&mut self, renumber: impl Fn(&mut Vec<usize>)) {
        let reasons = self.reasons.iter_mut();
        reasons.for_each(|(_, hosts)| renumber(hosts));
    }

    fn text(&self, number: u32) -> &str {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.texts[start as usize..self.ends[number] as usize]
    }
}

impl<'a> FromIterator<Unchecked<'a>> for UncheckedPlaces {
    fn from_iter<I: IntoIterator<Item = Unchecked<'a>>>(unchecked: I) -> Self {
        let mut sorted: Vec<Unchecked<'_>> = unchecked.into_iter().collect();
        sorted.sort_by(Unchecked::compare);
        sorted.dedup();
        let mut all = UncheckedPlaces {
            entries: Vec::with_capacity(sorted.len()),
            ..UncheckedPlaces::default()
        };
        let (mut texts, mut places, mut reasons) = Default::default();
        for one in sorted {
            let mut text = |text: &'a str| {
                number(&mut texts, text, || {
                    all.texts.push_str(text);
                    all.ends.push(number_of(all.texts.len()));
                })
            };
            let what = text(one.what);
            // Rules that miss something about one field have its name from one place.
            let name = one.field.as_bytes().as_ptr_range();
            let place = number(
                &mut places,
                (one.disk.map(|it| it.0), name.start, name.end),
                || {
                    let target =
                        |(index, target): (usize, Option<_>)| (index, target.map(&mut text));
                    let disk = one.disk.map(target);
                    all.places.push((disk, text(one.field)));
                },
            );
            let reason = number(&mut reasons, (one.why, one.hosts), || {
                all.reasons.push((text(one.why), one.hosts.to_vec()));
            });
            let first = number_of(all.further_disks.len());
            all.further_disks.extend(one.further_disks);
            all.entries.push(Entry {
                rule: one.rule,
                place,
                what,
                reason,
                places: number_of(one.places),
                further_disks: [first, number_of(all.further_disks.len())],
            });
        }
        all.places.shrink_to_fit();
        all.reasons.shrink_to_fit();
        all.texts.shrink_to_fit();
        all.ends.shrink_to_fit();
        all
    }
}

/// The number of a value, which `add` adds to a list if it is new.
fn number<K: Ord>(numbers: &mut BTreeMap<K, u32>, key: K, add: impl FnOnce()) -> u32 {
    let next = number_of(numbers.len());
    *numbers.entry(key).or_insert_with(|| {
        add();
        next
    })
}

fn number_of(length: usize) -> u32 {
    u32::try_from(length).expect("the texts about a document are shorter than 4 GiB")
}

/// What could not be checked, with the names of its places.
fn unchecked(document: &Document, not_checked: &[NotChecked]) -> UncheckedPlaces {
    // Many rules miss something about one field.
    let mut fields: BTreeMap<FieldPath, String> = BTreeMap::new();
    for NotChecked { at, .. } in not_checked {
        let field = fields.entry(*at);
        field.or_insert_with(|| document.breadcrumb(*at));
    }
    let disks = 0..document.domain().disks.len();
    let disks: Vec<_> = disks.map(|index| document.disk_identity(index)).collect();
    let target = |index: usize| disks.get(index)?.target.as_deref();
    let further: Vec<Vec<usize>> = not_checked.iter().map(further_disks).collect();
    let named = not_checked.iter().zip(&further);
    let named = named.map(|(missed, further)| Unchecked {
        rule: missed.rule,
        disk: missed.at.disk().map(|index| (index, target(index))),
        field: &fields[&missed.at],
        what: &missed.missing.what,
        why: &missed.missing.why,
        hosts: &missed.hosts,
        places: 1 + missed.further.len(),
        further_disks: further,
    });
    named.collect()
}

/// The disks of the places after the first.
fn further_disks(missed: &NotChecked) -> Vec<usize> {
    missed.further.iter().filter_map(|at| at.disk()).collect()
}
