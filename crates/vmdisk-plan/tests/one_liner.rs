//! Disks in one line.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::common;
use proptest::prelude::*;
use vmdisk_model::{Bytes, CacheMode, Format};
use vmdisk_plan::*;

fn read(text: &str) -> DiskSpec {
    DiskSpec::from_one_liner(text).unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
}

/// The same disk, written as YAML.
fn yaml(text: &str) -> DiskSpec {
    let spec = Spec::from_yaml(&format!("version: 1\ndisks:\n- {text}\n"));
    spec.unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
        .disks
        .remove(0)
}

#[test]
fn each_kind_of_backend_has_a_one_liner() {
    for (line, written) in [
        (
            "qcow2:/srv/web1.qcow2,size=40G,preallocation=metadata,bus=virtio",
            "{qcow2: {path: /srv/web1.qcow2, size: 40G, preallocation: metadata}, bus: virtio}",
        ),
        ("lvm:vg0/data", "{lvm: {group: vg0, volume: data}}"),
        ("lvm:/dev/vg0/data", "{lvm: {group: vg0, volume: data}}"),
        ("raw:/srv/a.img", "{raw: {path: /srv/a.img}}"),
        (
            "lvm-thin:vg0/web1,pool=pool0,size=40G,pool-size=500G,chunk-size=128K,zero=on",
            "{lvm-thin: {group: vg0, volume: web1, pool: pool0, size: 40G, pool-size: 500G, chunk-size: 128K, zero: true}}",
        ),
        (
            "device:/dev/disk/by-path/pci-0000:00:1f.2,readonly=on",
            "{device: {path: '/dev/disk/by-path/pci-0000:00:1f.2'}, readonly: true}",
        ),
        (
            "lun:/dev/disk/by-id/wwn-0x5,bus=virtio-scsi",
            "{device: {path: /dev/disk/by-id/wwn-0x5, as: lun}, bus: virtio-scsi}",
        ),
        (
            "vhost-user-blk:/run/x.sock,reconnect=on,reconnect-timeout=5,queues=2",
            "{vhost-user-blk: {socket: /run/x.sock, reconnect: true, reconnect-timeout: 5}, queues: 2}",
        ),
        (
            "qcow2:/srv/o.qcow2,backing.path=/srv/b.img,backing.format=raw,iotune.total-iops-sec=500",
            "{qcow2: {path: /srv/o.qcow2, backing: {path: /srv/b.img, format: raw}}, iotune: {total-iops-sec: 500}}",
        ),
        (
            "raw:/a,iothread.0=1,iothread.1=2",
            "{raw: {path: /a}, iothread: [1, 2]}",
        ),
        (
            "raw:/a,iothread=auto,serial=0x10",
            "{raw: {path: /a}, iothread: auto, serial: '0x10'}",
        ),
    ] {
        assert_eq!(read(line), yaml(written), "{line}");
    }
}

#[test]
fn two_commas_are_one_comma_of_the_value() {
    let disk = read("raw:/srv/a,,b=c.img,size=1G,cache=none");
    let BackendSpec::Raw(raw) = &disk.backend else {
        panic!("it is raw");
    };
    assert_eq!(raw.path, "/srv/a,b=c.img");
    assert_eq!(raw.size, Some(Bytes(1 << 30)));
    assert_eq!(disk.cache, Some(CacheMode::None));
    // Three commas are a comma and an end.
    assert_eq!(
        read("qcow2:/a,,,backing.path=/b,,,backing.format=qcow2").backend,
        BackendSpec::Qcow2(Qcow2Spec {
            path: "/a,".to_owned(),
            backing: Some(BackingSpec {
                path: "/b,".to_owned(),
                format: Format::Qcow2
            }),
            ..Qcow2Spec::default()
        })
    );
}

