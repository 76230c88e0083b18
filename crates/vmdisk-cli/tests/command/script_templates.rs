//! Scripts that a template engine fills in, read as what the engine makes of them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use vmdisk_testing::needed;

use crate::Place;

/// Renders a template as Ansible does.
const RENDER: &str = "
import json, sys, jinja2
engine = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True)
print(engine.from_string(sys.argv[1]).render(**json.loads(sys.argv[2])), end='')
";

/// A Python with Jinja: the Python of ansible-core below target/, or of the system.
fn python() -> Option<String> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/ansible/bin/python3");
    let ours = ours.display().to_string();
    let has_jinja = |name: &&str| {
        let output = Command::new(name).args(["-c", "import jinja2"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let mut all = [ours.as_str(), "python3"].into_iter();
    let found = all.find(has_jinja).map(str::to_owned);
    needed(found.ok_or_else(|| "no Python with Jinja is installed".to_owned()))
}

/// Templates, each with values of which one way through it is true.
fn cases() -> Vec<(&'static str, Vec<Value>)> {
    let images = || json!({"img": "/srv/a.img", "dir": "/srv", "vm": {"name": "web"}});
    let with = |more: Value| {
        let mut all = images();
        let members = more.as_object().unwrap().clone();
        all.as_object_mut().unwrap().extend(members);
        all
    };
    let fast = || vec![with(json!({"fast": true})), with(json!({"fast": false}))];
    vec![
        (
            "qemu-system-x86_64 -m 1G -drive file={{ img }},if=virtio,format=raw,cache=none\n",
            vec![images()],
        ),
        (
            "#!/bin/sh\n# {{ vm.name }}\nexec qemu-system-x86_64 -m 1G \\\n  -name '{{ vm.name }}' \\\n  \
             -drive \"file={{dir}}/{{ vm.name }}.img,if=virtio,format=raw\"\n",
            vec![images()],
        ),
        (
            "{# a comment #}\n{{ vm.name }}=1\nqemu-system-x86_64 -m 1G \\\n{% if fast %}\n  \
             -drive file={{ img }},if=virtio,format=raw,cache=unsafe \\\n{% else %}\n  \
             -drive file={{ img }},if=virtio,format=raw,cache=none \\\n{% endif %}\n  -nographic\n",
            fast(),
        ),
        (
            "IMG={{ img }}\n{% if fast %}\nCACHE=unsafe\n{% else %}\nCACHE=writethrough\n{% endif %}\n\
             qemu-system-x86_64 -m 1G -drive file=$IMG,if=virtio,format=raw,cache=$CACHE\n",
            fast(),
        ),
        (
            "qemu-system-x86_64 -m 1G -drive file={{ img }},if=virtio,format=raw {% if fast %}-snapshot{% endif %} -S\n",
            vec![with(json!({"fast": false}))],
        ),
        (
            "run:\n\tqemu-system-x86_64 -m 1G -drive file={{ img }},if=virtio,format=raw\n\n{% if fast %}\nclean:\n\trm -f x\n{% endif %}\n",
            fast(),
        ),
        (
            "[Service]\nExecStart=/usr/bin/qemu-system-x86_64 -m 1G \\\n{% if fast %}\n  \
             -drive file={{ img }},if=virtio,format=raw,cache=unsafe\n{% else %}\n  \
             -drive file={{ img }},if=scsi,format=raw,cache=none\n{% endif %}\n",
            fast(),
        ),
        (
            "qemu-system-x86_64 -m 1G \\\n{% if fast %}\n -drive file={{ img }},if=none,id=d,format=raw \\\n{% endif %}\n{% if not fast %}\n \
             -drive file=/b,if=none,id=d,format=raw \\\n{% endif %}\n -device virtio-blk-pci,drive=d\n",
            fast(),
        ),
        (
            "qemu-system-x86_64 -m 1G \\\n{% if bus == 'virtio' %}\n -device virtio-blk-pci,drive=d \\\n{% endif %}\n{% if bus == 'sata' %}\n \
             -device ich9-ahci,id=a -device ide-hd,drive=d,bus=a.0 \\\n{% elif bus == 'scsi' %}\n \
             -device virtio-scsi-pci -device scsi-hd,drive=d \\\n{% endif %}\n \
             -drive file={{ img }},if=none,id=d,format=raw\n",
            ["virtio", "sata", "scsi"]
                .map(|bus| with(json!({"bus": bus})))
                .to_vec(),
        ),
        (
            "qemu-system-x86_64 -m 1G \\\n{% if fast %}\n -drive file={{ img }},if=virtio,format=raw \\\n{% else %}\n{% if ide is defined %}\n \
             -drive file=/i,if=ide,format=raw \\\n{% else %}\n -drive file=/s,if=scsi,format=raw \\\n{% endif %}\n{% endif %}\n -S\n",
            vec![
                with(json!({"fast": true})),
                with(json!({"fast": false})),
                with(json!({"fast": false, "ide": 1})),
            ],
        ),
        (
            "qemu-system-x86_64 -m 1G {% for disk in [img] %} -drive file={{ img }},if=virtio,format=raw {% endfor %}\n",
            vec![images()],
        ),
    ]
}

fn disks(place: &Place, file: &str, more: &[&str]) -> Option<String> {
    let mut arguments = vec!["convert", "--to", "disk-xml"];
    arguments.extend(more);
    arguments.push(file);
    let run = place.run(&arguments);
    (run.code == 0).then_some(run.stdout)
}

#[test]
fn a_template_is_read_as_each_script_that_it_renders_to() {
    let Some(python) = python() else { return };
    let mut compared = 0;
    for (template, all) in cases() {
        let place = Place::with(&[("run.sh.j2", template)]);
        let rules = |file: &str| -> BTreeSet<String> {
            let run = place.run(&["lint", "--no-config", "--format", "json", file]);
            let report: Value = serde_json::from_str(&run.stdout).unwrap();
            let findings = report["findings"].as_array().unwrap().iter();
            findings.map(|it| it["rule"].to_string()).collect()
        };
        let mut of_rendered = BTreeSet::new();
        for values in all {
            let mut engine = Command::new(&python);
            let output = engine
                .args(["-c", RENDER, template, &values.to_string()])
                .output();
            let output = output.unwrap();
            assert!(output.status.success(), "{template}: {output:?}");
            place.write("run.sh", &output.stdout);
            let expected = disks(&place, "run.sh", &[]);
            let expected =
                expected.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stdout)));
            let given = ["img=/srv/a.img", "dir=/srv", "vm.name=web"];
            let given: Vec<&str> = given.into_iter().flat_map(|it| ["--set", it]).collect();
            let start = |number: usize| {
                let number = number.to_string();
                let start = [given.as_slice(), &["--start", &number]].concat();
                disks(&place, "run.sh.j2", &start)
            };
            let found: Vec<String> = (1..=4).map_while(start).collect();
            assert!(
                found.contains(&expected),
                "{template}: {values}: {found:#?}\n{expected}"
            );
            of_rendered.extend(rules("run.sh"));
            compared += 1;
        }
        let of_template = rules("run.sh.j2");
        assert!(
            of_template.is_subset(&of_rendered),
            "{template}: {of_template:?}"
        );
    }
    assert!(compared > 10, "{compared}");
}

