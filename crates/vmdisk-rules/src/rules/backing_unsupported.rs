//! `backing-unsupported`

use vmdisk_fields::phrase;
use vmdisk_model::{Backing, FieldPath, ImageField};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A backing image is configured below a format that does not support one.
    ///
    /// ## What it reports
    /// Reports a `<backingStore>` with an image below an image whose format is not qcow, qcow2, qed, cow or vmdk.
    ///
    /// ## Why it matters
    /// An overlay must record which clusters it holds, and a raw image cannot. libvirt defines the guest, but does not
    /// start it: `storage format 'raw' does not support backing store`. Usually the overlay was flattened and its
    /// `<backingStore>` was left behind. If the image is in fact qcow2, `type='raw'` would also show the guest the
    /// qcow2 header instead of its disk.
    ///
    /// ## Use instead
    /// Remove `<backingStore>` if the image is flattened. Otherwise set `type` to the format of the image, which
    /// `qemu-img info IMAGE` shows.
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
    name: "backing-unsupported",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt_at_start("storage format '…' does not support backing store", "src/qemu/qemu_block.c, qemuBlockStorageSourceGetFormatProps"),
    ],
    check: Model(check),
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
                        format = format.as_str(),
                    ),
                )
                .label("does not support a backing image")
                .related(below, "the backing image")
                .note("libvirt accepts the definition, but does not start the guest")
                .help(phrase!("remove {backing}, or use the format that the image has", backing = below));
        }
    }
}
