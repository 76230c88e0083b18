//! What a check is asked for, other than the document.

use std::collections::BTreeSet;

use vmdisk_facts::{Facts, HostIndex, Target};

use crate::built::built;
use crate::rules::Policy;
use crate::{Document, Fleet, Host, Selection, Source};

built! {
    /// The inputs of the check, other than the document.
    ///
    /// ```
    /// let options = vmdisk::LintOptions::default()
    ///     .target("qemu=11.1".parse::<vmdisk::Target>()?)
    ///     .policy(vmdisk::Policy::Lab)
    ///     .ignored(["cache-unsafe".to_owned()]);
    /// assert!(options.host.is_none() && options.ignored.contains("cache-unsafe"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Clone, Debug, Default)]
    pub struct LintOptions {
        /// Facts of the host; without them, rules about the host are not checked.
        pub host: Option<Host>,
        /// The hosts it may run on, if there are several; `host` and `target` are theirs then.
        pub fleet: Option<Fleet>,
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

impl LintOptions {
    /// A spec with the guest that is planned for the host of these options; `None` for every other document.
    pub fn planned(&self, document: &Document) -> Option<Document> {
        if !matches!(document.source, Source::Spec(_)) {
            return None;
        }
        let nothing = Facts::default();
        document.planned_for(self.facts().unwrap_or(&nothing), &self.target)
    }

    /// The facts of the host.
    pub(crate) fn facts(&self) -> Option<&Facts> {
        self.host.as_ref().map(Host::facts)
    }

    /// The index of the facts.
    pub(crate) fn index(&self) -> Option<&HostIndex<'_>> {
        self.host.as_ref().map(Host::index)
    }
}

impl Host {
    /// Options to check guests on this host, with the versions that its facts state.
    pub fn options(&self) -> LintOptions {
        let target = Target::from_facts(self.facts());
        LintOptions::default().host(self.clone()).target(target)
    }
}
