//! Guests that libvirt takes, each different.

use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};

use crate::element::Element;

/// What decides: the same seed gives the same guests.
pub(crate) struct Dice(TestRng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Dice(TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.0.next_u64() % end as u64) as usize
    }

    pub(crate) fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len())]
    }

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// A guest while it is made.
#[derive(Clone)]
pub(crate) struct Guest {
    pub(crate) domain: Element,
    pub(crate) devices: Element,
}

impl Guest {
    pub(crate) fn write(&self) -> String {
        let mut domain = self.domain.clone();
        domain.children.push(self.devices.clone());
        domain.write()
    }

    /// One of its disks.
    pub(crate) fn disk(&mut self, dice: &mut Dice) -> &mut Element {
        let mut disks: Vec<&mut Element> = self
            .devices
            .children
            .iter_mut()
            .filter(|child| child.name == "disk")
            .collect();
        let nth = dice.below(disks.len());
        disks.swap_remove(nth)
    }

    /// The guest with another name and size, and often with further disks, to which libvirt has no objection.
    pub(crate) fn varied(&self, number: usize, dice: &mut Dice) -> Guest {
        let mut other = self.clone();
        other.domain.child("name").text_is(format!("guest{number}"));
        let memory = other.domain.child("memory");
        memory.text_is(dice.pick(&[64, 128, 256]));
        for _ in 0..dice.below(3) {
            let kind = dice.pick(&["virtio", "virtio-block", "nbd", "rbd", "iscsi"]);
            other.and_another(kind, dice);
        }
        other
    }

    /// Its one disk, which is of this kind.
    pub(crate) fn only(&mut self, kind: &str, dice: &mut Dice) -> &mut Element {
        self.devices.remove("disk");
        self.devices.remove("controller");
        add_disk(self, 0, kind, dice);
        self.disk(dice)
    }

    /// A further disk, of this kind.
    pub(crate) fn and_another(&mut self, kind: &str, dice: &mut Dice) -> &mut Element {
        let disks = self.devices.children.iter();
        let nth = disks.filter(|child| child.name == "disk").count();
        add_disk(self, nth, kind, dice);
        self.devices.children.last_mut().expect("it was just added")
    }

    /// Makes its machine another one.
    pub(crate) fn on(&mut self, machine: &str) -> &mut Self {
        let os = self.domain.child("os");
        os.child("type").set("machine", machine);
        self
    }

    pub(crate) fn is_q35(&self) -> bool {
        self.domain
            .find("os")
            .and_then(|os| os.find("type"))
            .and_then(|machine| machine.get("machine"))
            == Some("q35")
    }
}

/// The kinds of disk that guests are made of.
const KINDS: &[&str] = &[
    "virtio",
    "virtio",
    "virtio",
    "virtio-block",
    "scsi",
    "scsi",
    "lun",
    "sata",
    "sata-cdrom",
    "usb",
    "floppy",
    "nbd",
    "rbd",
    "https-cdrom",
    "iscsi",
    "vhostuser",
    "nvme",
    "dir",
    "ide",
];

/// A guest with one to three disks, to which libvirt has no objection.
pub(crate) fn guest(number: usize, dice: &mut Dice) -> Guest {
    let machine = dice.pick(&["q35", "q35", "pc"]);
    let mut domain = Element::new("domain").with("type", "qemu");
    domain.children = vec![
        Element::new("name").saying(format!("guest{number}")),
        Element::new("memory").with("unit", "MiB").saying(64),
        Element::new("vcpu").saying(dice.pick(&[1, 2, 4])),
        Element::new("os").around(
            Element::new("type")
                .with("arch", "x86_64")
                .with("machine", machine)
                .saying("hvm"),
        ),
    ];
    if dice.once_in(3) {
        domain.child("iothreads").text_is(2);
    }
    let mut devices = Element::new("devices");
    devices
        .children
        .push(Element::new("emulator").saying("/usr/bin/qemu-system-x86_64"));
    let mut guest = Guest { domain, devices };
    for nth in 0..1 + dice.below(3) {
        let kind = dice.pick(KINDS);
        let kind = match kind {
            "ide" if guest.is_q35() => "sata",
            "sata-cdrom" if !guest.is_q35() => "ide-cdrom",
            "https-cdrom" if !guest.is_q35() => "nbd",
            kind => kind,
        };
        add_disk(&mut guest, nth, kind, dice);
    }
    guest
}

impl Element {
    fn text_is(&mut self, text: impl ToString) {
        *self = self.clone().saying(text);
    }
}