#[test]
fn what_a_template_leaves_open_is_named_as_it_is_written() {
    let text = "#!/bin/sh\nqemu-system-x86_64 -m {{ mem }} \\\n{% if scratch %}\n  -drive file={{ img }},if=virtio,format=raw,cache=unsafe \\\n\
                {% endif %}\n{% if shown %}\n  -vga std \\\n{% endif %}\n  {{ more | default('') }}\n";
    let place = Place::with(&[("run.sh.j2", text)]);
    let run = place.run(&["lint", "--no-config", "run.sh.j2"]);
    let words = "1 word of the command line is unknown: `{{ more | default('') }}`; give values";
    assert!(run.stderr.contains(words), "{run:?}");
    // Not of the condition that shows a window.
    let condition = "QEMU is started so in line 2, `{% if scratch %}`\n";
    assert!(run.stdout.contains(condition), "{run:?}");
    assert_eq!(
        run.stdout.matches("warning[").count() + run.stdout.matches("error[").count(),
        1,
        "{run:?}"
    );
    // Sections beside each other are words of their own.
    place.write(
        "must.sh",
        b"qemu-system-x86_64 -m 1G {{#a}}-drive file=/a,if=virtio,format=raw{{/a}} {{b}}{{c}}\n",
    );
    let run = place.run(&["lint", "--no-config", "must.sh"]);
    assert!(
        run.stderr
            .contains("1 word of the command line is unknown: `{{b}}{{c}}`"),
        "{run:?}"
    );
    // Text that an engine fills in is not edited.
    let before = std::fs::read_to_string(place.path("run.sh.j2")).unwrap();
    place.run(&[
        "lint",
        "--no-config",
        "--fix",
        "--unsafe-fixes",
        "run.sh.j2",
    ]);
    assert_eq!(
        std::fs::read_to_string(place.path("run.sh.j2")).unwrap(),
        before
    );
    for program in [
        "{{ qemu_bin }}",
        "\"{{ vm.qemu }}\"",
        "@VM_QEMU@",
        "qemu-system-{{ arch }}",
    ] {
        let text = format!("set -e\n{program} -drive file=/a,if=virtio,format=raw,cache=unsafe\n");
        place.write("run.sh", text.as_bytes());
        let run = place.run(&["lint", "--no-config", "run.sh"]);
        assert!(run.stdout.contains("cache-unsafe"), "{program}: {run:?}");
    }
    for (template, value) in [
        (
            "qemu-system-x86_64 -m 1G -drive file=<%= @img %>,if=virtio,format=raw,cache=unsafe\n",
            "`<%_ @img %>`",
        ),
        (
            "qemu-system-x86_64 -m 1G -drive file=@IMG@,if=virtio,format=raw,cache=unsafe\n",
            "`@IMG@`",
        ),
        (
            "qemu-system-x86_64 -m 1G -drive file={{ .Disk }},if=virtio,format=raw,cache=unsafe\n",
            "`{{ .Disk }}`",
        ),
    ] {
        let place = Place::with(&[("run.sh", template)]);
        let run = place.run(&["convert", "--to", "disk-xml", "run.sh"]);
        assert_eq!(run.code, 2, "{template}: {run:?}");
        assert!(run.stderr.contains(value), "{template}: {run:?}");
        let run = place.run(&["lint", "--no-config", "--fix", "run.sh"]);
        assert!(run.stdout.contains("cache-unsafe"), "{run:?}");
        assert_eq!(
            std::fs::read_to_string(place.path("run.sh")).unwrap(),
            template
        );
    }
}

