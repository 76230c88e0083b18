//! `machine-missing-in-qemu`

use vmdisk_facts::machines::{MachineVendor, is_removed};
use vmdisk_facts::{Answer, Version, machine_version};
use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{Architecture, DomainField, FieldPath, MachineType, Manager};
use vmdisk_rule::{Confidence, Context, Evidence, Group, Missing, Report, Severity, declare_rule};

declare_rule! {
    /// The target QEMU does not have the guest's machine type.
    ///
    /// ## What it reports
    /// Compares the machine type with the list of the QEMU binary (`--qemu PATH`). Without that list, the version
    /// decides: `pc-q35-10.0` needs QEMU 10.0, 7.2 no longer has `pc-1.0`, and 11.1 no longer has `pc-q35-5.1`. QEMU
    /// removed machine types in several releases; since 10.1, each release removes those that are six years old. The
    /// rule also warns of a machine type of another distribution, such as `pc-i440fx-rhel7.0.0` on Debian, unless OpenStack,
    /// oVirt or KubeVirt manages the guest. A machine of another architecture, such as `virt` on x86, is reported for every
    /// version. The rule does not report aliases such as `q35`.
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
    /// ```args,reported,qemu-7.2
    /// qemu-system-x86_64 -nodefaults -machine pc-1.0 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    ///
    /// A machine type of another architecture:
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='virt'>hvm</type>
    ///   </os>
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
    /// A machine type of RHEL on Debian:
    /// ```xml,reported,facts-xfs-nvme,qemu-10.0.13
    /// <domain type='kvm'>
    ///   <name>web2</name>
    ///   <os>
    ///     <type arch='x86_64' machine='pc-i440fx-rhel7.0.0'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/img/web2.img'/>
    ///       <target dev='vda' bus='sata'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported,hidden,qemu-5.2
    /// qemu-system-x86_64 -nodefaults -machine pc-1.0 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
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
        Evidence::refused_by("QEMU 7.2", "unsupported machine type", "softmmu/vl.c, select_machine; system/vl.c since 8.2"),
    ],
    supersedes: &["machine-type-old-defaults"],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let target = context.target;
    let Some(machine) = &context.domain.machine else {
        return;
    };
    let name = machine.0.as_str();
    if report_other_architecture(context, machine, report) {
        return;
    }
    let version = machine_version(name);
    let vendor = MachineVendor::of_machine(name);
    if version.is_none() && vendor.is_none() && target.machines.is_empty() {
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
    let removed = is_removed(name, qemu);
    let is_asked = !target.machines.is_empty() && is_of_its_architecture(context);
    if is_asked && target.machines.contains(name) {
        return;
    }
    let foreign = foreign_vendor(context, qemu, vendor);
    let (why, severity) = match (newer, removed, foreign) {
        (Some(Version(major, minor, _)), ..) => {
            (format!("new in QEMU {major}.{minor}"), Severity::Error)
        }
        (None, Answer::Yes(_), _) => ("removed from QEMU".to_owned(), Severity::Error),
        _ if is_asked => ("not in the list of this QEMU".to_owned(), Severity::Error),
        (None, _, Ok(Some(why))) => (why, Severity::Warning),
        (None, Answer::Unknown, _) => {
            let why = format!("whether QEMU {qemu} still has it was not tried");
            return report.not_checked(at, Missing::new(format!("the machine type {name}"), why));
        }
        (None, Answer::No(_), Err(missing)) => return report.not_checked(at, missing),
        (None, Answer::No(_), Ok(None)) => return,
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
        .severity(severity)
        .confidence(confidence)
        .note("QEMU: `unsupported machine type`; the guest does not start")
        .help(format!(
            "{others}, or use a machine type of QEMU {qemu}; the guest then sees different hardware"
        ));
}

/// The reason why the QEMU of the host's distribution does not have a machine type; `None` if it may have it.
fn foreign_vendor(
    context: &Context<'_>,
    qemu: Version,
    vendor: Option<MachineVendor>,
) -> Result<Option<String>, Missing> {
    let what = || "the distribution of the host".to_owned();
    // A manager chooses the host, or brings a QEMU of its own in a container.
    let is_managed = context
        .domain
        .manager
        .is_some_and(Manager::resolves_devices);
    if is_managed || vendor.is_none() {
        return Ok(None);
    }
    let facts = context.host(what)?.facts();
    // The target can be the QEMU of another host.
    if facts.qemu_version().known() != Some(qemu) {
        return Ok(None);
    }
    let id = facts.kernel.vendor.value().map_or("", String::as_str);
    let here = MachineVendor::of_distribution(id);
    Ok(match (vendor, here) {
        (Some(vendor), Some(here)) if here != Some(vendor) => Some(format!(
            "a machine type of {}; the host is {id}",
            vendor.name()
        )),
        (Some(vendor), None) => {
            let why = format!(
                "the machine types of its QEMU are not known; this one is of {}",
                vendor.name()
            );
            return Err(Missing::new(what(), why));
        }
        _ => None,
    })
}

/// True if QEMU's list of machine types is for the guest's architecture.
/// Reports a machine that no QEMU for the architecture of the guest has.
fn report_other_architecture(
    context: &Context<'_>,
    machine: &MachineType,
    report: &mut Report,
) -> bool {
    let (Some(arch), Some(own)) = (context.domain.architecture, machine.architectures()) else {
        return false;
    };
    if own.contains(&arch) {
        return false;
    }
    let own: Vec<&str> = own.iter().map(|arch| arch.as_str()).collect();
    report
        .finding(
            FieldPath::Domain(DomainField::Machine),
            format!("QEMU for {arch} does not have the machine type {machine}"),
        )
        .label(format!("a machine of {}", own.join(", ")))
        .help("use a machine of the architecture, or the architecture of the machine");
    true
}

fn is_of_its_architecture(context: &Context<'_>) -> bool {
    match (&context.domain.architecture, &context.target.arch) {
        (Some(guest), Some(program)) => guest.as_str() == program,
        // The default architecture is the program's, if it is a common one.
        (None, Some(program)) => program == Architecture::X86_64.as_str(),
        (_, None) => true,
    }
}
