//! The playbook and the role of `ansible/`, run by ansible-core on two hosts with local connections.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use vmdisk_testing::needed;

use crate::{CLEAN, Place, Run, UNSAFE, finish};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The ansible-playbook that .ci/run installs below target/, or the system's.
fn program() -> Option<String> {
    let ours = repository().join("target/ansible/bin/ansible-playbook");
    let ours = ours.display().to_string();
    let programs = [ours.as_str(), "ansible-playbook"];
    // It starts only with a locale of UTF-8.
    let is_there = |name: &&str| {
        let mut version = Command::new(name);
        let version = version.arg("--version").env("LC_ALL", "C.UTF-8").output();
        version.is_ok_and(|output| output.status.success())
    };
    let found = programs.into_iter().find(is_there);
    let found = found.map(str::to_owned);
    needed(found.ok_or_else(|| "ansible-playbook is not installed".to_owned()))
}

fn play(place: &Place, program: &str, arguments: &str) -> Run {
    let mut command = Command::new(program);
    command
        .args(["-i", "inventory.yml", "-e"])
        .arg(format!(
            "{{vmdisk_directory: {}, vmdisk_program: {}, {arguments}}}",
            place.path("out").display(),
            env!("CARGO_BIN_EXE_vmdisk")
        ))
        .arg(repository().join("ansible/playbook.yml"))
        .current_dir(place.path(""))
        .env("ANSIBLE_LOCAL_TEMP", place.path("tmp"))
        .env("ANSIBLE_NOCOLOR", "1")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    finish(command, b"")
}

#[test]
fn the_playbook_checks_the_guests_of_all_hosts_in_one_run_and_publishes_reports() {
    let Some(program) = program() else { return };
    let place = Place::with(&[("kvm1/web1.xml", UNSAFE), ("kvm2/web2.xml", CLEAN)]);
    let sysroot = repository().join("fixtures/sysroots/debian-thin-on-md");
    let inventory = format!(
        "all:\n  hosts:\n    kvm1: {{vmdisk_domains: [{0}/kvm1]}}\n    kvm2: {{vmdisk_domains: {0}/kvm2}}\n  vars:\n    ansible_connection: local\n    ansible_python_interpreter: '{{{{ ansible_playbook_python }}}}'\n    ansible_remote_tmp: {0}/tmp\n    vmdisk_facts_arguments: ['--root={1}']\n",
        place.path("").display(),
        sysroot.display()
    );
    place.write("inventory.yml", inventory.as_bytes());
    let run = play(&place, &program, "");
    assert_eq!(run.code, 2, "findings fail the last task: {run:?}");
    for host in ["kvm1", "kvm2"] {
        let recap = run
            .stdout
            .lines()
            .find(|line| line.starts_with(&format!("{host} ")));
        assert!(
            recap.is_some_and(|line| line.contains("failed=0")),
            "{run:?}"
        );
        assert!(
            place
                .read(&format!("out/facts/{host}.json"))
                .contains("schema_version")
        );
    }
    assert!(
        run.stdout
            .contains("domains/kvm1/web1.xml:2:43: error[cache-unsafe]"),
        "{run:?}"
    );
    assert!(run.stdout.contains("Fail on findings"), "{run:?}");
    assert_eq!(place.read("out/domains/kvm2/web2.xml"), CLEAN);
    assert!(place.read("out/vmdisk.html").contains("cache-unsafe"));
    let sarif: serde_json::Value = serde_json::from_str(&place.read("out/vmdisk.sarif")).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert!(
        results
            .iter()
            .any(|result| result["ruleId"] == "cache-unsafe")
    );

    let lenient = "vmdisk_lint_arguments: [--exit-zero]";
    let run = play(&place, &program, lenient);
    assert_eq!(run.code, 0, "{run:?}");
    // A guest that cannot be read is not a finding.
    place.write("kvm2/web2.xml", b"<domain>");
    let run = play(&place, &program, lenient);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stdout.contains("non-zero return code"), "{run:?}");
}
