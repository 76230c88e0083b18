//! `vmdisk apply`: makes the storage of a spec, and defines its guest.

mod change;
mod comparison;
mod copies;
mod devices;
mod discards;
mod failure;
mod guest;
pub(crate) mod json;
mod place;
mod present;
mod program;
mod reclaim;
mod run;
mod state;
mod text;

use std::collections::BTreeSet;

use clap::ValueEnum as _;
use vmdisk::model::Domain;
use vmdisk::plan::{
    ChangeKind, ChangePlan, Condition, Plan, PlannedChange, ScriptDefinition, ScriptWork, Step,
    StepKind, StorageCopy, change_script,
};
use vmdisk::report::changes::{ListedChange, ListedDifference};
use vmdisk::{Document, Host, LintOptions, facts_needed, lint, write};
use vmdisk_collect::{Request, collect};

use crate::args::{ApplyArgs, ApplyFormat, ChangeArg, GenerateForm};
use crate::ask::{ask, is_somebody_there};
use crate::color::Colors;
use crate::exit::Exit;
use crate::generate;
use crate::io::Io;
use crate::sanitize;
use crate::stop::Stop;
use change::Definition;
use comparison::{Compared, Comparison};
use failure::Failure;
use json::{Envelope, Guest};
use present::{present, states_of};
use run::Run;
use state::State;

/// Runs the command. Changes of what is there need a consent: an option, or a yes on a terminal after they were shown.
pub(crate) fn run(mut args: ApplyArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let (exit, offered) = once(&args, io, colors)?;
    let is_text = args.format == ApplyFormat::Text && !args.dry_run;
    let is_offer = is_text && args.change.is_empty() && !offered.is_empty();
    if !is_offer || !is_somebody_there() {
        return Ok(exit);
    }
    let answers = [("yes", true), ("no", false)];
    if ask("make these changes? [y]es, [n]o: ", &answers, io)? != Some(true) {
        return Ok(exit);
    }
    // Whatever happened meanwhile is seen: everything is compared again.
    args.change = offered;
    Ok(once(&args, io, colors)?.0)
}

/// Runs the command with the consent of its options, and returns the kinds of changes that a wider one would allow.
fn once(args: &ApplyArgs, io: &mut Io<'_>, colors: Colors) -> Result<(Exit, Vec<ChangeArg>), Stop> {
    let form = match args.define {
        true => GenerateForm::LibvirtXml,
        false => GenerateForm::Script,
    };
    let refuse = |stop: &Stop, io: &mut Io<'_>| {
        crate::complain(stop, io, colors.stderr);
        Ok((Exit::Findings, Vec::new()))
    };
    let mut made = match generate::make(&args.plan, form, io, colors)? {
        Ok(made) => made,
        // A finding, or a request that cannot be met.
        Err(stop) => return refuse(&stop, io),
    };
    let kept = match reclaim::prepare(&mut made, args) {
        Ok(kept) => kept,
        Err(stop) => return refuse(&stop, io),
    };
    let (spec, plan) = (made.spec(), &made.plan);
    let mut report = Envelope::of(plan);
    report.reasons.extend(kept);
    if !args.plan.host.live {
        report
            .reasons
            .extend(written_below(plan, &args.plan.ignore));
    }
    let name = plan.domain.name.as_deref().unwrap_or_default();
    let states = states_of(plan);
    let guest = args.define.then(|| Comparison::of(name, &made.text));
    let document = guest.as_ref().and_then(Comparison::existing);
    let have = present(&made, &states, document, args.is_reclaiming());
    let changes = match made.changes(&have) {
        Ok(changes) => changes,
        Err(stop) => return refuse(&stop, io),
    };
    let is_asked = |kind: ChangeKind| args.change.iter().any(|it| it.kind() == kind);
    say_states(&states, !args.change.is_empty(), &mut report);
    let of_kind = changes.changes.iter().filter(|it| is_asked(it.kind));
    let asked: Vec<&PlannedChange> = of_kind.collect();
    let existing = document.map(Document::domain);
    say_changes(&changes, &asked, (plan, existing), &mut report);
    let compared = match &guest {
        Some(guest) => guest.compare(spec, plan, (&changes, &asked), args.change.is_empty()),
        None => Compared::default(),
    };
    if compared.state == Some("planned") {
        io.say(&guest::lacks(spec, name));
    }
    report.guest = compared.state.map(|state| Guest {
        name: name.to_owned(),
        state,
    });
    report.reasons.extend(compared.reasons);
    let staying = compared.staying.iter();
    report.unchanged = staying.map(|it| ListedDifference::of(it)).collect();
    if let Some(Definition { before, after, .. }) = &compared.definition {
        let warnings = match made.added_findings(before, after) {
            Ok(warnings) => warnings,
            Err(stop) => return refuse(&stop, io),
        };
        for warning in warnings {
            io.say(&format!("{}\n", warning.render(colors.stderr)));
        }
    }
    let is_complete = compared.staying.is_empty() && asked.len() == changes.changes.len();
    let work = Work {
        todo: missing_steps(plan, &states, (&changes, &asked)),
        new_guest: (compared.state == Some("planned")).then_some(made.text.as_str()),
        asked,
        steps: &plan.steps,
        definition: compared.definition,
    };
    report.reasons.extend(work.obstacles());
    let offered = offered(&changes, &args.change);
    let allowing = allowing(&offered);
    let exit = conclude(&work, args, (is_complete, allowing), &mut report, io);
    let script = || {
        let is_there = have.is_running || document.is_some();
        change_script(plan, &work.script(is_there.then_some(have.is_running)))
    };
    text::finish(args.format, &report, script, io)?;
    Ok((exit, offered))
}

