//! Scripts as people write them: several starts, text under conditions, makefiles, units, and other languages.

use crate::Place;

/// Two starts that share a disk, of which one has a fault of its own.
const TWO: &str = "#!/bin/bash\n\
    BASE='-drive file=/srv/base.img,format=raw,if=virtio,cache=unsafe'\n\
    one() {\n  qemu-system-x86_64 -m 1G $BASE\n}\n\
    two() {\n  qemu-system-x86_64 -m 1G $BASE -drive file=/srv/b.img,format=raw,if=virtio,cahce=none\n}\n\
    one &\ntwo &\n";

#[test]
fn each_start_is_checked_and_what_they_share_is_reported_once() {
    let place = Place::with(&[("a.sh", TWO)]);
    let run = place.run(&["lint", "--no-config", "a.sh"]);
    assert_eq!(run.stdout.matches("[cache-unsafe]").count(), 1, "{run:?}");
    assert_eq!(
        run.stdout.matches("[property-refused]").count(),
        1,
        "{run:?}"
    );
    let own = "QEMU is started so in line 7, in `two`";
    assert_eq!(run.stdout.matches(own).count(), 1, "{run:?}");
    let json = place.run(&["lint", "--no-config", "--format", "json", "a.sh"]);
    assert!(json.stdout.contains("\"disks\": 3"), "{json:?}");
    // The text of both starts stays: the script uses it twice.
    let fixed = place.run(&["lint", "--no-config", "--fix", "a.sh"]);
    let expected = TWO.replace("cahce", "cache");
    assert_eq!(place.read("a.sh"), expected, "{fixed:?}");
}

#[test]
fn what_a_loop_adds_is_reported_once() {
    let text = "A=()\nfor i in 1 2 3; do A+=(-drive file=/srv/$i.img,if=virtio,format=raw,aio=native); done\n\
        qemu-system-x86_64 \"${A[@]}\"\n";
    let run = Place::with(&[("a.sh", text)]).run(&["lint", "--no-config", "a.sh"]);
    let count = run.stdout.matches("error[native-without-direct]").count();
    assert_eq!(count, 1, "{run:?}");
    let note = "QEMU is started so in line 3, `if line 2 runs`\n";
    assert!(run.stdout.contains(note), "{run:?}");
}

#[test]
fn the_condition_of_text_is_named_by_its_line() {
    for start in [
        "if [ -n \"$D\" ]; then C=unsafe; fi",
        "if [ -n \"$D\" ]; then :; else C=unsafe; fi",
        "[ -n \"$D\" ] && C=unsafe",
        "case $D in safe) ;; *) C=unsafe ;; esac",
        "for C in unsafe; do C=unsafe; done",
        "f() { C=unsafe; }; f",
    ] {
        let text = format!(
            "C=none\n{start}\nqemu-system-x86_64 -drive file=/a,if=virtio,format=raw,cache=$C\n"
        );
        let place = Place::with(&[("a.sh", &text)]);
        let run = place.run(&["lint", "--no-config", "a.sh"]);
        let note = "QEMU is started so in line 3, `if line 2 runs`\n";
        assert!(run.stdout.contains(note), "{text}{run:?}");
        assert_eq!(run.stdout.matches("[cache-unsafe]").count(), 1, "{run:?}");
    }
}

#[test]
fn a_fix_that_would_change_a_start_without_the_finding_is_not_offered() {
    let text = "if [ -e /x ]; then N=1; else N=4; fi\n\
         qemu-system-x86_64 -m 1G -smp $N -drive file=/a,format=raw,if=none,id=d \\\n  \
         -device virtio-blk-pci,drive=d,num-queues=4\n";
    let place = Place::with(&[("a.sh", text)]);
    let run = place.run(&["lint", "--no-config", "a.sh"]);
    assert_eq!(
        run.stdout.matches("[queues-gt-vcpus]").count(),
        1,
        "{run:?}"
    );
    place.run(&["lint", "--no-config", "--fix", "--unsafe-fixes", "a.sh"]);
    assert_eq!(place.read("a.sh"), text, "{run:?}");
}

