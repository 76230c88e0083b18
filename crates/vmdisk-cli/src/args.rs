//! The command line.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;

use clap::builder::styling as anstyle;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use vmdisk::advise::{DiskLoad, Want};
use vmdisk::model::Bytes;
use vmdisk::plan::{ChangeKind, GuestOs};
use vmdisk::redact::Level;
use vmdisk::{Policy, Severity, Target};
use vmdisk_collect::FactGroup;

use crate::baseline::task::BaselineTask;
use crate::bench::args::BenchArgs;
use crate::capture::CaptureArgs;
use crate::config::configuration_args::ConfigurationArgs;
use crate::config::host_of_files::{HostOfFiles, host_of_files};
use crate::config::selection::SelectionArgs;
use crate::deferred::{Deferred, examples, help};
use crate::hook::HookArgs;
use crate::input::hypervisor::GuestArgs;
use crate::input::hypervisor::virsh::Virsh;
use crate::parsers::{count, file_name, one_of, page_words, rule, severity_parser};
use crate::values::ValueArgs;

/// Lints, generates and measures the disk configuration of QEMU and libvirt guests.
///
/// Inspects the machine that it runs on only on request (such as `lint --live`, `vmdisk facts` and `vmdisk bench`).
///
/// Exit status: 0 on success; 1 with findings (`lint`: at or above `--fail-on`), differences, or as the help of a
/// command says; 2 after an error.
#[derive(Debug, Parser)]
#[command(name = "vmdisk", version, max_term_width = 100, disable_help_flag = true, arg = help(), after_help = examples("vmdisk"))]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// When to use colour.
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t = When::Auto,
        global = true,
        hide_short_help = true,
        hide_long_help = true
    )]
    pub(crate) color: When,
}

impl Cli {
    /// Reads the command line.
    pub(crate) fn read(words: &[OsString]) -> Result<Self, clap::Error> {
        let mut command = Self::late();
        let mut matches = command.try_get_matches_from_mut(words)?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }

    /// The command line, without the arguments of subcommands.
    fn late() -> clap::Command {
        by_headings(Self::command())
    }

    /// The command line with the arguments of all subcommands.
    pub(crate) fn whole() -> clap::Command {
        let whole = Command::augment_subcommands_for_update(clap::Command::new("vmdisk"));
        Self::late().mut_subcommands(|late| {
            let built = whole.find_subcommand(late.get_name());
            built.cloned().unwrap_or(late)
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal; `NO_COLOR` and `CLICOLOR_FORCE` are honoured.
    Auto,
    /// Also in files and pipes.
    Always,
    /// Not even on a terminal.
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check libvirt domains, QEMU command lines and specs.
    Lint(Deferred<LintArgs>),
    /// Show the page of a rule, or find a page by words.
    Explain(Deferred<ExplainArgs>),
    /// Edit a guest of libvirt, with a check before and after.
    ///
    /// Exits with 1 if the change is not defined.
    Edit(Deferred<EditArgs>),
    /// Let libvirt check guests before they start.
    Hook(Deferred<HookArgs>),
    /// Choose where a new disk lives, and in which form.
    ///
    /// Each choice has its reasons. Exits with 1 if nothing fits.
    Advise(Deferred<AdviseArgs>),
    /// Choose the options that existing disks leave open.
    ///
    /// Options that a disk sets are kept, and each choice has its reasons. Exits with 2 if nothing can be decided for a disk.
    Decide(Deferred<DecideArgs>),
    /// Write disks from a short description, as fits the host.
    Generate(Deferred<GenerateArgs>),
    /// Make the storage of a spec, and with --define its guest.
    ///
    /// Nothing is overwritten. What is there as planned is done already, and a second run does nothing. What is there and
    /// differs is changed only with --change, which names the kinds of changes. If a step fails, what this run made is removed. Exits with 1 if it refuses, and with 2 if a step fails.
    Apply(Deferred<ApplyArgs>),
    /// Convert libvirt XML, QEMU command lines and specs.
    Convert(Deferred<ConvertArgs>),
    /// Show the I/O path of disks, down to the drives.
    Trace(Deferred<TraceArgs>),
    /// Collect facts of a host: file systems, devices, versions.
    Facts(Deferred<FactsArgs>),
    /// Run a command, and print what it would give to QEMU.
    ///
    /// The command runs in a sandbox: it changes nothing on this machine, and has no network. Programs of QEMU are recorded and
    /// end at once; `sudo`, `taskset`, `xterm -e`, `tmux` and the like run their arguments. Each start is a line of JSON, and
    /// standard output of the command goes to standard error. Exits with 2 if it starts no QEMU.
    Capture(Deferred<CaptureArgs>),
    /// Measure disk configurations on this host.
    Bench(Deferred<BenchArgs>),
    /// Start the language server for editors.
    Lsp(Deferred<LspArgs>),
    /// Print files that packages and editors need: schemas, completions, manual pages.
    #[command(hide = true)]
    Print(Deferred<PrintArgs>),
}

/// The commands by the headings of the help.
const HEADINGS: [(&str, &[&str]); 5] = [
    ("Check", &["lint", "explain", "edit", "hook"]),
    (
        "Plan",
        &["advise", "decide", "generate", "apply", "convert"],
    ),
    ("Look", &["trace", "facts", "capture"]),
    ("Measure", &["bench"]),
    ("Set up", &["lsp"]),
];

/// A command with a help that lists the commands below it by their headings. Each run puts it together, so that texts keep
/// their styles: to take them out looks at each letter.
fn by_headings(command: clap::Command) -> clap::Command {
    let about = |command: &clap::Command| Some(command.get_about()?.ansi().to_string());
    let mut template = about(&command).unwrap_or_default();
    template.push_str("\n{usage-heading} {usage}\n");
    for (heading, names) in HEADINGS {
        let header = anstyle::Style::new().bold();
        let _ = write!(template, "\n{header}{heading:8}{header:#}");
        for (nth, name) in names.iter().enumerate() {
            let about = command.find_subcommand(name).and_then(about);
            let about = about.unwrap_or_default();
            let indent = if nth == 0 { "" } else { "\n        " };
            let _ = write!(template, "{indent}  {header}{name:8}{header:#}  {about}");
        }
    }
    template.push_str("{after-help}");
    command.help_template(template)
}

/// Host facts and target; shared by lint and generate.
#[derive(Clone, Args, Debug, Default)]
pub(crate) struct HostArgs {
    /// Facts of the host, from `vmdisk facts`, in JSON or YAML.
    #[arg(long, value_name = "FILE", help_heading = "Host")]
    pub(crate) facts: Vec<PathBuf>,
    /// Collect the facts from the host that vmdisk runs on; nothing is written to it.
    #[arg(long, conflicts_with = "facts", help_heading = "Host")]
    pub(crate) live: bool,
    /// Versions that will run the guest, such as qemu=10.0,libvirt=11.3,machine=pc-q35-10.0,kernel=6.12;
    /// missing parts are taken from the facts.
    #[arg(long, value_name = "KEY=VALUE,…", help_heading = "Host")]
    pub(crate) target: Option<Target>,
    /// A QEMU that is started without a machine to query its capabilities, which take precedence over its
    /// version; or a recording from `vmdisk facts qemu --format recording`.
    #[arg(
        long,
        value_name = "PATH",
        hide_short_help = true,
        help_heading = "Host"
    )]
    pub(crate) qemu: Option<PathBuf>,
    /// Users of the host, which changes severities. The default is multi-tenant.
    #[arg(
        long,
        value_name = "POLICY",
        value_parser = one_of(Policy::WORDS.iter().copied(), Policy::from_word),
        help_heading = "Host"
    )]
    pub(crate) policy: Option<Policy>,
}

