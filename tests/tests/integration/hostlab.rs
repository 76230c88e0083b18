//! The host lab, when it is asked for: it boots two kernels without KVM, which takes minutes.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use vmdisk_collect::{Request, collect};
use vmdisk_tests::{fixtures, has_program, repository, run_in};

/// Real LVM, md, LUKS, btrfs, NVMe and SCSI stacks under two kernels, with their facts and trials.
///
/// Only with `VMDISK_HOSTLAB=1`, even under `VMDISK_REAL=require`: what it takes grows with everything else that runs.
#[test]
#[allow(
    clippy::print_stderr,
    reason = "a skipped test says so to whoever runs it"
)]
fn storage_stacks_built_for_real_give_the_facts_written_for_them() {
    if std::env::var_os("VMDISK_HOSTLAB").is_none_or(|value| value != "1") {
        eprintln!("skipped: the host lab: needs VMDISK_HOSTLAB=1 and some minutes");
        return;
    }
    for program in ["qemu-system-x86_64", "apt-get", "dpkg-deb"] {
        assert!(
            has_program(program),
            "VMDISK_HOSTLAB=1, and {program} is missing"
        );
    }
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let lab = run_in(repository(), &cargo, &["xtask", "hostlab"], "");
    assert_eq!(lab.code, 0, "{}{}", lab.stdout, lab.stderr);
    for kernel in ["Linux 6.1:", "Linux 6.12:"] {
        assert!(lab.stdout.contains(kernel), "{}", lab.stdout);
    }
}

/// A fact of files that is new since the lab ran is missed here, and not first where the lab runs again.
#[test]
fn the_lab_has_every_fact_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("disk.img");
    fs::write(&file, [0; 4096]).unwrap();
    let mut request = Request::new("2026-11-20T05:00:00Z");
    request.paths.push(file);
    let collected = serde_json::to_value(collect(&request)).unwrap();
    let keys = |facts: &Value| -> BTreeSet<String> {
        let files = facts["files"].as_array().unwrap().iter();
        let regular = files.filter(|file| file["kind"] == "regular");
        regular
            .flat_map(|file| file.as_object().unwrap().keys().cloned())
            .collect()
    };
    let here = keys(&collected);
    assert!(here.len() > 10, "{here:?}");
    let mut in_lab = BTreeSet::new();
    for entry in fs::read_dir(fixtures().join("facts-lab")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "json") {
            let facts = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
            in_lab.extend(keys(&facts));
        }
    }
    let missing: Vec<_> = here.difference(&in_lab).collect();
    assert!(missing.is_empty(), "run the host lab again: {missing:?}");
}
