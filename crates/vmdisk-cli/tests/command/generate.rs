//! Generate: from one line or a spec to every form.

use serde_json::Value;

use crate::{Place, Run};

const DISK: &str = "qcow2:/srv/web1.qcow2,size=40G";

fn generate(arguments: &[&str]) -> Run {
    Place::with(&[]).run(&[&["generate", "--disk", DISK], arguments].concat())
}

fn text(run: Run) -> String {
    assert_eq!(run.code, 0, "{run:?}");
    run.stdout
}

#[test]
fn every_form_names_the_disk_and_says_nothing_else() {
    for form in ["libvirt-xml", "disk-xml", "qemu", "blockdev-json", "script"] {
        let run = generate(&["--to", form]);
        let again = generate(&["--to", form]);
        assert!(run.stdout.contains("/srv/web1.qcow2"), "{form}: {run:?}");
        assert_eq!(run.stdout, again.stdout, "{form}");
    }
    assert!(text(generate(&["--to", "libvirt-xml"])).starts_with("<domain type='kvm'>"));
    assert!(text(generate(&["--to", "disk-xml"])).starts_with("<disk type='file'"));
    assert!(text(generate(&["--to", "script"])).starts_with("#!/bin/sh\n"));
    let blockdevs: Value =
        serde_json::from_str(&text(generate(&["--to", "blockdev-json"]))).unwrap();
    assert!(!blockdevs.as_array().unwrap().is_empty());
}

#[test]
fn a_disk_in_one_line_in_place_of_a_spec_is_told_of_its_option() {
    let run = Place::with(&[]).run(&["generate", DISK]);
    assert_eq!(run.code, 2, "{run:?}");
    let help = format!("help: a disk in one line is `--disk {DISK}`");
    assert!(run.stderr.contains(&help), "{run:?}");
    let other = Place::with(&[]).run(&["generate", "web1.yaml"]);
    assert!(!other.stderr.contains("help:"), "{other:?}");
}

#[test]
fn the_forms_of_a_qemu_command_line_hold_the_same_arguments() {
    let form = |format: &str| text(generate(&["--to", "qemu", "--qemu-format", format]));
    let json: Vec<String> = serde_json::from_str(&form("json")).unwrap();
    let lines: Vec<String> = form("args").lines().map(str::to_owned).collect();
    assert_eq!(json, lines);
    let shell = std::process::Command::new("sh")
        .args([
            "-c",
            &format!("set -- {}\nprintf '%s\\n' \"$@\"", form("lines")),
        ])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(shell.stdout).unwrap(), form("args"));
}

#[test]
fn qmp_and_json_of_a_served_disk_lint_without_findings() {
    let place = Place::with(&[]);
    let disk = "vhost-user-blk:/s.sock,serves.path=/a.img,serves.format=raw";
    for form in [
        &["--to", "qmp"][..],
        &["--to", "qemu", "--qemu-format", "json"],
    ] {
        let generate = [&["generate", "--disk", disk, "--target", "qemu=7.2"], form].concat();
        place.write("v", text(place.run(&generate)).as_bytes());
        let lint = place.run(&["lint", "v", "--target", "qemu=7.2"]);
        assert_eq!((lint.code, &*lint.stdout), (0, ""), "{lint:?}");
        let converted = place.run(&["convert", "v", "--to", "libvirt-xml"]);
        assert!(
            converted
                .stdout
                .contains("<source type='unix' path='/s.sock'>"),
            "{converted:?}"
        );
        assert!(
            !converted.stderr.contains("backend") && !converted.stderr.contains("`server`"),
            "{converted:?}"
        );
    }
}

#[test]
fn what_is_generated_lints_without_errors_and_warnings() {
    let place = Place::with(&[]);
    let xml = text(generate(&[
        "--name", "web1", "--memory", "4G", "--vcpus", "4",
    ]));
    assert!(xml.contains("<name>web1</name>"), "{xml}");
    let run = place.run_with_input(&["lint", "-"], xml.as_bytes());
    assert_eq!(run.code, 0, "{xml}\n{run:?}");
}

#[test]
fn reasons_are_given_beside_the_text() {
    let run = generate(&["--explain"]);
    assert!(run.stderr.contains("vda: cache="), "{run:?}");
    assert_eq!(run.stdout, generate(&[]).stdout);
    assert_eq!(generate(&[]).stderr, "");
}

#[test]
fn a_spec_and_further_disks_make_one_guest() {
    let spec = "version: 1\nguest:\n  name: db1\n  uuid: 4dea22b3-1d52-d8f3-2516-782e98ab3fa0\ndisks:\n  - qcow2:\n      path: /srv/db1.qcow2\n      size: 10G\n";
    let place = Place::with(&[("spec.yaml", spec)]);
    let from_file = place.run(&["generate", "spec.yaml", "--disk", DISK]);
    let xml = text(from_file);
    assert!(
        xml.contains("<uuid>4dea22b3-1d52-d8f3-2516-782e98ab3fa0</uuid>"),
        "{xml}"
    );
    let qemu = place.run(&["generate", "spec.yaml", "--to", "qemu"]);
    assert!(
        text(qemu).contains("-uuid 4dea22b3-1d52-d8f3-2516-782e98ab3fa0"),
        "the identity goes to QEMU too"
    );
    assert!(xml.find("/srv/db1.qcow2").unwrap() < xml.find("/srv/web1.qcow2").unwrap());
    let piped = place.run_with_input(&["generate", "-", "--disk", DISK], spec.as_bytes());
    assert_eq!(piped.stdout, xml);
    let renamed = place.run(&["generate", "spec.yaml", "--name", "other"]);
    assert!(text(renamed).contains("<name>other</name>"));
}

