//! Files of `-readconfig`: alone, and named by a command line.

use crate::{CLEAN, Place};

const DRIVE: &str = "\
# The disk of web1.
[drive \"d0\"]
  if = \"none\"
  format = \"raw\"
  file = \"/srv/a.img\"
  cache = \"unsafe\"

[device \"vda\"]
  driver = \"virtio-blk-pci\"
  drive = \"d0\"
";

const LINE: &str =
    "qemu-system-x86_64 -machine q35 \\\n  -readconfig disks/web1.cfg -netdev user,id=n\n";

#[test]
fn what_is_in_a_named_file_is_told_at_its_place_there() {
    let place = Place::with(&[("vm/web1.args", LINE), ("vm/disks/web1.cfg", DRIVE)]);
    let run = place.run(&["lint", "vm/web1.args", "--format", "concise", "--quiet"]);
    assert_eq!(run.code, 1, "{run:?}");
    let errors: Vec<&str> = run
        .stdout
        .lines()
        .filter(|line| line.contains(": error["))
        .collect();
    assert_eq!(errors.len(), 1, "{run:?}");
    assert!(
        errors[0].starts_with("vm/disks/web1.cfg:6:12: error[cache-unsafe]"),
        "{run:?}"
    );
    // The text is quoted from the file that it is in.
    let full = place.run(&["lint", "vm/web1.args", "--quiet"]);
    assert!(full.stdout.contains("6 |   cache = \"unsafe\""), "{full:?}");
    let json = place.run(&["lint", "vm/web1.args", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let inputs = report["inputs"].as_array().unwrap();
    assert_eq!(inputs.len(), 2, "{}", json.stdout);
    // Found on its own, too, it is told of once.
    let folder = place.run(&["lint", "vm", "--format", "concise", "--quiet"]);
    assert_eq!(
        folder.stdout.matches("error[cache-unsafe]").count(),
        1,
        "{folder:?}"
    );
}

#[test]
fn a_file_alone_is_checked_and_mended_in_place() {
    let place = Place::with(&[
        ("web1.cfg", DRIVE),
        ("other.cfg", "[remote \"origin\"]\n\turl = \"x\"\n"),
    ]);
    let run = place.run(&["lint", ".", "--format", "concise", "--quiet"]);
    assert!(
        run.stdout.contains("web1.cfg:6:12: error[cache-unsafe]"),
        "{run:?}"
    );
    place.run(&["lint", "web1.cfg", "--fix"]);
    assert_eq!(place.read("web1.cfg"), DRIVE.replace("unsafe", "writeback"));
}

#[test]
fn a_named_file_is_converted_with_its_command_line() {
    let place = Place::with(&[("web1.args", LINE), ("disks/web1.cfg", DRIVE)]);
    let run = place.run(&["convert", "web1.args", "--to", "libvirt-xml"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.stdout.contains("<source file='/srv/a.img'/>"),
        "{run:?}"
    );
    assert!(run.stdout.contains("machine='q35'"), "{run:?}");
    assert!(
        run.stderr.contains("not carried over: `-netdev`"),
        "{run:?}"
    );
    let strange = DRIVE.replace("  if = ", "  snapshot = \"on\"\n  strange = \"x\"\n  if = ");
    place.write("disks/web1.cfg", strange.as_bytes());
    let run = place.run(&["convert", "web1.args", "--to", "libvirt-xml"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("disks/web1.cfg:4:"), "{run:?}");
}

#[test]
fn what_cannot_be_read_with_a_command_line_is_told_and_the_rest_is_checked() {
    let line =
        "qemu-system-x86_64 -drive file=/b.img,format=raw,if=virtio,cache=unsafe -readconfig ";
    let place = Place::with(&[
        ("gone.args", &format!("{line}gone.cfg\n")),
        ("other.args", &format!("{line}secrets\n")),
        ("folder.args", &format!("{line}.\n")),
        ("secrets", "root:x:0:0:root\n"),
    ]);
    for (name, why) in [
        ("gone.args", "no such file"),
        ("other.args", "does not begin with a group"),
        ("folder.args", "not a regular file"),
    ] {
        let run = place.run(&["lint", name, "--format", "concise", "--quiet"]);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stdout.contains("error[cache-unsafe]"), "{run:?}");
        assert!(run.stderr.to_lowercase().contains(why), "{run:?}");
        assert!(run.stderr.contains("names it with -readconfig"), "{run:?}");
        assert!(!run.stderr.contains("root:x"), "nothing of it is quoted");
        let run = place.run(&["convert", name, "--to", "libvirt-xml"]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    }
}

#[test]
fn commands_for_the_monitor_are_written_and_read() {
    let place = Place::with(&[("a.xml", CLEAN)]);
    let run = place.run(&["convert", "a.xml", "--to", "qmp", "--target", "machine=pc"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    assert!(
        run.stdout
            .starts_with("{\"execute\":\"qmp_capabilities\"}\n")
    );
    let back = place.run_with_input(&["convert", "--to", "disk-xml"], run.stdout.as_bytes());
    assert_eq!((back.code, back.stdout.as_str()), (0, CLEAN), "{back:?}");
    let sata = CLEAN.replace("vda' bus='virtio", "sda' bus='sata");
    place.write("a.xml", sata.as_bytes());
    let run = place.run(&["convert", "a.xml", "--to", "qmp"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    assert!(
        run.stderr
            .contains("ide-hd cannot be attached to a running guest"),
        "{run:?}"
    );
}
