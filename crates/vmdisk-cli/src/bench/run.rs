//! `vmdisk bench run`, `resume` and `verify`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use vmdisk::Facts;
use vmdisk_bench_runner::engines::{self, Workspace};
use vmdisk_bench_runner::report::{bytes, duration};
use vmdisk_bench_runner::{
    Cancel, CellView, Ended, Engine, EngineKind, Entry, Error, Estimate, Header, HostMonitor,
    Journal, MIN_ROUNDS, MachineMonitor, Plan, Repetition, Runner, SCHEMA_VERSION, SLOWEST,
    Settings, taken,
};

use super::args::{HowArgs, LINT, ReadArgs, ResumeArgs, RunArgs, VerifyArgs, WhereArgs};
use super::budgets::within_budgets;
use super::progress::{Progress, range};
use super::report::{in_form, write_all};
use super::request::{QUICK_SECONDS, Request, Subject};
use super::result_file::{FACTS, RESULT, of_journal, text_of};
use super::stop::stop;
use super::{args, baselines, check, environment, limits, recovery, to_facts};
use crate::atomic;
use crate::clock;
use crate::color::Colors;
use crate::exit::Exit;
use crate::input::bounded::{self, MAX_BYTES};
use crate::io::Io;
use crate::output::deliver;
use crate::render::message::Message;
use crate::sanitize;
use crate::stop::{Stop, plain};

/// Measures a preset, a plan or the linter's proposals for a guest.
pub(super) fn run(args: &RunArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let subject = match (&args.plan, args.preset.as_deref(), &args.domain) {
        (Some(plan), _, _) => Subject::Plan(plan.display().to_string(), text_of(plan)?),
        (None, Some(LINT), Some(domain)) => {
            Subject::Guest(domain.display().to_string(), text_of(domain)?)
        }
        (None, Some(preset), _) => Subject::Preset(preset.to_owned()),
        (None, None, _) => return Err(Stop::new("no preset or plan was given")),
    };
    begin(subject, &args.place, &args.how, io, colors)
}

/// Measures reads of files and devices that exist.
pub(super) fn read_existing(
    args: &ReadArgs,
    io: &mut Io<'_>,
    colors: Colors,
) -> Result<Exit, Stop> {
    let mut paths = Vec::new();
    for path in &args.paths {
        let path =
            std::path::absolute(path).map_err(|error| Stop::file("find", path, plain(&error)))?;
        let path = path.to_str().map(str::to_owned);
        paths.push(path.ok_or_else(|| Stop::new("a path is not valid UTF-8"))?);
    }
    let usual = [
        "1m-sequential-read-qd8",
        "4k-random-read-qd1",
        "4k-random-read-qd32",
    ];
    let direct: &[bool] = if args.buffered {
        &[true, false]
    } else {
        &[true]
    };
    // JSON is YAML, and its strings may hold any path.
    let plan = serde_json::json!({
        "version": 1,
        "name": "read",
        "question": "How fast are reads of what is there?",
        "size": "1G",
        "phases": ["steady"],
        "workloads": usual,
        "fixed": { "engine": "host-fio", "backend": "existing" },
        "matrix": { "path": paths, "direct": direct },
    });
    let subject = Subject::Plan("bench read".to_owned(), plan.to_string());
    begin(subject, &WhereArgs::default(), &args.how, io, colors)
}

/// Measures a rule's claim about speed.
pub(super) fn verify(args: &VerifyArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let subject = Subject::Rule(args.rule.clone());
    begin(subject, &args.place, &args.how, io, colors)
}

/// Shortens the samples of a plan until it takes half of the time: the machine may be busy.
fn shortened(
    request: &mut Request,
    plan: &mut Plan,
    how: &HowArgs,
    estimate: impl Fn(&Plan) -> Estimate,
) -> Estimate {
    let mut found = estimate(plan);
    for seconds in QUICK_SECONDS {
        if found.least.as_secs_f64() <= how.time_budget / 2.0 {
            break;
        }
        request.quick_seconds = Some(seconds);
        plan.shorten(seconds);
        found = estimate(plan);
    }
    found
}

