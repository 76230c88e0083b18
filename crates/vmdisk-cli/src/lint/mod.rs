//! `vmdisk lint`.

pub(crate) mod checked;
pub(crate) mod classes;
pub(crate) mod config_files;
mod diff;
pub(crate) mod inputs;
pub(crate) mod read;
mod run;
pub(crate) mod storage;
mod trial;
mod walk;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::sync::OnceLock;

use vmdisk::{FailedFix, FixScope, Fleet, LintOptions, Severity};

use crate::args::{LintArgs, LintFormat};
use crate::color::Colors;
use crate::exit::Exit;
use crate::host::{Host, Wanted};
use crate::hosts::{self, Hosts};
use crate::io::Io;
use crate::output::deliver;
use crate::render::message::{Message, MessagePlace};
use crate::render::summary::{self, Summary};
use crate::render::{View, concise, github, human, json, sarif, uri};
use crate::stop::{Stop, plain};
use checked::Checked;
use classes::Classes;
use inputs::{Inputs, Origin};
use run::{Done, Job, Mode};

/// Runs the command.
pub(crate) fn run(args: &LintArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let mode = mode(args)?;
    let tester = args
        .try_qemu
        .as_deref()
        .map(trial::Tester::new)
        .transpose()?;
    let files = hosts::files(&args.host.facts)?;
    let hosts = match files.len() {
        0 | 1 => None,
        _ => Some(hosts::read(&files, io, colors)?),
    };
    let mut host = match hosts {
        Some(_) => Host::without_facts(&args.host, args.try_qemu.as_deref())?,
        None => Host::prepare(&args.host, args.try_qemu.as_deref(), io, colors)?,
    };
    let inputs = inputs::find(&args.paths, args.stdin_filename.as_deref());
    let mut read_before = BTreeMap::new();
    let mut has_stdin = false;
    for (number, input) in inputs.files.iter().enumerate() {
        if input.origin == Origin::Stdin {
            has_stdin = true;
            let bytes = read::limited(&mut *io.stdin).map_err(|error| {
                Stop::new(format!("could not read standard input: {}", plain(&error)))
            })?;
            read_before.insert(number, bytes);
        }
    }
    if args.host.live {
        host.collect(wanted_facts(&inputs, &mut read_before));
    }
    let index = host.index();
    let fleet = hosts.as_ref().map(|hosts| fleet(hosts, args));
    // Standard output belongs to the mended text where that is asked for.
    let prints_fixed = matches!(mode, Mode::Fix(_)) && has_stdin;
    let view = View {
        least_shown: if args.quiet {
            args.fail_on
        } else {
            Severity::Advice
        },
        show_allowed: args.show_allowed,
        verbose: args.verbose,
        colored: match (&args.output, prints_fixed) {
            (Some(_), _) => colors.file,
            (None, true) => colors.stderr,
            (None, false) => colors.stdout,
        },
        classes: None,
    };
    let format = args.format;
    // Which hosts make a class is known when all inputs are done.
    let renders_later = hosts.is_some();
    let render = |checked: &Checked| {
        if renders_later {
            String::new()
        } else {
            text_of(format, checked, &view)
        }
    };
    let quotes_later = match format {
        LintFormat::Json | LintFormat::Sarif => true,
        LintFormat::Full | LintFormat::Concise | LintFormat::Github => renders_later,
    };
    // Looked for once, and only if a disk is on a volume.
    let found = OnceLock::new();
    let storage = || found.get_or_init(|| storage::of(&inputs.files, &read_before));
    let job = Job {
        options: LintOptions {
            host: index.as_ref(),
            fleet: fleet.as_ref(),
            target: host.target(),
            policy: args.host.policy,
            ignored: args.ignore.iter().cloned().collect::<BTreeSet<String>>(),
        },
        mode,
        tester: tester.as_ref(),
        tells_places: quotes_later || args.verbose,
        quotes_later,
        read_before: &read_before,
        storage: &storage,
        render: &render,
    };
    let done = run::all(&inputs.files, &job, threads(args));
    let ran = Ran {
        inputs: &inputs,
        done,
        hosts,
    };
    finish(args, mode, ran, &view, io, colors)
}

