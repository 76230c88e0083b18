//! `--fix`, `--unsafe-fixes` and `--diff`.

use std::process::Command;

use crate::{CLEAN, Place, UNSAFE};

#[test]
fn a_fix_changes_the_mistake_and_nothing_else() {
    let place = Place::with(&[("a.xml", UNSAFE)]);
    let run = place.run(&["lint", "a.xml", "--fix", "--fail-on", "error"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(place.read("a.xml"), CLEAN);
    assert!(run.stderr.contains("1 fixed"), "{run:?}");
}

#[test]
fn standard_input_is_printed_mended_and_the_report_stands_aside() {
    let place = Place::with(&[]);
    let run = place.run_with_input(
        &["lint", "-", "--fix", "--fail-on", "error"],
        UNSAFE.as_bytes(),
    );
    assert_eq!((run.code, run.stdout.as_str()), (0, CLEAN), "{run:?}");
    let clean = place.run_with_input(
        &["lint", "-", "--fix", "--fail-on", "error"],
        CLEAN.as_bytes(),
    );
    assert_eq!(
        clean.stdout, CLEAN,
        "what needs no mending is printed as it was"
    );
    let broken = place.run_with_input(&["lint", "-", "--fix"], b"<domain>");
    assert_eq!((broken.code, broken.stdout.as_str()), (2, ""), "{broken:?}");
}

#[test]
fn a_diff_changes_nothing_and_git_can_apply_it() {
    let no_last_line_end = UNSAFE.trim_end();
    let windows = UNSAFE.replace('\n', "\r\n");
    let place = Place::with(&[
        ("d/my web.xml", UNSAFE),
        ("d/ü.xml", no_last_line_end),
        ("d/windows.xml", &windows),
        ("d/clean.xml", CLEAN),
    ]);
    let run = place.run(&["lint", "d", "--diff"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(place.read("d/my web.xml"), UNSAFE);
    assert!(!run.stdout.contains("clean.xml"));
    place.write("fix.diff", run.stdout.as_bytes());
    let git = Command::new("git")
        .args(["apply", "--whitespace=nowarn", "fix.diff"])
        .current_dir(place.path(""))
        .env("GIT_CEILING_DIRECTORIES", place.path(".."))
        .output();
    // Where git is not installed there is nothing to ask.
    if let Ok(git) = git {
        assert!(
            git.status.success(),
            "{}\n{}",
            String::from_utf8_lossy(&git.stderr),
            run.stdout
        );
        assert_eq!(place.read("d/my web.xml"), CLEAN);
        assert_eq!(place.read("d/ü.xml"), CLEAN.trim_end());
        assert_eq!(place.read("d/windows.xml"), CLEAN.replace('\n', "\r\n"));
    }
    let clean = place.run(&["lint", "d/clean.xml", "--diff"]);
    assert_eq!((clean.code, clean.stdout.as_str()), (0, ""), "{clean:?}");
}

#[test]
fn a_byte_order_mark_and_what_stands_around_survive_a_fix() {
    let text =
        format!("\u{feff}<?xml version='1.0'?>\r\n<!-- keep\tme -->\r\n{UNSAFE}<!-- end -->");
    let place = Place::with(&[("a.xml", &text)]);
    place.run(&["lint", "a.xml", "--fix"]);
    assert_eq!(place.read("a.xml"), text.replace("'unsafe'", "'writeback'"));
}

#[cfg(unix)]
#[test]
fn mode_and_link_survive_a_fix() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let place = Place::with(&[("real/a.xml", UNSAFE)]);
    let real = place.path("real/a.xml");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("real/a.xml", place.path("link.xml")).unwrap();
    // Only root may give a file away.
    let is_given_away = std::os::unix::fs::chown(&real, Some(4242), Some(4243)).is_ok();
    place.run(&["lint", "link.xml", "--fix"]);
    assert_eq!(place.read("real/a.xml"), CLEAN);
    assert!(
        std::fs::symlink_metadata(place.path("link.xml"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(
        std::fs::metadata(&real).unwrap().permissions().mode() & 0o7777,
        0o600
    );
    let owner = std::fs::metadata(&real).unwrap();
    assert_eq!((owner.uid(), owner.gid()) == (4242, 4243), is_given_away);
    assert_eq!(
        std::fs::read_dir(place.path("real")).unwrap().count(),
        1,
        "nothing is left behind"
    );
}

#[test]
fn a_killed_fix_leaves_the_file_whole_and_the_next_one_cleans_up() {
    use std::os::unix::process::ExitStatusExt as _;
    let traced = vmdisk_testing::run("strace", &["-f", "-o", "/dev/null", "true"]);
    if vmdisk_testing::needed(traced).is_none() {
        return;
    }
    let place = Place::with(&[("a.xml", UNSAFE)]);
    let files = || -> Vec<String> {
        let entries = std::fs::read_dir(place.path("")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    // The new text is written and not yet renamed.
    let killed = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "-e", "trace=fsync"])
        .args(["-e", "inject=fsync:signal=KILL"])
        .args([crate::program(), "lint", "--fix", "a.xml"])
        .current_dir(place.path(""))
        .output()
        .unwrap();
    assert_eq!(killed.status.signal(), Some(9), "{killed:?}");
    assert_eq!(place.read("a.xml"), UNSAFE);
    let left = files();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left[0].starts_with(".vmdisk-"), "{left:?}");

    place.run(&["lint", "--fix", "a.xml"]);
    assert_eq!(place.read("a.xml"), CLEAN);
    assert_eq!(files(), ["a.xml"]);
}

#[test]
fn a_report_goes_to_a_file_and_replaces_it_whole() {
    let place = Place::with(&[("a.xml", UNSAFE), ("out.json", "old")]);
    let run = place.run(&["lint", "a.xml", "--format", "json", "--output", "out.json"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{run:?}");
    let report: serde_json::Value = serde_json::from_str(&place.read("out.json")).unwrap();
    assert_eq!(report["summary"]["errors"], 1);
    let run = place.run(&["lint", "a.xml", "--output", "no/such/place"]);
    assert_eq!(run.code, 2);
}

#[test]
fn file_names_are_never_made_options() {
    let line = "qemu-system-x86_64 -machine pc -hda /srv/a.img -sd /srv/b.img /srv/c.img\n";
    let place = Place::with(&[("a.args", line)]);
    for _ in 0..2 {
        let run = place.run(&["lint", "a.args", "--fix", "--unsafe-fixes"]);
        assert!(!run.stderr.contains("fixed"), "{run:?}");
        assert_eq!(place.read("a.args"), line);
    }
}

#[test]
fn volumes_and_named_files_are_known_while_a_guest_is_fixed() {
    // The disk of the file uses the iothread, which is none without it.
    let line = "qemu-system-x86_64 -nodefaults -machine q35 -object iothread,id=io1 -readconfig disks.cfg \\\n  \
                -drive if=none,id=b,file=/srv/b.img,format=raw,cache=unsafe -device virtio-blk-pci,drive=b,id=vdb\n";
    let file = "[drive \"a\"]\n  if = \"none\"\n  file = \"/srv/a.img\"\n  format = \"raw\"\n  cache = \"none\"\n\
                [device \"vda\"]\n  driver = \"virtio-blk-pci\"\n  drive = \"a\"\n  iothread = \"io1\"\n";
    let place = Place::with(&[("a.args", line), ("disks.cfg", file)]);
    let run = place.run(&["lint", "a.args", "--fix", "--unsafe-fixes"]);
    assert!(!run.stdout.contains("iothread-unused"), "{run:?}");
    assert_eq!(place.read("a.args"), line.replace("unsafe", "writeback"));
    assert_eq!(place.read("disks.cfg"), file);
}