#[test]
fn mistakes_are_shown_at_their_places_and_nothing_is_printed() {
    let place = Place::with(&[(
        "spec.yaml",
        "version: 1\ndisks:\n  - qcow3:\n      path: /srv/a\n",
    )]);
    let spec = place.run(&["generate", "spec.yaml"]);
    assert_eq!((spec.code, spec.stdout.as_str()), (2, ""), "{spec:?}");
    assert!(spec.stderr.contains("spec.yaml:3:5"), "{spec:?}");
    let disk = place.run(&["generate", "--disk", "raw:/srv/a.img,sise=1G"]);
    assert_eq!((disk.code, disk.stdout.as_str()), (2, ""), "{disk:?}");
    assert!(
        disk.stderr.contains("--disk:1:16") && disk.stderr.contains("did you mean `size`?"),
        "{disk:?}"
    );
    let clash =
        "version: 1\ndisks:\n  - raw: {path: /srv/a, size: 1G}\n    bus: ide\n    queues: 4\n";
    place.write("clash.yaml", clash.as_bytes());
    let planned = place.run(&["generate", "clash.yaml"]);
    assert!(planned.stderr.contains("clash.yaml:5:13"), "{planned:?}");
    for arguments in [
        &["generate"][..],
        &["generate", "missing.yaml"],
        &["generate", "--disk", ""],
        &["generate", "--disk", DISK, "--memory", "many"],
        &["generate", "--disk", DISK, "--to", "floppy"],
        &["generate", "--disk", "qcow2:/a,bus=ide,queues=4,size=1G"],
    ] {
        let run = place.run(arguments);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (2, ""),
            "{arguments:?}: {run:?}"
        );
        assert!(!run.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_file_is_written_whole() {
    let place = Place::with(&[]);
    let run = place.run(&["generate", "--disk", DISK, "--output", "web1.xml"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run:?}");
    assert_eq!(place.read("web1.xml"), generate(&[]).stdout);
}

#[test]
fn a_path_never_becomes_syntax() {
    let nasty = "raw:/srv/a,,file.filename=b 'c' \"d\" json:{}\u{e9}.img,size=1G";
    let run = Place::with(&[]).run(&["generate", "--disk", nasty, "--to", "blockdev-json"]);
    let blockdevs: Value = serde_json::from_str(&text(run)).unwrap();
    let filename = "/srv/a,file.filename=b 'c' \"d\" json:{}\u{e9}.img";
    assert!(
        blockdevs
            .as_array()
            .unwrap()
            .iter()
            .any(|node| node["filename"] == filename),
        "{blockdevs}"
    );
}

fn refused(run: &Run, word: &str) {
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    assert!(run.stderr.contains(word), "{word}: {run:?}");
}

#[test]
fn what_the_target_cannot_take_is_refused_in_every_form_that_says_it() {
    let place = Place::with(&[]);
    let nvme = "raw:/srv/a.img,size=1G,bus=nvme,serial=x";
    let uring = "raw:/srv/a.img,size=1G,cache=none,io=io_uring";
    for (disk, target, forms) in [
        (
            nvme,
            "libvirt=9.0,qemu=7.2",
            &["libvirt-xml", "disk-xml"][..],
        ),
        (
            uring,
            "qemu=4.2,libvirt=6.0",
            &["libvirt-xml", "disk-xml", "qemu", "blockdev-json", "script"],
        ),
    ] {
        for form in forms {
            let arguments = ["generate", "--disk", disk, "--target", target, "--to", form];
            let run = place.run(&arguments);
            assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{form}: {run:?}");
        }
        let arguments = ["generate", "--disk", disk, "--target", target];
        let run = place.run(&arguments);
        refused(&run, "[unsupported-by-target]");
        let ignored = [&arguments[..], &["--ignore", "unsupported-by-target"]].concat();
        assert_eq!(place.run(&ignored).code, 0);
    }
    let five: Vec<String> = (1..=5)
        .map(|n| format!("--disk=raw:/srv/{n}.img,bus=ide"))
        .collect();
    let five: Vec<&str> = five.iter().map(String::as_str).collect();
    let run = place.run(&[&["generate"], &five[..]].concat());
    refused(&run, "bus ide has room for 4 drives");
}

#[test]
fn facts_of_this_host_refuse_a_missing_image_and_not_one_that_is_to_be_made() {
    let place = Place::with(&[]);
    let image = place.path("a.img").display().to_string();
    let new = format!("raw:{image},size=1M");
    let old = format!("raw:{image}");
    for form in ["libvirt-xml", "disk-xml", "script", "qemu"] {
        let run = place.run(&["generate", "--disk", &new, "--live", "--to", form]);
        assert_eq!(run.code, 0, "{form}: {run:?}");
        let run = place.run(&["generate", "--disk", &old, "--live", "--to", form]);
        refused(&run, "[source-missing]");
    }
}

#[test]
fn a_disk_alone_comes_with_what_its_domain_must_have() {
    let place = Place::with(&[]);
    let scsi = place.run(&[
        "generate",
        "--disk",
        "raw:/srv/a.img,size=1G,bus=virtio-scsi,iothread=1",
        "--to",
        "disk-xml",
    ]);
    assert_eq!(scsi.code, 0, "{scsi:?}");
    for needed in [
        "<controller type='scsi' index='0' model='virtio-scsi'>",
        "<iothreads>1</iothreads>",
        "must not have a disk called sda yet",
    ] {
        assert!(scsi.stderr.contains(needed), "{needed}: {scsi:?}");
    }
    let served = place.run(&[
        "generate",
        "--disk",
        "vhost-user-blk:/run/v.sock",
        "--to",
        "disk-xml",
    ]);
    assert!(
        served.stderr.contains("<access mode='shared'/>"),
        "{served:?}"
    );
}

#[test]
fn nodes_that_name_objects_say_how_to_make_them() {
    let limited = "qcow2:/srv/a.qcow2,size=1G,iotune.read-iops-sec=100";
    let place = Place::with(&[]);
    let run = |form: &str| place.run(&["generate", "--disk", limited, "--to", form]);
    let nodes = run("blockdev-json");
    assert_eq!(nodes.code, 0, "{nodes:?}");
    assert!(nodes.stdout.contains(r#""throttle-group":"throttle-vda""#));
    let help = nodes
        .stderr
        .lines()
        .find(|line| line.contains("-object"))
        .unwrap();
    assert!(
        help.contains("throttle-group") && help.contains("throttle-vda"),
        "{help}"
    );
    // The other forms make it.
    assert!(!run("qemu").stderr.contains("throttle-vda"));
    let plain = place.run(&["generate", "--disk", DISK, "--to", "blockdev-json"]);
    assert_eq!(plain.stderr, "");
}

#[test]
fn a_domain_is_no_spec_and_says_what_makes_one() {
    let place = Place::with(&[("a.xml", "<domain type='kvm'><name>a</name></domain>")]);
    let run = place.run(&["generate", "a.xml"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("convert --to spec"), "{run:?}");
}

#[test]
fn a_mistake_in_one_of_several_disks_says_in_which() {
    let run = generate(&["--disk", "raw:/srv/b.img,sizee=1G"]);
    assert!(run.stderr.contains("--disk[1]:1:16"), "{run:?}");
}

#[test]
fn memory_without_a_unit_is_mebibytes_or_refused() {
    let xml = text(generate(&["--memory", "2048"]));
    assert!(
        xml.contains("<memory unit='GiB'>2</memory>") || xml.contains(">2097152<"),
        "{xml}"
    );
    let place = Place::with(&[(
        "spec.yaml",
        "version: 1\nguest: {memory: 2048}\ndisks: [{raw: {path: /srv/a.img}}]\n",
    )]);
    refused(&place.run(&["generate", "spec.yaml"]), "2048M");
}

#[test]
fn reasons_for_programs_are_what_their_published_schema_says() {
    let run = generate(&["--explain=json"]);
    assert_eq!(run.stdout, generate(&[]).stdout);
    let reasons: Value = serde_json::from_str(&run.stderr).unwrap();
    let schema = Place::with(&[]).run(&["print", "schema", "explain"]).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert!(
        jsonschema::validator_for(&schema)
            .unwrap()
            .is_valid(&reasons)
    );
    let choices = reasons["choices"].as_array().unwrap();
    let cache = choices
        .iter()
        .find(|choice| choice["option"] == "cache")
        .unwrap();
    assert_eq!(cache["disk"], "vda");
    assert_eq!(
        generate(&["--explain"]).stderr,
        generate(&["--explain=text"]).stderr
    );
}

/// A domain as people keep it, with things that are not about disks.
const DOMAIN: &str = "<?xml version='1.0'?>
<!-- ours -->
<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
\t<name>web1</name>
\t<memory unit='GiB'>2</memory>
\t<vcpu>2</vcpu>
\t<iothreads>2</iothreads>
\t<os><type arch=\"x86_64\" machine='pc-q35-7.2'>hvm</type></os>
\t<features><pae/></features>
\t<devices>
\t\t<emulator>/usr/bin/qemu-system-x86_64</emulator>
\t\t<disk type='file' device='disk'>
\t\t\t<driver name='qemu' type='raw' cache='none' iothread='1'/>
\t\t\t<source file='/srv/old.img'/>
\t\t\t<target dev='vda' bus='virtio'/>
\t\t</disk>  <!-- the system -->
\t\t<disk type='file' device='disk'>
\t\t\t<driver name='qemu' type='raw'/>
\t\t\t<source file='/srv/sda.img'/>
\t\t\t<target dev='sda' bus='scsi'/>
\t\t</disk>
\t\t<controller type='scsi' index='0' model='virtio-scsi'/>
\t\t<interface type='user'/>
\t</devices>
\t<qemu:commandline><qemu:arg value='-S'/></qemu:commandline>
</domain>
";

#[test]
fn disks_are_added_to_a_domain_around_what_it_has_and_nothing_else_changes() {
    let place = Place::with(&[
        ("web1.xml", DOMAIN),
        ("crlf.xml", &DOMAIN.replace('\n', "\r\n")),
    ]);
    let disks = [
        "--disk",
        "raw:/srv/b.img,size=1G,iothread=auto",
        "--disk",
        "raw:/srv/c.img,size=1G,bus=virtio-scsi",
        "--disk",
        "raw:/srv/d.img,size=1G,bus=virtio-scsi,queues=2",
        "--disk",
        "raw:/srv/e.img,size=1G,bus=sata",
    ];
    for file in ["web1.xml", "crlf.xml"] {
        let run = place.run(&[&["generate", "--into", file], &disks[..]].concat());
        assert_eq!(run.code, 0, "{run:?}");
        let warnings = run.stderr.matches("warning: ").count();
        // What the domain lacks itself, such as ACPI, is not reported.
        assert!(
            warnings == 1 && run.stderr.contains("[bus-emulated]"),
            "{run:?}"
        );
        let (before, after) = (place.read(file), run.stdout);
        // Every line is there, in its order, and the lines between are whole elements that are new.
        let mut new = Vec::new();
        let mut rest = before.split_inclusive('\n').peekable();
        for line in after.split_inclusive('\n') {
            match rest.peek() {
                Some(old) if *old == line => {
                    rest.next();
                }
                _ => new.push(line),
            }
        }
        assert_eq!(rest.next(), None, "{after}");
        let new = new.concat();
        for expected in [
            "iothread='2'",
            "<target dev='vdb' bus='virtio'/>",
            "<target dev='sdb' bus='scsi'/>",
            "<address type='drive' controller='0' bus='0' target='0' unit='1'/>",
            "<controller type='scsi' index='1' model='virtio-scsi'>",
            "<address type='drive' controller='1' bus='0' target='0' unit='0'/>",
            "<target dev='sdd' bus='sata'/>",
        ] {
            assert!(new.contains(expected), "{expected}: {new}");
        }
        assert!(new.lines().all(|line| line.starts_with("\t\t")), "{new}");
        assert_eq!(after.contains('\r'), file == "crlf.xml");
        let is_uniform = after.matches('\n').count() == after.matches("\r\n").count();
        assert_eq!(is_uniform, file == "crlf.xml", "{after:?}");
        let lint = place.run_with_input(&["lint", "-", "--fail-on", "error"], after.as_bytes());
        assert_eq!(lint.code, 0, "{lint:?}");
    }
}

#[test]
fn a_domain_that_cannot_take_the_disks_is_refused() {
    let place = Place::with(&[
        ("web1.xml", DOMAIN),
        ("disk.xml", crate::CLEAN),
        (
            "spec.yaml",
            "version: 1\nguest: {name: other}\ndisks: [{raw: {path: /srv/a.img}}]\n",
        ),
    ]);
    let new = "raw:/srv/b.img,size=1G";
    for (arguments, word) in [
        (
            &[
                "--into",
                "web1.xml",
                "--disk",
                "raw:/srv/b.img,size=1G,target=vda",
            ][..],
            "has a disk `vda`",
        ),
        (
            &[
                "--into",
                "web1.xml",
                "--disk",
                "raw:/srv/b.img,size=1G,iothread=3",
            ],
            "no iothread 3",
        ),
        (
            &["--into", "web1.xml", "--disk", "raw:/srv/old.img"],
            "error: ",
        ),
        (
            &["--into", "web1.xml", "--disk", new, "--to", "qemu"],
            "--into returns",
        ),
        (
            &["--into", "web1.xml", "--disk", new, "--name", "x"],
            "cannot be used with",
        ),
        (
            &["--into", "disk.xml", "--disk", new],
            "expected a libvirt domain",
        ),
        (&["--into", "none.xml", "--disk", new], "no such file"),
        (&["--into", "web1.xml", "spec.yaml"], "remove `guest`"),
    ] {
        refused(&place.run(&[&["generate"], arguments].concat()), word);
    }
    let script = place.run(&[
        "generate", "--into", "web1.xml", "--disk", new, "--to", "script",
    ]);
    assert!(text(script).contains("qemu-img create"));
}

/// A facts file of the repository.
fn facts(name: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/facts");
    folder.join(format!("{name}.json")).display().to_string()
}

#[test]
fn a_disk_on_fast_storage_gets_several_iothreads_if_there_are_processors_to_spare() {
    let place = Place::with(&[]);
    let facts = facts("xfs-nvme");
    let generate = |vcpus: &str, target: &str, disks: &[&str]| {
        let mut arguments = vec!["generate", "--vcpus", vcpus, "--memory", "8G"];
        arguments.extend(["--facts", &facts, "--target", target]);
        arguments.extend(disks.iter().flat_map(|disk| ["--disk", disk]));
        let run = place.run(&arguments);
        assert_eq!(run.code, 0, "{run:?}");
        run.stdout
    };
    let new = "qemu=10.0,libvirt=11.3";
    let disk = "raw:/srv/img/web2.img";
    let mapped = generate("8", new, &[disk]);
    assert!(mapped.contains("<iothreads>4</iothreads>"), "{mapped}");
    assert_eq!(mapped.matches("<iothread id='").count(), 4, "{mapped}");
    let two = generate("8", new, &[disk, "raw:/srv/img/new.img,size=1G"]);
    assert!(two.contains("<iothreads>4</iothreads>"), "{two}");
    assert_eq!(two.matches("<iothread id='").count(), 4, "{two}");
    // Too few vCPUs, a QEMU or a libvirt without mappings, one thread that was asked for, and a SCSI disk.
    for (vcpus, target, disk) in [
        ("2", new, disk),
        ("8", "qemu=8.2,libvirt=11.3", disk),
        ("8", "qemu=10.0,libvirt=9.10", disk),
        ("8", new, "raw:/srv/img/web2.img,iothread=auto"),
        ("8", new, "raw:/srv/img/web2.img,bus=virtio-scsi"),
    ] {
        let one = generate(vcpus, target, &[disk]);
        assert!(
            one.contains("<iothreads>1</iothreads>"),
            "{target} {disk}: {one}"
        );
        assert!(one.contains("iothread='1'"), "{target} {disk}: {one}");
    }
    let asked = generate("8", new, &["raw:/srv/img/web2.img,iothread=1+3"]);
    assert_eq!(asked.matches("<iothread id='").count(), 4, "{asked}");
    assert!(asked.contains("<iothread id='3'/>"), "{asked}");
}

#[test]
fn a_disk_on_a_thin_pool_pauses_the_guest_when_the_pool_is_full() {
    let place = Place::with(&[]);
    let generate = |disk: &str| place.run(&["generate", "--disk", disk]).stdout;
    let policies = "error_policy='stop' rerror_policy='report'";
    let thin = generate("lvm-thin:vg0/web,size=10G,pool=p");
    assert!(thin.contains(policies), "{thin}");
    for other in [
        "lvm:vg0/web,size=10G",
        "raw:/srv/a.img,size=10G",
        "lvm-thin:vg0/web,size=10G,pool=p,error-policy=report",
    ] {
        let xml = generate(other);
        assert!(!xml.contains("'stop'"), "{other}: {xml}");
    }
    let asked = generate("lvm-thin:vg0/web,size=10G,pool=p,read-error-policy=stop");
    assert!(
        asked.contains("error_policy='stop' rerror_policy='stop'"),
        "{asked}"
    );
}

#[test]
fn an_iso_is_a_cd_unless_it_is_asked_to_be_a_disk() {
    let place = Place::with(&[]);
    let generate = |disk: &str| place.run(&["generate", "--disk", disk]).stdout;
    let cd = generate("raw:/srv/debian.ISO");
    assert!(
        cd.contains("device='cdrom'") && cd.contains("bus='sata'") && cd.contains("<readonly/>"),
        "{cd}"
    );
    for disk in [
        "raw:/srv/debian.iso,media=disk",
        "raw:/srv/debian.iso,bus=virtio",
        "raw:/srv/new.iso,size=1G",
    ] {
        let xml = generate(disk);
        assert!(xml.contains("device='disk'"), "{disk}: {xml}");
    }
}

#[test]
fn a_qcow2_image_keeps_its_space_on_a_qemu_that_corrupts_it_by_discards() {
    let place = Place::with(&[]);
    for (target, discard) in [
        ("qemu=7.2,libvirt=9.0", "ignore"),
        ("qemu=10.0.10", "ignore"),
        ("qemu=11.0.1", "ignore"),
        ("qemu=10.0.11", "unmap"),
        ("qemu=11.1", "unmap"),
        ("libvirt=9.0", "unmap"),
    ] {
        let disk = ["--disk", "qcow2:/srv/a.qcow2,size=1G"];
        let run = place.run(&[&["generate", "--target", target][..], &disk].concat());
        let expected = format!("discard='{discard}'");
        assert!(run.stdout.contains(&expected), "{target}: {run:?}");
        let said = [
            "lint",
            "-",
            "--target",
            target,
            "--select",
            "qcow2-discard-corruption",
        ];
        let lint = place.run_with_input(&said, run.stdout.as_bytes());
        assert_eq!((lint.code, lint.stdout.as_str()), (0, ""), "{lint:?}");
    }
}

#[test]
fn what_is_not_a_spec_is_refused_with_the_way_out() {
    let place = Place::with(&[("guest.args", "qemu-system-x86_64 -m 1G -hda /srv/a.img\n")]);
    for (arguments, word) in [
        (
            &["generate", "guest.args"][..],
            "`vmdisk convert --to spec` makes a spec of it",
        ),
        (
            &["generate", "--disk", "path=/srv/a.img,size=10,format=qcow2"],
            "write `qcow2:/srv/web1.qcow2,size=10G`",
        ),
        (
            &["generate", "--disk", "raw:/srv/a.img,bus=sata,queues=4"],
            "bus sata does not support `queues`",
        ),
        (
            &["generate", "--disk", "raw:/srv/a.img,iothread=1+x"],
            "expected numbers between `+`",
        ),
        (
            &["generate", "--disk", "device:/dev/sda1"],
            "[unstable-device-path]",
        ),
    ] {
        let run = place.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
        assert!(run.stderr.contains(word), "{run:?}");
    }
    let run = place.run_with_input(&["convert", "-", "--to", "spec"], b"hello world\n");
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.stderr
            .contains("not libvirt XML, a QEMU command line or a spec"),
        "{run:?}"
    );
}

#[test]
fn a_secret_that_only_libvirt_finds_is_refused_for_qemu() {
    let place = Place::with(&[]);
    let uuid = "0a81f5b2-8403-7b23-c8d6-21ccc2f80d6f";
    for disk in [
        "raw:/srv/a.luks,encryption",
        "qcow2:/srv/a.qcow2,encryption",
        "rbd:pool/a,auth.username=a",
    ] {
        let key = disk.replace("auth.username=a", "auth.username=a,auth");
        for form in ["qemu", "qmp", "blockdev-json", "disk-xml"] {
            let run = |secret: &str| {
                let disk = format!("{key}.secret.{secret}");
                place.run(&["generate", "--to", form, "--disk", &disk])
            };
            assert_eq!(run(&format!("uuid={uuid}")).code, 0, "{disk} {form}");
            let usage = run("usage=web1");
            if form == "disk-xml" {
                assert_eq!(usage.code, 0, "{disk}: {usage:?}");
                continue;
            }
            assert_eq!((usage.code, usage.stdout.as_str()), (2, ""), "{usage:?}");
            let message = "disk vda: QEMU cannot read the secret with the usage `web1`";
            assert!(usage.stderr.contains(message), "{usage:?}");
            assert!(usage.stderr.contains("by `uuid`"), "{usage:?}");
        }
    }
}

#[test]
fn a_wwn_on_sata_is_written_for_qemu_and_refused_in_xml() {
    let disk = "raw:/srv/a.img,bus=sata,wwn=5000c50015ea71ac";
    let run = |form: &str| Place::with(&[]).run(&["generate", "--to", form, "--disk", disk]);
    let wwn = format!("\"wwn\":{}", 0x5000_c500_15ea_71ac_u64);
    assert!(text(run("qemu")).contains(&wwn));
    for form in ["libvirt-xml", "disk-xml"] {
        let run = run(form);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
        assert!(run.stderr.contains("[bus-option-refused]"), "{run:?}");
    }
}

#[test]
fn storage_for_a_guest_of_libvirt_is_refused_only_where_its_xml_is() {
    let disk = "qcow2:/i/a.qcow2,size=1G,discard-no-unref=on";
    let run = |form, target| {
        let args = ["generate", "--disk", disk, "--to", form, "--target", target];
        Place::with(&[]).run(&args)
    };
    // libvirt 9.0 leaves the option out, and QEMU 7.2 refuses it.
    let both = "qemu=7.2,libvirt=9.0";
    for form in ["libvirt-xml", "script", "steps"] {
        let written = run(form, both);
        assert_eq!(written.code, 0, "{form}: {}", written.stderr);
        assert!(
            written.stderr.contains("silently ignores"),
            "{}",
            written.stderr
        );
    }
    for (form, target) in [
        ("script", "qemu=7.2"),
        ("qemu", both),
        ("libvirt-xml", "qemu=7.2,libvirt=9.5"),
        ("script", "qemu=7.2,libvirt=9.5"),
    ] {
        let refused = run(form, target);
        assert_ne!(refused.code, 0, "{form} {target}: {}", refused.stdout);
    }
}

#[test]
fn an_architecture_that_libvirt_does_not_know_is_refused_in_its_xml_only() {
    let spec =
        "version: 1\nguest: {arch: loongarch64, type: qemu}\ndisks:\n- raw: {path: /srv/a.img}\n";
    let place = Place::with(&[("a.yaml", spec)]);
    let run = |form: &str, target: &str| {
        let target = format!("{target},qemu=7.2");
        place.run(&["generate", "a.yaml", "--to", form, "--target", &target])
    };
    let refused = run("libvirt-xml", "libvirt=10.1");
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    assert!(refused.stderr.contains("since libvirt 10.2"), "{refused:?}");
    assert_eq!(run("libvirt-xml", "libvirt=10.2").code, 0);
    assert_eq!(run("qemu", "libvirt=10.1").code, 0);
}

#[test]
fn storage_that_qemu_drives_itself_or_libvirt_locates_is_written_for_both() {
    let place = Place::with(&[]);
    let xml = |disk: &str| {
        let run = place.run(&["generate", "--to", "disk-xml", "--disk", disk]);
        assert_eq!(run.code, 0, "{disk}: {run:?}");
        run
    };
    for (disk, written) in [
        (
            "nvme:0000:01:00.0/1",
            "<source type='pci' namespace='1'>\n    <address domain='0x0000' bus='0x01' slot='0x00' function='0x0'/>",
        ),
        (
            "vhost-vdpa:/dev/vhost-vdpa-0",
            "<source dev='/dev/vhost-vdpa-0'/>",
        ),
        ("directory:/srv/d", "<source dir='/srv/d'/>"),
        (
            "volume:images/web1,format=qcow2",
            "<source pool='images' volume='web1'/>",
        ),
        ("zvol:tank/web1", "<source dev='/dev/zvol/tank/web1'/>"),
        ("device:/dev/vg0/web1,format=qcow2", "type='qcow2'"),
        (
            "raw:/srv/a.luks,encryption.secret.usage=web1",
            "<secret type='passphrase' usage='web1'/>",
        ),
        (
            "qcow2:/srv/a,data-file=/srv/a.data",
            "<source file='/srv/a.data'/>",
        ),
    ] {
        let run = xml(disk);
        assert!(run.stdout.contains(written), "{disk}: {run:?}");
    }
    let shared = xml("vhost-vdpa:/dev/vhost-vdpa-0").stderr;
    assert!(shared.contains("<access mode='shared'/>"), "{shared}");
    for (disk, reason) in [
        ("nvme:0000:01:00.0", "write ADDRESS/NAMESPACE"),
        ("nvme:01:00/1", "`01:00` is not a PCI address"),
        (
            "nvme:0000:01:00.0/1,io=native",
            "`io` only affects files and block devices",
        ),
        ("directory:/srv/d,readonly=false", "read-only"),
        ("directory:srv", "is not an absolute path"),
        ("zvol:tank", "is not a dataset in a pool"),
        ("volume:images", "write POOL/VOLUME"),
        ("lun:/dev/sda,format=qcow2", "has no format but raw"),
        (
            "device:/dev/sda,backing-chain=none",
            "only qcow2 supports backing images",
        ),
        (
            "raw:/srv/a,size=1G,encryption.secret.usage=u",
            "a new encrypted image needs `key-file`",
        ),
    ] {
        let run = place.run(&["generate", "--to", "disk-xml", "--disk", disk]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{disk}: {run:?}");
        assert!(run.stderr.contains(reason), "{disk}: {run:?}");
    }
    let nfs = xml("nfs://h/export/a.img").stderr;
    assert!(
        nfs.contains("libvirt's schema requires the user and group"),
        "{nfs}"
    );
    let owned = xml("nfs://h/export/a.img,identity.user=+107,identity.group=+107").stderr;
    assert!(!owned.contains("schema"), "{owned}");
}

#[test]
fn a_domain_without_devices_gets_them() {
    let before = "<domain type='kvm'>
  <name>a</name>
  <memory>524288</memory>
  <os><type arch='x86_64' machine='q35'>hvm</type></os> <!-- new -->
  <seclabel type='none'/>
</domain>
";
    let place = Place::with(&[
        ("a.xml", before),
        (
            "b.xml",
            "<domain type='kvm'><name>a</name><memory>524288</memory></domain>",
        ),
    ]);
    let disk = "raw:/srv/a.img,size=1G,bus=virtio-scsi";
    let run = place.run(&["generate", "--into", "a.xml", "--disk", disk]);
    let devices = "<!-- new -->
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw' cache='writeback' io='threads' discard='unmap'/>
      <source file='/srv/a.img'/>
      <target dev='sda' bus='scsi'/>
      <address type='drive' controller='0' bus='0' target='0' unit='0'/>
    </disk>
    <controller type='scsi' index='0' model='virtio-scsi'/>
  </devices>";
    assert_eq!(text(run), before.replace("<!-- new -->", devices));
    let run = place.run(&["generate", "--into", "b.xml", "--disk", disk]);
    let written = text(run);
    assert!(written.contains("</memory><devices><disk "), "{written}");
    assert!(written.ends_with("</devices></domain>"), "{written}");
}

#[test]
fn findings_about_a_spec_have_its_words_and_its_places() {
    let spec = "version: 1
guest: {name: a}
disks:
- raw: {path: /srv/a.img}
  cache: unsafe
";
    let place = Place::with(&[
        ("a.yaml", spec),
        (
            "allowed.yaml",
            &spec.replace(
                "  cache: unsafe",
                "  cache: unsafe # vmdisk: allow(cache-unsafe) scratch",
            ),
        ),
    ]);
    for form in ["libvirt-xml", "disk-xml", "qemu", "script"] {
        let run = place.run(&["generate", "a.yaml", "--to", form]);
        assert_eq!(run.code, 2, "{form}: {run:?}");
        let said = &run.stderr;
        assert!(said.contains("a.yaml:5:"), "{form}: {said}");
        assert!(said.contains("cache: unsafe"), "{form}: {said}");
        assert!(
            !said.contains("='") && !said.contains("cache.no-flush"),
            "{form}: {said}"
        );
        let allowed = place.run(&["generate", "allowed.yaml", "--to", form]);
        assert!(
            !allowed.stderr.contains("cache-unsafe"),
            "{form}: {allowed:?}"
        );
    }
    // A spec that the command line extends has the words, and no place.
    let run = place.run(&["generate", "a.yaml", "--name", "b"]);
    assert!(
        run.stderr.contains("`cache: writeback`") && !run.stderr.contains("a.yaml"),
        "{run:?}"
    );
}

#[test]
fn a_disk_in_one_line_in_a_spec_is_told_its_keys() {
    let place = Place::with(&[]);
    for (item, said) in [
        (
            "- raw:/srv/a.img",
            r#"write `{"raw":{"path":"/srv/a.img"}}`"#,
        ),
        (
            "- nbd: //store/web1",
            r#"write `{"network":{"protocol":"nbd","name":"web1","hosts":[{"name":"store"}]}}`"#,
        ),
        (
            "- nbd:store/web1",
            "write `network: {protocol: nbd, name: NAME, hosts: [HOST]}`",
        ),
        (
            "- nbd: {name: web1}",
            "write `network: {protocol: nbd, name: NAME, hosts: [HOST]}`",
        ),
        (
            "- lun: /dev/sda",
            r#"write `{"device":{"path":"/dev/sda","as":"lun"}}`"#,
        ),
    ] {
        let spec = format!("version: 1\ndisks:\n{item}\n");
        let run = place.run_with_input(&["generate", "-"], spec.as_bytes());
        assert_eq!(run.code, 2, "{item}: {run:?}");
        assert!(run.stderr.contains(said), "{item}: {run:?}");
        assert_eq!(run.stderr.matches("error: ").count(), 1, "{item}: {run:?}");
    }
}

#[test]
fn a_volume_without_a_path_says_what_gives_it_one() {
    let place = Place::with(&[]);
    let run = place.run(&["generate", "--disk", "volume:images/a", "--to", "qemu"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.stderr
            .contains("name the file or the device of the volume instead"),
        "{run:?}"
    );
}

#[test]
fn the_help_for_a_disk_in_one_line_has_options_and_not_keys() {
    let place = Place::with(&[]);
    let run = place.run(&["generate", "--disk", "raw:/x", "--disk", "raw:/x"]);
    assert_eq!(run.code, 2, "{run:?}");
    let help = "use separate storage, or write `shareable=on` for both";
    assert!(run.stderr.contains(help), "{run:?}");
    let unknown = place.run(&["generate", "--disk", "raw:/x,colour=red"]);
    assert!(
        unknown.stderr.contains("the keys here are `bus`, `target`"),
        "{unknown:?}"
    );
}

#[test]
fn a_spec_in_another_encoding_is_refused_with_the_byte() {
    let place = Place::with(&[]);
    place.write("a.yaml", b"version: 1\ndisks:\n- raw: {path: /\xe4}\n");
    for command in [&["generate"][..], &["convert", "--to", "qemu"]] {
        let run = place.run(&[command, &["a.yaml"]].concat());
        assert_eq!(run.code, 2, "{run:?}");
        let said = "not UTF-8: byte 0xe4 in line 3";
        assert!(run.stderr.contains(said), "{run:?}");
    }
}

#[test]
fn the_help_for_reconnecting_is_in_the_syntax_of_the_document() {
    let spec = "version: 1\ndisks:\n- vhost-user-blk: {socket: /v, reconnect: false}\n";
    let place = Place::with(&[("a.yaml", spec)]);
    let run = place.run(&["lint", "a.yaml"]);
    assert!(
        run.stdout.contains("help: use `reconnect: true`"),
        "{run:?}"
    );
}

#[test]
fn a_key_of_a_disk_in_its_backend_is_told_its_place() {
    let place = Place::with(&[]);
    for (key, said) in [
        ("cache: none", "write `cache` in the item of `disks`"),
        (
            "metadata-cache-size: 4M",
            "write `metadata-cache-size` in the item of `disks`",
        ),
        (
            "cache-size: 4M",
            "write `metadata-cache-size` in the item of `disks`",
        ),
        ("sze: 4M", "did you mean `size`?"),
        ("colour: red", "the keys here are `path`"),
    ] {
        let spec = format!("version: 1\ndisks:\n- qcow2: {{path: /srv/a.qcow2, {key}}}\n");
        let run = place.run_with_input(&["generate", "-"], spec.as_bytes());
        assert_eq!(run.code, 2, "{key}: {run:?}");
        assert!(run.stderr.contains(said), "{key}: {run:?}");
    }
}

/// A host with UEFI for two machines.
const UEFI: &str = "schema_version: '1.0'
firmware:
- {code: /u/stateless.fd, format: raw, machines: [x86_64 pc-q35-*], features: []}
- {code: '/u/a,b.fd', variables: '/u/v s.fd', format: raw, machines: [x86_64 pc-q35-*], features: [requires-smm]}
- {code: /u/other.fd, variables: /u/s.fd, format: raw, machines: [x86_64 pc-q35-*], features: []}
- {code: /u/arm.qcow2, variables: /u/v.qcow2, format: qcow2, machines: [aarch64 virt-*], features: [enrolled-keys]}
";

#[test]
fn a_command_line_has_the_files_of_uefi_that_the_facts_name() {
    let place = Place::with(&[("facts.yaml", UEFI)]);
    let written = |guest: &str, facts: &[&str]| {
        let text = format!(
            "version: 1\nguest: {{name: g, type: qemu, {guest}}}\ndisks:\n- raw: {{path: /srv/a.img}}\n"
        );
        place.write("spec.yaml", text.as_bytes());
        let mut args = vec![
            "generate",
            "spec.yaml",
            "--to",
            "qemu",
            "--qemu-format",
            "args",
        ];
        args.extend(facts);
        place.run(&args)
    };
    let facts = ["--facts", "facts.yaml"];
    let pc = written("firmware: efi", &facts);
    let flash: Vec<&str> = pc
        .stdout
        .lines()
        .filter(|it| it.contains("pflash"))
        .collect();
    assert_eq!(
        flash,
        [
            "if=pflash,unit=0,readonly=on,format=raw,file=/u/a,,b.fd",
            "driver=cfi.pflash01,property=secure,value=on",
            "if=pflash,unit=1,format=raw,file=/srv/g_VARS.fd"
        ]
    );
    assert!(
        pc.stderr
            .contains("`cp --no-clobber -- '/u/v s.fd' /srv/g_VARS.fd`"),
        "{}",
        pc.stderr
    );
    place.write("a.args", pc.stdout.as_bytes());
    let lint = place.run(&["lint", "a.args", "--facts", "facts.yaml"]);
    assert_eq!(lint.code, 0, "{}", lint.stdout);
    let arm = written("arch: aarch64", &facts);
    assert!(
        arm.stdout
            .contains("readonly=on,format=qcow2,file=/u/arm.qcow2\n"),
        "{}",
        arm.stdout
    );
    assert!(
        !arm.stdout.contains("property=secure")
            && arm.stderr.contains("starts only signed systems"),
        "{}",
        arm.stderr
    );
    for (guest, facts) in [
        ("firmware: efi", &[][..]),
        ("machine: pc, firmware: efi", &facts),
    ] {
        let without = written(guest, facts);
        assert!(!without.stdout.contains("pflash") && without.stderr.contains("file=CODE"));
    }
    assert!(!written("os: linux", &facts).stdout.contains("pflash"));
}
