//! `vmdisk apply`: makes the storage of a spec, and defines its guest.

pub(crate) mod json;
mod run;
mod state;

use std::io::Write as _;
use std::process::Stdio;

use vmdisk::model::{Disk, Domain};
use vmdisk::plan::Step;

use crate::args::{ApplyArgs, GenerateForm, TextFormat};
use crate::color::Colors;
use crate::exit::Exit;
use crate::generate;
use crate::io::Io;
use crate::output::deliver;
use crate::sanitize;
use crate::stop::Stop;
use json::{Envelope, Guest};
use run::{Failure, Run};
use state::State;

/// Runs the command.
pub(crate) fn run(args: &ApplyArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let form = match args.define {
        true => GenerateForm::LibvirtXml,
        false => GenerateForm::Script,
    };
    let (plan, xml) = match generate::make(&args.plan, form, io, colors)? {
        Ok(made) => made,
        // A finding, or a request that cannot be met.
        Err(stop) => {
            crate::complain(&stop, io, colors.stderr);
            return Ok(Exit::Findings);
        }
    };
    let mut report = Envelope::of(&plan);
    let mut states: Vec<State> = Vec::new();
    for step in &plan.steps {
        let of_image = states.last().filter(|_| step.completes());
        states.push(of_image.cloned().unwrap_or_else(|| state::of(step)));
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
                report.reasons.dedup();
                "differs"
            }
        };
    }
    let missing = plan.steps.iter().zip(&states).enumerate();
    let todo: Vec<(usize, &Step)> = missing
        .filter(|(_, (_, state))| **state == State::Missing)
        .map(|(nth, (step, _))| (nth, step))
        .collect();
    let steps: Vec<&Step> = todo.iter().map(|(_, step)| *step).collect();
    report.reasons.extend(state::obstacles(&steps));
    let mut is_defined = true;
    if args.define {
        let (state, difference) = guest_state(&plan.domain);
        is_defined = state != "planned";
        report.reasons.extend(difference);
        let name = plan.domain.name.clone().unwrap_or_default();
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
        apply(&todo, xml, &mut report, io)
    };
    finish(args.format, &report, io)?;
    Ok(exit)
}

/// Runs the missing steps.
fn apply(
    todo: &[(usize, &Step)],
    xml: Option<&str>,
    report: &mut Envelope,
    io: &mut Io<'_>,
) -> Exit {
    let is_root = rustix::process::geteuid().is_root();
    let mut run = Run::new();
    let mut failure = None;
    for (nth, step) in todo {
        let of = &mut report.steps[*nth];
        let as_root = if is_root { " as root" } else { "" };
        let (made, what) = (sanitize::line(&of.makes), sanitize::line(&of.what));
        io.say(&format!("creates {made}{as_root}: {what}\n"));
        match run.step(step, io) {
            Ok(()) => of.state = "done",
            Err(why) => {
                of.state = "failed";
                failure = Some(why);
                break;
            }
        }
    }
    if let (None, Some(xml), Some(guest)) = (&failure, xml, &mut report.guest) {
        match define(xml) {
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
    let of_left = left
        .iter()
        .map(|made| format!("{made} could not be removed again"));
    report.reasons.extend(of_left);
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

/// The state of a guest of libvirt, and how its disks differ from the planned ones.
fn guest_state(planned: &Domain) -> (&'static str, Option<String>) {
    let name = planned.name.as_deref().unwrap_or_default();
    let Some(xml) = state::output(&["virsh", "dumpxml", "--inactive", "--", name]) else {
        return ("planned", None);
    };
    let disks = |domain: &Domain| -> Vec<String> {
        let of_disk = |disk: &Disk| {
            let (frontend, backend) = (&disk.frontend, &disk.backend);
            let images = backend.image().into_iter().flat_map(|image| image.chain());
            let images = images.map(|image| {
                let format = image.format.map_or("unset format", |it| it.as_str());
                format!("{format} {}", image.host_path().unwrap_or("elsewhere"))
            });
            let settings = [
                ("cache", backend.cache.map(|it| it.as_str())),
                ("io", backend.aio.map(|it| it.as_str())),
                ("discard", backend.discard.map(|it| it.as_str())),
            ];
            let settings = settings
                .into_iter()
                .filter_map(|(name, word)| Some(format!("{name} {}", word?)));
            let device = frontend.effective_device().as_str().to_owned();
            let all: Vec<String> = [device].into_iter().chain(images).chain(settings).collect();
            let bus = frontend.effective_bus();
            format!("{} on {bus}: {}", disk.name(), all.join(", "))
        };
        domain.disks.iter().map(of_disk).collect()
    };
    let existing = vmdisk::read(&xml).map(|document| disks(document.domain()));
    let existing = existing.unwrap_or_default();
    let planned = disks(planned);
    let only = |of: &[String], other: &[String]| of.iter().find(|it| !other.contains(it)).cloned();
    match only(&planned, &existing).or_else(|| only(&existing, &planned)) {
        None => ("already-done", None),
        Some(disk) => {
            let message = format!("the guest {name} exists, and a disk differs: {disk}");
            ("differs", Some(message))
        }
    }
}

fn define(xml: &str) -> Result<(), String> {
    let argv = ["virsh", "define", "/dev/stdin"].map(str::to_owned);
    let mut command = state::command(&argv);
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let of_virsh = |error: std::io::Error| format!("virsh: {}", crate::stop::plain(&error));
    let mut child = command.spawn().map_err(of_virsh)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(xml.as_bytes()).map_err(of_virsh)?;
    }
    let output = child.wait_with_output().map_err(of_virsh)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let failed = || format!("virsh define fails: {}", said.trim());
    output.status.success().then_some(()).ok_or_else(failed)
}
