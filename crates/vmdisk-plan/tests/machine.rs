//! What is chosen around the disks: names, controllers, event loops, the machine and its memory.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use crate::common::host::{choice, errors, host, planned, planned_on, spec};
use vmdisk_facts::{Facts, Target};
use vmdisk_model::*;
use vmdisk_plan::*;

#[test]
fn disks_get_the_next_free_name_of_their_bus() {
    let plan = planned(&[
        "raw:/ext4/1",
        "raw:/ext4/2,bus=sata",
        "raw:/ext4/3,target=vdb",
        "raw:/ext4/4",
        "raw:/ext4/5,bus=usb",
        "raw:/ext4/6.iso,media=cdrom",
        "lun:/dev/disk/by-id/x",
        "raw:/ext4/7,bus=nvme,serial=n1",
    ]);
    let names: Vec<(&str, TargetBus)> = plan
        .domain
        .disks
        .iter()
        .map(|disk| (disk.name(), disk.frontend.effective_bus()))
        .collect();
    assert_eq!(
        names,
        [
            ("vda", TargetBus::Virtio),
            ("sda", TargetBus::Sata),
            ("vdb", TargetBus::Virtio),
            ("vdc", TargetBus::Virtio),
            ("sdb", TargetBus::Usb),
            ("sdc", TargetBus::Sata),
            ("sdd", TargetBus::Scsi),
            ("nvme0n1", TargetBus::Nvme),
        ]
    );
    assert!(plan.domain.disks[5].backend.is_read_only);
    assert_eq!(plan.domain.disks[6].frontend.device, Some(Device::Lun));
    assert_eq!(plan.domain.controllers.len(), 1);
}

#[test]
fn reasons_and_refusals_are_about_the_disk_they_name() {
    let found = errors("raw:/a,bus=scsi,product=12345678901234567");
    assert_eq!(
        found,
        ["disks[0].product: a product on bus scsi has at most 16 characters"]
    );
    planned(&["raw:/a,bus=scsi,product=1234567890123456"]);
    let iso = planned(&["raw:/a.iso,readonly=off"]);
    let (value, _, why) = choice(&iso, "readonly");
    assert_eq!(
        (value, why),
        ("true", "a CD drive is read-only, whatever is asked for")
    );
    for (arch, is_x86) in [
        (Architecture::X86_64, true),
        (Architecture::Aarch64, false),
        (Architecture::S390x, false),
    ] {
        let guest = GuestSpec {
            arch: Some(arch),
            ..GuestSpec::default()
        };
        let spec = Spec {
            guest: Some(guest),
            ..spec(&["raw:/a,bus=scsi"])
        };
        let plan = plan(&spec, &Facts::default(), &Target::default()).unwrap();
        let (_, _, why) = choice(&plan, "controller");
        assert_eq!(why.contains("x86"), is_x86, "{why}");
    }
}

#[test]
fn an_nvme_disk_has_a_controller_of_its_own_for_its_serial_number() {
    let names = |disks: &[&str]| -> Vec<String> {
        let disks = planned(disks).domain.disks;
        disks.iter().map(|disk| disk.name().to_owned()).collect()
    };
    let (first, second) = ("raw:/a,bus=nvme,serial=a", "raw:/b,bus=nvme,serial=b");
    assert_eq!(names(&[first, second]), ["nvme0n1", "nvme1n1"]);
    let named = format!("{second},target=nvme0n2");
    assert_eq!(names(&[first, &named]), ["nvme1n1", "nvme0n2"]);
    let both = [format!("{first},target=nvme0n1"), named];
    let both = both.each_ref().map(String::as_str);
    let errors = plan(&spec(&both), &Facts::default(), &Target::default());
    assert_eq!(
        errors.unwrap_err().to_string(),
        "disks[1].target: the disks of nvme0 share one serial number; write `target: nvme1n1`, on a controller of its own"
    );
    let same = "raw:/b,bus=nvme,serial=a,target=nvme0n2";
    assert_eq!(names(&[both[0], same]), ["nvme0n1", "nvme0n2"]);
}

