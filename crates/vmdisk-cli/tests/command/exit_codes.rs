//! 0 clean, 1 findings at or above the threshold, 2 something could not be done, which wins.

use crate::{CLEAN, Place, UNSAFE};

#[test]
fn findings_below_the_threshold_do_not_fail_a_run() {
    let place = Place::with(&[("clean.xml", CLEAN), ("unsafe.xml", UNSAFE)]);
    assert_eq!(place.run(&["lint", "clean.xml"]).code, 0);
    assert_eq!(place.run(&["lint", "unsafe.xml"]).code, 1);
    assert_eq!(
        place
            .run(&["lint", "unsafe.xml", "--fail-on", "error"])
            .code,
        1
    );
    let ignored = place.run(&[
        "lint",
        "unsafe.xml",
        "--fail-on",
        "error",
        "--ignore",
        "cache-unsafe",
    ]);
    assert_eq!(ignored.code, 0, "{ignored:?}");
    assert!(ignored.stderr.contains("1 allowed"), "{ignored:?}");
}

#[test]
fn an_unreadable_input_wins_over_findings_and_the_rest_is_still_checked() {
    let place = Place::with(&[("unsafe.xml", UNSAFE)]);
    let run = place.run(&["lint", "missing.xml", "unsafe.xml"]);
    assert_eq!(run.code, 2);
    assert!(run.stdout.contains("error[cache-unsafe]"), "{run:?}");
    assert!(
        run.stderr.contains("missing.xml") && run.stderr.contains("no such file"),
        "{run:?}"
    );
}

#[test]
fn wrong_usage_is_2_and_prints_no_data() {
    let place = Place::with(&[("a.xml", CLEAN)]);
    for arguments in [
        &["lint", "a.xml", "--fail-on", "fatal"][..],
        &["lint", "a.xml", "--target", "qmeu=10.0"],
        &["lint", "a.xml", "--policy", "anarchy"],
        &["lint", "a.xml", "--unsafe-fixes"],
        &["lint", "a.xml", "-j", "0"],
        &["lint", "a.xml", "--facts", "missing.json"],
        &["lint", "a.xml", "--facts", "missing.json", "--live"],
        &["explain", "cache-unsave"],
        &["frobnicate"],
        &[],
    ] {
        let run = place.run(arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {run:?}");
        assert_eq!(run.stdout, "", "{arguments:?}");
        assert!(!run.stderr.is_empty(), "{arguments:?}");
    }
}

/// Each message says what was expected, in words of its own, in a few lines.
#[test]
fn wrong_usage_is_answered_with_what_to_write() {
    let place = Place::with(&[
        ("a.xml", CLEAN),
        ("s.yaml", "version: 1\ndisks:\n- raw: {path: /srv/a.img}\n"),
    ]);
    for (arguments, says) in [
        (
            &["lint", "a.xml", "--select"][..],
            "`vmdisk explain --list` lists",
        ),
        (
            &["lint", "a.xml", "--ignore"],
            "`vmdisk explain --list` lists",
        ),
        (&["lint", "a.xml", "-j", "x"], "expected a number from 1 on"),
        (&["lint", "a.xml", "-j", "0"], "expected a number from 1 on"),
        (
            &["generate", "s.yaml", "--vcpus", "x"],
            "expected a number from 1 on",
        ),
        (
            &[
                "lint",
                "a.xml",
                "--target",
                "qemu=9.0",
                "--target",
                "libvirt=9.0",
            ],
            "join versions with commas: --target qemu=10.0,libvirt=11.3",
        ),
        (&["lint", "a.xml", "--format", "sarfi"], "'sarif'"),
        (
            &["lint", "a.xml", "-c", "qemu:///system"],
            "add --all-domains, or --domain NAME",
        ),
        (
            &["lint", "a.xml", "--baseline", "."],
            "baseline .: is a directory\n",
        ),
        (
            &["lint", "a.xml", "--qemu", "./a.xml"],
            "could not query ./a.xml: it could not be started: permission denied\n",
        ),
        (
            &["facts", "qemu", "--qemu", "/bin/cat"],
            "could not query /bin/cat: QEMU exited (exit status: 1): /bin/cat: ",
        ),
        (
            &["generate", "s.yaml", "--name", "a/b"],
            "error: --name: `a/b` is not a valid",
        ),
        (
            &["generate", "s.yaml", "--qemu-format", "json"],
            "add --to qemu",
        ),
        (
            &[
                "convert",
                "s.yaml",
                "--to",
                "libvirt-xml",
                "--qemu-format",
                "args",
            ],
            "add --to qemu",
        ),
    ] {
        let run = place.run(arguments);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (2, ""),
            "{arguments:?}: {run:?}"
        );
        assert!(run.stderr.contains(says), "{arguments:?}: {run:?}");
        for noise in ["(os error", "\\u{a}", "invalid digit"] {
            assert!(!run.stderr.contains(noise), "{arguments:?}: {run:?}");
        }
        assert!(run.stderr.len() < 600, "{arguments:?}: {run:?}");
    }
}

#[test]
fn an_unknown_rule_is_refused_with_what_was_meant() {
    let place = Place::with(&[("a.xml", CLEAN)]);
    let run = place.run(&["lint", "a.xml", "--ignore", "cache-unsaf"]);
    assert_eq!(run.code, 2);
    assert!(
        run.stderr.contains("did you mean `cache-unsafe`?"),
        "{run:?}"
    );
}

#[test]
fn help_and_version_are_data() {
    let place = Place::with(&[]);
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["lint", "-h"],
        &["help", "lint"],
    ] {
        let run = place.run(arguments);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments:?}");
        assert!(!run.stdout.is_empty());
    }
}

#[test]
fn a_directory_without_a_domain_is_not_clean() {
    let place = Place::with(&[("d/network.xml", "<network/>"), ("d/notes.txt", UNSAFE)]);
    let run = place.run(&["lint", "d"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("contains a guest or a disk"), "{run:?}");
    assert!(run.stderr.ends_with("\n1 input failed\n"), "{run:?}");
}

#[test]
fn a_text_of_another_kind_is_told_what_is_read() {
    let place = Place::with(&[("vm.yaml", "\nname: web\nimage: debian\n")]);
    let run = place.run(&["lint", "vm.yaml"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.stderr
            .contains("not libvirt XML, a QEMU command line or a spec\n --> vm.yaml:2:1"),
        "{run:?}"
    );
}
