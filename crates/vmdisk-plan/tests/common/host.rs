//! A host with one of everything, and plans for it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests of two crates use it"
)]

use vmdisk_facts::{Facts, Target};
use vmdisk_plan::*;

/// A host: ext4 on NVMe with 512-byte sectors, XFS on a drive with 4096-byte sectors, btrfs on a
/// single drive, btrfs on two, ZFS, and LVM with a thin pool.
pub(crate) const HOST: &str = "schema_version: '1.0'
kernel: {version: [6, 18, 44]}
kvm: {dev_kvm: true}
cpu: {count: 8, arch: x86_64}
limits: {io_uring_disabled: 0, memlock_bytes: 8388608, aio_max_nr: 65536, aio_nr: 0}
memory: {hugepages: {2048: {nr: 1024, free: 1024}}}
qemu: [{path: /usr/bin/qemu-system-x86_64, version: [10, 0, 11], aio: [threads, native, io_uring]}]
libvirt: {version: [11, 3, 0]}
mounts:
- {id: m1, point: /ext4, fs: f1, options: {data: null}}
- {id: m2, point: /xfs4k, fs: f2}
- {id: m3, point: /btrfs, fs: f3, options: {nodatacow: null}}
- {id: m4, point: /mirror, fs: f4, options: {nodatacow: null}}
- {id: m5, point: /zfs, fs: f5}
- {id: m6, point: /tmp, fs: f6}
- {id: m7, point: /squash, fs: f7}
filesystems:
- {id: f1, kind: ext4, devices: [nvme]}
- {id: f2, kind: xfs, devices: [drive4k]}
- {id: f3, kind: btrfs, devices: [disk], btrfs: {data_profile: [single]}}
- {id: f4, kind: btrfs, devices: [disk], btrfs: {data_profile: [raid1]}}
- {id: f5, kind: zfs, zfs: {version: [2, 3, 4], direct: standard}}
- {id: f6, kind: tmpfs}
- {id: f7, kind: squashfs}
dirs:
- {path: /ext4, present: true, mount: m1, dio: {dioalign: set, mem: 512, off: 512}}
- {path: /xfs4k, present: true, mount: m2, dio: {dioalign: set, mem: 512, off: 4096}}
- {path: /btrfs, present: true, mount: m3, nocow: false}
- {path: /btrfs/nocow, present: true, mount: m3, nocow: true, dio: {nowait_overwrite: ok, open: ok}}
- {path: /mirror, present: true, mount: m4, nocow: false}
files:
- {path: /ext4/sparse.img, present: true, mount: m1, size: 1073741824, alloc: 4096}
- {path: /ext4/full.img, present: true, mount: m1, size: 1073741824, alloc: 1073745920}
- path: /ext4/large.qcow2
  present: true
  mount: m1
  image: {format: qcow2, virtual_size: 1099511627776, cluster: 65536, ext_l2: false}
blockdevs:
- {id: nvme, kind: nvme, paths: [/dev/nvme0n1], queue: {logical: 512, physical: 512, rotational: false, discard_max: 4096, discard_granularity: 512}}
- {id: drive4k, kind: disk, paths: [/dev/sda], queue: {logical: 4096, physical: 4096, rotational: true, discard_max: 0}}
- {id: disk, kind: disk, paths: [/dev/sdb], queue: {logical: 512, physical: 4096, rotational: true, discard_max: 0}}
- {id: lv, kind: lvm, paths: [/dev/vg0/old], slaves: [drive4k], lvm: {vg: vg0, lv: old}, queue: {logical: 4096, physical: 4096, discard_max: 0}}
- {id: fastlv, kind: lvm, paths: [/dev/fast/old], slaves: [nvme], lvm: {vg: fast, lv: old}, queue: {logical: 512, physical: 512, discard_max: 4096, discard_granularity: 512}}
- {id: pool, kind: lvm-thin-pool, slaves: [nvme], lvm: {vg: fast, lv: pool0, chunk: 262144}, queue: {logical: 512, physical: 512}}
- {id: thin, kind: lvm-thin, paths: [/dev/fast/thin], slaves: [pool], lvm: {vg: fast, lv: thin, pool: pool0, chunk: 262144}, queue: {logical: 512, physical: 512, discard_granularity: 262144, discard_max: 1048576}}
";

pub(crate) fn host() -> Facts {
    let read = Facts::from_yaml(HOST).unwrap();
    assert!(read.warnings.is_empty(), "{:?}", read.warnings);
    read.facts
}

/// A plan for disks on the host, for a guest with four vCPUs.
pub(crate) fn planned(disks: &[&str]) -> Plan {
    planned_on(&host(), &Target::from_facts(&host()), disks)
}

pub(crate) fn planned_on(facts: &Facts, target: &Target, disks: &[&str]) -> Plan {
    plan(&spec(disks), facts, target).unwrap_or_else(|errors| panic!("{disks:?}: {errors:#?}"))
}

pub(crate) fn spec(disks: &[&str]) -> Spec {
    let disks = disks
        .iter()
        .map(|disk| {
            DiskSpec::from_one_liner(disk).unwrap_or_else(|errors| panic!("{disk}: {errors:#?}"))
        })
        .collect();
    let mut spec = Spec::new(disks);
    spec.guest = Some(GuestSpec {
        vcpus: Some(4),
        ..GuestSpec::default()
    });
    spec
}

/// The value and the rule of a choice, and its reason.
pub(crate) fn choice<'a>(plan: &'a Plan, option: &str) -> (&'a str, Option<&'static str>, &'a str) {
    let mut found = plan.choices.iter().filter(|choice| choice.option == option);
    let Choice {
        value,
        rule,
        reason,
        ..
    } = found
        .next()
        .unwrap_or_else(|| panic!("{option} was not decided: {:#?}", plan.choices));
    (value, *rule, reason)
}

pub(crate) fn errors(disk: &str) -> Vec<String> {
    let host = host();
    let errors = plan(&spec(&[disk]), &host, &Target::from_facts(&host)).expect_err(disk);
    errors.iter().map(PlanError::to_string).collect()
}
