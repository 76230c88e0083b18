//! `property-refused`

use std::collections::{HashMap, HashSet};

use vmdisk_facts::removed::{REMOVED, Removed};
use vmdisk_facts::{Answer, Basis, Capability, MemberTable, Owner, ValueKind, Version};
use vmdisk_model::Format;
use vmdisk_rule::reading::INVALID_VALUE;
use vmdisk_rule::{Applicability, Confidence, Evidence, Fix, Group, Missing, Report, Severity};
use vmdisk_source::{Edit, Span};

use super::line::{Line, base_of, line_rule};
use super::value_kind::expected;
use crate::device::recorded::device_owner;
use crate::limits::Suggestions;
use crate::members::Members;
use crate::syntax::properties::{Kind, Property, Syntax};
use crate::syntax::start::CommandLineForm;
use crate::syntax::value::is_on;
use crate::vocabulary;

line_rule! {
    /// A device, node or object does not have a property, or needs another type of value.
    ///
    /// ## What it reports
    /// Reports properties of disk devices, of virtio-scsi and NVMe controllers, of nodes and of objects that the
    /// target's QEMU does not have: `in_order` on a virtio disk for QEMU 7.2, `thread-pool-max` of an iothread for 5.2.
    /// Without a target, it reports properties that no QEMU from 5.2 to 11.1 has there: `iothread` on an IDE disk,
    /// `rotation_rate` on virtio-blk, `aio` on a format node, `l2-cache-size` on a `-drive` with `format=raw`. Also
    /// reports removed devices and removed words of `-drive`, and values of another type for devices and nodes: a number
    /// between quotes, `"on"` for `true`.
    ///
    /// ## Why it matters
    /// QEMU exits at start with `Property 'virtio-blk-pci.rotation_rate' not found` or
    /// `Invalid parameter type for 'read-only', expected: boolean`. It reports only the first such property, and does
    /// not say where the property belongs.
    ///
    /// ## Use instead
    /// Remove the property, or move it to the device or node that has it. List the properties that your QEMU accepts:
    /// `qemu-system-x86_64 -device virtio-blk-pci,help`.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,rotation_rate=1
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev '{"driver":"file","node-name":"f0","filename":"/srv/a.img","read-only":"off"}' \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    /// Locking is done by the file, `file.locking=off`, and not by the format:
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 -drive file=/srv/a.img,format=raw,if=virtio,locking=off
    /// ```
    /// ```args,reported,qemu-5.2
    /// qemu-system-x86_64 -nodefaults -machine q35 -object tls-creds-x509,id=tls0,dir=/etc/pki,sanity=on \
    ///   -blockdev driver=nbd,node-name=f0,server.type=inet,server.host=store.example,server.port=10809,tls-creds=tls0 \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    ///
    /// Removed properties and options:
    /// ```args,reported,qemu-7.2
    /// qemu-system-x86_64 -nodefaults -machine q35 -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,x-data-plane=on
    /// ```
    /// ```args,reported,qemu-9.1
    /// qemu-system-x86_64 -nodefaults -machine q35 -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,scsi=off
    /// ```
    /// ```args,reported,hidden,qemu-7.2
    /// qemu-system-x86_64 -nodefaults -machine pc -drive file=/srv/a.img,format=raw,if=ide -hdachs 10,16,63
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-checked,hidden,qemu-5.1
    /// qemu-system-x86_64 -nodefaults -machine q35 -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,x-data-plane=on
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-scsi-pci,id=scsi0 \
    ///   -device scsi-hd,drive=f0,id=sda,bus=scsi0.0,rotation_rate=1
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev '{"driver":"file","node-name":"f0","filename":"/srv/a.img","read-only":false}' \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    name: "property-refused",
    group: Group::Startup,
    severity: Severity::Error,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::refused_by_qemu("Property 'virtio-blk-pci.rotation_rate' not found", "qom/object.c, object_property_find_err"),
        Evidence::refused_by_qemu("Invalid parameter type for 'read-only', expected: boolean", "qapi/qobject-input-visitor.c"),
        Evidence::refused_by_qemu("Block format 'raw' does not support the option 'locking'", "block.c, bdrv_open_inherit"),
    ],
    check: Text(check),
}

