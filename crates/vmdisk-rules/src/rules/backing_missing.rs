//! `backing-missing`

use vmdisk_fields::{command, phrase, quoted};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::chain::{End, chains};

declare_rule! {
    /// The backing file of an image does not exist.
    ///
    /// ## What it reports
    /// Follows the backing files that the image headers name, below the images in the configuration, and reports a disk
    /// whose chain ends at a file that does not exist on the host. Relative names are resolved against the directory of
    /// the image that contains them.
    ///
    /// ## Why it matters
    /// An overlay holds only the data written since it was created. Without the image below it the guest does not
    /// start: libvirt reports `Cannot access backing file`, QEMU `Could not open backing file`. It happens when an
    /// overlay is moved or copied to another host without its chain, or when a base image is cleaned up.
    ///
    /// ## Use instead
    /// Restore the file. If it has moved, record the new path while the guest is shut down:
    /// `qemu-img rebase -u -F FORMAT -b NEWPATH OVERLAY`. To copy a disk with its whole chain into one image, use
    /// `qemu-img convert -O qcow2 OVERLAY NEW`. `qemu-img info --backing-chain IMAGE` shows the chain.
    ///
    /// ## Reported
    /// ```xml,reported,facts-backing-chains
    /// <domain type='kvm'>
    ///   <name>guest</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/moved.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
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
    ///   <source file='/srv/img/moved.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "backing-missing",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_libvirt_at_start("Cannot access backing file", "src/storage_file/storage_source.c, virStorageSourceReportBrokenChain"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for chain in chains(context) {
        let End::NotThere { path } = &chain.end else {
            if let Some(missing) = chain.unknown() {
                report.not_checked(chain.at(), missing.clone());
            }
            continue;
        };
        let above = chain.layers.last().map_or("", |layer| &*layer.path);
        report
            .finding(
                chain.at(),
                phrase!(
                    "the chain of {disk} ends at a file that does not exist: {path}",
                    path = quoted(path.clone().into_owned()),
                ),
            )
            .label("its header names that file")
            .note(phrase!("{above} names it as its backing file", above = quoted(above.to_owned())))
            .note(context.for_consumer(
                "libvirt says `Cannot access backing file`, and the guest does not start",
                "QEMU says `Could not open backing file`, and does not start",
            ))
            .help(phrase!(
                "restore the file, or record its new path with {command}; collect the facts again if it was created since",
                command = command("qemu-img rebase -u -F FORMAT -b NEWPATH", &[above]),
            ));
    }
}
