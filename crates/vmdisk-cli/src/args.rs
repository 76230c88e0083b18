//! The command line.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use vmdisk::model::Bytes;
use vmdisk::redact::Level;
use vmdisk::{Policy, Severity, Target};
use vmdisk_collect::FactGroup;

use crate::baseline::task::BaselineTask;
use crate::bench::args::BenchArgs;
use crate::config::ConfigArgs;
use crate::lint::configuration_args::ConfigurationArgs;
use crate::lint::host_of_files::{HostOfFiles, host_of_files};
use crate::lint::hypervisor::GuestArgs;
use crate::lint::selection::SelectionArgs;
use crate::parsers::{page_words, rule, severity_parser};

/// The tool that knows VM disks.
///
/// Checks, generates, explains and measures the disk configuration of QEMU/libvirt guests. The machine that
/// it runs on is examined only on request (`--live`, `vmdisk facts`, `vmdisk bench`).
///
/// Exit status: 0 nothing at or above the threshold, 1 findings, 2 something could not be done.
#[derive(Debug, Parser)]
#[command(name = "vmdisk", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// When to colour what people read.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto, global = true)]
    pub(crate) color: When,
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
    /// Check libvirt domains and disks.
    Lint(Box<LintArgs>),
    /// Write disks from a short description, with the options that fit the host, and say why.
    Generate(Box<GenerateArgs>),
    /// Turn libvirt XML, a QEMU command line or a spec into one of the others.
    Convert(ConvertArgs),
    /// Show the I/O path of disks, from the guest's device to the drives.
    Trace(Box<TraceArgs>),
    /// Collect what there is to know about this host.
    Facts(Box<FactsArgs>),
    /// Show what a QEMU, libvirt, machine type or kernel can do.
    Capabilities(CapabilitiesArgs),
    /// Show what the header of an image says, and what is wrong with it.
    Image(ImageArgs),
    /// Measure disk configurations on this host.
    Bench(Box<BenchArgs>),
    /// Write a configuration file for lint.
    Config(ConfigArgs),
    /// Edit the definition of a guest of libvirt: check it, start the editor, check the result, define it.
    Edit(Box<EditArgs>),
    /// Write known findings to a file, so that lint counts only new ones.
    Baseline(BaselineArgs),
    /// Check files in an editor: a server of the Language Server Protocol on standard input and output.
    Lsp(LspArgs),
    /// Show the page of a rule.
    Explain(ExplainArgs),
    /// List the rules.
    Rules(RulesArgs),
    /// Print the JSON Schema of a file format.
    Schema(SchemaArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Print the manual page, or write all of them into a directory.
    Man(ManArgs),
}

/// Host facts and target; shared by lint and generate.
#[derive(Args, Debug, Default)]
pub(crate) struct HostArgs {
    /// What `vmdisk facts` collected on the host in question, in JSON or YAML. lint takes several
    /// hosts: repeated, a directory, or a quoted pattern such as 'facts/*.json'.
    #[arg(long, value_name = "FILE", help_heading = "Host and target")]
    pub(crate) facts: Vec<PathBuf>,
    /// Ask the host this runs on.
    #[arg(long, conflicts_with = "facts", help_heading = "Host and target")]
    pub(crate) live: bool,
    /// The target, such as qemu=10.0,libvirt=11.3,machine=pc-q35-10.0,kernel=6.12; missing
    /// parts are taken from the facts.
    #[arg(long, value_name = "KEY=VALUE,…", help_heading = "Host and target")]
    pub(crate) target: Option<Target>,
    /// Start this QEMU without a machine and query its capabilities, which override its version; or
    /// read a recording by `vmdisk capabilities --format recording`.
    #[arg(long, value_name = "PATH", help_heading = "Host and target")]
    pub(crate) qemu: Option<PathBuf>,
    /// Who shares the host; moves severities. The default is multi-tenant.
    #[arg(
        long,
        value_name = "POLICY",
        value_parser = policy_parser(),
        help_heading = "Host and target"
    )]
    pub(crate) policy: Option<Policy>,
}

