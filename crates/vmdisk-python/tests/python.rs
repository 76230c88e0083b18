//! The Python package, with the examples of `docs/python.md`.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start programs"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use vmdisk::calls::{self, CallOptions};
use vmdisk_testing::{Case, cases, cases_file, check_reports, installed, needed, run};

/// A directory with the package, as it is installed, and with the examples of the guide.
fn package() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = place.path().join("vmdisk");
    std::fs::create_dir(&package).unwrap();
    for entry in std::fs::read_dir(own.join("python/vmdisk")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, package.join(path.file_name().unwrap())).unwrap();
    }
    let built = std::env::current_exe().unwrap();
    let built = built.parent().unwrap().join("libvmdisk_python.so");
    std::fs::copy(built, package.join("_vmdisk.abi3.so")).unwrap();
    let guide = std::fs::read_to_string(own.join("../../docs/python.md")).unwrap();
    let blocks = guide.split("```python\n").skip(1);
    let examples: Vec<&str> = blocks.map(|it| it.split("```").next().unwrap()).collect();
    let names = ["test_domains.py", "define.py", "plan_disks.py"];
    assert_eq!(examples.len(), names.len());
    for (name, text) in names.iter().zip(examples) {
        std::fs::write(place.path().join(name), text).unwrap();
    }
    place
}

/// The interpreters to try: those of `VMDISK_PYTHONS`, or the usual one.
fn pythons() -> Vec<String> {
    let named = std::env::var("VMDISK_PYTHONS").unwrap_or_else(|_| "python3".to_owned());
    named.split_whitespace().map(str::to_owned).collect()
}

