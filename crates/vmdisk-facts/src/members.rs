//! The properties of QEMU's devices, and the members of its nodes and objects, by release.
//!
//! The table is reduced from recordings of real builds by `cargo xtask codegen`; see [`crate::Introspection`]. A
//! recording of the QEMU that runs the guest takes precedence.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::capability::{self, Answer, Basis, CapabilityRow, Probe};
use crate::introspection::Introspection;
use crate::target::Target;
use crate::version::Version;

/// The owner of a property or member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner<'a> {
    /// A device type, as `-device` names it: `virtio-blk-pci`.
    Device(&'a str),
    /// A block driver, as `-blockdev` names it: `qcow2`. Members that every node has belong to each driver.
    Node(&'a str),
    /// An object type, as `-object` names it: `iothread`.
    Object(&'a str),
}

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueKind {
    /// Words, lists, objects, or another kind in another release.
    Any,
    /// A switch: `on` or `off`, in JSON `true` or `false`.
    Bool,
    /// `on`, `off` or `auto`, in JSON too.
    OnOffAuto,
    /// Text.
    Text,
    /// A number.
    Number,
    /// A number of bytes; with a unit in key=value syntax.
    Size,
}

impl ValueKind {
    const ALL: [(ValueKind, &'static str); 6] = [
        (ValueKind::Any, "any"),
        (ValueKind::Bool, "bool"),
        (ValueKind::OnOffAuto, "on-off-auto"),
        (ValueKind::Text, "text"),
        (ValueKind::Number, "number"),
        (ValueKind::Size, "size"),
    ];

    /// The kind of a type name of QEMU, from `device-list-properties` or from the QMP schema.
    pub fn from_qemu(name: &str) -> Self {
        match name {
            "bool" | "boolean" => ValueKind::Bool,
            "OnOffAuto" => ValueKind::OnOffAuto,
            "str" | "string" => ValueKind::Text,
            "size" => ValueKind::Size,
            "int" | "number" => ValueKind::Number,
            _ if name.starts_with("uint") || name.starts_with("int") => ValueKind::Number,
            _ => ValueKind::Any,
        }
    }

    /// The word in the table.
    pub fn as_str(self) -> &'static str {
        let row = ValueKind::ALL.iter().find(|(kind, _)| *kind == self);
        row.map_or("any", |(_, word)| word)
    }

    fn from_word(word: &str) -> Option<Self> {
        let row = ValueKind::ALL.iter().find(|(_, name)| *name == word);
        row.map(|(kind, _)| *kind)
    }
}

/// One property or member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The kind of its value.
    pub kind: ValueKind,
    /// The recorded releases that have it: one bit each, the oldest first.
    releases: u32,
}

impl Member {
    /// Adds a release that has it, with the kind of value there.
    fn add(&mut self, kind: ValueKind, release: usize) {
        if self.kind != kind {
            self.kind = ValueKind::Any;
        }
        self.releases |= 1 << release;
    }
}

/// The table of all recorded releases.
#[derive(Debug, Default)]
pub struct MemberTable {
    releases: Vec<Version>,
    owners: BTreeMap<String, BTreeMap<String, Member>>,
}

/// The recorded releases, reduced.
const TABLE: &str = include_str!("members.txt");

impl MemberTable {
    /// The table of the releases recorded in this repository.
    pub fn recorded() -> &'static MemberTable {
        static PARSED: OnceLock<MemberTable> = OnceLock::new();
        PARSED.get_or_init(|| MemberTable::parse(TABLE).expect("codegen writes what is read here"))
    }

    /// The recorded releases, the oldest first.
    pub fn releases(&self) -> &[Version] {
        &self.releases
    }

    /// All owners with their members, sorted by key; see [`Owner`] for the keys.
    pub fn owners(&self) -> impl Iterator<Item = (Owner<'_>, &BTreeMap<String, Member>)> {
        self.owners
            .iter()
            .filter_map(|(key, members)| Some((Owner::from_key(key)?, members)))
    }

    /// The members of an owner; `None` for an owner that no release was recorded with.
    pub fn members(&self, owner: Owner<'_>) -> Option<&BTreeMap<String, Member>> {
        self.owners.get(&owner.key())
    }

    /// A member of an owner, or of the object or list that it is a part of: `encrypt` for `encrypt.format`.
    pub fn find(&self, owner: Owner<'_>, name: &str) -> Option<&Member> {
        find(self.members(owner)?, name)
    }

    /// True if the QEMU of a release has a member; unknown between two releases that differ, and for a release that
    /// was recorded without the owner.
    pub fn answer(&self, owner: Owner<'_>, name: &str, version: Version) -> Answer {
        let Some(members) = self.members(owner) else {
            return Answer::Unknown;
        };
        let anywhere = members
            .values()
            .fold(0, |all, member| all | member.releases);
        let here = find(members, name).map_or(0, |member| member.releases);
        let release = |nth: usize| -> Option<bool> {
            let bit = 1 << nth;
            (anywhere & bit != 0).then_some(here & bit != 0)
        };
        let Some(last) = self.releases.iter().rposition(|one| *one <= version) else {
            // A member that the oldest release lacks is newer.
            return match release(0) {
                Some(false) if here != 0 => Answer::No(Basis::Assumed(version)),
                Some(_) | None => Answer::Unknown,
            };
        };
        let is_recorded = (self.releases[last].0, self.releases[last].1) == (version.0, version.1);
        let next = if is_recorded { last } else { last + 1 };
        let answer = if next == self.releases.len() {
            // A later release may have new ones, and has what was removed no more.
            release(last).filter(|_| here != 0)
        } else {
            release(last).filter(|_| release(last) == release(next))
        };
        match answer {
            Some(true) => Answer::Yes(Basis::Assumed(version)),
            Some(false) => Answer::No(Basis::Assumed(version)),
            None => Answer::Unknown,
        }
    }

    /// The releases that have a member, the oldest first.
    pub fn releases_with(&self, owner: Owner<'_>, name: &str) -> Vec<Version> {
        let releases = self.find(owner, name).map_or(0, |member| member.releases);
        let is_set = |nth: usize| releases & (1 << nth) != 0;
        let all = self.releases.iter().enumerate();
        all.filter(|(nth, _)| is_set(*nth))
            .map(|(_, version)| *version)
            .collect()
    }

    /// The first release that has a member which an earlier release of its owner lacks: as the table of capabilities
    /// knows it, else the oldest recorded one with it. `None` if the owner never lacked it, or has no such member.
    ///
    /// ```
    /// use vmdisk_facts::{MemberTable, Owner, Version};
    /// let table = MemberTable::recorded();
    /// let release = table.first_release(Owner::Node("qcow2"), "discard-no-unref");
    /// assert_eq!(release, Some(Version(8, 1, 0)), "recorded are 7.2 without it and 10.0 with it");
    /// assert_eq!(table.first_release(Owner::Node("qcow2"), "discard"), None);
    /// ```
    pub fn first_release(&self, owner: Owner<'_>, name: &str) -> Option<Version> {
        let members = self.members(owner)?;
        let first = find(members, name)?.releases.trailing_zeros();
        let of_owner = members
            .values()
            .map(|member| member.releases.trailing_zeros());
        if of_owner.min() == Some(first) {
            return None;
        }
        let recorded = *self.releases.get(first as usize)?;
        let is_known = |row: &&CapabilityRow| names(row.probe, owner, name);
        let known = capability::TABLE.iter().find(is_known);
        Some(known.map_or(recorded, |row| row.since.min(recorded)))
    }

    /// Reduces recordings, the oldest first.
    ///
    /// # Panics
    /// If there are more than 32 recordings.
    pub fn reduce(recordings: &[Introspection]) -> Self {
        assert!(recordings.len() <= 32, "one bit for each release");
        let mut table = MemberTable::default();
        for (nth, recording) in recordings.iter().enumerate() {
            let Version(major, minor, _) = recording.qemu;
            table.releases.push(Version(major, minor, 0));
            for (key, members) in &recording.members {
                let owner = table.owners.entry(key.clone()).or_default();
                for (name, kind) in members.iter().filter(|(name, _)| !is_unstable(name)) {
                    let kind = ValueKind::from_qemu(kind);
                    let member = owner
                        .entry(name.clone())
                        .or_insert(Member { kind, releases: 0 });
                    member.add(kind, nth);
                }
            }
        }
        table
    }

    /// Writes the table: an owner on a line of its own, with an earlier owner that it is like, then the differences.
    /// A member that not every recorded release of its owner has is followed by the releases that have it.
    pub fn to_text(&self) -> String {
        use std::fmt::Write as _;
        let mut text = String::from(
            "# Made by `cargo xtask codegen` from fixtures/capabilities: do not edit.\nreleases",
        );
        for Version(major, minor, _) in &self.releases {
            let _ = write!(text, " {major}.{minor}");
        }
        text.push('\n');
        let mut earlier: Vec<(&String, &BTreeMap<String, Member>)> = Vec::new();
        for (key, members) in &self.owners {
            let distance = |other: &BTreeMap<String, Member>| {
                let changed = members
                    .iter()
                    .filter(|(name, member)| other.get(*name) != Some(*member));
                changed.count()
                    + other
                        .keys()
                        .filter(|name| !members.contains_key(*name))
                        .count()
            };
            let like = earlier
                .iter()
                .map(|(key, other)| (distance(other), *key, *other))
                .min_by_key(|(distance, ..)| *distance)
                .filter(|(distance, ..)| *distance < members.len());
            text.push_str(key);
            let empty = BTreeMap::new();
            let base = like.map_or(&empty, |(_, like, base)| {
                let _ = write!(text, " like {like}");
                base
            });
            text.push('\n');
            for name in base.keys().filter(|name| !members.contains_key(*name)) {
                let _ = writeln!(text, "  {name} -");
            }
            for (name, member) in members
                .iter()
                .filter(|(name, member)| base.get(*name) != Some(*member))
            {
                let _ = writeln!(
                    text,
                    "  {name} {}{}",
                    member.kind.as_str(),
                    self.range(*member)
                );
            }
            earlier.push((key, members));
        }
        text
    }

    /// The releases of a member that not every release has, each with a blank before it.
    fn range(&self, member: Member) -> String {
        let all = (1_u32 << self.releases.len()) - 1;
        if member.releases == all {
            return String::new();
        }
        let is_set = |nth: &usize| member.releases & (1 << nth) != 0;
        let releases = (0..self.releases.len()).filter(is_set);
        releases
            .map(|nth| format!(" {}.{}", self.releases[nth].0, self.releases[nth].1))
            .collect()
    }

    /// Reads what [`MemberTable::to_text`] writes; `None` for another text.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let mut releases = Vec::new();
        for word in lines.next()?.strip_prefix("releases ")?.split(' ') {
            releases.push(word.parse::<Version>().ok()?);
        }
        let all = (1_u32 << releases.len()) - 1;
        let mut table = MemberTable {
            releases,
            owners: BTreeMap::new(),
        };
        let mut current = String::new();
        for line in lines {
            let Some(member) = line.strip_prefix("  ") else {
                let (key, like) = line.split_once(" like ").unwrap_or((line, ""));
                let base = table.owners.get(like).cloned().unwrap_or_default();
                current = key.to_owned();
                table.owners.insert(current.clone(), base);
                continue;
            };
            let mut words = member.split(' ');
            let (name, kind) = (words.next()?, words.next()?);
            let members = table.owners.get_mut(&current)?;
            if kind == "-" {
                members.remove(name);
                continue;
            }
            let mut set = 0;
            for word in words {
                let version: Version = word.parse().ok()?;
                set |= 1 << table.releases.iter().position(|one| *one == version)?;
            }
            let member = Member {
                kind: ValueKind::from_word(kind)?,
                releases: if set == 0 { all } else { set },
            };
            members.insert(name.to_owned(), member);
        }
        Some(table)
    }
}

