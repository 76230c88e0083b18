//! `qcow2-l2-cache-small`

use vmdisk_facts::{Capability, ImageHeader};
use vmdisk_fields::phrase;
use vmdisk_model::{Bytes, Change, DiskField, FieldPath};
use vmdisk_rule::{Consumer, Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The metadata cache of a large qcow2 image is too small, so random I/O reads tables first.
    ///
    /// ## What it reports
    /// Reports a qcow2 image whose L2 tables are larger than QEMU's cache for them: 32 MiB by default, or
    /// `<metadata_cache>`. With clusters of 64 KiB, 32 MiB are enough for a disk of 256 GiB. It is advice while the
    /// cache holds at least a quarter of the tables.
    ///
    /// ## Why it matters
    /// To find a block, QEMU needs the entry of the L2 table. If it is not in the cache, each random read of the guest
    /// becomes two reads on the host, one after the other. 10,000 random reads became 20,011 reads with a cache for an
    /// eighth of the tables and 10,013 with a cache for all of them. Sequential I/O, or a small part of the disk that is
    /// used often, is not affected.
    ///
    /// ## Use instead
    /// Set the size with `<metadata_cache><max_size unit='bytes'>…</max_size></metadata_cache>` in `<driver>` (libvirt
    /// 7.0), or `cache-size` on the command line. The memory is used only as the guest touches the disk. A new image with
    /// clusters of 2 MiB needs 32 times less:
    /// `qemu-img convert -O qcow2 -o cluster_size=2M,extended_l2=on IMAGE NEW`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-qcow2-headers
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' discard='unmap'/>
    ///   <source file='/srv/img/large.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed,consent,facts-qcow2-headers
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' discard='unmap'>
    ///     <metadata_cache>
    ///       <max_size unit='bytes'>671088640</max_size>
    ///     </metadata_cache>
    ///   </driver>
    ///   <source file='/srv/img/large.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// The same size with clusters of 2 MiB:
    /// ```xml,not-reported,facts-qcow2-headers
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' discard='unmap'/>
    ///   <source file='/srv/img/large-2m.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' discard='unmap'/>
    ///   <source file='/srv/img/large.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "qcow2-l2-cache-small",
    group: Group::Performance,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("10,000 reads of 4 KiB, each in another part of a 1 GiB image: 20,011 pread calls with l2-cache-size=16K, 10,013 with 128K; \
                      20,000 reads take 3.10 s and 2.01 s (medians of 3)", "strace and time of qemu-img bench -d 1 -t none, QEMU 7.2, Linux 6.18, preallocation=full"),
        Evidence::Source("QEMU docs/qcow2-cache.txt: l2_cache_size = disk_size * 8 / cluster_size; 32 MiB by default on Linux since 3.1"),
        Evidence::Source("QEMU block/qcow2.c, read_cache_sizes: of cache-size, the refcount cache gets its minimum of 4 clusters"),
    ],
    check: Model(check),
}

/// The largest cache for L2 tables without an option.
const DEFAULT: u64 = 32 * Bytes::MIB;

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image, _) in host::kept(context) {
        let Some(header) = host::qcow2_header(context, image) else {
            continue;
        };
        let header = report.require(host::image_of(index), header).flatten();
        if context.host.is_none() {
            return;
        }
        let Some((tables, cluster)) = header.and_then(tables) else {
            continue;
        };
        let for_counts = 4 * cluster;
        let cache = match disk.backend.metadata_cache_size {
            Some(Bytes(size)) => size.saturating_sub(for_counts),
            None => DEFAULT,
        };
        if tables <= cache {
            continue;
        }
        // A whole number of 128 MiB, and room for the reference counts.
        let enough = (tables + for_counts).next_multiple_of(128 * Bytes::MIB);
        let finding = report.finding(
            host::image_of(index),
            phrase!(
                "the L2 tables of {disk} have {tables}, and the cache for them {cache}",
                tables = Bytes(tables),
                cache = Bytes(cache),
            ),
        );
        if tables <= cache.saturating_mul(4) {
            finding.severity(Severity::Advice);
        }
        finding
            .label("random I/O reads the tables from the image again and again")
            .note(format!(
                "clusters of {}: each MiB of cache covers {} of the disk",
                Bytes(cluster),
                Bytes(Bytes::MIB / 8 * cluster)
            ))
            .help(match context.consumer {
                Consumer::Libvirt => format!(
                    "add `<metadata_cache><max_size unit='bytes'>{enough}</max_size></metadata_cache>` to the driver"
                ),
                Consumer::Qemu => format!("add `cache-size={enough}` to the qcow2 node"),
            });
        // The cache takes memory of the host, which somebody has to grant.
        let can_say = match context.consumer {
            Consumer::Libvirt => !context.can(Capability::LibvirtMetadataCache).is_no(),
            Consumer::Qemu => true,
        };
        if can_say {
            let at = FieldPath::Disk(index, DiskField::MetadataCacheSize);
            finding.fix(Fix::needs_consent([Change::set(at, Bytes(enough))]));
        }
    }
}

/// The size of the L2 tables and of a cluster, in bytes.
fn tables(header: &ImageHeader) -> Option<(u64, u64)> {
    let size = header.virtual_size.value().copied()?;
    let cluster = header
        .cluster
        .value()
        .copied()
        .filter(|size| *size >= 512)?;
    let entry = if header.ext_l2.is_true() { 16 } else { 8 };
    Some((size.div_ceil(cluster).saturating_mul(entry), cluster))
}
