//! Hosts that a guest may run on, and what the rules say of a guest for all of them together.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::Host;
use crate::rules::{
    Applicability, ComparedHost, Comparison, Context, Finding, Missing, NotChecked, Rule, Text,
};
use vmdisk_facts::path::Inode;
use vmdisk_facts::{CollectError, Fact, Facts, FsKind, HostIndex, Target};
use vmdisk_fields::{Phrase, phrase};
use vmdisk_model::{Domain, FieldPath};
use vmdisk_source::Span;

/// The hosts that a guest may run on. Hosts with the same facts are checked once. Clones share them.
///
/// ```
/// use vmdisk::{Fleet, Host, LintOptions, Target, lint, read};
///
/// let host = |disabled: u32| {
///     Host::parse(&format!("schema_version: '1.0'\nlimits: {{io_uring_disabled: {disabled}}}\n"))
/// };
/// let hosts = [("kvm1", host(0)?), ("kvm2", host(2)?), ("kvm3", host(2)?)];
/// let fleet = Fleet::new(hosts, &Target::default());
///
/// let document = read("<disk type='file'><driver type='raw' io='io_uring'/><source file='/a'/><target dev='vda'/></disk>")?;
/// let report = lint(&document, &LintOptions::default().fleet(fleet));
/// let found = report.diagnostics.iter().find(|found| found.rule.name == "migration-io-uring-differs").unwrap();
/// let hosts = found.hosts.as_ref().unwrap();
/// assert_eq!((&hosts.affected[..], &hosts.not_affected[..]), (&[1, 2][..], &[0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    names: Arc<[String]>,
    kinds: Arc<[Kind]>,
}

/// Hosts of which the same is known.
#[derive(Debug)]
struct Kind {
    host: Host,
    target: Target,
    /// Their numbers, ascending; never empty.
    hosts: Vec<usize>,
}

/// On which hosts of a fleet something was found, by their numbers, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundOn {
    /// The hosts on which it was found.
    pub affected: Vec<usize>,
    /// The hosts on which it was checked and not found.
    pub not_affected: Vec<usize>,
    /// The hosts on which it could not be checked.
    pub not_checked: Vec<usize>,
}

/// A guest that is planned for a host, and the host with the storage that the plan creates.
pub(crate) type PlannedGuest = (Domain, Option<Host>);

impl Fleet {
    /// A fleet of hosts, each with its name; what `asked` leaves open of the target comes from the facts.
    pub fn new(hosts: impl IntoIterator<Item = (impl Into<String>, Host)>, asked: &Target) -> Self {
        let (mut names, mut kinds): (Vec<String>, Vec<Kind>) = (Vec::new(), Vec::new());
        let mut numbers: HashMap<String, usize> = HashMap::new();
        for (number, (name, host)) in hosts.into_iter().enumerate() {
            names.push(name.into());
            match numbers.entry(what_rules_see(host.index())) {
                std::collections::hash_map::Entry::Occupied(kind) => {
                    kinds[*kind.get()].hosts.push(number);
                }
                std::collections::hash_map::Entry::Vacant(slot) => {
                    slot.insert(kinds.len());
                    kinds.push(Kind {
                        target: asked.clone().or(Target::from_facts(host.facts())),
                        host,
                        hosts: vec![number],
                    });
                }
            }
        }
        Fleet {
            names: names.into(),
            kinds: kinds.into(),
        }
    }

    /// Names of the hosts, by their numbers.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How many hosts differ in what rules see of them.
    pub fn kinds(&self) -> usize {
        self.kinds.len()
    }

    /// The host, if there is only one.
    pub fn only_host(&self) -> Option<&Host> {
        match &*self.names {
            [_] => self.kinds.first().map(|kind| &kind.host),
            [..] => None,
        }
    }

    /// Facts, target and numbers of the hosts of each kind.
    pub(crate) fn planning_hosts(&self) -> impl Iterator<Item = (&Facts, &Target, &[usize])> {
        let kinds = self.kinds.iter();
        kinds.map(|kind| (kind.host.facts(), &kind.target, kind.hosts.as_slice()))
    }

    /// Facts as an index, target and numbers of the hosts of each kind.
    #[cfg(feature = "trace")]
    pub(crate) fn known_hosts(&self) -> impl Iterator<Item = (&HostIndex<'_>, &Target, &[usize])> {
        let kinds = self.kinds.iter();
        kinds.map(|kind| (kind.host.index(), &kind.target, kind.hosts.as_slice()))
    }

