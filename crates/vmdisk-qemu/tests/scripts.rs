//! What is read in scripts, and what is not.

#![allow(clippy::unwrap_used, reason = "a test may fail so")]

use std::collections::BTreeMap;

use vmdisk_model::Image;
use vmdisk_qemu::{Document, Folder, ReadFailure, read, read_all};

const DRIVE: &str = "-drive file=/a.img,format=raw,if=virtio";

fn all(text: &str) -> Result<Vec<Document>, ReadFailure> {
    read_all(text, text.len(), &[], &BTreeMap::new())
}

fn paths(document: &Document) -> Vec<String> {
    let images = document
        .domain
        .disks
        .iter()
        .map(|disk| disk.backend.image());
    images
        .map(|it| it.and_then(Image::host_path).unwrap_or("-").to_owned())
        .collect()
}

/// The words that may be disks.
fn unknown(document: &Document) -> Vec<String> {
    let words = document.others.iter().filter(|it| it.is_unknown);
    words.map(|it| it.name.clone()).collect()
}

/// The conditions and paths of each text that is checked on its own.
fn parts(text: &str) -> Vec<(String, Vec<String>)> {
    let all = all(text).unwrap_or_else(|failure| panic!("{text}: {failure}"));
    let parts = all.iter().filter(|it| it.start.is_part);
    parts
        .map(|it| (it.start.conditions.last().unwrap().clone(), paths(it)))
        .collect()
}

#[test]
fn a_value_is_known_only_where_nothing_else_can_change_it() {
    for (script, expected) in [
        ("A='-hda a'", "a|"),
        ("A=\"-hda a\"\nA=\"$A -hdb b\"", "a b|"),
        ("A='-hda a'\nA+=' -hdb b'", "a b|"),
        ("B=b\nA=\"-hda $B\"", "b|"),
        ("export A='-hda a'", "a|"),
        ("A='-hda a'\necho A; test A; [ \"$A\" = x ] && exit", "a|"),
        // What follows may change it, or what it is set to is no text.
        ("A='-hda a'\nread A", "|$A"),
        ("A='-hda a'\nlocal_a() { A=; }", "|$A"),
        ("A='-hda a'\nf() { eval \"$1\"; }; f A=", "|$A"),
        ("A='-hda a'\n. ./conf", "|$A"),
        ("A='-hda a'\nunset A", "|$A"),
        ("A='-hda a'\nfor A in x; do :; done", "|$A"),
        ("A='-hda a'\n: ${A:=x}", "|$A"),
        ("A='-hda a'\n(A=b)", "|$A"),
        ("declare -u A='-hda a'", "|$A"),
        ("A=$(cat conf)", "|$A"),
        ("A=${B#x}", "|$A"),
        ("A=$1", "|$A"),
        ("IFS=,\nA='-hda a'", "|$A"),
        ("A='-hda *'", "|$A"),
        ("if x; then A='-hda a'; fi", "|$A"),
        ("A='-hda a'\nx && A+=' -hdb b'", "a|$A"),
    ] {
        let text = format!("#!/bin/bash\n{script}\nqemu-system-x86_64 -S $A\n");
        let found = all(&text).unwrap_or_else(|failure| panic!("{text}: {failure}"));
        let first = &found[0];
        let result = format!("{}|{}", paths(first).join(" "), unknown(first).join(" "));
        assert_eq!(result, expected, "{text}");
    }
}