#[test]
fn every_fault_has_its_column_and_what_to_write() {
    for (line, expected) in [
        (
            "",
            &[
                "line 1, column 1: expected KIND:LOCATION, found nothing; write KIND:LOCATION[,OPTION=VALUE]…, such as qcow2:/srv/web1.qcow2,size=40G,preallocation=metadata or lvm:vg0/data,bus=virtio",
            ][..],
        ),
        (
            "/srv/a.img",
            &[
                "line 1, column 1: `/srv/a.img` does not name the kind of disk; did you mean `raw:/srv/a.img`?",
            ],
        ),
        (
            "qcow:/a",
            &["line 1, column 1: unknown kind of disk `qcow`; did you mean `qcow2`?"],
        ),
        (
            "network:/a",
            &[
                "line 1, column 1: unknown kind of disk `network`; the kinds are `raw`, `qcow2`, `lvm`, `lvm-thin`, `device`, `lun`, `zvol`, `nvme`, `vhost-vdpa`, `directory`, `volume`, `vhost-user-blk`, `seed`, `empty`, `nbd`, `rbd`, `iscsi`, `gluster`, `nfs`, `ssh`, `http`, `https`, `ftp` and `ftps`",
            ],
        ),
        (
            "raw:/a,total-iops-sec=5",
            &[
                "line 1, column 8: unknown key `total-iops-sec`; did you mean `iotune.total-iops-sec`?",
            ],
        ),
        (
            "lvm:data",
            &[
                "line 1, column 5: `data` does not name a group and a volume; write lvm:GROUP/VOLUME",
            ],
        ),
        (
            "lvm:vg0/-x",
            &[
                "line 1, column 9: lvm.volume: `-x` is not a valid LVM name; use letters, digits and +_.-, and no leading -",
            ],
        ),
        (
            "lvm:vg0/a/b",
            &[
                "line 1, column 5: `vg0/a/b` does not name a group and a volume; write lvm:GROUP/VOLUME",
            ],
        ),
        (
            "lvm-thin:vg0/pool0/web1,size=50G",
            &[
                "line 1, column 10: `vg0/pool0/web1` does not name a group and a volume; write `lvm-thin:vg0/web1,pool=pool0`",
            ],
        ),
        (
            "lvm:/dev/mapper/vg0-a",
            &[
                "line 1, column 5: `/dev/mapper/vg0-a` does not name a group and a volume; write lvm:GROUP/VOLUME",
            ],
        ),
        (
            "raw:",
            &[
                "line 1, column 5: `raw:` requires a location; write KIND:LOCATION[,OPTION=VALUE]…, such as qcow2:/srv/web1.qcow2,size=40G,preallocation=metadata or lvm:vg0/data,bus=virtio",
            ],
        ),
        (
            "raw:a.img",
            &[
                "line 1, column 5: raw.path: `a.img` is not an absolute path; use an absolute path, because libvirt and QEMU run in other directories",
            ],
        ),
        (
            "raw:/é,,b,sise=1G,cache=nnone,readonly,,size=1G,size=2G,lvm.x=1,a.b.c.d=1",
            &[
                "line 1, column 11: sise: unknown key `sise`; did you mean `size`?",
                "line 1, column 25: cache: expected `none`, `writethrough`, `writeback`, `directsync` or `unsafe`, found `nnone`; did you mean `none`?",
                "line 1, column 31: `readonly,size` is written wrongly",
            ],
        ),
        (
            "raw:/a,readonly",
            &[
                "line 1, column 8: `readonly` has no value; write `readonly=…`, or `readonly=on` for a switch; write a comma in a value twice",
            ],
        ),
        (
            "raw:/a,",
            &[
                "line 1, column 8: there is nothing between the commas; write a comma in a value twice",
            ],
        ),
        (
            "raw:/a,size=1G,size=2G",
            &["line 1, column 16: `size` is written twice"],
        ),
        (
            "raw:/a,raw.size=1G",
            &[
                "line 1, column 8: unknown key `raw.size`; write the keys of the backend next to the keys of the disk",
            ],
        ),
        (
            "raw:/a,chunk-size=1G",
            &[
                "line 1, column 8: chunk-size: unknown key `chunk-size`; `chunk-size` belongs to the keys of `lvm-thin`",
            ],
        ),
        (
            "qcow2:/a,backing=/b",
            &[
                "line 1, column 18: qcow2.backing: expected a group of keys, found `/b`; its keys are `path` and `format`",
            ],
        ),
        (
            "raw:/a,path=/b",
            &["line 1, column 8: `path` is written twice"],
        ),
        (
            "raw:/a,size=",
            &[
                "line 1, column 13: raw.size: `` is not a valid size: expected a number with a unit, such as 40G",
            ],
        ),
    ] {
        let errors = DiskSpec::from_one_liner(line).expect_err(line);
        let found: Vec<String> = errors.iter().map(SpecError::to_string).collect();
        if expected.len() > 1 {
            // `readonly,,size=1G` is the key `readonly,size`: the double comma is one comma.
            assert_eq!(found[..2], expected[..2], "{found:#?}");
            assert!(
                found[2].starts_with("line 1, column 31: readonly,size: unknown key"),
                "{found:#?}"
            );
            assert_eq!(found.len(), 5, "{found:#?}");
            continue;
        }
        assert_eq!(found, expected, "{line}");
    }
}

