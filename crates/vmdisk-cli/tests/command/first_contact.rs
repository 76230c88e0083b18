//! The first things that people try, and what the command says: each message names the thing and what to do.

use std::io::Write as _;

use crate::{Place, UNSAFE};

const TERRAFORM: &str = "resource \"libvirt_domain\" \"web\" {\n  name = \"web1\"\n}\n";
const KUBEVIRT: &str = "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nspec: {}\n";
const PROXMOX: &str =
    "boot: order=scsi0\nscsi0: local-lvm:vm-100-disk-0,size=32G\nscsihw: virtio-scsi-single\n";
const INCUS: &str = "config: {limits.memory: 1GiB}\nname: web\ntype: virtual-machine\n";
const INCUS_PROFILE: &str =
    "config: {}\ndevices:\n  root:\n    path: /\n    pool: default\n    type: disk\n";
const PLAYBOOK: &str =
    "- hosts: all\n  tasks:\n  - virt:\n      xml: |\n        <domain type='kvm'/>\n";

fn place() -> Place {
    let place = Place::with(&[
        ("web.xml", UNSAFE),
        ("main.tf", TERRAFORM),
        ("vm.yaml", KUBEVIRT),
        ("100.conf", PROXMOX),
        ("incus.yaml", INCUS),
        ("play.yml", PLAYBOOK),
        ("bare.conf", "memory: 2048\nvmgenid: 7e0a\n"),
        ("profile.yaml", INCUS_PROFILE),
        ("site.yml", "- hosts: all\n  roles: [web]\n"),
        ("Vagrantfile", "Vagrant.configure('2') do |config|\nend\n"),
        ("box.pkr.hcl", "source \"qemu\" \"debian\" {\n}\n"),
        (
            "web.vmx",
            "config.version = \"8\"\nvirtualHW.version = \"19\"\n",
        ),
        ("user-data", "#cloud-config\nhostname: web\n"),
        ("deploy.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {}\n"),
        (
            "ks.sh",
            "#!/bin/sh\nvirt-install --name web --disk path=/srv/web.qcow2,cache=unsafe --import\n",
        ),
        (
            "add.sh",
            "#!/bin/sh\nvirsh attach-disk web /srv/d.img vdb\n",
        ),
        ("web.ovf", "<?xml version='1.0'?>\n<Envelope xmlns='a'/>\n"),
    ]);
    for (name, magic) in [
        ("web.xml.gz", &b"\x1f\x8b\x08\0\0"[..]),
        ("web.xml.xz", b"\xfd7zXZ\0"),
        ("web.xml.zst", b"\x28\xb5\x2f\xfd\0"),
        ("disk.qcow2", b"QFI\xfb\0\0\0\x03"),
        ("disk.vmdk", b"KDMV\x01\0\0\0"),
    ] {
        place.write(name, magic);
    }
    place
}

