//! Compares what QEMU says it has with what we wrote.

use serde_json::Value;
use vmdisk_qemu::{Argument, ArgumentValue, CommandLine, Json, JsonObject, QemuOption};
use vmdisk_qmp::QemuProcess;

use crate::qemu::{edges, node_of};

fn value(json: &Json) -> Value {
    serde_json::from_str(&json.to_string()).unwrap()
}

/// Every difference between a command line and the QEMU that was started with it.
pub(crate) fn differences(qemu: &mut QemuProcess, line: &CommandLine) -> Vec<String> {
    let mut found = Vec::new();
    let nodes = qemu.nodes().unwrap();
    let edges = edges(qemu);
    for node in line.blockdevs() {
        let name = node.text("node-name").unwrap();
        match nodes.get(name) {
            Some(seen) => node_differences(name, node, seen, &edges, &mut found),
            None => found.push(format!("{name}: no such node")),
        }
    }
    for argument in &line.arguments {
        match argument.option {
            QemuOption::Device => device_differences(qemu, argument, &mut found),
            QemuOption::Object => object_differences(qemu, argument, &mut found),
            QemuOption::Name
            | QemuOption::Uuid
            | QemuOption::Nodefaults
            | QemuOption::Machine
            | QemuOption::Accel
            | QemuOption::Memory
            | QemuOption::Smp
            | QemuOption::Chardev
            | QemuOption::Global
            | QemuOption::Drive
            | QemuOption::Blockdev
            // The daemon's.
            | QemuOption::Cpu
            | QemuOption::Export => {}
        }
    }
    found
}

fn node_differences(
    name: &str,
    written: &JsonObject,
    seen: &Value,
    edges: &[(String, String, String)],
    found: &mut Vec<String>,
) {
    let mut compare = |what: &str, written: Value, seen: &Value| {
        if written != *seen {
            found.push(format!("{name}: {what} written {written}, seen {seen}"));
        }
    };
    for (key, json) in written.members() {
        let written = value(json);
        match key {
            "driver" => compare(key, written, &seen["drv"]),
            "filename" => compare(key, written, &seen["file"]),
            "cache" => {
                compare(
                    "cache.direct",
                    written["direct"].clone(),
                    &seen["cache"]["direct"],
                );
                compare(
                    "cache.no-flush",
                    written["no-flush"].clone(),
                    &seen["cache"]["no-flush"],
                );
            }
            "read-only" => compare(key, written, &seen["ro"]),
            "detect-zeroes" => compare(key, written, &seen["detect_zeroes"]),
            "file" | "backing" => {
                let below = edges
                    .iter()
                    .find(|(parent, role, _)| parent == name && role == key)
                    .map(|(_, _, child)| child.as_str());
                compare(key, written, &below.into());
            }
            // Not told by any query; other tests look at what they do.
            "node-name" | "aio" | "discard" | "auto-read-only" | "cache-size"
            | "discard-no-unref" | "throttle-group" => {}
            other => panic!("{other} is not compared"),
        }
    }
}

fn device_differences(qemu: &mut QemuProcess, argument: &Argument, found: &mut Vec<String>) {
    // libvirt's floppy controller alone has no id, and nothing to compare.
    let Some(id) = argument.property("id") else {
        return;
    };
    let path = format!("/machine/peripheral/{id}");
    for (key, written) in properties(argument) {
        let seen = match key.as_str() {
            "driver" => qemu
                .property(&path, "type")
                .map_err(|error| error.to_string()),
            "id" => continue,
            "bus" => qemu
                .property(&path, "parent_bus")
                .map_err(|error| error.to_string()),
            // usb-storage hands its node on to a SCSI disk below it.
            "drive" => node_of(qemu, &path),
            _ => qemu
                .property(&path, &key)
                .map_err(|error| error.to_string()),
        };
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => {
                found.push(format!("{id}: {key}: {error}"));
                continue;
            }
        };
        let agree = match key.as_str() {
            // `/machine/…/scsi0.0`.
            // Newer versions move a namespace to a bus of the controller's own subsystem.
            "bus"
                if seen
                    .as_str()
                    .is_some_and(|bus| bus.ends_with("/nvme-bus.0")) =>
            {
                true
            }
            "bus" => ends_with_part(&seen, &written),
            "iothread" => ends_with_part(&seen, &written),
            // Old names that QEMU still knows.
            "driver" if written == "ahci" => seen == "ich9-ahci",
            "driver" if written == "lsi" => seen == "lsi53c895a",
            // One number for slot and function.
            "addr" => seen.as_u64() == devfn(written.as_str().unwrap()),
            _ => same(&written, &seen),
        };
        if !agree {
            found.push(format!("{id}: {key} written {written}, seen {seen}"));
        }
    }
}

/// Equal, or equal but for the spelling of the key=value form.
fn same(written: &Value, seen: &Value) -> bool {
    let spelled = match seen.as_bool() {
        Some(true) => "on".to_owned(),
        Some(false) => "off".to_owned(),
        None => seen.to_string(),
    };
    written == seen || written.as_str() == Some(&spelled)
}

fn ends_with_part(path: &Value, name: &Value) -> bool {
    path.as_str()
        .and_then(|path| path.rsplit('/').next())
        .is_some_and(|last| Some(last) == name.as_str())
}

fn devfn(text: &str) -> Option<u64> {
    let hexadecimal = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    match text.split_once('.') {
        Some((slot, function)) => Some(hexadecimal(slot)? * 8 + hexadecimal(function)?),
        None => Some(hexadecimal(text)? * 8),
    }
}

fn object_differences(qemu: &mut QemuProcess, argument: &Argument, found: &mut Vec<String>) {
    let id = argument.property("id").expect("every object has an id");
    let path = format!("/objects/{id}");
    for (key, written) in properties(argument) {
        let key = match key.as_str() {
            "qom-type" => "type",
            "id" => continue,
            other => other,
        };
        match qemu.property(&path, key) {
            Ok(seen) if key == "limits" => {
                // Limits that are not set read as 0.
                for (limit, written) in written.as_object().unwrap() {
                    if seen[limit] != *written {
                        let seen = &seen[limit];
                        found.push(format!("{id}: {limit} written {written}, seen {seen}"));
                    }
                }
            }
            Ok(seen) if same(&written, &seen) => {}
            Ok(seen) => found.push(format!("{id}: {key} written {written}, seen {seen}")),
            Err(error) => found.push(format!("{id}: {key}: {error}")),
        }
    }
}

/// The properties of a device or object, but for the driver of the key=value form.
fn properties(argument: &Argument) -> Vec<(String, Value)> {
    match &argument.value {
        ArgumentValue::Json(object) => object
            .members()
            .map(|(key, json)| (key.to_owned(), value(json)))
            .collect(),
        ArgumentValue::KeyValue(option) => option
            .pairs
            .iter()
            .map(|(key, text)| (key.to_string(), Value::from(text.as_str())))
            .collect(),
        ArgumentValue::None => panic!("a device or object without a value"),
    }
}