#[test]
fn text_that_depends_is_checked_once_where_it_stands() {
    let line = |nth: usize| format!("if line {nth} runs");
    let script = "A=(-hda z)\nif x; then\n  A+=(-hdb a)\nelse\n  A+=(-hdb b)\nfi\nqemu-system-x86_64 \"${A[@]}\"\n";
    let list = |paths: &[&str]| paths.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        parts(script),
        [(line(3), list(&["z", "a"])), (line(5), list(&["z", "b"]))]
    );
    let script = "C=none\nif x; then C=unsafe; fi\nqemu-system-x86_64 -drive file=/a,format=raw,if=virtio,cache=$C\n";
    // Both values are checked.
    let conditions: Vec<String> = parts(script).into_iter().map(|it| it.0).collect();
    assert_eq!(conditions, [line(1), line(2)]);
    let script = "f() { A+=(-hda a); }\nf\nqemu-system-x86_64 \"${A[@]}\"\n";
    assert_eq!(parts(script), [(line(1), list(&["a"]))]);
    let script = "qemu-system-x86_64 ${DISKS:--hda a}\n";
    assert_eq!(
        parts(script),
        [("unless DISKS is set".to_owned(), list(&["a"]))]
    );
    // Each adds its own, and no way through all of them is made.
    let many: String = (0..40)
        .map(|nth| format!("[ -e {nth} ] && A+=(-hda d{nth})\n"))
        .collect();
    let found = parts(&format!("{many}qemu-system-x86_64 \"${{A[@]}}\"\n"));
    assert_eq!(found.len(), 40);
    // A program that a branch sets.
    for (program, script) in [("$Q", "$Q"), ("eval", "eval \"$Q\"")] {
        let text = format!("if x; then Q='qemu-system-x86_64 {DRIVE}'; fi\n{script}\n");
        assert_eq!(parts(&text), [(line(1), list(&["/a.img"]))], "{program}");
    }
}

#[test]
fn words_that_the_script_itself_passes_are_not_those_of_its_caller() {
    let start = |words: &str| format!("qemu-system-x86_64 {DRIVE} {words}");
    for (script, may_lose) in [
        (start("\"$@\""), false),
        (format!("set -euo pipefail\n{}", start("\"$@\"")), false),
        (format!("set -o pipefail\n{}", start("\"$@\"")), false),
        (format!("set -- \"$@\" -hdb b\n{}", start("\"$@\"")), true),
        (format!("x && set -e -hdb b\n{}", start("$*")), true),
        (format!("set x\n{}", start("$1")), true),
        (format!("f() {{\n{}\n}}\nf -hdb b", start("\"$@\"")), true),
        (
            "if x; then C='qemu-system-x86_64 -hdb b'; fi\n$C".to_owned(),
            true,
        ),
        (
            format!("if x; then C=qemu-system-x86_64; fi\n$C {DRIVE}"),
            false,
        ),
    ] {
        let text = format!("#!/bin/bash\n{script}\n");
        let first = &all(&text).unwrap()[0];
        assert_eq!(
            first.others.iter().any(|it| it.has_data),
            may_lose,
            "{text}"
        );
    }
    let script = "set -- \"$@\" -hda a\nset -- -S -hdb b\nqemu-system-x86_64 \"$@\"\n";
    let found: Vec<Vec<String>> = parts(script).into_iter().map(|it| it.1).collect();
    assert_eq!(found, [["a"], ["b"]]);
}

#[test]
fn starts_are_as_many_as_what_each_has_for_itself_allows() {
    let start = "qemu-system-x86_64 -hda a\n";
    assert_eq!(all(&start.repeat(3000)).unwrap().len(), 3000);
    let images = "qemu-img create a 1G\n".repeat(20_000);
    let failure = all(&(images + &start.repeat(3000))).unwrap_err();
    assert!(
        failure.message.contains("starts QEMU more than"),
        "{failure}"
    );
}

