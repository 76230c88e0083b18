//! What QEMU takes in silence, row by row: the rule that reports it, and how it shows that QEMU does not do what was
//! written. Where that was not shown it says why.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use serde_json::{Value, json};
use vmdisk::facts::Version;
use vmdisk_collect::{Request, collect};
use vmdisk_qmp::{Launch, QemuProcess};
use vmdisk_tests::{QemuBuild, has_program, io, on_each_qemu, open_files, real};

use crate::row::{reported, reported_on, words};
use crate::setting::Setting;

/// One thing that QEMU takes in silence.
struct Silence {
    /// What is written.
    what: &'static str,
    /// The rule that reports it; the reason where none does.
    rule: Result<&'static str, &'static str>,
    /// The options, in the words of [`crate::row::Row`]; empty where an option is not what it hangs on.
    options: &'static str,
    /// How it shows.
    shown: Shown,
}

/// How it shows that QEMU does not do what is written.
enum Shown {
    /// On each QEMU from a version on.
    Since(Version, fn(&Try<'_>)),
    /// In another test.
    By(&'static str),
    /// Not at all.
    Not(&'static str),
}

/// On each QEMU.
const fn here(show: fn(&Try<'_>)) -> Shown {
    Shown::Since(Version(0, 0, 0), show)
}

/// A QEMU, the files of its guest, and what is written.
struct Try<'a> {
    qemu: &'a QemuBuild,
    setting: &'a Setting,
    options: &'a str,
}

impl Try<'_> {
    /// Starts it with what is written.
    fn start(&self) -> QemuProcess {
        self.start_with(self.options)
    }

    /// Starts it with nodes alone: qemu-io wants a node that no device uses.
    fn start_nodes(&self) -> QemuProcess {
        let nodes = self.options.split(" -device").next().unwrap_or_default();
        self.start_with(nodes)
    }

    fn start_with(&self, options: &str) -> QemuProcess {
        self.launch(options)
            .start()
            .unwrap_or_else(|error| panic!("{options}: {error}"))
    }

    fn launch(&self, options: &str) -> Launch {
        Launch::paused(self.qemu.emulator())
            .args(["-accel", "tcg"])
            .args(words(options, self.setting))
            .in_folder(self.setting.folder())
    }

    /// What is written, with something else in one place.
    fn with(&self, written: &str, other: &str) -> String {
        assert!(self.options.contains(written), "{}", self.options);
        self.options.replacen(written, other, 1)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.setting.folder().join(name)
    }

    /// Kibibytes that a file has on the host.
    fn allocated(&self, name: &str) -> u64 {
        std::fs::metadata(self.path(name)).unwrap().blocks() / 2
    }

    /// The flags that a file is opened with.
    fn flags(&self, qemu: &QemuProcess, name: &str) -> u32 {
        let path = self.path(name);
        let files = open_files(qemu);
        let found = files.iter().find(|(file, _)| *file == path);
        found.unwrap_or_else(|| panic!("{name} is not open")).1
    }
}

/// A property of the device called `vda`.
fn property(qemu: &mut QemuProcess, name: &str) -> Value {
    qemu.property("/machine/peripheral/vda", name).unwrap()
}

/// Done without a message.
fn done(qemu: &mut QemuProcess, node: &str, command: &str) {
    assert_eq!(io(qemu, node, command), "", "{command}");
}

const O_DIRECT: u32 = if cfg!(any(target_arch = "arm", target_arch = "aarch64")) {
    0o200_000
} else {
    0o40_000
};
const O_ACCMODE: u32 = 0o3;
const O_RDONLY: u32 = 0;
const O_RDWR: u32 = 2;

/// The rows of what was tried when this project began, by their numbers there.
const ROWS: &[(u32, Silence)] = &[
    (
        1,
        Silence {
            what: "vhost-user-blk without shared memory",
            rule: Ok("vhost-user-needs-shared-mem"),
            options: "-chardev socket,id=c0,path=/run/vub.sock -device vhost-user-blk-pci,chardev=c0,id=vda",
            shown: Shown::By("served, whose firmware starts the disk"),
        },
    ),
    (
        2,
        Silence {
            what: "vhost-user-blk with private memory",
            rule: Ok("vhost-user-needs-shared-mem"),
            options: "-m 128 -object memory-backend-memfd,id=m0,size=128M,share=off -machine q35,memory-backend=m0 \
                      -chardev socket,id=c0,path=/run/vub.sock -device vhost-user-blk-pci,chardev=c0,id=vda",
            shown: Shown::By("served, whose firmware starts the disk"),
        },
    ),
    (
        3,
        Silence {
            what: "discard on the format node alone",
            rule: Ok("discard-on-one-node"),
            options: "-blockdev driver=file,node-name=f0,filename={a.qcow2} -blockdev driver=qcow2,node-name=q0,file=f0,discard=unmap \
                      -device virtio-blk-pci,drive=q0,id=vda",
            shown: here(|it| {
                let both = it.with("filename={a.qcow2}", "filename={a.qcow2},discard=unmap");
                let both = both.split(" -device").next().unwrap_or_default();
                let mut left = Vec::new();
                let alone = it.options.split(" -device").next().unwrap_or_default();
                let fresh = std::fs::read(it.path("a.qcow2")).unwrap();
                for nodes in [alone, both] {
                    std::fs::write(it.path("a.qcow2"), &fresh).unwrap();
                    let mut qemu = it.start_with(nodes);
                    done(&mut qemu, "q0", "write -q -P 7 0 4M");
                    done(&mut qemu, "q0", "discard -q 0 4M");
                    left.push(it.allocated("a.qcow2"));
                }
                assert!(left[0] >= 4096 && left[1] + 4096 <= left[0], "{left:?}");
            }),
        },
    ),
    (
        3,
        Silence {
            what: "discard on the protocol node alone",
            rule: Err(
                "libvirt writes every disk that does not discard so, and whoever thinks of it is told by discard-missing-thin",
            ),
            options: "-blockdev driver=file,node-name=f0,filename={a.qcow2},discard=unmap -blockdev driver=qcow2,node-name=q0,file=f0 \
                      -device virtio-blk-pci,drive=q0,id=vda",
            shown: here(|it| {
                let mut qemu = it.start_nodes();
                done(&mut qemu, "q0", "write -q -P 7 8M 4M");
                let before = it.allocated("a.qcow2");
                done(&mut qemu, "q0", "discard -q 8M 4M");
                assert!(it.allocated("a.qcow2") >= before, "{before} KiB");
            }),
        },
    ),
    (
        4,
        Silence {
            what: "cache.direct on the format node alone",
            rule: Ok("direct-on-one-node"),
            options: "-blockdev driver=file,node-name=f0,filename={a.qcow2} -blockdev driver=qcow2,node-name=q0,file=f0,cache.direct=on \
                      -device virtio-blk-pci,drive=q0,id=vda",
            shown: here(|it| {
                assert_eq!(it.flags(&it.start(), "a.qcow2") & O_DIRECT, 0);
                let both = it.with("filename={a.qcow2}", "filename={a.qcow2},cache.direct=on");
                assert_ne!(it.flags(&it.start_with(&both), "a.qcow2") & O_DIRECT, 0);
            }),
        },
    ),
    (
        5,
        Silence {
            what: "read-only on the format node alone",
            rule: Ok("read-only-on-one-node"),
            options: "-blockdev driver=file,node-name=f0,filename={a.qcow2} -blockdev driver=qcow2,node-name=q0,file=f0,read-only=on \
                      -device virtio-blk-pci,drive=q0,id=vda",
            shown: here(|it| {
                let access = |qemu: &QemuProcess| it.flags(qemu, "a.qcow2") & O_ACCMODE;
                assert_eq!(access(&it.start()), O_RDWR);
                let both = it.with("filename={a.qcow2}", "filename={a.qcow2},read-only=on");
                assert_eq!(access(&it.start_with(&both)), O_RDONLY);
            }),
        },
    ),
    (
        6,
        Silence {
            what: "-drive with detect-zeroes=unmap and no discard",
            rule: Ok("detect-zeroes-unmap-no-discard"),
            options: "-drive file={b.raw},format=raw,if=virtio,detect-zeroes=unmap",
            // Older ones free what is zero, whatever discard says.
            shown: Shown::Since(Version(10, 0, 0), |it| {
                let mut left = Vec::new();
                for discard in ["ignore", "unmap"] {
                    let loose = format!(
                        "-drive file={{b.raw}},format=raw,if=none,id=d0,detect-zeroes=unmap,discard={discard}"
                    );
                    let mut qemu = it.start_with(&loose);
                    done(&mut qemu, "d0", "write -q -P 7 0 4M");
                    // What is only in the page cache has no blocks yet.
                    done(&mut qemu, "d0", "flush");
                    done(&mut qemu, "d0", "write -q -P 0 0 4M");
                    left.push(it.allocated("b.raw"));
                }
                assert!(left[0] >= 4096 && left[1] == 0, "{left:?}");
            }),
        },
    ),
    (
        7,
        Silence {
            what: "-snapshot beside -blockdev",
            rule: Ok("snapshot-ignored-by-blockdev"),
            options: "-snapshot -blockdev driver=file,node-name=f0,filename={b.raw} -device virtio-blk-pci,drive=f0,id=vda",
            shown: here(|it| {
                let first = || std::fs::read(it.path("b.raw")).unwrap()[8 << 20];
                let mut qemu =
                    it.start_with("-snapshot -drive file={b.raw},format=raw,if=none,id=d0");
                done(&mut qemu, "d0", "write -q -P 9 8M 4k");
                assert_eq!(first(), 0);
                drop(qemu);
                done(&mut it.start_nodes(), "f0", "write -q -P 9 8M 4k");
                assert_eq!(first(), 9);
            }),
        },
    ),
    (
        8,
        Silence {
            what: "a device that is mounted on the host",
            rule: Ok("source-is-mounted"),
            options: "",
            shown: Shown::Not("needs a block device of the host and the right to mount it"),
        },
    ),
    (
        9,
        Silence {
            what: "locking=off on one of two machines",
            rule: Ok("locking-off"),
            options: "-blockdev driver=file,node-name=f0,filename={a.raw},locking=off -device virtio-blk-pci,drive=f0,id=vda",
            shown: here(|it| {
                let _first = it.start_with(&it.with(",locking=off", ""));
                // A second writer, and nobody objects.
                let _second = it.start();
            }),
        },
    ),
    (
        9,
        Silence {
            what: "a loop device and the file behind it",
            rule: Ok("duplicate-disk-source"),
            options: "",
            shown: Shown::Not("needs a loop device of the host"),
        },
    ),
    (
        10,
        Silence {
            what: "a device of 4096-byte sectors with the default sizes",
            rule: Ok("guest-sector-512-on-4kn"),
            options: "",
            shown: Shown::Not("needs such a device of the host"),
        },
    ),
    (
        11,
        Silence {
            what: "raw on a qcow2 file",
            rule: Ok("format-mismatch"),
            options: "-blockdev driver=raw,node-name=f0,file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=f0,id=vda",
            shown: here(|it| {
                let said = it.path("said");
                let output = std::fs::File::create(&said).unwrap();
                let nodes = it.options.split(" -device").next().unwrap_or_default();
                let mut qemu = it.launch(nodes).stdout(output).start().unwrap();
                // The magic of the container: QFI and 0xfb.
                for (at, byte) in b"QFI\xfb".iter().enumerate() {
                    done(&mut qemu, "f0", &format!("read -P {byte} {at} 1"));
                }
                // qemu-io says what it read when QEMU ends.
                assert!(qemu.quit(Duration::from_secs(30)).unwrap().success());
                let said = std::fs::read_to_string(said).unwrap();
                let has_failed = said.contains("Pattern verification failed");
                assert!(
                    said.matches("read 1/1 bytes").count() == 4 && !has_failed,
                    "{said}"
                );
            }),
        },
    ),
    (
        12,
        Silence {
            what: "a backing file whose format no header records",
            rule: Ok("backing-format-missing"),
            options: "-blockdev driver=qcow2,node-name=q0,file.driver=file,file.filename={unnamed.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
            shown: here(|it| {
                let mut qemu = it.start();
                // Guessed, and nobody is told.
                assert!(
                    qemu.nodes()
                        .unwrap()
                        .values()
                        .any(|node| node["drv"] == "raw")
                );
                assert_eq!(qemu.end(), "");
            }),
        },
    ),
    (
        13,
        Silence {
            what: "an overlay that is smaller than what is below",
            rule: Ok("overlay-smaller-than-backing"),
            options: "-blockdev driver=qcow2,node-name=f0,file.driver=file,file.filename={small.qcow2} -device virtio-blk-pci,drive=f0,id=vda",
            shown: here(|it| {
                let mut qemu = it.start();
                let nodes = qemu.nodes().unwrap();
                let below = nodes.values().find(|node| node["drv"] == "raw").unwrap();
                assert_eq!(nodes["f0"]["image"]["virtual-size"], json!(8 << 20));
                assert_eq!(below["image"]["virtual-size"], json!(16 << 20));
                assert_eq!(qemu.end(), "");
            }),
        },
    ),
    (
        14,
        Silence {
            what: "an empty image",
            rule: Ok("image-empty"),
            options: "-blockdev driver=file,node-name=f0,filename={empty.raw} -device virtio-blk-pci,drive=f0,id=vda",
            shown: here(|it| {
                let size = it.start().nodes().unwrap()["f0"]["image"]["virtual-size"].clone();
                assert_eq!(size, json!(0));
            }),
        },
    ),
    (
        15,
        Silence {
            what: "a serial number of more than 20 bytes",
            rule: Ok("serial-too-long"),
            options: "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda,serial=123456789012345678901",
            shown: Shown::Not("is cut in what the guest reads, and whole in what QEMU answers"),
        },
    ),
    (
        16,
        Silence {
            what: "a virtqueue size that is no power of two",
            rule: Ok("queue-size-refused"),
            options: "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-scsi-pci,id=vda,virtqueue_size=1000 \
                      -device scsi-hd,drive=f0,bus=vda.0",
            shown: here(|it| {
                // The split ring of virtio has a power of two of entries; this one has not.
                assert_eq!(property(&mut it.start(), "virtqueue_size"), json!(1000));
            }),
        },
    ),
    (
        17,
        Silence {
            what: "more queues than vCPUs",
            rule: Ok("queues-gt-vcpus"),
            options: "-smp 2 -blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda,num-queues=8",
            shown: here(|it| {
                let mut qemu = it.start();
                let vcpus = qemu.ask("query-cpus-fast", json!({})).unwrap();
                assert_eq!(vcpus.as_array().map(Vec::len), Some(2));
                assert_eq!(property(&mut qemu, "num-queues"), json!(8));
            }),
        },
    ),
    (
        17,
        Silence {
            what: "a mapping of queues without a row",
            rule: Ok("iothread-mapping-refused"),
            options: r#"-object iothread,id=io0 -blockdev driver=file,node-name=f0,filename={a.raw} -device '{"driver":"virtio-blk-pci","id":"vda","drive":"f0","iothread-vq-mapping":[]}'"#,
            shown: Shown::Since(Version(9, 0, 0), |it| {
                // A list without elements is as good as none.
                let mapping = property(&mut it.start(), "iothread-vq-mapping");
                assert!(mapping == json!([]) || mapping == Value::Null, "{mapping}");
            }),
        },
    ),
    (
        18,
        Silence {
            what: "no interrupt vectors",
            rule: Ok("vectors-too-few"),
            options: "-smp 4 -blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda,num-queues=4,vectors=0",
            shown: here(|it| {
                // Vectors are in a BAR of their own, which is not there.
                let bars = |qemu: &mut QemuProcess| {
                    let buses = qemu.ask("query-pci", json!({})).unwrap();
                    let devices = buses[0]["devices"].as_array().unwrap().clone();
                    let disk = devices.iter().find(|it| it["qdev_id"] == "vda").unwrap();
                    disk["regions"].as_array().unwrap().len()
                };
                let without = bars(&mut it.start());
                let with = bars(&mut it.start_with(&it.with(",vectors=0", "")));
                assert_eq!(without + 1, with);
            }),
        },
    ),
    (
        19,
        Silence {
            what: "two devices behind one root port",
            rule: Ok("slot-taken"),
            options: "-device pcie-root-port,id=rp0,chassis=1,slot=1 -blockdev driver=file,node-name=f0,filename={a.raw} \
                      -blockdev driver=file,node-name=f1,filename={b.raw} -device virtio-blk-pci,drive=f0,bus=rp0,addr=0,id=vda \
                      -device virtio-blk-pci,drive=f1,bus=rp0,addr=1,id=vdb",
            shown: here(|it| {
                // A port of PCI Express has one link, to slot 0. What a guest makes of slot 1 is not shown here;
                // since 10.0 QEMU says it itself.
                let is_told = it.qemu.version >= Version(10, 0, 0);
                let said = it.start().end();
                assert_eq!(
                    said.contains("only allows plugging into slot 0"),
                    is_told,
                    "{said}"
                );
            }),
        },
    ),
    (
        20,
        Silence {
            what: "rerror=enospc on a device",
            rule: Ok("invalid-value"),
            options: "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda,rerror=enospc",
            shown: here(|it| {
                assert_eq!(property(&mut it.start(), "rerror"), json!("enospc"));
            }),
        },
    ),
    (
        21,
        Silence {
            what: "a key that is written twice",
            rule: Ok("duplicate-value"),
            options: "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda,num-queues=2,num-queues=1",
            shown: here(|it| {
                assert_eq!(property(&mut it.start(), "num-queues"), json!(1));
            }),
        },
    ),
    (
        22,
        Silence {
            what: "a comma in a path behind -drive",
            rule: Err(
                "what stands behind the comma is options, and nothing tells that it was meant as a name",
            ),
            options: "-drive file={a.raw},readonly=on,snapshot=on,format=raw,if=virtio",
            shown: here(|it| {
                let named = it.path("a.raw,readonly=on,snapshot=on");
                std::fs::write(&named, vec![1; 1 << 20]).unwrap();
                let files = open_files(&it.start());
                assert!(files.iter().all(|(file, _)| *file != named));
                assert!(files.iter().any(|(file, _)| *file == it.path("a.raw")));
            }),
        },
    ),
    (
        23,
        Silence {
            what: "a colon in a path behind -drive",
            rule: Ok("drive-protocol-unknown"),
            options: "-drive file=backup:a.raw,format=raw,if=virtio",
            shown: here(|it| {
                // The same name opens a file behind -blockdev.
                std::fs::write(it.path("nbd:a.raw"), vec![1; 1 << 20]).unwrap();
                let name = "-blockdev driver=file,node-name=f0,filename=nbd:a.raw";
                let files = open_files(&it.start_with(name));
                assert!(files.iter().any(|(file, _)| *file == it.path("nbd:a.raw")));
                let name = "-drive file=fat:{folder},format=raw,if=none,id=d0";
                let nodes = it.start_with(name).nodes().unwrap();
                assert!(nodes.values().any(|node| node["drv"] == "vvfat"));
            }),
        },
    ),
    (
        24,
        Silence {
            what: "cache=none and cache.direct=off",
            rule: Ok("cache-contradicted"),
            options: "-drive file={a.raw},format=raw,if=virtio,cache=none,cache.direct=off",
            shown: here(|it| {
                assert_eq!(it.flags(&it.start(), "a.raw") & O_DIRECT, 0);
                let none = it.with(",cache.direct=off", "");
                assert_ne!(it.flags(&it.start_with(&none), "a.raw") & O_DIRECT, 0);
            }),
        },
    ),
    (
        25,
        Silence {
            what: "cache=none on tmpfs",
            rule: Ok("odirect-silently-buffered"),
            options: "",
            shown: Shown::By("silence::direct_io_on_tmpfs_goes_through_the_page_cache"),
        },
    ),
    (
        26,
        Silence {
            what: "nocow=on where the file system has no such flag",
            rule: Err("an option of qemu-img, which no configuration of a guest has"),
            options: "",
            shown: here(|it| {
                let output = std::process::Command::new(it.qemu.program("qemu-img"))
                    .args([
                        "create",
                        "-q",
                        "-f",
                        "raw",
                        "-o",
                        "nocow=on",
                        "nocow.raw",
                        "1M",
                    ])
                    .current_dir(it.setting.folder())
                    .output()
                    .unwrap();
                // Taken on every file system, whether or not it has the flag.
                assert!(
                    output.status.success() && output.stderr.is_empty(),
                    "{output:?}"
                );
            }),
        },
    ),
    (
        27,
        Silence {
            what: "a raw window that begins inside a sector",
            rule: Ok("slice-unaligned"),
            options: "-blockdev driver=raw,node-name=f0,offset=100,size=1048576,file.driver=file,file.filename={b.raw} -device virtio-blk-pci,drive=f0,id=vda",
            shown: here(|it| {
                done(&mut it.start_nodes(), "f0", "write -q -P 5 0 512");
                let bytes = std::fs::read(it.path("b.raw")).unwrap();
                // The guest's sector lies across two of the host's.
                assert_eq!((bytes[100], bytes[611], bytes[612]), (5, 5, bytes[613]));
            }),
        },
    ),
    (
        28,
        Silence {
            what: "a node that no device uses",
            rule: Ok("node-unused"),
            options: "-blockdev driver=file,node-name=f0,filename={a.raw}",
            shown: here(|it| {
                let mut qemu = it.start();
                assert!(qemu.nodes().unwrap().contains_key("f0"));
                assert_eq!(qemu.ask("query-block", json!({})).unwrap(), json!([]));
            }),
        },
    ),
    (
        29,
        Silence {
            what: "io_uring where the host denies it",
            rule: Ok("io-uring-disabled"),
            options: "",
            shown: Shown::By(
                "denied::a_denied_ring_ends_a_qemu_or_leaves_it_to_threads_as_the_rule_says",
            ),
        },
    ),
    (
        30,
        Silence {
            what: "qcow2 on a block device that gives clusters back",
            rule: Ok("qcow2-on-device-fragments"),
            options: "",
            shown: Shown::Not("needs a block device of the host, and long use"),
        },
    ),
    (
        31,
        Silence {
            what: "two machines with one raw image and no device yet",
            rule: Err(
                "two machines are two configurations; the device that comes later is refused",
            ),
            options: "-device virtio-scsi-pci,id=s0 -blockdev driver=file,node-name=f0,filename={a.raw}",
            shown: here(|it| {
                let mut first = it.start();
                let mut second = it.start();
                let device = json!({"driver": "scsi-hd", "drive": "f0", "bus": "s0.0"});
                first.ask("device_add", device.clone()).unwrap();
                let refusal = second.ask("device_add", device).unwrap_err().to_string();
                assert!(refusal.contains("Failed to get"), "{refusal}");
            }),
        },
    ),
    (
        32,
        Silence {
            what: "a read-only image as the guest's own disk",
            rule: Err(
                "a disk that is only read may well be meant; QEMU refuses it for IDE disks, and read-only-ide-disk tells",
            ),
            options: "-blockdev driver=file,node-name=f0,filename={a.raw},read-only=on -device virtio-blk-pci,drive=f0,id=vda",
            shown: here(|it| {
                let drives = it.start().ask("query-block", json!({})).unwrap();
                assert_eq!(drives[0]["inserted"]["ro"], json!(true));
            }),
        },
    ),
    (
        33,
        Silence {
            what: "discard on a machine type that has none",
            rule: Ok("machine-type-old-defaults"),
            options: "-machine pc-q35-3.1 -blockdev driver=file,node-name=f0,filename={a.raw},discard=unmap -device virtio-blk-pci,drive=f0,id=vda",
            shown: here(|it| {
                // Later ones have no machine type that is so old.
                if it.qemu.version < Version(10, 0, 0) {
                    assert_eq!(property(&mut it.start(), "discard"), json!(false));
                }
                let newer = it.with("pc-q35-3.1", "q35");
                assert_eq!(property(&mut it.start_with(&newer), "discard"), json!(true));
            }),
        },
    ),
    (
        34,
        Silence {
            what: "limits on a SCSI unit that is passed through",
            rule: Ok("lun-refused"),
            options: "",
            shown: Shown::Not("needs a SCSI device of the host"),
        },
    ),
    (
        35,
        Silence {
            what: "qcow2 that loses data between a discard and a write",
            rule: Ok("qcow2-discard-corruption"),
            options: "",
            shown: Shown::Not(
                "is a race, which a test of QEMU's own (iotests 046) wins with breakpoints",
            ),
        },
    ),
    (
        36,
        Silence {
            what: "vhost-user-blk that never flushes",
            rule: Ok("vhost-user-flushes-lost"),
            options: "",
            shown: Shown::By("vhost_user, whose guest calls fsync"),
        },
    ),
];

#[test]
fn what_qemu_takes_in_silence_shows_where_it_can() {
    let test = "silence";
    on_each_qemu(test, |qemu| {
        let (mut shown, mut told) = (0, 0);
        let Some(setting) = Setting::new(test) else {
            return;
        };
        for (number, row) in ROWS {
            let Silence {
                what,
                rule,
                options,
                shown: how,
            } = row;
            if let Ok(rule) = rule {
                assert!(
                    vmdisk::rules::find(rule).is_some(),
                    "there is no rule {rule}"
                );
            }
            if let (Ok(rule), false) = (rule, options.is_empty()) {
                let words = words(options, &setting);
                // A machine type that this QEMU lacks is reported instead of its defaults.
                let is_reported = [*rule, "machine-missing-in-qemu"]
                    .iter()
                    .any(|rule| reported(rule, qemu, &words, &setting).is_some());
                assert!(is_reported, "{number}, {what}: {rule} is silent");
                told += 1;
            }
            match how {
                Shown::Since(first, show) if qemu.version >= *first => {
                    let blame = Blame(*number, what);
                    show(&Try {
                        qemu,
                        setting: &setting,
                        options,
                    });
                    drop(blame);
                    shown += 1;
                }
                Shown::Since(..) | Shown::By(_) | Shown::Not(_) => {}
            }
        }
        println!("QEMU {}: {told} reported, {shown} shown", qemu.name);
    });
    for (number, row) in ROWS {
        match &row.shown {
            Shown::Since(..) => {}
            Shown::By(test) => println!("{number:>2}, {}: shown by {test}", row.what),
            Shown::Not(why) => println!("{number:>2}, {}: effect not shown: {why}", row.what),
        }
    }
    let numbers: std::collections::BTreeSet<u32> = ROWS.iter().map(|(number, _)| *number).collect();
    assert!(numbers.iter().copied().eq(1..=36), "{numbers:?}");
}

/// Names the row when its effect is another.
struct Blame(u32, &'static str);

impl Drop for Blame {
    #[allow(
        clippy::print_stderr,
        reason = "a failed test says in which row it failed"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("row {}: {}", self.0, self.1);
        }
    }
}

#[test]
fn a_read_with_copy_on_read_writes_to_an_image_without_a_backing_image() {
    let test = "copy-on-read";
    on_each_qemu(test, |qemu| {
        let Some(setting) = Setting::new(test) else {
            return;
        };
        let nodes = "-blockdev driver=qcow2,node-name=q0,file.driver=file,file.filename={a.qcow2} \
                     -blockdev driver=copy-on-read,node-name=c0,file=q0";
        let it = Try {
            qemu,
            setting: &setting,
            options: nodes,
        };
        let size = || std::fs::metadata(it.path("a.qcow2")).unwrap().len();
        let mut sizes = vec![size()];
        for node in ["q0", "c0"] {
            let mut qemu = match node {
                "q0" => it.start_with(nodes.split(" -blockdev driver=copy").next().unwrap()),
                _ => it.start(),
            };
            done(&mut qemu, node, "read -q 0 16M");
            assert!(qemu.quit(Duration::from_secs(30)).unwrap().success());
            sizes.push(size());
        }
        let [fresh, plain, copied] = sizes.as_slice() else {
            unreachable!("three sizes are pushed");
        };
        assert!(fresh == plain && plain < copied, "{sizes:?}");
    });
}

#[test]
fn direct_io_on_tmpfs_goes_through_the_page_cache() {
    let test = "direct I/O on tmpfs";
    let folder = tempfile::tempdir_in("/dev/shm").ok();
    let is_there = folder.is_some() && has_program("fincore");
    if !real(is_there, test, "tmpfs at /dev/shm, and fincore") {
        return;
    }
    let path = folder.as_ref().unwrap().path().join("a.raw");
    std::fs::File::create(&path)
        .unwrap()
        .set_len(8 << 20)
        .unwrap();
    let mut request = Request::new("2026-11-20T00:00:00Z");
    request.paths.push(path.clone());
    let facts = collect(&request);
    let options = format!(
        "-blockdev driver=file,node-name=f0,filename={},cache.direct=on -device virtio-blk-pci,drive=f0,id=vda",
        path.display()
    );
    let Some(setting) = Setting::new(test) else {
        return;
    };
    on_each_qemu(test, |qemu| {
        let it = Try {
            qemu,
            setting: &setting,
            options: &options,
        };
        let mut started = it.start_nodes();
        let files = open_files(&started);
        let flags = files.iter().find(|(file, _)| *file == path).unwrap().1;
        assert_ne!(flags & O_DIRECT, 0);
        done(&mut started, "f0", "write -q -P 7 0 8M");
        let output = std::process::Command::new("fincore")
            .args(["--noheadings", "--raw", "--output", "PAGES"])
            .arg(&path)
            .output()
            .unwrap();
        let pages = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(pages.trim().parse::<u64>().ok(), Some((8 << 20) / 4096));
        let words = words(&options, &setting);
        let found = reported_on("odirect-silently-buffered", qemu, &words, &facts);
        assert!(found.is_some());
    });
}
