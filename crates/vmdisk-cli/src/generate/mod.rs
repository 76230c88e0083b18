//! `vmdisk generate`.

pub(crate) mod attach;
mod check;
pub(crate) mod explain;
pub(crate) mod into;
pub(crate) mod spec;
pub(crate) mod virt_install;
pub(crate) mod write;

use std::path::Path;

use vmdisk::facts::FactsNeeded;
use vmdisk::plan::{
    ChangePlan, Plan, PresentState, SpaceShortage, Spec, plan, plan_changes, shortages,
};
use vmdisk::{Facts, Target, facts_needed};

use crate::args::{ExplainFormat, GenerateArgs, GenerateForm, PlanArgs, QemuFormat};
use crate::color::Colors;
use crate::exit::Exit;
use crate::host::Host;
use crate::io::Io;
use crate::output::deliver_exact;
use crate::render::message::Message;
use crate::sanitize;
use crate::stop::Stop;
use check::Check;
use spec::GenerateInput;
use write::Written;

/// Runs the command.
pub(crate) fn run(args: &GenerateArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    if args.qemu_format != QemuFormat::Lines && args.to != GenerateForm::Qemu {
        return Err(Stop::new("--qemu-format is about a QEMU command line").help("add --to qemu"));
    }
    let (known, asked) = asked(&args.plan, io, colors)?;
    let target = known.target();
    let nothing = Facts::default();
    let facts = known.facts().unwrap_or(&nothing);
    let check = Check {
        args: &args.plan,
        to: args.to,
        qemu_format: args.qemu_format,
        facts: known.facts(),
        target: &target,
    };
    let (plan, written) = match &args.into {
        Some(path) => added(path, &asked, facts, &check)?,
        None => new(&asked, facts, &check)?,
    };
    deliver_exact(io, args.output.as_deref(), &written.text)?;
    let too_small = shortages(&plan, facts).into_iter().map(too_little_space);
    for warning in written.warnings.into_iter().chain(too_small) {
        io.say(&format!("{}\n", warning.render(colors.stderr)));
    }
    if args.to == GenerateForm::DiskXml {
        io.say(&attach::requirements(&plan.domain)?);
    }
    match args.explain {
        None => {}
        Some(ExplainFormat::Text) => io.say(&explain::choices(&plan)),
        Some(ExplainFormat::Json) => io.say(&vmdisk::report::explain::to_json(&plan)),
    }
    Ok(Exit::Clean)
}

/// What is planned for `vmdisk apply`.
pub(crate) struct Made<'a> {
    args: &'a PlanArgs,
    known: Host,
    asked: GenerateInput<'a>,
    pub(crate) plan: Plan,
    /// The plan in the form that was asked for.
    pub(crate) text: String,
}

impl Made<'_> {
    pub(crate) fn spec(&self) -> &Spec {
        &self.asked.spec
    }

    /// The changes that make what is there as planned.
    pub(crate) fn changes(&self, have: &PresentState<'_>) -> Result<ChangePlan, Stop> {
        let nothing = Facts::default();
        let facts = self.known.facts().unwrap_or(&nothing);
        let target = self.known.target();
        plan_changes(have, &self.asked.spec, &self.plan, facts, &target)
            .map_err(|errors| self.asked.stop(&errors))
    }

    /// The target of the plan.
    pub(crate) fn target(&self) -> Target {
        self.known.target()
    }

    /// Plans copies beside the images; returns false if there is none that a sparse copy replaces.
    pub(crate) fn plan_beside(&mut self) -> Result<bool, Stop> {
        if !self.asked.spec.beside(".new") {
            return Ok(false);
        }
        let nothing = Facts::default();
        let facts = self.known.facts().unwrap_or(&nothing);
        self.plan = plan(&self.asked.spec, facts, &self.known.target())
            .map_err(|errors| self.asked.stop(&errors))?;
        Ok(true)
    }

    /// Findings that a changed definition has and the definition before has not; an error refuses.
    pub(crate) fn added_findings(&self, before: &str, after: &str) -> Result<Vec<Message>, Stop> {
        let check = Check {
            args: self.args,
            to: GenerateForm::LibvirtXml,
            qemu_format: QemuFormat::Lines,
            facts: self.known.facts(),
            target: &self.known.target(),
        };
        check.added(before, after, &self.plan)
    }
}