/// Command lines that people try, with the words of the message.
const TRIED: &[(&[&str], &[&str])] = &[
    (
        &["lint", "disk.qcow2"],
        &["a qcow2 image", "`vmdisk facts FILE --format text`"],
    ),
    (
        &["lint", "disk.vmdk"],
        &["a vmdk image", "`vmdisk facts FILE --format text`"],
    ),
    (
        &["lint", "web.xml.gz"],
        &["a gzip file", "`zcat FILE | vmdisk lint -`"],
    ),
    (&["lint", "web.xml.xz"], &["an xz file", "`xzcat FILE"]),
    (&["lint", "web.xml.zst"], &["a zstd file", "`zstdcat FILE"]),
    (
        &["lint", "web1"],
        &["no such file", "`vmdisk lint --domain web1`"],
    ),
    (
        &["generate", "web1"],
        &["other commands read a file", "`virsh dumpxml web1`"],
    ),
    (
        &["lint", "qemu:///system"],
        &["`vmdisk lint -c qemu:///system --all-domains`"],
    ),
    (
        &["lint", "main.tf"],
        &[
            "a Terraform configuration",
            "`virsh dumpxml NAME | vmdisk lint -`",
        ],
    ),
    (
        &["convert", "main.tf", "--to", "qemu"],
        &["a Terraform configuration"],
    ),
    (
        &["lint", "vm.yaml"],
        &["a KubeVirt manifest", "virsh dumpxml"],
    ),
    (
        &["lint", "100.conf"],
        &[
            "a Proxmox VE configuration",
            "`qm showcmd NUMBER | vmdisk lint -`",
        ],
    ),
    (
        &["lint", "incus.yaml"],
        &["an Incus instance", "/run/incus/NAME/qemu.conf"],
    ),
    (
        &["lint", "play.yml"],
        &["a playbook that contains XML", "a file of its own"],
    ),
    (
        &["lint", "bare.conf"],
        &["a Proxmox VE configuration", "`qm showcmd NUMBER"],
    ),
    (
        &["lint", "profile.yaml"],
        &["an Incus instance", "/run/incus/NAME/qemu.conf"],
    ),
    (&["lint", "site.yml"], &["a playbook", "--all-domains"]),
    (
        &["lint", "Vagrantfile"],
        &["a Vagrantfile", "virsh dumpxml"],
    ),
    (
        &["lint", "box.pkr.hcl"],
        &["a Packer template", "`vmdisk lint --running`"],
    ),
    (
        &["lint", "web.vmx"],
        &["a VMware configuration", "`virt-v2v -i vmx"],
    ),
    (
        &["lint", "web.ovf"],
        &["an OVF descriptor", "`virt-v2v -i ova"],
    ),
    (
        &["lint", "ks.sh"],
        &["`virt-install … --print-xml | vmdisk lint -`"],
    ),
    (
        &["lint", "add.sh"],
        &["`virsh attach-disk … --print-xml | vmdisk lint -`"],
    ),
    (&["web.xml"], &["use `vmdisk lint web.xml`"]),
    (&["lint", "--watch", "."], &["`vmdisk lsp` in an editor"]),
    (&["advise"], &["`vmdisk advise --size 100G --live`"]),
    (&["explain"], &["`vmdisk explain --list` lists the rules"]),
    (&["print", "schema"], &["`vmdisk print schema facts`"]),
    (
        &["print", "completions"],
        &["`vmdisk print completions bash`"],
    ),
    (&["lint", "user-data"], &["cloud-init's user data"]),
    (&["lint", "deploy.yaml"], &["a Kubernetes manifest"]),
    (
        &["generate", "--disk", "/srv/web.qcow2"],
        &["did you mean `qcow2:/srv/web.qcow2`?"],
    ),
    (
        &["generate", "--disk", "/srv/web.img"],
        &["did you mean `raw:/srv/web.img`?"],
    ),
    (
        &["generate", "--disk", "/dev/sdb"],
        &["did you mean `device:/dev/sdb`?"],
    ),
    (
        &["lint", "web.xml", "--fail-on", "never"],
        &["use `--exit-zero`"],
    ),
    (&["check", "web.xml"], &["use `vmdisk lint`"]),
    (&["fix", "web.xml"], &["use `vmdisk lint --fix`"]),
    (
        &["lint", "--recursive", "."],
        &["always searched with all below"],
    ),
    (&["lint", "-f", "json", "."], &["use `--format FORMAT`"]),
    (
        &["lint", ".", "--format", "sarif", "--statistics"],
        &["does not support this format"],
    ),
    (
        &["explain", "--list", "no-such-word"],
        &[
            "no rule has all of these words",
            "`vmdisk explain no-such-word`",
        ],
    ),
];

#[test]
fn what_people_try_first_is_answered_with_what_to_do() {
    let place = place();
    for (arguments, words) in TRIED {
        let run = place.run(arguments);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (2, ""),
            "{arguments:?}: {run:?}"
        );
        for word in *words {
            assert!(
                run.stderr.contains(word),
                "{arguments:?} lacks {word}: {}",
                run.stderr
            );
        }
    }
}