fn begin(
    subject: Subject,
    place: &WhereArgs,
    how: &HowArgs,
    io: &mut Io<'_>,
    colors: Colors,
) -> Result<Exit, Stop> {
    let mut request = Request::new(subject, place, how)?;
    baselines::check(&how.baselines, how.baseline.as_deref())?;
    // The plan must not see a host that a killed run changed; a dry run changes nothing.
    if !how.dry_run {
        recovery::revert_changes(io);
    }
    let (facts, mut plan) = plan_here(&request)?;
    if !how.dry_run {
        recovery::remove_images(&request.directories_of(&plan), io);
    }
    let places = request.places_of(&plan);
    let workspace = request.workspace()?;
    let (mut engines, versions) = engines_of(&mut plan, &workspace);
    let settings = settings(how);
    let estimate = match how.quick {
        true => shortened(&mut request, &mut plan, how, |plan| {
            vmdisk_bench_runner::estimate(plan, &settings, &engines)
        }),
        false => vmdisk_bench_runner::estimate(&plan, &settings, &engines),
    };
    let accepted = acceptable(&plan, &estimate, how).and_then(|()| match &request.to_facts {
        Some(file) => to_facts::check(file, &facts, &plan, &request.directory),
        None => Ok(()),
    });
    if how.dry_run {
        let text = dry_run(&plan, &settings, &estimate);
        deliver(io, None, &sanitize::lines(&text))?;
        // The refusal of the run, with its exit code.
        return accepted.map(|()| Exit::Clean);
    }
    if !plan.left_out.is_empty() {
        io.say(&sanitize::lines(&format!(
            "left out:\n{}",
            check::left_out(&plan.left_out)
        )));
    }
    accepted?;
    warn_of_few_rounds(how, io, colors);
    warn_of_slow_deletion(&estimate, &facts, io, colors);
    let words = in_words(&plan, &settings, &estimate);
    io.say(&format!("{}\n", sanitize::lines(&words)));

    let directory = output_directory(how, &plan);
    let record = plan.record();
    let facts_text = facts.to_json();
    let header = Header {
        schema_version: SCHEMA_VERSION.to_owned(),
        vmdisk: env!("CARGO_PKG_VERSION").to_owned(),
        plan_hash: record.hash(),
        plan: record,
        settings,
        began_at: clock::now(),
        environment: environment::words(&facts, &places)
            .into_iter()
            .chain(limits::limits(&facts, &plan, &places))
            .collect(),
        facts_hash: Some(vmdisk_bench_runner::hash_of(facts_text.as_bytes())),
        versions,
        request: serde_json::to_value(&request).unwrap_or_default(),
    };
    // Before anything is written; the run checks again.
    let mut disturbances = limits_of(&facts, &plan, &places);
    disturbances.extend(HostMonitor::new().noise(true).disturbances());
    refuse_noise(disturbances, how.noisy)?;
    let cancel = handle_signals()?;
    workspace.check(&plan.configurations).map_err(stop)?;
    let mut journal = Journal::create(&directory, &header).map_err(stop)?;
    let facts_file = directory.join(FACTS);
    atomic::create(&facts_file, facts_text.as_bytes())
        .map_err(|error| Stop::file("write", &facts_file, error))?;
    measure(
        &plan,
        &header.settings,
        &mut engines,
        &mut journal,
        &[],
        &cancel,
        &directory,
        io,
    )?;
    if let Some(file) = &request.to_facts {
        to_facts::write(&directory, file, io)?;
    }
    over_time(&directory, how, io)
}

/// Keeps a run under its name, and compares it with an earlier one.
fn over_time(directory: &Path, how: &HowArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let result = of_journal(directory)?;
    if let Some(name) = &how.save_baseline {
        baselines::save(&result, &how.baselines, name, io)?;
    }
    match &how.baseline {
        Some(name) => baselines::compare(&result, &how.baselines, name, io),
        None => Ok(Exit::Clean),
    }
}

/// Refuses disturbances unless the user accepts them.
fn refuse_noise(disturbances: Vec<String>, is_accepted: bool) -> Result<(), Stop> {
    match disturbances.is_empty() || is_accepted {
        true => Ok(()),
        false => Err(stop(Error::NotQuiet { disturbances })),
    }
}

