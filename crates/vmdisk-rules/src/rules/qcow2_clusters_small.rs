//! `qcow2-clusters-small`

use vmdisk_fields::{command, phrase};
use vmdisk_model::Bytes;
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// A qcow2 image has clusters smaller than 64 KiB, so it is slow and its tables are large.
    ///
    /// ## What it reports
    /// Reports a qcow2 image that the guest writes with clusters of less than 64 KiB.
    ///
    /// ## Why it matters
    /// QEMU allocates a cluster at the first write into it, and each one needs an entry in the L2 tables and in the
    /// reference counts. With clusters of 4 KiB the tables are 16 times as large as with the default of 64 KiB, the
    /// cache of 32 MiB covers 16 GiB of the disk, and a sequential write of 1 MiB allocates 256 times. Small clusters
    /// make only the copies in overlays smaller, which subclusters do as well.
    ///
    /// ## Use instead
    /// Convert the image: `qemu-img convert -O qcow2 OLD NEW` gives clusters of 64 KiB. For overlays with small writes,
    /// add `-o extended_l2=on,cluster_size=128k` (QEMU 5.2).
    ///
    /// ## Reported
    /// ```xml,reported,facts-qcow2-headers
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' discard='unmap'/>
    ///   <source file='/srv/img/small-clusters.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-qcow2-headers
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' discard='unmap'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' discard='unmap'/>
    ///   <source file='/srv/img/small-clusters.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "qcow2-clusters-small",
    group: Group::Performance,
    severity: Severity::Advice,
    evidence: &[
        Evidence::measured("required size of an empty image of 100 GiB, which is its tables and no data: 421,081,088 bytes with clusters of 4 KiB and 64-bit reference counts, 16,646,144 by default", "qemu-img measure of QEMU 7.2"),
        Evidence::Source("QEMU docs/qcow2-cache.txt: smaller clusters need a larger cache for the same disk"),
        Evidence::NotMeasuredHere("the time that small clusters cost depends on the guest's writes"),
    ],
    supersedes: &["qcow2-l2-cache-small"],
    check: Model(check),
}

/// The size of a cluster by default.
const DEFAULT: u64 = 64 * Bytes::KIB;

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, _, image, path) in host::kept(context) {
        let Some(header) = host::qcow2_header(context, image) else {
            continue;
        };
        let at = host::image_of(index);
        let header = report.require(at, header).flatten();
        if context.host.is_none() {
            return;
        }
        let Some(header) = header else { continue };
        let cluster = Context::known(header.cluster.clone(), || format!("clusters of {path}"));
        let Some(Some(cluster)) = report.require(at, cluster) else {
            continue;
        };
        if cluster >= DEFAULT {
            continue;
        }
        report
            .finding(
                at,
                phrase!(
                    "{disk} has qcow2 clusters of {cluster} instead of 64 KiB",
                    cluster = Bytes(cluster),
                ),
            )
            .label("needs larger tables and more allocations")
            .help(phrase!(
                "convert the image while the guest is off: {command}",
                command = command("qemu-img convert -O qcow2", &[path, "NEW"]),
            ));
    }
}
