//! `vmdisk lint`.

mod baselines;
mod ending;
mod guests;
mod host;
mod mode;
mod output;
mod parts;
mod results;
mod run;
mod show_files;
mod show_settings;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::sync::atomic::AtomicUsize;

use vmdisk::report::SaidOnce;
use vmdisk::{Facts, FixScope};

use crate::age::{self, OldFacts};
use crate::args::{LintArgs, LintFormat};
use crate::atomic;
use crate::baseline::task::BaselineTask;
use crate::baseline::{known, report};
use crate::color::Colors;
use crate::config::settings::{self, Plan, Settings};
use crate::config::{self, NAME};
use crate::exit::Exit;
use crate::input::absolute::absolute;
use crate::input::companions::Companions;
use crate::input::complaints::complaints;
use crate::input::hypervisor::virsh::Virsh;
use crate::input::hypervisor::whose::LibvirtHost;
use crate::input::hypervisor::{self, Added};
use crate::input::inputs::{self, Input, Inputs, Origin};
use crate::input::{bounded, documents, used};
use crate::io::Io;
use crate::output::{Stream, deliver};
use crate::render::message::Message;
use crate::report::caveats::Caveats;
use crate::report::input::InputReport;
use crate::report::run::RunReport;
use crate::report::tally::Tally;
use crate::sanitize::line;
use crate::sources::Sources;
use crate::stop::Stop;
use baselines::BaselineRun;
use ending::Ending;
use guests::Guests;
use mode::Mode;
use run::{Job, Run, WORTH_THREADS};

/// Runs the command, which checks the current directory if it names nothing.
pub(crate) fn command(mut args: LintArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    if let Some(directory) = &args.write_config {
        return config::init::run(directory, io);
    }
    let names_nothing = args.paths.is_empty() && !args.guests.has_any();
    args.names_nothing = names_nothing;
    if names_nothing {
        args.paths.push(".".into());
    }
    let ended = match args.task() {
        BaselineTask::Use => run(&args, io, colors),
        task => baseline(args, task, io, colors),
    };
    if names_nothing && bounded::has_unread_pipe() {
        io.say("standard input was not read; `vmdisk lint -` reads it\n");
    }
    ended
}

/// Checks the files for a baseline, which has no guests that are not files.
fn baseline(
    mut args: LintArgs,
    task: BaselineTask,
    io: &mut Io<'_>,
    colors: Colors,
) -> Result<Exit, Stop> {
    let BaselineRun {
        inputs,
        plan,
        written,
        is_configured,
    } = baselines::plan(&mut args, task)?;
    let added = Added::default();
    let exit = check(&args, Mode::Report, &plan, &inputs, added, io, colors)?;
    if let Some(path) = written {
        let path = path.display().to_string();
        let path = line(&path);
        // A configuration that names it needs no option.
        let next = if is_configured {
            String::new()
        } else {
            format!("; `--baseline {path}`, or `baseline` in vmdisk.toml, uses it")
        };
        io.say(&format!("wrote {path}{next}\n"));
    }
    Ok(exit)
}

/// Checks what the arguments name.
pub(crate) fn run(args: &LintArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let mode = mode(args)?;
    if mode.changes_text() && args.guests.has_any() {
        return Err(
            Stop::new("guests that are not files cannot be changed").help(format!(
                "`{}` shows the changes of a guest of libvirt, asks, and defines it",
                args.guests.edit_command(args.host.live)
            )),
        );
    }
    check_outputs(args)?;
    let mut inputs = inputs::find(
        &args.paths,
        args.stdin_filename.as_deref(),
        args.skip_foreign,
    );
    let given = args.given.iter().cloned();
    inputs
        .files
        .extend(given.map(|(name, bytes)| Input::new(name, Origin::Given(bytes))));
    inputs.set(&args.values);
    let mut added = hypervisor::add(&args.guests, &mut inputs, io)?;
    added.virsh = added.virsh.or_else(|| args.virsh.clone());
    let mut plan = settings::plan(args, &mut inputs)?;
    if let Some(host) = host::instead_of(args, mode, &inputs) {
        inputs = host;
        plan = settings::plan(args, &mut inputs)?;
    }
    if args.show_files {
        return show_files::run(&inputs, io, colors);
    }
    if args.show_settings {
        deliver(io, None, &show_settings::text(&plan, &inputs))?;
        return Ok(Exit::Clean);
    }
    if args.verbose {
        for path in plan.configurations() {
            io.say(&format!(
                "configuration: {}\n",
                line(&path.display().to_string())
            ));
        }
    }
    check(args, mode, &plan, &inputs, added, io, colors)
}