#[test]
fn text_of_one_branch_counts_together() {
    let script =
        |body: &str| format!("#!/bin/bash\nA=(-S)\n{body}\nqemu-system-x86_64 \"${{A[@]}}\"\n");
    let pair = "A+=(-drive file=a,format=raw,if=none,id=a)\nA+=(-device virtio-blk-pci,drive=a)";
    for (body, expected) in [
        (format!("if x; then\n{pair}\nfi"), vec!["a"]),
        (format!("f() {{\n{pair}\n}}"), vec!["a"]),
        (
            format!(
                "if x; then\n{}\nfi",
                pair.replace('\n', "\nif y; then A+=(-hdb b); fi\n")
            ),
            vec!["a", "b"],
        ),
        ("if x; then\nA+=(-hda)\nA+=(a)\nfi".to_owned(), vec!["a"]),
        // Only one of the branches runs.
        (
            "case $1 in\na) A+=(-hda a) ;;\nb) A+=(-hda b) ;;\nesac".to_owned(),
            vec!["a", "b"],
        ),
        (
            "if x; then A+=(-hda a); else A+=(-hda b); fi".to_owned(),
            vec!["a", "b"],
        ),
        (
            "x && A+=(-hda a)\ny && A+=(-hda b)".to_owned(),
            vec!["a", "b"],
        ),
    ] {
        let text = script(&body);
        let mut found: Vec<String> = parts(&text).into_iter().map(|it| it.1.join(" ")).collect();
        found.retain(|it| !it.is_empty());
        assert_eq!(found, expected, "{text}");
        for document in all(&text).unwrap() {
            assert!(
                document.problems.is_empty(),
                "{text}: {:?}",
                document.problems
            );
        }
    }
}

#[test]
fn a_makefile_appends_under_one_condition_together() {
    for (before, expected) in [
        ("F=-S\nifdef X\nF+=-hda a\nF+=-hdb b\nendif", "a b"),
        ("F=-S\nifdef X\nF+=-hda a\nelse\nF+=-hdb b\nendif", "a|b"),
        // What is before it has quotes, and something else may change it.
        ("F := -name 'a b'\nifdef X\nF += -hda a\nendif", "a"),
        ("F = -hda a\ntest: F += -hdb b", "a"),
    ] {
        let text = format!("{before}\nrun:\n\tqemu-system-x86_64 $(F)\n");
        let found: Vec<String> = parts(&text).into_iter().map(|it| it.1.join(" ")).collect();
        assert_eq!(found.join("|"), expected, "{text}");
    }
}

#[test]
fn an_unknown_word_may_define_what_nothing_else_does() {
    for device in [
        "-device virtio-blk-pci,drive=a",
        "-device scsi-hd,bus=b.0,drive=a",
        "-blockdev qcow2,node-name=q,file=f -device virtio-blk-pci,drive=q",
        "-device vhost-user-blk-pci,chardev=c",
        "-drive file=a,format=raw,if=none,id=a,throttling.group=g",
    ] {
        for (word, is_open) in [("$EXTRA", true), ("\"$@\"", true), ("-name $EXTRA", false)] {
            let text = format!("#!/bin/bash\nqemu-system-x86_64 -nodefaults {word} {device}\n");
            let document = &all(&text).unwrap()[0];
            assert!(
                !is_open || document.problems.is_empty(),
                "{text}: {:?}",
                document.problems
            );
        }
    }
    let text = "qemu-system-x86_64 -name $N -device virtio-blk-pci,drive=a\n";
    assert_eq!(all(text).unwrap()[0].problems.len(), 1);
}

#[test]
fn an_unknown_part_of_a_value_is_split_with_it() {
    let text = "#!/bin/bash\nif x; then D='-hda a'; else D='-hda b'; fi\nF=\"-S $D -hdb c\"\nqemu-system-x86_64 $F\n";
    let found: Vec<Vec<String>> = parts(text).into_iter().map(|it| it.1).collect();
    assert_eq!(found, [["a", "c"], ["b", "c"]]);
    assert_eq!(unknown(&all(text).unwrap()[0]), ["$D"]);
}

#[test]
fn a_blank_that_a_condition_adds_is_known_only_where_it_separates_words() {
    let text = "A='-S'\nx && A=\"$A -hdb b\"\nqemu-system-x86_64 -hda \"$A\" $A\n";
    let all = all(text).unwrap();
    assert_eq!(
        (paths(&all[0]), unknown(&all[0])),
        (vec!["-S$A".to_owned()], vec!["$A".to_owned()])
    );
}

