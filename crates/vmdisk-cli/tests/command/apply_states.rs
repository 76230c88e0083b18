//! What `vmdisk apply` takes for done, and what it does not wait for.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use vmdisk_testing::{installed, needed};

use crate::Place;
use crate::apply::{SYSTEM, images, run};

/// A place with the spec of one image, and its script.
fn prepared(disk: &str) -> Place {
    let place = Place::with(&[]);
    fs::create_dir(place.path("images")).unwrap();
    fs::create_dir(place.path("bin")).unwrap();
    let folder = place.path("images");
    let disk = disk.replace("D/", &format!("{}/", folder.display()));
    let spec = format!("version: 1\nguest: {{name: w}}\ndisks:\n- {disk}\n");
    place.write("web1.yaml", spec.as_bytes());
    let script = place.run(&["generate", "web1.yaml", "--to", "script", "-o", "make.sh"]);
    assert_eq!(script.code, 0, "{}", script.stderr);
    place
}

const QCOW2: &str = "qcow2: {path: \"D/ü\\\"a.qcow2\", size: 1M}";
const OVERLAY: &str =
    "qcow2: {path: D/a.qcow2, size: 1M, backing: {path: \"D/ü\\\\\\\"b.qcow2\", format: qcow2}}";
const RAW: &str = "raw: {path: D/a.img, size: 1M}";

/// Commands that make something else in the folder of images, and a part of the reason of `apply`.
const OTHERS: &[(&str, &str, &str)] = &[
    (
        QCOW2,
        "qemu-img create -q -f qcow2 other 1M; ln -s other ü\\\"a.qcow2",
        "symbolic link",
    ),
    (QCOW2, "mkfifo ü\\\"a.qcow2", "named pipe"),
    (QCOW2, "mkdir ü\\\"a.qcow2", "a directory"),
    (QCOW2, "ln -s /dev/null ü\\\"a.qcow2", "symbolic link"),
    (
        QCOW2,
        "qemu-img create -q -f qcow2 --object secret,id=s,data=abc -o encrypt.format=luks,encrypt.key-secret=s,encrypt.iter-time=10,encrypt.hash-alg=sha512 ü\\\"a.qcow2 1M",
        "\"encrypted\": true, which is not planned",
    ),
    (
        QCOW2,
        "qemu-img create -q -f qcow2 -o data_file=other.raw ü\\\"a.qcow2 1M",
        "\"data-file\": \"other.raw\", which is not planned",
    ),
    (
        QCOW2,
        "qemu-img create -q -f qcow2 b 1M; qemu-img create -q -f qcow2 -b b -F qcow2 ü\\\"a.qcow2 1M",
        "\"backing-filename\": \"b\", which is not planned",
    ),
    // The dirty and the corrupt bit of the header.
    (
        QCOW2,
        "qemu-img create -q -f qcow2 -o lazy_refcounts=on ü\\\"a.qcow2 1M; printf '\\001' | dd of=ü\\\"a.qcow2 bs=1 seek=79 conv=notrunc status=none",
        "\"dirty-flag\": true, which is not planned",
    ),
    (
        QCOW2,
        "qemu-img create -q -f qcow2 ü\\\"a.qcow2 1M; printf '\\002' | dd of=ü\\\"a.qcow2 bs=1 seek=79 conv=notrunc status=none",
        "\"corrupt\": true, which is not planned",
    ),
    (
        QCOW2,
        "qemu-img create -q -f qcow2 ü\\\"a.qcow2 2M",
        "\"virtual-size\": 2097152, and not \"virtual-size\": 1048576",
    ),
    (
        OVERLAY,
        "qemu-img create -q -f qcow2 c 1M; qemu-img create -q -f qcow2 -b c -F qcow2 a.qcow2 1M",
        "\"backing-filename\": \"c\", and not ",
    ),
    (RAW, "truncate -s 1048577 a.img", "\"virtual-size\": "),
];

#[test]
fn only_what_is_planned_in_all_that_is_said_of_it_is_done_already() {
    if needed(installed("qemu-img")).is_none() {
        return;
    }
    for (disk, other, reason) in OTHERS {
        for is_script in [false, true] {
            let place = prepared(disk);
            if *disk == OVERLAY {
                shell(&place, "qemu-img create -q -f qcow2 ü\\\\\\\"b.qcow2 1M");
            }
            shell(&place, other);
            let before: Vec<String> = images(&place).into_keys().collect();
            let begun = Instant::now();
            let output = run(&place, is_script, SYSTEM);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{other}: {said}");
            assert!(is_script || said.contains(reason), "{other}: {said}");
            assert!(begun.elapsed() < Duration::from_secs(50), "{other}");
            assert_eq!(
                images(&place).into_keys().collect::<Vec<_>>(),
                before,
                "{other}"
            );
        }
    }
    // The same images as planned are done, whatever their names are.
    for disk in [QCOW2, OVERLAY, RAW] {
        let place = prepared(disk);
        shell(&place, "qemu-img create -q -f qcow2 ü\\\\\\\"b.qcow2 1M");
        for is_script in [false, true] {
            let output = run(&place, is_script, SYSTEM);
            assert_eq!(output.status.code(), Some(0), "{disk}: {output:?}");
        }
    }
}

