//! `migration-machine-differs`

use vmdisk_facts::machine_version;
use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{DomainField, FieldPath};
use vmdisk_rule::{Comparison, Evidence, Group, Missing, Report, Severity, declare_rule};

declare_rule! {
    /// A machine type without a version (`q35`, `pc`) means another machine on each host.
    ///
    /// ## What it reports
    /// Compares the hosts that a guest may run on. Reports an alias such as `q35` or `pc` if the hosts have different
    /// versions of QEMU. A machine type with a version is the same machine everywhere, or missing, which
    /// `machine-missing-in-qemu` reports.
    ///
    /// ## Why it matters
    /// libvirt replaces the alias with the newest machine type of its QEMU when the guest is defined or started. A
    /// guest that was started on the newest host then cannot migrate to the other hosts. One file that is defined on
    /// two hosts gives two machines with different disk defaults.
    ///
    /// ## Use instead
    /// Use a machine type with a version that all hosts have, such as `pc-q35-7.2`; `qemu-system-x86_64 -machine help`
    /// lists them. The guest does not get newer defaults until you change it.
    ///
    /// ## Reported
    /// ```xml,reported,facts-xfs-nvme,facts-btrfs-checksums-6.1
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='writeback'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme,facts-btrfs-checksums-6.1
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='pc-q35-7.2'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='writeback'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported,facts-xfs-nvme,facts-disk-4kn
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='writeback'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "migration-machine-differs",
    group: Group::Startup,
    severity: Severity::Advice,
    evidence: &[
        Evidence::Source("libvirt 9.0 src/qemu/qemu_domain.c, qemuCanonicalizeMachine: the alias is replaced by virQEMUCapsGetCanonicalMachine"),
        Evidence::Source("QEMU hw/i386/pc_q35.c: `q35` is the alias of the newest version"),
    ],
    check: Hosts(compare),
}

fn compare(comparison: &Comparison<'_>, report: &mut Report) {
    let Some(machine) = &comparison.domain.machine else {
        return;
    };
    // A machine type of a distribution pins a version, too.
    let is_alias = machine_version(&machine.0).is_none() && ALIASES.contains(&machine.0.as_str());
    if !is_alias {
        return;
    }
    let at = FieldPath::Domain(DomainField::Machine);
    let answers = report.answers(comparison, at, |host| {
        let qemu = host.target.qemu;
        qemu.map(|version| (version.0, version.1))
            .ok_or_else(|| Missing::new("the version of QEMU", Missing::NO_QEMU))
    });
    let Some((&(major, minor), _)) = answers.first_key_value() else {
        return;
    };
    if answers.len() < 2 {
        return;
    }
    let affected = answers.values().skip(1).flatten().copied();
    let finding = report.finding(
        at,
        phrase!(
            "the machine type {machine} differs between versions of QEMU",
            machine = quoted(machine.0.clone())
        ),
    );
    finding
        .label("does not pin a version")
        .on_hosts(affected.collect::<Vec<_>>());
    for ((major, minor), hosts) in &answers {
        let names = comparison.names(hosts);
        finding.note(format!("{names}: QEMU {major}.{minor}"));
    }
    finding.help(format!(
        "use a machine type that all of them have, of QEMU {major}.{minor} or earlier"
    ));
}

/// Aliases of the newest version of a machine.
const ALIASES: [&str; 6] = [
    "pc",
    "q35",
    "virt",
    "pseries",
    "s390-ccw-virtio",
    "s390-ccw",
];
