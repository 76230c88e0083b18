//! `machine-missing-in-qemu`

use vmdisk_facts::{Capability, Version, machine_version};
use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{Architecture, DomainField, FieldPath};
use vmdisk_rule::{Confidence, Context, Evidence, Group, Missing, Report, Severity, declare_rule};

declare_rule! {
    /// The target QEMU does not have the guest's machine type.
    ///
    /// ## What it reports
    /// Compares the machine type with the list of the QEMU binary (`--qemu PATH`). Without that list, the version
    /// decides: `pc-q35-10.0` needs QEMU 10.0, and 11.1 no longer has `pc-q35-5.1`. The rule then does not report
    /// aliases such as `q35` and machine types of distributions, because their names do not contain a QEMU version.
    ///
    /// ## Why it matters
    /// QEMU refuses machine types of later versions and types that it has removed. The guest can neither start there
    /// nor migrate there. The machine type determines the defaults of the disks, so another type can change what the
    /// guest sees.
    ///
    /// ## Use instead
    /// Run a QEMU that has the machine type. Alternatively use a machine type that both have
    /// (`qemu-system-x86_64 -machine help` lists them); the guest then sees different hardware.
    ///
    /// ## Reported
    /// ```xml,reported,qemu-7.2
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='pc-q35-10.0'>hvm</type>
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
    /// ```args,reported,qemu-11.1
    /// qemu-system-x86_64 -nodefaults -machine pc-q35-5.1 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,qemu-10.0
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='pc-q35-10.0'>hvm</type>
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
    /// ```xml,not-reported,qemu-7.2
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
    /// Not checked without a QEMU version:
    /// ```xml,not-checked
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='pc-q35-10.0'>hvm</type>
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
    name: "machine-missing-in-qemu",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::Refused {
            by: "QEMU 7.2",
            text: "unsupported machine type",
            source: "softmmu/vl.c, select_machine; system/vl.c since 8.2",
        },
    ],
    check: Model(check),
}

/// The oldest machine type that a QEMU without [`Capability::OldMachineTypes`] has.
const OLDEST_MACHINE: Version = Version(5, 2, 0);

fn check(context: &Context<'_>, report: &mut Report) {
    let target = context.target;
    let Some(machine) = &context.domain.machine else {
        return;
    };
    let name = machine.0.as_str();
    let version = machine_version(name);
    if version.is_none() && target.machines.is_empty() {
        return;
    }
    let at = FieldPath::Domain(DomainField::Machine);
    let qemu = target.qemu.ok_or_else(|| {
        let why = match context.host {
            Some(_) => Missing::NO_QEMU,
            None => Missing::NO_FACTS,
        };
        Missing::new("the version of QEMU", why)
    });
    let Some(qemu) = report.require(at, qemu) else {
        return;
    };
    // The development version of 10.0 is 9.2.50, and already has its machine types.
    let is_development = qemu.2 >= 50;
    let is_newer = |Version(major, minor, _): &Version| (*major, *minor) > (qemu.0, qemu.1);
    let newer = version.filter(|version| !is_development && is_newer(version));
    let lacks_old = target.can(Capability::OldMachineTypes).is_no() && name.starts_with("pc-");
    let is_asked = !target.machines.is_empty() && is_of_its_architecture(context);
    if is_asked && target.machines.contains(name) {
        return;
    }
    let why = match (newer, version) {
        (Some(Version(major, minor, _)), _) => format!("new in QEMU {major}.{minor}"),
        (None, Some(version)) if lacks_old && version < OLDEST_MACHINE => {
            format!("QEMU {qemu} has none before {OLDEST_MACHINE}")
        }
        (None, _) if is_asked => "not in the list of this QEMU".to_owned(),
        (None, _) => return,
    };
    let confidence = if is_asked {
        Confidence::Certain
    } else {
        Confidence::Assumed
    };
    let others = match newer {
        Some(Version(major, minor, _)) => format!("run QEMU {major}.{minor} or later"),
        None => "run a QEMU that has this machine type".to_owned(),
    };
    report
        .finding(
            at,
            phrase!(
                "QEMU {qemu} does not have the machine type {name}",
                qemu = qemu.to_string(),
                name = quoted(name.to_owned()),
            ),
        )
        .label(why)
        .confidence(confidence)
        .note("QEMU: `unsupported machine type`; the guest does not start")
        .help(format!(
            "{others}, or use a machine type of QEMU {qemu}; the guest then sees different hardware"
        ));
}

/// True if QEMU's list of machine types is for the guest's architecture.
fn is_of_its_architecture(context: &Context<'_>) -> bool {
    match (&context.domain.architecture, &context.target.arch) {
        (Some(guest), Some(program)) => guest.as_wire() == program,
        // The default architecture is the program's, if it is a common one.
        (None, Some(program)) => program == Architecture::X86_64.as_wire(),
        (_, None) => true,
    }
}
