//! Remedies that are commands do what they promise: each is taken from the rules' pages and findings, and run.

use std::collections::BTreeSet;
use std::process::Command;
use std::rc::Rc;

use vmdisk::rules::RULES;
use vmdisk::{lint, read};
use vmdisk_tests::fix_cases::{FixCase, fix_cases};
use vmdisk_tests::{real, repository, run};

use Trial::{Elsewhere, Named, Parsed, Run};

/// What a test does with a command.
#[derive(Debug)]
enum Trial {
    /// Runs it between two scripts. `effect` fails before it and succeeds after it.
    Run {
        values: &'static [(&'static str, &'static str)],
        before: &'static str,
        effect: &'static str,
    },
    /// The program accepts its options, and then lacks the storage, which this machine cannot provide.
    Parsed(&'static str),
    /// What it needs is not here, and the source says what it does.
    Elsewhere(&'static str),
    /// A sentence mentions the command, and does not advise to run it.
    Named,
}

const fn runs(
    values: &'static [(&'static str, &'static str)],
    before: &'static str,
    effect: &'static str,
) -> Trial {
    Run {
        values,
        before,
        effect,
    }
}

/// Functions of the scripts.
const PRELUDE: &str = r#"
set -eu
PATH="$PATH:/usr/sbin:/sbin"
export LIBVIRT_DEFAULT_URI=test:///default
trap 'losetup -j "$PWD/1" -j "$PWD/2" 2>/dev/null | cut -d: -f1 | xargs -r losetup -d; for it in ${loops:-}; do losetup -d $it; done' EXIT
new() { qemu-img create -q "$@"; }
guest() { # FORMAT SOURCE [ATTRIBUTES [ELEMENTS]]: a.xml
    case $2 in /dev/*) type=block from="dev='$2'" ;; *) type=file from="file='$PWD/$2'" ;; esac
    echo "<disk type='$type' device='disk'><driver name='qemu' type='$1' ${3:-cache='writeback'}/><source $from${4:-/>}<target dev='vda' bus='virtio'/></disk>" > a.xml
}
found() { # RULE [OPTION…]
    rule=$1; shift
    "$VMDISK" lint --live --color never "$@" a.xml > found 2>&1 || [ $? -eq 1 ]
    grep -q "\[$rule\]" found
}
fs() { # KIND [OPTIONS]: a file system at fs
    truncate -s 320M fs.img; "mkfs.$1" -q fs.img; mkdir fs; mount -o "loop,${2:-rw}" fs.img fs
}
loop() { # FILE: its device, in $dev
    dev=$(losetup -f --show "$1"); loops="${loops:-} $dev"
}
flag() { # OFFSET BYTE: of a.qcow2
    printf "$2" | dd of=a.qcow2 bs=1 seek="$1" conv=notrunc 2>/dev/null
}
"#;

/// Each command, and what becomes of it.
const TRIALS: &[(&str, Trial)] = &[
    ("qemu-img rebase -u -F FORMAT -b BACKING OVERLAY", runs(
        &[("FORMAT", "raw"), ("BACKING", "base"), ("OVERLAY", "a.qcow2")],
        // The extension with the format becomes one that nobody knows.
        r"new -f raw base 8M; new -f qcow2 -b base -F raw a.qcow2; guest qcow2 a.qcow2
          flag $(LC_ALL=C grep -obaP '\xe2\x79\x2a\xca' a.qcow2 | cut -d: -f1) '\022\064'",
        "! found backing-format-missing",
    )),
    ("qemu-img create -f qcow2 -b BACKING -F FORMAT OVERLAY", runs(
        &[("BACKING", "base"), ("FORMAT", "raw"), ("OVERLAY", "a.qcow2")],
        "new -f raw base 8M",
        "qemu-img info a.qcow2 | grep -q 'backing file format: raw'",
    )),
    ("chmod a-w IMAGE", runs(&[("IMAGE", "base")], ": > base", r#"[ -z "$(find base -perm /222)" ]"#)),
    ("qemu-img create -f qcow2 -b IMAGE -F FORMAT OVERLAY", runs(
        &[("IMAGE", "base"), ("FORMAT", "raw"), ("OVERLAY", "a.qcow2")],
        "new -f raw base 8M",
        "qemu-img info a.qcow2 | grep -q 'backing file format: raw'",
    )),
    ("qemu-img rebase -u -F FORMAT -b NEWPATH OVERLAY", runs(
        &[("FORMAT", "raw"), ("NEWPATH", "new"), ("OVERLAY", "a.qcow2")],
        "new -f raw base 8M; new -f qcow2 -b base -F raw a.qcow2; mv base new; guest qcow2 a.qcow2",
        "! found backing-missing",
    )),
    ("qemu-img rebase -u -b PATH -F FORMAT IMAGE", runs(
        &[("PATH", "base"), ("FORMAT", "raw"), ("IMAGE", "a.qcow2")],
        r#"new -f raw base 8M; new -f qcow2 -b 'json:{"driver":"raw","file":{"driver":"file","filename":"base"}}' -F raw a.qcow2"#,
        "qemu-img info a.qcow2 | grep -q '^backing file: base'",
    )),
    ("qemu-img convert -O qcow2 OVERLAY NEW", runs(
        &[("OVERLAY", "a.qcow2"), ("NEW", "b.qcow2")],
        "new -f qcow2 base 8M; qemu-io -c 'write -P 7 0 64k' base > out; new -f qcow2 -b base -F qcow2 a.qcow2",
        "! qemu-img info b.qcow2 | grep -q backing && qemu-img compare -q a.qcow2 b.qcow2",
    )),
    ("qemu-img info --backing-chain IMAGE", runs(
        &[("IMAGE", "a.qcow2")],
        "new -f qcow2 base 8M; new -f qcow2 -b base -F qcow2 a.qcow2",
        "grep -q '^image: base' out",
    )),
    ("qemu-img info IMAGE", runs(&[("IMAGE", "a")], "new -f qcow2 a 8M", "grep -q '^file format: qcow2' out")),
    ("echo none > /sys/block/DRIVE/queue/scheduler", runs(
        &[("DRIVE", "${dev#/dev/}")],
        "truncate -s 1M 1; loop 1; echo mq-deadline > /sys/block/${dev#/dev/}/queue/scheduler",
        "grep -q '\\[none\\]' /sys/block/${dev#/dev/}/queue/scheduler",
    )),
    ("mkdir DIR && chattr +C DIR", runs(
        &[("DIR", "fs/new")],
        "fs btrfs",
        "rm -f fs/new/a && touch fs/new/a && lsattr fs/new/a | cut -d' ' -f1 | grep -q C",
    )),
    ("cp --reflink=never IMAGE DIR/", runs(
        &[("IMAGE", "fs/a"), ("DIR", "fs/new")],
        "fs btrfs; mkdir fs/new; chattr +C fs/new; truncate -s 1G fs/a; guest raw fs/a; found btrfs-cow-image; guest raw fs/new/a",
        "! found source-missing && ! found btrfs-cow-image",
    )),
    ("chattr +C DIR", runs(
        &[("DIR", "fs/new")],
        "fs btrfs; mkdir fs/new",
        "rm -f fs/new/a && touch fs/new/a && lsattr fs/new/a | cut -d' ' -f1 | grep -q C",
    )),
    ("btrfs subvolume create DIR && chattr +C DIR", runs(
        &[("DIR", "fs/new")],
        "fs btrfs",
        "btrfs subvolume show fs/new > out && lsattr -d fs/new | cut -d' ' -f1 | grep -q C",
    )),
    ("btrfs balance start -dconvert=raid1 -mconvert=raid1 MOUNTPOINT", runs(
        &[("MOUNTPOINT", "fs")],
        "all=; for it in 1 2 3; do truncate -s 400M $it; loop $it; all=\"$all $dev\"; done
         mkfs.btrfs -q -f -d raid5 -m raid5 $all; mkdir fs; mount $dev fs; new -f raw fs/a 8M; guest raw fs/a",
        "! found btrfs-raid56",
    )),
    ("virsh blockcommit GUEST TARGET --active --pivot --wait", Elsewhere("virsh(1), blockcommit; a guest must run")),
    ("virsh blockpull GUEST TARGET --wait", Elsewhere("virsh(1), blockpull; a guest must run")),
    ("virsh migrate --copy-storage-all", Elsewhere("virsh(1), migrate; it takes two hosts")),
    ("qemu-img commit OVERLAY", runs(
        &[("OVERLAY", "a.qcow2")],
        "new -f qcow2 base 8M; new -f qcow2 -b base -F qcow2 a.qcow2; qemu-io -c 'write -P 7 0 64k' a.qcow2 > out",
        "qemu-io -c 'read -P 7 0 64k' base > out && ! grep -q failed out",
    )),
    ("qemu-img convert -O qcow2 IMAGE MERGED", runs(
        &[("IMAGE", "a.qcow2"), ("MERGED", "b.qcow2")],
        "new -f qcow2 -o data_file=data a.qcow2 8M; qemu-io -c 'write -P 7 0 64k' a.qcow2 > out",
        "qemu-img compare -q a.qcow2 b.qcow2 && ! qemu-img info b.qcow2 | grep -q 'data file:'",
    )),
    ("qemu-img convert -O qcow2 -o data_file=FILE IMAGE NEW", runs(
        &[("FILE", "data"), ("IMAGE", "a.qcow2"), ("NEW", "b.qcow2")],
        "new -f qcow2 a.qcow2 8M",
        "qemu-img info b.qcow2 | grep -q 'data file: data'",
    )),
    ("qemu-img create -f qcow2 -o data_file=FILE IMAGE SIZE", runs(
        &[("FILE", "data"), ("IMAGE", "b.qcow2"), ("SIZE", "8M")],
        "",
        "qemu-img info b.qcow2 | grep -q 'data file: data'",
    )),
    ("cryptsetup open --allow-discards", Elsewhere("cryptsetup-open(8); needs device-mapper")),
    ("cryptsetup convert --type luks1 IMAGE", runs(
        &[("convert", "-q convert"), ("IMAGE", "a")],
        "truncate -s 32M a; echo secret > key
         cryptsetup -q luksFormat --type luks2 --sector-size 512 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 a key
         guest raw a '' \"><encryption format='luks'><secret type='passphrase' usage='x'/></encryption></source>\"",
        "! found encryption-mismatch",
    )),
    ("lsblk --discard", runs(&[], "", "grep -q DISC-GRAN out")),
    ("qemu-img convert -O qcow2 -o encrypt.format=luks,encrypt.key-secret=ID,encrypt.hash-alg=sha512 --object secret,id=ID,file=KEYFILE IMAGE NEW", runs(
        &[("KEYFILE", "key"), ("IMAGE", "a"), ("NEW", "b.qcow2")],
        "new -f raw a 8M; echo secret > key",
        "qemu-img info b.qcow2 | grep -q 'format: luks'",
    )),
    ("qemu-img convert --object secret,id=old,file=OLDKEY --object secret,id=new,file=NEWKEY --image-opts driver=qcow2,file.filename=OLD,encrypt.key-secret=old -O qcow2 -o encrypt.format=luks,encrypt.key-secret=new,encrypt.hash-alg=sha512 NEW", runs(
        &[("OLDKEY", "old.key"), ("NEWKEY", "new.key"), ("filename=OLD", "filename=a.qcow2"), (" NEW", " b.qcow2")],
        "echo old > old.key; echo new > new.key; guest qcow2 b.qcow2
         new -f qcow2 --object secret,id=s,file=old.key -o encrypt.format=aes,encrypt.key-secret=s a.qcow2 1M",
        "qemu-img info b.qcow2 | grep -q 'format: luks' && ! found qcow2-aes-encryption",
    )),
    ("virsh secret-define", Named),
    ("virsh vol-path", Named),
    ("virsh edit", Named),
    ("virsh domcapabilities", Elsewhere("virsh(1), domcapabilities; the driver `test` has none")),
    ("truncate -s SIZE FILE", runs(
        &[("SIZE", "8M"), ("FILE", "a")],
        ": > a; guest raw a",
        "! found image-empty",
    )),
    ("qemu-img create -f raw FILE SIZE", runs(
        &[("SIZE", "8M"), ("FILE", "a")],
        ": > a; guest raw a",
        "! found image-empty",
    )),
    ("qemu-img convert -O qcow2 -o preallocation=falloc IMAGE NEW", runs(
        &[("IMAGE", "a"), ("NEW", "b.qcow2")],
        "new -f raw a 8M",
        "[ $(stat -c %b b.qcow2) -ge 16384 ]",
    )),
    ("qemu-img convert -O qcow2 -o extended_l2=off OLD NEW", runs(
        &[("OLD", "a.qcow2"), ("NEW", "b.qcow2")],
        "new -f qcow2 -o extended_l2=on a.qcow2 8M; guest qcow2 b.qcow2",
        "[ -e b.qcow2 ] && ! found image-newer-than-qemu --target qemu=4.2",
    )),
    ("qemu-img convert -O qcow2 -o compression_type=zlib OLD NEW", runs(
        &[("OLD", "a.qcow2"), ("NEW", "b.qcow2")],
        "new -f qcow2 -o compression_type=zstd a.qcow2 8M; guest qcow2 b.qcow2",
        "[ -e b.qcow2 ] && ! found image-newer-than-qemu --target qemu=4.2",
    )),
    ("qemu-img convert -O qcow2 -o extended_l2=off,compression_type=zlib OLD NEW", runs(
        &[("OLD", "a.qcow2"), ("NEW", "b.qcow2")],
        "new -f qcow2 -o extended_l2=on,compression_type=zstd a.qcow2 8M; guest qcow2 a.qcow2
         found image-newer-than-qemu --target qemu=4.2; guest qcow2 b.qcow2",
        "[ -e b.qcow2 ] && ! found image-newer-than-qemu --target qemu=4.2",
    )),
    ("setfacl -m u:libvirt-qemu:x /home/alice", runs(
        &[("libvirt-qemu", "nobody"), ("/home/alice", "fs/home")],
        "fs ext4; mkdir -m 700 fs/home",
        "getfacl -p fs/home | grep -q 'user:nobody:--x'",
    )),
    ("chmod 600 IMAGE", runs(
        &[("IMAGE", "a")],
        "new -f raw a 8M; chmod 644 a; chmod 755 .; guest raw a",
        "! found image-world-readable",
    )),
    ("umask 077", runs(&[], "umask 022", "[ $(umask) = 0077 ]")),
    ("sysctl fs.aio-max-nr=1048576", Elsewhere("Documentation/admin-guide/sysctl/fs.rst; it changes the whole machine")),
    ("sysctl kernel.io_uring_disabled=0", Elsewhere("Documentation/admin-guide/sysctl/kernel.rst; it changes the whole machine")),
    ("fstrim -a", Elsewhere("fstrim(8); it trims the whole machine")),
    ("losetup --direct-io=on DEVICE", runs(
        &[("DEVICE", "$dev")],
        "fs ext4; truncate -s 8M fs/a; loop fs/a; guest raw $dev \"cache='none'\"",
        // The file system of the trial is on another loop device.
        "! { found loop-device-buffered; grep -q \"$dev under\" found; }",
    )),
    ("lvremove VG/SNAPSHOT", Parsed("not found")),
    ("lvs -o +lv_health_status,devices", Parsed("")),
    ("lvmdevices --adddev", Elsewhere("lvmdevices(8); it changes the whole machine")),
    ("lvcreate -s", Named),
    ("lvcreate --chunksize", Named),
    ("lvchange --activate y VG/LV", Parsed("not found")),
    ("lvconvert --repair VG/LV", Parsed("not found")),
    ("lvcreate --type thin-pool --chunksize 64k --size SIZE VG/POOL", Elsewhere("lvmthin(7); needs device-mapper")),
    ("lvchange --discards passdown VG/POOL", Parsed("not found")),
    ("lvchange --errorwhenfull y VG/POOL", Parsed("not found")),
    ("lvchange -Zy VG/POOL", Parsed("not found")),
    ("lvextend -L+SIZE VG/POOL", Parsed("not found")),
    ("lvextend --poolmetadatasize +SIZE VG/POOL", Parsed("not found")),
    ("lvextend -L SIZE DEVICE", Parsed("not found")),
    ("mdadm --add", Named),
    ("losetup -r", Named),
    ("blockdev --setrw DEVICE", runs(
        &[("DEVICE", "$dev")],
        "truncate -s 1M 1; loop 1; blockdev --setro $dev; guest raw $dev",
        "! found read-only-filesystem",
    )),
    ("virt-sparsify --in-place", Elsewhere("virt-sparsify(1); it starts a guest")),
    ("chattr -a IMAGE", runs(
        &[("IMAGE", "fs/a")],
        "fs ext4; new -f raw fs/a 8M; guest raw fs/a; chattr +a fs/a",
        "! found read-only-filesystem",
    )),
    ("mount -o remount,barrier MOUNTPOINT", runs(
        &[("MOUNTPOINT", "fs")],
        "fs btrfs nobarrier; new -f raw fs/a 8M; guest raw fs/a",
        "! found mount-nobarrier",
    )),
    ("mdadm --manage /dev/mdN --add /dev/NEW", Parsed("No such file")),
    ("multipath -ll", Elsewhere("multipath(8); needs device-mapper")),
    ("iscsiadm --mode node --targetname IQN --portal SERVER --login", Elsewhere("iscsiadm(8); needs a target")),
    ("nvme list-ns /dev/nvme0", Elsewhere("nvme-list-ns(1); needs a controller")),
    ("qemu-system-x86_64 -machine help", runs(&[], "", "grep -q q35 out")),
    ("qemu-system-x86_64 -device virtio-blk-pci,help", runs(&[], "", "grep -q queue-size out")),
    ("mount -o remount,barrier=1 MOUNTPOINT", runs(
        &[("MOUNTPOINT", "fs")],
        "fs ext4 nobarrier; new -f raw fs/a 8M; guest raw fs/a",
        "! found mount-nobarrier",
    )),
    ("mount -o remount,rw DIRECTORY", runs(
        &[("DIRECTORY", "fs")],
        "fs ext4; new -f raw fs/a 8M; guest raw fs/a; mount -o remount,ro fs",
        "! found read-only-filesystem",
    )),
    ("chattr -i IMAGE", runs(
        &[("IMAGE", "fs/a")],
        "fs ext4; new -f raw fs/a 8M; guest raw fs/a; chattr +i fs/a",
        "! found read-only-filesystem",
    )),
    ("qemu-img convert -f raw -O qcow2 VARS.fd VARS.qcow2", runs(
        &[],
        "truncate -s 528k VARS.fd",
        "qemu-img info VARS.qcow2 | grep -q 'virtual size: 528 KiB'",
    )),
    ("zfs set direct=standard DATASET", Elsewhere("zfsprops(7)")),
    ("setsebool -P virt_use_nfs on", Elsewhere("setsebool(8)")),
    ("zfs set direct=disabled DATASET", Elsewhere("zfsprops(7)")),
    ("zfs create -o recordsize=16K DATASET", Elsewhere("zfsprops(7)")),
    ("zfs set sync=standard DATASET", Elsewhere("zfsprops(7)")),
    ("zpool add POOL log DEVICE", Elsewhere("zpool-add(8)")),
    ("qemu-img resize IMAGE SIZE", runs(
        &[("IMAGE", "a.qcow2"), ("SIZE", "8M")],
        "new -f qcow2 base 8M; new -f qcow2 -b base -F qcow2 a.qcow2 4M; guest qcow2 a.qcow2",
        "! found overlay-smaller-than-backing",
    )),
    ("qemu-img resize -f raw IMAGE SIZE", runs(
        &[("IMAGE", "a"), ("SIZE", "128M")],
        "truncate -s 65M a; echo qemu-system-aarch64 -M raspi3b -drive file=$PWD/a,format=raw,if=sd > a.args",
        "\"$VMDISK\" lint --live --select sd-card-size-refused a.args",
    )),
    ("parted DRIVE align-check optimal N", runs(
        &[("DRIVE", "a"), ("N", "1")],
        "truncate -s 8M a; parted -s a mklabel gpt mkpart a 1MiB 2MiB",
        "grep -q '1 aligned' out",
    )),
    ("fdisk -l IMAGE", runs(
        &[("IMAGE", "a")],
        "truncate -s 8M a; echo 2048,2048 | sfdisk -q a",
        "grep -q 'a1 *2048' out",
    )),
    ("qemu-img convert -O qcow2 OLD NEW", runs(
        &[("OLD", "a.qcow2"), ("NEW", "b.qcow2")],
        "new -f qcow2 -o cluster_size=512 a.qcow2 8M",
        "qemu-img info b.qcow2 | grep -q 'cluster_size: 65536'",
    )),
    ("qemu-img check IMAGE", runs(&[("IMAGE", "a")], "new -f qcow2 a 8M", "grep -q 'No errors' out")),
    ("qemu-img check -r all IMAGE", runs(
        &[("IMAGE", "a.qcow2")],
        r"new -f qcow2 a.qcow2 8M; guest qcow2 a.qcow2; flag 79 '\002'",
        "! found qcow2-corrupt-bit",
    )),
    ("qemu-img check -r leaks IMAGE", runs(
        &[("IMAGE", "a.qcow2")],
        r"new -f qcow2 -o lazy_refcounts=on a.qcow2 8M; guest qcow2 a.qcow2; flag 79 '\001'",
        "! found qcow2-dirty-bit",
    )),
    ("qemu-img measure -O qcow2 --size SIZE", runs(&[("SIZE", "8M")], "", "grep -q 'fully allocated size' out")),
    ("qemu-img convert -O raw IMAGE NEW", runs(
        &[("IMAGE", "a.qcow2"), ("NEW", "b")],
        "new -f qcow2 a.qcow2 8M",
        "[ $(stat -c %s b) = 8388608 ]",
    )),
    ("qemu-img convert -n -O raw IMAGE VOLUME", runs(
        &[("IMAGE", "a.qcow2"), ("VOLUME", "$dev")],
        "new -f qcow2 a.qcow2 1M; qemu-io -c 'write -P 7 0 64k' a.qcow2 > out; truncate -s 1M 1; loop 1",
        "qemu-img compare -q -f qcow2 -F raw a.qcow2 $dev",
    )),
    ("qemu-img convert -O qcow2 -o cluster_size=2M,extended_l2=on IMAGE NEW", runs(
        &[("IMAGE", "a.qcow2"), ("NEW", "b.qcow2")],
        "new -f qcow2 a.qcow2 8M",
        "qemu-img info b.qcow2 | grep -q 'cluster_size: 2097152'",
    )),
    ("qemu-img amend -o lazy_refcounts=off IMAGE", runs(
        &[("IMAGE", "a.qcow2")],
        "new -f qcow2 -o lazy_refcounts=on a.qcow2 8M; guest qcow2 a.qcow2",
        "! found qcow2-lazy-refcounts",
    )),
    ("qemu-img amend -o compat=1.1 IMAGE", runs(
        &[("IMAGE", "a.qcow2")],
        "new -f qcow2 -o compat=0.10 a.qcow2 8M",
        "qemu-img info a.qcow2 | grep -q 'compat: 1.1'",
    )),
    ("realpath FILE", runs(&[("FILE", "a")], ": > a", "grep -q ^/ out")),
    ("truncate --size=SIZE FILE", runs(
        &[("SIZE", "2M"), ("FILE", "a")],
        "truncate -s 1M a; guest raw a '' \"><slices><slice type='storage' offset='0' size='2097152'/></slices></source>\"",
        "! found slice-beyond-storage",
    )),
    ("stat --dereference --format=%F PATH", runs(&[("PATH", "a")], "ln -s . a", "grep -q directory out")),
    ("qemu-img create -f qcow2 IMAGE SIZE", runs(
        &[("IMAGE", "a.qcow2"), ("SIZE", "8M")],
        "guest qcow2 a.qcow2",
        "! found source-missing",
    )),
    ("qemu-img create -f qcow2 -b DEVICE -F raw OVERLAY", runs(
        &[("DEVICE", "$dev"), ("OVERLAY", "a.qcow2")],
        "truncate -s 1M 1; loop 1",
        "qemu-img info a.qcow2 | grep -q 'virtual size: 1 MiB'",
    )),
    ("virsh define --validate FILE", runs(
        &[("FILE", "a.xml")],
        "virsh dumpxml test | sed 's/>test</>new</; /<uuid>/d' > a.xml",
        "grep -q \"'new' defined\" out",
    )),
    ("virsh domxml-to-native qemu-argv --domain GUEST", Elsewhere("virsh(1), domxml-to-native; the tests of libvirt use it")),
    ("ls -l /dev/disk/by-id", Elsewhere("udev(7)")),
    ("qemu-img convert -O qcow2 https://SERVER/IMAGE IMAGE.qcow2", Elsewhere("QEMU's block drivers, curl; needs a server")),
];

/// The commands between backticks: at least two words, of which the first is a program.
fn commands(text: &str) -> Vec<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let spans = text.split('`').skip(1).step_by(2);
    let is_command = |span: &&str| {
        let mut words = span.split(' ');
        let first = words.next().unwrap_or_default();
        let is_name =
            |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || b"-_".contains(&it);
        first.starts_with(|it: char| it.is_ascii_lowercase())
            && first.bytes().all(is_name)
            && words.next().is_some_and(|second| second != "=")
            && first != "vmdisk"
            && *span != "fully allocated size"
    };
    spans.filter(is_command).map(str::to_owned).collect()
}

/// The commands of all pages and of the findings on their examples.
fn remedies() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for rule in RULES {
        let text = rule.page;
        let (_, rest) = text.split_once("## Use instead").expect("each page has it");
        let section = rest.split("\n## ").next().unwrap_or_default();
        let blocks = section.split("```");
        all.extend(commands(&blocks.step_by(2).collect::<String>()));
    }
    for case in fix_cases() {
        let Ok(document) = read(&case.text) else {
            continue;
        };
        let report = case.with_options(|options| lint(&document, options));
        all.extend(
            report
                .diagnostics
                .iter()
                .flat_map(|it| commands(it.help.as_deref().unwrap_or_default())),
        );
    }
    all
}

/// Compares a command with one whose words in capitals stand for anything.
fn is_of(command: &str, pattern: &str) -> bool {
    let stands_for = |pattern: &str, word: &str| {
        let is_capital = |it: char| it.is_ascii_uppercase();
        let (Some(start), Some(end)) = (pattern.find(is_capital), pattern.rfind(is_capital)) else {
            return pattern == word;
        };
        let (before, after) = (&pattern[..start], &pattern[end + 1..]);
        word.len() > before.len() + after.len() && word.starts_with(before) && word.ends_with(after)
    };
    let (words, patterns): (Vec<&str>, Vec<&str>) =
        (command.split(' ').collect(), pattern.split(' ').collect());
    words.len() == patterns.len()
        && words
            .iter()
            .zip(patterns)
            .all(|(word, pattern)| stands_for(pattern, word))
}

#[test]
fn each_command_that_a_rule_advises_has_a_trial() {
    let remedies = remedies();
    // A command that is told in short has its trial under its whole form.
    let is_tried = |command: &&String| {
        let short = command.trim_end_matches('…');
        TRIALS
            .iter()
            .any(|(known, _)| known.starts_with(short) || is_of(command, known))
    };
    let new: Vec<_> = remedies.iter().filter(|it| !is_tried(it)).collect();
    assert!(new.is_empty(), "without a trial: {new:#?}");
    // No example shows some findings.
    let sources: String = RULES
        .iter()
        .map(|rule| std::fs::read_to_string(repository().join(rule.file)).unwrap())
        .collect();
    let starts: Vec<&str> = sources
        .split("command(\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let is_start = |start: &str| TRIALS.iter().any(|(known, _)| known.starts_with(start));
    let new: Vec<_> = starts.iter().filter(|it| !is_start(it)).collect();
    assert!(
        new.is_empty() && starts.len() > 15,
        "without a trial: {new:#?}"
    );
    let is_advised = |known: &str| {
        remedies.iter().any(|it| is_of(it, known))
            || sources.contains(&format!("`{known}`"))
            || starts.iter().any(|start| known.starts_with(start))
    };
    let gone: Vec<_> = TRIALS
        .iter()
        .filter(|(known, _)| !is_advised(known))
        .collect();
    assert!(gone.is_empty(), "no rule advises {gone:#?}");
}

#[test]
fn each_command_that_the_help_of_another_report_names_has_a_trial() {
    let mut named = BTreeSet::new();
    for place in [
        "vmdisk-cli/src/facts",
        "vmdisk-cli/src/trace",
        "vmdisk-cli/src/advise",
        "vmdisk-cli/src/decide",
        "vmdisk/src/advise",
        "vmdisk-trace/src",
    ] {
        for entry in std::fs::read_dir(repository().join("crates").join(place)).unwrap() {
            let path = entry.unwrap().path();
            if !path.is_file() {
                continue;
            }
            let text = std::fs::read_to_string(path).unwrap();
            let lines = text.lines().filter(|it| !it.trim_start().starts_with("//"));
            named.extend(lines.flat_map(commands));
        }
    }
    // It makes a key for `facts redact`, and changes no disk.
    let key = "head -c 32 /dev/urandom | base64";
    assert!(named.remove(key), "{key}");
    let made = run("sh", &["-c", key], "");
    assert_eq!((made.code, made.stdout.trim().len()), (0, 44));
    let is_tried = |command: &&String| {
        let filled = command.replace("{}", "WORD").replace("{format}", "WORD");
        TRIALS
            .iter()
            .any(|(known, _)| known.starts_with(&filled) || is_of(&filled, known))
    };
    let new: Vec<_> = named.iter().filter(|it| !is_tried(it)).collect();
    assert!(new.is_empty(), "without a trial: {new:#?}");
    // What is collected is all that there is: no command is lost.
    let named: Vec<_> = named.iter().map(String::as_str).collect();
    assert_eq!(named, ["qemu-img check IMAGE", "qemu-img info IMAGE"]);
}

#[test]
fn the_facts_that_a_trace_asks_for_are_collected_by_its_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("a b.img"), [0; 512]).unwrap();
    std::os::unix::fs::symlink(path("a b.img"), path("link")).unwrap();
    let mut asked = 0;
    for name in ["a b.img", "link", "missing.img"] {
        let xml = format!(
            "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='none'/>\
             <source file='{}'/><target dev='vda' bus='virtio'/></disk>",
            path(name)
        );
        let without = run(crate::VMDISK, &["trace", "-"], &xml).stdout;
        let tails = without.split("collect it with `").skip(1);
        let commands: BTreeSet<&str> = tails.filter_map(|it| it.split('`').next()).collect();
        assert!(!commands.is_empty(), "{without}");
        for command in commands {
            let words = shlex::split(command).unwrap();
            assert_eq!(words[0], "vmdisk");
            let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
            let facts = run(crate::VMDISK, &words, "");
            // It says that a file is missing, and writes that down.
            let is_missing = name == "missing.img";
            assert_eq!(facts.code, i32::from(is_missing), "{command}");
            std::fs::write(path("facts.json"), facts.stdout).unwrap();
            let arguments = ["trace", "-", "--facts", &path("facts.json")];
            let with = run(crate::VMDISK, &arguments, &xml).stdout;
            assert!(!with.contains(command), "{command} does not tell: {with}");
            asked += 1;
        }
    }
    assert!(asked >= 3, "{asked}");
}

#[test]
fn a_path_is_one_word_of_a_command_whatever_its_name() {
    let (plain, odd) = ("/srv/", "/s r/");
    let mut found = BTreeSet::new();
    for case in fix_cases() {
        let facts = case.facts.iter().map(|facts| {
            let text = serde_json::to_string(&**facts).unwrap().replace(plain, odd);
            Rc::new(serde_json::from_str(&text).unwrap())
        });
        let case = FixCase {
            text: case.text.replace(plain, odd),
            facts: facts.collect(),
            ..case
        };
        let Ok(document) = read(&case.text) else {
            continue;
        };
        let report = case.with_options(|options| lint(&document, options));
        for finding in report.diagnostics {
            for command in commands(finding.help.as_deref().unwrap_or_default()) {
                let outside: String = command.split('\'').step_by(2).collect();
                assert!(
                    !outside.contains("/s r"),
                    "{}: {command}",
                    finding.rule.name
                );
                if command.contains(odd) {
                    found.insert(finding.rule.name);
                }
            }
        }
    }
    assert!(found.len() >= 9, "{found:?}");
}

/// Runs a script in a folder and a mount namespace of its own.
fn sh(script: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script])
        .env("VMDISK", crate::VMDISK)
        .env("LC_ALL", "C")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    if output.status.success() {
        Ok(text)
    } else {
        Err(text)
    }
}

#[test]
fn each_command_that_a_rule_advises_does_what_it_promises() {
    let programs = [
        "unshare",
        "mkfs.btrfs",
        "lvs",
        "mdadm",
        "parted",
        "fdisk",
        "cryptsetup",
        "getfacl",
        "qemu-img",
        "virsh",
    ];
    let search = format!(
        "{}:/usr/sbin:/sbin",
        std::env::var("PATH").unwrap_or_default()
    );
    let is_there = |program: &&str| {
        std::env::split_paths(&search).any(|folder| folder.join(program).is_file())
    };
    let missing: Vec<&str> = programs.into_iter().filter(|it| !is_there(it)).collect();
    let may_mount = missing.is_empty()
        && sh("truncate -s 9M a && mkfs.ext4 -q a && mkdir b && mount -o loop a b").is_ok();
    if !real(
        may_mount,
        "remedies",
        &format!("mounts of loop devices, and {missing:?}"),
    ) {
        return;
    }
    let (mut ran, mut parsed, mut failures) = (0, 0, Vec::new());
    for (command, trial) in TRIALS {
        let result = match trial {
            Run {
                values,
                before,
                effect,
            } => {
                ran += 1;
                let mut remedy = (*command).to_owned();
                for (name, value) in *values {
                    assert!(remedy.contains(name), "{command}: {name}");
                    remedy = remedy.replace(name, value);
                }
                let remedy = if remedy.contains('>') {
                    remedy
                } else {
                    format!("{remedy} > out 2>&1 || {{ cat out; exit 1; }}")
                };
                sh(&format!(
                    "{PRELUDE}\n{before}\n: > out\nif {effect}; then echo it is so before; exit 1; fi\n{remedy}\n{effect} || {{ cat found; exit 1; }}\n"
                ))
            }
            Parsed(refusal) => {
                parsed += 1;
                let remedy = command
                    .replace("SIZE", "8M")
                    .replace("/dev/", "/dev/none/")
                    .replace("DEVICE", "/dev/none/lv");
                match sh(&format!("PATH=$PATH:/usr/sbin; {remedy}")) {
                    Ok(text) | Err(text) if text.contains(refusal) => Ok(text),
                    other => Err(format!("{other:?}")),
                }
            }
            Elsewhere(source) => {
                println!("not run: {command} ({source})");
                continue;
            }
            Named => continue,
        };
        if let Err(text) = result {
            failures.push(format!("{command}: {text}"));
        }
    }
    println!("{ran} commands have the promised effect, {parsed} are accepted by their programs");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
