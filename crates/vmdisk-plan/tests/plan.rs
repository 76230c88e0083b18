//! Plans as a whole: what is refused, and what holds for every spec.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use crate::common;
use crate::common::host::{choice, errors, host, planned, spec};
use proptest::prelude::*;
use vmdisk_facts::{Facts, Target};
use vmdisk_model::*;
use vmdisk_plan::*;

#[test]
fn a_new_file_has_the_size_of_its_source_and_the_owner_of_the_spec() {
    let source = "source.path=/ext4/sparse.img,source.format=raw";
    let of = |rest: &str| planned(&[&format!("raw:/ext4/new.img,{source}{rest}")]);
    assert_eq!(choice(&of(""), "size").0, "1 GiB");
    let unknown = "source.path=/ext4/other.img,source.format=raw";
    let found = errors(&format!("raw:/ext4/new.img,{unknown}"));
    assert!(
        found[0].contains("the facts do not have the size of"),
        "{found:?}"
    );
    planned(&[&format!("raw:/ext4/new.img,{unknown},size=2G")]);
    // The header of the first is qcow2, and the second has none that is known.
    let qcow2 = "qcow2:/ext4/new.qcow2,source.path=/ext4/large.qcow2,source.format";
    assert_eq!(
        choice(&planned(&[&format!("{qcow2}=qcow2")]), "size").0,
        "1 TiB"
    );
    for (disk, expected) in [
        (
            format!("{qcow2}=raw"),
            "/ext4/large.qcow2 is written as raw, but the image is qcow2",
        ),
        (
            format!("{qcow2}=raw,size=2T"),
            "write `source.format: qcow2`",
        ),
        (
            format!("{qcow2}=vmdk"),
            "is written as vmdk, but the image is qcow2",
        ),
        (
            "raw:/ext4/new.img,source.path=/ext4/sparse.img,source.format=qcow2".to_owned(),
            "the facts do not have the size of",
        ),
    ] {
        let found = errors(&disk);
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
    }
    let plan = of(",owner=qemu,group=kvm");
    let of_program = |program: &str| {
        let mut steps = plan.steps.iter();
        let step = steps.find(|step| step.argv[0] == program).unwrap();
        step.why.contains("only root")
    };
    assert_eq!((of_program("chown"), of_program("chgrp")), (true, false));
}

#[test]
fn an_existing_image_is_not_new_after_a_plan() {
    let facts = host();
    let disks = ["raw:/ext4/full.img", "raw:/ext4/new.img,size=1G"];
    let after = facts_after(&facts, &planned(&disks));
    assert!(facts.files.iter().all(|file| after.files.contains(file)));
    let is_new = |file: &&vmdisk_facts::File| !facts.files.contains(file);
    let new: Vec<&str> = after
        .files
        .iter()
        .filter(is_new)
        .map(|it| it.path.as_str())
        .collect();
    assert_eq!(new, ["/ext4/new.img"]);
}

#[test]
fn only_what_a_plan_makes_is_no_longer_missing() {
    let missing = "files:\n- {path: /dev/fast/new, present: false}\n- {path: /ext4/gone.img, present: false}\n";
    let facts = common::host::HOST.replace("files:\n", missing);
    let facts = Facts::from_yaml(&facts).unwrap().facts;
    let after = facts_after(&facts, &planned(&["lvm:fast/new,size=1G"]));
    let missing: Vec<&str> = after
        .files
        .iter()
        .filter(|file| file.is_missing())
        .map(|file| file.path.as_str())
        .collect();
    assert_eq!(missing, ["/ext4/gone.img"]);
    assert_eq!(after.files.len(), facts.files.len() - 1);
}

#[test]
fn what_no_choice_can_make_work_is_refused_with_its_place() {
    for (disk, fault) in [
        (
            "vhost-user-blk:/run/x,cache=none",
            "disks[0].cache: the daemon of a vhost-user-blk disk controls `cache`",
        ),
        ("vhost-user-blk:/run/x,bus=scsi", "disks[0].bus: the daemon"),
        (
            "vhost-user-blk:/run/x,readonly=on",
            "disks[0].readonly: the daemon",
        ),
        (
            "lun:/dev/sda,bus=virtio",
            "disks[0].bus: the SCSI device itself",
        ),
        (
            "lun:/dev/sda,serial=x",
            "disks[0].serial: the SCSI device itself",
        ),
        (
            "raw:/a,io=native,cache=writeback",
            "disks[0].io: QEMU refuses native AIO with cache writeback",
        ),
        (
            "raw:/a,bus=sata,queues=2",
            "disks[0].queues: bus sata does not support `queues`",
        ),
        (
            "raw:/a,bus=sata,iothread=1",
            "disks[0].iothread: bus sata does not support",
        ),
        (
            "raw:/a,bus=scsi,queue-size=128",
            "disks[0].queue-size: bus scsi does not support",
        ),
        ("raw:/a,bus=virtio,vendor=x", "disks[0].vendor: bus virtio"),
        (
            "raw:/a,bus=sata,readonly=on",
            "does not support read-only disks",
        ),
        (
            "raw:/a,bus=sata,logical-block-size=4096",
            "disks[0].logical-block-size: bus sata",
        ),
        (
            "raw:/a,bus=nvme",
            "requires a serial number; write `serial`",
        ),
        ("raw:/a,bus=virtio,media=cdrom", "bus virtio has no cdrom"),
        ("raw:/a,bus=fdc", "bus fdc has no disk"),
        ("qcow2:/a,shareable=on", "one writer"),
        ("lvm:v/a,transient=on", "only a disk in a file"),
        ("raw:/a,readonly=on,copy-on-read=on", "cannot copy on read"),
    ] {
        let found = errors(disk);
        assert!(
            found.len() == 1 && found[0].contains(fault),
            "{disk}: {found:?}"
        );
    }
    let mut q35 = spec(&["raw:/a,bus=ide"]);
    q35.guest.as_mut().unwrap().machine = Some("q35".into());
    let found = plan(&q35, &Facts::default(), &Target::default()).unwrap_err();
    assert!(found[0].message.contains("has no bus ide"), "{found:?}");
    // What is wrong with the spec itself is told here too, for callers that build one.
    let bad = Spec::new(vec![DiskSpec::new(RawSpec {
        path: "relative".into(),
        ..RawSpec::default()
    })]);
    assert!(plan(&bad, &Facts::default(), &Target::default()).is_err());
}

