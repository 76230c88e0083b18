//! Reports of benchmarks: whole ones beside golden files.
//!
//! What is reported was planted, so that the same bytes come out each time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use vmdisk_bench_runner::mock::Mock;
use vmdisk_bench_runner::report::{self, BenchResult, ChangeVerdict};
use vmdisk_bench_runner::{
    Cancel, Engine, Entry, FindingSeverity, Header, Limits, LinterFinding, MachineMonitor, Noise,
    Plan, PlanOptions, Repetition, Runner, SCHEMA_VERSION, Settings, read_plan,
};
use vmdisk_tests::{assert_golden, fixtures, repository, run};

/// A machine whose clock and noise are planted too.
struct Planted(u64);

impl MachineMonitor for Planted {
    fn elapsed(&mut self) -> Duration {
        self.0 += 1;
        Duration::from_secs(self.0)
    }

    fn noise(&mut self, _is_before_run: bool) -> Noise {
        Noise {
            busy: Some(if self.0 > 60 { 0.31 } else { 0.02 }),
            ..Noise::default()
        }
    }

    fn control(&mut self) -> f64 {
        400e6 + self.0 as f64 * 1e6
    }
}

const PLAN: &str = "
version: 1
name: formats
question: Which image is <fastest> & why?
size: 64M
phases: [first-touch, steady]
workloads: [4k-random-write-qd32, 1m-sequential-read-qd8]
fixed: {engine: mock, cache: none}
matrix:
  format: [raw, qcow2]
  preallocation: ['off', metadata, full]
  aio: [native, io_uring]
exclude:
- {when: {aio: io_uring, preallocation: full}, because: it would be too many}
baseline: {format: raw, preallocation: 'off'}
pairs: [[qcow2-full-native, qcow2-off-native], [qcow2-off-native, raw-off-native]]
";

fn result(plan: &Plan, mock: Mock) -> BenchResult {
    let settings = Settings {
        seed: 42,
        repetition: Repetition::default(),
        time_budget_seconds: 1e6,
        has_warm_up: true,
        accepts_noise: true,
    };
    let mut engines: Vec<Box<dyn Engine>> = vec![Box::new(mock)];
    let versions = engines
        .iter_mut()
        .map(|engine| (engine.kind(), engine.versions(&[]).unwrap()))
        .collect();
    let mut log: Vec<Entry> = Vec::new();
    let runner = Runner {
        plan,
        settings: &settings,
        engines: &mut engines,
        machine: &mut Planted(0),
        log: &mut log,
        cancel: &Cancel::new(),
        observe: &mut |_| {},
    };
    runner.run(&[]).unwrap();
    let record = plan.record();
    let header = Header {
        schema_version: SCHEMA_VERSION.to_owned(),
        vmdisk: "0.1.0".to_owned(),
        plan_hash: record.hash(),
        plan: record,
        settings,
        began_at: "2026-11-20T09:00:00Z".to_owned(),
        environment: BTreeMap::from([
            ("kernel".to_owned(), "6.18.5".to_owned()),
            (
                "processor".to_owned(),
                "a planted one, with a name-that-has-no-space-in-it-".repeat(6),
            ),
        ]),
        facts_hash: None,
        versions,
        request: serde_json::Value::Null,
    };
    BenchResult::of(header, log).unwrap()
}

fn example() -> BenchResult {
    let options = PlanOptions {
        limits: Limits {
            processors: 2,
            ..Limits::default()
        },
        ..PlanOptions::default()
    };
    let mut plan = read_plan(PLAN, "formats.yaml", &options).unwrap();
    plan.configurations[2].findings.push(LinterFinding {
        rule: "cache-unsafe".to_owned(),
        severity: FindingSeverity::Error,
        title: "vda <loses> data".to_owned(),
    });
    let mock = Mock::new(5)
        .level("qcow2-off-native", 0.65)
        .level("qcow2-metadata-native", 1.01)
        .level("qcow2-full-native", 3.4)
        .level("qcow2-off-io_uring", 0.2)
        .failing("qcow2-metadata-io_uring");
    result(&plan, mock)
}

fn golden(name: &str) -> PathBuf {
    fixtures().join("bench").join(name)
}

