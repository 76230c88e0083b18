//! `vmdisk.toml`: where it is looked for, what it decides, and how its mistakes are told.

use serde_json::Value;

use crate::{CLEAN, Place, Run, UNSAFE};

const FACTS: &str = "schema_version: '1.0'\ncollected_at: '2026-11-20T00:00:00Z'\n";

/// A repository with this configuration at its top, and a guest that drops flushes.
fn repository(config: &str) -> Place {
    Place::with(&[
        (".git/HEAD", "ref: refs/heads/main\n"),
        ("vmdisk.toml", config),
        ("domains/a.xml", UNSAFE),
        ("domains/lab/b.xml", UNSAFE),
        ("facts/kvm1.yaml", FACTS),
        (
            "facts/kvm2.yaml",
            &format!("{FACTS}limits: {{io_uring_disabled: 2}}\n"),
        ),
    ])
}

fn lint(place: &Place, arguments: &[&str]) -> Run {
    let words = ["lint", "--format", "concise"];
    let words: Vec<&str> = words.iter().chain(arguments).copied().collect();
    place.run(&words)
}

#[test]
fn the_nearest_file_up_to_the_top_of_the_repository_decides() {
    let place = repository("[rules]\ncache-unsafe = 'off'\n");
    let run = lint(&place, &["domains"]);
    assert!(!run.stdout.contains("cache-unsafe"), "{run:?}");
    place.write(
        "domains/lab/vmdisk.toml",
        b"[rules]\ncache-unsafe = 'advice'\n",
    );
    let run = lint(&place, &["domains"]);
    assert!(
        run.stdout
            .contains("domains/lab/b.xml:2:43: advice[cache-unsafe]"),
        "{run:?}"
    );
    assert!(!run.stdout.contains("domains/a.xml:2:43"), "{run:?}");
    // From another directory and by another way to name it, the same.
    let mut command = place.command(["lint", "../domains/a.xml", "--format", "concise"]);
    command.current_dir(place.path("facts"));
    let run = crate::finish(command, b"");
    assert!(!run.stdout.contains("cache-unsafe"), "{run:?}");
}

#[test]
fn a_file_above_the_repository_or_outside_of_one_decides_about_its_own_directory_only() {
    let place = Place::with(&[
        ("vmdisk.toml", "[rules]\ncache-unsafe = 'off'\n"),
        ("a.xml", UNSAFE),
        ("plain/b.xml", UNSAFE),
        ("repository/.git/HEAD", ""),
        ("repository/c.xml", UNSAFE),
    ]);
    let run = lint(&place, &["."]);
    let with_finding = |path: &str| {
        run.stdout
            .contains(&format!("{path}:2:43: error[cache-unsafe]"))
    };
    assert!(!with_finding("a.xml:"), "{run:?}");
    assert!(
        with_finding("plain/b.xml") && with_finding("repository/c.xml"),
        "{run:?}"
    );
}

#[test]
fn standard_input_has_the_configuration_of_the_current_directory() {
    let place = repository("[rules]\ncache-unsafe = 'off'\n");
    let run = place.run_with_input(&["lint", "-", "--format", "concise"], UNSAFE.as_bytes());
    assert!(!run.stdout.contains("cache-unsafe"), "{run:?}");
}

#[test]
fn one_file_or_none_can_be_asked_for() {
    let place = repository("[rules]\ncache-unsafe = 'off'\n");
    place.write(
        "ci/other.toml",
        b"fail-on = 'error'\n[rules]\ncache-unsafe = 'warning'\n",
    );
    let run = lint(&place, &["domains", "--no-config"]);
    assert!(run.stdout.contains("error[cache-unsafe]"), "{run:?}");
    let run = lint(
        &place,
        &[
            "domains",
            "--config",
            "ci/other.toml",
            "--select",
            "cache-unsafe",
        ],
    );
    assert!(run.stdout.contains("warning[cache-unsafe]"), "{run:?}");
    assert_eq!(run.code, 0, "its threshold is error: {run:?}");
    let missing = lint(&place, &["domains", "--config", "missing.toml"]);
    assert_eq!(
        (missing.code, missing.stdout.as_str()),
        (2, ""),
        "{missing:?}"
    );
    let both = lint(
        &place,
        &["domains", "--config", "ci/other.toml", "--no-config"],
    );
    assert_eq!(both.code, 2);
}

