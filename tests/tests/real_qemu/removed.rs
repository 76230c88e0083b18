//! What releases removed: each row of the tables is judged by the real programs at hand, and lint agrees with each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use vmdisk::facts::Version;
use vmdisk::{LintOptions, Severity, lint, read};
use vmdisk_facts::removed::REMOVED;
use vmdisk_facts::{Capability, Component, MemberTable, Owner, ValueKind, capability, machines};
use vmdisk_qmp::{Launch, introspect};
use vmdisk_tests::{QemuBuild, qemus};

/// A removed thing, and a command line with it.
struct Row {
    name: String,
    source: String,
    /// The releases from which on it is gone, as the table says; `None` if recordings decide.
    since: Option<Version>,
    arguments: Vec<String>,
    /// Words of a refusal.
    refused: &'static [&'static str],
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// Refusals of a name that QEMU does not know.
const UNKNOWN: &[&str] = &[
    "not found",
    "is unexpected",
    "invalid option",
    "support the option",
    "Invalid parameter",
    "is not a valid device model name",
    "nsupported machine type",
];

fn machine_row(name: &str, source: &str, since: Option<Version>) -> Row {
    Row {
        name: format!("-machine {name}"),
        source: source.to_owned(),
        since,
        arguments: words(&format!("-machine {name}")),
        refused: UNKNOWN,
    }
}

/// Machine types of the table, and those that a newer QEMU at hand no longer lists.
fn machine_rows(listed: &BTreeMap<Version, BTreeSet<String>>) -> Vec<Row> {
    let mut rows: Vec<Row> = machines::REMOVED
        .iter()
        .map(|row| {
            let Version(major, minor, _) = row.newest;
            let name = format!("{}{major}.{minor}", row.prefix);
            machine_row(&name, row.source, Some(row.first_without))
        })
        .collect();
    let newest = listed.last_key_value().map(|(_, names)| names);
    let all: BTreeSet<&String> = listed.values().flatten().collect();
    for name in all {
        let is_gone = newest.is_some_and(|newest| !newest.contains(name));
        let row = machine_row(name, "listed by an older QEMU at hand", None);
        if is_gone && rows.iter().all(|other| other.name != row.name) {
            rows.push(row);
        }
    }
    rows
}

fn option_rows() -> Vec<Row> {
    let drive = "-drive if=none,id=d,driver=null-co,read-zeroes=on";
    let rows = REMOVED.iter().map(|row| {
        let arguments = match (row.device, row.name) {
            ("", name) => words(&format!("-{name} 10,16,63")),
            ("-drive", name) => words(&format!("{drive},{name}=1")),
            ("virtio-blk", name) => {
                words(&format!("{drive} -device virtio-blk-pci,drive=d,{name}=on"))
            }
            (device, name) => words(&format!("{drive} -device {device},{name}=d")),
        };
        Row {
            name: format!("{} {}", row.device, row.name),
            source: row.source.to_owned(),
            since: Some(row.since),
            arguments,
            refused: UNKNOWN,
        }
    });
    let devices = ["ide-drive,drive=d", "scsi-disk,drive=d"];
    let gone = Capability::DiskOrCdDevices.row();
    let devices = devices.iter().map(|device| Row {
        name: format!("-device {device}"),
        source: gone.source.to_owned(),
        since: gone.until,
        arguments: words(&format!(
            "{drive} -device ich9-ahci -device virtio-scsi-pci -device {device}"
        )),
        refused: UNKNOWN,
    });
    rows.chain(devices).collect()
}

/// Properties that a recorded QEMU has and a later one with the same device or object has not.
fn recorded_rows() -> Vec<Row> {
    let table = MemberTable::recorded();
    let newest = *table.releases().last().unwrap();
    let mut rows = Vec::new();
    for (owner, members) in table.owners() {
        let arguments = |name: &str, kind: ValueKind| {
            // A switch that is on can be refused beside others.
            let value = match kind {
                ValueKind::Bool | ValueKind::OnOffAuto => "off",
                _ => "1",
            };
            match owner {
                Owner::Device(device) => {
                    let bus = match device {
                        "sd-card" => "-device sdhci-pci ",
                        _ if device.starts_with("usb-") => "-device qemu-xhci ",
                        _ => "",
                    };
                    Some(format!("{bus}-device {device},{name}={value}"))
                }
                Owner::Object(object) => Some(format!("-object {object},id=o,{name}={value}")),
                Owner::Node(_) => None,
            }
        };
        for (name, member) in members {
            let releases = table.releases_with(owner, name);
            let is_removed = releases.last().is_some_and(|last| *last != newest)
                && table.answer(owner, name, newest).is_no();
            if let Some(arguments) = arguments(name, member.kind).filter(|_| is_removed) {
                rows.push(Row {
                    name: arguments.rsplit("-device ").next().unwrap().to_owned(),
                    source: "recordings of QEMU".to_owned(),
                    since: None,
                    arguments: words(&arguments),
                    refused: &["not found", "is unexpected", "Invalid parameter"],
                });
            }
        }
    }
    rows
}

