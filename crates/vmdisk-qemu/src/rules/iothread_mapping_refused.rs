//! `iothread-mapping-refused`

use std::collections::HashSet;

use vmdisk_model::{ControllerField, DiskField, FieldPath, IoThreadQueues};
use vmdisk_rule::{Consumer, Context, Evidence, Group, Report, Severity};

use super::line::{Line, base_of, line_rule};
use crate::members::Members;
use crate::syntax::properties::Kind;

line_rule! {
    /// The mapping of queues to iothreads is invalid.
    ///
    /// ## What it reports
    /// Reports a mapping together with a single iothread, an iothread or queue that is named twice, rows of which only
    /// some name queues, queues that the device does not have, and queues without a row. A mapping without rows, and
    /// more iothreads than queues, are advice: QEMU accepts them, and the additional threads have no work.
    ///
    /// ## Why it matters
    /// libvirt refuses to define the guest, with messages such as `duplicate mapping for iothread`,
    /// `iothread queue '4' mapping out of range` or `missing iothread mapping for queue '3'`. QEMU exits at start. If
    /// the number of queues is not set, it is the number of vCPUs. A mapping that names queues then breaks when vCPUs
    /// are added.
    ///
    /// ## Use instead
    /// Name each iothread once and no queues: QEMU then distributes the queues in turn. If the rows name queues, set
    /// `queues` and name every queue exactly once.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <iothreads>2</iothreads>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' queues='4'>
    ///         <iothreads>
    ///           <iothread id='1'>
    ///             <queue id='0'/>
    ///             <queue id='1'/>
    ///           </iothread>
    ///           <iothread id='2'>
    ///             <queue id='1'/>
    ///             <queue id='2'/>
    ///             <queue id='3'/>
    ///           </iothread>
    ///         </iothreads>
    ///       </driver>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <iothreads>2</iothreads>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' queues='4'>
    ///         <iothreads>
    ///           <iothread id='1'>
    ///             <queue id='0'/>
    ///             <queue id='1'/>
    ///           </iothread>
    ///           <iothread id='2'>
    ///             <queue id='2'/>
    ///             <queue id='3'/>
    ///           </iothread>
    ///         </iothreads>
    ///       </driver>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "iothread-mapping-refused",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_libvirt("disk driver 'iothread' attribute can't be used together with 'iothreads' subelement", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("controller driver 'iothread' attribute can't be used together with 'iothreads' subelement", "src/conf/domain_validate.c, virDomainControllerDefValidate"),
        Evidence::refused_by_libvirt("duplicate mapping for iothread '…'", "src/qemu/qemu_validate.c, qemuDomainValidateIothreadMapping"),
        Evidence::refused_by_libvirt("iothread to queue mapping must be provided for all iothreads or for none", "src/qemu/qemu_validate.c, qemuDomainValidateIothreadMapping"),
        Evidence::refused_by_libvirt("iothread queue '…' mapping out of range", "src/qemu/qemu_validate.c, qemuDomainValidateIothreadMapping"),
        Evidence::refused_by_libvirt("iothread queue '…' is already assigned", "src/qemu/qemu_validate.c, qemuDomainValidateIothreadMapping"),
        Evidence::refused_by_libvirt("missing iothread mapping for queue '…'", "src/qemu/qemu_validate.c, qemuDomainValidateIothreadMapping"),
        Evidence::refused_by_libvirt("'queue' count must be configured for explicit iothread to queue mapping", "src/qemu/qemu_validate.c, qemuDomainValidateIothreadMapping"),
        Evidence::refused_by_qemu("because it is already assigned", "hw/virtio/iothread-vq-mapping.c (10.0)"),
        Evidence::refused_by_qemu("iothread and iothread-vq-mapping properties cannot be set at the same time", "hw/block/virtio-blk.c (10.0)"),
    ],
    check: Model(check), Text(check_line),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let vcpus = context.vcpus();
    let by_default = vcpus.is_ok().then(|| context.domain.queues_by_default());
    // 0 is refused on a command line, and unset in libvirt.
    let written = |queues: Option<u32>| queues.filter(|queues| *queues != 0);
    let must_be_written = context.consumer == Consumer::Libvirt;
    for (index, disk) in context.disks() {
        let frontend = &disk.frontend;
        let owner = || format!("`{}`", disk.name());
        let at = FieldPath::Disk(index, DiskField::IoThreadMapping);
        look(
            report,
            at,
            owner,
            &frontend.iothread_mapping,
            Queues {
                written: written(frontend.queues),
                by_default,
                must_be_written,
            },
            frontend.iothread.is_some(),
        );
    }
    for (index, controller) in context.domain.controllers.iter().enumerate() {
        let owner = || format!("a {} controller", controller.controller_type);
        let at = FieldPath::Controller(index, ControllerField::IoThreadMapping);
        look(
            report,
            at,
            owner,
            &controller.iothread_mapping,
            Queues {
                written: written(controller.queues),
                by_default,
                must_be_written,
            },
            controller.iothread.is_some(),
        );
    }
}

