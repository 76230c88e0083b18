//! The command line of `vmdisk bench`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use vmdisk::model::Bytes;
use vmdisk_bench_runner::{EngineKind, MIN_ROUNDS, PRESETS, Workload};

use crate::parsers::rule;

#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) command: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Measure a preset, a plan, or the linter's proposals for a guest.
    Run(Box<RunArgs>),
    /// Measure reads of files and devices that exist, side by side; nothing is written to them.
    Read(Box<ReadArgs>),
    /// Resume a stopped run.
    Resume(ResumeArgs),
    /// Write the report of a run, finished or not.
    Report(ReportArgs),
    /// Compare two runs that differ in one thing.
    ///
    /// Compares ratios of cells to their baselines, each from the same round. Exits with 1 if a cell is slower
    /// in the second run by more than the tolerance, and with 2 if the machine changed between the runs, so
    /// that no verdict is possible.
    Compare(CompareArgs),
    /// Show the runs that were saved under a name, in the order of time.
    History(HistoryArgs),
    /// Measure a rule's claim about speed, with the example on its page.
    Verify(Box<VerifyArgs>),
    /// List the presets, or print the plan of one.
    Presets(PresetsArgs),
    /// Mark a block device that benchmarks may overwrite.
    ///
    /// Refuses a device that is mounted, holds a file system, volume, partition or any other signature, is open or
    /// configured in a guest, or has a first or last MiB that is not zero. After the serial number was typed, the
    /// marker is written at both ends of the device. From then on, everything between may be overwritten.
    PrepareDevice(PrepareDeviceArgs),
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// A preset; `vmdisk bench presets` lists them.
    #[arg(value_name = "PRESET", value_parser = preset, required_unless_present = "plan")]
    pub(crate) preset: Option<String>,
    /// A plan in YAML instead of a preset.
    #[arg(long, value_name = "FILE", conflicts_with = "preset")]
    pub(crate) plan: Option<PathBuf>,
    /// The guest for the preset `lint`: libvirt XML or a QEMU command line.
    #[arg(long, value_name = "FILE", required_if_eq("preset", "lint"))]
    pub(crate) domain: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: WhereArgs,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ReadArgs {
    /// Files and block devices; the first is the baseline. They are opened read-only, and may be in use.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Also read through the host's page cache.
    #[arg(long, help_heading = "What")]
    pub(crate) buffered: bool,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// How to measure.
#[derive(Args, Debug)]
pub(crate) struct HowArgs {
    /// Print the plan, its duration and the required space, without measuring.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Workload, such as 4k-random-read-qd32, instead of the plan's; may be repeated.
    #[arg(long = "workload", value_name = "WORKLOAD", value_parser = workload, help_heading = "What")]
    pub(crate) workloads: Vec<String>,
    /// Measure only this configuration and its baseline; may be repeated.
    #[arg(long, value_name = "CONFIGURATION", help_heading = "What")]
    pub(crate) only: Vec<String>,
    /// Size of each disk, such as 256M, instead of the plan's.
    #[arg(long, value_name = "SIZE", value_parser = Bytes::parse, help_heading = "What")]
    pub(crate) size: Option<Bytes>,
    /// Answer within two minutes, or the time budget: short samples of small disks, as many of the plan's workloads and
    /// configurations as fit, and the rest of the time for the best two.
    #[arg(long, conflicts_with_all = ["seconds", "rounds"], help_heading = "How often")]
    pub(crate) quick: bool,
    /// Seconds of each sample, instead of the plan's.
    #[arg(long, value_name = "SECONDS", help_heading = "How often")]
    pub(crate) seconds: Option<f64>,
    /// Number of rounds; fewer than 6 cannot show a difference.
    #[arg(long, value_name = "N", default_value_t = MIN_ROUNDS, value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "How often")]
    pub(crate) rounds: u32,
    /// Continue until every comparison is this precise, such as 5%.
    #[arg(long, value_name = "PERCENT", value_parser = percent, help_heading = "How often")]
    pub(crate) precision: Option<f64>,
    /// Maximum number of rounds, with --precision.
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=1000), requires = "precision", help_heading = "How often")]
    pub(crate) most_rounds: u32,
    /// Skip the uncounted warm-up round.
    #[arg(long, help_heading = "How often")]
    pub(crate) no_warm_up: bool,
    /// Seed of the order of each round; by default from the clock. The report includes it.
    #[arg(long, value_name = "NUMBER", help_heading = "How often")]
    pub(crate) seed: Option<u64>,
    /// Start no further round after this time, such as 90s, 10m or 2h, once the minimum rounds are complete; those may
    /// take twice as long.
    #[arg(long, value_name = "TIME", default_value = "10m", default_value_if("quick", "true", "2m"), value_parser = seconds, help_heading = "Budgets")]
    pub(crate) time_budget: f64,
    /// Maximum size of all images together.
    #[arg(long, value_name = "SIZE", default_value = "5G", value_parser = Bytes::parse, help_heading = "Budgets")]
    pub(crate) space_budget: Bytes,
    /// Measure even if the machine is not quiet, and say so in the report.
    #[arg(long)]
    pub(crate) noisy: bool,
    /// Directory for samples and reports, which must not exist; by default it is named
    /// after the plan and the time.
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Also add the figures, with their conditions, to this facts file of the host.
    #[arg(long, value_name = "FILE")]
    pub(crate) to_facts: Option<PathBuf>,
    /// Save the run under this name, beside the earlier ones.
    #[arg(long, value_name = "NAME", value_parser = baseline_name, help_heading = "Over time")]
    pub(crate) save_baseline: Option<String>,
    /// Compare with the newest run of this name; the exit status is that of `vmdisk bench compare`.
    #[arg(long, value_name = "NAME", value_parser = baseline_name, help_heading = "Over time")]
    pub(crate) baseline: Option<String>,
    /// Directory of the runs with names.
    #[arg(long, value_name = "DIR", default_value = BASELINES, help_heading = "Over time")]
    pub(crate) baselines: PathBuf,
}

