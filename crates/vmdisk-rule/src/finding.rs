//! The findings of a rule.

use vmdisk_fields::{Phrase, Speller};
use vmdisk_model::{Change, FieldPath};
use vmdisk_source::{Edit, Span};

use crate::{Missing, Outcome, Rule, Severity};

/// How sure a finding is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// It rests on a version number or a guess, not on an observation.
    Assumed,
    /// It rests on the configuration itself or on something observed.
    #[default]
    Certain,
}

/// Whether a fix may be applied without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Applicability {
    /// The guest behaves as before or as was plainly meant; `--fix` applies it.
    Safe,
    /// It trades something, or the guest sees it; shown, and applied only when asked for.
    Unsafe,
}

/// Edits that fix a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// Steps in terms of the model; the reader of the format turns them into byte edits.
    pub changes: Vec<Change>,
    /// Edits known already, where the finding came from reading the text.
    pub edits: Vec<Edit>,
    /// Whether it may be applied without asking.
    pub applicability: Applicability,
}

impl Fix {
    /// A fix that may be applied without asking.
    pub fn safe(changes: impl Into<Vec<Change>>) -> Self {
        Fix {
            changes: changes.into(),
            edits: Vec::new(),
            applicability: Applicability::Safe,
        }
    }

    /// A fix that a person has to want.
    pub fn needs_consent(changes: impl Into<Vec<Change>>) -> Self {
        Fix {
            applicability: Applicability::Unsafe,
            ..Fix::safe(changes)
        }
    }
}

/// A second place that a finding is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// The place.
    pub at: FieldPath,
    /// Its relation to the finding.
    pub label: Phrase,
}

/// One thing a rule has to say about one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// How much it matters here.
    pub severity: Severity,
    /// How sure it is.
    pub confidence: Confidence,
    /// Where.
    pub at: FieldPath,
    /// Exactly where, if a reader knows it better than the field does.
    pub span: Option<Span>,
    /// The mistake; names the disk by its target.
    pub title: Phrase,
    /// The label of the place.
    pub label: Option<Phrase>,
    /// Further places.
    pub related: Vec<Related>,
    /// Why it matters here: the facts that decided, one sentence each.
    pub notes: Vec<Phrase>,
    /// The remedy.
    pub help: Option<Phrase>,
    /// Edits that fix it.
    pub fix: Option<Fix>,
    /// If hosts are compared, the numbers of the hosts concerned.
    pub hosts: Vec<usize>,
}

/// The texts of a finding in the words of a syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingText {
    /// The mistake.
    pub title: String,
    /// The label of the place.
    pub label: Option<String>,
    /// What further places have to do with it, in their order.
    pub related: Vec<String>,
    /// The facts that decided.
    pub notes: Vec<String>,
    /// The remedy.
    pub help: Option<String>,
}

impl Finding {
    /// The texts in the words of a syntax.
    pub fn render(&self, speller: &dyn Speller) -> FindingText {
        let render = |phrase: &Phrase| phrase.render(speller);
        FindingText {
            title: render(&self.title),
            label: self.label.as_ref().map(render),
            related: self
                .related
                .iter()
                .map(|related| render(&related.label))
                .collect(),
            notes: self.notes.iter().map(render).collect(),
            help: self.help.as_ref().map(render),
        }
    }

    /// Says which of the compared hosts it is about.
    pub fn on_hosts(&mut self, hosts: impl IntoIterator<Item = usize>) -> &mut Self {
        self.hosts = hosts.into_iter().collect();
        self.hosts.sort_unstable();
        self
    }

    /// Sets the label of the place.
    pub fn label(&mut self, label: impl Into<Phrase>) -> &mut Self {
        self.label = Some(label.into());
        self
    }

    /// Points at a further place.
    pub fn related(&mut self, at: FieldPath, label: impl Into<Phrase>) -> &mut Self {
        self.related.push(Related {
            at,
            label: label.into(),
        });
        self
    }

    /// Names a fact that decided.
    pub fn note(&mut self, note: impl Into<Phrase>) -> &mut Self {
        self.notes.push(note.into());
        self
    }

    /// Says what to write instead.
    pub fn help(&mut self, help: impl Into<Phrase>) -> &mut Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a fix.
    pub fn fix(&mut self, fix: Fix) -> &mut Self {
        self.fix = Some(fix);
        self
    }

    /// Adds a fix together with its help: the text and the edits come from the same changes.
    pub fn remedy(&mut self, fix: Fix) -> &mut Self {
        self.help = Some(vmdisk_fields::apply(&fix.changes));
        self.fix(fix)
    }

    /// Departs from the rule's usual severity.
    pub fn severity(&mut self, severity: Severity) -> &mut Self {
        self.severity = severity;
        self
    }

    /// Says how sure it is.
    pub fn confidence(&mut self, confidence: Confidence) -> &mut Self {
        self.confidence = confidence;
        self
    }

    /// Gives the exact place.
    pub fn span(&mut self, span: Span) -> &mut Self {
        self.span = Some(span);
        self
    }
}

/// A rule that could not look at something, which is not the same as finding nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotChecked {
    /// The rule.
    pub rule: &'static Rule,
    /// The subject of the check.
    pub at: FieldPath,
    /// The missing input, and the reason.
    pub missing: Missing,
    /// Where there are several hosts, the numbers of those on which it was missing.
    pub hosts: Vec<usize>,
}

/// Collects what one rule says about one configuration.
#[derive(Debug)]
pub struct Report<'o> {
    rule: &'static Rule,
    /// What it and the rules before it found, and could not look at.
    outcome: &'o mut Outcome,
}

impl<'o> Report<'o> {
    /// The report of a rule that goes on after others.
    pub(crate) const fn going_on(rule: &'static Rule, outcome: &'o mut Outcome) -> Self {
        Report { rule, outcome }
    }

    /// Reports something at `at`; the returned finding takes the details.
    pub fn finding(&mut self, at: FieldPath, title: impl Into<Phrase>) -> &mut Finding {
        self.outcome.findings.push(Finding {
            rule: self.rule,
            severity: self.rule.severity,
            confidence: Confidence::Certain,
            at,
            span: None,
            title: title.into(),
            label: None,
            related: Vec::new(),
            notes: Vec::new(),
            help: None,
            fix: None,
            hosts: Vec::new(),
        });
        self.outcome
            .findings
            .last_mut()
            .expect("one was just pushed")
    }

    /// Says that `at` could not be checked, and why.
    pub fn not_checked(&mut self, at: FieldPath, missing: Missing) {
        self.outcome.not_checked.push(NotChecked {
            rule: self.rule,
            at,
            missing,
            hosts: Vec::new(),
        });
    }

    /// Says that `at` could not be checked on some of the compared hosts, and why.
    pub fn not_checked_on(&mut self, at: FieldPath, missing: Missing, hosts: Vec<usize>) {
        self.outcome.not_checked.push(NotChecked {
            rule: self.rule,
            at,
            missing,
            hosts,
        });
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
}
