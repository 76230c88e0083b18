//! `detect-zeroes-unmap-no-discard`

use vmdisk_fields::{phrase, setting};
use vmdisk_model::{BackendSource, Change, DetectZeroes, Discard, DiskField, FieldPath, Format};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

declare_rule! {
    /// Zeroes should be discarded (`detect_zeroes='unmap'`), but discards are off.
    ///
    /// ## What it reports
    /// Reports `detect_zeroes='unmap'` without `discard='unmap'` on a disk that the guest can write.
    ///
    /// ## Why it matters
    /// libvirt silently changes `unmap` to `on`: QEMU still searches every write for zeroes, which costs CPU time, but
    /// frees no space. QEMU's `-blockdev` refuses the combination.
    ///
    /// ## Use instead
    /// Add `discard='unmap'` to free space. Use `detect_zeroes='on'` to keep what happens now. Remove `detect_zeroes`
    /// to save the CPU time.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' detect_zeroes='unmap'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' detect_zeroes='unmap' discard='unmap'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' detect_zeroes='unmap'/>
    ///   <source file='/srv/a.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed,hidden
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' detect_zeroes='on'/>
    ///   <source file='/srv/a.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' discard='unmap' detect_zeroes='unmap'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' detect_zeroes='on'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "detect-zeroes-unmap-no-discard",
    group: Group::Clarity,
    severity: Severity::Warning,
    evidence: &[
        Evidence::refused_by("QEMU 5.2, 7.2, 10.0 and 11.1", "setting detect-zeroes to unmap is not allowed without setting discard operation to unmap", "-blockdev; -drive accepts it: 10.0 and 11.1 free nothing, 5.2 and 7.2 do"),
        Evidence::measured("libvirt accepts and starts the guest, with detect-zeroes: on on the command line", "virsh of libvirt 9.0 with QEMU 7.2"),
        Evidence::Source("libvirt src/conf/domain_conf.c, virDomainDiskGetDetectZeroesMode"),
    ],
    supersedes: &["discard-missing-thin"],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let is_contradiction = disk.backend.detect_zeroes == Some(DetectZeroes::Unmap)
            && disk.backend.discard != Some(Discard::Unmap);
        let format = match &disk.backend.source {
            BackendSource::Image(image) => image.format,
            // libvirt refuses the option for vhost-user; an empty drive has nothing to write to.
            BackendSource::VhostUser(_) | BackendSource::Empty => continue,
        };
        if !is_contradiction || !disk.is_writable() {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::DetectZeroes);
        let discard = FieldPath::Disk(index, DiskField::Discard);
        let unmap = setting(discard, Discard::Unmap);
        let on = setting(at, DetectZeroes::On);
        let finding = report.finding(
            at,
            phrase!(
                "{disk} sets {detect} without {discard}, which frees nothing",
                detect = setting(at, DetectZeroes::Unmap),
                discard = setting(discard, Discard::Unmap),
            ),
        );
        finding
            .label("acts as `on`")
            .note("every write is searched for zeroes, and none is discarded")
            .help(phrase!(
                "add {unmap}, or use {on} to keep what happens now",
                unmap = unmap.clone(),
                on = on.clone()
            ));
        if disk.backend.discard.is_some() {
            finding.related(discard, "drops discards");
        }
        if format == Some(Format::Qcow2) {
            finding
                .help(phrase!("use {on} to keep what happens now, or add {unmap} on QEMU 10.0.11, 11.0.2 or later", on, unmap))
                .note("an older QEMU can corrupt qcow2 when a discard meets a write to the same cluster")
                .fix(Fix::safe([Change::set(at, DetectZeroes::On)]));
        } else if disk.backend.discard.is_some() {
            // Who drops discards on purpose may keep the image allocated.
            finding.fix(Fix::safe([Change::set(at, DetectZeroes::On)]));
        } else {
            finding.fix(Fix::safe([Change::set(discard, Discard::Unmap)]));
        }
    }
}
