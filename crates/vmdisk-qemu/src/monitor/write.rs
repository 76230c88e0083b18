//! Writes the commands that attach disks to a guest.

use std::collections::HashSet;
use std::fmt::Write;

use vmdisk_facts::Capability;
use vmdisk_model::{Domain, FieldPath, IoThreadId, Scope};

use crate::argument::{Argument, ArgumentValue, QemuOption};
use crate::daemon::StorageDaemon;
use crate::json::{Json, JsonObject};
use crate::key_value::KeyValue;
use crate::options::{Medium, Options};
use crate::placement::controller_type;
use crate::problem::{WriteProblem, WriteProblems};
use crate::write::write_for;

/// The commands that attach disks to a running guest, in the required order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorScript {
    /// The commands, `qmp_capabilities` first.
    pub commands: Vec<JsonObject>,
    /// The daemons that must run before, one for each vhost-user disk whose image is known.
    pub daemons: Vec<StorageDaemon>,
    /// The resources that must exist already, and the settings that are left to QEMU.
    pub left_out: Vec<WriteProblem>,
}

impl MonitorScript {
    /// One command per line, as a monitor expects.
    pub fn to_lines(&self) -> String {
        let mut text = String::new();
        for command in &self.commands {
            let _ = writeln!(text, "{command}");
        }
        text
    }
}

/// Writes the disks of a guest as commands for the monitor of a running QEMU: first the required objects, sockets,
/// nodes and controllers, then the devices. The running QEMU has the machine, the memory and the buses.
///
/// # Errors
/// Fails for settings that QEMU has no option for, and for devices that cannot be attached to a running guest: IDE,
/// SATA, floppy and SD drives, NVMe namespaces, devices on MMIO slots or on the root bus of PCI Express.
///
/// ```
/// use vmdisk_model::{Disk, Domain, Format, Frontend, Image, MachineType, TargetBus};
/// use vmdisk_qemu::{Options, write_monitor_script};
///
/// let disk = Disk::new(
///     Frontend::new("vdb", TargetBus::Virtio),
///     Image::file("/srv/data.img", Format::Raw),
/// );
/// let domain = Domain { machine: Some(MachineType::new("pc")), disks: vec![disk], ..Domain::default() };
/// let script = write_monitor_script(&domain, &Options::default())?;
/// let lines = script.to_lines();
/// assert_eq!(
///     lines.lines().last(),
///     Some(r#"{"execute":"device_add","arguments":{"driver":"virtio-blk-pci","id":"vdb","drive":"vdb-format"}}"#)
/// );
/// # Ok::<(), vmdisk_qemu::WriteProblems>(())
/// ```
pub fn write_monitor_script(
    domain: &Domain,
    options: &Options,
) -> Result<MonitorScript, WriteProblems> {
    let guest = of_disks(domain);
    let line = write_for(&guest, options, Medium::Monitor)?;
    let mut script = Script {
        domain: &guest,
        plugs_namespaces: !options.target.can(Capability::NvmeNamespaceHotplug).is_no(),
        commands: vec![JsonObject::new().with("execute", "qmp_capabilities")],
        problems: Vec::new(),
        left_out: line.left_out,
    };
    let arguments = match script.plugs_namespaces {
        true => line.arguments,
        false => with_whole_nvme(line.arguments),
    };
    for argument in arguments {
        script.argument(argument);
    }
    for daemon in &line.daemons {
        let at = FieldPath::Disk(daemon.disk, vmdisk_model::DiskField::SocketPath);
        let message = "the daemon that serves it must run before the device is added";
        let note = script.note(at, message, "`--to qemu` writes its command line");
        script.left_out.push(note);
    }
    if !script.problems.is_empty() {
        return Err(WriteProblems(script.problems));
    }
    Ok(MonitorScript {
        commands: script.commands,
        daemons: line.daemons,
        left_out: script.left_out,
    })
}

/// Joins each NVMe controller with its only namespace: `device_add` of every QEMU accepts `nvme` with a `drive`.
fn with_whole_nvme(mut arguments: Vec<Argument>) -> Vec<Argument> {
    let device = |argument: &Argument, driver: &str| match &argument.value {
        ArgumentValue::Json(device) if argument.option == QemuOption::Device => {
            (device.text("driver") == Some(driver)).then(|| device.clone())
        }
        _ => None,
    };
    let controllers: Vec<JsonObject> = arguments
        .iter()
        .filter_map(|argument| device(argument, "nvme"))
        .collect();
    for controller in controllers {
        let id = controller.text("id").unwrap_or_default();
        let is_on_it = |argument: &Argument| {
            let namespace = device(argument, "nvme-ns")?;
            (namespace.text("bus") == Some(id)).then_some(namespace)
        };
        let mut namespaces = arguments.iter().enumerate();
        let mut namespaces = namespaces
            .by_ref()
            .filter_map(|(at, it)| Some((at, is_on_it(it)?)));
        let (Some((at, namespace)), None) = (namespaces.next(), namespaces.next()) else {
            continue;
        };
        let mut whole = JsonObject::new();
        for (key, value) in controller.members().filter(|(key, _)| *key != "id") {
            whole.push(key.to_owned(), value.clone());
        }
        let own = namespace.members();
        for (key, value) in own.filter(|(key, _)| !matches!(*key, "driver" | "bus" | "nsid")) {
            whole.push(key.to_owned(), value.clone());
        }
        arguments[at].value = ArgumentValue::Json(whole);
        arguments.retain(|it| device(it, "nvme").as_ref() != Some(&controller));
    }
    arguments
}

