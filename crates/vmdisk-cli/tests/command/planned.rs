//! What is planned is checked as if it existed: the findings before the storage is made are those after it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use vmdisk_testing::{LoopDevice, installed, make_key, needed, run};

use crate::{Place, Run};

/// The rules that `generate` and `lint` report at warning or above, without their places.
fn rules(run: &Run) -> Vec<String> {
    let lines = run.stderr.lines().chain(run.stdout.lines());
    let mut found: Vec<String> = lines
        .filter_map(|line| {
            let rest = line
                .strip_prefix("warning")
                .or_else(|| line.strip_prefix("error"))?;
            match rest.strip_prefix('[') {
                Some(rest) => rest.split(']').next().map(str::to_owned),
                // The end of a title, as `generate` writes it.
                None => Some(rest.rsplit_once('[')?.1.strip_suffix(']')?.to_owned()),
            }
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

/// The disks of a guest below a directory that holds `base.qcow2` of 64 MiB, with a rule that must be reported.
const DISKS: &[(&str, &str)] = &[
    (
        "qcow2:D/p.qcow2,size=64M,backing.path=D/base.qcow2,backing.format=qcow2",
        "",
    ),
    ("raw:D/huge.img,size=100G", "image-larger-than-free-space"),
    (
        "qcow2:D/huge.qcow2,size=100G",
        "image-larger-than-free-space",
    ),
    (
        "qcow2:D/a.qcow2,size=150M raw:D/b.img,size=150M raw:D/c.img,size=150M",
        "",
    ),
    ("raw:D/small.img,size=4M", ""),
    ("raw:D/small.img,size=4M,nocow=false", ""),
    ("raw:D/odd.img,size=1049088", ""),
    ("raw:D/full.img,size=4M,preallocation=full", ""),
    ("qcow2:D/full.qcow2,size=4M,preallocation=falloc", ""),
    ("qcow2:D/meta.qcow2,size=4M,preallocation=metadata", ""),
    ("qcow2:D/s.qcow2,size=64M,cluster-size=4K", ""),
    (
        "qcow2:D/l.qcow2,size=8G,cluster-size=512",
        "image-larger-than-free-space",
    ),
    (
        "qcow2:D/x.qcow2,size=64M,extended-l2=true,cluster-size=128K",
        "",
    ),
    ("qcow2:D/z.qcow2,size=64M,lazy-refcounts=true", ""),
    (
        "raw:D/copy.img,source.path=D/base.qcow2,source.format=qcow2",
        "",
    ),
    (
        "qcow2:D/copy.qcow2,size=1G,source.path=D/base.qcow2,source.format=qcow2,mode=0640",
        "",
    ),
    (
        "raw:D/k.img,size=4M,encryption.secret.usage=s,encryption.key-file=D/key",
        "",
    ),
    (
        "qcow2:D/k.qcow2,size=4M,encryption.secret.usage=s,encryption.key-file=D/key",
        "",
    ),
    ("seed:D/seed.iso,user-data=D/key,meta-data=D/key", ""),
    ("raw:D/wide.img,size=4M,mode=0666", "image-world-readable"),
    ("raw:D/c.img,size=4M,cache=unsafe", "cache-unsafe"),
    ("raw:D/n.img,size=4M,cache=none,io=native", ""),
    ("raw:D/w.img,size=4M,cache=writethrough,bus=sata", ""),
    ("qcow2:D/i.qcow2,size=4M,discard=ignore", ""),
    ("raw:D/s4.img,size=4M,logical-block-size=4096", ""),
];

/// Each guest is tried on two of three file systems.
fn holds_on(directory: &Path, skipped: usize) {
    let base = directory.join("base.qcow2");
    let create = Command::new("qemu-img")
        .args(["create", "-q", "-f", "qcow2"])
        .arg(&base)
        .arg("64M")
        .status();
    assert!(create.unwrap().success());
    fs::write(directory.join("key"), "a key").unwrap();
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(directory.join("key"), private).unwrap();
    let in_directory = |disks: &str| disks.replace("D/", &format!("{}/", directory.display()));
    let mut failures = Vec::new();
    for (nth, (disks, expected)) in DISKS.iter().enumerate() {
        if nth % 3 == skipped {
            continue;
        }
        if disks.starts_with("seed") && installed("xorriso").is_err() {
            continue;
        }
        let disks = in_directory(disks);
        let place = Place::with(&[]);
        let generate = |to: &str| {
            let mut args = vec!["generate", "--live", "--to", to, "-o", to];
            args.extend(disks.split(' ').flat_map(|disk| ["--disk", disk]));
            place.run(&args)
        };
        let written = generate("libvirt-xml");
        assert_eq!(generate("script").code, written.code, "{disks}");
        let before = rules(&written);
        if !expected.is_empty() && !before.contains(&(*expected).to_owned()) {
            failures.push(format!("{disks}: {before:?} {}", written.stderr));
        }
        if written.code != 0 {
            // It is refused before anything is made.
            if expected.is_empty() {
                failures.push(format!("{disks}: {}", written.stderr));
            }
            continue;
        }
        let made = make_key(Command::new("sh").arg(place.path("script")));
        assert!(made.status.success(), "{disks}: {made:?}");
        let lint = place.run(&["lint", "--live", "libvirt-xml"]);
        let after = rules(&lint);
        // What is there is planned as what is new.
        let again = generate("libvirt-xml");
        if before != after || rules(&again) != after {
            let (first, last) = (written.stderr, again.stderr);
            failures.push(format!("{disks}: {first}then {}again {last}", lint.stdout));
        }
    }
    assert_eq!(failures, [""; 0]);
    let overlay = "qcow2:D/o.qcow2,size=32M,backing.path=D/base.qcow2,backing.format=qcow2";
    let refused = Place::with(&[]).run(&["generate", "--live", "--disk", &in_directory(overlay)]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("write `size=64M` or more"),
        "{}",
        refused.stderr
    );
}

#[test]
fn findings_before_the_script_are_those_after_it_on_each_file_system() {
    if needed(installed("qemu-img")).is_none() {
        return;
    }
    let mut tried = 0;
    for (kind, options) in [
        ("ext4", &["-q"][..]),
        ("xfs", &["-q", "-f"]),
        ("btrfs", &["-q"]),
    ] {
        let mkfs = format!("mkfs.{kind}");
        if needed(run(&mkfs, &["-V"])).is_none() {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let made = LoopDevice::new(&folder.path().join("device"), 400 << 20, &[]);
        let Some(device) = needed(made) else {
            return;
        };
        let status = Command::new(&mkfs)
            .args(options)
            .arg(device.path())
            .status();
        assert!(status.unwrap().success());
        let point = folder.path().join("mnt");
        fs::create_dir(&point).unwrap();
        let mount = Command::new("mount")
            .arg(device.path())
            .arg(&point)
            .output();
        if !mount.is_ok_and(|it| it.status.success()) {
            continue; // this kernel has no such file system
        }
        let held = std::panic::catch_unwind(|| holds_on(&point, tried));
        let _ = Command::new("umount").arg(&point).status();
        if let Err(panic) = held {
            std::panic::resume_unwind(panic);
        }
        tried += 1;
    }
    if tried == 0 {
        needed::<()>(Err("no file system can be mounted".to_owned()));
    }
    println!(
        "{tried} file systems, {} guests each: 0 differences",
        DISKS.len() * 2 / 3
    );
}

#[test]
fn a_thin_volume_beyond_its_pool_is_reported_before_it_exists() {
    let fixture = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/facts/lvm-thin-nearly-full.json"
    );
    // The pool of 300 GiB has promised 100 GiB, and used a tenth.
    let facts = fs::read_to_string(fixture).unwrap();
    let facts = facts
        .replace("644245094400", "107374182400")
        .replace("93.12", "10");
    let place = Place::with(&[("facts.json", &facts)]);
    let of = |size: &str| {
        let disk = format!("lvm-thin:vg0/x,size={size},pool=thin");
        rules(&place.run(&["generate", "--facts", "facts.json", "--disk", &disk]))
    };
    assert!(!of("199G").contains(&"thin-pool-overcommitted".to_owned()));
    assert!(of("201G").contains(&"thin-pool-overcommitted".to_owned()));
}