#[test]
fn the_command_line_takes_precedence() {
    let place =
        repository("fail-on = 'error'\nmin-severity = 'error'\n[rules]\ncache-unsafe = 'off'\n");
    let run = lint(&place, &["domains", "--extend-select", "cache-unsafe"]);
    assert!(run.stdout.contains("error[cache-unsafe]"), "{run:?}");
    let run = lint(&place, &["domains", "--select", "cache-unsafe"]);
    assert!(run.stdout.contains("error[cache-unsafe]"), "{run:?}");
    place.write(
        "vmdisk.toml",
        b"fail-on = 'error'\n[rules]\ncache-unsafe = 'advice'\n",
    );
    assert_eq!(lint(&place, &["domains"]).code, 0);
    assert_eq!(lint(&place, &["domains", "--fail-on", "advice"]).code, 1);
    let none = lint(&place, &["domains", "--min-severity", "warning"]);
    assert!(!none.stdout.contains("advice["), "{none:?}");
}

#[test]
fn a_rule_takes_precedence_over_its_group_and_later_files_over_earlier_ones() {
    let place = repository("[rules]\ncache-unsafe = 'warning'\nall = 'off'\n");
    let run = lint(&place, &["domains"]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{run:?}");
    assert!(
        lines
            .iter()
            .all(|line| line.contains("warning[cache-unsafe]")),
        "{run:?}"
    );
    place.write(
        "vmdisk.toml",
        b"[rules]\nall = 'off'\n[[files]]\npaths = 'domains/'\nrules.cache-unsafe = 'error'\n\
          [[files]]\npaths = ['lab/']\nrules = { cache-unsafe = 'off' }\n",
    );
    let run = lint(&place, &["domains"]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(
        matches!(lines.as_slice(), [line] if line.starts_with("domains/a.xml:")),
        "{run:?}"
    );
}

#[test]
fn excluded_files_are_checked_only_if_they_are_named() {
    let place = repository("exclude = ['lab/', '*.bak.xml']\n");
    place.write("domains/a.bak.xml", UNSAFE.as_bytes());
    let shown = place.run(&["lint", "domains", "--show-files"]);
    assert_eq!(shown.stdout, "domains/a.xml\n", "{shown:?}");
    let named = lint(&place, &["domains/a.bak.xml"]);
    assert!(named.stdout.contains("cache-unsafe"), "{named:?}");
    let hook = lint(&place, &["domains/a.bak.xml", "--skip-foreign"]);
    assert_eq!((hook.stdout.as_str(), hook.code), ("", 0), "{hook:?}");
}

#[test]
fn facts_hosts_target_and_policy_depend_on_the_path() {
    let place = repository(
        "facts = 'facts/*.yaml'\n[[files]]\npaths = 'domains/lab/'\nhosts = 'kvm2'\ntarget = 'qemu=7.2'\npolicy = 'lab'\n",
    );
    let uring = UNSAFE.replace("cache='unsafe'", "io='io_uring'");
    place.write("domains/a.xml", uring.as_bytes());
    place.write("domains/lab/b.xml", uring.as_bytes());
    let json = |place: &Place| -> Value {
        let run = place.run(&["lint", "domains", "--format", "json"]);
        serde_json::from_str(&run.stdout).unwrap()
    };
    let report = json(&place);
    let hosts: Vec<&str> = report["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|host| host["name"].as_str().unwrap())
        .collect();
    assert_eq!(hosts, ["kvm1", "kvm2"]);
    // Each host is alone in its class, so classes are called after hosts.
    let affected = |path: &str| -> Vec<Value> {
        let findings = report["findings"].as_array().unwrap().iter();
        let of_it = findings.filter(|finding| finding["path"] == path);
        of_it
            .flat_map(|finding| finding["hosts"]["affected"].as_array().unwrap().clone())
            .collect()
    };
    assert!(
        affected("domains/a.xml").contains(&"kvm2".into()),
        "{report}"
    );
    let lab = affected("domains/lab/b.xml");
    assert!(
        !lab.is_empty() && lab.iter().all(|host| host == "kvm2"),
        "{report}"
    );
    let settings = place.run(&["lint", "domains", "--show-settings"]).stdout;
    let (first, second) = settings.split_once("\n\n").unwrap();
    assert!(
        first.contains("facts = [\"facts/kvm1.yaml\", \"facts/kvm2.yaml\"]"),
        "{settings}"
    );
    assert!(first.starts_with("# domains/a.xml\n"), "{settings}");
    assert!(
        second.contains("facts = [\"facts/kvm2.yaml\"]"),
        "{settings}"
    );
    assert!(
        second.contains("policy = \"lab\"") && second.contains("target = \"qemu=7.2"),
        "{settings}"
    );
    // Facts of the command line replace all of these.
    let run = place.run(&[
        "lint",
        "domains",
        "--facts",
        "facts/kvm1.yaml",
        "--show-settings",
    ]);
    assert!(!run.stdout.contains("kvm2"), "{run:?}");
}

#[test]
fn a_configuration_that_does_not_apply_is_not_read() {
    let place = Place::with(&[
        ("vmdisk.toml", "broken"),
        ("a.xml", CLEAN),
        ("open/a.xml", CLEAN),
        ("repository/.git/HEAD", ""),
        ("repository/a.xml", CLEAN),
        ("repository/deep/er/a.xml", CLEAN),
        ("repository/deep/module/.git", ""),
        ("repository/deep/module/a.xml", CLEAN),
    ]);
    for inputs in [
        &["open"][..],
        &["repository"],
        &["repository/deep/er", "open", "repository/deep/module"],
    ] {
        let run = place.run(&[&["lint", "-q"], inputs].concat());
        assert_eq!(
            (run.code, run.stderr.as_str()),
            (0, ""),
            "{inputs:?}: {run:?}"
        );
    }
    // Where it applies, whatever was looked at before.
    for inputs in [&["a.xml"][..], &["open", "a.xml"], &["repository", "."]] {
        let run = place.run(&[&["lint", "-q"], inputs].concat());
        assert_eq!(run.code, 2, "{inputs:?}: {run:?}");
        assert!(run.stderr.contains("vmdisk.toml:1:"), "{run:?}");
    }
    place.write("repository/deep/vmdisk.toml", b"broken");
    for (input, code) in [
        ("repository/deep/module", 0),
        ("repository/deep/er", 2),
        ("repository/a.xml", 0),
    ] {
        let run = place.run(&["lint", "-q", "repository/deep/module", input]);
        assert_eq!(run.code, code, "{input}: {run:?}");
    }
}

#[test]
fn a_configuration_that_does_not_apply_to_a_directory_below_is_named() {
    let place = Place::with(&[("d/a.xml", CLEAN), ("vmdisk.toml", "policy = 'lab'\n")]);
    let says = "warning: vmdisk.toml does not apply to d/a.xml";
    let run = place.run(&["lint", "d"]);
    assert!(run.stderr.contains(says), "{run:?}");
    for arguments in [
        &["lint", "d", "-q"][..],
        &["lint", "d", "--no-config"],
        &["lint", "d", "--config", "vmdisk.toml"],
    ] {
        let run = place.run(arguments);
        assert!(!run.stderr.contains("does not apply"), "{run:?}");
    }
    std::fs::create_dir(place.path(".git")).unwrap();
    let run = place.run(&["lint", "d"]);
    assert!(!run.stderr.contains("does not apply"), "{run:?}");
}

#[test]
fn every_mistake_is_told_with_its_place_and_what_was_meant() {
    let place = repository(
        "polcy = 'lab'\nfail-on = 'errors'\nfacts = 3\ntarget = 'qmeu=1'\n[rules]\ncache-unsaf = 'off'\ncache-unsafe = 'of'\n\
         [[files]]\nfacts = []\n",
    );
    let run = lint(&place, &["domains"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    for (at, what) in [
        ("vmdisk.toml:1:1", "did you mean `policy`?"),
        ("vmdisk.toml:2:11", "did you mean `error`?"),
        ("vmdisk.toml:3:9", "must be a string"),
        ("vmdisk.toml:4:10", "qmeu"),
        ("vmdisk.toml:6:1", "did you mean `cache-unsafe`?"),
        ("vmdisk.toml:7:16", "did you mean `off`?"),
        ("vmdisk.toml:9:1", "has no `paths`"),
    ] {
        assert!(run.stderr.contains(at), "{at}: {}", run.stderr);
        assert!(run.stderr.contains(what), "{what}: {}", run.stderr);
    }
    place.write("vmdisk.toml", b"policy = 'lab'\n[rules\n");
    let run = lint(&place, &["domains"]);
    assert!(run.stderr.contains("vmdisk.toml:2:"), "{run:?}");
    place.write("vmdisk.toml", b"facts = ['facts/kvm9.yaml']\n");
    let run = lint(&place, &["domains"]);
    assert!(
        run.stderr.contains("vmdisk.toml:1:10") && run.stderr.contains("no such file"),
        "{run:?}"
    );
    place.write("vmdisk.toml", b"facts = 'facts'\nhosts = ['kvm11']\n");
    let run = lint(&place, &["domains"]);
    assert!(
        run.stderr.contains("vmdisk.toml:2:10") && run.stderr.contains("did you mean `kvm1`?"),
        "{run:?}"
    );
}

#[test]
fn init_writes_a_file_that_is_read_and_never_replaces_one() {
    let place = Place::with(&[("a.xml", CLEAN)]);
    let run = place.run(&["lint", "--write-config"]);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (0, "wrote ./vmdisk.toml\n"),
        "{run:?}"
    );
    let text = place.read("vmdisk.toml");
    assert_eq!(place.run(&["lint", "a.xml"]).code, 0);
    // Every key that it explains is one that is read.
    let active: String = text
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.contains(" = ") || rest.starts_with('[') => format!("{rest}\n"),
            _ => "\n".to_owned(),
        })
        .collect();
    place.write("facts/kvm1.yaml", FACTS.as_bytes());
    place.write("facts/kvm2.yaml", FACTS.as_bytes());
    place.write("facts/lab.json", b"{\"schema_version\": \"1.0\"}");
    let active = active.replace("facts/*.json", "facts/*.yaml");
    place.write("vmdisk.toml", active.as_bytes());
    let created = place.run(&["lint", "a.xml", "--write-baseline"]);
    assert_eq!(created.code, 0, "{created:?}");
    let run = place.run(&["lint", "a.xml"]);
    assert_eq!(run.code, 0, "{run:?}");
    let again = place.run(&["lint", "--write-config"]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("exists"), "{again:?}");
    assert_eq!(place.read("vmdisk.toml"), active);
}

#[test]
fn without_a_configuration_each_directory_costs_one_failed_call() {
    let place = Place::with(&[(".git/HEAD", "")]);
    for number in 0..20 {
        place.write(&format!("d/{number}/a.xml"), CLEAN.as_bytes());
    }
    let traced = std::process::Command::new("strace")
        .args(["-f", "-e", "trace=openat,stat,newfstatat,statx", "-o"])
        .arg(place.path("trace"))
        .arg(crate::program())
        .args(["lint", "d", "-j", "1"])
        .current_dir(place.path(""))
        .output();
    if !traced.is_ok_and(|output| output.status.code() == Some(0)) {
        vmdisk_testing::skipped_even_if_required("needs strace that may trace");
        return;
    }
    let trace = place.read("trace");
    let opened: Vec<&str> = trace
        .lines()
        .filter(|line| line.contains("vmdisk.toml"))
        .collect();
    let directories = 21 + place.path("").ancestors().count();
    // The current directory is asked once more, for the warning about a file that does not apply.
    assert!(
        opened.len() <= directories + 1,
        "{} of {directories}",
        opened.len()
    );
    // Somebody else's file above the repository is not opened.
    assert!(
        opened.iter().all(|line| !line.contains("openat(")),
        "{opened:?}"
    );
    let asked = trace.lines().filter(|line| line.contains("/.git\""));
    // The search for files asks for .gitignore's repository by itself.
    let without = "--no-config";
    let other = std::process::Command::new("strace")
        .args(["-f", "-e", "trace=openat,stat,newfstatat,statx", "-o"])
        .arg(place.path("other"))
        .arg(crate::program())
        .args(["lint", "d", "-j", "1", without])
        .current_dir(place.path(""))
        .output();
    assert!(other.is_ok());
    let before = place.read("other");
    assert_eq!(
        asked.count(),
        before
            .lines()
            .filter(|line| line.contains("/.git\""))
            .count()
    );
}
