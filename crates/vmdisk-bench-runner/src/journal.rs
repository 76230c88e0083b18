//! A run's directory: every sample is on disk before anything else happens.
//!
//! The directory holds `run.json` (the plan, the host and the programs) and `journal.jsonl` (one [`Entry`] per line,
//! append-only). An incomplete last line, as a power cut leaves it, is dropped when the journal is read.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CellId, Ended, EngineKind, Error, Measurement, PlanRecord, Round, Settings};

/// Version of the run's header, journal and result on disk.
pub const SCHEMA_VERSION: &str = "1.0";

const HEADER: &str = "run.json";
const JOURNAL: &str = "journal.jsonl";
/// The directory of the raw reports, next to the journal.
pub const REPORTS: &str = "samples";
/// The files of a run that its result is computed from.
pub const RECORDS: [&str; 2] = [HEADER, JOURNAL];

/// Description of a run, written once when it begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Version of the format.
    pub schema_version: String,
    /// The version of vmdisk that measures.
    pub vmdisk: String,
    /// The plan.
    pub plan: PlanRecord,
    /// SHA-256 of the plan; a run continues only with the same plan.
    pub plan_hash: String,
    /// The settings of the method.
    pub settings: Settings,
    /// Start of the run, RFC 3339, in UTC.
    pub began_at: String,
    /// Descriptions of the machine: kernel, processor, file systems.
    pub environment: BTreeMap<String, String>,
    /// SHA-256 of the host's facts, which are in the same directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts_hash: Option<String>,
    /// Programs and their versions, by engine.
    pub versions: BTreeMap<EngineKind, BTreeMap<String, String>>,
    /// The user's request, from which the plan can be rebuilt.
    #[serde(default)]
    pub request: serde_json::Value,
}

impl Header {
    /// Returns the first inconsistency of a parsed header.
    pub fn problem(&self) -> Option<String> {
        let dangling = self.plan.dangling();
        dangling.or_else(|| self.settings.repetition.problem().map(str::to_owned))
    }
}

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "entry")]
#[expect(
    clippy::large_enum_variant,
    reason = "each entry is written as soon as it exists"
)]
pub enum Entry {
    /// A cell was measured.
    Sample(Sample),
    /// A cell could not be measured in this round.
    Failure {
        /// The round.
        round: u32,
        /// The cell.
        cell: CellId,
        /// The reason.
        error: String,
    },
    /// A round begins.
    Round(Round),
    /// A cell is dropped from the run.
    LeftOut {
        /// The cell.
        cell: CellId,
        /// The reason.
        why: String,
    },
    /// A stopped run continues.
    Resumed {
        /// Time of the resumption, in seconds since the run began.
        at_seconds: f64,
    },
    /// The run ended.
    Ended {
        /// The reason.
        ended: Ended,
        /// Time of the end, in seconds since the run began.
        at_seconds: f64,
    },
}

impl Entry {
    /// Returns the sample, if the entry is one.
    pub fn sample(&self) -> Option<&Sample> {
        match self {
            Entry::Sample(sample) => Some(sample),
            _ => None,
        }
    }
}

/// A sink for the entries of a run.
pub trait Log {
    /// Adds an entry and returns once it is stored.
    ///
    /// # Errors
    /// If it cannot be stored.
    fn append(&mut self, entry: &Entry) -> Result<(), Error>;
}

/// Collects entries in memory, for tests.
impl Log for Vec<Entry> {
    fn append(&mut self, entry: &Entry) -> Result<(), Error> {
        self.push(entry.clone());
        Ok(())
    }
}

/// One measurement with its position in the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Sample {
    /// The round, from 1; 0 is the warm-up.
    pub round: u32,
    /// Its position in the order of the round, from 0.
    pub position: u32,
    /// The cell.
    pub cell: CellId,
    /// Its end, in seconds since the run began.
    pub at_seconds: f64,
    /// The result.
    pub measurement: Measurement,
}

/// The directory of a run, open for appending.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

/// The contents of a run's directory.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadJournal {
    /// The description of the run.
    pub header: Header,
    /// The entries, in order.
    pub entries: Vec<Entry>,
    /// The length of the whole lines in bytes, if the last line was incomplete and therefore dropped.
    pub cut_off_at: Option<u64>,
}

/// Returns the duration of a run up to its last entry.
pub fn taken(entries: &[Entry]) -> Duration {
    let times = entries.iter().map(|entry| match entry {
        Entry::Sample(sample) => sample.at_seconds,
        Entry::Round(round) => round.at_seconds,
        Entry::Resumed { at_seconds }
        | Entry::Ended {
            ended: _,
            at_seconds,
        } => *at_seconds,
        Entry::Failure { .. } | Entry::LeftOut { .. } => 0.0,
    });
    Duration::try_from_secs_f64(times.fold(0.0, f64::max)).unwrap_or_default()
}