#[test]
fn files_of_other_tools_are_skipped_in_a_directory() {
    let place = place();
    let run = place.run(&["lint", ".", "--format", "concise"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains(" in 1 file;"), "{run:?}");
}

#[test]
fn a_directory_of_another_tool_is_answered_as_its_file() {
    let place = place();
    for (folder, file, words) in [
        (
            "terraform",
            "main.tf",
            "a Terraform configuration: `virsh dumpxml NAME",
        ),
        (
            "vagrant",
            "Vagrantfile",
            "a Vagrantfile: `virsh dumpxml NAME",
        ),
        (
            "proxmox",
            "100.conf",
            "a Proxmox VE configuration: `qm showcmd NUMBER",
        ),
    ] {
        std::fs::create_dir(place.path(folder)).unwrap();
        std::fs::copy(place.path(file), place.path(&format!("{folder}/{file}"))).unwrap();
        let run = place.run(&["lint", folder]);
        assert_eq!(run.code, 2, "{run:?}");
        let words = format!("`{folder}/{file}` is {words}");
        assert!(run.stderr.contains(&words), "{run:?}");
    }
    std::fs::create_dir(place.path("empty")).unwrap();
    let run = place.run(&["lint", "empty"]);
    assert!(run.stderr.contains("--all-domains --live"), "{run:?}");
}

#[test]
fn words_of_other_linters_in_a_configuration_are_answered() {
    let place = place();
    for (text, words) in [
        (
            "ignore = [\"cache-unsafe\"]\n",
            "in `[rules]`, such as `cache-unsafe = \"off\"`",
        ),
        ("select = [\"a\"]\n", "in `[rules]`"),
        ("[lint]\n", "in `[rules]`"),
        (
            "[rules]\ncache-unsafe = \"ignore\"\n",
            "did you mean `off`?",
        ),
        ("exclud = [\"a\"]\n", "did you mean `exclude`?"),
    ] {
        place.write("vmdisk.toml", text.as_bytes());
        let run = place.run(&["lint", "web.xml"]);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains(words), "{text}: {run:?}");
    }
}

#[test]
fn lint_without_a_path_checks_the_current_directory() {
    let place = place();
    let named = place.run(&["lint", "."]);
    let unnamed = place.run(&["lint"]);
    assert_eq!((unnamed.code, &unnamed.stdout), (1, &named.stdout));
    assert!(unnamed.stdout.contains("web.xml:"), "{unnamed:?}");
}

#[test]
fn excluded_files_are_not_checked_unless_they_are_named() {
    let place = Place::with(&[
        ("a.xml", UNSAFE),
        ("old/b.xml", UNSAFE),
        ("old/deep/c.xml", UNSAFE),
    ]);
    let files = |arguments: &[&str]| {
        let run = place.run(&[&["lint", "--show-files"], arguments].concat());
        run.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(files(&[]).len(), 3);
    assert_eq!(files(&["--exclude", "old/"]), ["a.xml"]);
    assert_eq!(
        files(&["--exclude", "deep", "--exclude", "/a.xml"]),
        ["old/b.xml"]
    );
    assert_eq!(files(&["--exclude", "old/", "old/b.xml"]), ["old/b.xml"]);
    let all = place.run(&["lint", "--exclude", "*.xml"]);
    assert_eq!(all.code, 2, "{all:?}");
    assert!(all.stderr.contains("`--exclude` skips 3 files"), "{all:?}");
    let bad = place.run(&["lint", "--exclude", "{a", "."]);
    assert!(
        bad.code == 2 && bad.stderr.contains("--exclude: "),
        "{bad:?}"
    );
}

#[test]
fn rules_are_found_by_words_and_have_their_pages() {
    let place = Place::with(&[]);
    let run = place.run(&["explain", "--list", "btrfs", "ERROR"]);
    assert!(!run.stdout.is_empty(), "{run:?}");
    for line in run.stdout.lines() {
        assert!(line.contains("btrfs") && line.contains("error"), "{line}");
    }
    let run = place.run(&["explain", "--list", "--format", "json"]);
    let all: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), vmdisk::rules::RULES.len());
    for rule in all {
        let page = rule["page"].as_str().unwrap();
        assert!(page.contains("\n## Reported\n"), "{rule}");
    }
}

#[test]
fn a_facts_file_is_said_to_be_valid_with_its_age_and_qemus_are_one_line() {
    let place = Place::with(&[]);
    let qemus: Vec<String> = ["a", "b", "c"]
        .iter()
        .map(|name| format!("{{\"path\": \"/usr/bin/{name}\", \"version\": [7, 2, 22]}}"))
        .collect();
    let facts = format!(
        "{{\"schema_version\": \"1.0\", \"collected_at\": \"2026-11-18T07:00:00Z\", \"host\": {{\"id\": \"kvm1\"}}, \"qemu\": [{}]}}",
        qemus.join(", ")
    );
    place.write("f.json", facts.as_bytes());
    let mut command = place.command(["facts", "check", "f.json"]);
    command.env("SOURCE_DATE_EPOCH", "1795000000");
    let run = crate::finish(command, b"");
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(
        run.stdout,
        "f.json: valid, collected on kvm1 at 2026-11-18T07:00:00Z (4 hours ago)\n"
    );
    let run = place.run(&["facts", "show", "f.json"]);
    let qemus: Vec<&str> = run
        .stdout
        .lines()
        .filter(|line| line.starts_with("qemu "))
        .collect();
    assert_eq!(qemus, ["qemu           7.2.22 (/usr/bin/a and 2 more)"]);
}

