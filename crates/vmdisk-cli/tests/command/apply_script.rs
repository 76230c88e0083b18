//! `vmdisk apply --dry-run --format script`: the script does what the run would do.

use std::fs;
use std::process::Command;

use crate::apply::SYSTEM;
use crate::apply_changes::{
    AFTER, Interruption, Preparation, command, prepared, run, size_of, text_of, with_qemu_img,
    with_virsh, without_own, write_spec,
};
use crate::apply_move;
use crate::{Place, real_libvirt};

const ALL: &str = "grow,add,remove,options,move";

/// Writes the script of a run; the exit status is that of the run.
fn write_script(place: &Place, kinds: &str, uri: Option<&str>) -> Option<i32> {
    let mut command = command(
        place,
        &["--change", kinds, "--dry-run", "--format", "script"],
    );
    command.envs(uri.map(|uri| ("LIBVIRT_DEFAULT_URI", uri)));
    let (code, script, errors) = text_of(&command.output().unwrap());
    assert!(script.starts_with("#!/bin/sh\n"), "{script}{errors}");
    place.write("change.sh", script.as_bytes());
    code
}

/// Runs the script that was written.
fn run_script(place: &Place, uri: Option<&str>) -> (Option<i32>, String, String) {
    let mut shell = Command::new("sh");
    shell.arg(place.path("change.sh")).current_dir("/");
    shell.env("PATH", format!("{}{SYSTEM}", place.path("bin").display()));
    shell.envs(uri.map(|uri| ("LIBVIRT_DEFAULT_URI", uri)));
    text_of(&shell.output().unwrap())
}

/// The definition without the folder of the test.
fn definition(place: &Place) -> String {
    let folder = place.path("").display().to_string();
    place.read("guests/web1").replace(&folder, "")
}

#[test]
fn the_script_makes_the_same_changes_as_the_run() {
    let (Some(by_run), Some(by_script)) = (prepared(), prepared()) else {
        return;
    };
    for place in [&by_run, &by_script] {
        let text = "<description>\nEND\n$(false) \\ `false`\n</description>\n  <devices>";
        let guest = place.read("guests/web1").replace("<devices>", text);
        place.write("guests/web1", guest.as_bytes());
    }
    let before = definition(&by_script);
    assert_eq!(write_script(&by_script, ALL, None), Some(0));
    assert_eq!(definition(&by_script), before);
    assert_eq!(size_of(&by_script, "a.qcow2"), Some(8 << 20));
    assert_eq!(run(&by_run, &["--change", ALL]).0, Some(0));
    let (code, said, errors) = run_script(&by_script, None);
    assert_eq!(code, Some(0), "{said}{errors}");
    assert_eq!(definition(&by_script), definition(&by_run));
    for (name, size) in [
        ("a.qcow2", Some(16 << 20)),
        ("b.img", Some(2 << 20)),
        ("c.qcow2", Some(4 << 20)),
    ] {
        assert_eq!(size_of(&by_script, name), size, "{name}");
    }
    let data = fs::read(by_script.path("images/b.img")).unwrap();
    assert_eq!(data, vec![7; 2 << 20]);
    assert!(run(&by_script, &[]).1.ends_with("nothing-to-do\n"));
    // The definition is no more that of before.
    let (code, _, errors) = run_script(&by_script, None);
    assert_eq!(code, Some(1), "{errors}");
}

#[test]
fn the_script_has_only_the_changes_that_are_asked_for_and_names_the_others() {
    let Some(place) = prepared() else { return };
    let (code, said, _) = run(&place, &["--change", "grow", "--format", "script"]);
    assert_eq!((code, said.as_str()), (Some(2), ""));
    let nothing = ["--dry-run", "--format", "script"];
    let (code, said, errors) = run(&place, &nothing);
    assert_eq!((code, said.as_str()), (Some(1), ""), "{errors}");
    assert!(errors.contains("--change"), "{errors}");
    write_spec(&place, &AFTER.replace("256M", "1G"));
    assert_eq!(write_script(&place, "grow", None), Some(1));
    let (_, _, errors) = run(&place, &["--change", "grow", "--dry-run"]);
    let named = "incomplete: memory is 256M, and the plan has 1G";
    assert!(errors.contains(named), "{errors}");
    let before = definition(&place);
    let (code, said, errors) = run_script(&place, None);
    assert_eq!(code, Some(0), "{said}{errors}");
    assert_eq!(definition(&place), before);
    assert_eq!(size_of(&place, "a.qcow2"), Some(16 << 20));
    let (code, said, errors) = run_script(&place, None);
    assert_eq!(code, Some(0), "{said}{errors}");
    assert!(said.contains("done already: "), "{said}");
}

