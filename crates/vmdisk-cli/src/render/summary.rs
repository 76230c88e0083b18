//! The summary of a run in one or two lines.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;
use vmdisk::plan::shell_word;

use vmdisk::report::{Counts, Unchecked};

use crate::report::input::{CheckedHost, InputReport};
use crate::sanitize::line;
use crate::values::unknown_words;
use vmdisk::report::Classes;

/// Numbers of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) counts: Counts,
    /// Inputs with disks.
    with_disks: usize,
    /// Templates, and the number of their placeholders.
    templates: (usize, usize),
    /// Words of command lines that may be any options.
    unknown_words: BTreeSet<String>,
    /// Files of directories that name QEMU or make guests, and were not read.
    pub(crate) unread: usize,
    /// What was checked instead of files.
    host: Option<CheckedHost>,
    /// The reasons for that.
    reasons: BTreeSet<Cow<'static, str>>,
}

impl Summary {
    /// Counts an input.
    pub(crate) fn add(&mut self, input: &InputReport) {
        self.counts.add(&input.entry());
        self.host = self.host.take().or_else(|| input.host.clone());
        let Ok(report) = &input.outcome else { return };
        self.with_disks += usize::from(report.disks > 0);
        self.templates.0 += usize::from(report.placeholders > 0);
        self.templates.1 += report.placeholders;
        let words = report.unknown_words.iter().cloned();
        self.unknown_words.extend(words);
        for reason in &report.unchecked_rules.reasons {
            if !self.reasons.contains(reason) {
                self.reasons.insert(reason.clone());
            }
        }
    }

    /// Where to read on, if there is anything to read about.
    pub(crate) const fn further_reading(&self) -> Option<&'static str> {
        if self.counts.errors + self.counts.warnings + self.counts.advice + self.counts.pedantic
            == 0
        {
            return None;
        }
        Some("for more about a rule: vmdisk explain RULE\n")
    }

    /// A line about files that name QEMU or make guests, and were not read.
    pub(crate) fn unread_files(&self) -> String {
        match self.unread {
            0 => String::new(),
            number => format!(
                "{} QEMU or a guest and had none that was read: name one to see why\n",
                count(number, "file names", "files name")
            ),
        }
    }

    /// The summary for people, of a run with inputs; `suggests_fix` if the command can apply fixes.
    pub(crate) fn text(&self, suggests_fix: bool) -> String {
        let mut out = String::new();
        let read = self.counts.inputs - self.counts.failed_inputs;
        // Where nothing could be read, "no findings" would be no news.
        if read > 0 {
            let checked = match &self.host {
                Some(host) => host.what.clone(),
                None => count(read, "file", "files"),
            };
            let _ = write!(out, "{} in {checked}", self.found());
            if self.with_disks == 0 && self.host.is_none() {
                out.push_str(" without a disk");
            }
        }
        if self.counts.failed_inputs > 0 {
            let between = if read > 0 { "; " } else { "" };
            let failed = count(self.counts.failed_inputs, "input", "inputs");
            let _ = write!(out, "{between}{failed} failed");
        }
        if self.counts.fixed > 0 {
            let _ = write!(out, "; {} fixed", self.counts.fixed);
        }
        out.push_str(&self.undone());
        if self.counts.allowed > self.counts.known {
            let _ = write!(out, "; {} allowed", self.counts.allowed - self.counts.known);
        }
        if self.counts.known > 0 {
            let _ = write!(out, "; {} in the baseline", self.counts.known);
        }
        if let Some(not_checked) = self.not_checked() {
            let _ = write!(out, "; {not_checked}");
        }
        out.push('\n');
        for left_out in self.host.iter().flat_map(|host| &host.left_out) {
            let _ = writeln!(out, "not checked: {}", line(left_out));
        }
        out.push_str(&unknown_words(&self.unknown_words));
        out.push_str(&self.unread_files());
        if let (files @ 1.., placeholders) = self.templates {
            let files = match files {
                1 => "a template was".to_owned(),
                number => format!("{number} templates were"),
            };
            let placeholders = count(placeholders, "placeholder", "placeholders");
            let _ = writeln!(
                out,
                "{files} checked without the values of {placeholders}; lint the rendered text for the rest"
            );
        }
        match (self.counts.fixable, self.counts.fixable_unsafely) {
            _ if !suggests_fix => {}
            (0, 0) => {}
            (safe, 0) => {
                let _ = writeln!(out, "{safe} fixable with --fix");
            }
            (0, other) => {
                let _ = writeln!(out, "{other} fixable with --fix --unsafe-fixes");
            }
            (safe, other) => {
                let _ = writeln!(
                    out,
                    "{safe} fixable with --fix, {other} more with --unsafe-fixes"
                );
            }
        }
        out
    }

    /// The numbers of findings.
    fn found(&self) -> String {
        let counts = [
            (self.counts.errors, "error", "errors"),
            (self.counts.warnings, "warning", "warnings"),
            (self.counts.advice, "advice", "advice"),
            (
                self.counts.pedantic,
                "pedantic finding",
                "pedantic findings",
            ),
        ];
        let found = counts.iter().filter(|(number, ..)| *number > 0);
        let found = found.map(|(number, one, many)| count(*number, one, many));
        match found.collect::<Vec<_>>().as_slice() {
            [] => "no findings".to_owned(),
            found => found.join(", "),
        }
    }

    /// The number of rules that could not be checked, with the reason; `None` if all could.
    pub(crate) fn not_checked(&self) -> Option<String> {
        let number = self.counts.rules_not_checked.len();
        // The line about templates says what these leave open.
        let of_template = |why: &Cow<'_, str>| *why == vmdisk::rules::Missing::PLACEHOLDER;
        if number == 0 || self.reasons.iter().all(of_template) {
            return None;
        }
        let no_facts = vmdisk::rules::Missing::NO_FACTS;
        let not_qemu = vmdisk::rules::Missing::NOT_QEMU;
        let given = (
            self.reasons.contains(no_facts),
            self.reasons.contains(not_qemu),
            self.reasons.len(),
        );
        let why = match given {
            (true, _, 1) => "no facts of the host: add --live or --facts FILE",
            (true, _, _) => {
                "no facts of the host: add --live or --facts FILE; -v lists all reasons"
            }
            (false, true, 1) => "they are about QEMU, which does not run this guest",
            (false, _, _) => "-v lists why",
        };
        let rules = count(number, "rule", "rules");
        Some(format!("{rules} not checked ({why})"))
    }
}