impl Journal {
    /// Starts a run in a directory that must not exist yet.
    ///
    /// # Errors
    /// If the directory exists or cannot be created.
    pub fn create(directory: &Path, header: &Header) -> Result<Self, Error> {
        make_directory(directory)?;
        let path = directory.join(HEADER);
        let mut text = serde_json::to_string_pretty(header)
            .expect("a header holds only text, numbers and maps with text as keys");
        text.push('\n');
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(|error| Error::io("create", &path, error))?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(|error| Error::io("write", &path, error))?;
        let path = directory.join(JOURNAL);
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(&path)
            .map_err(|error| Error::io("create", &path, error))?;
        Ok(Journal { path, file })
    }

    /// Resumes a run and truncates an incomplete last line.
    ///
    /// # Errors
    /// If the run is missing, or cannot be parsed or written.
    pub fn resume(
        directory: &Path,
        bytes_of: impl Fn(&Path) -> std::io::Result<Vec<u8>>,
    ) -> Result<(Self, ReadJournal), Error> {
        let read = Journal::read(directory, bytes_of)?;
        let path = directory.join(JOURNAL);
        let file = OpenOptions::new()
            .append(true)
            .open(&path)
            .map_err(|error| Error::io("open", &path, error))?;
        if let Some(whole) = read.cut_off_at {
            file.set_len(whole)
                .map_err(|error| Error::io("shorten", &path, error))?;
        }
        Ok((Journal { path, file }, read))
    }

    /// Reads a run's directory, with a function that reads a file and knows its limits.
    ///
    /// # Errors
    /// If it cannot be read or parsed; an incomplete last line is accepted.
    pub fn read(
        directory: &Path,
        bytes_of: impl Fn(&Path) -> std::io::Result<Vec<u8>>,
    ) -> Result<ReadJournal, Error> {
        let path = directory.join(HEADER);
        let bytes = bytes_of(&path).map_err(|error| Error::io("read", &path, error))?;
        let header: Header = serde_json::from_slice(&bytes)
            .map_err(|error| malformed(&path, Some(error.line()), &error))?;
        if header.schema_version != SCHEMA_VERSION {
            let message = format!(
                "the run has version {}; this vmdisk reads version {SCHEMA_VERSION}",
                header.schema_version
            );
            return Err(malformed(&path, None, &message));
        }
        if let Some(problem) = header.problem() {
            return Err(malformed(&path, None, &problem));
        }
        let path = directory.join(JOURNAL);
        let bytes = bytes_of(&path).map_err(|error| Error::io("read", &path, error))?;
        let text = String::from_utf8_lossy(&bytes);
        let whole = bytes.iter().rposition(|byte| *byte == b'\n');
        let whole = whole.map_or(0, |at| at + 1);
        let mut entries = Vec::new();
        for (index, line) in text.split_inclusive('\n').enumerate() {
            if !line.ends_with('\n') {
                break;
            }
            let entry = serde_json::from_str(line)
                .map_err(|error| malformed(&path, Some(index + 1), &error))?;
            entries.push(entry);
        }
        Ok(ReadJournal {
            header,
            entries,
            cut_off_at: (!text.is_empty() && !text.ends_with('\n')).then_some(whole as u64),
        })
    }
}

impl Journal {
    /// Writes the raw report of a sample next to the journal.
    fn write_report(&self, sample: &Sample, report: &str) -> Result<(), Error> {
        let directory = self.path.with_file_name(REPORTS);
        std::fs::create_dir_all(&directory)
            .map_err(|error| Error::io("create", &directory, error))?;
        let name = format!("round-{:03}-cell-{:03}.json", sample.round, sample.cell.0);
        let path = directory.join(name);
        std::fs::write(&path, report).map_err(|error| Error::io("write", &path, error))
    }
}

impl Log for Journal {
    /// Adds a line and returns once it is on disk. The raw report of a sample is written to its own file first.
    fn append(&mut self, entry: &Entry) -> Result<(), Error> {
        let mut without_report = None;
        if let Entry::Sample(sample) = entry
            && let Some(report) = &sample.measurement.raw_report
        {
            self.write_report(sample, report)?;
            let mut sample = sample.clone();
            sample.measurement.raw_report = None;
            without_report = Some(Entry::Sample(sample));
        }
        let entry = without_report.as_ref().unwrap_or(entry);
        let mut line =
            serde_json::to_string(entry).map_err(|error| malformed(&self.path, None, &error))?;
        line.push('\n');
        // A single write keeps every line but the last complete.
        self.file
            .write_all(line.as_bytes())
            .and_then(|()| self.file.sync_data())
            .map_err(|error| Error::io("append to", &self.path, error))
    }
}

