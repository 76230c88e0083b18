//! ACPI in generated guests, booted: a disk that is attached while the guest runs takes none away.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rayon::prelude::*;
use serde_json::{Value, json};
use vmdisk_qmp::{Launch, QemuProcess};
use vmdisk_tests::{LibvirtBuild, guest, libvirts, real, run};

use super::{generate, installed};

/// The features that are written into a PC.
const FEATURES: &str = "  <features>\n    <acpi/>\n  </features>\n";

/// Longest wait for a step of the guest, on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// The guest's first program. It names its disks, waits for another one, names them again, and powers off.
const INIT: &str = "mount -t proc none /proc; mount -t sysfs none /sys; \
    while read -r module; do insmod /modules/$module.ko; done </modules/order; \
    until [ -d /sys/block/vda ]; do sleep 0.1; done; echo BEFORE $(ls /sys/block); tries=0; \
    while [ -d /sys/block/vda -a ! -d /sys/block/vdb -a $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done; \
    sleep 1; echo AFTER $(ls /sys/block) END; poweroff -f";

/// A generated guest with one disk, emulated so that it runs anywhere.
fn generated(image: &Path, machine: &str) -> String {
    let spec = format!(
        "version: 1\nguest: {{machine: {machine}, memory: 256M}}\ndisks:\n- raw: {{path: {}}}\n",
        image.display()
    );
    let xml = generate(&spec, &installed(), &[]).unwrap();
    let xml = xml.replace("type='kvm'", "type='qemu'");
    xml.replace("'host-passthrough'", "'maximum'")
}

/// The words of the command lines with which a libvirt would start guests.
pub(super) fn command_lines(libvirt: &LibvirtBuild, guests: &[String]) -> Vec<Vec<String>> {
    let session = libvirt.session();
    let mut commands = String::new();
    for (number, xml) in guests.iter().enumerate() {
        let file = session.folder().join(format!("{number}.xml"));
        std::fs::write(&file, xml).unwrap();
        let file = file.display();
        writeln!(commands, "domxml-to-native qemu-argv --xml {file}").unwrap();
    }
    // One driver for all: it takes seconds to start.
    let said = session.say(&commands).expect("virsh can be started");
    let lines = said.lines().filter(|line| line.contains("-blockdev"));
    let words = lines.map(|line| {
        // The environment comes first.
        let mut words = shlex::split(line).unwrap().into_iter();
        words.find(|word| word.starts_with('/') && word.contains("qemu-system"));
        words.collect()
    });
    let words: Vec<Vec<String>> = words.collect();
    assert_eq!(words.len(), guests.len(), "{said}");
    words
}

fn is_without_acpi(words: &[String]) -> bool {
    words
        .iter()
        .any(|word| word == "-no-acpi" || word.contains("acpi=off"))
}

/// QEMU with the words that libvirt would start it with, and without the files of its secret and monitor.
pub(super) fn as_launched(words: &[String]) -> Launch {
    let mut launch = Launch::running(super::qemu::PROGRAM);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let is_option = ["-object", "-chardev", "-mon"].contains(&word.as_str());
        let Some(value) = words.as_slice().first().filter(|_| is_option) else {
            launch = launch.arg(word);
            continue;
        };
        words.next();
        if !value.contains("masterKey0") && !value.contains("charmonitor") {
            launch = launch.args([word, value]);
        }
    }
    launch
}

/// Starts QEMU as libvirt would, with a kernel in place of what is on the disk.
fn boot(words: &[String], console: &Path) -> QemuProcess {
    let (kernel, initramfs) = guest().expect("the test looked");
    let append = format!(
        "console=ttyS0 quiet panic=-1 loglevel=3 no_timer_check rdinit=/bin/sh -- -c \"{INIT}\""
    );
    as_launched(words)
        .arg("-kernel")
        .arg(kernel)
        .arg("-initrd")
        .arg(initramfs)
        .args(["-append", &append])
        .args(["-serial", &format!("file:{}", console.display())])
        .start()
        .unwrap()
}

