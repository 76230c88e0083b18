//! `vmdisk apply --change`: changes of a guest and of storage that are there.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use vmdisk_testing::{installed, needed};

use crate::apply::SYSTEM;
use crate::{Place, finish, real_libvirt};

/// What makes the state of a case.
pub(crate) type Preparation = fn(&Place);

/// What makes a program stop at a point.
pub(crate) type Interruption = fn(&Place, &str);

/// A guest with two images below the folder D.
const BEFORE: &str = "\
version: 1
guest: {name: web1, type: qemu, memory: 256M}
disks:
- qcow2: {path: D/a.qcow2, size: 8M}
  cache: none
  io: threads
- raw: {path: D/b.img, size: 2M, preallocation: full}
  cache: none
  io: threads
";

/// The same one, with a change of each kind.
pub(crate) const AFTER: &str = "\
version: 1
guest: {name: web1, type: qemu, memory: 256M}
disks:
- qcow2: {path: D/a.qcow2, size: 16M}
  cache: writeback
  io: threads
  serial: one
  iotune: {total-iops-sec: 500}
- qcow2: {path: D/c.qcow2, size: 4M}
  cache: none
  io: threads
  target: vdc
";

/// A libvirt that keeps definitions in files, refuses those without an end, and does something before it defines a guest.
pub(crate) fn with_virsh(place: &Place, before_define: &str) {
    let guests = place.path("guests");
    fs::create_dir_all(&guests).unwrap();
    let text = format!(
        "cd '{}'\nfor last; do :; done\ncase $1 in\ndefine) {before_define}\ncat >new; grep -q '</domain>' new && mv new web1 ;;\n\
         dumpxml) cat \"$last\" 2>/dev/null || {{ echo 'error: failed to get domain' >&2; exit 1; }} ;;\n\
         list) ls | grep -v '^new$' ;;\ndomstate) cat ../state 2>/dev/null || echo 'shut off' ;;\n\
         dominfo) [ ! -e ../no-info ] && {{ cat ../info 2>/dev/null || echo 'Managed save: no'; }} ;;\n\
         domblklist) cat ../blocks 2>/dev/null || : ;;\n\
         snapshot-list) [ ! -e ../no-snapshots ] && {{ cat ../snapshots 2>/dev/null || :; }} ;;\nesac",
        guests.display()
    );
    place.program("bin/virsh", &text);
}

/// Waits until the programs that a killed run leaves behind have ended.
pub(crate) fn wait_for_programs(place: &Place) {
    let programs = place.path("bin").display().to_string();
    let is_one = |line: Vec<u8>| String::from_utf8_lossy(&line).contains(&programs);
    let are_there = || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let mut lines = all.filter_map(|it| fs::read(it.path().join("cmdline")).ok());
        lines.any(is_one)
    };
    while are_there() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// A `qemu-img` that does something before and after it does one thing.
pub(crate) fn with_qemu_img(place: &Place, what: &str, before: &str, after: &str) {
    let text = format!(
        "case $1 in {what}) {before}\n/usr/bin/qemu-img \"$@\" || exit\n{after}\nexit ;;\nesac\nexec /usr/bin/qemu-img \"$@\""
    );
    place.program("bin/qemu-img", &text);
}

pub(crate) fn write_spec(place: &Place, spec: &str) {
    let folder = format!("{}/", place.path("images").display());
    place.write("web1.yaml", spec.replace("D/", &folder).as_bytes());
}

pub(crate) fn command(place: &Place, arguments: &[&str]) -> Command {
    let mut all = vec!["apply", "web1.yaml", "--define"];
    all.extend(arguments);
    let mut command = place.command(all);
    command.env("PATH", format!("{}{SYSTEM}", place.path("bin").display()));
    command.stdin(Stdio::null());
    command
}

