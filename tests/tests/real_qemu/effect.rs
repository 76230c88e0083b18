//! What options do, where QEMU has no answer to the question whether it has them.

use std::os::unix::fs::MetadataExt;

use serde_json::json;
use vmdisk_model::*;
use vmdisk_qemu::{CommandLine, Options, QemuOption, write};
use vmdisk_qmp::Launch;
use vmdisk_tests::{QemuBuild, on_each_qemu};

use crate::matrix::{chain, guest};
use crate::qemu::{io, open_files, start_paused};
use crate::storage::Storage;

const O_ACCMODE: u32 = 0o3;
const O_RDONLY: u32 = 0;
const O_RDWR: u32 = 2;

fn line(installed: &QemuBuild, disk: Disk) -> CommandLine {
    let mut domain = guest("q35");
    domain.disks.push(disk);
    let options = Options {
        target: installed.target(),
    };
    write(&domain, &options).unwrap()
}

fn virtio(image: Image) -> Disk {
    Disk::new(Frontend::new("vda", TargetBus::Virtio), image)
}

/// `O_DIRECT`, whose number hangs on the instruction set.
const O_DIRECT: u32 = if cfg!(any(target_arch = "arm", target_arch = "aarch64")) {
    0o200_000
} else if cfg!(target_arch = "powerpc64") {
    0o400_000
} else {
    0o40_000
};

#[test]
fn every_file_of_a_chain_is_opened_as_the_disk_asks() {
    on_each_qemu(
        "every file of a chain is opened as the disk asks",
        |installed| {
            let storage = Storage::new();
            let Some(image) = chain(&storage) else {
                eprintln!("skipped: no qemu-img");
                return;
            };
            let paths: Vec<String> = image
                .chain()
                .map(|image| image.host_path().unwrap().to_owned())
                .collect();
            for cache in CacheMode::ALL {
                for is_read_only in [false, true] {
                    let mut disk = virtio(image.clone());
                    disk.backend.cache = Some(*cache);
                    disk.backend.is_read_only = is_read_only;
                    let line = line(installed, disk);
                    let qemu = start_paused(installed, &line).unwrap();
                    let files = open_files(&qemu);
                    for (depth, path) in paths.iter().enumerate() {
                        let flags: Vec<u32> = files
                            .iter()
                            .filter(|(file, _)| file.to_str() == Some(path))
                            .map(|(_, flags)| *flags)
                            .collect();
                        assert!(!flags.is_empty(), "{path} is not open");
                        for flags in flags {
                            let access = if depth == 0 && !is_read_only {
                                O_RDWR
                            } else {
                                O_RDONLY
                            };
                            assert_eq!(flags & O_ACCMODE, access, "{cache} {path}");
                            let is_direct = flags & O_DIRECT != 0;
                            assert_eq!(is_direct, cache.switches().direct, "{cache} {path}");
                        }
                    }
                }
            }
        },
    );
}

/// Blocks of a file before and after a discard of all of it at the top of a disk.
fn discard(installed: &QemuBuild, image: &Image, change: impl Fn(&mut Disk)) -> (u64, u64) {
    let path = image.host_path().unwrap().to_owned();
    let mut disk = virtio(image.clone());
    change(&mut disk);
    let mut line = line(installed, disk);
    let device = line
        .arguments
        .iter()
        .find(|argument| argument.option == QemuOption::Device)
        .unwrap();
    let node = device.property("drive").unwrap();
    // qemu-io wants the node to itself.
    line.arguments
        .retain(|argument| argument.option != QemuOption::Device);
    let mut qemu = start_paused(installed, &line).unwrap();
    let written = io(&mut qemu, &node, "write -q -P 7 0 4M");
    let before = std::fs::metadata(&path).unwrap().blocks();
    let discarded = io(&mut qemu, &node, "discard -q 0 4M");
    let after = std::fs::metadata(&path).unwrap().blocks();
    assert_eq!((written.as_str(), discarded.as_str()), ("", ""));
    (before, after)
}