    /// The findings of one configuration for all hosts: each finding once, with its hosts.
    pub(crate) fn check(
        &self,
        text: Text<'_>,
        context: &Context<'_>,
        further: &[&'static Rule],
        planned_for: &dyn Fn(&Facts, &Target) -> Option<PlannedGuest>,
    ) -> (Vec<(Finding, FoundOn)>, Vec<NotChecked>) {
        let mut merged = Merged::default();
        for (number, kind) in self.kinds.iter().enumerate() {
            // A spec is planned for each host, which has the storage that it creates then.
            let planned = planned_for(kind.host.facts(), &kind.target);
            let host = planned.as_ref().and_then(|(_, host)| host.as_ref());
            let context = Context {
                domain: planned
                    .as_ref()
                    .map_or(context.domain, |(domain, _)| domain),
                host: Some(host.unwrap_or(&kind.host).index()),
                target: &kind.target,
                ..*context
            };
            let outcome = crate::rules::check_with(text, &context, further);
            merged.add(number, outcome.findings, outcome.not_checked);
        }
        let compared: Vec<ComparedHost<'_>> = self
            .kinds
            .iter()
            .map(|kind| ComparedHost {
                name: &self.names[kind.hosts[0]],
                count: kind.hosts.len(),
                host: kind.host.index(),
                target: &kind.target,
            })
            .collect();
        let outcome = crate::rules::compare(&Comparison {
            domain: context.domain,
            hosts: &compared,
        });
        merged.compared(outcome.findings, outcome.not_checked);
        self.settle(merged)
    }

    /// The numbers of the hosts of some kinds.
    fn hosts_of(&self, kinds: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let mut hosts: Vec<usize> = kinds
            .into_iter()
            .flat_map(|kind| self.kinds[kind].hosts.iter().copied())
            .collect();
        hosts.sort_unstable();
        hosts
    }

    fn settle(&self, merged: Merged) -> (Vec<(Finding, FoundOn)>, Vec<NotChecked>) {
        // A rule that could not look at a disk on some host does not say that the host is unaffected.
        let mut unseen: BTreeMap<(&str, Option<usize>), BTreeSet<usize>> = BTreeMap::new();
        for ((missed, _), kinds) in &merged.not_checked {
            let key = (missed.rule, missed.at.disk());
            unseen.entry(key).or_default().extend(kinds);
        }
        let nowhere = BTreeSet::new();
        let findings = merged
            .findings
            .into_values()
            .map(|mut merged| {
                let key = (merged.finding.rule.name, merged.finding.at.disk());
                let unseen = unseen.get(&key).unwrap_or(&nowhere);
                let all = 0..self.kinds.len();
                let (not_checked, not_affected): (Vec<usize>, Vec<usize>) = all
                    .filter(|kind| !merged.kinds.contains(kind))
                    .partition(|kind| unseen.contains(kind));
                self.tell_differences(&mut merged);
                // A fix for some hosts also changes the guest on the others, where it is not needed.
                if let Some(fix) = &mut merged.finding.fix
                    && !merged.finding.rule.compares_hosts()
                    && !not_affected.is_empty()
                {
                    fix.applicability = Applicability::Unsafe;
                }
                let found = FoundOn {
                    affected: self.hosts_of(merged.kinds),
                    not_affected: self.hosts_of(not_affected),
                    not_checked: self.hosts_of(not_checked),
                };
                (merged.finding, found)
            })
            .collect();
        let mut places: BTreeMap<(&str, Missing, BTreeSet<usize>), Vec<FieldPath>> =
            BTreeMap::new();
        for ((missed, missing), kinds) in merged.not_checked {
            let key = (missed.rule, missing, kinds);
            places.entry(key).or_default().push(missed.at);
        }
        let grouped = places
            .into_iter()
            .filter_map(|((rule, missing, kinds), mut further)| {
                Some(NotChecked {
                    hosts: self.hosts_of(kinds),
                    ..NotChecked::new(crate::rules::find(rule)?, further.remove(0), missing)
                })
                .map(|missed| NotChecked { further, ..missed })
            });
        (findings, grouped.collect())
    }

    /// Says which host the words of a finding are about, where they differ.
    fn tell_differences(&self, merged: &mut One) {
        /// Other texts of the finding.
        const TOLD: usize = 3;
        let name = |kind: &usize| self.names[self.kinds[*kind].hosts[0]].as_str();
        if merged.others.is_empty() && !merged.notes_differ {
            return;
        }
        if let Some(first) = merged.kinds.first() {
            let note = format!("the facts shown here are from {}", name(first));
            merged.finding.details_mut().notes.push(note.into());
        }
        for (title, kind) in merged.others.iter().take(TOLD) {
            let host = name(kind).to_owned();
            let note = phrase!("on {host}: {title}", host, title = title.clone());
            merged.finding.details_mut().notes.push(note);
        }
    }
}

/// A place and a rule that could not look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Missed {
    at: FieldPath,
    rule: &'static str,
}

