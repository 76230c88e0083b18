//! Specs: what is read, what is refused and where, and that nothing is lost on the way.

use crate::common;
use std::sync::LazyLock;

use proptest::prelude::*;
use vmdisk_model::{Bytes, CacheMode, Format, Qcow2Preallocation};
use vmdisk_plan::*;

const WHOLE: &str = "\
version: 1
guest:
  name: web1
  type: kvm
  arch: x86_64
  machine: pc-q35-10.0
  firmware: efi
  vcpus: 4
  memory: 8G
  iothreads: auto
  hugepages: 2M
disks:
  - qcow2:
      path: /srv/web1.qcow2
      size: 40G
      preallocation: metadata
      cluster-size: 128K
      extended-l2: yes
      lazy-refcounts: off
      backing: {path: /srv/base.img, format: raw}
    bus: virtio-blk
    cache: none
    iothread: [1, 2]
    boot: 1
    iotune: {total-iops-sec: 500, total-bytes-sec: 100M}
  - lvm-thin: {group: vg0, volume: data, pool: pool0, size: 1T, pool-size: 500G, chunk-size: 256K, zero: true}
  - device: {path: /dev/disk/by-id/wwn-0x5000c500, as: lun}
  - vhost-user-blk: {socket: /run/vhost.sock, reconnect-timeout: 5}
  - raw: {path: /srv/boot.iso}
    media: cdrom
";

#[test]
fn a_whole_spec_is_read_as_it_is_written() {
    let spec = Spec::from_yaml(WHOLE).unwrap();
    let guest = spec.guest.as_ref().unwrap();
    assert_eq!(guest.name.as_deref(), Some("web1"));
    assert_eq!(guest.firmware, Some(vmdisk_model::Firmware::Efi));
    assert_eq!(guest.iothreads, Some(IoThreadCount::Auto));
    assert_eq!(guest.hugepages, Some(HugePagesSpec::Size(Bytes(2 << 20))));
    assert_eq!(spec.disks.len(), 5);
    let BackendSpec::Qcow2(qcow2) = &spec.disks[0].backend else {
        panic!("the first disk is a qcow2 image");
    };
    assert_eq!(qcow2.preallocation, Some(Qcow2Preallocation::Metadata));
    assert_eq!(qcow2.extended_l2, Some(true));
    assert_eq!(qcow2.lazy_refcounts, Some(false));
    assert_eq!(qcow2.backing.as_ref().unwrap().format, Format::Raw);
    assert_eq!(spec.disks[0].bus, Some(BusSpec::Virtio));
    assert_eq!(spec.disks[0].cache, Some(CacheMode::None));
    assert_eq!(spec.disks[0].io, None, "what is not written stays open");
    assert_eq!(
        spec.disks[0].iothread,
        Some(IoThreadSpec::Several(vec![1, 2]))
    );
    assert_eq!(
        spec.disks[2].backend,
        BackendSpec::Device(DeviceSpec {
            path: "/dev/disk/by-id/wwn-0x5000c500".to_owned(),
            access: Some(DeviceAccess::Lun),
            format: None,
            backing_chain: None,
        })
    );
    assert_eq!(Spec::from_yaml(&spec.to_yaml()), Ok(spec));
}

/// What is wrong with a text, as a person sees it.
fn faults(text: &str) -> Vec<String> {
    match Spec::from_yaml(text) {
        Ok(spec) => panic!("accepted: {spec:?}"),
        Err(errors) => errors.iter().map(SpecError::to_string).collect(),
    }
}

