//! The validator for virt-lint, run as virt-lint runs it: with an object `vl`, and nothing else.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use vmdisk_testing::{installed, needed};

use crate::{Place, Run, UNSAFE, finish};

/// The interface of virt-lint's `src/validators_python.rs`, which prints what it is given.
const HARNESS: &str = "
import sys

class Lint:
    WarningDomain_Domain, WarningDomain_Node = 0, 1
    WarningLevel_Error, WarningLevel_Warning, WarningLevel_Notice = 0, 1, 2

    def dom_xpath(self, xpath):
        assert xpath == '/*'
        return [open(sys.argv[2]).read()]

    def add_warning(self, domain, level, text):
        print(domain, level, text)

exec(compile(open(sys.argv[1]).read(), sys.argv[1], 'exec'), {'vl': Lint()})
";

fn validator() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("integrations/virt-lint/disks/check_vmdisk.py")
}

fn validate(place: &Place, file: &str, program: &str, facts: &str) -> Run {
    let mut command = Command::new("python3");
    command
        .args(["-c", HARNESS])
        .arg(validator())
        .arg(place.path(file))
        .env("VMDISK_PROGRAM", program)
        .env("VMDISK_FACTS", facts)
        .current_dir(place.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    finish(command, b"")
}

#[test]
fn findings_become_warnings_with_the_levels_of_virt_lint() {
    if needed(installed("python3")).is_none() {
        return;
    }
    let place = Place::with(&[("a.xml", UNSAFE), ("broken.xml", "<disk>")]);
    let program = crate::program();
    let run = validate(&place, "a.xml", program, "");
    assert_eq!(run.code, 0, "{run:?}");
    let error = "0 0 `vda` discards the guest's flushes [cache-unsafe]; use `cache='writeback'`";
    assert!(run.stdout.lines().any(|line| line == error), "{run:?}");
    let unchecked = run
        .stdout
        .lines()
        .filter(|line| line.starts_with("1 2 vmdisk did not check"));
    assert_eq!(unchecked.count(), 1, "{run:?}");
    // virt-lint reports an exception; silence would read as clean.
    for (file, program) in [("broken.xml", program), ("a.xml", "/no/such/vmdisk")] {
        let run = validate(&place, file, program, "");
        assert_ne!(run.code, 0, "{run:?}");
    }
}

#[test]
fn a_mistake_of_the_host_is_one_of_the_node() {
    if needed(installed("python3")).is_none() {
        return;
    }
    let text = UNSAFE.replace("cache='unsafe'", "cache='unsafe' io='io_uring'");
    let facts = "{\"schema_version\": \"1.0\", \"limits\": {\"io_uring_disabled\": 2}}";
    let place = Place::with(&[("a.xml", &text), ("host.json", facts)]);
    let program = crate::program();
    let run = validate(&place, "a.xml", program, "host.json");
    let level_of = |rule: &str| {
        let line = run.stdout.lines().find(|line| line.contains(rule));
        line.unwrap_or_else(|| panic!("{rule}: {run:?}")).get(..1)
    };
    assert_eq!(level_of("[io-uring-disabled]"), Some("1"));
    assert_eq!(level_of("[cache-unsafe]"), Some("0"));
}
