//! A rule, its findings, and the report that joins them.

use vmdisk_fields::{Phrase, Speller};
use vmdisk_model::{Change, FieldPath};
use vmdisk_source::{Edit, Span};

use crate::{
    ByAnswer, ComparedHost, Comparison, Context, Evidence, Group, Missing, OtherGuests, Severity,
};

/// One rule.
pub struct Rule {
    /// Its name: kebab-case, names the bad pattern, never changed after a release.
    pub name: &'static str,
    /// The subject.
    pub group: Group,
    /// The usual severity; a finding may differ and gives the reason.
    pub severity: Severity,
    /// The first version of vmdisk that has the rule.
    pub since: &'static str,
    /// The evidence.
    pub evidence: &'static [Evidence],
    /// True if it checks the text itself; other rules check QEMU's behaviour, and skip guests that QEMU does not run.
    pub applies_to_foreign_guests: bool,
    /// True if it checks requirements of libvirt; such a rule skips QEMU command lines.
    pub libvirt_only: bool,
    /// True if the mistake is on the host, whatever the guest is.
    pub is_about_host: bool,
    /// Rules that do not report a disk that this rule reports: one cause gives one finding.
    pub supersedes: &'static [&'static str],
    /// The manual page, in Markdown, without the heading.
    pub page: &'static str,
    /// The file that declares it.
    pub file: &'static str,
    /// The input of the check, with the function.
    pub check: Check,
}

/// The input of a rule's check.
#[derive(Clone, Copy)]
pub enum Check {
    /// The model of one guest, with facts and target.
    Model(fn(&Context<'_>, &mut Report)),
    /// The hosts that one guest may run on.
    Hosts(fn(&Comparison<'_>, &mut Report)),
    /// The model of one guest, and the other guests of the run on the same host; at first none, then those with which it
    /// conflicts.
    Guests(fn(&Context<'_>, &OtherGuests, &mut Report)),
    /// The model of one guest, with facts and target, for a rule that a caller adds.
    Further(&'static (dyn Fn(&Context<'_>, &mut Report) + Send + Sync)),
    /// The text of one syntax: a [`TextRule`](crate::TextRule) has the function, or the reader reports the rule.
    Text,
    /// The result of starting QEMU with the disks; the caller that starts it reports its messages.
    Trial,
    /// The allowances of a file; the code that applies them reports the findings.
    Allowances,
}

impl Rule {
    /// The consequence of what the rule reports, if its evidence shows one: the note of a finding without notes.
    pub fn consequence(&self) -> Option<&'static str> {
        let is_refused = |evidence: &Evidence| evidence.is_refused_by_libvirt();
        let is_shown = self.libvirt_only && self.evidence.iter().any(is_refused);
        is_shown.then_some("libvirt refuses the guest")
    }

    /// True if the check looks at the model alone, so that a value that could not be read looks unset.
    pub const fn is_about_model(&self) -> bool {
        matches!(self.check, Check::Model(_) | Check::Further(_))
    }

    /// True if the rule compares the hosts that one guest may run on.
    pub const fn compares_hosts(&self) -> bool {
        matches!(self.check, Check::Hosts(_))
    }

    /// True if the rule compares the guests of one host.
    pub const fn compares_guests(&self) -> bool {
        matches!(self.check, Check::Guests(_))
    }
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Rule").field(&self.name).finish()
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Rule {}

/// The confidence in a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// It is based on a version number or a guess, not on an observation.
    Assumed,
    /// It is based on the configuration or on an observation.
    #[default]
    Certain,
}

/// The safety of a fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Applicability {
    /// The guest behaves as before, or as was clearly intended; `--fix` applies it.
    Safe,
    /// It is a trade-off, or visible to the guest; it is shown, and applied only on request.
    Unsafe,
}

impl Applicability {
    /// The word of reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Applicability::Safe => "safe",
            Applicability::Unsafe => "unsafe",
        }
    }
}

