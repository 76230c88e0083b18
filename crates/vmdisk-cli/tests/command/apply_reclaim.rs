//! `vmdisk apply --change reclaim`: space that a guest does not use is given back.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

use vmdisk_testing::{installed, needed};

use crate::Place;
use crate::apply_changes::{
    follow_guide, run, text_of, wait_for_programs, with_qemu_img, with_virsh, write_spec,
};
use crate::apply_move::{
    BEFORE, data, files, fill_with, path, read, refused_without_a_change, spec,
};

/// What makes the state of a case.
type Preparation = fn(&Place);

const RECLAIM: [&str; 2] = ["--change", "reclaim"];

/// A place with a guest whose image takes all of its 8 MiB, of which most are zeroes; none without QEMU's programs.
fn prepared_with(image: &str, format: &str, name: &str) -> Option<Place> {
    needed(["qemu-img", "qemu-io"].into_iter().try_for_each(installed))?;
    let place = Place::with(&[]);
    fs::create_dir(place.path("images")).unwrap();
    with_virsh(&place, "");
    write_spec(&place, &spec(image));
    let (code, said, errors) = run(&place, &[]);
    assert_eq!(code, Some(0), "{said}{errors}");
    fill_with(&place, format, name, 8 << 20);
    let image = path(&place, name);
    let zeroes = ["-f", format, "-c", "write -P 0 1M 6M", &image];
    vmdisk_testing::run("qemu-io", &zeroes).unwrap();
    assert!(taken(&place, name) >= 8 << 20);
    Some(place)
}

fn prepared() -> Option<Place> {
    prepared_with(BEFORE, "qcow2", "a.qcow2")
}

fn qemu_img(words: &[&str]) {
    vmdisk_testing::run("qemu-img", words).unwrap();
}

/// Bytes that an image takes.
fn taken(place: &Place, name: &str) -> u64 {
    fs::metadata(path(place, name)).unwrap().blocks() * 512
}

#[test]
fn a_sparse_copy_takes_the_name_of_an_image_and_the_image_stays() {
    let raw = "raw: {path: 'D/a b.img', size: 8M}";
    for way in ["run", "script"] {
        for (image, format, name) in [(BEFORE, "qcow2", "a.qcow2"), (raw, "raw", "a b.img")] {
            let Some(place) = prepared_with(image, format, name) else {
                return;
            };
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o640);
            fs::set_permissions(path(&place, name), mode).unwrap();
            let (definition, bytes) = (
                place.read("guests/web1"),
                fs::read(path(&place, name)).unwrap(),
            );
            assert!(run(&place, &[]).1.ends_with("nothing-to-do\n"));
            let (code, said, errors) = run(&place, &[&RECLAIM[..], &["--dry-run"]].concat());
            assert_eq!(code, Some(0), "{said}{errors}");
            for shown in [
                "planned: reclaim vda: ",
                " takes 8",
                " of 8 MiB, with 8 MiB of data that the guest may use",
                "  command: qemu-img convert ",
                "  then: qemu-img compare ",
                "  undo: mv -fT -- ",
                "  down time: off\n",
                "remove it when the guest works with the copy",
            ] {
                assert!(said.contains(shown), "{shown}\n{said}");
            }
            assert_eq!(files(&place), [name]);
            let script = [&RECLAIM[..], &["--dry-run", "--format", "script"]].concat();
            let text = run(&place, &script).1;
            place.write("reclaim.sh", text.as_bytes());
            let reclaimed = || match way {
                "script" => {
                    let mut shell = Command::new("sh");
                    shell.arg(place.path("reclaim.sh"));
                    shell.env(
                        "PATH",
                        format!("{}:/usr/bin:/bin", place.path("bin").display()),
                    );
                    text_of(&shell.output().unwrap())
                }
                _ => run(&place, &RECLAIM),
            };
            let (code, said, errors) = reclaimed();
            assert_eq!(code, Some(0), "{way}: {said}{errors}");
            assert!(read(&place, format, name) == data(), "{way} {name}");
            assert!(taken(&place, name) < 4 << 20, "{way} {name}");
            let now = fs::metadata(path(&place, name)).unwrap();
            assert_eq!(now.mode() & 0o777, 0o640, "{way} {name}");
            let old = format!("{name}.old");
            assert!(fs::read(path(&place, &old)).unwrap() == bytes);
            assert_eq!(files(&place), [name, &old]);
            assert_eq!(place.read("guests/web1"), definition);
            let (code, said, errors) = reclaimed();
            assert_eq!(code, Some(1), "{way}: {said}{errors}");
            assert!(errors.contains(".old exists"), "{errors}");
            assert_eq!(files(&place), [name, &old]);
            fs::remove_file(path(&place, &old)).unwrap();
            let (code, said, errors) = reclaimed();
            assert_eq!(code, Some(0), "{way}: {said}{errors}");
        }
    }
}

