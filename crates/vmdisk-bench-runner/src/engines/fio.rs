//! fio: job files, and results as measurements.
//!
//! A job is complete in its file: options on the command line would be overridden by it. fio uses threads instead of
//! processes, so that killing it ends all of them.

mod program;

pub(crate) use program::{InstalledFio, installed, needed, run};

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

use crate::{
    Access, Amount, BlockLoad, Direction, Error, InstallReplay, Latency, Load, Measurement,
    PERCENTILES, Phase, Semantics, Workload,
};

/// The name of the measured job.
pub(crate) const JOB: &str = "measured";

/// The target of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    /// A range of a file or block device.
    File {
        path: &'a str,
        offset: u64,
        length: u64,
        /// True if requests go through the page cache; written data is then synced within the timed seconds.
        is_buffered: bool,
    },
    /// A whole NBD export.
    Nbd { uri: &'a str, length: u64 },
    /// A directory for the files of an install replay.
    Directory { path: &'a str },
}

/// The I/O engine of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IoEngine {
    Libaio,
    IoUring,
}

impl IoEngine {
    /// Returns the best engine in the output of `fio --enghelp`.
    pub(crate) fn of_list(list: &str) -> Option<Self> {
        let has = |name: &str| list.lines().any(|line| line.trim() == name);
        if has("libaio") {
            Some(IoEngine::Libaio)
        } else {
            has("io_uring").then_some(IoEngine::IoUring)
        }
    }

    const fn name(self) -> &'static str {
        match self {
            IoEngine::Libaio => "libaio",
            IoEngine::IoUring => "io_uring",
        }
    }
}

/// A job file under construction.
struct JobText(String);

impl JobText {
    fn line(&mut self, key: &str, value: &dyn std::fmt::Display) {
        let _ = writeln!(self.0, "{key}={value}");
    }
}

/// Returns the text of a job. A first touch ends after one pass, in which the jobs share the disk.
pub(crate) fn job(
    workload: &Workload,
    phase: Phase,
    target: Target<'_>,
    engine: IoEngine,
    seed: u64,
) -> String {
    let mut text = JobText(String::from("[global]\nthread=1\ngroup_reporting=1\n"));
    text.line("randseed", &(seed >> 1));
    text.line("lat_percentiles", &1);
    text.line("percentile_list", &PERCENTILES.join(":"));
    match &workload.load {
        Load::Blocks(load) => blocks(&mut text, load, workload, phase, target, engine),
        Load::InstallReplay(replay) => install(&mut text, replay),
    }
    let _ = writeln!(text.0, "[{JOB}]");
    let share = match (&workload.load, phase) {
        (Load::Blocks(load), Phase::FirstTouch) => Some((load.jobs, load.block_bytes)),
        (Load::Blocks(_), Phase::Steady) | (Load::InstallReplay(_), _) => None,
    };
    place(&mut text, target, share);
    text.0
}

/// Requests of one size.
fn blocks(
    text: &mut JobText,
    load: &BlockLoad,
    workload: &Workload,
    phase: Phase,
    target: Target<'_>,
    engine: IoEngine,
) {
    let is_one_pass = phase == Phase::FirstTouch;
    let BlockLoad {
        access,
        block_bytes,
        depth,
        jobs,
        sync_every,
        ends_with_sync,
        is_blocking,
        rate,
    } = load;
    let is_nbd = matches!(target, Target::Nbd { .. });
    let name = match (is_nbd, is_blocking) {
        (true, _) => "nbd",
        (false, true) => "psync",
        (false, false) => engine.name(),
    };
    text.line("ioengine", &name);
    let is_buffered = matches!(
        target,
        Target::File {
            is_buffered: true,
            ..
        }
    );
    if !is_nbd {
        text.line("direct", &u8::from(!is_buffered));
        // The file is dropped from the page cache before; fio would also flush a device.
        text.line("invalidate", &0);
        if is_buffered && access.writes() {
            text.line("end_fsync", &1);
        }
        text.line("allow_file_create", &0);
    }
    text.line("rw", &words(*access));
    if *access == Access::RandomMixed {
        text.line("rwmixread", &70);
    }
    text.line("bs", block_bytes);
    text.line("iodepth", depth);
    text.line("numjobs", jobs);
    // Fresh data each time: repeated data could be deduplicated.
    text.line("randrepeat", &0);
    if !is_one_pass {
        text.line("norandommap", &1);
    }
    text.line("refill_buffers", &1);
    if let Some(rate) = rate {
        text.line("rate_iops", &(rate / jobs).max(1));
    }
    if let Some(every) = sync_every {
        text.line("fsync", every);
    }
    if *ends_with_sync && !is_buffered {
        text.line("end_fsync", &1);
    }
    match workload.amount {
        Amount::Seconds(seconds) => {
            if !is_one_pass {
                text.line("time_based", &1);
            }
            text.line("runtime", &milliseconds(seconds));
        }
        Amount::Operations(count) => text.line("number_ios", &(count / u64::from(*jobs)).max(1)),
        Amount::Bytes(bytes) => text.line("io_size", &(bytes / u64::from(*jobs)).max(*block_bytes)),
    }
}