#[test]
fn a_start_is_chosen_by_its_number_or_its_name() {
    let place = Place::with(&[("a.sh", &TWO.replace("cahce", "cache"))]);
    let convert = |more: &[&str]| {
        let all = [&["convert", "--to", "disk-xml", "a.sh"], more].concat();
        place.run(&all)
    };
    let none = convert(&[]);
    assert_eq!((none.code, none.stdout.as_str()), (2, ""), "{none:?}");
    for start in ["--start 1: line 4, in `one`", "--start 2: line 7, in `two`"] {
        assert!(none.stderr.contains(start), "{none:?}");
    }
    let first = convert(&["--start", "1"]);
    assert_eq!(
        (first.code, first.stdout.matches("<disk ").count()),
        (0, 1),
        "{first:?}"
    );
    let second = convert(&["--start", "two"]);
    assert_eq!(second.stdout.matches("<disk ").count(), 2, "{second:?}");
    assert_eq!(convert(&["--start", "3"]).code, 2);
    let trace = place.run(&["trace", "a.sh"]);
    assert!(
        trace.stdout.contains("a.sh: line 4, in `one`: disk vda"),
        "{trace:?}"
    );
    assert_eq!(trace.stdout.matches(": disk vda").count(), 2, "{trace:?}");
    assert_eq!(place.run(&["trace", "--format", "json", "a.sh"]).code, 2);
    let one = place.run(&["trace", "--format", "json", "--start", "one", "a.sh"]);
    assert_eq!(one.code, 0, "{one:?}");
}

#[test]
fn text_under_a_condition_is_checked_and_converted_only_with_a_value() {
    let text = "#!/bin/sh\nO=\nif [ \"${1:-}\" = --cd ]; then\n  O='-drive file=/cd.iso,format=raw,media=cdrom,if=ide'\nfi\n\
        qemu-system-x86_64 -m 1G $O -drive file=/a.img,format=raw,if=virtio\n";
    let place = Place::with(&[("a.sh", text)]);
    let convert = ["convert", "--to", "disk-xml", "a.sh"];
    let run = place.run(&convert);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    for said in [
        "`$O`: line 4 sets it under a condition",
        "--set NAME=VALUE",
        "vmdisk capture -- COMMAND",
    ] {
        assert!(run.stderr.contains(said), "{run:?}");
    }
    for (value, disks) in [("O=", 1), ("O=-hda /b.img", 2)] {
        let run = place.run(&[&convert[..], &["--set", value, "--disk-format", "raw"]].concat());
        assert_eq!(run.stdout.matches("<disk ").count(), disks, "{run:?}");
    }
    let lint = place.run(&["lint", "--no-config", "--format", "json", "a.sh"]);
    assert!(lint.stdout.contains("\"disks\": 2"), "{lint:?}");
}

#[test]
fn values_are_given_to_every_form_with_variables() {
    let drive = |file: &str| format!("-drive file={file},format=raw,if=virtio");
    for (name, text) in [
        (
            "a.sh",
            format!("qemu-system-x86_64 -m 1G {}\n", drive("$DIR/a")),
        ),
        (
            "b.sh",
            format!(". ./c\nqemu-system-x86_64 -m 1G {}\n", drive("${DIR}/a")),
        ),
        (
            "Makefile",
            format!(
                "DIR ?= $(SHELL)\nrun:\n\tqemu-system-x86_64 -m 1G {}\n",
                drive("$(DIR)/a")
            ),
        ),
        (
            "a.service",
            format!(
                "[Service]\nEnvironmentFile=/x\nExecStart=/usr/bin/qemu-system-x86_64 -m 1G {}\n",
                drive("${DIR}/a")
            ),
        ),
    ] {
        let place = Place::with(&[(name, &text)]);
        let without = place.run(&["convert", "--to", "disk-xml", name]);
        assert_eq!(without.code, 2, "{name}: {without:?}");
        assert!(without.stderr.contains("DIR"), "{name}: {without:?}");
        let with = place.run(&["convert", "--set", "DIR=/srv", "--to", "disk-xml", name]);
        assert!(with.stdout.contains("file='/srv/a'"), "{name}: {with:?}");
        let trace = place.run(&["trace", "--set", "DIR=/srv", name]);
        assert!(trace.stdout.contains("/srv/a"), "{name}: {trace:?}");
    }
}