#[derive(Args, Debug)]
pub(crate) struct LintArgs {
    /// Files, directories, patterns, or - for standard input: libvirt XML, command lines of QEMU, files of its
    /// -readconfig, or specs. In a directory, every .xml file that holds a domain or a disk is checked, every .args
    /// or .cmdline file that starts QEMU, every .cfg file with its options, and every .yaml or .yml file that is a
    /// spec, except files that .gitignore excludes.
    #[arg(value_name = "PATH", required_unless_present_any = ["domains", "all_domains", "running"])]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) guests: GuestArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// The host that runs the files of this pattern: with --facts of several hosts, the name of its facts file
    /// without the extension. Guests of one host are compared with each other. May be repeated; the first match counts.
    #[arg(long = "host", value_name = "NAME=PATTERN", value_parser = host_of_files, help_heading = "Host and target")]
    pub(crate) hosts: Vec<HostOfFiles>,
    /// The least severity that makes the exit status 1. The default is warning.
    #[arg(long, value_name = "SEVERITY", value_parser = severity_parser())]
    pub(crate) fail_on: Option<Severity>,
    /// Exit with 0 instead of 1, whatever is found; errors still exit with 2.
    #[arg(long)]
    pub(crate) exit_zero: bool,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    #[command(flatten)]
    pub(crate) configuration: ConfigurationArgs,
    /// Do not count the findings that this file lists. `vmdisk baseline create` writes it; stale entries are reported.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    #[arg(skip)]
    pub(crate) task: BaselineTask,
    /// How to print findings.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LintFormat::Full)]
    pub(crate) format: LintFormat,
    /// Write findings to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Also write a report in this format to this file; may be repeated. It holds every finding, whatever is printed.
    #[arg(long, value_name = "FORMAT=FILE", value_parser = report, conflicts_with = "diff")]
    pub(crate) report: Vec<(LintFormat, PathBuf)>,
    /// Print the number of findings of each rule instead of the findings, with --format full, concise or json.
    #[arg(long, conflicts_with = "diff")]
    pub(crate) statistics: bool,
    /// Print the settings of each input, with the configuration that they come from, and check nothing.
    #[arg(long, conflicts_with_all = ["fix", "diff", "statistics", "output"], help_heading = "Configuration")]
    pub(crate) show_settings: bool,
    /// Print the files that would be checked, one per line, and check none of them.
    #[arg(long, conflicts_with_all = ["fix", "diff", "statistics", "output"])]
    pub(crate) show_files: bool,
    /// Apply the fixes that change nothing but the mistake; of standard input, print the result.
    #[arg(long, help_heading = "Fixes")]
    pub(crate) fix: bool,
    /// With --fix or --diff: also the fixes that trade something or that the guest sees.
    #[arg(long, help_heading = "Fixes")]
    pub(crate) unsafe_fixes: bool,
    /// Allow every finding in its file, with this reason: comments are added to XML and specs, and nothing else changes.
    #[arg(
        long,
        value_name = "REASON",
        value_parser = reason,
        conflicts_with_all = ["fix", "unsafe_fixes", "diff", "try_qemu"],
        help_heading = "Fixes"
    )]
    pub(crate) add_allowances: Option<String>,
    /// Print what --fix would change as a diff that `git apply` takes, and change nothing.
    #[arg(long, conflicts_with = "format", help_heading = "Fixes")]
    pub(crate) diff: bool,
    /// Also start this QEMU, paused, with the machine and the disks of each file, and report its messages.
    /// Empty images replace the guest's images, which are not opened. Without --qemu the rules query it, too.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["fix", "diff"])]
    pub(crate) try_qemu: Option<PathBuf>,
    /// The name of standard input in reports.
    #[arg(long, value_name = "PATH")]
    pub(crate) stdin_filename: Option<PathBuf>,
    /// Also print findings that are allowed in the file or ignored here, each with the reason.
    #[arg(long)]
    pub(crate) show_allowed: bool,
    /// Check this many files at once; by default as many as there are processors.
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Exit with 1 if a rule could not be checked because facts, or the permission to collect them, are missing.
    #[arg(long)]
    pub(crate) fail_on_unchecked: bool,
    /// Exit with 1 if facts are older than this, such as 12h, 30d or 8w, or do not say when they were collected.
    #[arg(long, value_name = "AGE", value_parser = age, requires = "facts", help_heading = "Host and target")]
    pub(crate) max_facts_age: Option<u64>,
    /// Skip files that are named and hold no guest, as in a directory, instead of failing.
    #[arg(long)]
    pub(crate) skip_foreign: bool,
    /// List what could not be checked, and why.
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print only findings that fail the run and inputs that could not be read.
    #[arg(long, short, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LintFormat {
    /// For people: the place, the reasons and the fix.
    Full,
    /// One line for each finding.
    Concise,
    /// A versioned report for programs; `vmdisk schema report` describes it.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Annotations of a GitHub workflow.
    Github,
    /// GitLab's code quality report.
    Gitlab,
    /// JUnit: a test case for each finding, which fails at or above --fail-on.
    Junit,
    /// Checkstyle's report.
    Checkstyle,
    /// JSON Lines: a finding or an unreadable input per line; `vmdisk schema report-line` describes it.
    JsonLines,
    /// Metrics for the textfile collector of Prometheus' node_exporter.
    Prometheus,
    /// A page with the findings, the I/O paths as pictures and the fixes as diffs.
    Html,
}