type Keys = serde_json::Map<String, serde_json::Value>;

fn text_of(keys: &mut Keys, key: &str) -> String {
    let value = keys.remove(key).unwrap();
    value.as_str().unwrap().replace(',', ",,")
}

/// The address of an export that has no name.
fn address(network: &NetworkSpec, keys: &mut Keys) -> String {
    keys.remove("hosts");
    let NetworkHostSpec { name, port, socket } = &network.hosts.as_ref().unwrap()[0];
    match (name, socket) {
        (Some(name), _) => {
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            if name.contains(':') {
                format!("//[{name}]{port}")
            } else {
                format!("//{name}{port}/")
            }
        }
        (None, socket) => {
            let bytes = socket.as_ref().unwrap().bytes();
            let escaped: String = bytes.map(|byte| format!("%{byte:02X}")).collect();
            format!("///?socket={escaped}")
        }
    }
}

/// Writes a disk as one line, from its YAML shape: what the reader must understand.
fn one_line(disk: &DiskSpec) -> String {
    fn flatten(value: &serde_json::Value, key: &str, out: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(map) => {
                for (name, below) in map {
                    flatten(below, &format!("{key}.{name}"), out);
                }
            }
            serde_json::Value::Array(items) if items.is_empty() => out.push(format!("{key}=none")),
            serde_json::Value::Array(items) => {
                for (at, below) in items.iter().enumerate() {
                    flatten(below, &format!("{key}.{at}"), out);
                }
            }
            serde_json::Value::String(text) => {
                out.push(format!("{key}={}", text.replace(',', ",,")))
            }
            serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {
                out.push(format!("{key}={value}"))
            }
        }
    }
    let spec = Spec::new(vec![disk.clone()]);
    let mut value = serde_json::to_value(&spec).unwrap();
    let map = value["disks"][0].as_object_mut().unwrap();
    let kind = disk.backend.kind();
    let mut backend = map.remove(kind).unwrap();
    let keys = backend.as_object_mut().unwrap();
    let mut text = |key: &str| text_of(keys, key);
    let place = match &disk.backend {
        BackendSpec::Lvm(_) | BackendSpec::LvmThin(_) => {
            format!("{}/{}", text("group"), text("volume"))
        }
        BackendSpec::Volume(_) => format!("{}/{}", text("pool"), text("volume")),
        BackendSpec::Nvme(nvme) => {
            keys.clear();
            let managed = nvme.managed.map(|managed| format!(",managed={managed}"));
            let namespace = nvme.namespace.unwrap_or(1);
            format!(
                "{}/{namespace}{}",
                nvme.address,
                managed.unwrap_or_default()
            )
        }
        BackendSpec::Zvol(_) => text("dataset"),
        BackendSpec::VhostUserBlk(_) => text("socket"),
        BackendSpec::Empty(_) => String::new(),
        BackendSpec::Raw(_)
        | BackendSpec::Qcow2(_)
        | BackendSpec::Device(_)
        | BackendSpec::VhostVdpa(_)
        | BackendSpec::Seed(_)
        | BackendSpec::Directory(_) => text("path"),
        BackendSpec::Network(network) if network.name.is_some() => text("name"),
        // Only an address says that there is no name.
        BackendSpec::Network(network) => address(network, keys),
    };
    let kind = if keys.contains_key("protocol") {
        text_of(keys, "protocol")
    } else {
        kind.to_owned()
    };
    let kind = kind
        + if place.starts_with("///") {
            "+unix"
        } else {
            ""
        };
    let mut out = vec![format!("{kind}:{place}")];
    for (key, below) in keys.iter().chain(map.iter()) {
        flatten(below, key, &mut out);
    }
    out.join(",")
}

proptest! {
    #[test]
    fn every_disk_can_be_said_in_one_line(disk in common::disk()) {
        let line = one_line(&disk);
        prop_assert_eq!(DiskSpec::from_one_liner(&line), Ok(disk), "{}", line);
    }

    #[test]
    fn reading_never_panics_and_columns_lie_in_the_text(
        text in "(raw:|qcow2:|lvm:|lvm-thin:|nbd://|nbd\\+unix:///|https://|iscsi://|rbd:|)[-a-z0-9:/,.=?%@#é \\[\\]]{0,60}"
    ) {
        if let Err(errors) = DiskSpec::from_one_liner(&text) {
            prop_assert!(!errors.is_empty());
            for error in errors {
                let place = error.place.expect("each error of a one-liner has a column");
                prop_assert!(place.column <= text.chars().count() + 1, "{}", error);
            }
        }
    }
}