/// The plan for `vmdisk apply`; the inner error is a finding, or a request that cannot be met.
pub(crate) fn make<'a>(
    args: &'a PlanArgs,
    to: GenerateForm,
    io: &mut Io<'_>,
    colors: Colors,
) -> Result<Result<Made<'a>, Stop>, Stop> {
    let (known, asked) = asked(args, io, colors)?;
    let nothing = Facts::default();
    let check = Check {
        args,
        to,
        qemu_format: QemuFormat::Lines,
        facts: known.facts(),
        target: &known.target(),
    };
    let made = new(&asked, known.facts().unwrap_or(&nothing), &check);
    Ok(made.map(|(plan, written)| {
        for warning in written.warnings {
            io.say(&format!("{}\n", warning.render(colors.stderr)));
        }
        Made {
            args,
            known,
            asked,
            plan,
            text: written.text,
        }
    }))
}

/// The host and the spec, with the facts that its plan needs if they are collected.
fn asked<'a>(
    args: &'a PlanArgs,
    io: &mut Io<'_>,
    colors: Colors,
) -> Result<(Host, GenerateInput<'a>), Stop> {
    let mut known = Host::prepare(&args.host, None, io, colors)?;
    let asked = spec::of(args, io)?;
    if args.host.live {
        let wanted = wanted_facts(&asked.spec, &known.target());
        known.collect(&wanted);
    }
    Ok((known, asked))
}

/// Hosts of one class have different free space, so this does not refuse; the script asks the host itself.
fn too_little_space(shortage: SpaceShortage) -> Message {
    let SpaceShortage {
        directory,
        needed,
        free,
    } = shortage;
    let directory = sanitize::line(&directory);
    Message::warning(format!(
            "the new files in {directory} need {} at once, but only {} were free when the facts were collected",
            needed.rounded(),
            free.rounded()
        )).help("use `preallocation=off`, or free some space first".to_owned())
}

/// Disks for a domain that exists, in its text.
fn added(
    path: &Path,
    asked: &GenerateInput<'_>,
    facts: &Facts,
    check: &Check<'_>,
) -> Result<(Plan, Written), Stop> {
    let is_script = matches!(check.to, GenerateForm::Script | GenerateForm::Steps);
    if !is_script && check.to != GenerateForm::LibvirtXml {
        return Err(Stop::new("--into returns the whole domain as libvirt XML")
            .help("use --to libvirt-xml, or --to script for the storage of the disks"));
    }
    let existing = into::Existing::read(path)?;
    let plan = existing.plan(asked, facts, check)?;
    let mut written = existing.add(&plan, check)?;
    if is_script {
        written.text = write::creation(&plan, check.target, check.to)?;
    }
    Ok((plan, written))
}

/// A new guest.
fn new(
    asked: &GenerateInput<'_>,
    facts: &Facts,
    check: &Check<'_>,
) -> Result<(Plan, Written), Stop> {
    let target = check.target;
    let plan = plan(&asked.spec, facts, target).map_err(|errors| asked.stop(&errors))?;
    let written = write::guest(&plan, facts, target.clone(), check.to, check.qemu_format)?;
    let mut warnings = check.plan(&plan, asked, written.as_ref())?;
    let mut written = match written {
        Some(written) => written,
        None if check.to == GenerateForm::VirtInstall => virt_install::write(&asked.spec, &plan)?,
        None => Written {
            text: write::creation(&plan, target, check.to)?,
            warnings: Vec::new(),
        },
    };
    warnings.append(&mut written.warnings);
    written.warnings = warnings;
    Ok((plan, written))
}

/// The missing facts: host paths in a plan without facts of the host.
fn wanted_facts(spec: &Spec, target: &Target) -> FactsNeeded {
    let mut spec = spec.clone();
    let sources = spec.take_sources();
    // What cannot be planned at all is complained about when it is planned in earnest.
    let mut needed = plan(&spec, &Facts::default(), target).map_or_else(
        |_| FactsNeeded::default(),
        |plan| facts_needed(&plan.domain),
    );
    needed.paths.extend(sources);
    needed
}