impl LintArgs {
    /// The arguments of a run over these inputs, with the default of every option.
    pub(crate) fn of(paths: Vec<PathBuf>) -> Self {
        LintArgs {
            paths,
            guests: GuestArgs::default(),
            host: HostArgs::default(),
            hosts: Vec::new(),
            fail_on: None,
            exit_zero: false,
            selection: SelectionArgs::default(),
            configuration: ConfigurationArgs::default(),
            baseline: None,
            task: BaselineTask::Use,
            format: LintFormat::Full,
            output: None,
            report: Vec::new(),
            statistics: false,
            show_settings: false,
            show_files: false,
            fix: false,
            unsafe_fixes: false,
            add_allowances: None,
            diff: false,
            try_qemu: None,
            stdin_filename: None,
            show_allowed: false,
            jobs: None,
            fail_on_unchecked: false,
            max_facts_age: None,
            skip_foreign: false,
            verbose: false,
            quiet: false,
        }
    }
}

impl LintFormat {
    /// True if people read it, and the summary after it.
    pub(crate) const fn is_for_people(self) -> bool {
        matches!(self, LintFormat::Full | LintFormat::Concise)
    }
}

#[derive(Args, Debug)]
pub(crate) struct BaselineArgs {
    #[command(subcommand)]
    pub(crate) command: BaselineCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BaselineCommand {
    /// Write the findings of these inputs to a baseline. `vmdisk lint --baseline` counts only other findings.
    Create(Box<BaselineCreateArgs>),
    /// Remove what these inputs no longer have from a baseline. Nothing is added to it.
    Prune(Box<BaselineInputArgs>),
}

#[derive(Args, Debug)]
pub(crate) struct BaselineCreateArgs {
    #[command(flatten)]
    pub(crate) input: BaselineInputArgs,
    /// Replace the file if it exists.
    #[arg(long)]
    pub(crate) force: bool,
}

/// The inputs of a run, and how they are checked; as for `vmdisk lint`.
#[derive(Args, Debug)]
pub(crate) struct BaselineInputArgs {
    /// Files, directories or patterns, as for `vmdisk lint`.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// The baseline; by default the file that vmdisk.toml names, otherwise vmdisk-baseline.json.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    #[command(flatten)]
    pub(crate) configuration: ConfigurationArgs,
    /// Check this many files at once; by default as many as there are processors.
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Skip files that are named and hold no guest, instead of failing.
    #[arg(long)]
    pub(crate) skip_foreign: bool,
}

#[derive(Args, Debug)]
pub(crate) struct EditArgs {
    /// Name of the guest.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The libvirt to ask, such as qemu:///system; by default virsh chooses.
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
    /// libvirt XML, a command line of QEMU, a file of its -readconfig or a spec, or - for standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Only this disk, by its target or the id of its device.
    #[arg(value_name = "DISK")]
    pub(crate) disk: Option<String>,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// The XML of a pool or volume that disks are on; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) storage: Vec<PathBuf>,
    /// How to print it; `vmdisk schema trace` describes the JSON.
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
    /// For programs.
    Json,
    /// A picture.
    Svg,
}

#[derive(Args, Debug)]
pub(crate) struct GenerateArgs {
    /// A spec in YAML or JSON, or - for standard input; `vmdisk schema spec` describes it.
    #[arg(value_name = "SPEC")]
    pub(crate) spec: Option<PathBuf>,
    /// A disk in one line, such as lvm:vg0/web1,bus=virtio or nbd://host/export; may be repeated.
    #[arg(long = "disk", value_name = "KIND:LOCATION,…")]
    pub(crate) disks: Vec<String>,
    /// The output format.
    #[arg(long, value_name = "FORM", value_enum, default_value_t = GenerateForm::LibvirtXml)]
    pub(crate) to: GenerateForm,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// Print on standard error why everything was chosen; `vmdisk schema explain` describes the JSON.
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "text"
    )]
    pub(crate) explain: Option<ExplainFormat>,
    /// Write the result although it breaks this rule; may be repeated. Without it an error refuses.
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = rule(), hide_possible_values = true)]
    pub(crate) ignore: Vec<String>,
    /// How to write QEMU's arguments, with --to qemu.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = QemuFormat::Lines)]
    pub(crate) qemu_format: QemuFormat,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Add the disks to this libvirt domain and return all of it: they are planned around what it has, and
    /// everything else is unchanged.
    #[arg(
        long,
        value_name = "DOMAIN.xml",
        conflicts_with_all = ["name", "memory", "vcpus"],
        help_heading = "Guest"
    )]
    pub(crate) into: Option<PathBuf>,
    /// Name of the guest.
    #[arg(long, value_name = "NAME", help_heading = "Guest")]
    pub(crate) name: Option<String>,
    /// Memory of the guest, such as 4G; a bare number counts MiB, as in virt-install and QEMU.
    #[arg(long, value_name = "SIZE", value_parser = memory, help_heading = "Guest")]
    pub(crate) memory: Option<Bytes>,
    /// Virtual processors of the guest.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Guest")]
    pub(crate) vcpus: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GenerateForm {
    /// A libvirt <domain>.
    LibvirtXml,
    /// Only its <disk> elements.
    DiskXml,
    /// A QEMU command line.
    Qemu,
    /// A file for QEMU's -readconfig.
    Readconfig,
    /// The QMP commands that plug the disks into a QEMU that runs, one to a line.
    Qmp,
    /// The argument of each -blockdev as JSON, as QMP's blockdev-add takes it.
    BlockdevJson,
    /// The commands that create the images.
    Script,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExplainFormat {
    /// A line for each option.
    Text,
    /// For programs.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum QemuFormat {
    /// A shell command, one option to a line.
    Lines,
    /// A JSON array of arguments.
    Json,
    /// One argument to a line, nothing quoted.
    Args,
}

#[derive(Args, Debug)]
pub(crate) struct ConvertArgs {
    /// libvirt XML, a command line of QEMU, a file of its -readconfig, QMP commands or a spec, or - for standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
    /// The output format.
    #[arg(long, value_name = "FORM", value_enum)]
    pub(crate) to: ConvertForm,
    /// Fill in what libvirt fills in when a guest is defined: drivers, buses, controllers, and the places of
    /// disks on them.
    #[arg(long)]
    pub(crate) resolved: bool,
    /// Say on standard error what was filled in, and why, with --resolved.
    #[arg(long, requires = "resolved")]
    pub(crate) explain: bool,
    /// The target, such as qemu=10.0,machine=pc-q35-10.0.
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub(crate) target: Option<Target>,
    /// Start this QEMU without a machine and ask it what it can do, or read a recording of one.
    #[arg(long, value_name = "PATH")]
    pub(crate) qemu: Option<PathBuf>,
    /// How nodes and devices are named, with --to qemu, readconfig or qmp.
    #[arg(long, value_name = "STYLE", value_enum, default_value_t = ConvertStyle::Readable)]
    pub(crate) style: ConvertStyle,
    /// How to write QEMU's arguments, with --to qemu.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = QemuFormat::Lines)]
    pub(crate) qemu_format: QemuFormat,
    /// The XML of a pool or volume that disks are on; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) storage: Vec<PathBuf>,
    /// Convert the guest without this disk, by its target or the id of its device; may be given several times.
    #[arg(long, value_name = "DISK")]
    pub(crate) without: Vec<String>,
    /// Exit with status 1 if anything is not carried over.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConvertForm {
    /// A libvirt <domain>; of a text that holds disks alone, its <devices>.
    LibvirtXml,
    /// Only its <disk> elements.
    DiskXml,
    /// A QEMU command line.
    Qemu,
    /// A file for QEMU's -readconfig.
    Readconfig,
    /// The QMP commands that plug the disks into a QEMU that runs, one to a line.
    Qmp,
    /// A spec, which `vmdisk generate` takes.
    Spec,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConvertStyle {
    /// For people: nodes are named after the disk and their role.
    Readable,
    /// As libvirt would have them.
    Libvirt,
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
    /// Collect what there is to know about this host; what happens without a subcommand.
    Collect(CollectArgs),
    /// Show a facts file to people.
    Show(ShowArgs),
    /// Compare two facts files, and what the rules say with each.
    Diff(DiffArgs),
    /// Take the names out of a facts file or of a configuration.
    Redact(RedactArgs),
    /// Check that a facts file is understood, and not too old.
    Check(CheckArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// A facts file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// The facts before.
    #[arg(value_name = "OLD")]
    pub(crate) old: PathBuf,
    /// The facts after.
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,
    /// Also list the findings about this domain that appear or disappear; may be repeated.
    #[arg(long = "for", value_name = "FILE.xml")]
    pub(crate) domains: Vec<PathBuf>,
    /// How to print it.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = TextFormat::Text)]
    pub(crate) format: TextFormat,
    /// Also compare values that change while nobody changes the host, such as free space.
    #[arg(long)]
    pub(crate) volatile: bool,
}

#[derive(Args, Debug)]
pub(crate) struct RedactArgs {
    /// A facts file, or a libvirt domain or disk. Of a configuration only what vmdisk reads is written.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// File with the salt: any bytes, at least 16, kept where the redacted files are not. Without it
    /// the environment variable VMDISK_SALT holds the salt.
    #[arg(long, value_name = "FILE")]
    pub(crate) salt_file: Option<PathBuf>,
    /// How much to take out: full keeps names, shareable makes tokens of them, minimal also drops
    /// what no rule needs.
    #[arg(long, value_name = "LEVEL", default_value = Level::Shareable.as_str(), value_parser = level_parser())]
    pub(crate) level: Level,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct LspArgs {
    /// Facts files of the hosts, for every file; without it those that the nearest vmdisk.toml names.
    #[arg(long, value_name = "FILE")]
    pub(crate) facts: Vec<PathBuf>,
    /// The target, such as qemu=10.0,libvirt=11.3; missing parts are taken from the facts.
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub(crate) target: Option<Target>,
    /// Who shares the host.
    #[arg(long, value_name = "POLICY", value_parser = policy_parser())]
    pub(crate) policy: Option<Policy>,
    /// Use this configuration for every file, instead of the nearest vmdisk.toml above each.
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
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// How old it may be, such as 12h, 30d or 8w.
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) max_age: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct CollectArgs {
    /// Images, devices and directories to look at. A file with libvirt XML counts as --for.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Also look at what the disks of these guests use: a file, a directory, a pattern, or - for standard
    /// input; may be repeated.
    #[arg(long = "for", value_name = "FILE")]
    pub(crate) domains: Vec<PathBuf>,
    /// Groups of facts beside core, which needs no rights and starts no program; these start programs.
    /// lvm asks `lvs` and `lvmconfig` about thin pools, dm asks `dmsetup` about encryption, thin pools
    /// and multipath, nvme asks `nvme` for the formats of drives, zfs asks `zfs` for properties,
    /// programs asks each QEMU for its version and what it can do, kvm tries whether a guest runs.
    #[arg(
        long = "group",
        value_name = "GROUP",
        value_delimiter = ',',
        value_parser = group_parser()
    )]
    pub(crate) groups: Vec<FactGroup>,
    /// How to write the facts.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = FactsFormat::Json)]
    pub(crate) format: FactsFormat,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Look at a recorded system below this directory instead of the running one. Asked for no path
    /// and no group, it gives what it was recorded for.
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) root: PathBuf,
    /// Try direct I/O with a nameless file in this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) probe_dio: Option<PathBuf>,
    /// Record the host into this directory, new or empty: copies of the files that were read, as they
    /// are, and what the kernel answered. `--root` finds the same facts there.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["root", "probe_dio"])]
    pub(crate) record: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FactsFormat {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct CapabilitiesArgs {
    #[command(subcommand)]
    pub(crate) command: Option<CapabilitiesCommand>,
    /// Answer for this target, such as qemu=10.0,libvirt=11.3,machine=pc-q35-10.0,kernel=6.12.
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub(crate) target: Option<Target>,
    /// Start this QEMU without a machine and ask it, or read a recording of one.
    #[arg(long, value_name = "PATH")]
    pub(crate) qemu: Option<PathBuf>,
    /// How to print it.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = CapabilitiesFormat::Text)]
    pub(crate) format: CapabilitiesFormat,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CapabilitiesCommand {
    /// Print what changes from one target to another: capabilities, device properties, node and object members.
    Diff(CapabilitiesDiffArgs),
}

#[derive(Args, Debug)]
pub(crate) struct CapabilitiesDiffArgs {
    /// A target such as qemu=7.2, or the path of a QEMU or of a recording.
    #[arg(value_name = "OLD")]
    pub(crate) old: String,
    /// The target to compare it with.
    #[arg(value_name = "NEW")]
    pub(crate) new: String,
    /// How to print it; `vmdisk schema capabilities-diff` describes the JSON.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = TextFormat::Text)]
    pub(crate) format: TextFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CapabilitiesFormat {
    /// For people.
    Text,
    /// For programs; `vmdisk schema capabilities` describes it.
    Json,
    /// The answers of the QEMU of --qemu, for --qemu on another host; `vmdisk schema recording`
    /// describes it.
    Recording,
}

#[derive(Args, Debug)]
pub(crate) struct ImageArgs {
    /// Images: files or block devices. Only headers are read.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Also look at the backing and data files that it names, and at theirs. Without it nothing that
    /// an image names is touched.
    #[arg(long)]
    pub(crate) chain: bool,
    /// The least severity that makes the exit status 1.
    #[arg(
        long,
        value_name = "SEVERITY",
        default_value = Severity::Warning.as_str(),
        value_parser = severity_parser()
    )]
    pub(crate) fail_on: Severity,
    /// How to print it.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = TextFormat::Text)]
    pub(crate) format: TextFormat,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// Name of a rule, which `vmdisk rules` lists, or words: the page with all of them is shown, also about advice
    /// that does not hold, as in `vmdisk explain cache=none unsafe`.
    #[arg(value_name = "RULE|WORDS", value_parser = page_words(), required = true, hide_possible_values = true)]
    pub(crate) words: Vec<String>,
    /// Format of the page.
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

#[derive(Args, Debug)]
pub(crate) struct RulesArgs {
    /// How to print them.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = TextFormat::Text)]
    pub(crate) format: TextFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

#[derive(Args, Debug)]
pub(crate) struct SchemaArgs {
    /// Which format.
    #[arg(value_name = "FORMAT", value_enum)]
    pub(crate) format: SchemaFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaFormat {
    /// What `vmdisk lint --format json` prints.
    Report,
    /// A line of `vmdisk lint --format json-lines`.
    ReportLine,
    /// What `vmdisk lint --statistics --format json` prints.
    Statistics,
    /// What `vmdisk trace --format json` prints.
    Trace,
    /// What `vmdisk.toml` holds.
    Config,
    /// What `vmdisk baseline create` writes.
    Baseline,
    /// What `vmdisk facts` prints and `--facts` reads.
    Facts,
    /// What `vmdisk generate` reads.
    Spec,
    /// What `vmdisk facts diff --format json` prints.
    FactsDiff,
    /// What `vmdisk generate --explain=json` prints.
    Explain,
    /// What `vmdisk image --format json` prints.
    Image,
    /// What `vmdisk capabilities --format json` prints.
    Capabilities,
    /// What `vmdisk capabilities diff --format json` prints.
    CapabilitiesDiff,
    /// What `vmdisk capabilities --format recording` prints and `--qemu` reads.
    Recording,
    /// What `vmdisk bench report --format json` prints.
    #[cfg(feature = "bench")]
    Bench,
    /// What `vmdisk bench compare --format json` prints.
    #[cfg(feature = "bench")]
    BenchCompare,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// Which shell.
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Write a page for every command into this directory instead of printing the main one.
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

fn policy_parser() -> impl TypedValueParser<Value = Policy> {
    PossibleValuesParser::new(Policy::ALL.iter().map(|policy| policy.as_str())).map(|word| {
        Policy::ALL
            .iter()
            .copied()
            .find(|policy| policy.as_str() == word)
            .unwrap_or_default()
    })
}

fn group_parser() -> impl TypedValueParser<Value = FactGroup> {
    PossibleValuesParser::new(FactGroup::ALL.map(FactGroup::name))
        .map(|word| FactGroup::from_name(&word).unwrap_or(FactGroup::Core))
}

fn level_parser() -> impl TypedValueParser<Value = Level> {
    PossibleValuesParser::new(Level::ALL.iter().map(|level| level.as_str())).map(|word| {
        *Level::ALL
            .iter()
            .find(|level| level.as_str() == word)
            .expect("clap lets only known words through")
    })
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
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