/// The directory of the runs with names.
const BASELINES: &str = "vmdisk-baselines";

/// Changes up to this are ignored.
pub(crate) const TOLERANCE: f64 = 0.05;

#[derive(Args, Debug)]
pub(crate) struct HistoryArgs {
    /// The name of `--save-baseline`.
    #[arg(value_name = "NAME", value_parser = baseline_name)]
    pub(crate) name: String,
    /// Directory of the runs with names.
    #[arg(long, value_name = "DIR", default_value = BASELINES)]
    pub(crate) baselines: PathBuf,
    /// The format.
    #[arg(long, value_name = "FORMAT", value_parser = formats(&["text", "markdown", "html", "svg"]), default_value = "text")]
    pub(crate) format: ReportFormat,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Where to write what is measured; shared by run and verify.
#[derive(Args, Debug, Default)]
pub(crate) struct WhereArgs {
    /// Directory for images; repeat it to make the directory a factor.
    #[arg(long = "directory", value_name = "DIR", help_heading = "What")]
    pub(crate) directories: Vec<PathBuf>,
    /// Engine, instead of the plan's.
    #[arg(long, value_name = "ENGINE", value_parser = engine, help_heading = "What")]
    pub(crate) engine: Option<EngineKind>,
    /// Block device prepared with `vmdisk bench prepare-device`, under /dev/disk/by-id.
    #[arg(
        long,
        value_name = "PATH",
        requires = "confirm_serial",
        help_heading = "What"
    )]
    pub(crate) destroy_data_on: Option<PathBuf>,
    /// The serial number of that device.
    #[arg(
        long,
        value_name = "SERIAL",
        requires = "destroy_data_on",
        help_heading = "What"
    )]
    pub(crate) confirm_serial: Option<String>,
    /// Socket of a vhost-user-blk device that a running program serves, such as SPDK or qemu-storage-daemon; its disk
    /// is overwritten.
    #[arg(long, value_name = "SOCKET", help_heading = "What")]
    pub(crate) destroy_data_behind: Option<PathBuf>,
    /// Volume group in which thin pools may be created and removed.
    #[arg(long, value_name = "GROUP", help_heading = "What")]
    pub(crate) group: Option<String>,
    /// Kernel for guests, instead of the host's: a bootable image, or the directory of an unpacked
    /// kernel package.
    #[arg(long, value_name = "PATH", help_heading = "What")]
    pub(crate) kernel: Option<PathBuf>,
    /// The modules of that image, such as /lib/modules/6.1.0-50-cloud-amd64.
    #[arg(long, value_name = "DIR", requires = "kernel", help_heading = "What")]
    pub(crate) modules: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ResumeArgs {
    /// The directory of the run.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Measure even if the machine is not quiet.
    #[arg(long)]
    pub(crate) noisy: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// The directory of a run, or a result in JSON.
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// The format.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) format: ReportFormat,
    /// Compare with this configuration instead of the baselines of the plan.
    #[arg(long, value_name = "CONFIGURATION")]
    pub(crate) baseline: Option<String>,
    /// Compare these pairs of configurations, or all pairs; verdicts are corrected for their number.
    #[arg(
        long,
        value_name = "ONE:OTHER,…",
        num_args = 0..=1,
        require_equals = true,
        value_delimiter = ',',
        value_parser = pair,
        conflicts_with_all = ["baseline", "format", "to"]
    )]
    pub(crate) pairs: Option<Vec<(String, String)>>,
    /// Export fio's jobs and reports, into the new directory given with --output, or allowances for a configuration.
    #[arg(long, value_name = "WHAT", value_enum, conflicts_with = "format")]
    pub(crate) to: Option<ExportTo>,
    /// Add the figures, with their conditions, to this facts file of the host instead; a new file gets the facts of the run.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["baseline", "format", "output", "pairs", "to"])]
    pub(crate) to_facts: Option<PathBuf>,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Parses two names of configurations.
fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once(':');
    let pair = pair.map(|(one, other)| (one.to_owned(), other.to_owned()));
    pair.ok_or_else(|| "expected two configurations, such as thin:thick".to_owned())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Tables for a terminal.
    Text,
    /// All data, for programs; described by `vmdisk print schema bench`.
    Json,
    /// One line per sample.
    Csv,
    /// Tables for an issue or a page.
    Markdown,
    /// A page with pictures and tables, without scripts.
    Html,
    /// The pictures: ratios, latencies, samples over time, bytes at the devices.
    Svg,
}

/// Accepts some formats: a comparison has no samples for `csv`.
fn formats(names: &'static [&'static str]) -> impl TypedValueParser<Value = ReportFormat> {
    PossibleValuesParser::new(names)
        .map(|name| ReportFormat::from_str(&name, false).expect("each name is one of a format"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportTo {
    /// A job file for each cell, with the disk as `${DISK}`, and fio's reports.
    Fio,
    /// An allowance for each rule whose proposal was measured, with the figures.
    Allowance,
}

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// The directory of a run, or a result in JSON.
    #[arg(value_name = "FIRST")]
    pub(crate) first: PathBuf,
    /// The run to compare with the first.
    #[arg(value_name = "SECOND")]
    pub(crate) second: PathBuf,
    /// Ignore changes up to this.
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "5%")]
    pub(crate) tolerance: f64,
    /// The format.
    #[arg(long, value_name = "FORMAT", value_parser = formats(&["text", "json", "markdown", "html", "svg"]), default_value = "text")]
    pub(crate) format: ReportFormat,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// The name of a rule about speed.
    #[arg(value_name = "RULE", value_parser = rule(), hide_possible_values = true)]
    pub(crate) rule: String,
    #[command(flatten)]
    pub(crate) place: WhereArgs,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

#[derive(Args, Debug)]
pub(crate) struct PresetsArgs {
    /// Print the plan of this preset.
    #[arg(value_name = "PRESET", value_parser = preset)]
    pub(crate) preset: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct PrepareDeviceArgs {
    /// The device, by a stable name, such as one under /dev/disk/by-id.
    #[arg(value_name = "DEVICE")]
    pub(crate) device: PathBuf,
    /// The serial number of the device; prompted for by default.
    #[arg(long, value_name = "SERIAL")]
    pub(crate) confirm_serial: Option<String>,
}

/// The preset that is built from a guest.
pub(crate) const LINT: &str = "lint";

/// Returns the names of all presets.
pub(crate) fn preset_names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|preset| preset.name).chain([LINT])
}

fn preset(name: &str) -> Result<String, String> {
    if preset_names().any(|known| known == name) {
        return Ok(name.to_owned());
    }
    Err(match vmdisk_source::nearest(name, preset_names()) {
        Some(near) => format!("unknown preset; did you mean `{near}`?"),
        None => format!(
            "expected one of {}",
            preset_names().collect::<Vec<_>>().join(", ")
        ),
    })
}

/// Checks the name of a baseline, which is the name of a folder.
fn baseline_name(text: &str) -> Result<String, String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match !text.is_empty() && !text.starts_with('.') && text.chars().all(is_part) {
        true => Ok(text.to_owned()),
        false => Err("expected letters, digits, `-`, `_` and `.`".to_owned()),
    }
}

/// Checks the name of a workload.
fn workload(name: &str) -> Result<String, String> {
    Workload::by_name(name, 1.0, 0.0).map(|workload| workload.name)
}

/// Parses the name of an engine.
fn engine(name: &str) -> Result<EngineKind, String> {
    let known: Vec<EngineKind> = EngineKind::ALL
        .iter()
        .copied()
        .filter(|kind| *kind != EngineKind::Mock)
        .collect();
    known
        .iter()
        .copied()
        .find(|kind| kind.name() == name)
        .ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|kind| kind.name()).collect();
            format!("expected one of {}", names.join(", "))
        })
}

/// Parses a percentage as a share.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    number
        .parse::<f64>()
        .ok()
        .filter(|percent| (0.1..=100.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "expected 0.1% to 100%, such as 5%".to_owned())
}

/// Parses a time in seconds.
fn seconds(text: &str) -> Result<f64, String> {
    let error = || "expected a number and s, m or h, such as 10m".to_owned();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[number.len()..] {
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(error()),
    };
    let number = number.parse::<f64>().ok();
    number
        .filter(|number| (0.0..=1e6).contains(number))
        .map(|number| number * unit)
        .ok_or_else(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_and_percentages_are_accepted() {
        assert_eq!(seconds("90s"), Ok(90.0));
        assert_eq!(seconds("1.5h"), Ok(5400.0));
        assert_eq!(percent("5%"), Ok(0.05));
        for bad in ["", "10", "m", "-1m", "10d", "1e99h"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
        for bad in ["", "0", "101%", "nan"] {
            assert!(percent(bad).is_err(), "{bad}");
        }
        assert_eq!(
            preset("five-backend"),
            Err("unknown preset; did you mean `five-backends`?".to_owned())
        );
        assert!(engine("mock").is_err());
    }
}
