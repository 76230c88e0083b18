//! `backing-missing`

use vmdisk_fields::{phrase, quoted};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::chain::{End, chains};

declare_rule! {
    /// An image's header names a backing file that is not there.
    ///
    /// ## What it does
    /// Follows the backing files that the headers of a disk's images name, below those that the configuration
    /// writes, and reports a disk whose chain ends at a file that was looked for on the host and not found.
    /// Relative names count from the directory of the image that has them.
    ///
    /// ## Why it matters
    /// The overlay holds only what was written since it was made. Without the image below it the guest does not
    /// start, and copying the overlay alone to another host copies only a part of the disk.
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
    /// Without facts there is no telling.
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/moved.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "backing-missing",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::refused_by_libvirt_at_start("Cannot access backing file", "src/storage_file/storage_source.c, virStorageSourceReportBrokenChain"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for chain in chains(context) {
        let End::NotThere { path } = &chain.end else {
            if let Some(missing) = chain.unknown() {
                report.not_checked(chain.at, missing.clone());
            }
            continue;
        };
        let above = chain.layers.last().map_or("", |layer| layer.path.as_str());
        report
            .finding(
                chain.at,
                phrase!(
                    "the chain of {disk} ends at a file that does not exist: {path}",
                    disk = chain.disk_name(),
                    path = quoted(path.clone()),
                ),
            )
            .label("its header names that file")
            .note(phrase!("{above} names it as its backing file", above = quoted(above.to_owned())))
            .note(context.for_taker(
                "libvirt says `Cannot access backing file`, and the guest does not start",
                "QEMU says `Could not open backing file`, and does not start",
            ))
            .help(phrase!(
                "restore the file, or record its new path with {command}; collect the facts again if it was created since",
                command = quoted(format!("qemu-img rebase -u -F FORMAT -b PATH {above}")),
            ));
    }
}
