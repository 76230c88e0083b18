//! `boot-order-twice`

use std::collections::HashMap;

use vmdisk_fields::{DiskName, phrase};
use vmdisk_model::{DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity};

use super::line::{Line, line_rule};
use super::places::number;

line_rule! {
    /// A disk has the boot order of another device.
    ///
    /// ## What it reports
    /// Reports a second disk with the same `<boot order='…'/>` or `bootindex`, and on command lines another device with the
    /// `bootindex` of a disk. In XML, `taken-by-other-device` compares disks with other devices.
    ///
    /// ## Why it matters
    /// libvirt refuses to define the guest with `boot order '1' used for more than one device`. QEMU exits at start
    /// with `The bootindex 1 has already been used`. This usually happens when a disk's XML is copied.
    ///
    /// ## Use instead
    /// Give each device its own number, or remove the boot order from disks that the guest does not boot from.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <boot order='1'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/b.img'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///       <boot order='1'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -blockdev driver=file,node-name=f1,filename=/srv/b.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,bootindex=1 \
    ///   -device virtio-blk-pci,drive=f1,id=vdb,bootindex=1
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,bootindex=1 \
    ///   -netdev user,id=n0 -device virtio-net-pci,netdev=n0,bootindex=1
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,bootindex=1 \
    ///   -netdev user,id=n0 -device virtio-net-pci,netdev=n0,bootindex=2
    /// ```
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <boot order='1'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/b.img'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///       <boot order='2'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "boot-order-twice",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_libvirt("boot order '…' used for more than one device", "src/conf/domain_postparse.c, virDomainDefCollectBootOrder"),
        Evidence::refused_by_qemu("The bootindex 1 has already been used", "softmmu/bootdevice.c, check_boot_index; system/bootdevice.c since 8.2"),
    ],
    check: Model(check), Text(check_line),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut first: HashMap<u32, usize> = HashMap::new();
    for (index, disk) in context.disks() {
        let Some(order) = disk.frontend.boot_order else {
            continue;
        };
        let Some(other) = first.get(&order).copied() else {
            first.insert(order, index);
            continue;
        };
        report
            .finding(
                FieldPath::Disk(index, DiskField::BootOrder),
                phrase!(
                    "{disk} and {other} have the same boot order {order}",
                    other = DiskName(other),
                    order,
                ),
            )
            .label("already in use")
            .related(
                FieldPath::Disk(other, DiskField::BootOrder),
                "used by this disk",
            )
            .help("give each disk its own number");
    }
}

/// Devices that are not disks, with the boot order of a disk.
pub(super) fn check_line(line: &Line<'_>, report: &mut Report) {
    let disks: HashMap<u64, usize> = line
        .context
        .disks()
        .filter_map(|(index, disk)| Some((u64::from(disk.frontend.boot_order?), index)))
        .collect();
    for (option, driver, device) in line.index.devices() {
        let Some((order, span)) = number(device, "bootindex") else {
            continue;
        };
        let Some(disk) = disks.get(&order).copied() else {
            continue;
        };
        if line.owner(option).disk().is_some() {
            continue;
        }
        let message = phrase!(
            "`{driver}` and {disk} have the same boot order {order}",
            driver = driver.to_owned(),
            disk = DiskName(disk),
            order,
        );
        let help = "give each device its own number";
        line.refuse(report, option, span, message, help).related(
            FieldPath::Disk(disk, DiskField::BootOrder),
            "used by this disk",
        );
    }
}