impl<'a> Owner<'a> {
    /// The key in recordings: `device virtio-blk-pci`, `node qcow2`, `object iothread`.
    pub fn key(self) -> String {
        // Each member of a command line asks for it: `concat` is faster than `format`.
        match self {
            Owner::Device(name) => ["device ", name].concat(),
            Owner::Node(name) => ["node ", name].concat(),
            Owner::Object(name) => ["object ", name].concat(),
        }
    }

    fn from_key(key: &'a str) -> Option<Self> {
        let (kind, name) = key.split_once(' ')?;
        match kind {
            "device" => Some(Owner::Device(name)),
            "node" => Some(Owner::Node(name)),
            "object" => Some(Owner::Object(name)),
            _ => None,
        }
    }
}

/// True for names that QEMU marks as unstable: they come and go, and distributions have their own.
pub fn is_unstable(name: &str) -> bool {
    name.starts_with("x-") || name.starts_with("__")
}

/// True if a capability is this member.
fn names(probe: Probe, owner: Owner<'_>, name: &str) -> bool {
    match (probe, owner) {
        (Probe::DeviceProperty { device, property }, Owner::Device(owner)) => {
            device == owner && property == name
        }
        (Probe::QmpSchema(path), Owner::Node(owner)) => path
            .strip_prefix("blockdev-add/arg-type/+")
            .and_then(|rest| rest.split_once('/'))
            .is_some_and(|member| member == (owner, name)),
        (Probe::QmpSchema(path), Owner::Object(owner)) => path
            .strip_prefix("object-add/arg-type/+")
            .and_then(|rest| rest.split_once('/'))
            .is_some_and(|member| member == (owner, name)),
        _ => false,
    }
}