/// Exit status, standard output and standard error.
pub(crate) fn text_of(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

pub(crate) fn run(place: &Place, arguments: &[&str]) -> (Option<i32>, String, String) {
    text_of(&command(place, arguments).output().unwrap())
}

/// A place with the guest and its images, which hold data; none without `qemu-img`.
pub(crate) fn prepared() -> Option<Place> {
    needed(installed("qemu-img"))?;
    let place = Place::with(&[]);
    fs::create_dir(place.path("images")).unwrap();
    with_virsh(&place, "");
    write_spec(&place, BEFORE);
    let (code, said, errors) = run(&place, &[]);
    assert_eq!(code, Some(0), "{said}{errors}");
    let data = vec![7; 2 << 20];
    place.write("images/b.img", &data);
    write_spec(&place, AFTER);
    Some(place)
}

pub(crate) fn size_of(place: &Place, name: &str) -> Option<u64> {
    let path = place.path("images").join(name);
    let output = Command::new("qemu-img")
        .args(["info", "-U", "--output=json"])
        .arg(path)
        .output()
        .unwrap();
    let info: Value = serde_json::from_slice(&output.stdout).ok()?;
    info["virtual-size"].as_u64()
}

/// The kinds and the states of changes.
fn states(json: &str) -> Vec<(String, String)> {
    let report: Value = serde_json::from_str(json).unwrap();
    let text = |it: &Value, key: &str| it[key].as_str().unwrap().to_owned();
    let changes = report["changes"].as_array().unwrap().iter();
    changes
        .map(|it| (text(it, "kind"), text(it, "state")))
        .collect()
}

#[test]
fn each_kind_is_made_only_if_it_is_named() {
    let Some(place) = prepared() else { return };
    let before = place.read("guests/web1");
    let (code, said, errors) = run(&place, &[]);
    assert_eq!(code, Some(1), "{said}{errors}");
    assert!(
        errors.contains("`--change add,grow,options,remove` allows the changes"),
        "{errors}"
    );
    for shown in [
        "not-asked: grow vda: ",
        "  command: qemu-img resize -f qcow2 -- ",
        "  undo: nothing: storage is never made smaller",
        "  storage: at most 8 MiB more",
        "not-asked: remove vdb: ",
        "not-asked: options vda: cache from none to writeback, serial from unset to one, iotune from unset to",
        "  undo: virsh define /dev/stdin, with the definition before",
    ] {
        assert!(said.contains(shown), "{shown}\n{said}");
    }
    let (code, said, _) = run(
        &place,
        &["--change", "grow,options", "--dry-run", "--format", "json"],
    );
    assert_eq!(code, Some(1), "{said}");
    let expected = [
        "grow planned",
        "add not-asked",
        "options planned",
        "remove not-asked",
    ];
    let found: Vec<String> = states(&said)
        .into_iter()
        .map(|(kind, state)| format!("{kind} {state}"))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(place.read("guests/web1"), before);
    assert_eq!(size_of(&place, "a.qcow2"), Some(8 << 20));

    let (code, said, errors) = run(&place, &["--change", "grow"]);
    assert_eq!(code, Some(1), "{said}{errors}");
    assert!(said.ends_with("incomplete\n"), "{said}");
    assert_eq!(size_of(&place, "a.qcow2"), Some(16 << 20));
    assert_eq!(place.read("guests/web1"), before);
    assert!(!place.path("images/c.qcow2").exists());

    let (code, said, errors) = run(&place, &["--change", "options"]);
    assert_eq!(code, Some(1), "{said}{errors}");
    let now = place.read("guests/web1");
    assert!(
        now.contains("<serial>one</serial>") && now.contains("<total_iops_sec>500<"),
        "{now}"
    );
    assert!(!now.contains("c.qcow2") && now.contains("b.img"), "{now}");

    let (code, said, errors) = run(&place, &["--change", "add,remove"]);
    assert_eq!(code, Some(0), "{said}{errors}");
    let now = place.read("guests/web1");
    assert!(now.contains("c.qcow2") && !now.contains("b.img"), "{now}");
    assert_eq!(
        fs::read(place.path("images/b.img")).unwrap(),
        vec![7; 2 << 20]
    );
    let (code, said, _) = run(&place, &["--change", "grow,add,remove,options"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.ends_with("nothing-to-do\n"), "{said}");
    assert_eq!(place.read("guests/web1"), now);
}

#[test]
fn a_run_without_facts_keeps_what_a_run_with_facts_decided() {
    if needed(installed("qemu-img")).is_none() {
        return;
    }
    let place = Place::with(&[]);
    fs::create_dir(place.path("images")).unwrap();
    with_virsh(&place, "");
    let folder = place.path("images").display().to_string();
    for (name, kind) in [("xfs.yaml", "xfs"), ("ecryptfs.yaml", "ecryptfs")] {
        let facts = format!(
            "schema_version: '1.0'\nmounts: [{{id: m, point: {folder}, fs: f}}]\nfilesystems: [{{id: f, kind: {kind}}}]\n"
        );
        place.write(name, facts.as_bytes());
    }
    let spec = "version: 1\nguest: {name: web1, type: qemu, memory: 256M}\ndisks:\n- qcow2: {path: D/a.qcow2, size: 8M}\n";
    write_spec(&place, spec);
    let (code, said, errors) = run(&place, &["--facts", "xfs.yaml"]);
    assert_eq!(code, Some(0), "{said}{errors}");
    let before = place.read("guests/web1");
    let before = before.replace("discard='unmap'", "discard='ignore'");
    place.write("guests/web1", before.as_bytes());
    assert!(run(&place, &[]).1.ends_with("nothing-to-do\n"));
    write_spec(
        &place,
        &format!("{spec}  iotune: {{total-iops-sec: 500}}\n"),
    );
    let (code, said, errors) = run(&place, &["--change", "options"]);
    assert_eq!(code, Some(0), "{said}{errors}");
    let now = place.read("guests/web1");
    assert!(now.contains("<total_iops_sec>500<"), "{now}");
    for option in ["cache='none'", "discard='ignore'"] {
        assert!(now.contains(option), "{option}: {now}");
    }
    let (code, said, errors) = run(&place, &["--facts", "ecryptfs.yaml", "--change", "grow"]);
    assert_eq!(code, Some(1), "{said}{errors}");
    assert!(said.contains("cache from none to writeback"), "{said}");
    assert!(
        errors.contains("incomplete: `--change options` allows the changes that are listed"),
        "{errors}"
    );
}

/// Runs the command with a terminal as its input and its messages, and types an answer.
fn on_terminal(place: &Place, answer: &str) -> String {
    let apply = command(place, &[]);
    let words = std::iter::once(apply.get_program()).chain(apply.get_args());
    let words: Vec<String> = words
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &words.join(" ")]);
    script.arg("/dev/null").stdin(Stdio::piped());
    script.stdout(Stdio::piped()).stderr(Stdio::piped());
    script.current_dir(apply.get_current_dir().unwrap());
    script.envs(
        apply
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let output = finish(script, answer.as_bytes());
    format!("{}{} {}", output.stdout, output.stderr, output.code)
}

#[test]
fn a_yes_on_a_terminal_is_a_consent_and_anything_else_is_none() {
    let Some(place) = prepared() else { return };
    if needed(installed("script")).is_none() {
        return;
    }
    let before = place.read("guests/web1");
    for answer in ["no\n", "n\n", "maybe\nn\n", "\u{4}"] {
        let said = on_terminal(&place, answer);
        assert!(said.contains("make these changes? [y]es, [n]o"), "{said}");
        assert!(said.ends_with(" 1"), "{answer}: {said}");
        assert_eq!(place.read("guests/web1"), before);
        assert_eq!(size_of(&place, "a.qcow2"), Some(8 << 20));
    }
    let said = on_terminal(&place, "y\n");
    assert!(said.ends_with(" 0"), "{said}");
    let now = place.read("guests/web1");
    assert!(now.contains("c.qcow2") && !now.contains("b.img"), "{now}");
    assert_eq!(size_of(&place, "a.qcow2"), Some(16 << 20));
    let said = on_terminal(&place, "");
    assert!(
        !said.contains("make these changes") && said.ends_with(" 0"),
        "{said}"
    );
}

#[test]
fn what_no_change_reaches_is_named_with_both_values() {
    let Some(place) = prepared() else { return };
    let all = ["--change", "grow,add,remove,options"];
    write_spec(&place, &AFTER.replace("256M", "1G"));
    let (code, said, errors) = run(&place, &all);
    assert_eq!(code, Some(1), "{said}{errors}");
    assert!(
        errors.contains("incomplete: memory is 256M, and the plan has 1G"),
        "{errors}"
    );
    assert!(said.ends_with("incomplete\n"), "{said}");
    // The same image under another name is no new disk.
    let moved = AFTER
        .replace("target: vdc", "target: sda\n  bus: sata")
        .replace("c.qcow2", "a2.qcow2");
    write_spec(
        &place,
        &moved
            .replace("a.qcow2", "c.qcow2")
            .replace("a2.qcow2", "a.qcow2")
            .replace("4M", "16M")
            .replace(
                "size: 16M}\n  cache: writeback",
                "size: 4M}\n  cache: writeback",
            ),
    );
    let before = place.read("guests/web1");
    let (code, said, errors) = run(&place, &["--change", "add,remove"]);
    assert_eq!(code, Some(1), "{said}{errors}");
    assert!(
        errors.contains("incomplete: disk sda: bus is virtio, and the plan has sata"),
        "{errors}"
    );
    assert_eq!(place.read("guests/web1"), before);
}

#[test]
fn what_is_in_the_way_refuses_before_anything_changes() {
    let all = ["--change", "grow,add,remove,options"];
    let rows: &[(&str, Preparation, &str)] = &[
        (
            "a smaller size",
            |place| write_spec(place, &BEFORE.replace("8M", "4M")),
            "",
        ),
        (
            "a snapshot in the image",
            |place| {
                let image = place.path("images/a.qcow2");
                let status = Command::new("qemu-img")
                    .args(["snapshot", "-c", "s"])
                    .arg(image)
                    .status();
                assert!(status.unwrap().success());
            },
            "it has internal snapshots, which keep the old size: delete them first",
        ),
        (
            "another guest on top of the image",
            |place| {
                let image = place.path("images/a.qcow2");
                let status = Command::new("qemu-img")
                    .args(["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b"])
                    .args([&image, &place.path("images/top.qcow2")])
                    .status();
                assert!(status.unwrap().success());
                let other = place.read("guests/web1").replace("web1", "web2");
                place.write(
                    "guests/web2",
                    other.replace("a.qcow2", "top.qcow2").as_bytes(),
                );
            },
            "the guest web2 of libvirt uses it, too",
        ),
        (
            "a definition of another guest that libvirt does not print",
            |place| place.write("guests/web2", b"<domain>"),
            "whether another guest of libvirt uses it is not known: the guest web2: its XML cannot be read",
        ),
        (
            "too little space",
            |place| {
                let spec = BEFORE.replace(
                    "size: 2M, preallocation: full",
                    "size: 900T, preallocation: falloc",
                );
                write_spec(place, &spec);
            },
            "has too little space",
        ),
        (
            "a link instead of the image",
            |place| {
                let image = place.path("images/a.qcow2");
                fs::rename(&image, place.path("images/real.qcow2")).unwrap();
                std::os::unix::fs::symlink("real.qcow2", image).unwrap();
            },
            "it is a symbolic link",
        ),
        (
            "a definition that somebody else changes meanwhile",
            |place| {
                // The change comes with the first command of the run.
                let guest = place.path("guests/web1");
                let edit = format!("sed -i 's/262144/524288/' '{}'", guest.display());
                with_qemu_img(place, "resize", &edit, "");
                place.write("changed", b"");
            },
            "the guest web1 was changed meanwhile: run it again",
        ),
    ];
    for (name, prepare, why) in rows {
        let Some(place) = prepared() else { return };
        prepare(&place);
        let (definition, size) = (place.read("guests/web1"), size_of(&place, "a.qcow2"));
        let (code, said, errors) = run(&place, &all);
        assert_eq!(code, Some(1), "{name}: {said}{errors}");
        assert!(errors.contains(why), "{name}: {errors}");
        // A size that was changed before stays; nothing of the definition does.
        if place.path("changed").exists() {
            assert_eq!(
                place.read("guests/web1"),
                definition.replace("262144", "524288")
            );
            assert!(!place.path("images/c.qcow2").exists(), "{name}");
        } else {
            assert_eq!(place.read("guests/web1"), definition, "{name}");
            assert_eq!(size_of(&place, "a.qcow2"), size, "{name}");
        }
    }
}

#[test]
fn an_interrupted_run_leaves_each_change_as_before_or_as_after_and_the_next_one_ends_it() {
    let all = ["--change", "grow,add,remove,options"];
    for signal in ["TERM", "INT", "KILL"] {
        // A child of this shell's parent: the run itself.
        let kill = format!("kill -{signal} $PPID; sleep 0.2");
        let stops: [(&str, Interruption); 4] = [
            ("before the size", |place, kill| {
                with_qemu_img(place, "resize", kill, "")
            }),
            ("after the size", |place, kill| {
                with_qemu_img(place, "resize", "", kill)
            }),
            ("before the definition", |place, kill| {
                with_virsh(place, kill)
            }),
            ("in the definition", |place, kill| {
                with_virsh(place, &format!("cat >new; mv new web1; {kill}; exit"))
            }),
        ];
        for (name, prepare) in stops {
            let Some(place) = prepared() else { return };
            let before = place.read("guests/web1");
            prepare(&place, &kill);
            let (code, said, errors) = run(&place, &all);
            wait_for_programs(&place);
            assert_ne!(code, Some(1), "{signal} {name}: {said}{errors}");
            let size = size_of(&place, "a.qcow2").unwrap();
            assert!([8 << 20, 16 << 20].contains(&size), "{signal} {name}");
            let now = place.read("guests/web1");
            let is_after = ["c.qcow2", "<serial>one<"].map(|text| now.contains(text)) == [true; 2];
            assert!(
                now == before || is_after && !now.contains("b.img"),
                "{signal} {name}: {now}"
            );
            assert_eq!(
                fs::read(place.path("images/b.img")).unwrap(),
                vec![7; 2 << 20]
            );
            fs::remove_file(place.path("bin/qemu-img")).ok();
            with_virsh(&place, "");
            let (code, said, errors) = run(&place, &all);
            assert_eq!(code, Some(0), "{signal} {name}: {said}{errors}");
            assert_eq!(size_of(&place, "a.qcow2"), Some(16 << 20));
            let (code, said, _) = run(&place, &[]);
            assert_eq!(code, Some(0), "{signal} {name}: {said}");
        }
    }
}

#[test]
fn a_definition_that_libvirt_keeps_otherwise_is_undone() {
    let Some(place) = prepared() else { return };
    let before = place.read("guests/web1");
    // A libvirt that drops the serial number.
    with_virsh(&place, "sed '/<serial>/d' >new; mv new web1; exit");
    let (code, said, errors) = run(&place, &["--change", "options"]);
    assert_eq!(code, Some(2), "{said}{errors}");
    assert!(
        errors.contains("libvirt keeps another value of disk vda: serial; it is defined as before"),
        "{errors}"
    );
    assert!(said.contains("failed: options vda"), "{said}");
    assert_eq!(place.read("guests/web1"), before);
    // One that keeps the definition, and fails: the new image stays.
    with_virsh(&place, "cat >new; mv new web1; exit 1");
    let (code, said, errors) = run(&place, &["--change", "add"]);
    assert_eq!(code, Some(2), "{said}{errors}");
    assert!(place.read("guests/web1").contains("c.qcow2"));
    assert!(place.path("images/c.qcow2").exists(), "{said}{errors}");
}

/// What tells two guests that were defined alike from each other, and the places that libvirt gives out in its order.
const OWN: &[&str] = &[
    "<uuid>",
    "<mac ",
    "<address ",
    "<controller ",
    "</controller>",
    "<target chassis",
    "<model name='pcie",
];

/// The lines of a definition that two guests have in common if they were defined alike.
pub(crate) fn without_own(xml: &str) -> Vec<String> {
    let lines = xml.lines().map(str::trim);
    let own = |line: &&str| !OWN.iter().any(|own| line.starts_with(own));
    lines.filter(own).map(str::to_owned).collect()
}

#[test]
fn one_spec_and_then_another_is_the_other_one() {
    let Some((_root, uri)) = real_libvirt() else {
        return;
    };
    let disk = |file: &str, size: u32, rest: &str| {
        format!("- qcow2: {{path: D/{file}.qcow2, size: {size}M}}\n  target: {file}\n  {rest}\n")
    };
    let guest = "version: 1\nguest: {name: web1, type: qemu, memory: 256M, iothreads: 1}\ndisks:\n";
    let specs = [
        disk(
            "vda",
            8,
            "cache: none\n  io: threads\n  discard: unmap\n  serial: a\n  iotune: {total-iops-sec: 100}\n  iothread: 1",
        ),
        disk(
            "vda",
            16,
            "cache: writeback\n  io: threads\n  discard: ignore\n  serial: b\n  iotune: {total-iops-sec: 200}\n  iothread: 1",
        ) + &disk("vdb", 4, "cache: none\n  io: threads"),
        disk(
            "vda",
            24,
            "cache: none\n  io: native\n  discard: unmap\n  serial: c\n  iotune: {total-iops-sec: 300}\n  iothread: 1",
        ) + &disk("vdc", 4, "cache: directsync\n  io: threads"),
    ];
    let place = Place::with(&[]);
    let apply = |spec: &str| {
        write_spec(&place, &format!("{guest}{spec}"));
        let mut command = command(&place, &["--change", "grow,add,remove,options"]);
        text_of(&command.env("LIBVIRT_DEFAULT_URI", &uri).output().unwrap())
    };
    let virsh =
        |words: &[&str]| vmdisk_testing::run("virsh", &[&["--connect", &uri], words].concat());
    let definition = || without_own(&virsh(&["dumpxml", "--inactive", "web1"]).unwrap());
    let fresh = || {
        let _ = virsh(&["undefine", "web1"]);
        let _ = fs::remove_dir_all(place.path("images"));
        fs::create_dir(place.path("images")).unwrap();
    };
    for (from, to) in [(0, 1), (0, 2), (1, 2)] {
        fresh();
        let (code, said, errors) = apply(&specs[to]);
        assert_eq!(code, Some(0), "{said}{errors}");
        let wanted = definition();
        fresh();
        assert_eq!(apply(&specs[from]).0, Some(0));
        let (code, said, errors) = apply(&specs[to]);
        assert_eq!(code, Some(0), "{from} {to}: {said}{errors}");
        assert_eq!(definition(), wanted, "{from} {to}");
        let (code, said, _) = apply(&specs[to]);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.ends_with("nothing-to-do\n"), "{said}");
    }
}

