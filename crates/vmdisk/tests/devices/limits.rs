//! Limits and exceptions of rules, on recorded hosts in which one fact is different.

use serde_json::{Value, json};
use vmdisk::rules::{Confidence, Context, Finding, FindingText, Text};
use vmdisk::{GuestNeeds, HostGuests};
use vmdisk_facts::{HostIndex, Target};
use vmdisk_libvirt::XmlSpeller;
use vmdisk_model::{ControllerField, FieldPath};

use super::support::{
    Verdict, block, disk, fix_of, fixture_text, guest, lint, lint_on, lint_with, text_of,
};

/// A host of `fixtures/facts` in which facts differ, each at a path of keys; items of lists are named by their id or
/// path.
fn host(name: &str, changes: &[(&[&str], Value)]) -> String {
    let mut facts: Value = serde_json::from_str(&fixture_text(name)).expect("it is JSON");
    for (path, value) in changes {
        let mut place = &mut facts;
        for key in *path {
            place = match place {
                Value::Array(items) => items
                    .iter_mut()
                    .find(|item| item["id"] == **key || item["path"] == **key)
                    .unwrap_or_else(|| panic!("{name} has no {path:?}")),
                place => &mut place[*key],
            };
        }
        *place = value.clone();
    }
    facts.to_string()
}

fn on(rule: &str, name: &str, changes: &[(&[&str], Value)], devices: &str) -> Verdict {
    lint_with(rule, &host(name, changes), &guest("", devices))
}

#[test]
fn a_pool_that_is_extended_is_reported_only_above_its_threshold() {
    let disk = block("cache='none'", "/dev/vg0/web1", "vda", "virtio", "");
    let threshold: &[&str] = &["blockdevs", "b9", "lvm", "autoextend_threshold"];
    let data: &[&str] = &["blockdevs", "b9", "lvm", "data_percent"];
    let metadata: &[&str] = &["blockdevs", "b9", "lvm", "metadata_percent"];
    let pool = |changes: &[(&[&str], Value)]| {
        on(
            "thin-pool-nearly-full",
            "lvm-thin-nearly-full",
            changes,
            &disk,
        )
    };
    let said = pool(&[(threshold, json!(80))]);
    assert!(text_of(said.one()).contains("LVM should have extended it at 80 %"));
    let said = pool(&[]);
    assert!(text_of(said.one()).contains("LVM does not extend it automatically"));
    pool(&[(threshold, json!(91)), (data, json!(91.0))]).is_clean();
    pool(&[(data, json!(null)), (metadata, json!(95.0))]).is_clean();
    assert_eq!(pool(&[(data, json!(90.0))]).findings.len(), 1);
}

#[test]
fn a_volume_without_a_complaint_is_healthy() {
    let disk = block("cache='none'", "/dev/vg0/db1", "vda", "virtio", "");
    let health: &[&str] = &["blockdevs", "b6", "lvm", "health"];
    let with = |word| on("md-degraded", "nvme-bfq", &[(health, json!(word))], &disk);
    with("").is_clean();
    assert!(text_of(with("partial").one()).contains("partial"));
}

#[test]
fn a_device_with_one_path_never_had_another() {
    let disk = block("cache='none'", "/dev/mapper/mpatha", "vda", "virtio", "");
    let slaves: &[&str] = &["blockdevs", "b9", "slaves"];
    let rule = "multipath-single-path";
    on(rule, "storage-stacks", &[], &disk).one();
    on(rule, "storage-stacks", &[(slaves, json!(["b10"]))], &disk).is_clean();
}

#[test]
fn an_overlay_on_a_thin_volume_needs_its_format() {
    let rule = "qcow2-on-thin-volume";
    let volume = |inside: &str| {
        block("cache='none'", "/dev/vg0/web3", "vda", "virtio", inside)
            .replace("type='raw'", "type='qcow2'")
    };
    lint_on(rule, "storage-stacks", &guest("", &volume(""))).one();
    let base = "<backingStore type='file'><format type='raw'/><source file='/srv/img/a.img'/></backingStore>";
    lint_on(rule, "storage-stacks", &guest("", &volume(base))).is_clean();
}

