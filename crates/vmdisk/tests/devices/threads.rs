//! `iothread-undefined`, `iothread-unsupported-bus`, `iothread-unused`, `iothread-missing-fast-media`,
//! `queues-gt-vcpus`, `bus-emulated`.

use vmdisk::rules::Severity;
use vmdisk_model::{ControllerField, DiskField, DomainField, FieldPath, IoThreadField};

use super::support::{block, disk, fix_of, guest, lint, lint_on, lint_with, text_of};

const CONTROLLER: &str = "<controller type='scsi' index='0' model='virtio-scsi'/>";

fn controller(driver: &str) -> String {
    format!("<controller type='scsi' index='0' model='virtio-scsi'><driver {driver}/></controller>")
}

#[test]
fn a_thread_exists_if_it_is_counted_or_listed() {
    for (iothreads, id, exists) in [
        ("", 1, false),
        ("<iothreads>2</iothreads>", 2, true),
        ("<iothreads>2</iothreads>", 3, false),
        ("<iothreadids><iothread id='7'/></iothreadids>", 7, true),
        ("<iothreadids><iothread id='7'/></iothreadids>", 1, false),
        (
            "<iothreads>2</iothreads><iothreadids><iothread id='7'/></iothreadids>",
            1,
            true,
        ),
    ] {
        let text = guest(
            iothreads,
            &disk(&format!("iothread='{id}'"), "/a.img", "vda", "virtio", ""),
        );
        let said = lint("iothread-undefined", &text);
        assert_eq!(said.findings.is_empty(), exists, "{iothreads} {id}");
    }
}

#[test]
fn mappings_and_controllers_name_threads_too() {
    let mapped = "<disk type='file' device='disk'><driver name='qemu' type='raw' queues='2'><iothreads><iothread id='1'/><iothread id='2'/><iothread id='3'/></iothreads></driver><source file='/a.img'/><target dev='vda' bus='virtio'/></disk>";
    let text = guest(
        "<iothreads>1</iothreads>",
        &(mapped.to_owned() + &controller("iothread='4'")),
    );
    let said = lint("iothread-undefined", &text);
    let places: Vec<_> = said.findings.iter().map(|finding| finding.at).collect();
    assert_eq!(
        places,
        [
            FieldPath::Disk(0, DiskField::IoThreadMapping),
            FieldPath::Controller(0, ControllerField::IoThread),
        ]
    );
    assert!(
        said.findings[0].text.title.contains("iothreads 2 and 3"),
        "{}",
        said.findings[0].text.title
    );
    assert!(text_of(&said.findings[1]).contains("controller iothread '4' not defined"));
}

#[test]
fn the_next_number_is_made_and_no_other() {
    let text = |id: u32| {
        guest(
            "<iothreads>1</iothreads>",
            &disk(&format!("iothread='{id}'"), "/a.img", "vda", "virtio", ""),
        )
    };
    let said = lint("iothread-undefined", &text(2));
    assert_eq!(
        fix_of(said.one()),
        [(FieldPath::Domain(DomainField::IoThreads), Some("2"))]
    );
    assert!(lint("iothread-undefined", &text(7)).one().fix.is_none());
}

#[test]
fn only_virtio_disks_take_a_thread() {
    for (dev, bus, is_reported) in [
        ("vda", "virtio", false),
        ("sda", "scsi", true),
        ("sda", "sata", true),
        ("sda", "usb", true),
        ("hda", "ide", true),
    ] {
        // The thread does not exist either, and one cause gives one finding.
        let text = guest("", &disk("iothread='1'", "/a.img", dev, bus, ""));
        assert_eq!(
            !lint("iothread-unsupported-bus", &text).findings.is_empty(),
            is_reported,
            "{bus}"
        );
        assert_eq!(
            lint("iothread-undefined", &text).findings.is_empty(),
            is_reported,
            "{bus}"
        );
    }
}

#[test]
fn a_scsi_disks_thread_moves_to_its_controller_unless_that_has_one() {
    let scsi = disk("iothread='1'", "/a.img", "sda", "scsi", "");
    let remove = (FieldPath::Disk(0, DiskField::IoThread), None);
    for (controller, fix) in [
        (
            CONTROLLER.to_owned(),
            vec![
                remove,
                (
                    FieldPath::Controller(0, ControllerField::IoThread),
                    Some("1"),
                ),
            ],
        ),
        (controller("iothread='1'"), vec![remove]),
        (
            "<controller type='scsi' index='0' model='lsilogic'/>".to_owned(),
            vec![],
        ),
        (String::new(), vec![]),
    ] {
        let text = guest("<iothreads>1</iothreads>", &(scsi.clone() + &controller));
        assert_eq!(
            fix_of(lint("iothread-unsupported-bus", &text).one()),
            fix,
            "{controller}"
        );
    }
}

