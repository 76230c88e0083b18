//! `invalid-value`

use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A value is none of the words or numbers that may stand there.
    ///
    /// ## What it does
    /// Reports values that the reader could not take: a misspelt mode, a word where a number belongs, a number
    /// out of range. Where only one word can have been meant, the fix writes it.
    ///
    /// ## Why it matters
    /// libvirt refuses the whole definition at the first such value, and names neither line nor disk; schema
    /// validation points at `<devices>`. What the rest of the file says is still checked.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writebak'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writeback'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writeback'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "invalid-value",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Refused {
                by: "libvirt 9.0",
                text: "Invalid value for attribute 'cache' in element 'driver': 'writebak'.",
                source: "src/util/virxml.c, virXMLPropEnumInternal",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::InvalidValue);
}