#[test]
fn a_guest_without_disks_is_not_shown_in_silence() {
    let place = Place::with(&[
        (
            "unknown.sh",
            "qemu-system-$ARCH -drive format=raw,file=/a.img \"$@\"\n",
        ),
        ("none.xml", "<domain type='kvm'><devices/></domain>"),
    ]);
    let words =
        "2 words of the command line are unknown: `$@`, `-drive without if on an unknown machine`";
    for command in ["trace", "decide"] {
        let run = place.run(&[command, "unknown.sh"]);
        assert_eq!(run.stdout, "", "{run:?}");
        assert!(
            run.stderr.starts_with("no disks in unknown.sh\n"),
            "{run:?}"
        );
        assert!(run.stderr.contains(words), "{run:?}");
        let run = place.run(&[command, "none.xml"]);
        assert_eq!(run.stderr, "no disks in none.xml\n");
        let run = place.run(&[command, "--set", "ARCH=x86_64", "unknown.sh"]);
        assert!(run.stdout.contains("hda"), "{run:?}");
        assert!(
            run.stderr
                .contains("1 word of the command line is unknown: `$@`"),
            "{run:?}"
        );
        assert!(!run.stderr.contains("no disks"), "{run:?}");
    }
}

#[test]
fn unknown_words_are_named_first() {
    let text =
        "qemu-system-x86_64 -m 1G -drive file=/a,format=raw,if=virtio,cache=$C $EXTRA \"$@\"\n";
    let place = Place::with(&[("a.sh", text)]);
    let run = place.run(&["lint", "--no-config", "a.sh"]);
    let summary = "2 words of the command line are unknown: `$@`, `$EXTRA`";
    assert!(run.stderr.contains(summary), "{run:?}");
    let json = place.run(&["lint", "--no-config", "--format", "json", "a.sh"]);
    for what in ["the value of `$C`", "the options of the word `$EXTRA`"] {
        assert!(json.stdout.contains(what), "{what}: {json:?}");
    }
}

#[test]
fn words_under_a_condition_that_decide_over_no_disk_are_known() {
    for (words, is_unknown) in [
        ("-usb", false),
        ("-vnc :1", false),
        ("-snapshot", true),
        ("-machine pc", true),
    ] {
        let script = format!(
            "A=(-m 1G)\n[ -n \"$S\" ] && A+=({words})\nqemu-system-x86_64 \"${{A[@]}}\" -drive file=/a,if=virtio,format=raw,cache=unsafe\n"
        );
        let run = Place::with(&[("a.sh", &script)]).run(&["lint", "a.sh"]);
        assert!(run.stdout.contains("error[cache-unsafe]"), "{run:?}");
        assert_eq!(run.stderr.contains("unknown"), is_unknown, "{run:?}");
    }
}

