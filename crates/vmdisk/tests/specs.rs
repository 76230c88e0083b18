//! What becomes of specs and of guests, recorded whole: each case holds an exception or a limit of the planner.
#![allow(clippy::disallowed_methods, reason = "a test reads its golden file")]

use std::fmt::Write as _;

use vmdisk::plan::{Spec, facts_after, plan, plan_into};
use vmdisk::{FixScope, LintOptions, fix};
use vmdisk_facts::{Facts, Target};

#[allow(
    dead_code,
    unreachable_pub,
    reason = "the planner's tests need more of it"
)]
#[path = "../../vmdisk-plan/tests/common/host.rs"]
mod host;

/// Changes of the host's facts, the target if it is another one, and a spec.
const PLANNED: [(&[[&str; 2]], &str, &str); 62] = [
    // An explicit AIO mode is counted once.
    (
        &[
            ["aio_max_nr: 65536", "aio_max_nr: 3072"],
            ["io_uring_disabled: 0", "io_uring_disabled: 2"],
        ],
        "",
        "disks: [{raw: {path: /ext4/a.img, size: 1G}, io: native}, {raw: {path: /ext4/b.img, size: 1G}}, {raw: {path: /ext4/c.img, size: 1G}}]",
    ),
    (
        &[],
        "",
        "guest: {machine: pc-i440fx-3.1}\ndisks: [{raw: {path: /ext4/a.img, size: 1G}, discard: unmap}]",
    ),
    (
        &[],
        "",
        "guest: {machine: pc-i440fx-3.1}\ndisks: [{raw: {path: /ext4/a.img, size: 1G}, discard: unmap, queue-size: 256}]",
    ),
    (
        &[],
        "",
        "guest: {machine: pc-i440fx-3.1}\ndisks: [{raw: {path: /ext4/a.img, size: 1G}}]",
    ),
    (
        &[],
        "",
        "guest: {machine: pc-q35-4.2, vcpus: 2}\ndisks: [{raw: {path: /ext4/a.img, size: 1G}}, {raw: {path: /ext4/b.img, size: 1G}, bus: virtio-scsi}, {raw: {path: /ext4/c.img, size: 1G}, bus: sata}]",
    ),
    (
        &[],
        "",
        "guest: {machine: pc-q35-4.2, vcpus: 1}\ndisks: [{raw: {path: /ext4/a.img, size: 1G}}, {raw: {path: /ext4/b.img, size: 1G}, bus: virtio-scsi}]",
    ),
    (
        &[],
        "",
        "disks: [{raw: {path: /ext4/a.img, size: 1G}, bus: virtio-scsi, target: sda}, {raw: {path: /ext4/b.img, size: 1G}, bus: virtio-scsi, target: sdh}, {raw: {path: /ext4/c.img, size: 1G}, bus: virtio-scsi}]",
    ),
    (
        &[],
        "qemu=11.1,libvirt=12.5",
        "disks: [{qcow2: {path: /ext4/large.qcow2}, discard: unmap, discard-no-unref: true}]",
    ),
    (
        &[],
        "qemu=11.1,libvirt=12.5",
        "disks: [{qcow2: {path: /ext4/large.qcow2}, discard: unmap, discard-no-unref: false}]",
    ),
    (
        &[],
        "",
        "disks: [{lvm-thin: {group: fast, volume: new, pool: pool0, size: 10G}}]",
    ),
    (&[], "", "disks: [{lvm-thin: {group: fast, volume: thin}}]"),
    (
        &[],
        "",
        "guest: {vcpus: 2, iothreads: 2}\ndisks: [{raw: {path: /ext4/a.img, size: 1G}, iothread: 3}]",
    ),
    (
        &[],
        "",
        "guest: {vcpus: 2, iothreads: [{}, {thread-pool-max: 8}]}\ndisks: [{raw: {path: /ext4/a.img, size: 1G}, iothread: 2}]",
    ),
    (
        &[],
        "",
        "guest: {vcpus: 2}\ndisks: [{raw: {path: /ext4/a.img, size: 1G}}, {raw: {path: /ext4/b.img, size: 1G}}]",
    ),
    (
        &[],
        "",
        "guest: {vcpus: 3}\ndisks: [{raw: {path: /ext4/a.img, size: 1G}}, {raw: {path: /ext4/b.img, size: 1G}, bus: sata}]",
    ),
    (
        &[],
        "qemu=11.1,libvirt=12.5",
        "guest: {vcpus: 8}\ndisks: [{raw: {path: /ext4/a.img, size: 1G}, queues: 4}]",
    ),
    (
        &[],
        "qemu=11.1,libvirt=12.5",
        "guest: {vcpus: 8}\ndisks: [{raw: {path: /ext4/a.img, size: 1G}, queues: 3}]",
    ),
    (
        &[],
        "qemu=11.1,libvirt=9.0",
        "guest: {vcpus: 8}\ndisks: [{raw: {path: /ext4/a.img, size: 1G}}]",
    ),
    (
        &[],
        "qemu=11.1,libvirt=12.5",
        "guest: {vcpus: 8, iothreads: 3}\ndisks: [{raw: {path: /ext4/a.img, size: 1G}}, {raw: {path: /ext4/b.img, size: 1G}}]",
    ),
    (
        &[],
        "",
        "disks: [{raw: {path: /ext4/a.img, size: 1G}, logical-block-size: 4096, boot: 1}]",
    ),
    (
        &[],
        "",
        "disks: [{raw: {path: /ext4/a.img, size: 1G}, bus: fdc}]",
    ),
    (
        &[[
            "files:\n",
            "files:\n- {path: /ext4/odd.img, present: true, mount: m1, size: 1073742336, alloc: 4096, dio: {off: 4096, mem: 512}}\n",
        ]],
        "qemu=10.0,libvirt=11.3",
        "disks: [{raw: {path: /ext4/odd.img}}]",
    ),
    (
        &[[
            "files:\n",
            "files:\n- {path: /ext4/odd.img, present: true, mount: m1, size: 1073742336, alloc: 4096, dio: {off: 0, mem: 512}}\n",
        ]],
        "qemu=10.0,libvirt=11.3",
        "disks: [{raw: {path: /ext4/odd.img}}]",
    ),
    (
        &[[
            "files:\n",
            "files:\n- {path: /ext4/odd.img, present: true, mount: m1, size: 1073742336, alloc: 4096, dio: {off: 4096, mem: 512}}\n",
        ]],
        "qemu=11.1,libvirt=11.3",
        "disks: [{raw: {path: /ext4/odd.img}}]",
    ),
    (
        &[[
            "files:\n",
            "files:\n- {path: /ext4/odd.img, present: true, mount: m1, size: 1073742336, alloc: 4096, dio: {off: 4096, mem: 512}}\n",
        ]],
        "qemu=10.0,libvirt=11.3",
        "disks: [{qcow2: {path: /ext4/odd.img}}]",
    ),
    (
        &[[
            "lv: old}, queue: {logical: 512",
            "lv: pool0, chunk: 65536}, queue: {logical: 512",
        ]],
        "",
        "disks: [{lvm-thin: {group: fast, volume: new, pool: pool0, size: 10G}}]",
    ),
    (
        &[],
        "",
        "disks: [{directory: {path: /srv}, readonly: false}]",
    ),
    (
        &[],
        "",
        "disks: [{directory: {path: /srv}, readonly: false, media: cdrom}]",
    ),
    (
        &[],
        "",
        "disks: [{directory: {path: /srv}, readonly: true}]",
    ),
    (
        &[["data_profile: [single]", "data_profile: [raid0]"]],
        "",
        "disks: [{raw: {path: /btrfs/a.img, size: 1G}}]",
    ),
    (
        &[["data_profile: [single]", "data_profile: [raid0, dup]"]],
        "",
        "disks: [{raw: {path: /btrfs/a.img, size: 1G}}]",
    ),
    (
        &[],
        "qemu=10.0,libvirt=6.9",
        "disks: [{qcow2: {path: /ext4/large.qcow2}}]",
    ),
    (
        &[],
        "",
        "disks: [{vhost-user-blk: {socket: /run/a.sock, serves: {path: /ext4/full.img, format: raw}}, cache: none, io: native, discard: unmap, detect-zeroes: unmap}]",
    ),
    (
        &[],
        "",
        "disks: [{vhost-user-blk: {socket: /run/a.sock, serves: {path: /ext4/full.img, format: raw}}, serial: abc, error-policy: stop}]",
    ),
    (
        &[],
        "",
        "disks: [{vhost-user-blk: {socket: /run/a.sock}, cache: none, io: native, discard: unmap, detect-zeroes: unmap}]",
    ),
    (
        &[],
        "",
        "disks: [{lvm-thin: {group: fast, volume: new, pool: fresh, size: 100T, pool-size: 100T}}]",
    ),
    (
        &[],
        "",
        "disks: [{lvm-thin: {group: fast, volume: new, pool: fresh, size: 100G, pool-size: 100G}}]",
    ),
    (
        &[],
        "",
        "disks: [{volume: {pool: images, volume: a, format: qcow2}, discard-no-unref: true, metadata-cache-size: 1M}]",
    ),
    (
        &[],
        "",
        "disks: [{volume: {pool: images, volume: a, format: raw}, discard-no-unref: true, metadata-cache-size: 1M}]",
    ),
    (&[], "", "guest: {name: a/b, hugepages: 3M}\ndisks: []"),
    (&[], "", "guest: {name: ' ', hugepages: 2K}\ndisks: []"),
    (&[], "", "guest: {hugepages: 4K, memory: 1G}\ndisks: []"),
    (
        &[],
        "",
        "guest: {hugepages: 4095}\ndisks: [{raw: {path: /ext4/a.img, size: 1G}, bus: nvme, target: nvme0nx}, {raw: {path: /ext4/b.img, size: 1G}, bus: nvme, target: nvmexn1}, {raw: {path: /ext4/c.img, size: 1G}, target: nvmen1}]",
    ),
    (&[], "", "disks: [{raw: {path: /dev/shm/a.img, size: 1G}}]"),
    (&[], "", "disks: [{raw: {path: /dev/sda}}]"),
    (
        &[],
        "",
        "disks: [{lvm-thin: {group: fast, volume: thin, pool-size: 10G}}]",
    ),
    (
        &[],
        "",
        "disks: [{raw: {path: /ext4/a.img, size: 1G}, iotune: {total-iops-sec: 1000000000000001}}, {raw: {path: /ext4/b.img, size: 1G}, iotune: {total-iops-sec: 0, total-iops-sec-max: 5}}, {raw: {path: /ext4/c.img, size: 1G}, iotune: {total-iops-sec: 1000000000000000}}, {raw: {path: /ext4/d.img, size: 1G}, iotune: {total-iops-sec: 5, total-iops-sec-max: 4}}]",
    ),
    (
        &[],
        "",
        "disks: [{network: {protocol: gluster, name: /img, hosts: a}}, {network: {protocol: gluster, name: vol/img, hosts: a}}, {network: {protocol: iscsi, name: iqn/4294967296, hosts: a}}, {network: {protocol: iscsi, name: iqn/1, hosts: a}}, {network: {protocol: iscsi, name: /1, hosts: a}}]",
    ),
    (
        &[],
        "qemu=10.0,libvirt=11.3",
        "disks: [{network: {protocol: nfs, name: /srv/a.img, hosts: a, identity: {group: '+5'}}}]",
    ),
    (
        &[],
        "",
        "disks: [{network: {protocol: nfs, name: /srv/a.img, hosts: a, identity: {}}}]",
    ),
    (
        &[],
        "",
        "disks: [{raw: {path: /ext4/a.img}, format: raw}, {raw: {path: /ext4/b.img}, type: file}, {raw: {path: /ext4/c.img}, total-iops-sec: 5}]",
    ),
    (
        &[],
        "",
        "disks: [{raw: {path: /squash/a.iso}}, {raw: {path: /squash/b.iso}, bus: sata}, {raw: {path: /squash/c.iso}, bus: virtio}]",
    ),
    (
        &[],
        "",
        "disks: ['raw:/ext4/a.img', 'note:/ext4/a.img', 'lun:/dev/sda']",
    ),
    (
        &[],
        "",
        "disks: [{lun: /dev/sda, bus: virtio-scsi}, {http: //a/b, media: cdrom}]",
    ),
    (
        &[],
        "",
        "disks: [{raw: {path: /ext4/a.img, size: 1G}, queues: '+4'}, {raw: {path: /ext4/b.img, size: 1G}, queues: '4'}, {raw: {path: /ext4/c.img, size: 1G}, iothread: 1+x}]",
    ),
    (
        &[],
        "",
        "disks: [{raw: {path: /xfs4k/a.img, size: 1G}}, {raw: {path: /ext4/b.iso}, media: cdrom, bus: virtio-scsi}, {device: {path: /dev/sda}, media: cdrom, bus: virtio-scsi}]",
    ),
    (
        &[],
        "",
        "disks: [{device: {path: /dev/sda}}, {device: {path: /dev/nvme0n1, format: qcow2}, metadata-cache-size: 1M}]",
    ),
    (
        &[],
        "",
        "disks: [{raw: {path: /ext4/a.img, size: 1G, colour: red}}, {raw: {path: /ext4/a.img, szie: 1G}}]",
    ),
    (
        &[],
        "",
        "guest: {vcpus: 1}\ndisks: [{raw: {path: /ext4/a.img, size: 1G}}]",
    ),
    (&[], "", "guest: {iothreads: 1024}\ndisks: []"),
    (&[], "", "guest: {iothreads: 1025}\ndisks: []"),
    (
        &[[
            "discard_granularity: 262144, discard_max: 1048576",
            "discard_granularity: 8589934592, discard_max: 8589934592",
        ]],
        "",
        "disks: [{lvm-thin: {group: fast, volume: thin}}]",
    ),
];

