//! `backing-image-written`

use vmdisk_fields::{phrase, quoted};
use vmdisk_rule::{Context, Evidence, Group, OtherGuests, Report, Severity, Sharing, declare_rule};

declare_rule! {
    /// A guest writes an image that an overlay of another guest is based on, which destroys the other guest's disk.
    ///
    /// ## What it reports
    /// Reports a disk that the guest writes if the image is a backing image of a disk of another guest of the run, in a
    /// `<backingStore>` or according to the image headers. The rule compares guests whose host is known: from a single
    /// facts file, from `--live`, or from `--host NAME=PATTERN`. A guest in several files, such as a snapshot and its
    /// domain, counts once.
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
    /// ## Not reported
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
    /// Not checked if several files are checked and the host of each guest is unknown:
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

fn check(_: &Context<'_>, others: &OtherGuests, report: &mut Report) {
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
