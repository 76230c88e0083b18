//! `vmdisk apply` and the script: one table of states, with the same end of both.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output};

use crate::Place;

const QEMU_IMG: &str = "/usr/bin/qemu-img";

/// Two images: the second is written in full.
fn spec(place: &Place) -> String {
    let folder = place.path("images");
    let folder = folder.display();
    format!(
        "version: 1\nguest: {{name: web1}}\ndisks:\n- qcow2: {{path: {folder}/a.qcow2, size: 4M, cluster-size: 128K}}\n\
         - raw: {{path: \"{folder}/it's.img\", size: 2M, preallocation: full}}\n"
    )
}

/// A place with the spec, and its script.
fn prepared() -> Place {
    let place = Place::with(&[]);
    fs::create_dir(place.path("images")).unwrap();
    place.write("web1.yaml", spec(&place).as_bytes());
    let script = place.run(&["generate", "web1.yaml", "--to", "script", "-o", "make.sh"]);
    assert_eq!(script.code, 0, "{}", script.stderr);
    place
}

/// Programs after those of a place.
pub(crate) const SYSTEM: &str = ":/usr/bin:/bin";

/// Applies the spec, or runs the script, with the folder of programs of the place before a search path.
pub(crate) fn run(place: &Place, is_script: bool, path: &str) -> Output {
    let mut command = match is_script {
        true => {
            let mut command = Command::new("/bin/sh");
            command.arg(place.path("make.sh"));
            command
        }
        false => place.command(["apply", "web1.yaml"]),
    };
    let path = format!("{}{path}", place.path("bin").display());
    command.env("PATH", path).current_dir(place.path(""));
    command.output().unwrap()
}

/// The files in the folder of images, with their contents.
pub(crate) fn images(place: &Place) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(place.path("images"))
        .unwrap()
        .map(Result::unwrap);
    entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            // Opening a pipe waits for its other end.
            let is_file = fs::metadata(entry.path()).is_ok_and(|it| it.is_file());
            let content = is_file.then(|| fs::read(entry.path()).ok()).flatten();
            (name, content.unwrap_or_default())
        })
        .collect()
}

/// A `qemu-img` that does something else for the raw image.
fn with_qemu_img(place: &Place, instead: &str) {
    let text = format!(
        "case \"$*\" in 'create -f raw'*) for last; do [ \"${{last%/image}}\" = \"$last\" ] || path=$last; done\n{instead} ;;\nesac\nexec {QEMU_IMG} \"$@\""
    );
    place.program("bin/qemu-img", &text);
}

/// A state before the run, the exit status, and the images that this run leaves.
struct Row {
    state: &'static str,
    prepare: fn(&Place),
    code: i32,
    /// Names of images after the run; those that were there before are unchanged.
    left: &'static [&'static str],
}

const BOTH: &[&str] = &["a.qcow2", "it's.img"];

const ROWS: &[Row] = &[
    Row {
        state: "nothing",
        prepare: |_| {},
        code: 0,
        left: BOTH,
    },
    Row {
        state: "all",
        prepare: |place| assert!(run(place, false, SYSTEM).status.success()),
        code: 0,
        left: BOTH,
    },
    Row {
        state: "half",
        prepare: |place| {
            assert!(run(place, true, SYSTEM).status.success());
            fs::remove_file(place.path("images/a.qcow2")).unwrap();
        },
        code: 0,
        left: BOTH,
    },
    Row {
        state: "another size",
        prepare: |place| place.write("images/it's.img", &[1; 1 << 20]),
        code: 1,
        left: &["it's.img"],
    },
    Row {
        state: "not allocated in full",
        prepare: |place| {
            let file = fs::File::create(place.path("images/it's.img")).unwrap();
            file.set_len(2 << 20).unwrap();
        },
        code: 1,
        left: &["it's.img"],
    },
    Row {
        state: "another format",
        prepare: |place| place.write("images/a.qcow2", &[0; 4 << 20]),
        code: 1,
        left: &["a.qcow2"],
    },
    Row {
        state: "other clusters",
        prepare: |place| {
            let path = place.path("images/a.qcow2");
            let status = Command::new(QEMU_IMG)
                .args(["create", "-q", "-f", "qcow2"])
                .arg(path)
                .arg("4M")
                .status();
            assert!(status.unwrap().success());
        },
        code: 1,
        left: &["a.qcow2"],
    },
    Row {
        state: "a link that leads nowhere",
        prepare: |place| {
            std::os::unix::fs::symlink("/nowhere/at/all", place.path("images/a.qcow2")).unwrap();
        },
        code: 1,
        left: &["a.qcow2"],
    },
    Row {
        state: "no directory",
        prepare: |place| {
            fs::remove_dir(place.path("images")).unwrap();
            place.write("images", b"");
        },
        code: 1,
        left: &[],
    },
    Row {
        state: "a full disk",
        prepare: |place| {
            with_qemu_img(
                place,
                "echo half >\"$path\"; echo 'No space left on device' >&2; exit 1",
            );
        },
        code: 2,
        left: &[],
    },
    Row {
        state: "stopped by a signal",
        prepare: |place| with_qemu_img(place, "echo half >\"$path\"; kill -TERM $PPID; exit 1"),
        code: 2,
        left: &[],
    },
    Row {
        state: "killed",
        prepare: |place| with_qemu_img(place, "echo half >\"$path\"; kill -KILL $PPID; exit 1"),
        code: -9,
        left: &["a.qcow2", "it's.img.part"],
    },
];