impl Summary {
    /// Why findings are left after `--add-allowances`; `None` if none is.
    pub(crate) fn without_allowance(&self) -> Option<String> {
        let Counts {
            errors,
            warnings,
            advice,
            pedantic,
            ..
        } = self.counts;
        let left = errors + warnings + advice + pedantic;
        let findings = count(left, "finding", "findings");
        let why = "JSON has no comments, and no comment elsewhere would allow just what is found";
        (left > 0).then(|| format!("no comment was written for {findings}: {why}\n"))
    }

    /// What `--diff` has to say.
    pub(crate) fn would_fix(&self) -> String {
        let mut out = format!(
            "{} would be fixed",
            count(self.counts.fixed, "finding", "findings")
        );
        let _ = write!(
            out,
            " in {}",
            count(
                self.counts.inputs - self.counts.failed_inputs,
                "file",
                "files"
            )
        );
        if self.counts.failed_inputs > 0 {
            let _ = write!(
                out,
                "; {} failed",
                count(self.counts.failed_inputs, "input", "inputs")
            );
        }
        out.push_str(&self.undone());
        out.push('\n');
        out
    }

    /// The number of fixes that were undone, if there are any.
    fn undone(&self) -> String {
        match self.counts.failed_fixes {
            0 => String::new(),
            number => format!("; {} undone", count(number, "fix", "fixes")),
        }
    }
}

/// What could not be checked in all inputs: by rule and reason, the number of places, and the first of them with the path
/// of its input.
#[derive(Debug, Default)]
pub(crate) struct Missed<'a> {
    by_rule: BTreeMap<(&'static str, &'a str), (usize, &'a str, Unchecked<'a>)>,
    /// By the path of an image that the facts do not have: the first input with the image, and the rules that could not
    /// check it.
    by_image: BTreeMap<&'a str, (&'a str, BTreeSet<&'static str>)>,
}

impl<'a> Missed<'a> {
    /// The places in these inputs.
    pub(crate) fn of(inputs: &'a [InputReport]) -> Self {
        let mut missed = Missed::default();
        inputs.iter().for_each(|input| missed.add(input));
        missed
    }

