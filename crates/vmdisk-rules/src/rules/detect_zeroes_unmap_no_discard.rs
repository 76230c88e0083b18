//! `detect-zeroes-unmap-no-discard`

use vmdisk_model::{BackendSource, Change, DetectZeroes, Discard, DiskField, FieldPath, Format};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Fix, Group, Report, Severity};

declare_rule! {
    /// A disk asks for zeroes to be discarded, and for no discards.
    ///
    /// ## What it does
    /// Reports `detect_zeroes='unmap'` without `discard='unmap'` on a disk the guest can write.
    ///
    /// ## Why it matters
    /// libvirt turns it into `on` without a word: QEMU still looks through every write for zeroes, which
    /// costs CPU time, and no space is freed. QEMU's `-blockdev` refuses the same combination.
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
    pub(super) static RULE = {
        name: "detect-zeroes-unmap-no-discard",
        group: Group::Clarity,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU 5.2, 7.2, 10.0 and 11.1",
                text: "setting detect-zeroes to unmap is not allowed without setting discard operation to unmap",
                source: "-blockdev; -drive accepts it: 10.0 and 11.1 free nothing, 5.2 and 7.2 free all the same",
            },
            Evidence::Measured {
                figures: "define and start succeed, and the command line has detect-zeroes: on",
                how: "virsh of libvirt 9.0 with QEMU 7.2",
            },
            Evidence::Source("libvirt src/conf/domain_conf.c, virDomainDiskGetDetectZeroesMode"),
        ],
        supersedes: &["discard-missing-thin"],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let is_contradiction = disk.backend.detect_zeroes == Some(DetectZeroes::Unmap)
            && disk.backend.discard != Some(Discard::Unmap);
        let format = match &disk.backend.source {
            BackendSource::Image(image) => image.format,
            // libvirt refuses the option for the one, and there is nothing to write in the other.
            BackendSource::VhostUser(_) | BackendSource::Empty => continue,
        };
        if !is_contradiction || !disk.is_writable() {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::DetectZeroes);
        let discard = FieldPath::Disk(index, DiskField::Discard);
        let fix = [Change::set(discard, Discard::Unmap.as_wire())];
        let finding = report.finding(
            at,
            format!(
                "`{}` has detect_zeroes='unmap' without discard='unmap', which frees nothing",
                disk.name()
            ),
        );
        finding
            .label("acts as `on`")
            .note("every write is searched for zeroes, and none of them is discarded")
            .help(
                "write discard='unmap' with it, or detect_zeroes='on', which is what happens now",
            );
        if disk.backend.discard.is_some() {
            finding.related(discard, "drops discards");
        }
        if format == Some(Format::Qcow2) {
            finding
                .help("write detect_zeroes='on', which is what happens now, or discard='unmap' with it, on QEMU 10.0.11, 11.0.2 or later")
                .note("an older QEMU can corrupt qcow2 when a discard meets a write to the same cluster")
                .fix(Fix::needs_consent(fix));
        } else {
            finding.fix(Fix::safe(fix));
        }
    }
}