/// Edits that fix a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// Changes of the model; the facade turns them into byte edits.
    pub changes: Vec<Change>,
    /// Edits that the reader of the text already knows.
    pub edits: Vec<Edit>,
    /// The safety of the fix.
    pub applicability: Applicability,
}

impl Fix {
    /// A fix that may be applied without confirmation.
    pub fn safe(changes: impl Into<Vec<Change>>) -> Self {
        Fix {
            changes: changes.into(),
            edits: Vec::new(),
            applicability: Applicability::Safe,
        }
    }

    /// A fix that the user has to confirm.
    pub fn needs_consent(changes: impl Into<Vec<Change>>) -> Self {
        Fix {
            applicability: Applicability::Unsafe,
            ..Fix::safe(changes)
        }
    }
}

/// A second location of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// The location.
    pub at: FieldPath,
    /// Its relation to the finding.
    pub label: Phrase,
}

/// A report of a rule about one location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// The severity of this finding.
    pub severity: Severity,
    /// The confidence in it.
    pub confidence: Confidence,
    /// The location.
    pub at: FieldPath,
    /// The exact location, if a reader knows it better than the field does.
    pub span: Option<Span>,
    /// The mistake; names the disk by its target.
    pub title: Phrase,
    /// Edits that fix it.
    pub fix: Option<Fix>,
    /// True if it is the same for each guest of the host.
    pub is_about_host: bool,
    /// True if it takes no details, because nobody reads them.
    pub(crate) is_brief: bool,
    /// The rest, which many findings at once do not keep.
    details: Option<Box<Details>>,
}

/// What a finding says beside its title.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The label of the location.
    pub label: Option<Phrase>,
    /// Further locations.
    pub related: Vec<Related>,
    /// The reason why it matters here: the deciding facts, one sentence each.
    pub notes: Vec<Phrase>,
    /// The remedy.
    pub help: Option<Phrase>,
    /// If hosts are compared, the indexes of the affected hosts.
    pub hosts: Vec<usize>,
}

/// The texts of a finding, rendered in a syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingText {
    /// The mistake.
    pub title: String,
    /// The label of the location.
    pub label: Option<String>,
    /// The labels of further locations, in order.
    pub related: Vec<String>,
    /// The deciding facts.
    pub notes: Vec<String>,
    /// The remedy.
    pub help: Option<String>,
}

impl Finding {
    /// Renders the texts in a syntax.
    pub fn render(&self, speller: &dyn Speller) -> FindingText {
        let render = |phrase: &Phrase| phrase.render(speller);
        let Details {
            label,
            related,
            notes,
            help,
            hosts: _, // not a text
        } = self.details();
        let related = related.iter().map(|related| render(&related.label));
        FindingText {
            title: render(&self.title),
            label: label.as_ref().map(render),
            related: related.collect(),
            notes: notes.iter().map(render).collect(),
            help: help.as_ref().map(render),
        }
    }

    /// What it says beside its title.
    pub fn details(&self) -> &Details {
        const NONE: &Details = &Details {
            label: None,
            related: Vec::new(),
            notes: Vec::new(),
            help: None,
            hosts: Vec::new(),
        };
        self.details.as_deref().unwrap_or(NONE)
    }

    /// What it says beside its title, to change it.
    pub fn details_mut(&mut self) -> &mut Details {
        self.details.get_or_insert_default()
    }

    /// Takes what it says beside its title.
    pub fn take_details(&mut self) -> Details {
        self.details.take().map(|it| *it).unwrap_or_default()
    }

    fn detail(&mut self, set: impl FnOnce(&mut Details, FieldPath)) -> &mut Self {
        if !self.is_brief {
            let at = self.at;
            set(self.details_mut(), at);
        }
        self
    }

    /// Sets the affected hosts of a comparison.
    pub fn on_hosts(&mut self, hosts: impl IntoIterator<Item = usize>) -> &mut Self {
        self.detail(|own, _| {
            own.hosts = hosts.into_iter().collect();
            own.hosts.sort_unstable();
        })
    }

