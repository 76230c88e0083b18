//! The script as a shell understands it: every value reaches its command whole, and nothing is overwritten.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the library starts nothing; these tests run what it writes"
)]

use crate::common;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use proptest::prelude::*;
use vmdisk_facts::{Facts, Target};
use vmdisk_plan::*;
use vmdisk_testing::write_program;

/// Tools that write down what they were called with, one call per line of NUL-ended words. `lvs` finds
/// the volumes, and `vgs` the groups, that files of these names stand for.
struct Tools {
    folder: tempfile::TempDir,
}

impl Tools {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).unwrap();
        let record =
            "#!/bin/sh\n{ printf '%s\\0' \"${0##*/}\" \"$@\"; printf '\\n\\0'; } >> \"$CALLS\"\n";
        for program in ["qemu-img", "lvcreate"] {
            write_program(&bin.join(program), record);
        }
        let find = "#!/bin/sh\nfor last; do :; done\n[ -e \"$LVM/$last\" ] || exit 5\n\
                    case \"$*\" in *vg_free*) echo \"  ${VG_FREE:-9000000000000000000}\";; *thin_count*) echo \"  0\";; esac\n";
        for program in ["lvs", "vgs"] {
            write_program(&bin.join(program), find);
        }
        // A file system of 4 KiB blocks.
        let stat = "#!/bin/sh\ncase \"$*\" in *%S*) echo \"${BLOCKS:-2000000000000000} * 4096\";; *%u*|*%i*) exec /usr/bin/stat \"$@\";; *) echo 1;; esac\n";
        write_program(&bin.join("stat"), stat);
        for program in ["id", "ln", "mkdir", "mv", "rm", "rmdir", "sed"] {
            std::os::unix::fs::symlink(format!("/bin/{program}"), bin.join(program)).unwrap();
        }
        write_program(&bin.join("lvremove"), record);
        fs::create_dir(folder.path().join("lvm")).unwrap();
        Tools { folder }
    }

    /// Makes a volume group, or a volume in one, that `vgs` and `lvs` find.
    fn has(&self, name: &str) {
        fs::create_dir_all(self.folder.path().join("lvm").join(name)).unwrap();
    }

    fn run(&self, script: &str) -> Output {
        self.run_with(script, &[])
    }

    /// Runs a script with more variables.
    fn run_with(&self, script: &str, variables: &[(&str, &str)]) -> Output {
        let file = self.folder.path().join("script.sh");
        fs::write(&file, script).unwrap();
        // Nothing of the machine is on the search path but the shell's own commands.
        Command::new("/bin/sh")
            .arg(&file)
            .env_clear()
            .env("PATH", self.folder.path().join("bin"))
            .env("CALLS", self.folder.path().join("calls"))
            .env("LVM", self.folder.path().join("lvm"))
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }

    /// The calls so far, in order.
    fn calls(&self) -> Vec<Vec<String>> {
        let recorded = fs::read(self.folder.path().join("calls")).unwrap_or_default();
        let text = String::from_utf8(recorded).unwrap();
        let mut calls = vec![];
        let mut call = vec![];
        for word in text.split_terminator('\0') {
            if word == "\n" {
                calls.push(std::mem::take(&mut call));
            } else {
                call.push(word.to_owned());
            }
        }
        assert!(call.is_empty());
        // Questions change nothing.
        calls.retain(|call| call[1] != "info");
        calls
    }
}

fn planned(spec: &Spec) -> Plan {
    plan(spec, &Facts::default(), &Target::default()).unwrap()
}

fn disks(disks: &[&str]) -> Spec {
    Spec::new(
        disks
            .iter()
            .map(|disk| DiskSpec::from_one_liner(disk).unwrap())
            .collect(),
    )
}

/// The commands of the script: files are made in a directory that the shell enters.
fn argv(plan: &Plan) -> Vec<Vec<String>> {
    let steps = plan.steps.iter();
    steps.map(|step| step.argv_at("./image")).collect()
}

