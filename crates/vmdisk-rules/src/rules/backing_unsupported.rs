//! `backing-unsupported`

use vmdisk_fields::{DiskName, phrase};
use vmdisk_model::{Backing, FieldPath, ImageField};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// An image is written below one whose format has no room for a backing file.
    ///
    /// ## What it does
    /// Reports a `<backingStore>` with an image below an image of a format other than qcow, qcow2, qed, cow and vmdk.
    ///
    /// ## Why it matters
    /// Only an image that says which clusters it has can leave the others to the image below. libvirt takes the
    /// definition, and does not start the guest. A raw disk that was an overlay has most likely been flattened, and its
    /// `<backingStore>` was forgotten; or it is a qcow2 image, and the guest would see its headers.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <backingStore type='file'>
    ///     <format type='raw'/>
    ///     <source file='/srv/base.img'/>
    ///   </backingStore>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/a.qcow2'/>
    ///   <backingStore type='file'>
    ///     <format type='raw'/>
    ///     <source file='/srv/base.img'/>
    ///     <backingStore/>
    ///   </backingStore>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "backing-unsupported",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::refused_by_libvirt_at_start("storage format '…' does not support backing store", "src/qemu/qemu_block.c, qemuBlockStorageSourceGetFormatProps"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, _, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let (Some(format), Backing::Image(_)) = (image.format, &image.backing) else {
                continue;
            };
            if format.has_backing() {
                continue;
            }
            let below = FieldPath::Image(index, depth + 1, ImageField::Image);
            report
                .finding(
                    FieldPath::Image(index, depth, ImageField::Format),
                    phrase!(
                        "{disk} has a backing image below an image of the format {format}, which does not support one",
                        disk = DiskName(index),
                        format = format.as_wire(),
                    ),
                )
                .label("does not support a backing image")
                .related(below, "the backing image")
                .note("libvirt takes the guest, and does not start it")
                .help(phrase!("remove {backing}, or use the format that the image has", backing = below));
        }
    }
}
