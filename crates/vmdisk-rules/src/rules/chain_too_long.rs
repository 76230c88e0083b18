//! `chain-too-long`

use std::collections::{BTreeSet, HashMap};

use vmdisk_facts::Bug;
use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{Disk, FieldPath, Image, ImageField};
use vmdisk_rule::{Consumer, Context, Evidence, Group, Report, Severity, declare_rule};

use crate::chain::{Chain, End, MAX_IMAGES, chains};

declare_rule! {
    /// A disk's chain of backing files is too long, or is a loop.
    ///
    /// ## What it reports
    /// Counts the images of a disk: the images in the configuration and the images that headers below them name. More
    /// than 8 images are a warning. For libvirt 10.8 to 11.10 more than 25 images are an error. More than 200 images,
    /// or a loop, are always an error. An image that appears twice below the image that the guest writes is a warning.
    ///
    /// ## Why it matters
    /// QEMU looks up a block that was never written in every image of the chain. Each image has its own tables and
    /// cache, and is one more file that must not be lost. Chains grow unnoticed if backup and snapshot tools do not
    /// clean up. libvirt defines a guest with a loop or too many images, but does not start it:
    ///
    /// - libvirt 10.8 to 11.10 start chains of up to 25 images. With 26 images, 11.3 stops with
    ///   `failed to parse JSON: nesting too deep`.
    /// - Other versions support 200 images: `backing chains more than 200 layers deep are not supported`.
    /// - A loop is reported as `self-referential or too deeply nested`.
    ///
    /// ## Use instead
    /// Merge the images that are not needed separately. While the guest runs:
    /// `virsh blockcommit GUEST TARGET --active --pivot --wait`, which merges the whole chain into its lowest image.
    /// While it is shut down: `qemu-img commit OVERLAY`, the lowest overlay first, or
    /// `qemu-img convert -O qcow2 OVERLAY NEW` for one new image.
    ///
    /// ## Reported
    /// ```xml,reported,facts-backing-chains
    /// <domain type='kvm'>
    ///   <name>guest</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/long-9.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// An error, because the chain is a loop:
    /// ```xml,reported,facts-backing-chains
    /// <domain type='kvm'>
    ///   <name>guest</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/loop.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// An error too, because the guest would write a backing file of its own chain:
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/a.qcow2'/>
    ///   <backingStore type='file'>
    ///     <format type='qcow2'/>
    ///     <source file='/srv/img/b.qcow2'/>
    ///     <backingStore type='file'>
    ///       <format type='qcow2'/>
    ///       <source file='/srv/img/a.qcow2'/>
    ///       <backingStore/>
    ///     </backingStore>
    ///   </backingStore>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-backing-chains
    /// <domain type='kvm'>
    ///   <name>guest</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/overlay.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/long-9.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,facts-backing-chains
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/long-8.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden,facts-backing-chains
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/loop.qcow2'/>
    ///   <backingStore type='file'>
    ///     <format type='qcow2'/>
    ///     <source file='/srv/img/loop-below.qcow2'/>
    ///     <backingStore type='file'>
    ///       <format type='qcow2'/>
    ///       <source file='/srv/img/loop.qcow2'/>
    ///     </backingStore>
    ///   </backingStore>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "chain-too-long",
    group: Group::Performance,
    severity: Severity::Warning,
    evidence: &[
        Evidence::refused_by_libvirt_at_start("is self-referential or too deeply nested", "src/storage_file/storage_source.c, virStorageSourceGetMetadataRecurse on a loop"),
        Evidence::refused_by_libvirt_at_start("backing chains more than 200 layers deep are not supported", "src/qemu/qemu_domain.c, qemuDomainStorageSourceValidateDepth"),
        Evidence::measured("chains of 2, 10, 20, 23, 24 and 25 images start; with 26 to 32 and 35 it says `failed to parse JSON: nesting too deep`", "virsh create, libvirt 11.3.0 with QEMU 10.0.13"),
        Evidence::Source("libvirt NEWS 10.8.0 (switch to json-c) and 12.0.0 (startup with more than ~25 external snapshots fixed)"),
        Evidence::NotMeasuredHere(
            "the cost of a long chain depends on how much of the disk is in its upper images; 8 is a choice, not a measured bound",
        ),
    ],
    check: Model(check),
}

/// Chains of at least this length are reported.
const LONG: usize = 8;

/// The longest chain that libvirt 11.3 starts: QEMU's answers nest one object for each image.
const MAX_NESTED: usize = 25;

