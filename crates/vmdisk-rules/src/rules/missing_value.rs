//! `missing-value`

use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// Something is missing without which the disk cannot be understood.
    ///
    /// ## What it does
    /// Reports a disk without a target name, and a source without its path or socket.
    ///
    /// ## Why it matters
    /// libvirt refuses the definition. An empty drive with removable media is not a missing source: leave
    /// `<source>` out.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='cdrom'>
    ///   <driver name='qemu' type='raw'/>
    ///   <target dev='sda' bus='sata'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "missing-value",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Refused {
                by: "libvirt 9.0",
                text: "missing target information for device /srv/a.img",
                source: "src/conf/domain_validate.c, virDomainDiskDefValidate",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::MissingValue);
}