/// Refuses, or does what there is to do.
fn conclude(
    work: &Work<'_>,
    args: &ApplyArgs,
    (is_complete, allowing): (bool, Option<String>),
    report: &mut Envelope,
    io: &mut Io<'_>,
) -> Exit {
    if args.change.is_empty() {
        report.reasons.extend(allowing.clone());
    }
    if !report.reasons.is_empty() {
        report.result = Some("refused");
        return Exit::Findings;
    }
    if !work.is_empty() {
        if args.dry_run {
            return Exit::clean_if(is_complete);
        }
        let exit = apply(work, args.trust_directory, report, io);
        if exit != Exit::Clean || is_complete {
            return exit;
        }
    }
    report.result = Some(match is_complete {
        true => "nothing-to-do",
        false => "incomplete",
    });
    report.reasons.extend(allowing);
    Exit::clean_if(is_complete)
}

/// The further kinds of changes that can be made.
fn offered(changes: &ChangePlan, asked: &[ChangeArg]) -> Vec<ChangeArg> {
    let possible = |kind: ChangeKind| {
        let mut changes = changes.changes.iter();
        changes.any(|it| it.refusal.is_none() && it.kind == kind)
    };
    let all = ChangeArg::value_variants().iter().copied();
    let all = all.filter(|it| !asked.contains(it));
    all.filter(|it| possible(it.kind())).collect()
}

/// The option that allows these kinds.
fn allowing(kinds: &[ChangeArg]) -> Option<String> {
    let mut kinds: Vec<&str> = kinds.iter().map(|it| it.kind().word()).collect();
    kinds.sort_unstable();
    let kinds = kinds.join(",");
    let said = || format!("`--change {kinds}` allows the changes that are listed");
    (!kinds.is_empty()).then(said)
}