/// Checks all inputs, and writes the results.
fn check(
    args: &LintArgs,
    mode: Mode,
    plan: &Plan,
    inputs: &Inputs,
    added: Added,
    io: &mut Io<'_>,
    colors: Colors,
) -> Result<Exit, Stop> {
    let Added { mut failed, virsh } = added;
    let try_qemu = args.try_qemu.as_deref();
    let tester = try_qemu.map(trial::Tester::new).transpose()?;
    let (mut sources, read_before) = load(plan, args, inputs, virsh.as_ref(), io, colors)?;
    failed.extend(sources.failed());
    let fleets = sources.fleets(plan);
    let baselines = known::read(plan)?;
    let guests = Guests::new(plan, &inputs.files, &sources, &fleets);
    let job = |settings: &Settings| Job {
        options: sources
            .options(settings, &fleets)
            .detail(output::detail(args))
            .compares_guests(guests.are_compared(settings.source)),
        fail_on: settings.fail_on,
        baseline: known::of(settings, &baselines),
        hosts: &sources.list[settings.source].members,
    };
    let jobs: Vec<Job<'_>> = plan.settings.iter().map(job).collect();
    // Standard output receives the fixed text of what is no file.
    let prints_fixed = mode.changes_text() && inputs.has_text();
    let mut renderers = output::renderers(args, mode, colors, prints_fixed);
    // The classes of several hosts are known at the end.
    let is_printed = args.output.is_none()
        && !prints_fixed
        && sources.hosts.is_none()
        && renderers[0].is_stream();
    let run = Run {
        companions: &Companions::new(&inputs.files, &read_before),
        jobs: &jobs,
        of_input: &plan.of_input,
        mode,
        reason: args.add_allowances.as_deref().unwrap_or_default(),
        tester: tester.as_ref(),
        has_outputs: args.output.is_some() || !args.report.is_empty(),
        needs: output::needs(args, sources.hosts.is_some()),
        says_once: args.task() == BaselineTask::Use,
        stream: is_printed.then_some(&renderers[0]),
        threads: threads(args, inputs.files.len()),
        unread: AtomicUsize::new(0),
    };
    let stream = is_printed.then(|| Stream::new(io));
    let (mut tally, mut ending) = (Tally::default(), Ending::default());
    let mut said = SaidOnce::default();
    let mut count = |report: &InputReport| {
        tally.add(report);
        ending.add(args, mode, report);
    };
    let (reports, fixed) = gather(&run, inputs, guests, failed, stream, &mut said, &mut count)?;
    tally.summary.unread = run.unread.into_inner();
    let classes = sources.classes(&tally.host_lists);
    for renderer in &mut renderers {
        renderer.view.classes = classes.as_ref();
    }
    let old_facts = old_facts(args, &sources);
    let failing_rules = ending.failing_rules.len();
    let host = sources.only_host();
    let exit = ending.exit(args, &old_facts);
    let report = RunReport {
        inputs: &reports,
        tally: &tally,
        caveats: &Caveats {
            not_checked: tally.summary.not_checked(),
            unchecked_fails: failing_rules > 0 && !args.exit_zero,
            old_facts: &old_facts,
            old_facts_fail: !args.exit_zero,
        },
        host: host.as_deref(),
        facts: &sources.described(classes.as_ref()),
        said: &said,
        exit,
    };
    output::write(report, &renderers, is_printed, fixed.as_deref(), args, io)?;
    output::say(report, mode, inputs, classes.as_ref(), args, io, colors);
    report::finish(args, &baselines, io, colors)?;
    say_unconfigured(args, plan, io, colors);
    say_unchecked(args, failing_rules, io);
    say_age(args, &old_facts, io, colors);
    Ok(exit)
}

