//! The paths as text.

use std::fmt::Write as _;

use vmdisk::Diagnostic;
use vmdisk::plan::shell_word;
use vmdisk::trace::{
    DiskTrace, Property, RequestEffect, RequestOutcome, Statement, StatementBasis, TraceStep,
};

use super::traced::Traced;
use crate::sanitize::line;
use vmdisk_source::table::labelled;

/// The paths as text for people.
pub(super) fn write(traced: &Traced, width: Option<usize>) -> String {
    let mut out = String::new();
    let guest = traced.domain.as_deref().unwrap_or(&traced.file);
    for disk in &traced.guest.disks {
        if !out.is_empty() {
            out.push('\n');
        }
        let heading = format!("{}: disk {}", line(guest), line(&name(disk)));
        labelled(&mut out, "", &heading, width);
        write_disk(&mut out, disk, width);
    }
    if !traced.guest.others.is_empty() {
        out.push('\n');
        let _ = writeln!(out, "{}: the guest", line(guest));
        for finding in &traced.guest.others {
            write_finding(&mut out, finding, width);
        }
    }
    out
}

/// The name of a disk, or its number.
pub(crate) fn name(disk: &DiskTrace) -> String {
    let number = || format!("{}", disk.disk.index + 1);
    disk.disk.target.clone().unwrap_or_else(number)
}

fn write_disk(out: &mut String, disk: &DiskTrace, width: Option<usize>) {
    for (number, step) in disk.path.steps.iter().enumerate() {
        out.push('\n');
        let (layer, name) = (step.layer.name(), line(&step.name));
        let heading = format!("{layer}: {name}{}", below(number, step));
        labelled(out, &format!("{:>3}. ", number + 1), &heading, width);
        for property in &step.properties {
            let Property { name, value, basis } = property;
            write_line(out, name, value, basis, width);
        }
        // Operations with the same result share a line.
        let same = |a: &RequestEffect, b: &RequestEffect| {
            a.outcome == b.outcome && a.statement == b.statement
        };
        for effects in step.effects.chunk_by(same) {
            write_effects(out, effects, width);
        }
        let own = disk.findings.iter().filter(|(at, _)| *at == number);
        own.for_each(|(_, finding)| write_finding(out, finding, width));
    }
    let loss = &disk.path.loss;
    out.push('\n');
    let _ = writeln!(out, "     if the host crashes or loses power");
    let _ = writeln!(out, "     flushed data         {}", loss.flushed.name());
    let _ = writeln!(out, "     unflushed data       {}", loss.unflushed.name());
    for Statement { text, basis } in &loss.statements {
        let text = format!("{} [{}]", line(text), line(&words(basis)));
        labelled(out, "     - ", &text, width);
    }
}

fn write_effects(out: &mut String, effects: &[RequestEffect], width: Option<usize>) {
    let Some(RequestEffect {
        outcome, statement, ..
    }) = effects.first()
    else {
        return;
    };
    let names: Vec<&str> = effects.iter().map(|it| it.operation.name()).collect();
    let names = match names.len() {
        4 => "every request".to_owned(),
        _ => names.join(", "),
    };
    let text = match &statement.basis {
        StatementBasis::Missing { .. } if *outcome == RequestOutcome::Unknown => {
            outcome.name().to_owned()
        }
        _ => format!("{}: {}", outcome.name(), statement.text),
    };
    write_line(out, &names, &text, &statement.basis, width);
}

/// The steps below, where they are not just the next one.
fn below(number: usize, step: &TraceStep) -> String {
    match step.below.as_slice() {
        [] => String::new(),
        [next] if *next == number + 1 => String::new(),
        several => {
            let numbers: Vec<String> = several.iter().map(|next| (next + 1).to_string()).collect();
            format!(" (below: {})", numbers.join(", "))
        }
    }
}

fn write_line(
    out: &mut String,
    label: &str,
    text: &str,
    basis: &StatementBasis,
    width: Option<usize>,
) {
    let text = format!("{} [{}]", line(text), line(&words(basis)));
    labelled(out, &format!("     {label:<20} "), &text, width);
}

fn write_finding(out: &mut String, finding: &Diagnostic, width: Option<usize>) {
    let (severity, rule) = (finding.severity.as_str(), finding.rule.name);
    let text = format!("{severity}[{rule}]: {}", line(&finding.title));
    labelled(out, "     ! ", &text, width);
}

/// A basis in words.
pub(crate) fn words(basis: &StatementBasis) -> String {
    match basis {
        StatementBasis::Configuration { setting } => setting.clone(),
        StatementBasis::Fact { fact } => format!("fact: {fact}"),
        StatementBasis::Source { source } => source.clone(),
        StatementBasis::Step { step } => format!("step {}", step + 1),
        StatementBasis::Missing { what, why, command } if command.is_empty() => {
            format!("unknown: {what}: {why}")
        }
        StatementBasis::Missing { what, why, command } => {
            let command: Vec<String> = command.iter().map(|word| shell_word(word)).collect();
            format!(
                "unknown: {what}: {why}; collect it with `{}`",
                command.join(" ")
            )
        }
    }
}
