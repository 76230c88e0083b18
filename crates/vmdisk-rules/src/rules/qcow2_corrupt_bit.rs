//! `qcow2-corrupt-bit`

use crate::chain::chains;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A qcow2 image is marked as corrupt.
    ///
    /// ## What it does
    /// Reports a disk with an image whose header has the corrupt bit: QEMU found its tables to contradict each other
    /// and stopped writing.
    ///
    /// ## Why it matters
    /// QEMU opens such an image for reading only, so that the guest does not start. What the guest wrote last
    /// may be lost, and a repair may lose more: a copy comes first.
    ///
    /// ## Reported
    /// ```xml,reported,facts-backing-chains
    /// <domain type='kvm'>
    ///   <name>guest</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/corrupt.qcow2'/>
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
    ///   <source file='/srv/img/corrupt.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "qcow2-corrupt-bit",
        group: Group::DataSafety,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU 7.2",
                text: "Image is corrupt; cannot be opened read/write",
                source: "block/qcow2.c, qcow2_do_open; virsh create with libvirt 9.0",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for chain in chains(context) {
        for (number, layer) in chain.layers.iter().enumerate() {
            let Some(header) = layer.header else { continue };
            if !header.corrupt.is_true() {
                continue;
            }
            let path = &layer.path;
            let finding = report.finding(
                chain.at,
                format!("{} is marked corrupt", chain.name_of(number)),
            );
            finding
                .label("the corrupt bit is set")
                .help(format!("copy {path} first; then qemu-img check says what is damaged, and -r all repairs what can be repaired, or restore a backup"));
            if number == 0 && chain.written_above == 0 && chain.disk.is_writable() {
                finding.note(format!("the header of {path} says so; QEMU refuses to open it for writing, and the guest does not start"));
            } else {
                finding.note(format!("the header of {path} says so; QEMU opens it for reading, and what is read may be wrong"));
            }
        }
        if let Some(missing) = chain.unknown() {
            report.not_checked(chain.at, missing.clone());
        }
    }
}
