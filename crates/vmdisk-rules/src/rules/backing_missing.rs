//! `backing-missing`

use crate::chain::{End, chains};
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

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
        check: check,
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
                format!("the chain of `{}` ends at a file that does not exist: {path}", chain.disk.name()),
            )
            .label("its header leads there")
            .note(format!("{above} names it as its backing file"))
            .note(context.for_taker(
                "libvirt says `Cannot access backing file`, and the guest does not start",
                "QEMU says `Could not open backing file`, and does not start",
            ))
            .help(format!(
                "put the file back, or tell the image where it is now: qemu-img rebase -u -F FORMAT -b PATH {above}; \
                 if it has been made since, collect the facts again"
            ));
    }
}
