//! `relative-path`

use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{FieldPath, ImageField};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A disk uses a relative path, which libvirt does not resolve as expected.
    ///
    /// ## What it reports
    /// Reports relative paths of image files and devices, including backing images, in libvirt XML.
    ///
    /// ## Why it matters
    /// libvirt accepts the path when the guest is defined. Its daemon and QEMU then resolve it against their own
    /// working directory: the guest does not start, with `Cannot access storage file`, or opens another file of the
    /// same name.
    ///
    /// ## Use instead
    /// Use the absolute path; `realpath FILE` prints it.
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
    name: "relative-path",
    group: Group::Startup,
    severity: Severity::Warning,
    libvirt_only: true,
    evidence: &[
        Evidence::measured("the schema refuses it, define accepts it, and create fails with `Cannot access storage file`", "virt-xml-validate and virsh of libvirt 9.0"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, _, top) in context.images() {
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
                    phrase!(
                        "{disk} uses the relative path {path}",
                        path = quoted(path.to_owned()),
                    ),
                )
                .label("resolved against the working directory of libvirt's daemon")
                .help("use the absolute path");
        }
    }
}