#[test]
fn scsi_disks_hang_on_virtio_scsi_and_leave_unit_seven_free() {
    let disks: Vec<String> = (0..9)
        .map(|n| format!("raw:/elsewhere/{n},bus=scsi"))
        .collect();
    let disks: Vec<&str> = disks.iter().map(String::as_str).collect();
    let plan = planned(&disks);
    assert_eq!(plan.domain.controllers.len(), 1);
    for disk in &plan.domain.disks {
        assert_eq!(plan.domain.frontend_kind(disk), FrontendKind::VirtioScsi);
    }
    let units: Vec<u32> = plan
        .domain
        .disks
        .iter()
        .map(|disk| match &disk.frontend.address {
            Some(Address::Drive(drive)) => drive.unit,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(units, [0, 1, 2, 3, 4, 5, 6, 8, 9]);
}

#[test]
fn fast_media_get_iothreads_and_slow_ones_do_not() {
    let plan = planned(&[
        "raw:/ext4/a.img,size=1G",
        "raw:/xfs4k/a.img,size=1G",
        "lvm:fast/new,size=1G",
        "raw:/elsewhere/a.img",
        "raw:/ext4/b.img,bus=sata",
        "raw:/ext4/c.img,bus=scsi",
        "raw:/ext4/d.img,readonly=on",
    ]);
    let threads: Vec<Option<u32>> = plan
        .domain
        .disks
        .iter()
        .map(|disk| disk.frontend.iothread.map(|id| id.0))
        .collect();
    assert_eq!(threads, [Some(1), None, Some(2), None, None, None, Some(4)]);
    assert_eq!(plan.domain.controllers[0].iothread, Some(IoThreadId(3)));
    assert_eq!(plan.domain.iothreads.len(), 4);
    assert_eq!(
        choice(&plan, "iothread").1,
        Some("iothread-missing-fast-media")
    );

    let mut one = spec(&["raw:/ext4/a.img,size=1G"]);
    one.guest = None;
    let host = host();
    let plan = vmdisk_plan::plan(&one, &host, &Target::from_facts(&host)).unwrap();
    assert!(
        plan.domain.iothreads.is_empty(),
        "one vCPU keeps one loop busy"
    );
}

#[test]
fn iothreads_are_spread_and_declared_as_asked() {
    let with = |iothreads: Option<IoThreadCount>, disks: &[&str]| {
        let mut spec = spec(disks);
        spec.guest.as_mut().unwrap().iothreads = iothreads;
        plan(&spec, &Facts::default(), &Target::default()).map(|plan| {
            let used: Vec<Option<u32>> = plan
                .domain
                .disks
                .iter()
                .map(|disk| disk.frontend.iothread.map(|id| id.0))
                .collect();
            let declared: Vec<(u32, bool)> = plan
                .domain
                .iothreads
                .iter()
                .map(|thread| (thread.id.0, thread.is_listed))
                .collect();
            (used, declared)
        })
    };
    let plain = ["raw:/a", "raw:/b", "raw:/c"];
    assert_eq!(with(None, &plain).unwrap(), (vec![None; 3], vec![]));
    assert_eq!(
        with(Some(IoThreadCount::Number(2)), &plain).unwrap(),
        (
            vec![Some(1), Some(2), Some(1)],
            vec![(1, false), (2, false)]
        )
    );
    assert_eq!(
        with(Some(IoThreadCount::Auto), &plain).unwrap(),
        (
            vec![Some(1), Some(2), Some(3)],
            vec![(1, false), (2, false), (3, false)]
        )
    );
    assert_eq!(
        with(
            None,
            &["raw:/a,iothread=3", "raw:/b,iothread=auto", "raw:/c"]
        )
        .unwrap(),
        (vec![Some(3), Some(1), None], vec![(1, true), (3, true)])
    );
    let errors = with(Some(IoThreadCount::Number(2)), &["raw:/a,iothread=3"]).unwrap_err();
    assert!(errors[0].message.contains("has 2 iothreads"), "{errors:?}");
    let errors = with(Some(IoThreadCount::Number(0)), &["raw:/a,iothread=auto"]).unwrap_err();
    assert!(errors[0].message.contains("no iothreads"), "{errors:?}");
}

#[test]
fn one_scsi_controller_serves_each_event_loop() {
    let plan = planned_on(
        &Facts::default(),
        &Target::default(),
        &[
            "raw:/a,bus=scsi,iothread=1",
            "raw:/b,bus=scsi,iothread=2",
            "raw:/c,bus=scsi,iothread=1",
            "raw:/d,bus=scsi,queues=2",
        ],
    );
    let controllers: Vec<(Option<u32>, Option<u32>)> = plan
        .domain
        .controllers
        .iter()
        .map(|controller| (controller.iothread.map(|id| id.0), controller.queues))
        .collect();
    assert_eq!(
        controllers,
        [(Some(1), None), (Some(2), None), (None, Some(2))]
    );
    let of = |index: usize| {
        plan.domain
            .scsi_controller_of(&plan.domain.disks[index])
            .unwrap()
            .index
    };
    assert_eq!(
        [of(0), of(1), of(2), of(3)],
        [Some(0), Some(1), Some(0), Some(2)]
    );
    assert!(
        plan.domain
            .disks
            .iter()
            .all(|disk| disk.frontend.iothread.is_none())
    );
}

#[test]
fn several_iothreads_for_one_disk_need_a_target_that_has_them() {
    let disk = "raw:/ext4/a.img,iothread.0=1,iothread.1=2";
    let plan = planned(&[disk]);
    assert_eq!(plan.domain.disks[0].frontend.iothread_mapping.len(), 2);
    assert_eq!(plan.domain.iothreads.len(), 2);
    let older = "qemu=8.2".parse::<Target>().unwrap();
    let errors = vmdisk_plan::plan(&spec(&[disk]), &host(), &older).unwrap_err();
    assert!(
        errors[0]
            .to_string()
            .contains("disks[0].iothread: one disk on several iothreads requires QEMU 9.0"),
        "{errors:?}"
    );
}

#[test]
fn old_machines_get_the_queues_that_new_ones_have() {
    let older = "machine=pc-q35-5.1".parse::<Target>().unwrap();
    let plan = planned_on(
        &Facts::default(),
        &older,
        &["raw:/a", "raw:/b,bus=scsi", "raw:/c,queues=2"],
    );
    assert_eq!(plan.domain.disks[0].frontend.queues, Some(4));
    assert_eq!(plan.domain.controllers[0].queues, Some(4));
    assert_eq!(plan.domain.disks[2].frontend.queues, Some(2));
    assert_eq!(plan.domain.machine, Some(MachineType::new("pc-q35-5.1")));
    assert_eq!(planned(&["raw:/a"]).domain.disks[0].frontend.queues, None);
}

#[test]
fn a_vhost_user_disk_brings_shared_memory_and_comes_back() {
    let plan = planned(&["vhost-user-blk:/run/x.sock"]);
    let disk = &plan.domain.disks[0];
    let BackendSource::VhostUser(socket) = &disk.backend.source else {
        panic!("{disk:?}");
    };
    assert_eq!(socket.reconnect, Some(Switch::On));
    assert_eq!(socket.reconnect_timeout, Some(10));
    assert_eq!(disk.frontend.queues, Some(1), "no more than any daemon has");
    assert_eq!(
        (disk.backend.cache, disk.backend.aio, disk.backend.discard),
        (None, None, None)
    );
    assert!(plan.domain.memory_backing.is_shared());
    assert_eq!(plan.domain.memory_backing.source, Some(MemorySource::Memfd));
    let plain = planned(&["raw:/ext4/a.img"]);
    assert_eq!(plain.domain.memory_backing, MemoryBacking::default());
}

#[test]
fn the_machine_is_what_was_asked_the_target_or_the_common_one() {
    let machine = |facts: &Facts, target: &str, guest: GuestSpec, disks: &[&str]| {
        let mut spec = spec(disks);
        spec.guest = Some(guest);
        let domain = plan(&spec, facts, &target.parse().unwrap_or_default())
            .unwrap()
            .domain;
        (
            domain.architecture.unwrap().as_str(),
            domain.machine.unwrap().0,
            domain.domain_type.unwrap().as_str().to_owned(),
        )
    };
    let none = Facts::default();
    let open = GuestSpec::default;
    let of = |arch, machine: &str, kind: &str| (arch, machine.to_owned(), kind.to_owned());
    assert_eq!(machine(&none, "", open(), &[]), of("x86_64", "q35", "kvm"));
    assert_eq!(
        machine(&none, "", open(), &["raw:/a,bus=ide"]),
        of("x86_64", "pc", "kvm")
    );
    assert_eq!(
        machine(&none, "", open(), &["raw:/a,media=floppy"]),
        of("x86_64", "pc", "kvm")
    );
    assert_eq!(
        machine(&none, "machine=pc-q35-10.0", open(), &[]),
        of("x86_64", "pc-q35-10.0", "kvm")
    );
    assert_eq!(
        machine(&none, "arch=aarch64", open(), &[]),
        of("aarch64", "virt", "kvm")
    );
    let asked = GuestSpec {
        arch: Some(Architecture::Aarch64),
        ..open()
    };
    assert_eq!(
        machine(&host(), "", asked, &[]),
        of("aarch64", "virt", "qemu")
    );
    let mut tried = host();
    tried.kvm.proven = false.into();
    assert_eq!(
        machine(&tried, "", open(), &[]),
        of("x86_64", "q35", "qemu")
    );
    let mut without = host();
    without.kvm.dev_kvm = false.into();
    assert_eq!(
        machine(&without, "", open(), &[]),
        of("x86_64", "q35", "qemu")
    );
    let asked = GuestSpec {
        guest_type: Some(GuestType::Kvm),
        ..open()
    };
    assert_eq!(
        machine(&without, "", asked, &[]),
        of("x86_64", "q35", "kvm")
    );
}

#[test]
fn a_machine_that_the_architecture_does_not_have_is_refused() {
    let planned = |arch: Option<Architecture>, machine: &str| {
        let guest = GuestSpec {
            arch,
            machine: Some(machine.to_owned()),
            ..GuestSpec::default()
        };
        let spec = Spec {
            guest: Some(guest),
            ..spec(&["raw:/a"])
        };
        plan(&spec, &Facts::default(), &Target::default())
    };
    for (arch, machine, expected) in [
        (
            None,
            "pseries",
            "guest.machine: QEMU for x86_64 has no machine pseries; write `arch: ppc64` or `arch: ppc64le`, or use \
             another machine",
        ),
        (None, "virt", "QEMU for x86_64 has no machine virt"),
        (
            Some(Architecture::Aarch64),
            "pc-q35-7.2",
            "QEMU for aarch64 has no machine pc-q35-7.2",
        ),
        (
            None,
            "q35-7",
            "guest.machine: QEMU has no machine q35-7; use `q35`, or a version such as `pc-q35-7.2`",
        ),
    ] {
        let errors = planned(arch, machine).expect_err(machine).to_string();
        assert!(errors.contains(expected), "{errors}");
    }
    let ibm = planned(None, "s390-ccw-virtio").unwrap().domain;
    assert_eq!(ibm.architecture, Some(Architecture::S390x));
    planned(Some(Architecture::Aarch64), "virt").unwrap();
    planned(None, "ubuntu").unwrap();
}

#[test]
fn a_pc_that_boots_from_sectors_of_4096_bytes_has_uefi() {
    let asked = |disks: &[&str], guest: GuestSpec| {
        let spec = Spec {
            guest: Some(guest),
            ..spec(disks)
        };
        plan(&spec, &Facts::default(), &Target::default())
    };
    let large = "raw:/a.img,size=1G,logical-block-size=4096";
    let small = "raw:/b.img,size=1G,physical-block-size=4096";
    let firmware = |disks: &[&str], guest| asked(disks, guest).unwrap().domain.firmware;
    let open = GuestSpec::default;
    assert_eq!(firmware(&[large], open()), Some(Firmware::Efi));
    let plan = asked(&[large], open()).unwrap();
    let (value, rule, why) = choice(&plan, "firmware");
    assert_eq!((value, rule), ("efi", Some("seabios-4096-sectors")));
    assert!(why.contains("4096-byte sectors"), "{why}");
    // SeaBIOS boots from the other disk, or is not the firmware.
    assert_eq!(firmware(&[small, large], open()), None);
    // libvirt sorts disks by their names.
    let (large_vdc, small_vdc) = (format!("{large},target=vdc"), format!("{small},target=vdc"));
    assert_eq!(firmware(&[&small_vdc, large], open()), Some(Firmware::Efi));
    assert_eq!(firmware(&[&large_vdc, small], open()), None);
    let last = "raw:/a.img,size=1G,logical-block-size=4096,boot=1";
    assert_eq!(firmware(&[small, last], open()), Some(Firmware::Efi));
    for (arch, machine) in [(Some(Architecture::S390x), None), (None, Some("microvm"))] {
        let machine = machine.map(str::to_owned);
        let guest = GuestSpec {
            arch,
            machine,
            ..open()
        };
        assert_eq!(firmware(&[large], guest), None);
    }
    let bios = GuestSpec {
        firmware: Some(Firmware::Bios),
        ..open()
    };
    // That of the machine, for which libvirt has no descriptor.
    assert_eq!(firmware(&[small], bios.clone()), None);
    for (arch, kind, expected) in [
        (
            Architecture::S390x,
            Firmware::Efi,
            "guest.firmware: there is no UEFI for s390x; remove `firmware`",
        ),
        (
            Architecture::Ppc64,
            Firmware::Efi,
            "there is no UEFI for ppc64",
        ),
        (
            Architecture::Aarch64,
            Firmware::Bios,
            "there is no BIOS for aarch64",
        ),
    ] {
        let guest = GuestSpec {
            arch: Some(arch),
            firmware: Some(kind),
            ..open()
        };
        let errors = asked(&[small], guest).unwrap_err().to_string();
        assert!(errors.contains(expected), "{errors}");
    }
    let errors = asked(&[large], bios).unwrap_err();
    let [error] = &errors[..] else {
        panic!("{errors:?}");
    };
    assert_eq!(
        error.to_string(),
        "disks[0].logical-block-size: SeaBIOS does not boot from a disk with 4096-byte sectors; \
         write `firmware: efi`, or only `physical-block-size: 4096`"
    );
}

#[test]
fn huge_pages_are_taken_if_they_were_asked_for_and_are_enough() {
    let with = |facts: &Facts, memory: u64, hugepages: HugePagesSpec| {
        let mut spec = spec(&["raw:/ext4/a.img"]);
        let guest = spec.guest.as_mut().unwrap();
        guest.memory = Some(Bytes(memory));
        guest.hugepages = Some(hugepages);
        plan(&spec, facts, &Target::default())
    };
    let pages = |plan: Result<Plan, PlanErrors>| plan.unwrap().domain.memory_backing.huge_pages;
    let size = HugePagesSpec::Size(Bytes(2 << 20));
    assert_eq!(
        pages(with(&host(), 2 << 30, size)),
        Some(HugePages {
            page_sizes: vec![Bytes(2 << 20)]
        })
    );
    assert_eq!(
        pages(with(&host(), 1 << 30, HugePagesSpec::DefaultSize)),
        Some(HugePages::default())
    );
    assert_eq!(pages(with(&host(), 1 << 30, HugePagesSpec::No)), None);
    assert!(pages(with(&Facts::default(), 64 << 30, size)).is_some());
    for (memory, hugepages, why) in [
        (
            4 << 30,
            size,
            "1024 free pages of 2 MiB, and memory of 4 GiB needs 2048",
        ),
        (
            1 << 30,
            HugePagesSpec::Size(Bytes(1 << 30)),
            "no pages of 1 GiB",
        ),
        ((1 << 30) + 4096, size, "not a multiple"),
    ] {
        let errors = with(&host(), memory, hugepages).unwrap_err();
        assert!(errors[0].to_string().contains(why), "{errors:?}");
    }
}

#[test]
fn iothreads_of_a_list_have_their_options_in_the_order_of_their_numbers() {
    let text = "version: 1
guest:
  iothreads:
  - {}
  - {poll-max-ns: 0, poll-grow: 4, poll-shrink: 2, thread-pool-min: 1, thread-pool-max: 8}
disks:
- raw: {path: /a}
  iothread: 2
";
    let spec = Spec::from_yaml(text).unwrap();
    let planned = plan(&spec, &Facts::default(), &Target::default()).unwrap();
    let options = planned.domain.iothreads.iter().map(|thread| {
        let Polling { max, grow, shrink } = thread.polling;
        (
            thread.id.0,
            (max, grow, shrink),
            thread.thread_pool_min,
            thread.thread_pool_max,
        )
    });
    assert_eq!(
        options.collect::<Vec<_>>(),
        [
            (1, (None, None, None), None, None),
            (2, (Some(0), Some(4), Some(2)), Some(1), Some(8)),
        ]
    );
    // libvirt lists an iothread with options before those that it only counts.
    let mut guest = planned.domain;
    guest.iothreads.reverse();
    let (again, dropped) = Spec::of_domain(&guest);
    assert_eq!(dropped, []);
    assert_eq!(
        again.guest.unwrap().iothreads,
        spec.guest.unwrap().iothreads
    );
    assert_eq!(again.disks[0].iothread, spec.disks[0].iothread);
    for (iothreads, expected) in [
        (
            "[{poll-max-ns: x}]",
            "guest.iothreads[0].poll-max-ns: expected",
        ),
        ("[{poll-grov: 1}]", "did you mean `poll-grow`?"),
        ("[1]", "expected a group of keys"),
    ] {
        let text = format!("version: 1\nguest: {{iothreads: {iothreads}}}\ndisks: []\n");
        let errors = Spec::from_yaml(&text).unwrap_err();
        let told = format!(
            "{}: {}",
            errors[0],
            errors[0].help.clone().unwrap_or_default()
        );
        assert!(told.contains(expected), "{told}");
    }
}

/// Architecture or machine × bus: `x` where disks can be on it.
const BUSES: &[(&str, &str)] = &[
    // virtio scsi sata ide usb nvme fdc sd
    ("arch: x86_64", "xxx-xxx-"),
    ("machine: pc", "xxxxxxx-"),
    ("machine: isapc", "---x--x-"),
    ("machine: microvm", "xx------"),
    ("arch: i686", "xxx-xxx-"),
    ("arch: aarch64", "xxx-xx--"),
    ("arch: armv7l", "xxx-xx--"),
    ("arch: riscv64", "xxx-xx--"),
    ("arch: loongarch64", "xxx-xx--"),
    ("arch: ppc64", "xxx-xx--"),
    ("arch: ppc64le", "xxx-xx--"),
    ("arch: s390x", "xx------"),
];

#[test]
fn each_machine_has_its_buses_and_a_disk_on_another_is_refused_with_those_it_has() {
    let buses = ["virtio", "scsi", "sata", "ide", "usb", "nvme", "fdc", "sd"];
    for (guest, has) in BUSES {
        for (bus, has) in buses.into_iter().zip(has.chars()) {
            let media = if bus == "fdc" { "floppy" } else { "disk" };
            // A machine that follows from the bus is another one.
            let machine = match (*guest, bus) {
                ("arch: x86_64" | "arch: i686", "ide" | "fdc") => ", machine: q35",
                _ => "",
            };
            let text = format!(
                "version: 1\nguest: {{{guest}{machine}}}\ndisks:\n- {{raw: {{path: /a}}, bus: {bus}, media: {media}, serial: {}}}\n",
                if bus == "nvme" { "s1" } else { "~" }
            )
            .replace(", serial: ~", "");
            let spec = Spec::from_yaml(&text).unwrap();
            let planned = plan(&spec, &Facts::default(), &Target::default());
            assert_eq!(planned.is_ok(), has == 'x', "{guest} {bus}: {planned:?}");
            if let Err(errors) = planned {
                assert_eq!(errors[0].at.to_string(), "disks[0].bus");
                let help = errors[0].help.as_ref().unwrap();
                let way_out = if media == "disk" {
                    "write `bus: "
                } else {
                    "use another machine"
                };
                assert!(help.starts_with(way_out), "{help}");
                assert!(!help.contains("fdc"), "{help}");
            }
        }
    }
}

#[test]
fn every_architecture_boots_its_disk_or_is_refused() {
    use Architecture::*;
    for arch in Architecture::ALL {
        let mut spec = spec(&["raw:/a,bus=virtio"]);
        spec.guest = Some(GuestSpec {
            arch: Some(*arch),
            guest_type: Some(GuestType::Qemu),
            ..GuestSpec::default()
        });
        let planned = plan(&spec, &Facts::default(), &Target::default());
        let domain = planned.as_ref().map(|plan| &plan.domain).ok();
        let (firmware, cpu, acpi, memory) = match arch {
            X86_64 => (None, Some(CpuMode::Maximum), None, 1),
            I686 | Ppc64 | Ppc64le | S390x => (None, None, None, 1),
            Aarch64 => (
                Some(Firmware::Efi),
                Some(CpuMode::Maximum),
                Some(Switch::On),
                1,
            ),
            Armv7l | Riscv64 => (Some(Firmware::Efi), None, None, 1),
            Loongarch64 => (Some(Firmware::Efi), None, Some(Switch::On), 2),
            // Not the machine made for it: QEMU boots it from nothing but flash.
            Armv6l => (None, None, None, 1),
            _ => {
                assert!(domain.is_none(), "{arch}");
                continue;
            }
        };
        let domain = domain.unwrap_or_else(|| panic!("{arch}: {planned:?}"));
        assert_eq!(
            (domain.firmware, domain.cpu, domain.acpi, domain.memory),
            (firmware, cpu, acpi, Some(Bytes::gib(memory))),
            "{arch}"
        );
    }
}

#[test]
fn a_pc_has_the_cpu_of_the_host_or_the_best_that_libvirt_can_ask_for() {
    let cpu = |guest: &str, target: &str| {
        let text = format!("version: 1\nguest: {{{guest}}}\ndisks:\n- raw: {{path: /a}}\n");
        let spec = Spec::from_yaml(&text).unwrap();
        let target = target.parse().unwrap_or_default();
        let planned = plan(&spec, &Facts::default(), &target);
        planned.map(|plan| plan.domain.cpu).ok()
    };
    assert_eq!(cpu("type: kvm", "libvirt=6.0"), Some(Some(CpuMode::Host)));
    assert_eq!(
        cpu("type: qemu", "libvirt=7.1"),
        Some(Some(CpuMode::Maximum))
    );
    assert_eq!(cpu("type: qemu", "libvirt=7.0"), Some(None));
    assert_eq!(
        cpu("type: qemu, cpu: maximum", ""),
        Some(Some(CpuMode::Maximum))
    );
    assert_eq!(cpu("type: qemu, cpu: host-passthrough", ""), None);
    assert_eq!(cpu("arch: i686", ""), Some(None));
}

#[test]
fn the_network_of_a_guest_is_a_name_a_bridge_or_none() {
    let devices = |guest: &str| {
        let text = format!("version: 1\nguest: {{{guest}}}\ndisks:\n- raw: {{path: /a}}\n");
        let spec = Spec::from_yaml(&text).ok()?;
        assert_eq!(Spec::from_yaml(&spec.to_yaml()).unwrap(), spec);
        let planned = plan(&spec, &Facts::default(), &Target::default());
        Some(planned.unwrap().devices)
    };
    let network = |text: &str| devices(&format!("network: '{text}'")).map(|it| it.network);
    let named = |name: &str| Some(Some(GuestNetwork::Network(name.to_owned())));
    assert_eq!(network("none"), Some(None));
    assert_eq!(network("default"), named("default"));
    let bridge = GuestNetwork::Bridge("br-0.1".to_owned());
    assert_eq!(network("bridge:br-0.1"), Some(Some(bridge)));
    for refused in ["", "a b", "bridge:", "bridge:a'b", "x/y"] {
        assert_eq!(network(refused), None, "{refused}");
    }
    let all = devices("console: display, channel: agent, tpm: true, rng: true").unwrap();
    assert_eq!(all.console, Some(GuestConsole::Display));
    assert_eq!(all.channel, Some(GuestChannel::Agent));
    assert!(all.tpm && all.rng && all.network.is_none());
    assert_eq!(
        devices("tpm: false, rng: false"),
        Some(GuestDevices::default())
    );
}

#[test]
fn a_virt_machine_gets_the_usb_controller_that_its_disks_need() {
    let usb = |guest: &str, bus: &str| {
        let text = format!(
            "version: 1\nguest: {{{guest}}}\ndisks:\n- {{raw: {{path: /a}}, bus: {bus}}}\n"
        );
        let plan = plan(
            &Spec::from_yaml(&text).unwrap(),
            &Facts::default(),
            &Target::default(),
        )
        .unwrap();
        plan.domain.controllers.len()
    };
    assert_eq!(usb("arch: aarch64", "usb"), 1);
    assert_eq!(usb("arch: aarch64", "virtio"), 0);
    assert_eq!(usb("machine: q35", "usb"), 0);
}

#[test]
fn windows_on_a_pc_starts_from_a_bus_that_its_installer_knows() {
    let bus = |guest: &str| {
        let text = format!("version: 1\nguest: {{{guest}}}\ndisks:\n- raw: {{path: /a}}\n");
        let plan = plan(
            &Spec::from_yaml(&text).unwrap(),
            &Facts::default(),
            &Target::default(),
        )
        .unwrap();
        plan.domain.disks[0].frontend.effective_bus()
    };
    assert_eq!(bus("os: windows"), TargetBus::Sata);
    assert_eq!(bus("os: windows, machine: pc"), TargetBus::Ide);
    assert_eq!(bus("os: windows, drivers: virtio"), TargetBus::Virtio);
    assert_eq!(bus("os: windows, arch: aarch64"), TargetBus::Virtio);
    assert_eq!(bus("os: linux"), TargetBus::Virtio);
}

#[test]
fn loongarch_needs_more_than_one_gibibyte() {
    for (memory, is_taken) in [("1G", false), ("1025M", true)] {
        let text = format!(
            "version: 1\nguest: {{arch: loongarch64, memory: {memory}}}\ndisks:\n- raw: {{path: /a}}\n"
        );
        let planned = plan(
            &Spec::from_yaml(&text).unwrap(),
            &Facts::default(),
            &Target::default(),
        );
        assert_eq!(planned.is_ok(), is_taken);
    }
}

#[test]
fn a_new_scsi_disk_leaves_the_units_of_host_devices_free() {
    let guest = Domain {
        architecture: Some(Architecture::X86_64),
        machine: Some(MachineType::new("q35")),
        controllers: vec![Controller::virtio_scsi(0), Controller::virtio_scsi(1)],
        scsi_host_devices: vec![DriveAddress::of_unit(0, 0), DriveAddress::of_unit(1, 1)],
        ..Domain::default()
    };
    let disks = ["raw:/a,bus=scsi,target=sda", "raw:/b,bus=scsi"];
    let facts = Facts::default();
    let plan = plan_into(&spec(&disks), &guest, &facts, &Target::default()).unwrap();
    let places = plan.domain.disks.iter().map(|disk| &disk.frontend.address);
    let expected = [1, 2].map(|unit| Some(Address::Drive(DriveAddress::of_unit(0, unit))));
    assert!(places.eq(expected.iter()), "{:?}", plan.domain.disks);
}