#[test]
fn a_justfile_sets_what_its_recipes_write_in_braces() {
    let text = "dir := '/srv'\nexport name := \"a\" # x\nfast := env('FAST', 'no')\ndisk := \"b\"\n\n\
                run disk=disk:\n    #!/usr/bin/env bash\n    qemu-system-x86_64 -m 1G \\\n      \
                -drive file={{ dir }}/{{disk}}.img,if=virtio,format=raw,cache={{ fast }}\n\n\
                boot:\n    qemu-system-x86_64 -m 1G -drive file={{dir}}/c.img,if=virtio,format=raw\n";
    let place = Place::with(&[("justfile", text)]);
    let run = place.run(&["convert", "--to", "disk-xml", "--start", "2", "justfile"]);
    assert!(run.stdout.contains("file='/srv/c.img'"), "{run:?}");
    let run = place.run(&[
        "convert", "--to", "disk-xml", "--start", "2", "--set", "dir=/mnt", "justfile",
    ]);
    assert!(run.stdout.contains("file='/mnt/c.img'"), "{run:?}");
    place.write("more.just", b"more := '-snapshot -S'\nb:\n\tqemu-system-x86_64 {{more}} \"{{ more }}\" -drive file=/a,if=virtio,format=raw,cache=unsafe\n");
    let run = place.run(&["lint", "--no-config", "more.just"]);
    assert!(
        !run.stdout.contains("cache-unsafe") && !run.stderr.contains("unknown"),
        "{run:?}"
    );
    let run = place.run(&["lint", "--no-config", "--set", "more=", "more.just"]);
    assert!(run.stdout.contains("cache-unsafe"), "{run:?}");
    let run = place.run(&["convert", "--to", "disk-xml", "--start", "1", "justfile"]);
    for open in [
        "`{{disk}}`: line 6 may change it",
        "`{{fast}}`: just computes it",
    ] {
        assert!(run.stderr.contains(open), "{open}: {run:?}");
    }
}

