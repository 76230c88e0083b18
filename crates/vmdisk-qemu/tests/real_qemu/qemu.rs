//! A QEMU that was started with one of our command lines, and a few questions to it.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use vmdisk_facts::Target;
use vmdisk_qemu::CommandLine;

/// Longest wait for an answer; an idle machine needs some hundredths of a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// The QEMU to try with, and what it is.
pub(crate) struct Installed {
    program: String,
    /// Its version, as a target.
    pub(crate) target: Target,
}

/// The QEMU on this machine, or the one that VMDISK_QEMU names.
///
/// Without one the tests skip with a line, and fail under VMDISK_REAL=require.
pub(crate) fn installed() -> Option<Installed> {
    let program = std::env::var("VMDISK_QEMU").unwrap_or_else(|_| "qemu-system-x86_64".to_owned());
    let Ok(output) = Command::new(&program).arg("--version").output() else {
        assert_ne!(
            std::env::var("VMDISK_REAL").as_deref(),
            Ok("require"),
            "VMDISK_REAL=require, and {program} does not start"
        );
        eprintln!("skipped: {program} does not start");
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text
        .split("version ")
        .nth(1)
        .expect("QEMU says its version");
    let version = version.split([' ', '\n', '(']).next().unwrap();
    Some(Installed {
        program,
        target: format!("qemu={version}").parse().unwrap(),
    })
}

/// A running QEMU; it ends with this value.
pub(crate) struct Qemu {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    stderr: Receiver<String>,
}

impl Installed {
    /// Starts a paused QEMU with the words of a command line after `extra`.
    pub(crate) fn start(&self, extra: &[&str], line: &CommandLine) -> Result<Qemu, String> {
        let words = line.argv();
        // The program of a whole guest stands first; here it is ours.
        let words = &words[usize::from(line.program.is_some())..];
        let mut child = Command::new(&self.program)
            .args(["-S", "-display", "none", "-no-user-config", "-qmp", "stdio"])
            .args(extra)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let stdin = child.stdin.take().unwrap();
        let lines = reader(child.stdout.take().unwrap());
        let stderr = reader(child.stderr.take().unwrap());
        let mut qemu = Qemu {
            child,
            stdin,
            lines,
            stderr,
        };
        let greeting = qemu.line();
        if greeting.is_err() {
            return Err(qemu.complaints());
        }
        qemu.ask("qmp_capabilities", json!({}))?;
        Ok(qemu)
    }
}

/// Hands over the lines of a pipe as they come.
fn reader(pipe: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        while pipe.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            if sender
                .send(String::from_utf8_lossy(&line).into_owned())
                .is_err()
            {
                return;
            }
            line.clear();
        }
    });
    receiver
}

impl Qemu {
    fn line(&mut self) -> Result<String, String> {
        self.lines
            .recv_timeout(PATIENCE)
            .map_err(|error| error.to_string())
    }

    /// What QEMU wrote to stderr until it ended.
    fn complaints(&mut self) -> String {
        let mut text = String::new();
        while let Ok(line) = self.stderr.recv_timeout(PATIENCE) {
            text.push_str(&line);
        }
        format!("{} [{:?}]", text.trim(), self.child.wait())
    }

    /// The answer to a QMP command.
    pub(crate) fn ask(&mut self, command: &str, arguments: Value) -> Result<Value, String> {
        let request = json!({ "execute": command, "arguments": arguments });
        let sent = writeln!(self.stdin, "{request}");
        if sent.is_err() {
            return Err(self.complaints());
        }
        loop {
            let Ok(line) = self.line() else {
                return Err(self.complaints());
            };
            let mut answer: Value = serde_json::from_str(&line)
                .map_err(|error| format!("{error} in QMP line {line:?}"))?;
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
            if let Some(error) = answer.get("error") {
                return Err(format!("{command}: {}", error["desc"]));
            }
            // An event.
        }
    }

    /// A property of a device or object.
    pub(crate) fn property(&mut self, path: &str, property: &str) -> Result<Value, String> {
        self.ask("qom-get", json!({ "path": path, "property": property }))
    }

    /// The node that a device, or a part of it, has as its medium.
    pub(crate) fn node_of(&mut self, path: &str) -> Result<Value, String> {
        let drives = self.ask("query-block", json!({}))?;
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

    /// The nodes that have a name, by that name.
    pub(crate) fn nodes(&mut self) -> serde_json::Map<String, Value> {
        let nodes = self.ask("query-named-block-nodes", json!({})).unwrap();
        nodes
            .as_array()
            .unwrap()
            .iter()
            .map(|node| (node["node-name"].as_str().unwrap().to_owned(), node.clone()))
            .collect()
    }

    /// The child nodes of each node, as (parent, role, child).
    pub(crate) fn edges(&mut self) -> Vec<(String, String, String)> {
        let graph = self.ask("x-debug-query-block-graph", json!({})).unwrap();
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

    /// Runs a command of qemu-io on a node that no device uses.
    pub(crate) fn io(&mut self, node: &str, command: &str) -> String {
        let line = format!("qemu-io {node} \"{command}\"");
        let answer = self
            .ask("human-monitor-command", json!({ "command-line": line }))
            .unwrap();
        answer.as_str().unwrap().to_owned()
    }

    /// The files that the process has open, with the flags of `open(2)`.
    pub(crate) fn open_files(&self) -> Vec<(PathBuf, u32)> {
        let pid = self.child.id();
        let mut files = Vec::new();
        for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
            let entry = entry.unwrap();
            let Ok(path) = std::fs::read_link(entry.path()) else {
                continue;
            };
            let number = entry.file_name().into_string().unwrap();
            let Ok(info) = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")) else {
                continue;
            };
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = u32::from_str_radix(flags.unwrap().trim(), 8).unwrap();
            files.push((path, flags));
        }
        files
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
