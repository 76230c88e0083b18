//! What a check is asked for, other than the document.

use std::collections::BTreeSet;

use vmdisk_facts::{Facts, HostIndex, Target};

use crate::rules::Policy;
use crate::{Document, Fleet, Selection, Source};

/// The inputs of the check, other than the document.
#[derive(Clone, Debug, Default)]
pub struct LintOptions<'a> {
    /// Facts of the host; without them, rules about the host are not checked.
    pub host: Option<&'a HostIndex<'a>>,
    /// The hosts it may run on, if there are several; `host` and `target` are theirs then.
    pub fleet: Option<&'a Fleet<'a>>,
    /// The versions to check for.
    pub target: Target,
    /// Who shares the host.
    pub policy: Policy,
    /// Names of rules whose findings do not count.
    pub ignored: BTreeSet<String>,
    /// The findings to report.
    pub selection: Selection,
    /// How much of each finding is put into words.
    pub detail: Detail,
}

/// How much of each finding is put into words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Everything.
    #[default]
    Everything,
    /// The title. Labels, notes, helps and the names of places are left out. Positions are there, and fixes without
    /// their edits. Of what was not checked, only the rule, the field and the reason are there.
    Titles,
}

impl LintOptions<'_> {
    /// A spec with the guest that is planned for the host of these options; `None` for every other document.
    pub fn planned(&self, document: &Document) -> Option<Document> {
        if !matches!(document.source, Source::Spec(_)) {
            return None;
        }
        let nothing = Facts::default();
        let facts = self.host.map_or(&nothing, HostIndex::facts);
        document.planned_for(facts, &self.target)
    }
}
