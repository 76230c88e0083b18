//! `qcow2-v2-option`

use vmdisk_model::{Disk, DiskField, FieldPath, Image, Switch};
use vmdisk_rule::image_facts;
use vmdisk_rule::{Context, Evidence, Group, Report, Severity};

use super::line::{Line, line_rule};
use super::nodes::nodes;
use crate::syntax::value::is_on;

line_rule! {
    /// An option that needs qcow2 version 3 is set on a version 2 image.
    ///
    /// ## What it reports
    /// Reports `discard_no_unref`, and `lazy-refcounts` on command lines, on a qcow2 image whose header has version 2
    /// (`compat=0.10`).
    ///
    /// ## Why it matters
    /// Version 2 can neither keep a discarded cluster allocated nor postpone reference counts. libvirt defines the
    /// guest, and QEMU exits at start with `discard-no-unref is only supported since qcow2 version 3` or
    /// `Lazy refcounts require a qcow2 image with at least qemu 1.1 compatibility level`.
    ///
    /// ## Use instead
    /// Upgrade the image while the guest is shut down: `qemu-img amend -o compat=1.1 IMAGE`. Alternatively remove the
    /// option.
    ///
    /// ## Reported
    /// ```xml,reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='unmap' discard_no_unref='on'/>
    ///   <source file='/srv/img/v2.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```args,reported,facts-refused-images
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/img/v2.qcow2 \
    ///   -blockdev driver=qcow2,node-name=q0,file=f0,lazy-refcounts=on \
    ///   -device virtio-blk-pci,drive=q0,id=vda
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
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='unmap' discard_no_unref='on'/>
    ///   <source file='/srv/img/v2.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "qcow2-v2-option",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_qemu("discard-no-unref is only supported since qcow2 version 3", "block/qcow2.c, qcow2_update_options_prepare"),
        Evidence::refused_by_qemu("Lazy refcounts require a qcow2 image with at least qemu 1.1 compatibility level", "block/qcow2.c, qcow2_update_options_prepare"),
    ],
    check: Model(check), Text(check_line),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        if disk.backend.discard_no_unref != Some(Switch::On) {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::DiscardNoUnref);
        if is_version_2(context, report, at, disk, image) {
            report
                .finding(at, format!("`{}` is a qcow2 image of version 2, which does not support discard_no_unref", disk.name()))
                .label("needs version 3")
                .help("remove it, or upgrade the image while the guest is shut down: qemu-img amend -o compat=1.1 IMAGE");
        }
    }
}

/// True if the header has version 2; an unknown version is reported as not checked.
fn is_version_2(
    context: &Context<'_>,
    report: &mut Report,
    at: FieldPath,
    disk: &Disk,
    image: &Image,
) -> bool {
    let Some(header) = image_facts::qcow2_header(context, image) else {
        return false;
    };
    let Some(header) = report.require(at, header).flatten() else {
        return false;
    };
    let what = || format!("the version of the image of `{}`", disk.name());
    let version = Context::known(header.version.as_ref(), what);
    report.require(at, version).flatten() == Some(&2)
}

/// Options outside the model.
pub(super) fn check_line(line: &Line<'_>, report: &mut Report) {
    for node in nodes(line).filter(|node| node.driver() == "qcow2") {
        let Some(lazy) = node.get("lazy-refcounts").filter(|it| is_on(Some(it))) else {
            continue;
        };
        let at = line.owner(node.option);
        let disk = at.disk().and_then(|index| line.domain().disks.get(index));
        let Some((disk, image)) = disk.and_then(|disk| Some((disk, disk.backend.image()?))) else {
            continue;
        };
        if is_version_2(line.context, report, at, disk, image) {
            let message =
                "lazy-refcounts is on for an image of version 2, which does not support it";
            let help = "remove it, or upgrade the image while the guest is shut down: qemu-img amend -o compat=1.1 IMAGE";
            line.refuse(report, node.option, lazy.span, message, help);
        }
    }
}