fn python(program: &str, place: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(place)
        .env("PYTHONPATH", place);
    let done = command.output().unwrap();
    let said = [done.stdout, done.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    format!("{:?}\n{said}", done.status.code())
}

#[test]
fn the_module_does_what_the_guide_says() {
    let script: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/module.py");
    for program in pythons() {
        if needed(installed(&program)).is_none() {
            continue;
        }
        let place = package();
        let said = python(&program, place.path(), &[script.to_str().unwrap()]);
        assert!(
            said.starts_with("Some(0)") && said.contains("as documented"),
            "{said}"
        );
    }
}

#[test]
fn python_gets_the_report_of_each_fixture() {
    const EACH: &str = "import sys
from vmdisk._vmdisk import Host, call
parts = open('cases', newline='', encoding='utf-8').read().split(chr(0))
for name, text, facts, options in zip(*(parts[first::4] for first in range(4))):
    report = call(name, text, Host.parse(facts) if facts else None, options)
    sys.stdout.buffer.write(report.encode() + bytes(1))
";
    let program = &pythons()[0];
    if needed(installed(program)).is_none() {
        return;
    }
    let place = package();
    let cases = cases();
    std::fs::write(place.path().join("cases"), cases_file(&cases)).unwrap();
    let mut each = Command::new(program);
    each.args(["-c", EACH]).current_dir(place.path());
    let done = each.env("PYTHONPATH", place.path()).output().unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    check_reports(&cases, &done.stdout, |case: &Case| {
        let host = case.facts.as_deref();
        let host = host.map(|facts| vmdisk::Host::parse(facts).unwrap());
        let options = CallOptions::parse(&case.options).unwrap();
        let call = match case.call {
            "lint_all" => calls::lint_all,
            _ => calls::lint,
        };
        call(&case.text, host.as_ref(), &options).unwrap()
    });
}

#[test]
fn the_example_with_pytest_finds_the_domain_with_a_mistake() {
    let program = &pythons()[0];
    if needed(run(program, &["-m", "pytest", "--version"])).is_none() {
        return;
    }
    let place = package();
    let domains = place.path().join("domains");
    std::fs::create_dir(&domains).unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let copy = |from: &str, to: &str| {
        std::fs::copy(fixtures.join(from), domains.join(to)).unwrap();
    };
    copy("mistakes/09-cache-unsafe.xml", "bad.xml");
    copy("clean/raw-on-lvm-with-virtio-scsi.xml", "good.xml");
    let said = python(
        program,
        place.path(),
        &["-m", "pytest", "-q", "-p", "no:cacheprovider"],
    );
    assert!(
        said.starts_with("Some(1)") && said.contains("1 failed, 1 passed"),
        "{said}"
    );
    assert!(said.contains("discards the guest's flushes"), "{said}");
}

#[test]
fn type_checkers_accept_the_examples_and_refuse_unknown_keys() {
    let program = &pythons()[0];
    if needed(run(program, &["-m", "mypy", "--version"])).is_none() {
        return;
    }
    let place = package();
    let check = |name: &str| python(program, place.path(), &["-m", "mypy", "--strict", name]);
    for example in ["define.py", "plan_disks.py", "test_domains.py"] {
        let said = check(example);
        assert!(said.starts_with("Some(0)"), "{said}");
    }
    let wrong = "import vmdisk\nprint(vmdisk.lint('')['findings'][0]['rules'])\n";
    std::fs::write(place.path().join("wrong.py"), wrong).unwrap();
    assert!(
        check("wrong.py").contains("TypedDict"),
        "{}",
        check("wrong.py")
    );
}

/// The name in the header of a raw image is the guest's: whoever collects the facts of a guest must not follow it.
#[test]
fn facts_that_a_guest_needs_lead_to_no_file_that_its_raw_image_names() {
    const COLLECT: &str = "import sys, vmdisk
text = open(sys.argv[1]).read()
report = vmdisk.lint(text, host=vmdisk.Host.collect(text))
assert report['findings'] is not None
";
    let program = &pythons()[0];
    let place = package();
    let path = |name: &str| place.path().join(name).display().to_string();
    let traced = |arguments: &[&str]| {
        let mut strace = Command::new("strace");
        strace.args([
            "-f",
            "-e",
            "trace=%file",
            "-o",
            &path("calls"),
            program.as_str(),
        ]);
        let run = strace
            .args(arguments)
            .env("PYTHONPATH", place.path())
            .output();
        let is_traced = run.is_ok_and(|run| run.status.success());
        is_traced.then(|| std::fs::read_to_string(path("calls")).unwrap())
    };
    // A version-2 header whose backing file is a secret of the host.
    let secret = path("secret.txt");
    std::fs::write(&secret, "secret").unwrap();
    let mut header = vec![0; 65536];
    header[..8].copy_from_slice(b"QFI\xfb\0\0\0\x02");
    header[8..20].copy_from_slice(&[0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, secret.len() as u8]);
    header[20..32].copy_from_slice(&[0, 0, 0, 16, 0, 0, 0, 0, 0, 16, 0, 0]);
    header[256..256 + secret.len()].copy_from_slice(secret.as_bytes());
    std::fs::write(path("evil.img"), header).unwrap();
    let calls = |format: &str| {
        let text = format!(
            "<domain type='kvm'><name>a</name><devices><disk type='file' device='disk'><driver name='qemu' type='{format}'/>\
             <source file='{}'/><target dev='vda' bus='virtio'/></disk></devices></domain>",
            path("evil.img")
        );
        std::fs::write(path("guest.xml"), text).unwrap();
        traced(&["-c", COLLECT, &path("guest.xml")])
    };
    if needed(installed(program)).is_none() || needed(installed("strace")).is_none() {
        return;
    }
    if traced(&["-c", ""]).is_none() {
        // No program that is missing: a property of where the test runs.
        vmdisk_testing::skipped_even_if_required("strace may not look into programs here");
        return;
    }
    let raw = calls("raw").unwrap();
    assert!(
        raw.contains("evil.img") && !raw.contains("secret.txt"),
        "{raw}"
    );
    // Whoever opens it as qcow2 opens its backing file, too.
    assert!(calls("qcow2").unwrap().contains("secret.txt"));
}
