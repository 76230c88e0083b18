//! `queue-size-refused`

use vmdisk_fields as fields;
use vmdisk_model::{Change, DiskField, FieldPath, FrontendKind};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity};

use super::line::{Line, base_of, line_rule};
use crate::members::Members;
use crate::syntax::value::number_of;

line_rule! {
    /// A virtqueue has a size that QEMU refuses or the guest cannot use.
    ///
    /// ## What it reports
    /// Reports queue sizes of virtio and vhost-user disks that are not a power of two from 4 to 1024, and on command
    /// lines `virtqueue_size` of virtio-scsi. In libvirt XML, 0 means that no size is set, and is not reported.
    ///
    /// ## Why it matters
    /// virtio-blk exits at start with `must be a power of 2 (max 1024)`. With 2048, virtio-scsi in every version and
    /// vhost-user-blk in QEMU 5.2 abort without a message. If a size such as 100 is accepted, the guest's driver cannot
    /// use the queue, because virtio requires a power of two.
    ///
    /// ## Use instead
    /// Use a power of two, such as `queue_size='256'`, which is the default of virtio-blk.
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
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' queue_size='0'/>
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
    name: "queue-size-refused",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_qemu("must be a power of 2 (max 1024)", "hw/block/virtio-blk.c, virtio_blk_device_realize"),
        Evidence::Source("Virtual I/O Device (VIRTIO) 1.2, 2.7: queue size is always a power of 2"),
    ],
    check: Model(check), Text(check_line),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let Some(size) = disk.frontend.queue_size else {
            continue;
        };
        let values = fields::disk(DiskField::QueueSize).values;
        // libvirt passes no size on for 0.
        if values.has(size.into()) || (size == 0 && context.is_for_libvirt()) {
            continue;
        }
        let word = match context.domain.frontend_kind(disk) {
            FrontendKind::VirtioBlk => "which QEMU refuses",
            FrontendKind::VhostUserBlk if size > 1024 => "which QEMU refuses, and 5.2 aborts on",
            FrontendKind::VhostUserBlk => "which no guest can use",
            _ => continue,
        };
        let fitting = size.clamp(4, 1024).next_power_of_two().min(1024);
        let at = FieldPath::Disk(index, DiskField::QueueSize);
        report
            .finding(
                at,
                format!(
                    "`{}` has queues of {size} request{}, {word}",
                    disk.name(),
                    if size == 1 { "" } else { "s" },
                ),
            )
            .label(format!("not {}", values.expected()))
            .help(format!("use queue_size='{fitting}'; the default is 256"))
            .fix(Fix::safe([Change::set(at, fitting)]));
    }
}

pub(super) fn check_line(line: &Line<'_>, report: &mut Report) {
    for (option, driver, device) in line.index.devices() {
        if base_of(driver) == "virtio-scsi" {
            check_virtqueue_size(line, report, option, device);
        }
    }
}

fn check_virtqueue_size(line: &Line<'_>, report: &mut Report, option: usize, device: Members<'_>) {
    let Some(property) = device.get("virtqueue_size") else {
        return;
    };
    let Some(size) = number_of(property.value.as_str()) else {
        return;
    };
    let message = match size {
        0..=2 => format!("virtqueue_size of {size}: QEMU accepts 3 or more"),
        1025.. => {
            format!("virtqueue_size of {size}: QEMU aborts on more than 1024, without a message")
        }
        _ if !size.is_power_of_two() => {
            format!(
                "virtqueue_size of {size} is not a power of two, so guests cannot use the queue"
            )
        }
        _ => return,
    };
    let help = "use a power of two from 4 to 1024, or remove it to use 256";
    line.refuse(report, option, property.span, message, help);
}