/// The number of queues of a device, as far as it is known.
struct Queues {
    written: Option<u32>,
    by_default: Option<u32>,
    /// libvirt does not derive it from the vCPUs.
    must_be_written: bool,
}

fn look(
    report: &mut Report,
    at: FieldPath,
    owner: impl Fn() -> String,
    rows: &[IoThreadQueues],
    queues: Queues,
    has_iothread: bool,
) {
    if rows.is_empty() {
        return;
    }
    let names_queues = rows.iter().any(|row| !row.queues.is_empty());
    let is_silent = queues.must_be_written && queues.written.is_none();
    let queues = queues.written.or(queues.by_default);
    let fault = if has_iothread {
        Some("the disk also has a single iothread".to_owned())
    } else {
        let unwritten = || "libvirt requires the number of queues if rows name queues".to_owned();
        fault(rows, queues).or_else(|| (is_silent && names_queues).then(unwritten))
    };
    if let Some(fault) = fault {
        report
            .finding(at, format!("the mapping of the queues of {} is refused: {fault}", owner()))
            .label("QEMU does not start with it")
            .help("name each iothread once and no queues, so that QEMU distributes them; or name every queue once");
    } else if let Some(queues) = queues.filter(|queues| (*queues as usize) < rows.len()) {
        let s = if queues == 1 { "" } else { "s" };
        report
            .finding(
                at,
                format!(
                    "{} has {} iothreads for {queues} queue{s}",
                    owner(),
                    rows.len()
                ),
            )
            .label("each queue runs in one iothread, so the other iothreads are idle")
            .help("use at most one iothread per queue")
            .severity(Severity::Advice);
    }
}

fn fault(rows: &[IoThreadQueues], queues: Option<u32>) -> Option<String> {
    let mut threads = HashSet::new();
    if let Some(row) = rows.iter().find(|row| !threads.insert(row.iothread)) {
        return Some(format!("iothread {} is named twice", row.iothread));
    }
    let with_queues = rows.iter().filter(|row| !row.queues.is_empty()).count();
    if with_queues == 0 {
        return None;
    }
    if with_queues < rows.len() {
        return Some("only some rows name queues".to_owned());
    }
    let mut named = HashSet::new();
    for queue in rows.iter().flat_map(|row| row.queues.iter()) {
        if !named.insert(*queue) {
            return Some(format!("queue {queue} is named twice"));
        }
    }
    let count = queues?;
    if let Some(queue) = named.iter().filter(|queue| **queue >= count).max() {
        return Some(format!(
            "queue {queue} is out of range: there are {count} queues, numbered from 0"
        ));
    }
    // All queues are below `count`, and none is repeated.
    let missing = (0..count).find(|queue| !named.contains(queue))?;
    Some(format!("queue {missing} of {count} has no row"))
}

pub(super) fn check_line(line: &Line<'_>, report: &mut Report) {
    for (option, driver, device) in line.index.devices() {
        if matches!(base_of(driver), "virtio-scsi" | "virtio-blk") {
            check_mapping(line, report, option, device);
        }
    }
}

/// A mapping without rows leaves all queues in the main loop.
fn check_mapping(line: &Line<'_>, report: &mut Report, option: usize, device: Members<'_>) {
    let empty = device
        .get("iothread-vq-mapping")
        .filter(|it| it.kind == Kind::EmptyArray);
    if let Some(empty) = empty {
        let message = "iothread-vq-mapping has no rows, so every queue stays in the main loop";
        let help = "add a row for each iothread, or remove the mapping";
        line.refuse(report, option, empty.span, message, help)
            .severity(Severity::Advice);
    }
}