#[test]
fn each_form_of_a_report_is_its_golden_file() {
    let result = example();
    assert_golden(&golden("formats.txt"), &result.report().text(None));
    assert_golden(&golden("formats.md"), &result.report().markdown());
    assert_golden(&golden("formats.csv"), &report::csv(&result));
    // A pair that is compared with its baseline anyway is not compared twice.
    assert_eq!(result.pairs.len(), 3, "writes in two phases, and reads");
    // Another baseline is another question.
    let other = result.clone().with_baseline("qcow2-off-native").unwrap();
    assert_eq!(other.pairs, []);
    // What is concluded from a result that was written is what was concluded when it was.
    let read = BenchResult::from_json(&result.to_json(), "x").unwrap();
    assert_eq!(read.report().text(None), result.report().text(None));
    // Programs read the table as rows of the same length.
    let csv = report::csv(&result);
    let columns = csv.lines().next().unwrap().split(',').count();
    assert_eq!(csv.lines().count(), result.samples.len() + 1);
    assert!(csv.lines().all(|line| line.split(',').count() == columns));
}

#[test]
fn a_mean_belongs_to_the_ratio_beside_it_and_memory_and_complaints_are_named() {
    let mut result = example();
    // As after a race: this cell has fewer rounds than its baseline, in which the baseline was slower.
    let cell = result
        .cells
        .iter()
        .find(|it| it.name.starts_with("qcow2-full-native 4k"))
        .unwrap();
    let (cell, baseline) = (cell.cell, cell.comparison.as_ref().unwrap().baseline);
    result.samples.retain(|it| it.cell != cell || it.round < 3);
    for sample in &mut result.samples {
        let write = sample.measurement.write.as_mut().unwrap();
        if sample.cell == baseline && sample.round < 3 {
            write.iops /= 2.0;
        }
        // What a cache keeps does not reach its device.
        if sample.cell == baseline {
            sample.measurement.devices = vec![report_device(write.bytes / 100)];
        }
        // Each round says another amount.
        if sample.cell.0 == 1 {
            let complaint = format!(
                "requests bypass it, but only {} KiB of 9 MiB were written",
                sample.round
            );
            sample.measurement.semantics.complaints.push(complaint);
        }
    }
    let result = BenchResult::from_json(&result.to_json(), "x").unwrap();
    let text = result.report().text(None);
    let comparison = result.cells[cell.0].comparison.as_ref().unwrap();
    let means = |cell: vmdisk_bench_runner::CellId| {
        let values = result.cells[cell.0]
            .values
            .iter()
            .filter(|(round, _)| **round < 3);
        let logarithms: Vec<f64> = values.map(|(_, value)| value.ln()).collect();
        (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
    };
    let ratio = comparison.interval.unwrap().ratio;
    assert!(
        (means(cell) / means(baseline) - ratio).abs() < 1e-9,
        "{ratio}"
    );
    let said = format!(
        "qcow2-full-native was measured in 2 rounds, in which raw-off-native had {}",
        report::figure(means(baseline), result.metric(baseline))
    );
    assert!(text.contains(&said), "{said}: {text}");
    assert!(
        text.contains(&report::figure(means(cell), result.metric(cell))),
        "{text}"
    );
    assert!(text.contains("vda 1 %, memory"), "{text}");
    assert!(
        text.contains("so that the figures are those of the host's memory: raw-off-native 4k"),
        "{text}"
    );
    let grouped = format!(
        " of {} samples, such as: requests bypass it, but only 1 KiB of 9 MiB were written (",
        result.samples.iter().filter(|it| it.round > 0).count()
    );
    assert_eq!(text.matches("requests bypass it").count(), 1, "{text}");
    assert!(text.contains(&grouped), "{text}");
}

fn report_device(written_bytes: u64) -> vmdisk_bench_runner::DeviceUse {
    vmdisk_bench_runner::DeviceUse {
        name: "vda".to_owned(),
        written_bytes,
        ..Default::default()
    }
}

#[test]
fn a_limit_of_the_environment_is_a_caveat_and_a_difference() {
    let first = example();
    let mut limited = first.clone();
    let what = format!("{}I/O of the cgroup of the run", report::LIMIT);
    let limit = "loop3: 400 reads per second".to_owned();
    limited.header.environment.insert(what, limit);
    let limited = BenchResult::from_json(&limited.to_json(), "x").unwrap();
    let text = limited.report().text(None);
    let said = "figures may be those of a limit, and not of a disk: limit on I/O of the cgroup of the run (loop3: 400 reads per second)";
    assert!(text.contains(said), "{text}");
    let compared = report::compare(&first, &limited, TOLERANCE).unwrap();
    assert!(compared.studied.unwrap().what.contains("limit on I/O"));
}

#[test]
fn pictures_are_in_bright_and_dark_without_scripts_and_hold_every_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result.json");
    std::fs::write(&path, example().to_json()).unwrap();
    let path = path.to_str().unwrap();
    for format in ["html", "svg"] {
        let shown = run(
            crate::VMDISK,
            &["bench", "report", path, "--format", format],
            "",
        );
        assert_eq!(shown.code, 0, "{}", shown.stderr);
        let page = &shown.stdout;
        for hazard in ["<script", "http://localhost", "<fastest>", "NaN", "inf"] {
            assert!(!page.contains(hazard), "{hazard} in {format}");
        }
        for part in [
            "prefers-color-scheme: dark",
            "Ratios",
            "Latency, write",
            "Samples over time",
            "qcow2-full-native",
        ] {
            assert!(page.contains(part), "{part} in {format}");
        }
        // A line of no difference beside each ratio.
        assert!(
            page.matches("class=\"reference\"").count() >= 10,
            "{format}"
        );
    }
    let compared = run(
        crate::VMDISK,
        &["bench", "compare", path, path, "--format", "svg"],
        "",
    );
    assert!(compared.stdout.contains("Ratios"), "{}", compared.stderr);
}