#[test]
fn idle_threads_are_dealt_to_those_who_could_use_them() {
    let devices = disk("", "/a.img", "vda", "virtio", "")
        + &disk("", "/b.img", "sda", "scsi", "")
        + &disk("", "/c.img", "sdb", "scsi", "")
        + CONTROLLER;
    let said = lint(
        "iothread-unused",
        &guest("<iothreads>3</iothreads>", &devices),
    );
    assert_eq!(said.one().text.title, "iothreads 1, 2 and 3 are unused");
    assert_eq!(
        fix_of(said.one()),
        [
            (FieldPath::Disk(0, DiskField::IoThread), Some("1")),
            (
                FieldPath::Controller(0, ControllerField::IoThread),
                Some("2")
            ),
            // What is left over goes, or it would be reported next.
            (FieldPath::Domain(DomainField::IoThreads), Some("2")),
        ]
    );
}

#[test]
fn threads_that_nobody_could_use_are_taken_away_from_the_end() {
    let used = disk("iothread='1'", "/a.img", "vda", "virtio", "");
    let sata = disk("", "/b.img", "sda", "sata", "");
    let count = FieldPath::Domain(DomainField::IoThreads);
    let listed = "<iothreadids><iothread id='1'/><iothread id='5'/></iothreadids>";
    for (iothreads, devices, at, fix) in [
        (
            "<iothreads>4</iothreads>",
            &used,
            count,
            vec![(count, Some("1"))],
        ),
        (
            "<iothreads>4</iothreads>",
            &sata,
            count,
            vec![(count, None)],
        ),
        (
            listed,
            &used,
            FieldPath::IoThread(1, IoThreadField::IoThread),
            vec![],
        ),
    ] {
        let said = lint("iothread-unused", &guest(iothreads, devices));
        assert_eq!(said.one().at, at, "{iothreads}");
        assert_eq!(fix_of(said.one()), fix, "{iothreads}");
    }
}

#[test]
fn a_thread_that_is_named_is_used_even_where_it_cannot_be() {
    let text = guest(
        "<iothreads>1</iothreads>",
        &disk("iothread='1'", "/a.img", "sda", "sata", ""),
    );
    lint("iothread-unused", &text).is_clean();
}

/// A host with one file system on one drive, which is this.
fn drive(json: &str) -> String {
    format!(
        r#"{{"schema_version":"1.0",
        "mounts":[{{"id":"m1","point":"/srv","fs":"f1","fstype":"xfs"}}],
        "filesystems":[{{"id":"f1","kind":"xfs","devices":["b1"]}}],
        "blockdevs":[{json}]}}"#
    )
}

#[test]
fn only_drives_that_are_known_to_be_fast_want_a_thread() {
    for (json, severity) in [
        (
            r#"{"id":"b1","kind":"nvme","paths":["/dev/nvme0n1"]}"#,
            Some(Severity::Pedantic),
        ),
        (
            r#"{"id":"b1","kind":"disk","paths":["/dev/sda"],"queue":{"rotational":false}}"#,
            Some(Severity::Pedantic),
        ),
        (
            r#"{"id":"b1","kind":"disk","paths":["/dev/sda"],"queue":{"rotational":true}}"#,
            None,
        ),
        // This host is a guest itself, and the flag means nothing.
        (
            r#"{"id":"b1","kind":"disk","paths":["/dev/vda"],"queue":{"rotational":false}}"#,
            None,
        ),
        (
            r#"{"id":"b1","kind":"nbd","paths":["/dev/nbd0"],"queue":{"rotational":false}}"#,
            None,
        ),
        // The slowest of several decides.
        (
            r#"{"id":"b1","kind":"md","paths":["/dev/md0"],"slaves":["b2","b3"]},
               {"id":"b2","kind":"nvme","paths":["/dev/nvme0n1"]},
               {"id":"b3","kind":"disk","paths":["/dev/sda"],"queue":{"rotational":true}}"#,
            None,
        ),
        (
            r#"{"id":"b1","kind":"lvm","paths":["/dev/vg/a"],"slaves":["b2"]},
               {"id":"b2","kind":"partition","paths":["/dev/nvme0n1p1"],"partition":{"parent":"b3"}},
               {"id":"b3","kind":"nvme","paths":["/dev/nvme0n1"]}"#,
            Some(Severity::Pedantic),
        ),
    ] {
        let text = guest(
            "<vcpu>2</vcpu>",
            &disk("", "/srv/a.img", "vda", "virtio", ""),
        );
        let said = lint_with("iothread-missing-fast-media", &drive(json), &text);
        assert_eq!(said.severities(), Vec::from_iter(severity), "{json}");
        assert!(said.missed.is_empty(), "{json}: {:?}", said.missed);
    }
    let unknown = r#"{"id":"b1","kind":"disk","paths":["/dev/sda"]}"#;
    let text = guest(
        "<vcpu>2</vcpu>",
        &disk("", "/srv/a.img", "vda", "virtio", ""),
    );
    lint_with("iothread-missing-fast-media", &drive(unknown), &text).missed("not collected");
}

