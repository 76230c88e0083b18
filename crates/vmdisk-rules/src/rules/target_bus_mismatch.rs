//! `target-bus-mismatch`

use vmdisk_fields::{phrase, quoted, setting};
use vmdisk_model::{Change, Device, DiskField, FieldPath, Manager, TargetBus};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::target_names::TargetNames;

declare_rule! {
    /// The target name does not match the bus of the disk.
    ///
    /// ## What it reports
    /// Reports a `target/@dev` whose prefix belongs to another bus than `target/@bus`: `sda` on virtio, `vda` on SATA,
    /// `hda` on SCSI. `sd` means SCSI, SATA, USB and SD cards; `hd` for IDE, `vd` for virtio, `nvme` for NVMe.
    /// Floppies and the buses of Xen and User-mode Linux have their own conventions and are not reported, and neither are
    /// guests of Unraid, which calls disks `hdc`, `hdd` and so on whatever their bus. For a CD drive it is pedantic: several
    /// tools always use `hdc`, and guests name CD drives independently.
    ///
    /// ## Why it matters
    /// libvirt uses `bus` and does not warn, so the guest gets another device than the name suggests:
    /// `dev='sda' bus='virtio'` is `/dev/vda` inside a Linux guest. Either the name is misleading, or the guest has the
    /// wrong controller.
    ///
    /// ## Use instead
    /// Use a name with the prefix of the bus; tools and scripts that use the old name have to be adapted. Do not remove
    /// `bus`: libvirt would then derive it from the name, and the guest would get another device.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='sda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed,consent
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,hidden
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <metadata><vmtemplate xmlns='unraid' name='Linux'/></metadata>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='writeback'/>
    ///       <source file='/mnt/user/domains/web1/vdisk1.img'/>
    ///       <target dev='hdc' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='sda' bus='usb'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='sda'/>
    /// </disk>
    /// ```
    name: "target-bus-mismatch",
    group: Group::Clarity,
    severity: Severity::Advice,
    evidence: &[
        Evidence::measured("target dev='vda' bus='sata' passes schema, define and start", "virsh create of libvirt 9.0 with QEMU 7.2"),
        Evidence::Source("libvirt src/conf/domain_postparse.c, virDomainDiskDefPostParse: the bus is derived from the name only if it is not set"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    if context.domain.manager == Some(Manager::Unraid) {
        return;
    }
    let mut names = TargetNames::of(context.domain);
    for (index, disk) in context.disks() {
        let (Some(target), Some(bus)) = (disk.frontend.target.as_deref(), disk.frontend.bus) else {
            continue;
        };
        let has_convention = !matches!(bus, TargetBus::Xen | TargetBus::Uml)
            && disk.frontend.effective_device() != Device::Floppy;
        let Some(named) = TargetBus::of_target_name(target).filter(|_| has_convention) else {
            continue;
        };
        if named.target_prefix() == bus.target_prefix() {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::TargetDev);
        let meant = meant(named);
        let finding = report.finding(
            at,
            format!("the target name `{target}` is for {meant}, but the bus is {bus}"),
        );
        finding
            .label(format!(
                "names on this bus start with `{}`",
                bus.target_prefix()
            ))
            .related(
                FieldPath::Disk(index, DiskField::TargetBus),
                "libvirt uses the bus",
            )
            .note("the guest sees another device than the name suggests");
        if disk.frontend.effective_device() == Device::Cdrom {
            finding
                .severity(Severity::Pedantic)
                .note("guests find a CD drive by any name");
        }
        let fitting = names.for_bus(bus, target);
        let name = match &fitting {
            Some(name) => phrase!("use {name}", name = setting(at, name.clone())),
            None => phrase!(
                "use a name that starts with {prefix}",
                prefix = quoted(bus.target_prefix().to_owned()),
            ),
        };
        finding.help(phrase!(
            "{name}, or another bus for {meant}, which changes the guest's device",
            name,
            meant,
        ));
        if let Some(name) = fitting {
            // Tools and migration know the disk by its name.
            finding.fix(Fix::needs_consent([Change::set(at, name)]));
        }
    }
}

/// The device that a name of this prefix suggests.
const fn meant(named: TargetBus) -> &'static str {
    match named {
        TargetBus::Virtio => "a virtio disk",
        TargetBus::Scsi | TargetBus::Sata | TargetBus::Usb | TargetBus::Sd => {
            "a SCSI, SATA or USB disk"
        }
        TargetBus::Ide => "an IDE disk",
        TargetBus::Fdc => "a floppy",
        TargetBus::Nvme => "an NVMe namespace",
        TargetBus::Xen => "a Xen disk",
        TargetBus::Uml => "a User-mode Linux disk",
    }
}