/// Many small files, each synced.
fn install(text: &mut JobText, replay: &InstallReplay) {
    let InstallReplay {
        files,
        smallest_bytes,
        largest_bytes,
        block_bytes,
    } = replay;
    text.line("ioengine", &"psync");
    text.line("rw", &"write");
    text.line("bs", block_bytes);
    text.line("nrfiles", files);
    text.line("filesize", &format!("{smallest_bytes}-{largest_bytes}"));
    text.line("create_on_open", &1);
    text.line("openfiles", &1);
    text.line("fsync_on_close", &1);
    text.line("end_fsync", &1);
    text.line("refill_buffers", &1);
}

/// The disk or directory of a job; of one pass, with the number of jobs that share the disk and their block size.
fn place(text: &mut JobText, target: Target<'_>, share: Option<(u32, u64)>) {
    let size = |text: &mut JobText, length: u64| match share {
        Some((jobs, block_bytes)) if jobs > 1 => {
            let blocks = length / u64::from(jobs) / block_bytes;
            let own = blocks.max(1) * block_bytes;
            text.line("size", &own);
            text.line("offset_increment", &own);
        }
        Some(_) | None => text.line("size", &length),
    };
    match target {
        Target::File {
            path,
            offset,
            length,
            is_buffered: _, /* said above */
        } => {
            // fio splits file names at colons.
            text.line("filename", &path.replace(':', "\\:"));
            text.line("offset", &offset);
            size(text, length);
        }
        Target::Nbd { uri, length } => {
            text.line("uri", &uri);
            size(text, length);
        }
        Target::Directory { path } => text.line("directory", &path.replace(':', "\\:")),
    }
}

fn milliseconds(seconds: f64) -> String {
    format!("{}ms", (seconds * 1000.0).round())
}

const fn words(access: Access) -> &'static str {
    match access {
        Access::SequentialRead => "read",
        Access::SequentialWrite => "write",
        Access::RandomRead => "randread",
        Access::RandomWrite => "randwrite",
        Access::RandomMixed => "randrw",
    }
}

#[derive(Debug, Deserialize)]
struct FioReport {
    jobs: Vec<FioJob>,
}

