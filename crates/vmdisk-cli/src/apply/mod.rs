//! `vmdisk apply`: makes the storage of a spec, and defines its guest.

mod devices;
mod failure;
mod guest;
pub(crate) mod json;
mod place;
mod program;
mod run;
mod state;

use std::collections::BTreeSet;

use vmdisk::plan::{Plan, Step};
use vmdisk::{Host, LintOptions, facts_needed, lint, write};
use vmdisk_collect::{Request, collect};

use crate::args::{ApplyArgs, GenerateForm, TextFormat};
use crate::color::Colors;
use crate::exit::Exit;
use crate::generate;
use crate::io::Io;
use crate::output::deliver;
use crate::sanitize;
use crate::stop::Stop;
use failure::Failure;
use json::{Envelope, Guest};
use run::Run;
use state::State;

/// Runs the command.
pub(crate) fn run(args: &ApplyArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let form = match args.define {
        true => GenerateForm::LibvirtXml,
        false => GenerateForm::Script,
    };
    let (spec, plan, xml) = match generate::make(&args.plan, form, io, colors)? {
        Ok(made) => made,
        // A finding, or a request that cannot be met.
        Err(stop) => {
            crate::complain(&stop, io, colors.stderr);
            return Ok(Exit::Findings);
        }
    };
    let mut report = Envelope::of(&plan);
    if !args.plan.host.live {
        report
            .reasons
            .extend(written_below(&plan, &args.plan.ignore));
    }
    let name = plan.domain.name.as_deref();
    let mut states: Vec<State> = Vec::new();
    for step in &plan.steps {
        let of_image = states.last().filter(|_| step.completes());
        states.push(of_image.cloned().unwrap_or_else(|| state::of(step, name)));
    }
    for (nth, state) in states.iter().enumerate() {
        report.steps[nth].state = match state {
            State::Missing => "planned",
            State::Done => "already-done",
            State::Differs(what) => {
                let made = &report.steps[nth].makes;
                report.reasons.push(format!(
                    "{made} exists and differs from the plan, and nothing is overwritten: {what}"
                ));
                "differs"
            }
            State::Unknown(why) => {
                let made = &report.steps[nth].makes;
                report.reasons.push(format!(
                    "{made} exists, and whether it is as planned is not known: {why}"
                ));
                "unknown"
            }
        };
    }
    report.reasons.dedup();
    let missing = plan.steps.iter().zip(&states).enumerate();
    let todo: Vec<(usize, &Step)> = missing
        .filter(|(_, (_, state))| **state == State::Missing)
        .map(|(nth, (step, _))| (nth, step))
        .collect();
    let steps: Vec<&Step> = todo.iter().map(|(_, step)| *step).collect();
    report.reasons.extend(state::obstacles(&steps));
    let mut is_defined = true;
    if args.define {
        let name = name.unwrap_or_default().to_owned();
        let (state, difference) = guest::state(&spec, &name, &xml);
        is_defined = state != "planned";
        if !is_defined {
            report.reasons.extend(devices::in_use(&plan.domain));
            io.say(&guest::lacks(&spec, &name));
        }
        report.reasons.extend(difference);
        report.guest = Some(Guest { name, state });
    }
    let exit = if !report.reasons.is_empty() {
        report.result = Some("refused");
        Exit::Findings
    } else if todo.is_empty() && is_defined {
        report.result = Some("nothing-to-do");
        Exit::Clean
    } else if args.dry_run {
        Exit::Clean
    } else {
        let xml = (!is_defined).then_some(xml.as_str());
        apply(&todo, xml, args.trust_directory, &mut report, io)
    };
    finish(args.format, &report, io)?;
    Ok(exit)
}

/// What the linter says of images below the planned ones that a QEMU writes now. With `--live` it has said so already.
fn written_below(plan: &Plan, ignored: &[String]) -> Vec<String> {
    let facts = collect(&Request::of(&facts_needed(&plan.domain), ""));
    let Some(document) = write::planned_xml(plan)
        .ok()
        .and_then(|xml| vmdisk::read(&xml).ok())
    else {
        return Vec::new();
    };
    let options = LintOptions::default()
        .host(Some(Host::new(facts)))
        .ignored(ignored.iter().cloned().collect::<BTreeSet<String>>());
    let found = lint(&document, &options).diagnostics;
    let found = found
        .into_iter()
        .filter(|found| found.rule.name == "backing-image-written");
    found
        .map(|found| {
            format!(
                "{} [{}]: {}",
                found.title,
                found.rule.name,
                found.notes.join("; ")
            )
        })
        .collect()
}

/// Runs the missing steps.
fn apply(
    todo: &[(usize, &Step)],
    xml: Option<&str>,
    is_trusted: bool,
    report: &mut Envelope,
    io: &mut Io<'_>,
) -> Exit {
    let is_root = rustix::process::geteuid().is_root();
    let mut run = Run::new(is_trusted);
    let mut failure = None;
    for (at, (nth, step)) in todo.iter().enumerate() {
        let is_last = todo.get(at + 1).is_none_or(|(_, next)| !next.completes());
        let of = &mut report.steps[*nth];
        let as_root = if is_root { " as root" } else { "" };
        let (made, what) = (sanitize::line(&of.makes), sanitize::line(&of.what));
        io.say(&format!("creates {made}{as_root}: {what}\n"));
        match run.step(step, is_last, io) {
            Ok(()) => of.state = "done",
            Err(why) => {
                of.state = "failed";
                failure = Some(why);
                break;
            }
        }
    }
    if let (None, Some(xml), Some(guest)) = (&failure, xml, &mut report.guest) {
        match guest::define(xml) {
            Ok(()) => guest.state = "done",
            Err(why) => {
                guest.state = "failed";
                failure = Some(Failure::Failed(why));
            }
        }
    }
    let Some(failure) = failure else {
        report.result = Some("done");
        return Exit::Clean;
    };
    let (removed, left) = run.undo();
    for step in &mut report.steps {
        if removed.contains(&step.makes) && step.state == "done" {
            step.state = "undone";
        }
    }
    let (result, exit, why) = match failure {
        Failure::Refused(why) => ("refused", Exit::Findings, why),
        Failure::Failed(why) => ("failed", Exit::CouldNot, why),
    };
    report.result = Some(result);
    report.reasons.push(why);
    report.reasons.extend(left);
    exit
}

fn finish(format: TextFormat, report: &Envelope, io: &mut Io<'_>) -> Result<(), Stop> {
    if format == TextFormat::Json {
        return deliver(io, None, &report.text());
    }
    let mut text = String::new();
    for step in &report.steps {
        let (made, what) = (sanitize::line(&step.makes), sanitize::line(&step.what));
        text += &format!("{}: {made}: {what}\n", step.state);
    }
    if let Some(guest) = &report.guest {
        text += &format!("{}: guest {}\n", guest.state, sanitize::line(&guest.name));
    }
    let result = report.result.unwrap_or("planned");
    for reason in &report.reasons {
        // The message of a program may have several lines.
        let reason = sanitize::lines(reason).replace('\n', "\n  ");
        io.say(&format!("{result}: {reason}\n"));
    }
    text += &format!("{result}\n");
    deliver(io, None, &text)
}
