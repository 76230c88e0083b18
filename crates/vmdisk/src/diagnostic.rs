//! A finding with its places in a text.

use crate::rules::{Applicability, Confidence, Rule, Severity};
use std::borrow::Cow;

use vmdisk_model::FieldPath;
use vmdisk_source::secrets::mask_message;
use vmdisk_source::{Edit, Position, Span};

use crate::FoundOn;

/// A place in a text, for people and for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextPlace {
    /// Bytes.
    pub span: Span,
    /// Line and column of the first character.
    pub start: Position,
    /// Line and column just past the last character.
    pub end: Position,
    /// False if the field itself is not written and this is the nearest one around it.
    pub is_exact: bool,
    /// The field in words: `disk vda › driver/@cache`.
    pub breadcrumb: String,
}

/// A further place that a finding is about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelatedPlace {
    /// The place.
    pub place: TextPlace,
    /// Its relation to the finding.
    pub label: String,
}

/// Which disk a finding is about, in a way that survives edits elsewhere in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskIdentity {
    /// Number of the disk in the document, from 0.
    pub index: usize,
    /// Name of its target, if it has one.
    pub target: Option<String>,
}

/// A fix as byte edits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResolvedFix {
    /// The edits.
    pub edits: Vec<Edit>,
    /// Whether they may be applied without asking.
    pub applicability: Applicability,
}

/// Why a finding does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedBy {
    /// An allowance in the file.
    InFile {
        /// The reason given there.
        reason: Option<String>,
        /// Where it stands.
        span: Span,
    },
    /// The caller asked for the rule to be ignored.
    Ignored,
    /// A baseline of the caller knows the finding.
    Baseline,
}

/// A finding with its places in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The rule.
    pub rule: &'static Rule,
    /// How much it matters here.
    pub severity: Severity,
    /// How sure it is.
    pub confidence: Confidence,
    /// Which disk, if it is about one.
    pub disk: Option<DiskIdentity>,
    /// The field it is about.
    pub at: FieldPath,
    /// The mistake; names the disk by its target.
    pub title: String,
    /// Where.
    pub place: TextPlace,
    /// The label of the place.
    pub label: Option<String>,
    /// Further places.
    pub related: Vec<RelatedPlace>,
    /// Why it matters here: the facts that decided.
    pub notes: Vec<String>,
    /// The remedy.
    pub help: Option<String>,
    /// Edits that fix it.
    pub fix: Option<ResolvedFix>,
    /// True if it is the same for each guest of the host.
    pub is_about_host: bool,
    /// Why it does not count, for the ones in [`LintReport::allowed`](crate::LintReport::allowed).
    pub allowed_by: Option<AllowedBy>,
    /// On which hosts, if there are several.
    pub hosts: Option<FoundOn>,
}

impl Diagnostic {
    /// A certain finding of a rule with its title and its place.
    pub(crate) fn new(rule: &'static Rule, at: FieldPath, title: String, place: TextPlace) -> Self {
        Self {
            rule,
            severity: rule.severity,
            confidence: Confidence::Certain,
            disk: None,
            at,
            title,
            place,
            label: None,
            related: Vec::new(),
            notes: Vec::new(),
            help: None,
            fix: None,
            is_about_host: rule.is_about_host,
            allowed_by: None,
            hosts: None,
        }
    }

    /// Masks the secrets that its texts quote. The edits of a fix stay exact.
    pub(crate) fn mask_secrets(&mut self) {
        self.texts().for_each(mask);
    }

    /// All its texts.
    pub(crate) fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let related = self.related.iter_mut().map(|related| &mut related.label);
        std::iter::once(&mut self.title)
            .chain(&mut self.label)
            .chain(related)
            .chain(&mut self.notes)
            .chain(&mut self.help)
    }
}

/// Masks the secrets in a message.
pub(crate) fn mask(text: &mut String) {
    if let Cow::Owned(masked) = mask_message(text) {
        *text = masked;
    }
}
