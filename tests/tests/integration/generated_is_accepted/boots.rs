//! Generated guests boot, and see each disk with the size, serial number and sector size of the spec.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rayon::prelude::*;
use serde_json::json;
use vmdisk::model::Protocol;
use vmdisk_bench_runner::guest::Archive;
use vmdisk_qmp::Launch;
use vmdisk_tests::{LibvirtBuild, guest, has_program, real, repository, run};

use super::acpi::{PATIENCE, as_launched, command_lines};
use super::{generate, installed};

/// A disk of a spec: its bus, and the size of its sectors.
type Asked = (&'static str, u32);

const Q35: [Asked; 6] = [
    ("virtio", 512),
    ("virtio", 4096),
    ("virtio-scsi", 4096),
    ("nvme", 4096),
    ("sata", 512),
    ("usb", 512),
];
const PC: [Asked; 4] = [
    ("ide", 512),
    ("virtio", 512),
    ("virtio-scsi", 512),
    ("usb", 512),
];
const VIRT: [Asked; 5] = [
    ("virtio", 512),
    ("virtio", 4096),
    ("virtio-scsi", 4096),
    ("usb", 512),
    ("nvme", 4096),
];

/// The smallest disk. Each further one has a MiB more.
const MIB: u64 = 96;

fn image(folder: &Path, nth: usize) -> PathBuf {
    folder.join(format!("{nth}.img"))
}

/// Makes the images of disks, and writes their spec.
fn spec(folder: &Path, guest: &str, disks: &[Asked]) -> String {
    let mut text = format!("version: 1\nguest: {{type: qemu, {guest}}}\ndisks:\n");
    for (nth, (bus, sector)) in disks.iter().enumerate() {
        let image = image(folder, nth);
        let file = fs::File::create(&image).unwrap();
        file.set_len((MIB + nth as u64) << 20).unwrap();
        let image = image.display();
        text += &format!("- {{raw: {{path: {image}}}, bus: {bus}, serial: {bus}-{nth}");
        text += &match sector {
            512 => "}\n".to_owned(),
            _ => format!(", logical-block-size: {sector}}}\n"),
        };
    }
    text
}

/// The lines in which the guest is to name its disks.
fn expected(disks: &[Asked]) -> Vec<String> {
    let line = |(nth, (bus, sector)): (usize, &Asked)| {
        format!("{} {sector} {bus}-{nth}", (MIB + nth as u64) << 11)
    };
    let mut lines: Vec<String> = disks.iter().enumerate().map(line).collect();
    lines.sort();
    lines
}

/// An initramfs whose program `/look` waits for disks and names each with its size in 512-byte units, the size of its
/// sectors, and the serial number, which each kind of disk has in another place.
fn initramfs(of: &Path, count: usize) -> Vec<u8> {
    let script = format!(
        "#!/bin/sh\nmount -t proc none /proc; mount -t sysfs none /sys\n\
         while read -r module; do insmod /modules/$module.ko; done </modules/all\n\
         tries=0; set -- /sys/block/*\n\
         while [ $# -lt {count} -a $tries -lt 200 ]; do sleep 0.1; tries=$((tries + 1)); set -- /sys/block/*; done\n\
         for disk; do echo DISK $(cat $disk/size) $(cat $disk/queue/logical_block_size) \
         $(cat $disk/serial $disk/device/serial $disk/device/../../../../serial 2>/dev/null || \
         tr -cd a-z0-9- <$disk/device/vpd_pg80); done\necho END; poweroff -f\n"
    );
    let mut archive = Archive::default();
    archive.file("look", script.into_bytes(), true);
    [fs::read(of).unwrap(), archive.bytes()].concat()
}

/// The parameters of a kernel that runs `/look`.
fn parameters(console: &str) -> String {
    format!("console={console} quiet panic=-1 loglevel=3 no_timer_check rdinit=/look")
}

/// A descriptor of UEFI with a name, machines, features and a mode.
type Descriptor = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
);

/// The code of UEFI on a command line, and whether its flash is protected.
fn uefi_of(words: &str) -> (Option<&str>, bool) {
    let code = words
        .split(['"', '=', ',', '\'', ' '])
        .find(|it| it.starts_with("/code/"));
    (code, words.contains("property=secure,value=on"))
}

