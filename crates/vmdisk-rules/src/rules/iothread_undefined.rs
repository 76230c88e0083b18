//! `iothread-undefined`

use std::collections::BTreeSet;

use vmdisk_fields::{ControllerName, DiskName, Phrase, all_of, phrase, quoted, setting};
use vmdisk_model::{Change, ControllerField, DiskField, DomainField, FieldPath, IoThreadId};
use vmdisk_rule::{Consumer, Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::iothreads;

declare_rule! {
    /// A disk, a controller or the CPU tuning names an iothread that is not defined.
    ///
    /// ## What it reports
    /// Reports each iothread of a disk, a virtio-scsi controller, a queue mapping, `<iothreadpin>` and
    /// `<iothreadsched>` that neither `<iothreads>` nor `<iothreadids>` defines. `<iothreads>2</iothreads>` defines the
    /// numbers 1 and 2.
    ///
    /// ## Why it matters
    /// libvirt refuses the domain, and QEMU does not start. Schema validation accepts it.
    ///
    /// ## Use instead
    /// Define the iothread with `<iothreads>` or `<iothreadids>` (`-object iothread` on a command line), or name a
    /// defined one. Each iothread costs one thread on the host.
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
    /// Not checked for a disk alone, which does not show the guest's iothreads:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' iothread='1'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>a</name>
    ///   <iothreads>1</iothreads>
    ///   <devices>
    ///     <controller type='scsi' index='0' model='virtio-scsi'>
    ///       <driver>
    ///         <iothreads><iothread id='1'/><iothread id='5'/></iothreads>
    ///       </driver>
    ///     </controller>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>a</name>
    ///   <iothreads>1</iothreads>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' iothread='5'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "iothread-undefined",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_libvirt("iothread '…' not defined in iothreadid", "src/qemu/qemu_validate.c, qemuDomainValidateIothreadMapping"),
        Evidence::refused_by_libvirt("controller iothread '…' not defined in iothreadid", "src/qemu/qemu_validate.c, qemuValidateCheckSCSIControllerIOThreads"),
        Evidence::refused_by_libvirt("Disk iothread '…' not defined in iothreadid", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskIOThreads"),
        Evidence::refused_by_libvirt("Cannot find 'iothread' : …", "src/conf/domain_conf.c, virDomainIOThreadPinDefParseXML and virDomainDefGetIOThreadSched"),
        Evidence::Source("libvirt src/qemu/qemu_validate.c, qemuDomainValidateIothreadMapping: iothread '1' not defined in iothreadid"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let defined = iothreads::defined(context.domain);
    for (index, disk) in context.disks() {
        let frontend = &disk.frontend;
        // Most disks name none.
        if frontend.iothread.is_none() && frontend.iothread_mapping.is_empty() {
            continue;
        }
        let at = |field| FieldPath::Disk(index, field);
        let user = || phrase!("{disk}", disk = DiskName(index));
        let own = IoThreadReference {
            at: at(DiskField::IoThread),
            named: frontend.iothread.into_iter().collect(),
            message: "Disk iothread",
        };
        let mapping = IoThreadReference {
            at: at(DiskField::IoThreadMapping),
            named: iothreads::mapped(&frontend.iothread_mapping).collect(),
            message: "iothread",
        };
        check_place(context, report, &defined, &own, user);
        check_place(context, report, &defined, &mapping, user);
    }
    check_tuning(context, report, &defined);
    for (index, controller) in context.domain.controllers.iter().enumerate() {
        if controller.iothread.is_none() && controller.iothread_mapping.is_empty() {
            continue;
        }
        let at = |field| FieldPath::Controller(index, field);
        let user = || phrase!("{controller}", controller = ControllerName(index));
        let own = IoThreadReference {
            at: at(ControllerField::IoThread),
            named: controller.iothread.into_iter().collect(),
            message: "controller iothread",
        };
        let mapping = IoThreadReference {
            at: at(ControllerField::IoThreadMapping),
            named: iothreads::mapped(&controller.iothread_mapping).collect(),
            message: "iothread",
        };
        check_place(context, report, &defined, &own, user);
        check_place(context, report, &defined, &mapping, user);
    }
}

/// A field that names iothreads.
struct IoThreadReference {
    at: FieldPath,
    named: BTreeSet<IoThreadId>,
    /// The beginning of libvirt's message for this field.
    message: &'static str,
}

fn check_place(
    context: &Context<'_>,
    report: &mut Report,
    defined: &BTreeSet<IoThreadId>,
    place: &IoThreadReference,
    user: impl Fn() -> Phrase,
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
    let finding = report.finding(
        at,
        phrase!(
            "{user} uses {threads}",
            user = user(),
            threads = undefined_threads(&undefined)
        ),
    );
    match context.consumer {
        Consumer::Libvirt => finding.note(phrase!(
            "libvirt: {message}",
            message = quoted(format!(
                "{} '{first}' not defined in iothreadid",
                place.message
            )),
        )),
        Consumer::Qemu => finding.note("QEMU does not find the object, and does not start"),
    };
    if defined.is_empty() {
        finding.label("the guest has no iothreads");
    } else {
        finding.label(phrase!(
            "defined iothreads: {defined}",
            defined = all_of(defined.iter().copied())
        ));
    }
    let count = FieldPath::Domain(DomainField::IoThreads);
    let ids = FieldPath::Domain(DomainField::IoThreadIds);
    if context.consumer == Consumer::Qemu {
        finding.help(phrase!(
            "define iothread {first}, or name a defined one",
            first
        ));
    } else if undefined == iothreads::next(context.domain).as_slice() {
        finding.remedy(Fix::safe([Change::set(count, first.0)]));
    } else if defined.is_empty() {
        finding.help(phrase!(
            "define iothread {first} in {ids}, or use iothread 1 and {one}",
            first,
            ids,
            one = setting(count, 1_u32),
        ));
    } else {
        finding.help(phrase!(
            "name a defined iothread, or define iothread {first} in {ids}",
            first,
            ids,
        ));
    }
}

/// `iothread 1, which is not defined`.
fn undefined_threads(ids: &[IoThreadId]) -> Phrase {
    let all = all_of(ids.iter().copied());
    match ids.len() {
        1 => phrase!("iothread {all}, which is not defined", all),
        _ => phrase!("iothreads {all}, which are not defined", all),
    }
}

/// Checks the CPU tuning, which assigns CPUs and schedulers to iothreads.
fn check_tuning(context: &Context<'_>, report: &mut Report, defined: &BTreeSet<IoThreadId>) {
    let named: BTreeSet<IoThreadId> = context.domain.tuned_iothreads.iter().copied().collect();
    let undefined: Vec<IoThreadId> = named.difference(defined).copied().collect();
    let Some(first) = undefined.first() else {
        return;
    };
    let at = FieldPath::Domain(DomainField::CpuTune);
    report
        .finding(
            at,
            phrase!(
                "{tuning} names {threads}",
                tuning = at,
                threads = undefined_threads(&undefined)
            ),
        )
        .label("tunes an iothread that is not defined")
        .note(format!("libvirt: `Cannot find 'iothread' : {first}`"))
        .help(phrase!(
            "remove the row, or define the iothread with {count} or {ids}",
            count = FieldPath::Domain(DomainField::IoThreads),
            ids = FieldPath::Domain(DomainField::IoThreadIds),
        ));
}