/// Removed devices and their replacements; the capability [`Capability::DiskOrCdDevices`] knows the versions.
const GONE_DEVICES: &[(&str, &str)] = &[
    ("ide-drive", "use ide-hd or ide-cd"),
    ("scsi-disk", "use scsi-hd or scsi-cd"),
];

/// The row of a removed name, if the target's QEMU lacks it; without a version, today's QEMU counts.
fn find_removed(device: &str, name: &str, line: &Line<'_>) -> Option<&'static Removed> {
    let qemu = line.context.target.qemu;
    let row = REMOVED
        .iter()
        .find(|row| row.device == device && row.name == name);
    row.filter(|row| qemu.is_none_or(|qemu| qemu >= row.since))
}

fn report_removed(row: &Removed, line: &Line<'_>, report: &mut Report, option: usize, span: Span) {
    let message = match row.device {
        "" => format!("`-{}` was removed from QEMU", row.name),
        device => format!("`{}` of `{device}` was removed from QEMU", row.name),
    };
    line.refuse(report, option, span, message, row.instead)
        .note(format!("QEMU {} and later do not start with it", row.since));
}

/// Numbers of devices that may be negative, and those of 64 bits, of which QEMU takes the complement.
const SIGNED: &[&str] = &[
    "addr",
    "bootindex",
    "bootindexA",
    "bootindexB",
    "eui64",
    "max_io_size",
    "max_unmap_size",
    "port_wwn",
    "rombar",
    "sas_address",
    "scsi_version",
    "wwn",
];

/// Common properties of all devices, and those of CCW devices, which the recorded QEMUs for x86 do not have.
const UNRECORDED: &[&str] = &[
    "bus",
    "css_migration_enabled",
    "devno",
    "driver",
    "id",
    "loadparm",
    "max_revision",
];

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    // One mistake gives one finding: problems found while reading are not reported again.
    let problems = line.document.problems.iter();
    let known = problems.filter(|it| it.rule == &RULE.rule || it.rule == &INVALID_VALUE);
    let mut check = Check {
        line,
        known: known.map(|it| it.span).collect(),
        suggestions: Suggestions::default(),
    };
    check.devices(report);
    for (option, node) in line.index.of_name("blockdev") {
        check.nodes(report, option, node);
    }
    check.objects(report);
    for (option, drive) in line.index.of_name("drive") {
        check.drive_values(report, option, drive);
        check.drive(report, option, drive);
    }
    for name in REMOVED.iter().filter(|row| row.device.is_empty()) {
        for (option, written) in line.index.of_any(name.name) {
            if let Some(row) = find_removed("", name.name, line) {
                report_removed(row, line, report, option, written);
            }
        }
    }
    check_json_chardevs(line, report);
    check_limits_of_groups(line, report);
    check_drives(line, report);
}

/// The check of members, with its state.
struct Check<'l, 'a> {
    line: &'l Line<'a>,
    known: HashSet<Span>,
    suggestions: Suggestions,
}

/// The members of a node at `prefix` of an option.
struct NodeMembers<'p> {
    prefix: String,
    list: Vec<&'p Property>,
}

impl NodeMembers<'_> {
    /// Appends the nested node of a key; returns its index in `nodes`.
    fn inside(node: Members<'_>, prefix: &str, key: &str, nodes: &mut Vec<Self>) -> Option<usize> {
        let prefix = format!("{prefix}{key}.");
        node.get(&format!("{prefix}driver"))?;
        let list = Vec::new();
        nodes.push(NodeMembers { prefix, list });
        Some(nodes.len() - 1)
    }
}

impl Check<'_, '_> {
    fn devices(&mut self, report: &mut Report) {
        let line = self.line;
        for (option, driver, device) in line.index.devices() {
            if let Some(gone) = GONE_DEVICES.iter().find(|(name, _)| *name == driver) {
                check_gone(line, report, option, device, gone);
                continue;
            }
            for property in device.iter() {
                if let Some(row) = find_removed(base_of(driver), &property.key, line) {
                    report_removed(row, line, report, option, property.key_span);
                }
            }
            let is_recorded = |property: &&Property| !UNRECORDED.contains(&property.key.as_str());
            let owner = device_owner(driver);
            let properties = owner.map(|owner| (owner, device.iter().filter(is_recorded)));
            for (owner, property) in properties
                .into_iter()
                .flat_map(|(owner, all)| all.map(move |it| (owner, it)))
            {
                self.member(
                    report,
                    option,
                    property,
                    &property.key,
                    owner,
                    base_of(driver),
                );
            }
            check_device_syntax(line, report, option, driver, device);
        }
    }