/// What a run had to do, and what came of it.
struct Ran<'a> {
    inputs: &'a Inputs,
    done: Vec<Option<Done>>,
    /// The hosts, if there are several.
    hosts: Option<Hosts>,
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

/// The text of one input, in the formats that have one for each.
fn text_of(format: LintFormat, checked: &Checked, view: &View<'_>) -> String {
    match (format, &checked.outcome) {
        (LintFormat::Full, Ok(report)) => human::file(&checked.path, report, view),
        (LintFormat::Concise, Ok(report)) => concise::file(&checked.path, report, view),
        (LintFormat::Github, Ok(report)) => github::file(&checked.path, report, view),
        (LintFormat::Github, Err(message)) => github::failure(checked, message),
        (LintFormat::Full | LintFormat::Concise, Err(_))
        | (LintFormat::Json | LintFormat::Sarif, _) => String::new(),
    }
}

/// What the documents name on the host, for `--live`. What was read for that is kept.
fn wanted_facts(inputs: &Inputs, read_before: &mut BTreeMap<usize, Vec<u8>>) -> Wanted {
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

/// The warning about a fix that was undone.
fn undone(path: &str, failed: &FailedFix) -> Message {
    let FailedFix {
        rule,
        at: _, // The title names the disk.
        title,
        why,
    } = failed;
    let mut message = Message::warning(format!("the fix of {} was undone: {why}", rule.name));
    message.notes.push(format!("it was to fix: {title}"));
    message.at(MessagePlace {
        path: path.to_owned(),
        quoted: None,
    })
}

/// Writes what came of it, and settles the exit status.
fn finish(
    args: &LintArgs,
    mode: Mode,
    ran: Ran<'_>,
    view: &View<'_>,
    io: &mut Io<'_>,
    colors: Colors,
) -> Result<Exit, Stop> {
    let Ran {
        inputs,
        done,
        mut hosts,
    } = ran;
    let mut holds_ours = vec![false; inputs.directories.len()];
    for (input, done) in inputs.files.iter().zip(&done) {
        if let (Origin::Found(number), Some(_)) = (&input.origin, done) {
            holds_ours[*number] = true;
        }
    }
    let mut all = Vec::with_capacity(done.len());
    let mut rendered = String::new();
    let mut diffs = String::new();
    let mut fixed = None;
    let named = named_by_others(mode, &done);
    for (input, one) in inputs.files.iter().zip(done) {
        let Some(one) = one else { continue };
        if matches!(input.origin, Origin::Found(_)) && named.contains(&one.checked.path) {
            continue;
        }
        rendered.push_str(&one.rendered);
        diffs.push_str(&one.diff);
        fixed = fixed.or(one.fixed);
        all.push(one.checked);
        all.extend(one.named);
    }
    for (directory, holds_ours) in inputs.directories.iter().zip(holds_ours) {
        for checked in complaints(directory, holds_ours) {
            rendered.push_str(&text_of(args.format, &checked, &View::plain()));
            all.push(checked);
        }
    }
    if let Some(hosts) = &mut hosts {
        all.append(&mut hosts.failed);
    }
    let classes = hosts.as_ref().map(|hosts| Classes::new(hosts, &all));
    if classes.is_some() {
        let view = View {
            classes: classes.as_ref(),
            ..*view
        };
        let texts = all
            .iter()
            .map(|checked| text_of(args.format, checked, &view));
        rendered = texts.collect();
    }
    let exit = exit(args, mode, &all, !diffs.is_empty());
    let summary = Summary::of(&all);
    let data = match (mode, args.format) {
        (Mode::Diff(_), _) => diffs,
        (Mode::Report | Mode::Fix(_), LintFormat::Json) => {
            json::v1::report(&all, &summary, classes.as_ref())
        }
        (Mode::Report | Mode::Fix(_), LintFormat::Sarif) => {
            sarif::log(&all, exit, classes.as_ref())
        }
        (
            Mode::Report | Mode::Fix(_),
            LintFormat::Full | LintFormat::Concise | LintFormat::Github,
        ) => rendered,
    };
    match fixed {
        Some(text) => {
            deliver(io, None, &text)?;
            match &args.output {
                Some(path) => deliver(io, Some(path), &data)?,
                None => io.say(&data),
            }
        }
        None => deliver(io, args.output.as_deref(), &data)?,
    }
    for checked in &all {
        match &checked.outcome {
            Err(message) => io.say(&match args.format {
                LintFormat::Concise => concise::failure(&checked.path, message),
                LintFormat::Full | LintFormat::Json | LintFormat::Sarif | LintFormat::Github => {
                    format!("{}\n", message.render(colors.stderr))
                }
            }),
            Ok(report) => {
                for failed in &report.failed_fixes {
                    let message = undone(&checked.path, failed);
                    io.say(&format!("{}\n", message.render(colors.stderr)));
                }
            }
        }
    }
    if args.verbose {
        io.say(&summary::not_checked(&all, classes.as_ref()));
    }
    let is_for_people = match args.format {
        LintFormat::Full | LintFormat::Concise => true,
        LintFormat::Json | LintFormat::Sarif | LintFormat::Github => false,
    };
    if is_for_people && !args.quiet {
        io.say(&match mode {
            Mode::Report | Mode::Fix(_) => summary.text(),
            Mode::Diff(_) => summary.would_fix(),
        });
        if let Some(classes) = &classes {
            io.say(&classes.summary());
        }
        if let (Mode::Report, LintFormat::Full, Some(further)) =
            (mode, args.format, summary.further_reading())
        {
            io.say(further);
        }
    }
    Ok(exit)
}

/// Files that were checked with the command line that names them, and need not be told of a second time; where they
/// are mended, each is on its own.
fn named_by_others(mode: Mode, done: &[Option<Done>]) -> BTreeSet<String> {
    let named = done.iter().flatten().flat_map(|one| &one.named);
    match mode {
        Mode::Report => named
            .filter(|checked| checked.outcome.is_ok())
            .map(|checked| checked.path.clone())
            .collect(),
        Mode::Fix(_) | Mode::Diff(_) => BTreeSet::new(),
    }
}

/// What is to be said about a directory itself.
fn complaints(directory: &inputs::Directory, holds_ours: bool) -> Vec<Checked> {
    let complain = |path: &std::path::Path, message: String, help: Option<&str>| Checked {
        path: path.display().to_string(),
        uri: uri::of_path(path),
        outcome: Err(Box::new(Message {
            help: help.map(str::to_owned),
            ..Message::error(message).at(MessagePlace {
                path: path.display().to_string(),
                quoted: None,
            })
        })),
    };
    let mut all: Vec<Checked> = directory
        .trouble
        .iter()
        .map(|(path, why)| complain(path, format!("could not be read: {why}"), None))
        .collect();
    if !holds_ours && all.is_empty() {
        all.push(complain(
            &directory.path,
            "no .xml file below this directory holds a domain or a disk".to_owned(),
            Some("name a file to have it read whatever it is called and whatever .gitignore says"),
        ));
    }
    all
}

fn exit(args: &LintArgs, mode: Mode, all: &[Checked], would_change: bool) -> Exit {
    let found = |checked: &Checked| match (&checked.outcome, mode) {
        (Err(_), _) => Exit::CouldNot,
        (Ok(report), Mode::Report | Mode::Fix(_)) => {
            if report.at_least(args.fail_on).next().is_some() {
                Exit::Findings
            } else {
                Exit::Clean
            }
        }
        (Ok(_), Mode::Diff(_)) => Exit::Clean,
    };
    let changes = if would_change {
        Exit::Findings
    } else {
        Exit::Clean
    };
    all.iter().map(found).max().unwrap_or_default().max(changes)
}
