//! The Go package, without cgo.

use std::path::Path;
use std::process::Command;

use vmdisk_testing::{cases, cases_file, check_reports, needed, run};

use crate::{built, copy, output, report, repository};

/// The package and a program in it, `None` if something is missing. It is compiled at one place each time.
fn program(name: &str, source: &Path, place: &Path) -> Option<Command> {
    needed(run("go", &["version"]))?;
    let wasm = needed(built("wasm/vmdisk.wasm", "wasm"))?;
    let package = place.join("package");
    for file in ["go.mod", "go.sum", "vmdisk.go"] {
        copy(&repository("bindings/go").join(file), &package.join(file));
    }
    copy(&wasm, &package.join("vmdisk.wasm"));
    copy(source, &package.join(name).join("main.go"));
    let go = |arguments: &[&str]| {
        let mut go = Command::new("go");
        go.args(arguments).current_dir(&package);
        output(go.env("CGO_ENABLED", "0").env("GOFLAGS", "-mod=readonly"))
    };
    go(&["vet", "./..."]);
    let program = place.join(name).display().to_string();
    go(&["build", "-o", &program, &format!("./{name}")]);
    Some(Command::new(program))
}

#[test]
fn go_gets_the_report_of_each_fixture() {
    let place = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/each.go");
    let Some(mut each) = program("each", &source, place.path()) else {
        return;
    };
    let cases = cases();
    let file = place.path().join("cases");
    std::fs::write(&file, cases_file(&cases)).unwrap();
    check_reports(&cases, &output(each.arg(file)), report);
}

#[test]
fn contexts_end_calls_and_hosts_outlive_instances() {
    let place = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/calls.go");
    let Some(mut calls) = program("calls", &source, place.path()) else {
        return;
    };
    let cache = place.path().join("cache");
    output(calls.arg(&cache));
    assert!(std::fs::read_dir(cache).unwrap().count() > 0);
}

#[test]
fn the_example_is_short_and_finds_the_domain_with_a_mistake() {
    let source = repository("bindings/go/example/main.go");
    assert!(std::fs::read_to_string(&source).unwrap().lines().count() < 65);
    let place = tempfile::tempdir().unwrap();
    let Some(mut example) = program("example", &source, place.path()) else {
        return;
    };
    let facts = repository("fixtures/facts/xfs-nvme.json");
    let files = [
        "clean/raw-on-lvm-with-virtio-scsi.xml",
        "mistakes/09-cache-unsafe.xml",
    ];
    let files = files.map(|file| repository("fixtures").join(file));
    let done = example.arg(&facts).args(&files).output().unwrap();
    let printed = String::from_utf8_lossy(&done.stdout);
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    assert!(
        printed.contains("09-cache-unsafe.xml:12: error[cache-unsafe]: "),
        "{printed}"
    );
    let broken = place.path().join("broken.xml");
    std::fs::write(&broken, "<disk").unwrap();
    let done = Command::new(place.path().join("example"))
        .args([&facts, &broken])
        .output()
        .unwrap();
    assert!(
        done.stderr.starts_with(broken.to_str().unwrap().as_bytes()),
        "{done:?}"
    );
}
