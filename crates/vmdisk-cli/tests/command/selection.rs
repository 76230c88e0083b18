//! Which rules are reported: selections, severities, statistics, and the exit status without a threshold.

use serde_json::Value;

use crate::{CLEAN, Place, Run, UNSAFE};

/// A disk with two errors: flushes are discarded, which `--fix` mends, and the device may change its name.
const TWO: &str = "\
<disk type='block' device='disk'>
  <driver name='qemu' type='raw' cache='unsafe'/>
  <source dev='/dev/sda'/>
  <target dev='vda' bus='virtio'/>
</disk>
";

fn lint(place: &Place, arguments: &[&str]) -> Run {
    let words = ["lint", "a.xml", "--format", "concise"];
    let words: Vec<&str> = words.iter().chain(arguments).copied().collect();
    place.run(&words)
}

/// The names of the rules in concise output.
fn rules(run: &Run) -> Vec<&str> {
    let name = |line| -> Option<&str> {
        let line: &str = line;
        Some(line.split_once('[')?.1.split_once(']')?.0)
    };
    run.stdout.lines().filter_map(name).collect()
}

#[test]
fn only_the_selected_rules_and_groups_are_reported() {
    let place = Place::with(&[("a.xml", TWO)]);
    let all = lint(&place, &[]);
    let everything = rules(&all);
    assert!(everything.contains(&"cache-unsafe"), "{all:?}");
    assert!(everything.contains(&"unstable-device-path"), "{all:?}");
    let run = lint(&place, &["--select", "cache-unsafe"]);
    assert_eq!((rules(&run), run.code), (vec!["cache-unsafe"], 1));
    assert!(!run.stderr.contains("allowed"), "{run:?}");
    assert!(!run.stderr.contains("not checked"), "{run:?}");
    let group = lint(&place, &["--select", "data-safety"]);
    assert!(rules(&group).contains(&"cache-unsafe"), "{group:?}");
    let both = lint(&place, &["--select", "cache-unsafe,unstable-device-path"]);
    let extended = lint(
        &place,
        &[
            "--select",
            "cache-unsafe",
            "--extend-select",
            "unstable-device-path",
        ],
    );
    assert_eq!(rules(&both), rules(&extended));
    assert_eq!(rules(&both).len(), 2, "{both:?}");
    let ignored = lint(
        &place,
        &[
            "--select",
            "all",
            "--ignore",
            "data-safety",
            "--ignore",
            "startup",
        ],
    );
    assert!(!rules(&ignored).contains(&"cache-unsafe"), "{ignored:?}");
    assert!(ignored.stderr.contains("allowed"), "{ignored:?}");
}

#[test]
fn an_unknown_rule_or_group_is_refused_with_what_was_meant() {
    let place = Place::with(&[("a.xml", TWO)]);
    for (option, word, meant) in [
        ("--select", "data-safty", "data-safety"),
        ("--extend-select", "cache-unsaf", "cache-unsafe"),
        ("--ignore", "performnce", "performance"),
        ("--select", "cache-unsafe,al", "all"),
    ] {
        let run = lint(&place, &[option, word]);
        assert_eq!(run.code, 2, "{run:?}");
        let meant = format!("did you mean `{meant}`?");
        assert!(run.stderr.contains(&meant), "{run:?}");
    }
}

#[test]
fn findings_below_the_least_severity_are_left_out_and_not_fixed() {
    let place = Place::with(&[("a.xml", TWO)]);
    let run = lint(&place, &["--min-severity", "error"]);
    assert!(!run.stdout.is_empty());
    for line in run.stdout.lines() {
        assert!(line.contains(" error["), "{line}");
    }
    assert!(!run.stderr.contains("warning"), "{run:?}");
    let run = lint(&place, &["--select", "unstable-device-path", "--fix"]);
    assert_eq!(place.read("a.xml"), TWO, "{run:?}");
    lint(&place, &["--select", "cache-unsafe", "--fix"]);
    assert!(!place.read("a.xml").contains("unsafe"));
}

#[test]
fn an_allowance_of_a_rule_that_is_not_selected_is_not_unused() {
    let text = format!("<!-- vmdisk: allow(cache-unsafe) scratch -->\n{UNSAFE}");
    let place = Place::with(&[("a.xml", &text)]);
    let run = lint(&place, &["--select", "allowance-unused"]);
    assert_eq!((run.stdout.as_str(), run.code), ("", 0), "{run:?}");
}