fn shell(place: &Place, command: &str) {
    let mut shell = Command::new("sh");
    let status = shell
        .args(["-c", command])
        .current_dir(place.path("images"))
        .status();
    assert!(status.unwrap().success(), "{command}");
}

#[test]
fn a_key_that_changed_is_tried_and_one_that_is_gone_is_not() {
    if needed(installed("qemu-img")).is_none() {
        return;
    }
    use std::os::unix::fs::PermissionsExt as _;
    let place = prepared(
        "raw: {path: D/s.img, size: 1M, encryption: {secret: {usage: s}, key-file: D/key}}",
    );
    let key = place.path("images/key");
    let set = |text: &str| {
        fs::write(&key, text).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    };
    set("one");
    assert_eq!(run(&place, false, SYSTEM).status.code(), Some(0));
    assert_eq!(run(&place, true, SYSTEM).status.code(), Some(0));
    set("another");
    for is_script in [false, true] {
        let output = run(&place, is_script, SYSTEM);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(is_script || said.contains("Invalid password"), "{said}");
    }
    fs::remove_file(&key).unwrap();
    assert_eq!(run(&place, false, SYSTEM).status.code(), Some(0));
    assert_eq!(run(&place, true, SYSTEM).status.code(), Some(0));
}

/// Stands for a QEMU that has an image open for writing: it holds its lock.
pub(crate) fn opened(place: &Place, name: &str) -> fs::File {
    let file = fs::File::options()
        .read(true)
        .write(true)
        .open(place.path(name))
        .unwrap();
    rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    file
}

#[test]
fn an_image_that_a_qemu_writes_is_neither_done_nor_a_base() {
    if needed(installed("qemu-img")).is_none() {
        return;
    }
    let place = prepared(RAW);
    assert_eq!(run(&place, false, SYSTEM).status.code(), Some(0));
    let held = opened(&place, "images/a.img");
    let output = run(&place, false, SYSTEM);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("a QEMU has it open for writing, and it is not the guest w"),
        "{said}"
    );
    // The guest of the plan may run on it.
    let xml = place.run(&[
        "generate",
        "web1.yaml",
        "--to",
        "libvirt-xml",
        "-o",
        "w.xml",
    ]);
    assert_eq!(xml.code, 0, "{}", xml.stderr);
    let virsh = format!(
        "case $1 in\ndomstate) echo running ;;\ndumpxml) cat {} ;;\nesac",
        place.path("w.xml").display()
    );
    place.program("bin/virsh", &virsh);
    assert_eq!(run(&place, false, SYSTEM).status.code(), Some(0));
    drop(held);

    let place = prepared(OVERLAY);
    shell(&place, "qemu-img create -q -f qcow2 ü\\\\\\\"b.qcow2 1M");
    let held = opened(&place, "images/ü\\\"b.qcow2");
    for more in [&["--live"][..], &[]] {
        let arguments = [&["apply", "web1.yaml"], more].concat();
        let refused = place.run(&arguments);
        assert_eq!(refused.code, 1, "{more:?}: {}", refused.stderr);
        assert!(
            refused.stderr.contains("backing-image-written"),
            "{}",
            refused.stderr
        );
        let ignored = [
            &arguments[..],
            &["--dry-run", "--ignore", "backing-image-written"],
        ]
        .concat();
        assert_eq!(place.run(&ignored).code, 0);
    }
    assert_eq!(images(&place).len(), 1);
    drop(held);
    assert_eq!(place.run(&["apply", "web1.yaml", "--live"]).code, 0);
}

#[test]
fn a_step_that_prints_much_ends_and_nothing_of_the_current_directory_runs() {
    if needed(installed("qemu-img")).is_none() {
        return;
    }
    let place = prepared(QCOW2);
    let flood = "i=0; while [ $i -lt 3000 ]; do echo \"line $i of a long message of a program\" >&2; i=$((i+1)); done\nexec /usr/bin/qemu-img \"$@\"";
    place.program("bin/qemu-img", flood);
    let output = run(&place, false, SYSTEM);
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    let place = prepared(QCOW2);
    place.program("qemu-img", "touch harm");
    place.program("images/qemu-img", "touch harm");
    for path in [
        "",
        ":/usr/bin:/bin",
        "images:/usr/bin:/bin",
        "/usr/bin::/bin",
    ] {
        let mut command = place.command(["apply", "web1.yaml"]);
        let output = command
            .env("PATH", path)
            .current_dir(place.path(""))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{path}: {output:?}");
        assert!(!place.path("harm").exists(), "{path}");
    }
}