    /// Checks the properties of objects of the recorded types.
    fn objects(&mut self, report: &mut Report) {
        let line = self.line;
        for (option, object) in line.index.of_name("object") {
            let owner = object.value("qom-type").map(Owner::Object);
            let Some(owner @ Owner::Object(name)) = owner else {
                continue;
            };
            if MemberTable::recorded().members(owner).is_none() {
                continue;
            }
            for property in object.iter() {
                let key = property.key.as_str();
                let first = key.split('.').next().unwrap_or(key);
                if !matches!(first, "qom-type" | "id") {
                    self.member(report, option, property, first, owner, name);
                }
            }
        }
    }

    /// Checks the members of a node, and of nested nodes.
    fn nodes(&mut self, report: &mut Report, option: usize, node: Members<'_>) {
        let mut nodes = vec![NodeMembers {
            prefix: String::new(),
            list: node.iter().collect(),
        }];
        while let Some(members) = nodes.pop() {
            self.node(report, option, node, &members, &mut nodes);
        }
    }

    /// Checks the members of one node, and appends the nested nodes to `nodes`.
    fn node<'p>(
        &mut self,
        report: &mut Report,
        option: usize,
        node: Members<'p>,
        members: &NodeMembers<'p>,
        nodes: &mut Vec<NodeMembers<'p>>,
    ) {
        let NodeMembers { prefix, list } = members;
        let Some(driver) = node.get(&format!("{prefix}driver")) else {
            return;
        };
        let driver = driver.value.as_str();
        let owner = Owner::Node(driver);
        let is_recorded = MemberTable::recorded().members(owner).is_some();
        // The index in `nodes` of each nested node; `None` for other members.
        let mut inside: HashMap<&str, Option<usize>> = HashMap::new();
        for property in list {
            let rest = &property.key[prefix.len()..];
            let first = rest.split('.').next().unwrap_or(rest);
            let child = (first != rest).then(|| {
                let child = inside.entry(first);
                *child.or_insert_with(|| NodeMembers::inside(node, prefix, first, nodes))
            });
            if let Some(nth) = child.flatten() {
                nodes[nth].list.push(property);
            } else if first == "cache" {
                self.cache_member(report, option, property, rest);
            } else if is_recorded && first != "driver" {
                let is_known = MemberTable::recorded().find(owner, first).is_some();
                let key = if is_known { rest } else { first };
                self.member(report, option, property, key, owner, driver);
            }
        }
    }

    /// Checks the cache of a node, which is an object of two switches.
    fn cache_member(&self, report: &mut Report, option: usize, property: &Property, rest: &str) {
        if !matches!(rest, "cache.direct" | "cache.no-flush") {
            if !self.known.contains(&property.key_span) {
                check_cache_member(self.line, report, option, property, rest);
            }
        } else if !self.known.contains(&property.span)
            && let Some(expected) = expected(ValueKind::Bool, false, property)
        {
            self.refuse_value(report, option, property, rest, expected);
        }
    }

    /// Checks that the format of a drive has the options that are not of the drive itself.
    fn drive(&self, report: &mut Report, option: usize, drive: Members<'_>) {
        let Some(format) = drive.get("format").or_else(|| drive.get("driver")) else {
            return;
        };
        let format = format.value.as_str();
        let owner = Owner::Node(format);
        let table = MemberTable::recorded();
        if Format::of_qemu_driver(format).is_none() || table.members(owner).is_none() {
            return;
        }
        for property in drive.iter() {
            let key = property.key.as_str();
            let first = key.split('.').next().unwrap_or(key);
            let is_elsewhere = vocabulary::is_of_drive(first) || first.starts_with("x-");
            let is_reported = property.has_open_key
                || self.known.contains(&property.key_span)
                || !vocabulary::knows("drive", key);
            if is_elsewhere || is_reported || table.find(owner, first).is_some() {
                continue;
            }
            let message = format!("format `{format}` does not support `{key}`");
            let help = match table.find(Owner::Node("file"), first) {
                Some(_) => format!("use `file.{key}`, which is an option of the file"),
                None => "remove it: QEMU does not start with it".to_owned(),
            };
            self.line
                .refuse(report, option, property.key_span, message, help);
        }
    }

    /// Checks one property or member: that its owner supports it, and the type of its value.
    fn member(
        &mut self,
        report: &mut Report,
        option: usize,
        property: &Property,
        key: &str,
        owner: Owner<'_>,
        name: &str,
    ) {
        // Unstable properties are not checked, because distributions add their own.
        if key.starts_with("x-")
            || key.starts_with("__")
            || property.has_open_key
            || self.known.contains(&property.key_span)
        {
            return;
        }
        let table = MemberTable::recorded();
        let member = table.find(owner, key);
        match (self.line.context.target.has_member(owner, key), member) {
            (Answer::No(basis), Some(_)) => {
                self.missing_in_release(report, option, property, owner, key, name, basis);
                return;
            }
            (Answer::No(_), None) => {
                return self.unknown(report, option, property, key, owner, name);
            }
            (Answer::Unknown, None) if self.is_newer_than_recorded() => {
                let what = format!("whether `{name}` has `{key}` in that QEMU");
                let why = format!("no QEMU after {} is recorded", newest(table));
                report.not_checked(self.line.owner(option), Missing::new(what, why));
                return;
            }
            (Answer::Unknown, None) => {
                return self.unknown(report, option, property, key, owner, name);
            }
            (Answer::Unknown, Some(_)) if self.line.context.target.qemu.is_some() => {
                let what = format!("whether `{name}` has `{key}` in that QEMU");
                let why = format!(
                    "{}, and no closer release is recorded",
                    releases(owner, key)
                );
                report.not_checked(self.line.owner(option), Missing::new(what, why));
            }
            (Answer::Unknown | Answer::Yes(_), _) => {}
        }
        let kind = match owner {
            // The recorded types of objects use `int` for sizes and lists too.
            Owner::Object(_) => ValueKind::Any,
            Owner::Device(_) | Owner::Node(_) => {
                member.map_or(ValueKind::Any, |member| member.kind)
            }
        };
        // The numbers of nodes are sizes and times.
        let is_node = matches!(owner, Owner::Node(_));
        let may_be_negative = !is_node && SIGNED.contains(&key);
        let is_whole = property.key.ends_with(key)
            && table
                .members(owner)
                .is_some_and(|all| all.contains_key(key));
        if is_whole
            && !self.known.contains(&property.span)
            && let Some(expected) = expected(kind, may_be_negative, property)
                .or_else(|| is_node.then(|| expected_word(key, property)).flatten())
        {
            self.refuse_value(report, option, property, key, expected);
        }
    }

    fn refuse_value(
        &self,
        report: &mut Report,
        option: usize,
        property: &Property,
        key: &str,
        expected: &str,
    ) {
        let value = property.value.as_str();
        let message = format!("`{key}` is `{value}`, but QEMU expects {expected}");
        let help = format!("use {expected}");
        self.line
            .refuse(report, option, property.span, message, help);
    }

    /// Checks the types of the values of a `-drive`.
    fn drive_values(&self, report: &mut Report, option: usize, drive: Members<'_>) {
        for property in drive.iter() {
            let key = property.key.as_str();
            let kind = match key {
                "auto-read-only"
                | "copy-on-read"
                | "force-share"
                | "snapshot"
                | "stats-account-failed"
                | "stats-account-invalid" => ValueKind::Bool,
                "index" | "bus" | "unit" => ValueKind::Number,
                "file.locking" => ValueKind::OnOffAuto,
                _ if is_limit(key) => ValueKind::Number,
                _ => continue,
            };
            if !self.known.contains(&property.span)
                // A negative place is unset.
                && let Some(expected) = expected(kind, !is_limit(key), property)
            {
                self.refuse_value(report, option, property, key, expected);
            }
        }
        if let (Some(driver), Some(_)) = (drive.get("driver"), drive.get("format")) {
            let message = "-drive supports either `driver` or `format`";
            let help = "remove one of the two";
            self.line
                .refuse(report, option, driver.key_span, message, help);
        }
    }

    /// True if the target's QEMU is newer than every recorded one.
    fn is_newer_than_recorded(&self) -> bool {
        let newest = newest(MemberTable::recorded());
        let target = self.line.context.target.qemu;
        target.is_some_and(|target| target.release() > newest.release())
    }

    /// Reports a property that other releases have.
    #[allow(clippy::too_many_arguments)] // The place, the property and its owner.
    fn missing_in_release(
        &self,
        report: &mut Report,
        option: usize,
        property: &Property,
        owner: Owner<'_>,
        key: &str,
        name: &str,
        basis: Basis,
    ) {
        let (qemu, confidence) = match (basis, self.line.context.target.qemu) {
            (Basis::Assumed(version), _) => (format!("QEMU {version}"), Confidence::Assumed),
            (_, Some(version)) => (format!("this QEMU {version}"), Confidence::Certain),
            (_, None) => ("this QEMU".to_owned(), Confidence::Certain),
        };
        let message = format!("`{name}` has no property `{key}` in {qemu}");
        let help = "remove it: this QEMU does not start with it";
        let span = property.key_span;
        self.line
            .refuse(report, option, span, message, help)
            .note(releases(owner, key))
            .confidence(confidence);
    }

    /// Reports a property that no recorded release has.
    fn unknown(
        &mut self,
        report: &mut Report,
        option: usize,
        property: &Property,
        key: &str,
        owner: Owner<'_>,
        name: &str,
    ) {
        let members = MemberTable::recorded().members(owner);
        let words = members.into_iter().flat_map(|all| all.keys());
        let near = self.suggestions.nearest(key, words.map(String::as_str));
        let message = format!("`{name}` has no property `{key}`");
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "remove it: QEMU does not start with it".to_owned(),
        };
        let span = property.key_span;
        let finding = self.line.refuse(report, option, span, message, help);
        if let Some(near) = near.filter(|_| property.key == key) {
            finding.fix(Fix {
                changes: Vec::new(),
                edits: vec![Edit::replace(span, near)],
                applicability: Applicability::Safe,
            });
        }
    }
}