#[test]
fn a_language_that_is_not_read_is_named_with_the_line_of_qemu() {
    for (text, message, line) in [
        (
            "#!/usr/bin/env python3\nargv = [\n  \"qemu-system-x86_64\", \"-hda\", \"a\"]\n",
            "Python",
            3,
        ),
        (
            "import os\nos.system('qemu-system-x86_64 -hda a')\n",
            "Python",
            2,
        ),
        (
            "#!/usr/bin/ruby\nexec(\"qemu-system-x86_64\", \"-hda\", \"a\")\n",
            "Ruby",
            2,
        ),
        (
            "#!/usr/bin/expect -f\nspawn qemu-system-x86_64 -hda a\n",
            "Tcl",
            2,
        ),
        (
            "$Disk = 'a'\n& qemu-system-x86_64.exe -m 1 `\n  -hda $Disk\n",
            "PowerShell",
            2,
        ),
        ("command:\n  - qemu-system-x86_64\n  - -hda\n", "YAML", 2),
        (
            "package main\nvar _ = exec.Command(\"qemu-system-x86_64\", \"-hda\", \"a\")\n",
            "Go",
            2,
        ),
        (
            "#!/bin/sh\n# qemu-system-x86_64 -hda a\ntrue\n",
            "this line is a comment",
            2,
        ),
        (
            "#!/bin/sh\ncommand -v qemu-system-x86_64\n",
            "names QEMU without an option",
            2,
        ),
        (
            "#!/bin/sh\nqemu-system-x86_64 --version\nqemu-system-x86_64 -device help\n",
            "only asks QEMU for information",
            2,
        ),
        (
            "disk/info\npool/q/qemu-system-x86_7.2_amd64.deb\n",
            "names QEMU without an option",
            2,
        ),
    ] {
        let place = Place::with(&[("a", text)]);
        let run = place.run(&["lint", "--no-config", "a"]);
        assert_eq!(run.code, 2, "{text}: {run:?}");
        assert!(run.stderr.contains(message), "{text}: {run:?}");
        assert!(
            run.stderr.contains(&format!("a:{line}:")),
            "{text}: {run:?}"
        );
    }
}

#[test]
fn a_value_of_a_variable_gives_no_error_and_no_edit() {
    for line in [
        "-drive $DRIVES",
        "-drive \"$drive\"",
        "-drive file=a.img,${CACHE}if=virtio,format=raw",
        "-drive file=a.img,format=raw,$OPTS",
        "-blockdev ${efi}",
        "-drive file=/a,format=raw,if=none,id=d -device virtio-blk-pci,$X",
        "-drive file=/a,format=raw,if=none,id=d -device virtio-blk-pci,drive=d$SUF",
        "-smp ${CPU} -drive file=/a,format=raw,if=none,id=d -device virtio-blk-pci,drive=d,num-queues=4",
        "-drive file=/a,format=$F,if=$I,media=$M,index=$N,readonly=$R,cache=$C,aio=$A,discard=$D",
        "-boot d ${disk}",
        "-blockdev '{\"driver\":\"raw\",\"node-name\":\"n\",\"file\":{\"driver\":\"file\",\"filename\":\"'$F'\"}}' -device virtio-blk-pci,drive=n",
    ] {
        let text = format!("qemu-system-x86_64 -m 1G {line}\n");
        let place = Place::with(&[("a.sh", &text)]);
        let run = place.run(&["lint", "--no-config", "--fix", "--unsafe-fixes", "a.sh"]);
        assert!(!run.stdout.contains("error"), "{line}: {run:?}");
        assert_eq!(place.read("a.sh"), text, "{run:?}");
        let convert = place.run(&["convert", "--to", "libvirt-xml", "a.sh"]);
        assert!(!convert.stdout.contains('$'), "{line}: {convert:?}");
    }
}

#[test]
fn a_variable_of_the_caller_is_not_empty_where_its_default_is_not_used() {
    for default in [
        "[ -z \"$MEM\" ] && MEM=1G",
        "if [ \"$MEM\" = '' ]; then MEM=1G; fi",
        "[[ -n $MEM ]] || { MEM=1G; }",
    ] {
        let text = format!(
            "{default}\nqemu-system-x86_64 -m $MEM -machine q35 -drive file=a,format=raw,if=virtio\n"
        );
        let run = Place::with(&[("a.sh", &text)]).run(&["lint", "--no-config", "a.sh"]);
        assert_eq!(run.code, 0, "{text}: {run:?}");
        assert_eq!(run.stdout, "", "{text}");
    }
}

#[test]
fn a_start_by_a_variable_is_found_beside_one_by_name() {
    let text = "probe() { qemu-system-x86_64 -M none -nographic; }\nprobe\nargs=(-m 1G $@)\n${QEMU} \"${args[@]}\"\n";
    let run = Place::with(&[("a.sh", text)]).run(&["convert", "--to", "qemu", "a.sh"]);
    assert!(
        run.stderr.contains("the file starts QEMU in 2 ways"),
        "{run:?}"
    );
}

