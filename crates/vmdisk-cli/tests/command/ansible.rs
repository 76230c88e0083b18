//! The playbook and the role of `ansible/`, run by ansible-core on two hosts with local connections.

use std::os::unix::fs::PermissionsExt;
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
            crate::program()
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

#[test]
fn a_clean_fleet_whose_hosts_have_their_own_images_is_green() {
    let Some(program) = program() else { return };
    let place = Place::with(&[]);
    let root = place.path("");
    let root = root.display();
    for host in ["kvm1", "kvm2"] {
        place.write(&format!("{host}/{host}.qcow2"), &[0; 512]);
        let guest = CLEAN.replace("/srv/web1.qcow2", &format!("{root}/{host}/{host}.qcow2"));
        assert_ne!(guest, CLEAN);
        place.write(&format!("{host}/web.xml"), guest.as_bytes());
    }
    let inventory = format!(
        "all:\n  hosts:\n    kvm1: {{vmdisk_domains: {root}/kvm1}}\n    kvm2: {{vmdisk_domains: {root}/kvm2}}\n  vars:\n    ansible_connection: local\n    ansible_python_interpreter: '{{{{ ansible_playbook_python }}}}'\n    ansible_remote_tmp: {root}/tmp\n    vmdisk_facts_arguments: ['--group=core']\n"
    );
    place.write("inventory.yml", inventory.as_bytes());
    let strict = "vmdisk_lint_arguments: [--fail-on-unchecked, --select=source-missing]";
    let run = play(&place, &program, strict);
    assert_eq!(run.code, 0, "{run:?}");
    let shared = format!("{strict}, vmdisk_host_arguments: []");
    let run = play(&place, &program, &shared);
    assert_eq!(run.code, 2, "{run:?}");
    // The message says what failed.
    assert!(
        run.stdout
            .contains("\"msg\": \"no findings in 2 files; 1 rule not checked"),
        "{run:?}"
    );
}

#[test]
fn the_check_of_a_thousand_hosts_is_green_and_one_error_is_named() {
    let Some(program) = program() else { return };
    let place = Place::with(&[("inventory.yml", "all: {hosts: {}}\n")]);
    let facts = "{\"schema_version\": \"1.0\", \"files\": [{\"path\": \"/srv/web1.qcow2\", \"present\": true}]}";
    for host in 0..1000 {
        // Each host has an image of its own, which the others lack.
        let own = |text: &str| text.replace("/srv/web1", &format!("/srv/web{host}"));
        place.write(&format!("out/facts/h{host}.json"), own(facts).as_bytes());
        place.write(
            &format!("out/domains/h{host}/web.xml"),
            own(CLEAN).as_bytes(),
        );
    }
    // The first play has no host left; its results are there.
    let strict = "vmdisk_hosts: none, vmdisk_lint_arguments: [--fail-on-unchecked, --select=source-missing, --select=cache-unsafe]";
    let run = play(&place, &program, strict);
    assert_eq!(run.code, 0, "{run:?}");
    place.write("out/domains/h7/web.xml", UNSAFE.as_bytes());
    let run = play(
        &place,
        &program,
        &strict.replace("--select=source-missing, ", ""),
    );
    assert_eq!(run.code, 2, "{run:?}");
    for words in [
        "domains/h7/web.xml:2:43: error[cache-unsafe]",
        "\"msg\": \"1 error in 1000 files",
    ] {
        assert!(run.stdout.contains(words), "{words}: {run:?}");
    }
}

/// Everything below a directory, with its mode.
fn modes(directory: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(path) = pending.pop() {
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap();
            pending.extend(entries.map(|entry| entry.unwrap().path()));
        }
        found.push((path, metadata.permissions().mode() & 0o777));
    }
    found
}

#[test]
fn the_playbook_leaves_nothing_wider_than_its_source_and_no_secret() {
    let Some(program) = program() else { return };
    const SECRET: &str = "hunter2CorrectHorse";
    let guest = format!(
        "<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>web1</name>
  <devices>
    {CLEAN}
    <disk type='network' device='cdrom'>
      <source protocol='https' name='a.iso'>
        <host name='h' port='443'/>
        <cookies><cookie name='c'>{SECRET}</cookie></cookies>
      </source>
      <target dev='sdz' bus='sata'/>
    </disk>
    <graphics type='vnc' port='-1' passwd='{SECRET}'/>
    <graphics type='spice' passwd=\"{SECRET}\"/>
  </devices>
  <qemu:commandline>
    <qemu:arg value='-object'/>
    <qemu:arg value='secret,id=s0,data={SECRET}'/>
    <qemu:arg value='{{\"qom-type\":\"secret\",\"id\":\"s1\",\"data\":\"{SECRET}\"}}'/>
    <qemu:arg value=\"{{&quot;qom-type&quot;:&quot;secret&quot;,&quot;id&quot;:&quot;s2&quot;,&quot;data&quot;:&quot;{SECRET}&quot;}}\"/>
    <qemu:arg value='file=rbd:pool/a:id=u:key={SECRET}:mon_host=m'/>
    <qemu:arg value='nbd://u:{SECRET}@h/x'/>
    <qemu:arg value='driver=https,cookie={SECRET}'/>
    <qemu:arg value='password=A:{SECRET}'/>
    <qemu:arg value='https://u:A/{SECRET}@h'/>
    <qemu:env name='CEPH_ARGS' value='--key {SECRET}'/>
  </qemu:commandline>
</domain>
"
    );
    assert_eq!(guest.matches(SECRET).count(), 12);
    let place = Place::with(&[("kvm1/web1.xml", &guest)]);
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(place.path("kvm1/web1.xml"), mode).unwrap();
    let inventory = format!(
        "all:\n  hosts:\n    kvm1:\n  vars:\n    vmdisk_domains: {0}/kvm1\n    ansible_connection: local\n    ansible_python_interpreter: '{{{{ ansible_playbook_python }}}}'\n    ansible_remote_tmp: {0}/tmp\n    vmdisk_facts_arguments: ['--root={1}']\n",
        place.path("").display(),
        repository()
            .join("fixtures/sysroots/debian-thin-on-md")
            .display()
    );
    place.write("inventory.yml", inventory.as_bytes());
    let run = play(&place, &program, "vmdisk_lint_arguments: [--exit-zero]");
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        !run.stdout.contains(SECRET) && !run.stderr.contains(SECRET),
        "{run:?}"
    );
    let fetched = place.read("out/domains/kvm1/web1.xml");
    assert_eq!(fetched.matches("redacted").count(), 12, "{fetched}");
    assert_eq!(fetched.lines().count(), guest.lines().count(), "{fetched}");
    let found = modes(&place.path("out"));
    assert!(found.len() >= 7, "{found:?}");
    for (path, mode) in found {
        // The reports have the mode that the controller's user gives new files, in a directory that is closed.
        let is_report = path.is_file() && path.parent() == Some(&place.path("out"));
        assert!(
            is_report || mode & 0o077 == 0,
            "{mode:o} {}",
            path.display()
        );
        if path.is_file() {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(!text.contains(SECRET), "{}", path.display());
        }
    }
}