#[test]
fn every_fault_is_told_with_its_place_and_what_to_write() {
    let text = "\
version: 1
colour: red
disks:
  - qcow2:
      path: srv/a.qcow2
      size: 40Q
      cluster_size: 64K
    cache: nnone
    size: 40G
  - raw: {path: /srv/b.img, size: 1G}
    lvm: {group: vg0, volume: b}
  - bus: virtio
  - lvm: {group: -vg, volume: data, size: 100}
    discrad: unmap
    queues: 0
    queues: 1
";
    assert_eq!(
        faults(text),
        [
            "line 2, column 1: colour: unknown key `colour`; the keys here are `version`, `guest` and `disks`",
            "line 6, column 13: disks[0].qcow2.size: `40Q` is not a valid size: unknown unit `Q`, expected one of K, M, G, T, P (powers of 1024; KB and so on are powers of 1000)",
            "line 7, column 7: disks[0].qcow2.cluster_size: unknown key `cluster_size`; did you mean `cluster-size`?",
            "line 8, column 12: disks[0].cache: expected `none`, `writethrough`, `writeback`, `directsync` or `unsafe`, found `nnone`; did you mean `none`?",
            "line 9, column 5: disks[0].size: unknown key `size`; `size` belongs to the keys of `raw`, `qcow2`, `lvm`, `lvm-thin`, `zvol` and `volume`",
            "line 11, column 5: disks[1].lvm: a disk has one backend, but this one has `raw` and `lvm`; keep `raw`, or make it two disks",
            "line 12, column 5: disks[2]: the backend of the disk is missing; write one of `raw`, `qcow2`, `lvm`, `lvm-thin`, `device`, `zvol`, `nvme`, `vhost-vdpa`, `directory`, `volume`, `vhost-user-blk`, `network`, `empty` or `seed`",
            "line 14, column 5: disks[3].discrad: unknown key `discrad`; did you mean `discard`?",
            "line 16, column 5: disks[3].queues: `queues` is written twice",
        ]
    );
}