#[test]
fn one_vcpu_and_two_vcpus() {
    for (vcpus, words) in [(1, "4 queues for 1 vCPU"), (2, "4 queues for 2 vCPUs")] {
        let text = guest(
            &format!("<vcpu>{vcpus}</vcpu>"),
            &disk("queues='4'", "/a.img", "vda", "virtio", ""),
        );
        let said = lint("queues-gt-vcpus", &text);
        assert!(said.one().text.title.ends_with(words));
    }
}

#[test]
fn a_policy_for_missing_media_is_about_the_image_alone() {
    let chain = |path: &str, base: &str| {
        format!(
            "<disk type='file' device='cdrom'><driver name='qemu' type='qcow2'/><source file='{path}' startupPolicy='optional'/><backingStore type='file'><format type='raw'/><source file='{base}'/></backingStore><target dev='sda' bus='sata'/></disk>"
        )
    };
    let whole = "/srv/img/whole.qcow2";
    let missing = "/srv/img/split.raw";
    for (path, base, severity) in [(missing, whole, "advice"), (whole, missing, "error")] {
        let said = lint_on(
            "source-missing",
            "refused-images",
            &guest("", &chain(path, base)),
        );
        assert_eq!(said.one().severity.as_str(), severity, "{path} on {base}");
    }
}

#[test]
fn a_target_name_with_too_many_letters_says_so() {
    for (name, words) in [
        ("vdabcdefgh", "it has too many letters"),
        ("vdABCDEFGH", "only letters may follow the prefix"),
        ("vd-", "only letters may follow the prefix"),
    ] {
        let said = lint(
            "target-name-refused",
            &guest("", &disk("", "/a.img", name, "virtio", "")),
        );
        assert!(text_of(said.one()).contains(words), "{name}");
    }
}

#[test]
fn only_a_usb_controller_disables_usb() {
    let disk = disk("", "/a.img", "sda", "usb", "");
    for (kind, is_reported) in [("usb", true), ("scsi", false)] {
        let none = format!("<controller type='{kind}' index='0' model='none'/>");
        let said = lint("usb-disabled", &guest("", &(none + &disk)));
        assert_eq!(said.findings.len(), usize::from(is_reported), "{kind}");
    }
}

#[test]
fn direct_io_of_another_file_system_is_not_verified_by_zfs() {
    let disk = disk("cache='none'", "/srv/img/a.img", "vda", "virtio", "");
    lint_on("zfs-dio-verify", "storage-stacks", &guest("", &disk)).is_clean();
}

#[test]
fn addresses_of_built_in_controllers_are_theirs() {
    let address = |function| {
        format!(
            "<address type='pci' domain='0x0000' bus='0x00' slot='0x1f' function='{function}'/>"
        )
    };
    for (kind, function, is_reported) in [("sata", "0x2", false), ("scsi", "0x2", true)] {
        let devices = format!(
            "<controller type='{kind}' index='0'>{}</controller>{}",
            address(function),
            disk("", "/a.img", "vda", "virtio", "")
        );
        let said = lint("address-twice", &guest("", &devices));
        assert_eq!(said.findings.len(), usize::from(is_reported), "{kind}");
    }
}

#[test]
fn a_fast_disk_with_bfq_need_not_be_nvme() {
    let qcow2 =
        disk("", "/srv/img/web1.qcow2", "vda", "virtio", "").replace("type='raw'", "type='qcow2'");
    let scheduler: &[&str] = &["blockdevs", "b1", "queue", "scheduler"];
    let rotational: &[&str] = &["blockdevs", "b1", "queue", "rotational"];
    let rule = "bfq-on-fast-media";
    let bfq = (scheduler, json!("bfq"));
    on(rule, "md-degraded", std::slice::from_ref(&bfq), &qcow2).one();
    on(
        rule,
        "md-degraded",
        &[bfq, (rotational, json!(true))],
        &qcow2,
    )
    .is_clean();
    on(rule, "md-degraded", &[], &qcow2).is_clean();
}

