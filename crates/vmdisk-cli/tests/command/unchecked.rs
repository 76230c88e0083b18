//! Runs that checked less than they seem to: none of them passes with `--fail-on-unchecked`.

use crate::{CLEAN, Place, UNSAFE};

/// Facts of a host about which nothing was collected.
const NOTHING: &str = "schema_version: '1.0'\n";

/// A fact about another image.
const OTHER_IMAGE: &str =
    "schema_version: '1.0'\nfiles:\n- {path: /srv/other.qcow2, kind: regular}\n";

/// A guest in which nothing is found above advice.
fn place() -> Place {
    Place::with(&[
        ("d/web1.xml", CLEAN),
        ("d/web2.xml", &CLEAN.replace("web1", "web 2")),
        ("nothing.yaml", NOTHING),
        ("other.yaml", OTHER_IMAGE),
    ])
}

#[test]
fn a_run_that_checked_less_than_it_seems_fails() {
    let place = place();
    place.write("typo/vmdisk.toml", b"[rules]\ncach-unsafe = \"off\"\n");
    place.write("typo/a.xml", CLEAN.as_bytes());
    for (what, arguments, code, says) in [
        (
            "unknown images",
            &["d", "--facts", "other.yaml"][..],
            1,
            "which fails the run",
        ),
        (
            "facts that cover nothing",
            &["d", "--facts", "nothing.yaml"],
            1,
            "which fails the run",
        ),
        ("no facts", &["d"], 1, "which fails the run"),
        (
            "a pattern that matches nothing",
            &["d", "domains/*.xml"],
            2,
            "no file matches",
        ),
        (
            "a typo in the name of a rule",
            &["d", "--select", "cach-unsafe"],
            2,
            "did you mean `cache-unsafe`?",
        ),
        (
            "a typo in the configuration",
            &["typo"],
            2,
            "did you mean `cache-unsafe`?",
        ),
        (
            "two lines of paths in one word",
            &["d\nd"],
            2,
            "no such file",
        ),
        ("an empty directory", &["empty"], 2, "empty"),
    ] {
        std::fs::create_dir_all(place.path("empty")).unwrap();
        let run = place.run(&[&["lint", "--fail-on-unchecked"], arguments].concat());
        assert_eq!(run.code, code, "{what}: {run:?}");
        assert!(run.stderr.contains(says), "{what}: {run:?}");
    }
}

