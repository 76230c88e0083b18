//! `machine-missing-in-qemu`

use vmdisk_facts::{Version, machine_version};
use vmdisk_model::{Architecture, DomainField, FieldPath};

use crate::rule::declare_rule;
use crate::{Confidence, Context, Evidence, Group, Missing, Report, Severity};

declare_rule! {
    /// The QEMU that would run the guest does not have its machine type.
    ///
    /// ## What it does
    /// Holds the machine type to those that the QEMU names, where it was asked (`--qemu PATH`), and else to its
    /// version: `pc-q35-10.0` came with QEMU 10.0, and 11.1 has no `pc-q35-5.1` any more. Aliases such as `q35`, and the
    /// names that distributions give their own types, pin no version of QEMU and are left alone there.
    ///
    /// ## Why it matters
    /// QEMU refuses the machine types of later versions and those it has given up: the guest neither starts nor can
    /// it be migrated there. The defaults of its disks come with the machine type, so that another one may change what
    /// the guest sees.
    ///
    /// ## Reported
    /// ```xml,reported,qemu-7.2
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='pc-q35-10.0'>hvm</type>
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
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='writeback'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Without a version of QEMU there is no telling:
    /// ```xml,not-checked
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='pc-q35-10.0'>hvm</type>
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
    pub(super) static RULE = {
        name: "machine-missing-in-qemu",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU 7.2",
                text: "unsupported machine type",
                source: "softmmu/vl.c, machine_parse; system/vl.c since 9.0",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

/// Since this QEMU the oldest machine types are gone; which of the versions before took them away was not tried.
const OLD_MACHINES_GONE: Version = Version(11, 1, 0);

/// The oldest machine type that [`OLD_MACHINES_GONE`] still has.
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
    // What will be 10.0 is called 9.2.50 while it is made, and has its machine types already.
    let is_in_the_making = qemu.2 >= 50;
    let is_newer = |Version(major, minor, _): &Version| (*major, *minor) > (qemu.0, qemu.1);
    let newer = version.filter(|version| !is_in_the_making && is_newer(version));
    let is_gone = |version: Version| {
        qemu >= OLD_MACHINES_GONE && version < OLDEST_MACHINE && name.starts_with("pc-")
    };
    let is_asked = !target.machines.is_empty() && is_of_its_architecture(context);
    if is_asked && target.machines.contains(name) {
        return;
    }
    let why = match (newer, version) {
        (Some(Version(major, minor, _)), _) => format!("came with QEMU {major}.{minor}"),
        (None, Some(version)) if is_gone(version) => {
            format!("QEMU {OLD_MACHINES_GONE} has none older than {OLDEST_MACHINE}")
        }
        (None, _) if is_asked => "not among those it names".to_owned(),
        (None, _) => return,
    };
    let confidence = if is_asked {
        Confidence::Certain
    } else {
        Confidence::Assumed
    };
    let others = match newer {
        Some(Version(major, minor, _)) => format!("run QEMU {major}.{minor} or later"),
        None => "run it on a QEMU that has this one".to_owned(),
    };
    report
        .finding(
            at,
            format!("the machine type is {name}, which QEMU {qemu} does not have"),
        )
        .label(why)
        .confidence(confidence)
        .note("QEMU says `unsupported machine type`, and the guest does not start")
        .help(format!(
            "{others}, or take a machine type of that QEMU, with which the guest sees other hardware"
        ));
}

/// Whether the machine types that the QEMU names are those of the guest's architecture.
fn is_of_its_architecture(context: &Context<'_>) -> bool {
    match (&context.domain.architecture, &context.target.arch) {
        (Some(guest), Some(program)) => guest.as_wire() == program,
        // Without a word of it the guest is of the program's architecture, if it is of the usual one.
        (None, Some(program)) => program == Architecture::X86_64.as_wire(),
        (_, None) => true,
    }
}