/// The help of --facts for commands that accept several hosts.
const FACTS_OF_HOSTS: &str = "Facts of the host, from `vmdisk facts`, in JSON or YAML. For guests that may run on several hosts, \
    repeat it, or name a directory or a quoted pattern such as 'facts/*.json'";

/// What a run that writes a baseline does not do. A baseline has no guests that are not files.
const NOT_WITH_A_BASELINE: [&str; 16] = [
    "fix",
    "unsafe_fixes",
    "diff",
    "add_allowances",
    "exit_zero",
    "fail_on_unchecked",
    "domains",
    "all_domains",
    "connect",
    "running",
    "format",
    "output",
    "report",
    "statistics",
    "show_settings",
    "show_files",
];

#[derive(Args, Debug, Default)]
#[command(mut_arg("facts", |facts| facts.help(FACTS_OF_HOSTS)))]
pub(crate) struct LintArgs {
    /// Files, directories, patterns, or - for standard input: libvirt XML, QEMU command lines, -readconfig files,
    /// or specs. In a directory, vmdisk checks .xml files with a domain or a disk, .args and .cmdline files that
    /// start QEMU, .cfg files with QEMU options, .yaml and .yml files that are specs, scripts, makefiles, units,
    /// documentation and workflows that start QEMU, and their templates, such as .xml.j2, except files that
    /// .gitignore excludes. The default is the current directory; with --live or --facts and without a guest there,
    /// the host itself is checked.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Apply the safe fixes, which do only what was clearly intended; for standard input, print the result.
    #[arg(long, help_heading = "Fixes")]
    pub(crate) fix: bool,
    /// With --fix or --diff: include fixes that have a trade-off or change what the guest sees.
    #[arg(long, help_heading = "Fixes")]
    pub(crate) unsafe_fixes: bool,
    /// Print the changes of --fix as a patch for `git apply`, and change nothing.
    #[arg(long, conflicts_with = "format", help_heading = "Fixes")]
    pub(crate) diff: bool,
    /// Add a comment with this reason to XML and specs for every finding, which allows the finding.
    #[arg(
        long,
        value_name = "REASON",
        value_parser = reason,
        conflicts_with_all = ["fix", "unsafe_fixes", "diff", "try_qemu"],
        help_heading = "Fixes"
    )]
    pub(crate) add_allowances: Option<String>,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Lowest severity for which the exit status is 1. The default is warning.
    #[arg(long, value_name = "SEVERITY", value_parser = severity_parser(), help_heading = "Rules")]
    pub(crate) fail_on: Option<Severity>,
    /// Baseline: do not count the findings that it lists, and report its stale entries. `--write-baseline` writes it.
    #[arg(long, value_name = "FILE", help_heading = "Rules")]
    pub(crate) baseline: Option<PathBuf>,
    /// Write the findings to the file of --baseline, by default the one that vmdisk.toml names, otherwise
    /// vmdisk-baseline.json, so that later runs count only new ones.
    #[arg(long, conflicts_with_all = NOT_WITH_A_BASELINE, help_heading = "Rules")]
    pub(crate) write_baseline: bool,
    /// With --write-baseline: replace the file if it exists.
    #[arg(
        long,
        requires = "write_baseline",
        hide_short_help = true,
        help_heading = "Rules"
    )]
    pub(crate) force: bool,
    /// Remove findings that these inputs no longer have from the baseline, without adding new ones.
    #[arg(
        long,
        conflicts_with = "write_baseline",
        conflicts_with_all = NOT_WITH_A_BASELINE,
        hide_short_help = true,
        help_heading = "Rules"
    )]
    pub(crate) prune_baseline: bool,
    /// Exit with 0 instead of 1 if there are findings; errors still exit with 2.
    #[arg(long, hide_short_help = true, help_heading = "Rules")]
    pub(crate) exit_zero: bool,
    /// Exit with 1 if a rule could not be checked because facts, or the permission to collect them, are missing.
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "always",
        hide_short_help = true,
        help_heading = "Rules"
    )]
    pub(crate) fail_on_unchecked: Option<FailOnUnchecked>,
    #[command(flatten)]
    pub(crate) guests: GuestArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// Host that runs the files of this pattern, so that its guests are compared with each other. With several
    /// facts files, NAME is the name of the host's facts file without the extension; '{host}=domains/{host}/**'
    /// names all hosts after their directories. May be repeated; the first match counts.
    #[arg(
        long = "host",
        value_name = "NAME=PATTERN",
        value_parser = host_of_files,
        hide_short_help = true,
        help_heading = "Host"
    )]
    pub(crate) hosts: Vec<HostOfFiles>,
    /// Exit with 1 if facts are older than this, such as 12h, 30d or 8w, or have no date.
    #[arg(long, value_name = "AGE", value_parser = age, hide_short_help = true, help_heading = "Host")]
    pub(crate) max_facts_age: Option<u64>,
    /// Start this QEMU, paused, with the machine and the disks of each file, and report its messages, too.
    /// Empty images replace the guest's images, which are not opened. Without --qemu, the rules also query it.
    #[arg(
        long,
        value_name = "PATH",
        conflicts_with_all = ["fix", "diff"],
        hide_short_help = true,
        help_heading = "Host"
    )]
    pub(crate) try_qemu: Option<PathBuf>,
    /// Format of the findings.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LintFormat::Full, help_heading = "Output")]
    pub(crate) format: LintFormat,
    /// Write findings to this file instead of standard output.
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Write an additional report, which contains every finding, even with --quiet; may be repeated.
    #[arg(
        long,
        value_name = "FORMAT=FILE",
        value_parser = report,
        conflicts_with = "diff",
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub(crate) report: Vec<(LintFormat, PathBuf)>,
    /// Print the number of findings of each rule instead of the findings; for --format full, concise and json.
    #[arg(long, conflicts_with = "diff", help_heading = "Output")]
    pub(crate) statistics: bool,
    /// List the rules that could not be checked, with the reasons.
    #[arg(long, short, help_heading = "Output")]
    pub(crate) verbose: bool,
    /// Print only findings that fail the run and inputs that could not be read.
    #[arg(long, short, conflicts_with = "verbose", help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Also print allowed, ignored and known findings, each with the reason.
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub(crate) show_allowed: bool,
    /// Do not check files below directories that match this pattern, as in .gitignore; may be repeated.
    #[arg(
        long,
        value_name = "PATTERN",
        hide_short_help = true,
        help_heading = "Files"
    )]
    pub(crate) exclude: Vec<String>,
    /// Print the files that would be checked, one per line, and check nothing.
    #[arg(
        long,
        conflicts_with_all = ["fix", "diff", "statistics", "output"],
        hide_short_help = true,
        help_heading = "Files"
    )]
    pub(crate) show_files: bool,
    /// Skip named files that contain no guest, instead of failing.
    #[arg(long, hide_short_help = true, help_heading = "Files")]
    pub(crate) skip_foreign: bool,
    /// Name of standard input in reports.
    #[arg(
        long,
        value_name = "PATH",
        hide_short_help = true,
        help_heading = "Files"
    )]
    pub(crate) stdin_filename: Option<PathBuf>,
    /// Number of files to check in parallel; by default the number of processors.
    #[arg(
        long,
        short,
        value_name = "N",
        value_parser = count::<u16>,
        hide_short_help = true,
        help_heading = "Files"
    )]
    pub(crate) jobs: Option<u16>,
    #[command(flatten)]
    pub(crate) values: ValueArgs,
    #[command(flatten)]
    pub(crate) configuration: ConfigurationArgs,
    /// Print the settings of each input and the configuration file that sets them, and check nothing.
    #[arg(
        long,
        conflicts_with_all = ["fix", "diff", "statistics", "output"],
        hide_short_help = true,
        help_heading = "Configuration"
    )]
    pub(crate) show_settings: bool,
    /// Write a vmdisk.toml in which every key is explained and commented out, by default into the current directory. An
    /// existing file is not changed.
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ".",
        exclusive = true,
        hide_short_help = true,
        help_heading = "Configuration"
    )]
    pub(crate) write_config: Option<PathBuf>,
    /// The libvirt whose guest a command checks.
    #[arg(skip)]
    pub(crate) virsh: Option<Virsh>,
    /// Texts that are not files, by their names.
    #[arg(skip)]
    pub(crate) given: Vec<(PathBuf, Vec<u8>)>,
    /// True if the command line names no input.
    #[arg(skip)]
    pub(crate) names_nothing: bool,
    /// True for a command without --fix, whose findings do not suggest it.
    #[arg(skip)]
    pub(crate) cannot_fix: bool,
}