fn find<'m>(members: &'m BTreeMap<String, Member>, name: &str) -> Option<&'m Member> {
    let mut name = name;
    loop {
        if let Some(member) = members.get(name) {
            return Some(member);
        }
        name = name.rsplit_once('.')?.0;
    }
}

impl Target {
    /// True if the target's QEMU has a property or member: by its own recording, else by its version.
    ///
    /// ```
    /// use vmdisk_facts::{Answer, Owner, Target};
    /// let target: Target = "qemu=7.2".parse()?;
    /// assert!(target.has_member(Owner::Device("virtio-blk-pci"), "in_order").is_no());
    /// assert!(target.has_member(Owner::Device("virtio-blk-pci"), "serial").is_yes());
    /// assert_eq!(target.has_member(Owner::Device("no-such-device"), "serial"), Answer::Unknown);
    /// let target: Target = "qemu=9.1".parse()?;
    /// assert!(target.has_member(Owner::Device("virtio-blk-pci"), "scsi").is_no(), "recorded are 7.2 with it and 10.0 without");
    /// # Ok::<(), vmdisk_facts::TargetError>(())
    /// ```
    pub fn has_member(&self, owner: Owner<'_>, name: &str) -> Answer {
        if let Some(members) = self.members.as_ref().and_then(|all| all.get(&owner.key())) {
            // A name that another release has inside an object is missing here, although the object is not.
            let named = MemberTable::recorded().members(owner);
            let mut known = name;
            let has = loop {
                if members.contains_key(known) {
                    break true;
                }
                if named.is_some_and(|named| named.contains_key(known)) {
                    break false;
                }
                match known.rsplit_once('.') {
                    Some((parent, _)) => known = parent,
                    None => break false,
                }
            };
            return match has {
                true => Answer::Yes(Basis::Probed),
                false => Answer::No(Basis::Probed),
            };
        }
        match self.qemu {
            Some(version) => match MemberTable::recorded().answer(owner, name, version) {
                // The table of capabilities knows the releases between two recordings.
                Answer::Unknown => {
                    let mut rows = capability::TABLE.iter();
                    rows.find(|row| names(row.probe, owner, name))
                        .map_or(Answer::Unknown, |row| row.answer(version))
                }
                answer => answer,
            },
            None => Answer::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(version: Version, members: &[(&str, &[(&str, &str)])]) -> Introspection {
        let members = members.iter().map(|(owner, members)| {
            let members = members
                .iter()
                .map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned()));
            ((*owner).to_owned(), members.collect())
        });
        Introspection {
            schema_version: crate::INTROSPECTION_VERSION,
            qemu: version,
            package: String::new(),
            arch: String::new(),
            capabilities: BTreeMap::new(),
            unknown: BTreeMap::new(),
            machines: Vec::new(),
            members: members.collect(),
        }
    }