#[test]
fn virtio_is_known_of_machines_that_are_no_pc() {
    let disk = disk("", "/a.img", "sda", "sata", "");
    for (machine, is_reported) in [("virt", true), ("virt-7.2", true), ("raspi3b", false)] {
        let text = guest("", &disk).replace(
            "arch='x86_64' machine='q35'",
            &format!("arch='aarch64' machine='{machine}'"),
        );
        let said = lint("bus-emulated", &text);
        assert_eq!(said.findings.len(), usize::from(is_reported), "{machine}");
    }
}

#[test]
fn a_pc_has_one_ide_controller() {
    for (index, is_reported) in [(0, false), (1, true)] {
        let devices = format!(
            "<controller type='ide' index='{index}'/>{}",
            disk("", "/a.img", "vda", "virtio", "")
        );
        let said = lint(
            "controller-refused",
            &guest("", &devices).replace("q35", "pc"),
        );
        assert_eq!(said.findings.len(), usize::from(is_reported), "{index}");
    }
}

#[test]
fn a_data_file_that_exists_is_not_reported() {
    let split =
        disk("", "/srv/img/split.qcow2", "vda", "virtio", "").replace("type='raw'", "type='qcow2'");
    let present: &[&str] = &["files", "/srv/img/split.raw", "present"];
    let kind: &[&str] = &["files", "/srv/img/split.raw", "kind"];
    let rule = "data-file-missing";
    on(rule, "refused-images", &[], &split).one();
    on(
        rule,
        "refused-images",
        &[(present, json!(true)), (kind, json!("regular"))],
        &split,
    )
    .is_clean();
}

#[test]
fn a_ccw_address_fits_a_mainframe() {
    let address = "<address type='ccw' cssid='0xfe' ssid='0x0' devno='0x0001'/>";
    let text = guest("", &disk("", "/a.img", "vda", "virtio", address));
    let mainframe = text.replace(
        "arch='x86_64' machine='q35'",
        "arch='s390x' machine='s390-ccw-virtio'",
    );
    lint("disk-address-refused", &text).one();
    lint("disk-address-refused", &mainframe).is_clean();
}

#[test]
fn names_of_disks_have_printable_ascii_alone() {
    let scsi = "<controller type='scsi' index='0' model='virtio-scsi'/>";
    for (vendor, is_reported) in [("ACME", false), ("ACM\u{e9}", true), ("A~", false)] {
        let disk = disk(
            "",
            "/a.img",
            "sda",
            "scsi",
            &format!("<vendor>{vendor}</vendor>"),
        );
        let said = lint("identity-refused", &guest("", &(scsi.to_owned() + &disk)));
        assert_eq!(said.findings.len(), usize::from(is_reported), "{vendor}");
    }
}

#[test]
fn an_image_with_new_features_needs_a_new_qemu() {
    let image: &[&str] = &["files", "/srv/img/whole.qcow2", "image", "compression"];
    let disk =
        disk("", "/srv/img/whole.qcow2", "vda", "virtio", "").replace("type='raw'", "type='qcow2'");
    let facts = host("refused-images", &[(image, json!("zstd"))]);
    let text = guest("", &disk);
    for (target, is_reported) in [
        ("qemu=5.0", true),
        ("qemu=5.1", false),
        ("qemu=11.1", false),
    ] {
        let said = with_target("image-newer-than-qemu", &facts, target, &text);
        assert_eq!(said.len(), usize::from(is_reported), "{target}");
    }
}

#[test]
fn the_size_of_an_image_is_certain_for_a_known_qemu() {
    let text = guest(
        "",
        &disk("cache='none'", "/srv/img/odd.img", "vda", "virtio", ""),
    );
    let facts = host("refused-images", &[]);
    let said = with_target("image-size-unaligned", &facts, "qemu=7.2", &text);
    let confidences: Vec<_> = said.iter().map(|(finding, _)| finding.confidence).collect();
    assert_eq!(confidences, [Confidence::Certain]);
}