/// Creates the directory of a run; an existing directory is never reused.
fn make_directory(directory: &Path) -> Result<(), Error> {
    if let Some(parent) = directory.parent() {
        std::fs::create_dir_all(parent).map_err(|error| Error::io("create", parent, error))?;
    }
    std::fs::create_dir(directory).map_err(|error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            return Error::output_exists(directory);
        }
        Error::io("create", directory, error)
    })
}

fn malformed(path: &Path, line: Option<usize>, message: &impl std::fmt::Display) -> Error {
    Error::malformed(path.display().to_string(), line, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(path: &Path) -> std::io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    use crate::Direction;

    fn header() -> Header {
        Header {
            schema_version: SCHEMA_VERSION.to_owned(),
            vmdisk: "0.1.0".to_owned(),
            plan: PlanRecord {
                name: "test".to_owned(),
                question: "which?".to_owned(),
                configurations: Vec::new(),
                workloads: Vec::new(),
                cells: Vec::new(),
                left_out: Vec::new(),
                pairs: Vec::new(),
            },
            plan_hash: "0".repeat(64),
            settings: Settings {
                seed: 7,
                repetition: crate::Repetition::default(),
                time_budget_seconds: 600.0,
                has_warm_up: true,
                accepts_noise: false,
            },
            began_at: "2026-11-20T09:00:00Z".to_owned(),
            environment: BTreeMap::new(),
            facts_hash: None,
            request: serde_json::Value::Null,
            versions: BTreeMap::from([(
                EngineKind::Mock,
                BTreeMap::from([("mock".to_owned(), "1".to_owned())]),
            )]),
        }
    }

    fn sample(round: u32) -> Entry {
        Entry::Sample(Sample {
            round,
            position: 0,
            cell: CellId(0),
            at_seconds: 1.0,
            measurement: Measurement {
                read: Some(Direction::over(4096 * 100, 100, 2.0)),
                seconds: 2.0,
                ..Measurement::default()
            },
        })
    }

    #[test]
    fn appended_entries_are_read_back_and_an_incomplete_line_is_dropped() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("run");
        let mut journal = Journal::create(&directory, &header()).unwrap();
        journal.append(&sample(1)).unwrap();
        journal.append(&sample(2)).unwrap();
        let path = directory.join(JOURNAL);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 9]).unwrap();

        let (mut journal, read) = Journal::resume(&directory, bytes_of).unwrap();
        assert!(read.cut_off_at.is_some());
        assert_eq!(read.header, header());
        assert_eq!(read.entries, [sample(1)]);
        journal.append(&sample(3)).unwrap();
        let read = Journal::read(&directory, bytes_of).unwrap();
        assert!(read.cut_off_at.is_none());
        assert_eq!(read.entries, [sample(1), sample(3)]);
    }

    #[test]
    fn a_run_never_writes_into_a_directory_that_exists() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("run");
        Journal::create(&directory, &header()).unwrap();
        let error = Journal::create(&directory, &header()).unwrap_err();
        assert!(
            error.to_string().ends_with(": it already exists"),
            "{error}"
        );
        let files = parent.path().join("files");
        std::fs::create_dir(&files).unwrap();
        std::fs::write(files.join("result.json"), "mine").unwrap();
        assert!(Journal::create(&files, &header()).is_err());
        assert_eq!(std::fs::read_dir(&files).unwrap().count(), 1);
    }

    #[test]
    fn a_raw_report_is_written_next_to_the_journal_and_not_into_it() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("run");
        let mut journal = Journal::create(&directory, &header()).unwrap();
        let Entry::Sample(mut with_report) = sample(2) else {
            panic!("it is a sample");
        };
        with_report.measurement.raw_report = Some("{\"jobs\": []}".to_owned());
        journal.append(&Entry::Sample(with_report)).unwrap();
        assert_eq!(
            Journal::read(&directory, bytes_of).unwrap().entries,
            [sample(2)]
        );
        let kept = directory.join(REPORTS).join("round-002-cell-000.json");
        assert_eq!(std::fs::read_to_string(kept).unwrap(), "{\"jobs\": []}");
    }

    #[test]
    fn an_invalid_line_is_reported_with_its_number() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("run");
        Journal::create(&directory, &header()).unwrap();
        std::fs::write(directory.join(JOURNAL), "{}\n").unwrap();
        let error = Journal::read(&directory, bytes_of).unwrap_err();
        assert!(error.to_string().contains("journal.jsonl:1: "), "{error}");
    }
}
