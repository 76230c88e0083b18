//! Streams: pipes that close, disks that are full, colour, and the same bytes every time.

use std::process::Stdio;

use crate::{CLEAN, Place, UNSAFE, finish};

/// Many files, so that threads have something to reorder.
fn fleet() -> Place {
    let place = Place::with(&[("broken.xml", "<domain>")]);
    for number in 0..60 {
        let text = if number % 3 == 0 { CLEAN } else { UNSAFE };
        place.write(&format!("fleet/{number:02}.xml"), text.as_bytes());
    }
    place
}

#[test]
fn threads_change_nothing_of_what_is_printed() {
    let place = fleet();
    for format in [
        "full",
        "concise",
        "json",
        "sarif",
        "github",
        "junit",
        "checkstyle",
        "gitlab",
        "json-lines",
        "prometheus",
        "html",
    ] {
        let with = |jobs: &str| {
            place.run(&[
                "lint",
                "fleet",
                "broken.xml",
                "-v",
                "--format",
                format,
                "-j",
                jobs,
            ])
        };
        let (one, many) = (with("1"), with("8"));
        assert_eq!(one.stdout, many.stdout, "{format}");
        assert_eq!(one.stderr, many.stderr, "{format}");
        assert_eq!((one.code, many.code), (2, 2));
    }
}

#[test]
fn files_come_in_the_order_of_arguments_and_directories_sorted() {
    let place = Place::with(&[("z.xml", UNSAFE), ("d/b.xml", UNSAFE), ("d/a.xml", UNSAFE)]);
    let run = place.run(&[
        "lint",
        "z.xml",
        "./d",
        "d/a.xml",
        "--format",
        "concise",
        "-q",
        "--fail-on",
        "error",
    ]);
    let files: Vec<&str> = run
        .stdout
        .lines()
        .map(|line| line.split(':').next().unwrap())
        .collect();
    assert_eq!(files, ["z.xml", "d/a.xml", "d/b.xml"]);
}

#[test]
fn an_argument_whose_files_another_one_names_is_not_empty() {
    let place = Place::with(&[("d/a.xml", CLEAN)]);
    for paths in [
        ["d", "d"],
        ["d/a.xml", "d"],
        ["d", "d/*.xml"],
        ["d/*.xml", "d"],
    ] {
        let run = place.run(&[&["lint"], &paths[..]].concat());
        assert_eq!(run.code, 0, "{paths:?}: {run:?}");
        assert!(run.stderr.contains("1 advice in 1 file"), "{run:?}");
    }
}

#[test]
fn the_file_dash_is_standard_output() {
    let place = Place::with(&[("a.xml", UNSAFE)]);
    for arguments in [
        &["lint", "a.xml", "--format", "json"][..],
        &["lint", "a.xml"],
        &["convert", "a.xml", "--to", "spec"],
        &["generate", "--disk", "raw:/srv/a.img"],
        &["trace", "a.xml"],
        &["decide", "a.xml", "--format", "diff"],
    ] {
        let plain = place.run(arguments);
        let dash = place.run(&[arguments, &["-o", "-"]].concat());
        assert_eq!(dash.stdout, plain.stdout, "{arguments:?}");
        assert_eq!((dash.code, dash.stderr), (plain.code, plain.stderr));
    }
    assert!(!place.path("-").exists());
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let disks: String = (0..1_000)
        .map(|number| UNSAFE.replace("vda", &format!("disk{number}")))
        .collect();
    let place = Place::with(&[("a.xml", &format!("<devices>\n{disks}</devices>\n"))]);
    let mut command = place.command(["lint", "a.xml"]);
    let mut child = command.spawn().unwrap();
    drop(child.stdin.take());
    // Closed before anything can be written.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        !stderr.contains("panicked") && !stderr.contains("pipe"),
        "{stderr}"
    );
    assert!(stderr.contains("errors"), "{stderr}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_failure() {
    let place = Place::with(&[("a.xml", UNSAFE)]);
    let full = || {
        std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    let mut command = place.command(["lint", "a.xml"]);
    command.stdout(Stdio::from(full()));
    let run = finish(command, b"");
    assert_eq!(run.code, 2);
    assert!(
        run.stderr
            .contains("could not write to standard output: no space left"),
        "{run:?}"
    );
}

#[test]
fn colour_is_for_terminals_unless_asked_for() {
    let place = Place::with(&[("a.xml", UNSAFE)]);
    let with = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = place.command([&["lint", "a.xml"], arguments].concat());
        command.envs(variables.iter().copied());
        finish(command, b"").stdout.contains('\u{1b}')
    };
    assert!(!with(&[], &[]));
    assert!(with(&["--color", "always"], &[]));
    assert!(with(&["--color", "always"], &[("NO_COLOR", "1")]));
    assert!(with(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!with(&["--color", "never"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!with(&["--color", "always", "--format", "json"], &[]));
}

#[test]
fn quiet_leaves_only_what_fails_the_run() {
    let place = Place::with(&[("a.xml", UNSAFE), ("b.xml", CLEAN)]);
    let run = place.run(&[
        "lint",
        "a.xml",
        "b.xml",
        "-q",
        "--fail-on",
        "error",
        "--format",
        "concise",
    ]);
    assert_eq!((run.code, run.stderr.as_str()), (1, ""), "{run:?}");
    assert_eq!(run.stdout.lines().count(), 1, "{run:?}");
}

#[test]
fn standard_input_is_called_what_it_is_told() {
    let place = Place::with(&[]);
    let run = place.run_with_input(
        &[
            "lint",
            "-",
            "--stdin-filename",
            "domains/web1.xml",
            "--format",
            "concise",
        ],
        UNSAFE.as_bytes(),
    );
    assert!(
        run.stdout
            .contains("domains/web1.xml:2:43: error[cache-unsafe]"),
        "{run:?}"
    );
}

#[test]
fn the_summary_counts_what_was_not_checked_and_how_to_have_it_checked() {
    let place = Place::with(&[("a.xml", UNSAFE)]);
    let run = place.run(&["lint", "a.xml"]);
    assert!(run.stderr.contains("1 error"), "{run:?}");
    assert!(
        run.stderr
            .contains("not checked (no facts of the host: add --live or --facts FILE"),
        "{run:?}"
    );
    assert!(!run.stderr.contains("not checked: "), "{run:?}");
    let verbose = place.run(&["lint", "a.xml", "-v"]);
    assert!(verbose.stderr.contains("not checked: "), "{verbose:?}");
}

#[test]
fn a_report_replaces_no_file_that_it_is_about() {
    let facts = r#"{"schema_version": "1.0"}"#;
    for output in ["a.xml", "./a.xml", "host.json"] {
        let place = Place::with(&[("a.xml", UNSAFE), ("host.json", facts)]);
        let report = format!("json={output}");
        for arguments in [["-o", output], ["--report", &report]] {
            let run =
                place.run(&[&["lint", "a.xml", "--facts", "host.json"], &arguments[..]].concat());
            assert_eq!(run.code, 2, "{run:?}");
            assert!(
                run.stderr
                    .contains(&format!("could not write {output}: this run reads it")),
                "{run:?}"
            );
            assert_eq!(
                (place.read("a.xml"), place.read("host.json")),
                (UNSAFE.into(), facts.into())
            );
        }
    }
}