    fn reduced() -> MemberTable {
        let always = ("serial", "str");
        MemberTable::reduce(&[
            recording(
                Version(5, 2, 0),
                &[("device disk", &[always, ("old", "bool"), ("x-try", "bool")])],
            ),
            recording(
                Version(7, 2, 22),
                &[
                    ("device disk", &[always, ("size", "uint32")]),
                    ("node raw", &[("file", "node")]),
                ],
            ),
            recording(
                Version(10, 0, 1),
                &[
                    ("device disk", &[always, ("size", "size"), ("new", "bool")]),
                    ("node raw", &[("file", "node")]),
                ],
            ),
        ])
    }

    #[test]
    fn a_release_between_two_that_differ_is_unknown() {
        let table = reduced();
        let at = |name: &str, major, minor| {
            let answer = table.answer(Owner::Device("disk"), name, Version(major, minor, 5));
            (answer.is_yes(), answer.is_no())
        };
        let (yes, no, unknown) = ((true, false), (false, true), (false, false));
        for (name, expected) in [
            ("serial", [unknown, yes, yes, yes, yes, yes, yes]),
            ("old", [unknown, yes, unknown, no, no, no, no]),
            ("new", [no, no, no, no, unknown, yes, yes]),
            ("other", [unknown, no, no, no, no, no, unknown]),
            ("x-try", [unknown, no, no, no, no, no, unknown]),
        ] {
            let versions = [(4, 2), (5, 2), (6, 0), (7, 2), (8, 1), (10, 0), (11, 0)];
            let found = versions.map(|(major, minor)| at(name, major, minor));
            assert_eq!(found, expected, "{name}");
        }
        let raw = Owner::Node("raw");
        assert_eq!(table.answer(raw, "file", Version(5, 2, 0)), Answer::Unknown);
        assert!(table.answer(raw, "file.locking", Version(7, 2, 0)).is_yes());
        assert_eq!(
            table.find(Owner::Device("disk"), "size").unwrap().kind,
            ValueKind::Any
        );
        assert_eq!(
            table.find(Owner::Device("disk"), "serial").unwrap().kind,
            ValueKind::Text
        );
    }

