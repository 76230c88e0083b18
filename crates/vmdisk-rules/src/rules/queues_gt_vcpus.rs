//! `queues-gt-vcpus`

use vmdisk_model::{Change, ControllerField, DiskField, DomainField, FieldPath};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Fix, Group, Report, Severity};

declare_rule! {
    /// A disk or controller has more queues than the guest has processors.
    ///
    /// ## What it does
    /// Reports `queues` of a virtio disk, of a vhost-user disk and of a virtio-scsi controller that is larger than
    /// the largest number of vCPUs.
    ///
    /// ## Why it matters
    /// A queue exists so that a vCPU can send requests without waiting for another. The drivers of Linux and
    /// Windows set up as many as there are vCPUs and leave the rest alone, which then cost an interrupt vector and
    /// ring memory each. libvirt has no upper bound and QEMU none below 1024, so nobody else says so. Without the
    /// attribute QEMU takes one per vCPU, since machine types 5.2.
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
    /// The largest number of vCPUs counts, not the number at start:
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
    pub(super) static RULE = {
        name: "queues-gt-vcpus",
        group: Group::Clarity,
        severity: Severity::Advice,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "num-queues above the number of vCPUs is accepted without a word",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1, and virsh create of libvirt 9.0 with queues=64 and 2 vCPUs",
            },
            Evidence::Source("Linux drivers/block/virtio_blk.c, init_vq: the number of queues is bounded by nr_cpu_ids"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let frontend = &disk.frontend;
        let Some(queues) = frontend.queues else {
            continue;
        };
        look(
            context,
            report,
            &Queues {
                at: FieldPath::Disk(index, DiskField::Queues),
                user: || format!("`{}`", disk.name()),
                queues,
                is_mapped: !frontend.iothread_mapping.is_empty(),
            },
        );
    }
    for (index, controller) in context.domain.controllers.iter().enumerate() {
        let Some(queues) = controller.queues else {
            continue;
        };
        look(
            context,
            report,
            &Queues {
                at: FieldPath::Controller(index, ControllerField::Queues),
                user: || match controller.index {
                    Some(number) => format!("{} controller {number}", controller.controller_type),
                    None => format!("a {} controller", controller.controller_type),
                },
                queues,
                is_mapped: !controller.iothread_mapping.is_empty(),
            },
        );
    }
}

/// A number of queues that was written.
struct Queues<F> {
    at: FieldPath,
    user: F,
    queues: u32,
    /// Single queues are given to iothreads by their numbers.
    is_mapped: bool,
}

fn look(context: &Context<'_>, report: &mut Report, found: &Queues<impl Fn() -> String>) {
    let Queues {
        at,
        user,
        queues,
        is_mapped,
    } = found;
    // One queue is never too many.
    if *queues <= 1 {
        return;
    }
    let guest = context.whole_guest(|| "the number of vCPUs".to_owned());
    let Some(domain) = report.require(*at, guest) else {
        return;
    };
    let vcpus = domain.effective_vcpus();
    if *queues <= vcpus {
        return;
    }
    let s = if vcpus == 1 { "" } else { "s" };
    let finding = report.finding(
        *at,
        format!("{} has {queues} queues for {vcpus} vCPU{s}", user()),
    );
    finding
        .label(format!("{} more than can be used", queues - vcpus))
        .related(FieldPath::Domain(DomainField::Vcpus), "the vCPUs")
        .note("guest drivers set up one queue for each vCPU and leave the rest alone")
        .help(format!("write queues='{vcpus}'"));
    // Fewer queues would take some away that the mapping gives to iothreads.
    if !is_mapped {
        finding.fix(Fix::safe([Change::set(*at, vcpus.to_string())]));
    }
}