#[test]
fn a_blank_inside_braces_separates_words() {
    for (words, images, holes) in [
        ("${X:+$X }-hda a", &["a"][..], &["${X:+$X"][..]),
        ("-hda a${X:+ $X}", &["a"], &["${X:+"]),
        ("-hda a${X:+ $X -S}", &["a"], &["${X:+"]),
        ("-hda a ${A:+ $A}", &["a", "b"], &[]),
        ("-hda a ${A:+ ${A} }-S", &["a", "b"], &[]),
        // Another variable, and a value that is not split.
        ("-hda a ${A:+$B}", &["a"], &["${A:+$B}"]),
        ("-hda a $C", &["a", "b"], &["${X:+$X"]),
        ("-hda a$D", &["a", "b"], &["${X:+"]),
        ("-hda \"x$D\"", &["x -S${X:+-hdb b"], &[]),
    ] {
        let text = format!(
            "A='-hdb b'\nC=${{X:+$X }}'-hdb b'\nD=\" -S${{X:+ $X }}-hdb b\"\nqemu-system-x86_64 {words}\n"
        );
        let all = all(&text).unwrap();
        let found = (paths(&all[0]), unknown(&all[0]));
        assert_eq!(found.0, images, "{words}");
        assert_eq!(found.1, holes, "{words}");
    }
}

#[test]
fn a_condition_may_ask_for_an_empty_value() {
    let script = "CD=\nif [ -n \"$CD\" ]; then set -- -drive file=\"$CD\",media=cdrom,format=raw; fi\nqemu-system-x86_64 \"$@\"\n";
    let found = all(script).unwrap();
    let cd = &found
        .iter()
        .find(|it| it.start.is_part)
        .unwrap()
        .domain
        .disks[0];
    assert_eq!(cd.backend.image().and_then(Image::host_path), Some("$CD"));
}

#[test]
fn a_script_may_name_elements() {
    let script = "#!/bin/sh\n# usage: run <disk> <domain>\nqemu-system-x86_64 -hda a\n";
    assert!(vmdisk_qemu::sniff(script) && !vmdisk_qemu::sniff(&script[10..]));
}

#[test]
fn a_start_is_a_program_in_the_place_of_a_command() {
    for before in [
        "",
        "exec ",
        "sudo ",
        "sudo -u q ",
        "A=b ",
        "env A=b ",
        "nice -n 5 ",
        "taskset -c 0-3 ",
        "timeout 5 ",
        "numactl -N 0 ",
        "xterm -e ",
        "ip netns exec x ",
        "gdb --args ",
        "$SUDO ",
        "! ",
        "time ",
        "x | ",
        "x && ",
        "if x; then :; else ",
        "f() { ",
        "( ",
        "while x; do ",
    ] {
        let after = match before.trim() {
            "if x; then :; else" => "; fi",
            "f() {" => "; }",
            "(" => ")",
            "while x; do" => "; done",
            _ => "",
        };
        let text = format!("#!/bin/bash\n{before}qemu-system-x86_64 {DRIVE}{after}\n");
        assert_eq!(paths(&read(&text).unwrap()), ["/a.img"], "{text}");
    }
    for text in [
        format!("bash -c 'qemu-system-x86_64 {DRIVE}'"),
        format!("su -c \"qemu-system-x86_64 {DRIVE}\" q"),
        format!("tmux new-session -d 'qemu-system-x86_64 {DRIVE}'"),
        format!("eval \"qemu-system-x86_64 {DRIVE}\""),
    ] {
        assert_eq!(paths(&read(&text).unwrap()), ["/a.img"], "{text}");
    }
    for text in [
        "sudo apt-get install qemu-kvm libvirt-daemon-system bridge-utils -y",
        "qemu-system-x86_64: -netdev user: an error that it prints",
        "docker run --device /dev/kvm -v /a:/b image make",
        "if [ \"$VIRT\" != \"kvm\" -a -n x ]; then :; fi",
        "pkill -f qemu-system-x86_64 -e",
        "cp /usr/bin/qemu-system-x86_64 -t /x",
        "which qemu-system-x86_64 -a",
        "virt-install --virt-type kvm --disk size=1",
        "echo qemu-system-x86_64 -hda a",
        "# qemu-system-x86_64 -hda a",
        "qemu-system-x86_64 --version",
        "cat <<X\nqemu-system-x86_64 -hda a\nX",
        "qemu-system-x86_64() { :; }\nqemu-system-x86_64 -hda a",
        "exit 0\nqemu-system-x86_64 -hda a",
    ] {
        let text = format!("#!/bin/bash\n{text}\n");
        assert!(all(&text).is_err(), "{text}");
    }
}

