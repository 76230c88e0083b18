//! The plan that measures the undecided candidates against each other.

use std::fmt::Write;

use vmdisk::advise::{DiskLoad, StorageAdvice, StorageCandidate};
use vmdisk::model::Bytes;
use vmdisk::plan::BackendSpec;

/// Candidates that one plan measures.
const MOST: usize = 4;
/// The largest size of the disks.
const LARGEST: u64 = 1 << 30;
/// The smallest size of the disks that a plan has.
const SMALLEST: u64 = 16 << 20;
/// The space that a run may take by default.
const BUDGET: u64 = 5 << 30;
/// The space that a run leaves free on each file system, at most.
const KEPT: u64 = 1 << 30;
/// New images that a guest has at once, at most.
const NEW_AT_ONCE: usize = 10;

/// A plan for `vmdisk bench run --plan`, with the recommended candidate as baseline; or why there is none.
pub(super) fn write(
    advice: &StorageAdvice,
    load: DiskLoad,
    asked: Bytes,
) -> Result<String, &'static str> {
    let undecided = &advice.fitting[..advice.undecided];
    let files = undecided.iter();
    let files = files.filter_map(|it| Some((it, configuration(it)?)));
    let files: Vec<_> = files.take(MOST).collect();
    let Some((_, baseline)) = files.first() else {
        return Err(
            "the recommended disk is not a file; `vmdisk bench presets volumes` prints a plan for volumes",
        );
    };
    if files.len() == 1 {
        return Err("no other file is as good by everything but speed; name a place with --in");
    }
    // A first touch does not read.
    let (phases, workloads): (&[&str], &[&str]) = match load {
        DiskLoad::Database => (
            &["steady"],
            &[
                "4k-random-write-qd1-sync",
                "4k-random-read-qd32",
                "4k-random-write-qd32",
            ],
        ),
        DiskLoad::Sequential | DiskLoad::Backup => (
            &["steady"],
            &["1m-sequential-read-qd8", "1m-sequential-write-qd8"],
        ),
        DiskLoad::Mixed | DiskLoad::Ci => (
            &["first-touch", "steady"],
            &[
                "4k-random-write-qd1-sync",
                "4k-random-write-qd32",
                "1m-sequential-write-qd8",
            ],
        ),
        DiskLoad::Boot => (
            &["steady"],
            &["4k-random-read-qd1", "64k-sequential-read-qd4"],
        ),
    };
    let new = match phases.contains(&"first-touch") {
        true => (files.len() * workloads.len()).min(NEW_AT_ONCE),
        // An image is filled from a file.
        false => 1,
    };
    let free = files.iter().filter_map(|(candidate, _)| candidate.free);
    let free = free.map(|free| free.0.saturating_sub(KEPT)).min();
    let room = free.unwrap_or(BUDGET).min(BUDGET);
    let size = size(asked.0, room, files.len() + new)
        .ok_or("the images have no room; name a place with more free space with --in")?;
    let mut out = format!(
        "# vmdisk bench run --plan FILE\nversion: 1\nname: advise\n\
         question: Which of the advised disks is the fastest here?\nsize: {}M\nseconds: 1\nphases: [{}]\n\
         workloads: [{}]\nfixed: {{engine: guest, frontend: virtio-blk, vcpus: 1}}\nconfigurations:\n",
        size >> 20,
        phases.join(", "),
        workloads.join(", ")
    );
    for (_, configuration) in &files {
        let factors: Vec<String> = configuration
            .iter()
            .map(|(key, value)| format!("{key}: {value}"))
            .collect();
        let _ = writeln!(out, "- {{{}}}", factors.join(", "));
    }
    let _ = writeln!(out, "baseline: {{name: {}}}", baseline[0].1);
    Ok(out)
}

/// The size of each disk, in whole MiB, at most as large as asked: all images together have room. `None` if they do not.
fn size(asked: u64, room: u64, images: usize) -> Option<u64> {
    // The tables of a qcow2 image take less than this share, and 1 MiB.
    let each = (room / images as u64).saturating_sub(1 << 20);
    let fitting = (each - each / 64).min(LARGEST);
    let size = asked.min(fitting) & !((1 << 20) - 1);
    (size >= SMALLEST.min(asked) && size > 0).then_some(size)
}

/// The factors of a candidate; `None` if it is not a file.
fn configuration(candidate: &StorageCandidate) -> Option<Vec<(&'static str, String)>> {
    // JSON is YAML, and its strings may hold any text.
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let disk = &candidate.spec.disks[0];
    let (format, preallocation, nocow) = match &disk.backend {
        BackendSpec::Raw(raw) => ("raw", raw.preallocation.map(|it| it.as_str()), raw.nocow),
        BackendSpec::Qcow2(qcow2) => (
            "qcow2",
            qcow2.preallocation.map(|it| it.as_str()),
            qcow2.nocow,
        ),
        _ => return None,
    };
    let name = format!("{} in {}", candidate.form, candidate.place);
    let mut factors = vec![
        ("name", text(&name)),
        ("directory", text(&candidate.place)),
        ("format", format.to_owned()),
        ("preallocation", text(preallocation.unwrap_or("off"))),
    ];
    factors.extend(disk.cache.map(|cache| ("cache", cache.to_string())));
    factors.extend(disk.io.map(|io| ("aio", io.to_string())));
    factors.extend(nocow.map(|nocow| ("no-cow", nocow.to_string())));
    Some(factors)
}