#[test]
fn an_image_without_an_option_is_a_disk_also_by_a_variable() {
    for word in ["$disk", "${disk}", "\"$disk\"", "/vm/a.img"] {
        let text = format!("disk=/vm/a.img\nqemu-kvm -m 1G -boot d {word}\n");
        let place = Place::with(&[("a.sh", &text)]);
        let run = place.run(&["lint", "--no-config", "a.sh"]);
        assert!(run.stdout.contains("format-missing"), "{text}: {run:?}");
        let format = ["--disk-format", "raw"];
        let to = ["convert", "--to", "libvirt-xml", "a.sh"];
        let run = place.run(&[to.as_slice(), &format].concat());
        assert!(run.stdout.contains("/vm/a.img"), "{text}: {run:?}");
    }
}

#[test]
fn a_backslash_at_the_end_of_a_file_is_no_word() {
    for end in ["\\", "\\\n", " \\", ""] {
        let text = format!("qemu-system-x86_64 -m 1G -drive file=a,format=raw,if=virtio {end}");
        let run = Place::with(&[("a.sh", &text)]).run(&["trace", "a.sh", "--format", "json"]);
        let disks = run.stdout.matches("\"target\": ").count();
        assert_eq!(disks, 1, "{text}: {run:?}");
    }
}

#[test]
fn a_dollar_sign_in_single_quotes_is_text() {
    let text = "qemu-system-x86_64 -m 1G -drive 'file=/srv/cost$5.img,format=raw,if=virtio' -drive 'file=vitastor:c=$V:image=d,format=raw'\n";
    let place = Place::with(&[("a.sh", text)]);
    let run = place.run(&["lint", "--no-config", "a.sh"]);
    assert!(run.stdout.contains("[drive-protocol-unknown]"), "{run:?}");
    let convert = place.run(&["convert", "--without", "hda", "--to", "disk-xml", "a.sh"]);
    assert!(convert.stdout.contains("/srv/cost$5.img"), "{convert:?}");
}

#[test]
fn a_drive_of_windows_is_no_protocol_also_where_a_shell_has_read_its_path() {
    let text = "qemu-system-x86_64.exe -m 1G -hda X:\\images\\a.qcow2\n";
    let run = Place::with(&[("a.sh", text)]).run(&["lint", "--no-config", "a.sh"]);
    assert!(run.stdout.contains("[format-missing]"), "{run:?}");
    assert!(!run.stdout.contains("[drive-protocol-unknown]"), "{run:?}");
}

#[test]
fn values_of_one_name_are_compared_only_where_they_are_the_same() {
    let two = |file: &str| format!("-drive file={file},format=raw,if=virtio ").repeat(2);
    for (before, file, count) in [
        ("", "$(mktemp)", 0),
        ("T=$(mktemp)", "$T", 1),
        ("", "$1", 1),
        ("", "$IMG", 1),
        ("if x; then T=/a; else T=/b; fi", "$T", 2),
        ("read -r T", "$T", 0),
    ] {
        let text = format!(
            "#!/bin/bash\n{before}\nqemu-system-x86_64 -m 1G {}\n",
            two(file)
        );
        let place = Place::with(&[("a.sh", &text)]);
        let run = place.run(&["lint", "--no-config", "a.sh"]);
        let found = run.stdout.matches("[duplicate-disk-source]").count();
        assert_eq!(found, count, "{before} {file}: {run:?}");
    }
    let text = "for n in a b; do A+=(-drive \"file=$(find $n),format=raw,if=virtio\"); done\n\
        qemu-system-x86_64 -m 1G \"${A[@]}\"\n";
    let place = Place::with(&[("a.sh", text)]);
    let run = place.run(&["lint", "--no-config", "-v", "a.sh"]);
    assert_eq!(
        run.stdout.matches("[duplicate-disk-source]").count(),
        0,
        "{run:?}"
    );
    // How often the loop runs is unknown, and so are its further disks.
    let unknown = "not checked: invalid-value: a variable without a known value sets it (devices in a.sh: \
                   the options of the word `$A`)";
    assert!(run.stderr.contains(unknown), "{run:?}");
}

