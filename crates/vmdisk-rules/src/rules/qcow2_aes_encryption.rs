//! `qcow2-aes-encryption`

use vmdisk_model::{FieldPath, ImageField};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity, host};

declare_rule! {
    /// The image is encrypted with the old AES of qcow2, which QEMU no longer opens for guests.
    ///
    /// ## What it does
    /// Reports qcow2 images whose header says that they are encrypted with `aes`.
    ///
    /// ## Why it matters
    /// The encryption was broken by design: its key is the passphrase itself, and equal blocks show. `qemu-img`
    /// still reads it, so that data can be rescued; a guest does not start with it.
    ///
    /// ## Reported
    /// ```xml,reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/aes.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/whole.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Without facts there is no telling.
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/aes.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "qcow2-aes-encryption",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "Use of AES-CBC encrypted qcow2 images is no longer supported in system emulators",
                source: "block/qcow2.c, qcow2_do_open",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let Some(header) = host::qcow2_header(context, image) else {
            continue;
        };
        let at = FieldPath::Image(index, 0, ImageField::Path);
        let Some(header) = report.require(at, header).flatten() else {
            continue;
        };
        let what = || format!("how the image of `{}` is encrypted", disk.name());
        let encryption = Context::known(header.encryption.as_ref(), what);
        let encryption = report.require(at, encryption).flatten();
        if encryption.is_some_and(|encryption| encryption == "aes") {
            report
                .finding(at, format!("the image of `{}` is encrypted with the old AES of qcow2, and QEMU refuses it", disk.name()))
                .label("its header says `aes`")
                .help("convert it to LUKS with the guest off: qemu-img convert with -O qcow2 -o encrypt.format=luks");
        }
    }
}