#[test]
fn each_rule_of_an_allowance_must_be_needed() {
    let allowed = |rules: &str| {
        format!("<devices>\n<!-- vmdisk: allow({rules}) scratch -->\n{UNSAFE}</devices>\n")
    };
    let place = Place::with(&[("a.xml", "")]);
    for (rules, unused, fixed) in [
        ("cache-unsafe", &[][..], "cache-unsafe"),
        (
            "cache-unsafe, bus-emulated",
            &["bus-emulated"],
            "cache-unsafe",
        ),
        (
            "bus-emulated, cache-unsafe",
            &["bus-emulated"],
            "cache-unsafe",
        ),
        (
            "bus-emulated, cache-unsafe, acpi-missing,node-unused",
            &["bus-emulated", "acpi-missing", "node-unused"],
            "cache-unsafe",
        ),
        // Guests are compared later.
        (
            "cache-unsafe, image-shared-by-guests",
            &[],
            "cache-unsafe, image-shared-by-guests",
        ),
    ] {
        place.write("a.xml", allowed(rules).as_bytes());
        let run = place.run(&[
            "lint",
            "a.xml",
            "--format",
            "concise",
            "--select",
            "allowance-unused",
        ]);
        for rule in unused {
            let title = format!("unused allowance: `{rule}` is not reported here");
            assert!(run.stdout.contains(&title), "{rules}: {run:?}");
        }
        assert_eq!(run.stdout.lines().count(), unused.len(), "{rules}: {run:?}");
        place.run(&["lint", "a.xml", "--fix", "--select", "allowance-unused"]);
        assert_eq!(place.read("a.xml"), allowed(fixed), "{rules}");
    }
}

#[test]
fn a_compressed_guest_is_checked_by_the_command_that_the_message_gives() {
    let place = Place::with(&[]);
    let mut gzip = std::process::Command::new("gzip");
    gzip.arg("-c")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    let mut child = gzip.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(UNSAFE.as_bytes())
        .unwrap();
    place.write("web.xml.gz", &child.wait_with_output().unwrap().stdout);
    let script = format!("zcat web.xml.gz | {} lint -", crate::program());
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(place.path(""))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("cache-unsafe"));
}

#[test]
fn a_pipe_that_is_not_read_is_told() {
    let place = Place::with(&[("web.xml", crate::CLEAN)]);
    let note = "standard input was not read; `vmdisk lint -` reads it\n";
    let piped = place.run_with_input(&["lint"], UNSAFE.as_bytes());
    assert_eq!(piped.code, 0, "{piped:?}");
    assert!(piped.stderr.ends_with(note), "{piped:?}");
    for (arguments, input) in [
        (&["lint"][..], ""),
        (&["lint", "."], UNSAFE),
        (&["lint", "-"], UNSAFE),
    ] {
        let run = place.run_with_input(arguments, input.as_bytes());
        assert!(!run.stderr.contains(note), "{arguments:?}: {run:?}");
    }
}

#[test]
fn a_guest_without_a_disk_is_told() {
    let place = Place::with(&[("a.xml", "<domain/>"), ("d/a.xml", crate::CLEAN)]);
    let without = place.run(&["lint", "a.xml"]);
    assert_eq!(without.code, 0, "{without:?}");
    assert!(
        without
            .stderr
            .starts_with("no findings in 1 file without a disk"),
        "{without:?}"
    );
    let with = place.run(&["lint", "a.xml", "d"]);
    assert!(!with.stderr.contains("without a disk"), "{with:?}");
}

#[test]
fn words_with_a_hyphen_are_words_unless_they_are_nearly_a_rule() {
    let place = Place::with(&[]);
    for words in [
        "io-error",
        "copy-on-write",
        "qemu-img",
        "no-space",
        "cloud-init",
    ] {
        let run = place.run(&["explain", words]);
        assert_eq!(run.code, 0, "{run:?}");
        let said = run.stdout.to_lowercase();
        let is_list = said.starts_with("the closest pages\n");
        assert!(
            is_list || said.contains("other pages with these words"),
            "{run:?}"
        );
    }
    let near = place.run(&["explain", "cache-unsave"]);
    assert_eq!(near.code, 2, "{near:?}");
    assert!(
        near.stderr.contains("did you mean `cache-unsafe`?"),
        "{near:?}"
    );
}