#[test]
fn what_others_can_do_with_an_image_is_said() {
    let text = guest("", &disk("", "/srv/img/a.img", "vda", "virtio", ""));
    let mode: &[&str] = &["files", "/srv/img/a.img", "mode"];
    for (value, word) in [("0644", "read"), ("0602", "write"), ("0666", "write")] {
        let facts = host("storage-stacks", &[(mode, json!(value))]);
        let said = lint_with("image-world-readable", &facts, &text);
        assert!(said.one().text.title.contains(word), "{value}");
    }
}

#[test]
fn a_passed_through_disk_may_have_no_part_of_another_identity() {
    let scsi = "<controller type='scsi' index='0' model='virtio-scsi'/>";
    let count = |inside: &str| {
        let lun = block("", "/dev/sdb", "sda", "scsi", inside).replace("'disk'", "'lun'");
        let said = lint("lun-option-refused", &guest("", &(scsi.to_owned() + &lun)));
        said.findings.len()
    };
    assert_eq!(count(""), 0);
    assert_eq!(count("<vendor>A</vendor>"), 1);
    assert_eq!(count("<product>B</product>"), 1);
    assert_eq!(count("<vendor>A</vendor><product>B</product>"), 1);
}

#[test]
fn a_corrupt_image_that_is_only_read_does_not_stop_the_guest() {
    let corrupt: &[&str] = &["files", "/srv/img/whole.qcow2", "image", "corrupt"];
    let facts = host("refused-images", &[(corrupt, json!(true))]);
    for (inside, is_noted) in [("", true), ("<readonly/>", false)] {
        let disk = disk("", "/srv/img/whole.qcow2", "vda", "virtio", inside)
            .replace("type='raw'", "type='qcow2'");
        let said = lint_with("qcow2-corrupt-bit", &facts, &guest("", &disk));
        let text = text_of(said.one());
        assert_eq!(text.contains("refuses to open"), is_noted, "{inside}");
    }
}

#[test]
fn a_luks_image_with_legacy_encryption_in_the_configuration_is_a_difference() {
    let encrypted = |format: &str, rest: &str| {
        let encryption = format!(
            "<encryption format='{format}'><secret type='passphrase' usage='a'/></encryption>"
        );
        disk("", "/srv/img/locked.qcow2", "vda", "virtio", "")
            .replace("type='raw'", "type='qcow2'")
            .replace(
                "<source file='/srv/img/locked.qcow2'/>",
                &format!("<source file='/srv/img/locked.qcow2'>{rest}{encryption}</source>"),
            )
    };
    let rule = "encryption-mismatch";
    let on_host = |devices: String| lint_on(rule, "refused-images", &guest("", &devices));
    on_host(encrypted("luks", "")).is_clean();
    let said = on_host(encrypted("qcow", ""));
    assert!(text_of(said.one()).contains("legacy AES"));
    assert!(said.one().text.title.starts_with("`vda`"));
    on_host(encrypted(
        "qcow",
        "<slices><slice type='storage' offset='65536' size='1048576'/></slices>",
    ))
    .is_clean();
}

#[test]
fn the_header_of_a_luks_image_decides_its_cipher() {
    let with = |inside: &str| {
        let encryption = format!(
            "<source file='/a.img'><encryption format='luks'><secret type='passphrase' usage='a'/>{inside}</encryption></source>"
        );
        let disk =
            disk("", "/a.img", "vda", "virtio", "").replace("<source file='/a.img'/>", &encryption);
        lint("encryption-refused", &guest("", &disk))
    };
    with("").is_clean();
    let said = with("<cipher name='aes' size='256' mode='xts' hash='sha256'/>");
    assert!(text_of(said.one()).contains("sets a cipher"));
}

