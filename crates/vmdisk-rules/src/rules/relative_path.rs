//! `relative-path`

use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{FieldPath, ImageField, NetworkProtocol};
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
    /// Use the absolute path; `realpath FILE` prints it. An address in QEMU's notation, such as `rbd:pool/image`, is the name of a
    /// file to libvirt: it belongs in a disk of type `network`.
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
    /// ```xml,reported,hidden
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='rbd:pool/image'/>
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
            let title = phrase!(
                "{disk} uses the relative path {path}",
                path = quoted(path.to_owned()),
            );
            let at = FieldPath::Image(index, depth, ImageField::Path);
            let finding = report.finding(at, title);
            match protocol_of(path) {
                Some(protocol) => finding
                    .label("to libvirt, an address in QEMU's notation is the name of a file")
                    .help(format!(
                        "name the server in a disk of type `network`, with `<source protocol='{}' name=…>`",
                        protocol.as_str()
                    )),
                None => finding
                    .label("resolved against the working directory of libvirt's daemon")
                    .help("use the absolute path"),
            };
        }
    }
}

/// The protocol of an address such as `rbd:pool/image` or `nbd+unix:///name?socket=/run/nbd`.
fn protocol_of(path: &str) -> Option<NetworkProtocol> {
    let (scheme, _) = path.split_once(':')?;
    let (protocol, _) = scheme.split_once('+').unwrap_or((scheme, ""));
    NetworkProtocol::from_word(protocol)
}