/// A guest, and the disks that are added to it.
const ADDED: [(&str, &str); 4] = [
    (
        "<controller type='scsi' index='0' model='virtio-scsi'/><controller type='scsi' index='1' model='virtio-scsi'/>
         <disk type='file' device='disk'><source file='/a'/><target dev='sda' bus='scsi'/><address type='drive' controller='0' bus='0' target='0' unit='0'/></disk>
         <disk type='file' device='disk'><source file='/b'/><target dev='sdb' bus='scsi'/><address type='drive' controller='1' bus='0' target='0' unit='1'/></disk>",
        "[{raw: {path: /ext4/a.img, size: 1G}, bus: virtio-scsi}, {raw: {path: /ext4/b.img, size: 1G}, bus: virtio-scsi}]",
    ),
    ("", "[{raw: {path: relative, size: 1G}}]"),
    (
        "<disk type='file' device='disk'><source file='/a'/><target dev='vda' bus='virtio'/></disk>",
        "[{raw: {path: /ext4/a.img, size: 1G}, target: vda}]",
    ),
    (
        "<disk type='file' device='disk'><source file='/a'/><target dev='vda' bus='virtio'/></disk>",
        "[{raw: {path: /ext4/a.img, size: 1G}}, {raw: {path: /squash/a.iso}}]",
    ),
];

