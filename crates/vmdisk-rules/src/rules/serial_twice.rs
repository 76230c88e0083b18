//! `serial-twice`

use std::collections::HashMap;

use vmdisk_fields::{DiskName, phrase, quoted};
use vmdisk_model::{Address, Disk, DiskField, FieldPath, TargetBus};
use vmdisk_rule::serial;
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// Two disks of a guest have the same serial number.
    ///
    /// ## What it reports
    /// Reports a serial number if the guest sees the same bytes as for another disk: the first 20 on virtio, IDE, SATA
    /// and NVMe disks, the first 36 on SCSI and USB disks. Two disks with the same source are not reported, because
    /// this is how two paths to one disk are configured; nor are namespaces of one NVMe controller, which has their
    /// serial number.
    ///
    /// ## Why it matters
    /// Guests identify disks by their serial numbers: only one of the two gets the name under `/dev/disk/by-id`, and
    /// which one can change at each boot. multipath treats both as one disk and writes to either.
    ///
    /// ## Use instead
    /// Use a serial number that is unique within the bytes the guest sees. If the guest mounts by the old name under
    /// `/dev/disk/by-id`, change the guest's configuration, too.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <devices>
    ///   <disk type='file' device='disk'>
    ///     <driver name='qemu' type='raw'/>
    ///     <source file='/srv/a.img'/>
    ///     <target dev='vda' bus='virtio'/>
    ///     <serial>web1</serial>
    ///   </disk>
    ///   <disk type='file' device='disk'>
    ///     <driver name='qemu' type='raw'/>
    ///     <source file='/srv/b.img'/>
    ///     <target dev='vdb' bus='virtio'/>
    ///     <serial>web1</serial>
    ///   </disk>
    /// </devices>
    /// ```
    /// The guest sees only the first 20 bytes:
    /// ```xml,reported
    /// <devices>
    ///   <disk type='file' device='disk'>
    ///     <driver name='qemu' type='raw'/>
    ///     <source file='/srv/a.img'/>
    ///     <target dev='vda' bus='virtio'/>
    ///     <serial>8a7e1a4c-5a0b-4a57-9a6c-1f7d0b1c2d3e</serial>
    ///   </disk>
    ///   <disk type='file' device='disk'>
    ///     <driver name='qemu' type='raw'/>
    ///     <source file='/srv/b.img'/>
    ///     <target dev='vdb' bus='virtio'/>
    ///     <serial>8a7e1a4c-5a0b-4a57-9b00-77e0c2a4f6d8</serial>
    ///   </disk>
    /// </devices>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <memory unit='GiB'>1</memory>
    ///   <os><type arch='x86_64' machine='q35'>hvm</type></os>
    ///   <devices>
    ///     <controller type='nvme' index='0'/>
    ///     <controller type='nvme' index='1'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='nvme0n1' bus='nvme'/>
    ///       <serial>one</serial>
    ///       <address type='drive' controller='0' bus='0' target='0' unit='0'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/b.img'/>
    ///       <target dev='nvme1n1' bus='nvme'/>
    ///       <serial>one</serial>
    ///       <address type='drive' controller='1' bus='0' target='0' unit='0'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <devices>
    ///   <disk type='file' device='disk'>
    ///     <driver name='qemu' type='raw'/>
    ///     <source file='/srv/a.img'/>
    ///     <target dev='vda' bus='virtio'/>
    ///     <serial>web1-root</serial>
    ///   </disk>
    ///   <disk type='file' device='disk'>
    ///     <driver name='qemu' type='raw'/>
    ///     <source file='/srv/b.img'/>
    ///     <target dev='vdb' bus='virtio'/>
    ///     <serial>web1-data</serial>
    ///   </disk>
    /// </devices>
    /// ```
    name: "serial-twice",
    group: Group::Clarity,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("schema, define and start accept it without a warning", "virsh of libvirt 9.0 and 11.3, tests/tests/integration/silent.rs; started with QEMU 7.2"),
        Evidence::Source("systemd 60-persistent-storage.rules: names under /dev/disk/by-id contain the serial number"),
    ],
    check: Model(check),
}

/// The controller of an NVMe namespace, which has the serial number for all its namespaces.
fn nvme_controller(disk: &Disk) -> Option<u32> {
    match disk.frontend.address {
        Some(Address::Drive(place)) if disk.frontend.effective_bus() == TargetBus::Nvme => {
            Some(place.controller)
        }
        _ => None,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut first_with: HashMap<&str, (usize, &Disk)> = HashMap::new();
    for (index, disk) in context.disks() {
        let serial = disk.frontend.serial.as_deref().unwrap_or_default();
        let shown = serial::shown(context.domain.frontend_kind(disk), serial);
        if shown.trim().is_empty() {
            continue;
        }
        let Some((first, other)) = first_with.get(shown).copied() else {
            first_with.insert(shown, (index, disk));
            continue;
        };
        let is_one_controller =
            nvme_controller(disk).is_some_and(|own| nvme_controller(other) == Some(own));
        if other.backend.source == disk.backend.source || is_one_controller {
            continue;
        }
        let at = |index| FieldPath::Disk(index, DiskField::Serial);
        report
            .finding(
                at(index),
                phrase!(
                    "{first} and {second} have the same serial number for the guest: {shown}",
                    first = DiskName(first),
                    second = DiskName(index),
                    shown = quoted(shown.to_owned()),
                ),
            )
            .label("already used by another disk")
            .related(at(first), "first used here")
            .help("use serial numbers that differ in the bytes the guest sees");
    }
}
