//! `machine-newer-than-qemu`

use vmdisk_facts::{Version, machine_version};
use vmdisk_model::{DomainField, FieldPath};

use crate::rule::declare_rule;
use crate::{Confidence, Context, Evidence, Group, Missing, Report, Severity};

declare_rule! {
    /// The machine type is newer than the QEMU that would run the guest.
    ///
    /// ## What it does
    /// Reports a machine type of a version, such as `pc-q35-10.0`, where the QEMU of the host or target is older. Aliases
    /// such as `q35`, and the names that distributions give their own types, pin no version of QEMU and are left alone.
    ///
    /// ## Why it matters
    /// QEMU knows its own machine types and those before it, and refuses every other: the guest neither starts nor can it be
    /// migrated there. The defaults of its disks come with the machine type, so that an older one may change what the guest
    /// sees.
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
        name: "machine-newer-than-qemu",
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

fn check(context: &Context<'_>, report: &mut Report) {
    let Some(machine) = &context.domain.machine else {
        return;
    };
    let Some(Version(major, minor, _)) = machine_version(&machine.0) else {
        return;
    };
    let at = FieldPath::Domain(DomainField::Machine);
    let qemu = context.target.qemu.ok_or_else(|| {
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
    if is_in_the_making || (major, minor) <= (qemu.0, qemu.1) {
        return;
    }
    report
        .finding(
            at,
            format!("the machine type {machine} is newer than QEMU {qemu}"),
        )
        .label(format!("came with QEMU {major}.{minor}"))
        .confidence(Confidence::Assumed)
        .note("QEMU says `unsupported machine type`, and the guest does not start")
        .help(format!(
            "run QEMU {major}.{minor} or later, or make the guest with an older machine type"
        ));
}