#[test]
fn findings_exit_with_zero_where_that_is_asked_for_and_errors_with_two() {
    let place = Place::with(&[("a.xml", TWO), ("clean.xml", CLEAN)]);
    assert_eq!(lint(&place, &[]).code, 1);
    assert_eq!(lint(&place, &["--exit-zero"]).code, 0);
    let unchecked = &["lint", "clean.xml", "--fail-on-unchecked"];
    assert_eq!(place.run(unchecked).code, 1);
    assert_eq!(
        place.run(&[unchecked, &["--exit-zero"][..]].concat()).code,
        0
    );
    assert_eq!(lint(&place, &["--exit-zero", "missing.xml"]).code, 2);
    let diff = place.run(&["lint", "a.xml", "--diff", "--exit-zero"]);
    assert_eq!(diff.code, 0, "{diff:?}");
    assert!(diff.stdout.contains("+  <driver"), "{diff:?}");
}

#[test]
fn statistics_count_the_findings_of_each_rule() {
    let place = Place::with(&[("d/a.xml", TWO), ("d/b.xml", UNSAFE), ("d/c.xml", UNSAFE)]);
    let run = place.run(&["lint", "d", "--statistics", "--min-severity", "warning"]);
    assert_eq!(run.code, 1);
    let first = run.stdout.lines().next().unwrap();
    let words: Vec<&str> = first.split_whitespace().collect();
    assert_eq!(
        words,
        ["3", "error", "cache-unsafe", "3", "fixable"],
        "{run:?}"
    );
    let json = place.run(&["lint", "d", "--statistics", "--format", "json"]);
    let data: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(data["rules"][0]["rule"], "cache-unsafe");
    assert_eq!(data["rules"][0]["findings"], 3);
    let counts: Vec<u64> = data["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| rule["findings"].as_u64().unwrap())
        .collect();
    assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
    let schema: Value =
        serde_json::from_str(&place.run(&["print", "schema", "statistics"]).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&data));
    assert!(!validator.is_valid(&serde_json::json!({"schema_version": "1.0", "rules": [{}]})));
    // What the baseline has is counted if it is asked for.
    assert_eq!(place.run(&["lint", "d", "--write-baseline"]).code, 0);
    let known = [
        "lint",
        "d",
        "--statistics",
        "--baseline",
        "vmdisk-baseline.json",
    ];
    assert_eq!(place.run(&known).stdout, "");
    let shown = place.run(&[&known[..], &["--show-allowed"]].concat());
    let words_of = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(shown.code, 0, "{shown:?}");
    assert_eq!(
        words_of(shown.stdout.lines().next().unwrap()),
        words_of(first)
    );
    let refused = place.run(&["lint", "d", "--statistics", "--format", "sarif"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
}

#[test]
fn the_files_of_a_run_can_be_shown() {
    let place = Place::with(&[
        ("d/a.xml", UNSAFE),
        ("d/deep/b.xml", CLEAN),
        ("d/network.xml", "<network/>"),
        ("empty/network.xml", "<network/>"),
    ]);
    let run = place.run(&["lint", "d", "d/a.xml", "--show-files"]);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (0, "d/a.xml\nd/deep/b.xml\n")
    );
    let none = place.run(&["lint", "empty", "--show-files"]);
    assert_eq!((none.code, none.stdout.as_str()), (2, ""));
    assert!(
        none.stderr.contains("contains a guest or a disk"),
        "{none:?}"
    );
}

#[test]
fn shells_complete_rules_and_groups() {
    let place = Place::with(&[]);
    for shell in ["bash", "fish", "zsh"] {
        let script = place.run(&["print", "completions", shell]).stdout;
        assert!(script.contains("cache-unsafe"), "{shell}");
        assert!(script.contains("data-safety"), "{shell}");
    }
    // The help names where the rules are listed, not each of them.
    let help = place.run(&["lint", "--help"]).stdout;
    assert!(help.contains("--extend-select <RULE>"), "{help}");
    assert!(!help.contains("cache-unsafe"), "{help}");
}

#[test]
fn pedantic_findings_are_reported_and_fixed_only_on_request() {
    let implicit = TWO.replace(" cache='unsafe'", "");
    let place = Place::with(&[("a.xml", &implicit)]);
    let reports = |arguments: &[&str]| {
        let run = lint(&place, arguments);
        let line = run
            .stdout
            .lines()
            .find(|line| line.contains("cache-implicit"));
        line.map(str::to_owned)
    };
    let expected = "a.xml:2:3: pedantic[cache-implicit]: `vda` sets no cache mode; QEMU uses writeback (fixable)";
    for on_request in [
        ["--min-severity", "pedantic"].as_slice(),
        &["--select", "cache-implicit"],
        &["--select", "clarity"],
        &["--select", "all"],
        &["--extend-select", "cache-implicit"],
    ] {
        assert_eq!(
            reports(on_request).as_deref(),
            Some(expected),
            "{on_request:?}"
        );
    }
    for without in [
        [].as_slice(),
        &["--min-severity", "advice"],
        &["--select", "startup"],
        &["--select", "all", "--min-severity", "advice"],
        &["--min-severity", "pedantic", "--ignore", "cache-implicit"],
    ] {
        assert_eq!(reports(without), None, "{without:?}");
    }
    assert_eq!(lint(&place, &["--select", "cache-implicit"]).code, 0);
    let strict = ["--select", "cache-implicit", "--fail-on", "pedantic"];
    let run = lint(&place, &strict);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stderr.contains("1 pedantic finding in 1 file"),
        "{run:?}"
    );
    lint(&place, &["--fix"]);
    assert_eq!(place.read("a.xml"), implicit);
    lint(&place, &["--fix", "--min-severity", "pedantic"]);
    assert!(place.read("a.xml").contains("cache='writeback'"));
}