    fn add(&mut self, input: &'a InputReport) {
        for unchecked in input.not_checked() {
            let Unchecked {
                rule, why, places, ..
            } = unchecked;
            let first = unchecked.disk.iter().map(|(number, _)| number);
            let mut unknown = 0;
            for disk in first.chain(unchecked.further_disks) {
                let image = input.unknown_images.get(disk);
                if let Some(image) = image.filter(|_| why == vmdisk::rules::Missing::NOT_COLLECTED)
                {
                    let of_image = self.by_image.entry(image);
                    let (_, rules) = of_image.or_insert_with(|| (&input.path, BTreeSet::new()));
                    rules.insert(rule.name);
                    unknown += 1;
                }
            }
            if unknown < places {
                let missed = self.by_rule.entry((rule.name, why));
                let (number, ..) = missed.or_insert((0, &input.path, unchecked));
                *number += places - unknown;
            }
        }
    }

    /// A line for each missing fact, with the rules that need it, and one for each image that the facts do not have.
    /// `paths` are the arguments.
    pub(crate) fn text(&self, classes: Option<&Classes<'_>>, paths: &[PathBuf]) -> String {
        let mut out = String::new();
        for (image, (input, rules)) in &self.by_image {
            let _ = writeln!(
                out,
                "not checked: no facts about {} ({} in {})",
                line(image),
                count(rules.len(), "rule", "rules"),
                line(input)
            );
        }
        if !self.by_image.is_empty() {
            let _ = writeln!(
                out,
                "to collect them on the host: {}",
                line(&self.collect_command(paths))
            );
        }
        for rows in self.by_fact().values() {
            let [(rule, ..), ..] = rows.as_slice() else {
                continue;
            };
            let _ = match rows.len() {
                1 => write!(out, "not checked: {rule}: "),
                number => write!(out, "not checked: {number} rules: "),
            };
            out.push_str(&reason(rows, classes));
            if rows.len() > 1 {
                let names: Vec<&str> = rows.iter().map(|(rule, ..)| *rule).collect();
                let _ = write!(out, ": {}", names.join(", "));
            }
            out.push('\n');
        }
        out
    }

    /// Rules and reasons by the missing fact: of several places, by that of the first.
    fn by_fact(&self) -> BTreeMap<[&str; 3], Vec<Row<'a>>> {
        let mut facts: BTreeMap<[&str; 3], Vec<Row<'a>>> = BTreeMap::new();
        for ((rule, why), (number, path, first)) in &self.by_rule {
            let key = match is_for_all(why) {
                true => [why, "", ""],
                false => [why, path, first.what],
            };
            let row = (*rule, *number, *path, *first);
            facts.entry(key).or_default().push(row);
        }
        facts
    }
}

/// A rule with the number of places that it could not check, and the first of them with the path of its input.
type Row<'a> = (&'static str, usize, &'a str, Unchecked<'a>);

/// True for a reason that holds for all facts of its kind.
fn is_for_all(why: &str) -> bool {
    use vmdisk::rules::Missing;
    [
        Missing::NO_FACTS,
        Missing::NO_QEMU,
        Missing::NO_OTHERS,
        Missing::DISKS_ONLY,
        Missing::NOT_QEMU,
    ]
    .contains(&why)
}

/// The reason why rules could not check something, and the place.
fn reason(rows: &[Row<'_>], classes: Option<&Classes<'_>>) -> String {
    let Some((_, _, path, first)) = rows.first() else {
        return String::new();
    };
    let mut out = line(first.why).to_string();
    if rows.len() > 1 && is_for_all(first.why) {
        return out;
    }
    let _ = write!(
        out,
        " ({} in {}: {}",
        line(first.field),
        line(path),
        line(first.what)
    );
    if let Some(classes) = classes.filter(|_| !first.hosts.is_empty()) {
        let _ = write!(out, " on {}", line(&classes.names(first.hosts).join(", ")));
    }
    let most = rows.iter().map(|(_, number, ..)| *number).max();
    if let Some(more @ 1..) = most.map(|most| most - 1) {
        let _ = write!(out, "; and {}", count(more, "more place", "more places"));
    }
    out.push(')');
    out
}

impl Missed<'_> {
    /// The command that collects the facts of unknown images.
    fn collect_command(&self, paths: &[PathBuf]) -> String {
        let mut command = "vmdisk facts".to_owned();
        let files = paths.iter().filter(|path| path.as_os_str() != "-");
        for path in files {
            let _ = write!(command, " --for {}", shell_word(&path.to_string_lossy()));
        }
        // A guest of libvirt, or standard input.
        if paths.is_empty() || paths.iter().any(|path| path.as_os_str() == "-") {
            for image in self.by_image.keys() {
                let _ = write!(command, " {}", shell_word(image));
            }
        }
        if self.by_image.keys().any(|image| !image.starts_with('/')) {
            command.push_str(" --base DIR");
        }
        command.push_str(" -o facts.json");
        command
    }
}

pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
