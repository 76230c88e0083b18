//! `machine-type-old-defaults`

use vmdisk_facts::{Capability, Target};
use vmdisk_model::{Discard, Disk, Domain, DomainField, FieldPath, Format, FrontendKind, Scope};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Missing, Report, Severity};

declare_rule! {
    /// An old machine type keeps old defaults for the disks.
    ///
    /// ## What it does
    /// Reports machine types whose version makes QEMU, of whatever version itself, behave as it did then: virtio-blk
    /// without discard (until 3.1), queues of 128 requests (until 4.2), one queue for all vCPUs (until 5.1), no word
    /// to the guest of how large a discard must be (until 5.2), two interrupts for all queues (until 2.11), and
    /// virtio without its modern interface (until 2.6). Only what these disks would do otherwise is reported. `vmdisk
    /// capabilities --target machine=NAME` lists all of them.
    ///
    /// ## Why it matters
    /// A guest keeps the machine type it was made with, through every update of the host. A discard that was asked
    /// for frees nothing then, without a word; this is a warning. The rest costs speed, and is advice.
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
    /// The old defaults say nothing about disks on other buses:
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
    /// A distribution's own machine types do not follow QEMU's numbers:
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
    pub(super) static RULE = {
        name: "machine-type-old-defaults",
        group: Group::Performance,
        severity: Severity::Advice,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "the last machine type with each old default has it, and the first without has the new one",
                how: "qom-get on QEMU 5.2, 7.2, 10.0 and 11.1 with 17 machine types, tests/tests/real_qemu/capabilities.rs",
            },
            Evidence::Source("QEMU hw/core/machine.c: hw_compat_2_6, 2_11, 3_1, 4_2, 5_1, 5_2"),
        ],
        supersedes: &[],
        check: check,
    }
}

/// An old default and the disks that it means something for.
struct Default {
    capability: Capability,
    severity: Severity,
    /// What it does to them.
    says: &'static str,
    concerns: fn(&Domain, &Disk) -> bool,
}

const DEFAULTS: &[Default] = &[
    Default {
        capability: Capability::MachineVirtioBlkDiscard,
        severity: Severity::Warning,
        says: "the device takes no discards, and discard='unmap' frees nothing",
        concerns: |_, disk| disk.backend.discard == Some(Discard::Unmap),
    },
    Default {
        capability: Capability::MachineReportDiscardGranularity,
        severity: Severity::Advice,
        says: "the guest is not told that only whole clusters are freed",
        concerns: |_, disk| {
            let is_qcow2 = disk
                .backend
                .image()
                .is_some_and(|image| image.format == Some(Format::Qcow2));
            is_qcow2
                && disk.backend.discard == Some(Discard::Unmap)
                && disk.frontend.discard_granularity.is_none()
        },
    },
    Default {
        capability: Capability::MachineQueuePerVcpu,
        severity: Severity::Advice,
        says: "all vCPUs share one queue",
        concerns: |domain, disk| disk.frontend.queues.is_none() && domain.effective_vcpus() > 1,
    },
    Default {
        capability: Capability::MachineQueueSize256,
        severity: Severity::Advice,
        says: "a queue holds 128 requests, half of today's",
        concerns: |_, disk| disk.frontend.queue_size.is_none(),
    },
    Default {
        capability: Capability::MachineVectorPerQueue,
        severity: Severity::Advice,
        says: "its queues share one interrupt",
        concerns: |_, disk| disk.frontend.queues.is_some_and(|queues| queues > 1),
    },
    Default {
        capability: Capability::MachineVirtioModern,
        severity: Severity::Advice,
        says: "the device has virtio's legacy interface alone",
        concerns: |_, disk| disk.frontend.model.is_none(),
    },
];

/// Whether the machine type hides discards from the guest of a disk, whatever else is written.
pub(super) fn hides_discards(domain: &Domain, disk: &Disk) -> bool {
    domain.frontend_kind(disk) == FrontendKind::VirtioBlk
        && of_machine(domain)
            .can(Capability::MachineVirtioBlkDiscard)
            .is_no()
}

/// The target that the guest's machine type is.
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
    let virtio: Vec<&Disk> = domain
        .disks
        .iter()
        .filter(|disk| domain.frontend_kind(disk) == FrontendKind::VirtioBlk)
        .collect();
    if virtio.is_empty() {
        return;
    }
    let at = FieldPath::Domain(DomainField::Machine);
    let target = of_machine(domain);
    let Some(version) = target.machine_version() else {
        // A short name means the newest of whatever QEMU runs it.
        if machine.0.contains('-') {
            let what = format!("the defaults of machine type {}", machine.0);
            report.not_checked(at, Missing::new(what, "its name has no version of QEMU"));
        }
        return;
    };
    let mut severity = Severity::Advice;
    let mut notes = Vec::new();
    let mut newest = version;
    for default in DEFAULTS {
        if !target.can(default.capability).is_no() {
            continue;
        }
        let mut names = virtio
            .iter()
            .filter(|disk| (default.concerns)(domain, disk))
            .map(|disk| disk.name());
        let Some(first) = names.next() else {
            continue;
        };
        let more = match names.count() {
            0 => String::new(),
            1 => " and one more disk".to_owned(),
            more => format!(" and {more} more disks"),
        };
        let since = default.capability.row().since;
        newest = newest.max(since);
        severity = severity.max(default.severity);
        notes.push(format!(
            "`{first}`{more}: {} (until machine types of QEMU {since})",
            default.says
        ));
    }
    if notes.is_empty() {
        return;
    }
    let finding = report.finding(
        at,
        format!(
            "machine type {} keeps old defaults for the disks",
            machine.0
        ),
    );
    finding
        .label(format!("the defaults of QEMU {version}"))
        .severity(severity)
        .help(format!(
            "a machine type of QEMU {newest} or later has none of this; the guest sees other hardware then, which some take for a new machine"
        ));
    for note in notes {
        finding.note(note);
    }
}
