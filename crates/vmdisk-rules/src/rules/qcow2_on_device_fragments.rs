//! `qcow2-on-device-fragments`

use vmdisk_facts::Capability;
use vmdisk_fields::{phrase, setting};
use vmdisk_model::{Change, Discard, DiskField, FieldPath, Format, Protocol, Switch};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule, image_facts};

declare_rule! {
    /// A qcow2 image on a block device frees clusters and can outgrow the device.
    ///
    /// ## What it reports
    /// Reports writable qcow2 images on block devices that pass discards on without `discard_no_unref`.
    ///
    /// ## Why it matters
    /// A discard frees the cluster, and the next write may allocate a new one at the end of the image. The image
    /// fragments and grows past the end of the device; then the guest's writes fail as on a full disk. With
    /// `discard_no_unref` the cluster stays allocated in the image, and the device still receives the discard.
    ///
    /// ## Use instead
    /// Use `discard_no_unref='on'`, which requires QEMU 8.1 and libvirt 9.5. With older versions use
    /// `discard='ignore'`, which frees no space, or a raw image on a thin volume.
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
    name: "qcow2-on-device-fragments",
    group: Group::Space,
    severity: Severity::Warning,
    evidence: &[
        Evidence::Source("QEMU issue 1621: qcow2 on a block device grows beyond its virtual size through discards"),
        Evidence::Source("Proxmox bug 6543 sets discard-no-unref for qcow2 on LVM"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let is_on_device = matches!(image.protocol, Protocol::HostDevice { .. });
        let backend = &disk.backend;
        if image_facts::format_in_use(context, image) != Ok(Format::Qcow2)
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
            phrase!("{disk} is a qcow2 image on a block device that frees clusters and can outgrow the device"),
        );
        finding.label("frees clusters");
        let lacks = context.can(Capability::DiscardNoUnref).is_no()
            || context.can(Capability::LibvirtDiscardNoUnref).is_no();
        if lacks {
            finding
                .note("this option requires QEMU 8.1 and libvirt 9.5")
                .help(phrase!(
                    "use {ignore}, or a raw image on a thin volume",
                    ignore = setting(FieldPath::Disk(index, DiskField::Discard), Discard::Ignore),
                ));
        } else {
            finding.remedy(Fix::safe([Change::set(at, Switch::On)]));
        }
    }
}