#[test]
fn each_recipe_of_a_makefile_is_a_start() {
    let makefile = "QEMU = qemu-system-x86_64\nB := out\nO = -drive file=$(B)/a,format=raw \\\n  $(MORE)\nC ?= -hdc c\n\
        run: x\n\t@$(QEMU) $(O) \\\n\t  -hdb b # x\n\
        other: ; $(QEMU) -hda $< $(C)\n";
    let found = all(makefile).unwrap();
    let of: Vec<_> = found.iter().filter(|it| !it.start.is_part).collect();
    assert_eq!(paths(of[0]), ["out/a", "b"]);
    assert_eq!(of[0].start.owner.as_deref(), Some("run"));
    assert_eq!(unknown(of[0]), ["$(MORE)"]);
    assert_eq!(unknown(of[1]), ["$(C)"]);
    assert_eq!(parts(makefile)[0].0, "unless C is set");
    for (lines, expected) in [
        ("O += -hdb b\nO = -hda a", "a"),
        ("O = -hda $(P)\nP = a", "a"),
        ("O := -hda a\nP := $(O)\nO = $(P) -hdb b", ""),
        ("P = a\nO := -hda $(P)\nP += b", ""),
        ("O := -hda $(P)\nP = $(Q)\nQ = a", ""),
    ] {
        let text = format!("{lines}\nrun:\n\tqemu-system-x86_64 -S $(O)\n");
        assert_eq!(paths(&all(&text).unwrap()[0]).join(" "), expected, "{text}");
    }
    for line in [
        "ifdef X\nO = -hda a\nendif",
        "O = -hda a\ninclude x.mk",
        "O = -hda a\nrun: O = -hdb b",
        "define O\n-hda a\nendef",
        "O = $(shell cat x)",
        "O = $(patsubst %,-hda %,a)",
        "O := $(P)\nP = -hda a",
        "O = -hda a\n$(eval O = b)",
        "O = $(O)",
    ] {
        let text = format!("{line}\nrun:\n\tqemu-system-x86_64 -S $(O)\n");
        let found = all(&text).unwrap_or_else(|failure| panic!("{text}: {failure}"));
        let is_open = found[0].others.iter().any(|it| it.is_unknown) || !found[0].holes.is_empty();
        assert!(paths(&found[0]).is_empty() && is_open, "{text}");
    }
}

#[test]
fn a_variable_before_the_grammar_of_the_shell_is_a_prefix_of_make() {
    for begin in ["$(Q)if true; then", "$(Q)for it in a b; do", "$(Q)("] {
        let end = match begin {
            "$(Q)(" => ")",
            _ if begin.contains("for") => "done",
            _ => "fi",
        };
        let makefile = format!("run:\n\t{begin} \\\n\tqemu-system-x86_64 -hda a; \\\n\t{end}\n");
        let found = all(&makefile).unwrap();
        assert_eq!(paths(&found[0]), ["a"], "{begin}");
    }
    assert!(all("run:\n\t$(Q)ifs; qemu-system-x86_64; fi\n").is_err());
    // What starts no guest need not be understood.
    assert!(all("run:\n\tkvm -hda a; fi\n").is_err());
    let makefile = format!("other:\n\techo; fi\nrun:\n\tqemu-system-x86_64 {DRIVE}\n");
    assert_eq!(paths(&all(&makefile).unwrap()[0]), ["/a.img"]);
}

