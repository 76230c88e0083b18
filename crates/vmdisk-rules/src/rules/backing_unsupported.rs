//! `backing-unsupported`

use vmdisk_model::{Backing, FieldPath, ImageField};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

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
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let (Some(format), Backing::Image(_)) = (image.format, &image.backing) else {
                continue;
            };
            if format.has_backing() {
                continue;
            }
            report
                .finding(
                    FieldPath::Image(index, depth, ImageField::Format),
                    format!(
                        "`{}` has an image below one of the format {format}, which has no room for it",
                        disk.name()
                    ),
                )
                .label("nothing can be below it")
                .related(
                    FieldPath::Image(index, depth + 1, ImageField::Image),
                    "what is written below",
                )
                .note("libvirt takes the guest, and does not start it")
                .help("take <backingStore> away, or write the format that the image has");
        }
    }
}
