//! Moves that break one constraint each, for what chance does not break often enough.

use crate::element::Element;
use crate::guest::{Dice, Guest, share_memory};

/// What libvirt says, and a change to a guest it takes after which it says it.
pub(crate) type Break = (&'static str, fn(&mut Guest, &mut Dice));

fn drive(controller: u32, bus: u32, target: u32, unit: usize) -> Element {
    Element::new("address")
        .with("type", "drive")
        .with("controller", controller)
        .with("bus", bus)
        .with("target", target)
        .with("unit", unit)
}

fn scsi_controller(model: &str) -> Element {
    Element::new("controller")
        .with("type", "scsi")
        .with("index", 0)
        .with("model", model)
}

/// Two disks of a kind, in the order of their names.
fn two(guest: &mut Guest, kind: &str, dice: &mut Dice, change: impl Fn(&mut Element)) {
    change(guest.only(kind, dice));
    change(guest.and_another(kind, dice));
}

fn host_device(unit: usize) -> Element {
    let address = Element::new("address")
        .with("bus", 0)
        .with("target", 0)
        .with("unit", 0);
    let adapter = Element::new("adapter").with("name", "scsi_host0");
    Element::new("hostdev")
        .with("mode", "subsystem")
        .with("type", "scsi")
        .around(Element::new("source").around(adapter).around(address))
        .around(drive(0, 0, 0, unit))
}

fn throttle_group(name: Option<&str>) -> Element {
    let group = Element::new("throttlegroup").around(Element::new("total_iops_sec").saying(1000));
    match name {
        Some(name) => group.around(Element::new("group_name").saying(name)),
        None => group,
    }
}

/// A data store with these children.
fn data_store(format: &str, children: impl IntoIterator<Item = Element>) -> Element {
    let mut source = Element::new("source").with("file", "/srv/data.raw");
    source.children.extend(children);
    Element::new("dataStore")
        .with("type", "file")
        .around(Element::new("format").with("type", format))
        .around(source)
}

fn daemon(guest: &mut Guest, dice: &mut Dice, change: impl FnOnce(&mut Element)) {
    change(guest.only("vhostuser", dice));
}

/// A source on a server.
fn served(protocol: &str, name: &str) -> Element {
    Element::new("source")
        .with("protocol", protocol)
        .with("name", name)
}

/// Gives the guest one disk with that source.
fn from_server(guest: &mut Guest, dice: &mut Dice, source: Element) {
    let disk = guest.only("nbd", dice);
    disk.remove("source");
    disk.children.push(source);
}

fn host() -> Element {
    Element::new("host").with("name", "store.example")
}

fn encryption(format: &str) -> Element {
    Element::new("encryption").with("format", format).around(
        Element::new("secret")
            .with("type", "passphrase")
            .with("uuid", "0a81f5b2-8403-7b23-c8d6-21ccc2f80d6f"),
    )
}

fn auth() -> Element {
    Element::new("auth").with("username", "fred").around(
        Element::new("secret")
            .with("type", "iscsi")
            .with("usage", "key"),
    )
}

/// A guest with a cookie for its server.
fn with_cookie(guest: &mut Guest, dice: &mut Dice, name: Option<&str>, value: &str) {
    let mut cookie = Element::new("cookie").saying(value);
    if let Some(name) = name {
        cookie.set("name", name);
    }
    let cookies = Element::new("cookies").around(cookie);
    from_server(
        guest,
        dice,
        served("https", "a.img").around(host()).around(cookies),
    );
}

/// A guest that logs in to a server.
fn logging_in(
    guest: &mut Guest,
    dice: &mut Dice,
    protocol: &str,
    change: impl FnOnce(&mut Element),
) {
    let mut auth = auth();
    change(&mut auth);
    let source = served(protocol, "iqn.2013-07.com.example:a").around(host());
    from_server(guest, dice, source.around(auth));
}

/// A guest with an iothread of which this is said.
fn pool(guest: &mut Guest, attributes: &[(&'static str, &str)]) {
    let mut thread = Element::new("iothread").with("id", 1);
    for (name, value) in attributes {
        thread.set(name, value);
    }
    guest.domain.remove("iothreads");
    guest
        .domain
        .children
        .push(Element::new("iothreadids").around(thread));
}

fn iothread_rows(rows: &[(u32, &[u32])]) -> Element {
    let mut mapping = Element::new("iothreads");
    for (id, queues) in rows {
        let mut row = Element::new("iothread").with("id", id);
        row.children.extend(
            queues
                .iter()
                .map(|queue| Element::new("queue").with("id", queue)),
        );
        mapping.children.push(row);
    }
    mapping
}

/// A guest with two iothreads and a disk with two queues that are mapped so.
fn mapped(guest: &mut Guest, dice: &mut Dice, rows: &[(u32, &[u32])]) {
    guest.domain.remove("iothreads");
    guest
        .domain
        .children
        .push(Element::new("iothreads").saying(2));
    let driver = guest.only("virtio", dice).child("driver");
    driver.set("queues", 2);
    driver.children.push(iothread_rows(rows));
}

/// Puts a disk of q35 into a slot of a PCI controller that the guest has.
fn in_slot(guest: &mut Guest, dice: &mut Dice, model: &str, slot: usize) {
    let controller = Element::new("controller")
        .with("type", "pci")
        .with("index", "1")
        .with("model", model);
    let address = Element::new("address")
        .with("type", "pci")
        .with("domain", "0x0000")
        .with("bus", "0x01")
        .with("slot", format!("{slot:#x}"))
        .with("function", "0x0");
    guest.on("q35").only("virtio", dice).children.push(address);
    guest.devices.children.push(controller);
}

pub(crate) const BREAKS: &[Break] = &[
    ("SCSI controller only supports 1 bus", |guest, dice| {
        let unit = dice.below(6);
        guest.only("scsi", dice).children.push(drive(0, 1, 0, unit));
    }),
    (
        "target must be 0 for controller model 'lsilogic'",
        |guest, dice| {
            let unit = dice.below(6);
            guest.only("scsi", dice).children.push(drive(0, 0, 1, unit));
            guest.devices.remove("controller");
            if dice.once_in(2) {
                guest.devices.children.push(scsi_controller("lsilogic"));
            }
        },
    ),
    ("Only 1 IDE controller is supported", |guest, dice| {
        let by_name = dice.below(2) == 0;
        let name = ["hde", "hdh", "hdz"][dice.below(3)];
        let disk = guest.on("pc").only("ide", dice);
        if by_name {
            disk.child("target").set("dev", name);
        } else {
            disk.children.push(drive(1, 0, 0, 0));
        }
    }),
    (
        "Invalid PCI address …. slot must be <= …",
        |guest, dice| {
            in_slot(guest, dice, "pcie-root-port", 1);
        },
    ),
    (
        "Invalid PCI address …. slot must be >= …",
        |guest, dice| {
            in_slot(guest, dice, "pcie-to-pci-bridge", 0);
        },
    ),
    ("Only PCI domain 0 is available", |guest, dice| {
        let address = Element::new("address")
            .with("type", "pci")
            .with("domain", "0x0001")
            .with("bus", "0x00")
            .with("slot", format!("{:#x}", 5 + dice.below(20)))
            .with("function", "0x0");
        guest.on("pc").only("virtio", dice).children.push(address);
    }),
    ("target must be 0 for ide controller", |guest, dice| {
        guest
            .on("pc")
            .only("ide", dice)
            .children
            .push(drive(0, 0, 1, 0));
    }),
    ("Only 1 fdc controller is supported", |guest, dice| {
        let by_name = dice.below(2) == 0;
        let disk = guest.only("floppy", dice);
        if by_name {
            disk.child("target").set("dev", "fdc");
        } else {
            disk.children.push(drive(1, 0, 0, 0));
        }
    }),
    ("target must be 0 for controller fdc", |guest, dice| {
        guest.only("floppy", dice).children.push(drive(0, 0, 1, 0));
    }),
    ("bus must be 0 for sata controller", |guest, dice| {
        let unit = dice.below(6);
        guest.only("sata", dice).children.push(drive(0, 1, 0, unit));
    }),
    ("target must be 0 for sata controller", |guest, dice| {
        let unit = dice.below(6);
        guest.only("sata", dice).children.push(drive(0, 0, 1, unit));
    }),
    ("Attempted double use of PCI Address …", |guest, dice| {
        if dice.below(2) == 0 {
            let (machine, slot, functions) = [
                ("pc", "0x01", ["0x0", "0x3"]),
                ("q35", "0x1f", ["0x0", "0x2"]),
            ][dice.below(2)];
            let address = Element::new("address")
                .with("type", "pci")
                .with("bus", "0x00")
                .with("slot", slot)
                .with("function", functions[dice.below(2)]);
            let disk = guest.on(machine).only("virtio", dice);
            disk.children.push(address);
            return;
        }
        let slot = format!("{:#x}", 5 + dice.below(20));
        two(guest.on("pc"), "virtio", dice, |disk| {
            let address = Element::new("address")
                .with("type", "pci")
                .with("bus", "0x00")
                .with("slot", &slot)
                .with("function", "0x0");
            disk.children.push(address);
        });
    }),
    ("Duplicate USB address bus … port …", |guest, dice| {
        let port = 1 + dice.below(2);
        two(guest, "usb", dice, |disk| {
            let address = Element::new("address").with("type", "usb").with("bus", 0);
            disk.children.push(address.with("port", port));
        });
    }),
    ("non unique alias detected: …", |guest, dice| {
        let alias = format!("ua-disk{}", dice.below(100));
        two(guest, "virtio", dice, |disk| {
            disk.children
                .push(Element::new("alias").with("name", &alias));
        });
    }),
    (
        "disk type '…' requires cache mode '…' or '…'",
        |guest, dice| {
            share_memory(guest);
            let cache = dice.pick(&["", "writeback", "unsafe", "writethrough"]);
            let disk = guest.only("virtio", dice);
            disk.set("type", "vhostvdpa");
            disk.child("driver").set("type", "raw");
            disk.child("driver").unset("cache");
            if !cache.is_empty() {
                disk.child("driver").set("cache", cache);
            }
            disk.remove("source");
            disk.children
                .push(Element::new("source").with("dev", "/dev/vhost-vdpa-0"));
        },
    ),
    ("missing group name", |guest, _| {
        let groups = Element::new("throttlegroups").around(throttle_group(None));
        guest.domain.children.push(groups);
    }),
    ("duplicate group name '…' found", |guest, dice| {
        let name = format!("group{}", dice.below(100));
        let groups = Element::new("throttlegroups")
            .around(throttle_group(Some(&name)))
            .around(throttle_group(Some(&name)));
        guest.domain.children.push(groups);
    }),
    (
        "The <source> of <dataStore> can't have another nested <dataStore> or <backingStore> element",
        |guest, dice| {
            let disk = guest.only("virtio", dice);
            disk.child("driver").set("type", "qcow2");
            let inner = data_store("raw", []);
            disk.child("source")
                .children
                .push(data_store("raw", [inner]));
        },
    ),
    (
        "<dataStore> feature available only with qcow2 images",
        |guest, dice| {
            let disk = guest.only("virtio", dice);
            disk.child("driver").set("type", "raw");
            disk.child("source").children.push(data_store("raw", []));
        },
    ),
    (
        "only 'raw' images supported as <dataStore>",
        |guest, dice| {
            let disk = guest.only("virtio", dice);
            disk.child("driver").set("type", "qcow2");
            disk.child("source").children.push(data_store("qcow2", []));
        },
    ),
    ("slices are not supported for <dataStore>", |guest, dice| {
        let disk = guest.only("virtio", dice);
        disk.child("driver").set("type", "qcow2");
        let slice = Element::new("slice")
            .with("type", "storage")
            .with("offset", 0)
            .with("size", 512);
        let slices = Element::new("slices").around(slice);
        disk.child("source")
            .children
            .push(data_store("raw", [slices]));
    }),
    ("missing data file store format", |guest, dice| {
        let disk = guest.only("virtio", dice);
        disk.child("driver").set("type", "qcow2");
        let mut store = data_store("raw", []);
        store.remove("format");
        disk.child("source").children.push(store);
    }),
    ("missing disk data file store source", |guest, dice| {
        let disk = guest.only("virtio", dice);
        disk.child("driver").set("type", "qcow2");
        let mut store = data_store("raw", []);
        store.remove("source");
        disk.child("source").children.push(store);
    }),
    (
        "element '…' requires either 'keyfile' or 'agentsock' attribute",
        |guest, dice| {
            let identity = Element::new("identity").with("username", "fred");
            let source = served("ssh", "a").around(host()).around(identity);
            from_server(guest, dice, source);
        },
    ),
    ("unknown auth type '…'", |guest, dice| {
        let source = served("iscsi", "iqn.2013-07.com.example:a").around(host());
        from_server(guest, dice, source.around(auth().with("type", "kerberos")));
    }),
    ("invalid secret uuid '…'", |guest, dice| {
        let mut auth = auth();
        auth.child("secret").unset("usage");
        auth.child("secret").set(
            "uuid",
            dice.pick(&["key", "0a81f5b2", "0a81f5b2-8403-7b23-c8d6-21ccc2f80d6g"]),
        );
        let source = served("iscsi", "iqn.2013-07.com.example:a").around(host());
        from_server(guest, dice, source.around(auth));
    }),
    (
        "backingStore is not supported with vhostuser disk",
        |guest, dice| {
            daemon(guest, dice, |disk| {
                let store = Element::new("backingStore")
                    .with("type", "file")
                    .around(Element::new("format").with("type", "raw"))
                    .around(Element::new("source").with("file", "/srv/base.img"));
                disk.children.push(store);
            });
        },
    ),
    (
        "encryption is not supported with vhostuser disk",
        |guest, dice| {
            let is_old = dice.once_in(2);
            daemon(guest, dice, |disk| {
                let place = if is_old { disk } else { disk.child("source") };
                place.children.push(encryption("luks"));
            });
        },
    ),
    (
        "auth is not supported with vhostuser disk",
        |guest, dice| {
            let is_old = dice.once_in(2);
            daemon(guest, dice, |disk| {
                let place = if is_old { disk } else { disk.child("source") };
                place.children.push(auth());
            });
        },
    ),
    (
        "ACPI index is only supported for PCI devices",
        |guest, dice| {
            let kind = dice.pick(&["sata", "scsi", "usb", "floppy"]);
            let disk = guest.only(kind, dice);
            disk.children.push(Element::new("acpi").with("index", 1));
        },
    ),
    ("duplicate mapping for iothread '…'", |guest, dice| {
        mapped(guest, dice, &[(1, &[0]), (1, &[1])]);
    }),
    (
        "iothread to queue mapping must be provided for all iothreads or for none",
        |guest, dice| {
            mapped(guest, dice, &[(1, &[0, 1]), (2, &[])]);
        },
    ),
    (
        "iothread queue '…' mapping out of range",
        |guest, dice| {
            mapped(guest, dice, &[(1, &[0]), (2, &[1, 2])]);
        },
    ),
    ("iothread queue '…' is already assigned", |guest, dice| {
        mapped(guest, dice, &[(1, &[0]), (2, &[1, 0])]);
    }),
    ("missing iothread mapping for queue '…'", |guest, dice| {
        mapped(guest, dice, &[(1, &[1])]);
    }),
    (
        "'queue' count must be configured for explicit iothread to queue mapping",
        |guest, dice| {
            mapped(guest, dice, &[(1, &[0])]);
            guest.disk(dice).child("driver").unset("queues");
        },
    ),
    (
        "disk driver 'iothread' attribute can't be used together with 'iothreads' subelement",
        |guest, dice| {
            mapped(guest, dice, &[(1, &[])]);
            guest.disk(dice).child("driver").set("iothread", 1);
        },
    ),
    ("Cannot find 'iothread' : …", |guest, dice| {
        let row = if dice.once_in(2) {
            Element::new("iothreadpin")
                .with("iothread", 7)
                .with("cpuset", 0)
        } else {
            Element::new("iothreadsched")
                .with("iothreads", "1-7")
                .with("scheduler", "batch")
        };
        guest
            .domain
            .children
            .push(Element::new("cputune").around(row));
    }),
    ("iothread '…' not defined in iothreadid", |guest, dice| {
        mapped(guest, dice, &[(3, &[])]);
    }),
    (
        "controller iothread '…' not defined in iothreadid",
        |guest, dice| {
            guest.only("scsi", dice);
            let driver = Element::new("driver").with("iothread", 7);
            guest.devices.child("controller").children.push(driver);
        },
    ),
    (
        "iothreads are supported only by 'virtio-scsi' controllers",
        |guest, _| {
            guest.devices.remove("controller");
            let driver = Element::new("driver").around(iothread_rows(&[(1, &[])]));
            guest
                .devices
                .children
                .push(scsi_controller("lsilogic").around(driver));
        },
    ),
    (
        "block 'throttlefilters' can't be used together with 'iotune' for disk '…'",
        |guest, dice| {
            guest
                .domain
                .children
                .push(Element::new("throttlegroups").around(throttle_group(Some("g"))));
            let disk = guest.only("virtio", dice);
            disk.children.push(
                Element::new("throttlefilters")
                    .around(Element::new("throttlefilter").with("group", "g")),
            );
            disk.children
                .push(Element::new("iotune").around(Element::new("total_iops_sec").saying(5)));
        },
    ),
    (
        "cdrom device with throttle filters isn't supported",
        |guest, dice| {
            guest
                .domain
                .children
                .push(Element::new("throttlegroups").around(throttle_group(Some("g"))));
            let disk = guest.on("q35").only("sata-cdrom", dice);
            disk.children.push(
                Element::new("throttlefilters")
                    .around(Element::new("throttlefilter").with("group", "g")),
            );
        },
    ),
    ("throttle group '…' not found", |guest, dice| {
        let disk = guest.only("virtio", dice);
        disk.children.push(
            Element::new("throttlefilters")
                .around(Element::new("throttlefilter").with("group", "g")),
        );
    }),
    (
        "throttle group field '…' must be an integer",
        |guest, _| {
            let mut group = throttle_group(Some("g"));
            group
                .children
                .push(Element::new("read_bytes_sec_max").saying("few"));
            guest
                .domain
                .children
                .push(Element::new("throttlegroups").around(group));
        },
    ),
    ("duplicate filter name '…' found", |guest, dice| {
        guest
            .domain
            .children
            .push(Element::new("throttlegroups").around(throttle_group(Some("g"))));
        let filter = Element::new("throttlefilter").with("group", "g");
        let filters = Element::new("throttlefilters")
            .around(filter.clone())
            .around(filter);
        guest.only("virtio", dice).children.push(filters);
    }),
    (
        "'discard_no_unref' is not compatible with read-only disk",
        |guest, dice| {
            let disk = guest.only("virtio", dice);
            disk.child("driver").set("type", "qcow2");
            disk.child("driver").set("discard_no_unref", "on");
            disk.child("readonly");
        },
    ),
    (
        "'discard_no_unref' only works with qcow2 disk format",
        |guest, dice| {
            let disk = guest.only("virtio", dice);
            disk.child("driver").set("type", "raw");
            disk.child("driver").set("discard_no_unref", "on");
        },
    ),
    (
        "'luks-any' is currently not supported by the qemu encryption engine",
        |guest, dice| {
            let disk = guest.only("virtio", dice);
            disk.child("source").children.push(encryption("luks-any"));
        },
    ),
    (
        "'luks2' is currently not supported by the qemu encryption engine",
        |guest, dice| {
            let disk = guest.only("virtio", dice);
            disk.child("source").children.push(encryption("luks2"));
        },
    ),
    (
        "luks2 is currently not supported by the qemu encryption engine",
        |guest, dice| {
            let disk = guest.only("virtio", dice);
            disk.child("source").children.push(encryption("luks2"));
        },
    ),
    (
        "qemu encryption engine expects only a single secret",
        |guest, dice| {
            let mut encryption = encryption("luks");
            let second = encryption.children[0].clone();
            encryption.children.push(second);
            let disk = guest.only("virtio", dice);
            disk.child("source").children.push(encryption);
        },
    ),
    ("<iotune> is not supported with bus='sd'", |guest, dice| {
        let disk = guest.only("sata", dice);
        disk.child("target").set("bus", "sd");
        disk.children
            .push(Element::new("iotune").around(Element::new("total_iops_sec").saying(5)));
    }),
    (
        "Serial property not supported for drive bus 'sd'",
        |guest, dice| {
            let disk = guest.only("sata", dice);
            disk.child("target").set("bus", "sd");
            disk.children.push(Element::new("serial").saying("A1"));
        },
    ),
    ("duplicate cookie '…'", |guest, dice| {
        let cookie = |value| Element::new("cookie").with("name", "a").saying(value);
        let cookies = Element::new("cookies")
            .around(cookie("b"))
            .around(cookie("c"));
        let source = served("https", "a.img").around(host()).around(cookies);
        from_server(guest, dice, source);
    }),
    (
        "SCSI host address controller='…' bus='…' target='…' unit='…' in use by a SCSI disk",
        |guest, dice| {
            let unit = dice.below(6);
            guest.only("scsi", dice).children.push(drive(0, 0, 0, unit));
            guest.devices.children.push(host_device(unit));
        },
    ),
    (
        "using disk target name '…' conflicts with SCSI host device address",
        |guest, dice| {
            guest.only("scsi", dice);
            guest.devices.children.push(host_device(0));
        },
    ),
    (
        "only snapshot=no is supported with vhostuser disk",
        |guest, dice| {
            let mode = dice.pick(&["internal", "external"]);
            daemon(guest, dice, |disk| disk.set("snapshot", mode));
        },
    ),
    (
        "seclabel for model … is already provided",
        |guest, dice| {
            let label = Element::new("seclabel")
                .with("model", "dac")
                .with("relabel", "no");
            let source = guest.only("virtio", dice).child("source");
            source.children.extend([label.clone(), label]);
        },
    ),
    ("transient disk '…' must not be empty", |guest, dice| {
        let disk = guest.on("q35").only("sata-cdrom", dice);
        disk.remove("source");
        disk.children.push(Element::new("transient"));
    }),
    ("unknown storage source type '…'", |guest, dice| {
        let store = Element::new("backingStore")
            .with("type", dice.pick(&["files", "disk", "qcow2"]))
            .around(Element::new("format").with("type", "raw"))
            .around(Element::new("source").with("file", "/srv/base.img"));
        guest.only("virtio", dice).children.push(store);
    }),
    (
        "virtual FAT storage can't be accessed in read-write mode",
        |guest, dice| {
            guest.only("dir", dice).remove("readonly");
        },
    ),
    (
        "ncr53c90 SCSI controller is not a built-in for this machine",
        |guest, _| {
            guest.devices.remove("controller");
            guest.devices.children.push(scsi_controller("ncr53c90"));
        },
    ),
    (
        "ncr53c90 can only be used as first SCSI controller",
        |guest, _| {
            guest.devices.remove("controller");
            guest.devices.children.push(scsi_controller("virtio-scsi"));
            guest
                .devices
                .children
                .push(scsi_controller("ncr53c90").with("index", 1));
        },
    ),
    (
        "'sheepdog' protocol is no longer supported by any hypervisor driver",
        |guest, dice| {
            from_server(guest, dice, served("sheepdog", "a").around(host()));
        },
    ),
    ("'nfs' host must use TCP protocol", |guest, dice| {
        let server = Element::new("host")
            .with("transport", "unix")
            .with("socket", "/run/s");
        from_server(guest, dice, served("nfs", "/srv/a.img").around(server));
    }),
    (
        "'tftp' protocol is not supported with this QEMU binary",
        |guest, dice| {
            from_server(guest, dice, served("tftp", "a.img").around(host()));
        },
    ),
    (
        "'tlsHostname' field is supported only with NBD disks",
        |guest, dice| {
            let source = served("https", "a.img").with("tlsHostname", "store.example");
            from_server(guest, dice, source.around(host()));
        },
    ),
    (
        "port cannot be specified in 'nfs' protocol host",
        |guest, dice| {
            from_server(
                guest,
                dice,
                served("nfs", "/srv/a.img").around(host().with("port", 2049)),
            );
        },
    ),
    (
        "'nfs' protocol requires the usage of exactly one host",
        |guest, dice| {
            from_server(
                guest,
                dice,
                served("nfs", "/srv/a.img").around(host()).around(host()),
            );
        },
    ),
    ("missing name for host", |guest, dice| {
        let nameless = Element::new("host").with("port", 10809);
        from_server(guest, dice, served("nbd", "a").around(nameless));
    }),
    ("unknown protocol transport type '…'", |guest, dice| {
        let server = host().with("transport", dice.pick(&["pigeon", "udp", "quic"]));
        from_server(guest, dice, served("nbd", "a").around(server));
    }),
    ("invalid readahead size or timeout", |guest, dice| {
        let readahead = Element::new("readahead").with("size", dice.pick(&["big", "-1", "1k"]));
        from_server(
            guest,
            dice,
            served("https", "a.img").around(host()).around(readahead),
        );
    }),
    ("missing cookie name", |guest, dice| {
        with_cookie(guest, dice, None, "value")
    }),
    ("missing value for cookie '…'", |guest, dice| {
        with_cookie(guest, dice, Some("a"), "")
    }),
    (
        "cookie name '…' contains invalid characters",
        |guest, dice| {
            let name = dice.pick(&["b c", "b=c", "b;c", "b,c"]);
            with_cookie(guest, dice, Some(name), "value");
        },
    ),
    (
        "value of cookie '…' contains invalid characters",
        |guest, dice| {
            let value = dice.pick(&["va lue", "va,lue", "va;lue"]);
            with_cookie(guest, dice, Some("a"), value);
        },
    ),
    ("Missing <secret> element in auth", |guest, dice| {
        logging_in(guest, dice, "iscsi", |auth| auth.remove("secret"));
    }),
    ("missing username for auth", |guest, dice| {
        logging_in(guest, dice, "iscsi", |auth| auth.unset("username"));
    }),
    (
        "authentication is not supported for protocol '…'",
        |guest, dice| {
            let protocol = dice.pick(&["nbd", "nfs"]);
            logging_in(guest, dice, protocol, |_| {});
        },
    ),
    ("invalid secret type '…'", |guest, dice| {
        logging_in(guest, dice, "iscsi", |auth| {
            auth.child("secret").set("type", "ceph")
        });
    }),
    ("unknown secret type '…'", |guest, dice| {
        let kind = dice.pick(&["key", "password", "chap"]);
        logging_in(guest, dice, "iscsi", |auth| {
            auth.child("secret").set("type", kind)
        });
    }),
    (
        "Setting vendor or product is not supported for lun device",
        |guest, dice| {
            let name = dice.pick(&["vendor", "product"]);
            guest
                .only("lun", dice)
                .children
                .push(Element::new(name).saying("SEAGATE"));
        },
    ),
    (
        "Setting wwn is not supported for lun device",
        |guest, dice| {
            guest
                .only("lun", dice)
                .children
                .push(Element::new("wwn").saying("5000c50015ea71ac"));
        },
    ),
    (
        "scsi-block 'lun' devices do not support the serial property",
        |guest, dice| {
            guest
                .only("lun", dice)
                .children
                .push(Element::new("serial").saying("A1"));
        },
    ),
    (
        "disk device 'lun' doesn't support encryption",
        |guest, dice| {
            let encryption = encryption("luks");
            guest
                .only("lun", dice)
                .child("source")
                .children
                .push(encryption);
        },
    ),
    (
        "disk device='lun' is not supported for bus='…'",
        |guest, dice| {
            let bus = dice.pick(&["sata", "usb"]);
            guest.only("lun", dice).child("target").set("bus", bus);
        },
    ),
    (
        "disk type of '…' does not support ejectable media",
        |guest, dice| {
            let disk = guest.on("q35").only("sata-cdrom", dice);
            disk.child("target").set("dev", "vda");
            disk.child("target").set("bus", "virtio");
        },
    ),
    ("Unsupported controller model: …", |guest, _| {
        guest.devices.remove("controller");
        guest.devices.children.push(scsi_controller("buslogic"));
    }),
    (
        "Only a single IDE controller is supported for this machine type",
        |guest, dice| {
            guest.on("pc").only("virtio", dice);
            let controller = Element::new("controller")
                .with("type", "ide")
                .with("index", 1);
            guest.devices.children.push(controller);
        },
    ),
    (
        "blockio is not supported with vhostuser disk",
        |guest, dice| {
            daemon(guest, dice, |disk| {
                disk.child("blockio").set("logical_block_size", 512)
            });
        },
    ),
    (
        "geometry is not supported with vhostuser disk",
        |guest, dice| {
            daemon(guest, dice, |disk| {
                let geometry = Element::new("geometry").with("cyls", 1).with("heads", 1);
                disk.children.push(geometry.with("secs", 1));
            });
        },
    ),
    (
        "iothread is not supported with vhostuser disk",
        |guest, dice| {
            guest.domain.remove("iothreads");
            guest
                .domain
                .children
                .push(Element::new("iothreads").saying(2));
            daemon(guest, dice, |disk| disk.child("driver").set("iothread", 1));
        },
    ),
    (
        "product is not supported with vhostuser disk",
        |guest, dice| {
            daemon(guest, dice, |disk| {
                disk.children.push(Element::new("product").saying("p"))
            });
        },
    ),
    (
        "boot order '…' used for more than one device",
        |guest, dice| {
            let order = 1 + dice.below(5);
            two(guest, "virtio", dice, |disk| {
                disk.child("boot").set("order", order)
            });
        },
    ),
    ("different iotunes for disks … and …", |guest, dice| {
        let limited = |limit: u32| {
            Element::new("iotune")
                .around(Element::new("total_iops_sec").saying(limit))
                .around(Element::new("group_name").saying("g"))
        };
        guest.only("virtio", dice).children.push(limited(5));
        guest.and_another("virtio", dice).children.push(limited(6));
    }),
    (
        "Found duplicate drive address for disk with target name '…' controller='…' bus='…' target='…' unit='…'",
        |guest, dice| {
            let unit = dice.below(6);
            two(guest, "sata", dice, |disk| {
                disk.children.push(drive(0, 0, 0, unit))
            });
        },
    ),
    (
        "disk bus '…' doesn't support transiend disk backing image sharing",
        |guest, dice| {
            let disk = guest.only("sata", dice);
            disk.child("transient").set("shareBacking", "yes");
        },
    ),
    (
        "transient disk supported only with 'disk' device (…)",
        |guest, dice| {
            guest.only("floppy", dice).child("transient");
        },
    ),
    (
        "librbd encryption is supported only with RBD backed disks",
        |guest, dice| {
            let encryption = encryption("luks").with("engine", "librbd");
            guest
                .only("virtio", dice)
                .child("source")
                .children
                .push(encryption);
        },
    ),
    (
        "encryption is supported only with 'raw' and 'qcow2' image format",
        |guest, dice| {
            let disk = guest.only("virtio", dice);
            disk.child("driver")
                .set("type", dice.pick(&["qed", "vmdk", "vdi"]));
            disk.child("source").children.push(encryption("luks"));
        },
    ),
    (
        "supplying <cipher> for domain disk definition is unnecessary",
        |guest, dice| {
            let cipher = Element::new("cipher").with("name", "aes").with("size", 256);
            let cipher = cipher.with("mode", "cbc").with("hash", "sha256");
            let encryption = encryption("luks").around(cipher);
            guest
                .only("virtio", dice)
                .child("source")
                .children
                .push(encryption);
        },
    ),
    ("readonly ide disks are not supported", |guest, dice| {
        guest.on("pc").only("ide", dice).child("readonly");
    }),
    ("thread_pool_max must be a positive integer", |guest, _| {
        pool(guest, &[("thread_pool_max", "0")])
    }),
    (
        "thread_pool_min must be smaller or equal to thread_pool_max",
        |guest, _| {
            pool(
                guest,
                &[("thread_pool_min", "16"), ("thread_pool_max", "8")],
            );
        },
    ),
    ("Invalid floppy device name: …", |guest, dice| {
        let name = dice.pick(&["hda", "sda", "vda"]);
        let disk = guest.only("floppy", dice);
        disk.child("target").set("dev", name);
        disk.children.push(drive(0, 0, 0, 0));
    }),
    (
        "an <auth> definition already found for disk source",
        |guest, dice| {
            logging_in(guest, dice, "iscsi", |_| {});
            guest.disk(dice).children.push(auth());
        },
    ),
    (
        "storage type 'dir' requires use of storage format 'fat'",
        |guest, dice| {
            guest.only("dir", dice).child("driver").set("type", "raw");
        },
    ),
    ("'usb' disk must not be empty", |guest, dice| {
        let disk = guest.on("q35").only("sata-cdrom", dice);
        disk.remove("source");
        disk.child("target").set("bus", "usb");
    }),
    (
        "This QEMU doesn't support SCSI emulation with 'virtio-blk' device",
        |guest, dice| {
            let disk = guest.only("virtio-block", dice);
            disk.set("device", "lun");
        },
    ),
    (
        "controller driver 'iothread' attribute can't be used together with 'iothreads' subelement",
        |guest, _| {
            guest.domain.remove("iothreads");
            guest
                .domain
                .children
                .push(Element::new("iothreads").saying(2));
            guest.devices.remove("controller");
            let driver = Element::new("driver")
                .with("iothread", 1)
                .around(iothread_rows(&[(2, &[])]));
            guest
                .devices
                .children
                .push(scsi_controller("virtio-scsi").around(driver));
        },
    ),
    (
        "virtio-scsi IOThreads only available for virtio pci and virtio ccw controllers",
        |guest, _| {
            guest.domain.remove("iothreads");
            guest
                .domain
                .children
                .push(Element::new("iothreads").saying(2));
            guest.devices.remove("controller");
            let driver = Element::new("driver").with("iothread", 1);
            let address = Element::new("address").with("type", "virtio-mmio");
            let controller = scsi_controller("virtio-scsi")
                .around(driver)
                .around(address);
            guest.devices.children.push(controller);
        },
    ),
    (
        "Cannot check QEMU binary …: No such file or directory",
        |guest, dice| {
            let name = dice.pick(&["qemu-system-x86_64", "kvm", "qemu-kvm"]);
            guest.devices.remove("emulator");
            let emulator = Element::new("emulator").saying(name);
            guest.devices.children.push(emulator);
        },
    ),
    ("unknown memoryBacking/source/type '…'", |guest, dice| {
        let word = dice.pick(&["disk", "shm", "hugetlbfs"]);
        guest
            .domain
            .child("memoryBacking")
            .child("source")
            .set("type", word);
    }),
    ("unknown memoryBacking/access/mode '…'", |guest, dice| {
        let word = dice.pick(&["public", "yes", "rw"]);
        guest
            .domain
            .child("memoryBacking")
            .child("access")
            .set("mode", word);
    }),
    (
        "label overrides require relabeling to be enabled at the domain level",
        |guest, dice| {
            let mut label = Element::new("seclabel")
                .with("type", "static")
                .with("model", "dac")
                .around(Element::new("label").saying("root:root"));
            if dice.once_in(2) {
                label.set("relabel", "no");
            }
            guest.domain.children.push(label);
            let label = Element::new("seclabel")
                .with("model", "dac")
                .with("relabel", "no");
            guest
                .only("virtio", dice)
                .child("source")
                .children
                .push(label);
        },
    ),
];
