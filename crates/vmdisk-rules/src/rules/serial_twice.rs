//! `serial-twice`

use std::collections::HashMap;

use vmdisk_model::{Disk, DiskField, FieldPath};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity, serial};

declare_rule! {
    /// Two disks of a guest show the same serial number.
    ///
    /// ## What it does
    /// Reports a serial number whose bytes that the guest sees are those of another disk: the first 20 on virtio, IDE,
    /// SATA and NVMe disks, the first 36 on SCSI and USB disks. Two disks with the same source are left alone, which is
    /// how two paths to one disk are made.
    ///
    /// ## Why it matters
    /// Guests tell disks apart by their serial numbers: only one of the two gets the name under `/dev/disk/by-id`,
    /// and which one differs from boot to boot. multipath takes both for one disk, and writes to either.
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
    /// The guest sees 20 bytes of each.
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
    pub(super) static RULE = {
        name: "serial-twice",
        group: Group::Clarity,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "schema, define and start take it without a word",
                how: "virsh of libvirt 9.0 and 11.3, tests/tests/integration/silent.rs; started with QEMU 7.2",
            },
            Evidence::Source("systemd 60-persistent-storage.rules: names under /dev/disk/by-id are made of the serial number"),
        ],
        supersedes: &[],
        check: check,
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
        if other.backend.source == disk.backend.source {
            continue;
        }
        let at = |index| FieldPath::Disk(index, DiskField::Serial);
        report
            .finding(
                at(index),
                format!(
                    "`{}` and `{}` show the guest one serial number, `{shown}`",
                    other.name(),
                    disk.name()
                ),
            )
            .label("shown by a disk above")
            .related(at(first), "here first")
            .help(
                "give each disk a serial number of its own, which differs in what the guest sees",
            );
    }
}