/// The expected words of a member of a node, if the value is another one.
fn expected_word(key: &str, property: &Property) -> Option<&'static str> {
    let (words, expected): (&[&str], _) = match key {
        "discard" => (&["ignore", "unmap"], "ignore or unmap"),
        "locking" => (&["on", "off", "auto"], "on, off or auto"),
        "overlap-check" => (
            &["none", "constant", "cached", "all"],
            "none, constant, cached or all",
        ),
        _ => return None,
    };
    let value = property.value.as_str();
    (!words.contains(&value) && !property.is_open()).then_some(expected)
}

/// True for the limits of a `-drive` in both spellings: `iops_rd`, `throttling.iops-read`.
fn is_limit(key: &str) -> bool {
    match key.strip_prefix("throttling.") {
        Some(rest) => rest != "group",
        None => key.starts_with("iops") || key.starts_with("bps"),
    }
}

/// The newest recorded release.
fn newest(table: &MemberTable) -> Version {
    table.releases().last().copied().unwrap_or_default()
}

/// The recorded releases that have a property, as a sentence.
fn releases(owner: Owner<'_>, key: &str) -> String {
    let table = MemberTable::recorded();
    let having = table.releases_with(owner, key);
    let list: Vec<String> = having
        .iter()
        .map(|Version(major, minor, _)| format!("{major}.{minor}"))
        .collect();
    match (list.first(), having.last()) {
        (Some(first), Some(last)) if *last == newest(table) => {
            format!("available in QEMU {first} and later, among the recorded releases")
        }
        (Some(_), Some(last)) => format!(
            "removed after QEMU {}, among the recorded releases",
            release_name(*last)
        ),
        _ => "not available in any recorded release".to_owned(),
    }
}