#[test]
fn the_pictures_of_the_guides_are_those_of_the_recorded_runs() {
    for name in ["five-backends", "cache-modes"] {
        let run_of = format!("fixtures/measurements/{name}.json");
        let shown = run(
            crate::VMDISK,
            &["bench", "report", &run_of, "--format", "svg"],
            "",
        );
        assert_eq!(shown.code, 0, "{}", shown.stderr);
        let picture = repository().join(format!("docs/measured/{name}.svg"));
        assert_golden(&picture, &shown.stdout);
    }
}

#[test]
fn a_note_on_the_figures_is_in_each_form_of_a_report() {
    let result = example();
    for text in [
        result.report().text(None),
        result.report().markdown(),
        report::csv(&result),
        result.to_json(),
    ] {
        assert!(text.contains("preset numbers: nothing was measured"));
    }
}

#[test]
fn a_result_that_is_not_whole_is_refused_with_the_reason() {
    let json = example().to_json();
    for (from, to, why) in [
        (
            "\"schema_version\": \"1.0\"",
            "\"schema_version\": \"9.9\"",
            "the result has version 9.9",
        ),
        (
            "\"configuration\": 0",
            "\"configuration\": 99",
            "refers to something that the plan does not have",
        ),
        ("\"rounds\": [", "\"round\": [", "missing field `rounds`"),
        (
            "\"cell\": 0,\n      \"at_seconds\"",
            "\"cell\": 99,\n      \"at_seconds\"",
            "its cells are not the cells of its plan",
        ),
        (
            "\"confidence\": 0.95",
            "\"confidence\": 95.0",
            "the confidence must be from 0.5",
        ),
    ] {
        let error = BenchResult::from_json(&json.replacen(from, to, 1), "b.json").unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert!(error.to_string().starts_with("b.json"), "{error}");
    }
}

/// A run of a cache mode beside a baseline, with a level planted for it.
fn run_of(cache: &str, frontend: &str, level: f64, kernel: &str) -> BenchResult {
    let text = format!(
        "
version: 1
name: one
question: how fast?
size: 64M
phases: [steady]
workloads: [4k-random-write-qd32]
fixed: {{engine: mock}}
configurations:
- {{name: base, cache: directsync}}
- {{name: {cache}-{frontend}, cache: {cache}, frontend: {frontend}}}
baseline: {{name: base}}
"
    );
    let plan = read_plan(&text, "one", &PlanOptions::default()).unwrap();
    let seed = cache.len() as u64;
    let mut result = result(
        &plan,
        Mock::new(seed).level(&format!("{cache}-{frontend}"), level),
    );
    result
        .header
        .environment
        .insert("kernel".to_owned(), kernel.to_owned());
    result
}

const TOLERANCE: f64 = 0.05;

