//! `target-bus-mismatch`

use vmdisk_model::{Change, Device, DiskField, FieldPath, TargetBus};

use crate::rule::declare_rule;
use crate::target_names::TargetNames;
use crate::{Context, Evidence, Fix, Group, Report, Severity};

declare_rule! {
    /// A target's name is that of another bus than the one written.
    ///
    /// ## What it does
    /// Reports a `target/@dev` whose prefix stands for another bus than `target/@bus`: `sda` on virtio, `vda` on
    /// SATA, `hda` on SCSI. `sd` is shared by SCSI, SATA, USB and SD cards; `hd` is IDE, `vd` virtio, `nvme` NVMe.
    /// Floppies and the buses of Xen and User-mode Linux have conventions of their own and are left alone. For a CD
    /// drive it is advice: several tools name one `hdc` wherever it is, and the guest has names of its own for it.
    ///
    /// ## Why it matters
    /// libvirt takes the bus from `bus` and says nothing, so the guest gets another device than the name
    /// suggests: `dev='sda' bus='virtio'` is `/dev/vda` inside a Linux guest. Either the name is a leftover and
    /// misleads whoever reads it, or the bus is, and the guest has the wrong controller. Taking `bus` away changes
    /// the device too, because libvirt then goes by the name.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='sda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
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
    pub(super) static RULE = {
        name: "target-bus-mismatch",
        group: Group::Clarity,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "target dev='vda' bus='sata' passes schema, define and start",
                how: "virsh create of libvirt 9.0 with QEMU 7.2",
            },
            Evidence::Source("libvirt src/conf/domain_postparse.c, virDomainDiskDefPostParse: the bus follows the name only where none is written"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
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
            format!("`{target}` is the name of {meant}, and the bus is {bus}"),
        );
        finding
            .label(format!(
                "names on this bus start with `{}`",
                bus.target_prefix()
            ))
            .related(
                FieldPath::Disk(index, DiskField::TargetBus),
                "libvirt goes by this",
            )
            .note("libvirt accepts it and takes the bus, so the guest sees another device than the name says");
        if disk.frontend.effective_device() == Device::Cdrom {
            finding
                .severity(Severity::Advice)
                .note("advice only: a guest finds its CD drive whatever it is called here");
        }
        let fitting = names.for_bus(bus, target);
        let name = match &fitting {
            Some(name) => format!("write dev='{name}'"),
            None => format!("write a name that starts with `{}`", bus.target_prefix()),
        };
        finding.help(format!(
            "{name}, or another bus if {meant} was meant, which the guest sees"
        ));
        if let Some(name) = fitting {
            // Tools and migration know the disk by its name.
            finding.fix(Fix::needs_consent([Change::set(at, name)]));
        }
    }
}

/// What a name of this prefix promises.
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