#[test]
fn discards_reach_the_file_through_every_node_and_stop_where_they_should() {
    on_each_qemu(
        "discards reach the file through every node and stop where they should",
        |installed| {
            let storage = Storage::new();
            let mut images = vec![Image::file(storage.raw("a.raw", 8 << 20), Format::Raw)];
            images.extend(
                storage
                    .qcow2("a.qcow2", None)
                    .map(|path| Image::file(path, Format::Qcow2)),
            );
            let throttled = |disk: &mut Disk| {
                disk.backend.iotune = Some(Box::new(Iotune {
                    iops: IotuneLimits {
                        total: Some(100_000),
                        ..IotuneLimits::default()
                    },
                    ..Iotune::default()
                }));
            };
            for image in &images {
                for mode in [Some(Discard::Unmap), Some(Discard::Ignore), None] {
                    for with_filters in [false, true] {
                        let (before, after) = discard(installed, image, |disk| {
                            disk.backend.discard = mode;
                            if with_filters {
                                throttled(disk);
                                disk.backend.copy_on_read = Some(Switch::On);
                            }
                        });
                        let is_freed = after + 4096 < before;
                        assert_eq!(
                            is_freed,
                            mode == Some(Discard::Unmap),
                            "{:?} {mode:?} filters {with_filters}: {before} to {after} blocks",
                            image.format
                        );
                    }
                }
            }
        },
    );
}

#[test]
fn zeroes_are_found_where_they_enter_an_image_and_nowhere_else() {
    on_each_qemu(
        "zeroes are found where they enter an image and nowhere else",
        |installed| {
            let storage = Storage::new();
            let path = storage.raw("a.raw", 8 << 20);
            // QEMU hands most options down to a child that is written inside its parent, but not this one.
            let node = format!(
                r#"{{"driver":"raw","node-name":"top","detect-zeroes":"on","file":{{"driver":"file","filename":"{path}"}}}}"#
            );
            let launch = Launch::paused(installed.emulator());
            let launch = launch.args(["-machine", "none", "-blockdev", &node]);
            let nodes = launch.start().unwrap().nodes().unwrap();
            let seen = |driver: &str| {
                let node = nodes.values().find(|node| node["drv"] == driver).unwrap();
                node["detect_zeroes"].clone()
            };
            assert_eq!((seen("raw"), seen("file")), (json!("on"), json!("off")));
        },
    );
}

#[test]
fn a_block_job_may_write_into_the_backing_image() {
    on_each_qemu(
        "a block job may write into the backing image",
        |installed| {
            let storage = Storage::new();
            let Some(image) = chain(&storage) else {
                eprintln!("skipped: no qemu-img");
                return;
            };
            let line = line(installed, virtio(image));
            let mut qemu = start_paused(installed, &line).unwrap();
            qemu.ask(
        "block-commit",
        json!({ "device": "vda-format", "job-id": "commit", "top-node": "vda-base1-format" }),
    )
    .unwrap();
        },
    );
}

#[test]
fn the_first_of_two_ids_counts_for_qemu_and_for_the_reader() {
    on_each_qemu("the first of two ids counts", |installed| {
        for (nth, is_started) in [("first", true), ("second", false)] {
            let words = format!(
                "-machine q35 -nodefaults -object iothread,id=t-first,id=t-second \
                 -drive if=none,id=d-first,id=d-second,driver=null-co \
                 -device virtio-blk-pci,id=a-first,id=a-second,drive=d-{nth},iothread=t-{nth} \
                 -device virtio-scsi-pci,id=s-first,id=s-second \
                 -drive if=none,id=e,driver=null-co -device scsi-hd,bus=s-{nth}.0,drive=e"
            );
            let launch = Launch::running(installed.program("qemu-system-x86_64"))
                .args(words.split_whitespace());
            let started = launch.args(["-display", "none", "-S"]).start();
            assert_eq!(started.is_ok(), is_started, "{nth}");
            if let Ok(mut qemu) = started {
                let of_device = qemu.property("/machine/peripheral/a-first", "type");
                assert_eq!(of_device.unwrap(), "virtio-blk-pci");
            }
            let document = vmdisk::read(&format!("qemu-system-x86_64 {words}")).unwrap();
            let report = vmdisk::lint(&document, &vmdisk::LintOptions::default());
            let (twice, other): (Vec<_>, Vec<_>) = report
                .diagnostics
                .iter()
                .partition(|it| it.title.contains("`id` is set twice"));
            let counts = twice
                .iter()
                .map(|it| it.title.contains("the first one counts"));
            assert!(
                counts.clone().all(|it| it) && counts.count() >= 2,
                "{twice:?}"
            );
            let errors: Vec<_> = other
                .iter()
                .filter(|it| it.severity == vmdisk::Severity::Error)
                .collect();
            assert_eq!(errors.is_empty(), is_started, "{nth}: {errors:?}");
        }
    });
}
