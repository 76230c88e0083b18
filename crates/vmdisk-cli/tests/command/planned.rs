//! What is planned is checked as if it existed: the findings before the storage is made are those after it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use vmdisk_testing::{LoopDevice, installed, needed, run};

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
        let made = Command::new("sh")
            .arg(place.path("script"))
            .output()
            .unwrap();
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

/// Runs a check on ext4, xfs and btrfs of a loop device; returns the number of file systems that could be tried.
fn on_each_file_system(holds_on: fn(usize, &Path, &Path)) -> usize {
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
            return tried;
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
        let held = std::panic::catch_unwind(|| holds_on(tried, &point, Path::new(device.path())));
        let _ = Command::new("umount").arg(&point).status();
        if let Err(panic) = held {
            std::panic::resume_unwind(panic);
        }
        tried += 1;
    }
    if tried == 0 {
        needed::<()>(Err("no file system can be mounted".to_owned()));
    }
    tried
}

#[test]
fn findings_before_the_script_are_those_after_it_on_each_file_system() {
    if needed(installed("qemu-img")).is_none() {
        return;
    }
    let tried = on_each_file_system(|nth, point, _| holds_on(point, nth));
    println!(
        "{tried} file systems, {} guests each: 0 differences",
        DISKS.len() * 2 / 3
    );
}

/// The options of a disk that rest on its storage, as its driver has them.
fn decided(xml: &str) -> Vec<&str> {
    let (_, driver) = xml
        .split_once("<driver ")
        .unwrap_or_else(|| panic!("{xml}"));
    let (driver, _) = driver.split_once("/>").unwrap();
    let names = ["cache=", "io=", "discard="];
    let words = driver.split(' ');
    words
        .filter(|word| names.iter().any(|name| word.starts_with(name)))
        .collect()
}

fn decide_agrees_on(_: usize, point: &Path, _: &Path) {
    for format in ["raw", "qcow2"] {
        for preallocation in ["off", "metadata", "falloc", "full"] {
            if (format, preallocation) == ("raw", "metadata") {
                continue;
            }
            let place = Place::with(&[]);
            let image = point.join(format!("{format}-{preallocation}"));
            let image = image.display();
            let disk = format!("{format}:{image},size=16M,preallocation={preallocation}");
            let generate = |to: &str| {
                let run = place.run(&["generate", "--live", "--disk", &disk, "--to", to]);
                assert_eq!(run.code, 0, "{run:?}");
                run.stdout
            };
            let new = generate("disk-xml");
            place.write("script", generate("script").as_bytes());
            let made = Command::new("sh").arg(place.path("script")).output();
            let made = made.unwrap();
            assert!(made.status.success(), "{disk}: {made:?}");
            let there = format!(
                "<disk type='file' device='disk'>\n  <driver name='qemu' type='{format}'/>\n  \
                 <source file='{image}'/>\n  <target dev='vda' bus='virtio'/>\n</disk>\n"
            );
            place.write("there.xml", there.as_bytes());
            let again = place.run(&["decide", "there.xml", "--live", "--format", "xml"]);
            assert_eq!(decided(&new).len(), 3, "{new}");
            assert_eq!(decided(&again.stdout), decided(&new), "{disk}: {again:?}");
        }
    }
}

#[test]
fn decide_says_of_an_image_what_generate_said_before_it_was_made() {
    if needed(installed("qemu-img")).is_some() {
        on_each_file_system(decide_agrees_on);
    }
}

/// The flushes that reached a device.
fn flushes(device: &Path) -> u64 {
    let name = device.file_name().unwrap().to_str().unwrap();
    let stat = fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    stat.split_ascii_whitespace()
        .nth(15)
        .map_or(0, |it| it.parse().unwrap())
}

/// Starts a guest with the advised disk under emulation, writes, and flushes as often; returns what QEMU prints.
fn start(place: &Place) -> String {
    let command = place
        .run(&["generate", "--live", "spec.yaml", "--to", "qemu"])
        .stdout;
    let command = command
        .replace("-accel kvm", "-accel tcg")
        .trim_end()
        .to_owned();
    place.write(
        "start",
        format!("exec {command} -S -display none -qmp stdio").as_bytes(),
    );
    let mut commands = r#"{"execute":"qmp_capabilities"}"#.to_owned();
    for what in [r#"write 0 4k"#, "flush"].repeat(FLUSHES) {
        commands += r#"{"execute":"human-monitor-command","arguments":{"command-line":"qemu-io -d /machine/peripheral/vda/virtio-backend \""#;
        commands += what;
        commands += r#"\""}}"#;
    }
    commands += r#"{"execute":"quit"}"#;
    place.write("commands", commands.as_bytes());
    let started = Command::new("sh")
        .args(["start"])
        .current_dir(place.path(""))
        .stdin(fs::File::open(place.path("commands")).unwrap())
        .output()
        .unwrap();
    assert!(started.status.success(), "{started:?}");
    String::from_utf8_lossy(&started.stdout).into_owned()
}

const FLUSHES: usize = 5;