#[test]
fn a_configuration_file_asks_for_pedantic_findings() {
    let implicit = TWO.replace(" cache='unsafe'", "");
    for (config, word) in [
        (
            "min-severity = 'pedantic'\n",
            Some("pedantic[cache-implicit]"),
        ),
        (
            "[rules]\ncache-implicit = 'on'\n",
            Some("pedantic[cache-implicit]"),
        ),
        (
            "[rules]\ncache-implicit = 'warning'\n",
            Some("warning[cache-implicit]"),
        ),
        ("[rules]\nclarity = 'on'\ncache-implicit = 'off'\n", None),
        ("[rules]\nbus-emulated = 'on'\n", None),
    ] {
        let place = Place::with(&[("a.xml", &implicit), ("vmdisk.toml", config)]);
        let run = lint(&place, &[]);
        let found = run
            .stdout
            .lines()
            .find(|line| line.contains("cache-implicit"));
        match word {
            Some(word) => assert!(
                found.is_some_and(|line| line.contains(word)),
                "{config}: {run:?}"
            ),
            None => assert_eq!(found, None, "{config}"),
        }
        let shown = lint(&place, &["--show-settings"]).stdout;
        assert_eq!(
            shown.contains("cache-implicit = \"on\""),
            config.contains("cache-implicit = 'on'"),
            "{shown}"
        );
    }
}

#[test]
fn every_format_has_a_word_for_a_pedantic_finding() {
    let implicit = TWO.replace(" cache='unsafe'", "");
    let place = Place::with(&[("a.xml", &implicit)]);
    for (format, word) in [
        ("full", "pedantic[cache-implicit]"),
        ("json", "\"severity\": \"pedantic\""),
        ("json-lines", "\"severity\":\"pedantic\""),
        ("sarif", "\"level\": \"note\""),
        ("github", "::notice "),
        ("gitlab", "\"severity\": \"info\""),
        ("checkstyle", "severity=\"info\""),
        ("junit", "cache-implicit"),
        ("prometheus", "severity=\"pedantic\""),
        ("html", "<h3>pedantic: "),
    ] {
        let run = place.run(&[
            "lint",
            "a.xml",
            "--select",
            "cache-implicit",
            "--format",
            format,
        ]);
        assert!(run.stdout.contains(word), "{format}: {run:?}");
        let by_default = place.run(&["lint", "a.xml", "--format", format]);
        assert!(
            !by_default.stdout.contains("cache-implicit"),
            "{format}: {by_default:?}"
        );
    }
    let report = place.run(&[
        "lint",
        "a.xml",
        "--select",
        "cache-implicit",
        "--format",
        "json",
    ]);
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(report["summary"]["pedantic"], 1);
}