#[test]
fn documentation_and_workflows_have_scripts_and_prose() {
    let line = format!("qemu-system-x86_64 {DRIVE}");
    for text in [
        format!("It doesn't\n\n```\n{line}\n```\nIt's\n"),
        format!("It doesn't\n\n    {line}\n\nIt's\n~~~\n~~~\n"),
        format!("It doesn't:\n\n$ {line}\nqemu-system-x86_64: an error -hda x\n"),
        format!("```console\n$ {}\n$ true\n```\n", line.replace(" -drive", " \\\n  -drive")),
        format!("Don't\n=====\n\n{line}\n\nIt's\n"),
        format!("jobs:\n  a:\n    name: it's\n    steps:\n      - run: |\n          {line}\n      - run: it's\n"),
        format!("jobs:\n  a:\n    steps:\n      - run: {line}\n"),
        format!("FROM x\nRUN echo \"it's\"\nRUN {line}\n"),
        "FROM x\nENTRYPOINT [\"qemu-system-x86_64\"]\nCMD [\"-drive\", \\\n \"file=/a.img,format=raw,if=virtio\"]\n".to_owned(),
        "source \"qemu\" \"x\" {\n  qemuargs = [[\"-drive\", \"file=/a.img,format=raw,if=virtio\"]]\n}\n".to_owned(),
    ] {
        let found = all(&text).unwrap_or_else(|failure| panic!("{text}: {failure}"));
        let [one] = found.as_slice() else {
            panic!("{text}: {}", found.len())
        };
        assert_eq!(paths(one), ["/a.img"], "{text}");
    }
    let members = "[\"-drive\", \"file=/a.img,format=raw,if=virtio\"]";
    for array in [
        format!("[{members},]"),
        format!("[\n  # a \"root\" disk ]\n  {members}, // no, ]\n  /* ] */\n]"),
        format!("[[\"-name\", \"a # \\\" ] b\"], {members}, ]\n  more = [\"x\",]"),
    ] {
        let text = format!("source \"qemu\" \"x\" {{\n  qemuargs = {array}\n}}\n");
        let found = all(&text).unwrap();
        assert_eq!(paths(&found[0]), ["/a.img"], "{text}");
    }
    let open = "source \"qemu\" \"x\" {\n  qemuargs = [var.arguments]\n}\n";
    assert_eq!(paths(&read(open).unwrap()), [""; 0]);
    let placeholder = "```\nqemu-system-x86_64 -bios </path/EFI.fd> -hda <disk.img>\n```\n";
    assert_eq!(paths(&read(placeholder).unwrap()), ["<disk.img>"]);
    for words in ["[other options]", "[ ... more options here ... ]"] {
        let text = format!("```\n{line} {words} -S\n```\n");
        assert_eq!(paths(&all(&text).unwrap()[0]), ["/a.img"], "{words}");
    }
    for prose in [
        "Notes\n-----\n\n- kvm and qemu-system-x86_64 -x are used\n- more\n",
        "# It\n\nUse `qemu-system-x86_64 -hda a` or kvm -x.\n\n```python\nqemu-system-x86_64 -hda a\n```\n",
    ] {
        assert!(all(prose).is_err(), "{prose}");
    }
}

#[test]
fn languages_that_are_not_read_are_refused_with_what_helps() {
    for (text, language) in [
        ("#!/bin/zsh\nqemu-system-x86_64 $args\n", "zsh"),
        ("#!/usr/bin/fish\nqemu-system-x86_64 $args\n", "fish"),
        (
            "@echo off\r\nqemu-system-x86_64 -hda %X%\r\n",
            "a batch file",
        ),
        (
            "import os\nos.system('qemu-system-x86_64 -hda a')\n",
            "Python",
        ),
    ] {
        let failure = all(text).unwrap_err();
        assert!(
            failure
                .message
                .starts_with(&format!("{language} is not read")),
            "{failure}"
        );
        assert!(
            failure
                .help
                .unwrap()
                .contains("vmdisk capture -- COMMAND | vmdisk lint -")
        );
    }
    let failure = all("#!/bin/sh\r\nqemu-system-x86_64 -hda a\r\n").unwrap_err();
    assert!(failure.message.contains("carriage returns"), "{failure}");
}