#[test]
fn disks_that_cannot_have_a_thread_or_have_one_are_left_alone() {
    let file = "/srv/img/web1.qcow2";
    for devices in [
        disk("iothread='1'", file, "vda", "virtio", ""),
        disk("", file, "sda", "sata", ""),
        disk("", file, "sda", "scsi", ""),
        disk("", file, "sda", "scsi", "") + &controller("iothread='1'"),
        "<disk type='file' device='cdrom'><source file='/srv/img/web1.qcow2'/><target dev='sda' bus='scsi'/></disk>".to_owned() + CONTROLLER,
        "<disk type='vhostuser' device='disk'><driver name='qemu' type='raw'/><source type='unix' path='/s'/><target dev='vda' bus='virtio'/></disk>".to_owned(),
    ] {
        let text = guest("<vcpu>4</vcpu>", &devices);
        lint_on("iothread-missing-fast-media", "xfs-nvme", &text).is_clean();
    }
    // A thread to spare is another rule's finding.
    let text = guest(
        "<vcpu>4</vcpu><iothreads>1</iothreads>",
        &disk("", file, "vda", "virtio", ""),
    );
    lint_on("iothread-missing-fast-media", "xfs-nvme", &text).is_clean();
}

#[test]
fn a_controller_is_reported_once_for_all_its_disks() {
    let devices = block("", "/dev/vg0/db1", "sda", "scsi", "")
        + &block("", "/dev/vg0/db1-log", "sdb", "scsi", "")
        + CONTROLLER;
    let said = lint_on(
        "iothread-missing-fast-media",
        "xfs-nvme",
        &guest("<vcpu>4</vcpu>", &devices),
    );
    assert_eq!(
        fix_of(said.one()),
        [
            (FieldPath::Domain(DomainField::IoThreads), Some("1")),
            (
                FieldPath::Controller(0, ControllerField::IoThread),
                Some("1")
            ),
        ]
    );
}

#[test]
fn a_disk_alone_does_not_show_its_machine() {
    let alone = |rule, text: &str| lint_on(rule, "xfs-nvme", text).missed("without their machine");
    alone(
        "iothread-missing-fast-media",
        &disk("", "/srv/img/web1.qcow2", "vda", "virtio", ""),
    );
    alone(
        "iothread-undefined",
        &disk("iothread='1'", "/a.img", "vda", "virtio", ""),
    );
    alone(
        "queues-gt-vcpus",
        &disk("queues='2'", "/a.img", "vda", "virtio", ""),
    );
    alone("bus-emulated", &disk("", "/a.img", "sda", "sata", ""));
    lint(
        "queues-gt-vcpus",
        &disk("queues='1'", "/a.img", "vda", "virtio", ""),
    )
    .is_clean();
}

#[test]
fn queues_are_held_against_the_most_vcpus_there_can_be() {
    for (vcpu, queues, is_reported) in [
        ("<vcpu>2</vcpu>", 2, false),
        ("<vcpu>2</vcpu>", 3, true),
        ("<vcpu current='1'>4</vcpu>", 4, false),
        // Unset is one.
        ("", 1, false),
        ("", 2, true),
    ] {
        let driver = format!("queues='{queues}'");
        let text = guest(vcpu, &disk(&driver, "/a.img", "vda", "virtio", ""));
        assert_eq!(
            !lint("queues-gt-vcpus", &text).findings.is_empty(),
            is_reported,
            "{vcpu} {queues}"
        );
        let text = guest(vcpu, &controller(&driver));
        assert_eq!(
            !lint("queues-gt-vcpus", &text).findings.is_empty(),
            is_reported,
            "{vcpu} {queues}"
        );
    }
}