/// Runs the commands of a section of the guide, with the spec of the place.
pub(crate) fn follow_guide(place: &Place, section: &str) -> (Option<i32>, String, String) {
    let program = place.path("bin/vmdisk");
    if !program.exists() {
        std::os::unix::fs::symlink(crate::program(), program).unwrap();
    }
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/change.md");
    let guide = fs::read_to_string(guide).unwrap();
    let (_, text) = guide.split_once(&format!("\n## {section}\n")).unwrap();
    let (_, text) = text.split_once("```sh\n").unwrap();
    let (text, _) = text.split_once("```").unwrap();
    assert!(text.lines().count() <= 5, "{text}");
    fs::copy(place.path("web1.yaml"), place.path("images/web1.yaml")).unwrap();
    let text = text.replace("/srv/img", place.path("images").to_str().unwrap());
    let path = format!("{}{SYSTEM}", place.path("bin").display());
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", &text]).env("PATH", path);
    shell.current_dir(place.path(""));
    text_of(&shell.output().unwrap())
}

#[test]
fn each_command_of_the_guide_makes_its_change() {
    let Some(place) = prepared() else { return };
    let more =
        "- qcow2: {path: D/c.qcow2, size: 4M}\n  cache: none\n  io: threads\n  target: vdc\n";
    let larger = BEFORE.replace("8M", "16M");
    let less = AFTER
        .replace("  serial: one\n", "")
        .replace("cache: writeback", "cache: none")
        .replace("  iotune: {total-iops-sec: 500}\n", "");
    let options = less.replacen(
        "cache: none\n",
        "cache: none\n  iotune: {total-iops-sec: 500}\n",
        1,
    );
    let all = options
        .replace("16M", "32M")
        .replace("total-iops-sec: 500", "total-iops-sec: 900");
    let bus = all
        .replacen("io: threads\n", "io: threads\n  bus: virtio-scsi\n", 1)
        .replace("memory: 256M", "memory: 256M, os: linux");
    let moved = bus.replace("qcow2: {path: D/a.qcow2", "raw: {path: D/a.img");
    for (section, spec) in [
        ("A larger disk", larger.clone()),
        ("One more disk", format!("{larger}{more}")),
        ("A disk less", less),
        ("Other options, and limits", options),
        ("All at once, from a program", all),
        ("Another bus", bus),
        ("Other storage", moved.clone()),
        ("As a script", moved.replace("32M", "48M")),
    ] {
        write_spec(&place, &spec);
        let (code, said, errors) = follow_guide(&place, section);
        assert_eq!(code, Some(0), "{section}: {said}{errors}");
        let (code, said, errors) = run(&place, &[]);
        assert_eq!(code, Some(0), "{section}: {said}{errors}");
    }
    assert_eq!(size_of(&place, "a.qcow2"), Some(32 << 20));
    assert_eq!(size_of(&place, "a.img"), Some(48 << 20));
    assert!(place.path("images/b.img").exists());
    let now = place.read("guests/web1");
    assert!(
        now.contains("<target dev='sda' bus='scsi'/>") && now.contains("/a.img'"),
        "{now}"
    );
}