#[test]
fn what_is_in_the_way_refuses_and_changes_nothing() {
    let rows: &[(Preparation, &str)] = &[
        (
            |place| place.write("state", b"running\n"),
            "no guest agent answers in the guest web1",
        ),
        (
            |place| qemu_img(&["snapshot", "-c", "s", &path(place, "a.qcow2")]),
            "internal snapshots, which a copy does not have",
        ),
        (
            |place| place.write("snapshots", b"s1\n"),
            "the guest web1 has snapshots",
        ),
        (
            |place| {
                let other = place.read("guests/web1").replace("web1", "web2");
                place.write("guests/web2", other.as_bytes());
            },
            "the guest web2 of libvirt uses it, too",
        ),
        (
            |place| write_spec(place, &spec(&BEFORE.replace("8M", "16M"))),
            "make the other changes first, without `reclaim`",
        ),
        (
            |place| write_spec(place, &spec(&BEFORE.replace(", size: 8M", ""))),
            "no disk gets a sparse copy",
        ),
        (
            |place| {
                let image = path(place, "a.qcow2");
                fs::remove_file(&image).unwrap();
                let words = ["create", "-q", "-f", "qcow2", "-o", "preallocation=falloc"];
                qemu_img(&[&words[..], &["--", &image, "8M"]].concat());
                let falloc = BEFORE.replace("8M", "8M, preallocation: falloc");
                write_spec(place, &spec(&format!("{falloc}\n  discard: unmap")));
            },
            "no disk gets a sparse copy",
        ),
        (
            |place| fs::remove_file(place.path("guests/web1")).unwrap(),
            "libvirt does not say that there is a guest web1",
        ),
    ];
    for (prepare, why) in rows {
        let Some(place) = prepared() else { return };
        prepare(&place);
        refused_without_a_change(&place, &RECLAIM, why);
    }
}

#[test]
fn a_guest_that_starts_in_the_middle_keeps_its_image() {
    let rows: &[Preparation] = &[
        // Before the copy takes the name, and after it: the guest has the image open.
        |place| {
            let running = format!("echo running >'{}'", place.path("state").display());
            with_qemu_img(place, "compare", "", &running);
        },
        |place| with_qemu_img(place, "info", "case $* in *.old) exit 1 ;; esac", ""),
    ];
    for prepare in rows {
        let Some(place) = prepared() else { return };
        let bytes = fs::read(path(&place, "a.qcow2")).unwrap();
        prepare(&place);
        let (code, said, errors) = run(&place, &RECLAIM);
        assert_eq!(code, Some(1), "{said}{errors}");
        assert!(errors.contains("was started meanwhile"), "{errors}");
        assert!(fs::read(path(&place, "a.qcow2")).unwrap() == bytes);
        assert!(!files(&place).contains(&"a.qcow2.old".to_owned()));
    }
}

#[test]
fn an_interrupted_run_loses_nothing_and_the_next_run_ends_it() {
    for signal in ["TERM", "INT", "KILL"] {
        let kill = format!("kill -{signal} $PPID; sleep 0.2");
        let late = format!("case $* in *.old) {kill} ;; esac");
        for (name, what, before, after) in [
            ("before the image", "create", kill.as_str(), ""),
            ("after the copy", "convert", "", &kill),
            ("after the comparison", "compare", "", &kill),
            ("after the new name", "info", &late, ""),
        ] {
            let Some(place) = prepared() else { return };
            with_qemu_img(&place, what, before, after);
            let (code, said, errors) = run(&place, &RECLAIM);
            wait_for_programs(&place);
            assert_ne!(code, Some(1), "{signal} {name}: {said}{errors}");
            assert!(
                read(&place, "qcow2", "a.qcow2") == data(),
                "{signal} {name}"
            );
            with_qemu_img(&place, "-", "", "");
            let part = place.path("images/a.qcow2.new.part");
            if part.exists() {
                assert_eq!(signal, "KILL", "{name}");
                fs::remove_dir_all(part).unwrap();
            }
            let _ = fs::remove_file(path(&place, "a.qcow2.old"));
            let (code, said, errors) = run(&place, &RECLAIM);
            assert_eq!(code, Some(0), "{signal} {name}: {said}{errors}");
            assert!(
                read(&place, "qcow2", "a.qcow2") == data(),
                "{signal} {name}"
            );
            assert_eq!(files(&place), ["a.qcow2", "a.qcow2.old"], "{signal} {name}");
        }
    }
}

