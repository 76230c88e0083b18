//! `property-refused`

use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A device or node does not have the property, or takes another type of value.
    ///
    /// ## What it does
    /// Reports properties of disk devices, of virtio-scsi and NVMe controllers and of the usual nodes that no QEMU
    /// from 5.2 to 11.1 has there, such as `iothread` on an IDE disk, `rotation_rate` on virtio-blk or `aio` on a
    /// format node; device names and words of `-drive` that are gone; and, in JSON and key=value, values of another
    /// type: a number between quotes, `"on"` for `true`.
    ///
    /// ## Why it matters
    /// QEMU does not start with it. The message names the property and not the reason, and only the first.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,rotation_rate=1
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev '{"driver":"file","node-name":"f0","filename":"/srv/a.img","read-only":"off"}' \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-scsi-pci,id=scsi0 \
    ///   -device scsi-hd,drive=f0,id=sda,bus=scsi0.0,rotation_rate=1
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev '{"driver":"file","node-name":"f0","filename":"/srv/a.img","read-only":false}' \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    pub(super) static RULE = {
        name: "property-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "Property 'virtio-blk-pci.rotation_rate' not found",
                source: "qom/object.c, object_property_find_err",
            },
            Evidence::Refused {
                by: "QEMU",
                text: "Invalid parameter type for 'read-only', expected: boolean",
                source: "qapi/qobject-input-visitor.c",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::PropertyRefused);
}
