//! What `vmdisk apply` removes again when a later step fails: what it made, and nothing that another one made or uses.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use vmdisk_testing::{installed, needed};

use crate::Place;
use crate::apply::SYSTEM;
use crate::apply_states::opened;

/// Replacement for LVM, ZFS and libvirt. Each thing is a file with its identity; the things of `busy` cannot be removed.
const MANAGER: &str = r#"cd THINGS || exit 9
for last; do :; done
at=$(printf %s "$last" | tr / :)
case "${0##*/} $*" in
'vgs '*vg_free*) echo 9000000000000000000; exit ;;
'lvs '*thin_count*) ls | grep -c '^vg0:\(of-pool0\|data\)' || :; exit ;;
'lvs '*lv_uuid* | 'zfs get '*guid*) exec cat "$at" ;;
'lvcreate '*) name=$(echo " $*" | sed 's/.* --name \([^ ]*\) .*/\1/'); at=$at:$name; verb=make ;;
'zfs create '*) verb=make ;;
'virsh vol-create-as '*) at=$3:$5; verb=make ;;
'virsh vol-path '*) at=$3:$5; [ -e "$at" ] && echo "$PWD/$at"; exit ;;
'virsh vol-delete '*) at=$3:$5; verb=remove ;;
'virsh vol-info '*) at=$3:$5; verb=find ;;
'lvremove '* | 'zfs destroy '*) verb=remove ;;
*) verb=find ;;
esac
case $verb in
make) echo "ours $at" >"$at" ;;
find) [ -e "$at" ] ;;
remove) [ "$(cat busy 2>/dev/null)" != "$at" ] || { echo "$at is busy" >&2; exit 5; }; rm "$at" ;;
esac
"#;

/// A disk, and the files of what is made for it, the last one first; `things` are those of the manager.
const DISKS: &[(&str, &[&str])] = &[
    ("lvm:vg0/data,size=1G", &["things/vg0:data"]),
    (
        "lvm-thin:vg0/data,pool=pool0,size=1G,pool-size=2G",
        &["things/vg0:data", "things/vg0:pool0"],
    ),
    ("zvol:tank/a,size=1G", &["things/tank:a"]),
    (
        "volume:images/w.qcow2,size=1G,format=qcow2",
        &["things/images:w.qcow2"],
    ),
    (
        "raw:D/s.img,size=1M,encryption.secret.usage=s,encryption.key-file=D/key",
        &["images/s.img"],
    ),
    (
        "qcow2:D/c.qcow2,size=1M,source.path=D/base.img,source.format=raw,mode=0640",
        &["images/c.qcow2"],
    ),
];

fn prepared() -> Place {
    let place = Place::with(&[
        ("things/vg0", ""),
        ("things/tank", ""),
        ("things/images", ""),
        ("images/key", "a key"),
        ("images/base.img", "a base"),
    ]);
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(place.path("images/key"), private).unwrap();
    fs::create_dir(place.path("bin")).unwrap();
    let things = place.path("things");
    for name in ["vgs", "lvs", "lvcreate", "lvremove", "zfs", "virsh"] {
        let manager = MANAGER.replace("THINGS", things.to_str().unwrap());
        place.program(&format!("bin/{name}"), &manager);
    }
    // The last image waits, and fails.
    let text = format!(
        "case \"$*\" in *'create -f raw'*3M*)\ncd '{}'; touch reached; while [ ! -e go ]; do sleep 0.01; done; exit 1 ;;\nesac\nexec /usr/bin/qemu-img \"$@\"",
        place.path("").display()
    );
    place.program("bin/qemu-img", &text);
    place
}

/// Makes a disk, does something before the next step fails, and returns the messages.
fn fail(place: &Place, disk: &str, meanwhile: impl FnOnce(&Place)) -> String {
    let folder = format!("{}/", place.path("images").display());
    let disk = disk.replace("D/", &folder);
    let last = format!("raw:{folder}last.img,size=3M");
    let mut command = place.command(["apply", "--disk", &disk, "--disk", &last]);
    command.env("PATH", format!("{}{SYSTEM}", place.path("bin").display()));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let begun = Instant::now();
    while !place.path("reached").exists() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    meanwhile(place);
    place.write("go", b"");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(!place.path("images/last.img").exists(), "{said}");
    assert!(!place.path("images/last.img.part").exists(), "{said}");
    said
}

#[test]
fn what_was_made_is_removed_and_what_another_one_made_or_uses_stays() {
    if needed(installed("qemu-img")).is_none() {
        return;
    }
    for (disk, made) in DISKS {
        let (last, first) = (made[0], made[made.len() - 1]);
        let place = prepared();
        let said = fail(&place, disk, |place| {
            for name in *made {
                assert!(place.path(name).exists(), "{disk}: {name}");
            }
        });
        for name in *made {
            assert!(!place.path(name).exists(), "{disk}: {said}");
        }
        assert_eq!(said.matches("undone: ").count(), steps_of(disk), "{said}");

        // Another one has the name of what was made.
        let place = prepared();
        let said = fail(&place, disk, |place| {
            fs::remove_file(place.path(last)).unwrap();
            place.write(last, b"theirs");
        });
        assert_eq!(place.read(last), "theirs", "{disk}: {said}");
        assert!(said.contains(" has its name"), "{disk}: {said}");

        // Its manager refuses, or something has it open.
        let place = prepared();
        let is_volume = last.starts_with("things/") && !last.contains("images");
        let mut held = None;
        let said = fail(&place, disk, |place| match is_volume {
            true => place.write("things/busy", &last.as_bytes()["things/".len()..]),
            false => held = Some(opened(place, last)),
        });
        assert!(place.path(last).exists(), "{disk}: {said}");
        let why = if is_volume {
            "busy"
        } else {
            "something uses it already"
        };
        assert!(said.contains("is not removed again: "), "{disk}: {said}");
        assert!(said.contains(why), "{disk}: {said}");
        drop(held);

        // Another volume is in the pool.
        if first != last {
            let place = prepared();
            let said = fail(&place, disk, |place| {
                place.write("things/vg0:of-pool0", b"")
            });
            assert!(!place.path(last).exists(), "{said}");
            assert!(place.path(first).exists(), "{said}");
            assert!(said.contains("something uses it already"), "{said}");
        }
    }
}

/// The steps of a disk that say `undone`.
fn steps_of(disk: &str) -> usize {
    let place = prepared();
    let folder = format!("{}/", place.path("images").display());
    let disk = disk.replace("D/", &folder);
    let run = place.run(&["generate", "--disk", &disk, "--to", "steps"]);
    let steps: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    steps["steps"].as_array().unwrap().len()
}
