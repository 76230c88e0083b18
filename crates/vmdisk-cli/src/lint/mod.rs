//! `vmdisk lint`.

pub(crate) mod checked;
pub(crate) mod classes;
pub(crate) mod config_files;
mod diff;
pub(crate) mod gather;
pub(crate) mod inputs;
mod mode;
mod output;
pub(crate) mod read;
mod results;
mod run;
pub(crate) mod selection;
mod show_files;
pub(crate) mod storage;
mod trial;
mod walk;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::OnceLock;

use vmdisk::{Facts, FixScope, Fleet, LintOptions};

use crate::age;
use crate::args::{LintArgs, LintFormat};
use crate::color::Colors;
use crate::exit::Exit;
use crate::host::Host;
use crate::hosts::{self, Hosts};
use crate::io::Io;
use crate::stop::{Stop, plain};
use crate::wanted::Wanted;
use checked::{Checked, Report, Tally};
use classes::Classes;
use gather::gather;
use inputs::{Inputs, Origin};
use mode::Mode;
use output::Output;
use results::Results;
use run::Job;

/// Runs the command.
pub(crate) fn run(args: &LintArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let mode = mode(args)?;
    check_statistics(args)?;
    let inputs = inputs::find(
        &args.paths,
        args.stdin_filename.as_deref(),
        args.skip_foreign,
    );
    if args.show_files {
        return show_files::run(&inputs, io, colors);
    }
    let tester = args
        .try_qemu
        .as_deref()
        .map(trial::Tester::new)
        .transpose()?;
    let files = hosts::files(&args.host.facts)?;
    let mut hosts = match files.len() {
        0 | 1 => None,
        _ => Some(hosts::read(&files, io, colors)?),
    };
    let mut host = match &hosts {
        Some(_) => Host::without_facts(&args.host, args.try_qemu.as_deref())?,
        None => Host::prepare(&args.host, args.try_qemu.as_deref(), io, colors)?,
    };
    let mut read_before = read_stdin(&inputs, io)?;
    let has_stdin = !read_before.is_empty();
    if args.host.live {
        host.collect(wanted_facts(&inputs, &mut read_before));
    }
    let index = host.index();
    let fleet = hosts.as_ref().map(|hosts| fleet(hosts, args));
    // Standard output belongs to the mended text where that is asked for.
    let prints_fixed = matches!(mode, Mode::Fix(_)) && has_stdin;
    let output = Output::new(args, colors, hosts.is_some(), prints_fixed);
    // Looked for once, and only if a disk is on a volume.
    let found = OnceLock::new();
    let storage = || found.get_or_init(|| storage::of(&inputs.files, &read_before));
    let job = Job {
        options: LintOptions {
            host: index.as_ref(),
            fleet: fleet.as_ref(),
            target: host.target(),
            policy: args.host.policy,
            ignored: args.selection.ignored(),
            selection: args.selection.selection(),
            detail: output.detail(),
        },
        mode,
        tester: tester.as_ref(),
        read_before: &read_before,
        storage: &storage,
        output: &output,
    };
    let done = run::all(&inputs.files, &job, threads(args));
    let mut results = gather(&inputs, done, mode, &output);
    if let Some(hosts) = &mut hosts {
        results.all.append(&mut hosts.failed);
    }
    let classes = hosts
        .as_ref()
        .map(|hosts| Classes::new(hosts, &results.all));
    let exit = exit(args, mode, &results);
    output.deliver(args, mode, &results, classes.as_ref(), exit, io)?;
    say_unchecked(args, &results, io);
    let dated = dated(&files, &host, hosts.as_ref());
    Ok(exit.max(if_counted(args, judge_age(args, &dated, io, colors))))
}

/// Statistics are a table or JSON.
fn check_statistics(args: &LintArgs) -> Result<(), Stop> {
    match args.format {
        LintFormat::Sarif | LintFormat::Github if args.statistics => {
            Err(Stop::new("--statistics has no such format")
                .help("use --format full, concise or json"))
        }
        _ => Ok(()),
    }
}

/// How the run ends, if findings count.
fn if_counted(args: &LintArgs, exit: Exit) -> Exit {
    match exit {
        Exit::Findings if args.exit_zero => Exit::Clean,
        Exit::Clean | Exit::Findings | Exit::CouldNot => exit,
    }
}

/// The facts that were read from files, with the paths of these.
fn dated<'a>(
    files: &[PathBuf],
    host: &'a Host,
    hosts: Option<&'a Hosts>,
) -> Vec<(String, &'a Facts)> {
    match (hosts, files, host.facts()) {
        (Some(hosts), ..) => {
            let known = hosts.known.iter();
            known.map(|host| (host.path.clone(), &host.facts)).collect()
        }
        (None, [path], Some(facts)) => vec![(path.display().to_string(), facts)],
        (None, ..) => Vec::new(),
    }
}

/// Reports old facts.
fn judge_age(args: &LintArgs, dated: &[(String, &Facts)], io: &mut Io<'_>, colors: Colors) -> Exit {
    let dated = dated.iter().map(|(path, facts)| (path.as_str(), *facts));
    let Some(max_age) = args.max_facts_age else {
        let is_for_people = matches!(args.format, LintFormat::Full | LintFormat::Concise);
        if is_for_people && !args.quiet {
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

/// The hosts, ready to be asked.
fn fleet<'a>(hosts: &'a Hosts, args: &LintArgs) -> Fleet<'a> {
    let asked = args.host.target.clone().unwrap_or_default();
    let named = hosts.known.iter();
    Fleet::new(named.map(|host| (host.name.as_str(), &host.facts)), &asked)
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
            if is_unchecked || tally.has_at_least(args.fail_on) {
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
