//! What `vmdisk bench` measured on a host, in its facts and in what other commands say.

use std::path::Path;

use vmdisk::facts::Quantity;
use vmdisk::model::CacheMode;
use vmdisk::{Facts, HostIndex};

use crate::{Place, Run};

/// Why a benchmark cannot be planned where the tests run.
const BENCH_REFUSED: &str = "needs a place and programs for a benchmark";

const GUEST: &str = "<domain type='kvm'>
  <name>g</name>
  <memory unit='GiB'>2</memory>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' cache='writethrough'/>
      <source file='/srv/img/web1.qcow2'/>
      <target dev='sda' bus='sata'/>
    </disk>
  </devices>
</domain>
";

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

/// A directory with a guest, the facts of its host, and a recorded run as if it had measured that host.
fn place(run: &str) -> Place {
    let result = fixture(&format!("measurements/{run}.json"));
    let result = result
        .replace("/var/lib/bench/ext4", "/srv/img")
        .replace("io='threads'", "io='native'");
    Place::with(&[
        ("guest.xml", GUEST),
        ("host.json", &fixture("facts/xfs-nvme.json")),
        ("facts.json", &fixture("facts/xfs-nvme.json")),
        ("result.json", &result),
    ])
}

fn succeeds(run: Run) -> Run {
    assert_eq!(run.code, 0, "{run:?}");
    run
}

/// The figures of the guest after the change.
fn after(facts: &mut Facts) -> &mut vmdisk::facts::MeasuredStorage {
    let mut measured = facts.measured.iter_mut();
    measured.find(|it| !it.effects.is_empty()).unwrap()
}

fn facts(place: &Place, name: &str) -> Facts {
    let read = Facts::from_json(&place.read(name)).unwrap();
    assert_eq!(read.warnings, []);
    read.facts
}

#[test]
fn a_measured_effect_is_cited_and_takes_back_the_fix_that_it_refutes() {
    let place = place("verify-cache-writethrough");
    let to_facts = ["bench", "report", "result.json", "--to-facts"];
    let add = |file| place.run(&[&to_facts[..], &[file]].concat());
    succeeds(add("new.json"));
    succeeds(add("host.json"));
    let written = place.read("host.json");
    assert_eq!(facts(&place, "new.json"), facts(&place, "host.json"));
    // The same figures take the place of the same.
    succeeds(add("host.json"));
    assert_eq!(place.read("host.json"), written);

    let lint = |file| place.run(&["lint", "guest.xml", "--facts", file]).stdout;
    let lines = |text: &str, rule: &str| {
        let start = text.find(&format!("[{rule}]")).unwrap();
        text[start..].split("\n\n").next().unwrap().to_owned()
            + text[start..].split("\n\n").nth(1).unwrap_or("")
    };
    let confirmed = lines(&lint("host.json"), "cache-writethrough");
    assert!(
        confirmed
            .contains("the change is 14.5 [5.23, 40.3] times as fast for 4k-random-write-qd32"),
        "{confirmed}"
    );
    assert!(confirmed.contains("use `cache='writeback'`"), "{confirmed}");

    let mut refuted = facts(&place, "host.json");
    for effect in refuted.measured.iter_mut().flat_map(|it| &mut it.effects) {
        effect.high = 1100;
    }
    place.write("refuted.json", refuted.to_json().as_bytes());
    let text = lines(&lint("refuted.json"), "cache-writethrough");
    assert!(text.contains("help: keep it"), "{text}");
    assert!(!text.contains("--fix"), "{text}");
    // One workload with a gain is enough to propose it, and emulation says nothing about KVM.
    after(&mut refuted).effects[0].high = 1101;
    place.write("partly.json", refuted.to_json().as_bytes());
    assert!(lines(&lint("partly.json"), "cache-writethrough").contains("use `cache='writeback'`"));
    after(&mut refuted).effects[0].high = 1100;
    after(&mut refuted).accelerator = vmdisk::facts::Fact::Known("tcg".to_owned());
    place.write("emulated.json", refuted.to_json().as_bytes());
    assert!(
        lines(&lint("emulated.json"), "cache-writethrough").contains("use `cache='writeback'`")
    );
    // Another drive below the directory is other storage.
    let replaced = written.replace(
        "/dev/disk/by-id/nvme-SAMSUNG_MZQL21T9HCJR-00A07_S64GNE0T100001\"",
        "/dev/disk/by-id/nvme-new\"",
    );
    let mut replaced = Facts::from_json(&replaced).unwrap().facts;
    replaced.measured = facts(&place, "host.json").measured;
    place.write("replaced.json", replaced.to_json().as_bytes());
    assert!(!lint("replaced.json").contains("measured on this host"));

    let allowance = succeeds(place.run(&["bench", "report", "result.json", "--to", "allowance"]));
    let text = GUEST.replace("<disk ", &format!("{}<disk ", allowance.stdout));
    place.write("guest.xml", text.as_bytes());
    assert!(
        !lint("host.json").contains("[cache-writethrough]"),
        "{text}"
    );
}

