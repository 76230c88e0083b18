//! `vmdisk facts qemu`.

use std::fmt::Write;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;
use vmdisk::Target;
use vmdisk::facts::capability::{CapabilityRow, TABLE};
use vmdisk::facts::known_bad;
use vmdisk::facts::{Answer, Basis, Component, Introspection, Probe, Version};

use crate::args::{CapabilitiesArgs, CapabilitiesFormat};
use crate::exit::Exit;
use crate::io::Io;
use crate::output::{deliver_exact, pretty_json};
use crate::pager;
use crate::qemu;
use crate::stop::Stop;
use vmdisk_source::table::table;

/// Version of the shape.
const SCHEMA_VERSION: &str = "1.0";

/// What `vmdisk facts qemu --format json` prints.
///
/// Within version 1 keys are added, never removed, renamed or given another meaning.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(title = "vmdisk facts qemu, version 1", rename = "Capabilities")
)]
struct Envelope {
    /// Version of this shape: another first number is another shape.
    schema_version: &'static str,
    /// The target of the answers, such as `qemu=7.2.22,arch=x86_64`; empty without a target.
    target: String,
    /// The distribution's name of the probed build; null without a probed program.
    package: Option<String>,
    /// The machine types of the QEMU that was asked; empty where none was.
    machines: Vec<String>,
    /// One row for each capability.
    capabilities: Vec<Capability>,
    /// One row for each bug that a disk configuration can meet.
    known_bugs: Vec<KnownBug>,
}

/// A bug, and the builds that have it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct KnownBug {
    /// Its name.
    name: &'static str,
    /// The configuration that meets it and the consequence, in Markdown.
    about: &'static str,
    /// The program with the bug: `qemu`, `libvirt`, `kernel`, `virtio-win`.
    program: &'static str,
    /// The affected builds, the oldest first.
    affected: Vec<Builds>,
    /// Where the row comes from.
    source: &'static str,
    /// Whether the target has the bug: `yes`, `no`, `unknown`.
    answer: &'static str,
}

/// A range of builds.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Builds {
    /// The first affected build; null if all earlier builds are affected.
    first: Option<Version>,
    /// The first later build that is not affected or was not tried; null if no fix is known.
    until: Option<Version>,
}

/// One capability.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Capability {
    /// Its name in facts and messages.
    name: &'static str,
    /// Description, in Markdown.
    about: &'static str,
    /// The program whose version decides: `qemu`, `libvirt`, `kernel`, `machine`.
    component: &'static str,
    /// The first version that has it.
    since: Version,
    /// The first version that no longer has it; null where all later ones do.
    until: Option<Version>,
    /// The last version that was tried and lacks it, if the answer for later versions before `since` is unknown; null if
    /// they count as lacking it.
    tried_without: Option<Version>,
    /// The query to a program: `schema PATH`, `type NAME`, `property DEVICE PROPERTY`; null if only a trial shows it.
    probe: Option<String>,
    /// Where the row comes from.
    source: &'static str,
    /// Whether the target has it: `yes`, `no`, `unknown`.
    answer: &'static str,
    /// The basis of the answer: `probed`, `version`; null for `unknown`.
    basis: Option<&'static str>,
}

/// Shows what a target can do.
pub(crate) fn run(args: &CapabilitiesArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let asked = args.qemu.as_deref().map(qemu::ask).transpose()?;
    let target = qemu::target(args.target.as_ref(), asked.as_ref())?;
    let text = match args.format {
        CapabilitiesFormat::Text => {
            let width = io.width(args.output.as_deref());
            let text = text(&target, asked.as_ref(), width);
            if args.output.is_none() {
                pager::page(io, &text)?;
                return Ok(Exit::Clean);
            }
            text
        }
        CapabilitiesFormat::Json => json(&target, asked.as_ref()),
        CapabilitiesFormat::Recording => match &asked {
            Some(introspection) => introspection.to_json(),
            None => {
                return Err(
                    Stop::new("there is nothing to record").help("name the QEMU with --qemu PATH")
                );
            }
        },
    };
    deliver_exact(io, args.output.as_deref(), &text)?;
    Ok(Exit::Clean)
}

/// The JSON Schema of the table.
#[cfg(feature = "schema")]
pub(crate) fn schema() -> schemars::Schema {
    schemars::schema_for!(Envelope)
}

/// The JSON Schema of a recording.
#[cfg(feature = "schema")]
pub(crate) fn recording_schema() -> schemars::Schema {
    schemars::schema_for!(Introspection)
}

