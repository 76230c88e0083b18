//! `backing-image-written`

use std::collections::BTreeSet;

use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{FieldPath, ImageField};
use vmdisk_rule::{Context, Evidence, Group, OtherGuests, Report, Severity, Sharing, declare_rule};

use crate::guests::for_each_image;

declare_rule! {
    /// A guest writes an image that an overlay of another guest is based on, which destroys the other guest's disk.
    ///
    /// ## What it reports
    /// Reports a disk that the guest writes if the image is a backing image of a disk of another guest of the run, in a
    /// `<backingStore>` or according to the image headers. The rule compares guests whose host is known: from a single
    /// facts file, from `--live`, or from `--host NAME=PATTERN`. A guest in several files, such as a snapshot and its
    /// domain, counts once.
    ///
    /// Also reports a disk that is based on an image which a running QEMU has open for writing, according to the locks in
    /// the facts. QEMU writes the backing images of its own guest during a commit, so nothing is reported if the disk's
    /// own image is open for writing, too.
    ///
    /// ## Why it matters
    /// An overlay contains only the differences from its backing image. When the backing image changes, all clusters
    /// that the overlay does not contain change with it, and the file system on the disk is corrupted. QEMU's locks
    /// prevent this only while the other guest runs.
    ///
    /// ## Use instead
    /// Never write to an image that has overlays: make it read-only for all users (`chmod a-w IMAGE`), and give this
    /// guest its own overlay: `qemu-img create -f qcow2 -b IMAGE -F FORMAT OVERLAY`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-backing-chains,beside-overlay
    /// <domain type='kvm'>
    ///   <name>base</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' discard='unmap'/>
    ///       <source file='/srv/img/base.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// A running QEMU has the backing image of `clone.qcow2` open for writing:
    /// ```xml,reported,facts-backing-open-for-writing
    /// <domain type='kvm'>
    ///   <name>clone</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' discard='unmap'/>
    ///       <source file='/srv/img/clone.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// The guest runs, and commits its overlay to the backing image:
    /// ```xml,not-reported,facts-backing-open-for-writing
    /// <domain type='kvm'>
    ///   <name>merging</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' discard='unmap'/>
    ///       <source file='/srv/img/merging.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported,facts-backing-chains,beside-overlay
    /// <domain type='kvm'>
    ///   <name>other</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' discard='unmap'/>
    ///       <source file='/srv/img/other.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked if the other guests of the host are unknown:
    /// ```xml,not-checked,beside-unknown
    /// <domain type='kvm'>
    ///   <name>base</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' discard='unmap'/>
    ///       <source file='/srv/img/base.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "backing-image-written",
    group: Group::DataSafety,
    severity: Severity::Error,
    evidence: &[
        Evidence::measured("after one write to the backing image, the overlay reads other data: `Pattern verification failed`", "qemu-img create -b and qemu-io write and read, QEMU 7.2"),
        Evidence::Source("qemu-img(1), create: the overlay records only the differences from the backing file, which only a commit modifies"),
    ],
    check: Guests(check),
}

fn check(context: &Context<'_>, others: &OtherGuests, report: &mut Report) {
    if *others == OtherGuests::default() {
        check_locks(context, report);
    }
    for image in &others.images {
        if image.sharing != Sharing::IsBacking {
            continue;
        }
        let more = match image.more {
            0 => String::new(),
            1 => ", and 1 more guest".to_owned(),
            more => format!(", and {more} more guests"),
        };
        report
            .finding(
                image.at(),
                phrase!(
                    "{disk} writes the backing image of the guest {guest}{more}",
                    guest = quoted(image.guest.clone()),
                    more,
                ),
            )
            .label("each write corrupts the disk of the other guest")
            .note("QEMU's locks prevent it only while the other guest runs")
            .help("give this guest an overlay of its own, and make the image read-only");
    }
}

/// The images that a QEMU has open, whether or not its guest is one of the run.
fn check_locks(context: &Context<'_>, report: &mut Report) {
    let is_open = |path: &str| {
        let lock = context.host.and_then(|host| host.file(path)?.lock.value());
        lock.is_some_and(|lock| lock.writer.is_true())
    };
    let mut running = BTreeSet::new();
    let mut written = Vec::new();
    for_each_image(context, |number, depth, disk, path| {
        if !is_open(path) {
            return;
        }
        if depth == 0 {
            running.insert(number);
            return;
        }
        // An image that only a header names is reported at the last one that the configuration names.
        let image = disk.backend.image();
        let configured = image.map_or(1, |image| image.chain().count());
        written.push((number, depth.min(configured - 1), path.to_owned()));
    });
    for (disk, depth, path) in written {
        if running.contains(&disk) {
            continue;
        }
        report
            .finding(
                FieldPath::Image(disk, depth, ImageField::Path),
                phrase!("{disk} is based on an image that a running QEMU writes"),
            )
            .label("each write corrupts this disk")
            .note(format!("a QEMU has {path} open for writing"))
            .help("base the disk on an image that no guest writes, such as a copy, and make it read-only; if this is a commit, wait for its end");
    }
}