#[test]
fn two_runs_are_compared_if_one_thing_differs_and_refused_with_a_list_if_more_do() {
    let none = run_of("none", "virtio-blk", 1.0, "6.1");
    let unsafe_cache = run_of("unsafe", "virtio-blk", 1.5, "6.1");
    let compared = report::compare(&none, &unsafe_cache, TOLERANCE).unwrap();
    assert_eq!(
        compared.studied.as_ref().unwrap().to_string(),
        "cache: none and unsafe"
    );
    assert_eq!(compared.cells.len(), 1);
    let change = compared.cells[0].change.unwrap();
    assert!(change.low > 1.35 && change.high < 1.7, "{change:?}");
    assert_eq!(compared.cells[0].verdict, ChangeVerdict::Faster);
    assert!(
        compared.report().text(None).contains(" faster"),
        "{}",
        compared.report().text(None)
    );
    let back = report::compare(&unsafe_cache, &none, TOLERANCE).unwrap();
    assert_eq!(back.cells[0].verdict, ChangeVerdict::Slower);
    // A tolerance above the difference calls it none.
    let tolerant = report::compare(&unsafe_cache, &none, 0.9).unwrap();
    assert_eq!(tolerant.cells[0].verdict, ChangeVerdict::AboutEqual);
    let same = report::compare(&none, &none, TOLERANCE).unwrap();
    assert_eq!(same.studied, None);
    assert_eq!(
        same.cells[0].verdict,
        ChangeVerdict::AboutEqual,
        "{}",
        same.report().text(None)
    );

    for (other, why) in [
        (
            run_of("unsafe", "virtio-scsi", 1.0, "6.1"),
            "not comparable: cache: none and unsafe; frontend: virtio-blk and virtio-scsi",
        ),
        (
            run_of("unsafe", "virtio-blk", 1.0, "6.12"),
            "not comparable: cache: none and unsafe; kernel: 6.1 and 6.12",
        ),
        (
            example(),
            "not comparable: the runs share no cell with the same workload, phase, engine, configuration and baseline",
        ),
    ] {
        let error = report::compare(&none, &other, TOLERANCE).unwrap_err();
        assert_eq!(error.to_string(), why);
    }
}

#[test]
fn a_machine_that_changed_between_two_runs_leaves_no_verdict() {
    let first = run_of("none", "virtio-blk", 1.0, "6.1");
    let second = run_of("none", "virtio-blk", 0.5, "6.1");
    let compare = |second: &BenchResult| report::compare(&first, second, TOLERANCE).unwrap();
    assert_eq!(compare(&second).cells[0].verdict, ChangeVerdict::Slower);
    let mut slower_processor = second.clone();
    for round in &mut slower_processor.rounds {
        round.control *= 0.56;
    }
    let mut disturbed = second.clone();
    for round in &mut disturbed.rounds {
        round.disturbances = vec!["others used 90 % of the processors".to_owned()];
    }
    let mut first_quiet = first.clone();
    for round in &mut first_quiet.rounds {
        round.disturbances.clear();
    }
    let of_disturbed = report::compare(&first_quiet, &disturbed, TOLERANCE).unwrap();
    for (compared, why) in [
        (
            compare(&slower_processor),
            "arithmetic without a disk ran at 56 %",
        ),
        (of_disturbed, "the machine was quiet in one run only"),
    ] {
        assert_eq!(compared.cells[0].verdict, ChangeVerdict::MachineChanged);
        let text = compared.report().text(None);
        assert!(text.contains("No verdict") && text.contains(why), "{text}");
        assert!(text.contains("the machine changed"), "{text}");
    }
}

/// Runs the report of a recorded measurement.
fn report_of(name: &str, words: &[&str]) -> (i32, String) {
    let path = format!("fixtures/measurements/{name}.json");
    let words = [&["bench", "report", &path], words].concat();
    let run = vmdisk_tests::run_in(vmdisk_tests::repository(), crate::VMDISK, &words, "");
    (run.code, format!("{}{}", run.stdout, run.stderr))
}

#[test]
fn any_pair_of_a_run_is_compared_in_its_paired_rounds() {
    let (code, text) = report_of("volumes", &["--pairs=thin-volume:volume"]);
    assert_eq!(code, 0, "{text}");
    // Computed from the same rounds by another program: ratios of the samples, Student's t on their logarithms.
    assert!(
        text.contains("thin-volume : volume  0.66 [0.61, 0.72]"),
        "{text}"
    );
    let (_, full) = report_of("preallocation", &["--pairs=qcow2-full:qcow2-off"]);
    assert!(
        full.contains("qcow2-full : qcow2-off  3.27 [1.92, 5.57]  faster"),
        "{full}"
    );
    // More pairs make the same interval less surprising.
    let (_, all) = report_of("preallocation", &["--pairs"]);
    assert!(all.contains("42 comparisons"), "{all}");
    assert!(all.contains("[1.92, 5.57]  inconclusive"), "{all}");
    let (code, text) = report_of("volumes", &["--pairs=volume:none"]);
    assert_eq!(code, 2);
    assert!(text.contains("file, volume, thin-volume"), "{text}");
}