fn check(context: &Context<'_>, report: &mut Report) {
    // The configuration decides before any header is read.
    let mut told = BTreeSet::new();
    for (index, disk, top) in context.images() {
        if let Some((first, again)) = written_twice(top) {
            report_loop(report, index, disk, first, again);
            told.insert(index);
        }
    }
    let mut is_followed = BTreeSet::new();
    for chain in chains(context) {
        is_followed.insert(chain.index);
        if !told.contains(&chain.index) {
            report_headers(context, report, &chain);
        }
    }
    for (index, _, top) in context.images() {
        if !told.contains(&index) && !is_followed.contains(&index) {
            let label = "the first image of the chain";
            report_long(context, report, (index, 0), top.chain().count(), label);
        }
    }
}

/// The depths of the images of a chain that share one file.
fn written_twice(top: &Image) -> Option<(usize, usize)> {
    // Most chains are one image.
    top.chain().nth(1)?;
    let mut seen = HashMap::new();
    top.chain().enumerate().find_map(|(depth, image)| {
        let path = image.host_path()?;
        // Two slices of one file are two images.
        let part = image.slice.map(|slice| (slice.offset, slice.size));
        let first = seen.insert((path, part), depth)?;
        Some((first, depth))
    })
}

fn report_loop(report: &mut Report, index: usize, disk: &Disk, first: usize, again: usize) {
    let at = |depth| FieldPath::Image(index, depth, ImageField::Path);
    let is_written = first == 0 && disk.is_writable();
    let finding = report.finding(
        at(again),
        phrase!("the chain of {disk} is a loop: it leads back to an image above"),
    );
    finding.related(at(first), "the same image").help(phrase!(
        "use the right image here, or remove {rest} so that the headers decide",
        rest = FieldPath::Image(index, again, ImageField::Image),
    ));
    if is_written {
        finding
            .severity(Severity::Error)
            .label("the guest writes this image")
            .note("QEMU opens each image of the chain, and the second time fails with `Failed to get shared \"write\" lock`");
    } else {
        finding
            .label("appears twice")
            .note("QEMU uses the chain as written, and reads data from the lower image that its headers do not refer to");
    }
}

/// Reports the part of the chain that headers determine.
fn report_headers(context: &Context<'_>, report: &mut Report, chain: &Chain<'_>) {
    match &chain.end {
        End::Loop { path } => {
            report
                .finding(
                    chain.at(),
                    phrase!(
                        "the chain of {disk} is a loop: it leads back to {path}",
                        path = quoted(path.clone().into_owned()),
                    ),
                )
                .severity(Severity::Error)
                .label("its header names that image")
                .note(context.for_consumer(
                    "libvirt says `is self-referential or too deeply nested`, and the guest does not start",
                    "QEMU opens the same images repeatedly, and does not start",
                ))
                .help("find the right backing image, and record it with `qemu-img rebase -u`");
            return;
        }
        End::TooDeep => {
            too_deep(context, report, chain.index, chain.written_above);
            return;
        }
        End::Unknown(missing) => report.not_checked(chain.at(), missing.clone()),
        End::Base | End::NotThere { .. } | End::Elsewhere { .. } => {}
    }
    // Without headers the chain is as long as configured, up to the image whose header is not known.
    let is_unread = chain.layers.is_empty();
    let images = chain.length() + usize::from(is_unread);
    let label = "the first image that a header names";
    report_long(
        context,
        report,
        (chain.index, chain.written_above),
        images,
        label,
    );
}

fn report_long(
    context: &Context<'_>,
    report: &mut Report,
    (disk, depth): (usize, usize),
    images: usize,
    label: &'static str,
) {
    if images > MAX_IMAGES {
        too_deep(context, report, disk, depth);
    } else if images > LONG {
        let finding = report.finding(
            FieldPath::Image(disk, depth, ImageField::Path),
            phrase!("the chain of {disk} has {images} images", images),
        );
        finding
            .label(label)
            .note("a read of a block that was never written looks into each of them")
            .help("merge the images that are not needed separately: `virsh blockcommit` while the guest runs, `qemu-img commit` while it is shut down");
        if images > MAX_NESTED && limits_nesting(context) {
            finding.severity(Severity::Error).note(
                "libvirt 10.8 to 11.10 does not start a chain of more than 25 images: `failed to parse JSON: nesting too deep`",
            );
        }
    }
}

/// True if this libvirt limits the nesting of objects in QEMU's answers.
fn limits_nesting(context: &Context<'_>) -> bool {
    context.is_for_libvirt() && context.target.has_bug(Bug::DeepChain).is_yes()
}

fn too_deep(context: &Context<'_>, report: &mut Report, disk: usize, depth: usize) {
    let finding = report.finding(
        FieldPath::Image(disk, depth, ImageField::Path),
        phrase!(
            "the chain of {disk} has more than {most} images",
            most = MAX_IMAGES,
        ),
    );
    // QEMU also opens longer chains.
    if context.consumer == Consumer::Libvirt {
        finding
            .severity(Severity::Error)
            .note("libvirt accepts the guest, but does not start it: the limit is 200 images");
    }
    finding
        .label("the first image of the chain")
        .help("merge images with `qemu-img commit`, the lowest first");
}
