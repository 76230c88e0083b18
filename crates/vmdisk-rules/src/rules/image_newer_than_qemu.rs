//! `image-newer-than-qemu`

use vmdisk_facts::{Capability, ImageHeader, Version};
use vmdisk_fields::phrase;
use vmdisk_rule::{Confidence, Context, Evidence, Group, Report, Severity, declare_rule};

use crate::chain::chains;

declare_rule! {
    /// A qcow2 image uses a feature that the target's QEMU does not support, so the guest does not start.
    ///
    /// ## What it reports
    /// Reports a qcow2 image of a chain with subclusters (`extended_l2=on`) for a QEMU before 5.2, with zstd compression
    /// for a QEMU before 5.1, or with an external data file for a QEMU before 4.0.
    ///
    /// ## Why it matters
    /// The header marks these features as incompatible. An older QEMU refuses to open the image:
    /// `Unsupported qcow2 feature(s): Extended L2 entries`. It happens when an image moves to an older host, or when a
    /// guest is pinned to an older QEMU.
    ///
    /// ## Use instead
    /// Update QEMU. For an older QEMU, convert the image:
    /// `qemu-img convert -O qcow2 -o extended_l2=off,compression_type=zlib OLD NEW`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-qcow2-headers,qemu-5.1
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/subclusters.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,facts-qcow2-headers,qemu-5.0
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/zstd.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-qcow2-headers,qemu-5.2
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/subclusters.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked,qemu-5.1
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/subclusters.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "image-newer-than-qemu",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::Source("QEMU docs/interop/qcow2.txt, incompatible features: bit 2 external data file, bit 3 compression type, bit 4 extended L2 entries"),
        Evidence::Source("QEMU ChangeLog: external data files in 4.0, compression_type in 5.1, extended_l2 in 5.2"),
        Evidence::Source("QEMU block/qcow2.c, report_unsupported_feature: `Unsupported qcow2 feature(s)`; no QEMU before 5.2 was tried"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    // Without a target, what runs the guest is as new as the rules. A QEMU with the newest feature opens every image.
    let newest = Capability::Qcow2ExtendedL2.row().since;
    let Some(qemu) = context.target.qemu.filter(|qemu| *qemu < newest) else {
        return;
    };
    for chain in chains(context) {
        if let Some(missing) = chain.unknown() {
            report.not_checked(chain.at(), missing.clone());
        }
        for (layer, header) in chain
            .layers
            .iter()
            .enumerate()
            .filter_map(|(nth, layer)| Some((nth, layer.header?)))
        {
            let Some((feature, since, option)) = newer_feature(header, qemu) else {
                continue;
            };
            report
                .finding(
                    chain.at(),
                    phrase!(
                        "{image} has {feature}, which QEMU {qemu} cannot open",
                        image = chain.name_of(layer),
                        feature,
                        qemu = qemu.to_string(),
                    ),
                )
                .label("the guest does not start")
                .confidence(Confidence::Assumed)
                .note(format!("QEMU has {feature} since {since}"))
                .help(format!(
                    "update QEMU, or run `qemu-img convert -O qcow2{option} OLD NEW`"
                ));
            break;
        }
    }
}

/// A feature of an image that is newer than QEMU: its name, its first version, the options of an image without it.
fn newer_feature(
    header: &ImageHeader,
    qemu: Version,
) -> Option<(&'static str, Version, &'static str)> {
    let features = [
        (
            header.ext_l2.is_true(),
            "subclusters",
            Capability::Qcow2ExtendedL2,
            " -o extended_l2=off",
        ),
        (
            header.compression.value().is_some_and(|it| it == "zstd"),
            "zstd compression",
            Capability::Qcow2Zstd,
            " -o compression_type=zlib",
        ),
        (
            header.data_file.is_known(),
            "an external data file",
            Capability::Qcow2DataFile,
            "",
        ),
    ];
    features
        .into_iter()
        .map(|(has_it, feature, capability, option)| {
            (has_it, feature, capability.row().since, option)
        })
        .find(|(has_it, _, since, _)| *has_it && qemu < *since)
        .map(|(_, feature, since, option)| (feature, since, option))
}