fn add_disk(guest: &mut Guest, nth: usize, kind: &str, dice: &mut Dice) {
    let letter = char::from(b'a' + nth as u8);
    let format = dice.pick(&["raw", "qcow2"]);
    let disk = |source_type: &str, device: &str| {
        Element::new("disk")
            .with("type", source_type)
            .with("device", device)
    };
    let driver = |format: &str| {
        Element::new("driver")
            .with("name", "qemu")
            .with("type", format)
    };
    let target = |prefix: &str, bus: &str| {
        Element::new("target")
            .with("dev", format!("{prefix}{letter}"))
            .with("bus", bus)
    };
    let file = || Element::new("source").with("file", format!("/srv/{nth}.img"));
    let block = || Element::new("source").with("dev", format!("/dev/vg0/v{nth}"));
    let network = |protocol: &str, name: &str, port: u16| {
        Element::new("source")
            .with("protocol", protocol)
            .with("name", name)
            .around(
                Element::new("host")
                    .with("name", "store.example")
                    .with("port", port),
            )
    };
    let cached = |element: Element, dice: &mut Dice| match dice.below(3) {
        0 => element.with("cache", dice.pick(&["none", "writeback", "directsync"])),
        _ => element,
    };
    let made = match kind {
        "virtio" => disk("file", "disk")
            .around(cached(driver(format), dice))
            .around(file())
            .around(target("vd", "virtio")),
        "virtio-block" => disk("block", "disk")
            .around(cached(driver("raw"), dice))
            .around(block())
            .around(target("vd", "virtio")),
        "scsi" => {
            ensure_virtio_scsi(guest);
            disk("file", "disk")
                .around(driver(format))
                .around(file())
                .around(target("sd", "scsi"))
        }
        "lun" => {
            ensure_virtio_scsi(guest);
            disk("block", "lun")
                .around(driver("raw"))
                .around(block())
                .around(target("sd", "scsi"))
        }
        "sata" => disk("file", "disk")
            .around(driver(format))
            .around(file())
            .around(target("sd", "sata")),
        "sata-cdrom" => disk("file", "cdrom")
            .around(driver("raw"))
            .around(file())
            .around(target("sd", "sata"))
            .around(Element::new("readonly")),
        "ide" => disk("file", "disk")
            .around(driver(format))
            .around(file())
            .around(target("hd", "ide")),
        "ide-cdrom" => disk("file", "cdrom")
            .around(driver("raw"))
            .around(file())
            .around(target("hd", "ide"))
            .around(Element::new("readonly")),
        "usb" => disk("file", "disk")
            .around(driver(format))
            .around(file())
            .around(target("sd", "usb")),
        "floppy" => disk("file", "floppy")
            .around(driver("raw"))
            .around(file())
            .around(
                Element::new("target")
                    .with("dev", if nth == 0 { "fda" } else { "fdb" })
                    .with("bus", "fdc"),
            ),
        "nbd" => disk("network", "disk")
            .around(driver("raw"))
            .around(network("nbd", &format!("export{nth}"), 10809))
            .around(target("vd", "virtio")),
        "rbd" => disk("network", "disk")
            .around(driver("raw"))
            .around(network("rbd", &format!("pool/image{nth}"), 6789))
            .around(target("vd", "virtio")),
        "https-cdrom" => disk("network", "cdrom")
            .around(driver("raw"))
            .around(network("https", &format!("images/{nth}.iso"), 443))
            .around(target("sd", "sata"))
            .around(Element::new("readonly")),
        "iscsi" => disk("network", "disk")
            .around(driver("raw"))
            .around(network(
                "iscsi",
                &format!("iqn.2013-07.com.example:disks/{nth}"),
                3260,
            ))
            .around(target("vd", "virtio")),
        "vhostuser" => {
            share_memory(guest);
            disk("vhostuser", "disk")
                .with("snapshot", "no")
                .around(driver("raw"))
                .around(
                    Element::new("source")
                        .with("type", "unix")
                        .with("path", format!("/run/{nth}.sock")),
                )
                .around(target("vd", "virtio"))
        }
        "nvme" => disk("nvme", "disk")
            .around(driver("raw"))
            .around(
                Element::new("source")
                    .with("type", "pci")
                    .with("managed", "yes")
                    .with("namespace", 1)
                    .around(
                        Element::new("address")
                            .with("domain", "0x0000")
                            .with("bus", format!("0x{nth:02x}"))
                            .with("slot", "0x07")
                            .with("function", "0x0"),
                    ),
            )
            .around(target("vd", "virtio")),
        "dir" => disk("dir", "disk")
            .around(driver("fat"))
            .around(Element::new("source").with("dir", format!("/srv/{nth}")))
            .around(target("vd", "virtio"))
            .around(Element::new("readonly")),
        other => unreachable!("there is no kind {other}"),
    };
    guest.devices.children.push(made);
}

/// libvirt would choose the emulated LSI controller.
fn ensure_virtio_scsi(guest: &mut Guest) {
    if guest.devices.find("controller").is_none() {
        let controller = Element::new("controller")
            .with("type", "scsi")
            .with("index", 0)
            .with("model", "virtio-scsi");
        guest.devices.children.push(controller);
    }
}

pub(crate) fn share_memory(guest: &mut Guest) {
    let backing = guest.domain.child("memoryBacking");
    backing.child("source").set("type", "memfd");
    backing.child("access").set("mode", "shared");
}
