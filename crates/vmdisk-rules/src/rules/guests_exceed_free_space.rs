//! `guests-exceed-free-space`

use vmdisk_fields::phrase;
use vmdisk_model::Bytes;
use vmdisk_rule::{
    Context, Evidence, Group, OtherGuests, Report, Resource, Severity, declare_rule,
};

declare_rule! {
    /// The images of all guests of a host can grow beyond the free space of their file system.
    ///
    /// ## What it reports
    /// Adds up the bytes by which the images of all guests of the run can still grow on each file system: sparse raw
    /// images and qcow2. The rule reports the first guest, in the order of the files, with which the sum exceeds the
    /// free space. It compares guests whose host is known: from a single facts file, from `--live`, or from
    /// `--host NAME=PATTERN`. A guest in several files, such as a snapshot and its domain, counts once.
    /// `image-larger-than-free-space` reports a guest that exceeds the free space alone.
    ///
    /// ## Why it matters
    /// Overcommitted space is fine as long as somebody watches it. When the file system is full, QEMU pauses every
    /// guest that writes to it, all at once.
    ///
    /// ## Use instead
    /// Watch the free space, add some, or move images. With `discard='unmap'` and `fstrim` in the guests, deleted data
    /// does not count.
    ///
    /// ## Reported
    /// ```xml,reported,facts-unsafe-mounts,beside-full
    /// <domain type='kvm'>
    ///   <name>db2</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' discard='unmap'/>
    ///       <source file='/srv/full/data2.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-unsafe-mounts,beside-full
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
    ///   <name>db2</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' discard='unmap'/>
    ///       <source file='/srv/full/data2.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "guests-exceed-free-space",
    group: Group::Space,
    severity: Severity::Advice,
    evidence: &[
        Evidence::Source("QEMU docs, system/invocation, -drive werror: enospc, the default, pauses the guest if the disk of the host is full"),
    ],
    check: Guests(check),
}

fn check(_: &Context<'_>, others: &OtherGuests, report: &mut Report) {
    for shortage in &others.shortages {
        let Resource::Space(point) = &shortage.resource else {
            continue;
        };
        report
            .finding(
                shortage.at,
                phrase!(
                    "the images of {guests} guests on {point} can grow by {needed}, and {free} are free",
                    guests = shortage.guests,
                    point = point.clone(),
                    needed = Bytes(shortage.needed).rounded(),
                    free = Bytes(shortage.available).rounded(),
                ),
            )
            .label("with this guest, the sum exceeds the free space")
            .help("watch the free space of this file system, add some, or move images");
    }
}