#[test]
fn a_server_other_than_nfs_has_a_port_or_a_socket() {
    for host in [
        "name='h' port='10809'",
        "transport='unix' socket='/run/nbd.sock'",
    ] {
        let disk = format!(
            "<disk type='network' device='disk'><driver name='qemu' type='raw'/><source protocol='nbd' name='a'><host {host}/></source><target dev='vda' bus='virtio'/></disk>"
        );
        lint("network-source-refused", &guest("", &disk)).is_clean();
    }
}

/// The findings of one rule for a target.
fn with_target(rule: &str, facts: &str, target: &str, text: &str) -> Vec<(Finding, FindingText)> {
    let facts = super::support::facts(facts);
    let host = HostIndex::new(&facts);
    let document = vmdisk_libvirt::read(text).expect("it is a domain");
    let target: Target = target.parse().expect("it is a target");
    let mut context = Context::new(&document.domain, &target);
    context.host = Some(&host);
    vmdisk::rules::check(Text::Xml(&document, text), &context)
        .findings
        .into_iter()
        .filter(|finding| finding.rule.name == rule)
        .map(|finding| {
            let text = finding.render(&XmlSpeller(&document.domain));
            (finding, text)
        })
        .collect()
}

/// What guests of one host do to each other: for each guest with findings, the rules and titles.
fn conflicts(name: &str, guests: &[&str]) -> Vec<(usize, Vec<String>)> {
    let facts = super::support::fixture(name);
    let host = HostIndex::new(&facts);
    let documents: Vec<_> = guests
        .iter()
        .map(|text| vmdisk_libvirt::read(text).expect("it is a domain"))
        .collect();
    let target = Target::default();
    let context = |number: usize| {
        let mut context = Context::new(&documents[number].domain, &target);
        context.host = Some(&host);
        context
    };
    let mut all = HostGuests::default();
    for number in 0..documents.len() {
        if let Some(needs) = GuestNeeds::of(&context(number), number) {
            all.add(number, needs);
        }
    }
    all.conflicts(Some(&host))
        .into_iter()
        .map(|(number, others)| {
            let outcome = vmdisk::rules::check_guests(&context(number), &others);
            let titles = outcome.findings.iter().map(|finding| {
                let text = finding.render(&XmlSpeller(&documents[number].domain));
                format!("{}: {}\n{:?}", finding.rule.name, text.title, text.notes)
            });
            (number, titles.collect())
        })
        .collect()
}

#[test]
fn guests_that_share_an_image_are_counted_without_the_guest_itself() {
    let named = |name: &str, path: &str, inside: &str| {
        guest("", &disk("", path, "vda", "virtio", inside))
            .replace("<name>a</name>", &format!("<name>{name}</name>"))
    };
    let one = named("one", "/srv/img/a.img", "");
    let two = named("two", "/srv/img/a.img", "");
    let three = named("three", "/srv/img/a.img", "");
    let reader = named("reader", "/srv/img/a.img", "<readonly/>");
    let said = conflicts("storage-stacks", &[&one, &two, &three, &reader]);
    for (number, titles) in &said {
        assert_eq!(titles.len(), 1, "{number}: {titles:?}");
        assert!(
            titles[0].starts_with("image-shared-by-guests: "),
            "{titles:?}"
        );
    }
    let overlay = |name: &str| {
        named(name, "/srv/img/web1.qcow2", "<backingStore type='file'><format type='raw'/><source file='/srv/img/a.img'/></backingStore>")
            .replace("type='raw' />", "type='qcow2'/>")
    };
    for (others, more) in [
        (vec![overlay("x")], ""),
        (vec![overlay("x"), overlay("y")], "1 more guest"),
        (
            vec![overlay("x"), overlay("y"), overlay("z")],
            "2 more guests",
        ),
    ] {
        let mut guests = vec![one.as_str()];
        guests.extend(others.iter().map(String::as_str));
        let said = conflicts("storage-stacks", &guests);
        let own: Vec<_> = said.iter().filter(|(number, _)| *number == 0).collect();
        assert_eq!(own.len(), 1, "{said:?}");
        let title = &own[0].1[0];
        assert!(title.starts_with("backing-image-written: "), "{title}");
        assert_eq!(own[0].1.len(), 1, "{own:?}");
        assert_eq!(title.contains("more guest"), !more.is_empty(), "{title}");
        assert!(title.contains(more), "{title}");
    }
}