#[test]
fn another_baseline_gives_the_inverse_ratio() {
    let (code, text) = report_of("volumes", &["--baseline", "volume"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("against volume"), "{text}");
    assert!(text.contains("0.66 [0.61, 0.72]"), "{text}");
    let (_, planned) = report_of("volumes", &[]);
    let (_, same) = report_of("volumes", &["--baseline", "file"]);
    assert_eq!(planned, same, "that is the plan's baseline");
}

#[test]
fn a_comparison_is_json_with_a_schema() {
    let first = run_of("none", "virtio-blk", 1.0, "6.1");
    let second = run_of("unsafe", "virtio-blk", 0.8, "6.1");
    let compared = report::compare(&first, &second, TOLERANCE).unwrap();
    let read: report::RunComparison = serde_json::from_str(&compared.to_json()).unwrap();
    assert_eq!(read.report().text(None), compared.report().text(None));
}

#[test]
fn measurements_that_pages_cite_are_whole_results_of_real_engines() {
    let mut count = 0;
    for entry in std::fs::read_dir(fixtures().join("measurements")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let result = BenchResult::from_json(&text, &path.display().to_string()).unwrap();
        assert_eq!(
            result.header.plan.hash(),
            result.header.plan_hash,
            "{}",
            path.display()
        );
        assert!(!result.samples.is_empty(), "{}", path.display());
        for sample in &result.samples {
            assert!(
                !sample.measurement.commands.is_empty(),
                "{}",
                path.display()
            );
        }
        let is_planted = result
            .header
            .versions
            .keys()
            .any(|engine| engine.name() == "mock");
        assert!(!is_planted, "{}", path.display());
        let again = result.report().text(None);
        assert!(again.starts_with(&result.header.plan.name), "{again}");
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn the_ratios_that_a_rule_cites_are_in_the_measurement_that_it_names() {
    let mut cited = 0;
    for rule in vmdisk::rules::RULES {
        for evidence in rule.evidence {
            let vmdisk::rules::Evidence::Measured { figures, how } = evidence else {
                continue;
            };
            let Some(file) = how
                .split(',')
                .next()
                .filter(|it| it.starts_with("fixtures/measurements/"))
            else {
                continue;
            };
            let path = vmdisk_tests::repository().join(file);
            let text = std::fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {}: {error}", rule.name, path.display()));
            let result = BenchResult::from_json(&text, file).unwrap();
            let report = result.report().text(None);
            let ratios = ratios_in(figures);
            assert!(!ratios.is_empty(), "{}: no ratio in `{figures}`", rule.name);
            for ratio in ratios {
                assert!(
                    report.contains(&ratio),
                    "{}: {ratio} is not in {file}",
                    rule.name
                );
                cited += 1;
            }
        }
    }
    assert!(cited >= 2);
}

/// Ratios as reports write them, such as `0.30 [0.12, 0.74]`.
pub(crate) fn ratios_in(text: &str) -> Vec<String> {
    let is_number = |word: &str| word.trim().parse::<f64>().is_ok();
    text.match_indices('[')
        .filter_map(|(at, _)| {
            let end = at + text[at..].find(']')?;
            let (low, high) = text[at + 1..end].split_once(", ")?;
            let before = text[..at].trim_end();
            let start = before.rfind([' ', '\n']).map_or(0, |space| space + 1);
            let is_ratio = [&before[start..], low, high].into_iter().all(is_number);
            is_ratio.then(|| text[start..=end].to_owned())
        })
        .collect()
}

#[test]
fn ratios_are_found_between_links_and_lists() {
    let text = "See [a, b] and `[1, 2]`: 0.30 [0.12, 0.74], or\n14.5 [5.23, 40.3].";
    assert_eq!(ratios_in(text), ["0.30 [0.12, 0.74]", "14.5 [5.23, 40.3]"]);
}
