//! `qcow2-discard-corruption`

use vmdisk_facts::Bug;
use vmdisk_fields::{Piece, phrase, setting};
use vmdisk_model::{DetectZeroes, Discard, DiskField, FieldPath, Format};
use vmdisk_rule::{
    Confidence, Context, Evidence, Group, Missing, Report, Severity, declare_rule, image_facts,
};

declare_rule! {
    /// Discards can corrupt a qcow2 image with this version of QEMU.
    ///
    /// ## What it reports
    /// Reports writable qcow2 images with `discard='unmap'` if the target is a QEMU before 10.0.11, or from 10.1 to
    /// 11.0.1. `detect_zeroes='unmap'` discards only together with it. An image whose header shows another format is not
    /// reported.
    ///
    /// ## Why it matters
    /// A discard, or a write of zeroes that becomes one, can meet a copy-on-write in flight on the same cluster, and
    /// the newer data is lost. Both must happen at the same moment, so this is rare, but nothing reports it.
    /// Distributions may have backported the fix; Debian's 7.2.22 does not have it.
    ///
    /// ## Use instead
    /// Update QEMU: 10.0.11 or a later 10.0, or 11.0.2 or later. Until then use `discard='ignore'`, and
    /// `detect_zeroes='on'` instead of `unmap`. Deleted data then stays allocated; `discard-missing-thin` does not report
    /// that for an affected QEMU.
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
    /// The file is a raw image, and `format-mismatch` reports it:
    /// ```xml,not-reported,qemu-7.2,facts-xfs-nvme
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///   <source file='/srv/img/web2.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without a target, because the version of QEMU is unknown:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,qemu-7.2
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    name: "qcow2-discard-corruption",
    group: Group::DataSafety,
    severity: Severity::Warning,
    evidence: &[
        Evidence::Measured {
            figures: "QEMU's own iotest 046 fails with `Pattern verification failed` on 5.2.0 and 7.2.22, and passes on 10.0.13 and 11.1.3",
            how: "qemu-io with concurrent aio_write and discard on a qcow2 overlay, Linux 6.18",
        },
        Evidence::Source("QEMU stable 10.0.11 and 11.0.2: qcow2: Fix corruption on discard during write with COW; Fix data loss on zero write with detect-zeroes=unmap"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        if image.format != Some(Format::Qcow2) || !disk.is_writable() {
            continue;
        }
        // Without `discard='unmap'`, zeroes that are detected are not discarded either.
        if disk.backend.discard != Some(Discard::Unmap) {
            continue;
        }
        // An image of another format is not opened as qcow2; format-mismatch reports it.
        let header = image.host_path().and_then(|path| {
            let header = image_facts::header(context, path).ok().flatten()?;
            header.format.value()
        });
        if header.is_some_and(|format| format != "qcow2") {
            continue;
        }
        let detects_zeroes = disk.backend.detect_zeroes == Some(DetectZeroes::Unmap);
        let at = FieldPath::Disk(index, DiskField::Discard);
        let Some(qemu) = context.target.qemu else {
            report.not_checked(
                at,
                Missing::new("the version of QEMU", "the target does not set it"),
            );
            continue;
        };
        let row = Bug::Qcow2DiscardDuringCow.row();
        if row.answer(qemu).is_yes() {
            let fixed: Vec<String> = row
                .fixed_in()
                .into_iter()
                .filter(|release| *release > qemu)
                .map(|release| release.to_string())
                .collect();
            let fixed = format!("{} or later", fixed.join(", "));
            let ignore = setting(at, Discard::Ignore);
            let instead: Piece = if detects_zeroes {
                let field = FieldPath::Disk(index, DiskField::DetectZeroes);
                [ignore, setting(field, DetectZeroes::On)].into()
            } else {
                ignore.into()
            };
            report
                .finding(
                    at,
                    phrase!(
                        "discards can corrupt the qcow2 image of {disk} in QEMU {qemu}",
                        qemu = qemu.to_string(),
                    ),
                )
                .label("can collide with a copy-on-write")
                .confidence(Confidence::Assumed)
                .note(format!(
                    "fixed in QEMU {}; distributions may have backported the fix",
                    row.fix().unwrap_or_default()
                ))
                .help(phrase!(
                    "update QEMU to {fixed}, or use {instead} until then, which keeps deleted data allocated",
                    fixed,
                    instead,
                ));
        }
    }
}
