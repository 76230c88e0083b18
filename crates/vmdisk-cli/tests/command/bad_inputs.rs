//! Whatever is handed in: a message with its place, never a panic, never silence.

use crate::{CLEAN, Place, UNSAFE};

/// Checks a file of these bytes beside a good one, and returns what was said.
fn said(bytes: &[u8]) -> String {
    let place = Place::with(&[("good.xml", UNSAFE)]);
    place.write("bad.xml", bytes);
    let run = place.run(&["lint", "bad.xml", "good.xml"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.stdout.contains("good.xml:2:43"),
        "the other file is still checked: {run:?}"
    );
    assert!(run.stderr.contains("bad.xml"), "{run:?}");
    run.stderr
}

#[test]
fn a_tag_that_is_never_closed_is_shown_at_both_ends() {
    let said = said(b"<domain>\n  <devices>\n</domain>\n");
    assert!(said.contains("bad.xml:3:1"), "{said}");
    assert!(
        said.contains("2 |   <devices>") && said.contains("3 | </domain>"),
        "{said}"
    );
}

#[test]
fn what_is_no_text_in_utf8_is_named() {
    let utf16: Vec<u8> = "<domain/>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert!(said(&utf16).contains("UTF-16"));
    assert!(said(b"\x7fELF\x02\x01\x00\x00").contains("binary"));
    assert!(said(b"<domain>\n<name>\xff</name></domain>").contains("not UTF-8"));
    assert!(said(b"").contains("empty"));
    assert!(said(b"   \n").contains("bad.xml"));
}

#[test]
fn what_is_no_domain_is_refused_when_named() {
    assert!(said(b"<network/>").contains("network"));
    assert!(said(b"disks:\n  - file: /a\n").contains("bad.xml"));
}

#[test]
fn what_could_exhaust_the_reader_is_refused() {
    said("<a>".repeat(100_000).as_bytes());
    said(b"<!DOCTYPE d [<!ENTITY a 'x'><!ENTITY b '&a;&a;&a;'>]><domain>&b;</domain>");
    said(b"<!DOCTYPE d SYSTEM 'file:///etc/passwd'><domain/>");
}

#[test]
fn a_stream_without_end_is_given_up() {
    if cfg!(target_os = "linux") {
        let run = Place::with(&[]).run(&["lint", "/dev/zero"]);
        assert_eq!(run.code, 2);
        assert!(run.stderr.contains("16 MiB"), "{run:?}");
    }
}

#[test]
fn an_empty_standard_input_is_refused() {
    let run = Place::with(&[]).run_with_input(&["lint", "-"], b"");
    assert_eq!(run.code, 2);
    assert!(
        run.stderr.contains("<stdin>") && run.stderr.contains("empty"),
        "{run:?}"
    );
}

#[cfg(unix)]
#[test]
fn a_link_to_nowhere_in_a_directory_is_not_passed_over() {
    let place = Place::with(&[("d/good.xml", CLEAN), ("d/sub/file", "")]);
    std::os::unix::fs::symlink("nowhere", place.path("d/dangling.xml")).unwrap();
    // A directory whose name looks like a file's is walked into like any other.
    place.write("d/named.xml/inner.xml", UNSAFE.as_bytes());
    let run = place.run(&["lint", "d", "--format", "concise"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("d/dangling.xml"), "{run:?}");
    assert!(
        run.stdout
            .contains("d/named.xml/inner.xml:2:43: error[cache-unsafe]"),
        "{run:?}"
    );
}

#[test]
fn a_file_broken_before_its_first_element_is_not_passed_over() {
    let place = Place::with(&[
        ("d/merge.xml", "<<<<<<< HEAD\n<domain type='kvm'>\n"),
        ("d/good.xml", CLEAN),
        ("d/other.xml", "<html/>"),
    ]);
    let run = place.run(&["lint", "d"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("d/merge.xml"), "{run:?}");
    assert!(!run.stderr.contains("other.xml"), "{run:?}");
}

#[test]
fn a_name_that_acts_on_a_terminal_is_neutralised() {
    let name = "a\u{1b}[2J\u{202e}.xml";
    let place = Place::with(&[(name, UNSAFE)]);
    for format in ["full", "concise", "github"] {
        let run = place.run(&[
            "lint",
            name,
            "missing\u{1b}]0;x\u{7}.xml",
            "--format",
            format,
        ]);
        assert_eq!(run.code, 2);
        for text in [&run.stdout, &run.stderr] {
            assert!(
                !text.contains('\u{1b}') && !text.contains('\u{202e}'),
                "{text:?}"
            );
            assert!(!text.contains('\u{7}'), "{text:?}");
        }
    }
}

#[test]
fn facts_of_a_newer_shape_are_refused_and_unknown_keys_only_warned_about() {
    let place = Place::with(&[
        ("a.xml", CLEAN),
        ("newer.json", "{\"schema_version\": \"2.0\"}"),
        ("extra.yaml", "schema_version: \"1.0\"\nfuture_key: 1\n"),
        ("broken.json", "{"),
    ]);
    let newer = place.run(&["lint", "a.xml", "--facts", "newer.json"]);
    assert_eq!(newer.code, 2);
    assert!(
        newer.stderr.contains("2.0") && newer.stderr.contains("newer vmdisk"),
        "{newer:?}"
    );
    let broken = place.run(&["lint", "a.xml", "--facts", "broken.json"]);
    assert_eq!(broken.code, 2);
    assert!(broken.stderr.contains("line 1"), "{broken:?}");
    let extra = place.run(&[
        "lint",
        "a.xml",
        "--facts",
        "extra.yaml",
        "--fail-on",
        "error",
    ]);
    assert_eq!(extra.code, 0, "{extra:?}");
    assert!(
        extra.stderr.contains("warning") && extra.stderr.contains("future_key"),
        "{extra:?}"
    );
}

#[test]
fn a_pipe_that_nobody_writes_blocks_no_run_that_does_not_name_it() {
    let place = Place::with(&[("d/a.xml", CLEAN)]);
    let pipe = |name: &str| {
        let made = std::process::Command::new("mkfifo")
            .arg(place.path(name))
            .status();
        assert!(made.unwrap().success());
    };
    pipe("d/pipe.xml");
    for path in ["d", "d/*.xml", "*/pipe.xml"] {
        let run = place.run(&["lint", "d/a.xml", path]);
        assert!(run.stderr.contains("1 advice in 1 file"), "{run:?}");
    }
    pipe("d/vmdisk.toml");
    let run = place.run(&["lint", "d"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.stderr
            .contains("could not read d/vmdisk.toml: not a regular file"),
        "{run:?}"
    );
}

/// A file that root cannot read either, where there is one.
const UNREADABLE: &str = "/proc/self/mem";

#[test]
fn each_bad_input_is_told_with_its_place_and_none_stops_the_others() {
    let place = Place::with(&[("first.xml", UNSAFE), ("last.xml", UNSAFE)]);
    let utf_16 = |mark: &[u8], bytes: fn(u16) -> [u8; 2]| {
        let units = "<domain/>".encode_utf16();
        [mark, &units.flat_map(bytes).collect::<Vec<u8>>()].concat()
    };
    let bomb = "<?xml version='1.0'?>\n<!DOCTYPE d [\n<!ENTITY a 'x'>\n<!ENTITY b '&a;&a;'>\n]>\n<domain>&b;</domain>";
    let bad: [(&str, Vec<u8>, &str, &str); 8] = [
        (
            "cut-in-a-tag.xml",
            b"<domain>\n  <devices>\n    <dis".to_vec(),
            ":3:9",
            "ends inside the tag `<dis`",
        ),
        (
            "cut-between-tags.xml",
            b"<domain>\n  <devices>\n".to_vec(),
            ":2:3",
            "never closed",
        ),
        ("empty.xml", Vec::new(), "", "empty"),
        (
            "binary.xml",
            b"\x7fELF\x02\x01\x00\x00".to_vec(),
            "",
            "binary",
        ),
        (
            "utf-16-le.xml",
            utf_16(b"\xff\xfe", u16::to_le_bytes),
            "",
            "UTF-16",
        ),
        ("utf-16-be.xml", utf_16(b"", u16::to_be_bytes), "", "UTF-16"),
        (
            "bomb.xml",
            bomb.as_bytes().to_vec(),
            ":2:1",
            "document type declaration",
        ),
        (
            "deep.xml",
            format!("<domain>\n{}", "<a>".repeat(1000)).into_bytes(),
            ":2:",
            "more than 256 deep",
        ),
    ];
    place.write("no-xml-inside/notes.txt", b"nothing");
    let mut arguments = vec!["lint", "first.xml", "no-xml-inside", "missing.xml"];
    for (name, bytes, ..) in &bad {
        place.write(name, bytes);
        arguments.push(name);
    }
    if std::path::Path::new(UNREADABLE).exists() {
        arguments.push(UNREADABLE);
    }
    arguments.extend(["last.xml", "--format", "concise"]);
    let run = place.run(&arguments);
    assert_eq!(run.code, 2, "{run:?}");
    for good in [
        "first.xml:2:43: error[cache-unsafe]",
        "last.xml:2:43: error[cache-unsafe]",
    ] {
        assert!(run.stdout.contains(good), "{good}: {run:?}");
    }
    let said = |name: &str, at: &str, what: &str| {
        let place = format!("{name}{at}");
        let is_message = |line: &str| {
            line.starts_with(&place) && line.contains(": error: ") && line.contains(what)
        };
        let is_said = run.stderr.lines().any(is_message);
        assert!(is_said, "{place}: {what}: {}", run.stderr);
    };
    for (name, _, at, what) in &bad {
        said(name, at, what);
    }
    said(
        "no-xml-inside",
        "",
        "no file below this directory contains a guest",
    );
    said("missing.xml", "", "no such file");
    if std::path::Path::new(UNREADABLE).exists() {
        said(UNREADABLE, "", "could not be read");
    }
    let refused = arguments
        .iter()
        .filter(|word| !word.starts_with("--"))
        .count()
        - 4;
    let summary = format!("{refused} inputs failed");
    assert!(run.stderr.contains(&summary), "{summary}: {}", run.stderr);
}

#[test]
fn devices_upon_devices_without_an_end_end_every_command() {
    let device = |nth: usize| {
        format!(
            "{{\"id\": \"d{nth}\", \"paths\": [\"/dev/dm-{nth}\"], \"kind\": \"linear\", \"slaves\": [\"d{}\"]}}",
            nth + 1
        )
    };
    let facts = |number: usize| {
        let devices: Vec<String> = (0..number).map(device).collect();
        let devices = devices.join(",\n");
        format!("{{\"schema_version\": \"1.0\", \"blockdevs\": [{devices}]}}")
    };
    let place = Place::with(&[
        ("salt", "0123456789abcdef0123456789abcdef"),
        (
            "a.xml",
            "<disk type='block' device='disk'><driver name='qemu' type='raw'/><source dev='/dev/dm-0'/>\
             <target dev='vda' bus='virtio'/></disk>",
        ),
        ("few.json", &facts(64)),
        ("many.json", &facts(50_000)),
    ]);
    for words in [
        "trace a.xml --facts F",
        "trace a.xml --format json --facts F",
        "decide a.xml --facts F",
        "advise --size 1G --facts F",
        "lint a.xml --facts F",
        "facts show F",
        "facts check F",
        "facts diff F few.json",
        "facts redact F --salt-file salt",
    ] {
        let words = words.replace('F', "many.json");
        let run = place.run(&words.split(' ').collect::<Vec<_>>());
        assert!(run.code < 2, "{words}: {} {}", run.code, run.stderr);
    }
    let last = |facts: &str| place.run(&["trace", "a.xml", "--facts", facts]).stdout;
    let why = "no more than 64 levels of devices are followed";
    assert!(last("many.json").contains(why));
    assert!(!last("few.json").contains(why));
}
