//! `queue-count-refused`

use vmdisk_fields as fields;
use vmdisk_model::{ControllerField, ControllerType, DiskField, FieldPath, FrontendKind};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity};

use super::line::line_rule;

line_rule! {
    /// A device has a number of queues that QEMU refuses or crashes with.
    ///
    /// ## What it reports
    /// Reports 0 queues and more than 1024 on virtio and vhost-user disks, 0 and more than 1022 on virtio-scsi
    /// controllers, and more on a vhost-user disk than its daemon offers, which is 1 by default. The value 65535 of
    /// virtio-blk means one queue per vCPU and is not reported. In libvirt XML, 0 means that no number is set, and is
    /// not reported.
    ///
    /// ## Why it matters
    /// With more than 1024 queues on virtio-blk, QEMU aborts (SIGABRT) without a message. The other cases have one,
    /// such as `Invalid number of queues` or `The maximum number of queues supported by the backend is`. Without
    /// `num-queues`, QEMU requests one queue per vCPU, which can exceed what the daemon offers after vCPUs are added.
    ///
    /// ## Use instead
    /// Remove the number: QEMU then uses one queue per vCPU, and more is not useful. For a vhost-user disk set the same
    /// number on both sides, such as `num-queues=4` in the `--export` of `qemu-storage-daemon`.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' queues='2000'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,num-queues=1025
    /// ```
    /// ```args,reported
    /// qemu-storage-daemon \
    ///   --blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   --export type=vhost-user-blk,id=e0,node-name=f0,addr.type=unix,addr.path=/run/web1.sock,writable=on,num-queues=2 &
    ///
    /// qemu-system-x86_64 -nodefaults -machine q35,memory-backend=mem0 -m 1G -smp 4 \
    ///   -object memory-backend-memfd,id=mem0,size=1G,share=on \
    ///   -chardev socket,id=vub,path=/run/web1.sock \
    ///   -device vhost-user-blk-pci,chardev=vub,id=vda,config-wce=off
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' queues='8'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' queues='0'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,num-queues=1024
    /// ```
    /// ```args,not-reported
    /// qemu-storage-daemon \
    ///   --blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   --export type=vhost-user-blk,id=e0,node-name=f0,addr.type=unix,addr.path=/run/web1.sock,writable=on,num-queues=4 &
    ///
    /// qemu-system-x86_64 -nodefaults -machine q35,memory-backend=mem0 -m 1G -smp 4 \
    ///   -object memory-backend-memfd,id=mem0,size=1G,share=on \
    ///   -chardev socket,id=vub,path=/run/web1.sock \
    ///   -device vhost-user-blk-pci,chardev=vub,id=vda,config-wce=off
    /// ```
    name: "queue-count-refused",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::measured("num-queues=1025 ends with SIGABRT and an empty stderr", "QEMU 5.2, 7.2, 10.0 and 11.1"),
        Evidence::refused_by_qemu("Invalid number of queues (= 0), must be a positive integer less than 1022.", "hw/scsi/virtio-scsi.c, virtio_scsi_common_realize"),
        Evidence::refused_by("QEMU 7.2 and later", "The maximum number of queues supported by the backend is", "hw/virtio/vhost-user.c, vhost_user_backend_init"),
    ],
    supersedes: &["queues-gt-vcpus"],
    check: Model(check),
}

/// virtio-blk's value for "one per vCPU".
const AUTOMATIC: u32 = 65_535;

fn check(context: &Context<'_>, report: &mut Report) {
    // libvirt passes no number on for 0.
    let is_unset = |queues: u32| queues == 0 && context.is_for_libvirt();
    let values = fields::disk(DiskField::Queues).values;
    for (index, disk) in context.disks() {
        let Some(queues) = disk.frontend.queues else {
            continue;
        };
        let (is_automatic, is_survived) = match context.domain.frontend_kind(disk) {
            FrontendKind::VirtioBlk => (queues == AUTOMATIC, queues == 0),
            FrontendKind::VhostUserBlk => (false, true),
            _ => continue,
        };
        if is_automatic || is_unset(queues) || values.has(queues.into()) {
            continue;
        }
        let outcome = if is_survived {
            "QEMU refuses it"
        } else {
            "QEMU aborts on it"
        };
        report
            .finding(
                FieldPath::Disk(index, DiskField::Queues),
                format!("`{}` has {queues} queues: {outcome}", disk.name()),
            )
            .label(format!("QEMU accepts {}", values.expected()))
            .help("remove it: QEMU uses one queue per vCPU");
    }
    for (index, controller) in context.domain.controllers.iter().enumerate() {
        let is_virtio = controller.scsi_model.is_some_and(|model| model.is_virtio());
        let Some(queues) = controller
            .queues
            .filter(|_| controller.controller_type == ControllerType::Scsi && is_virtio)
        else {
            continue;
        };
        if !is_unset(queues) && !(1..=1022).contains(&queues) {
            report
                .finding(
                    FieldPath::Controller(index, ControllerField::Queues),
                    format!("a virtio-scsi controller has {queues} queues, which QEMU refuses"),
                )
                .label("QEMU accepts 1 to 1022")
                .help("remove it: QEMU uses one queue per vCPU");
        }
    }
}