#[test]
fn values_that_no_tool_takes_are_refused_once_the_words_are_right() {
    for (disk, fault) in [
        ("raw: {path: a.img}", "is not an absolute path"),
        ("raw: {path: /dev/sda}", "is a device, not a file"),
        ("raw: {path: /srv/}", "is a directory"),
        ("raw: {path: /a, size: 100}", "whole sectors"),
        ("raw: {path: /a, size: 0}", "whole sectors"),
        ("raw: {path: /a, size: 10}", "did you mean `10G`?"),
        (
            "raw: {path: /a, size: 15E}",
            "15 EiB is more than the size of a file can be",
        ),
        (
            "raw: {path: /a, size: -5G}",
            "expected a number with a unit, such as 40G",
        ),
        (
            "raw: {path: /a, preallocation: full}",
            "applies only to new storage, which needs `size`",
        ),
        (
            "raw: {path: /a, size: 1G, preallocation: metadata}",
            "expected `off`, `falloc` or `full`",
        ),
        (
            "qcow2: {path: /a, size: 1G, cluster-size: 3K}",
            "a power of two from 512 bytes",
        ),
        (
            "qcow2: {path: /a, size: 1G, cluster-size: 4M}",
            "a power of two from 512 bytes",
        ),
        (
            "qcow2: {path: /a, size: 1G, cluster-size: 8K, extended-l2: true}",
            "16 KiB or more",
        ),
        (
            "qcow2: {path: /a, extended-l2: true}",
            "applies only to new storage, which needs `size`",
        ),
        (
            "qcow2: {path: /a, preallocation: full, backing: {path: /b, format: raw}}",
            "can be preallocated only with extended-l2",
        ),
        (
            "qcow2: {path: /a, backing: {path: /b}}",
            "`format` is missing",
        ),
        (
            "qcow2: {path: /a, backing: {path: /a, format: qcow2}}",
            "an image cannot be its own backing image",
        ),
        (
            "qcow2: {path: /a, backing: {path: /b, format: iso}}",
            "cannot open images of the format `iso`",
        ),
        (
            "lvm: {group: vg0, volume: .., size: 1G}",
            "is not a valid LVM name",
        ),
        ("lvm: {group: vg0, volume: snapshot1}", "LVM reserves names"),
        (
            "lvm-thin: {group: vg0, volume: a, size: 1G}",
            "`pool` is missing",
        ),
        (
            "lvm-thin: {group: vg0, volume: a, size: 1G, pool: p, chunk-size: 64K}",
            "applies only to a new pool",
        ),
        (
            "lvm-thin: {group: vg0, volume: a, size: 1G, pool: p, pool-size: 9G, chunk-size: 100K}",
            "multiple of 64 KiB",
        ),
        ("device: cdrom", "expected a group of keys"),
        (
            "vhost-user-blk: {socket: /run/s, reconnect: off, reconnect-timeout: 1}",
            "the timeout requires",
        ),
        (
            "{raw: {path: /a}, target: vda1}",
            "is not a valid disk name",
        ),
        (
            "{raw: {path: /a}, target: 'xx;rm'}",
            "is not a valid disk name",
        ),
        ("{raw: {path: /a}, queues: 1025}", "expected 1 to 1024"),
        ("{raw: {path: /a}, queue-size: 100}", "power of two"),
        (
            "{raw: {path: /a}, logical-block-size: 4096, physical-block-size: 512}",
            "does not fit",
        ),
        (
            "{raw: {path: /a}, discard-granularity: 1000}",
            "multiple of the logical block",
        ),
        ("{raw: {path: /a}, discard-no-unref: true}", "only qcow2"),
        ("{raw: {path: /a}, serial: 'a,b'}", "',' is not allowed"),
        ("{raw: {path: /a}, serial: 0x10}", "put it in quotes"),
        ("{raw: {path: /a}, wwn: abc}", "16 hexadecimal digits"),
        (
            "{raw: {path: /a}, iotune: {total-iops-sec: 1, read-iops-sec: 1}}",
            "a total limit and a limit for reads or writes",
        ),
        (
            "{raw: {path: /a}, iotune: {read-iops-sec: 9, read-iops-sec-max: 8}}",
            "below the limit of 9",
        ),
        (
            "{raw: {path: /a}, iotune: {read-bytes-sec: 9, read-bytes-sec-max-length: 8}}",
            "has a length, but no rate",
        ),
        (
            "{raw: {path: /a}, iothread: [1, 1]}",
            "names each iothread once",
        ),
        ("{raw: {path: /a}, iothread: some}", "or `auto`"),
        (
            "raw: {path: /a, cache: none}",
            "write `cache` in the item of `disks`",
        ),
        (
            "raw: {path: /a, size: 1G, owner: 'a b'}",
            "expected a name or a number, found `a b`",
        ),
        (
            "raw: {path: /a, owner: root}",
            "applies only to new storage, which needs `size`",
        ),
        (
            "network: {protocol: iscsi, name: iqn.x/1/2, hosts: a}",
            "a disk on iscsi is named",
        ),
    ] {
        let text = format!("version: 1\ndisks:\n- {disk}\n");
        let found = faults(&text);
        assert!(
            found.len() == 1 && found[0].contains(fault),
            "{disk}: {found:?}"
        );
        assert!(found[0].starts_with("line "), "{found:?}");
    }
}