/// The parts of a guest: elements beside `<devices>`, and inside.
const GUESTS: [(&str, &str); 22] = [
    (
        "<os><boot dev='cdrom'/><boot dev='network'/><boot dev='hd'/><boot dev='fd'/></os>",
        "<disk type='file'><source file='/a'/><target dev='vda' bus='virtio'/></disk>
         <disk type='file' device='cdrom'><target dev='sda' bus='sata'/></disk>
         <disk type='file' device='cdrom'><target dev='sdb' bus='sata'/></disk>
         <disk type='file'><source file='/b'/><target dev='vdb' bus='virtio'/></disk>",
    ),
    (
        "<memoryBacking><hugepages><page size='2' unit='M'/><page size='1' unit='G' nodeset='0'/></hugepages></memoryBacking>",
        "",
    ),
    ("<memoryBacking><hugepages><page size='2' unit='M'/></hugepages></memoryBacking>", ""),
    (
        "<iothreads>2</iothreads><iothreadids><iothread id='2'/><iothread id='4'/></iothreadids>",
        "<disk type='file'><driver name='qemu' iothread='4'/><source file='/a'/><target dev='vda' bus='virtio'/></disk>
         <disk type='file'><driver name='qemu' iothread='2'/><source file='/b'/><target dev='vdb' bus='virtio'/></disk>",
    ),
    (
        "<iothreads>2</iothreads><iothreadids><iothread id='2' thread_pool_max='8'/><iothread id='4'/></iothreadids>",
        "<disk type='file'><driver name='qemu' iothread='4'/><source file='/a'/><target dev='vda' bus='virtio'/></disk>",
    ),
    (
        "<iothreads>1</iothreads>",
        "<disk type='file'><driver name='qemu' iothread='7'/><source file='/a'/><target dev='vda' bus='virtio'/></disk>",
    ),
    (
        "<iothreads>2</iothreads>",
        "<disk type='file'><driver name='qemu' queues='2'><iothreads><iothread id='1'><queue id='0'/></iothread><iothread id='2'><queue id='1'/></iothread></iothreads></driver><source file='/a'/><target dev='vda' bus='virtio'/></disk>",
    ),
    (
        "<iothreads>2</iothreads>",
        "<controller type='scsi' index='0' model='virtio-scsi'><driver queues='2'><iothreads><iothread id='1'><queue id='0'/></iothread><iothread id='2'><queue id='1'/></iothread></iothreads></driver></controller>
         <disk type='file'><source file='/a'/><target dev='sda' bus='scsi'/></disk>",
    ),
    (
        "",
        "<controller type='scsi' index='0' model='virtio-scsi'/><controller type='scsi' index='1' model='lsilogic'/>
         <disk type='file'><source file='/a'/><target dev='sda' bus='scsi'/></disk>
         <disk type='file'><source file='/b'/><target dev='sdb' bus='scsi'/><address type='drive' controller='1' bus='0' target='0' unit='3'/></disk>",
    ),
    ("", "<controller type='scsi' index='0' model='made-up'/><controller type='usb' index='0' model='made-up'/><disk type='file'><source file='/a'/><target dev='sda' bus='scsi'/></disk>"),
    ("", "<disk type='file' device='disk'><target dev='vda' bus='virtio'/></disk><disk type='file' device='cdrom'><target dev='sda' bus='sata'/></disk>"),
    ("", "<disk type='file'><driver name='qemu' type='vmdk'/><source file='/a'/><target dev='vda' bus='virtio'/></disk>"),
    ("", "<disk type='network'><driver name='qemu' type='vmdk'/><source protocol='nbd' name='a'><host name='h' port='1'/></source><target dev='vda' bus='virtio'/></disk>"),
    ("", "<disk type='network'><driver name='qemu' type='qcow2'/><source protocol='nbd' name='a'><host name='h' port='1'/></source><backingStore type='file'><format type='qcow2'/><source file='/base'/><backingStore/></backingStore><target dev='vda' bus='virtio'/></disk>"),
    ("", "<disk type='file'><driver name='qemu' type='qcow2'/><source file='/a'/><backingStore type='file'><format type='qcow2'/><source file='/base'/><backingStore/></backingStore><target dev='vda' bus='virtio'/></disk>"),
    ("", "<disk type='file'><driver name='qemu' type='qcow2'/><source file='/a'><encryption format='luks'><secret type='passphrase' usage='u'/></encryption></source><target dev='vda' bus='virtio'/></disk>"),
    ("", "<disk type='file'><driver name='qemu' type='qcow2'/><source file='/a'><encryption format='qcow'><secret type='passphrase' usage='u'/></encryption></source><target dev='vda' bus='virtio'/></disk>"),
    ("", "<disk type='file'><driver name='qemu' type='raw'/><source file='/a'><encryption format='luks'><secret type='passphrase' usage='u'/><cipher name='aes' size='256' mode='cbc' hash='sha256'/></encryption></source><target dev='vda' bus='virtio'/></disk>"),
    ("", "<disk type='file'><driver name='qemu' type='raw'/><source file='/a'><encryption format='luks'><secret type='passphrase' usage='u'/><cipher name='aes' size='256' mode='cbc' hash='sha256'/><ivgen name='plain64' hash='sha256'/></encryption></source><target dev='vda' bus='virtio'/></disk>"),
    ("", "<disk type='dir'><driver name='qemu' type='fat'/><source dir='/srv'/><target dev='vda' bus='virtio'/><readonly/></disk><disk type='volume'><driver name='qemu' type='qcow2'/><source pool='p' volume='v'/><target dev='vdb' bus='virtio'/></disk>"),
    ("", "<disk type='file'><source file='/a'/><target dev='sd1' bus='scsi'/></disk><disk type='file'><source file='/b'/><target dev='sdh' bus='scsi'/></disk>"),
    ("<vcpu>4</vcpu>", "<disk type='vhostuser'><driver name='qemu'/><source type='unix' path='/run/a.sock'/><target dev='vda' bus='virtio'/></disk>"),
];

