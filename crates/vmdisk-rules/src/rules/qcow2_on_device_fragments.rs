//! `qcow2-on-device-fragments`

use vmdisk_facts::Capability;
use vmdisk_model::{Change, Discard, DiskField, FieldPath, Format, Protocol, Switch};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Fix, Group, Report, Severity};

declare_rule! {
    /// A qcow2 image on a block device gives clusters back and may outgrow the device.
    ///
    /// ## What it does
    /// Reports writable qcow2 images on block devices that pass discards on without `discard_no_unref`.
    ///
    /// ## Why it matters
    /// A discarded cluster is freed, and the next write may take a new one at the end: the image fragments and
    /// grows past the device, on which it cannot grow, and the guest's writes fail with a full disk. With
    /// `discard_no_unref` the cluster stays its block's, and the device is still told of the discard.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='unmap' discard_no_unref='on'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='ignore'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "qcow2-on-device-fragments",
        group: Group::Space,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::Source("QEMU issue 1621: qcow2 on a block device grows beyond its virtual size through discards"),
            Evidence::Source("Proxmox bug 6543 sets discard-no-unref for qcow2 on LVM"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let is_on_device = matches!(image.protocol, Protocol::HostDevice { .. });
        let backend = &disk.backend;
        if image.format != Some(Format::Qcow2)
            || !is_on_device
            || !disk.is_writable()
            || backend.discard != Some(Discard::Unmap)
            || backend.discard_no_unref == Some(Switch::On)
        {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::DiscardNoUnref);
        let finding = report.finding(
            FieldPath::Disk(index, DiskField::Discard),
            format!("`{}` is a qcow2 image on a block device and gives clusters back, by which it may outgrow the device", disk.name()),
        );
        finding.label("frees clusters");
        let lacks = context.can(Capability::DiscardNoUnref).is_no()
            || context.can(Capability::LibvirtDiscardNoUnref).is_no();
        if lacks {
            finding
                .note("discard_no_unref needs QEMU 8.1 and libvirt 9.5")
                .help("write discard='ignore', or use raw on a thin volume");
        } else {
            finding
                .help("write discard_no_unref='on'")
                .fix(Fix::safe([Change::set(at, Switch::On.as_wire())]));
        }
    }
}
