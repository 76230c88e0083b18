//! The table of capabilities, held to what each QEMU says of itself.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use vmdisk_facts::{Answer, Capability, Introspection, Probe, Target, Version};
use vmdisk_qmp::{Launch, QmpError, introspect};
use vmdisk_tests::{QEMU_VERSIONS, QemuBuild, fixtures, on_each_qemu, qemus};

use crate::storage::Storage;

/// Where a build differs from what its version implies, and why.
const DIFFERENT: &[(&str, &str, &str)] =
    &[("5.2", "qcow2-zstd", "Debian 11 builds it without zstd")];

fn asked(build: &QemuBuild) -> Introspection {
    introspect(&build.emulator(), Duration::from_secs(30)).unwrap()
}

#[test]
fn each_qemu_says_what_is_recorded_of_it() {
    on_each_qemu("recorded introspection", |build| {
        let recorded = fixtures()
            .join("capabilities")
            .join(format!("{}.json", build.name));
        let asked = asked(build);
        vmdisk_tests::assert_golden(&recorded, &asked.to_json());
        assert_eq!(Introspection::from_json(&asked.to_json()).unwrap(), asked);
    });
}

#[test]
fn the_table_is_right_about_each_version_but_for_what_builds_leave_out() {
    on_each_qemu("the table of capabilities", |build| {
        let by_version = build.target();
        let mut different: Vec<String> = Vec::new();
        for (name, has) in asked(build).capabilities {
            let capability = Capability::from_name(&name).unwrap();
            let answer = by_version.can(capability);
            // No version implies a block driver that builds leave out.
            let is_open = matches!(capability.row().probe, Probe::BlockDriver(_));
            if answer.is_yes() != has && !(is_open && answer == Answer::Unknown) {
                different.push(name);
            }
        }
        let known: Vec<&str> = DIFFERENT
            .iter()
            .filter(|(version, ..)| *version == build.name)
            .map(|(_, name, _)| *name)
            .collect();
        assert_eq!(different, known, "QEMU {}", build.name);
    });
}

