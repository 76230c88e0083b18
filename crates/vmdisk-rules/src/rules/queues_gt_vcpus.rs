//! `queues-gt-vcpus`

use vmdisk_fields::{DiskName, Phrase, phrase, setting};
use vmdisk_model::{Change, ControllerField, DiskField, DomainField, FieldPath, TargetBus};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use super::controller_refused::may_be_virtio_scsi;

declare_rule! {
    /// A disk or controller has more queues than the guest has vCPUs.
    ///
    /// ## What it reports
    /// Reports `queues` of a virtio disk, a vhost-user disk or a virtio-scsi controller that exceeds the maximum number
    /// of vCPUs.
    ///
    /// ## Why it matters
    /// Each vCPU uses one queue, to send requests without waiting for another vCPU. The drivers of Linux and Windows
    /// set up one queue per vCPU; each further queue costs an interrupt vector and ring memory. libvirt sets no limit
    /// and QEMU's is 1024, so neither reports it.
    ///
    /// ## Use instead
    /// Use at most as many queues as vCPUs, or remove `queues`: since machine types 5.2, QEMU uses one queue per vCPU
    /// by default.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>2</vcpu>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' queues='64'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>2</vcpu>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' queues='2'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// The maximum number of vCPUs counts, not the number at start:
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu current='2'>8</vcpu>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' queues='8'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// A disk alone does not show the machine's vCPUs:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' queues='64'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>a</name>
    ///   <vcpu>1</vcpu>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' queues='4'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>a</name>
    ///   <vcpu>2</vcpu>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' queues='4'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "queues-gt-vcpus",
    group: Group::Clarity,
    severity: Severity::Advice,
    evidence: &[
        Evidence::measured("num-queues above the number of vCPUs is accepted without a warning", "QEMU 5.2, 7.2, 10.0 and 11.1, and virsh create of libvirt 9.0 with queues=64 and 2 vCPUs"),
        Evidence::Source("Linux drivers/block/virtio_blk.c, init_vq: the number of queues is bounded by nr_cpu_ids"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let frontend = &disk.frontend;
        let Some(queues) = frontend.queues else {
            continue;
        };
        // On another bus, libvirt refuses the option itself, which `bus-option-refused` reports.
        if frontend.effective_bus() != TargetBus::Virtio {
            continue;
        }
        look(
            context,
            report,
            &Queues {
                at: FieldPath::Disk(index, DiskField::Queues),
                user: || phrase!("{disk}", disk = DiskName(index)),
                queues,
                is_mapped: !frontend.iothread_mapping.is_empty(),
            },
        );
    }
    for (index, controller) in context.domain.controllers.iter().enumerate() {
        let Some(queues) = controller.queues else {
            continue;
        };
        // Other controllers have no queues to set, which `controller-refused` reports.
        if !may_be_virtio_scsi(context.domain, controller) {
            continue;
        }
        look(
            context,
            report,
            &Queues {
                at: FieldPath::Controller(index, ControllerField::Queues),
                user: || match controller.index {
                    Some(number) => {
                        format!("{} controller {number}", controller.controller_type).into()
                    }
                    None => format!("a {} controller", controller.controller_type).into(),
                },
                queues,
                is_mapped: !controller.iothread_mapping.is_empty(),
            },
        );
    }
}

/// The queues of a disk or controller.
struct Queues<F> {
    at: FieldPath,
    user: F,
    queues: u32,
    /// True if single queues are assigned to iothreads by number.
    is_mapped: bool,
}

fn look(context: &Context<'_>, report: &mut Report, found: &Queues<impl Fn() -> Phrase>) {
    let Queues {
        at,
        user,
        queues,
        is_mapped,
    } = found;
    if *queues <= 1 {
        return;
    }
    let Some(vcpus) = report.require(*at, context.vcpus()) else {
        return;
    };
    if *queues <= vcpus {
        return;
    }
    let s = if vcpus == 1 { "" } else { "s" };
    let finding = report.finding(
        *at,
        phrase!(
            "{user} has {queues} queues for {vcpus} vCPU{s}",
            user = user(),
            queues = *queues,
            vcpus,
            s,
        ),
    );
    finding
        .label(format!("{} more than the guest can use", queues - vcpus))
        .related(FieldPath::Domain(DomainField::Vcpus), "the vCPUs")
        .note("guest drivers set up one queue for each vCPU and leave the others unused")
        .help(phrase!("use {queues}", queues = setting(*at, vcpus)));
    // Fewer queues would break a mapping of queues to iothreads.
    if !is_mapped {
        finding.fix(Fix::safe([Change::set(*at, vcpus)]));
    }
}
