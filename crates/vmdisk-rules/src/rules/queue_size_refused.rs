//! `queue-size-refused`

use vmdisk_model::{Change, DiskField, FieldPath, FrontendKind};
use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Fix, Group, Report, Severity};

declare_rule! {
    /// A virtqueue has a size that QEMU refuses, or that no guest can use.
    ///
    /// ## What it does
    /// Reports queue sizes of virtio and vhost-user disks that are no power of two from 4 to 1024, and on command
    /// lines `virtqueue_size` of virtio-scsi.
    ///
    /// ## Why it matters
    /// virtio-blk with another size does not start. With 2048 vhost-user-blk of QEMU 5.2 and virtio-scsi of every
    /// version abort without a message. Where a size such as 100 is accepted, the guest's driver cannot set the
    /// queue up: the ring of virtio 1.0 has a power of two.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' queue_size='1000'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' queue_size='1024'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -device virtio-scsi-pci,id=scsi0,virtqueue_size=2048 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device scsi-hd,drive=f0,id=sda,bus=scsi0.0
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' queue_size='512'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -device virtio-scsi-pci,id=scsi0,virtqueue_size=512 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device scsi-hd,drive=f0,id=sda,bus=scsi0.0
    /// ```
    pub(super) static RULE = {
        name: "queue-size-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "must be a power of 2 (max 1024)",
                source: "hw/block/virtio-blk.c, virtio_blk_device_realize",
            },
            Evidence::Source("Virtual I/O Device (VIRTIO) 1.2, 2.7: queue size is always a power of 2"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::QueueSizeRefused);
    for (index, disk) in context.disks() {
        let Some(size) = disk.frontend.queue_size else {
            continue;
        };
        let word = match context.domain.frontend_kind(disk) {
            FrontendKind::VirtioBlk => "which QEMU refuses",
            FrontendKind::VhostUserBlk if size > 1024 => "which QEMU refuses, and 5.2 aborts on",
            FrontendKind::VhostUserBlk => "which no guest can use",
            FrontendKind::VirtioScsi
            | FrontendKind::Scsi
            | FrontendKind::Sata
            | FrontendKind::Ide
            | FrontendKind::Usb
            | FrontendKind::Fdc
            | FrontendKind::Nvme
            | FrontendKind::Sd
            | FrontendKind::Foreign => continue,
        };
        if size.is_power_of_two() && (4..=1024).contains(&size) {
            continue;
        }
        let fitting = size.clamp(4, 1024).next_power_of_two().min(1024);
        let at = FieldPath::Disk(index, DiskField::QueueSize);
        report
            .finding(
                at,
                format!("`{}` has queues of {size} requests, {word}", disk.name()),
            )
            .label("no power of two from 4 to 1024")
            .help(format!("write queue_size='{fitting}'; 256 is the default"))
            .fix(Fix::safe([Change::set(at, fitting.to_string())]));
    }
}
