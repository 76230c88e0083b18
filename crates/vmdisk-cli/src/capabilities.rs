//! `vmdisk capabilities`.

pub(crate) mod diff;

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;
use vmdisk::Target;
use vmdisk::facts::capability::{Row, TABLE};
use vmdisk::facts::{Answer, Basis, Component, Introspection, Probe, Version};

use crate::args::{CapabilitiesArgs, CapabilitiesCommand, CapabilitiesFormat};
use crate::exit::Exit;
use crate::io::Io;
use crate::output::deliver;
use crate::qemu;
use crate::stop::Stop;

/// Version of the shape.
const SCHEMA_VERSION: &str = "1.0";

/// What `vmdisk capabilities --format json` prints.
///
/// Within version 1 keys are added, never removed, renamed or given another meaning.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "vmdisk capabilities, version 1", rename = "Capabilities")]
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
}

/// One capability.
#[derive(Debug, Serialize, JsonSchema)]
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
    if let Some(CapabilitiesCommand::Diff(args)) = &args.command {
        return diff::run(args, io);
    }
    let asked = args.qemu.as_deref().map(qemu::ask).transpose()?;
    let target = qemu::target(args.target.as_ref(), asked.as_ref())?;
    let text = match args.format {
        CapabilitiesFormat::Text => table(&target, asked.as_ref()),
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
    deliver(io, args.output.as_deref(), &text)?;
    Ok(Exit::Clean)
}

/// The JSON Schema of the table.
pub(crate) fn schema() -> schemars::Schema {
    schemars::schema_for!(Envelope)
}

/// The JSON Schema of a recording.
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
    };
    let mut text =
        serde_json::to_string_pretty(&envelope).expect("text, numbers and lists can be written");
    text.push('\n');
    text
}

fn capability(row: &Row, target: &Target) -> Capability {
    let (answer, basis) = words(target.can(row.capability));
    let Row {
        capability: _, // its name tells
        name,
        about,
        component,
        since,
        until,
        probe,
        source,
    } = row;
    Capability {
        name,
        about,
        component: component_word(*component),
        since: *since,
        until: *until,
        probe: match probe {
            Probe::QmpSchema(path) => Some(format!("schema {path}")),
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

/// The table for people: rows about programs that the target does not name come without an answer.
fn table(target: &Target, asked: Option<&Introspection>) -> String {
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
    let rows: Vec<[String; 4]> = TABLE
        .iter()
        .map(|row| {
            let answer = match words(target.can(row.capability)) {
                ("unknown", _) => "-".to_owned(),
                (word, Some("version")) => format!("{word}, by version"),
                (word, _) => word.to_owned(),
            };
            let until = row.until.map(|until| format!(" until {until}"));
            let versions = format!(
                "{} {}{}",
                component_word(row.component),
                row.since,
                until.unwrap_or_default()
            );
            [answer, row.name.to_owned(), versions, row.about.to_owned()]
        })
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let (answer, name, versions) = (width(0), width(1), width(2));
    for row in &rows {
        let _ = writeln!(
            out,
            "{:answer$}  {:name$}  {:versions$}  {}",
            row[0], row[1], row[2], row[3]
        );
    }
    crate::sanitize::lines(&out).into_owned()
}
