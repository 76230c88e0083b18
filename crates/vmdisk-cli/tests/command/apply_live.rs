//! `vmdisk apply --change` and its script on a guest that runs.

use std::process::Command;

use vmdisk_testing::{installed, needed};

use crate::Place;
use crate::apply_changes::{run, with_virsh, write_spec};
use crate::hook::PRIVATE_LIBVIRT;

const GUEST: &str =
    "version: 1\nguest: {name: web1, type: qemu, machine: q35, memory: 128M}\ndisks:\n";
const DISK: &str =
    "- qcow2: {path: D/a.qcow2, size: 8M}\n  cache: none\n  io: threads\n  target: vda\n";
/// A limit, an option that waits, and one more disk.
const MORE: &str = "  iotune: {total-iops-sec: 500}\n  serial: one\n\
    - raw: {path: D/b.img, size: 4M}\n  cache: none\n  io: threads\n  target: vdb\n";

/// Starts libvirtd and a guest without an operating system, which libvirt emulates. Arguments: the directory of the test and
/// the program.
const SCRIPT: &str = r#"
export PATH="$(dirname "$2"):$PATH"
libvirtd -p /run/libvirt/pid >libvirtd.log 2>&1 &
daemon=$!
wait_for_libvirt
sees() {
  virsh domblklist web1
  virsh blkdeviotune web1 vda | tr -d ' ' | grep '^total_iops_sec:'
  virsh dumpxml web1 | grep -c '<serial>'
  virsh dumpxml --inactive web1 | grep -c '<serial>'
}
for way in run script; do
  vmdisk apply before.yaml --define
  virsh start web1 || exit 1
  echo "-- $way"
  case $way in
  run) vmdisk apply after.yaml --define --change add,options 2>&1 ;;
  script)
    vmdisk apply after.yaml --define --change add,options --dry-run --format script >change.sh
    sh change.sh 2>&1
    ;;
  esac
  echo "status $?"
  sees
  vmdisk apply after.yaml --define
  echo "-- end"
  virsh destroy web1
  virsh undefine web1
  rm -r images/*
done
kill $daemon
wait $daemon
"#;

#[test]
fn a_running_guest_of_a_real_libvirt_gets_limits_and_disks_at_once() {
    let tools = installed("virsh").and_then(|()| installed("qemu-system-x86_64"));
    if needed(tools.and_then(|()| installed("libvirtd"))).is_none() {
        return;
    }
    let place = Place::with(&[]);
    std::fs::create_dir(place.path("images")).unwrap();
    for (name, rest) in [("after.yaml", MORE), ("before.yaml", "")] {
        write_spec(&place, &format!("{GUEST}{DISK}{rest}"));
        place.write(name, place.read("web1.yaml").as_bytes());
    }
    let mut command = Command::new("unshare");
    let script = format!("{PRIVATE_LIBVIRT}{SCRIPT}");
    command.args(["-m", "bash", "-c", &script, "bash"]);
    let output = command.arg(place.path("")).arg(crate::program());
    let output = output.output().unwrap();
    if output.status.code() == Some(77) {
        needed::<()>(Err("no permission to mount".to_owned()));
        return;
    }
    let said = String::from_utf8_lossy(&output.stdout);
    for way in ["run", "script"] {
        let (_, part) = said.split_once(&format!("-- {way}\n")).expect(&said);
        let (part, _) = part.split_once("-- end").expect(&said);
        for line in ["status 0", "total_iops_sec:500", "0\n1\n", "nothing-to-do"] {
            assert!(part.contains(line), "{line}\n{said}");
        }
        assert!(part.contains("/images/b.img\n"), "{said}");
        let waits = part.contains("after its next start, the guest has the new serial");
        assert_eq!(waits, way == "run", "{said}");
    }
}

#[test]
fn what_a_running_guest_does_not_take_is_named_and_comes_with_its_next_start() {
    if needed(installed("qemu-img")).is_none() {
        return;
    }
    let place = Place::with(&[]);
    std::fs::create_dir(place.path("images")).unwrap();
    with_virsh(&place, "");
    write_spec(&place, &format!("{GUEST}{DISK}"));
    assert_eq!(run(&place, &[]).0, Some(0));
    write_spec(&place, &format!("{GUEST}{DISK}{MORE}"));
    let all = ["--change", "add,options"];
    // A guest that is off gets everything with its definition.
    let (_, said, _) = run(&place, &[&all[..], &["--dry-run"]].concat());
    assert!(!said.contains("blkdeviotune"), "{said}");
    place.write("state", b"running\n");
    let virsh = place.read("bin/virsh");
    let refuses = "case $1 in attach-device) echo 'error: no slot' >&2; exit 1 ;; blkdeviotune) echo \"$@\" >../limits ;; esac\n";
    place.program(
        "bin/virsh",
        &virsh.replacen("case $1 in", &format!("{refuses}case $1 in"), 1),
    );
    let (code, said, errors) = run(&place, &[&all[..], &["--dry-run"]].concat());
    assert_eq!(code, Some(0), "{said}{errors}");
    for shown in [
        "then: virsh attach-device --live -- web1 /dev/stdin\n",
        "then: virsh blkdeviotune --live --total-iops-sec 500 -- web1 vda\n  undo: ",
        "then: after its next start, the guest has the new serial\n",
    ] {
        assert!(said.contains(shown), "{shown}\n{said}");
    }
    let (code, said, errors) = run(&place, &all);
    assert_eq!(code, Some(0), "{said}{errors}");
    let why = "done: add vdb: ";
    assert!(said.contains(why), "{said}");
    assert!(
        said.contains("after its next start, the guest has it: error: no slot"),
        "{said}"
    );
    assert!(
        place
            .read("limits")
            .contains("--total-iops-sec 500 -- web1 vda")
    );
    assert!(run(&place, &[]).1.ends_with("nothing-to-do\n"));
}