#[test]
fn a_command_line_has_the_uefi_that_libvirt_chooses() {
    const Q35: &[&str] = &["pc-q35-*"];
    const BOTH: &[&str] = &["pc-i440fx-*", "pc-q35-*"];
    const SECURE: &[&str] = &["requires-smm", "secure-boot"];
    const ENROLLED: &[&str] = &["requires-smm", "secure-boot", "enrolled-keys"];
    let hosts: [&[Descriptor]; 4] = [
        // Debian 12.
        &[
            ("40", Q35, ENROLLED, "split"),
            ("50", Q35, SECURE, "split"),
            ("60", BOTH, &[], "split"),
        ],
        &[("50", Q35, SECURE, "split"), ("60", BOTH, &[], "split")],
        &[
            ("30", BOTH, &["secure-boot", "enrolled-keys"], "split"),
            ("60", BOTH, &[], "split"),
        ],
        &[("30", BOTH, &[], "stateless"), ("60", BOTH, &[], "split")],
    ];
    // The machine's directory of descriptors may not exist: ours is laid over the one above it. If it exists, its own
    // descriptors must not be seen.
    let script = "mount -t overlay -o \"lowerdir=$0/usr/share/qemu:/usr/share/qemu\" none /usr/share/qemu && \
        mount --bind $0/usr/share/qemu/firmware /usr/share/qemu/firmware && \
        for guest in $0/*.xml; do virsh -c \"qemu:///embed?root=$0/libvirt\" domxml-to-native qemu-argv --xml $guest; done";
    let may_mount = Command::new("unshare")
        .args([
            "--mount",
            "mount",
            "-t",
            "overlay",
            "-o",
            "lowerdir=/etc:/usr/share/qemu",
            "none",
            "/mnt",
        ])
        .status()
        .is_ok_and(|status| status.success());
    let is_there = may_mount && LibvirtBuild::installed().is_some();
    if !real(
        is_there,
        "UEFI that libvirt chooses",
        "virsh, QEMU and mounts",
    ) {
        return;
    }
    for descriptors in hosts {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("usr/share/qemu/firmware")).unwrap();
        for (name, machines, features, mode) in descriptors {
            let mut flash = json!({
                "device": "flash",
                "mode": mode,
                "executable": {"filename": format!("/code/{name}"), "format": "raw"},
            });
            if *mode == "split" {
                flash["nvram-template"] =
                    json!({"filename": format!("/vars/{name}"), "format": "raw"});
            }
            let descriptor = json!({
                "description": name,
                "interface-types": ["uefi"],
                "mapping": flash,
                "targets": [{"architecture": "x86_64", "machines": machines}],
                "features": features,
                "tags": [],
            });
            let path = root.join(format!("usr/share/qemu/firmware/{name}.json"));
            fs::write(path, descriptor.to_string()).unwrap();
        }
        let facts = run(
            crate::VMDISK,
            &["facts", "--root", root.to_str().unwrap()],
            "",
        );
        let host = root.join("facts.json");
        fs::write(&host, facts.stdout).unwrap();
        let mut ours = Vec::new();
        for machine in ["pc", "q35"] {
            let spec = format!(
                "version: 1\nguest: {{type: qemu, machine: {machine}, memory: 256M, firmware: efi}}\ndisks:\n- raw: {{path: /srv/a}}\n"
            );
            let of = |to| {
                let facts = ["--facts", host.to_str().unwrap(), "--to", to];
                generate(&spec, &installed(), &facts).unwrap()
            };
            ours.push(of("qemu"));
            fs::write(root.join(format!("{machine}.xml")), of("libvirt-xml")).unwrap();
        }
        let said = Command::new("unshare")
            .args(["--mount", "sh", "-c", script])
            .arg(root)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let theirs = said.lines().filter(|line| line.contains("-blockdev"));
        let theirs: Vec<_> = theirs.map(uefi_of).collect();
        let ours: Vec<_> = ours.iter().map(|line| uefi_of(line)).collect();
        assert!(ours.iter().all(|(code, _)| code.is_some()), "{ours:?}");
        assert_eq!(ours, theirs, "{descriptors:?}: {said}");
    }
}

