//! What may be done to a guest that libvirt takes, so that it may refuse it.
//!
//! Each move is meant for one constraint of libvirt's and does not always break it: both sides of each border are
//! tried.

use vmdisk::facts::Version;

use crate::element::Element;
use crate::guest::{Dice, Guest, share_memory};

/// A move, what it is about, and the libvirt that first knew of it: older ones drop it unread.
pub(crate) struct Move {
    pub(crate) name: &'static str,
    pub(crate) since: Version,
    pub(crate) make: fn(&mut Guest, &mut Dice),
}

macro_rules! moves {
    ($($name:literal $(since $major:literal . $minor:literal)? => $make:expr,)+) => {
        pub(crate) const MOVES: &[Move] = &[$(Move {
            name: $name,
            since: Version(0 $(+ $major)?, 0 $(+ $minor)?, 0),
            make: $make,
        },)+];
    };
}

moves! {
    "a host I/O mode" => |guest, dice| {
        let mode = dice.pick(&["native", "native", "threads", "io_uring", "uring"]);
        guest.disk(dice).child("driver").set("io", mode);
    },
    "a cache mode" => |guest, dice| {
        let mode = dice.pick(&["none", "writeback", "writethrough", "directsync", "unsafe", "default", "fast"]);
        guest.disk(dice).child("driver").set("cache", mode);
    },
    "queues" => |guest, dice| {
        let count = dice.pick(&["1", "4", "-1", "many"]);
        guest.disk(dice).child("driver").set("queues", count);
    },
    "a queue size" => |guest, dice| guest.disk(dice).child("driver").set("queue_size", 256),
    "event_idx" => |guest, dice| {
        let word = dice.pick(&["on", "off", "yes"]);
        guest.disk(dice).child("driver").set("event_idx", word);
    },
    "ioeventfd" => |guest, dice| guest.disk(dice).child("driver").set("ioeventfd", "on"),
    "a virtio option" => |guest, dice| {
        let option = dice.pick(&["iommu", "ats", "packed", "page_per_vq"]);
        guest.disk(dice).child("driver").set(option, "on");
    },
    "copy on read" => |guest, dice| guest.disk(dice).child("driver").set("copy_on_read", "on"),
    "discard" => |guest, dice| {
        let mode = dice.pick(&["unmap", "ignore", "on"]);
        guest.disk(dice).child("driver").set("discard", mode);
    },
    "detect_zeroes" => |guest, dice| {
        let mode = dice.pick(&["on", "off", "unmap", "yes"]);
        guest.disk(dice).child("driver").set("detect_zeroes", mode);
    },
    "discard_no_unref" since 9 . 5 => |guest, dice| guest.disk(dice).child("driver").set("discard_no_unref", "on"),
    "an iothread" => |guest, dice| {
        let id = dice.pick(&["1", "2", "3", "0", "-1"]);
        guest.disk(dice).child("driver").set("iothread", id);
    },
    "iothreads in a mapping" since 10 . 0 => |guest, dice| {
        let mut mapping = Element::new("iothreads");
        for _ in 0..1 + dice.below(2) {
            let mut thread = Element::new("iothread").with("id", dice.pick(&[1, 1, 2, 3]));
            if dice.once_in(2) {
                for _ in 0..dice.below(3) {
                    thread.children.push(Element::new("queue").with("id", dice.pick(&[0, 0, 1, 2])));
                }
            }
            mapping.children.push(thread);
        }
        let driver = guest.disk(dice).child("driver");
        if dice.once_in(2) {
            driver.set("queues", 2);
        }
        if dice.once_in(4) {
            driver.set("iothread", 1);
        }
        driver.children.push(mapping);
    },
    "error policies" => |guest, dice| {
        let policy = dice.pick(&["stop", "report", "ignore", "enospace", "retry"]);
        let attribute = dice.pick(&["error_policy", "rerror_policy"]);
        guest.disk(dice).child("driver").set(attribute, policy);
    },
    "a driver's name" => |guest, dice| {
        let name = dice.pick(&["qemu", "phy", "file"]);
        guest.disk(dice).child("driver").set("name", name);
    },
    "a format" => |guest, dice| {
        let format = dice.pick(&["cow", "dir", "iso", "fat", "qed", "vmdk", "luks", "bogus", "raw", "qcow2"]);
        guest.disk(dice).child("driver").set("type", format);
    },
    "a metadata cache" => |guest, dice| {
        let mut cache = Element::new("metadata_cache");
        cache.children.push(Element::new("max_size").with("unit", "bytes").saying(1_048_576));
        guest.disk(dice).child("driver").children.push(cache);
    },
    "a device" => |guest, dice| {
        let device = dice.pick(&["lun", "lun", "cdrom", "floppy", "disk", "tape"]);
        guest.disk(dice).set("device", device);
    },
    "rawio or sgio" => |guest, dice| {
        let disk = guest.disk(dice);
        match dice.below(3) {
            0 => disk.set("rawio", "yes"),
            1 => disk.set("sgio", "filtered"),
            _ => disk.set("sgio", "unfiltered"),
        }
    },
    "a snapshot mode" => |guest, dice| {
        let mode = dice.pick(&["no", "internal", "external", "manual", "maybe"]);
        guest.disk(dice).set("snapshot", mode);
    },
    "a virtio model" => |guest, dice| {
        let model = dice.pick(&["virtio", "virtio-transitional", "virtio-non-transitional", "virtio-blk"]);
        guest.disk(dice).set("model", model);
    },
    "a source of another type" => |guest, dice| {
        let kind = dice.pick(&["file", "block", "dir", "network", "volume", "nvme", "vhostuser", "disk"]);
        guest.disk(dice).set("type", kind);
    },
    "no source" => |guest, dice| guest.disk(dice).remove("source"),
    "reservations" => |guest, dice| {
        let mut reservations = Element::new("reservations").with("managed", "no");
        let mut source = Element::new("source")
            .with("type", "unix")
            .with("path", "/run/pr.sock")
            .with("mode", "client");
        match dice.below(8) {
            0 => source.unset("type"),
            1 => source.unset("path"),
            2 => source.unset("mode"),
            3 => source.set("type", "tcp"),
            4 => source.set("mode", "server"),
            _ => {}
        }
        reservations.children.push(source);
        guest.disk(dice).child("source").children.push(reservations);
    },
    "totals beside reads" => |guest, dice| {
        let kind = dice.pick(&["bytes_sec", "iops_sec", "bytes_sec_max", "iops_sec_max"]);
        let mut iotune = Element::new("iotune");
        let names: &[(&str, [&'static str; 2])] = &[
            ("bytes_sec", ["total_bytes_sec", "read_bytes_sec"]),
            ("iops_sec", ["total_iops_sec", "write_iops_sec"]),
            ("bytes_sec_max", ["total_bytes_sec_max", "write_bytes_sec_max"]),
            ("iops_sec_max", ["total_iops_sec_max", "read_iops_sec_max"]),
        ];
        let (_, pair) = names.iter().find(|(name, _)| *name == kind).expect("it is one of them");
        iotune.children.push(Element::new(pair[0]).saying(if dice.once_in(4) { 0 } else { 1_000_000 }));
        if !dice.once_in(4) {
            iotune.children.push(Element::new(pair[1]).saying(2_000_000));
        }
        guest.disk(dice).children.push(iotune);
    },
    "a limit" => |guest, dice| {
        let value = dice.pick(&["1000", "1000000000000000", "1000000000000001", "fast", "-1"]);
        let name = dice.pick(&["total_bytes_sec", "read_iops_sec", "write_bytes_sec_max"]);
        let limit = Element::new(name).saying(value);
        guest.disk(dice).children.push(Element::new("iotune").around(limit));
    },
    "a group of limits" => |guest, dice| {
        for _ in 0..2 {
            let mut iotune = Element::new("iotune");
            if !dice.once_in(4) {
                iotune.children.push(Element::new("total_iops_sec").saying(dice.pick(&[500, 600])));
            }
            iotune.children.push(Element::new("group_name").saying("shared"));
            let disk = guest.disk(dice);
            if disk.find("iotune").is_none() {
                disk.children.push(iotune);
            }
        }
    },
    "transient" => |guest, dice| {
        let mut transient = Element::new("transient");
        if dice.once_in(2) {
            transient.set("shareBacking", "yes");
        }
        let disk = guest.disk(dice);
        disk.children.push(transient);
        if dice.once_in(4) {
            disk.child("readonly");
        }
    },
    "shareable" => |guest, dice| { guest.disk(dice).child("shareable"); },
    "read-only" => |guest, dice| { guest.disk(dice).child("readonly"); },
    "a serial" => |guest, dice| {
        let serial = dice.pick(&["WD-1234", "a b", "a,b", "x/y", "ä", "", "0123456789012345678901234567890123456789"]);
        let serial = Element::new("serial").saying(serial);
        guest.disk(dice).children.push(serial);
    },
    "a WWN" => |guest, dice| {
        let wwn = dice.pick(&["5000c50015ea71ac", "5000c50015ea71a", "0x5000c50015ea71ac", "5000c50015ea71ag"]);
        let wwn = Element::new("wwn").saying(wwn);
        guest.disk(dice).children.push(wwn);
    },
    "vendor and product" => |guest, dice| {
        let name = dice.pick(&["vendor", "product"]);
        let text = dice.pick(&["SEAGATE", "ST3146707LC", "A name of sixteen", "forty characters are allowed with ATA ok.", "one and forty characters are more than 40", "tab\there"]);
        guest.disk(dice).children.push(Element::new(name).saying(text));
    },
    "geometry" => |guest, dice| {
        let mut geometry = Element::new("geometry").with("cyls", 16383).with("heads", 16).with("secs", 63);
        if dice.once_in(2) {
            geometry.set("trans", dice.pick(&["lba", "auto", "none", "large"]));
        }
        guest.disk(dice).children.push(geometry);
    },
    "block sizes" => |guest, dice| {
        let mut sizes = Element::new("blockio");
        sizes.set("logical_block_size", dice.pick(&["512", "4096", "-512", "big"]));
        sizes.set("physical_block_size", 4096);
        guest.disk(dice).children.push(sizes);
    },
    "a rotation rate" => |guest, dice| {
        let rate = dice.pick(&["1", "7200", "fast", "70000"]);
        guest.disk(dice).child("target").set("rotation_rate", rate);
    },
    "a tray" => |guest, dice| {
        let tray = dice.pick(&["open", "closed", "half"]);
        guest.disk(dice).child("target").set("tray", tray);
    },
    "removable" => |guest, dice| {
        let word = dice.pick(&["on", "off"]);
        guest.disk(dice).child("target").set("removable", word);
    },
    "a target's name" => |guest, dice| {
        let name = dice.pick(&["vda", "sda", "hda", "vda1", "xvda", "ubda", "fda", "disk0", "sdz", "vdzzzz", "", "nvme0n1", "sd"]);
        guest.disk(dice).child("target").set("dev", name);
    },
    "no target" => |guest, dice| match dice.below(2) {
        0 => guest.disk(dice).remove("target"),
        _ => guest.disk(dice).child("target").unset("dev"),
    },
    "a bus" => |guest, dice| {
        let bus = dice.pick(&["virtio", "scsi", "sata", "ide", "usb", "fdc", "sd", "xen", "uml", "pci"]);
        guest.disk(dice).child("target").set("bus", bus);
    },
    "an address of some kind" => |guest, dice| {
        let address = match dice.below(6) {
            0 => Element::new("address").with("type", "pci").with("domain", "0x0000").with("bus", "0x00").with("slot", "0x1d").with("function", "0x0"),
            1 => Element::new("address").with("type", "usb").with("bus", 0).with("port", 1),
            2 => Element::new("address").with("type", "ccw").with("cssid", "0xfe").with("ssid", "0x0").with("devno", "0x0001"),
            3 => Element::new("address").with("type", "virtio-mmio"),
            _ => Element::new("address").with("type", "drive").with("controller", 0).with("bus", 0).with("target", 0).with("unit", dice.below(3)),
        };
        guest.disk(dice).children.push(address);
    },
    "two disks at one address" => |guest, dice| {
        let unit = dice.below(2);
        for _ in 0..2 {
            let disk = guest.disk(dice);
            disk.remove("address");
            disk.children.push(Element::new("address").with("type", "drive").with("controller", 0).with("bus", 0).with("target", 0).with("unit", unit));
        }
    },
    "an alias" => |guest, dice| {
        let alias = Element::new("alias").with("name", dice.pick(&["ua-disk", "disk0", "ua-a b"]));
        guest.disk(dice).children.push(alias);
    },
    "boot orders" => |guest, dice| {
        for _ in 0..2 {
            let order = dice.pick(&["1", "1", "2", "0", "first"]);
            let disk = guest.disk(dice);
            if disk.find("boot").is_none() {
                disk.children.push(Element::new("boot").with("order", order));
            }
        }
        if dice.once_in(4) {
            guest.domain.child("os").children.push(Element::new("boot").with("dev", "hd"));
        }
    },
    "a startup policy" => |guest, dice| {
        let policy = dice.pick(&["mandatory", "requisite", "optional", "never"]);
        guest.disk(dice).child("source").set("startupPolicy", policy);
    },
    "a label of its own" => |guest, dice| {
        let mut label = Element::new("seclabel").with("model", "dac").with("relabel", dice.pick(&["yes", "no"]));
        if dice.once_in(3) {
            label.children.push(Element::new("label").saying("root:root"));
        }
        guest.disk(dice).child("source").children.push(label);
    },
    "encryption" => |guest, dice| {
        let mut encryption = Element::new("encryption").with("format", dice.pick(&["luks", "luks", "qcow", "luks2", "default", "aes"]));
        if dice.once_in(4) {
            encryption.set("engine", dice.pick(&["qemu", "librbd", "gpg"]));
        }
        for _ in 0..[1, 1, 1, 0, 2][dice.below(5)] {
            let mut secret = Element::new("secret").with("type", dice.pick(&["passphrase", "passphrase", "volume"]));
            match dice.below(4) {
                0 => secret.set("usage", "disk"),
                1 => {}
                _ => secret.set("uuid", "0a81f5b2-8403-7b23-c8d6-21ccc2f80d6f"),
            }
            encryption.children.push(secret);
        }
        if dice.once_in(4) {
            encryption.children.push(Element::new("cipher").with("name", "aes").with("size", 256).with("mode", "cbc").with("hash", "sha256"));
        }
        if dice.once_in(4) {
            encryption.children.push(Element::new("ivgen").with("name", "plain64"));
        }
        let disk = guest.disk(dice);
        if dice.once_in(3) {
            disk.children.push(encryption.clone());
        }
        if !dice.once_in(3) {
            disk.child("source").children.push(encryption);
        }
    },
    "authentication" => |guest, dice| {
        let mut auth = Element::new("auth").with("username", "fred");
        if dice.once_in(6) {
            auth.unset("username");
        }
        let mut secret = Element::new("secret").with("type", dice.pick(&["iscsi", "ceph", "volume"])).with("usage", "key");
        match dice.below(6) {
            0 => secret.unset("type"),
            1 => secret.unset("usage"),
            2 => secret.set("uuid", "0a81f5b2-8403-7b23-c8d6-21ccc2f80d6f"),
            _ => {}
        }
        if !dice.once_in(6) {
            auth.children.push(secret);
        }
        let disk = guest.disk(dice);
        if disk.get("type") != Some("network") && !dice.once_in(8) {
            return;
        }
        if dice.once_in(3) {
            disk.children.push(auth.clone());
        }
        if !dice.once_in(3) {
            disk.child("source").children.push(auth);
        }
    },
    "a network source" => |guest, dice| {
        let protocol = dice.pick(&["nbd", "iscsi", "rbd", "gluster", "http", "https", "ftp", "tftp", "ssh", "nfs", "sheepdog", "vxhs", "smb"]);
        let name = dice.pick(&["pool/image", "a", "/a", ""]);
        let mut source = Element::new("source").with("protocol", protocol);
        if !name.is_empty() {
            source.set("name", name);
        }
        for _ in 0..[1, 1, 1, 1, 0, 2][dice.below(6)] {
            let mut host = Element::new("host").with("name", "store.example").with("port", 1234);
            match dice.below(10) {
                0 => host = Element::new("host").with("transport", "unix").with("socket", "/run/s"),
                1 => host = Element::new("host").with("transport", "unix"),
                2 => host.set("socket", "/run/s"),
                3 => host.unset("name"),
                4 => host.set("transport", "pigeon"),
                5 => host.set("port", "many"),
                _ => {}
            }
            source.children.push(host);
        }
        match dice.below(16) {
            0 => source.children.push(Element::new("snapshot").with("name", "s")),
            1 => source.children.push(Element::new("config").with("file", "/c")),
            2 => source.children.push(Element::new("readahead").with("size", dice.pick(&["1024", "big"]))),
            3 => source.children.push(Element::new("timeout").with("seconds", 6)),
            4 => source.children.push(Element::new("ssl").with("verify", "no")),
            5 => source.children.push(Element::new("reconnect").with("delay", 10)),
            6 => source.set("query", "a=b"),
            7 => source.set("tls", "yes"),
            8 => source.children.push(Element::new("identity").with("user", "u").with("group", "g")),
            9 if protocol.starts_with("http") => {
                let mut cookies = Element::new("cookies");
                for _ in 0..1 + dice.below(2) {
                    let mut cookie = Element::new("cookie").with("name", dice.pick(&["a", "a", "b c", "b=c"])).saying(dice.pick(&["value", "", "va lue"]));
                    if dice.once_in(4) {
                        cookie.unset("name");
                    }
                    cookies.children.push(cookie);
                }
                source.children.push(cookies);
            }
            10 => source.children.push(Element::new("initiator").around(Element::new("iqn").with("name", "iqn.2013-07.com.example:me"))),
            11 => source.set("tlsHostname", "store.example"),
            _ => {}
        }
        let disk = guest.disk(dice);
        disk.set("type", "network");
        disk.remove("source");
        disk.children.insert(1, source);
    },
    "an NVMe source" => |guest, dice| {
        let mut source = Element::new("source").with("type", "pci").with("managed", "yes").with("namespace", 1);
        let address = Element::new("address").with("domain", "0x0000").with("bus", "0x17").with("slot", "0x07").with("function", "0x0");
        let mut has_address = true;
        match dice.below(6) {
            0 => source.set("namespace", 0),
            1 => source.unset("type"),
            2 => source.set("type", "usb"),
            3 => has_address = false,
            4 => source.unset("namespace"),
            _ => {}
        }
        if has_address {
            source.children.push(address);
        }
        let disk = guest.disk(dice);
        disk.set("type", "nvme");
        disk.remove("source");
        disk.children.insert(1, source);
    },
    "a vhost-user source" => |guest, dice| {
        let mut source = Element::new("source").with("type", "unix").with("path", "/run/v.sock");
        match dice.below(6) {
            0 => source.unset("type"),
            1 => source.set("type", "tcp"),
            2 => source.unset("path"),
            3 => source.children.push(Element::new("reconnect").with("enabled", "yes").with("timeout", dice.pick(&["10", "0", "soon"]))),
            _ => {}
        }
        if !dice.once_in(4) {
            share_memory(guest);
        }
        let disk = guest.disk(dice);
        disk.set("type", "vhostuser");
        if !dice.once_in(4) {
            disk.set("snapshot", "no");
        }
        disk.remove("source");
        disk.children.insert(1, source);
    },
    "a volume" => |guest, dice| {
        let mut source = Element::new("source").with("pool", "p").with("volume", "v");
        match dice.below(4) {
            0 => source.unset("pool"),
            1 => source.unset("volume"),
            2 => source.set("mode", dice.pick(&["host", "direct", "both"])),
            _ => {}
        }
        let disk = guest.disk(dice);
        disk.set("type", "volume");
        disk.remove("source");
        disk.children.insert(1, source);
    },
    "a slice" => |guest, dice| {
        let mut slice = Element::new("slice").with("type", "storage").with("offset", 12345).with("size", 123);
        match dice.below(12) {
            0 => slice.unset("offset"),
            1 => slice.unset("size"),
            2 => slice.set("offset", "start"),
            3 => slice.set("type", "cake"),
            4 => slice.set("size", 0),
            _ => {}
        }
        let slices = Element::new("slices").around(slice);
        guest.disk(dice).child("source").children.push(slices);
    },
    "a data store" since 10 . 10 => |guest, dice| {
        let mut store = Element::new("dataStore").with("type", "file");
        if !dice.once_in(5) {
            store.children.push(Element::new("format").with("type", dice.pick(&["raw", "raw", "qcow2"])));
        }
        if !dice.once_in(5) {
            store.children.push(Element::new("source").with("file", "/srv/data.raw"));
        }
        guest.disk(dice).child("source").children.push(store);
    },
    "a backing store" => |guest, dice| {
        let mut store = Element::new("backingStore").with("type", "file");
        if !dice.once_in(5) {
            store.children.push(Element::new("format").with("type", dice.pick(&["raw", "qcow2", "bogus", "iso"])));
        }
        if !dice.once_in(5) {
            store.children.push(Element::new("source").with("file", "/srv/base.img"));
        }
        if dice.once_in(5) {
            store.unset("type");
        }
        if !dice.once_in(3) {
            store.children.push(Element::new("backingStore"));
        }
        guest.disk(dice).children.push(store);
    },
    "throttle filters" since 11 . 2 => |guest, dice| {
        let group = Element::new("throttlegroup")
            .around(Element::new("group_name").saying("g0"))
            .around(Element::new("total_iops_sec").saying(dice.pick(&["1000", "few"])));
        if !dice.once_in(4) {
            let mut groups = Element::new("throttlegroups").around(group.clone());
            match dice.below(6) {
                0 => groups.children.push(group),
                1 => groups.child("throttlegroup").remove("group_name"),
                _ => {}
            }
            guest.domain.children.push(groups);
        }
        let mut filters = Element::new("throttlefilters").around(Element::new("throttlefilter").with("group", "g0"));
        if dice.once_in(6) {
            filters.children.push(Element::new("throttlefilter").with("group", "g0"));
        }
        let disk = guest.disk(dice);
        disk.children.push(filters);
        if dice.once_in(4) {
            disk.children.push(Element::new("iotune").around(Element::new("total_iops_sec").saying(1000)));
        }
    },
    "something a vhost-user disk cannot have" => |guest, dice| {
        share_memory(guest);
        let what = dice.below(20);
        let disk = guest.disk(dice);
        disk.set("type", "vhostuser");
        disk.set("snapshot", "no");
        disk.remove("source");
        disk.children.insert(1, Element::new("source").with("type", "unix").with("path", "/run/v.sock"));
        let attribute = |disk: &mut Element, name, value: &str| disk.child("driver").set(name, value);
        match what {
            0 => attribute(disk, "cache", "none"),
            1 => attribute(disk, "error_policy", "stop"),
            2 => attribute(disk, "io", "threads"),
            3 => attribute(disk, "ioeventfd", "on"),
            4 => attribute(disk, "copy_on_read", "on"),
            5 => attribute(disk, "discard", "unmap"),
            6 => attribute(disk, "detect_zeroes", "on"),
            7 => attribute(disk, "rerror_policy", "stop"),
            8 => disk.children.push(Element::new("iotune").around(Element::new("total_iops_sec").saying(1))),
            9 => disk.children.push(Element::new("backingStore").with("type", "file").around(Element::new("format").with("type", "raw")).around(Element::new("source").with("file", "/b"))),
            10 => { disk.child("readonly"); }
            11 => { disk.child("shareable"); }
            12 => { disk.child("transient"); }
            13 => disk.children.push(Element::new("serial").saying("s")),
            14 => disk.children.push(Element::new("wwn").saying("5000c50015ea71ac")),
            15 => disk.children.push(Element::new("vendor").saying("v")),
            16 => disk.children.push(Element::new("product").saying("p")),
            17 => disk.children.push(Element::new("geometry").with("cyls", 1).with("heads", 1).with("secs", 1)),
            18 => disk.children.push(Element::new("blockio").with("logical_block_size", 512)),
            _ => { disk.child("driver").children.push(Element::new("metadata_cache").around(Element::new("max_size").saying(1_048_576))); }
        }
    },
    "iothread ids" => |guest, dice| {
        let mut ids = Element::new("iothreadids");
        for _ in 0..2 {
            let mut thread = Element::new("iothread").with("id", dice.pick(&["1", "1", "2", "0", "x"]));
            match dice.below(6) {
                0 => thread.set("thread_pool_max", dice.pick(&["0", "-1", "8"])),
                1 => {
                    thread.set("thread_pool_min", 16);
                    thread.set("thread_pool_max", dice.pick(&["8", "32"]));
                }
                _ => {}
            }
            ids.children.push(thread);
        }
        guest.domain.remove("iothreads");
        guest.domain.children.push(ids);
    },
    "a count of iothreads" => |guest, dice| {
        guest.domain.remove("iothreads");
        let count = dice.pick(&["0", "4", "-1", "some"]);
        guest.domain.children.push(Element::new("iothreads").saying(count));
    },
    "a controller" => |guest, dice| {
        let kind = dice.pick(&["scsi", "scsi", "scsi", "ide", "sata", "fdc", "nvme", "floppy"]);
        let mut controller = Element::new("controller").with("type", kind).with("index", dice.below(3));
        if kind == "scsi" {
            controller.set("model", dice.pick(&["virtio-scsi", "lsilogic", "buslogic", "lsisas1068", "ncr53c90", "am53c974", "auto", "bogus", "virtio-transitional"]));
            let mut driver = Element::new("driver");
            match dice.below(6) {
                0 => driver.set("queues", 4),
                1 => driver.set("cmd_per_lun", 10),
                2 => driver.set("max_sectors", 100),
                3 => driver.set("ioeventfd", "on"),
                4 => driver.set("iothread", dice.pick(&["1", "3"])),
                _ => {}
            }
            controller.children.push(driver);
        }
        guest.devices.children.push(controller);
    },
    "a device limit" => |guest, dice| {
        let mut tune = Element::new("blkiotune");
        for _ in 0..2 {
            let path = dice.pick(&["/dev/sda", "/dev/sdb"]);
            tune.children.push(
                Element::new("device")
                    .around(Element::new("path").saying(path))
                    .around(Element::new("weight").saying(dice.pick(&["500", "5", "heavy"]))),
            );
        }
        guest.domain.children.push(tune);
    },
    "no USB" => |guest, _| {
        let controller = Element::new("controller").with("type", "usb").with("index", 0).with("model", "none");
        guest.devices.children.push(controller);
    },
    "a SCSI host device" => |guest, dice| {
        let address = Element::new("address").with("bus", 0).with("target", 0).with("unit", 0);
        let source = Element::new("source").around(Element::new("adapter").with("name", "scsi_host0")).around(address);
        let mut device = Element::new("hostdev").with("mode", "subsystem").with("type", "scsi").around(source);
        device.children.push(Element::new("address").with("type", "drive").with("controller", 0).with("bus", 0).with("target", 0).with("unit", dice.below(2)));
        guest.devices.children.push(device);
    },
}
