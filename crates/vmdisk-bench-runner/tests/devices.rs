//! Refused devices: every state of a device, created on loop devices, must be refused before
//! any byte changes.
//!
//! Needs root, loop devices and the programs that create those states. Without them each test prints the reason and
//! passes; with `VMDISK_REAL=require` it fails instead.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests fail by panicking, and say what they skip"
)]

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use vmdisk_bench_runner::safety::{ClaimedDevice, DeviceCheck, Refused, prepare};
use vmdisk_bench_runner::{Limits, PlanOptions, read_plan};
use vmdisk_collect::{DeviceState, device_state};
use vmdisk_testing::{LoopDevice, needed, run};

use crate::engines::{has, measured};

const NOW: &str = "2026-11-20T05:00:00Z";

/// Loop devices in a directory; dropping it undoes everything.
struct Devices {
    loops: Vec<LoopDevice>,
    directory: tempfile::TempDir,
    undo: Vec<Vec<String>>,
    children: Vec<Child>,
}

impl Drop for Devices {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        for words in self.undo.iter().rev() {
            let _ = Command::new(&words[0]).args(&words[1..]).output();
        }
    }
}

impl Devices {
    fn new() -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("not root".to_owned());
        }
        Ok(Self {
            loops: Vec::new(),
            directory: tempfile::tempdir().map_err(|error| error.to_string())?,
            undo: Vec::new(),
            children: Vec::new(),
        })
    }

    fn path(&self, name: &str) -> String {
        let path = self.directory.path().join(name);
        path.to_str().expect("temporary paths are text").to_owned()
    }

    fn undo(&mut self, words: &[&str]) {
        self.undo
            .push(words.iter().map(|word| (*word).to_owned()).collect());
    }

    /// Creates a device of zeroes with its file.
    fn device(
        &mut self,
        name: &str,
        megabytes: u64,
        extra: &[&str],
    ) -> Result<(String, String), String> {
        let file = self.path(name);
        let made = LoopDevice::new(Path::new(&file), megabytes << 20, extra)?;
        let device = made.path().to_owned();
        self.loops.push(made);
        Ok((device, file))
    }

    fn mount(&mut self, device: &str) -> Result<String, String> {
        let point = self.path("mnt");
        fs::create_dir_all(&point).map_err(|error| error.to_string())?;
        run("mount", &[device, &point])?;
        self.undo(&["umount", "--lazy", &point]);
        Ok(point)
    }

    /// Creates another node of a device in this directory.
    fn node(&self, device: &str, name: &str) -> Result<String, String> {
        let metadata = fs::metadata(device).map_err(|error| error.to_string())?;
        let number = std::os::unix::fs::MetadataExt::rdev(&metadata);
        let node = self.path(name);
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        run(
            "mknod",
            &[&node, "b", &major.to_string(), &minor.to_string()],
        )?;
        Ok(node)
    }

    /// Starts a guest that does not run, with a disk, and waits until QEMU has locked it.
    fn start_guest(&mut self, driver: &str, path: &str) -> Result<(), String> {
        self.start(
            "qemu-system-x86_64",
            &[
                "-machine",
                "q35,accel=tcg",
                "-S",
                "-nodefaults",
                "-display",
                "none",
                "-blockdev",
                &format!("driver={driver},node-name=disk,filename={path}"),
                "-device",
                "virtio-blk-pci,drive=disk",
            ],
        )?;
        let until = Instant::now() + Duration::from_secs(20);
        let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
        let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
        while !run("cat", &["/proc/locks"])?.contains(&format!(":{inode} 100")) {
            if Instant::now() > until {
                return Err("QEMU takes no lock".to_owned());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn start(&mut self, program: &str, arguments: &[&str]) -> Result<(), String> {
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        self.children.push(child);
        Ok(())
    }
}

/// Writes a table with one partition of type 83 from sector 2048, 32 MiB long; returns its path.
fn partition_of(device: &str) -> Result<String, String> {
    let mut record = [0_u8; 512];
    record[446 + 4] = 0x83;
    record[446 + 8..446 + 12].copy_from_slice(&2048_u32.to_le_bytes());
    record[446 + 12..446 + 16].copy_from_slice(&65536_u32.to_le_bytes());
    record[510..].copy_from_slice(&[0x55, 0xaa]);
    let disk = fs::OpenOptions::new().write(true).open(device);
    disk.and_then(|disk| disk.write_all_at(&record, 0).and_then(|()| disk.sync_all()))
        .map_err(|error| error.to_string())?;
    run("blockdev", &["--rereadpt", device])?;
    let partition = format!("{device}p1");
    if !Path::new(&partition).exists() {
        // If the kernel does not read the table automatically, it has to be told; otherwise that fails.
        let _ = run("partx", &["--add", device]);
    }
    let until = Instant::now() + Duration::from_secs(5);
    while !Path::new(&partition).exists() {
        if Instant::now() > until {
            return Err(format!("{partition} does not appear"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(partition)
}

fn checksum(file: &str) -> String {
    run("sync", &[]).unwrap();
    run("sha256sum", &[file]).unwrap()
}

/// Checks that a device is neither prepared nor claimed, for these reasons, and that no byte of it changed.
#[track_caller]
fn refused(device: &str, file: &str, expected: &[DeviceCheck]) -> Refused {
    let before = checksum(file);
    let preparing = prepare(Path::new(device)).map(|_| ()).unwrap_err();
    let claiming = ClaimedDevice::claim(Path::new(device))
        .map(|_| ())
        .unwrap_err();
    assert_eq!(checksum(file), before, "nothing was written");
    for check in expected {
        assert!(preparing.names(*check), "{check:?} of {preparing}");
    }
    let found: Vec<DeviceCheck> = preparing
        .refusals
        .iter()
        .map(|refusal| refusal.check)
        .collect();
    for check in &found {
        assert!(expected.contains(check), "{preparing}");
    }
    assert!(claiming.names(DeviceCheck::Marker), "{claiming}");
    preparing
}

#[test]
fn a_loop_device_is_refused_while_a_qemu_or_another_loop_device_uses_its_file() {
    let made = (|| {
        let mut devices = Devices::new()?;
        let (device, file) = devices.device("disk", 64, &[])?;
        let socket = devices.path("nbd");
        let node = format!("driver=file,node-name=d,filename={file}");
        let server = format!("addr.type=unix,addr.path={socket}");
        devices.start(
            "qemu-storage-daemon",
            &[
                "--blockdev",
                &node,
                "--nbd-server",
                &server,
                "--export",
                "type=nbd,id=e,node-name=d,writable=on",
            ],
        )?;
        let until = Instant::now() + Duration::from_secs(10);
        while !Path::new(&socket).exists() {
            if Instant::now() > until {
                return Err("qemu-storage-daemon did not come up".to_owned());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok((devices, device, file))
    })();
    let Some((mut devices, device, file)) = needed(made) else {
        return;
    };
    let refusal = refused(
        &device,
        &file,
        &[DeviceCheck::OpenElsewhere, DeviceCheck::Locks],
    )
    .to_string();
    assert!(refusal.contains("qemu-storage"), "{refusal}");
    assert!(refusal.contains("is locked from byte"), "{refusal}");
    for mut child in devices.children.drain(..) {
        let _ = child.kill();
        let _ = child.wait();
    }
    // Another loop device over the same file is another name for the same bytes.
    let other = run("losetup", &["--find", "--show", &file]).unwrap();
    let refusal = refused(&device, &file, &[DeviceCheck::Holders]).to_string();
    run("losetup", &["--detach", &other]).unwrap();
    assert!(
        refusal.contains("is a loop device over the same file"),
        "{refusal}"
    );
    prepare(Path::new(&device)).unwrap();
}

#[test]
fn a_marked_loop_device_is_refused_while_a_guest_has_its_file_open() {
    let made = (|| {
        let mut devices = Devices::new()?;
        let (device, file) = devices.device("disk", 64, &[])?;
        let path = PathBuf::from(&device);
        let preparation = prepare(&path).map_err(|refused| refused.to_string())?;
        let serial = preparation.identity().value.clone();
        preparation
            .confirm(&serial, NOW)
            .map_err(|refused| refused.to_string())?;
        let claimed = ClaimedDevice::claim(&path).map_err(|refused| refused.to_string())?;
        devices.start_guest("file", &file)?;
        Ok((devices, path, file, claimed))
    })();
    let Some((mut devices, path, file, claimed)) = needed(made) else {
        return;
    };
    let before = checksum(&file);
    // The guest was started during the run, or before it.
    let during = claimed.verify().unwrap_err();
    assert!(during.names(DeviceCheck::OpenElsewhere), "{during}");
    drop(claimed);
    for refused in [
        ClaimedDevice::claim(&path).map(|_| ()).unwrap_err(),
        prepare(&path).map(|_| ()).unwrap_err(),
    ] {
        assert!(refused.names(DeviceCheck::OpenElsewhere), "{refused}");
        assert!(refused.to_string().contains("qemu-system"), "{refused}");
    }
    assert_eq!(checksum(&file), before, "nothing was written");
    for mut child in devices.children.drain(..) {
        let _ = child.kill();
        let _ = child.wait();
    }
    ClaimedDevice::claim(&path).unwrap();
}

#[test]
fn a_file_system_that_is_mounted_is_refused_through_a_link_too() {
    let made = (|| {
        let mut devices = Devices::new()?;
        let (device, file) = devices.device("disk", 64, &[])?;
        run("mkfs.ext4", &["-q", "-E", "lazy_itable_init=0", &device])?;
        devices.mount(&device)?;
        let link = devices.path("by-another-name");
        symlink(&device, &link).map_err(|error| error.to_string())?;
        Ok((devices, link, file))
    })();
    let Some((_devices, link, file)) = needed(made) else {
        return;
    };
    let refused = refused(
        &link,
        &file,
        &[
            DeviceCheck::Mounts,
            DeviceCheck::Signature,
            DeviceCheck::Blank,
            DeviceCheck::Exclusive,
        ],
    );
    assert!(refused.to_string().contains("/mnt"), "{refused}");
}

#[test]
fn a_file_system_that_is_not_mounted_is_refused() {
    let made = (|| {
        let mut devices = Devices::new()?;
        let (device, file) = devices.device("disk", 64, &[])?;
        run("mkfs.ext4", &["-q", &device])?;
        Ok((devices, device, file))
    })();
    let Some((_devices, device, file)) = needed(made) else {
        return;
    };
    let refused = refused(
        &device,
        &file,
        &[DeviceCheck::Signature, DeviceCheck::Blank],
    );
    assert!(refused.to_string().contains("TYPE=ext4"), "{refused}");
}

#[test]
fn a_physical_volume_without_volumes_is_refused() {
    let made = (|| {
        let mut devices = Devices::new()?;
        let (device, file) = devices.device("disk", 64, &[])?;
        run(
            "pvcreate",
            &[
                "-qq",
                "-y",
                "--devices",
                &device,
                "--config",
                "devices{use_devicesfile=0}",
                &device,
            ],
        )
        .or_else(|_| run("pvcreate", &["-qq", "-y", &device]))?;
        Ok((devices, device, file))
    })();
    let Some((_devices, device, file)) = needed(made) else {
        return;
    };
    let refused = refused(
        &device,
        &file,
        &[DeviceCheck::Signature, DeviceCheck::Blank],
    );
    assert!(refused.to_string().contains("LVM2_member"), "{refused}");
}

#[test]
fn each_device_of_a_mounted_btrfs_is_refused() {
    let made = (|| {
        let mut devices = Devices::new()?;
        let (first, first_file) = devices.device("one", 128, &[])?;
        let (second, second_file) = devices.device("two", 128, &[])?;
        run(
            "mkfs.btrfs",
            &["-q", "-d", "raid1", "-m", "raid1", &first, &second],
        )?;
        devices.mount(&first)?;
        Ok((devices, [(first, first_file), (second, second_file)]))
    })();
    let Some((_devices, members)) = needed(made) else {
        return;
    };
    for (device, file) in members {
        refused(
            &device,
            &file,
            &[
                DeviceCheck::Btrfs,
                DeviceCheck::Signature,
                DeviceCheck::Blank,
                DeviceCheck::Exclusive,
            ],
        );
    }
}

#[test]
fn a_disk_with_a_partition_is_refused_mounted_or_not() {
    let made = (|| {
        let mut devices = Devices::new()?;
        let (device, file) = devices.device("disk", 64, &["--partscan"])?;
        let partition = partition_of(&device)?;
        run("mkfs.ext4", &["-q", "-E", "lazy_itable_init=0", &partition])?;
        devices.mount(&partition)?;
        Ok((devices, device, partition, file))
    })();
    let Some((_devices, device, partition, file)) = needed(made) else {
        return;
    };
    refused(
        &device,
        &file,
        &[
            DeviceCheck::Partitions,
            DeviceCheck::Mounts,
            DeviceCheck::Signature,
            DeviceCheck::Blank,
            DeviceCheck::Exclusive,
        ],
    );
    refused(
        &partition,
        &file,
        &[
            DeviceCheck::Mounts,
            DeviceCheck::Signature,
            DeviceCheck::Blank,
            DeviceCheck::Exclusive,
        ],
    );
}

#[test]
fn a_blank_partition_is_free_unless_its_whole_disk_is_used() {
    let made = (|| {
        let mut devices = Devices::new()?;
        let (device, file) = devices.device("disk", 64, &["--partscan"])?;
        let partition = partition_of(&device)?;
        Ok((devices, device, partition, file))
    })();
    let Some((mut devices, device, partition, file)) = needed(made) else {
        return;
    };
    let path = Path::new(&partition);
    assert_eq!(device_state(path), DeviceState::Free);
    prepare(path).unwrap();
    if needed(devices.start_guest("host_device", &device)).is_none() {
        return;
    }
    let refusal = refused(
        &partition,
        &file,
        &[DeviceCheck::OpenElsewhere, DeviceCheck::Locks],
    )
    .to_string();
    assert!(refusal.contains("qemu-system"), "{refusal}");
    assert!(matches!(device_state(path), DeviceState::Used(_)));
}

#[test]
fn swap_in_use_is_refused() {
    let made = (|| {
        let mut devices = Devices::new()?;
        let (device, file) = devices.device("disk", 16, &[])?;
        // The kernel's table of swap space escapes each of these characters.
        let node = devices.node(&device, "a\\b c\td\ne")?;
        run("mkswap", &[&node])?;
        run("swapon", &[&node])?;
        devices.undo(&["swapoff", &node]);
        Ok((devices, device, file))
    })();
    let Some((_devices, device, file)) = needed(made) else {
        return;
    };
    refused(
        &device,
        &file,
        &[
            DeviceCheck::Swap,
            DeviceCheck::Signature,
            DeviceCheck::Blank,
            DeviceCheck::Exclusive,
        ],
    );
}

#[test]
fn a_device_that_a_running_qemu_has_open_is_refused() {
    let made = (|| {
        let mut devices = Devices::new()?;
        let (device, file) = devices.device("disk", 16, &[])?;
        devices.start_guest("host_device", &device)?;
        Ok((devices, device, file))
    })();
    let Some((_devices, device, file)) = needed(made) else {
        return;
    };
    let refused = refused(
        &device,
        &file,
        &[DeviceCheck::OpenElsewhere, DeviceCheck::Locks],
    );
    assert!(refused.to_string().contains("qemu-system"), "{refused}");
}

#[test]
fn a_device_that_is_open_under_another_node_is_refused_by_its_number() {
    let made = (|| {
        let mut devices = Devices::new()?;
        let (device, file) = devices.device("disk", 16, &[])?;
        let node = devices.node(&device, "node")?;
        // Like a QEMU of libvirt, which has a private /dev.
        devices.start("sh", &["-c", &format!("exec 3<> {node}; exec sleep 60")])?;
        std::thread::sleep(Duration::from_millis(300));
        Ok((devices, device, file))
    })();
    let Some((_devices, device, file)) = needed(made) else {
        return;
    };
    refused(&device, &file, &[DeviceCheck::OpenElsewhere]);
}

#[test]
fn a_device_that_is_read_only_or_holds_data_without_a_signature_is_refused() {
    let made = (|| {
        let mut devices = Devices::new()?;
        let (read_only, first) = devices.device("ro", 16, &["--read-only"])?;
        let (encrypted, second) = devices.device("plain", 16, &[])?;
        fs::OpenOptions::new()
            .write(true)
            .open(&encrypted)
            .and_then(|disk| disk.write_all_at(&[7; 512], (16 << 20) - 600))
            .map_err(|error| error.to_string())?;
        Ok((devices, read_only, first, encrypted, second))
    })();
    let Some((_devices, read_only, first, encrypted, second)) = needed(made) else {
        return;
    };
    let before = checksum(&first);
    let refusal = prepare(Path::new(&read_only)).map(|_| ()).unwrap_err();
    assert!(refusal.names(DeviceCheck::Writable), "{refusal}");
    assert_eq!(checksum(&first), before);
    refused(&encrypted, &second, &[DeviceCheck::Blank]);
}

#[test]
fn only_a_prepared_device_with_its_serial_number_can_be_claimed_and_only_once() {
    let made = (|| {
        let mut devices = Devices::new()?;
        let (device, file) = devices.device("disk", 32, &[])?;
        Ok((devices, device, file))
    })();
    let Some((devices, device, file)) = needed(made) else {
        return;
    };
    let path = PathBuf::from(&device);
    let before = checksum(&file);
    let refused = ClaimedDevice::claim(&path).unwrap_err();
    assert!(refused.names(DeviceCheck::Marker), "{refused}");

    let preparation = prepare(&path).unwrap();
    let serial = preparation.identity().value.clone();
    assert!(serial.ends_with("/disk"), "{serial}");
    let wrong = preparation.confirm("something else", NOW).unwrap_err();
    assert!(wrong.names(DeviceCheck::Serial), "{wrong}");
    assert_eq!(checksum(&file), before, "nothing was written");

    let marker = prepare(&path).unwrap().confirm(&serial, NOW).unwrap();
    assert_eq!(marker.size_bytes, 32 << 20);
    let again = prepare(&path).map(|_| ()).unwrap_err();
    assert!(
        again.names(DeviceCheck::Marker),
        "a marker is not written over: {again}"
    );

    let claimed = ClaimedDevice::claim(&path).unwrap();
    assert_eq!(claimed.usable(), 1 << 20..31 << 20);
    claimed.verify().unwrap();
    let second = ClaimedDevice::claim(&path).unwrap_err();
    assert!(second.names(DeviceCheck::Exclusive), "{second}");
    let made = run("mkfs.ext4", &["-q", "-F", &device]);
    assert!(made.is_err(), "nobody makes a file system on it meanwhile");
    claimed.verify().unwrap();

    // Another program overwrites the marker.
    let disk = fs::OpenOptions::new().write(true).open(&device).unwrap();
    disk.write_all_at(b"x", 0).unwrap();
    disk.sync_all().unwrap();
    let gone = claimed.verify().unwrap_err();
    assert!(gone.names(DeviceCheck::Marker), "{gone}");
    drop(claimed);
    drop(devices);
}

#[test]
fn a_marker_of_another_device_is_refused() {
    let made = (|| {
        let mut devices = Devices::new()?;
        let (first, first_file) = devices.device("one", 16, &[])?;
        let (second, second_file) = devices.device("two", 16, &[])?;
        Ok((devices, first, first_file, second, second_file))
    })();
    let Some((_devices, first, first_file, second, second_file)) = needed(made) else {
        return;
    };
    let preparation = prepare(Path::new(&first)).unwrap();
    let serial = preparation.identity().value.clone();
    preparation.confirm(&serial, NOW).unwrap();
    run("sync", &[]).unwrap();
    // A copy of the whole disk has the marker of the original.
    run(
        "dd",
        &[
            "if=".to_owned() + &first_file,
            format!("of={second}"),
            "bs=1M".to_owned(),
            "conv=fsync".to_owned(),
        ]
        .each_ref()
        .map(String::as_str),
    )
    .unwrap();
    let before = checksum(&second_file);
    let refused = ClaimedDevice::claim(Path::new(&second)).unwrap_err();
    assert!(refused.names(DeviceCheck::Marker), "{refused}");
    assert!(refused.to_string().contains("/one"), "{refused}");
    assert_eq!(checksum(&second_file), before);
}

#[test]
fn engines_write_a_prepared_device_between_its_markers_only() {
    if !has(&["qemu-storage-daemon", "fio"]) {
        return;
    }
    let made = (|| {
        let mut devices = Devices::new()?;
        let (device, file) = devices.device("disk", 32, &[])?;
        Ok((devices, device, file))
    })();
    let Some((_devices, device, file)) = needed(made) else {
        return;
    };
    let path = PathBuf::from(&device);
    let serial = prepare(&path).unwrap().identity().value.clone();
    prepare(&path).unwrap().confirm(&serial, NOW).unwrap();
    let ends = || {
        let bytes = fs::read(&file).unwrap();
        (bytes[..1 << 20].to_vec(), bytes[31 << 20..].to_vec())
    };
    let before = ends();
    for engine in ["host-fio", "storage-daemon"] {
        let text = format!(
            "version: 1\nname: t\nquestion: q\nsize: 64M\nseconds: 0.3\nramp: 0\nphases: [steady]\n\
             workloads: [64k-sequential-write-qd4, 4k-random-write-qd8]\n\
             fixed: {{engine: {engine}, backend: device}}\nmatrix: {{scheduler: [none]}}\n"
        );
        let options = PlanOptions {
            limits: Limits {
                device: Some((path.clone(), serial.clone())),
                ..Limits::default()
            },
            ..PlanOptions::default()
        };
        let plan = read_plan(&text, "t", &options).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let results = measured(&plan, directory.path());
        assert_eq!(results.len(), 2);
        for (_, result) in results {
            let write = result.unwrap().write.unwrap();
            assert!(write.operations > 0, "{engine}: {write:?}");
        }
        run("sync", &[]).unwrap();
        assert!(ends() == before, "{engine}: the markers stay");
    }
    ClaimedDevice::claim(&path).unwrap();
}