/// Checks all inputs, then compares their guests, and adds what could not be read. Returns the reports, which `count` has
/// seen, and the input that is no file after fixing.
fn gather(
    run: &Run<'_>,
    inputs: &Inputs,
    mut guests: Guests<'_>,
    failed: Vec<InputReport>,
    mut stream: Option<Stream<'_>>,
    said: &mut SaidOnce,
    count: &mut dyn FnMut(&InputReport),
) -> Result<(Vec<InputReport>, Option<String>), Stop> {
    let mut reports: Vec<InputReport> = Vec::new();
    let mut first_of = vec![0; inputs.files.len()];
    let mut fixed = None;
    let mut print = |text: &str| match &mut stream {
        Some(stream) => stream.write(|out| out.write_all(text.as_bytes())),
        None => Ok(()),
    };
    let has_message = |report: &InputReport| match &report.outcome {
        Ok(report) => !report.failed_fixes.is_empty(),
        Err(_) => true,
    };
    let mut keep = |reports: &mut Vec<InputReport>, further: Vec<InputReport>| {
        for report in further {
            // What is found beside other guests is added to a report that is kept.
            if !run.needs.findings {
                count(&report);
            }
            if run.needs.findings || has_message(&report) {
                reports.push(report);
            }
        }
    };
    let mut holds_ours = vec![false; inputs.searches.len()];
    run.each(&mut |number, mut result| {
        if let Origin::Found(search) = inputs.files[number].origin {
            holds_ours[search] = true;
        }
        guests.add(number, &mut result);
        let host = guests.source(number);
        let of_input = result.reports.iter_mut();
        if run.says_once && of_input.fold(false, |any, it| it.drop_said(host, said) | any) {
            result = run.printed(result);
        }
        first_of[number] = reports.len();
        keep(&mut reports, result.reports);
        fixed = fixed.take().or(result.fixed);
        print(&result.text)
    })?;
    for (number, others) in guests.conflicts() {
        let result = run.beside(number, &others).unwrap_or_default();
        print(&result.text)?;
        if !run.needs.findings {
            keep(&mut reports, result.reports);
            continue;
        }
        for further in result.reports {
            let mut of_input = reports[first_of[number]..].iter_mut();
            let separate = match of_input.find(|report| report.file == further.file) {
                Some(report) => report.add(further).err().map(|it| *it),
                None => Some(further),
            };
            reports.extend(separate);
        }
    }
    let searches = inputs.searches.iter().zip(holds_ours);
    let complaints = searches.flat_map(|(search, holds_ours)| complaints(search, holds_ours));
    for report in complaints.chain(failed) {
        let result = run.printed(report.into());
        print(&result.text)?;
        keep(&mut reports, result.reports);
    }
    let checked = reports.iter_mut();
    said.name_guests(checked.filter_map(|it| Some((&*it.path, it.outcome.as_mut().ok()?))));
    if run.needs.findings {
        reports.iter().for_each(count);
    }
    stream.map_or(Ok(()), Stream::end)?;
    Ok((reports, fixed))
}

/// The hosts with their facts, and the bytes of inputs that are not files.
fn load(
    plan: &Plan,
    args: &LintArgs,
    inputs: &Inputs,
    virsh: Option<&Virsh>,
    io: &mut Io<'_>,
    colors: Colors,
) -> Result<(Sources, BTreeMap<usize, Vec<u8>>), Stop> {
    let mut sources = Sources::load(plan, args, io, colors)?;
    refuse_to_overwrite(args, inputs, &sources)?;
    if let Some(virsh) = virsh {
        refuse_facts_of_others(plan, args, &sources, virsh)?;
    }
    if args.max_facts_age.is_some() && sources.files.is_empty() {
        return Err(Stop::new("--max-facts-age needs facts")
            .help("name them with --facts FILE, or as `facts` in vmdisk.toml"));
    }
    let mut read_before = documents::read_stdin(inputs, io)?;
    if args.host.live {
        let wanted = documents::wanted_facts(inputs, &mut read_before);
        sources.collect(&wanted);
    }
    Ok((sources, read_before))
}

/// The guests of a libvirt are judged by the facts of the host that it runs them on, unless `--host` names another one.
fn refuse_facts_of_others(
    plan: &Plan,
    args: &LintArgs,
    sources: &Sources,
    virsh: &Virsh,
) -> Result<(), Stop> {
    let with_facts = plan.sources.iter().zip(&sources.list);
    let with_facts = with_facts.filter(|(source, _)| source.host.is_none());
    let facts: Vec<&Facts> = with_facts.filter_map(|(_, it)| it.host.facts()).collect();
    if facts.is_empty() && !args.host.live {
        return Ok(());
    }
    let host = LibvirtHost::ask(virsh)?;
    if args.host.live {
        host.refuse_live()?;
    }
    facts
        .into_iter()
        .try_for_each(|facts| host.refuse_facts(facts))
}

