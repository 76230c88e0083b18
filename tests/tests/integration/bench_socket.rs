//! `vmdisk bench` on a disk behind a socket: with consent only, and without touching the daemon.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use vmdisk_tests::{Run, run_in};

use crate::VMDISK;
use crate::bench_guest::{can_boot, kernel};

const PLAN: &str = "
version: 1
name: socket
question: Is the daemon as fast as ours?
size: 16M
seconds: 0.1
ramp: 0
phases: [steady]
workloads: [4k-random-read-qd32]
fixed: {engine: guest, vcpus: 1}
configurations: [{name: ours, frontend: vhost-user-blk}, {name: given, backend: socket}]
baseline: {name: ours}
";

fn bench(place: &Path, more: &[&str]) -> Run {
    let arguments = [
        "bench",
        "run",
        "--plan",
        "plan.yaml",
        "--noisy",
        "--output",
        "out",
    ];
    run_in(place, VMDISK, &[&arguments, more].concat(), "")
}

#[test]
fn a_disk_behind_a_socket_needs_consent_that_names_a_socket() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("plan.yaml"), PLAN).unwrap();
    let run = bench(place.path(), &["--dry-run"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("nothing to compare"), "{}", run.stderr);
    assert!(
        run.stdout
            .contains("given: no vhost-user-blk socket was given; use `--destroy-data-behind`"),
        "{}",
        run.stdout
    );
    for (path, why) in [
        ("plan.yaml", "could not connect to plan.yaml: not a socket"),
        (".", "could not connect to .: not a socket"),
        (
            "missing",
            "could not connect to missing: no such file or directory",
        ),
    ] {
        let run = bench(place.path(), &["--destroy-data-behind", path]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
        assert!(run.stderr.contains(why), "{}", run.stderr);
    }
    let plan = std::fs::read_to_string(place.path().join("plan.yaml")).unwrap();
    assert_eq!(plan, PLAN);
    assert!(!place.path().join("out").exists());
}

#[test]
fn a_disk_behind_a_socket_is_measured_and_named_in_the_report() {
    let name = "a_disk_behind_a_socket_is_measured";
    if !can_boot(name) {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("plan.yaml"), PLAN).unwrap();
    let disk = place.path().join("disk");
    std::fs::File::create(&disk)
        .and_then(|file| file.set_len(16 << 20))
        .unwrap();
    let mut daemon = Command::new("qemu-storage-daemon")
        .current_dir(place.path())
        .args(["--blockdev", "driver=file,node-name=d,filename=disk"])
        .args([
            "--export",
            "type=vhost-user-blk,id=e,node-name=d,writable=on,addr.type=unix,addr.path=socket",
        ])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while !place.path().join("socket").exists() {
        assert!(began.elapsed() < Duration::from_secs(20), "no socket");
        std::thread::sleep(Duration::from_millis(50));
    }
    let run = bench(
        place.path(),
        &[
            "--destroy-data-behind",
            "socket",
            "--kernel",
            kernel().to_str().unwrap(),
        ],
    );
    let is_running = daemon.try_wait().unwrap().is_none();
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert!(is_running, "the daemon ended");
    assert!(
        run.stdout.contains("the program behind ")
            && run.stdout.contains("is not part of this run"),
        "{}",
        run.stdout
    );
    let json = std::fs::read_to_string(place.path().join("out/result.json")).unwrap();
    let result: serde_json::Value = serde_json::from_str(&json).unwrap();
    let configurations = result["header"]["plan"]["configurations"]
        .as_array()
        .unwrap();
    let given = configurations
        .iter()
        .find(|it| it["name"] == "given")
        .unwrap();
    assert_eq!(given["storage"]["kind"], "socket");
    let path = std::fs::canonicalize(place.path()).unwrap().join("socket");
    assert_eq!(given["storage"]["path"], path.to_str().unwrap());
}