/// A guest that runs, with the agent, and a disk of this image and mode of discards; `trimmed` has what virsh trims.
fn running_with_agent(image: &str, format: &str, name: &str, options: &str) -> Option<Place> {
    let place = prepared_with(image, format, name)?;
    let agent = |spec: String| spec.replace("type: qemu,", "type: qemu, channel: agent,");
    write_spec(&place, &agent(spec(&format!("{image}\n  {options}"))));
    fs::remove_file(place.path("guests/web1")).unwrap();
    let (code, said, errors) = run(&place, &[]);
    assert_eq!(code, Some(0), "{said}{errors}");
    let agent = "name='org.qemu.guest_agent.0'";
    let guest = place.read("guests/web1");
    assert!(guest.contains(agent), "{guest}");
    let connected = guest.replace(agent, &format!("{agent} state='connected'"));
    place.write("guests/web1", connected.as_bytes());
    place.write("state", b"running\n");
    let virsh = place.read("bin/virsh");
    let trims = "case $1 in domfstrim) echo \"$@\" >>../trimmed ;; esac\n";
    let virsh = virsh.replacen("case $1 in", &format!("{trims}case $1 in"), 1);
    place.program(
        "bin/virsh",
        virsh.strip_prefix("#!/bin/sh\n").unwrap_or(&virsh),
    );
    Some(place)
}

#[test]
fn the_commands_of_the_guide_give_space_back_of_a_guest_that_is_off_or_runs() {
    let section = "Space that the guest does not use";
    let Some(place) = prepared() else { return };
    let before = taken(&place, "a.qcow2");
    let (code, said, errors) = follow_guide(&place, section);
    assert_eq!(code, Some(0), "{said}{errors}");
    assert!(taken(&place, "a.qcow2") < before / 2, "{said}");
    assert_eq!(taken(&place, "a.qcow2.old"), before);
    let raw = "raw: {path: D/a.img, size: 8M}";
    let Some(place) = running_with_agent(raw, "raw", "a.img", "discard: unmap") else {
        return;
    };
    let (code, said, errors) = follow_guide(&place, section);
    assert_eq!(code, Some(0), "{said}{errors}");
    assert_eq!(place.read("trimmed"), "domfstrim -- web1\n");
    assert!(!said.contains("cluster"), "{said}");
}

#[test]
fn a_guest_that_runs_discards_what_it_does_not_use_if_its_storage_frees_it() {
    for discard in ["unmap", "ignore"] {
        let options = format!("discard: {discard}");
        let Some(place) = running_with_agent(BEFORE, "qcow2", "a.qcow2", &options) else {
            return;
        };
        let reclaim = |target: &str| run(&place, &[&RECLAIM[..], &["--target", target]].concat());
        let refused = |target: &str, why: &str| {
            let (code, said, errors) = reclaim(target);
            assert_eq!(code, Some(1), "{said}{errors}");
            let why = format!("vda keeps what the guest discards: {why}");
            assert!(errors.contains(&why), "{errors}");
        };
        if discard == "ignore" {
            let why = "QEMU: QEMU ignores discards without `discard: unmap` (`--change options`)";
            refused("qemu=11.1.3", why);
            assert!(!place.path("trimmed").exists());
            continue;
        }
        refused("qemu=7.2", "QEMU 7.2 can corrupt a qcow2 image");
        assert!(!place.path("trimmed").exists());
        let (code, said, errors) = reclaim("qemu=11.1.3");
        assert_eq!(code, Some(0), "{said}{errors}");
        assert!(said.contains("done: reclaim : vda: "), "{said}");
        let small = "vda keeps what the guest discards in pieces below the cluster size, 64 KiB: with `discard-granularity: 65536`";
        assert!(said.contains(small), "{said}");
        let script = ["--target", "qemu=11.1.3", "--dry-run", "--format", "script"];
        let script = run(&place, &[&RECLAIM[..], &script].concat()).1;
        assert!(
            script.contains("virsh domfstrim -- web1 || exit 2"),
            "{script}"
        );
        assert_eq!(place.read("trimmed"), "domfstrim -- web1\n");
        assert_eq!(files(&place), ["a.qcow2"]);
        // What is shared with a snapshot is not freed.
        let image = path(&place, "a.qcow2");
        qemu_img(&["snapshot", "-c", "s", &image]);
        refused(
            "qemu=11.1.3",
            &format!("{image} is not copied: it has internal snapshots"),
        );
    }
}