/// No facts can have the image of a template: it does not make a run fail for ever, and is not among what facts lack.
#[test]
fn what_a_template_leaves_open_is_counted_apart() {
    let disk = CLEAN.replace("/srv/web1.qcow2", "{{ pool }}/web1.qcow2");
    let guest = |disk: &str| {
        format!(
            "<domain type='kvm'><name>a</name><memory>1048576</memory><vcpu>1</vcpu><os><type arch='x86_64' machine='q35'>\
             hvm</type></os><features><acpi/></features><devices>{disk}</devices></domain>"
        )
    };
    let place = Place::with(&[("d/a.xml", &guest(CLEAN)), ("t/vm.xml.j2", &guest(&disk))]);
    let facts = |path: &str| {
        let collected = place.run(&["facts", "--for", path, "-o", "facts.json"]);
        assert!(collected.code < 2, "{collected:?}");
    };
    facts("d");
    // Whether this machine has KVM is not always known.
    let fixed = [
        "lint",
        "t",
        "--facts",
        "facts.json",
        "--ignore",
        "tcg-instead-of-kvm",
    ];
    let lint = |more: &[&str]| place.run(&[&fixed, more].concat());
    let run = lint(&["--fail-on-unchecked=with-facts"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(!run.stderr.contains("rules not checked"), "{run:?}");
    assert!(
        run.stderr.contains("without the values of 1 placeholder"),
        "{run:?}"
    );
    assert!(!run.stderr.contains("no facts about"), "{run:?}");
    assert_eq!(lint(&["--fail-on-unchecked=always"]).code, 1);
    // A fact that is not collected for another reason still does.
    place.write("facts.json", b"{\"schema_version\": \"1.0\"}");
    let all = &fixed[..4];
    let run = place.run(&[all, &["--fail-on-unchecked=with-facts"]].concat());
    assert_eq!(run.code, 1, "{run:?}");
}

#[test]
fn files_from_which_other_programs_make_guests_are_counted() {
    let start = "subprocess.run(['qemu-system-x86_64', '-drive', 'file=/a.img'])";
    let cases = [
        ("run.py", start, true),
        (
            "main.tf",
            "resource \"libvirt_domain\" \"web1\" {\n}\n",
            true,
        ),
        (
            "vm.yaml",
            "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\n",
            true,
        ),
        ("new.sh", "#!/bin/sh\nvirt-install --disk size=10\n", true),
        ("other.py", "print(1)", false),
        ("pod.yaml", "apiVersion: v1\nkind: Pod\n", false),
        (
            "dns.tf",
            "resource \"dns_a_record_set\" \"a\" {\n}\n",
            false,
        ),
    ];
    for (name, text, is_counted) in cases {
        let place = Place::with(&[(&format!("d/{name}"), text), ("d/a.xml", CLEAN)]);
        let run = place.run(&["lint", "d"]);
        let said = "1 file names QEMU or a guest and had none that was read";
        assert_eq!(run.stderr.contains(said), is_counted, "{name}: {run:?}");
    }
}

#[test]
fn no_facts_have_what_a_variable_of_a_script_leaves_open() {
    let script = "qemu-system-x86_64 -M q35 -drive file=\"$IMG\",format=raw,if=virtio,cache=none\n";
    let facts = "schema_version: '1.0'\nhost: {kvm_usable: true}\n";
    let place = Place::with(&[("a.sh", script), ("facts.yaml", facts)]);
    let with_facts = [
        "lint",
        "a.sh",
        "--facts",
        "facts.yaml",
        "--fail-on-unchecked=with-facts",
        "-v",
    ];
    let ignored = ["--ignore", "tcg-instead-of-kvm"];
    let run = place.run(&[&with_facts[..], &ignored].concat());
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("the value of `$IMG`"), "{run:?}");
    assert!(!run.stderr.contains("no facts about"), "{run:?}");
    place.write("a.sh", script.replace("$IMG", "/srv/a.img").as_bytes());
    let run = place.run(&[&with_facts[..], &ignored].concat());
    assert_eq!(run.code, 1, "{run:?}");
}

#[test]
fn an_unknown_image_is_listed_once_with_the_command_that_collects_its_facts() {
    let place = place();
    let run = place.run(&["lint", "d", "--facts", "other.yaml", "-v"]);
    for image in ["/srv/web1.qcow2", "/srv/web 2.qcow2"] {
        let lines = run.stderr.lines().filter(|line| line.contains(image));
        let lines: Vec<&str> = lines.collect();
        assert_eq!(lines.len(), 1, "{run:?}");
        assert!(
            lines[0].starts_with("not checked: no facts about "),
            "{run:?}"
        );
    }
    let command = "\nto collect them on the host: vmdisk facts --for d -o facts.json\n";
    assert!(run.stderr.contains(command), "{run:?}");
    // The command does it.
    let collected = place.run(&["facts", "--for", "d", "-o", "facts.json"]);
    assert_eq!(collected.code, 0, "{collected:?}");
    let known = place.run(&["lint", "d", "--facts", "facts.json", "-v"]);
    assert!(!known.stderr.contains("no facts about"), "{known:?}");
    let text = CLEAN.replace("web1", "it&apos;s");
    let piped = place.run_with_input(
        &["lint", "-", "--facts", "other.yaml", "-v"],
        text.as_bytes(),
    );
    assert!(
        piped
            .stderr
            .contains("vmdisk facts '/srv/it'\\''s.qcow2' -o facts.json"),
        "{piped:?}"
    );
}

#[test]
fn every_mode_fails_and_exit_zero_says_that_it_does_not() {
    let place = Place::with(&[("a.xml", CLEAN)]);
    let lint =
        |more: &[&str]| place.run(&[&["lint", "a.xml", "--fail-on-unchecked"], more].concat());
    for more in [&[][..], &["--diff"], &["--fix"], &["--statistics"]] {
        let run = lint(more);
        assert_eq!(run.code, 1, "{more:?}: {run:?}");
        assert!(run.stderr.contains("which fails the run"), "{run:?}");
    }
    let run = lint(&["--exit-zero"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        !run.stderr.contains("which fails the run")
            && run.stderr.contains("which would fail the run"),
        "{run:?}"
    );
}

/// Every format says that rules could not be checked: in the report, or on standard error if it has no place for it.
#[test]
fn every_format_says_what_could_not_be_checked() {
    let place = Place::with(&[("a.xml", CLEAN)]);
    for (format, in_report) in [
        ("full", None),
        ("concise", None),
        ("json", Some("\"not_checked\": [\n    {")),
        ("sarif", Some("no facts were given")),
        ("github", Some("::notice title=not checked::")),
        ("gitlab", None),
        ("junit", None),
        ("checkstyle", None),
        ("json-lines", None),
        ("prometheus", Some("vmdisk_lint_rules_not_checked 4")),
        ("html", Some("rules not checked")),
    ] {
        let run = place.run(&["lint", "a.xml", "--format", format]);
        match in_report {
            Some(text) => assert!(run.stdout.contains(text), "{format}: {run:?}"),
            None => assert!(
                run.stderr
                    .contains("rules not checked (no facts of the host"),
                "{format}: {run:?}"
            ),
        }
    }
}

/// GitHub shows the first ten annotations of each kind in a step.
#[test]
fn annotations_of_the_run_are_before_those_of_findings() {
    let place = Place::with(&[("a.xml", CLEAN)]);
    let lint = ["lint", "a.xml", "--format", "github", "--select", "all"];
    let fails = [&lint[..], &["--fail-on-unchecked"]].concat();
    for (words, kind) in [(&lint[..], "::notice "), (&fails, "::error ")] {
        let run = place.run(words);
        let first = run.stdout.lines().next().unwrap();
        assert!(first.starts_with(&format!("{kind}title=not checked::")));
        assert!(run.stdout.lines().count() > 1, "{run:?}");
    }
}

#[test]
fn annotations_for_github_say_what_could_not_be_checked() {
    let old = format!("{NOTHING}collected_at: 2020-01-01T00:00:00Z\n");
    let place = Place::with(&[("a.xml", CLEAN), ("facts/old.yaml", &old)]);
    let lint = |more: &[&str]| {
        let words = [
            "lint",
            "a.xml",
            "--format",
            "github",
            "--select",
            "data-safety",
        ];
        place.run(&[&words[..], more].concat())
    };
    let facts = ["--facts", "facts/old.yaml"];
    let age = "--max-facts-age=30d";
    for (more, code, line) in [
        (&[][..], 0, "::notice title=not checked::"),
        (&["--fail-on-unchecked"], 1, "::error title=not checked::"),
        (
            &["--fail-on-unchecked", "--exit-zero"],
            0,
            "::notice title=not checked::",
        ),
        (
            &facts,
            0,
            "::warning file=facts/old.yaml,title=old facts::the facts in facts/old.yaml are 2517 days old",
        ),
        (
            &[&facts[..], &[age]].concat(),
            1,
            "::error file=facts/old.yaml,title=old facts::collected_at",
        ),
        (
            &[&facts[..], &[age, "--exit-zero"]].concat(),
            0,
            "::warning file=facts/old.yaml,title=old facts::collected_at",
        ),
    ] {
        let run = lint(more);
        assert_eq!(run.code, code, "{more:?}: {run:?}");
        assert!(
            run.stdout.lines().any(|one| one.starts_with(line)),
            "{line}: {run:?}"
        );
        let report = lint(&[more, &["--report", "github=out"]].concat());
        assert_eq!(
            place.read("out"),
            report.stdout,
            "a report is the same data"
        );
    }
    // Only what fails the run.
    assert_eq!(lint(&[&facts[..], &["-q"]].concat()).stdout, "");
    let quiet = lint(&["-q", "--fail-on-unchecked"]);
    assert!(quiet.stdout.starts_with("::error"), "{quiet:?}");
}

#[test]
fn findings_fail_a_run_beside_what_was_not_checked() {
    let place = Place::with(&[("a.xml", UNSAFE)]);
    let run = place.run(&["lint", "a.xml", "--fail-on-unchecked"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stdout.contains("cache-unsafe"), "{run:?}");
}
