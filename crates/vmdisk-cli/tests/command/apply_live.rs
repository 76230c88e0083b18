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

/// Moves the data of a running guest: undisturbed, by the script, stopped, killed, and with the guest off in the middle.
const MOVES: &str = r#"
mkdir bin
cat >bin/virsh <<'END'
#!/bin/sh
[ "$1" != blockcopy ] || [ ! -e slow ] || { shift; set -- blockcopy --bandwidth 1 "$@"; touch copying; }
exec /usr/bin/virsh "$@"
END
chmod +x bin/virsh
export PATH="$PWD/bin:$(dirname "$2"):$PATH"
libvirtd -p /run/libvirt/pid >libvirtd.log 2>&1 &
daemon=$!
wait_for_libvirt
new() {
  virsh destroy web1; virsh undefine web1; rm -rf images/* slow copying
  vmdisk apply before.yaml --define
  qemu-io -c 'write -P 7 0 20M' images/a.qcow2
  virsh start web1
} >/dev/null 2>&1
sees() {
  echo "status $?"
  for live in '' --inactive; do virsh domblklist $live web1 | grep -o '/images/.*'; done
  virsh blockjob web1 vda
  ls images | grep b.img
}
move() { vmdisk apply after.yaml --define --change move "$@" 2>&1; }
begin() {
  new; touch slow
  vmdisk apply after.yaml --define --change move >said 2>&1 & moving=$!
  while [ ! -e copying ]; do sleep 0.1; done; sleep 0.5
}
echo "-- run"; new; move; sees; move
virsh destroy web1; qemu-img compare -f qcow2 -F raw images/a.qcow2 images/b.img
echo "-- script"; new; move --dry-run --format script >change.sh; sh change.sh 2>&1; sees; move
virsh destroy web1; qemu-img compare -f qcow2 -F raw images/a.qcow2 images/b.img
echo "-- stopped"; begin; kill -TERM $moving; wait $moving; sees; rm slow; move; sees
echo "-- off"; begin; virsh destroy web1; wait $moving; sees
echo "-- killed"; begin; kill -KILL $moving; wait $moving 2>/dev/null; move; sees
virsh blockjob --abort web1 vda; move; sees; rm slow images/b.img; move; sees
echo "-- full"; new; touch images/b.img; move; sees
echo "-- end"
virsh destroy web1
kill $daemon
wait $daemon
"#;

/// Gives space of a guest back: by a run, by the script, and while it runs without an agent. The guest starts with the copy.
const RECLAIMS: &str = r#"
export PATH="$(dirname "$2"):$PATH"
libvirtd -p /run/libvirt/pid >libvirtd.log 2>&1 &
daemon=$!
wait_for_libvirt
reclaim() { vmdisk apply before.yaml --define --change reclaim "$@" 2>&1; }
vmdisk apply before.yaml --define
for way in run script; do
  echo "-- $way"
  qemu-io -c 'write -P 7 0 4M' -c 'write -P 0 4M 16M' images/a.qcow2 >/dev/null
  case $way in
  run) reclaim ;;
  script) reclaim --dry-run --format script >reclaim.sh; sh reclaim.sh 2>&1 ;;
  esac
  echo "status $?"
  qemu-img compare -f qcow2 -F qcow2 images/a.qcow2 images/a.qcow2.old
  [ "$(stat -c %b images/a.qcow2)" -lt "$(($(stat -c %b images/a.qcow2.old) / 2))" ] && echo smaller
  rm images/a.qcow2.old
  virsh start web1
  virsh domblklist web1 | grep -o '/images/.*'
  reclaim
  vmdisk apply before.yaml --define
  virsh destroy web1
done
echo "-- end"
kill $daemon
wait $daemon
"#;

/// Makes disks of a guest larger: an image file while the guest runs, and a volume of a pool while it is off.
const GROWS: &str = r#"
export PATH="$(dirname "$2"):$PATH"
libvirtd -p /run/libvirt/pid >libvirtd.log 2>&1 &
daemon=$!
wait_for_libvirt
grow() { vmdisk apply after.yaml --define --change grow "$@" 2>&1; }
sizes() {
  virsh qemu-monitor-command web1 '{"execute":"query-block"}' | tr , '\n' | grep -o '"virtual-size":[0-9]*' | sort -u
  qemu-img info -U --output=json images/a.qcow2 | grep -m1 virtual-size
}
for way in run script; do
  vmdisk apply before.yaml --define
  virsh start web1 || exit 1
  echo "-- $way"
  sizes
  case $way in
  run) grow ;;
  script) grow --dry-run --format script >grow.sh; sh grow.sh 2>&1 ;;
  esac
  echo "status $?"
  sizes
  vmdisk apply after.yaml --define
  virsh destroy web1
  virsh undefine web1
  rm -r images/*
done
mkdir pool
virsh pool-define-as images dir --target "$PWD/pool"
virsh pool-start images
sed -i "s#qcow2: {path: [^,]*,#volume: {pool: images, volume: v.qcow2, format: qcow2,#" before.yaml after.yaml
vmdisk apply before.yaml --define
echo "-- volume"
grow
echo "status $?"
virsh vol-info --bytes --pool images v.qcow2
qemu-img info --output=json pool/v.qcow2 | grep -m1 virtual-size
vmdisk apply after.yaml --define
virsh start web1
sizes
echo "-- end"
virsh destroy web1
kill $daemon
wait $daemon
"#;

/// The parts of what a script prints that begins its parts with `-- NAME`; none if it may not mount.
fn parts(script: &str, place: &Place) -> Option<Vec<(String, String)>> {
    let tools = ["virsh", "qemu-system-x86_64", "libvirtd", "qemu-io"];
    needed(tools.into_iter().try_for_each(installed))?;
    let mut command = Command::new("unshare");
    command.args([
        "-m",
        "bash",
        "-c",
        &format!("{PRIVATE_LIBVIRT}{script}"),
        "bash",
    ]);
    let output = command.arg(place.path("")).arg(crate::program());
    let output = output.output().unwrap();
    if output.status.code() == Some(77) {
        needed::<()>(Err("no permission to mount".to_owned()))?;
    }
    let said = format!("\n{}", String::from_utf8_lossy(&output.stdout));
    let parts = said
        .split("\n-- ")
        .skip(1)
        .filter_map(|part| part.split_once('\n'));
    Some(
        parts
            .map(|(name, said)| (name.to_owned(), format!("{said}\n")))
            .collect(),
    )
}

/// A place with two specs.
fn with_specs(before: &str, after: &str) -> Place {
    let place = Place::with(&[]);
    std::fs::create_dir(place.path("images")).unwrap();
    for (name, disks) in [("after.yaml", after), ("before.yaml", before)] {
        write_spec(&place, &format!("{GUEST}{disks}"));
        place.write(name, place.read("web1.yaml").as_bytes());
    }
    place
}

#[test]
fn a_running_guest_of_a_real_libvirt_gets_limits_and_disks_at_once() {
    let place = with_specs(DISK, &format!("{DISK}{MORE}"));
    let Some(parts) = parts(SCRIPT, &place) else {
        return;
    };
    assert_eq!(parts.len(), 4, "{parts:?}");
    for (way, part) in parts.iter().filter(|(way, _)| way != "end") {
        for line in ["status 0", "total_iops_sec:500", "0\n1\n", "nothing-to-do"] {
            assert!(part.contains(line), "{line}\n{part}");
        }
        assert!(part.contains("/images/b.img\n"), "{part}");
        let waits = part.contains("after its next start, the guest has the new serial");
        assert_eq!(waits, way == "run", "{part}");
    }
}

#[test]
fn the_data_of_a_running_guest_of_a_real_libvirt_moves_or_stays() {
    let before = DISK.replace("8M", "24M");
    let place = with_specs(
        &before,
        &before.replace("qcow2: {path: D/a.qcow2", "raw: {path: D/b.img"),
    );
    let Some(parts) = parts(MOVES, &place) else {
        return;
    };
    let said = |name: &str| {
        let part = parts.iter().find(|(it, _)| it == name);
        part.unwrap_or_else(|| panic!("{name}: {parts:?}"))
            .1
            .as_str()
    };
    let seen = |status: u8, disk: &str, has_new: bool| {
        let new = if has_new { "b.img\n" } else { "" };
        format!(
            "status {status}\n/images/{disk}\n/images/{disk}\nNo current block job for vda\n{new}"
        )
    };
    let moved = seen(0, "b.img", true);
    for way in ["run", "script"] {
        let part = said(way);
        assert!(part.contains(&moved), "{part}");
        assert!(part.contains("nothing-to-do\n"), "{part}");
        assert!(part.ends_with("Images are identical.\n"), "{part}");
    }
    let stopped = said("stopped");
    let kept = seen(2, "a.qcow2", false);
    assert!(
        stopped.starts_with(&kept) && stopped.contains(&moved),
        "{stopped}"
    );
    let off = said("off");
    assert!(
        off.contains("status 2\n/images/a.qcow2\n/images/a.qcow2\n") && !off.contains("b.img"),
        "{off}"
    );
    let killed = said("killed");
    assert!(
        killed.contains("a block job of the disk vda of the guest web1 runs"),
        "{killed}"
    );
    let left = seen(1, "a.qcow2", true);
    assert!(
        killed.contains("b.img exists, and nothing is overwritten") && killed.contains(&left),
        "{killed}"
    );
    assert!(killed.contains(&moved), "{killed}");
    let full = said("full");
    assert!(full.contains(&left), "{full}");
}

#[test]
fn a_guest_of_a_real_libvirt_starts_with_the_sparse_copy_of_its_image() {
    let before = DISK.replace("8M", "24M");
    let place = with_specs(&before, &before);
    let Some(parts) = parts(RECLAIMS, &place) else {
        return;
    };
    assert_eq!(parts.len(), 3, "{parts:?}");
    for (_, part) in parts.iter().filter(|(way, _)| way != "end") {
        for line in [
            "status 0\nImages are identical.\nsmaller\n",
            "\n/images/a.qcow2\n",
            "no guest agent answers in the guest web1, which runs",
            "nothing-to-do\n",
        ] {
            assert!(part.contains(line), "{line}\n{part}");
        }
    }
}

#[test]
fn disks_of_a_guest_of_a_real_libvirt_grow() {
    let place = with_specs(DISK, &DISK.replace("8M", "16M"));
    let Some(parts) = parts(GROWS, &place) else {
        return;
    };
    assert_eq!(parts.len(), 4, "{parts:?}");
    let (small, large) = (8 << 20, 16 << 20);
    let sizes = |of_guest: u64, of_file: u64| {
        format!("\"virtual-size\":{of_guest}\n    \"virtual-size\": {of_file},\n")
    };
    for (_, part) in &parts[..2] {
        assert!(part.starts_with(&sizes(small, small)), "{part}");
        let grown = format!("status 0\n{}", sizes(large, large));
        assert!(part.contains(&grown), "{part}");
        assert!(part.contains("nothing-to-do\n"), "{part}");
    }
    assert!(parts[1].1.contains("is resized\n"), "{parts:?}");
    let (name, volume) = &parts[2];
    assert_eq!(name, "volume");
    assert!(volume.contains("status 0\n"), "{volume}");
    assert!(volume.contains(&format!("{large} bytes\n")), "{volume}");
    assert!(
        volume.contains(&format!("\"virtual-size\": {large},\n")),
        "{volume}"
    );
    assert!(volume.contains("nothing-to-do\n"), "{volume}");
    assert!(
        volume.contains(&format!("\"virtual-size\":{large}\n")),
        "{volume}"
    );
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
