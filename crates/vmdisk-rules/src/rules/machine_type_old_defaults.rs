//! `machine-type-old-defaults`

use vmdisk_facts::{Capability, Target};
use vmdisk_fields::{DiskName, Phrase, phrase, quoted};
use vmdisk_model::{Discard, Disk, Domain, DomainField, FieldPath, Format, FrontendKind, Scope};
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

declare_rule! {
    /// An old machine type has old defaults for the disks.
    ///
    /// ## What it reports
    /// Reports machine types that make any QEMU behave like an old version: virtio-blk without discard (until 3.1),
    /// queues of 128 requests (until 4.2), one queue for all vCPUs (until 5.1), no discard granularity for the guest
    /// (until 5.2), two interrupts for all queues (until 2.11), and virtio without its modern interface (until 2.6).
    /// Only defaults that affect these disks are reported. `vmdisk facts qemu --target machine=NAME` lists all of
    /// them.
    ///
    /// ## Why it matters
    /// A guest keeps its machine type through every update of the host. A configured discard then silently frees
    /// nothing; this is a warning. The rest costs speed, and is advice.
    ///
    /// ## Use instead
    /// Use a newer machine type: `virsh edit`, and set `machine=` to a version that the help names or later. The guest
    /// sees different hardware: Windows may need a new activation, and a guest cannot migrate between machine types.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <os><type machine='pc-q35-3.1'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' discard='unmap'/>
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
    ///   <os><type machine='pc-q35-7.2'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' discard='unmap'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// The old defaults do not affect disks on other buses:
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <os><type machine='pc-q35-3.1'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' discard='unmap'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='sda' bus='sata'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked for machine types of a distribution, which do not follow QEMU's versions:
    /// ```xml,not-checked
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <os><type machine='pc-i440fx-rhel7.6.0'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' discard='unmap'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported,hidden
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <os><type machine='pc-q35-5.2'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' discard='unmap'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <os><type machine='pc-q35-5.2'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' discard='unmap'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported,hidden
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>1</vcpu>
    ///   <os><type machine='pc-q35-5.1'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>2</vcpu>
    ///   <os><type machine='pc-q35-5.1'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <os><type machine='pc-q35-2.11'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' queues='1'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <os><type machine='pc-q35-2.11'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' queues='2'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <os><type machine='pc-i440fx-2.6'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' queues='2'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "machine-type-old-defaults",
    group: Group::Performance,
    severity: Severity::Advice,
    evidence: &[
        Evidence::measured("the last machine type with each old default has it, and the first without has the new one", "qom-get on QEMU 5.2, 7.2, 10.0 and 11.1 with 17 machine types, tests/tests/real_qemu/capabilities.rs"),
        Evidence::Source("QEMU hw/core/machine.c: hw_compat_2_6, 2_11, 3_1, 4_2, 5_1, 5_2"),
    ],
    check: Model(check),
}

/// An old default and the disks that it affects.
struct OldDefault {
    capability: Capability,
    severity: Severity,
    /// The effect on them.
    effect: &'static str,
    affects: fn(&Domain, &Disk) -> bool,
}

const DEFAULTS: &[OldDefault] = &[
    OldDefault {
        capability: Capability::MachineVirtioBlkDiscard,
        severity: Severity::Warning,
        effect: "the device does not support discards, so they free nothing",
        affects: |_, disk| disk.backend.discard == Some(Discard::Unmap),
    },
    OldDefault {
        capability: Capability::MachineReportDiscardGranularity,
        severity: Severity::Advice,
        effect: "the guest does not learn that only whole clusters are freed",
        affects: |_, disk| {
            let is_qcow2 = disk
                .backend
                .image()
                .is_some_and(|image| image.format == Some(Format::Qcow2));
            is_qcow2
                && disk.backend.discard == Some(Discard::Unmap)
                && disk.frontend.discard_granularity.is_none()
        },
    },
    OldDefault {
        capability: Capability::MachineQueuePerVcpu,
        severity: Severity::Advice,
        effect: "all vCPUs share one queue",
        affects: |domain, disk| disk.frontend.queues.is_none() && domain.effective_vcpus() > 1,
    },
    OldDefault {
        capability: Capability::MachineQueueSize256,
        severity: Severity::Advice,
        effect: "a queue holds 128 requests instead of 256",
        affects: |_, disk| disk.frontend.queue_size.is_none(),
    },
    OldDefault {
        capability: Capability::MachineVectorPerQueue,
        severity: Severity::Advice,
        effect: "its queues share one interrupt",
        affects: |_, disk| disk.frontend.queues.is_some_and(|queues| queues > 1),
    },
    OldDefault {
        capability: Capability::MachineVirtioModern,
        severity: Severity::Advice,
        effect: "the device has only virtio's legacy interface",
        affects: |_, disk| disk.frontend.model.is_none(),
    },
];

/// True if the machine type hides discards of this disk from the guest, regardless of other settings.
pub(super) fn hides_discards(domain: &Domain, disk: &Disk) -> bool {
    domain.frontend_kind(disk) == FrontendKind::VirtioBlk
        && of_machine(domain)
            .can(Capability::MachineVirtioBlkDiscard)
            .is_no()
}

/// A target with only the guest's machine type.
fn of_machine(domain: &Domain) -> Target {
    Target {
        machine: domain.machine.as_ref().map(|machine| machine.0.clone()),
        ..Target::default()
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let domain = context.domain;
    let (Some(machine), Scope::WholeGuest) = (&domain.machine, domain.scope) else {
        return;
    };
    let virtio: Vec<(usize, &Disk)> = context
        .disks()
        .filter(|(_, disk)| domain.frontend_kind(disk) == FrontendKind::VirtioBlk)
        .collect();
    if virtio.is_empty() {
        return;
    }
    let at = FieldPath::Domain(DomainField::Machine);
    let target = of_machine(domain);
    let Some(version) = target.machine_version() else {
        // An alias means the newest version of the QEMU that runs it.
        if machine.0.contains('-') {
            let what = format!("the defaults of machine type {}", machine.0);
            report.not_checked(
                at,
                Missing::new(what, "its name does not contain a QEMU version"),
            );
        }
        return;
    };
    let mut severity = Severity::Advice;
    let mut notes: Vec<Phrase> = Vec::new();
    let mut newest = version;
    for default in DEFAULTS {
        if !target.can(default.capability).is_no() {
            continue;
        }
        let mut affected = virtio
            .iter()
            .filter(|(_, disk)| (default.affects)(domain, disk));
        let Some((first, _)) = affected.next() else {
            continue;
        };
        let more = match affected.count() {
            0 => String::new(),
            1 => " and one more disk".to_owned(),
            more => format!(" and {more} more disks"),
        };
        let since = default.capability.row().since;
        newest = newest.max(since);
        severity = severity.max(default.severity);
        notes.push(phrase!(
            "{first}{more}: {effect} (before machine types of QEMU {since})",
            first = DiskName(*first),
            more,
            effect = default.effect,
            since = since.to_string(),
        ));
    }
    if notes.is_empty() {
        return;
    }
    let finding = report.finding(
        at,
        phrase!(
            "the machine type {machine} has old defaults for the disks",
            machine = quoted(machine.0.clone())
        ),
    );
    finding
        .label(format!("the defaults of QEMU {version}"))
        .severity(severity)
        .help(format!(
            "use a machine type of QEMU {newest} or later; the guest then sees different hardware, which Windows may treat as a new computer"
        ));
    for note in notes {
        finding.note(note);
    }
}
