//! A QEMU that was started with one of our command lines, and a few questions to it.

use serde_json::{Value, json};
use vmdisk_qemu::CommandLine;
use vmdisk_qmp::{Launch, QemuProcess, QmpError};
use vmdisk_tests::QemuBuild;
pub(crate) use vmdisk_tests::{io, open_files};

/// Starts a paused QEMU with the words of a command line.
pub(crate) fn start_paused(build: &QemuBuild, line: &CommandLine) -> Result<QemuProcess, QmpError> {
    let words = line.argv();
    // The program of a whole guest stands first; here it is ours.
    let words = &words[usize::from(line.program.is_some())..];
    Launch::paused(build.emulator()).args(words).start()
}

/// The node that a device, or a part of it, has as its medium.
pub(crate) fn node_of(qemu: &mut QemuProcess, path: &str) -> Result<Value, String> {
    let drives = qemu.ask("query-block", json!({})).unwrap();
    let below = format!("{path}/");
    let id = path.rsplit('/').next().unwrap_or_default();
    drives
        .as_array()
        .unwrap()
        .iter()
        .find(|drive| {
            let device = drive["qdev"].as_str().unwrap_or_default();
            // The id alone, or the path of the part that holds the medium.
            device == id || device.starts_with(&below)
        })
        .map(|drive| drive["inserted"]["node-name"].clone())
        .ok_or_else(|| format!("no drive at {path} in {drives}"))
}

/// The child nodes of each node, as (parent, role, child).
pub(crate) fn edges(qemu: &mut QemuProcess) -> Vec<(String, String, String)> {
    let graph = qemu.ask("x-debug-query-block-graph", json!({})).unwrap();
    let name_of = |id: &Value| {
        graph["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|node| node["id"] == *id)
            .map(|node| node["name"].as_str().unwrap().to_owned())
            .unwrap()
    };
    graph["edges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edge| {
            (
                name_of(&edge["parent"]),
                edge["name"].as_str().unwrap().to_owned(),
                name_of(&edge["child"]),
            )
        })
        .collect()
}
