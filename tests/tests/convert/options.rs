//! Every option and sub-option that the four QEMUs document or introspect, planted into a small guest.

use super::conversion::{Target, convert, is_lost, report};

/// What the QEMUs have: `option NAME SUB…`, `machine KEY:TYPE…`, `device DRIVER KEY:TYPE…`, `blockdev DRIVER KEY:TYPE…`.
const OPTIONS: &str = include_str!("options.txt");

const IMAGE: &str =
    "-blockdev driver=file,node-name=f,filename=/srv/a.img -blockdev driver=raw,node-name=d,file=f";

const DISK: &str = "-device virtio-blk-pci,drive=d,id=vda";

/// Options that change nothing here: libvirt writes the first for every guest, and QEMU ignores the second for nodes of
/// `-blockdev`.
const ALWAYS_SO: &[&str] = &["nodefaults", "snapshot"];

/// Members of nodes that follow from the image: libvirt writes them for every node, or for every node of the disk.
const OF_THE_IMAGE: &[&str] = &[
    "auto-read-only",
    "cache.direct",
    "cache.no-flush",
    "discard",
    "read-only",
];

/// Drivers of nodes whose image is not theirs: filters, and protocols below a format.
fn follows_the_image(driver: &str, key: &str) -> bool {
    let is_format = FORMATS.contains(&driver);
    OF_THE_IMAGE.contains(&key) && (!is_format || key == "auto-read-only")
        // Said by the kind of disk, and planted as they are already.
        || (driver == "vvfat" && key == "floppy")
        || (is_format && key == "file")
        // On the format node alone they change nothing, as was measured.
        || (is_format && matches!(key, "cache.direct" | "discard"))
        || (driver == "nfs" && key == "server.type")
}

const FORMATS: &[&str] = &[
    "raw",
    "qcow2",
    "qcow",
    "luks",
    "vmdk",
    "vdi",
    "vhdx",
    "vpc",
    "qed",
    "parallels",
    "bochs",
    "cloop",
    "dmg",
];

/// Options that are planted with their own sub-options, by driver.
const BY_DRIVER: &[&str] = &["blockdev", "device", "drive", "object"];

/// What no spec has, by the beginning of its name.
const OF_NO_SPEC: &[&str] = &[
    "-object main-loop",
    "-object throttle-group",
    "-device am53c974",
    "-device dc390",
    "-device ich9-",
    "-device lsi53c895a",
    "-device megasas",
    "-device mptsas1068",
    "-device nec-usb-xhci",
    "-device nvme-ns",
    "-device pvscsi",
    "-device qemu-xhci",
    "-device usb-ehci",
    "-device virtio-scsi",
];

struct Plants {
    cases: usize,
    lost: Vec<String>,
}

impl Plants {
    fn plant(&mut self, before: &str, after: &[String], owners: &[String]) {
        for target in [Target::LibvirtXml, Target::Spec] {
            // A spec lists neither controllers nor throttle groups, which is said once for all of them.
            if target == Target::Spec
                && owners
                    .iter()
                    .any(|owner| OF_NO_SPEC.iter().any(|kind| owner.starts_with(kind)))
            {
                continue;
            }
            self.cases += 1;
            let base = convert(before, target);
            let is_lost = after
                .iter()
                .all(|after| is_lost(&base, &convert(after, target), owners));
            if is_lost {
                self.lost.push(format!("{target:?}: {}", after[0]));
            }
        }
    }
}

fn line(rest: &str) -> String {
    format!("qemu-system-x86_64 -machine q35 -m 1G {rest}")
}

