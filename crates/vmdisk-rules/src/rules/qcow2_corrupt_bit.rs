//! `qcow2-corrupt-bit`

use vmdisk_fields::phrase;
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::chain::chains;

declare_rule! {
    /// A qcow2 image is marked corrupt.
    ///
    /// ## What it reports
    /// Reports a disk if an image of its chain has the corrupt bit in its header: QEMU found inconsistent metadata and
    /// stopped writing.
    ///
    /// ## Why it matters
    /// QEMU opens such an image only read-only, so a guest that writes it does not start. The latest writes may be
    /// lost, and a repair can lose more.
    ///
    /// ## Use instead
    /// Copy the image first. `qemu-img check IMAGE` then lists the damage, and `qemu-img check -r all IMAGE` repairs
    /// what can be repaired. Alternatively, restore a backup.
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
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/corrupt.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,facts-backing-chains
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/corrupt.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    name: "qcow2-corrupt-bit",
    group: Group::DataSafety,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by("QEMU 7.2", "Image is corrupt; cannot be opened read/write", "block/qcow2.c, qcow2_do_open; virsh create with libvirt 9.0"),
    ],
    check: Model(check),
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
                chain.at(),
                phrase!("{image} is marked corrupt", image = chain.name_of(number)),
            );
            finding
                .label("the corrupt bit is set")
                .help(format!("copy {path}, then run `qemu-img check` to list the damage and `qemu-img check -r all` to repair it, or restore a backup"));
            if number == 0 && chain.written_above == 0 && chain.disk.is_writable() {
                finding.note(format!(
                    "QEMU refuses to open {path} for writing, and the guest does not start"
                ));
            } else {
                finding.note(format!(
                    "QEMU opens {path} for reading, but the data may be wrong"
                ));
            }
        }
        if let Some(missing) = chain.unknown() {
            report.not_checked(chain.at(), missing.clone());
        }
    }
}