fn limits_of(facts: &Facts, plan: &Plan, places: &[PathBuf]) -> Vec<String> {
    let limits = limits::limits(facts, plan, places).into_iter();
    limits
        .map(|(what, limit)| format!("{what}: {limit}"))
        .collect()
}

/// Resumes a stopped run.
pub(super) fn resume(args: &ResumeArgs, io: &mut Io<'_>, _colors: Colors) -> Result<Exit, Stop> {
    let cancel = handle_signals()?;
    let (mut journal, past) =
        Journal::resume(&args.directory, |path| bounded::regular(path, MAX_BYTES)).map_err(stop)?;
    let request: Request = serde_json::from_value(past.header.request.clone())
        .map_err(|error| Stop::new(format!("the stored request cannot be parsed: {error}")))?;
    recovery::revert_changes(io);
    let (facts, mut plan) = plan_here(&request)?;
    recovery::remove_images(&request.directories_of(&plan), io);
    let workspace = request.workspace()?;
    let (mut engines, versions) = engines_of(&mut plan, &workspace);
    if plan.record().hash() != past.header.plan_hash {
        return Err(Stop::new(
            "the plan has changed on this host since the run began, so it cannot be resumed",
        )
        .help("start a new run; `vmdisk bench report` shows the samples of this one"));
    }
    if versions != past.header.versions {
        return Err(Stop::new(
            "the installed programs have other versions than when the run began",
        )
        .help("start a new run; `vmdisk bench compare` compares the two"));
    }
    if let Some(file) = &request.to_facts {
        to_facts::check(file, &facts, &plan, &request.directory)?;
    }
    let mut settings = past.header.settings.clone();
    settings.accepts_noise |= args.noisy;
    let limits = limits_of(&facts, &plan, &request.places_of(&plan));
    refuse_noise(limits, settings.accepts_noise)?;
    // A resumed run gets the whole budget again.
    settings.time_budget_seconds += taken(&past.entries).as_secs_f64();
    let exit = measure(
        &plan,
        &settings,
        &mut engines,
        &mut journal,
        &past.entries,
        &cancel,
        &args.directory,
        io,
    )?;
    if let Some(file) = &request.to_facts {
        to_facts::write(&args.directory, file, io)?;
    }
    Ok(exit)
}

/// Returns the plan of a request on this host, and the host's facts.
fn plan_here(request: &Request) -> Result<(Facts, Plan), Stop> {
    let needed = request.facts_needed();
    let facts = environment::ask(&request.all_directories(), needed.clone());
    let plan = request.plan(&facts)?;
    let directories = request.places_of(&plan);
    if directories == request.all_directories() {
        return Ok((facts, plan));
    }
    // The plan names directories that the facts do not cover yet.
    let facts = environment::ask(&directories, needed);
    let plan = request.plan(&facts)?;
    Ok((facts, plan))
}

fn handle_signals() -> Result<Cancel, Stop> {
    Cancel::on_signals()
        .map_err(|error| Stop::new(format!("could not handle signals: {}", plain(&error))))
}

/// Runs the plan and writes the reports.
#[expect(clippy::too_many_arguments, reason = "they are the parts of a run")]
fn measure(
    plan: &Plan,
    settings: &Settings,
    engines: &mut [Box<dyn Engine>],
    journal: &mut Journal,
    past: &[Entry],
    cancel: &Cancel,
    directory: &Path,
    io: &mut Io<'_>,
) -> Result<Exit, Stop> {
    let mut machine = HostMonitor::after(taken(past));
    let mut progress = Progress::new(io, plan);
    let runner = Runner {
        plan,
        settings,
        engines,
        machine: &mut machine,
        log: journal,
        cancel,
        observe: &mut |event| progress.show(&event),
    };
    let ended = runner.run(past);
    progress.end();
    let elapsed = machine.elapsed();
    let result = of_journal(directory)?;
    if result.samples.is_empty() {
        ended.map_err(stop)?;
        return Err(Stop::new("no sample was measured"));
    }
    write_all(&result, directory)?;
    let text = in_form(&result, args::ReportFormat::Text, io.stdout_width)?;
    deliver(io, None, &text)?;
    io.say(&format!(
        "after {}: {} and report.html, report.md, samples.csv next to it\n",
        duration(elapsed.as_secs_f64()),
        directory.join(RESULT).display()
    ));
    match ended.map_err(stop)? {
        Ended::Stopped => Err(Stop::new("cancelled; the samples are kept").help(format!(
            "resume it with `vmdisk bench resume {}`",
            directory.display()
        ))),
        Ended::NothingLeft => Err(Stop::new("no remaining cells can be compared")),
        // Fewer rounds were asked for, with a warning.
        _ if settings.repetition.most_rounds < MIN_ROUNDS || result.has_answer() => Ok(Exit::Clean),
        Ended::Precise | Ended::AllRounds | Ended::TimeBudget => {
            let round = elapsed.as_secs_f64() / f64::from(result.complete_rounds.max(1));
            let minutes = (round * f64::from(MIN_ROUNDS) / 60.0).ceil();
            Err(Stop::new(format!(
                "nothing is answered: no comparison has {MIN_ROUNDS} rounds in which its samples count"
            ))
            .help(format!(
                "the caveats say which samples do not count; for more rounds, use `--time-budget {minutes}m`"
            )))
        }
    }
}

