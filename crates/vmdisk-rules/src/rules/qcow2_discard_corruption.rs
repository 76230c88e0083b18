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
    /// Reports writable qcow2 images with `discard='unmap'` if the target is a QEMU before 10.0.11, or from 10.1 to 11.0.1:
    /// once for a guest, and in a run with several guests of a host once for the host. It is advice, because the bug is rare
    /// and belongs to the host's QEMU; with `detect_zeroes='unmap'`, which makes each write of zeroes a discard, it is a
    /// warning for each guest. An image whose header shows another format is not reported.
    ///
    /// ## Why it matters
    /// A discard, or a write of zeroes that becomes one, can meet a copy-on-write in flight on the same cluster, and
    /// the newer data is lost. Both must happen at the same moment, so this is rare, but nothing reports it.
    /// Distributions may have backported the fix: Debian's 7.2.22 does not have it, and Debian's 10.0.11 does. The packages of
    /// Ubuntu and RHEL were not examined.
    ///
    /// ## Use instead
    /// Update QEMU: 10.0.11 or a later 10.0, or 11.0.2 or later. Until then use `discard='ignore'`, and
    /// `detect_zeroes='on'` instead of `unmap`, or trim only while the guest is idle. Without discards, deleted data stays
    /// allocated; for an affected QEMU `discard-missing-thin` names both sides and has no fix.
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
    /// ```xml,reported,hidden,qemu-7.2
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none' discard='unmap' detect_zeroes='unmap'/>
    ///       <source file='/srv/web2.qcow2'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
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
    severity: Severity::Advice,
    is_about_host: true,
    evidence: &[
        Evidence::measured("QEMU's own iotest 046 fails with `Pattern verification failed` on 5.2.0 and 7.2.22, and passes on 10.0.13 and 11.1.3", "qemu-io with concurrent aio_write and discard on a qcow2 overlay, Linux 6.18"),
        Evidence::Source("QEMU stable 10.0.11 and 11.0.2: qcow2: Fix corruption on discard during write with COW; Fix data loss on zero write with detect-zeroes=unmap"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let affected = affected(context);
    // The disk that meets the bug most often is named.
    let worst = affected.iter().find(|(_, detects_zeroes)| *detects_zeroes);
    let Some(&(index, detects_zeroes)) = worst.or(affected.first()) else {
        return;
    };
    let at = FieldPath::Disk(index, DiskField::Discard);
    let Some(qemu) = context.target.qemu else {
        let what = "the version of QEMU";
        return report.not_checked(at, Missing::new(what, "the target does not set it"));
    };
    let row = Bug::Qcow2DiscardDuringCow.row();
    if !row.answer(qemu).is_yes() {
        return;
    }
    let fixed: Vec<String> = row
        .fixed_in()
        .into_iter()
        .filter(|release| *release > qemu)
        .map(|release| release.to_string())
        .collect();
    let ignore = setting(at, Discard::Ignore);
    let instead: Piece = if detects_zeroes {
        let field = FieldPath::Disk(index, DiskField::DetectZeroes);
        [ignore, setting(field, DetectZeroes::On)].into()
    } else {
        ignore.into()
    };
    let finding = report.finding(
        at,
        phrase!(
            "QEMU {qemu} can corrupt a qcow2 image when the guest discards",
            qemu = qemu.to_string(),
        ),
    );
    finding
        .label("a discard and a copy-on-write of one cluster can overlap")
        .confidence(Confidence::Assumed)
        .note(format!(
            "fixed in QEMU {}; distributions may have backported the fix",
            row.fix().unwrap_or_default()
        ))
        .help(phrase!(
            "update QEMU to {fixed} or later, or trim while the guest is idle; {instead} avoids it, and keeps deleted data allocated",
            fixed = fixed.join(", "),
            instead,
        ));
    match affected.len() - 1 {
        0 => {}
        1 => drop(finding.note("so can another disk of the guest")),
        more => drop(finding.note(format!("so can {more} more disks of the guest"))),
    }
    if detects_zeroes {
        finding
            .severity(Severity::Warning)
            .note("with `detect_zeroes`, each write of zeroes is a discard as well");
    }
}

/// The qcow2 disks that pass discards on, and whether each turns zeroes into discards.
/// True if a disk can meet the bug where QEMU has it.
pub(super) fn is_affected(context: &Context<'_>) -> bool {
    !affected(context).is_empty()
}

fn affected(context: &Context<'_>) -> Vec<(usize, bool)> {
    let mut found = Vec::new();
    for (index, disk, image) in context.images() {
        // Without `discard='unmap'`, zeroes that are detected are not discarded either.
        let discards = disk.is_writable() && disk.backend.discard == Some(Discard::Unmap);
        if image_facts::format_in_use(context, image) != Ok(Format::Qcow2) || !discards {
            continue;
        }
        // An image of another format is not opened as qcow2; format-mismatch reports it.
        let header = image.host_path().and_then(|path| {
            let header = image_facts::header(context, path).ok().flatten()?;
            header.format.value()
        });
        if header.is_none_or(|format| format == "qcow2") {
            let detects_zeroes = disk.backend.detect_zeroes == Some(DetectZeroes::Unmap);
            found.push((index, detects_zeroes));
        }
    }
    found
}