#[test]
fn the_whole_script_reads_as_a_person_would_write_it() {
    let spec = disks(&[
        "qcow2:/srv/web1.qcow2,size=40G,preallocation=metadata,cluster-size=128K,extended-l2=on,lazy-refcounts=off",
        "lvm-thin:vg0/data,pool=pool0,size=1T,pool-size=500G,zero=off",
        "lvm:vg0/log,size=10G",
        "raw:/srv/it's.img,size=1536M,preallocation=falloc,nocow=on",
        "qcow2:/srv/o.qcow2,backing.path=/srv/a,,b.img,backing.format=vhd",
        "device:/dev/disk/by-id/x",
    ]);
    let script = script(&planned(&spec));
    assert_eq!(
        script,
        r#"#!/bin/sh
# Creates the storage of guest. Written by vmdisk.
set -eu
# Only root and the hypervisor need the images; other users must not read them.
umask 077
PATH="${PATH:-/usr/bin:/bin}:/usr/sbin:/sbin"
LC_ALL=C
export PATH LC_ALL

refuse() {
    printf '%s\n' "refused: $1" >&2
    refused=yes
    exit 1
}
says() { # TEXT COMMAND…: true if the command prints the text; a comma at the end of a line does not count
    text=$1
    shift
    said=$("$@" 2>/dev/null) || return 1
    case "
$(printf '%s\n' "$said" | sed 's/,$//')
" in *"$text"*) ;; *) return 1 ;; esac
}
lacks() { # TEXT COMMAND…: true if the command succeeds, and does not print the text
    without=$1
    shift
    says '' "$@" && ! says "$without" "$@"
}

# Check all preconditions before changing anything.
command -v lvcreate >/dev/null 2>&1 || refuse 'lvcreate is not installed'
command -v vgs >/dev/null 2>&1 || refuse 'vgs is not installed'
command -v lvs >/dev/null 2>&1 || refuse 'lvs is not installed'
command -v qemu-img >/dev/null 2>&1 || refuse 'qemu-img is not installed'
command -v stat >/dev/null 2>&1 || refuse 'stat is not installed'
if lvs --noheadings -- vg0/pool0 >/dev/null 2>&1; then
    says ' thin-pool
' lvs --noheadings -o segtype -- vg0/pool0 || refuse 'the volume vg0/pool0 exists, and nothing is overwritten: it is not as planned'
    { set -- $(lvs --noheadings --nosuffix --units b -o lv_size,vg_extent_size -- vg0/pool0) && [ "${1:-0}" -ge 536870912000 ] && [ "$1" -lt $((536870912000 + $2)) ]; } || refuse 'the volume vg0/pool0 exists, and nothing is overwritten: it is not as planned'
    done_1=yes
    printf '%s\n' 'done already: vg0/pool0'
fi
vgs --noheadings -- vg0 >/dev/null 2>&1 || refuse 'volume group vg0 does not exist'
if [ -e /srv/web1.qcow2 ] || [ -L /srv/web1.qcow2 ]; then
    [ -f /srv/web1.qcow2 ] && [ ! -L /srv/web1.qcow2 ] || refuse '/srv/web1.qcow2 exists, and nothing is overwritten: it is not a regular file'
    [ -r /srv/web1.qcow2 ] || refuse '/srv/web1.qcow2 exists, and may not be read'
    says '
    "virtual-size": 42949672960
' qemu-img info -U --output=json -f qcow2 -- /srv/web1.qcow2 || refuse '/srv/web1.qcow2 exists, and nothing is overwritten: it is not as planned'
    says '
    "cluster-size": 131072
' qemu-img info -U --output=json -f qcow2 -- /srv/web1.qcow2 || refuse '/srv/web1.qcow2 exists, and nothing is overwritten: it is not as planned'
    says '
            "extended-l2": true
' qemu-img info -U --output=json -f qcow2 -- /srv/web1.qcow2 || refuse '/srv/web1.qcow2 exists, and nothing is overwritten: it is not as planned'
    says '
            "lazy-refcounts": false
' qemu-img info -U --output=json -f qcow2 -- /srv/web1.qcow2 || refuse '/srv/web1.qcow2 exists, and nothing is overwritten: it is not as planned'
    lacks '
    "encrypted": true' qemu-img info -U --output=json -f qcow2 -- /srv/web1.qcow2 || refuse '/srv/web1.qcow2 exists, and nothing is overwritten: it is not as planned'
    lacks '
    "backing-filename": ' qemu-img info -U --output=json -f qcow2 -- /srv/web1.qcow2 || refuse '/srv/web1.qcow2 exists, and nothing is overwritten: it is not as planned'
    lacks '
            "data-file": ' qemu-img info -U --output=json -f qcow2 -- /srv/web1.qcow2 || refuse '/srv/web1.qcow2 exists, and nothing is overwritten: it is not as planned'
    lacks '
            "corrupt": true' qemu-img info -U --output=json -f qcow2 -- /srv/web1.qcow2 || refuse '/srv/web1.qcow2 exists, and nothing is overwritten: it is not as planned'
    lacks '
    "dirty-flag": true' qemu-img info -U --output=json -f qcow2 -- /srv/web1.qcow2 || refuse '/srv/web1.qcow2 exists, and nothing is overwritten: it is not as planned'
    done_2=yes
    printf '%s\n' 'done already: /srv/web1.qcow2'
fi
[ -n "${done_2:-}" ] || [ ! -e /srv/web1.qcow2.part ] || refuse '/srv/web1.qcow2.part exists, perhaps of a run that was killed: remove it'
[ -d /srv ] || refuse '/srv is not a directory'
if lvs --noheadings -- vg0/data >/dev/null 2>&1; then
    says ' thin
' lvs --noheadings -o segtype -- vg0/data || refuse 'the volume vg0/data exists, and nothing is overwritten: it is not as planned'
    { set -- $(lvs --noheadings --nosuffix --units b -o lv_size,vg_extent_size -- vg0/data) && [ "${1:-0}" -ge 1099511627776 ] && [ "$1" -lt $((1099511627776 + $2)) ]; } || refuse 'the volume vg0/data exists, and nothing is overwritten: it is not as planned'
    says ' pool0
' lvs --noheadings -o pool_lv -- vg0/data || refuse 'the volume vg0/data exists, and nothing is overwritten: it is not as planned'
    done_3=yes
    printf '%s\n' 'done already: vg0/data'
fi
if lvs --noheadings -- vg0/log >/dev/null 2>&1; then
    says ' linear
' lvs --noheadings -o segtype -- vg0/log || refuse 'the volume vg0/log exists, and nothing is overwritten: it is not as planned'
    { set -- $(lvs --noheadings --nosuffix --units b -o lv_size,vg_extent_size -- vg0/log) && [ "${1:-0}" -ge 10737418240 ] && [ "$1" -lt $((10737418240 + $2)) ]; } || refuse 'the volume vg0/log exists, and nothing is overwritten: it is not as planned'
    done_4=yes
    printf '%s\n' 'done already: vg0/log'
fi
if [ -e '/srv/it'\''s.img' ] || [ -L '/srv/it'\''s.img' ]; then
    [ -f '/srv/it'\''s.img' ] && [ ! -L '/srv/it'\''s.img' ] || refuse '/srv/it'\''s.img exists, and nothing is overwritten: it is not a regular file'
    [ -r '/srv/it'\''s.img' ] || refuse '/srv/it'\''s.img exists, and may not be read'
    says '
    "virtual-size": 1610612736
' qemu-img info -U --output=json -f raw -- '/srv/it'\''s.img' || refuse '/srv/it'\''s.img exists, and nothing is overwritten: it is not as planned'
    [ "$(($(stat -c '%b * %B' -- '/srv/it'\''s.img')))" -ge 1610612736 ] || refuse '/srv/it'\''s.img exists, and nothing is overwritten: it is not as planned'
    done_5=yes
    printf '%s\n' 'done already: /srv/it'\''s.img'
fi
[ -n "${done_5:-}" ] || [ ! -e '/srv/it'\''s.img.part' ] || refuse '/srv/it'\''s.img.part exists, perhaps of a run that was killed: remove it'
if [ -e /srv/o.qcow2 ] || [ -L /srv/o.qcow2 ]; then
    [ -f /srv/o.qcow2 ] && [ ! -L /srv/o.qcow2 ] || refuse '/srv/o.qcow2 exists, and nothing is overwritten: it is not a regular file'
    [ -r /srv/o.qcow2 ] || refuse '/srv/o.qcow2 exists, and may not be read'
    says '
    "cluster-size": 65536
' qemu-img info -U --output=json -f qcow2 -- /srv/o.qcow2 || refuse '/srv/o.qcow2 exists, and nothing is overwritten: it is not as planned'
    says '
    "backing-filename": "/srv/a,b.img"
' qemu-img info -U --output=json -f qcow2 -- /srv/o.qcow2 || refuse '/srv/o.qcow2 exists, and nothing is overwritten: it is not as planned'
    says '
    "backing-filename-format": "vhdx"
' qemu-img info -U --output=json -f qcow2 -- /srv/o.qcow2 || refuse '/srv/o.qcow2 exists, and nothing is overwritten: it is not as planned'
    lacks '
    "encrypted": true' qemu-img info -U --output=json -f qcow2 -- /srv/o.qcow2 || refuse '/srv/o.qcow2 exists, and nothing is overwritten: it is not as planned'
    lacks '
            "data-file": ' qemu-img info -U --output=json -f qcow2 -- /srv/o.qcow2 || refuse '/srv/o.qcow2 exists, and nothing is overwritten: it is not as planned'
    lacks '
            "corrupt": true' qemu-img info -U --output=json -f qcow2 -- /srv/o.qcow2 || refuse '/srv/o.qcow2 exists, and nothing is overwritten: it is not as planned'
    lacks '
    "dirty-flag": true' qemu-img info -U --output=json -f qcow2 -- /srv/o.qcow2 || refuse '/srv/o.qcow2 exists, and nothing is overwritten: it is not as planned'
    done_6=yes
    printf '%s\n' 'done already: /srv/o.qcow2'
fi
[ -n "${done_6:-}" ] || [ ! -e /srv/o.qcow2.part ] || refuse '/srv/o.qcow2.part exists, perhaps of a run that was killed: remove it'
[ -e /srv/a,b.img ] || refuse '/srv/a,b.img does not exist'
room() { # DIRECTORY BYTES MESSAGE: free space on its file system, with the earlier calls
    device=$(stat -c %d -- "$1")
    free=$(($(stat -f -c '%a * %S' -- "$1")))
    eval "needed=\$((\${needed_$device:-0} + $2)); needed_$device=\$needed"
    [ "$needed" -le "$free" ] || refuse "$3"
}
room /srv $((${done_5:+0 * }1610612736)) '/srv has too little space for 1536 MiB'
[ "$(vgs --noheadings --nosuffix --units b -o vg_free -- vg0)" -ge $((${done_1:+0 * }536870912000 + ${done_4:+0 * }10737418240)) ] || refuse 'volume group vg0 has too little space for 510 GiB'
private() { # PATH: enters a new directory beside it, into which only this user can write
    mkdir -m 700 -- "$1.part"
    cd -P -- "$1.part"
    case "$(stat -c '%u %A' .)" in
    "$(id -u)"\ d????-??-*) ;;
    *) refuse "$1.part does not belong to this user alone" ;;
    esac
    (set -C && : > ./image) || refuse "$1.part is not empty"
    inside=$1.part
}
publish() { # NUMBER PATH: names the file, and replaces nothing
    made=$(stat -c %d:%i ./image)
    ln -T -- ./image "$2" 2>/dev/null || mv -nT -- ./image "$2" || :
    is_made "$made" "$2" || refuse "$2 exists, and nothing is overwritten"
    eval "made_$1=\$made"
    leave
}
leave() { # removes the private directory
    rm -f -- ./image
    cd /
    rmdir -- "$inside"
    inside=
}
is_made() { # DEVICE:INODE PATH: true if the path leads to what this script made
    [ -n "$1" ] && [ "$(stat -c %d:%i -- "$2" 2>/dev/null)" = "$1" ]
}

# If a command fails, remove what this script created, so that it can be run again.
inside=
undo() {
    status=$?
    trap - EXIT
    [ "$status" -ne 0 ] || exit 0
    ! is_made "${made_6:-}" /srv/o.qcow2 || rm -f -- /srv/o.qcow2 || :
    ! is_made "${made_5:-}" '/srv/it'\''s.img' || rm -f -- '/srv/it'\''s.img' || :
    [ -z "${made_4:-}" ] || lvremove --yes -- vg0/log || :
    [ -z "${made_3:-}" ] || lvremove --yes -- vg0/data || :
    ! is_made "${made_2:-}" /srv/web1.qcow2 || rm -f -- /srv/web1.qcow2 || :
    [ -z "${made_1:-}" ] || { [ "$(lvs --noheadings -o thin_count -- vg0/pool0)" -eq 0 ] && lvremove --yes -- vg0/pool0; } || :
    [ -z "$inside" ] || leave || :
    [ -z "${refused:-}" ] || exit 1
    [ "$status" -gt 128 ] || exit 2
    exit "$status"
}
trap undo EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# 1. vdb: a thin pool of 500 GiB
#    zeroing is off: a new volume can read the data of deleted ones (93 % of it in a trial)
[ -n "${done_1:-}" ] || { lvcreate --yes --type thin-pool --size 500G --chunksize 64K --zero n --name pool0 -- vg0; made_1=yes; }

# 2. vda: a qcow2 image of 40 GiB
[ -n "${done_2:-}" ] || private /srv/web1.qcow2
[ -n "${done_2:-}" ] || qemu-img create -f qcow2 -o preallocation=metadata,cluster_size=131072,extended_l2=on,lazy_refcounts=off -- ./image 40G
[ -n "${done_2:-}" ] || publish 2 /srv/web1.qcow2

# 3. vdb: a thin volume of 1 TiB
[ -n "${done_3:-}" ] || { lvcreate --yes --type thin --virtualsize 1T --thinpool pool0 --name data -- vg0; made_3=yes; }

# 4. vdc: a volume of 10 GiB; LVM wipes the first blocks, which can contain data of an earlier volume
#    the rest is not wiped: for another tenant, run `blkdiscard --zeroout /dev/vg0/log` before its first use
[ -n "${done_4:-}" ] || { lvcreate --yes --wipesignatures y --zero y --size 10G --name log -- vg0; made_4=yes; }

# 5. vdd: a raw file of 1536 MiB
#    nocow=on: btrfs writes the file in place, and neither checksums nor compresses it
[ -n "${done_5:-}" ] || private '/srv/it'\''s.img'
[ -n "${done_5:-}" ] || qemu-img create -f raw -o preallocation=falloc,nocow=on -- ./image 1536M
[ -n "${done_5:-}" ] || publish 5 '/srv/it'\''s.img'

# 6. vde: a qcow2 image on top of /srv/a,b.img, and as large
[ -n "${done_6:-}" ] || private /srv/o.qcow2
[ -n "${done_6:-}" ] || qemu-img create -f qcow2 -b /srv/a,b.img -F vhdx -- ./image
[ -n "${done_6:-}" ] || publish 6 /srv/o.qcow2
"#
    );
}

#[test]
fn what_completes_an_image_comes_before_its_name() {
    let spec = disks(&[
        "raw:/srv/a.img,size=1G,source.path=/srv/cloud.qcow2,source.format=qcow2,owner=qemu,mode=0640",
    ]);
    let script = script(&planned(&spec));
    let steps = script.split_once("\n# 1.").unwrap().1;
    let commands: Vec<&str> = steps
        .lines()
        .filter_map(|line| line.strip_prefix("[ -n \"${done_1:-}\" ] || "))
        .collect();
    let expected = [
        "private /srv/a.img",
        "qemu-img create -f raw -o preallocation=off -- ./image 1G",
        "qemu-img convert -n --target-is-zero -f qcow2 -O raw -- /srv/cloud.qcow2 ./image",
        "chown -- qemu ./image",
        "chmod -- 0640 ./image",
        "publish 1 /srv/a.img",
    ];
    assert_eq!(commands, expected, "{script}");
    // What is there before the first command: only the name of the complete image is asked for.
    let undo = script.matches("rm -f -- /srv/a.img").count();
    assert_eq!(undo, 1, "{script}");
}

/// What is not allocated below a key reads as noise, and in qcow2 as zeros.
#[test]
fn a_copy_into_a_luks_image_writes_its_zeros() {
    let encrypted = "encryption.secret.usage=s,encryption.key-file=/k";
    for (form, writes_zeros) in [("raw", true), ("qcow2", false)] {
        let spec = disks(&[&format!(
            "{form}:/srv/a.img,size=1G,source.path=/srv/cloud.qcow2,source.format=qcow2,{encrypted}"
        )]);
        let all = argv(&planned(&spec));
        let copy = all.iter().find(|argv| argv[1] == "convert").unwrap();
        let promises_zeros = copy.iter().any(|word| word == "--target-is-zero");
        assert_eq!(promises_zeros, !writes_zeros, "{copy:?}");
    }
}

/// libvirt changes the owner for a running guest and back, and QEMU marks an image that it has open.
#[test]
fn what_a_running_guest_suspends_is_the_owner_and_the_mark_of_an_open_image() {
    let spec = disks(&["qcow2:/srv/a.qcow2,size=1G,owner=qemu,group=kvm,mode=0640"]);
    let plan = planned(&spec);
    let all = plan.steps.iter().flat_map(|step| &step.equality);
    let suspended: Vec<&str> = all
        .filter(|it| it.is_suspended_by_a_running_guest())
        .map(|it| match it {
            Equality::Says { argv, .. } => argv[3].as_str(),
            Equality::Lacks { text, .. } => text.trim(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(suspended, ["\"dirty-flag\": true", "%U", "%G"]);
}

#[test]
fn a_script_that_makes_no_file_has_no_commands_for_files() {
    let script = script(&planned(&disks(&["lvm:vg0/log,size=10G"])));
    for absent in ["private", "publish", "leave", "./image"] {
        assert!(!script.contains(absent), "{absent}: {script}");
    }
    assert!(script.contains("lvcreate --yes"), "{script}");
}

#[test]
fn a_plan_with_nothing_to_make_is_a_script_that_does_nothing() {
    let plan = planned(&disks(&["raw:/srv/a.img", "lvm:vg0/a"]));
    let tools = Tools::new();
    assert!(tools.run(&script(&plan)).status.success());
    assert!(tools.calls().is_empty());
}

#[test]
fn what_exists_is_refused_before_anything_is_made() {
    let tools = Tools::new();
    let folder = tools.folder.path().join("images");
    fs::create_dir(&folder).unwrap();
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let spec = |last: &str| disks(&[&format!("raw:{},size=1M", at("first.img")), last]);
    let refused = |spec: &Spec, why: &str| {
        let output = tools.run(&script(&planned(spec)));
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(
            message.starts_with("refused: ") && message.contains(why),
            "{message}"
        );
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(tools.calls().is_empty(), "{:?}", tools.calls());
    };
    fs::write(at("there.img"), "precious").unwrap();
    refused(
        &spec(&format!("raw:{},size=1M", at("there.img"))),
        "there.img exists",
    );
    std::os::unix::fs::symlink("/nowhere/at/all", at("dangling.img")).unwrap();
    refused(
        &spec(&format!("qcow2:{},size=1M", at("dangling.img"))),
        "dangling.img exists",
    );
    refused(
        &spec(&format!("raw:{},size=1M", at("no/such/dir.img"))),
        "is not a directory",
    );
    let overlay = format!(
        "qcow2:{},backing.path=/nowhere,backing.format=raw",
        at("o.qcow2")
    );
    refused(&spec(&overlay), "/nowhere does not exist");
    refused(
        &spec("lvm:vg0/a,size=1M"),
        "volume group vg0 does not exist",
    );
    tools.has("vg0/taken");
    refused(
        &spec("lvm:vg0/taken,size=1M"),
        "the volume vg0/taken exists",
    );
    refused(
        &spec("lvm-thin:vg0/taken,pool=p,size=1M,pool-size=9M"),
        "vg0/taken exists",
    );
    refused(
        &spec("lvm-thin:vg0/new,pool=p,size=1M"),
        "volume vg0/p does not exist",
    );
    tools.has("vg0/p");
    refused(
        &spec("lvm-thin:vg0/new,pool=p,size=1M,pool-size=9M"),
        "vg0/p exists",
    );
    assert_eq!(fs::read(at("there.img")).unwrap(), b"precious");
    // With the pool there and no name taken, the same disk is made.
    let plan = planned(&spec("lvm-thin:vg0/new,pool=p,size=1M"));
    let output = tools.run(&script(&plan));
    assert!(output.status.success(), "{output:?}");
    assert_eq!(tools.calls(), argv(&plan));
}

#[test]
fn a_missing_tool_is_told_before_anything_is_made() {
    let tools = Tools::new();
    let folder = tools.folder.path().join("bin");
    fs::remove_file(folder.join("lvcreate")).unwrap();
    let plan = planned(&disks(&[
        "raw:/tmp/vmdisk-never-made.img,size=1M",
        "lvm:vg0/a,size=1M",
    ]));
    // The search path of the script ends in the system's own folders, so it is cut off there.
    let text = script(&plan).replace(":/usr/sbin:/sbin", "");
    let output = tools.run(&text);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message, "refused: lvcreate is not installed\n");
    assert!(tools.calls().is_empty());
}

#[test]
fn the_script_stops_at_the_first_command_that_fails() {
    let tools = Tools::new();
    let failing = "#!/bin/sh\nexit 3\n";
    write_program(&tools.folder.path().join("bin/qemu-img"), failing);
    tools.has("vg0");
    let path = tools.folder.path().join("a.img");
    let line = format!("raw:{},size=1M", path.to_str().unwrap());
    let plan = planned(&disks(&[&line, "lvm:vg0/a,size=1M"]));
    assert_eq!(tools.run(&script(&plan)).status.code(), Some(2));
    assert!(tools.calls().is_empty());
}

#[test]
fn what_was_made_is_removed_when_a_later_command_fails() {
    let tools = Tools::new();
    tools.has("vg0");
    let at = |name: &str| {
        let path = tools.folder.path().join(name);
        path.to_str().unwrap().to_owned()
    };
    // It makes its file, and fails at the second.
    let failing = "#!/bin/sh\nfor path; do case $path in ./*) echo begun > \"$path\";; esac; done\n\
                   case \"$*\" in *qcow2*) exit 3;; esac\n";
    write_program(&tools.folder.path().join("bin/qemu-img"), failing);
    fs::write(at("other.img"), "precious").unwrap();
    let spec = disks(&[
        &format!("raw:{},size=1M", at("first '.img")),
        "lvm-thin:vg0/thin,pool=pool,size=1G,pool-size=1G",
        "lvm:vg0/thick,size=1M",
        &format!("qcow2:{},size=1M", at("second.img")),
        &format!("raw:{},size=1M", at("third.img")),
        "lvm:vg0/never,size=1M",
    ]);
    let text = script(&planned(&spec));
    // `lvs` of the tools finds the pool for the question how many volumes it has.
    let text = text.replace("\n# 2. ", "\n: > \"$LVM/vg0/pool\"\n# 2. ");
    assert_eq!(tools.run(&text).status.code(), Some(2), "{text}");
    for gone in ["first '.img", "second.img", "third.img"] {
        assert!(!Path::new(&at(gone)).exists(), "{gone}");
    }
    assert_eq!(fs::read(at("other.img")).unwrap(), b"precious");
    let calls = tools.calls();
    let removed: Vec<&String> = calls
        .iter()
        .filter(|call| call[0] == "lvremove")
        .filter_map(|call| call.last())
        .collect();
    assert_eq!(removed, ["vg0/thick", "vg0/thin", "vg0/pool"], "{text}");
}

#[test]
fn too_little_space_is_refused_before_anything_is_made() {
    let tools = Tools::new();
    tools.has("vg0/pool");
    let folder = tools.folder.path().to_str().unwrap().to_owned();
    let file = |name: &str, mode: &str| format!("raw:{folder}/{name},size=1G,preallocation={mode}");
    let two = disks(&[&file("a", "falloc"), &file("b", "full")]);
    let qcow2 = disks(&[&format!("qcow2:{folder}/q,size=2G,preallocation=falloc")]);
    let sparse = disks(&[
        &file("a", "off"),
        &format!("qcow2:{folder}/q,size=2G,preallocation=metadata"),
    ]);
    let volumes = disks(&[
        "lvm:vg0/a,size=1G",
        "lvm-thin:vg0/t,pool=p,size=9T,pool-size=1G",
        "lvm-thin:vg0/u,pool=pool,size=9T",
    ]);
    // 524288 blocks of 4 KiB are 2 GiB.
    for (spec, variable, enough, refusal) in [
        (
            &two,
            "BLOCKS",
            "524288",
            Some("has too little space for 2 GiB"),
        ),
        (
            &qcow2,
            "BLOCKS",
            "524288",
            Some("has too little space for 2 GiB"),
        ),
        (&sparse, "BLOCKS", "1", None),
        (
            &volumes,
            "VG_FREE",
            "2147483648",
            Some("volume group vg0 has too little space for 2 GiB"),
        ),
    ] {
        let text = script(&planned(spec));
        let run = |value: &str| {
            // The script has claimed the names of the files, which the recording program does not fill.
            for name in ["calls", "a", "b", "q"] {
                let _ = fs::remove_file(tools.folder.path().join(name));
            }
            tools.run_with(&text, &[(variable, value)])
        };
        let output = run(enough);
        assert!(output.status.success(), "{text}\n{output:?}");
        assert!(!tools.calls().is_empty());
        let Some(refusal) = refusal else { continue };
        let less = enough.parse::<u64>().unwrap() - 1;
        let output = run(&less.to_string());
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}\n{message}");
        assert!(message.contains(refusal), "{message}");
        assert!(tools.calls().is_empty(), "{:?}", tools.calls());
    }
}

/// A disk whose directory exists below `root`, and whose backing image does.
fn settle(spec: &mut Spec, root: &Path) {
    let below = |path: &mut String| {
        *path = format!("{}{path}", root.to_str().unwrap());
        fs::create_dir_all(Path::new(path.as_str()).parent().unwrap()).unwrap();
    };
    for disk in &mut spec.disks {
        match &mut disk.backend {
            BackendSpec::Raw(raw) => below(&mut raw.path),
            BackendSpec::Qcow2(qcow2) => {
                below(&mut qcow2.path);
                if let Some(backing) = &mut qcow2.backing {
                    backing.path.push_str(".base");
                    below(&mut backing.path);
                    fs::write(&backing.path, "").unwrap();
                }
            }
            BackendSpec::Lvm(_)
            | BackendSpec::LvmThin(_)
            | BackendSpec::Device(_)
            | BackendSpec::VhostUserBlk(_)
            | BackendSpec::Zvol(_)
            | BackendSpec::Seed(_)
            | BackendSpec::Nvme(_)
            | BackendSpec::VhostVdpa(_)
            | BackendSpec::Directory(_)
            | BackendSpec::Volume(_)
            | BackendSpec::Network(_)
            | BackendSpec::Empty(_) => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_word_reaches_its_command_as_it_is(spec in common::open_spec(), name in "[^/\0]{0,6}x") {
        let tools = Tools::new();
        let mut spec = spec;
        settle(&mut spec, &tools.folder.path().join("r"));
        prop_assume!(spec.check().is_empty());
        let mut plan = planned(&spec);
        // A name comes from elsewhere too, and stands in a comment.
        plan.domain.name = Some(name);
        for step in &plan.steps {
            for condition in &step.conditions {
                match condition {
                    Condition::Exists(thing) => tools.has(&thing.name()),
                    Condition::NothingAt(_)
                    | Condition::SomethingAt(_)
                    | Condition::DirectoryAt(_)
                    | Condition::PrivateFile(_)
                    | Condition::Missing(_)
                    | Condition::Room { .. }
                    | Condition::RoomInGroup { .. } => {}
                }
            }
        }
        let text = script(&plan);
        let syntax = Command::new("/bin/sh").arg("-n").arg("-c").arg(&text).output().unwrap();
        prop_assert!(syntax.status.success(), "{}\n{:?}", text, syntax);
        let output = tools.run(&text);
        prop_assert!(output.status.success(), "{}\n{:?}", text, output);
        prop_assert_eq!(tools.calls(), argv(&plan), "{}", text);
    }
}