fn json(target: &Target, asked: Option<&Introspection>) -> String {
    let envelope = Envelope {
        schema_version: SCHEMA_VERSION,
        target: target.to_string(),
        package: asked.map(|introspection| introspection.package.clone()),
        machines: asked
            .map(|introspection| introspection.machines.clone())
            .unwrap_or_default(),
        capabilities: TABLE.iter().map(|row| capability(row, target)).collect(),
        known_bugs: known_bad::TABLE
            .iter()
            .map(|row| known_bug(row, target))
            .collect(),
    };
    pretty_json(&envelope)
}

fn capability(row: &CapabilityRow, target: &Target) -> Capability {
    let (answer, basis) = words(target.can(row.capability));
    let CapabilityRow {
        capability: _, // its name tells
        name,
        about,
        component,
        since,
        until,
        tried_without,
        probe,
        source,
    } = row;
    Capability {
        name,
        about,
        component: component_word(*component),
        since: *since,
        until: *until,
        tried_without: *tried_without,
        probe: match probe {
            Probe::QmpSchema(path) => Some(format!("schema {path}")),
            Probe::BlockDriver(driver) => Some(format!("driver {driver}")),
            Probe::DeviceProperty { device, property } => {
                Some(format!("property {device} {property}"))
            }
            Probe::QomType(name) => Some(format!("type {name}")),
            Probe::Trial => None,
        },
        source,
        answer,
        basis,
    }
}

fn known_bug(row: &known_bad::KnownBadRow, target: &Target) -> KnownBug {
    let known_bad::KnownBadRow {
        bug,
        name,
        about,
        program,
        affected,
        untried: _, // the answer tells
        source,
    } = row;
    let affected = affected.iter().map(|range| Builds {
        first: Some(range.start).filter(|first| *first != Version::default()),
        until: Some(range.end).filter(|until| *until != known_bad::NEVER),
    });
    KnownBug {
        name,
        about,
        program: program.word(),
        affected: affected.collect(),
        source,
        answer: words(target.has_bug(*bug)).0,
    }
}

const fn component_word(component: Component) -> &'static str {
    match component {
        Component::Qemu => "qemu",
        Component::Libvirt => "libvirt",
        Component::Kernel => "kernel",
        Component::Machine => "machine",
    }
}

const fn words(answer: Answer) -> (&'static str, Option<&'static str>) {
    match answer {
        Answer::Yes(Basis::Probed) => ("yes", Some("probed")),
        Answer::Yes(Basis::Assumed(_)) => ("yes", Some("version")),
        Answer::No(Basis::Probed) => ("no", Some("probed")),
        Answer::No(Basis::Assumed(_)) => ("no", Some("version")),
        Answer::Unknown => ("unknown", None),
    }
}

/// The table for people. Rows come without an answer if the target does not name the program, or its version was not tried.
fn text(target: &Target, asked: Option<&Introspection>, width: Option<usize>) -> String {
    let mut out = String::new();
    if let Some(introspection) = asked {
        let Introspection {
            qemu,
            package,
            arch,
            unknown,
            machines,
            schema_version: _,
            capabilities: _,
            members: _,
        } = introspection;
        let package = if package.is_empty() {
            String::new()
        } else {
            format!(" ({package})")
        };
        let _ = writeln!(
            out,
            "QEMU {qemu}{package} for {arch}, {} machine types",
            machines.len()
        );
        for (name, why) in unknown {
            let _ = writeln!(out, "no answer about {name}: {why}");
        }
    }
    let rows: Vec<Vec<String>> = TABLE
        .iter()
        .map(|row| {
            let answer = match words(target.can(row.capability)) {
                ("unknown", _) => "-".to_owned(),
                (word, Some("version")) => format!("{word}, by version"),
                (word, _) => word.to_owned(),
            };
            let until = row.until.map(|until| format!(" until {until}"));
            let without = row.tried_without.map(|last| format!(" (not in {last})"));
            let versions = format!(
                "{} {}{}{}",
                component_word(row.component),
                row.since,
                until.unwrap_or_default(),
                without.unwrap_or_default()
            );
            vec![answer, row.name.to_owned(), versions, row.about.to_owned()]
        })
        .collect();
    out.push_str(&table(&rows, false, width));
    out.push_str("\nKnown bugs:\n");
    let bugs: Vec<Vec<String>> = known_bad::TABLE
        .iter()
        .map(|row| {
            let answer = match words(target.has_bug(row.bug)).0 {
                "unknown" => "-".to_owned(),
                word => format!("{word}, by version"),
            };
            let builds = format!("{} {}", row.program.word(), row.builds());
            vec![answer, row.name.to_owned(), builds, row.about.to_owned()]
        })
        .collect();
    out.push_str(&table(&bugs, false, width));
    crate::sanitize::lines(&out).into_owned()
}