impl LintArgs {
    /// What is done with baselines.
    pub(crate) const fn task(&self) -> BaselineTask {
        match (self.write_baseline, self.prune_baseline) {
            (true, _) => BaselineTask::Create,
            (false, true) => BaselineTask::Prune,
            (false, false) => BaselineTask::Use,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOnUnchecked {
    /// For all inputs.
    Always,
    /// For inputs with facts, which no longer fit them.
    WithFacts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LintFormat {
    /// For people: location, reasons and fix.
    #[default]
    Full,
    /// One line for each finding.
    Concise,
    /// A versioned report for programs; `vmdisk print schema report` describes it.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Annotations of a GitHub workflow.
    Github,
    /// GitLab's code quality report.
    Gitlab,
    /// JUnit: a test case for each finding; findings at or above --fail-on fail.
    Junit,
    /// Checkstyle's report.
    Checkstyle,
    /// JSON Lines: a finding or an unreadable input per line; `vmdisk print schema report-line` describes it.
    JsonLines,
    /// Metrics for the textfile collector of Prometheus' node_exporter.
    Prometheus,
    /// A page with the findings, the I/O paths as pictures and the fixes as diffs.
    Html,
}

impl LintFormat {
    /// True if a report in this format has the rules that could not be checked.
    pub(crate) const fn tells_what_is_unchecked(self) -> bool {
        matches!(
            self,
            LintFormat::Json
                | LintFormat::Sarif
                | LintFormat::Github
                | LintFormat::Prometheus
                | LintFormat::Html
        )
    }

    /// True if people read it, and the summary after it.
    pub(crate) const fn is_for_people(self) -> bool {
        matches!(self, LintFormat::Full | LintFormat::Concise)
    }
}

#[derive(Args, Debug)]
pub(crate) struct EditArgs {
    /// Names of guests, which are edited one after the other.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Apply the safe fixes instead of starting the editor.
    #[arg(long)]
    pub(crate) fix: bool,
    /// With --fix: include fixes that have a trade-off or change what the guest sees.
    #[arg(long, requires = "fix")]
    pub(crate) unsafe_fixes: bool,
    /// Libvirt to connect to, such as qemu:///system; by default virsh chooses.
    #[arg(long, short = 'c', value_name = "URI")]
    pub(crate) connect: Option<String>,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    #[command(flatten)]
    pub(crate) configuration: ConfigurationArgs,
}

#[derive(Args, Debug)]
pub(crate) struct TraceArgs {
    /// Libvirt XML, a QEMU command line, a -readconfig file or a spec; - is standard input.
    pub(crate) file: PathBuf,
    /// Target of a disk, or the id of its device; by default all disks are shown.
    pub(crate) disk: Option<String>,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// Number or name of the start of QEMU to show, if a script or makefile has several; by default all are shown.
    #[arg(long, value_name = "N|NAME")]
    pub(crate) start: Option<String>,
    #[command(flatten)]
    pub(crate) values: ValueArgs,
    /// XML of a pool or volume, to locate disks of type volume; may be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) storage: Vec<PathBuf>,
    /// Output format.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = TraceFormat::Text)]
    pub(crate) format: TraceFormat,
    /// Exit with 1 if a shown finding has this severity or a higher one.
    #[arg(long, value_name = "SEVERITY", value_parser = severity_parser())]
    pub(crate) fail_on: Option<Severity>,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// For people: each step with its statements.
    Text,
    /// For programs; `vmdisk print schema trace` describes it.
    Json,
    /// A picture.
    Svg,
}

#[derive(Args, Debug)]
pub(crate) struct DecideArgs {
    /// Libvirt XML or a QEMU command line; - is standard input.
    #[arg(value_name = "FILE", required_unless_present = "disk")]
    pub(crate) file: Option<PathBuf>,
    /// Target of a disk, or the id of its device; by default all disks are decided.
    #[arg(value_name = "DISK")]
    pub(crate) name: Option<String>,
    /// An existing disk in one line, such as qcow2:/srv/web1.qcow2,bus=virtio.
    #[arg(long, value_name = "KIND:LOCATION,…", conflicts_with = "file")]
    pub(crate) disk: Option<String>,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// Number or name of the start of QEMU to decide for, if a script or makefile has several.
    #[arg(long, value_name = "N|NAME")]
    pub(crate) start: Option<String>,
    #[command(flatten)]
    pub(crate) values: ValueArgs,
    /// XML of a pool or volume, to locate disks of type volume; may be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) storage: Vec<PathBuf>,
    /// Output format.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = DecideFormat::Text)]
    pub(crate) format: DecideFormat,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct AdviseArgs {
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// Size that the guest sees, such as 100G.
    #[arg(long, value_name = "SIZE", value_parser = Bytes::parse)]
    pub(crate) size: Bytes,
    /// Number of guests that get such a disk each.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) guests: u32,
    /// What the disk must have.
    #[arg(long, value_name = "WANT,…", value_delimiter = ',', value_parser = one_of(Want::WORDS.iter().copied(), Want::from_word))]
    pub(crate) wants: Vec<Want>,
    /// Whether the data may be lost when the host stops.
    #[arg(long, value_name = "DURABILITY", value_enum, default_value_t = Durability::Durable)]
    pub(crate) durability: Durability,
    /// The expected load.
    #[arg(long, value_name = "LOAD", value_parser = one_of(DiskLoad::WORDS.iter().copied(), DiskLoad::from_word), default_value = "mixed")]
    pub(crate) workload: DiskLoad,
    /// The operating system of the guest; the disks of Windows are on a bus that its installer knows.
    #[arg(long, value_name = "OS", value_parser = one_of(GuestOs::WORDS.iter().copied(), GuestOs::from_word))]
    pub(crate) os: Option<GuestOs>,
    /// Compare only these places: directories, volume groups, thin pools as GROUP/POOL, devices. By default those that the
    /// facts name.
    #[arg(long = "in", value_name = "PLACE", num_args = 1..)]
    pub(crate) places: Vec<String>,
    /// Run of `vmdisk bench` whose figures are shown, beside those in the facts; may be repeated.
    #[cfg(feature = "bench")]
    #[arg(long, value_name = "RUN")]
    pub(crate) measured: Vec<PathBuf>,
    /// Name of the new image or volume, without an ending, and of the guest in a spec; default: disk.
    #[arg(long, value_name = "NAME", value_parser = file_name)]
    pub(crate) name: Option<String>,
    /// Output format.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = TextFormat::Text)]
    pub(crate) format: TextFormat,
    /// Print the recommended disk in this form, with each option.
    #[arg(long, value_name = "FORM", value_enum, conflicts_with = "format")]
    pub(crate) to: Option<AdviseForm>,
    /// Print the reason for each option of the recommended disk on standard error.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Durability {
    /// Flushed data survives a crash of the host.
    Durable,
    /// The data may be lost.
    Scratch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AdviseForm {
    /// A spec for `vmdisk generate`.
    Spec,
    /// The disk as libvirt XML.
    DiskXml,
    /// The script that creates the storage.
    Script,
    /// The disk as options of virt-install.
    VirtInstall,
    /// A plan for `vmdisk bench run --plan`, which compares the candidates that only their speed can separate.
    BenchPlan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DecideFormat {
    /// The reason for each option, the remaining findings, and the disks as XML.
    Text,
    /// The disks as XML.
    Xml,
    /// The changes of the file as a patch for `git apply`.
    Diff,
    /// The guest with its options as a spec, for `vmdisk apply --define --change options`.
    Spec,
    /// For programs; `vmdisk print schema decide` describes it.
    Json,
}

/// What is planned; shared by generate and apply.
#[derive(Args, Debug)]
pub(crate) struct PlanArgs {
    /// A spec in YAML or JSON, or - for standard input; `vmdisk print schema spec` describes it.
    pub(crate) spec: Option<PathBuf>,
    /// A disk in one line, such as lvm:vg0/web1,bus=virtio or nbd://host/export; may be repeated.
    #[arg(long = "disk", value_name = "KIND:LOCATION,…")]
    pub(crate) disks: Vec<String>,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// Do not refuse if this rule reports an error; may be repeated.
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = rule(), hide_possible_values = true)]
    pub(crate) ignore: Vec<String>,
    /// Name of the guest.
    #[arg(long, value_name = "NAME", help_heading = "Guest")]
    pub(crate) name: Option<String>,
    /// Memory of the guest, such as 4G; a number without a unit is in MiB, as in virt-install and QEMU.
    #[arg(long, value_name = "SIZE", value_parser = memory, help_heading = "Guest")]
    pub(crate) memory: Option<Bytes>,
    /// Virtual processors of the guest.
    #[arg(long, value_name = "N", value_parser = count::<u32>, help_heading = "Guest")]
    pub(crate) vcpus: Option<u32>,
    /// Operating system of the guest; the disks of Windows are on a bus that its installer knows.
    #[arg(long, value_name = "OS", value_parser = one_of(GuestOs::WORDS.iter().copied(), GuestOs::from_word), help_heading = "Guest")]
    pub(crate) os: Option<GuestOs>,
}

#[derive(Args, Debug)]
pub(crate) struct GenerateArgs {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    /// Output format.
    #[arg(long, value_name = "FORM", value_enum, default_value_t = GenerateForm::LibvirtXml)]
    pub(crate) to: GenerateForm,
    /// Print the reason for each choice on standard error.
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "text"
    )]
    pub(crate) explain: Option<ExplainFormat>,
    /// Format of QEMU's arguments, with --to qemu.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = QemuFormat::Lines)]
    pub(crate) qemu_format: QemuFormat,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Add the disks to this libvirt domain, and print the whole domain. The disks use free names and existing
    /// controllers; everything else is unchanged.
    #[arg(
        long,
        value_name = "DOMAIN.xml",
        conflicts_with_all = ["name", "memory", "vcpus"],
        help_heading = "Guest"
    )]
    pub(crate) into: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    /// Define the guest with `virsh define` when its storage is there.
    #[arg(long)]
    pub(crate) define: bool,
    /// Make images in directories where this user cannot make one that nobody else can write.
    #[arg(long)]
    pub(crate) trust_directory: bool,
    /// Kinds of changes that may be made to a guest and to storage that are there. Without it they are shown, and made only
    /// after a yes on a terminal.
    #[arg(long, value_name = "KIND,…", value_delimiter = ',', value_enum)]
    pub(crate) change: Vec<ChangeArg>,
    /// Check everything, and show what would be done.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output format; `script` needs --dry-run.
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        default_value_t = ApplyFormat::Text,
        requires_if("script", "dry_run")
    )]
    pub(crate) format: ApplyFormat,
}