#[test]
fn a_program_whose_value_is_unknown_is_one_by_its_name() {
    let drive = "-drive file=/a,format=raw,if=virtio";
    for (name, text) in [
        (
            "a.sh",
            format!(
                "QEMU=$(command -v kvm || which qemu)\nA=({drive})\n\"$QEMU\" -m 1G \"${{A[@]}}\"\n"
            ),
        ),
        (
            "Makefile",
            format!(
                "QEMU := $(shell command -v qemu-system-x86_64)\nrun:\n\t$(QEMU) -m 1G {drive}\n"
            ),
        ),
        (
            "b.sh",
            format!(
                "for ((i=0; i<disk_count; i++)); do :; done\nqemu-system-x86_64 -m 1G {drive}\n"
            ),
        ),
    ] {
        let place = Place::with(&[(name, &text)]);
        let run = place.run(&["convert", "--to", "disk-xml", name]);
        assert_eq!(
            run.stdout.matches("file='/a'").count(),
            1,
            "{name}: {run:?}"
        );
    }
}

#[test]
fn an_interface_with_a_hole_may_be_a_disk() {
    let text = "qemu-system-x86_64 -m 1G -drive file=/a,format=raw,if=virtio$RO\n";
    let place = Place::with(&[("a.sh", text)]);
    let run = place.run(&["lint", "--no-config", "-v", "a.sh"]);
    assert!(
        run.stderr
            .contains("not checked: invalid-value: a variable"),
        "{run:?}"
    );
}

#[test]
fn relative_paths_are_where_the_script_changes_to_or_stay_relative() {
    const UNKNOWN: &str = "the directory in which QEMU starts is unknown";
    let rows = [
        ("a.sh", "true", "path: ROOT/a.img", "where the file is"),
        (
            "a.sh",
            "cd \"$(dirname \"$0\")\"",
            "path: ROOT/a.img",
            "where the file is",
        ),
        (
            "a.sh",
            "cd images",
            "path: ROOT/images/a.img",
            "where the file is",
        ),
        ("a.sh", "cd /srv", "path: /srv/a.img", ""),
        ("a.sh", "cd \"$DIR\"", "", UNKNOWN),
        (
            "a.service",
            "[Service]\nWorkingDirectory=/srv\nExecStart=\\",
            "path: /srv/a.img",
            "",
        ),
        ("a.service", "[Service]\nExecStart=\\", "", UNKNOWN),
        (
            "a.service",
            "[Service]\nExecStart=/bin/sh -c 'cd /srv && START'",
            "path: /srv/a.img",
            "",
        ),
        ("a.sh", "vm() ( cd /srv && START )\nvm", "", UNKNOWN),
        ("a.sh", "env -i -C /srv START", "path: /srv/a.img", ""),
        (
            "a.sh",
            "env --chdir=images START",
            "path: ROOT/images/a.img",
            "where the file is",
        ),
    ];
    for (name, before, path, message) in rows {
        let start = "qemu-system-x86_64 -drive file=a.img,format=raw,if=virtio";
        let text = match before.contains("START") {
            true => before.replace("START", start),
            false => format!("{before}\n{start}"),
        };
        let place = Place::with(&[(name, &format!("{text}\n"))]);
        let root = place.path("").canonicalize().unwrap();
        let expected = path.replace("ROOT", root.to_str().unwrap());
        let run = place.run(&["convert", "--to", "spec", name]);
        assert_eq!(run.code == 0, !path.is_empty(), "{before}: {run:?}");
        assert!(run.stdout.contains(&expected), "{before}: {run:?}");
        assert!(run.stderr.contains(message), "{before}: {run:?}");
        assert!(
            run.stderr.contains("--base") != message.is_empty(),
            "{before}: {run:?}"
        );
        let based = place.run(&["convert", "--to", "spec", "--base", "/base", name]);
        assert_eq!(based.code, 0, "{before}: {based:?}");
        if !path.starts_with("path: /srv") {
            assert!(based.stdout.contains("path: /base/"), "{before}: {based:?}");
        }
    }
}

