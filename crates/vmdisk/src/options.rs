//! What a check is asked for, other than the document.

use std::collections::BTreeSet;

use vmdisk_facts::{Facts, HostIndex, Target};

use crate::built::built;
use crate::rules::{self, Policy, Rule, UnknownRule};
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
    ///
    /// A rule of another crate:
    /// ```
    /// use vmdisk::rules::{Check, Context, Group, Report, Rule, Severity};
    /// use vmdisk::model::{DomainField, FieldPath};
    /// use vmdisk::{LintOptions, lint, read};
    ///
    /// static FEW_DISKS: Rule = Rule {
    ///     name: "house-few-disks",
    ///     group: Group::Clarity,
    ///     severity: Severity::Warning,
    ///     since: "0.1.0",
    ///     evidence: &[],
    ///     applies_to_foreign_guests: true,
    ///     libvirt_only: false,
    ///     is_about_host: false,
    ///     supersedes: &[],
    ///     page: "A guest has more disks than our backups take.",
    ///     file: file!(),
    ///     check: Check::Further(&check),
    /// };
    ///
    /// fn check(context: &Context<'_>, report: &mut Report<'_>) {
    ///     if context.domain.disks.len() > 1 {
    ///         report.finding(FieldPath::Domain(DomainField::Domain), "the guest has more than one disk");
    ///     }
    /// }
    ///
    /// let disk = |path: &str, target: &str| format!(
    ///     "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='{path}'/>    ///      <target dev='{target}' bus='virtio'/></disk>"
    /// );
    /// let guest = read(&format!("<domain type='kvm'><name>web1</name><devices>{}{}</devices></domain>",
    ///     disk("/srv/a", "vda"), disk("/srv/b", "vdb")))?;
    /// let report = lint(&guest, &LintOptions::default().rules([&FEW_DISKS]));
    /// assert!(report.diagnostics.iter().any(|found| found.rule == &FEW_DISKS));
    /// # Ok::<(), vmdisk::ReadFailure>(())
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
        /// Rules beside those of vmdisk: house rules of a `vmdisk.toml`, or rules of another crate. Their names begin with
        /// `house-`, so that no rule of vmdisk ever has one of them.
        pub rules: Vec<&'static Rule>,
        /// Names of rules whose findings do not count.
        pub ignored: BTreeSet<String>,
        /// The findings to report.
        pub selection: Selection,
        /// How much of each finding is put into words.
        pub detail: Detail,
        /// True if the caller compares the guest with the others of its host, as [`lint_all`](crate::lint_all) does.
        pub compares_guests: bool,
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
    /// Refuses names in `ignored` and `selection` that no rule has: such names select nothing.
    ///
    /// ```
    /// let options = vmdisk::LintOptions::default().ignored(["cache-unsave".to_owned()]);
    /// assert_eq!(options.check().unwrap_err().near, Some("cache-unsafe"));
    /// ```
    ///
    /// # Errors
    /// The first such name.
    pub fn check(&self) -> Result<(), UnknownRule> {
        let Selection {
            rules,
            severities,
            pedantic,
            ..
        } = &self.selection;
        let names = rules.iter().flatten().chain(severities.keys());
        let mut names = names.chain(pedantic).chain(&self.ignored);
        let is_further = |name: &str| self.rules.iter().any(|rule| rule.name == name);
        let unknown = names.find(|name| !rules::is_name(name) && !is_further(name));
        unknown.map_or(Ok(()), |name| Err(UnknownRule::new(name)))
    }

    /// These options for all guests of a host, which are compared unless there are several hosts.
    pub(crate) fn of_all_guests(self) -> Self {
        let fleet = self.fleet.as_ref();
        let is_one_host = fleet.is_none_or(|fleet| fleet.only_host().is_some());
        self.compares_guests(is_one_host)
    }

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

    /// The index of the facts of the host, also of the only one of a fleet.
    pub(crate) fn index_of_host(&self) -> Option<&HostIndex<'_>> {
        let only = || self.fleet.as_ref()?.only_host().map(Host::index);
        self.index().or_else(only)
    }
}

impl Host {
    /// Options to check guests on this host, with the versions that its facts state.
    pub fn options(&self) -> LintOptions {
        let target = Target::from_facts(self.facts());
        LintOptions::default().host(self.clone()).target(target)
    }
}