#[test]
fn no_output_replaces_a_file_of_a_run_that_is_read() {
    let place = place("verify-cache-writethrough");
    for run in ["r1", "r2"] {
        for name in ["facts.json", "result.json"] {
            place.write(&format!("{run}/{name}"), place.read(name).as_bytes());
        }
        for name in [
            "run.json",
            "journal.jsonl",
            "samples.csv",
            "report.md",
            "samples/round-000-cell-000.json",
        ] {
            place.write(&format!("{run}/{name}"), name.as_bytes());
        }
    }
    let read: [&[&str]; 4] = [
        &["bench", "report", "r1/result.json", "-o"],
        &["bench", "report", "r1/result.json", "--to-facts"],
        &["bench", "compare", "r2/result.json", "r1/result.json", "-o"],
        &[
            "advise",
            "--size",
            "1G",
            "--facts",
            "host.json",
            "--measured",
            "r1/result.json",
            "-o",
        ],
    ];
    for words in read {
        for name in [
            "facts.json",
            "result.json",
            "run.json",
            "journal.jsonl",
            "samples.csv",
            "report.md",
            "samples/round-000-cell-000.json",
        ] {
            let name = format!("r1/{name}");
            let before = place.read(&name);
            let run = place.run(&[words, &[&name]].concat());
            assert_eq!(run.code, 2, "{words:?}: {run:?}");
            assert!(run.stderr.contains("this run reads it"), "{run:?}");
            assert_eq!(place.read(&name), before);
        }
    }
    // What else is in the directory may be an output.
    for _ in 0..2 {
        succeeds(place.run(&[read[0], &["r1/mine.txt"]].concat()));
    }
}

#[test]
fn figures_are_added_only_where_nothing_is_lost() {
    let place = place("cache-flushes-storage-daemon");
    let json = place.read("host.json");
    let unknown = json.replacen('{', "{\"mine\": 1,", 1);
    let yaml = format!("# mine\n{json}");
    for (name, text, why) in [
        (
            "host.yaml",
            yaml.as_str(),
            "it is YAML, whose comments would be lost",
        ),
        (
            "unknown.json",
            unknown.as_str(),
            "it would lose something: ",
        ),
    ] {
        place.write(name, text.as_bytes());
        let run = place.run(&["bench", "report", "result.json", "--to-facts", name]);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains(why), "{run:?}");
        assert_eq!(place.read(name), text);
    }
}

#[test]
fn a_run_whose_figures_have_no_place_does_not_begin() {
    let place = place("cache-flushes-storage-daemon");
    let [one, other] = ["a", "b"].map(|name| {
        let path = place.path(name);
        std::fs::create_dir(&path).unwrap();
        path.display().to_string()
    });
    let plan = format!(
        "version: 1\nname: n\nquestion: q\nsize: 16M\nphases: [steady]\nworkloads: [4k-random-read-qd1]\n\
         fixed: {{engine: host-fio}}\nmatrix: {{directory: ['{one}', '{other}']}}\n"
    );
    place.write("plan.yaml", plan.as_bytes());
    let run = |words: &[&str]| {
        place.run(&[&["bench", "run", "--plan", "plan.yaml", "--noisy"], words].concat())
    };
    let dry = run(&["--dry-run"]);
    if dry.code != 0 {
        vmdisk_testing::skipped_even_if_required(BENCH_REFUSED);
        return;
    }
    for words in [&["--dry-run"][..], &["--output", "out"]] {
        let run = run(&[&["--to-facts", "host.json"], words].concat());
        assert_eq!(run.code, 2, "{run:?}");
        let why = "does not describe the storage of";
        assert!(run.stderr.contains(why), "{run:?}");
        assert!(!place.path("out").exists());
    }
}

