//! `qcow2-on-thin-volume`

use vmdisk_facts::{BlockKind, Fact};
use vmdisk_fields::phrase;
use vmdisk_model::{Backing, Format, Protocol};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// A qcow2 image is on a thin volume or a ZFS volume, so two layers allocate space and copy on write.
    ///
    /// ## What it reports
    /// Reports a qcow2 image without a backing file on an LVM thin volume or a ZFS volume. An overlay is not reported,
    /// because it needs qcow2.
    ///
    /// ## Why it matters
    /// Both layers do the same work: each first write of the guest allocates a cluster of qcow2 with its tables, and
    /// then a chunk or record below it. The volume already grows on demand, and it has snapshots.
    ///
    /// ## Use instead
    /// Write the image as raw to the volume: `qemu-img convert -n -O raw IMAGE VOLUME`. Use snapshots of the pool. Keep
    /// qcow2 if you need its features, such as dirty bitmaps for incremental backups.
    ///
    /// ## Reported
    /// ```xml,reported,facts-storage-stacks
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///   <source dev='/dev/vg0/web3'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-storage-stacks
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' discard='unmap'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source dev='/dev/vg0/web3'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "qcow2-on-thin-volume",
    group: Group::Performance,
    severity: Severity::Advice,
    evidence: &[
        Evidence::NotMeasuredHere("OpenZFS documentation, Workload Tuning, Virtual machines: store images on zvols or in raw files to avoid unnecessary overhead"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, _, image, path) in host::kept(context) {
        let is_on_device = matches!(image.protocol, Protocol::HostDevice { .. });
        if !is_on_device || host::format_in_use(context, image) != Ok(Format::Qcow2) {
            continue;
        }
        let at = host::image_of(index);
        let device = report
            .require(at, host::block_device(context, path))
            .flatten();
        if context.host.is_none() {
            return;
        }
        let layer = match device.map(|(_, device)| &device.kind) {
            Some(BlockKind::LvmThin) => "a thin volume",
            Some(BlockKind::Zvol) => "a ZFS volume",
            Some(_) | None => continue,
        };
        let Some(Some(header)) = report.require(at, host::header(context, path)) else {
            continue;
        };
        let is_overlay = matches!(image.backing, Backing::Image(_)) || header.backing.is_known();
        if is_overlay || header.format.as_str() != Fact::Known("qcow2") {
            continue;
        }
        report
            .finding(at, phrase!("{disk} is a qcow2 image on {layer}", layer,))
            .label("two layers allocate space and copy on write")
            .help("convert the image to raw, unless you need features of qcow2");
    }
}
