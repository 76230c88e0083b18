//! What a QEMU can do: asked of a program, recorded, and told as its schema says.

use serde_json::Value;

use crate::Place;

const RECORDED: &str = include_str!("../../../../fixtures/capabilities/7.2.json");

/// A program that answers as a QEMU 7.2 which has no schema, and dies when it is asked about NVMe namespaces.
const FAKE: &str = r#"#!/bin/sh
echo started >> "$0.log"
case "$*" in
  *boom*) kill -ABRT $$ ;;
  *picky*) for word; do case "$word" in
      *picky*) echo "fake: -device $word: I do not like this" >&2; echo "a hint" >&2; exit 1 ;;
    esac; done ;;
  *) echo "fake: warning: Machine type 'pc-q35-7.2' is deprecated" >&2 ;;
esac
number=0
answer() { number=$((number + 1)); printf '{"return": %s, "id": %s}\n' "$1" "$number" >&0; }
printf '{"QMP": {"version": {"qemu": {"major": 7, "minor": 2, "micro": 5}, "package": ""}}}\n' >&0
while read -r line; do
  case "$line" in
    *query-target*) answer '{"arch": "x86_64"}' ;;
    *query-machines*) answer '[{"name": "none"}, {"name": "pc-q35-7.2"}]' ;;
    *query-qmp-schema*) answer '[{"name": "blockdev-add", "meta-type": "command"}]' ;;
    *nvme-ns*) if [ -e "$0.crashes" ]; then echo boom >&2; kill -SEGV $$; fi; answer '[]' ;;
    *) answer '[{"name": "discard"}]' ;;
  esac
done
"#;

/// A folder with the fake.
fn fake() -> Place {
    let place = Place::with(&[("qemu.text", FAKE)]);
    install(&place);
    place
}

/// Makes the text the program. Another process does it: a file that this one wrote may still be open for writing in
/// what another test has just forked, and Linux starts no such file.
fn install(place: &Place) {
    let made = std::process::Command::new("install")
        .args(["-m", "755"])
        .args([place.path("qemu.text"), place.path("qemu")])
        .status();
    assert!(made.expect("install is everywhere").success());
}

const RECORD: [&str; 6] = ["facts", "qemu", "--qemu", "./qemu", "--format", "recording"];

#[test]
fn a_program_is_asked_what_it_can_do() {
    let place = fake();
    let first = place.run(&RECORD);
    assert_eq!((first.code, first.stderr.as_str()), (0, ""), "{first:?}");
    let recording: Value = serde_json::from_str(&first.stdout).unwrap();
    assert_eq!(recording["qemu"], serde_json::json!([7, 2, 5]));
    assert_eq!(recording["machines"], serde_json::json!(["pc-q35-7.2"]));
    let capabilities = &recording["capabilities"];
    assert_eq!(capabilities["blockdev"], true);
    assert_eq!(capabilities["virtio-blk-discard"], true);
    assert_eq!(capabilities["aio-io-uring"], false);
    assert_eq!(capabilities["rbd"], false);
}

/// The schema names the drivers of modules that are not installed.
#[test]
fn a_block_driver_is_there_if_it_can_be_loaded() {
    let schema = r#"[{"name": "blockdev-add", "meta-type": "command", "arg-type": "1"},
{"name": "1", "meta-type": "object", "members": [], "tag": "driver",
 "variants": [{"case": "rbd", "type": "2"}, {"case": "ssh", "type": "2"}, {"case": "gluster", "type": "2"}]},
{"name": "2", "meta-type": "object", "members": []}]"#;
    let said = r#"
    *driver=rbd*) answer '"Unknown driver '"'rbd'"'\r\n"' ;;
    *driver=ssh*) answer '"Parameter '"'server'"' is missing\r\n"' ;;
    *driver=gluster*) answer '"Driver '"'gluster'"' is not whitelisted\r\n"' ;;
    *nvme-ns*)"#;
    let known = r#"[{"name": "blockdev-add", "meta-type": "command"}]"#;
    let program = FAKE.replace(known, &schema.replace('\n', " "));
    let place = Place::with(&[("qemu.text", &program.replace("\n    *nvme-ns*)", said))]);
    install(&place);
    let run = place.run(&RECORD);
    let recording: Value = serde_json::from_str(&run.stdout).unwrap();
    let of = |name: &str| recording["capabilities"][name].as_bool();
    let found = ["rbd", "ssh", "gluster", "nfs"].map(of);
    assert_eq!(
        found,
        [Some(false), Some(true), Some(false), Some(false)],
        "{run:?}"
    );
}

#[test]
fn a_question_that_a_program_dies_of_is_unknown_and_the_others_are_answered() {
    let place = fake();
    place.write("qemu.crashes", b"");
    let run = place.run(&RECORD);
    let recording: Value = serde_json::from_str(&run.stdout).unwrap();
    let why = recording["unknown"]["nvme-ns"].as_str().unwrap();
    assert!(why.ends_with("boom") && why.contains("SIGSEGV"), "{why}");
    assert_eq!(recording["capabilities"]["nvme-ns"], Value::Null);
    assert_eq!(recording["capabilities"]["scsi-dpofua"], false);
}

