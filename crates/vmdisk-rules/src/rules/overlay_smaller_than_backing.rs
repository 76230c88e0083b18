//! `overlay-smaller-than-backing`

use std::borrow::Cow;

use vmdisk_fields::{Phrase, command, phrase};
use vmdisk_model::{Bytes, FieldPath, Format, Image, ImageField};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::chain::{Layer, chains};

declare_rule! {
    /// An overlay is smaller than its backing image, and the guest sees a truncated disk.
    ///
    /// ## What it reports
    /// Reports a qcow2 image whose virtual size is smaller than the backing image that its header or a `<backingStore>`
    /// names.
    ///
    /// ## Why it matters
    /// The guest sees a disk that ends early: a partition, a file system or the backup partition table is cut off. QEMU
    /// warns neither when the overlay is created nor when it is opened. A larger overlay is the normal way to grow a
    /// disk, and is not reported.
    ///
    /// ## Use instead
    /// Grow the overlay while the guest is off: `qemu-img resize IMAGE SIZE`, with the size of the backing image. The
    /// overlay allocates space only for what the guest writes.
    ///
    /// ## Reported
    /// ```xml,reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/small.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/grown.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/small.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "overlay-smaller-than-backing",
    group: Group::DataSafety,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("an overlay of 32 MiB on 64 MiB is created and opened without a warning; the guest sees 32 MiB", "QEMU 5.2, 7.2, 10.0 and 11.1"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for chain in chains(context) {
        if let Some(missing) = chain.unknown() {
            report.not_checked(chain.at(), missing.clone());
        }
        for (nth, pair) in chain.layers.windows(2).enumerate() {
            let [above, below] = pair else {
                continue;
            };
            let (Some(small), Some(large)) = (size(context, above), size(context, below)) else {
                continue;
            };
            if small < large {
                let sizes = [(&*above.path, small), (&*below.path, large)];
                report_overlay(report, chain.at(), chain.name_of(nth), sizes);
                // Images further down are truncated at the same size.
                break;
            }
        }
    }
    check_configured(context, report);
}

/// Checks the images that the configuration names one below the other; libvirt does not look at their headers.
fn check_configured(context: &Context<'_>, report: &mut Report) {
    for (index, _, top) in context.images() {
        let images: Vec<&Image> = top.chain().collect();
        for (depth, pair) in images.windows(2).enumerate() {
            let sizes = pair.iter().filter_map(|image| {
                let path = image.host_path()?;
                let is_raw = image.format == Some(Format::Raw);
                let header = context.host?.file(path)?.image.value();
                let header = header.filter(|_| !is_raw);
                let path = Cow::Borrowed(path);
                let bytes = size(
                    context,
                    &Layer {
                        path: path.clone(),
                        header,
                    },
                )?;
                Some((path, bytes))
            });
            let sizes: Vec<_> = sizes.collect();
            if let [(above, small), (below, large)] = &sizes[..]
                && small < large
            {
                let at = FieldPath::Image(index, depth, ImageField::Path);
                let name = match depth {
                    0 => phrase!("the image of {disk}"),
                    _ => phrase!("an image below {disk}"),
                };
                report_overlay(report, at, name, [(above, *small), (below, *large)]);
                break;
            }
        }
    }
}

fn report_overlay(
    report: &mut Report,
    at: FieldPath,
    name: Phrase,
    [(above, small), (below, large)]: [(&str, u64); 2],
) {
    report
        .finding(
            at,
            phrase!("{image} is smaller than its backing image", image = name),
        )
        .label("the guest sees only the beginning of the backing image")
        .note(format!(
            "{above} has {}, and {below} has {}",
            Bytes(small),
            Bytes(large)
        ))
        .help(phrase!(
            "with the guest off, run {command}",
            command = command("qemu-img resize", &[above, &large.to_string()]),
        ));
}

/// The virtual size of an image; for a raw image, the size of its file.
fn size(context: &Context<'_>, layer: &Layer<'_>) -> Option<u64> {
    match layer.header {
        Some(header) => header.virtual_size.value().copied(),
        None => context
            .host?
            .file(&layer.path)?
            .size
            .value()
            .copied()
            .filter(|size| *size > 0),
    }
}
