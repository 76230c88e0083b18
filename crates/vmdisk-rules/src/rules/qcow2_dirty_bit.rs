//! `qcow2-dirty-bit`

use vmdisk_fields::{command, phrase};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::chain::chains;

declare_rule! {
    /// A qcow2 image was not closed cleanly.
    ///
    /// ## What it reports
    /// Reports a disk whose image has the dirty bit although no process has it open for writing: the guest or the host
    /// crashed while an image with lazy reference counts was in use. Backing images are opened read-only and are not
    /// reported.
    ///
    /// ## Why it matters
    /// QEMU rebuilds the reference counts when it next opens the image for writing. For a large image this takes long,
    /// and the guest waits. Other writes in flight at the crash may be lost too.
    ///
    /// ## Use instead
    /// While the guest is off, run `qemu-img check -r leaks IMAGE`, which does the same repair ahead of the next start.
    /// Then check the file systems in the guest.
    ///
    /// ## Reported
    /// ```xml,reported,facts-backing-chains
    /// <domain type='kvm'>
    ///   <name>guest</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/dirty.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// The image is in use, so the dirty bit is expected:
    /// ```xml,not-reported,facts-backing-chains
    /// <domain type='kvm'>
    ///   <name>guest</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/running.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/dirty.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "qcow2-dirty-bit",
    group: Group::DataSafety,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("an image with lazy_refcounts=on has the dirty bit after SIGKILL, and is opened and repaired", "QEMU 7.2"),
        Evidence::Source("QEMU docs/interop/qcow2, incompatible features, bit 0"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for chain in chains(context) {
        let Some(layer) = chain.layers.first() else {
            if let Some(missing) = chain.unknown() {
                report.not_checked(chain.at(), missing.clone());
            }
            continue;
        };
        if chain.written_above > 0 || !layer.header.is_some_and(|header| header.dirty.is_true()) {
            continue;
        }
        let lock = context
            .host
            .and_then(|host| host.file(&layer.path))
            .map(|file| &file.lock);
        if lock.is_some_and(|lock| lock.value().is_some_and(|lock| lock.writer.is_true())) {
            continue;
        }
        let path = &layer.path;
        report
            .finding(
                chain.at(),
                phrase!("{image} was not closed cleanly", image = chain.name_of(0)),
            )
            .label("the dirty bit is set")
            .note(format!("no process has {path} open for writing"))
            .help(phrase!(
                "with the guest off, run {command}, then check the file systems in the guest",
                command = command("qemu-img check -r leaks", &[path]),
            ));
    }
}
