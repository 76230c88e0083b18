//! Realistic domain files from a seed: what `virsh dumpxml` of a mixed fleet looks like.

use std::fmt::Write as _;

use crate::random::Random;

/// The `number`th domain of the fleet that `seed` determines; 1 to 30 KB.
pub fn domain(number: u32, seed: u64) -> String {
    let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(number.into()));
    let vcpus = 1 << random.below(5);
    let memory_kib = (1 + random.below(64)) * 1024 * 1024;
    let disks = match random.below(10) {
        0..=5 => 1 + random.below(2),
        6..=8 => 2 + random.below(4),
        _ => 6 + random.below(30),
    };
    let has_iothreads = random.chance(50);
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "<domain type='kvm'>\n  <name>guest-{number:05}</name>\n  <uuid>{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}</uuid>\n",
        random.below(1 << 32),
        random.below(1 << 16),
        random.below(1 << 12),
        random.below(1 << 12),
        random.below(1 << 48),
    );
    if random.chance(60) {
        out.push_str("  <metadata>\n    <libosinfo:libosinfo xmlns:libosinfo=\"http://libosinfo.org/xmlns/libvirt/domain/1.0\">\n      <libosinfo:os id=\"http://debian.org/debian/12\"/>\n    </libosinfo:libosinfo>\n  </metadata>\n");
    }
    let _ = write!(
        out,
        "  <memory unit='KiB'>{memory_kib}</memory>\n  <currentMemory unit='KiB'>{memory_kib}</currentMemory>\n  <vcpu placement='static'>{vcpus}</vcpu>\n"
    );
    if has_iothreads {
        out.push_str("  <iothreads>2</iothreads>\n");
    }
    out.push_str("  <os>\n    <type arch='x86_64' machine='pc-q35-7.2'>hvm</type>\n    <boot dev='hd'/>\n  </os>\n  <features>\n    <acpi/>\n    <apic/>\n  </features>\n  <cpu mode='host-passthrough' check='none' migratable='on'/>\n  <clock offset='utc'>\n    <timer name='rtc' tickpolicy='catchup'/>\n    <timer name='pit' tickpolicy='delay'/>\n    <timer name='hpet' present='no'/>\n  </clock>\n  <on_poweroff>destroy</on_poweroff>\n  <on_reboot>restart</on_reboot>\n  <on_crash>destroy</on_crash>\n  <devices>\n    <emulator>/usr/bin/qemu-system-x86_64</emulator>\n");
    for disk in 0..disks {
        push_disk(&mut out, &mut random, number, disk, has_iothreads);
    }
    if random.chance(30) {
        out.push_str("    <disk type='file' device='cdrom'>\n      <driver name='qemu' type='raw'/>\n      <target dev='sda' bus='sata'/>\n      <readonly/>\n      <address type='drive' controller='0' bus='0' target='0' unit='0'/>\n    </disk>\n");
    }
    out.push_str("    <controller type='usb' index='0' model='qemu-xhci' ports='15'>\n      <address type='pci' domain='0x0000' bus='0x02' slot='0x00' function='0x0'/>\n    </controller>\n    <controller type='sata' index='0'>\n      <address type='pci' domain='0x0000' bus='0x00' slot='0x1f' function='0x2'/>\n    </controller>\n    <controller type='pci' index='0' model='pcie-root'/>\n");
    for port in 1..=(8 + disks) {
        let _ = write!(
            out,
            "    <controller type='pci' index='{port}' model='pcie-root-port'>\n      <model name='pcie-root-port'/>\n      <target chassis='{port}' port='0x{:x}'/>\n      <address type='pci' domain='0x0000' bus='0x00' slot='0x{:02x}' function='0x{:x}'/>\n    </controller>\n",
            15 + port,
            2 + port / 8,
            port % 8,
        );
    }
    for card in 0..1 + random.below(3) {
        let _ = write!(
            out,
            "    <interface type='bridge'>\n      <mac address='52:54:00:{:02x}:{:02x}:{card:02x}'/>\n      <source bridge='br0'/>\n      <model type='virtio'/>\n      <driver name='vhost' queues='{vcpus}'/>\n    </interface>\n",
            random.below(256),
            random.below(256),
        );
    }
    out.push_str("    <serial type='pty'>\n      <target type='isa-serial' port='0'>\n        <model name='isa-serial'/>\n      </target>\n    </serial>\n    <console type='pty'>\n      <target type='serial' port='0'/>\n    </console>\n    <channel type='unix'>\n      <target type='virtio' name='org.qemu.guest_agent.0'/>\n      <address type='virtio-serial' controller='0' bus='0' port='1'/>\n    </channel>\n    <input type='tablet' bus='usb'>\n      <address type='usb' bus='0' port='1'/>\n    </input>\n    <input type='mouse' bus='ps2'/>\n    <input type='keyboard' bus='ps2'/>\n    <graphics type='vnc' port='-1' autoport='yes'>\n      <listen type='address'/>\n    </graphics>\n    <video>\n      <model type='virtio' heads='1' primary='yes'/>\n    </video>\n    <watchdog model='itco' action='reset'/>\n    <memballoon model='virtio'/>\n    <rng model='virtio'>\n      <backend model='random'>/dev/urandom</backend>\n    </rng>\n  </devices>\n</domain>\n");
    out
}

/// The name of a guest's disk by its number, from 0: `vda`, …, `vdz`, `vdaa`, ….
///
/// ```
/// assert_eq!(vmdisk_benches::target("vd", 27), "vdab");
/// ```
pub fn target(prefix: &str, number: u64) -> String {
    let mut letters = Vec::new();
    let mut rest = number + 1;
    while rest > 0 {
        rest -= 1;
        letters.push(char::from(
            b'a' + u8::try_from(rest % 26).unwrap_or_default(),
        ));
        rest /= 26;
    }
    letters.extend(prefix.chars().rev());
    letters.iter().rev().collect()
}

fn push_disk(out: &mut String, random: &mut Random, guest: u32, disk: u64, has_iothreads: bool) {
    let target = target("vd", disk);
    let is_block = random.chance(40);
    // Most guests are as they should be; the others have what people really write.
    let mistake = if random.chance(8) {
        random.pick(&[
            " cache='unsafe'",
            " cache='writeback' io='native'",
            " cache='writebak'",
            " discrad='unmap' cache='none'",
            "",
        ])
    } else {
        " cache='none' io='native' discard='unmap'"
    };
    let iothread = if has_iothreads {
        format!(" iothread='{}'", disk % 2 + 1)
    } else {
        String::new()
    };
    let (kind, format, source) = if is_block {
        (
            "block",
            "raw",
            format!("dev='/dev/vg{}/guest-{guest:05}-{disk}'", random.below(4)),
        )
    } else {
        (
            "file",
            "qcow2",
            format!("file='/var/lib/libvirt/images/guest-{guest:05}-{disk}.qcow2'"),
        )
    };
    let _ = write!(
        out,
        "    <disk type='{kind}' device='disk'>\n      <driver name='qemu' type='{format}'{mistake}{iothread}/>\n      <source {source}/>\n      <target dev='{target}' bus='virtio'/>\n",
    );
    if random.chance(50) {
        let _ = writeln!(out, "      <serial>SN{guest:05}{disk:03}</serial>");
    }
    let _ = write!(
        out,
        "      <address type='pci' domain='0x0000' bus='0x{:02x}' slot='0x00' function='0x0'/>\n    </disk>\n",
        4 + disk
    );
}
