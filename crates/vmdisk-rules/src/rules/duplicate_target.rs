//! `duplicate-target`

use std::collections::HashMap;

use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{BackendSource, Change, Disk, DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::target_names::{TargetNames, split};

declare_rule! {
    /// Two disks of a guest have the same target name.
    ///
    /// ## What it reports
    /// Reports a disk whose target name (`target/@dev`) another disk of the guest already uses. The bus makes no
    /// difference: `sda` on SATA and `sda` on SCSI are the same name.
    ///
    /// ## Why it matters
    /// libvirt refuses the domain; its message names the sources but not the lines. Schema validation accepts it. Tools
    /// that select a disk by target name, such as `virt-xml --edit target=vda`, silently change both disks.
    ///
    /// ## Use instead
    /// Use an unused target name for one of the disks. A disk without an address gets one from its name, so the guest
    /// can see it at another address.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/system.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/data.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed,consent
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/system.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/data.qcow2'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/system.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='cdrom'>
    ///       <target dev='sda' bus='sata'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "duplicate-target",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_libvirt("target '…' duplicated for disk sources '…' and '…'", "src/conf/domain_conf.c, virDomainDiskDefCheckDuplicateInfo"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut first_with: HashMap<&str, (usize, &Disk)> = HashMap::new();
    let mut names = TargetNames::of(context.domain);
    for (index, disk) in context.disks() {
        let Some(target) = disk.frontend.target.as_deref() else {
            continue;
        };
        let Some((first, other)) = first_with.get(target).copied() else {
            first_with.insert(target, (index, disk));
            continue;
        };
        let at = FieldPath::Disk(index, DiskField::TargetDev);
        let finding = report.finding(
            at,
            phrase!(
                "two disks have the target name {target}",
                target = quoted(target.to_owned())
            ),
        );
        finding
            .label("already in use")
            .related(
                FieldPath::Disk(first, DiskField::TargetDev),
                "first used here",
            )
            .note("libvirt refuses the domain, even if the disks are on different buses");
        if let (Some(a), Some(b)) = (source(other), source(disk)) {
            finding.note(format!(
                "libvirt: `target '{target}' duplicated for disk sources '{a}' and '{b}'`"
            ));
        }
        match split(target).map(|(prefix, _)| names.free(prefix)) {
            Some(free) => finding.remedy(Fix::needs_consent([Change::set(at, free)])),
            None => finding.help("use a different name for each disk"),
        };
    }
}

/// The source as libvirt's message shows it; `None` if the model does not have it.
fn source(disk: &Disk) -> Option<&str> {
    match &disk.backend.source {
        BackendSource::Image(image) => image.host_path(),
        BackendSource::VhostUser(_) | BackendSource::Empty => Some("<null>"),
    }
}
