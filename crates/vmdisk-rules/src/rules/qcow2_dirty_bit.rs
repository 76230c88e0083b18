//! `qcow2-dirty-bit`

use crate::chain::chains;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A qcow2 image was not closed.
    ///
    /// ## What it does
    /// Reports a disk whose image has the dirty bit while nobody has it open for writing: the guest or the host
    /// went down while an image with lazy reference counts was in use. Images below it are opened for reading and
    /// are left alone.
    ///
    /// ## Why it matters
    /// QEMU repairs the reference counts when it next opens the image for writing, which takes long for a large
    /// one, and the guest does not run meanwhile. What else was in flight when it went down is worth a look.
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
    /// In use, so that the bit means nothing.
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
    /// Without facts there is no telling.
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/dirty.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "qcow2-dirty-bit",
        group: Group::DataSafety,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "an image with lazy_refcounts=on has the dirty bit after SIGKILL, and is opened and repaired",
                how: "QEMU 7.2",
            },
            Evidence::Source("QEMU docs/interop/qcow2, incompatible features, bit 0"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for chain in chains(context) {
        let Some(layer) = chain.layers.first() else {
            if let Some(missing) = chain.unknown() {
                report.not_checked(chain.at, missing.clone());
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
            .finding(chain.at, format!("the image of `{}` was not closed", chain.disk.name()))
            .label("the dirty bit is set")
            .note(format!("the header of {path} says so, and nobody was seen to have it open for writing"))
            .help(format!("if the guest does not run: qemu-img check -r leaks {path}, which is what QEMU does at the next start, then check the file systems in it"));
    }
}