impl ApplyArgs {
    /// True if the run gives space back.
    pub(crate) fn is_reclaiming(&self) -> bool {
        self.change.contains(&ChangeArg::Reclaim)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApplyFormat {
    /// For people.
    Text,
    /// For programs; `vmdisk print schema steps` describes it.
    Json,
    /// A shell script that does what this run would do. It holds the definition of the guest, with its passwords.
    Script,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChangeArg {
    /// Make images and volumes larger.
    Grow,
    /// Add disks to the guest.
    Add,
    /// Remove disks from the guest; their storage stays.
    Remove,
    /// Set options of disks, such as the cache mode, iothreads and limits.
    Options,
    /// Give disks another bus. Their names, addresses and controllers follow.
    Bus,
    /// Copy the data of disks to other storage, compare it, and use that. The old storage stays.
    Move,
    /// Give back space that disks do not use: a guest that runs trims its file systems, and a sparse copy takes the name of an
    /// image of a guest that is off. The old image stays.
    Reclaim,
}

impl ChangeArg {
    pub(crate) const fn kind(self) -> ChangeKind {
        match self {
            ChangeArg::Grow => ChangeKind::Grow,
            ChangeArg::Add => ChangeKind::Add,
            ChangeArg::Remove => ChangeKind::Remove,
            ChangeArg::Options => ChangeKind::Options,
            ChangeArg::Bus => ChangeKind::Bus,
            ChangeArg::Move => ChangeKind::Move,
            ChangeArg::Reclaim => ChangeKind::Reclaim,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GenerateForm {
    /// A libvirt <domain>.
    #[value(alias = "libvirt")]
    LibvirtXml,
    /// Only <disk> elements.
    DiskXml,
    /// A QEMU command line.
    Qemu,
    /// QMP commands that plug the disks into a running QEMU, one per line.
    Qmp,
    /// The arguments of QMP's blockdev-add, as JSON.
    BlockdevJson,
    /// A shell script that creates the storage.
    Script,
    /// The same steps as JSON; `vmdisk print schema steps` describes it.
    Steps,
    /// The disks as options of virt-install.
    VirtInstall,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExplainFormat {
    /// A line for each option.
    Text,
    /// For programs; `vmdisk print schema explain` describes it.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum QemuFormat {
    /// A shell command, one option per line.
    Lines,
    /// A JSON array of arguments; with daemons, one for each process, of which QEMU is the last.
    Json,
    /// One argument per line, unquoted.
    Args,
}

#[derive(Args, Debug)]
pub(crate) struct ConvertArgs {
    /// Libvirt XML, a QEMU command line, a -readconfig file, QMP commands or a spec; - is standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
    /// Output format.
    #[arg(long, value_name = "FORM", value_enum)]
    pub(crate) to: ConvertForm,
    /// Add the defaults that libvirt sets when a guest is defined: drivers, buses, controllers, and the addresses
    /// of disks on them.
    #[arg(long)]
    pub(crate) resolved: bool,
    /// Print the reason for each default of --resolved on standard error.
    #[arg(long, requires = "resolved")]
    pub(crate) explain: bool,
    /// Versions that will run the guest, such as qemu=10.0,machine=pc-q35-10.0.
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub(crate) target: Option<Target>,
    /// A QEMU that is started without a machine to query its capabilities, or a recording of one.
    #[arg(long, value_name = "PATH")]
    pub(crate) qemu: Option<PathBuf>,
    /// Format of QEMU's arguments, with --to qemu.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = QemuFormat::Lines)]
    pub(crate) qemu_format: QemuFormat,
    /// XML of a pool or volume, to locate disks of type volume; may be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) storage: Vec<PathBuf>,
    /// Leave out this disk, named by its target or the id of its device; may be repeated.
    #[arg(long, value_name = "DISK")]
    pub(crate) without: Vec<String>,
    /// Facts of the host, from `vmdisk facts`: an image whose format a command line does not set has the one of its header.
    #[arg(long, value_name = "FILE")]
    pub(crate) facts: Option<PathBuf>,
    /// Read the headers of such images on the host that vmdisk runs on.
    #[arg(long, conflicts_with = "facts")]
    pub(crate) live: bool,
    /// Number or name of the start of QEMU to convert, if a script or makefile has several.
    #[arg(long, value_name = "N|NAME")]
    pub(crate) start: Option<String>,
    #[command(flatten)]
    pub(crate) values: ValueArgs,
    /// Exit with 1 if anything is not carried over.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConvertForm {
    /// A libvirt <domain>, or <devices> if the input has only disks.
    #[value(alias = "libvirt")]
    LibvirtXml,
    /// Only <disk> elements.
    DiskXml,
    /// A QEMU command line.
    Qemu,
    /// QMP commands that plug the disks into a running QEMU, one per line.
    Qmp,
    /// A spec for `vmdisk generate`.
    Spec,
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct FactsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<FactsCommand>,
    #[command(flatten)]
    pub(crate) collect: CollectArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FactsCommand {
    /// Collect facts about this host (the default). Exits with 1 if a given path does not exist.
    Collect(CollectArgs),
    /// Print a summary of a facts file.
    Show(ShowArgs),
    /// Compare two facts files, and the findings with each. Exits with 1 if they differ.
    Diff(DiffArgs),
    /// Replace the names in a facts file or a configuration by tokens.
    Redact(RedactArgs),
    /// Check that a facts file is valid, and not too old. Exits with 1 if it has unknown keys or is too old.
    Check(CheckArgs),
    /// Show the features of a QEMU, libvirt, machine type or kernel. A path of this name is written ./qemu.
    Qemu(CapabilitiesArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// A facts file.
    pub(crate) file: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// The old facts file.
    pub(crate) old: PathBuf,
    /// The new facts file.
    pub(crate) new: PathBuf,
    /// Also list the findings about this domain that appear or disappear; may be repeated.
    #[arg(long = "for", value_name = "FILE.xml")]
    pub(crate) domains: Vec<PathBuf>,
    /// Output format.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = TextFormat::Text)]
    pub(crate) format: TextFormat,
    /// Also compare values that change all the time, such as free space.
    #[arg(long)]
    pub(crate) volatile: bool,
}

#[derive(Args, Debug)]
pub(crate) struct RedactArgs {
    /// A facts file, or libvirt XML. The result contains only the parts of the XML that vmdisk reads; with --level full, it is
    /// the text of any configuration without passwords, keys and cookies.
    pub(crate) file: PathBuf,
    /// File with the salt: at least 16 bytes, which must stay secret. By default the environment variable
    /// VMDISK_SALT contains the salt. A configuration needs none with --level full.
    #[arg(long, value_name = "FILE")]
    pub(crate) salt_file: Option<PathBuf>,
    /// Amount of detail: full keeps names, shareable replaces them by tokens, minimal also drops facts
    /// that no rule needs.
    #[arg(long, value_name = "LEVEL", default_value = Level::Shareable.as_str(), value_parser = one_of(Level::WORDS.iter().copied(), Level::from_word))]
    pub(crate) level: Level,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct LspArgs {
    /// Facts files of the hosts, for every file; by default the files that the nearest vmdisk.toml names.
    #[arg(long, value_name = "FILE")]
    pub(crate) facts: Vec<PathBuf>,
    /// Versions that will run the guests, such as qemu=10.0,libvirt=11.3; missing parts are taken from the facts.
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub(crate) target: Option<Target>,
    /// Users of the host, which changes severities.
    #[arg(long, value_name = "POLICY", value_parser = one_of(Policy::WORDS.iter().copied(), Policy::from_word))]
    pub(crate) policy: Option<Policy>,
    /// Use this configuration file for every input, instead of the nearest vmdisk.toml.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Use no configuration file.
    #[arg(long, conflicts_with = "config")]
    pub(crate) no_config: bool,
    /// Ignored: standard input and output are the only channel. Some editors add it.
    #[arg(long, hide = true)]
    pub(crate) stdio: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// A facts file.
    pub(crate) file: PathBuf,
    /// Maximum age of the facts, such as 12h, 30d or 8w.
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) max_age: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct CollectArgs {
    /// Images, devices and directories to inspect. A file with libvirt XML has the same meaning as with --for.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Inspect the images and devices of these guests: a file, a directory, a pattern, or - for standard
    /// input; may be repeated.
    #[arg(long = "for", value_name = "FILE")]
    pub(crate) domains: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) values: ValueArgs,
    /// Groups of facts in addition to core. The group core needs no root and starts no program; places
    /// looks at pools, mounts, disks and volumes, for `vmdisk advise`. The others start programs: lvm runs `lvs` and `lvmconfig` for thin pools, dm runs `dmsetup` for encryption, thin
    /// pools and multipath, nvme runs `nvme` for the formats of drives, zfs runs `zfs` for properties, programs
    /// queries the version and the features of each QEMU, and kvm tries to run a guest.
    #[arg(
        long = "group",
        value_name = "GROUP",
        value_delimiter = ',',
        value_parser = one_of(FactGroup::WORDS.iter().copied(), FactGroup::from_word)
    )]
    pub(crate) groups: Vec<FactGroup>,
    /// Format of the facts.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = FactsFormat::Json)]
    pub(crate) format: FactsFormat,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Inspect the host recorded in this directory instead of the running host. Without paths and groups,
    /// collect the facts that it was recorded for.
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) root: PathBuf,
    /// Try direct I/O with an unnamed file in this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) probe_dio: Option<PathBuf>,
    /// Record the host into this new or empty directory: unchanged copies of the files that are read, and the
    /// answers of the kernel. `--root` collects the same facts from there.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["root", "probe_dio"])]
    pub(crate) record: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FactsFormat {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// For people, as `vmdisk facts show` writes them, with the headers of the images.
    Text,
}

#[derive(Args, Debug)]
pub(crate) struct CapabilitiesArgs {
    /// Versions to answer for, such as qemu=10.0,libvirt=11.3,machine=pc-q35-10.0,kernel=6.12.
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub(crate) target: Option<Target>,
    /// A QEMU that is started without a machine and queried, or a recording of one.
    #[arg(long, value_name = "PATH")]
    pub(crate) qemu: Option<PathBuf>,
    /// Output format.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = CapabilitiesFormat::Text)]
    pub(crate) format: CapabilitiesFormat,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CapabilitiesFormat {
    /// For people.
    Text,
    /// For programs; `vmdisk print schema capabilities` describes it.
    Json,
    /// The answers of the QEMU of --qemu, for use as --qemu on another machine; `vmdisk print schema recording`
    /// describes it.
    Recording,
}

#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// Name of a rule, which `--list` lists, or words. Words find the page that fits them best, including
    /// pages about popular advice that is wrong, such as `vmdisk explain cache=none unsafe`.
    #[arg(
        value_name = "RULE|WORDS",
        value_parser = page_words(),
        required_unless_present = "list",
        hide_possible_values = true
    )]
    pub(crate) words: Vec<String>,
    /// List the rules; with words, those that have all of them in their name, group, severity or summary.
    #[arg(long)]
    pub(crate) list: bool,
    /// Format of the page or list.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = PageFormat::Text)]
    pub(crate) format: PageFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PageFormat {
    /// Text for a terminal.
    Text,
    /// Markdown, with the examples as the tests read them.
    Markdown,
    /// The rule and its page in Markdown, for programs.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

#[derive(Args, Debug)]
pub(crate) struct PrintArgs {
    #[command(subcommand)]
    pub(crate) what: Printed,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Printed {
    /// Print the JSON Schema of a file format.
    Schema(SchemaArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Print the manual page, or write all of them into a directory.
    Man(ManArgs),
}

#[derive(Args, Debug)]
pub(crate) struct SchemaArgs {
    /// The file format.
    #[arg(value_name = "FORMAT", value_enum)]
    pub(crate) format: SchemaFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaFormat {
    /// Output of `vmdisk lint --format json`.
    Report,
    /// A line of `vmdisk lint --format json-lines`.
    ReportLine,
    /// Output of `vmdisk lint --statistics --format json`.
    Statistics,
    /// Output of `vmdisk trace --format json`.
    Trace,
    /// Output of `vmdisk decide --format json`.
    Decide,
    /// Output of `vmdisk advise --format json`.
    Advise,
    /// The configuration file `vmdisk.toml`.
    Config,
    /// The file of `vmdisk lint --write-baseline`.
    Baseline,
    /// Output of `vmdisk facts`, the input of `--facts`.
    Facts,
    /// A spec, the input of `vmdisk generate`.
    Spec,
    /// Output of `vmdisk facts diff --format json`.
    FactsDiff,
    /// Output of `vmdisk generate --explain=json`.
    Explain,
    /// Output of `vmdisk generate --to steps` and of `vmdisk apply --format json`.
    Steps,
    /// A line of the output of `vmdisk capture`.
    Capture,
    /// Output of `vmdisk facts qemu --format json`.
    Capabilities,
    /// Output of `vmdisk facts qemu --format recording`, an input of `--qemu`.
    Recording,
    /// Output of `vmdisk bench report --format json`.
    #[cfg(feature = "bench")]
    Bench,
    /// Output of `vmdisk bench compare --format json`.
    #[cfg(feature = "bench")]
    BenchCompare,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Write a page for every command into this directory instead of printing the main one.
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

/// A size of memory, in MiB without a unit.
fn memory(text: &str) -> Result<Bytes, String> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Bytes::parse(text).map_err(|error| error.to_string());
    }
    Bytes::parse(&format!("{text}M")).map_err(|error| error.to_string())
}

/// A format and a file, such as `junit=report.xml`.
fn report(text: &str) -> Result<(LintFormat, PathBuf), String> {
    let Some((word, file)) = text.split_once('=') else {
        return Err("expected a format, = and a file, such as junit=report.xml".to_owned());
    };
    let format = LintFormat::from_str(word, false).map_err(|_| {
        let formats = LintFormat::value_variants().iter();
        let words = formats.filter_map(LintFormat::to_possible_value);
        let words: Vec<String> = words.map(|word| word.get_name().to_owned()).collect();
        let near = vmdisk_source::nearest(word, words.iter().map(String::as_str));
        match near {
            Some(near) => format!("unknown format `{word}`; did you mean `{near}`?"),
            None => format!("unknown format `{word}`; use one of {}", words.join(", ")),
        }
    })?;
    match file {
        "" => Err("expected a file after the =".to_owned()),
        "-" => Err(format!(
            "standard output is for --format {word}; expected a file"
        )),
        file => Ok((format, PathBuf::from(file))),
    }
}

/// The reason of an allowance, which is a part of a comment.
fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("expected a reason".to_owned());
    }
    if text.chars().any(char::is_control) {
        return Err("expected one line of text".to_owned());
    }
    if text.contains("--") || text.ends_with('-') {
        return Err("a comment in XML has no `--`, and does not end in `-`".to_owned());
    }
    Ok(text.to_owned())
}

/// An age in seconds.
fn age(text: &str) -> Result<u64, String> {
    let error = || "expected a number and h, d or w, such as 30d".to_owned();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let hours = match &text[number.len()..] {
        "h" => 1,
        "d" => 24,
        "w" => 7 * 24,
        _ => return Err(error()),
    };
    let number: u64 = number.parse().map_err(|_| error())?;
    number.checked_mul(hours * 3600).ok_or_else(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of each subcommand and of those below it.
    fn paths(command: &clap::Command, above: &[String], paths: &mut Vec<Vec<String>>) {
        for below in command.get_subcommands() {
            let mut path = above.to_vec();
            path.push(below.get_name().to_owned());
            self::paths(below, &path, paths);
            paths.push(path);
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::late().debug_assert();
        Cli::whole().debug_assert();
    }

    #[test]
    fn every_command_has_examples_and_each_is_a_command_line() {
        let whole = Cli::whole().disable_help_subcommand(true);
        let mut found = vec![Vec::new()];
        paths(&whole, &[], &mut found);
        let mut examples = 0;
        for path in found {
            let mut command = &whole;
            for name in &path {
                command = command.find_subcommand(name).unwrap();
            }
            let help = command.get_after_long_help().or(command.get_after_help());
            let help = help.map(ToString::to_string);
            let help = help.unwrap_or_default();
            assert!(help.starts_with("Examples:\n  "), "{path:?}: {help}");
            for line in help.lines().skip(1) {
                let line = line.trim().split("   ").next().unwrap();
                let Some(at) = line.find("vmdisk ").filter(|_| !line.starts_with("http")) else {
                    continue;
                };
                let words = line[at..].split_whitespace();
                let words: Vec<OsString> = words.map(OsString::from).collect();
                let parsed = Cli::read(&words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
                examples += 1;
            }
        }
        assert!(examples > 40, "{examples}");
    }

    /// A test of the guides runs what the page shows.
    #[test]
    fn the_page_of_commands_shows_the_help_of_each() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
        let page = std::fs::read_to_string(page).unwrap();
        let whole = Cli::whole().disable_help_subcommand(true);
        let mut found = Vec::new();
        paths(&whole, &[], &mut found);
        let is_shown = |path: &&Vec<String>| {
            let top = whole.find_subcommand(&path[0]);
            !top.is_some_and(clap::Command::is_hide_set)
        };
        for path in found.iter().filter(is_shown) {
            let line = format!("$ vmdisk {} --help\n", path.join(" "));
            assert!(page.contains(&line), "{line}");
        }
    }

    #[test]
    fn arguments_that_are_built_later_are_described_in_the_same_way() {
        let mut found = vec![Vec::new()];
        paths(&Cli::whole(), &[], &mut found);
        assert!(found.len() > 20, "{found:?}");
        for path in found {
            for word in ["-h", "--help", "--no-such-option"] {
                let words = ["vmdisk"]
                    .into_iter()
                    .chain(path.iter().map(String::as_str));
                let words: Vec<&str> = words.chain([word]).collect();
                let text = |command: clap::Command| {
                    let result = command.try_get_matches_from(&words);
                    result.err().map(|error| error.render().to_string())
                };
                assert_eq!(text(Cli::late()), text(Cli::whole()), "{words:?}");
            }
        }
    }
}
