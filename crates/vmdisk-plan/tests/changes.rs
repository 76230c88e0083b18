//! Changes of what is there, as values.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::collections::BTreeMap;

use vmdisk_facts::{Facts, Target};
use vmdisk_model::Bytes;
use vmdisk_plan::*;

fn parsed(disks: &str) -> Spec {
    let yaml = format!("version: 1\nguest: {{name: a, type: qemu}}\ndisks:\n{disks}");
    Spec::from_yaml(&yaml).unwrap_or_else(|error| panic!("{error:?}\n{yaml}"))
}

fn planned(spec: &Spec) -> Plan {
    plan(spec, &Facts::default(), &Target::default()).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// The changes from one guest to another whose storage has these sizes, by steps.
fn changes(have: &str, want: &str, sizes: &[(usize, u64)], is_running: bool) -> ChangePlan {
    let (have, want) = (planned(&parsed(have)), parsed(want));
    let sizes = sizes.iter().map(|(nth, size)| (*nth, Bytes(*size)));
    let present = PresentState {
        guest: Some(&have.domain),
        is_running,
        sizes: sizes.collect::<BTreeMap<_, _>>(),
        ..PresentState::default()
    };
    let (facts, target) = (Facts::default(), Target::default());
    plan_changes(&present, &want, &planned(&want), &facts, &target).unwrap()
}

/// The changes as `KIND DISK: WHAT (DOWN TIME)`.
fn words(plan: &ChangePlan) -> Vec<String> {
    let all = plan.changes.iter();
    all.map(|it| format!("{} {}: {} ({})", it.kind, it.disk, it.what, it.down_time))
        .collect()
}

const A: &str = "- raw: {path: /i/a.img, size: 8M}\n  target: vda\n";
const B: &str = "- raw: {path: /i/b.img}\n  target: vdb\n";

#[test]
fn nothing_differs_and_nothing_changes() {
    assert_eq!(changes(A, A, &[], false), ChangePlan::default());
}

#[test]
fn storage_grows_by_the_program_that_made_it() {
    for (disk, command) in [
        (
            "raw: {path: /i/a.img, size: 8M}",
            "qemu-img resize -f raw -- /i/a.img 8388608",
        ),
        (
            "raw: {path: /i/a.img, size: 8M, preallocation: falloc}",
            "qemu-img resize -f raw --preallocation=falloc -- /i/a.img 8388608",
        ),
        (
            "qcow2: {path: /i/a.qcow2, size: 8M}",
            "qemu-img resize -f qcow2 -- /i/a.qcow2 8388608",
        ),
        (
            "qcow2: {path: /i/a.qcow2, size: 8M, backing: {path: /i/base.qcow2, format: qcow2}}",
            "qemu-img resize -f qcow2 -- /i/a.qcow2 8388608",
        ),
        (
            "raw: {path: '/i/a,b.img', size: 8M, encryption: {secret: {usage: s}, key-file: /i/key}}",
            "qemu-img resize --object secret,id=key,file=/i/key --image-opts -- \
             driver=luks,key-secret=key,file.driver=file,file.filename=/i/a,,b.img 8388608",
        ),
        (
            "lvm: {group: vg0, volume: a, size: 8M}",
            "lvextend --size 8M -- vg0/a",
        ),
        (
            "lvm-thin: {group: vg0, volume: a, size: 8M, pool: p}",
            "lvextend --size 8M -- vg0/a",
        ),
        (
            "zvol: {dataset: tank/a, size: 8M}",
            "zfs set volsize=8388608 tank/a",
        ),
        (
            "volume: {pool: images, volume: a, size: 8M}",
            "virsh vol-resize --pool images -- a 8388608",
        ),
    ] {
        let disk = format!("- {disk}\n");
        let plan = changes(&disk, &disk, &[(0, 4 << 20)], false);
        let [change] = plan.changes.as_slice() else {
            panic!("{plan:?}")
        };
        assert_eq!(change.kind, ChangeKind::Grow);
        assert_eq!(change.bytes, Some(Bytes(4 << 20)));
        assert_eq!(change.refusal, None);
        assert!(change.is_final.is_some());
        assert_eq!(change.command.as_ref().unwrap().argv.join(" "), command);
        // A guest that runs sees a larger file at once, and a volume at its next start.
        let plan = changes(&disk, &disk, &[(0, 4 << 20)], true);
        let change = &plan.changes[0];
        match change.down_time {
            DownTime::None => {
                let argv = &change.command.as_ref().unwrap().argv;
                assert_eq!(argv[..4], ["virsh", "blockresize", "--", "a"]);
                assert_eq!(argv[5], "8388608b");
            }
            _ => assert!(
                change
                    .refusal
                    .as_ref()
                    .unwrap()
                    .contains("shut it off first")
            ),
        }
    }
}

#[test]
fn storage_is_never_made_smaller() {
    let plan = changes(A, A, &[(0, 16 << 20)], false);
    assert_eq!(
        words(&plan),
        ["shrink vda: /i/a.img from 16 MiB to 8 MiB (none)"]
    );
    assert!(
        plan.changes[0]
            .refusal
            .as_ref()
            .unwrap()
            .contains("would be lost")
    );
    assert_eq!(plan.changes[0].command, None);
}

#[test]
fn disks_come_and_go_and_options_change() {
    let both = format!("{A}{B}");
    assert_eq!(
        words(&changes(A, &both, &[], true)),
        ["add vdb: /i/b.img to the guest (none)"]
    );
    for (rest, down_time) in [
        ("  iotune: {read-iops-sec: 5}\n", DownTime::None),
        ("  serial: x\n", DownTime::Restart),
    ] {
        let plan = changes(A, &format!("{A}{rest}"), &[], true);
        assert_eq!(plan.changes[0].down_time, down_time, "{rest}");
        let argv = plan.changes[0].live.as_ref().map(|it| it.argv.join(" "));
        let limits = "virsh blkdeviotune --live --read-iops-sec 5 -- a vda";
        let is_live = down_time == DownTime::None;
        assert_eq!(argv.as_deref(), is_live.then_some(limits), "{rest}");
    }
    // A controller is not plugged in.
    let on_sata = both.replace("target: vdb", "target: sda\n  bus: sata");
    assert_eq!(
        words(&changes(A, &on_sata, &[], true)),
        ["add sda: /i/b.img to the guest (restart)"]
    );
    let plan = changes(&both, A, &[], false);
    assert_eq!(
        words(&plan),
        ["remove vdb: /i/b.img from the guest; its storage stays (none)"]
    );
    assert_eq!(plan.changes[0].definition.removed, Some(1));
    let other = format!("{A}  serial: x\n  iotune: {{read-iops-sec: 5}}\n");
    let plan = changes(A, &other, &[], true);
    assert_eq!(
        words(&plan),
        [
            "options vda: serial from unset to x, iotune from unset to {\"read-iops-sec\":5} (restart)"
        ]
    );
    assert_eq!(plan.changes[0].definition.changes.len(), 2);
}

#[test]
fn data_of_a_running_guest_moves_to_storage_of_its_size() {
    let have = planned(&parsed(A));
    let image = PresentImage {
        path: "/i/a.img".to_owned(),
        size: Some(Bytes(8 << 20)),
        allocated: Some(Bytes(4096)),
        ..PresentImage::default()
    };
    let present = PresentState {
        guest: Some(&have.domain),
        is_running: true,
        images: BTreeMap::from([(0, image)]),
        ..PresentState::default()
    };
    let (facts, target) = (Facts::default(), Target::default());
    for (disk, refusal, command) in [
        (
            "qcow2: {path: '/i/b c.qcow2', size: 8M}",
            None,
            "--dest /i/b c.qcow2 --format qcow2 -- a vda",
        ),
        (
            "lvm: {group: vg0, volume: b, size: 8M}",
            None,
            "--dest /dev/vg0/b --format raw --blockdev -- a vda",
        ),
        (
            "raw: {path: /i/b.img, size: 16M}",
            Some("write `size: 8 MiB`"),
            "",
        ),
        (
            "volume: {pool: p, volume: b, size: 8M}",
            Some("shut it off first"),
            "",
        ),
        (
            "qcow2: {path: /i/b.qcow2, size: 4M}",
            Some("would be lost"),
            "",
        ),
    ] {
        let want = parsed(&format!("- {disk}\n  target: vda\n"));
        let plan = plan_changes(&present, &want, &planned(&want), &facts, &target).unwrap();
        let mut moves = plan.changes.iter().filter(|it| it.kind == ChangeKind::Move);
        let change = moves.next().unwrap();
        assert_eq!(change.down_time, DownTime::None);
        assert_eq!(change.definition, DefinitionChange::default());
        match refusal {
            Some(why) => assert!(change.refusal.as_ref().unwrap().contains(why), "{change:?}"),
            None => assert_eq!(change.refusal, None, "{disk}"),
        }
        let argv = change.live.as_ref().unwrap().argv.join(" ");
        assert!(argv.ends_with(command), "{argv}");
        let copy = change.live_copy().unwrap();
        let stop = ["virsh", "blockjob", "--abort", "--", "a", "vda"];
        assert_eq!(copy.stop, stop, "{disk}");
    }
}

#[test]
fn what_no_change_reaches_is_named() {
    for (want, key) in [
        (
            "- raw: {path: /i/a.img}\n  target: vdc\n",
            "disk vdc: target",
        ),
        (
            "- raw: {path: /i/other.img}\n  target: vda\n",
            "disk vda: raw.path",
        ),
        (
            "- raw: {path: /i/a.img}\n  target: vda\n  logical-block-size: 4K\n",
            "disk vda: logical-block-size",
        ),
    ] {
        let plan = changes(A, want, &[], false);
        assert!(plan.unchanged.iter().any(|it| it.key == key), "{plan:?}");
        let added = plan.changes.iter().any(|it| it.kind != ChangeKind::Options);
        assert!(!added, "{plan:?}");
    }
}

/// The change of the bus of a disk in a guest with such a system, which the definition notes.
fn bus_change(have: &str, want: &str, os: Option<GuestOs>) -> PlannedChange {
    let (have, want) = (planned(&parsed(have)), parsed(want));
    let present = PresentState {
        guest: Some(&have.domain),
        os,
        ..PresentState::default()
    };
    let (facts, target) = (Facts::default(), Target::default());
    let plan = plan_changes(&present, &want, &planned(&want), &facts, &target).unwrap();
    let mut buses = plan
        .changes
        .into_iter()
        .filter(|it| it.kind == ChangeKind::Bus);
    buses
        .next()
        .unwrap_or_else(|| panic!("{:?}", plan.unchanged))
}

#[test]
fn a_disk_gets_another_bus_with_its_name_and_what_the_bus_has() {
    let linux = Some(GuestOs::Linux);
    let sata =
        "- raw: {path: /i/a.img}\n  bus: sata\n  serial: one\n  boot: 1\n  rotation-rate: 7200\n";
    let change = bus_change(
        sata,
        "- raw: {path: /i/a.img}\n  bus: virtio\n  queues: 2\n",
        linux,
    );
    assert_eq!(change.what, "/i/a.img from sata (sda) to virtio (vda)");
    assert_eq!(change.refusal, None);
    let keys: Vec<&str> = change.differences.iter().map(|it| it.own_key()).collect();
    assert_eq!(keys, ["target", "bus", "queues"]);
    let (nth, frontend) = change.definition.frontend.unwrap();
    assert_eq!((nth, frontend.target.as_deref()), (0, Some("vda")));
    assert_eq!(frontend.serial.as_deref(), Some("one"));
    assert_eq!((frontend.boot_order, frontend.queues), (Some(1), Some(2)));
    assert_eq!((frontend.rotation_rate, frontend.address), (None, None));
    assert!(change.afterwards.unwrap().contains("`virtio_blk`"));
    // The same name on another bus is another place.
    let change = bus_change(
        sata,
        "- raw: {path: /i/a.img}\n  bus: virtio-scsi\n  target: sda\n",
        linux,
    );
    assert_eq!(change.definition.controllers.len(), 1);
    assert!(change.definition.frontend.unwrap().1.address.is_some());
    let virtio = "- raw: {path: /i/a.img}\n  queues: 2\n  iothread: 1\n";
    let change = bus_change(virtio, "- raw: {path: /i/a.img}\n  bus: sata\n", linux);
    let (_, frontend) = change.definition.frontend.unwrap();
    assert_eq!((frontend.queues, frontend.iothread), (None, None));
}

#[test]
fn a_bus_is_changed_only_where_the_guest_finds_its_disk() {
    let sata = "- raw: {path: /i/a.img}\n  bus: sata\n";
    let virtio = "- raw: {path: /i/a.img}\n  bus: virtio\n";
    let second = "- raw: {path: /i/b.img}\n  bus: virtio\n  target: vdb\n";
    let refusal = |have: &str, want: &str, os| bus_change(have, want, os).refusal;
    let windows = Some(GuestOs::Windows);
    let why = refusal(sata, virtio, windows).unwrap();
    assert!(why.contains("install the driver (the driver CD"), "{why}");
    // The disk that comes with the same run was never seen.
    let why = refusal(sata, &format!("{virtio}{second}"), windows).unwrap();
    assert!(why.contains("a second, small disk"), "{why}");
    let both = format!("{sata}  boot: 1\n{second}");
    assert_eq!(
        refusal(&both, &format!("{virtio}  boot: 1\n{second}"), windows),
        None
    );
    let why = refusal(sata, virtio, None).unwrap();
    assert!(why.contains("write `os: linux` or `os: windows`"), "{why}");
    let cd = |bus: &str| format!("- raw: {{path: /i/a.iso}}\n  bus: {bus}\n  media: cdrom\n");
    assert_eq!(refusal(&cd("usb"), &cd("sata"), None), None);
    // Without a boot order, the first disk of the first bus is tried first.
    let data = "- raw: {path: /i/b.img}\n  bus: virtio\n  target: vdb\n";
    let why = refusal(
        &format!("{sata}{data}"),
        &format!("{}  target: vdc\n{data}", virtio),
        Some(GuestOs::Linux),
    );
    assert!(why.unwrap().contains("would try vdb before sda"));
}
