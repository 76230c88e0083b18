//! `relative-path`

use vmdisk_model::{FieldPath, ImageField};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A path does not begin at the root of the host.
    ///
    /// ## What it does
    /// Reports paths of files and devices, of disks and of images below them, that do not begin with `/`, in XML for
    /// libvirt.
    ///
    /// ## Why it matters
    /// libvirt takes the path at define and hands it to its daemon and to QEMU, whose working directory is not that
    /// of whoever wrote it. The guest does not start, with `Cannot access storage file`, or opens another file of
    /// that name.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='images/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/images/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "relative-path",
        group: Group::Startup,
        severity: Severity::Warning,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::Measured {
                figures: "the schema refuses it, define takes it, and create says `Cannot access storage file`",
                how: "virt-xml-validate and virsh of libvirt 9.0",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let Some(path) = image.host_path() else {
                continue;
            };
            if path.starts_with('/') || path.is_empty() {
                continue;
            }
            report
                .finding(
                    FieldPath::Image(index, depth, ImageField::Path),
                    format!(
                        "`{}` names its image by a relative path, `{path}`",
                        disk.name()
                    ),
                )
                .label("relative to the working directory of libvirt's daemon")
                .help("write the whole path, from the root on");
        }
    }
}