#[test]
fn values_at_the_limits_are_accepted_and_the_next_ones_are_not() {
    let socket = |length: usize| {
        let path = "/".repeat(length);
        format!("vhost-user-blk: {{socket: {path}}}")
    };
    for (disk, next) in [
        (socket(107), socket(108)),
        (
            "{raw: {path: /a}, iotune: {read-iops-sec: 8, read-iops-sec-max: 8}}".to_owned(),
            "{raw: {path: /a}, iotune: {read-iops-sec: 8, read-iops-sec-max: 7}}".to_owned(),
        ),
        (
            "{raw: {path: /a}, logical-block-size: 4096, physical-block-size: 4096}".to_owned(),
            "{raw: {path: /a}, logical-block-size: 8192, physical-block-size: 4096}".to_owned(),
        ),
        (
            "{raw: {path: /a}, logical-block-size: 0, discard-granularity: 4096}".to_owned(),
            "{raw: {path: /a}, logical-block-size: 0, discard-granularity: 256}".to_owned(),
        ),
        (
            "{raw: {path: /a}, logical-block-size: 4096, physical-block-size: 0}".to_owned(),
            "{raw: {path: /a}, logical-block-size: 4096, physical-block-size: 512}".to_owned(),
        ),
        (
            "{raw: {path: /a}, iotune: {total-iops-sec: 1, group-name: g}}".to_owned(),
            "{raw: {path: /a}, iotune: {group-name: g}}".to_owned(),
        ),
        (
            "network: {protocol: nbd, hosts: ['[2001:db8::7]:10810']}".to_owned(),
            "network: {protocol: nbd, hosts: ['[2001:db8::7]x10810']}".to_owned(),
        ),
        (
            "network: {protocol: nbd, hosts: [a], tls: true, tls-hostname: b}".to_owned(),
            "network: {protocol: nbd, hosts: [a], tls-hostname: b}".to_owned(),
        ),
    ] {
        let read = |disk: &str| Spec::from_yaml(&format!("version: 1\ndisks:\n- {disk}\n"));
        assert_eq!(read(&disk).err(), None, "{disk}");
        assert!(read(&next).is_err(), "{next}");
    }
    // A word in a value is not a key.
    assert!(is_spec(r#"{"version": 1, "disks": []}"#));
    assert!(!is_spec(r#"{"kind": "version", "disks": []}"#));
}

#[test]
fn two_disks_do_not_write_to_one_storage_and_do_not_share_a_name() {
    for (disks, fault) in [
        (
            "[{raw: {path: /a, size: 1G}}, {raw: {path: /a}}]",
            "write to the same storage",
        ),
        (
            "[{lvm: {group: v, volume: a}}, {device: {path: /dev/v/a}}]",
            "write to the same storage",
        ),
        (
            "[{qcow2: {path: /a, data-file: /b}}, {raw: {path: /b}}]",
            "disks[1].raw: disks[0] and disks[1] write to the same storage",
        ),
        (
            "[{raw: {path: /a}}, {vhost-user-blk: {socket: /s, serves: {path: /a, format: raw}}}]",
            "disks[1].vhost-user-blk.serves: disks[0] and disks[1] write",
        ),
        (
            "[{vhost-user-blk: {socket: /s, serves: {path: /a, format: raw}}}, \
              {vhost-user-blk: {socket: /t, serves: {path: /a, format: raw}}}]",
            "disks[1].vhost-user-blk.serves: disks[0] and disks[1] write",
        ),
        // Only raw storage can be shared.
        (
            "[{raw: {path: /a}}, {raw: {path: /a}}]",
            "use separate storage, or write `shareable: true` for both",
        ),
        (
            "[{qcow2: {path: /a}}, {raw: {path: /a}}]",
            "storage; use separate storage for each disk",
        ),
        (
            "[{raw: {path: /a}, target: vda}, {raw: {path: /b}, target: vda}, {raw: {path: /c}, target: vdb}]",
            "has the same name `vda`; `vdc` is free",
        ),
        (
            "[{raw: {path: /a}, boot: 1}, {raw: {path: /b}, boot: 1}]",
            "place 1 in the boot order too",
        ),
    ] {
        let found = faults(&format!("{{version: 1, disks: {disks}}}"));
        assert!(found.len() == 1 && found[0].contains(fault), "{found:?}");
    }
    let shared = "[{raw: {path: /a}, shareable: on}, {raw: {path: /a}, shareable: on}]";
    assert!(Spec::from_yaml(&format!("{{version: 1, disks: {shared}}}")).is_ok());
}

#[test]
fn texts_that_are_no_spec_are_refused() {
    for (text, fault) in [
        ("", "expected a group of keys, found nothing"),
        ("[]", "expected a group of keys, found a list"),
        ("version: 1", "`disks` is missing"),
        ("disks: []", "`version` is missing; write `version: 1`"),
        (
            "{version: 2, disks: []}",
            "expected version 1, found the number 2",
        ),
        (
            "{version: 1, disks: {raw: {path: /a}}}",
            "expected a list of disks",
        ),
        ("{version: 1, disks: [!x {}]}", "a tag such as"),
        ("version: 1\n---\nversion: 1\n", "more than one document"),
        ("a: [", "line 1, column 4: unclosed bracket"),
        ("a: &a [*a]", "recursion"),
        ("%YAML 9", "line 1"),
    ] {
        let found = faults(text);
        assert!(
            found.iter().any(|line| line.contains(fault)),
            "{text}: {found:?}"
        );
    }
    let deep = format!("version: 1\ndisks:\n{}", "[".repeat(500_000));
    assert_eq!(
        faults(&deep),
        ["line 3, column 129: recursion limit exceeded"]
    );
    let large = "#".repeat(MAX_SPEC_BYTES + 1);
    assert!(faults(&large)[0].contains("1048577 bytes"));
}

#[test]
fn json_is_read_through_serde_too() {
    let text =
        r#"{"version": 1, "disks": [{"lvm": {"group": "vg0", "volume": "a"}, "cache": "none"}]}"#;
    let spec: Spec = serde_json::from_str(text).unwrap();
    assert_eq!(Spec::from_yaml(text), Ok(spec));
    let error =
        serde_json::from_str::<Spec>(r#"{"version": 1, "disks": [{"rwa": {}}]}"#).unwrap_err();
    assert!(error.to_string().contains("did you mean `raw`"), "{error}");
}

/// Whether the schema takes it, and whether the reader does.
fn taken(text: &str) -> (bool, bool) {
    static VALIDATOR: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
        let schema = serde_json::to_value(Spec::json_schema()).expect("it is JSON");
        jsonschema::validator_for(&schema).expect("it is a schema")
    });
    let document = vmdisk_document::read_yaml(text, 100).expect("it is YAML");
    let value = serde_json::to_value(&document.root.value).expect("it is JSON");
    (VALIDATOR.is_valid(&value), Spec::from_yaml(text).is_ok())
}

#[test]
fn the_schema_has_the_ends_of_the_ranges_of_the_reader() {
    for (key, refused, accepted) in [
        ("boot", &["0"][..], &["1", "2"][..]),
        ("queues", &["1025"], &["0", "1", "1024"]),
        ("queue-size", &["2048"], &["0", "256", "1024"]),
        ("rotation-rate", &["0", "65535"], &["1", "7200"]),
        ("logical-block-size", &["511"], &["0", "512", "4096"]),
        ("physical-block-size", &["511"], &["0", "512", "4096"]),
    ] {
        for (values, is_taken) in [(refused, false), (accepted, true)] {
            for value in values {
                let spec = |value: &str| {
                    format!("{{version: 1, disks: [{{raw: {{path: /a}}, {key}: {value}}}]}}")
                };
                let number = spec(value);
                assert_eq!(taken(&number), (is_taken, is_taken), "{number}");
                // Of a number as text, the schema has only that it is no zero.
                let text = spec(&format!("'{value}'"));
                let in_schema = is_taken || *value != "0";
                assert_eq!(taken(&text), (in_schema, is_taken), "{text}");
            }
        }
    }
}

#[test]
fn the_schema_takes_what_the_reader_takes_and_refuses_unknown_keys() {
    let schema = serde_json::to_value(Spec::json_schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let whole = vmdisk_document::read_yaml(WHOLE, 1000).unwrap();
    let whole = serde_json::to_value(&whole.root.value).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&whole)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    for text in [
        "{version: 1, disks: [{raw: {path: /a}, discrad: unmap}]}",
        "{version: 1, disks: [{raw: {path: /a}, lvm: {group: v, volume: a}}]}",
        "{version: 1, disks: [{bus: virtio}]}",
        "{version: 1, disks: [{raw: {size: 1G}}]}",
        "{version: 1, disks: [{raw: {path: /a, size: 1X}}]}",
        "{version: 2, disks: []}",
        "{disks: []}",
        "{version: 1, disks: [{raw: {path: a.img}}]}",
        "{version: 1, disks: [{device: {path: sda}}]}",
        "{version: 1, disks: [{vhost-user-blk: {socket: a.sock}}]}",
        "{version: 1, disks: [{raw: {path: /a, size: 0}}]}",
        "{version: 1, disks: [{raw: {path: /a, size: 10}}]}",
        "{version: 1, disks: [{raw: {path: /a, size: '10'}}]}",
        "{version: 1, disks: [{raw: {path: /a, size: 0G}}]}",
        "{version: 1, disks: [{raw: {path: /a, size: 9223372036854775808}}]}",
        "{version: 1, disks: [{qcow2: {path: /a, size: 1G, cluster-size: 256}}]}",
        "{version: 1, disks: [{raw: {path: /a}, boot: 0}]}",
        "{version: 1, disks: [{raw: {path: /a}, queues: 1025}]}",
        "{version: 1, disks: [{raw: {path: /a}, queue-size: 2048}]}",
        "{version: 1, disks: [{raw: {path: /a}, wwn: '5000'}]}",
        "{version: 1, disks: [{raw: {path: /a}, vendor: Unreasonable}]}",
        "{version: 1, disks: [{nvme: {address: '0000:01:00.0', namespace: 0}}]}",
        "{version: 1, guest: {vcpus: 0}, disks: []}",
        "{version: 1, guest: {memory: 2048}, disks: []}",
        "{version: 1, guest: {uuid: web1}, disks: []}",
        "{version: 1, guest: {machine: q 35}, disks: []}",
    ] {
        let document = vmdisk_document::read_yaml(text, 100).unwrap();
        let value = serde_json::to_value(&document.root.value).unwrap();
        assert!(!validator.is_valid(&value), "{text}");
        assert!(Spec::from_yaml(text).is_err(), "{text}");
    }
}

#[test]
fn a_number_of_the_wrong_kind_is_shown_and_a_limit_belongs_to_its_group() {
    for (disk, message) in [
        (
            "raw: {path: /a, size: 1.5}",
            "expected a size such as 40G or a whole number of bytes, found the number 1.5",
        ),
        (
            "{raw: {path: /a}, total-iops-sec: 5}",
            "unknown key `total-iops-sec`; write `total-iops-sec` in the group `iotune`",
        ),
        (
            "{raw: {path: /a}, queues: -1}",
            "expected a whole number, found the number -1",
        ),
        (
            "{raw: {path: /a}, queues: 1e300}",
            "expected a whole number, found the number 1e300",
        ),
    ] {
        let found = faults(&format!("version: 1\ndisks:\n- {disk}\n"));
        assert!(
            found.len() == 1 && found[0].ends_with(message),
            "{disk}: {found:?}"
        );
    }
}

#[test]
fn a_second_document_and_a_second_user_of_a_path_come_with_the_way_out() {
    let two = "version: 1\ndisks:\n- raw: {path: /a}\n---\nversion: 1\ndisks: []\n";
    assert_eq!(
        faults(two),
        [
            "line 4, column 1: more than one document; a spec is one document: write all disks into one list"
        ]
    );
    let twice = "version: 1\ndisks:\n- raw: {path: /a}\n- raw: {path: /a}\n";
    assert_eq!(
        faults(twice),
        [
            "line 4, column 8: disks[1].raw: disks[0] and disks[1] write to the same storage; use separate storage, or \
          write `shareable: true` for both"
        ]
    );
}

#[test]
fn what_is_only_about_images_that_exist_is_refused_for_new_ones() {
    let disk = |keys: &str| format!("version: 1\ndisks:\n- qcow2: {{path: /a, {keys}}}\n");
    let chain = |count: usize| {
        let images = (0..count).map(|nth| format!("{{path: /b{nth}, format: raw}}"));
        format!("backing-chain: [{}]", images.collect::<Vec<_>>().join(", "))
    };
    assert!(Spec::from_yaml(&disk(&chain(199))).is_ok());
    for (keys, reason) in [
        (
            chain(200).as_str(),
            "libvirt does not start a guest with a chain of more than 200 images",
        ),
        (
            "size: 1G, backing-chain: []",
            "`backing-chain` applies only to an existing image",
        ),
        (
            "size: 1G, data-file: /d",
            "`data-file` applies only to an existing image",
        ),
        (
            "data-file: /a",
            "an image and its data file must be different files",
        ),
        (
            "backing-chain: [{path: /a, format: raw}]",
            "an image cannot be its own backing image",
        ),
        (
            "backing-chain: [{path: /b, format: iso}]",
            "QEMU cannot open images of the format `iso`",
        ),
        (
            "size: 1G, encryption: {secret: {usage: u}}",
            "a new encrypted image needs `key-file`",
        ),
        ("encryption: {secret: {}}", "identify a secret"),
        ("encryption: {secret: {uuid: x}}", "`x` is not a UUID"),
        (
            "encryption: {secret: {uuid: 12345678-1234-1234-1234-12345678901}}",
            "is not a UUID",
        ),
    ] {
        let found = faults(&disk(keys));
        assert!(
            found.len() == 1 && found[0].contains(reason),
            "{keys}: {found:?}"
        );
    }
}

#[test]
fn every_key_of_the_schema_has_a_description() {
    fn walk(schema: &serde_json::Value, at: &str, missing: &mut Vec<String>) {
        for (key, below) in schema["properties"].as_object().into_iter().flatten() {
            let at = format!("{at}.{key}");
            if below["description"].as_str().is_none_or(str::is_empty) {
                missing.push(at.clone());
            }
            walk(below, &at, missing);
            walk(&below["items"], &at, missing);
        }
    }
    let schema = serde_json::to_value(Spec::json_schema()).unwrap();
    let mut missing = Vec::new();
    walk(&schema, "", &mut missing);
    assert!(missing.is_empty(), "{missing:?}");
    assert!(
        schema["properties"]["disks"]["items"]["properties"]
            .as_object()
            .unwrap()
            .len()
            > 30
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_spec_comes_back_from_its_yaml(spec in common::spec()) {
        let yaml = spec.to_yaml();
        prop_assert_eq!(Spec::from_yaml(&yaml), Ok(spec), "{}", yaml);
    }

    #[test]
    fn what_is_written_fits_the_schema(spec in common::spec()) {
        static VALIDATOR: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
            let schema = serde_json::to_value(Spec::json_schema()).unwrap();
            jsonschema::validator_for(&schema).unwrap()
        });
        let value = serde_json::to_value(&spec).unwrap();
        prop_assert!(VALIDATOR.is_valid(&value), "{}", value);
    }

    #[test]
    fn reading_never_panics(text in r#"(version: 1\n)?[-a-z0-9:\[\]{}&*!|>'"%@`#, \n\t]{0,200}"#) {
        if let Err(errors) = Spec::from_yaml(&text) {
            prop_assert!(!errors.is_empty());
        }
    }

    #[test]
    fn a_damaged_spec_never_panics_and_each_fault_has_a_place(at in 0..WHOLE.len(), with in "[-:\\[{}&*'\"\\n a]") {
        let mut text = WHOLE.to_owned();
        text.replace_range(at..=at, &with);
        if let Err(errors) = Spec::from_yaml(&text) {
            prop_assert!(!errors.is_empty());
            for error in errors {
                prop_assert!(error.place.is_some(), "{}", error);
            }
        }
    }
}

#[test]
fn a_qcow2_image_is_no_larger_than_its_clusters_allow() {
    for (options, is_refused) in [
        ("size: 128G, cluster-size: 512", false),
        ("size: 129G, cluster-size: 512", true),
        ("size: 8T, cluster-size: 4K", false),
        ("size: 9T, cluster-size: 4K", true),
        ("size: 64T, cluster-size: 16K, extended-l2: true", false),
        ("size: 65T, cluster-size: 16K, extended-l2: true", true),
        ("size: 65T, cluster-size: 16K", false),
    ] {
        let text = format!("version: 1\ndisks:\n- qcow2: {{path: /a, {options}}}\n");
        assert_eq!(Spec::from_yaml(&text).is_err(), is_refused, "{options}");
    }
}
