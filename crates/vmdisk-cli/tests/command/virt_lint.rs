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

fn validate(place: &Place, file: &str, program: &str) -> Run {
    let mut command = Command::new("python3");
    command
        .args(["-c", HARNESS])
        .arg(validator())
        .arg(place.path(file))
        .env("VMDISK_PROGRAM", program)
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
    let program = env!("CARGO_BIN_EXE_vmdisk");
    let run = validate(&place, "a.xml", program);
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
        let run = validate(&place, file, program);
        assert_ne!(run.code, 0, "{run:?}");
    }
}

#[test]
fn the_rules_about_the_node_exist() {
    let text = std::fs::read_to_string(validator()).unwrap();
    let (_, list) = text.split_once("of_the_node = {").unwrap();
    let (list, _) = list.split_once('}').unwrap();
    let names: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    assert!(names.len() > 5);
    for name in names {
        assert!(vmdisk::rules::find(name).is_some(), "{name}");
    }
}
