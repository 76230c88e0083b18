//! `image-larger-than-free-space`

use std::collections::BTreeMap;

use vmdisk_facts::Filesystem;
use vmdisk_fields::phrase;
use vmdisk_model::{Bytes, Disk, ErrorPolicy, Image};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::{host, space};

declare_rule! {
    /// The file system of an image has less free space than the guest can still write.
    ///
    /// ## What it reports
    /// Reports a disk whose image, sparse raw or qcow2, can still grow by more than the free space of its file system.
    /// If each image alone could grow to its size, but not all images of the guest on that file system together, it is
    /// advice. Space that snapshots inside an image need is not counted, nor is an external data file. Images on block devices are left to
    /// `qcow2-device-too-small` and `thin-pool-overcommitted`.
    ///
    /// ## Why it matters
    /// The guest sees free space that does not exist. When the file system is full, QEMU pauses the guest with an I/O
    /// error by default (`error_policy='enospace'`), together with every other guest that writes there. With
    /// `error_policy='report'` the guest sees I/O errors.
    ///
    /// ## Use instead
    /// Free or add space, move the image, or shrink the disk inside the guest first and then the image. To give an image
    /// all its space now, run `qemu-img convert -O qcow2 -o preallocation=falloc IMAGE NEW`. With `discard='unmap'`, space
    /// that the guest deletes returns to the file system.
    ///
    /// ## Reported
    /// ```xml,reported,facts-unsafe-mounts
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' discard='unmap'/>
    ///   <source file='/srv/full/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Advice, because each of the images could be filled, but not both:
    /// ```xml,reported,facts-unsafe-mounts
    /// <domain type='kvm'>
    ///   <name>db1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' discard='unmap'/>
    ///       <source file='/srv/full/data1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' discard='unmap'/>
    ///       <source file='/srv/full/data2.qcow2'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// An image with all its space:
    /// ```xml,not-reported,facts-unsafe-mounts
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/full/whole.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,facts-xfs-nvme
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/full/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "image-larger-than-free-space",
    group: Group::Space,
    severity: Severity::Warning,
    evidence: &[
        Evidence::Source("QEMU docs, system/invocation, -drive werror: enospc, the default, pauses the guest if the disk of the host is full"),
        Evidence::Source("QEMU block/block-backend.c, blk_get_error_action: werror=enospc stops the guest on ENOSPC"),
    ],
    check: Model(check),
}

/// The images of a guest that can still grow on one file system.
struct Growing<'a> {
    filesystem: &'a Filesystem,
    /// Disk, path, and the growth in bytes.
    images: Vec<(usize, &'a str, u64)>,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut growing: BTreeMap<&str, Growing<'_>> = BTreeMap::new();
    let what = "the free space of the file system";
    let exists =
        |disk: &Disk, image: &Image| host::is_file(disk, image) && image.creation.is_none();
    for (index, .., path, facts) in host::kept_on(context, report, what, exists) {
        let at = host::image_of(index);
        let Some(Some((filesystem, growth))) = report.require(at, space::growth(facts, path))
        else {
            continue;
        };
        let group = growing.entry(&filesystem.id).or_insert_with(|| Growing {
            filesystem,
            images: Vec::new(),
        });
        group.images.push((index, path, growth));
    }
    for group in growing.values() {
        check_filesystem(context, report, group);
    }
}

fn check_filesystem(context: &Context<'_>, report: &mut Report, group: &Growing<'_>) {
    let Growing { filesystem, images } = group;
    let Some((first, path, _)) = images.first() else {
        return;
    };
    let what = || format!("the free space of the file system of {path}");
    let free = Context::known(filesystem.free_bytes.clone(), what);
    let Some(Some(free)) = report.require(host::image_of(*first), free) else {
        return;
    };
    let mut is_reported = false;
    for (index, path, growth) in images.iter().filter(|(_, _, growth)| *growth > free) {
        is_reported = true;
        let policy = context.domain.disks[*index].frontend.error_policy;
        report_image(report, *index, path, policy, [*growth, free].map(Bytes));
    }
    let all = images
        .iter()
        .fold(0_u64, |sum, (_, _, growth)| sum.saturating_add(*growth));
    if is_reported || all <= free {
        return;
    }
    let finding = report.finding(
        host::image_of(*first),
        phrase!("{disk} and the other images on its file system can grow beyond the free space"),
    );
    finding
        .severity(Severity::Advice)
        .label("shares its free space with other disks of the guest")
        .note(format!(
            "together they can grow by {}, and {} were free when the facts were collected",
            Bytes(all).rounded(),
            Bytes(free).rounded()
        ))
        .help("watch the free space, or add some");
    for (index, _, _) in &images[1..] {
        finding.related(host::image_of(*index), phrase!("{disk} is on it too"));
    }
}

fn report_image(
    report: &mut Report,
    index: usize,
    path: &str,
    policy: Option<ErrorPolicy>,
    [growth, free]: [Bytes; 2],
) {
    let effect = match policy {
        None | Some(ErrorPolicy::Stop | ErrorPolicy::Enospace) => "QEMU pauses the guest",
        Some(ErrorPolicy::Report) => "the guest's writes fail",
        Some(ErrorPolicy::Ignore) => "the guest's writes are lost",
    };
    report
        .finding(
            host::image_of(index),
            phrase!(
                "{disk} can grow by {growth}, and its file system has {free} free",
                growth = growth.rounded(),
                free = free.rounded(),
            ),
        )
        .label("the guest can fill the file system")
        .note(format!(
            "{path} is not fully allocated; {effect} when the file system is full"
        ))
        .help("add or free space, move the image, or make the disk smaller");
}
