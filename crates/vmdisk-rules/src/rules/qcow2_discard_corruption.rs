//! `qcow2-discard-corruption`

use vmdisk_facts::Version;
use vmdisk_model::{DetectZeroes, Discard, DiskField, FieldPath, Format};

use crate::rule::declare_rule;
use crate::{Confidence, Context, Evidence, Group, Missing, Report, Severity};

declare_rule! {
    /// A qcow2 image takes discards in a QEMU that may corrupt it by them.
    ///
    /// ## What it does
    /// Reports writable qcow2 images with `discard='unmap'` or `detect_zeroes='unmap'` where the target is a QEMU
    /// before 10.0.11, or from 10.1 to 11.0.1.
    ///
    /// ## Why it matters
    /// A discard, or a write of zeroes that becomes one, and a write that copies from below can meet on one
    /// cluster, and the newer data is lost. It takes both at the same moment, so it is rare, and nothing tells when
    /// it has happened. Distributions may have mended older versions: Debian's 7.2.22 has not.
    ///
    /// ## Reported
    /// ```xml,reported,qemu-7.2
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,qemu-10.0.11
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,qemu-7.2
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='ignore'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Without a target nobody knows which QEMU it will be.
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "qcow2-discard-corruption",
        group: Group::DataSafety,
        severity: Severity::Advice,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "QEMU's own iotest 046 fails with `Pattern verification failed` on 5.2.0 and 7.2.22, and passes on 10.0.13 and 11.1.3",
                how: "qemu-io with concurrent aio_write and discard on a qcow2 overlay, Linux 6.18",
            },
            Evidence::Source("QEMU stable 10.0.11 and 11.0.2: qcow2: Fix corruption on discard during write with COW; Fix data loss on zero write with detect-zeroes=unmap"),
        ],
        supersedes: &[],
        check: check,
    }
}

/// True for the versions without the fix.
pub(super) fn is_affected(qemu: Version) -> bool {
    qemu < Version(10, 0, 11) || (qemu >= Version(10, 1, 0) && qemu < Version(11, 0, 2))
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        if image.format != Some(Format::Qcow2) || !disk.is_writable() {
            continue;
        }
        let backend = &disk.backend;
        let field = if backend.detect_zeroes == Some(DetectZeroes::Unmap) {
            DiskField::DetectZeroes
        } else if backend.discard == Some(Discard::Unmap) {
            DiskField::Discard
        } else {
            continue;
        };
        let at = FieldPath::Disk(index, field);
        let Some(qemu) = context.target.qemu else {
            report.not_checked(
                at,
                Missing::new("the version of QEMU", "the target does not name it"),
            );
            continue;
        };
        if is_affected(qemu) {
            report
                .finding(
                    at,
                    format!(
                        "discards of `{}` may corrupt its qcow2 image in QEMU {qemu}",
                        disk.name()
                    ),
                )
                .label("meets a write that copies from below")
                .confidence(Confidence::Assumed)
                .note("mended in QEMU 10.0.11 and 11.0.2; distributions may have mended others")
                .help("update QEMU, or write discard='ignore' until then");
        }
    }
}