#[test]
fn each_line_of_a_recipe_is_a_command_of_its_own() {
    let drive = "-drive file=$A,format=raw,if=virtio,cache=unsafe";
    let just = format!(
        "img := \"/a\"\n\nrun a=\"(\": build\n    @A=/b\n    -qemu-system-x86_64 {drive}\n\nbuild:\n    true\n"
    );
    let place = Place::with(&[("justfile", &just)]);
    let run = place.run(&["lint", "--no-config", "justfile"]);
    assert!(run.stdout.contains("cache-unsafe"), "{run:?}");
    let run = place.run(&["convert", "--to", "disk-xml", "justfile"]);
    assert!(run.stderr.contains("environment of that shell"), "{run:?}");
    // Braces do not make a justfile of a makefile.
    let make = format!(
        "N := docker inspect -f {{{{.State}}}}\nA = /a\nrun:\n\tqemu-system-x86_64 {}\n",
        drive.replace("$A", "$(A)")
    );
    place.write("Makefile", make.as_bytes());
    let run = place.run(&["convert", "--to", "disk-xml", "Makefile"]);
    assert!(run.stdout.contains("file='/a'"), "{run:?}");
}

#[test]
fn what_a_shell_writes_with_braces_is_no_template() {
    for text in [
        "docker inspect -f '{{.State.Running}} {{range .Mounts}}{{.Source}}{{end}}' x\nqemu-system-x86_64 -m 1G -drive file=/a.img,if=virtio,format=raw\n",
        "N=(a b)\necho ${#N[@]} {{a,b},{c,d}}\nqemu-system-x86_64 -m 1G -drive file=/a.img,if=virtio,format=raw # ${N#}\n",
        "printf '{%s} %d%%}' a 1\nqemu-system-x86_64 -m 1G -drive file=/a.img,if=virtio,format=raw\n",
        "ssh root@host@realm true\nqemu-system-x86_64 -m 1G -drive file=/a.img,if=virtio,format=raw\n",
        "awk '{ if ($1) { x = 1 }}' y\nqemu-system-x86_64 -m 1G -drive file=/a.img,if=virtio,format=raw\n",
    ] {
        let place = Place::with(&[("run.sh", text)]);
        let run = place.run(&["convert", "--to", "disk-xml", "run.sh"]);
        assert!(run.stdout.contains("file='/a.img'"), "{text}: {run:?}");
        assert_eq!(run.stderr, "", "{text}");
    }
    // So many conditions are read, and more are not.
    let many: String = (0..50)
        .map(|nth| format!("{{% if a{nth} %}}\nA=1\n{{% endif %}}\n"))
        .collect();
    let text = format!("{many}qemu-system-x86_64 -drive file=/a.img,if=virtio,format=raw\n");
    let place = Place::with(&[("run.sh.j2", &text)]);
    let run = place.run(&["lint", "--no-config", "run.sh.j2"]);
    assert_eq!(run.code, 0, "{run:?}");
    let many = "{% if a %}\nA=1\n{% endif %}\n".repeat(100);
    let text = format!("{many}qemu-system-x86_64 -drive file=/a.img,if=virtio,format=raw\n");
    let place = Place::with(&[("run.sh.j2", &text)]);
    let run = place.run(&["lint", "--no-config", "run.sh.j2"]);
    assert!(run.stderr.contains("too many conditions"), "{run:?}");
}
