//! `qcow2-v2-option`

use vmdisk_model::{DiskField, FieldPath, Switch};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity, host};

declare_rule! {
    /// An option of qcow2 version 3 is set on an image of version 2.
    ///
    /// ## What it does
    /// Reports `discard_no_unref` on a qcow2 image whose header is of version 2 (`compat=0.10`).
    ///
    /// ## Why it matters
    /// Version 2 has no way to keep a discarded cluster for its block: QEMU does not start.
    ///
    /// ## Reported
    /// ```xml,reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='unmap' discard_no_unref='on'/>
    ///   <source file='/srv/img/v2.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='unmap' discard_no_unref='on'/>
    ///   <source file='/srv/img/whole.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Without facts there is no telling.
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='unmap' discard_no_unref='on'/>
    ///   <source file='/srv/img/v2.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "qcow2-v2-option",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "discard-no-unref is only supported since qcow2 version 3",
                source: "block/qcow2.c, qcow2_update_options_prepare",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        if disk.backend.discard_no_unref != Some(Switch::On) {
            continue;
        }
        let Some(header) = host::qcow2_header(context, image) else {
            continue;
        };
        let at = FieldPath::Disk(index, DiskField::DiscardNoUnref);
        let Some(header) = report.require(at, header).flatten() else {
            continue;
        };
        let what = || format!("the version of the image of `{}`", disk.name());
        let version = Context::known(header.version.as_ref(), what);
        if report.require(at, version).flatten() == Some(&2) {
            report
                .finding(at, format!("`{}` is a qcow2 image of version 2, which has no discard_no_unref", disk.name()))
                .label("needs version 3")
                .help("take it away, or bring the image to version 3 with the guest off: qemu-img amend -o compat=1.1 IMAGE");
        }
    }
}