/// The steps of what is missing. The storage of a disk is made with its disk, and filled and compared before it gets its name;
/// storage that is there already is only compared.
fn missing_steps<'a>(
    plan: &'a Plan,
    states: &[State],
    (changes, asked): (&ChangePlan, &[&'a PlannedChange]),
) -> Vec<(usize, &'a Step)> {
    let is_left = |step: &Step| {
        let disk = plan.domain.disks.get(step.disk);
        let mut left = changes.changes.iter().filter(|it| {
            matches!(it.kind, ChangeKind::Add | ChangeKind::Move) && !asked.contains(it)
        });
        disk.is_some_and(|disk| left.any(|it| it.disk == disk.name()))
    };
    let copies = asked.iter().filter_map(|it| it.copy.as_ref());
    let mut todo: Vec<(usize, &Step)> = Vec::new();
    for (nth, (step, state)) in plan.steps.iter().zip(states).enumerate() {
        let is_missing = *state == State::Missing;
        if is_missing && !is_left(step) {
            todo.push((nth, step));
        }
        for copy in copies.clone().filter(|it| it.step == nth) {
            todo.extend(is_missing.then_some((nth, &copy.copy)));
            todo.push((nth, &copy.comparison));
        }
    }
    todo
}

/// Notes the states of steps, and those that are no reason to go on.
fn say_states(states: &[State], may_change: bool, report: &mut Envelope) {
    for (nth, state) in states.iter().enumerate() {
        let made = report.steps[nth].makes.clone();
        let differs = |what: &str| {
            format!("{made} exists and differs from the plan, and nothing is overwritten: {what}")
        };
        let (word, reason) = match state {
            State::Missing => ("planned", None),
            State::Done => ("already-done", None),
            State::Sized(_, what) => ("differs", (!may_change).then(|| differs(what))),
            State::Differs(what) => ("differs", Some(differs(what))),
            State::Unknown(why) => (
                "unknown",
                Some(format!(
                    "{made} exists, and whether it is as planned is not known: {why}"
                )),
            ),
        };
        report.steps[nth].state = word;
        report.reasons.extend(reason);
    }
    report.reasons.dedup();
}

/// Notes the changes, and what keeps those that are asked for from being made.
fn say_changes(
    all: &ChangePlan,
    asked: &[&PlannedChange],
    (plan, guest): (&Plan, Option<&Domain>),
    report: &mut Envelope,
) {
    let nothing = Domain::default();
    for (nth, change) in all.changes.iter().enumerate() {
        let mut said = ListedChange::of(nth, change);
        let is_asked = asked.contains(&change);
        if is_asked && change.refusal.is_none() {
            said.state = "planned";
        }
        if is_asked {
            if let Some(copy) = change.live_copy()
                && report.steps[copy.step].state != "planned"
            {
                report.reasons.push(format!(
                    "{} exists, and nothing is overwritten: remove it, or shut the guest off, so that both are compared",
                    copy.path
                ));
            }
            let obstacles = change::obstacles(change, plan, guest.unwrap_or(&nothing));
            report.reasons.extend(obstacles);
        }
        if let Some(why) = &change.refusal {
            report.reasons.extend(is_asked.then(|| why.clone()));
        }
        report.changes.push(said);
    }
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

/// What a run does.
struct Work<'a> {
    /// The missing steps, with their numbers.
    todo: Vec<(usize, &'a Step)>,
    /// The guest, if there is none.
    new_guest: Option<&'a str>,
    asked: Vec<&'a PlannedChange>,
    /// All steps of the plan.
    steps: &'a [Step],
    definition: Option<Definition<'a>>,
}

impl Work<'_> {
    /// What keeps its commands from being run.
    fn obstacles(&self) -> Vec<String> {
        let commands = self.asked.iter().filter_map(|it| it.command.as_ref());
        let commands = commands.map(|it| (it.argv.as_slice(), it.room.as_slice()));
        let live = self.asked.iter().filter_map(|it| it.live.as_ref());
        let live =
            live.filter_map(|it| Some((it.argv.as_slice(), it.copy.as_ref()?.room.as_slice())));
        let commands = commands.chain(live);
        let steps = self.todo.iter();
        let conditions = |step: &'_ Step| match step.kind {
            // It makes nothing.
            StepKind::Compare => Vec::new(),
            _ => step.conditions.clone(),
        };
        let steps = steps.map(|(_, step)| (step.argv.as_slice(), conditions(step)));
        let steps: Vec<(&[String], Vec<Condition>)> = steps.collect();
        let steps = steps
            .iter()
            .map(|(argv, conditions)| (*argv, conditions.as_slice()));
        state::obstacles(steps.chain(commands))
    }

    /// What a script does in its place.
    fn script(&self, is_running: Option<bool>) -> ScriptWork<'_> {
        let changed = self.definition.as_ref().map(|it| ScriptDefinition {
            before: Some(&it.before),
            after: &it.after,
        });
        let new = self.new_guest.map(|after| ScriptDefinition {
            before: None,
            after,
        });
        ScriptWork {
            steps: self.todo.iter().map(|(_, step)| *step).collect(),
            changes: self.asked.clone(),
            definition: changed.or(new),
            is_running,
        }
    }

    fn is_empty(&self) -> bool {
        self.todo.is_empty() && self.new_guest.is_none() && self.asked.is_empty()
    }
}