#[test]
fn the_empty_drives_of_qemu_are_named() {
    let text = "qemu-system-x86_64 -M pc -cdrom /x.iso -drive file=/a.img,format=raw\n";
    let place = Place::with(&[("a.sh", text)]);
    let run = place.run(&["convert", "--to", "libvirt-xml", "a.sh"]);
    let said = "the guest has no floppy0: empty drives that QEMU adds without -nodefaults";
    assert!(run.stderr.contains(said), "{run:?}");
    let run = place.run(&["trace", "a.sh", "floppy0"]);
    assert_eq!(run.code, 2, "{run:?}");
    let said = "`floppy0` is an empty drive that QEMU adds to the machine";
    assert!(run.stderr.contains(said), "{run:?}");
    place.write("a.sh", text.replace(" -M", " -nodefaults -M").as_bytes());
    let run = place.run(&["convert", "--to", "libvirt-xml", "a.sh"]);
    assert!(!run.stderr.contains("floppy0"), "{run:?}");
}

#[test]
fn a_help_has_the_word_of_the_script_and_not_its_value() {
    let rows = [
        (
            "a.sh",
            "D=disk.img\nqemu-system-x86_64 -hda \"$D\"\n",
            "file=\"$D\"",
        ),
        (
            "Makefile",
            "DISK = disk.img\nrun:\n\tqemu-system-x86_64 -hda $(DISK)\n",
            "file=$(DISK)",
        ),
        (
            "b.sh",
            "qemu-system-x86_64 -hda disk.img\n",
            "file=disk.img",
        ),
    ];
    for (name, text, file) in rows {
        let place = Place::with(&[(name, text)]);
        let run = place.run(&["lint", name]);
        let help = format!("use `-drive {file},index=0,format=raw` instead of `-hda`");
        assert!(run.stdout.contains(&help), "{text}: {run:?}");
    }
}

#[test]
fn a_given_value_takes_nothing_away_and_is_advised_where_it_helps() {
    let array = "A=(-m 512 -drive file=/srv/a.img,format=raw,if=virtio,cache=unsafe)\n\
                 for f in /srv/*.img; do A+=(-drive \"file=$f,format=raw,if=virtio\"); done\n\
                 qemu-system-x86_64 \"${A[@]}\"\n";
    let config = "CFG=$(mktemp); echo >\"$CFG\"\nqemu-system-x86_64 -readconfig \"$CFG\"\n";
    let place = Place::with(&[
        ("array.sh", array),
        ("config.sh", config),
        ("argument.sh", "qemu-system-x86_64 -readconfig \"$1\"\n"),
        (
            "folder.sh",
            "qemu-system-x86_64 -readconfig \"$D/vm.cfg\"\n",
        ),
        (
            "vm.cfg",
            "[drive]\n  file = \"/a.img\"\n  if = \"virtio\"\n",
        ),
        // Files that are named as the shell writes what it replaces.
        ("$1", "[drive]\n  file = \"/a.img\"\n"),
        ("$(mktemp)", "[drive]\n  file = \"/a.img\"\n"),
    ]);
    for words in [&[][..], &["--set", "A=-snapshot"], &["--set", "A="]] {
        let run = place.run(&[&["lint", "array.sh"], words].concat());
        assert!(run.stdout.contains("[cache-unsafe]"), "{words:?}: {run:?}");
    }
    for (name, unknown) in [
        (
            "config.sh",
            "unknown: `$CFG`; give values with --set NAME=VALUE\n",
        ),
        (
            "argument.sh",
            "unknown: `$1`; give values with --set NAME=VALUE\n",
        ),
    ] {
        let run = place.run(&["lint", name]);
        assert_eq!(run.code, 0, "{run:?}");
        assert!(run.stderr.contains("no findings in 1 file"), "{run:?}");
        assert!(run.stderr.ends_with(unknown), "{run:?}");
    }
    let run = place.run(&["lint", "folder.sh", "--set", "D=."]);
    assert!(run.stdout.contains("[format-missing]"), "{run:?}");
}