#[derive(Debug, Deserialize)]
struct FioJob {
    jobname: String,
    error: i64,
    #[serde(default)]
    usr_cpu: f64,
    #[serde(default)]
    sys_cpu: f64,
    /// Milliseconds.
    #[serde(default)]
    job_runtime: u64,
    read: Figures,
    write: Figures,
    #[serde(default)]
    sync: Syncs,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Figures {
    io_bytes: u64,
    bw_bytes: u64,
    iops: f64,
    /// Milliseconds.
    runtime: u64,
    total_ios: u64,
    lat_ns: Nanoseconds,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Syncs {
    total_ios: u64,
    lat_ns: Nanoseconds,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Nanoseconds {
    min: u64,
    max: u64,
    mean: f64,
    percentile: BTreeMap<String, u64>,
    /// Requests by their latency, in the format `json+`.
    bins: BTreeMap<u64, u64>,
}

impl Nanoseconds {
    fn latency(self) -> Latency {
        let Nanoseconds {
            min,
            max,
            mean,
            percentile,
            bins,
        } = self;
        Latency {
            mean_ns: mean,
            min_ns: Some(min),
            max_ns: Some(max),
            percentiles_ns: percentile
                .into_iter()
                .map(|(name, value)| {
                    let short = name.trim_end_matches('0').trim_end_matches('.');
                    (short.to_owned(), value)
                })
                .collect(),
            histogram: bins.into_iter().collect(),
        }
    }
}

impl Figures {
    fn direction(self) -> Direction {
        let Figures {
            io_bytes,
            bw_bytes,
            iops,
            runtime: _,
            total_ios,
            lat_ns,
        } = self;
        Direction {
            bytes: io_bytes,
            operations: total_ios,
            bytes_per_second: bw_bytes as f64,
            iops,
            latency: Some(lat_ns.latency()),
        }
    }
}

/// Converts fio's JSON report to a measurement of the workload.
///
/// fio writes messages before its JSON, and reports no error for a job that sent no requests.
pub(crate) fn measurement(output: &str, workload: &Workload) -> Result<Measurement, Error> {
    let failed = |detail: String| Error::program("fio", detail);
    let start = if output.starts_with("{\n") {
        0
    } else {
        output
            .find("\n{\n")
            .map(|at| at + 1)
            .ok_or_else(|| failed(first_line(output)))?
    };
    // Messages may follow the JSON.
    let mut reports = serde_json::Deserializer::from_str(&output[start..]).into_iter::<FioReport>();
    let report = reports
        .next()
        .ok_or_else(|| failed("no report".to_owned()))?
        .map_err(|error| failed(format!("invalid report: {error}")))?;
    let end = start + reports.byte_offset();
    let job = report
        .jobs
        .into_iter()
        .find(|job| job.jobname == JOB)
        .ok_or_else(|| failed(format!("the report has no job `{JOB}`")))?;
    if job.error != 0 {
        return Err(failed(format!(
            "error {}: {}",
            job.error,
            first_line(output)
        )));
    }
    let (reads, writes) = match &workload.load {
        Load::Blocks(blocks) => (blocks.access.reads(), blocks.access.writes()),
        Load::InstallReplay(_) => (false, true),
    };
    for (wanted, figures, word) in [(reads, &job.read, "read"), (writes, &job.write, "wrote")] {
        if wanted && figures.total_ios == 0 {
            return Err(failed(format!("it {word} no data: {}", first_line(output))));
        }
    }
    let runtime = job.read.runtime.max(job.write.runtime).max(1);
    let cpu = (job.usr_cpu + job.sys_cpu) / 100.0 * job.job_runtime as f64 / 1000.0;
    let syncs = job.sync.total_ios;
    let flushes_asked = match &workload.load {
        Load::Blocks(blocks) => blocks.sync_every.map(|_| syncs),
        // fio does not count syncs on close.
        Load::InstallReplay(replay) => Some(u64::from(replay.files)),
    };
    let mut measured = Measurement {
        read: reads.then(|| job.read.direction()),
        write: writes.then(|| job.write.direction()),
        sync: (syncs > 0).then(|| job.sync.lat_ns.latency()),
        seconds: runtime as f64 / 1000.0,
        cpu_seconds: Some(cpu),
        raw_report: Some(format!("{}\n", &output[start..end])),
        semantics: Semantics {
            flushes_asked,
            ..Semantics::default()
        },
        ..Measurement::default()
    };
    if measured.value(workload.metric).is_none() {
        let why = "the report of fio has no figure of its requests; use longer samples";
        measured.semantics.complaints.push(why.to_owned());
    }
    Ok(measured)
}

fn first_line(text: &str) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("fio:"))
        .or_else(|| text.lines().map(str::trim).find(|line| !line.is_empty()));
    line.unwrap_or("no output").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metric;

    fn workload(access: Access, sync_every: Option<u32>) -> Workload {
        Workload {
            name: "w".to_owned(),
            load: Load::Blocks(BlockLoad {
                access,
                block_bytes: 4096,
                depth: 32,
                jobs: 1,
                sync_every,
                ends_with_sync: false,
                is_blocking: false,
                rate: None,
            }),
            amount: Amount::Seconds(1.5),
            ramp_seconds: 0.5,
            metric: Metric::Iops,
        }
    }

    #[test]
    fn a_job_file_is_complete() {
        let target = Target::File {
            path: "/srv/a:b.raw",
            offset: 1 << 20,
            length: 4 << 20,
            is_buffered: false,
        };
        let text = job(
            &workload(Access::RandomWrite, Some(1)),
            Phase::Steady,
            target,
            IoEngine::Libaio,
            84,
        );
        assert_eq!(
            text,
            "[global]\nthread=1\ngroup_reporting=1\nrandseed=42\nlat_percentiles=1\n\
             percentile_list=50:90:99:99.9\nioengine=libaio\ndirect=1\ninvalidate=0\nallow_file_create=0\nrw=randwrite\nbs=4096\n\
             iodepth=32\nnumjobs=1\nrandrepeat=0\nnorandommap=1\nrefill_buffers=1\nfsync=1\ntime_based=1\n\
             runtime=1500ms\n[measured]\nfilename=/srv/a\\:b.raw\noffset=1048576\nsize=4194304\n"
        );
    }

    #[test]
    fn a_first_touch_goes_over_the_disk_once() {
        let uri = "nbd+unix:///disk?socket=s";
        let mut writes = workload(Access::RandomWrite, None);
        let Load::Blocks(load) = &mut writes.load else {
            unreachable!()
        };
        load.jobs = 3;
        let length = 4 << 20;
        let target = Target::Nbd { uri, length };
        let text = job(&writes, Phase::FirstTouch, target, IoEngine::Libaio, 1);
        for word in ["time_based", "norandommap"] {
            assert!(!text.contains(word), "{text}");
        }
        assert!(text.contains("runtime=1500ms\n"), "a limit: {text}");
        let own = length / 3 / 4096 * 4096;
        let shared = format!("size={own}\noffset_increment={own}\n");
        assert!(text.contains(&shared), "{text}");
    }

    #[test]
    fn a_buffered_job_syncs_its_writes() {
        let target = |is_buffered: bool| Target::File {
            path: "/x",
            offset: 0,
            length: 1 << 20,
            is_buffered,
        };
        let text = |access: Access, is_buffered: bool| {
            job(
                &workload(access, None),
                Phase::Steady,
                target(is_buffered),
                IoEngine::Libaio,
                1,
            )
        };
        let buffered = text(Access::SequentialWrite, true);
        assert!(
            buffered.contains("direct=0\ninvalidate=0\nend_fsync=1\n"),
            "{buffered}"
        );
        assert!(!text(Access::SequentialRead, true).contains("end_fsync"));
        assert!(text(Access::SequentialWrite, false).contains("direct=1\n"));
    }

    const REPORT: &str = r#"{
  "fio version" : "fio-3.33",
  "jobs" : [
    { "jobname" : "measured", "error" : 0, "usr_cpu" : 10.0, "sys_cpu" : 40.0, "job_runtime" : 2000,
      "read" : { "io_bytes" : 0, "bw_bytes" : 0, "iops" : 0.0, "runtime" : 0, "total_ios" : 0 },
      "write" : { "io_bytes" : 8192000, "bw_bytes" : 4096000, "iops" : 1000.5, "runtime" : 2000, "total_ios" : 2000,
        "lat_ns" : { "min" : 1, "max" : 9, "mean" : 2.5, "percentile" : { "50.000000" : 2, "99.900000" : 8, "100.000000" : 9 }, "bins" : { "2" : 1999, "9" : 1 } } },
      "sync" : { "total_ios" : 1999, "lat_ns" : { "min" : 1, "max" : 3, "mean" : 2.0 } } }
  ]
}
"#;