#[test]
fn each_state_ends_alike_in_apply_and_in_the_script_and_nothing_is_overwritten() {
    if vmdisk_testing::needed(vmdisk_testing::installed("qemu-img")).is_none() {
        return;
    }
    for Row {
        state,
        prepare,
        code,
        left,
    } in ROWS
    {
        for is_script in [false, true] {
            let place = prepared();
            prepare(&place);
            let is_folder = place.path("images").is_dir();
            let before = if is_folder {
                images(&place)
            } else {
                BTreeMap::new()
            };
            let output = run(&place, is_script, SYSTEM);
            let ended = output.status.code().unwrap_or(-9);
            // A shell that a signal ends says so by its status.
            let expected = match (is_script, *state) {
                (true, "stopped by a signal") => 143,
                _ => *code,
            };
            assert_eq!(ended, expected, "{state}, script {is_script}: {output:?}");
            let after = if is_folder {
                images(&place)
            } else {
                BTreeMap::new()
            };
            let names: Vec<&String> = after.keys().collect();
            assert_eq!(names, *left, "{state}, script {is_script}: {output:?}");
            for (name, contents) in &before {
                assert_eq!(after.get(name), Some(contents), "{state}: {name}");
            }
            if ended == 1 {
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(said.contains("refused: "), "{state}: {said}");
            }
            if *state != "killed" {
                continue;
            }
            // The half image has a word, and stays.
            fs::remove_dir_all(place.path("bin")).unwrap();
            let again = run(&place, is_script, SYSTEM);
            let said = String::from_utf8_lossy(&again.stderr);
            assert_eq!(again.status.code(), Some(1), "{said}");
            assert!(said.contains("it's.img.part exists"), "{said}");
            assert_eq!(images(&place), after);
        }
    }
}