/// Disks of specs with a mistake that has a fix, in each notation.
const FIXED: [&str; 9] = [
    "disks:\n  - raw: {path: /srv/a.img}\n    cache: unsafe\n",
    "disks: [{raw: {path: /srv/a.img}, cache: unsafe}]\n",
    "{\"disks\": [{\"raw\": {\"path\": \"/srv/a.img\"}, \"cache\": \"unsafe\"}]}\n",
    "disks:\n  - &a\n    raw: {path: /srv/a.img}\n    cache: unsafe\n",
    "disks:\n  - raw: {path: /srv/a.img}\n    cache: writeback\n    io: native\n",
    "disks: [{raw: {path: /srv/a.img}, cache: writeback, io: native}]\n",
    "{\"disks\": [{\"raw\": {\"path\": \"/srv/a.img\"}, \"detect-zeroes\": \"unmap\", \"discard\": \"ignore\"}]}\n",
    "disks:\n  - raw: {path: /srv/a.img}\n    shareable: true\n    cache: writeback\n  - raw: {path: /srv/b.img}\n    queues: 2000\n",
    "disks:\n  - raw: {path: relative.img}\n  - raw: {path: /srv/b.img}\n    cache: unsafe\n  - raw: {path: /srv/c.img}\n    target: vda\n  - raw: {path: /srv/d.img}\n    target: vda\n",
];

