//! `-readconfig`: each QEMU makes of a file of ours what it makes of the command line.

use vmdisk_model::*;
use vmdisk_qemu::{Options, write, write_config_file};
use vmdisk_qmp::{Launch, QemuProcess, QmpError};
use vmdisk_tests::{QemuBuild, on_each_qemu};

use crate::agree::differences;
use crate::matrix::{Change, OPTIONS, SOME_OPTIONS, backends, frontends, guest};
use crate::qemu::open_files;
use crate::storage::{Daemon, Storage};

/// Starts a QEMU with a file for `-readconfig`, and what must stand beside it.
fn start(
    build: &QemuBuild,
    storage: &Storage,
    text: &str,
    beside: &[String],
) -> Result<QemuProcess, QmpError> {
    let path = storage.path("guest.cfg");
    std::fs::write(&path, text).unwrap();
    Launch::paused(build.emulator())
        .args(beside)
        .args(["-readconfig", &path])
        .start()
}

#[test]
fn qemu_has_each_disk_of_a_config_file_as_on_the_command_line() {
    on_each_qemu("config files", |build| {
        let mut storage = Storage::new();
        let backends = backends(&mut storage);
        let options = Options {
            target: build.target(),
            ..Options::default()
        };
        let all: Vec<(&str, Change)> = OPTIONS.iter().chain(SOME_OPTIONS).copied().collect();
        // The versions share the pairs of options and frontends.
        let share = usize::try_from(build.version.0).unwrap();
        let (mut agreed, mut refused) = (0, 0);
        for (nth, case) in frontends().iter().enumerate() {
            for (at, (name, image)) in backends.iter().enumerate() {
                if (nth + at + share) % 2 == 1 {
                    continue;
                }
                let (option, change) = &all[(7 * nth + 3 * at + share) % all.len()];
                if case.name.ends_with("microvm") && *option == "iothread" {
                    // An iothread on MMIO needs KVM, which these tests do without.
                    continue;
                }
                let domain = case.guest(image, *change);
                let what = format!("{} on {name} with {option}", case.name);
                let Ok(line) = write(&domain, &options) else {
                    continue;
                };
                let file = match write_config_file(&domain, &options) {
                    Ok(file) => file,
                    Err(problems) => {
                        refused += 1;
                        // The serial number of this option has a quote, and its statistics are a list.
                        assert!(
                            matches!(*option, "serial" | "statistics"),
                            "{what}: {problems}"
                        );
                        continue;
                    }
                };
                let mut qemu = start(build, &storage, &file.text, &file.start[1..])
                    .unwrap_or_else(|error| panic!("{what}: {error}\n{}", file.text));
                let differences = differences(&mut qemu, &line);
                assert!(
                    differences.is_empty(),
                    "{what}: {differences:#?}\n{}",
                    file.text
                );
                agreed += 1;
            }
        }
        assert!(
            agreed > 30 && refused < 10,
            "{agreed} agreed, {refused} refused"
        );
    });
}

#[test]
fn a_config_file_opens_the_file_that_is_meant() {
    on_each_qemu("names in config files", |build| {
        let storage = Storage::new();
        let options = Options {
            target: build.target(),
            ..Options::default()
        };
        for name in [
            "a,b=c",
            "nbd:x",
            "json:{'driver':'null-co'}",
            "a b ]",
            "#x",
            "ä\\n",
            "fat:rw:x",
            "a,,b",
            "%s$HOME`x`",
        ] {
            let path = storage.raw(name, 1 << 20);
            let disk = Disk::new(
                Frontend::new("vda", TargetBus::Virtio),
                Image::file(path.as_str(), Format::Raw),
            );
            let mut domain = guest("q35");
            domain.disks.push(disk);
            let file = write_config_file(&domain, &options).unwrap();
            let qemu = start(build, &storage, &file.text, &file.start[1..])
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let files = open_files(&qemu);
            assert!(
                files.iter().any(|(file, _)| file.to_str() == Some(&path)),
                "{name}: {files:?}"
            );
        }
    });
}

#[test]
fn a_config_file_has_a_disk_of_a_daemon_and_shared_memory() {
    on_each_qemu("a disk of a daemon in a config file", |build| {
        let storage = Storage::new();
        let (image, socket) = (storage.raw("a.raw", 1 << 20), storage.path("sock"));
        let Some(_daemon) = Daemon::start(build, &image, &socket) else {
            eprintln!("skipped: no qemu-storage-daemon");
            return;
        };
        let mut backend = VhostUserSocket::new(socket);
        backend.config_wce = Some(Switch::Off);
        let mut disk = Disk::new(Frontend::new("vda", TargetBus::Virtio), backend);
        disk.frontend.queues = Some(2);
        let mut domain = guest("q35");
        domain.memory_backing.access = Some(MemoryAccess::Shared);
        domain.disks.push(disk);
        let options = Options {
            target: build.target(),
            ..Options::default()
        };
        let line = write(&domain, &options).unwrap();
        let file = write_config_file(&domain, &options).unwrap();
        let mut qemu = start(build, &storage, &file.text, &file.start[1..])
            .unwrap_or_else(|error| panic!("{error}\n{}", file.text));
        let differences = differences(&mut qemu, &line);
        assert!(differences.is_empty(), "{differences:#?}\n{}", file.text);
    });
}

#[test]
fn what_is_refused_of_a_config_file_is_refused_by_qemu() {
    on_each_qemu("refusals of config files", |build| {
        let storage = Storage::new();
        let long = format!("[name]\n  guest = \"{}\"\n", "x".repeat(1100));
        let key = format!(
            "[drive \"a\"]\n  {}filename = \"/a\"\n",
            "backing.".repeat(8)
        );
        for (text, said) in [
            (
                "[blockdev]\n  driver = \"file\"\n",
                "There is no option group 'blockdev'",
            ),
            (
                "[devices]\n  driver = \"virtio-blk-pci\"\n",
                "There is no option group",
            ),
            ("[machine]\n  type=\"q35\"\n", "type=\"q35\""),
            ("[machine]\n  # no comment\n", "#' not found"),
            ("[machine]\n \n", "parse error"),
            ("type = \"q35\"\n", "no group defined"),
            (&long, "Invalid parameter 'xxx"),
            (&key, "Must specify either driver or file"),
        ] {
            let error = start(build, &storage, text, &[]).expect_err(text);
            assert!(error.stderr().contains(said), "{text}: {error}");
            let document = vmdisk_qemu::read(&format!(
                "{text}[object \"io\"]\n  qom-type = \"iothread\"\n"
            ))
            .unwrap_or_else(|failure| panic!("{text}: {failure}"));
            assert!(!document.problems.is_empty(), "{text}");
        }
        // An open quote takes the line end with it, and a line of 1022 bytes is whole.
        let longest = format!(
            "[name]\n  guest = \"{}\"\n",
            "x".repeat(1022 - "  guest = \"\"".len())
        );
        start(build, &storage, &longest, &[]).unwrap_or_else(|error| panic!("{error}"));
    });
}