#[test]
fn figures_on_a_loop_device_are_no_facts_of_the_drive_below() {
    let place = place("cache-flushes-storage-daemon");
    let mut facts = facts(&place, "facts.json");
    for device in &mut facts.blockdevs {
        device.kind = vmdisk::facts::blockdev::BlockKind::Loop;
    }
    place.write("facts.json", facts.to_json().as_bytes());
    for words in [
        &["bench", "report", "result.json", "--to-facts", "new.json"][..],
        &[
            "advise",
            "--size",
            "1G",
            "--facts",
            "host.json",
            "--measured",
            "result.json",
        ],
    ] {
        let refused = place.run(words);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(
            refused
                .stderr
                .contains("/srv/img is on the loop device /dev/"),
            "{refused:?}"
        );
    }
    assert!(!place.path("new.json").exists());
}

#[test]
fn measured_figures_are_printed_where_their_storage_is() {
    let place = place("cache-flushes-storage-daemon");
    succeeds(place.run(&["bench", "report", "result.json", "--to-facts", "host.json"]));
    let measured = facts(&place, "host.json");
    let index = HostIndex::new(&measured);
    let none = Some(CacheMode::None.as_str());
    let of_none = index.measured_like("/srv/img/new.img", None, none, None);
    assert_eq!(of_none.len(), 1, "{of_none:?}");
    let flush = of_none[0].figure(Quantity::Flush).unwrap();
    assert!(flush.low < flush.mean && flush.mean < flush.high);
    // As many requests as the report of the run has: 54.5 k a second.
    let writes = of_none[0].figure(Quantity::ParallelWrite).unwrap();
    assert_eq!((writes.mean + 50 * 4096) / (100 * 4096), 545);
    let shown = flush.to_string();

    let guest = GUEST
        .replace("writethrough", "none")
        .replace("qcow2'", "raw'");
    place.write("guest.xml", guest.as_bytes());
    let trace = succeeds(place.run(&["trace", "guest.xml", "--facts", "host.json"]));
    let step = trace.stdout.split("file system: xfs").nth(1).unwrap();
    let step = step.split("\n\n").next().unwrap();
    assert!(
        step.contains("measured here") && step.contains(&shown),
        "{step}"
    );
    assert!(step.contains("measured on 2026-11-20"), "{step}");
    assert_eq!(trace.stdout.matches("measured here").count(), 1);
    let decide = place.run(&["decide", "guest.xml", "--facts", "host.json"]);
    assert!(
        !decide.stdout.contains(&shown),
        "the cache mode is given: {decide:?}"
    );
    place.write("guest.xml", guest.replace(" cache='none'", "").as_bytes());
    let decide = place.run(&["decide", "guest.xml", "--facts", "host.json"]);
    let cited = (decide.stdout + &decide.stderr).matches(&shown).count();
    assert_eq!(cited, 1, "only the cache mode rests on it");

    // As facts or as a run: the same advice.
    let advise = |words: &[&str]| {
        let common = [
            "advise",
            "--size",
            "40G",
            "--in",
            "/srv/img",
            "--workload",
            "database",
        ];
        let said = succeeds(place.run(&[&common[..], words].concat())).stdout;
        let (advice, _) = said.split_once("\nnext:\n").unwrap();
        advice.to_owned()
    };
    let from_facts = advise(&["--facts", "host.json"]);
    assert!(from_facts.contains("measured"), "{from_facts}");
    assert_eq!(
        advise(&["--facts", "facts.json", "--measured", "result.json"]),
        from_facts
    );
    assert!(!advise(&["--facts", "facts.json"]).contains("measured"));
    // What does not count says why.
    let other = place.read("host.json");
    let (form, io) = (r#""form": "#, r#""io": "#);
    assert!(other.contains(form) && other.contains(io), "{other}");
    let renamed = |key: &str, value: &str| {
        let lines = other.lines().map(|line| match line.split_once(key) {
            Some((before, _)) => format!("{before}{key}\"{value}\","),
            None => line.to_owned(),
        });
        place.write(
            "other.json",
            lines.collect::<Vec<_>>().join("\n").as_bytes(),
        );
        advise(&["--facts", "other.json"])
    };
    for (key, value, why) in [
        (io, "a", "measured with io a; the candidate has io "),
        (form, "vhdx", "measured with vhdx; the candidate has raw"),
    ] {
        let text = renamed(key, value);
        assert!(!text.contains("  measured: "), "{text}");
        let lines = text.lines().filter(|it| it.starts_with("  not used: "));
        assert!(lines.clone().count() > 1, "{text}");
        assert!(lines.clone().any(|line| line.contains(why)), "{text}");
    }
    // A figure of another load is one, too.
    for load in ["database", "sequential", "mixed", "boot"] {
        let words = ["--facts", "host.json", "--workload", load];
        let text = succeeds(
            place.run(&[&["advise", "--size", "40G", "--in", "/srv/img"], &words[..]].concat()),
        );
        let mut rows = text.stdout.lines().filter(|it| it.starts_with("/srv/img "));
        assert!(rows.any(|row| row.contains(" ≈ ")), "{text:?}");
    }

    let other = measured.to_json().replace("/srv/img", "/srv/other");
    place.write("other.json", other.as_bytes());
    let refused = place.run(&["bench", "report", "result.json", "--to-facts", "other.json"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("does not describe"), "{refused:?}");
    assert_eq!(place.read("other.json"), other);
}

#[test]
fn the_plan_for_what_advice_leaves_undecided_can_be_run() {
    let place = Place::with(&[]);
    let directory = place.path("").display().to_string();
    for load in ["database", "sequential", "mixed", "boot"] {
        let arguments = [
            "advise",
            "--live",
            "--size",
            "500M",
            "--in",
            &directory,
            "--workload",
            load,
            "--to",
            "bench-plan",
            "-o",
            "plan.yaml",
        ];
        let run = place.run(&arguments);
        if run.stderr.contains("nothing fits") || run.code != 0 {
            // Not every file system under a test keeps what is flushed.
            vmdisk_testing::skipped_even_if_required(BENCH_REFUSED);
            return;
        }
        let dry = place.run(&["bench", "run", "--plan", "plan.yaml", "--dry-run"]);
        let text = dry.stdout.clone() + &dry.stderr;
        assert!(
            dry.code == 0 || text.contains("nothing to compare"),
            "{load}: {dry:?}"
        );
        assert!(!text.contains("fetches no data"), "{dry:?}");
    }
}

#[test]
fn the_disks_of_a_bench_plan_have_room_and_are_no_larger_than_asked() {
    let size = |asked: &str, free: u64| {
        let place = place("cache-flushes-storage-daemon");
        let mut facts = facts(&place, "host.json");
        for filesystem in &mut facts.filesystems {
            filesystem.free_bytes = vmdisk::facts::Fact::Known(free);
        }
        place.write("host.json", facts.to_json().as_bytes());
        let run = place.run(&[
            "advise",
            "--facts",
            "host.json",
            "--in",
            "/srv/img",
            "--to",
            "bench-plan",
            "--size",
            asked,
        ]);
        let mut lines = run.stdout.lines();
        lines
            .find_map(|line| line.strip_prefix("size: "))
            .map_or(run.stderr.clone(), str::to_owned)
    };
    // Of each disk one image is kept, and up to ten are new at once.
    let [most, usual] = [size("40G", 100 << 30), size("500M", 100 << 30)];
    let mib = |size: &str| size.strip_suffix('M').unwrap().parse::<u64>().unwrap();
    assert!((256..=512).contains(&mib(&most)), "{most}");
    assert!(mib(&usual) <= 500, "{usual}");
    assert_eq!(size("20M", 100 << 30), "20M");
    assert!(mib(&size("500M", 3 << 30)) < 250);
    assert!(size("500M", (1 << 30) + 1000).contains("no room"));
}

#[test]
fn a_run_is_narrowed_by_names_and_by_its_time() {
    let place = Place::with(&[]);
    let dry = |words: &[&str]| {
        let run = place.run(&[&["bench", "run", "buffered", "--dry-run"], words].concat());
        (run.code, run.stdout + &run.stderr)
    };
    let (code, whole) = dry(&[]);
    if code != 0 {
        vmdisk_testing::skipped_even_if_required(BENCH_REFUSED);
        return;
    }
    let (_, one) = dry(&["--workload", "4k-random-read-qd8"]);
    assert!(
        one.contains("  4k-random-read-qd8, ") && !one.contains("sequential"),
        "{one}"
    );
    let names: Vec<&str> = whole
        .split("configurations:")
        .nth(1)
        .unwrap()
        .lines()
        .collect();
    let names: Vec<&str> = names
        .iter()
        .filter_map(|it| it.strip_prefix("  ")?.split_once(':'))
        .map(|(name, _)| name)
        .collect();
    let (_, only) = dry(&["--only", names[1]]);
    assert!(only.contains("of 2 configurations"), "{only}");
    let (code, unknown) = dry(&["--only", "nothing"]);
    assert!(code == 2 && unknown.contains(names[0]), "{unknown}");
    assert_eq!(dry(&["--workload", "fast"]).0, 2);
    // Every preset that runs here at all fits into the time of a quick run.
    let (code, quick) = dry(&["--quick"]);
    assert!(code == 0 && quick.contains("6 to 24 rounds"), "{quick}");
    assert_eq!(dry(&["--quick", "--seconds", "1"]).0, 2);
}

#[test]
fn proposals_for_a_guest_need_no_directory_of_its_images() {
    let place = Place::with(&[]);
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    let image = place.path("disk.img");
    std::fs::write(&image, vec![0; 1 << 20]).unwrap();
    let guest = GUEST.replace("/srv/img/web1.qcow2", image.to_str().unwrap());
    place.write("guest.xml", guest.replace("qcow2", "raw").as_bytes());
    let run = place.run(&[
        "bench",
        "run",
        "lint",
        "--domain",
        "guest.xml",
        "--directory",
        "elsewhere",
        "--dry-run",
    ]);
    let text = run.stdout + &run.stderr;
    let live = place.run(&["lint", "--live", "guest.xml", "-v", "--pedantic"]);
    let live = live.stdout + &live.stderr;
    // The rules that need the place of the image are as checked as in a run of the linter.
    for rule in [
        "io-native-on-buffered-dio",
        "loop-device-buffered",
        "btrfs-cow-image",
    ] {
        let is_checked = |text: &str| {
            !text
                .lines()
                .any(|line| line.contains(rule) && line.contains("not"))
        };
        assert_eq!(
            is_checked(&text),
            is_checked(&live),
            "{rule}: {text}\n{live}"
        );
    }
    assert!(text.contains("cache-writethrough"), "{text}");
}

#[test]
fn a_run_removes_the_images_of_killed_runs_where_its_plan_creates_images() {
    let place = Place::with(&[]);
    let left = "elsewhere/vmdisk-bench-Ab12/disk-1";
    place.write(left, b"image");
    place.write("elsewhere/vmdisk-bench-Ab12/.owner", b"");
    let directory = place.path("elsewhere").display().to_string();
    let plan = format!(
        "version: 1\nname: n\nquestion: q\nsize: 16M\nphases: [steady]\nworkloads: [4k-random-read-qd1]\n\
         fixed: {{engine: host-fio}}\nmatrix: {{directory: [{directory}], no-cow: [false, true]}}\n"
    );
    place.write("plan.yaml", plan.as_bytes());
    let run = |words: &[&str]| {
        let run = [
            "bench",
            "run",
            "--plan",
            "plan.yaml",
            "--space-budget",
            "1M",
        ];
        place.run(&[&run, words].concat())
    };
    let dry = run(&["--dry-run"]);
    assert!(place.path(left).exists(), "{dry:?}");
    let run = run(&[]);
    assert!(
        run.stderr.contains("removed a directory of a killed run"),
        "{run:?}"
    );
    assert!(!place.path(left).exists(), "{run:?}");
}

#[test]
fn the_name_of_a_new_disk_leads_nowhere() {
    let place = place("cache-flushes-storage-daemon");
    for name in ["../evil", "/etc/evil", "a/b", ""] {
        let run = place.run(&[
            "advise",
            "--size",
            "1G",
            "--facts",
            "host.json",
            "--name",
            name,
            "--to",
            "script",
        ]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
        assert!(
            run.stderr.contains("expected a name without `/`"),
            "{run:?}"
        );
    }
}

#[test]
fn measured_figures_are_shown_and_a_new_measurement_is_a_difference() {
    let place = Place::with(&[("old.json", &fixture("facts/measured.json"))]);
    let shown = succeeds(place.run(&["facts", "show", "old.json"])).stdout;
    for figure in [
        "/srv/img: flush ≈ 9.00 ms [8.10, 10.2]; ",
        ", on 2026-11-20 with raw, host-fio\n",
        "the change of bus-emulated is 1.02 [0.97, 1.07] times as fast",
    ] {
        assert!(shown.contains(figure), "{figure}: {shown}");
    }
    // All of them are of one directory.
    for nth in 0..facts(&place, "old.json").measured.len() {
        let mut new = facts(&place, "old.json");
        new.measured[nth].measured_at = vmdisk::facts::Fact::Known("2026-12-01".to_owned());
        place.write("new.json", new.to_json().as_bytes());
        let diff = place.run(&["facts", "diff", "old.json", "new.json"]);
        assert_eq!((diff.code, diff.stdout.lines().count()), (1, 1), "{diff:?}");
        assert!(
            diff.stdout.contains("].measured_at: 2026-11-20T"),
            "{diff:?}"
        );
    }
    // Members of a list with one name are compared one by one.
    let twice = r#"{"schema_version": "1.0", "errors": [
        {"what": "lvs", "reason": "timeout", "detail": "A"},
        {"what": "lvs", "reason": "timeout", "detail": "B"}]}"#;
    place.write("old.json", twice.as_bytes());
    place.write("new.json", twice.replace("\"A\"", "\"C\"").as_bytes());
    let diff = place.run(&["facts", "diff", "old.json", "new.json"]);
    assert!(
        diff.stdout.contains("errors[lvs].detail: A → C"),
        "{diff:?}"
    );
}

#[test]
fn a_dry_run_refuses_what_the_run_would_refuse_to_read() {
    let place = Place::with(&[]);
    std::fs::create_dir(place.path("folder")).unwrap();
    place.write("a.img", &vec![1; 1 << 20]);
    let dry = |paths: &[&str]| place.run(&[&["bench", "read", "--dry-run"], paths].concat());
    let whole = dry(&["a.img", "./a.img"]);
    if whole.code != 0 {
        vmdisk_testing::skipped_even_if_required(BENCH_REFUSED);
        return;
    }
    for (paths, why) in [
        (["a.img", "none"].as_slice(), "could not open "),
        (
            &["a.img", "folder"],
            "it is neither a file nor a block device",
        ),
        (
            &["a.img"],
            "nothing to compare: only one configuration can be measured here",
        ),
    ] {
        let run = dry(paths);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains(why), "{run:?}");
    }
}

#[test]
fn the_lengths_of_samples_that_differ_are_in_words() {
    let place = place("cache-flushes-storage-daemon");
    let mut result: serde_json::Value = serde_json::from_str(&place.read("result.json")).unwrap();
    for workload in result["header"]["plan"]["workloads"]
        .as_array_mut()
        .unwrap()
    {
        workload["amount"] = serde_json::json!({"seconds": 0.3});
        workload["ramp_seconds"] = serde_json::json!(0.1);
    }
    place.write("other.json", result.to_string().as_bytes());
    let run = place.run(&["bench", "compare", "result.json", "other.json"]);
    let text = run.stdout + &run.stderr;
    assert!(text.contains("0.3 s after a ramp of 0.1 s"), "{text}");
}