fn lines<T: std::fmt::Display>(out: &mut String, what: &str, all: impl IntoIterator<Item = T>) {
    for one in all {
        let _ = writeln!(
            out,
            "  {what}: {}",
            one.to_string().replace('\n', "\n      ")
        );
    }
}

fn facts(changes: &[[&str; 2]]) -> Facts {
    let mut text = host::HOST.to_owned();
    for [before, after] in changes {
        assert!(text.contains(before), "{before}");
        text = text.replace(before, after);
    }
    let read = Facts::from_yaml(&text).expect("the host's facts are well-formed");
    assert!(read.warnings.is_empty(), "{:?}", read.warnings);
    read.facts
}

fn planned(out: &mut String, facts: &Facts, plan: &vmdisk::plan::Plan) {
    for choice in &plan.choices {
        let rule = choice
            .rule
            .map(|rule| format!(" ({rule})"))
            .unwrap_or_default();
        let _ = writeln!(out, "  {}: {}{rule}", choice.option, choice.value);
    }
    let steps = plan.steps.iter().map(|step| step.argv.join(" "));
    lines(out, "step", steps);
    let xml = vmdisk::write::libvirt_xml(&plan.domain).expect("names and paths are plain");
    lines(out, "guest", [xml]);
    let files = facts_after(facts, plan).files;
    lines(
        out,
        "known after it",
        files[..]
            .iter()
            .skip(facts.files.len())
            .map(|file| &file.path),
    );
}