fn release_name(Version(major, minor, _): Version) -> String {
    format!("{major}.{minor}")
}

fn check_gone(
    line: &Line<'_>,
    report: &mut Report,
    option: usize,
    device: Members<'_>,
    (name, help): &(&str, &'static str),
) {
    let gone = Capability::DiskOrCdDevices;
    if line.context.target.can(gone).is_yes() {
        return;
    }
    let driver = device.get("driver");
    let span = driver.map_or(line.index.span(option), |it| it.span);
    let release = gone.row().until.map(|until| format!(" in QEMU {until}"));
    let message = format!("`{name}` was removed{}", release.unwrap_or_default());
    line.refuse(report, option, span, message, *help);
}

/// Checks that depend on the form of a device, or on its other properties.
fn check_device_syntax(
    line: &Line<'_>,
    report: &mut Report,
    option: usize,
    driver: &str,
    device: Members<'_>,
) {
    let list = device.iter().find(|property| {
        property.kind == Kind::Plain && property.key.starts_with("iothread-vq-mapping")
    });
    if let Some(list) = list {
        let message = "iothread-vq-mapping is a list, which requires JSON";
        let help = "write the whole -device in JSON, which QEMU 6.2 and later accept";
        line.refuse(report, option, list.key_span, message, help);
    }
    if base_of(driver) == "virtio-blk"
        && let Some(scsi) = device.get("scsi").filter(|scsi| is_on(Some(scsi)))
    {
        let message =
            "scsi=on passes SCSI commands through, which modern virtio disks do not support";
        let help = "remove it; for SCSI commands use scsi-block on a virtio-scsi controller";
        line.refuse(report, option, scsi.span, message, help);
    }
}

fn check_json_chardevs(line: &Line<'_>, report: &mut Report) {
    if line.document.form == CommandLineForm::MonitorScript {
        return; // the arguments of `chardev-add`
    }
    for (option, chardev) in line.index.of_name("chardev") {
        if matches!(chardev.properties().syntax, Syntax::Json { .. }) {
            let span = line.index.span(option);
            let message = "-chardev does not support JSON";
            let help = "use -chardev socket,id=…,path=…, and double commas in the path";
            line.refuse(report, option, span, message, help);
        }
    }
}

fn check_limits_of_groups(line: &Line<'_>, report: &mut Report) {
    for (option, object) in line.index.objects("throttle-group") {
        let is_pairs = matches!(
            object.properties().syntax,
            Syntax::Pairs { .. } | Syntax::Lines { .. }
        );
        let mut properties = object.iter().filter(|_| is_pairs);
        if let Some(limits) = properties.find(|property| property.key.starts_with("limits.")) {
            let message = format!("`{}` is supported only in JSON", limits.key);
            let help = format!(
                "use x-{}, or write the whole -object in JSON",
                &limits.key["limits.".len()..]
            );
            line.refuse(report, option, limits.key_span, message, help);
        }
    }
}

fn check_drives(line: &Line<'_>, report: &mut Report) {
    for (option, drive) in line.index.of_name("drive") {
        if let Some(boot) = drive.get("boot") {
            let message = "-drive does not support `boot`";
            let help = "remove it; bootindex on a -device, or -boot, sets the boot order";
            line.refuse(report, option, boot.key_span, message, help);
        }
        let keys = REMOVED.iter().filter(|row| row.device == "-drive");
        for property in keys.filter_map(|row| drive.get(row.name)) {
            let key = &property.key;
            let message = format!("-drive does not support `{key}` since QEMU 3.0");
            let help = format!("use if=none, and set {key} on a -device");
            line.refuse(report, option, property.key_span, message, help);
        }
    }
}

/// Reports a part of a cache that a node does not have; cache modes belong to `-drive`.
fn check_cache_member(
    line: &Line<'_>,
    report: &mut Report,
    option: usize,
    property: &Property,
    rest: &str,
) {
    let value = property.value.as_str();
    let (message, help) = match (rest, vmdisk_model::CacheMode::from_word(value)) {
        ("cache", Some(mode)) => {
            let switches = mode.switches();
            let word = |is_on: bool| if is_on { "on" } else { "off" };
            (
                format!("-blockdev does not support cache={value}"),
                format!(
                    "set cache.direct={},cache.no-flush={} on every node, and write-cache={} on the device",
                    word(switches.direct),
                    word(switches.no_flush),
                    word(switches.write_cache)
                ),
            )
        }
        ("cache.writeback", _) => (
            "-blockdev does not support cache.writeback, which belongs to the device".to_owned(),
            "set write-cache on the device".to_owned(),
        ),
        _ => (
            format!("a node does not support `{rest}`"),
            "use cache.direct or cache.no-flush".to_owned(),
        ),
    };
    let span = property.key_span;
    line.refuse(report, option, span, message, help);
}