#[test]
fn the_folder_is_known_where_the_script_changes_to_a_literal_one() {
    for (script, expected) in [
        ("true", Folder::Unchanged),
        ("cd /srv", Folder::Known("/srv".to_owned())),
        ("cd /srv\ncd a", Folder::Known("/srv/a".to_owned())),
        ("D=/srv; cd \"$D/a\"", Folder::Known("/srv/a".to_owned())),
        ("cd \"$(dirname \"$0\")\"", Folder::Unchanged),
        ("cd \"$(dirname \"$0\")/..\"", Folder::Unknown),
        ("cd \"$1\"", Folder::Unknown),
        ("x && cd /srv", Folder::Unknown),
        ("cd -", Folder::Unknown),
        ("cd", Folder::Unknown),
        ("pushd /srv", Folder::Unknown),
    ] {
        let text = format!("#!/bin/bash\n{script}\nqemu-system-x86_64 {DRIVE}\n");
        assert_eq!(read(&text).unwrap().start.folder, expected, "{text}");
    }
}

/// What may be within itself: the text before, inside and after.
const NESTED: &[(&str, &str)] = &[
    ("$(", ")"),
    ("$((", "))"),
    ("${a:-", "}"),
    ("\"${a:-", "}\""),
    ("`", "`"),
    ("\"$(", ")\""),
    ("( ", " )"),
    ("{ ", "; }"),
    ("if ", "; then x; fi"),
    ("if x; then ", "; fi"),
    ("while ", "; do x; done"),
    ("until x; do ", "; done"),
    ("for a in b; do ", "; done"),
    ("case x in x) ", ";; esac"),
    ("f() { ", "; }"),
    ("[[ ( ", " ) ]]"),
    ("A=( ", " )"),
    ("{a,", "}"),
    ("@(", ")"),
    ("<(", ")"),
    ("'", "'"),
    ("! ", ""),
    ("x && ", ""),
    ("x | ", ""),
    ("sudo ", ""),
    ("bash -c ", ""),
    ("eval ", ""),
    ("function f ", ""),
    ("((", "))"),
    ("[", "]"),
    ("$[", "]"),
    ("A[", "]"),
    ("<<", ""),
    ("$'", "'"),
    ("${!", "}"),
    ("\\", ""),
];

#[test]
fn text_that_is_nested_deeply_ends_with_an_answer() {
    // The time is linear, and without optimization it is five times as long.
    let depth = if cfg!(debug_assertions) {
        30_000
    } else {
        100_000
    };
    let read = move || {
        for (open, close) in NESTED {
            let nested = format!("{}x{}", open.repeat(depth), close.repeat(depth));
            let _ = all(&format!("#!/bin/bash\nqemu-system-x86_64 -hda {nested}\n"));
            let _ = all(&format!(
                "#!/bin/bash\n{nested}\nqemu-system-x86_64 -hda a\n"
            ));
        }
        for (open, close) in [
            ("$(a ", ")"),
            ("${", "}"),
            ("$(call f,", ")"),
            ("ifdef X\n", "endif\n"),
            ("define X\n", ""),
        ] {
            let nested = format!("{}x{}", open.repeat(depth), close.repeat(depth));
            let _ = all(&format!(
                "A = {nested}\nrun:\n\tqemu-system-x86_64 -hda $(A) {nested}\n"
            ));
        }
        let chain: String = (0..depth)
            .map(|nth| format!("A{nth} = $(A{})$(A{})\n", nth + 1, nth + 1))
            .collect();
        let _ = all(&format!("{chain}run:\n\tqemu-system-x86_64 -hda $(A0)\n"));
    };
    let thread = std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(read);
    thread.unwrap().join().unwrap();
}