    #[test]
    fn a_report_is_read_between_messages() {
        let writes = workload(Access::RandomWrite, Some(1));
        for text in [
            REPORT.to_owned(),
            format!("fio: a warning {{\n{REPORT}"),
            format!("{REPORT}fio: a later message\n"),
        ] {
            let measured = measurement(&text, &writes).unwrap();
            assert_eq!(measured.raw_report.as_deref(), Some(REPORT));
            let write = measured.write.unwrap();
            assert_eq!(
                (write.operations, write.bytes_per_second),
                (2000, 4_096_000.0)
            );
            let latency = write.latency.unwrap();
            assert_eq!(latency.histogram, [(2, 1999), (9, 1)]);
            let percentiles = latency.percentiles_ns;
            assert_eq!(percentiles["99.9"], 8);
            assert_eq!(percentiles["50"], 2);
            assert_eq!(measured.semantics.flushes_asked, Some(1999));
            assert_eq!(measured.cpu_seconds, Some(1.0));
            assert_eq!(measured.read, None);
            assert_eq!(measured.seconds, 2.0);
        }
    }

    #[test]
    fn a_sample_without_its_figure_says_why() {
        let latency = Workload {
            metric: Metric::Latency,
            ..workload(Access::RandomWrite, None)
        };
        let complaints = |report: &str| {
            let measured = measurement(report, &latency).unwrap();
            measured.semantics.complaints
        };
        assert_eq!(complaints(REPORT), Vec::<String>::new());
        let empty = REPORT.replace("\"mean\" : 2.5", "\"mean\" : 0.0");
        assert_eq!(
            complaints(&empty),
            ["the report of fio has no figure of its requests; use longer samples"]
        );
    }

    #[test]
    fn a_job_without_requests_is_a_failure_even_if_fio_reports_success() {
        let reads = workload(Access::RandomRead, None);
        let error = measurement(REPORT, &reads).unwrap_err();
        assert!(error.to_string().contains("read no data"), "{error}");
        let error = measurement("fio: no such file /x\n", &reads).unwrap_err();
        assert!(error.to_string().contains("no such file"), "{error}");
        let failed = REPORT.replace("\"error\" : 0", "\"error\" : 5");
        assert!(measurement(&failed, &workload(Access::RandomWrite, None)).is_err());
        assert!(measurement("", &reads).is_err());
        assert!(measurement("{\n", &reads).is_err());
    }

    #[test]
    fn the_engine_is_one_that_fio_lists() {
        assert_eq!(
            IoEngine::of_list("Available IO engines:\n\tio_uring\n\tlibaio\n"),
            Some(IoEngine::Libaio)
        );
        assert_eq!(
            IoEngine::of_list("\tio_uring\n\tio_uring_cmd\n"),
            Some(IoEngine::IoUring)
        );
        assert_eq!(IoEngine::of_list("\tpsync\n"), None);
    }
}