#[test]
fn a_place_in_the_yaml_is_found_for_an_error_of_planning() {
    let text =
        "version: 1\ndisks:\n- raw: {path: /a}\n  bus: nvme\n- raw: {path: /b}\n  bus: fdc\n";
    let spec = Spec::from_yaml(text).unwrap();
    let errors = plan(&spec, &Facts::default(), &Target::default()).unwrap_err();
    let places = Spec::places_in_yaml(text, errors.iter().map(|error| &error.at));
    let place = |line, column| SpecPlace { line, column };
    assert_eq!(places, Some(vec![place(3, 3), place(6, 8)]));
}

#[test]
fn the_rules_that_choices_name_are_sorted() {
    assert!(RULES.is_sorted_by(|a, b| a < b), "{RULES:?}");
}

#[test]
fn every_choice_says_why_and_unsafe_is_never_chosen() {
    let plan = planned(&[
        "qcow2:/btrfs/a.qcow2,size=1T",
        "lvm-thin:fast/a,pool=new,size=1T,pool-size=9T",
        "vhost-user-blk:/run/x.sock",
        "raw:/xfs4k/a.img,size=1G,bus=scsi",
    ]);
    for choice in &plan.choices {
        assert!(
            !choice.reason.is_empty() && !choice.reason.ends_with('.'),
            "{choice:?}"
        );
        assert!(!choice.value.is_empty(), "{choice:?}");
        assert_ne!(choice.value, "unsafe");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_left_open_can_always_be_chosen(spec in common::open_spec(), has_facts: bool) {
        let facts = if has_facts { host() } else { Facts::default() };
        let target = Target::from_facts(&facts);
        let planned = plan(&spec, &facts, &target);
        prop_assert!(planned.is_ok(), "{:#?}", planned);
    }

    #[test]
    fn planning_never_panics_and_gives_the_same_twice(
        spec in prop_oneof![common::spec(), common::open_spec()],
        has_facts: bool,
    ) {
        let facts = if has_facts { host() } else { Facts::default() };
        let target = Target::from_facts(&facts);
        let first = plan(&spec, &facts, &target);
        prop_assert_eq!(&first, &plan(&spec, &facts, &target));
        let plan = match first {
            Ok(plan) => plan,
            Err(errors) => {
                prop_assert!(!errors.is_empty());
                return Ok(());
            }
        };
        for choice in &plan.choices {
            prop_assert!(choice.rule.is_none_or(|rule| RULES.contains(&rule)), "{:?}", choice);
        }
        prop_assert_eq!(plan.domain.disks.len(), spec.disks.len());
        let mut names: Vec<&str> = plan.domain.disks.iter().map(Disk::name).collect();
        names.sort_unstable();
        names.dedup();
        prop_assert_eq!(names.len(), spec.disks.len());
        for (disk, asked) in plan.domain.disks.iter().zip(&spec.disks) {
            // What was asked for is what comes out.
            if asked.cache.is_some() {
                prop_assert_eq!(disk.backend.cache, asked.cache);
            } else {
                prop_assert_ne!(disk.backend.cache, Some(CacheMode::Unsafe));
            }
            if asked.io.is_some() {
                prop_assert_eq!(disk.backend.aio, asked.io);
            }
            // QEMU refuses these whatever else is said.
            let is_native = disk.backend.aio == Some(AioMode::Native);
            prop_assert!(!is_native || disk.backend.is_direct());
            let logical = disk.frontend.logical_block_size.unwrap_or(512);
            prop_assert!(logical <= disk.frontend.physical_block_size.unwrap_or(512));
            if let Some(id) = disk.frontend.iothread {
                prop_assert!(plan.domain.has_iothread(id));
            }
        }
        for controller in &plan.domain.controllers {
            if let Some(id) = controller.iothread {
                prop_assert!(plan.domain.has_iothread(id));
            }
        }
        prop_assert_eq!(
            plan.steps.iter().filter(|step| step.argv[0] == "qemu-img").count(),
            spec.disks.iter().filter(|disk| match &disk.backend {
                BackendSpec::Raw(_) | BackendSpec::Qcow2(_) => disk.backend.is_made(),
                BackendSpec::Lvm(_)
                | BackendSpec::LvmThin(_)
                | BackendSpec::Device(_)
                | BackendSpec::Zvol(_)
                | BackendSpec::Seed(_)
                | BackendSpec::Nvme(_)
                | BackendSpec::VhostVdpa(_)
                | BackendSpec::Directory(_)
                | BackendSpec::Volume(_)
                | BackendSpec::VhostUserBlk(_)
                | BackendSpec::Network(_)
                | BackendSpec::Empty(_) => false,
            }).count()
        );
    }
}