/// Statistics have no places, and every output has a file of its own.
fn check_outputs(args: &LintArgs) -> Result<(), Stop> {
    use LintFormat::{Html, Json, Prometheus};
    let is_possible =
        args.format.is_for_people() || matches!(args.format, Json | Html | Prometheus);
    if args.statistics && !is_possible {
        return Err(Stop::new("--statistics does not support this format")
            .help("use --format full, concise, json, html or prometheus"));
    }
    let mut files = args.report.iter().map(|(_, file)| file).chain(&args.output);
    let mut seen = BTreeSet::new();
    match files.find(|file| !seen.insert(absolute(file))) {
        Some(file) => Err(Stop::new(format!(
            "{} is named for two outputs",
            file.display()
        ))),
        None => Ok(()),
    }
}

/// A report does not replace what it is about: that is said before the work.
fn refuse_to_overwrite(args: &LintArgs, inputs: &Inputs, sources: &Sources) -> Result<(), Stop> {
    let mut outputs = args
        .report
        .iter()
        .map(|(_, file)| file)
        .chain(&args.output)
        .filter(|file| file.exists())
        .peekable();
    if outputs.peek().is_none() {
        return Ok(());
    }
    let read = inputs.files.iter().filter_map(|input| match input.origin {
        Origin::Named | Origin::Found(_) => Some(&input.file),
        Origin::Given(_) | Origin::Stdin | Origin::Host => None,
    });
    read.chain(&sources.files).for_each(|file| used::file(file));
    outputs
        .try_for_each(|file| atomic::refuse(file).map_err(|error| Stop::file("write", file, error)))
}

/// The facts that are older than `--max-facts-age`, or than a month.
fn old_facts(args: &LintArgs, sources: &Sources) -> Vec<OldFacts> {
    let dated = sources.dated();
    let dated = dated.iter().map(|(path, facts)| (path.as_str(), *facts));
    age::old(dated, args.max_facts_age)
}

/// Reports old facts.
fn say_age(args: &LintArgs, old: &[OldFacts], io: &mut Io<'_>, colors: Colors) {
    for warning in age::warnings(old) {
        io.say(&warning.render(colors.stderr));
    }
    if !args.quiet {
        io.say(&age::summary(old));
    }
}

/// Warns if the configuration of the current directory does not apply to an input below it.
fn say_unconfigured(args: &LintArgs, plan: &Plan, io: &mut Io<'_>, colors: Colors) {
    let Some(input) = plan.unconfigured.as_ref().filter(|_| !args.quiet) else {
        return;
    };
    let title = format!(
        "{NAME} does not apply to {}: below its directory, it applies only within a repository",
        input.display()
    );
    let warning = Message::warning(title).help(format!("use --config {NAME}, or --no-config"));
    io.say(&warning.render(colors.stderr));
}

/// Says why `--fail-on-unchecked` fails the run, if it does: the number of rules.
fn say_unchecked(args: &LintArgs, number: usize, io: &mut Io<'_>) {
    if number == 0 {
        return;
    }
    let plural = if number == 1 { "" } else { "s" };
    let outcome = match args.exit_zero {
        true => "which would fail the run (--fail-on-unchecked) without --exit-zero",
        false => "which fails the run (--fail-on-unchecked)",
    };
    io.say(&format!(
        "{number} rule{plural} not checked, {outcome}; -v lists why\n"
    ));
}

fn mode(args: &LintArgs) -> Result<Mode, Stop> {
    let scope = if args.unsafe_fixes {
        FixScope::SafeAndUnsafe
    } else {
        FixScope::Safe
    };
    if args.add_allowances.is_some() {
        return Ok(Mode::Allow);
    }
    match (args.diff, args.fix, args.unsafe_fixes) {
        (true, ..) => Ok(Mode::Diff(scope)),
        (false, true, _) => Ok(Mode::Fix(scope)),
        (false, false, false) => Ok(Mode::Report),
        (false, false, true) => Err(Stop::new("--unsafe-fixes alone changes nothing")
            .help("add --diff to see what it would change, or --fix to change it")),
    }
}

fn threads(args: &LintArgs, inputs: usize) -> usize {
    match args.jobs {
        Some(jobs) => usize::from(jobs),
        // The answer takes many system calls.
        None if inputs < WORTH_THREADS => 1,
        None => std::thread::available_parallelism().map_or(1, NonZero::get),
    }
}