/// The guest reduced to its disks and their dependencies; the indexes of disks stay.
fn of_disks(domain: &Domain) -> Domain {
    let mut guest = Domain {
        scope: Scope::DisksOnly,
        firmware: None,
        boot_devices: Vec::new(),
        blkiotune: None,
        default_iothread: None,
        ..domain.clone()
    };
    let groups: HashSet<&str> = domain
        .disks
        .iter()
        .flat_map(|disk| disk.backend.throttle_filters.iter().map(String::as_str))
        .collect();
    guest.throttle_groups.retain(|group| {
        group
            .group
            .as_deref()
            .is_some_and(|name| groups.contains(name))
    });
    let kinds: HashSet<_> = domain
        .disks
        .iter()
        .filter_map(|disk| controller_type(disk.frontend.effective_bus()))
        .collect();
    guest
        .controllers
        .retain(|controller| kinds.contains(&controller.controller_type));
    let of_controllers = guest.controllers.iter().flat_map(|controller| {
        let rows = controller.iothread_mapping.iter().map(|row| row.iothread);
        controller.iothread.into_iter().chain(rows)
    });
    let of_disks = guest.disks.iter().flat_map(|disk| {
        let rows = disk.frontend.iothread_mapping.iter();
        let rows = rows.map(|row| row.iothread);
        disk.frontend.iothread.into_iter().chain(rows)
    });
    let used: HashSet<IoThreadId> = of_controllers.chain(of_disks).collect();
    guest.iothreads.retain(|thread| used.contains(&thread.id));
    guest
}

struct Script<'d> {
    domain: &'d Domain,
    /// True if the target supports hotplugging of namespaces.
    plugs_namespaces: bool,
    commands: Vec<JsonObject>,
    problems: Vec<WriteProblem>,
    left_out: Vec<WriteProblem>,
}

impl Script<'_> {
    fn note(&self, at: FieldPath, message: impl Into<String>, help: &str) -> WriteProblem {
        let disk = at.disk().and_then(|nth| self.domain.disks.get(nth));
        WriteProblem {
            at,
            disk: disk.map(|disk| disk.name().to_owned()),
            message: message.into(),
            help: Some(help.to_owned()),
        }
    }

    fn command(&mut self, name: &str, arguments: JsonObject) {
        let command = JsonObject::new()
            .with("execute", name)
            .with("arguments", arguments);
        self.commands.push(command);
    }

    fn argument(&mut self, argument: Argument) {
        let Argument {
            option,
            value,
            origin,
        } = argument;
        match (option, value) {
            (QemuOption::Object, ArgumentValue::Json(object)) => self.command("object-add", object),
            (QemuOption::Blockdev, ArgumentValue::Json(node)) => self.command("blockdev-add", node),
            (QemuOption::Chardev, ArgumentValue::KeyValue(socket)) => {
                self.command("chardev-add", chardev(&socket));
            }
            (QemuOption::Device, ArgumentValue::Json(device)) => {
                let driver = device.text("driver").unwrap_or_default();
                match fixed(driver).filter(|_| driver != "nvme-ns" || !self.plugs_namespaces) {
                    Some((why, help)) => {
                        let message =
                            format!("{driver} cannot be attached to a running guest: {why}");
                        let problem = self.note(origin, message, help);
                        self.problems.push(problem);
                    }
                    None => self.command("device_add", device),
                }
            }
            _ => {
                let message = format!(
                    "{option} has no command: it belongs to the machine, which is created at the start"
                );
                let problem = self.note(origin, message, "start the guest with this disk");
                self.problems.push(problem);
            }
        }
    }
}

/// The reason why a device must exist from the start, and the alternative; `device_add` of QEMU 5.2, 7.2, 10.0 and 11.1
/// refuses these, except `nvme-ns` on 11.1; the only namespace of a controller is part of it.
fn fixed(driver: &str) -> Option<(&'static str, &'static str)> {
    let scsi = "use bus scsi with a virtio-scsi controller";
    Some(match driver {
        "ide-hd" | "ide-cd" => ("IDE and SATA do not support hotplugging", scsi),
        "floppy" | "isa-fdc" => (
            "a floppy controller is part of the machine",
            "start the guest with this drive",
        ),
        "nvme-ns" => (
            "the bus of an NVMe controller does not support hotplugging before QEMU 11.1",
            "use bus virtio or scsi, or a controller for this disk alone",
        ),
        "piix3-usb-uhci" | "piix4-usb-uhci" | "vt82c686b-usb-uhci" | "ich9-usb-uhci1"
        | "ich9-usb-uhci2" | "ich9-usb-uhci3" => (
            "a UHCI controller is part of the chipset",
            "add a USB controller of model qemu-xhci",
        ),
        "virtio-blk-device" | "virtio-scsi-device" | "vhost-user-blk" => (
            "an MMIO slot is part of the board",
            "use a machine with PCI",
        ),
        _ => return None,
    })
}

/// A client's UNIX socket in the form of `chardev-add`.
fn chardev(socket: &KeyValue) -> JsonObject {
    let KeyValue { first, pairs } = socket;
    let value = |name: &str| {
        let found = pairs.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    };
    let address = JsonObject::new().with("type", "unix").with(
        "data",
        JsonObject::new().with("path", value("path").unwrap_or_default()),
    );
    let mut data = JsonObject::new()
        .with("addr", address)
        .with("server", false);
    for key in ["reconnect", "reconnect-ms"] {
        let number = value(key).and_then(|text| text.parse::<u64>().ok());
        data.push_some(key, number.map(Json::Number));
    }
    let backend = JsonObject::new()
        .with("type", first.as_deref().unwrap_or("socket"))
        .with("data", data);
    JsonObject::new()
        .with("id", value("id").unwrap_or_default())
        .with("backend", backend)
}