#[test]
fn what_becomes_of_specs_and_guests_is_recorded() {
    let mut out = String::new();
    let read = |text: &str| Spec::from_yaml(&format!("version: 1\n{text}\n"));
    for (changes, target, text) in PLANNED {
        let _ = writeln!(out, "{target} {changes:?} {text}");
        let facts = facts(changes);
        let target = match target {
            "" => Target::from_facts(&facts),
            words => words.parse().expect("it is a target"),
        };
        match read(text) {
            Err(errors) => lines(&mut out, "refused", errors),
            Ok(spec) => match plan(&spec, &facts, &target) {
                Err(errors) => lines(&mut out, "refused", errors),
                Ok(plan) => planned(&mut out, &facts, &plan),
            },
        }
    }
    let guest = |around: &str, devices: &str| {
        let text = format!(
            "<domain type='kvm'><name>a</name>{around}<devices>{devices}</devices></domain>"
        );
        vmdisk::read(&text).unwrap_or_else(|failure| panic!("{text}: {failure}"))
    };
    for (devices, disks) in ADDED {
        let _ = writeln!(out, "{devices} and {disks}");
        let (guest, facts) = (guest("", devices), facts(&[]));
        let spec = read(&format!("disks: {disks}"));
        let target = Target::from_facts(&facts);
        match spec.map_err(|errors| format!("{errors:?}")) {
            Err(errors) => lines(&mut out, "refused", [errors]),
            Ok(spec) => match plan_into(&spec, guest.domain(), &facts, &target) {
                Err(errors) => lines(&mut out, "refused", errors),
                Ok(plan) => planned(&mut out, &facts, &plan),
            },
        }
    }
    for (around, devices) in GUESTS {
        let _ = writeln!(out, "{around}{devices}");
        let (spec, not_carried) = Spec::of_domain(guest(around, devices).domain());
        lines(&mut out, "spec", [spec.to_yaml()]);
        let lost = not_carried
            .iter()
            .map(|it| format!("{} {:?} {}", it.what, it.at, it.changes_guest));
        lines(&mut out, "not carried", lost);
    }
    for text in FIXED {
        let text = match text.strip_prefix('{') {
            Some(rest) => format!("{{\"version\": 1, {rest}"),
            None => format!("version: 1\n{text}"),
        };
        let _ = writeln!(out, "{text}");
        let fixed = fix(&text, &LintOptions::default(), FixScope::SafeAndUnsafe);
        let fixed = fixed.unwrap_or_else(|failure| panic!("{text}: {failure}"));
        lines(&mut out, "mended", fixed.mended);
        lines(
            &mut out,
            "remains",
            fixed
                .report
                .diagnostics
                .iter()
                .map(|it| format!("{}: {} {:?}", it.rule.name, it.title, it.help)),
        );
        lines(&mut out, "text", [&*fixed.document.text]);
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/specs.txt");
    if std::env::var_os("VMDISK_BLESS").is_some_and(|value| value == "yes") {
        std::fs::write(&path, &out).expect("the golden file is written");
    }
    let expected = std::fs::read_to_string(&path).expect("the golden file is there");
    assert_eq!(out, expected, "VMDISK_BLESS=yes writes the file");
}
