//! `image-shared-by-guests`

use vmdisk_fields::{DiskName, phrase, quoted};
use vmdisk_rule::{Context, Evidence, Group, OtherGuests, Report, Severity, Sharing, declare_rule};

declare_rule! {
    /// Two guests open one image, and at least one of them writes.
    ///
    /// ## What it reports
    /// Reports a disk whose file or device a disk of another guest of the run opens, unless both only read, or both are
    /// `<shareable/>`. The rule compares guests whose host is known: from a single facts file, from `--live`, or from
    /// `--host NAME=PATTERN`. A guest in several files, such as a snapshot and its domain, counts once.
    /// `backing-image-written` reports an image that another guest's overlay is based on, and `duplicate-disk-source`
    /// two disks of one guest.
    ///
    /// ## Why it matters
    /// QEMU locks the image, so the guests cannot run at the same time: `Failed to get "write" lock`. If the guests run
    /// on two hosts over a file system without locks, both write, and the file systems on the disk are destroyed. A
    /// guest that only reads sees a file system that changes under it.
    ///
    /// ## Use instead
    /// Give each guest its own image. If a cluster file system in the guests coordinates the writes, use a raw image
    /// with `cache='none'`, and mark both disks as `<shareable/>`; qcow2 cannot be shared. If the guests replace each
    /// other and never run together, allow the rule with this reason.
    ///
    /// ## Reported
    /// ```xml,reported,facts-xfs-nvme,beside-web2
    /// <domain type='kvm'>
    ///   <name>web3</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/img/web2.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme,beside-web2
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' discard='unmap'/>
    ///       <source file='/srv/img/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked if the other guests of the host are unknown:
    /// ```xml,not-checked,beside-unknown
    /// <domain type='kvm'>
    ///   <name>web3</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/img/web2.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "image-shared-by-guests",
    group: Group::Startup,
    severity: Severity::Warning,
    evidence: &[
        Evidence::refused_by("QEMU 5.2, 7.2, 10.0 and 11.1", "Failed to get \"write\" lock", "block/file-posix.c, raw_check_lock_bytes"),
    ],
    check: Guests(check),
}

fn check(_: &Context<'_>, others: &OtherGuests, report: &mut Report) {
    for image in &others.images {
        let disk = DiskName(image.disk);
        let guest = quoted(image.guest.clone());
        let (title, label) = match image.sharing {
            Sharing::BothWrite => (
                phrase!(
                    "{disk} and the guest {guest} write the same image",
                    disk,
                    guest
                ),
                "both write it",
            ),
            Sharing::OtherWrites => (
                phrase!(
                    "{disk} reads an image that the guest {guest} writes",
                    disk,
                    guest
                ),
                "it changes while this guest reads it",
            ),
            Sharing::IsBacking => continue,
        };
        report
            .finding(image.at(), title)
            .label(label)
            .note("QEMU locks the image: the second of the two guests does not start while the first one runs")
            .help("use separate images; for a cluster file system, use a raw image with `cache='none'`, and make both disks shareable");
    }
}