#[test]
fn the_first_line_then_the_name_of_a_file_say_its_language() {
    let line = "qemu-system-x86_64 -drive file=/a,format=raw,if=virtio\n";
    let place = Place::with(&[
        ("a.fish", line),
        ("b.fish", &format!("#!/bin/sh\n{line}")),
        ("c.sh", line),
    ]);
    let said = place.run(&["lint", "a.fish"]).stderr;
    assert!(said.contains("fish is not read"), "{said}");
    for file in ["b.fish", "c.sh"] {
        let run = place.run(&["lint", file]);
        assert_eq!(run.code, 0, "{}", run.stderr);
    }
}

#[test]
fn guests_of_one_capture_are_compared_with_each_other() {
    let start = |name: &str| {
        format!(
            r#"{{"version":1,"program":"kvm","argv":["-name","{name}","-drive","file=/a,format=raw,if=virtio"],"folder":"/"}}"#
        )
    };
    let (both, one) = (format!("{}\n{}\n", start("a"), start("b")), start("a"));
    let place = Place::with(&[("both.json", &both), ("one.json", &one)]);
    let found = |file: &str| place.run(&["lint", "--format", "concise", file]).stdout;
    assert!(
        found("both.json").contains("image-shared-by-guests"),
        "{}",
        found("both.json")
    );
    assert!(!found("one.json").contains("image-shared-by-guests"));
}

#[test]
fn an_image_without_a_format_is_one_finding_however_many_starts_name_it() {
    let script = "#!/bin/sh\n\
                  case \"$1\" in\n\
                  one) qemu-system-x86_64 -accel kvm -drive file=/srv/a.img,if=virtio ;;\n\
                  two) qemu-system-x86_64 -accel kvm -smp 2 -drive file=/srv/a.img,if=virtio ;;\n\
                  *) qemu-system-x86_64 -accel kvm -smp 4 -drive file=/srv/b.img,if=virtio ;;\n\
                  esac\n";
    let place = Place::with(&[("start.sh", script)]);
    let run = place.run(&[
        "lint",
        "start.sh",
        "--no-config",
        "--select",
        "format-missing",
        "--format",
        "json",
    ]);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("it is JSON");
    let found = report["findings"].as_array().expect("a list");
    assert_eq!(found.len(), 2, "{run:?}");
    assert_eq!(
        found[0]["related"].as_array().map(Vec::len),
        Some(1),
        "{run:?}"
    );
    // The fix is for both places.
    let fixed = place.run(&[
        "lint",
        "start.sh",
        "--no-config",
        "--select",
        "format-missing",
        "--fix",
        "--unsafe-fixes",
    ]);
    let text = place.read("start.sh");
    assert_eq!(text.matches("format=raw").count(), 3, "{fixed:?}\n{text}");
}

#[test]
fn relative_images_are_looked_at_below_their_base() {
    let script = "#!/bin/sh\nqemu-system-x86_64 -drive file=a.img,format=qcow2,if=virtio\n";
    let place = Place::with(&[("start.sh", script), ("images/a.img", &"x".repeat(1024))]);
    let base = place.path("images").display().to_string();
    let without = place.run(&["lint", "start.sh", "--live", "-v"]);
    let hint = "vmdisk facts --for start.sh --base DIR -o facts.json";
    assert!(
        without.stdout.contains(hint) || without.stderr.contains(hint),
        "{without:?}"
    );
    let run = place.run(&["lint", "start.sh", "--live", "--base", &base]);
    assert!(run.stdout.contains("format-mismatch"), "{run:?}");
    let facts = place.run(&["facts", "--for", "start.sh", "--base", &base]);
    assert!(facts.stdout.contains(&format!("{base}/a.img")), "{facts:?}");
}
