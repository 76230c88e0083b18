//! `qcow2-aes-encryption`

use vmdisk_fields::phrase;
use vmdisk_model::{FieldPath, ImageField};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// A qcow2 image uses the legacy AES encryption, which QEMU no longer opens for guests.
    ///
    /// ## What it reports
    /// Reports qcow2 images whose header sets the encryption method `aes`.
    ///
    /// ## Why it matters
    /// QEMU refuses to start a guest with such an image. The encryption is also weak by design: the passphrase itself
    /// is the key, and equal blocks are recognizable. `qemu-img` still reads these images, so the data can be
    /// recovered.
    ///
    /// ## Use instead
    /// Convert the image to LUKS while the guest is off, with the old and the new key in files:
    /// `qemu-img convert --object secret,id=old,file=OLDKEY --object secret,id=new,file=NEWKEY --image-opts
    /// driver=qcow2,file.filename=OLD,encrypt.key-secret=old -O qcow2 -o
    /// encrypt.format=luks,encrypt.key-secret=new,encrypt.hash-alg=sha512 NEW`. The conversion needs space for a second
    /// copy, and the guest needs a LUKS secret afterwards. With the default hash, SHA-256, `qemu-img` often fails on a
    /// fast machine: `Unable to get accurate CPU usage`.
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
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/aes.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "qcow2-aes-encryption",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_qemu("Use of AES-CBC encrypted qcow2 images is no longer supported in system emulators", "block/qcow2.c, qcow2_do_open"),
    ],
    check: Model(check),
}

const CONVERT: &str = "qemu-img convert --object secret,id=old,file=OLDKEY --object secret,id=new,file=NEWKEY --image-opts \
    driver=qcow2,file.filename=OLD,encrypt.key-secret=old -O qcow2 \
    -o encrypt.format=luks,encrypt.key-secret=new,encrypt.hash-alg=sha512 NEW";

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let Some(header) = host::qcow2_header(context, image) else {
            continue;
        };
        let at = FieldPath::Image(index, 0, ImageField::Path);
        let Some(header) = report.require(at, header).flatten() else {
            continue;
        };
        let what = || format!("the encryption of {}", disk.name());
        let encryption = Context::known(header.encryption.as_ref(), what);
        let encryption = report.require(at, encryption).flatten();
        if encryption.is_some_and(|encryption| encryption == "aes") {
            report
                .finding(at, phrase!("the image of {disk} uses the legacy AES encryption of qcow2, which QEMU refuses"))
                .label("the header sets the encryption method `aes`")
                .help(format!("with the guest off, convert the image to LUKS, with the keys in files: `{CONVERT}`"));
        }
    }
}
