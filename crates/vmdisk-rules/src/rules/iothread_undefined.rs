//! `iothread-undefined`

use std::collections::BTreeSet;

use vmdisk_model::{Change, ControllerField, DiskField, DomainField, FieldPath, IoThreadId};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Fix, Group, Report, Severity, TakenBy, iothreads};

declare_rule! {
    /// A disk, a controller or the CPU tuning names an iothread that the guest does not have.
    ///
    /// ## What it does
    /// Reports `iothread` of a disk or of a virtio-scsi controller, each number in a queue mapping, and each number in
    /// `<iothreadpin>` and `<iothreadsched>` that neither `<iothreads>` nor `<iothreadids>` defines.
    /// `<iothreads>2</iothreads>` defines the numbers 1 and 2.
    ///
    /// ## Why it matters
    /// libvirt refuses the domain. Schema validation does not notice.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' iothread='1'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <iothreads>1</iothreads>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' iothread='1'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <iothreads>1</iothreads>
    ///   <cputune>
    ///     <iothreadpin iothread='1' cpuset='0'/>
    ///     <iothreadpin iothread='2' cpuset='1'/>
    ///   </cputune>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' iothread='1'/>
    ///       <source file='/srv/web1.qcow2'/>
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
    ///   <cputune>
    ///     <iothreadpin iothread='1' cpuset='0'/>
    ///     <iothreadsched iothreads='1-2' scheduler='batch'/>
    ///   </cputune>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' iothread='1'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <iothreads>1</iothreads>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' iothread='1'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// A disk alone does not show the machine's iothreads:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' iothread='1'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "iothread-undefined",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::refused_by_libvirt("iothread '…' not defined in iothreadid", "src/qemu/qemu_validate.c, qemuDomainValidateIothreadMapping"),
            Evidence::refused_by_libvirt("controller iothread '…' not defined in iothreadid", "src/qemu/qemu_validate.c, qemuDomainCheckSCSIControllerIOThreads"),
            Evidence::refused_by_libvirt("Disk iothread '…' not defined in iothreadid", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskIOThreads"),
            Evidence::refused_by_libvirt("Cannot find 'iothread' : …", "src/conf/domain_conf.c, virDomainIOThreadPinDefParseXML and virDomainIOThreadSchedParse"),
            Evidence::Source("libvirt src/qemu/qemu_validate.c, qemuDomainValidateIothreadMapping: iothread '1' not defined in iothreadid"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let defined = iothreads::defined(context.domain);
    for (index, disk) in context.disks() {
        let frontend = &disk.frontend;
        let at = |field| FieldPath::Disk(index, field);
        let user = || format!("`{}`", disk.name());
        let own = Place {
            at: at(DiskField::IoThread),
            named: frontend.iothread.into_iter().collect(),
            libvirt: "Disk iothread",
        };
        let mapping = Place {
            at: at(DiskField::IoThreadMapping),
            named: iothreads::mapped(&frontend.iothread_mapping).collect(),
            libvirt: "iothread",
        };
        look(context, report, &defined, &own, user);
        look(context, report, &defined, &mapping, user);
    }
    look_at_tuning(context, report, &defined);
    for (index, controller) in context.domain.controllers.iter().enumerate() {
        let at = |field| FieldPath::Controller(index, field);
        let kind = controller.controller_type;
        let user = || match controller.index {
            Some(number) => format!("{kind} controller {number}"),
            None => format!("a {kind} controller"),
        };
        let own = Place {
            at: at(ControllerField::IoThread),
            named: controller.iothread.into_iter().collect(),
            libvirt: "controller iothread",
        };
        let mapping = Place {
            at: at(ControllerField::IoThreadMapping),
            named: iothreads::mapped(&controller.iothread_mapping).collect(),
            libvirt: "iothread",
        };
        look(context, report, &defined, &own, user);
        look(context, report, &defined, &mapping, user);
    }
}

/// A place that names iothreads.
struct Place {
    at: FieldPath,
    named: BTreeSet<IoThreadId>,
    /// How libvirt's text begins for this place.
    libvirt: &'static str,
}

fn look(
    context: &Context<'_>,
    report: &mut Report,
    defined: &BTreeSet<IoThreadId>,
    place: &Place,
    user: impl Fn() -> String,
) {
    let undefined: Vec<IoThreadId> = place.named.difference(defined).copied().collect();
    let Some(first) = undefined.first().copied() else {
        return;
    };
    let what = || "the iothreads of the guest".to_owned();
    let at = place.at;
    if report.require(at, context.whole_guest(what)).is_none() {
        return;
    }
    let (threads, words) = match undefined.len() {
        1 => ("iothread", "which does not exist"),
        _ => ("iothreads", "which do not exist"),
    };
    let finding = report.finding(
        at,
        format!(
            "{} runs in {threads} {}, {words}",
            user(),
            iothreads::words(undefined.iter().copied())
        ),
    );
    match context.taken_by {
        TakenBy::Libvirt => finding.note(format!(
            "libvirt refuses the domain: {} '{first}' not defined in iothreadid",
            place.libvirt
        )),
        TakenBy::Qemu => finding.note("QEMU does not find the object, and does not start"),
    };
    if defined.is_empty() {
        finding.label("the guest has no iothreads");
    } else {
        let has = iothreads::words(defined.iter().copied());
        finding.label(format!("the guest has {has}"));
    }
    if context.taken_by == TakenBy::Qemu {
        finding.help(
            "write -object iothread,id=… with the name that stands here, or name one that exists",
        );
    } else if undefined == iothreads::next(context.domain).as_slice() {
        finding
            .help(format!(
                "write <iothreads>{first}</iothreads> in the domain"
            ))
            .fix(Fix::safe([Change::set(
                FieldPath::Domain(DomainField::IoThreads),
                first.to_string(),
            )]));
    } else if defined.is_empty() {
        finding.help(format!(
            "write <iothreadids><iothread id='{first}'/></iothreadids> in the domain, or count from 1 with <iothreads>1</iothreads>"
        ));
    } else {
        finding.help("name an iothread that exists, or add this one to <iothreadids>");
    }
}

/// `<cputune>`, which gives iothreads CPUs and schedulers.
fn look_at_tuning(context: &Context<'_>, report: &mut Report, defined: &BTreeSet<IoThreadId>) {
    let named: BTreeSet<IoThreadId> = context.domain.tuned_iothreads.iter().copied().collect();
    let undefined: Vec<IoThreadId> = named.difference(defined).copied().collect();
    let Some(first) = undefined.first() else {
        return;
    };
    let (threads, words) = match undefined.len() {
        1 => ("iothread", "which does not exist"),
        _ => ("iothreads", "which do not exist"),
    };
    report
        .finding(
            FieldPath::Domain(DomainField::CpuTune),
            format!(
                "<cputune> names {threads} {}, {words}",
                iothreads::words(undefined.iter().copied())
            ),
        )
        .label("for an iothread that does not exist")
        .note(format!(
            "libvirt refuses the domain: Cannot find 'iothread' : {first}"
        ))
        .help("remove the row, or define the iothread with <iothreads> or <iothreadids>");
}
