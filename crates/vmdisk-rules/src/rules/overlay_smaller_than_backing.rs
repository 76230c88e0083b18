//! `overlay-smaller-than-backing`

use vmdisk_model::Bytes;

use crate::chain::{Layer, chains};
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// An overlay is smaller than the image it stands on.
    ///
    /// ## What it does
    /// Reports qcow2 images whose size for the guest is below that of the image their header names.
    ///
    /// ## Why it matters
    /// The guest sees a disk that ends in the middle: a partition, a file system or the second partition table is
    /// cut off. Nothing says so, neither when the overlay is made nor when it is opened. A larger overlay is how a
    /// disk is grown, and is fine.
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
    /// Without facts there is no telling.
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/small.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "overlay-smaller-than-backing",
        group: Group::DataSafety,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "an overlay of 32 MiB on 64 MiB is made and opened without a word; the guest sees 32 MiB",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for chain in chains(context) {
        if let Some(missing) = chain.unknown() {
            report.not_checked(chain.at, missing.clone());
        }
        for (nth, pair) in chain.layers.windows(2).enumerate() {
            let [above, below] = pair else {
                continue;
            };
            let (Some(small), Some(large)) = (size(context, above), size(context, below)) else {
                continue;
            };
            if small < large {
                report
                    .finding(
                        chain.at,
                        format!(
                            "{} is smaller than the image it stands on",
                            chain.name_of(nth)
                        ),
                    )
                    .label("the guest sees the beginning of what is below")
                    .note(format!(
                        "{} has {}, and {} has {}",
                        above.path,
                        Bytes(small),
                        below.path,
                        Bytes(large)
                    ))
                    .help(format!(
                        "grow it with the guest off: qemu-img resize {} {}",
                        above.path, large
                    ));
                // The images below it are hidden behind the same edge.
                break;
            }
        }
    }
}

/// The size that the guest would see of an image: of one that is opened as raw, that of its file.
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