    #[test]
    fn the_table_of_capabilities_knows_releases_between_the_recorded_ones() {
        let table = reduced();
        let old = table.releases_with(Owner::Device("disk"), "old");
        assert_eq!(old, [Version(5, 2, 0)]);
        let recorded = MemberTable::recorded();
        for (owner, name, expected) in [
            (
                Owner::Device("virtio-blk-pci"),
                "iothread-vq-mapping",
                Some(Version(9, 0, 0)),
            ),
            (
                Owner::Device("virtio-blk-pci"),
                "in_order",
                Some(Version(10, 0, 0)),
            ),
            (Owner::Device("virtio-blk-pci"), "serial", None),
            (
                Owner::Node("qcow2"),
                "discard-no-unref",
                Some(Version(8, 1, 0)),
            ),
            (
                Owner::Object("iothread"),
                "thread-pool-min",
                Some(Version(7, 1, 0)),
            ),
        ] {
            assert_eq!(recorded.first_release(owner, name), expected, "{name}");
        }
    }

    #[test]
    fn names_of_unstable_members_begin_with_x_or_underscores() {
        let names = ["x-data-plane", "__com.redhat_x", "serial", "xattr"];
        assert_eq!(names.map(is_unstable), [true, true, false, false]);
    }

    #[test]
    fn the_table_reads_back_from_its_text() {
        for table in [&reduced(), MemberTable::recorded()] {
            let read = MemberTable::parse(&table.to_text()).unwrap();
            assert_eq!(read.releases, table.releases);
            assert_eq!(read.owners, table.owners);
        }
        assert_eq!(MemberTable::recorded().to_text(), TABLE);
    }

    #[test]
    fn the_recording_of_a_program_takes_precedence_over_its_version() {
        let mut target = recording(
            Version(7, 2, 0),
            &[("device virtio-blk-pci", &[("in_order", "bool")])],
        )
        .target();
        let disk = Owner::Device("virtio-blk-pci");
        assert_eq!(
            target.has_member(disk, "in_order"),
            Answer::Yes(Basis::Probed)
        );
        assert_eq!(target.has_member(disk, "serial"), Answer::No(Basis::Probed));
        assert!(
            target
                .has_member(Owner::Device("scsi-hd"), "serial")
                .is_yes()
        );
        target.members = None;
        assert!(target.has_member(disk, "in_order").is_no());
    }
}
