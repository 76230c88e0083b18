//! `chain-too-long`

use crate::chain::{End, MOST_IMAGES, chains};
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity, TakenBy};

declare_rule! {
    /// A disk's chain of backing files is long, or has no end.
    ///
    /// ## What it does
    /// Counts the images of a disk, those that are written and those that the headers below them name. More than 8
    /// are a warning. More than 200, or a loop, are an error.
    ///
    /// ## Why it matters
    /// A block that was never written is looked up in every image of the chain, each with tables and a cache of its
    /// own, and each is one more file that must not be lost. Backup and snapshot tools that do not clean up make
    /// chains that grow without anybody seeing it. libvirt refuses more than 200 images, and loops.
    ///
    /// ## Reported
    /// ```xml,reported,facts-backing-chains
    /// <domain type='kvm'>
    ///   <name>guest</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/long-9.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// An error, because the chain is a loop.
    /// ```xml,reported,facts-backing-chains
    /// <domain type='kvm'>
    ///   <name>guest</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/loop.qcow2'/>
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
    ///   <source file='/srv/img/long-9.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "chain-too-long",
        group: Group::Performance,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "libvirt 9.0",
                text: "is self-referential or too deeply nested",
                source: "src/storage_file/storage_source.c, virStorageSourceGetMetadataRecurse; virsh create on a loop",
            },
            Evidence::NotMeasuredHere(
                "what a long chain costs depends on how much of the disk lies in its upper images; 8 is a choice, not a measured bound",
            ),
        ],
        supersedes: &[],
        check: check,
    }
}

/// From here on a chain is worth a word.
const LONG: usize = 8;

fn check(context: &Context<'_>, report: &mut Report) {
    for chain in chains(context) {
        let name = chain.disk.name();
        match &chain.end {
            End::Loop { path } => {
                report
                    .finding(chain.at, format!("the chain of `{name}` is a loop: it comes back to {path}"))
                    .severity(Severity::Error)
                    .label("its header leads there")
                    .note(context.for_taker(
                        "libvirt says `is self-referential or too deeply nested`, and the guest does not start",
                        "QEMU would open the same images again and again, and does not start",
                    ))
                    .help("find the image that should stand below, and name it with qemu-img rebase -u");
                continue;
            }
            End::TooDeep => {
                let finding = report.finding(
                    chain.at,
                    format!("the chain of `{name}` has more than {MOST_IMAGES} images"),
                );
                // QEMU opens what libvirt would not.
                if context.taken_by == TakenBy::Libvirt {
                    finding
                        .severity(Severity::Error)
                        .note("libvirt refuses it, and the guest does not start");
                }
                finding
                    .label("the first of them")
                    .help("merge images with qemu-img commit, from below");
                continue;
            }
            End::Unknown(missing) => report.not_checked(chain.at, missing.clone()),
            End::Base | End::NotThere { .. } | End::Elsewhere { .. } => {}
        }
        if chain.length() > LONG {
            report
                .finding(chain.at, format!("the chain of `{name}` has {} images", chain.length()))
                .label("the first of those that headers name")
                .note("a read of what was never written looks into each of them")
                .help("merge what nobody needs apart: virsh blockcommit while the guest runs, qemu-img commit while it does not");
        }
    }
}