#[test]
fn a_dry_run_changes_nothing_and_steps_are_the_script() {
    // It looks for the programs of the steps.
    if vmdisk_testing::needed(vmdisk_testing::installed("qemu-img")).is_none() {
        return;
    }
    let place = prepared();
    let run = place.run(&["apply", "web1.yaml", "--dry-run", "--format", "json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(images(&place).is_empty());
    let steps = place.run(&["generate", "web1.yaml", "--to", "steps"]);
    let steps: serde_json::Value = serde_json::from_str(&steps.stdout).unwrap();
    let dry: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(steps["steps"], dry["steps"]);
    let script = place.read("make.sh");
    for step in steps["steps"].as_array().unwrap() {
        let made = step["makes"].as_str().unwrap();
        let words: Vec<String> = serde_json::from_value(step["argv"].clone()).unwrap();
        // The script makes it in a directory that it enters.
        let words: Vec<String> = vmdisk::plan::renamed(&words, made, "./image")
            .iter()
            .map(|word| vmdisk::plan::shell_word(word))
            .collect();
        assert!(script.contains(&words.join(" ")), "{words:?}");
        let undo = format!("rm -f -- {}", vmdisk::plan::shell_word(made));
        assert!(script.contains(&undo), "{undo}");
    }
}

#[test]
fn a_finding_refuses_before_anything_is_made() {
    let place = prepared();
    let run = place.run(&[
        "apply",
        "--disk",
        "raw:/srv/a.img,io=native,cache=writeback",
    ]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let run = place.run(&["apply", "nowhere.yaml"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
}

#[test]
fn the_guest_is_defined_once_and_one_that_differs_is_refused() {
    if vmdisk_testing::needed(vmdisk_testing::installed("qemu-img")).is_none() {
        return;
    }
    let place = prepared();
    // It keeps the definition in a file.
    let virsh = format!(
        "case $1 in\ndefine) exec cat <\"$2\" >{0} ;;\ndumpxml) cat {0} 2>/dev/null || {{ echo 'error: failed to get domain' >&2; exit 1; }} ;;\nesac",
        place.path("defined.xml").display()
    );
    place.program("bin/virsh", &virsh);
    let define = || {
        let path = format!("{}:/usr/bin:/bin", place.path("bin").display());
        let mut command = place.command(["apply", "web1.yaml", "--define"]);
        let output = command.env("PATH", path).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        (
            output.status.code(),
            said,
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, said, errors) = define();
    assert_eq!(code, Some(0), "{said}{errors}");
    assert!(said.ends_with("done: guest web1\ndone\n"), "{said}");
    let lacks = "the guest web1 has no network card and no console: `guest: {network: default, console: serial}`";
    assert!(errors.contains(lacks), "{errors}");
    assert!(place.read("defined.xml").contains("<name>web1</name>"));
    let (code, said, _) = define();
    assert_eq!(code, Some(0));
    assert!(
        said.ends_with("already-done: guest web1\nnothing-to-do\n"),
        "{said}"
    );
    let other = place.read("defined.xml").replace("dev='vdb'", "dev='vdc'");
    place.write("defined.xml", other.as_bytes());
    let (code, _, errors) = define();
    assert_eq!(code, Some(1), "{errors}");
    assert!(
        errors.contains("the guest web1 exists and differs from the plan:\n  disk vdb: target is vdc, and the plan has vdb"),
        "{errors}"
    );
    // Words of the configuration, and none of the program.
    assert!(!errors.contains("Some("), "{errors}");
    assert_eq!(place.read("defined.xml"), other);
    // Every key that the spec sets counts, and no other.
    let more = spec(&place).replace("{name: web1}", "{name: web1, memory: 2G, machine: q35}");
    place.write("web1.yaml", more.as_bytes());
    fs::remove_file(place.path("defined.xml")).unwrap();
    assert_eq!(define().0, Some(0));
    let defined = place.read("defined.xml").replace("'q35'", "'pc-q35-7.2'");
    place.write("defined.xml", defined.as_bytes());
    let (code, _, errors) = define();
    assert_eq!(code, Some(0), "{errors}");
    for (asked, differs) in [
        ("memory: 8G", "memory is 2G, and the plan has 8G"),
        ("memory: 2G, vcpus: 16", "vcpus is 1, and the plan has 16"),
        ("memory: 2G, iothreads: 2", "iothreads is "),
        (
            "memory: 2G, cpu: maximum",
            "cpu is host-passthrough, and the plan has maximum",
        ),
        (
            "memory: 2G, network: default",
            "the device `interface` is missing or another one",
        ),
        (
            "memory: 2G, firmware: efi",
            "firmware is unset, and the plan has efi",
        ),
        (
            "memory: 2G, machine: pc",
            "machine is pc-q35-7.2, and the plan has pc",
        ),
    ] {
        let asked = spec(&place).replace("{name: web1}", &format!("{{name: web1, {asked}}}"));
        place.write("web1.yaml", asked.as_bytes());
        let (code, said, errors) = define();
        assert_eq!(code, Some(1), "{said}{errors}");
        assert!(errors.contains(differs), "{errors}");
        assert_eq!(place.read("defined.xml"), defined);
    }
    // What libvirt does not say is not known.
    place.program("bin/virsh", "echo 'error: failed to connect' >&2; exit 1");
    let (code, _, errors) = define();
    assert_eq!(code, Some(1), "{errors}");
    assert!(
        errors.contains("is not known: virsh dumpxml fails"),
        "{errors}"
    );
}

#[test]
fn the_lines_of_a_program_that_fails_are_lines() {
    let place = prepared();
    with_qemu_img(&place, "printf 'no space\\nleft\\033\\n' >&2; exit 1");
    let output = run(&place, false, SYSTEM);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("fails: no space\n  left\\u{1b}\n"), "{text}");
}