/// The machine for a row: one with the bus that it needs, unless it is about a machine.
fn machine(row: &Row) -> &'static [&'static str] {
    let has = |word: &str| row.arguments.iter().any(|it| it.starts_with(word));
    if has("-machine") {
        &[]
    } else if has("isa-fdc") || has("ide-drive") {
        &["-machine", "pc"]
    } else if has("virtio-blk-device") {
        &["-machine", "microvm"]
    } else {
        &["-machine", "q35"]
    }
}

/// The refusal of a QEMU because it does not know the row's name; empty if it knows it.
fn refusal(build: &QemuBuild, row: &Row) -> String {
    let started = Launch::paused(build.emulator())
        .args(["-nodefaults", "-accel", "tcg"])
        .args(machine(row))
        .args(&row.arguments)
        .start();
    let said = match &started {
        Ok(_) => "",
        Err(error) => error.stderr(),
    };
    let is_unknown = row.refused.iter().any(|words| said.contains(words));
    if is_unknown {
        said.trim().to_owned()
    } else {
        String::new()
    }
}

/// True if lint reports an error of the rules about removed things; `None` if it did not check.
fn reported(build: &QemuBuild, row: &Row) -> Option<bool> {
    let text = format!(
        "qemu-system-x86_64 -nodefaults {} {}\n",
        machine(row).join(" "),
        row.arguments.join(" ")
    );
    let report = lint(
        &read(&text).unwrap(),
        &LintOptions::default().target(build.target()),
    );
    let about = ["machine-missing-in-qemu", "property-refused"];
    let is_found = report
        .diagnostics
        .iter()
        .any(|it| about.contains(&it.rule.name) && it.severity == Severity::Error);
    let mut unchecked = report.not_checked.iter();
    let is_unchecked = unchecked.any(|it| about.contains(&it.rule.name));
    (is_found || !is_unchecked).then_some(is_found)
}

#[test]
fn what_is_removed_is_refused_by_a_real_program_and_by_lint() {
    let builds = qemus("what releases removed");
    let mut listed = BTreeMap::new();
    for build in &builds {
        let asked = introspect(&build.emulator(), Duration::from_secs(30)).unwrap();
        let machines = asked.machines.into_iter();
        let is_versioned = |name: &String| name.starts_with("pc-");
        listed.insert(build.version, machines.filter(is_versioned).collect());
    }
    let rows = machine_rows(&listed)
        .into_iter()
        .chain(option_rows())
        .chain(recorded_rows());
    // A distribution's QEMU may still have what a later one removed.
    let newest = *MemberTable::recorded().releases().last().unwrap();
    let has_newest = builds.iter().any(|build| build.version >= newest);
    let mut counts = BTreeMap::new();
    let mut wrong = Vec::new();
    for row in rows {
        let (mut accepted, mut refused, mut unknown) = (Vec::new(), Vec::new(), 0);
        for build in &builds {
            let said = refusal(build, &row);
            let is_refused = !said.is_empty();
            match reported(build, &row) {
                None => unknown += 1,
                Some(is_reported) if is_reported != is_refused => wrong.push(format!(
                    "{}: QEMU {} says `{said}`, and lint reports {is_reported}",
                    row.name, build.name
                )),
                Some(_) => {}
            }
            if row
                .since
                .is_some_and(|since| (build.version >= since) && !is_refused)
            {
                wrong.push(format!("{}: QEMU {} has it", row.name, build.name));
            }
            let list = if is_refused {
                &mut refused
            } else {
                &mut accepted
            };
            list.push(build.name.as_str());
        }
        println!(
            "{}: accepted by {}; refused by {}; {unknown} not checked; {}",
            row.name,
            if accepted.is_empty() {
                "none".to_owned()
            } else {
                accepted.join(", ")
            },
            refused.join(", "),
            row.source
        );
        if has_newest && refused.is_empty() {
            wrong.push(format!("{}: no program refuses it", row.name));
        }
        if row.source.is_empty() {
            wrong.push(format!("{}: no source", row.name));
        }
        let kind = if accepted.is_empty() {
            "newer"
        } else {
            "older and newer"
        };
        *counts.entry(kind).or_insert(0) += 1;
    }
    println!("rows judged by a real program, by kind: {counts:?}");
    assert_eq!(wrong, [""; 0]);
    if builds.len() >= 4 {
        assert!(
            counts["older and newer"] > 60 && counts["newer"] >= 8,
            "{counts:?}"
        );
    }
}

#[test]
fn a_capability_that_ended_is_reported_by_the_qemus_before_its_end_only() {
    let mut judged = 0;
    for build in qemus("capabilities that ended") {
        let asked = introspect(&build.emulator(), Duration::from_secs(30)).unwrap();
        for row in capability::TABLE {
            let name = row.name;
            let (Some(until), Component::Qemu) = (row.until, row.component) else {
                continue;
            };
            // Trials have tests of their own.
            let Some(has) = asked.capabilities.get(name) else {
                continue;
            };
            let expected = build.version >= row.since && build.version < until;
            assert_eq!(
                *has, expected,
                "{name} on QEMU {}: {}",
                build.name, row.source
            );
            judged += 1;
        }
    }
    println!("{judged} answers about capabilities that ended");
}