#[test]
fn queues_that_a_mapping_deals_out_are_not_taken_away() {
    let mapped = "<disk type='file' device='disk'><driver name='qemu' type='raw' queues='4'><iothreads><iothread id='1'><queue id='0'/><queue id='1'/></iothread><iothread id='2'><queue id='2'/><queue id='3'/></iothread></iothreads></driver><source file='/a.img'/><target dev='vda' bus='virtio'/></disk>";
    let said = lint(
        "queues-gt-vcpus",
        &guest("<vcpu>2</vcpu><iothreads>2</iothreads>", mapped),
    );
    assert!(said.one().fix.is_none());
}

#[test]
fn an_emulated_bus_is_worse_where_the_guest_boots_from_virtio() {
    let sata = disk("", "/b.img", "sdb", "sata", "");
    for (boot, severities) in [
        (
            disk("", "/a.img", "vda", "virtio", ""),
            vec![Severity::Warning],
        ),
        (
            disk("", "/a.img", "sda", "scsi", "") + CONTROLLER,
            vec![Severity::Warning],
        ),
        (
            disk("", "/a.img", "sda", "sata", ""),
            vec![Severity::Advice, Severity::Advice],
        ),
        (disk("", "/a.img", "sda", "usb", ""), vec![Severity::Advice]),
        (String::new(), vec![Severity::Advice]),
    ] {
        let said = lint("bus-emulated", &guest("", &(boot.clone() + &sata)));
        assert_eq!(said.severities(), severities, "{boot}");
        assert!(said.missed.is_empty());
    }
}

#[test]
fn what_is_no_data_disk_belongs_on_an_emulated_bus() {
    for devices in [
        "<disk type='file' device='cdrom'><source file='/i.iso'/><target dev='sda' bus='sata'/></disk>".to_owned(),
        "<disk type='file' device='floppy'><source file='/f.img'/><target dev='fda' bus='fdc'/></disk>".to_owned(),
        disk("", "/a.img", "sda", "usb", ""),
        disk("", "/a.img", "sda", "scsi", ""),
    ] {
        lint("bus-emulated", &guest("", &devices)).is_clean();
    }
    let xen = "<domain type='xen'><name>a</name><devices><disk type='file' device='disk'><source file='/a.img'/><target dev='hda' bus='ide'/></disk></devices></domain>";
    lint("bus-emulated", xen).missed("QEMU does not run");
}

#[test]
fn a_disk_moves_to_virtio_with_its_address_and_not_with_what_hangs_on_the_bus() {
    let boot = disk("", "/a.img", "vda", "virtio", "");
    let addressed = disk(
        "",
        "/b.img",
        "sda",
        "sata",
        "<address type='drive' controller='0' bus='0' target='0' unit='0'/>",
    );
    let said = lint("bus-emulated", &guest("", &(boot.clone() + &addressed)));
    let at = |field| FieldPath::Disk(1, field);
    assert_eq!(
        fix_of(said.one()),
        [
            (at(DiskField::TargetDev), Some("vdb")),
            (at(DiskField::TargetBus), Some("virtio")),
            (at(DiskField::Address), None),
        ]
    );
    let named = disk("", "/b.img", "sda", "sata", "<wwn>5000c50015ea71aa</wwn>");
    let said = lint("bus-emulated", &guest("", &(boot + &named)));
    assert!(said.one().fix.is_none());
}

#[test]
fn threads_that_cputune_names_stay() {
    let sata = disk("", "/b.img", "sda", "sata", "");
    for row in [
        "<iothreadpin iothread='2' cpuset='0'/>",
        "<iothreadsched iothreads='1-2,^1' scheduler='batch'/>",
    ] {
        let around = format!("<iothreads>2</iothreads><cputune>{row}</cputune>");
        let said = lint("iothread-unused", &guest(&around, &sata));
        let finding = said.one();
        assert!(finding.fix.is_none(), "{finding:?}");
        assert!(
            finding.text.help.as_ref().unwrap().contains("<cputune>"),
            "{finding:?}"
        );
        let said = lint("iothread-undefined", &guest(&around, &sata));
        said.is_clean();
        let one = around.replace(">2<", ">1<");
        let said = lint("iothread-undefined", &guest(&one, &sata));
        assert_eq!(
            said.one().text.title,
            "`<cputune>` names iothread 2, which is not defined"
        );
    }
}