/// Waits for a line of the guest, and returns the disks that it names.
fn disks(console: &Path, word: &str) -> Vec<String> {
    let began = Instant::now();
    loop {
        let said = std::fs::read(console).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let mut lines = said.lines().filter_map(|line| line.split_once(word));
        if let Some((_, names)) = lines.find(|_| said.ends_with('\n')) {
            let is_disk = |name: &&str| name.starts_with("vd");
            return names
                .split_whitespace()
                .filter(is_disk)
                .map(str::to_owned)
                .collect();
        }
        assert!(
            began.elapsed() < PATIENCE,
            "no {word} from the guest: {said}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The bus for another device: the last root port of q35, which libvirt keeps free, or the bus of a pc.
fn free_bus(words: &[String]) -> String {
    let devices = words
        .iter()
        .filter_map(|word| serde_json::from_str::<Value>(word).ok());
    let mut ports = devices.filter(|device| device["driver"] == "pcie-root-port");
    let last = ports
        .next_back()
        .map(|port| port["id"].as_str().unwrap().to_owned());
    last.unwrap_or_else(|| "pci.0".to_owned())
}

/// Attaches a second disk.
fn attach(qemu: &mut QemuProcess, image: &Path, bus: &str) -> Result<Value, String> {
    let node = json!({"driver": "file", "filename": image, "node-name": "second"});
    qemu.ask("blockdev-add", node).unwrap();
    let device = json!({"driver": "virtio-blk-pci", "drive": "second", "bus": bus, "id": "vdb"});
    qemu.ask("device_add", device)
        .map_err(|error| error.to_string())
}

/// True if QEMU says that the guest powered off.
fn powers_off(qemu: &mut QemuProcess, limit: Duration) -> bool {
    let began = Instant::now();
    while let Some(left) = limit.checked_sub(began.elapsed()) {
        match qemu.next_event(left).unwrap() {
            Some(event) if event.name == "SHUTDOWN" => return true,
            Some(_) => {}
            None => return false,
        }
    }
    false
}

/// True if the linter reports the missing element.
fn has_finding(xml: &str) -> bool {
    let found = run(crate::VMDISK, &["lint", "-", "--format", "json"], xml);
    found.stdout.contains("acpi-missing")
}

#[test]
fn a_generated_guest_keeps_its_disks_when_one_is_attached_and_without_acpi_it_does_not() {
    let test = "ACPI of generated guests";
    let libvirt = LibvirtBuild::installed();
    let is_there = guest().is_some() && libvirt.is_some();
    if !real(
        is_there,
        test,
        "a guest (cargo xtask guest), virsh and QEMU",
    ) {
        return;
    }
    let libvirt = libvirt.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    for machine in ["q35", "pc"] {
        for has_acpi in [true, false] {
            let place = folder.path().join(format!("{machine}-{has_acpi}"));
            std::fs::create_dir(&place).unwrap();
            let xml = generated(&place.join("a.img"), machine);
            assert!(xml.contains(FEATURES), "{xml}");
            let xml = if has_acpi {
                xml
            } else {
                xml.replace(FEATURES, "")
            };
            cases.push((machine, has_acpi, place, xml));
        }
    }
    let guests: Vec<String> = cases.iter().map(|(.., xml)| xml.clone()).collect();
    let lines = command_lines(&libvirt, &guests);
    cases
        .par_iter()
        .zip(&lines)
        .for_each(|((machine, has_acpi, place, xml), words)| {
            assert_eq!(has_finding(xml), !has_acpi, "{xml}");
            assert_eq!(is_without_acpi(words), !has_acpi, "{words:?}");
            check_boot(place, machine, *has_acpi, words);
        });
}

/// Boots a guest, attaches a disk, and lets it power off. With ACPI all of this works, and without it not.
fn check_boot(folder: &Path, machine: &str, has_acpi: bool, words: &[String]) {
    let name = format!("{machine}, {has_acpi}");
    for image in ["a.img", "b.img"] {
        let image = std::fs::File::create(folder.join(image)).unwrap();
        image.set_len(16 << 20).unwrap();
    }
    let console = folder.join("console");
    let mut qemu = boot(words, &console);
    qemu.ask("cont", json!({})).unwrap();
    assert_eq!(disks(&console, "BEFORE "), ["vda"], "{name}");
    let attached = attach(&mut qemu, &folder.join("b.img"), &free_bus(words));
    let is_refused = machine == "pc" && !has_acpi;
    assert_eq!(attached.is_err(), is_refused, "{name}: {attached:?}");
    let after: &[&str] = match (machine, has_acpi) {
        (_, true) => &["vda", "vdb"],
        ("pc", false) => &["vda"],
        _ => &[],
    };
    assert_eq!(disks(&console, "AFTER "), after, "{name}");
    let is_off = has_acpi || machine == "q35";
    let limit = if is_off {
        PATIENCE
    } else {
        Duration::from_secs(3)
    };
    assert_eq!(powers_off(&mut qemu, limit), is_off, "{name}");
}

#[test]
fn each_libvirt_starts_a_pc_without_acpi_unless_the_element_is_there() {
    for libvirt in libvirts("ACPI of libvirt's command lines") {
        let whole = generated(Path::new("/srv/a.img"), "pc");
        let without = whole.replace(FEATURES, "");
        let lines = command_lines(&libvirt, &[whole, without]);
        let found: Vec<bool> = lines.iter().map(|words| is_without_acpi(words)).collect();
        assert_eq!(found, [false, true], "{lines:?}");
    }
}