/// Programs and their versions, by engine.
type Versions = BTreeMap<EngineKind, BTreeMap<String, String>>;

/// Creates the engines that a plan needs, with their programs; cells of unavailable engines are left out.
fn engines_of(plan: &mut Plan, workspace: &Workspace) -> (Vec<Box<dyn Engine>>, Versions) {
    let mut found: Vec<Box<dyn Engine>> = Vec::new();
    let mut versions = BTreeMap::new();
    let mut missing: BTreeMap<EngineKind, String> = BTreeMap::new();
    for kind in EngineKind::ALL.iter().copied() {
        if !plan.cells.iter().any(|cell| cell.engine == kind) {
            continue;
        }
        let Some(mut engine) = engines::engine(kind, workspace) else {
            missing.insert(kind, format!("the engine {kind} is not available"));
            continue;
        };
        let cells: Vec<CellView<'_>> = plan.views().filter(|cell| cell.engine == kind).collect();
        match engine.versions(&cells) {
            Ok(programs) => {
                versions.insert(kind, programs);
                found.push(engine);
            }
            Err(error) => {
                missing.insert(kind, error.to_string());
            }
        }
    }
    plan.leave_out(|cell| match missing.get(&cell.engine) {
        Some(why) => Some(why.clone()),
        None => {
            let engine = found.iter().find(|engine| engine.kind() == cell.engine)?;
            engine.refuses(cell)
        }
    });
    found.retain(|engine| plan.cells.iter().any(|cell| cell.engine == engine.kind()));
    versions.retain(|kind, _| plan.cells.iter().any(|cell| cell.engine == *kind));
    (found, versions)
}

pub(super) fn settings(how: &HowArgs) -> Settings {
    let most_rounds = match how.quick || how.precision.is_some() {
        true => how.most_rounds.max(how.rounds),
        false => how.rounds,
    };
    Settings {
        seed: how.seed.unwrap_or_else(clock::seconds_now),
        repetition: Repetition {
            rounds: how.rounds,
            most_rounds,
            precision: how.precision.unwrap_or(0.05),
            is_race: how.quick,
            ..Repetition::default()
        },
        time_budget_seconds: how.time_budget,
        has_warm_up: !how.no_warm_up,
        accepts_noise: how.noisy,
    }
}

/// Returns the directory for samples and reports, by default named after the plan and the time.
fn output_directory(how: &HowArgs, plan: &Plan) -> PathBuf {
    match &how.output {
        Some(output) => output.clone(),
        None => PathBuf::from(format!(
            "vmdisk-bench-{}-{}",
            plan.name.replace(|c: char| !c.is_ascii_alphanumeric(), "-"),
            clock::now().replace([':', '-'], "")
        )),
    }
}

