//! `vmdisk lint`.

pub(crate) mod checked;
pub(crate) mod classes;
pub(crate) mod config_files;
pub(crate) mod configuration_args;
mod diff;
pub(crate) mod gather;
pub(crate) mod inputs;
mod mode;
mod output;
pub(crate) mod read;
mod results;
mod run;
pub(crate) mod selection;
pub(crate) mod settings;
mod show_files;
mod show_settings;
mod sources;
pub(crate) mod storage;
mod trial;
mod walk;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::sync::OnceLock;

use vmdisk::{Facts, FixScope, LintOptions};

use crate::age;
use crate::args::{LintArgs, LintFormat};
use crate::color::Colors;
use crate::exit::Exit;
use crate::io::Io;
use crate::output::deliver;
use crate::stop::{Stop, plain};
use crate::wanted::Wanted;
use checked::{Checked, Report, Tally};
use classes::Classes;
use gather::gather;
use inputs::{Inputs, Origin};
use mode::Mode;
use output::{Outcome, Output};
use results::Results;
use run::Job;
use settings::Settings;
use sources::Sources;

/// Runs the command.
pub(crate) fn run(args: &LintArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let mode = mode(args)?;
    check_outputs(args)?;
    let mut inputs = inputs::find(
        &args.paths,
        args.stdin_filename.as_deref(),
        args.skip_foreign,
    );
    let plan = settings::plan(args, &mut inputs)?;
    if args.show_files {
        return show_files::run(&inputs, io, colors);
    }
    if args.configuration.show_settings {
        deliver(io, None, &show_settings::text(&plan, &inputs))?;
        return Ok(Exit::Clean);
    }
    let tester = args
        .try_qemu
        .as_deref()
        .map(trial::Tester::new)
        .transpose()?;
    let mut sources = Sources::load(&plan, args, io, colors)?;
    let mut read_before = read_stdin(&inputs, io)?;
    let has_stdin = !read_before.is_empty();
    if args.host.live {
        let wanted = wanted_facts(&inputs, &mut read_before);
        sources.collect(wanted);
    }
    // Standard output belongs to the mended text where that is asked for.
    let prints_fixed = matches!(mode, Mode::Fix(_)) && has_stdin;
    let output = Output::new(args, colors, sources.hosts.is_some(), prints_fixed);
    // Looked for once, and only if a disk is on a volume.
    let found = OnceLock::new();
    let storage = || found.get_or_init(|| storage::of(&inputs.files, &read_before));
    let (indexes, fleets) = (sources.indexes(), sources.fleets(&plan));
    let job = |settings: &Settings| Job {
        options: LintOptions {
            host: indexes[settings.source].as_ref(),
            fleet: fleets[settings.source].as_ref(),
            target: sources.list[settings.source].host.target(),
            policy: settings.policy,
            ignored: settings.ignored.clone(),
            selection: settings.selection.clone(),
            detail: output.detail(),
        },
        mode,
        tester: tester.as_ref(),
        read_before: &read_before,
        storage: &storage,
        output: &output,
        fail_on: settings.fail_on,
        hosts: &sources.list[settings.source].members,
    };
    let jobs: Vec<Job<'_>> = plan.settings.iter().map(job).collect();
    let done = run::all(&inputs.files, &jobs, &plan.of_input, threads(args));
    let mut results = gather(&inputs, done, mode, &output);
    results.all.extend(sources.failed());
    let classes = sources.hosts.as_ref().map(|hosts| {
        let groups = sources.list.iter().map(|source| source.members.as_slice());
        Classes::new(hosts, groups, &results.all)
    });
    let exit = exit(args, mode, &results);
    let host = sources.only_host();
    let outcome = Outcome {
        results: &results,
        classes: classes.as_ref(),
        host: host.as_deref(),
        exit,
    };
    output.deliver(args, mode, &outcome, io)?;
    say_unchecked(args, &results, io);
    Ok(exit.max(if_counted(
        args,
        judge_age(args, &sources.dated(), io, colors),
    )))
}

/// Statistics are a table or JSON, and every output has a file of its own.
fn check_outputs(args: &LintArgs) -> Result<(), Stop> {
    let is_possible = args.format.is_for_people() || args.format == LintFormat::Json;
    if args.statistics && !is_possible {
        return Err(
            Stop::new("--statistics has no such format").help("use --format full, concise or json")
        );
    }
    let mut files = args.report.iter().map(|(_, file)| file).chain(&args.output);
    let mut seen = BTreeSet::new();
    match files.find(|file| !seen.insert(*file)) {
        Some(file) => Err(Stop::new(format!(
            "{} is named for two outputs",
            file.display()
        ))),
        None => Ok(()),
    }
}

/// How the run ends, if findings count.
fn if_counted(args: &LintArgs, exit: Exit) -> Exit {
    match exit {
        Exit::Findings if args.exit_zero => Exit::Clean,
        Exit::Clean | Exit::Findings | Exit::CouldNot => exit,
    }
}