#[test]
fn what_changed_since_the_script_was_written_refuses_before_anything_changes() {
    let rows: &[(Preparation, &str)] = &[
        (
            |place| {
                let other = place.read("guests/web1").replace("262144", "524288");
                place.write("guests/web1", other.as_bytes());
            },
            "the guest web1 was changed since this script was written",
        ),
        (
            |place| place.write("state", b"running\n"),
            "the guest web1 is not off",
        ),
        (
            |place| fs::remove_file(place.path("guests/web1")).unwrap(),
            "the guest web1 was changed since",
        ),
        (
            |place| {
                let image = place.path("images/a.qcow2").display().to_string();
                vmdisk_testing::run("qemu-img", &["resize", "-q", &image, "12M"]).unwrap();
            },
            "a.qcow2 was changed since this script was written",
        ),
        (
            |place| {
                let image = place.path("images/a.qcow2").display().to_string();
                vmdisk_testing::run("qemu-img", &["snapshot", "-c", "s", &image]).unwrap();
            },
            "it has internal snapshots",
        ),
        (
            |place| place.write("images/c.qcow2", b"other"),
            "c.qcow2 exists, and nothing is overwritten",
        ),
    ];
    for (prepare, why) in rows {
        let Some(place) = prepared() else { return };
        assert_eq!(write_script(&place, ALL, None), Some(0));
        prepare(&place);
        let (before, size) = (
            fs::read(place.path("guests/web1")).ok(),
            size_of(&place, "a.qcow2"),
        );
        let (code, said, errors) = run_script(&place, None);
        assert_eq!(code, Some(1), "{why}: {said}{errors}");
        assert!(errors.contains(why), "{why}: {errors}");
        assert_eq!(fs::read(place.path("guests/web1")).ok(), before, "{why}");
        assert_eq!(size_of(&place, "a.qcow2"), size, "{why}");
    }
}

#[test]
fn a_script_that_is_stopped_leaves_each_change_as_before_or_as_after() {
    let stop = "kill -TERM $PPID; sleep 0.2";
    let rows: &[(&str, Interruption)] = &[
        ("the size", |place, stop| {
            with_qemu_img(place, "resize", stop, "")
        }),
        ("a new image", |place, stop| {
            with_qemu_img(place, "create", "", stop)
        }),
        ("no definition", |place, _| with_virsh(place, "exit 1")),
        ("the definition", |place, stop| {
            with_virsh(place, &format!("{stop}; cat >new; mv new web1; exit 1"));
        }),
    ];
    for (name, prepare) in rows {
        let Some(place) = prepared() else { return };
        let before = definition(&place);
        assert_eq!(write_script(&place, ALL, None), Some(0));
        prepare(&place, stop);
        let (code, said, errors) = run_script(&place, None);
        assert!(
            [Some(2), Some(143)].contains(&code),
            "{name}: {code:?} {said}{errors}"
        );
        let is_after = *name == "the definition";
        assert_eq!(definition(&place) == before, !is_after, "{name}");
        assert_eq!(place.path("images/c.qcow2").exists(), is_after, "{name}");
        fs::remove_file(place.path("bin/qemu-img")).ok();
        with_virsh(&place, "");
        let (code, said, errors) = run(&place, &["--change", ALL]);
        assert_eq!(code, Some(0), "{name}: {said}{errors}");
    }
}

#[test]
fn the_script_moves_data_and_a_start_meanwhile_undoes_it() {
    for (state, code) in [("", Some(0)), ("running", Some(1)), ("save", Some(1))] {
        let Some(place) = apply_move::prepared() else {
            return;
        };
        assert_eq!(write_script(&place, "move", None), Some(0));
        let before = place.read("guests/web1");
        if state == "running" {
            let old = apply_move::path(&place, "a.qcow2");
            let running = format!("echo ' vda   {old}' >../blocks");
            with_virsh(&place, &format!("[ -e ../blocks ] || {running}"));
        } else if state == "save" {
            place.write("info", b"Managed save:   yes\n");
        }
        let (found, said, errors) = run_script(&place, None);
        assert_eq!(found, code, "{state}: {said}{errors}");
        if state.is_empty() {
            assert!(apply_move::read(&place, "raw", "b.img") == apply_move::data());
            assert!(run(&place, &[]).1.ends_with("nothing-to-do\n"));
        } else {
            assert_eq!(place.read("guests/web1"), before, "{state}");
            assert_eq!(apply_move::files(&place), ["a.qcow2"], "{state}");
        }
    }
}