/// Refuses a run that cannot answer its question, would overwrite files or exceeds its budgets.
fn acceptable(plan: &Plan, estimate: &Estimate, how: &HowArgs) -> Result<(), Stop> {
    if plan.cells.iter().all(|cell| cell.baseline.is_none()) {
        let names: Vec<&str> = plan
            .configurations
            .iter()
            .map(|configuration| configuration.name.as_str())
            .collect();
        let left = match names.is_empty() {
            true => "no configuration can be measured here".to_owned(),
            false if names.len() == 1 => "only one configuration can be measured here".to_owned(),
            false => format!("only {} can be measured here", names.join(", ")),
        };
        return Err(Stop::new(format!("nothing to compare: {left}")));
    }
    if let Some(output) = how.output.as_deref().filter(|output| output.exists()) {
        return Err(stop(Error::output_exists(output)));
    }
    Workspace::check_existing(&plan.configurations).map_err(stop)?;
    within_budgets(estimate, how)?;
    estimate.check_room().map_err(stop)
}

/// Warns of directories in which the images of a run cannot be removed quickly.
fn warn_of_slow_deletion(estimate: &Estimate, facts: &Facts, io: &mut Io<'_>, colors: Colors) {
    let places = estimate.places.iter().filter(|(_, bytes)| *bytes > 0);
    let places: BTreeSet<PathBuf> = places.map(|(place, _)| place.clone()).collect();
    for directory in environment::slow_to_delete(facts, &places) {
        let mut message = Message::warning(format!(
            "{} is on ext4 mounted with discard, where removing an image can take minutes, even after Ctrl-C",
            directory.display()
        ));
        message.help = Some("use `--directory` with a directory on another file system".to_owned());
        io.say(&message.render(colors.stderr));
    }
}

fn warn_of_few_rounds(how: &HowArgs, io: &mut Io<'_>, colors: Colors) {
    if how.rounds < MIN_ROUNDS && how.precision.is_none() {
        let message = Message::warning(format!(
            "{} rounds cannot show a difference; use at least {MIN_ROUNDS}",
            how.rounds
        ));
        io.say(&message.render(colors.stderr));
    }
}

fn in_words(plan: &Plan, settings: &Settings, estimate: &Estimate) -> String {
    let rounds = match (settings.repetition.rounds, settings.repetition.most_rounds) {
        (least, most) if least == most => format!("{least} rounds"),
        (least, most) => format!("{least} to {most} rounds"),
    };
    let least = estimate.least.as_secs_f64();
    let most = estimate
        .most
        .as_secs_f64()
        .min(settings.time_budget_seconds);
    format!(
        "{}: {} cells of {} configurations, {rounds}, about {}, {} of space",
        plan.name,
        plan.cells.len(),
        plan.configurations.len(),
        range(least, (SLOWEST * least).max(most)),
        bytes(estimate.bytes)
    )
}

/// Describes the plan without running it.
fn dry_run(plan: &Plan, settings: &Settings, estimate: &Estimate) -> String {
    let mut text = format!(
        "{}\n{}\n",
        plan.question,
        in_words(plan, settings, estimate)
    );
    text.push_str(&format!(
        "about {} per round, after about {} to create the images\n\nconfigurations:\n",
        duration(estimate.round.as_secs_f64()),
        duration(estimate.preparation.as_secs_f64())
    ));
    for configuration in &plan.configurations {
        let factors: Vec<String> = configuration
            .factors
            .iter()
            .filter(|(factor, _)| *factor != "name")
            .map(|(factor, value)| format!("{factor}={value}"))
            .collect();
        text.push_str(&format!(
            "  {}: {}\n",
            configuration.name,
            factors.join(", ")
        ));
        for finding in &configuration.findings {
            text.push_str(&format!(
                "    the linter: {} ({})\n",
                finding.title, finding.rule
            ));
        }
    }
    text.push_str("workloads:\n");
    for workload in &plan.workloads {
        let phases: Vec<&str> = [
            vmdisk_bench_runner::Phase::FirstTouch,
            vmdisk_bench_runner::Phase::Steady,
        ]
        .into_iter()
        .filter(|phase| {
            plan.views()
                .any(|cell| cell.workload.name == workload.name && cell.phase == *phase)
        })
        .map(|phase| phase.name())
        .collect();
        text.push_str(&format!("  {}, {}\n", workload.name, phases.join(" and ")));
    }
    if !plan.left_out.is_empty() {
        text.push_str(&format!("left out:\n{}", check::left_out(&plan.left_out)));
    }
    text
}