/// Reports old facts.
fn judge_age(args: &LintArgs, dated: &[(String, &Facts)], io: &mut Io<'_>, colors: Colors) -> Exit {
    let dated = dated.iter().map(|(path, facts)| (path.as_str(), *facts));
    let Some(max_age) = args.max_facts_age else {
        if args.format.is_for_people() && !args.quiet {
            io.say(&age::summary(dated));
        }
        return Exit::Clean;
    };
    let warnings = age::warnings(dated, max_age);
    for warning in &warnings {
        io.say(&warning.render(colors.stderr));
    }
    match warnings.as_slice() {
        [] => Exit::Clean,
        [..] => Exit::Findings,
    }
}

/// Says why `--fail-on-unchecked` fails the run.
fn say_unchecked(args: &LintArgs, results: &Results, io: &mut Io<'_>) {
    if !args.fail_on_unchecked {
        return;
    }
    let reports = results
        .all
        .iter()
        .filter_map(|one| one.outcome.as_ref().ok());
    let incomplete = reports.map(Report::tally).filter(Tally::is_incomplete);
    let rules: BTreeSet<&str> = incomplete.flat_map(|tally| tally.not_checked).collect();
    if !rules.is_empty() {
        let number = rules.len();
        let plural = if number == 1 { "" } else { "s" };
        io.say(&format!(
            "{number} rule{plural} not checked, which fails the run (--fail-on-unchecked); -v lists why\n"
        ));
    }
}

/// Reads standard input where it is among the inputs, by their numbers.
pub(crate) fn read_stdin(
    inputs: &Inputs,
    io: &mut Io<'_>,
) -> Result<BTreeMap<usize, Vec<u8>>, Stop> {
    let mut read_before = BTreeMap::new();
    for (number, input) in inputs.files.iter().enumerate() {
        if input.origin == Origin::Stdin {
            let bytes = read::limited(&mut *io.stdin).map_err(|error| {
                Stop::new(format!("could not read standard input: {}", plain(&error)))
            })?;
            read_before.insert(number, bytes);
        }
    }
    Ok(read_before)
}

fn mode(args: &LintArgs) -> Result<Mode, Stop> {
    let scope = if args.unsafe_fixes {
        FixScope::SafeAndUnsafe
    } else {
        FixScope::Safe
    };
    match (args.diff, args.fix, args.unsafe_fixes) {
        (true, ..) => Ok(Mode::Diff(scope)),
        (false, true, _) => Ok(Mode::Fix(scope)),
        (false, false, false) => Ok(Mode::Report),
        (false, false, true) => Err(Stop::new("--unsafe-fixes alone changes nothing")
            .help("add --diff to see what it would change, or --fix to change it")),
    }
}

fn threads(args: &LintArgs) -> usize {
    match args.jobs {
        Some(jobs) => usize::from(jobs),
        None => std::thread::available_parallelism().map_or(1, NonZero::get),
    }
}

/// What the documents name on the host. What was read for that is kept.
pub(crate) fn wanted_facts(inputs: &Inputs, read_before: &mut BTreeMap<usize, Vec<u8>>) -> Wanted {
    let mut wanted = Wanted::default();
    let mut on_volumes = Vec::new();
    for (number, input) in inputs.files.iter().enumerate() {
        let bytes = match read_before.entry(number) {
            Entry::Occupied(bytes) => bytes.into_mut(),
            // What cannot be read is complained about when it is checked.
            Entry::Vacant(slot) => match read::file(&input.file) {
                Ok(bytes) => slot.insert(bytes),
                Err(_) => continue,
            },
        };
        if let Ok(document) = vmdisk::read_bytes(bytes)
            && let Ok(joined) = config_files::joined(input, document)
        {
            let document = joined.document;
            if document.has_volumes() {
                on_volumes.push(document);
            } else {
                wanted.add(document.domain());
            }
        }
    }
    if !on_volumes.is_empty() {
        let storage = storage::of(&inputs.files, read_before);
        for mut document in on_volumes {
            document.locate_volumes(&storage);
            wanted.add(document.domain());
        }
    }
    wanted
}

fn exit(args: &LintArgs, mode: Mode, results: &Results) -> Exit {
    let found = |checked: &Checked| match (&checked.outcome, mode) {
        (Err(_), _) => Exit::CouldNot,
        (Ok(report), Mode::Report | Mode::Fix(_)) => {
            let tally = report.tally();
            let is_unchecked = args.fail_on_unchecked && tally.is_incomplete();
            if is_unchecked || tally.has_at_least(report.fail_on) {
                Exit::Findings
            } else {
                Exit::Clean
            }
        }
        (Ok(_), Mode::Diff(_)) => Exit::Clean,
    };
    let changes = if results.diffs.is_empty() {
        Exit::Clean
    } else {
        Exit::Findings
    };
    let worst = results.all.iter().map(found).max();
    if_counted(args, worst.unwrap_or_default().max(changes))
}