#[test]
fn a_request_size_needs_a_limit_that_is_set() {
    let said = |limits: &str| {
        let inside = format!("<iotune><size_iops_sec>4096</size_iops_sec>{limits}</iotune>");
        let text = guest("", &disk("", "/a.img", "vda", "virtio", &inside));
        lint("throttle-limits-refused", &text).findings.len()
    };
    assert_eq!(said(""), 1);
    assert_eq!(said("<total_iops_sec>0</total_iops_sec>"), 1);
    assert_eq!(said("<total_iops_sec>100</total_iops_sec>"), 0);
    assert_eq!(said("<write_iops_sec>1</write_iops_sec>"), 0);
}

#[test]
fn a_short_target_name_does_not_have_too_many_letters() {
    let said = lint(
        "target-name-refused",
        &guest("", &disk("", "/a.img", "vd", "virtio", "")),
    );
    assert!(text_of(said.one()).contains("only letters may follow the prefix"));
}

#[test]
fn the_controller_of_a_disk_is_the_one_of_its_address() {
    let address = "<address type='drive' controller='1' bus='0' target='0' unit='0'/>";
    let devices = (0..2)
        .map(|index| format!("<controller type='scsi' index='{index}' model='virtio-scsi'/>"))
        .chain([disk("", "/a.img", "sda", "scsi", address)])
        .collect::<String>();
    let said = lint(
        "iothread-unused",
        &guest("<iothreads>1</iothreads>", &devices),
    );
    let controller = FieldPath::Controller(1, ControllerField::IoThread);
    assert_eq!(fix_of(said.one()), [(controller, Some("1"))]);
}

#[test]
fn a_chain_ends_at_an_image_that_is_read_as_raw() {
    let disk = disk("", "/srv/img/overlay.qcow2", "vda", "virtio", "")
        .replace("type='raw'", "type='qcow2'");
    let backing: &[&str] = &["files", "/srv/img/overlay.qcow2", "image", "backing"];
    for (format, is_missing) in [("qcow2", true), ("raw", false)] {
        let below = json!({"path": "moved.qcow2", "format": format});
        let said = on(
            "backing-missing",
            "backing-chains",
            &[(backing, below)],
            &disk,
        );
        assert_eq!(said.findings.len(), usize::from(is_missing), "{format}");
    }
}

#[test]
fn io_uring_hangs_above_an_encrypted_device_too() {
    let disk = block(
        "io='io_uring'",
        "/dev/mapper/with-discards",
        "vda",
        "virtio",
        "",
    );
    let facts = fixture_text("luks-without-discards");
    let text = guest("", &disk);
    for (target, is_reported) in [("kernel=5.4", true), ("kernel=6.1", false)] {
        let said = with_target("known-bad-build", &facts, target, &text);
        assert_eq!(said.len(), usize::from(is_reported), "{target}: {said:?}");
    }
}

#[test]
fn a_machine_without_a_version_is_looked_up_in_the_list_of_the_target() {
    let text = guest("", "").replace("'q35'", "'isapc'");
    let document = vmdisk_libvirt::read(&text).expect("it is a domain");
    for (listed, is_reported) in [(None, false), (Some("q35"), true), (Some("isapc"), false)] {
        let mut target: Target = "qemu=11.1".parse().expect("it is a target");
        target.machines = listed.into_iter().map(str::to_owned).collect();
        let context = Context::new(&document.domain, &target);
        let said = vmdisk::rules::check(Text::Xml(&document, &text), &context).findings;
        let is_it = |finding: &&Finding| finding.rule.name == "machine-missing-in-qemu";
        assert_eq!(
            said.iter().filter(is_it).count(),
            usize::from(is_reported),
            "{listed:?}"
        );
    }
}