/// Values of a type.
fn values(key: &str, kind: &str) -> Vec<String> {
    let words: &[&str] = match kind {
        _ if matches!(key, "rerror" | "werror") => &["stop"],
        _ if key == "bios-chs-trans" => &["lba"],
        "n" => &["3", "64", "1"],
        "s" => &["4096", "65536"],
        "b" => &["on", "off"],
        "o" => &["off", "on"],
        "node" => &["f"],
        "t" => &["x1"],
        word => &[&word[1..]],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A `-device` in a guest that it fits into.
fn with_device(driver: &str, more: &str) -> String {
    let device = match driver {
        "virtio-blk" | "ide-hd" | "ide-cd" | "ide-drive" => {
            format!("-device {driver},drive=d{more}")
        }
        "nvme" => format!("-device nvme,serial=x,drive=d{more}"),
        "nvme-ns" => format!("-device nvme,id=n0,serial=x -device nvme-ns,bus=n0,drive=d{more}"),
        "usb-storage" => format!("-device qemu-xhci,id=usb -device usb-storage,drive=d{more}"),
        "usb-bot" | "usb-uas" => format!(
            "-device qemu-xhci,id=usb -device {driver},id=b0{more} -device scsi-cd,bus=b0.0,drive=d"
        ),
        "floppy" => format!("-device isa-fdc,id=fdc0 -device floppy,drive=d{more}"),
        _ if driver.starts_with("virtio-blk") => format!("-device {driver},drive=d{more}"),
        _ if driver.starts_with("vhost-user-blk") => format!(
            "-chardev socket,id=c0,path=/run/a.sock -device {driver},chardev=c0{more} {DISK}"
        ),
        _ if driver.starts_with("scsi-") => {
            format!("-device virtio-scsi-pci,id=scsi0 -device {driver},bus=scsi0.0,drive=d{more}")
        }
        _ => format!(
            "{DISK} -device {driver}{}{more}",
            if more.contains(",id=") { "" } else { ",id=x0" }
        ),
    };
    line(&format!("{IMAGE} {device}"))
}

/// A node in a disk that it fits into.
fn with_node(driver: &str, more: &str) -> String {
    let own = match driver {
        "file" | "host_device" | "host_cdrom" => "filename=/srv/a.img",
        "nbd" => "server.type=inet,server.host=h,server.port=10809",
        "rbd" => "pool=p,image=i",
        "nvme" => "device=0000:01:00.0,namespace=1",
        "iscsi" => "transport=tcp,portal=h,target=iqn.x",
        "ssh" => "server.host=h,server.port=22,path=/a",
        "nfs" => "server.host=h,server.type=inet,path=/a",
        "http" | "https" | "ftp" | "ftps" => {
            return line(&format!(
                "-blockdev driver={driver},node-name=f,url={driver}://h/a{more} -blockdev driver=raw,node-name=d,file=f {DISK}"
            ));
        }
        "gluster" => "volume=v,path=a,server.0.type=inet,server.0.host=h,server.0.port=1",
        "vvfat" => "dir=/srv/a",
        _ if FORMATS.contains(&driver) => {
            let key = if driver == "luks" {
                ",key-secret=k0"
            } else {
                ""
            };
            return line(&format!(
                "-object secret,id=k0,file=/srv/key -blockdev driver=file,node-name=f,filename=/srv/a.img -blockdev driver={driver},node-name=d,file=f{key}{more} {DISK}"
            ));
        }
        "throttle" => {
            return line(&format!(
                "-object throttle-group,id=g0,x-iops-total=5 {IMAGE} -blockdev driver=throttle,node-name=t,throttle-group=g0,file=d{more} -device virtio-blk-pci,drive=t,id=vda"
            ));
        }
        "copy-on-read" => {
            return line(&format!(
                "{IMAGE} -blockdev driver=copy-on-read,node-name=t,file=d{more} -device virtio-blk-pci,drive=t,id=vda"
            ));
        }
        _ => "",
    };
    let comma = if own.is_empty() { "" } else { "," };
    line(&format!(
        "-blockdev driver={driver},node-name=f{comma}{own}{more} -blockdev driver=raw,node-name=d,file=f {DISK}"
    ))
}

#[test]
fn every_option_of_the_four_qemus_is_carried_named_or_refused() {
    let guest = line(&format!("{IMAGE} {DISK}"));
    let mut plants = Plants {
        cases: 0,
        lost: Vec::new(),
    };
    for row in OPTIONS.lines().filter(|row| !row.starts_with('#')) {
        let mut words = row.split(' ');
        let (kind, rest): (_, Vec<&str>) = (words.next().unwrap(), words.collect());
        match kind {
            "option" => {
                let (name, subs) = rest.split_first().unwrap();
                if BY_DRIVER.contains(name) || ALWAYS_SO.contains(name) {
                    continue;
                }
                let owner = format!("-{name}");
                let value = match *name {
                    "smp" => " 3",
                    _ if subs.is_empty() => "",
                    _ => " x1",
                };
                plants.plant(
                    &guest,
                    &[format!("{guest} -{name}{value}")],
                    std::slice::from_ref(&owner),
                );
                for sub in subs.iter().filter(|sub| **sub != "=") {
                    let own = format!("-{name} {sub}");
                    let after =
                        ["7", "on", "x1"].map(|value| format!("{guest} -{name} {sub}={value}"));
                    plants.plant(&guest, &after, &[owner.clone(), own]);
                }
            }
            "drivers" => {
                for driver in rest {
                    plants.plant(
                        &guest,
                        &[format!("{guest} -device {driver}")],
                        &[format!("-device {driver}")],
                    );
                }
            }
            "machine" | "object" | "device" | "blockdev" => {
                let (owner, keys) = if kind == "machine" {
                    ("", &rest[..])
                } else {
                    (rest[0], &rest[1..])
                };
                for key in keys {
                    let (key, value_kind) = key.split_once(':').unwrap();
                    // A list, of which one word says nothing.
                    let is_list = key == "iothread-vq-mapping";
                    if is_list || (kind == "blockdev" && follows_the_image(owner, key)) {
                        continue;
                    }
                    let with = |more: &str| match kind {
                        "machine" => format!("{guest} -machine q35{more}"),
                        "object" => format!("{guest} -object {owner},id=o0{more}"),
                        "device" => with_device(owner, more),
                        _ => with_node(owner, more),
                    };
                    let after: Vec<String> = values(key, value_kind)
                        .iter()
                        .map(|value| with(&format!(",{key}={value}")))
                        .collect();
                    let owners = [
                        format!("-{kind} {owner}"),
                        format!("-{kind} {key}"),
                        format!("-{kind} {owner}.{key}"),
                    ];
                    plants.plant(&with(""), &after, &owners);
                }
            }
            _ => panic!("unknown row: {row}"),
        }
    }
    assert!(plants.cases > 5000, "only {} cases", plants.cases);
    report("QEMU's options", plants.cases, &plants.lost);
}
