//! Commands for the monitor: each QEMU takes them while it runs, and has what the command line would give it.

use serde_json::Value;
use vmdisk_model::*;
use vmdisk_qemu::{MonitorScript, Options, QemuOption, write, write_monitor_script};
use vmdisk_qmp::{Launch, QemuProcess, QmpError};
use vmdisk_tests::{QemuBuild, on_each_qemu};

use crate::agree::differences;
use crate::matrix::{Case, Change, OPTIONS, SOME_OPTIONS, backends, frontends, guest};
use crate::storage::{Daemon, Storage};

/// Ports that an empty machine has for what is plugged in.
const PORTS: usize = 4;

/// A machine without disks that can be plugged into; its memory is shared.
fn empty(build: &QemuBuild, machine: &str) -> QemuProcess {
    let mut launch = Launch::paused(build.emulator()).args([
        "-nodefaults",
        "-accel",
        "tcg",
        "-smp",
        "2",
        "-m",
        "64",
        "-object",
        "memory-backend-memfd,id=memory,size=64M,share=on",
        "-machine",
        &format!("{machine},memory-backend=memory"),
    ]);
    if machine == "q35" {
        for number in 1..=PORTS {
            let port = format!("pcie-root-port,id=hotplug{number},chassis={number}");
            launch = launch.args(["-device", &port]);
        }
    }
    launch.start().unwrap()
}

/// Sends the commands of a script, as a person would who pastes its lines.
fn plug(qemu: &mut QemuProcess, script: &MonitorScript) -> Result<(), QmpError> {
    for line in script.to_lines().lines() {
        let command: Value = serde_json::from_str(line).unwrap();
        let name = command["execute"].as_str().unwrap();
        // What begins a connection is said once.
        if name != "qmp_capabilities" {
            qemu.ask(name, command["arguments"].clone())?;
        }
    }
    Ok(())
}

/// The machine of a case, if this test has an empty one of it.
fn machine_of(case: &Case) -> Option<&'static str> {
    ["q35", "pc"]
        .into_iter()
        .find(|machine| case.name.contains(&format!("of {machine}")))
}

#[test]
fn qemu_has_each_disk_that_is_plugged_in_as_on_the_command_line() {
    on_each_qemu("plugging disks in", |build| {
        let mut storage = Storage::new();
        let backends = backends(&mut storage);
        let options = Options {
            target: build.target(),
        };
        let all: Vec<(&str, Change)> = OPTIONS.iter().chain(SOME_OPTIONS).copied().collect();
        let share = usize::try_from(build.version.0).unwrap();
        let (mut agreed, mut refused) = (0, 0);
        for (nth, case) in frontends().iter().enumerate() {
            let Some(machine) = machine_of(case) else {
                continue;
            };
            for (at, (name, image)) in backends.iter().enumerate() {
                if (nth + at + share) % 2 == 1 {
                    continue;
                }
                let (option, change) = &all[(7 * nth + 5 * at + share) % all.len()];
                let domain = case.guest(image, *change);
                let what = format!("{} on {name} with {option}", case.name);
                let Ok(line) = write(&domain, &options) else {
                    continue;
                };
                let script = match write_monitor_script(&domain, &options) {
                    Ok(script) => script,
                    Err(problems) => {
                        refused += 1;
                        assert!(
                            problems
                                .to_string()
                                .contains("cannot be attached to a running guest"),
                            "{what}: {problems}"
                        );
                        continue;
                    }
                };
                let mut qemu = empty(build, machine);
                plug(&mut qemu, &script)
                    .unwrap_or_else(|error| panic!("{what}: {error}\n{}", script.to_lines()));
                let mut differences = differences(&mut qemu, &line);
                // Iothreads that no disk speaks of are not plugged in.
                differences.retain(|line| {
                    !line.starts_with("iothread1: ") || script.to_lines().contains("\"iothread1\"")
                });
                // A controller with its only namespace is one device.
                let is_whole = !script.to_lines().contains("nvme-ns");
                let of_two = [
                    "nvme0: ",
                    ": bus written \"nvme0\"",
                    ": nsid: ",
                    "written \"nvme-ns\"",
                ];
                differences.retain(|line| !is_whole || !of_two.iter().any(|it| line.contains(it)));
                assert!(
                    differences.is_empty(),
                    "{what}: {differences:#?}\n{}",
                    script.to_lines()
                );
                agreed += 1;
            }
        }
        assert!(
            agreed > 20 && refused > 4,
            "{agreed} agreed, {refused} refused"
        );
    });
}