fn advice_holds_on(_: usize, directory: &Path, device: &Path) {
    for wants in [&[][..], &["--wants", "snapshots"]] {
        let place = Place::with(&[]);
        let advise = |to: &str, file: &str| {
            let common = [
                "advise",
                "--live",
                "--size",
                "16M",
                "--in",
                directory.to_str().unwrap(),
                "--to",
                to,
                "-o",
                file,
            ];
            let run = place.run(&[&common[..], wants].concat());
            assert_eq!(run.code, 0, "{run:?}");
        };
        advise("spec", "spec.yaml");
        advise("script", "make");
        let made = Command::new("sh").arg(place.path("make")).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let before = flushes(device);
        let output = start(&place);
        assert_eq!(
            output.matches("wrote 4096/4096").count(),
            FLUSHES,
            "{output}"
        );
        let arrived = flushes(device) - before;
        assert!(
            arrived >= FLUSHES as u64,
            "{}: {arrived} flushes of {FLUSHES}",
            directory.display()
        );
        let xml = place.run(&["generate", "--live", "spec.yaml", "-o", "guest.xml"]);
        assert_eq!(xml.code, 0, "{xml:?}");
        let trace = place.run(&["trace", "--live", "guest.xml"]).stdout;
        assert!(trace.contains("flushed data         kept"), "{trace}");
    }
}

#[test]
fn an_advised_disk_is_made_and_started_and_its_flushes_arrive_on_each_file_system() {
    if needed(installed("qemu-img")).is_none() || needed(installed("qemu-system-x86_64")).is_none()
    {
        return;
    }
    let tried = on_each_file_system(advice_holds_on);
    println!("{tried} file systems, two disks each");
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

/// Disks for `virt-install`, and whether it makes their storage as planned.
const FOR_VIRT_INSTALL: &[(&str, bool)] = &[
    (
        "raw:D/a.raw,size=1G,bus=virtio,iothread=1,queues=2,queue-size=256",
        true,
    ),
    (
        "qcow2:D/b.qcow2,size=1G,preallocation=metadata,serial=S1,wwn=5000c50015ea71ac,bus=virtio-scsi",
        true,
    ),
    (
        "qcow2:D/c.qcow2,size=64M,backing.path=D/base.qcow2,backing.format=qcow2,read-error-policy=report",
        false,
    ),
    (
        "raw:D/d.img,size=64M,preallocation=full,vendor=A&B,product=with space,bus=virtio-scsi",
        false,
    ),
    (
        "raw:D/e.img,size=4M,iotune.total-iops-sec=100,iotune.total-iops-sec-max=200,bus=sata,rotation-rate=1",
        false,
    ),
];

#[test]
fn virt_install_makes_the_planned_disks_of_its_options() {
    let programs = installed("virt-install").and_then(|()| installed("qemu-img"));
    if needed(programs).is_none() {
        return;
    }
    let place = Place::with(&[]);
    let folder = place
        .path("")
        .to_str()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    let base = format!("{folder}/base.qcow2");
    run("qemu-img", &["create", "-qf", "qcow2", &base, "64M"]).unwrap();
    for (disk, is_made_by_it) in FOR_VIRT_INSTALL {
        let disk = disk.replace("D/", &format!("{folder}/"));
        let generate = |to: &str| place.run(&["generate", "--disk", &disk, "--to", to]);
        let options = generate("virt-install");
        assert_eq!(
            options.stdout.contains("size="),
            *is_made_by_it,
            "{}",
            options.stdout
        );
        assert_eq!(
            options.stderr.contains("make it first"),
            !is_made_by_it,
            "{}",
            options.stderr
        );
        if !is_made_by_it {
            place.write("create.sh", generate("script").stdout.as_bytes());
            run("sh", &[&format!("{folder}/create.sh")]).unwrap();
        }
        let command = format!(
            "virt-install --connect test:///default --name x --memory 1024 --osinfo generic --import --network none \
             --print-xml {}",
            options.stdout.replace('\n', " ")
        );
        let made = run("sh", &["-c", &command]).unwrap();
        let written = generate("libvirt-xml").stdout;
        let (made, written) = (said(&made), said(&written));
        assert!(written.len() > 5, "{written:?}");
        let missing: Vec<_> = written.iter().filter(|it| !made.contains(it)).collect();
        assert_eq!(missing, Vec::<&String>::new(), "{disk}: {made:#?}");
    }
}

/// What the disks, their SCSI controllers and the iothreads of a guest say.
fn said(xml: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(xml).unwrap();
    let is_asked = |it: &roxmltree::Node<'_, '_>| match it.tag_name().name() {
        "disk" | "iothreads" => true,
        "controller" => it.attribute("type") == Some("scsi"),
        _ => false,
    };
    let mut said = Vec::new();
    for element in document.descendants().filter(is_asked) {
        for it in element.descendants().filter(|it| it.is_element()) {
            let parents = it.ancestors().map(|it| it.tag_name().name());
            let path = parents
                .take_while(|it| *it != "devices")
                .collect::<Vec<_>>()
                .join(" in ");
            let text = it.text().unwrap_or_default().trim();
            said.push(format!("{path} {text}"));
            said.extend(
                it.attributes()
                    .map(|attribute| format!("{path} {}={}", attribute.name(), attribute.value())),
            );
        }
    }
    said
}