/// Makes what is missing, and then the changes: each is as before or as after if the run ends.
fn apply(work: &Work<'_>, is_trusted: bool, report: &mut Envelope, io: &mut Io<'_>) -> Exit {
    let mut run = Run::new(is_trusted);
    let mut failure = make(&work.todo, &mut run, report, io).err();
    if failure.is_none() {
        failure = change_all(work, &run, report, io).err();
    }
    if let (None, Some(xml), Some(guest)) = (&failure, work.new_guest, &mut report.guest) {
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
    let (removed, left) = match failure {
        Failure::Unsettled(_) => Default::default(),
        Failure::Refused(_) | Failure::Failed(_) => run.undo(),
    };
    for step in &mut report.steps {
        if removed.contains(&step.makes) && step.state == "done" {
            step.state = "undone";
        }
    }
    let (result, exit, why) = match failure {
        Failure::Refused(why) => ("refused", Exit::Findings, why),
        Failure::Failed(why) | Failure::Unsettled(why) => ("failed", Exit::CouldNot, why),
    };
    report.result = Some(result);
    report.reasons.push(why);
    report.reasons.extend(left);
    exit
}

/// Runs the missing steps.
fn make<'s>(
    todo: &[(usize, &'s Step)],
    run: &mut Run<'s>,
    report: &mut Envelope,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let is_root = rustix::process::geteuid().is_root();
    for (at, (nth, step)) in todo.iter().enumerate() {
        let is_last = todo.get(at + 1).is_none_or(|(_, next)| !next.completes());
        let of = &mut report.steps[*nth];
        let as_root = if is_root { " as root" } else { "" };
        let (made, what) = (sanitize::line(&of.makes), sanitize::line(&step.why));
        let verb = match step.kind {
            StepKind::Compare => "compares",
            _ => "creates",
        };
        io.say(&format!("{verb} {made}{as_root}: {what}\n"));
        let done = run.step(step, is_last, io);
        of.state = if done.is_ok() { "done" } else { "failed" };
        done?;
    }
    Ok(())
}

/// Makes the changes that are asked for: storage first, and then the definition at once.
fn change_all<'s>(
    work: &Work<'s>,
    run: &Run<'s>,
    report: &mut Envelope,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let mut planned = report.changes.iter_mut().filter(|it| it.state == "planned");
    let (mut of_definition, mut copies) = (Vec::new(), Vec::new());
    let name = report.guest.as_ref().map_or("", |it| &it.name);
    let mut is_first = work.definition.is_none();
    for (change, said) in work.asked.iter().zip(&mut planned) {
        if change.kind == ChangeKind::Reclaim {
            io.say(&format!("{} {}\n", said.kind, sanitize::line(&said.what)));
            let done = reclaim::run(change, work.steps, name, run);
            said.state = if done.is_ok() { "done" } else { "failed" };
            done.map_err(|failure| failure.after(!is_first))?;
            is_first = false;
            continue;
        }
        if change.live_copy().is_some() {
            copies.push((change, said));
            continue;
        }
        if change.command.is_none() {
            of_definition.push((change, said));
            continue;
        }
        io.say(&format!("{} {}\n", said.kind, sanitize::line(&said.what)));
        let done = change::run_command(change, work.steps, run, io);
        said.state = if done.is_ok() { "done" } else { "failed" };
        done?;
    }
    if let Some(definition) = &work.definition {
        change_definition(work, definition, of_definition, &mut report.guest, run)?;
    }
    let name = report.guest.as_ref().map_or("", |it| &it.name);
    for (change, said) in copies {
        io.say(&format!("{} {}\n", said.kind, sanitize::line(&said.what)));
        let done = change::copy_live(change, work.steps, name, run, io);
        said.state = if done.is_ok() { "done" } else { "failed" };
        done.map_err(|failure| failure.after(!is_first))?;
        is_first = false;
    }
    Ok(())
}

/// Defines the guest with all its changes, which it gets at once if it runs.
fn change_definition(
    work: &Work<'_>,
    definition: &Definition<'_>,
    changes: Vec<(&&PlannedChange, &mut ListedChange)>,
    guest: &mut Option<Guest>,
    run: &Run<'_>,
) -> Result<(), Failure> {
    run.refuse_stopped()?;
    let copied = work.asked.iter().filter_map(|it| it.copy.as_ref());
    let copied: Vec<&StorageCopy> = copied.collect();
    for copy in &copied {
        place::keep_name(&work.steps[copy.step].makes());
    }
    let name = guest.as_ref().map_or("", |it| &it.name);
    let done = change::define(name, definition, &copied);
    let state = if done.is_ok() { "done" } else { "failed" };
    for (change, said) in changes {
        said.state = state;
        if done.is_ok()
            && let Some(why) = change::make_live(change, name)
        {
            said.afterwards = Some(format!("after its next start, the guest has it: {why}"));
        }
    }
    if let Some(guest) = guest {
        guest.state = state;
    }
    done
}