#[test]
fn what_is_not_written_for_the_monitor_is_refused_by_qemu() {
    on_each_qemu("what cannot be plugged in", |build| {
        let storage = Storage::new();
        let image = Image::file(storage.raw("a.raw", 1 << 20), Format::Raw);
        let options = Options {
            target: build.target(),
        };
        let mut seen = 0;
        for case in frontends() {
            let (Some(machine), domain) = (machine_of(&case), case.guest(&image, |_| {})) else {
                continue;
            };
            let Err(problems) = write_monitor_script(&domain, &options) else {
                continue;
            };
            let line = write(&domain, &options).unwrap();
            let mut qemu = empty(build, machine);
            let mut refusals = Vec::new();
            for argument in &line.arguments {
                let command = match argument.option {
                    QemuOption::Blockdev => "blockdev-add",
                    QemuOption::Device => "device_add",
                    QemuOption::Name
                    | QemuOption::Uuid
                    | QemuOption::Nodefaults
                    | QemuOption::Machine
                    | QemuOption::Accel
                    | QemuOption::Memory
                    | QemuOption::Smp
                    | QemuOption::Object
                    | QemuOption::Chardev
                    | QemuOption::Global
                    | QemuOption::Drive
                    | QemuOption::Cpu
                    | QemuOption::Export => continue,
                };
                let mut arguments = members(argument);
                let driver = arguments["driver"].as_str().unwrap_or_default().to_owned();
                if driver == "nvme" || driver == "virtio-blk-pci" {
                    arguments["bus"] = Value::from(if machine == "q35" {
                        "hotplug1"
                    } else {
                        "pci.0"
                    });
                }
                if let Err(error) = qemu.ask(command, arguments) {
                    refusals.push((driver, error.to_string()));
                }
            }
            assert!(!refusals.is_empty(), "{}: {problems}", case.name);
            // What hangs on a controller that is refused finds no bus.
            for (nth, (driver, error)) in refusals.iter().enumerate() {
                assert!(
                    error.contains("hotplug") || (nth > 0 && error.contains("not found")),
                    "{}: {driver}: {error}",
                    case.name
                );
                seen += 1;
            }
        }
        assert!(seen >= 5, "only {seen} devices were refused");
    });
}

/// The members of an option, whatever form it has.
fn members(argument: &vmdisk_qemu::Argument) -> Value {
    match &argument.value {
        vmdisk_qemu::ArgumentValue::Json(object) => {
            serde_json::from_str(&object.to_string()).unwrap()
        }
        vmdisk_qemu::ArgumentValue::KeyValue(pairs) => {
            let mut object = serde_json::Map::new();
            let first = pairs
                .first
                .iter()
                .map(|first| ("driver".to_owned(), first.clone()));
            let rest = pairs
                .pairs
                .iter()
                .map(|(key, value)| (key.to_string(), value.clone()));
            for (key, value) in first.chain(rest) {
                object.insert(key, Value::from(value));
            }
            Value::Object(object)
        }
        vmdisk_qemu::ArgumentValue::None => Value::Null,
    }
}

#[test]
fn a_disk_of_a_daemon_is_plugged_in() {
    on_each_qemu("plugging in a disk of a daemon", |build| {
        let storage = Storage::new();
        let (image, socket) = (storage.raw("a.raw", 1 << 20), storage.path("sock"));
        let Some(_daemon) = Daemon::start(build, &image, &socket) else {
            eprintln!("skipped: no qemu-storage-daemon");
            return;
        };
        let mut backend = VhostUserSocket::new(socket);
        backend.config_wce = Some(Switch::Off);
        let mut disk = Disk::new(Frontend::new("vda", TargetBus::Virtio), backend);
        disk.frontend.queues = Some(1);
        let mut domain = guest("q35");
        domain.disks.push(disk);
        let options = Options {
            target: build.target(),
        };
        let script = write_monitor_script(&domain, &options).unwrap();
        let mut qemu = empty(build, "q35");
        plug(&mut qemu, &script).unwrap_or_else(|error| panic!("{error}\n{}", script.to_lines()));
        let seen = qemu
            .property("/machine/peripheral/vda", "config-wce")
            .unwrap();
        assert_eq!(seen, Value::Bool(false));
    });
}