    /// Sets the label of the location.
    pub fn label(&mut self, label: impl Into<Phrase>) -> &mut Self {
        self.detail(|own, at| own.label = Some(about(at, label)))
    }

    /// Adds a further location.
    pub fn related(&mut self, at: FieldPath, label: impl Into<Phrase>) -> &mut Self {
        self.detail(|own, _| {
            let label = about(at, label);
            // Most have one, and there may be many.
            own.related.reserve_exact(1);
            own.related.push(Related { at, label });
        })
    }

    /// Adds a deciding fact.
    pub fn note(&mut self, note: impl Into<Phrase>) -> &mut Self {
        self.detail(|own, at| {
            own.notes.reserve_exact(1);
            own.notes.push(about(at, note));
        })
    }

    /// Sets the remedy.
    pub fn help(&mut self, help: impl Into<Phrase>) -> &mut Self {
        self.detail(|own, at| own.help = Some(about(at, help)))
    }

    /// Adds a fix.
    pub fn fix(&mut self, fix: Fix) -> &mut Self {
        self.fix = Some(fix);
        self
    }

    /// Adds a fix together with its help: text and edits are derived from the same changes.
    pub fn remedy(&mut self, fix: Fix) -> &mut Self {
        self.detail(|own, _| own.help = Some(vmdisk_fields::apply(&fix.changes)))
            .fix(fix)
    }

    /// Overrides the rule's usual severity.
    pub fn severity(&mut self, severity: Severity) -> &mut Self {
        self.severity = severity;
        self
    }

    /// Sets the confidence.
    pub fn confidence(&mut self, confidence: Confidence) -> &mut Self {
        self.confidence = confidence;
        self
    }

    /// Marks it as the same for each guest of the host; its title names no disk.
    pub fn about_host(&mut self) -> &mut Self {
        self.is_about_host = true;
        self
    }

    /// Sets the exact location.
    pub fn span(&mut self, span: Span) -> &mut Self {
        self.span = Some(span);
        self
    }
}

/// A text of a finding, in which `{disk}` is the disk of its location.
fn about(at: FieldPath, text: impl Into<Phrase>) -> Phrase {
    let mut phrase = text.into();
    phrase.about(at);
    phrase
}

/// A check that a rule could not perform, which differs from a check without findings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotChecked {
    /// The rule.
    pub rule: &'static Rule,
    /// The subject of the check.
    pub at: FieldPath,
    /// The missing input, and the reason.
    pub missing: Missing,
    /// If hosts are compared, the indexes of the hosts that lack the input.
    pub hosts: Vec<usize>,
    /// Further subjects, for the same reason; `missing` names the input of the first.
    pub further: Vec<FieldPath>,
}

impl NotChecked {
    /// A check of one host, or of none, that lacks an input.
    pub const fn new(rule: &'static Rule, at: FieldPath, missing: Missing) -> Self {
        Self {
            rule,
            at,
            missing,
            hosts: Vec::new(),
            further: Vec::new(),
        }
    }

    /// All subjects of the check, the first one first.
    pub fn places(&self) -> impl Iterator<Item = FieldPath> {
        std::iter::once(self.at).chain(self.further.iter().copied())
    }

    fn last(&self) -> FieldPath {
        self.further.last().copied().unwrap_or(self.at)
    }

    /// Keeps some subjects; false if there are none.
    pub(crate) fn keep_places(&mut self, is_kept: impl Fn(FieldPath) -> bool) -> bool {
        self.further.retain(|at| is_kept(*at));
        if !is_kept(self.at) {
            match self.further.is_empty() {
                true => return false,
                false => self.at = self.further.remove(0),
            }
        }
        true
    }
}

