//! The latency of `vmdisk lsp`: one session of the release binary on a domain of 30 KB.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::json;
use vmdisk_testing::Editor;

use crate::race::{build_release, median};

/// Bytes of the document, at least.
const SIZE: usize = 30_000;

/// Builds the release binary, and prints the median and the longest time of each step, from the message to the answer.
pub(crate) fn run(rounds: u32) -> anyhow::Result<()> {
    let vmdisk = build_release()?;
    let folder = tempfile::tempdir()?;
    let text = document();
    let line = u32::try_from(
        text.lines()
            .position(|line| line.contains("unsafe"))
            .unwrap_or_default(),
    )?;
    let uri = format!("file://{}/large.xml", folder.path().display());
    let begun = Instant::now();
    let mut editor = Editor::start(&vmdisk, &[], folder.path());
    let mut times: Vec<(&str, Vec<Duration>)> =
        vec![("start and initialize", vec![begun.elapsed()])];
    let mut note = |step: &'static str, begun: Instant| {
        let took = begun.elapsed();
        match times.iter_mut().find(|(known, _)| *known == step) {
            Some((_, all)) => all.push(took),
            None => times.push((step, vec![took])),
        }
    };
    let begun = Instant::now();
    editor.open(&uri, &text);
    let mut found = editor.findings(&uri).len();
    note("open to findings", begun);
    for round in 0..rounds {
        // A character of the name is typed, and taken back.
        let (start, end) = (
            json!({"line": 1, "character": 8}),
            json!({"line": 1, "character": 9}),
        );
        let changes = match round % 2 {
            0 => json!([{"range": {"start": start, "end": start}, "text": "x"}]),
            _ => json!([{"range": {"start": start, "end": end}, "text": ""}]),
        };
        let begun = Instant::now();
        editor.change(&uri, i32::try_from(round)? + 2, &changes);
        found = editor.findings(&uri).len();
        note("edit to findings", begun);
        let at = json!({"line": line, "character": 55});
        let range = json!({"start": at, "end": at});
        let begun = Instant::now();
        let params = json!({"textDocument": {"uri": uri}, "range": range, "context": {"diagnostics": [], "triggerKind": 2}});
        editor.request("textDocument/codeAction", params);
        note("quick fixes", begun);
        let begun = Instant::now();
        editor.at("textDocument/completion", &uri, line, 55);
        note("completion", begun);
        let begun = Instant::now();
        editor.at("textDocument/hover", &uri, line, 55);
        note("hover", begun);
    }
    editor.exit();
    println!(
        "a domain of {} bytes with {found} findings, {rounds} edits",
        text.len()
    );
    println!("{:24} {:>12} {:>12}", "", "median", "longest");
    for (step, all) in &times {
        let longest = all.iter().max().copied().unwrap_or_default();
        let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
        println!(
            "{step:24} {:>9.2} ms {:>9.2} ms",
            milliseconds(median(all)),
            milliseconds(longest)
        );
    }
    Ok(())
}

/// A domain with many disks, the last of which has a finding.
fn document() -> String {
    let mut text = "<domain type='kvm'>\n  <name>large</name>\n  <memory unit='GiB'>4</memory>\n  <vcpu>4</vcpu>\n  <os><type arch='x86_64' machine='q35'>hvm</type></os>\n  <features><acpi/></features>\n  <devices>\n    <controller type='scsi' model='virtio-scsi'/>\n".to_owned();
    let letters = || (b'a'..=b'z').map(char::from);
    let names =
        letters().flat_map(|first| letters().map(move |second| format!("sd{first}{second}")));
    for name in names {
        let cache = if text.len() < SIZE {
            "none' io='native"
        } else {
            "unsafe"
        };
        let _ = write!(
            text,
            "    <disk type='file' device='disk'>\n      <driver name='qemu' type='qcow2' cache='{cache}' discard='unmap'/>\n      <source file='/srv/{name}.qcow2'/>\n      <target dev='{name}' bus='scsi'/>\n    </disk>\n"
        );
        if cache == "unsafe" {
            break;
        }
    }
    text.push_str("  </devices>\n</domain>\n");
    text
}