#[test]
fn the_table_is_what_its_schema_says_and_tells_what_answers_rest_on() {
    let place = Place::with(&[("recorded.json", RECORDED)]);
    let arguments = [
        "facts",
        "qemu",
        "--qemu",
        "recorded.json",
        "--target",
        "libvirt=9.0",
    ];
    let run = place.run(&[&arguments[..], &["--format", "json"]].concat());
    let table: Value = serde_json::from_str(&run.stdout).unwrap();
    for (schema, instance) in [
        ("capabilities", &table),
        ("recording", &serde_json::from_str(RECORDED).unwrap()),
    ] {
        let schema = serde_json::from_str(&place.run(&["print", "schema", schema]).stdout).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        assert!(
            validator.is_valid(instance),
            "{:?}",
            validator.validate(instance)
        );
        assert!(!validator.is_valid(&serde_json::json!({})));
    }
    let row = |name: &str| {
        let rows = table["capabilities"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        (row["answer"].clone(), row["basis"].clone())
    };
    let pair = |answer: &str, basis: &str| (Value::from(answer), Value::from(basis));
    assert_eq!(row("libblkio"), pair("no", "probed"));
    assert_eq!(row("libvirt-statistics"), pair("no", "version"));
    assert_eq!(
        row("kernel-io-uring"),
        (Value::from("unknown"), Value::Null)
    );
    let text = place.run(&arguments).stdout;
    assert!(text.starts_with("QEMU 7.2.22 (Debian "), "{text}");
    assert!(
        text.contains("\nyes, by version  libvirt-io-uring "),
        "{text}"
    );
}

#[test]
fn what_is_no_qemu_is_refused_with_a_reason() {
    let place = Place::with(&[
        (
            "later.json",
            &RECORDED.replacen("\"schema_version\": 2", "\"schema_version\": 9", 1),
        ),
        ("other.json", "{\"qemu\": 7}"),
        ("empty", ""),
    ]);
    for (path, reason) in [
        (
            "later.json",
            "recorded in version 9 of the format; this vmdisk reads version 2",
        ),
        ("other.json", "not a recording of a QEMU"),
        ("empty", "it could not be started"),
        (".", "is a directory"),
        (
            "no-such-program",
            "the program no-such-program does not exist",
        ),
        ("./no-such-program", "no such file"),
    ] {
        let run = place.run(&["facts", "qemu", "--qemu", path]);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains(reason), "{path}: {}", run.stderr);
    }
    let run = place.run(&["facts", "qemu", "--format", "recording"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("--qemu PATH"), "{run:?}");
}

/// A guest with disks of these serial numbers.
fn guest(serials: &[&str]) -> String {
    let disks: String = serials
        .iter()
        .enumerate()
        .map(|(number, serial)| {
            format!(
                "    <disk type='block' device='disk'>\n      <driver name='qemu' type='raw' cache='none'/>\n\
                 \x20     <source dev='/dev/vg0/disk{number}'/>\n      <target dev='vd{}' bus='virtio'/>\n\
                 \x20     <serial>{serial}</serial>\n    </disk>\n",
                char::from(b'a' + u8::try_from(number).unwrap())
            )
        })
        .collect();
    format!(
        "<domain type='kvm'>\n  <name>web1</name>\n  <os><type machine='pc-q35-7.2'>hvm</type></os>\n  <devices>\n{disks}  </devices>\n</domain>\n"
    )
}

/// What a trial on the fake says, line by line.
fn tried(serials: &[&str]) -> Vec<String> {
    let place = fake();
    place.write("guest.xml", guest(serials).as_bytes());
    let arguments = [
        "lint",
        "--try-qemu",
        "./qemu",
        "--format",
        "concise",
        "guest.xml",
    ];
    let run = place.run(&arguments);
    let lines = run
        .stdout
        .lines()
        .filter(|line| line.contains("[refused-by-qemu]"));
    lines.map(str::to_owned).collect()
}

#[test]
fn what_a_qemu_says_stands_where_its_option_came_from() {
    assert_eq!(
        tried(&["good"]),
        [
            "guest.xml:3:22: advice[refused-by-qemu]: QEMU 7.2.5 warns of the guest: Machine type 'pc-q35-7.2' is deprecated"
        ]
    );
    // It stops at the first that it does not like; here all are found, at the element of each disk.
    let found = tried(&["picky1", "good", "picky2"]);
    assert_eq!(
        found[1..],
        [
            "guest.xml:5:5: error[refused-by-qemu]: QEMU 7.2.5 refuses `vda`: I do not like this",
            "guest.xml:17:5: error[refused-by-qemu]: QEMU 7.2.5 refuses `vdc`: I do not like this",
        ]
    );
}

#[test]
fn a_qemu_that_dies_without_a_word_dies_of_the_disk_without_which_it_lives() {
    let found = tried(&["good", "boom", "fine"]);
    assert!(
        found[1].starts_with("guest.xml:11:5: error[refused-by-qemu]: QEMU 7.2.5 refuses `vdb`: it ends (signal: 6 (SIGABRT)"),
        "{found:?}"
    );
}

#[test]
fn a_trial_changes_nothing_and_goes_with_no_fixes() {
    let place = fake();
    place.write("guest.xml", guest(&["good"]).as_bytes());
    for arguments in [
        &["lint", "--try-qemu", "./qemu", "--fix", "guest.xml"][..],
        &["lint", "--try-qemu", "./qemu", "--diff", "guest.xml"],
        &["lint", "--try-qemu", "guest.xml", "guest.xml"],
    ] {
        assert_eq!(place.run(arguments).code, 2, "{arguments:?}");
    }
    assert_eq!(place.read("guest.xml"), guest(&["good"]));
}
