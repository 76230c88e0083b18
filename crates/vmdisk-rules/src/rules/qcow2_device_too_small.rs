//! `qcow2-device-too-small`

use vmdisk_facts::ImageHeader;
use vmdisk_fields::{command, phrase};
use vmdisk_model::{Bytes, Protocol};
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The block device of a qcow2 image is too small for a full image and its metadata.
    ///
    /// ## What it reports
    /// Reports a qcow2 image on a block device that is smaller than the image can become: the size of the disk and the
    /// tables of qcow2. It is advice if the device is even smaller than the disk, because then the volume is probably
    /// extended while the guest runs, as oVirt does. Space for internal snapshots and bitmaps is not counted.
    ///
    /// ## Why it matters
    /// A qcow2 image cannot grow beyond its device. When the guest has written enough, QEMU gets
    /// `No space left on device` and pauses the guest. A volume of exactly the size of the disk is too small: 100 GiB
    /// need 15.3 MiB more for the tables.
    ///
    /// ## Use instead
    /// Extend the device to what `qemu-img measure -O qcow2 --size SIZE` prints as `fully allocated size`, or convert
    /// the image to raw, which needs no tables: `qemu-img convert -O raw IMAGE NEW`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-qcow2-headers
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source dev='/dev/vg0/tight'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Advice, because the volume may be extended on demand:
    /// ```xml,reported,facts-qcow2-headers
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source dev='/dev/vg0/grown'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-qcow2-headers
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source dev='/dev/vg0/roomy'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source dev='/dev/vg0/tight'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "qcow2-device-too-small",
    group: Group::Space,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("fully allocated size of 107,374,182,400 bytes: 107,390,828,544 with clusters of 64 KiB, 107,403,935,744 with subclusters", "qemu-img measure -O qcow2 of QEMU 7.2; a test of this rule has the same figures"),
        Evidence::Source("QEMU block/qcow2.c, qcow2_calc_prealloc_size"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, _, image, path) in host::kept(context) {
        let is_on_device = matches!(image.protocol, Protocol::HostDevice { .. });
        if !is_on_device || image.creation.is_some() {
            continue;
        }
        let at = host::image_of(index);
        let Some(header) = host::qcow2_header(context, image) else {
            continue;
        };
        let header = report.require(at, header).flatten();
        if context.host.is_none() {
            return;
        }
        let Some(header) = header.filter(|header| !header.data_file.is_known()) else {
            continue;
        };
        let Some(Some((size, needed))) = report.require(at, sizes(context, path, header)) else {
            continue;
        };
        if size < needed.whole {
            report_device(report, index, path, size, needed);
        }
    }
}

/// The space that a full image needs, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Needed {
    disk: u64,
    whole: u64,
}

fn sizes(
    context: &Context<'_>,
    path: &str,
    header: &ImageHeader,
) -> Result<Option<(u64, Needed)>, Missing> {
    let what = || format!("the size of {path}");
    let Some((_, device)) = host::block_device(context, path)? else {
        return Ok(None);
    };
    let size = Context::known(device.size.clone(), what)?;
    let disk = Context::known(header.virtual_size.clone(), what)?;
    let cluster = Context::known(header.cluster.clone(), || format!("clusters of {path}"))?;
    let (Some(size), Some(disk), Some(cluster)) = (size, disk, cluster) else {
        return Ok(None);
    };
    let refcount_bits = header.refcount_bits.value().copied().unwrap_or(16);
    let whole = fully_allocated(disk, cluster, refcount_bits, header.ext_l2.is_true());
    Ok(whole.map(|whole| (size, Needed { disk, whole })))
}

/// The size of an image with every cluster in use, as `qemu-img measure` computes it; `None` for numbers that no image
/// has.
fn fully_allocated(
    disk: u64,
    cluster: u64,
    refcount_bits: u32,
    has_subclusters: bool,
) -> Option<u64> {
    let is_possible = cluster.is_power_of_two()
        && (512..=2 * Bytes::MIB).contains(&cluster)
        && (1..=64).contains(&refcount_bits)
        && disk < 1 << 60;
    if !is_possible {
        return None;
    }
    let entry = if has_subclusters { 16 } else { 8 };
    let data = disk.next_multiple_of(cluster);
    let l2_entries = (data / cluster).next_multiple_of(cluster / entry);
    let l1_entries = (l2_entries * entry / cluster).next_multiple_of(cluster / 8);
    let tables = cluster + l2_entries * entry + l1_entries * 8;
    let clusters = (tables + data) / cluster;
    let counts_in_block = cluster * 8 / u64::from(refcount_bits);
    let (mut blocks, mut table) = (0, 0);
    // Reference counts are counted too.
    loop {
        let before = (blocks, table);
        blocks = (clusters + blocks + table).div_ceil(counts_in_block);
        table = blocks.div_ceil(cluster / 8);
        if before == (blocks, table) {
            return Some(tables + data + (blocks + table) * cluster);
        }
    }
}

fn report_device(report: &mut Report, index: usize, path: &str, size: u64, needed: Needed) {
    let finding = report.finding(
        host::image_of(index),
        phrase!("the device of {disk} is too small for a full qcow2 image"),
    );
    finding
        .label("QEMU pauses the guest when the device is full")
        .note(format!(
            "{path} has {size} bytes; a full image of {} needs {}",
            Bytes(needed.disk),
            needed.whole
        ))
        .help(phrase!(
            "extend it: {command}, or convert the image to raw",
            command = command("lvextend -L", &[&format!("{}b", needed.whole), path]),
        ));
    if size < needed.disk {
        finding
            .severity(Severity::Advice)
            .note("only advice: the device is smaller than the disk, so it may be extended while the guest runs");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_image_is_as_large_as_qemu_img_measure_says() {
        let whole = |disk, cluster, bits, ext| fully_allocated(disk, cluster, bits, ext);
        assert_eq!(whole(40 << 30, 65536, 16, false), Some(42_956_488_704));
        assert_eq!(whole(100 << 30, 65536, 16, false), Some(107_390_828_544));
        assert_eq!(whole(90 << 30, 65536, 16, false), Some(96_651_771_904));
        assert_eq!(whole(100 << 30, 2 << 20, 16, false), Some(107_384_668_160));
        assert_eq!(whole(100 << 30, 4096, 64, false), Some(107_795_263_488));
        assert_eq!(whole(100 << 30, 65536, 16, true), Some(107_403_935_744));
        assert_eq!(whole(u64::MAX, 65536, 16, false), None);
        assert_eq!(whole(1, 0, 16, false), None);
    }
}
