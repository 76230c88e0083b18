//! `backing-format-missing`

use vmdisk_facts::Fact;
use vmdisk_fields::{command, phrase, quoted};
use vmdisk_rule::{Consumer, Context, Evidence, Group, Report, Severity, declare_rule};

use crate::chain::chains;

declare_rule! {
    /// An image does not record the format of its backing file.
    ///
    /// ## What it reports
    /// Reports qcow2 images whose header names a backing file without its format, in the chain that the headers of a
    /// disk's images form. It is an error if that backing file has a backing file too, and a warning otherwise.
    ///
    /// ## Why it matters
    /// `qemu-img create -b` without `-F` created such images until QEMU 6.1, which requires `-F`. In a longer chain
    /// libvirt (6.0 and later) does not start the guest: the format `was not specified in the image metadata`. At the
    /// end of a chain, libvirt and QEMU guess the format from the first bytes of the backing file. A guest that once
    /// had this file as its raw disk could write a fake header there, and so choose which host file QEMU opens
    /// (CVE-2008-2004).
    ///
    /// ## Use instead
    /// Record the format in the overlay while the guest is shut down:
    /// `qemu-img rebase -u -F FORMAT -b BACKING OVERLAY`. FORMAT is the format that the backing file was created with,
    /// such as `qcow2` or `raw`; do not rely on probing to find it. `-u` changes only the header, so it takes no time
    /// and copies no data. For new overlays use `qemu-img create -f qcow2 -b BACKING -F FORMAT OVERLAY`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-backing-chains
    /// <domain type='kvm'>
    ///   <name>guest</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/unnamed.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// A warning, because this format is probed:
    /// ```xml,reported,facts-backing-chains
    /// <domain type='kvm'>
    ///   <name>guest</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/guessed.qcow2'/>
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
    ///   <source file='/srv/img/unnamed.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "backing-format-missing",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_libvirt_at_start("was not specified in the image metadata", "src/storage_file/storage_source.c, virStorageSourceGetMetadataRecurse; a backing file without a recorded format is probed by its first bytes"),
        Evidence::Cve("CVE-2008-2004"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for chain in chains(context) {
        for (number, layer) in chain.layers.iter().enumerate() {
            let Some(header) = layer.header else { continue };
            // Only qcow2 records it.
            let (true, Fact::Known(backing)) =
                (header.format.is(&"qcow2".to_owned()), &header.backing)
            else {
                continue;
            };
            let what = || {
                format!(
                    "the format that {} records for its backing file",
                    layer.path
                )
            };
            match Context::known(backing.format.as_ref(), what) {
                Ok(None) => {}
                Ok(Some(_)) => continue,
                Err(missing) => {
                    report.not_checked(chain.at(), missing);
                    continue;
                }
            }
            // A file in another directory or on another host: the image below shows whether the chain continues.
            let below = chain.layers.get(number + 1).and_then(|below| below.header);
            let goes_on =
                below.is_some_and(|below| below.backing.is_known() || below.data_file.is_known());
            let name = chain.name_of(number);
            let finding = report.finding(
                chain.at(),
                phrase!(
                    "{name} does not record the format of its backing file {path}",
                    name,
                    path = quoted(backing.path.clone()),
                ),
            );
            finding
                .label("its header names the backing file")
                .help(phrase!(
                    "record the format that the backing file was created with: {command}",
                    command = command(
                        "qemu-img rebase -u -F FORMAT -b",
                        &[&backing.path, &layer.path]
                    ),
                ));
            if goes_on && context.consumer == Consumer::Libvirt {
                finding.note("the backing file has a backing file too, so libvirt says `was not specified in the image metadata`, and the guest does not start");
            } else {
                finding
                    .severity(Severity::Warning)
                    .note("the format is probed from the first bytes of the backing file, which a guest may have written");
            }
        }
        if let Some(missing) = chain.unknown() {
            report.not_checked(chain.at(), missing.clone());
        }
    }
}