/// One finding, and the kinds of hosts that it was found on.
#[derive(Debug)]
struct One {
    finding: Finding,
    kinds: BTreeSet<usize>,
    /// Other titles, each with a class of host that has it.
    others: BTreeMap<Phrase, usize>,
    notes_differ: bool,
}

/// The identity of a finding on one host: the place, the rule, and a number if there are several.
type Key = (FieldPath, Option<Span>, &'static str, usize);

/// The findings of all classes of hosts, each once.
#[derive(Debug, Default)]
struct Merged {
    findings: BTreeMap<Key, One>,
    not_checked: BTreeMap<(Missed, Missing), BTreeSet<usize>>,
}

impl Merged {
    fn add(&mut self, kind: usize, findings: Vec<Finding>, not_checked: Vec<NotChecked>) {
        let mut nth: BTreeMap<(FieldPath, Option<Span>, &'static str), usize> = BTreeMap::new();
        for finding in findings {
            let key = (finding.at, finding.span, finding.rule.name);
            let nth = nth.entry(key).or_default();
            let key = (key.0, key.1, key.2, *nth);
            *nth += 1;
            match self.findings.entry(key) {
                std::collections::btree_map::Entry::Vacant(slot) => {
                    slot.insert(One {
                        finding,
                        kinds: BTreeSet::from([kind]),
                        others: BTreeMap::new(),
                        notes_differ: false,
                    });
                }
                std::collections::btree_map::Entry::Occupied(mut known) => {
                    known.get_mut().join(kind, finding);
                }
            }
        }
        for missed in not_checked {
            self.missed(missed, [kind]);
        }
    }

    fn missed(&mut self, missed: NotChecked, kinds: impl IntoIterator<Item = usize>) {
        let rule = missed.rule.name;
        let kinds: Vec<usize> = kinds.into_iter().collect();
        for at in missed.places() {
            let key = (Missed { at, rule }, missed.missing.clone());
            self.not_checked.entry(key).or_default().extend(&kinds);
        }
    }

    /// Adds the findings of comparing the hosts; if one names the cause, the rules about single hosts are silent.
    fn compared(&mut self, findings: Vec<Finding>, not_checked: Vec<NotChecked>) {
        for finding in &findings {
            let superseded = |rule: &Rule, at: FieldPath| {
                finding.rule.supersedes.contains(&rule.name) && at.disk() == finding.at.disk()
            };
            self.findings
                .retain(|_, one| !superseded(one.finding.rule, one.finding.at));
        }
        for (nth, mut finding) in findings.into_iter().enumerate() {
            let kinds = std::mem::take(&mut finding.details_mut().hosts)
                .into_iter()
                .collect();
            // No number is used twice, and none is the number of a finding about one host.
            let key = (
                finding.at,
                finding.span,
                finding.rule.name,
                usize::MAX - nth,
            );
            self.findings.insert(
                key,
                One {
                    finding,
                    kinds,
                    others: BTreeMap::new(),
                    notes_differ: false,
                },
            );
        }
        for mut missed in not_checked {
            let kinds = std::mem::take(&mut missed.hosts);
            self.missed(missed, kinds);
        }
    }
}

impl One {
    /// Merges the same finding from another class of hosts: the most severe one is reported.
    fn join(&mut self, kind: usize, mut finding: Finding) {
        self.kinds.insert(kind);
        let fixes_agree = match (&self.finding.fix, &finding.fix) {
            (Some(ours), Some(other)) => ours.changes == other.changes && ours.edits == other.edits,
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        self.notes_differ |= self.finding.details().notes != finding.details().notes
            || self.finding.severity != finding.severity;
        if self.finding.severity < finding.severity {
            std::mem::swap(&mut self.finding, &mut finding);
        }
        if self.finding.title != finding.title {
            self.others.entry(finding.title).or_insert(kind);
        }
        self.finding.confidence = self.finding.confidence.min(finding.confidence);
        // A fix for only some of the hosts must be chosen by a person.
        let is_unsafe = [&self.finding.fix, &finding.fix]
            .into_iter()
            .flatten()
            .any(|fix| fix.applicability == Applicability::Unsafe);
        if !fixes_agree {
            self.finding.fix = None;
        } else if let Some(fix) = &mut self.finding.fix
            && is_unsafe
        {
            fix.applicability = Applicability::Unsafe;
        }
    }
}

/// All facts of a host that rules use, as one text: hosts with the same text get the same findings. Values that only
/// identify the host or the time of collection are omitted, and what differs on each host and decides nothing there: of
/// inodes, rules see which files are one, and extents only where writes move them.
fn what_rules_see(index: &HostIndex<'_>) -> String {
    let mut facts = index.facts().clone();
    facts.schema = String::new();
    facts.schema_version = String::new();
    facts.collector = Default::default();
    facts.collected_at = Fact::NotCollected;
    facts.host = Default::default();
    facts.redaction = Fact::NotCollected;
    facts.errors = Vec::<CollectError>::new();
    facts.limits.aio_nr = Fact::NotCollected;
    facts.memory.available_bytes = Fact::NotCollected;
    let tight = tight_filesystems(index);
    for filesystem in &mut facts.filesystems {
        if !tight.contains(&filesystem.id) {
            filesystem.free_bytes = Fact::NotCollected;
        }
    }
    let mut inodes: HashMap<Inode, u64> = HashMap::new();
    for file in &mut facts.files {
        let filesystem = index.filesystem_of(&file.path);
        if filesystem
            .value()
            .is_some_and(|it| it.kind != FsKind::Btrfs)
        {
            file.extents = Fact::NotCollected;
        }
        if let Fact::Known(inode) = &mut file.inode {
            let next = inodes.len() as u64;
            inode.number = *inodes.entry(*inode).or_insert(next);
        }
    }
    facts.to_json()
}

/// Ids of the file systems with less free space than their images can still use: only there does the free space decide.
fn tight_filesystems(index: &HostIndex<'_>) -> BTreeSet<String> {
    let mut growing: BTreeMap<&str, u64> = BTreeMap::new();
    for file in &index.facts().files {
        if let Ok(Some((filesystem, bytes))) = vmdisk_rules::growth(index, &file.path) {
            let sum = growing.entry(&filesystem.id).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
    let is_tight = |(id, bytes): &(&str, u64)| {
        let filesystem = index.filesystem(id);
        filesystem.is_some_and(|it| it.free_bytes.value().is_some_and(|free| free < bytes))
    };
    let tight = growing.into_iter().filter(is_tight);
    tight.map(|(id, _)| id.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_differ_in_name_and_moment_only_are_one_kind() {
        let host = |text: &str| Host::parse(text).unwrap();
        let one = host(
            r#"{"schema_version": "1.0", "host": {"id": "a"}, "collected_at": "2026-11-20T05:00:00Z",
                "limits": {"aio_nr": 1, "aio_max_nr": 65536}}"#,
        );
        let two = host(
            r#"{"schema_version": "1.0", "host": {"id": "b"}, "collected_at": "2026-11-21T05:00:00Z",
                "limits": {"aio_nr": 7, "aio_max_nr": 65536}}"#,
        );
        let other = host(r#"{"schema_version": "1.0", "limits": {"aio_max_nr": 1024}}"#);
        let hosts = [("a", one.clone()), ("b", two), ("c", other), ("d", one)];
        let fleet = Fleet::new(hosts, &Target::default());
        let kinds: Vec<&[usize]> = fleet.kinds.iter().map(|kind| &kind.hosts[..]).collect();
        assert_eq!(kinds, [&[0, 1, 3][..], &[2]]);
        assert_eq!(fleet.names(), ["a", "b", "c", "d"]);
    }

    #[test]
    fn inodes_extents_and_free_bytes_decide_only_where_a_rule_reads_them() {
        let host = |kind: &str, inodes: [u64; 2], extents: u64, free: u64| {
            let file = |name: &str, inode: u64| {
                format!(
                    "{{path: /srv/{name}, present: true, mount: m1, inode: '8:1/{inode}', extents: {extents}}}"
                )
            };
            let files = [file("a", inodes[0]), file("b", inodes[1])].join(", ");
            let text = format!(
                "schema_version: '1.0'\nmounts: [{{id: m1, point: /srv, fs: f1}}]\nfiles: [{files}]\n\
                 filesystems: [{{id: f1, kind: {kind}, free_bytes: {free}}}]\n"
            );
            ("a", Host::parse(&text).unwrap())
        };
        let kinds =
            |hosts: [(&'static str, Host); 2]| Fleet::new(hosts, &Target::default()).kinds();
        let xfs = host("xfs", [7, 9], 1, 1000);
        assert_eq!(kinds([xfs.clone(), host("xfs", [40, 3], 5, 2000)]), 1);
        assert_eq!(
            kinds([xfs, host("xfs", [40, 40], 1, 1000)]),
            2,
            "one file, two names"
        );
        let btrfs = host("btrfs", [7, 9], 1, 1000);
        assert_eq!(
            kinds([btrfs, host("btrfs", [7, 9], 5, 1000)]),
            2,
            "a rule reports them"
        );
    }
}