/// Options that need something which not every version has; `FILE` and `QCOW2` stand for images.
const USES: &[(&str, &[&str])] = &[
    (
        "aio-io-uring",
        &[
            "-blockdev",
            "driver=file,node-name=f,filename=FILE,aio=io_uring",
        ],
    ),
    (
        "aio-max-batch",
        &[
            "-blockdev",
            "driver=file,node-name=f,filename=FILE,aio-max-batch=4",
        ],
    ),
    (
        "node-active",
        &[
            "-blockdev",
            "driver=file,node-name=f,filename=FILE,active=on",
        ],
    ),
    (
        "discard-no-unref",
        &[
            "-blockdev",
            "driver=qcow2,node-name=q,file.driver=file,file.filename=QCOW2,discard-no-unref=on",
        ],
    ),
    (
        "object-json",
        &["-object", r#"{"qom-type":"iothread","id":"io0"}"#],
    ),
    (
        "device-json",
        &["-device", r#"{"driver":"virtio-scsi-pci","id":"s0"}"#],
    ),
    (
        "iothread-vq-mapping-blk",
        &[
            "-object",
            "iothread,id=io0",
            "-blockdev",
            "driver=file,node-name=f,filename=FILE",
            "-device",
            r#"{"driver":"virtio-blk-pci","drive":"f","iothread-vq-mapping":[{"iothread":"io0"}]}"#,
        ],
    ),
    (
        "iothread-vq-mapping-scsi",
        &[
            "-object",
            "iothread,id=io0",
            "-device",
            r#"{"driver":"virtio-scsi-pci","iothread-vq-mapping":[{"iothread":"io0"}]}"#,
        ],
    ),
    (
        "iothread-thread-pool",
        &[
            "-object",
            "iothread,id=io0,thread-pool-min=1,thread-pool-max=4",
        ],
    ),
    (
        "iothread-aio-max-batch",
        &["-object", "iothread,id=io0,aio-max-batch=4"],
    ),
    (
        "memory-backend-memfd",
        &["-object", "memory-backend-memfd,id=m0,size=1M"],
    ),
    (
        "memory-backend-shm",
        &["-object", "memory-backend-shm,id=m0,size=1M,share=on"],
    ),
    (
        "reconnect",
        &["-chardev", "socket,id=c0,path=/nonexistent/s,reconnect=1"],
    ),
    (
        "reconnect-ms",
        &[
            "-chardev",
            "socket,id=c0,path=/nonexistent/s,reconnect-ms=1000",
        ],
    ),
    (
        "nvme-ns",
        &[
            "-blockdev",
            "driver=file,node-name=f,filename=FILE",
            "-device",
            "nvme,id=n0,serial=a",
            "-device",
            "nvme-ns,bus=n0,drive=f",
        ],
    ),
    (
        "report-discard-granularity",
        &[
            "-blockdev",
            "driver=file,node-name=f,filename=FILE",
            "-device",
            "virtio-blk-pci,drive=f,report-discard-granularity=on",
        ],
    ),
    (
        "stats-intervals",
        &[
            "-blockdev",
            "driver=file,node-name=f,filename=FILE",
            "-device",
            r#"{"driver":"virtio-blk-pci","drive":"f","stats-intervals":[10]}"#,
        ],
    ),
];

#[test]
fn a_qemu_takes_what_it_says_it_has_and_refuses_the_rest() {
    on_each_qemu("what QEMU says it can do", |build| {
        let storage = Storage::new();
        let file = storage.raw("a.raw", 1 << 20);
        let qcow2 = storage
            .qcow2("a.qcow2", None)
            .expect("qemu-img makes images");
        let target = asked(build).target();
        for (name, arguments) in USES {
            let capability = Capability::from_name(name).unwrap();
            let arguments = arguments
                .iter()
                .map(|word| word.replace("FILE", &file).replace("QCOW2", &qcow2));
            let machine = ["-machine", "q35", "-accel", "tcg", "-nodefaults"];
            let started = Launch::paused(build.emulator())
                .args(machine)
                .args(arguments)
                .start();
            match (target.can(capability).is_yes(), &started) {
                (true, Ok(_)) | (false, Err(QmpError::Ended { .. })) => {}
                (has, _) => panic!("{name}: has {has}, and {started:?}"),
            }
        }
    });
}

/// A default that hangs on the machine type.
struct Default {
    capability: &'static str,
    device: &'static str,
    property: &'static str,
    /// Its value before machine types have the capability.
    before: &'static str,
}

const fn default(
    capability: &'static str,
    device: &'static str,
    property: &'static str,
    before: &'static str,
) -> Default {
    Default {
        capability,
        device,
        property,
        before,
    }
}

/// Devices, without the number of their node.
const BLK: &str = "virtio-blk-pci,drive=f";
const BLK_OF_4_QUEUES: &str = "virtio-blk-pci,num-queues=4,drive=f";
const NVME: &str = "nvme-ns,drive=f";
const SCSI: &str = "scsi-hd,drive=f";

const DEFAULTS: &[Default] = &[
    default("machine-virtio-modern", BLK, "disable-modern", "true"),
    default("machine-vector-per-queue", BLK_OF_4_QUEUES, "vectors", "2"),
    default("machine-virtio-blk-discard", BLK, "discard", "false"),
    default("machine-queue-size-256", BLK, "queue-size", "128"),
    default("machine-queue-per-vcpu", BLK, "num-queues", "1"),
    default(
        "machine-report-discard-granularity",
        BLK,
        "report-discard-granularity",
        "false",
    ),
    default("machine-nvme-shared", NVME, "shared", "false"),
    default("machine-queue-reset", BLK, "queue_reset", "false"),
    default("machine-scsi-dpofua", SCSI, "dpofua", "false"),
];

/// The id of a device.
fn id(device: &str) -> String {
    device.replace([',', '=', '-'], "_")
}

/// The last machine types without something of [`DEFAULTS`], and the first with it.
const EDGES: [&str; 16] = [
    "2.6", "2.7", "2.11", "2.12", "3.1", "4.0", "4.2", "5.0", "5.1", "5.2", "6.0", "6.1", "6.2",
    "7.1", "7.2", "10.0",
];

#[test]
fn each_machine_type_has_the_defaults_of_its_version() {
    let seen = RefCell::new(BTreeSet::new());
    on_each_qemu("defaults of machine types", |build| {
        let storage = Storage::new();
        let file = storage.raw("a.raw", 1 << 20);
        // Without a subsystem a namespace is never shared; 5.2 has none.
        let subsystem = [
            "-device",
            "nvme-subsys,id=s",
            "-device",
            "nvme,serial=a,subsys=s",
        ];
        let nvme = match build.version {
            Version(..6, ..) => &["-device", "nvme,serial=a"][..],
            Version(..) => &subsystem,
        };
        let machines = asked(build).machines;
        let newest = format!("pc-i440fx-{}", build.name);
        for machine in EDGES
            .map(|edge| format!("pc-i440fx-{edge}"))
            .into_iter()
            .chain([newest])
        {
            if !machines.contains(&machine) {
                continue;
            }
            let target = Target {
                machine: Some(machine.clone()),
                ..Target::default()
            };
            let mut launch = Launch::paused(build.emulator())
                .args([
                    "-machine",
                    &machine,
                    "-accel",
                    "tcg",
                    "-nodefaults",
                    "-smp",
                    "4",
                ])
                .args(["-device", "virtio-scsi-pci"])
                .args(nvme);
            for (number, device) in [BLK, BLK_OF_4_QUEUES, NVME, SCSI].iter().enumerate() {
                let node = format!("driver=file,read-only=on,node-name=f{number},filename={file}");
                let device = format!("{device}{number},id={}", id(device));
                launch = launch.args(["-blockdev", &node, "-device", &device]);
            }
            let mut qemu = launch.start().unwrap();
            for row in DEFAULTS {
                // A property that this QEMU does not know has no default to differ.
                let path = format!("/machine/peripheral/{}", id(row.device));
                let Ok(value) = qemu.property(&path, row.property) else {
                    continue;
                };
                let capability = Capability::from_name(row.capability).unwrap();
                let before: serde_json::Value = serde_json::from_str(row.before).unwrap();
                let is_before = value == before;
                let told = target.can(capability).is_no();
                assert_eq!(is_before, told, "{machine}: {} is {value}", row.property);
                seen.borrow_mut().insert((row.capability, is_before));
            }
        }
    });
    let both = DEFAULTS
        .iter()
        .flat_map(|row| [(row.capability, false), (row.capability, true)]);
    let missed: Vec<_> = both.filter(|both| !seen.borrow().contains(both)).collect();
    if qemus("defaults of machine types").len() >= QEMU_VERSIONS.len() {
        assert_eq!(missed, [], "never seen");
    }
}