#[test]
fn a_real_libvirt_has_the_same_guest_after_the_script_as_after_the_run() {
    let Some((_root, uri)) = real_libvirt() else {
        return;
    };
    let virsh =
        |words: &[&str]| vmdisk_testing::run("virsh", &[&["--connect", &uri], words].concat());
    let guest = "version: 1\nguest: {name: web1, type: qemu, memory: 256M}\ndisks:\n";
    let disk = |image: &str, rest: &str| {
        format!("- {image}\n  cache: none\n  io: threads\n  target: {rest}\n")
    };
    let before = disk("qcow2: {path: D/a.qcow2, size: 8M}", "vda")
        + &disk("qcow2: {path: D/b.qcow2, size: 4M}", "vdb");
    let after = disk("qcow2: {path: D/a.qcow2, size: 16M}", "vda\n  serial: one")
        + &disk(r#"raw: {path: "D/b &'$c\".img", size: 4M}"#, "vdb")
        + &disk("qcow2: {path: D/c.qcow2, size: 4M}", "vdc");
    let definitions = [false, true].map(|is_script| {
        let _ = virsh(&["undefine", "web1"]);
        let place = Place::with(&[]);
        fs::create_dir(place.path("images")).unwrap();
        let apply = |spec: &str, arguments: &[&str]| {
            write_spec(&place, &format!("{guest}{spec}"));
            let mut command = command(&place, arguments);
            text_of(&command.env("LIBVIRT_DEFAULT_URI", &uri).output().unwrap())
        };
        // The script makes the guest, too.
        if is_script {
            write_spec(&place, &format!("{guest}{before}"));
            assert_eq!(write_script(&place, ALL, Some(&uri)), Some(0));
            let (code, said, errors) = run_script(&place, Some(&uri));
            assert_eq!(code, Some(0), "{said}{errors}");
            assert_eq!(run_script(&place, Some(&uri)).0, Some(1));
        }
        let (code, said, errors) = apply(&before, &[]);
        assert_eq!(code, Some(0), "{said}{errors}");
        assert_eq!(said.ends_with("nothing-to-do\n"), is_script, "{said}");
        apply_move::fill_with(&place, "qcow2", "b.qcow2", 4 << 20);
        let (code, said, errors) = if is_script {
            write_spec(&place, &format!("{guest}{after}"));
            assert_eq!(write_script(&place, ALL, Some(&uri)), Some(0));
            run_script(&place, Some(&uri))
        } else {
            apply(&after, &["--change", ALL])
        };
        assert_eq!(code, Some(0), "{said}{errors}");
        let (code, said, errors) = apply(&after, &[]);
        assert_eq!(code, Some(0), "{said}{errors}");
        assert!(said.ends_with("nothing-to-do\n"), "{said}");
        assert!(
            apply_move::read(&place, "raw", "b &'$c\".img")[..4 << 20]
                == apply_move::data()[..4 << 20]
        );
        let folder = place.path("").display().to_string();
        let text = virsh(&["dumpxml", "--inactive", "web1"]).unwrap();
        without_own(&text.replace(&folder, ""))
    });
    assert_eq!(definitions[0], definitions[1]);
}

#[test]
fn the_script_moves_data_to_a_pool_of_a_real_libvirt() {
    let Some((_root, uri)) = real_libvirt() else {
        return;
    };
    let place = Place::with(&[]);
    fs::create_dir(place.path("images")).unwrap();
    let apply = |image: &str| {
        write_spec(&place, &apply_move::spec(image));
        let mut command = command(&place, &[]);
        text_of(&command.env("LIBVIRT_DEFAULT_URI", &uri).output().unwrap())
    };
    assert_eq!(apply(apply_move::BEFORE).0, Some(0));
    apply_move::fill_with(&place, "qcow2", "a.qcow2", 8 << 20);
    let folder = place.path("images").display().to_string();
    let pool = ["pool-create-as", "fast", "dir", "--target", &folder];
    let pool = [&["--connect", &uri], &pool[..]].concat();
    if let Err(why) = vmdisk_testing::run("virsh", &pool) {
        println!("no pool: {why}");
        return;
    }
    let volume = "volume: {pool: fast, volume: v.qcow2, format: qcow2, size: 8M}";
    write_spec(&place, &apply_move::spec(volume));
    assert_eq!(write_script(&place, "move", Some(&uri)), Some(0));
    let (code, said, errors) = run_script(&place, Some(&uri));
    assert_eq!(code, Some(0), "{said}{errors}");
    assert!(apply_move::read(&place, "qcow2", "v.qcow2") == apply_move::data());
    assert!(apply(volume).1.ends_with("nothing-to-do\n"));
}
