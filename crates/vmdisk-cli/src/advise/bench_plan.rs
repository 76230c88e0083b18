//! The plan that measures the undecided candidates against each other.

use std::fmt::Write;

use vmdisk::advise::{DiskLoad, StorageAdvice, StorageCandidate};
use vmdisk::plan::BackendSpec;

/// Candidates that one plan measures.
const MOST: usize = 4;

/// A plan for `vmdisk bench run --plan`, with the recommended candidate as baseline; or why there is none.
pub(super) fn write(advice: &StorageAdvice, load: DiskLoad) -> Result<String, &'static str> {
    let undecided = &advice.fitting[..advice.undecided];
    let mut configurations = undecided.iter().filter_map(configuration).take(MOST);
    let baseline = configurations.next().ok_or("the recommended disk is not a file; `vmdisk bench presets volumes` prints a plan for volumes")?;
    let others: Vec<Vec<(&str, String)>> = configurations.collect();
    if others.is_empty() {
        return Err("no other file is as good by everything but speed; name a place with --in");
    }
    let workloads = match load {
        DiskLoad::Database => "4k-random-write-qd1-sync, 4k-random-read-qd32, 4k-random-write-qd32",
        DiskLoad::Sequential => "1m-sequential-read-qd8, 1m-sequential-write-qd8",
        DiskLoad::Mixed => {
            "4k-random-write-qd1-sync, 4k-random-mixed-qd32, 1m-sequential-write-qd8"
        }
        DiskLoad::Boot => "4k-random-read-qd1, 64k-sequential-read-qd4",
    };
    let mut out = format!(
        "# vmdisk bench run --plan FILE\nversion: 1\nname: advise\n\
         question: Which of the advised disks is the fastest here?\nsize: 1G\nphases: [first-touch, steady]\n\
         workloads: [{workloads}]\nfixed: {{engine: guest, frontend: virtio-blk, vcpus: 1}}\nconfigurations:\n"
    );
    let name = baseline[0].1.clone();
    for configuration in std::iter::once(baseline).chain(others) {
        let factors: Vec<String> = configuration
            .iter()
            .map(|(key, value)| format!("{key}: {value}"))
            .collect();
        let _ = writeln!(out, "- {{{}}}", factors.join(", "));
    }
    let _ = writeln!(out, "baseline: {{name: {name}}}");
    Ok(out)
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