/// Runs a guest until it has named its disks.
fn disks_of(name: &str, launch: Launch, folder: &Path) -> Vec<String> {
    let console = folder.join("console");
    let began = Instant::now();
    let mut qemu = launch
        .args(["-serial", &format!("file:{}", console.display())])
        .args(["-display", "none", "-no-reboot"])
        .start()
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    // libvirt's guests wait for it.
    qemu.ask("cont", json!({})).unwrap();
    loop {
        let said = fs::read(&console).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).replace('\r', "");
        if said.contains("\nEND\n") {
            let named = said.lines().filter_map(|line| line.strip_prefix("DISK "));
            let mut named: Vec<String> = named.map(|line| line.trim_end().to_owned()).collect();
            named.sort();
            return named;
        }
        assert!(began.elapsed() < PATIENCE, "{name}: {said}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The images of a command line with their places in the boot order.
fn boot_order(line: &str) -> BTreeMap<String, Option<u32>> {
    let document = vmdisk::read(line).unwrap();
    let disks = document.domain().disks.iter();
    disks
        .map(|disk| {
            let Protocol::File { path, .. } = &disk.backend.image().unwrap().protocol else {
                panic!("{line}");
            };
            (path.clone(), disk.frontend.boot_order)
        })
        .collect()
}

#[test]
fn a_command_line_boots_from_the_disk_that_libvirt_boots_from() {
    let Some(libvirt) = LibvirtBuild::installed() else {
        real(false, "boot orders", "virsh and QEMU");
        return;
    };
    // Disks by their names, and the order in which they are tried.
    let specs: [(&str, &[&str], &[&str]); 11] = [
        ("q35", &["bus: virtio", "bus: virtio"], &["0"]),
        ("q35", &["bus: usb", "bus: virtio", "bus: sata"], &["0"]),
        (
            "q35",
            &["bus: sata", "bus: virtio-scsi, target: sda"],
            &["0"],
        ),
        // libvirt has the disks of a bus in the order of their names.
        ("q35", &["target: vdb", "target: vda"], &["1"]),
        ("q35", &["media: cdrom", "bus: sata"], &["1"]),
        ("q35", &["media: cdrom"], &[]),
        ("pc", &["media: floppy"], &[]),
        ("pc", &["media: floppy", "media: cdrom", "bus: ide"], &["2"]),
        ("pc", &["bus: ide", "bus: virtio"], &["0"]),
        ("q35", &["bus: virtio", "bus: virtio, boot: 3"], &["1"]),
        (
            "pc",
            &[
                "bus: ide, boot: 2",
                "media: cdrom, boot: 1",
                "media: floppy, boot: 3",
            ],
            &["1", "0", "2"],
        ),
    ];
    let of = |to: &str, (machine, disks, _): &(&str, &[&str], &[&str])| {
        let mut spec = format!(
            "version: 1\nguest: {{type: qemu, machine: {machine}, memory: 256M}}\ndisks:\n"
        );
        for (nth, disk) in disks.iter().enumerate() {
            spec += &format!("- {{raw: {{path: /srv/{nth}}}, {disk}}}\n");
        }
        let arguments = ["--ignore", "bus-emulated", "--to", to];
        generate(&spec, &installed(), &arguments).unwrap_or_else(|error| panic!("{spec}{error}"))
    };
    let guests: Vec<String> = specs.iter().map(|spec| of("libvirt-xml", spec)).collect();
    let words = command_lines(&libvirt, &guests);
    let order_of = |words: &[String]| {
        let words = words.iter().map(String::as_str);
        boot_order(&shlex::try_join(["qemu-system-x86_64"].into_iter().chain(words)).unwrap())
    };
    for (spec, words) in specs.iter().zip(words) {
        let libvirts = order_of(&words);
        assert_eq!(boot_order(&of("qemu", spec)), libvirts, "{spec:?}");
        let mut tried: Vec<(u32, &str)> = libvirts
            .iter()
            .filter_map(|(path, place)| Some(((*place)?, path.strip_prefix("/srv/")?)))
            .collect();
        tried.sort_unstable();
        let tried: Vec<&str> = tried.into_iter().map(|(_, name)| name).collect();
        assert_eq!(tried, spec.2, "{spec:?}");
    }
    // A place of another device is an order, too.
    let network = "<interface type='user'><boot order='1'/></interface></devices>";
    let guest = guests[0].replace("</devices>", network);
    let words = command_lines(&libvirt, std::slice::from_ref(&guest));
    assert!(
        order_of(&words[0]).values().all(Option::is_none),
        "{words:?}"
    );
    let mut domain = vmdisk::read(&guest).unwrap().domain().clone();
    vmdisk::write::set_for_qemu(&mut domain);
    assert!(domain.boot_devices.is_empty());
}

#[test]
fn a_pc_sees_each_disk_as_its_spec_has_it() {
    boot_pcs(guest(), "cargo xtask guest", |bus| {
        !["sata", "usb"].contains(&bus)
    });
}

#[test]
#[ignore = "a kernel with all drivers takes twice as long"]
fn a_pc_sees_each_disk_also_on_buses_that_a_cloud_has_not() {
    let folder = repository().join("target/guest/x86_64");
    let guest = (folder.join("kernel"), folder.join("initramfs"));
    let is_there = guest.1.is_file();
    boot_pcs(
        is_there.then_some(guest),
        "cargo xtask guest x86_64",
        |_| true,
    );
}

/// Boots PCs that are generated as command lines and as XML, with a disk on each bus that the kernel knows.
fn boot_pcs(guest: Option<(PathBuf, PathBuf)>, made_by: &str, is_known: fn(&str) -> bool) {
    let (Some((kernel, initial)), Some(libvirt)) = (guest, LibvirtBuild::installed()) else {
        let needs = format!("a guest ({made_by}), virsh and QEMU");
        real(false, "disks of guests that boot", &needs);
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut cells = Vec::new();
    let forms: [&[&str]; 2] = [&["qemu", "--qemu-format", "json"], &["libvirt-xml"]];
    for (machine, form) in [("q35", 0), ("q35", 1), ("pc", 0), ("pc", 1)] {
        let name = format!("{machine} {}", forms[form][0]);
        let place = folder.path().join(&name);
        fs::create_dir(&place).unwrap();
        let mut disks = match machine {
            "pc" => PC.to_vec(),
            _ => Q35.to_vec(),
        };
        // The installed libvirt has no such bus.
        disks.retain(|(bus, _)| is_known(bus) && (form == 0 || *bus != "nvme"));
        let spec = spec(&place, &format!("machine: {machine}, memory: 192M"), &disks);
        let arguments = [&["--ignore", "bus-emulated", "--to"], forms[form]].concat();
        let text = generate(&spec, &installed(), &arguments)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let words = match form {
            0 => serde_json::from_str::<Vec<String>>(&text)
                .unwrap()
                .split_off(1),
            _ => command_lines(&libvirt, &[text]).remove(0),
        };
        cells.push(Booted {
            name,
            place,
            words,
            disks: expected(&disks),
        });
    }
    boot_all(&kernel, &initial, &cells);
}

/// A guest by its name: a folder for it, its command line, and the lines in which it is to name its disks.
struct Booted {
    name: String,
    place: PathBuf,
    words: Vec<String>,
    disks: Vec<String>,
}

fn boot_all(kernel: &Path, initial: &Path, guests: &[Booted]) {
    guests.par_iter().for_each(|guest| {
        let archive = guest.place.join("initramfs");
        fs::write(&archive, initramfs(initial, guest.disks.len())).unwrap();
        let launch = as_launched(&guest.words)
            .args(["-append", &parameters("ttyS0"), "-kernel"])
            .args([kernel, Path::new("-initrd"), &archive]);
        let seen = disks_of(&guest.name, launch, &guest.place);
        assert_eq!(seen, guest.disks, "{}", guest.name);
    });
}

/// The specs of the guests in the guide.
fn guests_of_the_guide() -> Vec<String> {
    let guide = fs::read_to_string(repository().join("docs/generate.md")).unwrap();
    let (_, section) = guide.split_once("\n## Three guests\n").unwrap();
    let specs = section.split("<<END\n").skip(1);
    specs
        .map(|rest| rest.split_once("\nEND\n").unwrap().0.to_owned())
        .collect()
}

#[test]
fn each_guest_of_the_guide_boots_with_the_disks_that_are_made_for_it() {
    let programs = ["qemu-img", "xorriso"].map(has_program) == [true; 2];
    let (Some((kernel, initial)), Some(libvirt), true) =
        (guest(), LibvirtBuild::installed(), programs)
    else {
        let needs = "a guest (cargo xtask guest), virsh, QEMU, qemu-img and xorriso";
        real(false, "guests of the guide that boot", needs);
        return;
    };
    const GIB: u64 = 1 << 21;
    let sizes: [&[u64]; 3] = [
        &[20 * GIB, 50 * GIB],
        &[64 * GIB],
        &[20 * GIB, 200 * GIB, GIB],
    ];
    let folder = tempfile::tempdir().unwrap();
    let (mut guests, mut definitions) = (Vec::new(), Vec::new());
    for (nth, (spec, sizes)) in guests_of_the_guide().iter().zip(sizes).enumerate() {
        let place = folder.path().join(nth.to_string());
        fs::create_dir(&place).unwrap();
        for name in ["user-data", "meta-data", "windows.iso", "virtio-win.iso"] {
            fs::write(place.join(name), [0; 4096]).unwrap();
        }
        let base = place.join("debian-12.qcow2");
        let base = ["create", "-q", "-f", "qcow2", base.to_str().unwrap(), "64M"];
        assert_eq!(run("qemu-img", &base, "").code, 0);
        let spec = spec
            .replace("/srv/img", place.to_str().unwrap())
            .replace("guest: {", "guest: {type: qemu, ");
        let made = run(crate::VMDISK, &["apply", "-"], &spec);
        assert_eq!(made.code, 0, "{spec}\n{made:?}");
        definitions.push(generate(&spec, &installed(), &[]).unwrap());
        let mut disks: Vec<String> = sizes.iter().map(|size| format!("{size} 512")).collect();
        disks.sort();
        guests.push(Booted {
            name: format!("guest {nth} of the guide"),
            place,
            words: Vec::new(),
            disks,
        });
    }
    assert_eq!(guests.len(), sizes.len());
    let lines = command_lines(&libvirt, &definitions);
    assert_eq!(lines.len(), guests.len());
    for (guest, words) in guests.iter_mut().zip(lines) {
        guest.words = words;
    }
    boot_all(&kernel, &initial, &guests);
}

/// Makes a disk from which UEFI starts a kernel.
fn bootable(image: &Path, kernel: &Path, initial: &[u8], console: &str) {
    let folder = image.parent().unwrap();
    fs::write(folder.join("initramfs"), initial).unwrap();
    let line = format!(
        "FS0:\r\nkernel.efi initrd=initramfs {}\r\n",
        parameters(console)
    );
    fs::write(folder.join("startup.nsh"), line).unwrap();
    fs::copy(kernel, folder.join("kernel.efi")).unwrap();
    let made = Command::new("mkfs.fat").arg(image).status().unwrap();
    assert!(made.success());
    let copied = Command::new("mcopy")
        .current_dir(folder)
        .arg("-i")
        .arg(image)
        .args(["kernel.efi", "initramfs", "startup.nsh", "::"])
        .status()
        .unwrap();
    assert!(copied.success());
}

/// The facts of a host with the UEFI of an unpacked package. UEFI with the keys of Microsoft starts no kernel of ours, so
/// this host hides it, as an administrator does.
fn facts(root: &Path) -> String {
    let ours = root.join("etc/qemu/firmware");
    fs::create_dir_all(&ours).unwrap();
    for entry in fs::read_dir(root.join("usr/share/qemu/firmware")).unwrap() {
        let name = entry.unwrap().file_name();
        if name.to_string_lossy().contains("secure") {
            fs::write(ours.join(name), "").unwrap();
        }
    }
    let root = root.to_str().unwrap();
    let facts = run(crate::VMDISK, &["facts", "--root", root], "").stdout;
    assert!(facts.contains("\"/usr/share/"), "{facts}");
    facts.replace("\"/usr/share/", &format!("\"{root}/usr/share/"))
}

#[test]
#[ignore = "emulates each instruction set for a minute"]
fn other_machines_boot_from_their_first_disk() {
    for (arch, console) in [("aarch64", "ttyAMA0"), ("riscv64", "ttyS0")] {
        let guest = repository().join("target/guest").join(arch);
        let is_there = guest.join("initramfs").is_file();
        let has_tools = has_program("mkfs.fat") && has_program("mcopy");
        let needs = format!("a guest (cargo xtask guest {arch}), mkfs.fat and mcopy");
        if !real(is_there && has_tools, "other machines that boot", &needs) {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path();
        let host = place.join("facts.json");
        fs::write(&host, facts(&guest.join("qemu/apt/root"))).unwrap();
        let spec = spec(place, &format!("arch: {arch}, memory: 1G"), &VIRT);
        let first = initramfs(&guest.join("initramfs"), VIRT.len());
        bootable(&image(place, 0), &guest.join("kernel"), &first, console);
        let told = run(
            crate::VMDISK,
            &[
                "generate",
                "-",
                "--to",
                "qemu",
                "--qemu-format",
                "json",
                "--target",
                "qemu=10.0",
                "--facts",
                host.to_str().unwrap(),
            ],
            &spec,
        );
        // The hint for the file of the variables is the command that makes it.
        let (_, hint) = told.stderr.split_once("`cp ").expect("UEFI has variables");
        let copy = shlex::split(hint.split('`').next().unwrap()).unwrap();
        assert!(Command::new("cp").args(copy).status().unwrap().success());
        let words: Vec<String> = serde_json::from_str(&told.stdout).unwrap();
        let emulator = guest.join("qemu").join(&words[0]);
        let launch = Launch::running(emulator).args(&words[1..]);
        assert_eq!(disks_of(arch, launch, place), expected(&VIRT), "{arch}");
    }
}