/// Collects the findings of one rule about one configuration.
#[derive(Debug)]
pub struct Report<'o> {
    rule: &'static Rule,
    /// The findings of this rule and of the rules before it.
    findings: &'o mut Vec<Finding>,
    /// The missing checks of these.
    not_checked: &'o mut Vec<NotChecked>,
    /// True if the findings take no details.
    is_brief: bool,
}

impl<'o> Report<'o> {
    /// The report of a rule that runs after others.
    pub(crate) const fn going_on(
        rule: &'static Rule,
        findings: &'o mut Vec<Finding>,
        not_checked: &'o mut Vec<NotChecked>,
        is_brief: bool,
    ) -> Self {
        Report {
            rule,
            findings,
            not_checked,
            is_brief,
        }
    }

    /// Reports a finding at `at`; the returned finding takes the details.
    pub fn finding(&mut self, at: FieldPath, title: impl Into<Phrase>) -> &mut Finding {
        self.findings.push(Finding {
            rule: self.rule,
            severity: self.rule.severity,
            confidence: Confidence::Certain,
            at,
            span: None,
            title: about(at, title),
            fix: None,
            is_about_host: self.rule.is_about_host,
            is_brief: self.is_brief,
            details: None,
        });
        self.findings.last_mut().expect("a finding was just pushed")
    }

    /// Records that `at` could not be checked, and why. A reason that the rule gave before gets a further place, one of
    /// each disk, unless each place has a variable of its own.
    pub fn not_checked(&mut self, at: FieldPath, missing: Missing) {
        if self.is_brief {
            return;
        }
        let is_alone = missing.why == Missing::OPEN_VALUE;
        let is_same = |it: &&mut NotChecked| it.missing.why == missing.why && it.hosts.is_empty();
        let Some(same) = self.own().find(is_same).filter(|_| !is_alone) else {
            let missed = NotChecked::new(self.rule, at, missing);
            return self.not_checked.push(missed);
        };
        let last = same.last();
        if last != at && (last.disk().is_none() || last.disk() != at.disk()) {
            same.further.push(at);
        }
    }

    /// The last entries of this rule.
    fn own(&mut self) -> impl Iterator<Item = &mut NotChecked> {
        /// Reasons that are different for each disk are as many as the disks.
        const LOOKED_AT: usize = 8;
        let rule = self.rule;
        let last = self.not_checked.iter_mut().rev().take(LOOKED_AT);
        last.take_while(move |it| std::ptr::eq(it.rule, rule))
    }

    /// Groups the compared hosts by their answers to one question; hosts without an answer are not checked at `at`.
    pub fn answers<'a, T: Ord>(
        &mut self,
        comparison: &Comparison<'a>,
        at: FieldPath,
        mut ask: impl FnMut(&ComparedHost<'a>) -> Result<T, Missing>,
    ) -> ByAnswer<T> {
        let mut answers = ByAnswer::new();
        let mut unanswered: ByAnswer<Missing> = ByAnswer::new();
        for (number, host) in comparison.hosts.iter().enumerate() {
            match ask(host) {
                Ok(answer) => answers.entry(answer).or_default().push(number),
                Err(missing) => unanswered.entry(missing).or_default().push(number),
            }
        }
        self.not_checked
            .extend(unanswered.into_iter().map(|(missing, hosts)| NotChecked {
                hosts,
                ..NotChecked::new(self.rule, at, missing)
            }));
        answers
    }

    /// Returns the value, or reports `at` as not checked if it is missing.
    pub fn require<T>(&mut self, at: FieldPath, value: Result<T, Missing>) -> Option<T> {
        match value {
            Ok(value) => Some(value),
            Err(missing) => {
                self.not_checked(at, missing);
                None
            }
        }
    }

    /// As [`require`](Self::require), but reports only the first of several missing facts about one disk.
    pub fn require_once<T>(&mut self, at: FieldPath, value: Result<T, Missing>) -> Option<T> {
        match value {
            Err(_) if self.own().any(|it| it.last().disk() == at.disk()) => None,
            value => self.require(at, value),
        }
    }
}
